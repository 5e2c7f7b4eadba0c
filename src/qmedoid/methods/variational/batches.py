r"""Batches whose expected loss is the loss over all rows, also where a class is rare.

A batch takes :math:`b_c` rows of every class, at least a fixed share of the batch, and gives each of them the weight
:math:`\pi_c/b_c`. So rare classes are seen at every step, and yet the loss keeps the true prior.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.methods.variational.model import Batch, Network

Sampling = Literal["importance", "uniform"]
SAMPLINGS: tuple[Sampling, ...] = ("importance", "uniform")

# A class gets at least 1/(3C) of a batch, if it has as many rows.
_SHARE = 3


@dataclass(frozen=True)
class BatchObjective:
    """The loss of a network on batches of a data set.

    Attributes
    ----------
    network : Network
    data : Batch
        All rows, each with its weight in the loss over all of them.
    draw_rows : callable
        Row numbers of a batch and their weights.
    """

    network: Network
    data: Batch
    draw_rows: Callable[[np.random.Generator], tuple[Codes, Array]]

    def draw(self, rng: np.random.Generator) -> Batch:
        """The batch of the next step."""
        rows, weights = self.draw_rows(rng)
        offset = self.data.offset
        return Batch(self.data.inputs[rows], self.data.codes[rows], weights, None if offset is None else offset[rows])

    def value(self, theta: Array, batch: Batch) -> float:
        """Loss on a batch."""
        return self.network.loss(theta, batch)

    def value_and_gradient(self, theta: Array, batch: Batch) -> tuple[float, Array]:
        """Loss on a batch and its gradient."""
        return self.network.loss_and_gradient(theta, batch)


def batch_objective(
    network: Network, data: Batch, class_weights: Array, batch_size: int, sampling: Sampling
) -> BatchObjective:
    """The objective with batches of about `batch_size` rows; all rows where there are no more than that."""
    n = len(data.codes)
    if batch_size >= n:
        everything = np.arange(n)
        return BatchObjective(network, data, lambda _: (everything, data.weights))
    if sampling == "uniform":
        total = class_weights[data.codes].sum() / n

        def uniform(rng: np.random.Generator) -> tuple[Codes, Array]:
            rows = rng.choice(n, batch_size, replace=False)
            return rows, class_weights[data.codes[rows]] / (batch_size * total)

        return BatchObjective(network, data, uniform)
    members = [np.flatnonzero(data.codes == c) for c in range(len(class_weights))]
    counts = batch_counts(np.array([len(rows) for rows in members]), batch_size)
    shares = np.array([data.weights[rows].sum() for rows in members])
    present = [c for c in range(len(members)) if counts[c]]
    weights = np.concatenate([np.full(counts[c], shares[c] / counts[c]) for c in present])

    def importance(rng: np.random.Generator) -> tuple[Codes, Array]:
        drawn = [members[c][rng.choice(len(members[c]), counts[c], replace=False, shuffle=False)] for c in present]
        return np.concatenate(drawn), weights

    return BatchObjective(network, data, importance)


def batch_rows(codes: Codes, n_classes: int, batch_size: int, sampling: Sampling) -> int:
    """Rows of every batch of a data set: about `batch_size`, or all where there are no more."""
    if batch_size >= len(codes):
        return len(codes)
    return (
        batch_size
        if sampling == "uniform"
        else int(batch_counts(np.bincount(codes, minlength=n_classes), batch_size).sum())
    )


def batch_counts(sizes: Codes, batch_size: int) -> Codes:
    """Rows of each class in a batch: in proportion, but for rare classes at least B/(3C) or all they have."""
    least = np.minimum(sizes, -(-batch_size // (_SHARE * len(sizes))))
    proportional = np.round(batch_size * sizes / sizes.sum()).astype(np.intp)
    counts: Codes = np.minimum(np.maximum(proportional, least), sizes)
    return counts


def row_weights(codes: Codes, class_weights: Array) -> Array:
    """Weight of every row in the loss over all rows; they add up to 1."""
    weights = class_weights[codes]
    return np.asarray(weights / weights.sum())
