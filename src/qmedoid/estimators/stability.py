"""Stability of a fit under resampling: refits on bootstrap samples, compared with the fit of all rows."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.documents import DecisionStabilityDict, MedoidStabilityDict
from qmedoid.estimators.folds import sampled_rows
from qmedoid.estimators.inputs import check_table, class_codes
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.parameters import SEED, Constraint, check_parameters, choice, whole
from qmedoid.estimators.raw_tables import dataset_of, group_codes
from qmedoid.estimators.stability_report import (
    NO_GROUPS,
    NO_MARGINS,
    NO_MEDOIDS,
    NO_SPREAD,
    NO_VOTES,
    StabilityReport,
    decision_stability,
    group_stability,
    number,
)
from qmedoid.exceptions import DataError, InterruptedWarning, ParameterError, QMedoidWarning
from qmedoid.geometry.row_groups import row_groups
from qmedoid.methods.part import Part
from qmedoid.metrics.agreement import typical_distance
from qmedoid.tables.dataset import Dataset
from qmedoid.tables.targets import meant_labels


class Subject:
    """A classifier and a table: its fits to all rows and to samples, and the groups and medoids of each fit.

    Attributes
    ----------
    strata : ndarray of shape (n,)
        Codes of the labels, within which samples are drawn.
    columns : list of str
        Names of the columns that groups are made of, of all fits so far: each fit of a `MedoidClassifier` has its own
        encoding.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, groups: Any = None) -> None:
        if not isinstance(estimator, BaseEstimator) or estimator.__sklearn_tags__().estimator_type != "classifier":
            raise ParameterError(
                f"Stability is that of a classifier, such as MedoidClassifier(). Got {estimator!r} instead."
            )
        self._estimator = clone(estimator)
        self._data: Dataset | None = None
        shell = BaseEstimator()  # takes the names of the columns; a pipeline would not
        self.columns = list[str]()
        if isinstance(estimator, MedoidClassifier):
            self._data = dataset_of(self._estimator, X, y, groups)
            target, self._groups = self._data.target, self._data.groups
            self.strata, self.labels, self.rows = target.codes, target.classes[target.codes], self._data.rows
            self._data = replace(self._data, rows=np.arange(len(self.rows)), n_source=len(self.rows))
            self._table: Any = self._data.table
        else:
            self._table = check_table(shell, X, reset=True)
            classes, self.strata = class_codes(y, len(self._table))
            self.labels, self.rows = classes[self.strata], np.arange(len(self._table))
            self._groups = group_codes(groups, len(self._table))
            self.columns = [str(one) for one in getattr(shell, "feature_names_in_", range(self._table.shape[1]))]
        self.n_rows = len(self._table)
        self._takes_groups = self._groups is not None and "groups" in signature(cast("Any", estimator).fit).parameters

    def fit(self, rows: Codes | None, seed: int) -> Any:
        """A clone fitted on some rows, or on all; the seed is used where the classifier has none."""
        fresh = clone(self._estimator)
        if fresh.get_params(deep=False).get("random_state", 0) is None:
            fresh.set_params(random_state=seed)
        if self._data is not None:
            fitted = fresh.fit(self._data if rows is None else self._data.take(rows))
            if rows is None:
                # A sample may not choose another class of interest where two are about as frequent.
                self._estimator.set_params(positive=fitted.positive_)
            return fitted
        rows = np.arange(self.n_rows) if rows is None else rows
        groups = {"groups": self._groups[rows]} if self._takes_groups and self._groups is not None else {}
        return fresh.fit(self.part(rows), self.labels[rows], **groups)

    def together(self) -> Codes | None:
        """Groups of the rows: those that were given, or rows that are equal in all columns that are learned from."""
        if self._groups is not None:
            return self._groups
        return row_groups(self._table, self.strata) if self._data is None else self._data.together()

    def refit(self, rows: Codes, seed: int, name: str) -> Any:
        """A clone fitted on a sample; an error says which, and an interrupt is not taken for the end of a search."""
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always", QMedoidWarning)
            try:
                fitted = self.fit(rows, seed)
            except ValueError as error:
                raise DataError(f"{name} failed: {error}") from error
            except Exception as error:
                error.add_note(f"{name} failed.")
                raise
        if any(issubclass(one.category, InterruptedWarning) for one in given):
            raise KeyboardInterrupt
        return fitted

    def part(self, rows: Codes) -> Any:
        """Some rows of the table."""
        return self._table[rows] if self._data is None else self._table.take(pa.array(rows))

    def medoid_rows(self, part: Part, sample: Codes | None = None) -> Codes:
        """The rows of the table that are medoids of a fit to a sample."""
        numbers = part.rows.numbers if sample is None or self._data is not None else sample[part.rows.numbers]
        return np.unique(numbers)

    def classes_of_rows(self, full: Any) -> Codes:
        """Code, in `classes_` of the fit of all rows, of the class that every label stands for."""
        is_plain = self._data is None or full.positive is None
        return codes_of(full, self.labels if is_plain else meant_labels(self.labels, full.classes_))

    def numbers(self, full: Any) -> Array:
        """The rows as numbers, standardized; columns that are the same everywhere are left out."""
        matrix = self._table if self._data is None else full._encoded(self._table)
        deviation = matrix.std(axis=0)
        varied = deviation > 0
        numbers: Array = (matrix[:, varied] - matrix[:, varied].mean(axis=0)) / deviation[varied]
        return numbers

    def groups(self, fitted: Any) -> frozenset[frozenset[int]] | None:
        """The groups of more than one and not all columns that a fit has found; None where it knows no groups."""
        part = part_of_medoids(fitted)
        if part is None:
            return None
        places = list(range(len(self.columns)))
        if self._data is not None:
            self.columns = list(dict.fromkeys([*self.columns, *fitted.encoded_names_]))
            places = [self.columns.index(name) for name in fitted.encoded_names_]
        several = (set(group) for group in part.facts["groups"] if 1 < len(set(group)) < len(places))
        return frozenset(frozenset(places[column] for column in group) for group in several)


