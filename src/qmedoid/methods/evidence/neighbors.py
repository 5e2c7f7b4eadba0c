r"""What the nearest known records add to the outputs of an evidence model.

.. math::

   t_k(x) \leftarrow t_k(x) + \sum_{i\in N(x)} \omega_i(x)\,a_{ik}, \qquad
   \omega_i = \frac{u_i}{1 + \sum_{j\in N(x)} u_j}, \qquad
   u_i = \Bigl(\frac{D_i(x)}{\ell} + 0.05\Bigr)^{-3}

N(x) are the k records that lie nearest over all columns, and :math:`a_i` is what record i turned out to be, beyond what
evidence alone says of it. A record that lies far from all that are known is left to the evidence.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.nearest import MOST_NEAREST, nearest_squared

__all__ = ["MOST_NEAREST", "FoundNeighbors", "Neighbors", "added", "find", "weights"]

# So a record that is known has a finite weight, and one at the length ℓ a weight of about 1.
_NEAREST = 0.05
_POWER = 3


class FoundNeighbors(NamedTuple):
    """The nearest of the known records, and how far they lie: each of shape (n, k)."""

    distances: Array
    places: Codes


@dataclass(frozen=True, eq=False)
class Neighbors:
    """N known records, of which the nearest k have a say.

    Attributes
    ----------
    records : ndarray of shape (N, M)
        Raw columns.
    classes, rows : ndarray of shape (N,)
        Class code and training row of each.
    amounts : ndarray of shape (N, K)
        a: what each adds to the outputs where it has all the weight.
    n_nearest : int
        k, from 1 to N.
    length : float
        ℓ, above 0.
    by_rank : bool
        Whether distances are measured on columns scaled by rank; else on standardized ones.
    """

    records: Array
    classes: Codes
    rows: Codes
    amounts: Array
    n_nearest: int
    length: float
    by_rank: bool

    def added(self, found: FoundNeighbors) -> Array:
        """What is added to the outputs, shape (n, K)."""
        return added(found, self.length, self.amounts)

    def contributions(self, found: FoundNeighbors) -> Array:
        """What each of the nearest adds, shape (n, k, K)."""
        each: Array = weights(found.distances, self.length)[:, :, None] * self.amounts[found.places]
        return each

    def renumbered(self, rows: Codes) -> "Neighbors":
        """The same, where training row i is row ``rows[i]``."""
        return replace(self, rows=rows[self.rows].astype(np.intp))


def find(rows: Array, known: Array, k: int, own: Codes | None = None, threads: int | None = None) -> FoundNeighbors:
    """The k nearest known records of scaled rows (n, M), each but the one at ``own`` (−1: none) if that is given."""
    squared, places = nearest_squared(np.ascontiguousarray(rows), known, k=k, own=own, threads=threads)
    return FoundNeighbors(np.sqrt(squared), places)


def added(found: FoundNeighbors, length: float, amounts: Array) -> Array:
    """What records with these amounts (N, K) add to the outputs of rows that found some of them, shape (n, K)."""
    return np.asarray(np.einsum("ij,ijk->ik", weights(found.distances, length), amounts[found.places]))


def weights(distances: Array, length: float) -> Array:
    """ω of records at these distances, shape (n, k); those that are infinitely far have none."""
    near = (distances / length + _NEAREST) ** -_POWER
    shares: Array = near / (1.0 + near.sum(axis=1, keepdims=True))
    return shares
