"""A decision decomposes: the terms add up to the margin, whatever the model."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.few_trees import few_trees

from qmedoid import (
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    RareEventClassifier,
    VariationalClassifier,
)
from qmedoid.exceptions import ModelError
from qmedoid.explain.explaining import explain
from qmedoid.methods.calibration import fit_calibration
from qmedoid.methods.part import Calibration
from qmedoid.model.contract import Column, Contract, Numbers
from qmedoid.model.decision import Decision
from qmedoid.model.importance import column_contributions
from qmedoid.model.model import Model

SMALL = EvidenceClassifier(n_medoids=12, n_pairs=3, n_triples=2)
QUICK = VariationalClassifier(n_steps=20, n_seeds=1, n_reps=1, cv=2)


def rows_of(n_classes, seed=0, n=240, columns=6):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, size=n)
    return rng.normal(size=(n, columns)) + codes[:, None] * np.linspace(0.2, 1.5, columns), codes


def table_model(part, calibration, n_columns, cut=None, probabilistic=True):
    contract = Contract(tuple(Column(f"x{j}", "number") for j in range(n_columns)))
    encodings, n_classes = tuple(Numbers(np.nan) for _ in range(n_columns)), len(calibration.biases)
    decision = Decision(tuple(range(n_classes)), cut, probabilistic)
    return Model(contract, encodings, decision, part.name, (part,), np.ones(1), np.zeros(n_classes), calibration)


def geometric(n_classes, cut=None, **parameters):
    X, y = rows_of(n_classes)
    fitted = MedoidClassifier(random_state=0, **parameters).fit(X, y)
    model = fitted.model_
    return replace(model, decision=Decision(model.decision.classes, cut)), X


def sum_model(n_classes):
    with few_trees():
        return geometric(n_classes, method="sum", refine="never")


MODELS = {
    "two classes": lambda: geometric(2, refine="never", method="nearest"),
    "two classes, cut": lambda: geometric(2, cut=0.7, refine="never", method="nearest"),
    "three classes": lambda: geometric(3, refine="never", method="nearest"),
    "evidence": lambda: geometric(2, method=SMALL),
    "evidence, cut": lambda: geometric(2, cut=-0.3, method=EvidenceClassifier(n_medoids=6, n_neighbors=0)),
    "evidence, three classes": lambda: geometric(3, method=SMALL),
    "evidence, some by the circuit": lambda: geometric(2, method=SMALL, refine=0.3, variational=QUICK),
    "rare": lambda: geometric(2, cut=-0.2, method=RareEventClassifier(n_common=50, n_hard=20), refine="never"),
    "rare, some by the circuit": lambda: geometric(
        2, method=RareEventClassifier(n_common=50, n_hard=20), refine=0.3, variational=QUICK
    ),
    "sum": lambda: sum_model(2),
    "sum, three classes": lambda: sum_model(3),
    "medoids and weights": lambda: geometric(
        3, refine="never", method=NearestMedoidClassifier(n_medoids=3, score_weight={0: 1.0, 1: 2.0, 2: 0.5})
    ),
    "no angle": lambda: geometric(2, refine="never", method=NearestMedoidClassifier(use_angular=False)),
    "printed angle": lambda: geometric(2, refine="never", method=NearestMedoidClassifier(angle="printed")),
    "some by the circuit": lambda: geometric(2, method="nearest", refine=0.3, variational=QUICK),
    "all by the circuit, cut": lambda: geometric(2, cut=-0.4, method="nearest", refine="always", variational=QUICK),
}


@pytest.fixture(scope="module", params=MODELS)
def model_and_rows(request):
    return MODELS[request.param]()


def test_many_records_at_once_are_explained_as_one_by_one_for_the_class_that_won(model_and_rows):
    model, X = model_and_rows
    X = np.vstack([X[:30], X[:1] * 1e3, np.zeros((1, X.shape[1]))])
    decided = model.decide(list(X.T))
    others = model.decision.runners_up(decided.scores, decided.codes)
    together = column_contributions(model, list(X.T), decided.codes, others)
    alone = [explain(model, [column[[row]] for column in X.T]).columns for row in range(len(X))]
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-10)
    assert np.abs(together).max() > 0.01
    assert together.sum(axis=1).mean() > 0


def test_the_terms_add_up_to_the_margin(model_and_rows):
    model, X = model_and_rows
    decided = model.decide(list(X.T))
    for row in range(40):
        why = explain(model, [column[row : row + 1] for column in X.T])
        assert sum(one.contribution for one in why.groups) + sum(why.terms.values()) == pytest.approx(
            why.margin, abs=1e-12, rel=1e-12
        )
        assert why.columns.sum() + sum(why.terms.values()) == pytest.approx(why.margin, abs=1e-12, rel=1e-12)
        assert why.winner == decided.codes[row]
        assert why.by_circuit == decided.by_circuit[row]
        np.testing.assert_array_equal(why.nearest, decided.nearest[row])
        expected = decided.margins[row] * (-1 if len(model.decision.classes) == 2 and why.winner == 0 else 1)
        assert why.margin == pytest.approx(expected, abs=1e-12)
        assert why.margin >= 0


def test_a_group_whose_feature_is_equally_far_from_both_medoids_says_nothing():
    X, y = rows_of(2)
    method = NearestMedoidClassifier(use_angular=False, random_state=0).fit(X, y).model_.parts[0]
    model = table_model(method, Calibration.plain(2), X.shape[1], 0.0, False)
    features = method.features(X[:1])[0]
    between = method.medoids.copy()
    between[0, 2], between[1, 2] = features[2] - 0.5, features[2] + 0.5
    object.__setattr__(method, "medoids", between)
    method.__dict__.pop("scoring_plan", None)
    why = explain(model, [column[:1] for column in X.T])
    shares = [one.contribution for one in why.groups]
    assert shares[2] == pytest.approx(0.0, abs=1e-15)
    assert np.abs(np.delete(shares, 2)).max() > 1e-3


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 100.0), st.lists(st.floats(-5, 5), min_size=2, max_size=2))
def test_a_calibration_scales_the_groups_and_adds_its_bias(slope, biases):
    X, _ = rows_of(2)
    plain = table_model(FUSION, Calibration.plain(2), X.shape[1])
    calibrated = table_model(FUSION, Calibration(slope, np.array(biases)), X.shape[1])
    record = [column[7:8] for column in X.T]
    before, after = explain(plain, record), explain(calibrated, record)
    sign = 1.0 if before.winner == after.winner else -1.0
    shares = [np.array([one.contribution for one in why.groups]) for why in (before, after)]
    np.testing.assert_allclose(shares[1], sign * slope * shares[0], rtol=1e-12, atol=1e-300)
    assert after.terms["calibration"] == biases[after.winner] - biases[after.other]
    # The bias is part of where every record starts, and says nothing of this one.
    assert after.start == pytest.approx(after.terms["calibration"] + after.terms.get("intercept", 0.0), abs=1e-12)
    assert "calibration" not in after.varying


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_a_curve_adds_is_the_calibrations(n_classes):
    X, y = rows_of(n_classes)
    method = NearestMedoidClassifier(random_state=0).fit(X, y).model_.parts[0]
    curved = Calibration(20.0, np.arange(n_classes) * 0.1, np.array([-8.0, -3.0, 0.0]), np.array([0.5, -1.0, 1.0]))
    straight = Calibration(curved.slope, curved.biases)
    for row in range(0, len(X), 7):
        record = [column[row : row + 1] for column in X.T]
        why, before = (explain(table_model(method, one, X.shape[1]), record) for one in (curved, straight))
        total = sum(one.contribution for one in why.groups) + sum(why.terms.values())
        assert why.margin == pytest.approx(total, abs=1e-12)
        assert before.start == pytest.approx(0.1 * (before.winner - before.other))
        assert why.start == pytest.approx(0.1 * (why.winner - why.other))
        if (why.winner, why.other) == (before.winner, before.other):
            assert [one.contribution for one in why.groups] == [one.contribution for one in before.groups]
            assert why.margin != before.margin


FUSION = NearestMedoidClassifier(random_state=0).fit(*rows_of(2)).model_.parts[0]


def test_a_circuit_alone_has_no_medoids_to_explain_by():
    X, y = rows_of(2, columns=2)
    fitted = VariationalClassifier(n_steps=5, n_seeds=1, random_state=0).fit(X, y)
    with pytest.raises(ModelError, match="no medoids"):
        explain(fitted.model_, [column[:1] for column in X.T])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_terms_of_a_record_beyond_all_out_of_fold_rows_add_up(n_classes):
    """The bounds of a calibration are part of its term."""
    model, X = geometric(n_classes, method=SMALL)
    method, scores = model.parts[0], model.score(X).scores
    spread = np.ptp(scores, axis=1)
    mild = np.argsort(spread)[:80]
    calibration = fit_calibration(scores[mild], rows_of(n_classes)[1][mild], "curve")
    unbounded = Calibration(calibration.slope, calibration.biases)
    record = [column[spread.argmax()][None] for column in X.T]
    why, plain = (explain(table_model(method, one, X.shape[1]), record) for one in (calibration, unbounded))
    assert why.margin == pytest.approx(why.columns.sum() + sum(why.terms.values()), abs=1e-9)
    assert 0 < why.margin < 0.9 * plain.margin
    np.testing.assert_array_equal(why.columns, plain.columns)