def part_of_medoids(fitted: Any) -> Part | None:
    """The part of a fitted classifier that has medoids; None where it has none."""
    found: Part | None = getattr(getattr(fitted, "model_", None), "medoid_part", None)
    return found


def codes_of(fitted: Any, labels: npt.NDArray[Any]) -> Codes:
    """Place of labels among the classes of a fit."""
    return np.searchsorted(fitted.classes_, labels).astype(np.intp)


def margins_of(fitted: Any, X: Any) -> Array | None:
    """How far the decision about each row is from another one, shape (n,); None where a classifier does not say."""
    name = next((name for name in ("decision_function", "predict_proba") if hasattr(fitted, name)), None)
    if name is None:
        return None
    values = np.asarray(getattr(fitted, name)(X), dtype=np.float64)
    return np.abs(values) if values.ndim == 1 else np.diff(np.sort(values, axis=1)[:, -2:])[:, 0]


LISTED_MEDOIDS = 256
"""Maximum number of medoids that are looked at, drawn at random."""
_CONSTRAINTS: Mapping[str, Constraint] = {
    "n_bootstraps": whole(2),
    "sampling": choice(("bootstrap", "half")),
    "random_state": SEED,
}
# Rows of a class to which distances are taken where only their distribution counts.
_SAMPLED_ROWS = 2000


