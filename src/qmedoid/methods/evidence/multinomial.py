r"""Multinomial regression with a ridge, for the weights of three or more classes.

It fits rows T along the principal directions of a design,

.. math:: \min_{b, \beta} -\sum_i \log p_{i,y_i} + \tfrac\lambda2 \sum_c |\beta_c|^2, \qquad
          p_i = \operatorname{softmax}(b + T_i\beta),

and again without each of some folds. L-BFGS needs few steps along the principal directions: there the curvature
is nearly diagonal, and known.
"""

from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np
from scipy.optimize import minimize

from qmedoid.arrays import Array, Codes, Flags, row_slices
from qmedoid.geometry.row_groups import group_folds, is_clear_gain
from qmedoid.kernels.cross_entropy import log_softmax, row_losses
from qmedoid.methods.calibration import fit_calibration
from qmedoid.methods.evidence.ridge import Stored

Weights = tuple[Array, Array]
"""Intercepts, shape (C,), and coefficients, (r, C)."""

# Folds of the out-of-fold outputs, which begin at the weights of all rows.
_N_FOLDS = 5
_MOST_STEPS = 60
# Steps of a fold at most, from the weights of all rows.
_FOLD_STEPS = 30
# Rows of a long table that λ is sought on.
_SEARCH_ROWS = 20_000
# Relative decrease of the loss at which L-BFGS stops.
_TOLERANCE = 1e-6
# Multiples of λ that are tried, the largest first.
_STRENGTHS: tuple[float, ...] = (64.0, 16.0, 4.0, 1.0)
# Relative decrease at which weights are good enough to compare values of λ.
_ROUGHLY = 1e-5
# Numbers of a block of rows: they stay in the cache for both products of a step.
_BLOCK_NUMBERS = 2**16
# Minimum gain in out-of-fold log-likelihood over the ridge, in standard errors.
_WORTH_IT = 1.0


