"""The fusion model: the kernel decides, the definition decides what the kernel cannot, and both are one rule."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from qmedoid import NearestMedoidClassifier
from qmedoid.exceptions import DataError
from qmedoid.geometry.channels import fusion_scores
from qmedoid.geometry.overlap import AngleKind
from qmedoid.geometry.scaling import Scaling
from qmedoid.kernels.ties import first_smallest_of_rows
from qmedoid.methods.nearest.part import NearestPart


def make_model(angle: AngleKind = "true") -> NearestPart:
    """Three columns, features that are the columns' absolute values, one medoid for each of two classes."""
    return NearestPart(
        input_scaling=Scaling(np.zeros(3), np.ones(3)),
        configuration=((0,), (1,), (2,)),
        weights=(np.ones(1),) * 3,
        signed=False,
        feature_scaling=Scaling(np.zeros(3), np.ones(3)),
        medoids=np.array([[1.0, 2.0, 0.5], [3.0, 0.1, 2.0]]),
        medoid_classes=np.array([0, 1]),
        medoid_rows=np.array([7, 9]),
        multipliers=np.array([1.0, 0.9]),
        alpha=0.7,
        use_angular=True,
        angle=angle,
    )


def by_definition(model: NearestPart, X: np.ndarray) -> np.ndarray:
    channels = model.feature_channels(model.features(X))
    return fusion_scores(channels, model.alpha, use_angular=model.use_angular, multipliers=model.multipliers)


@pytest.mark.parametrize("angle", ["true", "printed"])
@pytest.mark.parametrize("extreme", [0.0, 1e160, 1e-160])
def test_rows_out_of_the_kernels_range_follow_the_definition(angle: AngleKind, extreme: float) -> None:
    # Features standardized by a tiny or huge deviation leave the range of squares though every number is finite.
    model = make_model(angle)
    X = np.random.default_rng(0).normal(size=(9, 3))
    model = replace(model, feature_scaling=Scaling(np.zeros(3), np.full(3, 1.0 / extreme if extreme else 1.0)))
    if not extreme:
        X[4] = 0.0
    expected = by_definition(model, X)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(model.score(X).scores, expected, atol=1e-12)
    np.testing.assert_array_equal(model.labels(X), first_smallest_of_rows(expected))
    defined = model.feature_channels(model.features(X))
    np.testing.assert_allclose(model.score(X, channels=True).angle, defined.angle, atol=1e-12)
    np.testing.assert_allclose(model.score(X, channels=True).distance, defined.distance, rtol=1e-12)
    np.testing.assert_allclose(model.score(list(X.T)).scores, expected, atol=1e-12)


def test_a_zero_row_keeps_the_zero_rules() -> None:
    zero = np.zeros((1, 3))
    np.testing.assert_array_equal(make_model("true").score(zero, channels=True).angle, [[np.pi / 2, np.pi / 2]])
    np.testing.assert_array_equal(make_model("printed").score(zero, channels=True).angle, [[0.0, 0.0]])


def test_a_changed_model_has_a_plan_of_its_own() -> None:
    model, X = make_model(), np.random.default_rng(0).normal(size=(50, 3))
    before = model.score(X).scores
    np.testing.assert_array_equal(replace(model, multipliers=2.0 * model.multipliers).score(X).scores, 2.0 * before)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e4, 1e9])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.1e150, -1e300])
def test_bad_values_are_refused_whatever_the_unit_of_their_column(unit, bad):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * [1.0, unit, 3.0, 1e-3] + [0.0, 2 * unit, 1.0, 0.0]
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    model = NearestMedoidClassifier(max_passes=0, random_state=0).fit(X, y).model_.parts[0]
    # A number beyond 1e150 shows in the features unless the unit of its column is nearly as large.
    for column in range(4):
        rows = X.copy()
        rows[7, column] = bad
        for table in (rows, list(rows.T)):
            for scored in (model.score, model.labels, partial(model.score, channels=True)):
                with pytest.raises(DataError, match=f"Row 7 holds .* in column {column} "):
                    scored(table)
