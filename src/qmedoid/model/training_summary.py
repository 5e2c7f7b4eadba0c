"""What a model keeps of its training table: held-out curve, missing cells, hashes of rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.schema import Values

Hashes = npt.NDArray[np.int64]
MOST_KEPT = 2**18
"""Hashes that a model keeps at most, 2 MB of them; of more rows those with the smallest hashes are a random sample."""
KEY_BYTES = 16
MOST_CUTS = 2048
"""Thresholds of a held-out curve at most."""


@dataclass(frozen=True, eq=False)
class HeldOutCurve:
    """True and false positives of held-out rows by threshold, for two classes.

    Attributes
    ----------
    thresholds : ndarray of shape (m,)
        Log-odds of the second class, descending; at most `MOST_CUTS`.
    true_positives, false_positives : ndarray of shape (m,)
        Rows of the second and of the first class whose log-odds are at least the threshold.
    n_positive, n_negative : int
        Rows of the second and of the first class.
    """

    thresholds: Annotated[Array, Values("m", order="falls", length=(1, MOST_CUTS))]
    true_positives: Annotated[Codes, Values("m", order="never falls", last="n_positive")]
    false_positives: Annotated[Codes, Values("m", order="never falls", last="n_negative")]
    n_positive: int
    n_negative: int

    @classmethod
    def of(cls, positive: Flags, log_odds: Array, *, most: int = MOST_CUTS) -> "HeldOutCurve":
        """The curve of held-out rows.

        Where there are more than `most` different log-odds, cuts are chosen at even steps of TPR + FPR, so that both
        rates of a cut that is left out are within 2 / (most − 1) of those of one that is kept.
        """
        order = np.argsort(-log_odds, kind="stable")
        falling, hits = log_odds[order], np.cumsum(positive[order])
        last = np.append(np.flatnonzero(falling[1:] < falling[:-1]), len(falling) - 1)[: len(falling)]
        true, false = hits[last], last + 1 - hits[last]
        n_positive = int(positive.sum())
        n_negative = len(positive) - n_positive
        if len(last) > most:
            rates = true / max(n_positive, 1) + false / max(n_negative, 1)
            kept = np.unique(np.searchsorted(rates, np.linspace(0.0, rates[-1], most)))
            last, true, false = last[kept], true[kept], false[kept]
        return cls(falling[last], true.astype(np.intp), false.astype(np.intp), n_positive, n_negative)


@dataclass(frozen=True, eq=False)
class TrainingSummary:
    """Counts of the training table, with which later tables can be compared.

    Attributes
    ----------
    n_rows : int
    missing : ndarray of shape (columns,)
        Rows in which each column of the contract is missing or holds no value of its kind.
    curve : HeldOutCurve or None
        None for more than two classes, and where no row was held out.
    rows_per_day : float or None
        The mean of the days that have rows; None where no time column was named, or where it holds numbers.
    """

    n_rows: Annotated[int, Values(least=1, most=2**40)]
    missing: Annotated[Codes, Values("columns", most="n_rows")]
    curve: HeldOutCurve | None = None
    rows_per_day: Annotated[float | None, Values(above=0, most="n_rows")] = None


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Hashes of the rows that a model was fitted on, in the columns that it reads.

    Attributes
    ----------
    key : bytes of length 16
        What the hashes are keyed with, made from the rows: it differs from table to table.
    hashes : ndarray of int64
        Different hashes of 63 bits, in ascending order.
    is_sample : bool
        Whether there were more than `MOST_KEPT`, so that only those up to the last one here are known.
    """

    key: Annotated[bytes, f"[0-9a-f]{{{2 * KEY_BYTES}}}"]
    hashes: Annotated[Hashes, Values("h", order="rises", length=(1, MOST_KEPT))]
    is_sample: bool = False

    def has(self, hashes: Hashes) -> Flags:
        """Which rows were seen, by their hashes under the same key, shape (n,).

        Where only a sample of the hashes is kept, rows beyond it cannot be checked: they count as seen if any other row
        was.
        """
        seen = np.isin(hashes, self.hashes)
        return seen | (hashes > self.hashes[-1]) if self.is_sample and seen.any() else seen

    def among(self, hashes: Hashes) -> tuple[int, int]:
        """How many of some rows, by their hashes under the same key, were seen, and how many could be checked.

        All rows can be, unless the model keeps a sample of its hashes.
        """
        if self.is_sample:
            hashes = hashes[hashes <= self.hashes[-1]]
        return int(np.isin(hashes, self.hashes).sum()), len(hashes)


def seen_in_words(found: Mapping[str, Any] | None, rows: int) -> str | None:
    """A note on rows that were seen in fitting; None where there are none, or nothing is known."""
    if found is None or found["rows"] == 0:
        return None
    of = f"{rows:,} rows" if found["checked"] == rows else f"{found['checked']:,} rows that could be checked"
    return (
        f"{found['rows']:,} of {of} were seen in fitting (the same cells in every column that the model reads): these "
        "figures look better than those of new rows will."
    )
