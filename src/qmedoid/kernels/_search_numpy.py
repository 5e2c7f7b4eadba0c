"""NumPy twin of the compiled configuration search (same names, same arguments as ``_search``).

A visit asks what becomes of the validation predictions when the feature of one anchor is replaced by each of many
candidates. All other features stay, so their share of every distance, norm and inner product is computed once per
visit; a candidate adds one column to it.
"""

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.kernels.medoid import TIE_TOLERANCE
from qmedoid.kernels.search import ANGLES, Candidates, FoldState

EPSILON = 1e-12
"""Guard of the denominators of the normalized channels, as in ``geometry.fusion``."""

# Bounds are lowered by this share, far more than the rounding of a sum.
BOUND_SLACK = 1e-9
# Codes summed in full before the bound is asked, the most promising first.
FIRST_ROWS = 4
# Scores that differ by less than their rounding are computed again, row by row; these are generous sizes of it.
DISTANCE_NOISE, ANGLE_NOISE, SHORT = 1e-9, 1e-6, 1e-3
# What is then still within this much of a tie is left to the definition.
TIE_NOISE = 1e-11
# Beyond these ratios of mean to deviation a column is left to the definition. A factor rounds every value anew.
WORST_CONDITION, WORST_CONDITION_FACTOR = 1e8, 1e3
# Squares of smaller numbers lose digits.
SMALLEST_VARIANCE = 1e-290


def fill_column(state: FoldState, anchor: int, column: Candidates) -> None:
    """Write the one candidate of `column` as the standardized feature of an anchor."""
    sample, val, condition = _standardized(state, column, 0, _terms(state.train, column), _terms(state.val, column))
    state.sample_z[anchor], state.val_z[anchor], state.condition[anchor] = sample, val, condition


def build_squared(state: FoldState) -> None:
    """Squared distances of the rows of each class over all features."""
    blocks = []
    for c in range(state.n_classes):
        z = state.sample_z[:, state.bounds[c] : state.bounds[c + 1]]
        block = np.zeros((z.shape[1], z.shape[1]))
        for column in z:
            block += (column[:, None] - column) ** 2
        blocks.append(block.ravel())
    state.squared = np.concatenate(blocks)
    state.slack = np.array([(len(state.sample_z) + 2) * 1e-15 * block.max(initial=0.0) for block in blocks])


def update_squared(state: FoldState, old: Array, new: Array) -> None:
    """Squared distances after the feature `old` on the medoid rows became `new`."""
    for c, block in enumerate(_square_blocks(state)):
        rows = slice(state.bounds[c], state.bounds[c + 1])
        peak = block.max(initial=0.0)
        gained = (new[rows, None] - new[rows]) ** 2
        block += gained - (old[rows, None] - old[rows]) ** 2
        state.slack[c] += 4e-15 * (peak + gained.max(initial=0.0))


def evaluate(
    state: FoldState,
    anchor: int,
    candidates: Candidates,
    confusion: npt.NDArray[np.int64],
    unsure: npt.NDArray[np.uint8],
) -> None:
    """Write the confusion matrix of the validation rows for each candidate in the place of an anchor's feature.

    It has the shape (n_candidates, C, C), true classes by predicted classes. `unsure` says whether rounding decides
    some prediction, so that the matrix may differ from the definition's.
    """
    visit = _Visit(state, anchor)
    train, val = _terms(state.train, candidates), _terms(state.val, candidates)
    for i in range(len(candidates.picks)):
        sample_z, val_z, condition = _standardized(state, candidates, i, train, val)
        condition = max(condition, visit.condition)
        unsure[i] = not np.isfinite(condition)
        if not unsure[i]:
            medoids = [visit.medoid(c, sample_z) for c in range(state.n_classes)]
            codes, unsure[i] = visit.predict(medoids, sample_z, val_z, condition)
            for c in range(state.n_classes):
                own = codes[state.val_bounds[c] : state.val_bounds[c + 1]]
                confusion[i, c] = np.bincount(own, minlength=state.n_classes)


