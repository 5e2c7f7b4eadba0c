"""NearestMedoidClassifier as users meet it: tables of every make, labels, weights, callbacks, and what a fit leaves."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.model_selection import StratifiedShuffleSplit

from qmedoid import NearestMedoidClassifier
from qmedoid.exceptions import QMedoidWarning

WINE = load_wine()
NAMES = list(WINE.feature_names)[:5]
X3, Y3 = WINE.data[:, :5], WINE.target
X2, Y2 = make_classification(160, 6, n_informative=4, n_redundant=2, flip_y=0.1, class_sep=0.8, random_state=3)


def quick(**changes):
    """A classifier that searches little."""
    return NearestMedoidClassifier(**({"max_passes": 1, "subset_sizes": (2, 3), "cv": 2, "random_state": 0} | changes))


def rare(n=400, seed=0):
    """Two overlapping classes, the second with a share of one in ten."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 10 == 0).astype(int)
    return rng.normal(size=(n, 4)) + 1.2 * y[:, None], y


def same_model(a, b):
    a, b = a.parts[0], b.parts[0]
    assert a.configuration == b.configuration
    assert a.alpha == b.alpha
    for name in ("medoids", "medoid_classes", "medoid_rows", "multipliers"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("input_scaling", "feature_scaling"):
        np.testing.assert_array_equal(getattr(a, name).center, getattr(b, name).center)
        np.testing.assert_array_equal(getattr(a, name).scale, getattr(b, name).scale)


# --- tables and labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["pandas", "polars", "pyarrow"])
def test_every_make_of_table_gives_the_same_model_and_its_names(make):
    frame = {
        "pandas": pd.DataFrame(X3, columns=NAMES),
        "polars": pl.DataFrame(X3, schema=NAMES),
        "pyarrow": pa.table({name: X3[:, i] for i, name in enumerate(NAMES)}),
    }[make]
    labels = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.array}[make](Y3)
    from_array, from_frame = quick().fit(X3, Y3), quick().fit(frame, labels)
    same_model(from_array.model_, from_frame.model_)
    np.testing.assert_array_equal(from_frame.predict(frame), from_array.predict(X3))
    assert list(from_frame.feature_names_in_) == NAMES
    with pytest.raises(ValueError, match=r"(?s)unseen at fit time:\n- ash2\n.*yet now missing:\n- ash"):
        from_frame.predict(pd.DataFrame(X3, columns=["ash2" if name == "ash" else name for name in NAMES]))


# --- what a fit leaves behind -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_medoids", [1, 3])
@pytest.mark.parametrize("refit", [True, False])
def test_medoids_are_rows_of_the_table_with_their_own_class(n_medoids, refit):
    split = StratifiedShuffleSplit(1, test_size=0.3, random_state=1)
    fitted = quick(n_medoids=n_medoids, cv=split, refit=refit).fit(X3, Y3)
    np.testing.assert_array_equal(fitted.medoids_, X3[fitted.medoid_indices_])
    np.testing.assert_array_equal(fitted.medoid_classes_, Y3[fitted.medoid_indices_])
    assert np.bincount(fitted.medoid_classes_).tolist() == [n_medoids] * 3
    assert len(set(fitted.medoid_indices_)) == 3 * n_medoids
    if not refit:
        train, _ = next(split.split(X3, Y3))
        assert set(fitted.medoid_indices_) <= set(train)


def test_medoid_is_at_distance_zero_from_itself_and_decides_for_its_class():
    fitted = quick(score_weight=None).fit(X3, Y3)
    distance, angle = fitted.channels(fitted.medoids_)
    np.testing.assert_allclose(np.diag(distance), 0, atol=1e-7)
    np.testing.assert_allclose(np.diag(angle), 0, atol=1e-7)
    np.testing.assert_array_equal(fitted.predict(fitted.medoids_), fitted.medoid_classes_)


def test_models_are_the_best_over_k_best_first():
    fitted = quick(subset_sizes=(1, 4), n_models=3).fit(X2, Y2)
    records = fitted.search_records_
    assert [record.size for record in records] == [1, 2, 3, 4]
    ranked = sorted(records, key=lambda record: (-record.score, record.size))
    assert [part.configuration for part, _ in fitted.candidates_] == [record.configuration for record in ranked[:3]]
    assert fitted.model_.parts[0].configuration == fitted.candidates_[0][0].configuration
    assert fitted.configuration_ == ranked[0].configuration
    assert len(quick(n_models=10).fit(X2, Y2).candidates_) == 2  # one for each k, and there are two


def test_search_never_ends_below_its_start():
    fitted = quick(max_passes=2).fit(X2, Y2)
    for record in fitted.search_records_:
        start = next(step for step in fitted.search_trace_ if step.size == record.size)
        assert start.anchor is None
        assert record.score >= start.score
        assert record.score == max(step.score for step in fitted.search_trace_ if step.size == record.size)
    assert fitted.alpha_ == fitted.alpha_sweep_.value
    assert fitted.alpha_sweep_.score == fitted.alpha_sweep_.scores.max()


