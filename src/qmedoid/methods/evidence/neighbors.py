r"""The neighbor term of an evidence model: what the nearest of many training rows add to its outputs.

.. math::

   t_k(x) \leftarrow t_k(x) + \sum_{i\in N(x)} \omega_i(x)\,a_{ik}, \qquad
   \omega_i = \frac{u_i}{1 + \sum_{j\in N(x)} u_j}, \qquad
   u_i = \Bigl(\frac{D_i(x)}{\ell} + 0.05\Bigr)^{-3}

N(x) are the k nearest neighbors over all columns, and :math:`a_i` is the class of neighbor i beyond what evidence alone
says of it. A record far from all neighbors is left to the evidence.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.nearest import MOST_NEAREST
from qmedoid.schema import MODERATE, RefusedError, RowNumbers, Values

__all__ = ["MOST_NEAREST", "Neighbors", "added", "weights"]

# A neighbor at distance 0 has a finite weight, and one at the length ℓ a weight of about 1.
_NEAREST = 0.05
_POWER = 3


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
    rows: Annotated[Codes, RowNumbers("N")]
    amounts: Annotated[Array, Values("N K", largest=MODERATE)]
    n_nearest: Annotated[int, Values(least=1, most=MOST_NEAREST)]
    length: Annotated[float, Values(least=1 / MODERATE, most=MODERATE)]
    by_rank: bool

    def validate(self) -> None:
        """Refuse stored neighbors that are fewer than the nearest of them."""
        if self.n_nearest > len(self.rows):
            raise RefusedError(f"n_nearest is {self.n_nearest}, and there are {len(self.rows)} neighbors")


def added(distances: Array, places: Codes, length: float, amounts: Array) -> Array:
    """What neighbors with these amounts (N, K) add to the outputs of rows, shape (n, K); of k nearest each, (n, k)."""
    return np.asarray(np.einsum("ij,ijk->ik", weights(distances, length), amounts[places]))


def weights(distances: Array, length: float) -> Array:
    """ω of neighbors at these distances, shape (n, k); 0 at infinite distance."""
    near = (distances / length + _NEAREST) ** -_POWER
    return np.asarray(near / (1.0 + near.sum(axis=1, keepdims=True)))