def stability(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    n_bootstraps: int = 20,
    sampling: str = "bootstrap",
    random_state: Any = None,
    progress: Callable[[int, int], object] | None = None,
) -> StabilityReport:
    """Fit a classifier on all rows and again on samples of them, and compare them.

    Samples are drawn within each class, so that every class stays. Decisions are compared on rows that a refit did not
    have. Warnings of refits are not repeated.

    Parameters
    ----------
    estimator : classifier
        `MedoidClassifier`, `NearestMedoidClassifier`, or any other classifier of scikit-learn, of which decisions
        alone are reported. It is left as it is. Its own `random_state`, where it has one, is that of all
        fits, so that only the rows differ; where it is None, every fit has another seed.
    X : array-like or data frame of shape (n, M)
        For a `MedoidClassifier` also a `qmedoid.tables.dataset.Dataset`, which has y and groups.
    y : array-like of shape (n,)
    groups : array-like of shape (n,), optional
        Rows with the same label belong together: a sample has all of them or none. None takes equal rows as groups.
    n_bootstraps : int, default=20
        Number of refits, at least 2. The first refits are the same for any number.
    sampling : {"bootstrap", "half"}, default="bootstrap"
        As many rows as there are, drawn with replacement, or half of them without. Halves vary as much from one to the
        next, and no row is in them twice: a classifier that judges its settings by rows held out of its sample finds
        no copies of these among the others.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    progress : callable or None, default=None
        Called as ``progress(done, total)`` after every fit.

    Returns
    -------
    StabilityReport
        `print` it, or look at its `groups`, `medoids` and `decisions`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> from qmedoid import EvidenceClassifier, stability
    >>> report = stability(EvidenceClassifier(random_state=0), X, y, n_bootstraps=2, random_state=0)
    >>> report.medoids is not None
    True
    """
    given = {"n_bootstraps": n_bootstraps, "sampling": sampling, "random_state": random_state}
    check_parameters("stability", given, _CONSTRAINTS)
    subject = Subject(estimator, X, y, groups)
    entropy = [int(value) for value in check_random_state(random_state).randint(2**31, size=4)]
    rng = np.random.default_rng(entropy)
    everything = np.arange(subject.n_rows)
    full = subject.fit(None, int(rng.integers(2**31)))
    together = subject.together()
    found, medoids, decisions = [subject.groups(full)], _Medoids(subject, full, rng), _Decisions(subject, full)
    for place in range(1, n_bootstraps + 1):
        if progress is not None:
            progress(place, n_bootstraps + 1)
        own = np.random.default_rng([*entropy, place])
        sample = sampled_rows(subject.strata, own, with_replacement=sampling == "bootstrap", groups=together)
        fitted = subject.refit(sample, int(own.integers(2**31)), f"Refit {place} of {n_bootstraps}")
        found.append(subject.groups(fitted))
        medoids.add(fitted, sample)
        decisions.add(fitted, np.setdiff1d(everything, sample))
    if progress is not None:
        progress(n_bootstraps + 1, n_bootstraps + 1)
    groups, moved = group_stability(found, subject.columns), medoids.result()
    decided, rates = decisions.result()
    missing = {
        NO_GROUPS: groups is None,
        NO_MEDOIDS: moved is None,
        NO_MARGINS: decided["by_margin"] is None,
        NO_SPREAD: not hasattr(full, "predict_proba"),
        NO_VOTES: decided["rows_without_votes"] == subject.n_rows,
    }
    notes = tuple(sentence for sentence, is_missing in missing.items() if is_missing)
    classes = tuple(full.classes_.tolist())
    return StabilityReport(subject.n_rows, int(n_bootstraps), classes, decided, groups, moved, rates, notes)


