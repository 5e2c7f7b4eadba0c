"""DeltaFeatures as users meet it: names, frames, scaling, pipelines."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from qmedoid import DeltaFeatures, NearestMedoidClassifier, VariationalClassifier
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.channels import delta_features

X2, Y2 = load_breast_cancer(return_X_y=True)
X2 = X2[:, :8]
X3, Y3 = load_wine(return_X_y=True)
KINDS = np.array(["low", "mid", "top"])


def quick(method=None, **changes):
    """Deltas of a fusion model without a search."""
    return DeltaFeatures(
        method or NearestMedoidClassifier(max_passes=0, subset_sizes=(2, 2)), random_state=0, **changes
    )


def test_deltas_are_those_of_the_fitted_fusion_model():
    fitted = quick(fused=True, standardize=False).fit(X2, Y2)
    method = fitted.estimator_
    measured = method.model_.score(X2, channels=True)
    np.testing.assert_array_equal(fitted.transform(X2), delta_features(measured.channels, measured.scores, fused=True))
    channels = method.channels(X2)
    np.testing.assert_allclose(
        fitted.transform(X2), delta_features(channels, method.model_.parts[0].fuse(channels), fused=True), atol=1e-12
    )
    np.testing.assert_allclose(fitted.transform(X2)[:, 2], -method.decision_function(X2), atol=1e-12)


def test_they_are_standardized_on_training_rows_only():
    fitted = quick().fit(X2[:400], Y2[:400])
    train, test = fitted.transform(X2[:400]), fitted.transform(X2[400:])
    np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(train.std(axis=0), 1)
    assert np.abs(test.mean(axis=0)).max() > 1e-3
    plain = quick(standardize=False).fit(X2[:400], Y2[:400])
    np.testing.assert_allclose(test, fitted.scaling_.apply(plain.transform(X2[400:])))
    np.testing.assert_array_equal(fitted.transform(X2[400:401]), test[:1])


def test_negative_deltas_mean_nearer_the_second_class():
    deltas = quick(standardize=False).fit(X2, Y2).transform(X2)
    assert (deltas[Y2 == 1].mean(axis=0) < 0).all()
    assert (deltas[Y2 == 0].mean(axis=0) > 0).all()


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, ["distance[mid-low]", "angle[mid-low]", "distance[top-low]", "angle[top-low]", "distance[top-mid]",
              "angle[top-mid]"]),
        ({"kind": "nearest", "fused": True}, ["distance[second-best]", "angle[second-best]", "score[second-best]"]),
        ({"method": NearestMedoidClassifier(max_passes=0, use_angular=False)},
         ["distance[mid-low]", "distance[top-low]", "distance[top-mid]"]),
    ],
    ids=["pairs", "nearest", "distance"],
)  # fmt: skip
def test_names_and_frames(changes, names):
    frame = pd.DataFrame(X3, columns=[f"column {i}" for i in range(X3.shape[1])])
    fitted = quick(**changes).set_output(transform="pandas").fit(frame, KINDS[Y3])
    table = fitted.transform(frame)
    assert list(table.columns) == [f"delta_{name}" for name in names]
    assert fitted.get_feature_names_out().tolist() == list(table.columns)
    assert (table.index == frame.index).all()
    np.testing.assert_array_equal(table, quick(**changes).fit(X3, Y3).transform(X3))
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame.rename(columns={"column 0": "other"}))


def test_circuit_on_deltas():
    circuit = VariationalClassifier(n_steps=60, n_seeds=1, n_reps=1, learning_rate=0.2, random_state=0)
    pipeline = make_pipeline(quick(), circuit).fit(X2[::2], Y2[::2])
    assert pipeline[-1].n_features_in_ == 2
    assert pipeline.score(X2[1::2], Y2[1::2]) > 0.85


def test_parameters_that_change_after_the_fit_wait_for_the_next():
    fitted = quick().fit(X3, Y3)
    before, names = fitted.transform(X3), fitted.get_feature_names_out()
    fitted.set_params(kind="nearest", fused=True)
    np.testing.assert_array_equal(fitted.transform(X3), before)
    np.testing.assert_array_equal(fitted.get_feature_names_out(), names)


def test_given_fusion_classifier_is_left_alone_and_keeps_its_own_seed():
    given = NearestMedoidClassifier(max_passes=0, random_state=7)
    fitted = DeltaFeatures(given, random_state=0).fit(X2, Y2)
    assert not hasattr(given, "model_")
    assert fitted.estimator_.random_state == 7
    drawn = DeltaFeatures(NearestMedoidClassifier(max_passes=0), random_state=0).fit(X2, Y2)
    assert isinstance(drawn.estimator_.random_state, int)


def test_method_that_is_not_set_is_its_default_once_a_parameter_of_it_is():
    estimator = DeltaFeatures()
    assert estimator.set_params() is estimator
    assert estimator.method is None
    made = estimator.set_params(method__random_state=3).method
    assert made.get_params(deep=False) == {**NearestMedoidClassifier().get_params(deep=False), "random_state": 3}
    assert estimator.set_params(method__random_state=None).method is made
    assert estimator.set_params(method=None, method__random_state=3).method is not made
    with pytest.raises(ValueError, match="Invalid parameter 'none'"):
        DeltaFeatures().set_params(method__none=1)


def test_wrong_parameters_are_refused_by_name():
    with pytest.raises(ParameterError, match=r"'kind' parameter of DeltaFeatures .*'pairs', 'nearest'"):
        quick(kind="all").fit(X2, Y2)
    with pytest.raises(ParameterError, match=r"'method' parameter of DeltaFeatures"):
        DeltaFeatures(LogisticRegression()).fit(X2, Y2)
    with pytest.raises(NotFittedError):
        quick().transform(X2)