def _terms(columns: Array, candidates: Candidates) -> tuple[Array, Array]:
    """Weighted columns of the members and their squares, each of shape (m, n)."""
    with np.errstate(over="ignore"):  # what overflows is left to the definition
        terms = columns[candidates.members] * candidates.weights[:, None]
        return terms, terms * terms


def _feature(terms: tuple[Array, Array], picks: Codes, factor: float, signed: bool) -> Array:
    """Feature of every row, shape (n,): added up in the order of ``geometry.features``, hence equal to the last bit."""
    weighted, squares = terms
    total = squares[picks[0]].copy()
    for f in picks[1:]:
        total += squares[f]
    norm: Array = factor * np.sqrt(total)
    if not signed:
        return norm
    total = weighted[picks[0]].copy()
    for f in picks[1:]:
        total += weighted[f]
    return np.where(total < 0, -norm, norm)


def _standardized(
    state: FoldState, candidates: Candidates, i: int, train: tuple[Array, Array], val: tuple[Array, Array]
) -> tuple[Array, Array, float]:
    """Candidate number i, standardized on the training rows: on medoid rows, on validation rows; its condition."""
    picks, factor = candidates.picks[i], float(candidates.factors[i])
    feature = _feature(train, picks, factor, state.signed)
    with np.errstate(all="ignore"):
        # Measured from one of the values, so that a constant column has a deviation of exactly 0.
        mean = feature[0] + np.mean(feature - feature[0])
        variance = float(np.mean((feature - mean) ** 2))
        scale, condition = _scale(float(mean), variance, len(feature), bool((feature == feature[0]).all()))
        if factor != 1.0 and condition > WORST_CONDITION_FACTOR:
            condition = np.inf
        sample = (feature[: state.bounds[-1]] - mean) / scale
        return sample, (_feature(val, picks, factor, state.signed) - mean) / scale, condition


def _scale(mean: float, variance: float, n_rows: int, constant: bool) -> tuple[float, float]:
    """Deviation by the rule of ``geometry.scaling.fit_standard``, and |mean| / deviation.

    Where another order of summation could turn a constant column into a varying one, the ratio is infinite.
    """
    rounding = (n_rows * np.finfo(np.float64).eps * mean) ** 2
    if constant or (variance <= 1e-4 * rounding and rounding > SMALLEST_VARIANCE):
        return 1.0, abs(mean) if abs(mean) <= WORST_CONDITION else np.inf
    if not max(1e4 * rounding, SMALLEST_VARIANCE) < variance < np.inf:
        return 1.0, np.inf
    scale = float(np.sqrt(variance))
    return scale, abs(mean) / scale if abs(mean) <= WORST_CONDITION * scale else np.inf


def _square_blocks(state: FoldState) -> list[Array]:
    """The squared distances of each class as a view of shape (n_c, n_c)."""
    sizes = np.diff(state.bounds)
    blocks = np.split(state.squared, np.cumsum(sizes**2)[:-1])
    return [block.reshape(size, size) for block, size in zip(blocks, sizes, strict=True)]


