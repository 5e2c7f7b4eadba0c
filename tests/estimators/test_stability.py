"""Stability: every figure recounted the plain way, laws of samples and seeds, and every kind of classifier."""

import json
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from planted import Fixed, Planted, planted_rows
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR

from qmedoid import MedoidClassifier, NearestMedoidClassifier, VariationalClassifier
from qmedoid.estimators.stability import NO_GROUPS, NO_MEDOIDS, NO_VOTES, stability
from qmedoid.exceptions import DataError, InterruptedWarning, ParameterError, warn

X, Y = planted_rows()
WINE = load_wine()
QUICK = {"max_passes": 0, "subset_sizes": (2, 2), "cv": 2}


@pytest.fixture(autouse=True)
def _no_fits_before():
    Planted.fits.clear()
    Fixed.fits.clear()


def check(report):
    """A report that can be written as JSON, with its sizes."""
    assert json.loads(json.dumps(report.as_dict(), allow_nan=False))["bootstraps"] == report.n_bootstraps
    return report


# --- the figures --------------------------------------------------------------------------------------------------


def test_figures_are_those_of_a_plain_recount():
    report = check(stability(Planted(), X, Y, n_bootstraps=7, random_state=3))
    full, *refits = Planted.fits
    assert len(refits) == 7
    decided = full.predict(X)
    votes = [[fit.predict(X[row : row + 1])[0] for fit in refits if row not in fit.rows] for row in range(len(X))]
    rates = [np.mean(np.array(own) != decided[row]) if own else np.nan for row, own in enumerate(votes)]
    np.testing.assert_allclose(report.flip_rates, rates)
    assert report.decisions["rows_without_votes"] == sum(not own for own in votes)

    unseen = [np.setdiff1d(np.arange(len(X)), fit.rows) for fit in refits]
    by_refit = [np.mean(fit.predict(X[rows]) != decided[rows]) for fit, rows in zip(refits, unseen, strict=True)]
    assert report.decisions["flip_rate"] == pytest.approx(np.mean(by_refit))
    assert report.decisions["flip_error"] == pytest.approx(np.std(by_refit, ddof=1) / np.sqrt(7))
    assert 0 < report.decisions["flip_rate"] < 0.5


def test_medoids_are_compared_where_the_sample_has_them():
    report = stability(Planted(n_medoids=2), X, Y, n_bootstraps=9, random_state=1).medoids
    full, *refits = Planted.fits
    again = [
        row in fit.rows[fit.part.rows.numbers] for fit in refits for row in full.part.rows.numbers if row in fit.rows
    ]
    assert 0 < np.mean(again) < 1
    assert report == {"medoids": 4, "kept": pytest.approx(np.mean(again))}


def test_groups_are_counted_exactly_and_by_their_best_match():
    groups = stability(Planted(), X, Y, n_bootstraps=8, random_state=2).groups
    full, *refits = Planted.fits
    same = np.mean([fit.part.facts["groups"][0][1] == full.part.facts["groups"][0][1] for fit in refits])
    assert 0 < same < 1
    # A single column, and all of them, are no groups.
    assert groups == {"groups": 1, "kept": pytest.approx(same), "agreement": pytest.approx(same + (1 - same) / 3)}


def test_what_does_not_depend_on_the_rows_is_stable():
    report = stability(Fixed(), X, Y, n_bootstraps=5, random_state=0)
    assert report.decisions["flip_rate"] == 0
    assert report.decisions["flip_error"] == 0
    assert report.decisions["never_flipped"] == 1
    assert report.groups == {"groups": 1, "kept": 1, "agreement": 1}


# --- samples, seeds and errors --------------------------------------------------------------------------------------


def test_every_class_keeps_its_rows():
    labels = np.array(["rare", "rare", "one"] + ["many"] * 57)
    stability(Fixed(), X, labels, n_bootstraps=4, random_state=0)
    assert len(Fixed.fits) == 5
    for fit in Fixed.fits[1:]:
        counts = {label: int((labels[fit.rows] == label).sum()) for label in fit.classes_}
        assert counts == {"many": 57, "one": 1, "rare": 2}
        assert len(set(fit.rows)) < len(fit.rows)


def test_samples_have_all_rows_of_a_group_or_none():
    labels, groups = np.repeat(["a", "b", "b"], 20), np.arange(60) // 3
    stability(Fixed(), X, labels, groups=groups, n_bootstraps=3, random_state=0)
    for fit in Fixed.fits[1:]:
        times = np.bincount(fit.rows, minlength=60).reshape(20, 3)
        assert (times == times[:, :1]).all()
        assert len(fit.rows) == 60


def test_same_seed_gives_the_same_report_and_more_refits_begin_with_the_same():
    reports = [stability(Planted(), X, Y, n_bootstraps=n, random_state=5).as_dict() for n in (4, 4, 6)]
    assert reports[0] == reports[1] != reports[2]
    fits = Planted.fits
    for before, after in zip(fits[:5], fits[10:15], strict=True):
        np.testing.assert_array_equal(before.rows, after.rows)
    assert stability(Planted(), X, Y, n_bootstraps=4, random_state=6).as_dict() != reports[0]


def test_seed_of_the_classifier_is_kept_and_others_are_drawn():
    stability(Planted(random_state=7), X, Y, n_bootstraps=2, random_state=0)
    stability(Planted(), X, Y, n_bootstraps=2, random_state=0)
    seeds = [fit.random_state for fit in Planted.fits]
    assert seeds[:3] == [7, 7, 7]
    assert len({*seeds[3:], None}) == 4