def test_given_alpha_is_used_and_without_the_angle_it_is_one():
    assert quick(alpha=0.35).fit(X2, Y2).alpha_ == 0.35
    flat = quick(alpha=0.35, use_angular=False).fit(X2, Y2)
    assert flat.alpha_ == 1.0
    distance, _ = flat.channels(X2)
    expected = (distance * flat.class_multipliers_).argmin(axis=1)
    np.testing.assert_array_equal(flat.predict(X2), flat.classes_[expected])


def test_subset_sizes_and_groups_are_as_asked():
    fitted = quick(group_size=4, n_anchors=3, subset_sizes=(3, 3)).fit(X2, Y2)
    assert [len(members) for members in fitted.groups_.members] == [4] * 3
    assert [len(subset) for subset in fitted.configuration_] == [3] * 3
    for subset, members in zip(fitted.configuration_, fitted.groups_.members, strict=True):
        assert set(subset) <= set(members)
    assert fitted.configuration_[0][0] == fitted.groups_.anchors[0]
    default = NearestMedoidClassifier(max_passes=0, cv=2).fit(X2, Y2)
    assert [record.size for record in default.search_records_] == [2, 3, 4, 5]


# --- randomness and order ---------------------------------------------------------------------------------------


def test_order_of_rows_and_columns_and_their_units_do_not_matter():
    train, val = np.arange(0, 160, 2), np.arange(1, 160, 2)

    def fit(X, rows):
        return quick().fit(X[rows], Y2[rows], X_val=X[val], y_val=Y2[val])

    plain = fit(X2, train)
    order = np.random.default_rng(0).permutation(train)
    shuffled = fit(X2, order)
    np.testing.assert_allclose(np.sort(shuffled.medoids_, axis=0), np.sort(plain.medoids_, axis=0))
    columns = [4, 2, 0, 5, 1, 3]
    moved = fit(X2[:, columns], train)
    units = X2 * [1, 1000, 0.5, 3, 1e-6, 7] + [0, 5, -3, 0, 1, 100]
    scaled = fit(units, train)
    for other, table in ((shuffled, X2), (moved, X2[:, columns]), (scaled, units)):
        np.testing.assert_array_equal(other.predict(table), plain.predict(X2))
        np.testing.assert_allclose(other.decision_function(table), plain.decision_function(X2), atol=1e-8)


# --- validation rows and presets --------------------------------------------------------------------------------


def test_validation_rows_choose_and_training_rows_are_fitted():
    train, val = np.arange(0, 100), np.arange(100, 160)
    fitted = quick(cv=2).fit(X2[train], Y2[train], X_val=X2[val], y_val=Y2[val])
    assert set(fitted.medoid_indices_) <= set(range(100))
    np.testing.assert_allclose(fitted.model_.parts[0].input_scaling.center, X2[train].mean(axis=0))
    # The score of the sweep is the macro-F1 of the model itself on the validation rows.
    from sklearn.metrics import f1_score

    assert fitted.alpha_sweep_.score == pytest.approx(f1_score(Y2[val], fitted.predict(X2[val]), average="macro"))


def test_validation_rows_may_miss_a_class():
    some = Y3 < 2
    fitted = quick().fit(X3, Y3, X_val=X3[some], y_val=Y3[some])
    assert set(fitted.predict(X3)) == {0, 1, 2}


def test_paper_preset_is_what_is_printed():
    parameters = NearestMedoidClassifier.paper().get_params()
    cv = parameters.pop("cv")
    assert isinstance(cv, StratifiedShuffleSplit)
    assert (cv.get_n_splits(), cv.test_size) == (1, 0.25)
    changed = {
        name: value for name, value in parameters.items() if value != NearestMedoidClassifier().get_params()[name]
    }  # fmt: skip
    assert changed == {
        "kind": "weighted",
        "input_scaling": "none",
        "n_anchors": None,
        "angle": "printed",
        "search_alpha": 0.9,
        "score_weight": "printed",
        "anchor_order": "codes",
        "refit": False,
    }
    assert NearestMedoidClassifier.paper(kind="signed", random_state=3).get_params()["kind"] == "signed"
    assert NearestMedoidClassifier.paper(random_state=3).angle == "printed"


def test_paper_preset_fits():
    fitted = NearestMedoidClassifier.paper(max_passes=1, subset_sizes=(2, 2), random_state=0).fit(X3, Y3)
    np.testing.assert_array_equal(fitted.model_.parts[0].input_scaling.scale, 1)
    assert fitted.model_.parts[0].angle == "printed"
    priors = np.bincount(Y3) / len(Y3)
    np.testing.assert_allclose(fitted.class_multipliers_, 1 / np.sqrt(priors), rtol=0.02)
    assert fitted.score(X3, Y3) > 0.6