class _Visit:
    """All that the features other than one anchor's contribute, computed when first needed."""

    def __init__(self, state: FoldState, anchor: int) -> None:
        others = np.arange(len(state.sample_z)) != anchor
        self.state = state
        self.sample_z, self.val_z = state.sample_z[others], state.val_z[others]
        self.condition = float(state.condition[others].max(initial=0.0))
        self.val_squared = np.einsum("an,an->n", self.val_z, self.val_z)
        self.base_sums = self._base_sums(anchor)
        self.base_rows: dict[int, Array] = {}
        self.against: dict[int, tuple[Array, Array, float]] = {}

    def _base_sums(self, anchor: int) -> Array:
        r"""Squares of lower bounds of :math:`S_i = \sum_j \sqrt{b_{ij}}` over the features that stay."""
        own = self.state.sample_z[anchor]
        sums = []
        for c, block in enumerate(_square_blocks(self.state)):
            z = own[self.state.bounds[c] : self.state.bounds[c + 1]]
            base = np.maximum(block - (z[:, None] - z) ** 2 - self.state.slack[c], 0.0)
            sums.append(np.sqrt(base).sum(axis=1))
        bounds: Array = (np.concatenate(sums) * (1.0 - BOUND_SLACK)) ** 2
        bounds[self.state.repeated != 0] = np.inf  # the first of equal rows wins their tie
        return bounds

    def medoid(self, c: int, z: Array) -> int:
        r"""The medoid of a class when a column z joins the others (algorithm 4), as a position among the medoid rows.

        By Minkowski, :math:`\sum_j \sqrt{b_{ij} + (z_i - z_j)^2} \ge \sqrt{S_i^2 + T_i^2}` with
        :math:`T_i = \sum_j |z_i - z_j|`. Only rows whose bound is below the best total are summed in full.
        """
        low, high = self.state.bounds[c], self.state.bounds[c + 1]
        own = z[low:high]
        bound = self.base_sums[low:high] + (_absolute_sums(own) * (1.0 - BOUND_SLACK)) ** 2
        tried = np.argpartition(bound, FIRST_ROWS)[:FIRST_ROWS] if len(own) > FIRST_ROWS else np.arange(len(own))
        totals = self._totals(tried, low, own)
        limit = (totals.min() * (1.0 + BOUND_SLACK)) ** 2
        more = np.setdiff1d(np.flatnonzero(bound <= limit), tried)
        tried, totals = np.concatenate((tried, more)), np.concatenate((totals, self._totals(more, low, own)))
        least = totals.min()
        return int(low + tried[totals <= least + TIE_TOLERANCE * least].min())

    def _totals(self, rows: Codes, low: int, z: Array) -> Array:
        """Sum of distances of some rows of a class, numbered from `low`, to all rows of it."""
        totals = np.empty(len(rows))
        for i, row in enumerate(rows):
            base = self.base_rows.get(low + row)
            if base is None:
                others = self.sample_z[:, low : low + len(z)]
                base = ((others - others[:, row, None]) ** 2).sum(axis=0)
                self.base_rows[low + row] = base
            totals[i] = np.sqrt(base + (z - z[row]) ** 2).sum()
        return totals

    def predict(self, medoids: list[int], sample_z: Array, val_z: Array, condition: float) -> tuple[Codes, bool]:
        """Class of every validation row (algorithms 6 and 8), and whether rounding decides one of them."""
        state = self.state
        with np.errstate(all="ignore"):
            distance, angle, short = self._channels(medoids, sample_z, val_z)
            scores, share, angle_share = _fusion(state, distance, angle)
            noise = DISTANCE_NOISE * (1.0 + share)
            if state.angle:
                noise += (1.0 - state.alpha) * (ANGLE_NOISE + 1e-10 * condition) * angle_share
            close = ~(_gap(scores) > noise * state.multipliers.max()) | short
        codes: Codes = np.argmin(scores, axis=0)
        rows = np.flatnonzero(close)
        if len(rows) == 0:
            return codes, False
        records = np.vstack((self.val_z[:, rows], val_z[rows])).T
        codes[rows], unsure = careful_codes(
            state, records, np.vstack((self.sample_z[:, medoids], sample_z[medoids])).T, condition
        )
        return codes, unsure

    def _channels(self, medoids: list[int], sample_z: Array, val_z: Array) -> tuple[Array, Array, Flags]:
        """Distances and angles to each class, shape (C, n), and which rows are too near the origin for an angle."""
        state = self.state
        squared = np.empty((len(medoids), len(val_z)))
        angle = np.zeros_like(squared)
        norm = self.val_squared + val_z**2
        short = norm < SHORT**2 if state.angle else np.zeros(len(val_z), dtype=np.bool_)
        for c, row in enumerate(medoids):
            base, dot, medoid_norm = self._against(row)
            z = sample_z[row]
            squared[c] = base + (val_z - z) ** 2
            medoid_norm += z * z
            if state.angle:
                short |= medoid_norm < SHORT**2
            if state.angle == ANGLES["true"]:
                angle[c] = np.arccos(np.clip((dot + val_z * z) / (np.sqrt(norm) * np.sqrt(medoid_norm)), -1.0, 1.0))
            elif state.angle == ANGLES["printed"]:
                angle[c] = np.arccos(np.sqrt(np.minimum(squared[c] / (2.0 * (norm + medoid_norm)), 1.0)))
        return np.sqrt(squared), angle, short

    def _against(self, row: int) -> tuple[Array, Array, float]:
        """Squared distances and inner products of the validation rows with one medoid row, and its squared norm."""
        known = self.against.get(row)
        if known is None:
            medoid = self.sample_z[:, row]
            difference = self.val_z - medoid[:, None]
            known = np.einsum("an,an->n", difference, difference), medoid @ self.val_z, float(medoid @ medoid)
            self.against[row] = known
        return known