def fit_multinomial(
    rotated: Array | Stored,
    codes: Codes,
    penalty: float,
    start: tuple[Array, Array],
    folds: Codes,
    row_weights: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Intercepts (C,) and coefficients (r, C) by rows T (n, r) from a start, and outputs (n, C) without each fold.

    λ is `penalty` or larger, by the likelihood of the first fold: the best λ of squared errors is often too small here.
    """
    rows, held, strengths = _Block(rotated, codes, row_weights), folds == 0, _STRENGTHS
    if (step := len(codes) // _SEARCH_ROWS) > 1:
        # Of a long table, λ is sought on some rows, and on all rows from there on down.
        few = _Block(rotated[::step], codes[::step], None if row_weights is None else row_weights[::step])
        start, strength = _with_best_penalty(few, held[::step], penalty / step, start, strengths)
        strengths = strengths[strengths.index(strength) :]
    own, strength = _with_best_penalty(rows, held, penalty, start, strengths)
    penalty *= strength
    fitted = rows.fit(penalty, own)
    out_of_fold = np.empty((len(codes), len(start[0])))
    for fold in range(folds.max() + 1):
        held = folds == fold
        begun = own if fold == 0 else fitted
        own = rows.part(~held).fit((1.0 - rows.share(held)) * penalty, begun, most_steps=_FOLD_STEPS)
        out_of_fold[held] = rows.part(held).outputs(own)
    return *fitted, out_of_fold


def _with_best_penalty(
    rows: "_Block", held: Flags, penalty: float, start: Weights, strengths: Sequence[float]
) -> tuple[Weights, float]:
    """Weights without the held rows that make them likeliest, and how much larger λ is: from the largest λ on down."""
    seen, unseen, share = rows.part(~held), rows.part(held), 1.0 - rows.share(held)
    best, lowest = (start, strengths[0]), np.inf
    for strength in strengths:
        start = seen.fit(share * strength * penalty, start, _ROUGHLY)
        loss = float(unseen.weighed(row_losses(unseen.outputs(start), unseen.codes)).mean())
        if not loss < lowest:
            break
        best, lowest = (start, strength), loss
    return best


def deal_folds(codes: Codes, groups: Codes | None, rng: np.random.Generator) -> Codes:
    """Fold of every row; rows of one group are in one fold."""
    return group_folds(np.arange(len(codes)) if groups is None else groups, codes, _N_FOLDS, rng)


def is_likelier(
    candidate: Array, plain: Array, codes: Codes, groups: Codes | None, row_weights: Array | None = None
) -> bool:
    """Whether out-of-fold outputs make the classes likelier than others do, both calibrated, beyond chance."""
    before, after = (
        row_losses(fit_calibration(-one, codes, "logistic", groups, row_weights).apply(-one), codes)
        for one in (plain, candidate)
    )
    gains = before - after if row_weights is None else row_weights * (before - after)
    return is_clear_gain(gains, groups, _WORTH_IT)


class _Block:
    """Some rows T of a table, their classes, the sum of squares of each direction over them, and weights of rows."""

    def __init__(self, rotated: Array | Stored, codes: Codes, row_weights: Array | None) -> None:
        self.rotated, self.rows, self.codes, self.row_weights = rotated, np.arange(len(codes)), codes, row_weights
        self.squares = np.zeros(rotated.shape[1])
        for part, block in self.blocks():
            counted = block if row_weights is None else row_weights[part, None] * block
            self.squares += np.einsum("ij,ij->j", counted, block)

    def part(self, chosen: Flags) -> "_Block":
        """Some of all rows; their squares are about as large as their share."""
        part, part_rows = copy(self), np.flatnonzero(chosen)
        if self.rotated.dtype == np.float64:  # short enough for a copy
            part.rotated, part_rows = self.rotated[part_rows], np.arange(len(part_rows))
        part.rows, part.codes, part.squares = part_rows, self.codes[chosen], self.share(chosen) * self.squares
        part.row_weights = None if self.row_weights is None else self.row_weights[chosen]
        return part

    def share(self, chosen: Flags) -> float:
        """What some of the rows count, of all."""
        return float(chosen.mean() if self.row_weights is None else np.average(chosen, weights=self.row_weights))

    @property
    def _total(self) -> float:
        return float(len(self.codes) if self.row_weights is None else self.row_weights.sum())

    def weighed(self, losses: Array) -> Array:
        """Losses of the rows times their weights."""
        return losses if self.row_weights is None else self.row_weights * losses

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Rows in double precision."""
        step, copied = max(1, _BLOCK_NUMBERS // max(1, self.rotated.shape[1])), self.rotated.dtype == np.float64
        for part in row_slices(len(self.rows), step):
            block = self.rotated[part] if copied else self.rotated[self.rows[part]]
            yield part, block.astype(np.float64, copy=False)

    def outputs(self, weights: Weights) -> Array:
        return np.concatenate([weights[0] + block @ weights[1] for _, block in self.blocks()])

    def fit(
        self, penalty: float, start: Weights, tolerance: float = _TOLERANCE, most_steps: int = _MOST_STEPS
    ) -> Weights:
        """Weights from a start."""
        n_directions, n_classes = start[1].shape
        # A typical curvature of each direction: in these units all of them are alike.
        curvature = 0.25 * (1.0 - 1.0 / n_classes) * np.concatenate([[self._total], self.squares])
        units = 1.0 / np.sqrt(curvature + penalty)[:, None]

        def loss(flat: Array) -> tuple[float, Array]:
            weights = flat.reshape(1 + n_directions, n_classes) * units
            gradient = np.vstack([np.zeros(n_classes), penalty * weights[1:]])
            total = 0.5 * penalty * float((weights[1:] ** 2).sum())
            for part, block in self.blocks():
                log_p, own = log_softmax(weights[0] + block @ weights[1:]), self.codes[part]
                missed, rows = np.exp(log_p), np.arange(len(own))
                missed[rows, own] -= 1.0
                gained = log_p[rows, own]
                if self.row_weights is not None:
                    missed *= self.row_weights[part, None]
                    gained = self.row_weights[part] * gained
                gradient[0] += missed.sum(axis=0)
                gradient[1:] += block.T @ missed
                total -= float(gained.sum())
            return total, (gradient * units).ravel()

        first = (np.vstack(start) / units).ravel()
        found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": most_steps, "ftol": tolerance})
        weights = found.x.reshape(1 + n_directions, n_classes) * units
        return weights[0], weights[1:]
