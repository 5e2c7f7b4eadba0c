r"""The neighbor term of an evidence model: what the nearest of many training rows add to its outputs.

.. math::

   t_k(x) \leftarrow t_k(x) + \sum_{i\in N(x)} \omega_i(x)\,a_{ik}, \qquad
   \omega_i = \frac{u_i}{1 + \sum_{j\in N(x)} u_j}, \qquad
   u_i = \Bigl(\frac{D_i(x)}{\ell} + 0.05\Bigr)^{-3}

N(x) are the k nearest neighbors over all columns, and :math:`a_i` is the class of neighbor i beyond what evidence alone
says of it. A record far from all neighbors is left to the evidence.
"""

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.nearest import MOST_NEAREST, nearest_squared
from qmedoid.schema import MODERATE, RefusedError, Values

__all__ = ["MOST_NEAREST", "FoundNeighbors", "Neighbors", "added", "find", "weights"]

# A neighbor at distance 0 has a finite weight, and one at the length ℓ a weight of about 1.
_NEAREST = 0.05
_POWER = 3


class FoundNeighbors(NamedTuple):
    """Distances and places of the nearest neighbors, each of shape (n, k)."""

    distances: Array
    places: Codes


@dataclass(frozen=True, eq=False)
class Neighbors:
    """N training rows, of which the k nearest enter the neighbor term.

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

    records: Annotated[Array, Values("N M")]
    classes: Annotated[Codes, Values("N", below="C")]
    rows: Annotated[Codes, Values("N")]
    amounts: Annotated[Array, Values("N K", largest=MODERATE)]
    n_nearest: Annotated[int, Values(least=1, most=MOST_NEAREST)]
    length: Annotated[float, Values(least=1 / MODERATE, most=MODERATE)]
    by_rank: bool

    def validate(self) -> None:
        """Refuse stored neighbors that are fewer than the nearest of them."""
        if self.n_nearest > len(self.rows):
            raise RefusedError(f"n_nearest is {self.n_nearest}, and there are {len(self.rows)} neighbors")

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


def find(
    rows: Array, neighbors: Array, k: int, itself: Codes | None = None, threads: int | None = None
) -> FoundNeighbors:
    """The k nearest `neighbors` of scaled rows (n, M), each but the one at place ``itself`` (−1: none) if given."""
    squared, places = nearest_squared(np.ascontiguousarray(rows), neighbors, k=k, own=itself, threads=threads)
    return FoundNeighbors(np.sqrt(squared), places)


def added(found: FoundNeighbors, length: float, amounts: Array) -> Array:
    """What neighbors with these amounts (N, K) add to the outputs of rows, shape (n, K)."""
    return np.asarray(np.einsum("ij,ijk->ik", weights(found.distances, length), amounts[found.places]))


def weights(distances: Array, length: float) -> Array:
    """ω of neighbors at these distances, shape (n, k); 0 at infinite distance."""
    near = (distances / length + _NEAREST) ** -_POWER
    weights: Array = near / (1.0 + near.sum(axis=1, keepdims=True))
    return weights
