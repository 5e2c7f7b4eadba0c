"""The stability report: how decisions change on other rows, with the stability of groups and medoids."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.documents import (
    DecisionStabilityDict,
    GroupStabilityDict,
    MarginBinDict,
    MedoidStabilityDict,
    StabilityDict,
    StableMedoidDict,
    UnstableRowDict,
)
from qmedoid.markup.page import render
from qmedoid.metrics.agreement import (
    MarginBin,
    best_matches,
    flip_rates,
    group_agreement,
    mean_agreement,
    mean_and_error,
    pair_frequencies,
    rates_by_margin,
)

# Pairs of columns that text and JSON list.
_LISTED_PAIRS = 50


@dataclass(frozen=True, eq=False)
class GroupStability:
    """Groups of more than one and not all columns.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns by their numbers.
    groups : tuple of tuple of int
        The G groups of the fit of all rows.
    kept, best_match : ndarray of shape (G,)
        Share of the refits that have exactly this group, and mean Jaccard index with the most similar group of each.
    pairs : mapping of (int, int) to float
        Share of the refits that have two columns in one group, the most frequent first; other pairs never were.
    with_full_fit, between_refits : float
        Mean agreement of the groups of a refit with those of the fit of all rows, and of two refits: the mean Jaccard
        index of each group with its best match on the other side. 1 is the same groups, 0 no column in common.
    """

    columns: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    kept: Array
    best_match: Array
    pairs: Mapping[tuple[int, int], float]
    with_full_fit: float
    between_refits: float

    @classmethod
    def of(cls, found: Sequence[frozenset[frozenset[int]] | None], columns: Sequence[str]) -> "GroupStability | None":
        """The groups of the fit of all rows, which come first, compared with those of the refits."""
        sets = [groups for groups in found if groups is not None]
        if len(sets) < len(found) or not any(sets):
            return None
        full, refits = sets[0], sets[1:]
        ordered = sorted(full, key=sorted)
        return cls(
            columns=tuple(columns),
            groups=tuple(tuple(sorted(group)) for group in ordered),
            kept=np.array([np.mean([group in groups for groups in refits]) for group in ordered]),
            best_match=np.array([best_matches(ordered, groups) for groups in refits]).mean(axis=0),
            pairs=pair_frequencies(refits),
            with_full_fit=float(np.mean([group_agreement(full, groups) for groups in refits])),
            between_refits=mean_agreement(refits),
        )

    @property
    def pairs_kept(self) -> float:
        """How often two columns that share a group in the fit of all rows share one in a refit; NaN without groups."""
        own = {pair for group in self.groups for pair in combinations(group, 2)}
        return float(np.mean([self.pairs.get(pair, 0.0) for pair in own])) if own else float("nan")

    @property
    def pairs_by_chance(self) -> float:
        """How often any two columns share a group in a refit."""
        return sum(self.pairs.values()) / comb(len(self.columns), 2)

    def names(self, group: tuple[int, ...]) -> list[str]:
        """The names of some columns."""
        return [self.columns[column] for column in group]

    def as_dict(self) -> GroupStabilityDict:
        """The groups as plain values."""
        described = zip(self.groups, self.kept.tolist(), self.best_match.tolist(), strict=True)
        return {
            "with_full_fit": self.with_full_fit,
            "between_refits": self.between_refits,
            "pairs_kept": number(self.pairs_kept),
            "pairs_by_chance": self.pairs_by_chance,
            "groups": [
                {"columns": self.names(group), "kept": kept, "best_match": match} for group, kept, match in described
            ],
            "pairs": [
                {"columns": self.names(pair), "frequency": frequency}
                for pair, frequency in list(self.pairs.items())[:_LISTED_PAIRS]
            ],
        }


@dataclass(frozen=True, eq=False)
class MedoidStability:
    """Medoids of the fit of all rows, or a random sample of them where they are many.

    Attributes
    ----------
    n_medoids : int
        How many there are.
    rows, classes : ndarray of shape (P,)
        Row and class of those that were looked at.
    present : ndarray of shape (P,)
        Number of refits whose sample held the row.
    kept : ndarray of shape (P,)
        Share of these refits that chose it again; NaN where there was none.
    moved : ndarray of shape (P,)
        Where they did not: mean distance to the nearest medoid of its class that they chose instead, over standardized
        columns, as a share of the median distance between two rows of the class; NaN where it was always chosen.
    by_chance : ndarray of shape (P,)
        The same distance for as many medoids of the class as there are, drawn at random.
    """

    n_medoids: int
    rows: Codes
    classes: npt.NDArray[Any]
    present: npt.NDArray[np.int64]
    kept: Array
    moved: Array
    by_chance: Array

    @property
    def mean_kept(self) -> float:
        """Share of the medoids in a sample that are chosen again."""
        return mean(self.kept, self.present)

    @property
    def mean_moved(self) -> float:
        """Mean relative distance to the nearest new medoid where one is not chosen again; NaN where all are."""
        return mean(self.moved, np.rint(self.present * (1.0 - np.nan_to_num(self.kept))))

    def as_dict(self) -> MedoidStabilityDict:
        """The medoids as plain values."""
        whole: MedoidStabilityDict = {
            "medoids": self.n_medoids,
            "kept": number(self.mean_kept),
            "moved": number(self.mean_moved),
            "by_chance": number(float(self.by_chance.mean())),
        }
        if len(self.rows) < self.n_medoids:
            return whole
        each = {
            "row": self.rows.tolist(),
            "class": self.classes.tolist(),
            "present": self.present.tolist(),
            "kept": map(number, self.kept),
            "moved": map(number, self.moved),
            "by_chance": self.by_chance.tolist(),
        }
        listed = [dict(zip(each, one, strict=True)) for one in zip(*each.values(), strict=True)]
        return whole | {"each": cast("list[StableMedoidDict]", listed)}


def mean(values: Array, weights: npt.NDArray[Any]) -> float:
    """Weighted mean of the values that are known; NaN where there is none."""
    known = np.isfinite(values) & (weights > 0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else float("nan")


def number(value: float) -> float | None:
    """A number for JSON, which has no NaN and no infinity."""
    return float(value) if np.isfinite(value) else None


NO_GROUPS = "Groups: nothing can be said, as the classifier has no groups of 2 or more, but not all, columns."
NO_MEDOIDS = "Medoids: nothing can be said, as the classifier compares records with no real ones."
NO_MARGINS = "Margins: nothing can be said, as the classifier has neither decision values nor probabilities."
NO_SPREAD = "Spread of probabilities: nothing can be said, as the classifier has no probabilities."
NO_VOTES = "Decisions: nothing can be said, as every row was in the sample of every refit."
LISTED_ROWS = 10
"""Maximum number of the least stable rows that are named."""


@dataclass(frozen=True)
class UnstableRow:
    """A row about which refits disagree with the fit of all rows.

    Attributes
    ----------
    row : int
    label : its class
    decided, otherwise : the class of the fit of all rows, and the one most refits say that do not say this
    flip_rate : float
        Share of the refits without the row that say another class.
    n_votes : int
        Number of these refits.
    margin : float or None
    spread : float or None
        Standard deviation, over these refits, of the probability of `decided`; None for fewer than two.
    """

    row: int
    label: Any
    decided: Any
    otherwise: Any
    flip_rate: float
    n_votes: int
    margin: float | None
    spread: float | None


@dataclass(frozen=True, eq=False)
class DecisionStability:
    """Decisions of refits about rows that were not in their samples.

    Attributes
    ----------
    flip_rate : float
        Expected share of decisions about unseen rows that differ from the fit of all rows; NaN where no row was unseen.
    flip_error : float or None
        Its standard error over the refits.
    rates : ndarray of shape (n,)
        The same for each row, over the refits that did not have it; NaN where all had it.
    n_votes : ndarray of shape (n,)
        Number of these refits.
    margins : ndarray of shape (n,) or None
        How far the fit of all rows was from another decision.
    by_margin : tuple of MarginBin or None
        Mean flip rate in fifths of the rows, from the smallest margins to the largest.
    spread : ndarray of shape (n,) or None
        Standard deviation, over these refits, of the probability of the class decided for; NaN for fewer than two.
    least_stable : tuple of UnstableRow
        The rows of the highest flip rates.
    """

    flip_rate: float
    flip_error: float | None
    rates: Array
    n_votes: npt.NDArray[np.int64]
    margins: Array | None
    by_margin: tuple[MarginBin, ...] | None
    spread: Array | None
    least_stable: tuple[UnstableRow, ...]

    @classmethod
    def of(
        cls,
        votes: npt.NDArray[np.int64],
        flips: Sequence[float],
        decided: Codes,
        classes: Sequence[Any],
        labels: npt.NDArray[Any],
        margins: Array | None,
        spread: Array | None,
    ) -> "DecisionStability":
        """From the votes of refits about each row and class, and the share of each refit's decisions that flipped."""
        rates, n_votes = flip_rates(votes, decided), votes.sum(axis=1)
        mean, error = mean_and_error(flips) if len(flips) else (float("nan"), None)
        # The rows of the highest flip rates; of equal ones those of more votes, then of smaller margins.
        near = np.zeros(len(rates)) if margins is None else margins
        order = np.lexsort((near, -n_votes, -np.nan_to_num(rates)))[:LISTED_ROWS]
        others = np.where(np.arange(votes.shape[1]) == decided[:, None], -1, votes).argmax(axis=1)
        listed = tuple(
            UnstableRow(
                row=int(row),
                label=labels[row : row + 1].tolist()[0],
                decided=classes[decided[row]],
                otherwise=classes[others[row]],
                flip_rate=float(rates[row]),
                n_votes=int(n_votes[row]),
                margin=None if margins is None else float(margins[row]),
                spread=float(spread[row]) if spread is not None and n_votes[row] > 1 else None,
            )
            for row in order[np.nan_to_num(rates[order]) > 0]
        )
        by_margin = None if margins is None else tuple(rates_by_margin(margins, rates))
        return cls(mean, error, rates, n_votes, margins, by_margin, spread, listed)

    @property
    def mean_spread(self) -> float | None:
        """Mean of `spread`; None where there is none."""
        known = None if self.spread is None else self.spread[np.isfinite(self.spread)]
        return None if known is None or len(known) == 0 else float(known.mean())

    @property
    def never_flipped(self) -> float:
        """Share of the rows, of those that refits were asked about, that no refit decides otherwise."""
        known = self.rates[np.isfinite(self.rates)]
        return float(np.mean(known == 0)) if len(known) else float("nan")

    def as_dict(self) -> DecisionStabilityDict:
        """The decisions as plain values."""
        by_margin = None if self.by_margin is None else [part._asdict() for part in self.by_margin]
        return {
            "flip_rate": number(self.flip_rate),
            "flip_error": self.flip_error,
            "never_flipped": number(self.never_flipped),
            "rows_without_votes": int((self.n_votes == 0).sum()),
            "by_margin": cast("list[MarginBinDict] | None", by_margin),
            "mean_spread": self.mean_spread,
            "least_stable": [cast("UnstableRowDict", asdict(row)) for row in self.least_stable],
        }


