"""The findings of docs/findings.md that no other test shows, as laws and on the paper's small data sets."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from benchmarks.datasets import Dataset, load_breast_cancer, load_creditcard_sample, load_heart, load_wine
from benchmarks.studies.cells import paper_split
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline

from qmedoid import DeltaFeatures, NearestMedoidClassifier, compact_swap_test
from qmedoid.exceptions import QMedoidWarning
from qmedoid.geometry.channels import Channels, fusion_scores
from qmedoid.kernels.ties import first_smallest_of_rows
from qmedoid.methods.nearest.problem import NearestSettings, TrainingRows
from qmedoid.metrics.classification import ClassMetrics, evaluate

SPLITS = range(20)


def printed(**changes: object) -> NearestMedoidClassifier:
    """The paper preset with the first three members of every group, without a search."""
    return NearestMedoidClassifier.paper(**({"max_passes": 0, "subset_sizes": (3, 3)} | changes))


def judged(make: Callable[[], NearestMedoidClassifier], data: Dataset, splits: range = SPLITS) -> list[ClassMetrics]:
    """Test metrics of each split; α is chosen on the validation rows, the rest fitted on the training rows."""
    found = []
    for seed in splits:
        split = paper_split(data.y, seed)
        model = make().set_params(random_state=seed)
        model.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])
        predicted = model.model_.parts[0].labels(data.X[split.test])
        found.append(evaluate(data.y[split.test].astype(np.intp), predicted, len(data.class_names)))
    return found


def mean_accuracy(found: list[ClassMetrics]) -> float:
    return float(np.mean([metrics.accuracy for metrics in found]))


# 2: the printed angle is upside down


@pytest.mark.parametrize("seed", range(5))
def test_the_printed_angle_votes_against_the_distance(seed):
    """Medoids of equal norm: the true angle alone decides as the distance does, the printed one the other way."""
    rng = np.random.default_rng(seed)
    medoids = rng.normal(size=(2, 6))
    medoids /= np.linalg.norm(medoids, axis=1, keepdims=True)
    records = rng.normal(size=(200, 6)) * rng.uniform(0.1, 10, size=(200, 1))
    decided = {}
    for angle in ("true", "printed"):
        test = compact_swap_test(records, medoids, angle=angle)
        channels = Channels(test.distance, test.angle)
        by_distance = first_smallest_of_rows(fusion_scores(channels, 1.0, use_angular=True))
        decided[angle] = first_smallest_of_rows(fusion_scores(channels, 0.0, use_angular=True))
    np.testing.assert_array_equal(decided["true"], by_distance)
    np.testing.assert_array_equal(decided["printed"], 1 - by_distance)


@pytest.mark.parametrize("load", [load_heart, load_breast_cancer, load_wine])
def test_the_printed_angle_alone_is_wrong_more_often_than_chance(load):
    data = load()
    alone = {
        angle: mean_accuracy(judged(lambda a=angle: printed(alpha=0.0, angle=a, score_weight=None), data, range(5)))
        for angle in ("printed", "true")
    }
    assert alone["printed"] < 1 / len(data.class_names) - 0.1
    assert alone["true"] > 0.7


# 4: class weights of 1/√prior point the wrong way


def test_printed_class_weights_hold_the_rare_class_back_on_breast_cancer():
    data = load_breast_cancer()
    found = {weight: judged(lambda w=weight: printed(score_weight=w), data) for weight in ("printed", None)}
    assert mean_accuracy(found["printed"]) == pytest.approx(0.889, abs=0.005)
    assert mean_accuracy(found[None]) == pytest.approx(0.918, abs=0.005)
    called_rare = {weight: sum(m.confusion[:, 1].sum() for m in metrics) for weight, metrics in found.items()}
    assert called_rare["printed"] < 0.85 * called_rare[None]
    paper = np.array([[90, 0], [16, 37]])
    np.testing.assert_allclose(np.mean([m.confusion for m in found["printed"]], axis=0), paper, atol=1.0)


def test_the_weights_of_the_default_help_the_rare_class():
    data = load_breast_cancer()
    split = paper_split(data.y, 0)
    called_rare = []
    for weight in ("printed", None, "balanced"):
        model = printed(score_weight=weight, alpha=1.0).fit(data.X[split.fit], data.y[split.fit])
        called_rare.append(int(np.sum(model.predict(data.X[split.test]) == 1)))
    assert called_rare[0] < called_rare[1] < called_rare[2]


# 5: the norm loses the sign


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_plain_norms_of_standardized_columns_lose_the_signal(load):
    data = load()
    settings = {"raw": {}, "plain": {"input_scaling": "standard"}}
    settings["signed"] = settings["plain"] | {"kind": "signed"}
    accuracy = {
        name: mean_accuracy(judged(lambda c=changes: printed(score_weight=None, **c), data, range(10)))
        for name, changes in settings.items()
    }
    assert accuracy["plain"] < accuracy["raw"] - 0.15
    assert accuracy["plain"] < accuracy["signed"] - 0.15


# 6 and 7: everything is fitted on training rows, and features are standardized there


@pytest.mark.parametrize("make", [NearestMedoidClassifier, NearestMedoidClassifier.paper])
def test_rows_to_be_judged_leave_the_fit_alone(make):
    """With the choice of configuration and α taken away, validation rows of any kind give the same model."""
    data = load_wine()
    split = paper_split(data.y, 0)
    rng = np.random.default_rng(0)
    settings = {"max_passes": 0, "subset_sizes": (3, 3), "alpha": 0.7, "random_state": 0}
    settings |= {} if make is NearestMedoidClassifier.paper else {"score_weight": None}
    models = []
    for X_val in (data.X[split.val], rng.normal(scale=1e3, size=(len(split.val), data.X.shape[1]))):
        model = make(**settings).fit(data.X[split.train], data.y[split.train], X_val=X_val, y_val=data.y[split.val])
        models.append(model)
    first, second = models
    assert first.groups_.anchors == second.groups_.anchors
    assert first.groups_.members == second.groups_.members
    np.testing.assert_array_equal(first.groups_.correlation, second.groups_.correlation)
    np.testing.assert_array_equal(first.medoid_indices_, second.medoid_indices_)
    np.testing.assert_array_equal(first.class_multipliers_, second.class_multipliers_)
    np.testing.assert_array_equal(first.model_.score(data.X).scores, second.model_.score(data.X).scores)


def test_the_paper_preset_keeps_to_the_training_rows_of_its_split():
    data = load_wine()
    cv = StratifiedShuffleSplit(n_splits=1, test_size=0.25, random_state=3)
    (rows, _), *_ = cv.split(data.X, data.y)
    model = printed(cv=cv).fit(data.X, data.y)
    settings = NearestSettings(kind="weighted", input_scaling="none")
    alone = TrainingRows(data.X, data.y.astype(np.intp), rows, 3, settings, np.random.default_rng(0))
    np.testing.assert_allclose(model.groups_.correlation, alone.correlation, rtol=1e-12)
    assert set(model.medoid_indices_) <= set(rows)


@pytest.mark.parametrize("make", [NearestMedoidClassifier, NearestMedoidClassifier.paper])
def test_features_are_standardized_with_training_statistics(make):
    data = load_wine()
    split = paper_split(data.y, 1)
    model = make(max_passes=0, random_state=0)
    model.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])
    features = model.model_.parts[0].features(data.X[split.train])
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(features.std(axis=0), 1, atol=1e-9)
    np.testing.assert_allclose(features[model.medoid_indices_], model.model_.parts[0].medoids, atol=1e-12)


# 8: the order of the anchors


def test_renumbering_classes_moves_the_anchors_of_the_paper_preset_alone():
    data = load_wine()
    renumbered = np.array([1, 2, 0])[data.y]
    for make, same in ((NearestMedoidClassifier, True), (NearestMedoidClassifier.paper, False)):
        # Validation rows are passed so that both fits have the same training rows: folds depend on the numbering too.
        first, second = (
            make(max_passes=0, random_state=0).fit(data.X, y, X_val=data.X, y_val=y) for y in (data.y, renumbered)
        )
        assert (first.groups_.anchors == second.groups_.anchors) is same


# 10: subsets larger than groups, and constant columns


def test_sizes_beyond_a_group_are_left_out_and_constant_columns_dropped_by_name():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.tile([0, 1], 30)
    X[:, 2] = 5.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", QMedoidWarning)
        model = NearestMedoidClassifier(subset_sizes=(2, 9), random_state=0).fit(X, y)
    assert any("column 2" in str(w.message) for w in caught)
    assert [record.size for record in model.search_records_] == [2, 3]
    assert all(2 not in subset and len(subset) <= 3 for subset in model.configuration_)


# 12: the search overfits one validation split


def validation_and_test_f1(data: Dataset, splits: range = range(6), **changes: object) -> tuple[float, float]:
    """Mean macro-F1 of the paper preset on the rows that chose its configuration and α, and on the test rows."""
    found = []
    for seed in splits:
        split = paper_split(data.y, seed)
        model = NearestMedoidClassifier.paper(random_state=seed, **changes)
        model.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])
        codes = data.y[split.test].astype(np.intp)
        test = evaluate(codes, model.model_.parts[0].labels(data.X[split.test]), len(data.class_names))
        found.append((model.alpha_sweep_.score, test.macro_f1))
    validation, test = np.mean(found, axis=0)
    return float(validation), float(test)


@pytest.mark.parametrize("load", [load_heart, load_wine])
def test_a_search_on_one_split_flatters_itself(load):
    """The more configurations a validation split chooses from, the further its score is above that of new rows."""
    validation, test = validation_and_test_f1(load(), search_alpha=1.0)
    without_search = validation_and_test_f1(load(), max_passes=0)
    assert validation > test + 0.03
    assert validation - test > without_search[0] - without_search[1] + 0.01


def test_a_search_with_the_printed_angle_at_one_half_finds_nothing():
    """At α = ½ the printed angle and the distance cancel, so the search has nothing to go by."""
    data = load_heart()
    cancelled, by_distance = (validation_and_test_f1(data, search_alpha=alpha)[1] for alpha in (0.5, 1.0))
    assert by_distance > cancelled + 0.08


# 18: scoring training rows


def areas_on_all_and_test_rows(X, y, seeds: range) -> dict[str, tuple[float, float]]:
    """Mean PR-AUC on all rows and on test rows of models that were fitted on the training rows."""
    found: dict[str, list[list[float]]] = {"forest": [], "deltas": []}
    for seed in seeds:
        split = paper_split(y, seed)
        models = {
            "forest": RandomForestClassifier(20, random_state=seed),
            "deltas": make_pipeline(DeltaFeatures(random_state=seed), LogisticRegression()),
        }
        for name, model in models.items():
            p = model.fit(X[split.train], y[split.train]).predict_proba(X)[:, 1]
            found[name].append([average_precision_score(y[rows], p[rows]) for rows in (np.arange(len(y)), split.test)])
    return {name: tuple(np.mean(areas, axis=0)) for name, areas in found.items()}


def test_on_all_rows_a_forest_finds_classes_that_were_drawn_by_lot():
    """Nothing can be known of such classes, so that PR-AUC is the prevalence; on rows it was fitted on it is not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 6)), (rng.random(3000) < 0.1).astype(int)
    areas = areas_on_all_and_test_rows(X, y, range(3))
    assert areas["forest"][0] > 4 * y.mean()
    for on_rows in (areas["forest"][1], *areas["deltas"]):
        assert on_rows == pytest.approx(y.mean(), abs=0.03)