class _Medoids:
    """Whether the medoids of the fit of all rows are chosen again, and how near to them others are where not."""

    def __init__(self, subject: Subject, full: Any, rng: np.random.Generator) -> None:
        method = part_of_medoids(full)
        self._known, self._subject = method is not None, subject
        if method is None:
            return
        self._labels, self._classes = full.classes_, subject.classes_of_rows(full)
        self._numbers = subject.numbers(full)
        every = subject.medoid_rows(method)
        self._n_medoids = len(every)
        per_class = np.bincount(self._classes[every], minlength=len(full.classes_))
        if len(every) > LISTED_MEDOIDS:
            every = np.sort(rng.choice(every, size=LISTED_MEDOIDS, replace=False))
        self._rows = every
        self._present, self._kept = np.zeros((2, len(every)), dtype=np.int64)
        self._moved = np.zeros(len(every))
        self._typical, self._by_chance = np.zeros(len(full.classes_)), np.zeros(len(every))
        for code in np.unique(self._classes[every]):
            rows = np.flatnonzero(self._classes == code)
            if len(rows) > _SAMPLED_ROWS:
                rows = rng.choice(rows, size=_SAMPLED_ROWS, replace=False)
            self._typical[code] = typical_distance(self._numbers[rows], rng)
            for place in np.flatnonzero(self._classes[every] == code):
                # The nearest of some rows drawn at random, in the middle of its distribution: a quantile.
                others = self._numbers[rows[rows != every[place]]]
                distances = np.sqrt(((others - self._numbers[every[place]]) ** 2).sum(axis=1))
                if len(others):
                    nearest = float(np.quantile(distances, 1.0 / (per_class[code] + 1)))
                    self._by_chance[place] = self._relative(nearest, code)

    def _relative(self, distance: float, code: int) -> float:
        """A distance by the typical one of a class; classes whose rows are all alike have 0."""
        return distance / self._typical[code] if self._typical[code] > 0 else 0.0

    def add(self, fitted: Any, sample: Codes) -> None:
        """Compare with the medoids of a refit."""
        method = part_of_medoids(fitted)
        if not self._known or method is None:
            return
        chosen = self._subject.medoid_rows(method, sample)
        present, kept = np.isin(self._rows, sample), np.isin(self._rows, chosen)
        self._present += present
        self._kept += kept
        for place in np.flatnonzero(present & ~kept):
            row = self._rows[place]
            code = int(self._classes[row])
            alike = self._numbers[chosen[self._classes[chosen] == code]]
            nearest = np.linalg.norm(alike - self._numbers[row], axis=1).min(initial=np.inf)
            self._moved[place] += self._relative(float(nearest), code)

    def result(self) -> MedoidStabilityDict | None:
        """How often medoids are chosen again, and how far the nearest one is if not, all of them and each."""
        if not self._known:
            return None
        gone = self._present - self._kept
        whole: MedoidStabilityDict = {
            "medoids": self._n_medoids,
            "kept": _ratio(self._kept.sum(), self._present.sum()),
            "moved": _ratio(self._moved.sum(), gone.sum()),
            "by_chance": number(self._by_chance.mean()),
        }
        if len(self._rows) < self._n_medoids:
            return whole
        labels = self._labels[self._classes[self._rows]].tolist()
        whole["each"] = [
            {
                "row": row,
                "class": label,
                "present": int(present),
                "kept": _ratio(kept, present),
                "moved": _ratio(moved, present - kept),
                "by_chance": float(chance),
            }
            for row, label, present, kept, moved, chance in zip(
                self._subject.rows[self._rows].tolist(),
                labels,
                self._present,
                self._kept,
                self._moved,
                self._by_chance,
                strict=True,
            )
        ]
        return whole


def _ratio(part: float, whole: float) -> float | None:
    """A mean from a sum and a count; None where there is nothing."""
    return float(part / whole) if whole else None


class _Decisions:
    """Votes of refits about rows that they did not have, compared with the decisions of the fit of all rows."""

    def __init__(self, subject: Subject, full: Any) -> None:
        self._subject, self._full = subject, full
        everything = subject.part(np.arange(subject.n_rows))
        self._decided = codes_of(full, full.predict(everything))
        self._margins = margins_of(full, everything)
        self._votes = np.zeros((subject.n_rows, len(full.classes_)), dtype=np.int64)
        self._rates: list[float] = []
        # Mean and sum of squared deviations of the probability of the class decided for, brought up to date by refits.
        self._probable = hasattr(full, "predict_proba")
        self._mean, self._squares = np.zeros((2, subject.n_rows))

    def add(self, fitted: Any, rows: Codes) -> None:
        """Count the votes of a refit about rows that were not in its sample."""
        if len(rows) == 0:
            return
        part, decided = self._subject.part(rows), self._decided[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QMedoidWarning)  # such as of levels that the sample did not have
            codes = codes_of(self._full, fitted.predict(part))
            probability = fitted.predict_proba(part)[np.arange(len(rows)), decided] if self._probable else None
        self._votes[rows, codes] += 1
        self._rates.append(float(np.mean(codes != decided)))
        if probability is not None:
            away = probability - self._mean[rows]
            self._mean[rows] += away / self._votes[rows].sum(axis=1)
            self._squares[rows] += away * (probability - self._mean[rows])

    def result(self) -> tuple[DecisionStabilityDict, Array]:
        """What came of it, with the flip rate of every row."""
        n_votes, spread = self._votes.sum(axis=1), None
        if self._probable:
            absent = np.full(len(n_votes), np.nan)
            spread = np.sqrt(np.divide(self._squares, n_votes - 1, out=absent, where=n_votes > 1))
        classes, labels, rows = self._full.classes_.tolist(), self._subject.labels, self._subject.rows
        return decision_stability(self._votes, self._rates, self._decided, classes, labels, rows, self._margins, spread)
