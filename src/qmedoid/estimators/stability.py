"""Stability of a fit under resampling: refits on bootstrap samples, compared with the fit of all rows."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.documents import (
    DecisionStabilityDict,
    GroupStabilityDict,
    MedoidStabilityDict,
    StabilityDict,
)
from qmedoid.estimators.inputs import check_table, class_codes
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.parameters import SEED, Constraint, check_parameters, whole
from qmedoid.estimators.raw_tables import dataset_of, group_codes
from qmedoid.exceptions import DataError, InterruptedWarning, ParameterError, QMedoidWarning
from qmedoid.geometry.near_rows import rows_together
from qmedoid.geometry.row_groups import group_classes
from qmedoid.markup.page import render
from qmedoid.metrics.classification import flip_rates, group_agreement, mean_and_error
from qmedoid.tables.dataset import Dataset

NO_GROUPS = "Groups: nothing can be said, as the classifier has no groups of 2 or more, but not all, columns."
NO_MEDOIDS = "Medoids: nothing can be said, as the classifier compares records with no real ones."
NO_VOTES = "Decisions: nothing can be said, as every row was in the sample of every refit."
_CONSTRAINTS: Mapping[str, Constraint] = {"n_bootstraps": whole(2), "random_state": SEED}

Groups = frozenset[frozenset[int]]


@dataclass(frozen=True, eq=False)
class StabilityReport:
    """Everything that `stability` found; what cannot be said is None, and has a sentence in `notes`.

    Attributes
    ----------
    n_rows, n_bootstraps : int
    classes : tuple
    decisions : dict
        ``flip_rate``, the expected share of decisions about unseen rows that differ from the fit of all rows, with its
        standard error ``flip_error``; ``never_flipped``, the share of the rows that no refit decides otherwise;
        and ``rows_without_votes``.
    groups : dict or None
        How many ``groups`` of columns the fit of all rows has, the mean share of the refits in which one is ``kept``,
        and the ``agreement`` of a refit with the fit of all rows (1: the same groups; 0: no column in common).
    medoids : dict or None
        How many ``medoids`` there are, and the share that is ``kept`` where the sample has them.
    flip_rates : ndarray of shape (n,)
        Of every row, the share of the refits without it that decide otherwise; NaN where all had it.
    notes : tuple of str
    """

    n_rows: int
    n_bootstraps: int
    classes: tuple[Any, ...]
    decisions: DecisionStabilityDict
    groups: GroupStabilityDict | None
    medoids: MedoidStabilityDict | None
    flip_rates: Array
    notes: tuple[str, ...]

    def as_dict(self) -> StabilityDict:
        """The report as plain values, fit for JSON."""
        return {
            "rows": self.n_rows,
            "bootstraps": self.n_bootstraps,
            "classes": list(self.classes),
            "groups": self.groups,
            "medoids": self.medoids,
            "decisions": self.decisions,
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        return render("notebook/stability.html", title="Stability", found=self.as_dict())


def stability(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    n_bootstraps: int = 20,
    random_state: Any = None,
    progress: Callable[[int, int], object] | None = None,
) -> StabilityReport:
    """Fit a classifier on all rows and again on bootstrap samples of them, and compare them.

    Samples are drawn within each class, so that every class stays. Decisions are compared on rows that a refit did not
    have. Warnings of refits are not repeated.

    Parameters
    ----------
    estimator : classifier
        `MedoidClassifier`, `NearestMedoidClassifier`, or any other classifier of scikit-learn, of which decisions
        alone are reported. It is left as it is. Its `random_state`, where it has one, is that of all fits, so that only
        the rows differ; where it is None, every fit has another seed.
    X : array-like or data frame of shape (n, M)
        For a `MedoidClassifier` also a `qmedoid.tables.dataset.Dataset`, which has y and groups.
    y : array-like of shape (n,)
    groups : array-like of shape (n,), optional
        Rows with the same label belong together: a sample has all of them or none. None takes equal rows as groups.
    n_bootstraps : int, default=20
        Number of refits, at least 2. The first refits are the same for any number.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    progress : callable or None, default=None
        Called as ``progress(done, total)`` after every fit.

    Returns
    -------
    StabilityReport

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> from qmedoid import NearestMedoidClassifier, stability
    >>> model = NearestMedoidClassifier(max_passes=1, random_state=0)
    >>> report = stability(model, X, y, n_bootstraps=2, random_state=0)
    >>> report.n_rows, report.decisions["flip_rate"] < 0.2
    (150, True)
    """
    check_parameters("stability", {"n_bootstraps": n_bootstraps, "random_state": random_state}, _CONSTRAINTS)
    subject = _Subject(estimator, X, y, groups)
    entropy = [int(value) for value in check_random_state(random_state).randint(2**31, size=4)]
    full = subject.fit(None, int(np.random.default_rng(entropy).integers(2**31)))
    every = np.arange(subject.n_rows)
    decided = _codes(full, subject.part(every))
    medoids, together, found = subject.medoids(full), subject.together(), [subject.groups(full)]
    votes, flips = np.zeros((len(every), len(full.classes_)), dtype=np.int64), list[float]()
    present, kept = 0, 0
    for number in range(1, n_bootstraps + 1):
        if progress is not None:
            progress(number, n_bootstraps + 1)
        rng = np.random.default_rng([*entropy, number])
        sample = _bootstrap(subject.strata, rng, together)
        fitted = subject.refit(sample, int(rng.integers(2**31)), f"Refit {number} of {n_bootstraps}")
        found.append(subject.groups(fitted))
        again = subject.medoids(fitted, sample)
        if medoids is not None and again is not None:
            in_sample = medoids[np.isin(medoids, sample)]
            present += len(in_sample)
            kept += int(np.isin(in_sample, again).sum())
        unseen = np.setdiff1d(every, sample)
        if len(unseen):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", QMedoidWarning)  # such as of levels that the sample did not have
                codes = _codes(fitted, subject.part(unseen), full)
            votes[unseen, codes] += 1
            flips.append(float(np.mean(codes != decided[unseen])))
    if progress is not None:
        progress(n_bootstraps + 1, n_bootstraps + 1)
    rates, classes = flip_rates(votes, decided), full.classes_.tolist()
    known = rates[np.isfinite(rates)]
    mean, error = mean_and_error(flips) if flips else (None, None)
    decisions: DecisionStabilityDict = {
        "flip_rate": mean,
        "flip_error": error,
        "never_flipped": float(np.mean(known == 0)) if len(known) else None,
        "rows_without_votes": int((votes.sum(axis=1) == 0).sum()),
    }
    of_groups = _group_stability(found)
    missing = {
        NO_GROUPS: of_groups is None,
        NO_MEDOIDS: medoids is None,
        NO_VOTES: not flips,
    }
    notes = tuple(sentence for sentence, is_missing in missing.items() if is_missing)
    of_medoids: MedoidStabilityDict | None = None
    if medoids is not None:
        of_medoids = {"medoids": len(medoids), "kept": kept / present if present else None}
    return StabilityReport(
        len(every), int(n_bootstraps), tuple(classes), decisions, of_groups, of_medoids, rates, notes
    )


class _Subject:
    """A classifier and a table: its fits to all rows and to samples, and the groups and medoids of each fit."""

    def __init__(self, estimator: Any, X: Any, y: Any, groups: Any) -> None:
        if not isinstance(estimator, BaseEstimator) or estimator.__sklearn_tags__().estimator_type != "classifier":
            raise ParameterError(
                f"Stability is that of a classifier, such as MedoidClassifier(). Got {estimator!r} instead."
            )
        self._estimator: Any = clone(estimator)
        self._data: Dataset | None = None
        self._names = dict[str, int]()  # of encoded columns: each fit of a MedoidClassifier may have others
        if isinstance(estimator, MedoidClassifier):
            data = dataset_of(self._estimator, X, y, groups)
            target, self._groups, n_rows = data.target, data.groups, len(data.rows)
            self.strata, self.labels = target.codes, target.classes[target.codes]
            self._data = replace(data, rows=np.arange(n_rows), n_source=n_rows)
            self._table: Any = data.table
        else:
            # A plain estimator takes the names of the columns; a pipeline would not.
            self._table = check_table(BaseEstimator(), X, reset=True)
            classes, self.strata = class_codes(y, len(self._table))
            self.labels = classes[self.strata]
            self._groups = group_codes(groups, len(self._table))
        self.n_rows = len(self._table)

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
        takes_groups = self._groups is not None and "groups" in signature(fresh.fit).parameters
        groups = {"groups": self._groups[rows]} if takes_groups and self._groups is not None else {}
        return fresh.fit(self.part(rows), self.labels[rows], **groups)

    def refit(self, rows: Codes, seed: int, name: str) -> Any:
        """A clone fitted on a sample; an error says which, and an interrupt is not taken for the end of a search."""
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always", QMedoidWarning)
            try:
                fitted = self.fit(rows, seed)
            except ValueError as error:
                raise DataError(f"{name} failed: {error}") from error
        if any(issubclass(one.category, InterruptedWarning) for one in given):
            raise KeyboardInterrupt
        return fitted

    def together(self) -> Codes | None:
        """Groups of the rows: those that were given, or rows that are equal, or nearly so, in what is learned from."""
        if self._groups is not None:
            return self._groups
        return rows_together(self._table, self.strata)[0] if self._data is None else self._data.together()

    def part(self, rows: Codes) -> Any:
        """Some rows of the table."""
        return self._table[rows] if self._data is None else self._table.take(pa.array(rows))

    def medoids(self, fitted: Any, sample: Codes | None = None) -> Codes | None:
        """The rows of the table that are medoids of a fit to a sample; None where it has none."""
        part = getattr(getattr(fitted, "model_", None), "medoid_part", None)
        if part is None:
            return None
        numbers = part.rows.numbers if sample is None or self._data is not None else sample[part.rows.numbers]
        return np.unique(numbers)

    def groups(self, fitted: Any) -> Groups | None:
        """The groups of more than one and not all columns that a fit has found; None where it knows no groups."""
        part = getattr(getattr(fitted, "model_", None), "medoid_part", None)
        if part is None:
            return None
        names = range(self._table.shape[1]) if self._data is None else fitted.model_.layout.names
        places = [self._names.setdefault(str(name), len(self._names)) for name in names]
        several = (set(group) for group in part.facts["groups"] if 1 < len(set(group)) < len(places))
        return frozenset(frozenset(places[column] for column in group) for group in several)


def _codes(fitted: Any, X: Any, full: Any = None) -> Codes:
    """Decisions about rows as codes among the classes of the fit of all rows."""
    classes = (fitted if full is None else full).classes_
    codes: Codes = np.searchsorted(classes, fitted.predict(X)).astype(np.intp)
    return codes


def _bootstrap(strata: Codes, rng: np.random.Generator, groups: Codes | None) -> Codes:
    """Rows drawn with replacement, rising: as many of each class as there are; whole groups where rows have any."""
    if groups is not None:
        chosen = _bootstrap(group_classes(groups, strata), rng, None)
        times = np.bincount(chosen, minlength=groups.max() + 1)
        return np.repeat(np.arange(len(groups)), times[groups])
    of_class = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    return np.sort(np.concatenate([rng.choice(rows, size=len(rows)) for rows in of_class]))


def _group_stability(found: Sequence[Groups | None]) -> GroupStabilityDict | None:
    """The groups of the fit of all rows, which come first, compared with those of the refits."""
    sets = [groups for groups in found if groups is not None]
    if len(sets) < len(found) or not sets[0]:
        return None
    full, refits = sets[0], sets[1:]
    return {
        "groups": len(full),
        "kept": float(np.mean([group in others for group in full for others in refits])),
        "agreement": float(np.mean([group_agreement(full, others) for others in refits])),
    }