def test_scoring_training_rows_flatters_a_forest_and_hardly_two_deltas():
    data = load_creditcard_sample()
    areas = areas_on_all_and_test_rows(data.X, data.y, range(1))
    flattery = {name: on_all - held_out for name, (on_all, held_out) in areas.items()}
    assert flattery["forest"] > 0.03
    assert flattery["forest"] > 3 * flattery["deltas"]


# 19: curves need only a ranking


@pytest.mark.parametrize(("load", "least"), [(load_heart, 0.85), (load_breast_cancer, 0.93)])
def test_the_margin_ranks_records(load, least):
    data = load()
    split = paper_split(data.y, 0)
    model = NearestMedoidClassifier(max_passes=0, random_state=0).fit(data.X[split.fit], data.y[split.fit])
    margin = model.decision_function(data.X[split.test])
    assert roc_auc_score(data.y[split.test], margin) > least
    np.testing.assert_array_equal(model.predict(data.X[split.test]), (margin > 0).astype(int))


# 20: a decision decomposes


def test_a_margin_on_the_heart_data_is_a_sum_over_anchors_and_an_angle():
    data = load_heart()
    split = paper_split(data.y, 0)
    fitted = NearestMedoidClassifier(max_passes=0, score_weight=None, random_state=0).fit(
        data.X[split.fit], data.y[split.fit]
    )
    X, model = data.X[split.test], fitted.model_.parts[0]
    distance, angle = fitted.channels(X)
    to_medoid = [(model.features(X) - medoid) ** 2 for medoid in model.medoids]
    terms = (to_medoid[0] - to_medoid[1]) / distance.sum(axis=1, keepdims=True) ** 2
    turned = (angle[:, 0] - angle[:, 1]) / angle.sum(axis=1)
    margin = model.alpha * terms.sum(axis=1) + (1 - model.alpha) * turned
    np.testing.assert_allclose(margin, fitted.decision_function(X), atol=1e-9)