def test_progress_is_told_and_the_classifier_is_left_alone():
    told, given = [], Planted()
    stability(given, X, Y, n_bootstraps=3, random_state=0, progress=lambda *step: told.append(step))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert not hasattr(given, "classes_")


def test_refit_that_fails_says_which():
    with pytest.raises(DataError, match=r"^Refit 2 of 3 failed: the rows are not to my taste$"):
        stability(Planted(fails_at=2), X, Y, n_bootstraps=3, random_state=0)
    Planted.fits.clear()
    with pytest.raises(ValueError, match=r"^the rows are not to my taste$"):
        stability(Planted(fails_at=0), X, Y, n_bootstraps=3, random_state=0)


def test_interrupt_ends_all_refits_and_not_the_search_of_one():
    class Interrupted(Planted):
        def fit(self, X, y):
            if len(self.fits) == 2:
                warn("Whatever the words.", InterruptedWarning)
            return super().fit(X, y)

    with pytest.raises(KeyboardInterrupt):
        stability(Interrupted(), X, Y, n_bootstraps=5, random_state=0)
    assert len(Interrupted.fits) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_bootstraps": 1}, "'n_bootstraps' parameter of stability must be an int >= 2. Got 1"),
        ({"estimator": LinearSVR()}, r"that of a classifier, such as MedoidClassifier\(\). Got LinearSVR"),
        ({"estimator": Planted}, "that of a classifier"),
        ({"y": Y[:-1]}, "X has 60 rows and y has 59"),
        ({"y": np.zeros(60)}, "one class only"),
    ],
)
def test_wrong_calls_are_refused(arguments, message):
    with pytest.raises((ParameterError, DataError), match=message):
        stability(**({"estimator": Planted(), "X": X, "y": Y} | arguments))


# --- every kind of classifier ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classifier", "n_medoids"),
    [
        (NearestMedoidClassifier(**QUICK), 3),
        (MedoidClassifier(method="nearest", refine="never", random_state=0), 3),
        (MedoidClassifier(method="evidence", random_state=0), None),
    ],
    ids=["nearest alone", "nearest", "evidence"],
)
def test_our_classifiers_have_groups_and_medoids(classifier, n_medoids):
    frame = pd.DataFrame(WINE.data[:, :6], columns=WINE.feature_names[:6])
    report = check(stability(classifier, frame, WINE.target, n_bootstraps=3, random_state=0))
    assert report.groups is None or 0 < report.groups["agreement"] <= 1
    assert n_medoids is None or report.medoids["medoids"] == n_medoids
    assert 0 <= report.medoids["kept"] <= 1
    assert report.decisions["flip_rate"] < 0.2
    assert set(report.notes) <= {NO_GROUPS}


def test_of_a_circuit_alone_decisions_are_told():
    circuit = VariationalClassifier(n_qubits=2, n_reps=1, n_steps=5, n_seeds=1, random_state=0)
    report = check(stability(circuit, X[:, 1:3], Y, n_bootstraps=2, random_state=0))
    assert report.groups is report.medoids is None
    assert report.notes == (NO_GROUPS, NO_MEDOIDS)


def test_of_other_classifiers_decisions_are_told():
    report = check(stability(make_pipeline(StandardScaler(), LogisticRegression()), X, Y, n_bootstraps=3))
    assert report.notes == (NO_GROUPS, NO_MEDOIDS)


def test_what_cannot_be_said_is_said():
    class Mute(Planted):
        def predict(self, X):
            return np.full(len(X), self.classes_[0])

    lonely = check(stability(Mute(), X[:2], Y[:2], n_bootstraps=2, random_state=0))
    assert NO_VOTES in lonely.notes
    assert lonely.decisions["flip_rate"] is None


def raw_table(n=120):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return (
        pa.table(
            {
                "number": [f"{k:04d}" for k in range(n)],
                "x": rng.normal(size=n) + y,
                "color": np.array(["red", "green", "blue"])[np.where(rng.random(n) < 0.6, y, rng.integers(0, 3, n))],
                "seldom": ["once" if k == 7 else "often" if k % 2 else "else" for k in range(n)],
            }
        ),
        np.array(["a", "b", "c"])[y],
    )


class Recorded(MedoidClassifier):
    """Remembers its fits."""

    fits: ClassVar[list] = []

    def fit(self, X, y=None):
        Recorded.fits.append(super().fit(X, y))
        return self


@pytest.mark.parametrize("positive", [None, "c"])
def test_raw_tables_are_fitted_with_their_encodings(positive):
    table, labels = raw_table()
    Recorded.fits.clear()
    classifier = Recorded(method=NearestMedoidClassifier(**QUICK), positive=positive, random_state=0)
    report = check(stability(classifier, table, labels, n_bootstraps=4, random_state=0))
    assert report.classes == (("a", "b", "c") if positive is None else ("c", "not c"))
    # A level that a sample lacks has no column there, and all columns behind it have other numbers.
    found = [
        {
            frozenset(fitted.model_.layout.names[column] for column in group)
            for group in fitted.estimator_.configuration_
            if 1 < len(group) < len(fitted.model_.layout.names)
        }
        for fitted in Recorded.fits
    ]
    assert len({len(fitted.model_.layout.names) for fitted in Recorded.fits}) > 1
    # The row number is unique in the table and not in a sample: it is left out all the same.
    assert not any(name.startswith("number") for fitted in Recorded.fits for name in fitted.model_.layout.names)
    assert report.groups["groups"] == len(found[0])
    assert report.groups["kept"] == pytest.approx(np.mean([group in own for group in found[0] for own in found[1:]]))