# --- class weights ----------------------------------------------------------------------------------------------


def count_of_rare(score_weight):
    """Predictions of the rare class where nothing but the weights differs."""
    X, y = rare()
    fitted = quick(score_weight=score_weight, alpha=0.5, max_passes=0, subset_sizes=(2, 2)).fit(X, y)
    return int((fitted.predict(X) == 1).sum())


def test_larger_weight_makes_a_class_win_more_often():
    counts = [count_of_rare({0: 1.0, 1: weight}) for weight in (0.5, 1.0, 2.0, 5.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[1] < counts[2]
    assert counts[1] == count_of_rare(None) == count_of_rare({})
    assert count_of_rare({0: 4.0, 1: 2.0}) == count_of_rare({0: 2.0})  # only the ratio counts


def test_printed_weights_hold_the_rare_class_back_and_the_others_help_it():
    """Fact 4."""
    plain = count_of_rare(None)
    assert count_of_rare("printed") < plain < count_of_rare("balanced")
    assert plain <= count_of_rare("auto") <= count_of_rare("balanced")


def test_multipliers_are_those_of_the_priors():
    X, y = rare()
    fitted = quick(score_weight="balanced", max_passes=0).fit(X, y)
    np.testing.assert_allclose(fitted.class_multipliers_, [1, 1 / 9])
    np.testing.assert_allclose(
        quick(score_weight="printed", max_passes=0).fit(X, y).class_multipliers_, [0.9**-0.5, 0.1**-0.5]
    )
    assert quick(score_weight={0: 4}, max_passes=0).fit(X, y).class_multipliers_.tolist() == [0.25, 1]
    auto = quick(score_weight="auto", max_passes=0).fit(X, y).class_multipliers_
    assert any(np.allclose(auto, [1, (1 / 9) ** exponent]) for exponent in (0, 0.25, 0.5))


# --- company ----------------------------------------------------------------------------------------------------


class Watch:
    """A callback that writes down what it is told and may ask to stop."""

    def __init__(self, stop_at=None):
        self.stop_at, self.events, self.tasks = stop_at, [], []

    def setup(self, estimator, context):
        self.events.append(("setup", type(estimator).__name__, context.max_subtasks))

    def teardown(self, estimator, context):  # noqa: ARG002
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):  # noqa: ARG002
        self.events.append("begin")

    def on_fit_task_end(self, estimator, context):  # noqa: ARG002
        self.events.append("end")
        self.tasks.append(context.task_name)
        return len(self.tasks) == self.stop_at


def test_callbacks_are_told_of_every_visit_of_an_anchor():
    watch = Watch()
    fitted = quick().set_callbacks(watch).fit(X2, Y2)
    same_model(fitted.model_, quick().fit(X2, Y2).model_)
    anchors = len(fitted.groups_.anchors)
    assert watch.events[0] == ("setup", "NearestMedoidClassifier", 2 * anchors)
    assert watch.events[-1] == "teardown"
    assert watch.events.count("begin") == watch.events.count("end") == 2 * anchors + 1
    assert watch.tasks == ["k=2, pass 1"] * anchors + ["k=3, pass 1"] * anchors + ["fit"]


@pytest.mark.parametrize("stop_at", [1, 3, 8])
def test_callback_may_stop_the_search_and_keep_the_best_so_far(stop_at):
    watch = Watch(stop_at)
    with pytest.warns(QMedoidWarning, match=r"interrupted after \d+ evaluations; the best so far is used"):
        fitted = quick().set_callbacks(watch).fit(X2, Y2)
    full = quick().fit(X2, Y2)
    assert len(watch.tasks) == stop_at + 1  # the visits, and the fit itself
    assert watch.events[-1] == "teardown"
    assert fitted.search_trace_ == full.search_trace_[: len(fitted.search_trace_)]
    assert len(fitted.search_trace_) < len(full.search_trace_)
    assert fitted.score(X2, Y2) > 0.5


def test_keyboard_interrupt_in_the_search_leaves_a_fitted_classifier():
    class Interrupt(Watch):
        def on_fit_task_end(self, estimator, context):
            super().on_fit_task_end(estimator, context)
            if len(self.tasks) == 4:
                raise KeyboardInterrupt

    with pytest.warns(QMedoidWarning, match="interrupted"):
        fitted = quick().set_callbacks(Interrupt()).fit(X2, Y2)
    assert fitted.predict(X2).shape == (160,)


def test_plain_fit_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit(X2, Y2).predict(X2)
        quick().fit(pd.DataFrame(X3, columns=NAMES), Y3).predict(pd.DataFrame(X3, columns=NAMES))
