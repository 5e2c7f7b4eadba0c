"""How much of a fit would be another on other rows: refits on bootstrap samples, compared with the fit of all rows."""

import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._folds import sampled_rows
from qmedoid.estimators._inputs import check_table, class_codes
from qmedoid.estimators._parameters import SEED, Constraint, check_parameters, choice, whole
from qmedoid.estimators._raw_reading import read_table
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.stability_report import DecisionStability, GroupStability, MedoidStability, StabilityReport
from qmedoid.exceptions import DataError, InterruptedWarning, ParameterError, QMedoidWarning
from qmedoid.geometry.row_groups import given_groups, row_groups
from qmedoid.methods.part import Part
from qmedoid.metrics.agreement import nearest_distance, typical_distance
from qmedoid.tables.cells import cell_codes
from qmedoid.tables.kinds import Inferred


class Subject:
    """A classifier and a table: what is fitted again and again, and what each fit is asked.

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
        self._is_raw = isinstance(estimator, MedoidClassifier)
        self._settled: Inferred | None = None
        shell = BaseEstimator()  # takes the names of the columns; a pipeline would not
        self._table: Any = read_table(shell, X, reset=True) if self._is_raw else check_table(shell, X, reset=True)
        self.n_rows = len(self._table)
        classes, self.strata = class_codes(y, self.n_rows)
        self.labels = classes[self.strata]
        found = None if groups is None else given_groups(groups, self.n_rows)
        self._given = np.arange(self.n_rows) if groups is not None and found is None else found
        self._takes_groups = self._given is not None and "groups" in signature(cast("Any", estimator).fit).parameters
        given = [] if self._is_raw else getattr(shell, "feature_names_in_", range(self._table.shape[1]))
        self.columns = [str(name) for name in given]

    def fit(self, rows: Codes, seed: int) -> Any:
        """A clone fitted on some rows; the seed is used where the classifier has none."""
        fresh = clone(self._estimator)
        if fresh.get_params(deep=False).get("random_state", 0) is None:
            fresh.set_params(random_state=seed)
        if self._settled is not None:
            fresh._settled = self._settled
        groups = {"groups": self._given[rows]} if self._takes_groups and self._given is not None else {}
        return fresh.fit(self.part(rows), self.labels[rows], **groups)

    def row_groups(self, full: Any) -> Codes | None:
        """Groups of the rows: those that were given, or rows that are equal in the columns of the fit of all rows."""
        if self._given is not None:
            return self._given
        cells = cell_codes(self._table, full.contract_.names) if self._is_raw else self._table
        return row_groups(cells, self.strata)

    def fix_columns(self, full: Any) -> None:
        """Read the columns of a raw table in all fits to come as the fit of all rows has read them.

        A column of row numbers has no value twice, but some twice in a sample.
        """
        if self._is_raw:
            self._settled = full._inferred
            # Nor may a sample choose another class of interest where two are about as frequent.
            self._estimator.set_params(positive=full.positive_)

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
        return self._table.take(pa.array(rows)) if self._is_raw else self._table[rows]

    def classes_of_rows(self, full: Any) -> Codes:
        """Code, in `classes_` of the fit of all rows, of the class that every label stands for."""
        return codes_of(full, full._meant(self.labels) if self._is_raw else self.labels)

    def numbers(self, full: Any) -> Array:
        """The rows as numbers, standardized; columns that are the same everywhere are left out."""
        matrix = full._encoded(self._table) if self._is_raw else self._table
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
        if self._is_raw:
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
    y: Any,
    *,
    groups: Any = None,
    n_bootstraps: int = 20,
    sampling: str = "bootstrap",
    random_state: Any = None,
    progress: Callable[[int, int], object] | None = None,
) -> StabilityReport:
    """Fit a classifier on all rows and again on samples of them, and tell what changes.

    Samples are drawn within each class, so that every class stays. Decisions are compared on rows that a refit did not
    have. Warnings of refits are not repeated.

    Parameters
    ----------
    estimator : classifier
        `MedoidClassifier`, `NearestMedoidClassifier`, or any other classifier of scikit-learn, of which decisions
        alone are reported. It is left as it is. Its own `random_state`, where it has one, is that of all
        fits, so that only the rows differ; where it is None, every fit has another seed.
    X : array-like or data frame of shape (n, M)
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
    full = subject.fit(everything, int(rng.integers(2**31)))
    subject.fix_columns(full)
    together = subject.row_groups(full)
    found, medoids, decisions = [subject.groups(full)], _Medoids(subject, full, rng), _Decisions(subject, full)
    for number in range(1, n_bootstraps + 1):
        if progress is not None:
            progress(number, n_bootstraps + 1)
        own = np.random.default_rng([*entropy, number])
        sample = sampled_rows(subject.strata, own, with_replacement=sampling == "bootstrap", groups=together)
        fitted = subject.refit(sample, int(own.integers(2**31)), f"Refit {number} of {n_bootstraps}")
        found.append(subject.groups(fitted))
        medoids.add(fitted, sample)
        decisions.add(fitted, np.setdiff1d(everything, sample))
    if progress is not None:
        progress(n_bootstraps + 1, n_bootstraps + 1)
    return StabilityReport(
        n_rows=subject.n_rows,
        n_bootstraps=int(n_bootstraps),
        classes=tuple(full.classes_.tolist()),
        groups=GroupStability.of(found, subject.columns),
        medoids=medoids.result(),
        decisions=decisions.result(),
    )