def _absolute_sums(z: Array) -> Array:
    r""":math:`T_i = \sum_j |z_i - z_j|` of every i in O(n log n): sorted value number i exceeds i others."""
    order = np.argsort(z)
    ranked = z[order]
    n = len(z)
    below = np.cumsum(ranked) - ranked
    sums = np.empty(n)
    sums[order] = ranked * (2.0 * np.arange(n) - n) + ranked.sum() - 2.0 * below
    return np.maximum(sums, 0.0)


def _fusion(state: FoldState, distance: Array, angle: Array) -> tuple[Array, Array, Array]:
    """Fusion scores of shape (C, n), and the reciprocal of the summed channels, each of shape (n,)."""
    share = 1.0 / (distance.sum(axis=0) + EPSILON)
    scores = distance * share
    angle_share = np.zeros_like(share)
    if state.angle:
        angle_share = 1.0 / (angle.sum(axis=0) + EPSILON)
        scores = state.alpha * scores + (1.0 - state.alpha) * (angle * angle_share)
    return scores * state.multipliers[:, None], share, angle_share


def _gap(scores: Array) -> Array:
    """How far the second best class is from the best, shape (n,)."""
    if len(scores) == 1:
        return np.full(scores.shape[1], np.inf)
    two = np.partition(scores, 1, axis=0)
    gap: Array = two[1] - two[0]
    return gap


def careful_codes(state: FoldState, records: Array, medoids: Array, condition: float) -> tuple[Codes, bool]:
    """Class of rows (n, A) close to a tie of medoids (C, A), by formulas exact at every angle, and if rounding decides.

    Classes with one and the same medoid tie exactly, whoever computes it, and the first of them wins: that is no doubt.
    `condition` is the worst of the features.
    """
    with np.errstate(all="ignore"):
        difference = records[:, None, :] - medoids
        distance = np.sqrt((difference**2).sum(axis=2)).T
        norms = np.sqrt((records**2).sum(axis=1))
        medoid_norms = np.sqrt((medoids**2).sum(axis=1))
        angle = np.zeros_like(distance)
        if state.angle == ANGLES["true"]:
            unit, medoid_unit = records / norms[:, None], medoids / medoid_norms[:, None]
            apart = np.sqrt(((unit[:, None, :] - medoid_unit) ** 2).sum(axis=2))
            together = np.sqrt(((unit[:, None, :] + medoid_unit) ** 2).sum(axis=2))
            angle = 2.0 * np.arctan2(apart, together).T
        elif state.angle == ANGLES["printed"]:
            both = 2.0 * (norms**2 + (medoid_norms**2)[:, None])
            angle = np.arccos(np.sqrt(np.minimum(distance**2 / both, 1.0)))
        scores, share, angle_share = _fusion(state, distance, angle)
        noise = 1.0 + (norms + medoid_norms.max()) * share
        if state.angle:
            amplified = (1.0 + 0.1 * condition) * (1.0 / norms + 1.0 / medoid_norms.min())
            # The arc cosine of a number near 1 keeps half of its digits; the formula of the true angle keeps all.
            blunt = 1.0 / np.maximum(np.sin(angle).min(axis=0), 1e-4) if state.angle == ANGLES["printed"] else 1.0
            noise += (1.0 - state.alpha) * angle_share * (blunt + amplified)
        codes: Codes = np.argmin(scores, axis=0)
        tied = ~(scores - scores.min(axis=0) > TIE_NOISE * noise * state.multipliers.max())
    same = (medoids[codes][:, None, :] == medoids).all(axis=2).T
    same &= state.multipliers[:, None] == state.multipliers[codes]
    return codes, bool((tied & ~same).any())