@dataclass(frozen=True, eq=False)
class StabilityReport:
    """Everything that `stability` found; what cannot be said is None, and has a sentence in `notes`.

    Attributes
    ----------
    n_rows, n_bootstraps : int
    classes : tuple
    groups : GroupStability or None
    medoids : MedoidStability or None
    decisions : DecisionStability

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> from qmedoid import NearestMedoidClassifier, stability
    >>> model = NearestMedoidClassifier(max_passes=1, random_state=0)
    >>> report = stability(model, X, y, n_bootstraps=2, random_state=0)
    >>> report.n_rows, report.decisions.flip_rate < 0.2
    (150, True)
    """

    n_rows: int
    n_bootstraps: int
    classes: tuple[Any, ...]
    groups: GroupStability | None
    medoids: MedoidStability | None
    decisions: DecisionStability

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each thing that cannot be said."""
        missing = {
            NO_GROUPS: self.groups is None,
            NO_MEDOIDS: self.medoids is None,
            NO_MARGINS: self.decisions.margins is None,
            NO_SPREAD: self.decisions.spread is None,
            NO_VOTES: not self.decisions.n_votes.any(),
        }
        return tuple(sentence for sentence, is_missing in missing.items() if is_missing)

    def as_dict(self) -> StabilityDict:
        """The report as plain values, fit for JSON."""
        return {
            "rows": self.n_rows,
            "bootstraps": self.n_bootstraps,
            "classes": list(self.classes),
            "groups": None if self.groups is None else self.groups.as_dict(),
            "medoids": None if self.medoids is None else self.medoids.as_dict(),
            "decisions": self.decisions.as_dict(),
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        return render("notebook/stability.html", title="Stability", **self.as_dict())
