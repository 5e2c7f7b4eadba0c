"""Keyed hashes of the rows of a fit; with them a report says whether the rows it judges are new."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Flags
from qmedoid.schema import Values, Wording

Hashes = npt.NDArray[np.int64]
MOST_KEPT = 2**18
"""Hashes that a model keeps at most, 2 MB of them; of more rows those with the smallest hashes are a random sample."""
KEY_BYTES = 16


class Seen(NamedTuple):
    """How many rows of a table have the same cells as rows that a model was fitted on.

    Attributes
    ----------
    rows : int
    checked : int
        Rows that could be checked: all, unless the model keeps a sample of its hashes.
    """

    rows: int
    checked: int


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

    key: Annotated[bytes, Wording(form=f"[0-9a-f]{{{2 * KEY_BYTES}}}", words=f"{2 * KEY_BYTES} hexadecimal digits")]
    hashes: Annotated[Hashes, Values("h", order="rises", length=(1, MOST_KEPT))]
    is_sample: bool = False

    @classmethod
    def of(cls, key: bytes, hashes: Hashes, *, most: int = MOST_KEPT) -> "SeenRows":
        """Keep the hashes of rows, or the smallest of them."""
        different = np.unique(hashes)
        return cls(key, different[:most].copy(), len(different) > most)

    def has(self, hashes: Hashes) -> Flags:
        """Which rows were seen, by their hashes under the same key, shape (n,).

        Where only a sample of the hashes is kept, rows beyond it cannot be checked: they count as seen if any other row
        was.
        """
        seen = np.isin(hashes, self.hashes)
        return seen | (hashes > self.hashes[-1]) if self.is_sample and seen.any() else seen

    def among(self, hashes: Hashes) -> Seen:
        """How many of some rows, by their hashes under the same key, were seen."""
        if self.is_sample:
            hashes = hashes[hashes <= self.hashes[-1]]
        return Seen(int(np.isin(hashes, self.hashes).sum()), len(hashes))


def seen_in_words(found: Mapping[str, Any] | None, rows: int) -> str | None:
    """A note on rows that were seen in fitting, from `Seen`; None where there are none, or nothing is known."""
    if found is None or found["rows"] == 0:
        return None
    of = f"{rows:,} rows" if found["checked"] == rows else f"{found['checked']:,} rows that could be checked"
    return (
        f"{found['rows']:,} of {of} were seen in fitting (the same cells in every column that the model reads): these "
        "figures look better than those of new rows will."
    )