class _Medoids:
    """Whether the medoids of the fit of all rows are chosen again, and how near to them others are where not."""

    def __init__(self, subject: Subject, full: Any, rng: np.random.Generator) -> None:
        method = part_of_medoids(full)
        self._known = method is not None
        if method is None:
            return
        self._labels, self._classes = full.classes_, subject.classes_of_rows(full)
        self._numbers = subject.numbers(full)
        every = np.unique(method.rows.numbers)
        self._n_medoids = len(every)
        if len(every) > LISTED_MEDOIDS:
            every = np.sort(rng.choice(every, size=LISTED_MEDOIDS, replace=False))
        self._rows = every
        self._present, self._kept = np.zeros((2, len(every)), dtype=np.int64)
        self._moved = np.zeros(len(every))
        per_class = np.bincount(self._classes[np.unique(method.rows.numbers)], minlength=len(full.classes_))
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
        chosen = np.unique(sample[method.rows.numbers])
        present, kept = np.isin(self._rows, sample), np.isin(self._rows, chosen)
        self._present += present
        self._kept += kept
        for place in np.flatnonzero(present & ~kept):
            row = self._rows[place]
            code = int(self._classes[row])
            alike = self._numbers[chosen[self._classes[chosen] == code]]
            self._moved[place] += self._relative(nearest_distance(self._numbers[row], alike), code)

    def result(self) -> MedoidStability | None:
        """What came of it."""
        if not self._known:
            return None
        absent = np.full((2, len(self._rows)), np.nan)
        gone = self._present - self._kept
        return MedoidStability(
            n_medoids=self._n_medoids,
            rows=self._rows,
            classes=self._labels[self._classes[self._rows]],
            present=self._present,
            kept=np.divide(self._kept, self._present, out=absent[0], where=self._present > 0),
            moved=np.divide(self._moved, gone, out=absent[1], where=gone > 0),
            by_chance=self._by_chance,
        )


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

    def result(self) -> DecisionStability:
        """What came of it."""
        n_votes, spread = self._votes.sum(axis=1), None
        if self._probable:
            absent = np.full(len(n_votes), np.nan)
            spread = np.sqrt(np.divide(self._squares, n_votes - 1, out=absent, where=n_votes > 1))
        classes, labels = self._full.classes_.tolist(), self._subject.labels
        return DecisionStability.of(self._votes, self._rates, self._decided, classes, labels, self._margins, spread)
