r"""Ridge regression on a table of more rows than a design fits in memory for: sums over blocks of rows.

Features Φ of a block are made when they are needed, and forgotten. A first pass sums up
:math:`\Phi^\top \Phi`, :math:`\Phi^\top \tilde y` and the means; the eigenvectors of the first are the principal
directions V. A second one measures leave-one-out errors along the path of λ, on some rows. A third keeps the largest
directions of all rows, :math:`T = \Phi V`, in single precision, for a refit of three or more classes, and leaves every
row out. All sums are made in double precision.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.geometry.row_groups import part_of
from qmedoid.geometry.scaling import RankScaling, Scaling
from qmedoid.methods.evidence.design import Design, DesignPart, Scaled, block_scales
from qmedoid.methods.evidence.part import CLIP
from qmedoid.methods.evidence.ridge import Missing, Ridge, RidgePath, RowGroups, penalties_for, principal

_BLOCK_ROWS = 1024
# Rows that λ is judged by, at most.
_JUDGING_ROWS = 20_000
# Directions that a refit keeps: at most so many, and none that the ridge shrinks below this share.
_MAX_DIRECTIONS = 400
_LEAST_SHARE = 0.003
# Progress when the sums are made, and when λ is chosen.
_SUMS_SHARE, _ERRORS_SHARE = 0.4, 0.7


def kept_directions(sizes: Array, penalty: float) -> Codes:
    """Places of the directions that a refit keeps: the last of those that count."""
    return np.flatnonzero(sizes > _LEAST_SHARE * penalty)[-_MAX_DIRECTIONS:]


RowBlock = tuple[Codes | slice, RowGroups | None]
"""Rows that are in memory together, and which of them are left out together; no group is in two blocks."""


class LongTable:
    """Rows of a long table, which are scaled block by block.

    Parameters
    ----------
    X : ndarray of shape (n, M)
    targets : ndarray of shape (n, K)
    groups : ndarray of shape (n,) or None
        Rows of one group are left out together.
    sample : ndarray of shape (m,)
        Rows that medoids and groups of columns were sought among.
    scalings : tuple of RankScaling and Scaling
    row_weights : ndarray of shape (n,) or None
        What every row counts in the losses, 1 in the mean.
    """

    def __init__(
        self,
        X: Array,
        targets: Array,
        groups: Codes | None,
        sample: Codes,
        scalings: tuple[RankScaling, Scaling],
        row_weights: Array | None = None,
    ) -> None:
        self.X, self.targets, self.groups, self.sample = X, targets, groups, sample
        self.scalings, self.row_weights = scalings, row_weights
        self.means: Array = np.average(targets, axis=0, weights=row_weights)
        # Equal rows that count differently are not left out alike.
        self.blocks = list(row_blocks(X if row_weights is None else np.column_stack([X, row_weights]), groups))

    def scaled(self, rows: Codes | slice) -> Scaled:
        """Some rows, scaled both ways."""
        return scaled_rows(self.X[rows], *self.scalings)

    def fit_ridge(
        self,
        parts: Sequence[DesignPart],
        medoids: Scaled,
        judged: Codes | None,
        rng: np.random.Generator,
        progress: Callable[[float], None] = lambda _: None,
    ) -> tuple[Design, Ridge]:
        """Design of all rows and its ridge, see `fit_ridge`; `judged` are rows of the sample."""
        n, means = len(self.X), self.means
        design, gram, along = self._sums(parts, medoids, lambda done: progress(_SUMS_SHARE * done))
        sizes, directions = principal(gram)
        inner = directions.T @ along / np.sqrt(sizes)[:, None]
        judging = part_of_progress(progress, _SUMS_SHARE, _ERRORS_SHARE)
        errors = self._errors(design, medoids, sizes, directions, inner, judged, rng, judging)
        path = RidgePath(penalties_for(n), errors)
        penalty = float(path.penalties[path.place])
        kept = kept_directions(sizes, n * penalty) if self.targets.shape[1] > 1 else np.arange(0)
        shrunk = n * penalty / (sizes + n * penalty)
        rotated, out_of_fold = np.empty((n, len(kept)), dtype=np.float32), np.empty(self.targets.shape)
        for number, (at, alike) in enumerate(self.blocks, 1):
            rows = self._rotated(design, medoids, directions, at)
            rotated[at] = rows[:, kept]
            missing = self._missing(rows, sizes, inner, at, alike)
            missed = missing.out_of_fold(shrunk, same_intercept=True)
            if self.row_weights is not None:
                missed /= np.sqrt(self.row_weights[at])[:, None]
            out_of_fold[at] = self.targets[at] - missed
            progress(_ERRORS_SHARE + (1.0 - _ERRORS_SHARE) * number / len(self.blocks))
        coefficients = np.sqrt(sizes)[:, None] * inner / (sizes + n * penalty)[:, None]
        ridge = Ridge(penalty, path, means, out_of_fold, sizes, directions, rotated, coefficients)
        return design, ridge

    def _sums(
        self, parts: Sequence[DesignPart], medoids: Scaled, progress: Callable[[float], None]
    ) -> tuple[Design, Array, Array]:
        """The design, ΦᵀΦ and Φᵀy of all rows."""
        ends = np.cumsum([0, *(part.n_features for part in parts)])
        places = [slice(*pair) for pair in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        n, p = len(self.X), int(ends[-1])
        # Near enough to the means for sums of squares about them to be exact.
        near = [part.values(self.scaled(self.sample[:_BLOCK_ROWS]), medoids).mean(axis=0) for part in parts]
        off = [np.zeros(len(center)) for center in near]
        gram, along, sums = np.zeros((p, p)), np.zeros((p, self.targets.shape[1])), np.zeros(p)
        centered, u = self.targets - self.means, None
        for number, (at, _) in enumerate(self.blocks, 1):
            scaled = self.scaled(at)
            u = None if self.row_weights is None else self.row_weights[at]
            features = np.empty((len(scaled.ranks), p))
            for part, place, center, total in zip(parts, places, near, off, strict=True):
                values = part.values(scaled, medoids) - center
                total += values.sum(axis=0) if u is None else u @ values
                features[:, place] = part.features(values)
            counted = features if u is None else u[:, None] * features
            gram += counted.T @ features
            along += counted.T @ centered[at]
            sums += counted.sum(axis=0)
            progress(number / len(self.blocks))
        gram -= np.outer(sums, sums) / n
        scales = block_scales(parts, places, np.diag(gram) / n)
        by_feature = np.repeat(scales, np.diff(ends))
        centers = [center + total / n for center, total in zip(near, off, strict=True)]
        design = Design(tuple(parts), tuple(centers), tuple(scales), tuple(places), np.empty((0, p)))
        return design, gram * np.outer(by_feature, by_feature), along * by_feature[:, None]

    def _rotated(self, design: Design, medoids: Scaled, directions: Array, rows: Codes | slice) -> Array:
        """T of some rows, along all directions."""
        scaled = self.scaled(rows)
        features = np.empty((len(scaled.ranks), len(directions)))
        for part, center, scale, place in zip(design.parts, design.centers, design.scales, design.places, strict=True):
            features[:, place] = scale * part.features(part.values(scaled, medoids) - center)
        return np.asarray(features @ directions)

    def _missing(
        self, rotated: Array, sizes: Array, inner: Array, at: Codes | slice, alike: RowGroups | None
    ) -> Missing:
        centered, units, u = self.targets[at] - self.means, rotated / np.sqrt(sizes), None
        if self.row_weights is not None:
            u = self.row_weights[at]
            roots = np.sqrt(u)[:, None]
            centered, units = roots * centered, roots * units
        return Missing(units, centered, alike, inner, len(self.X), u)

    def _errors(
        self,
        design: Design,
        medoids: Scaled,
        sizes: Array,
        directions: Array,
        inner: Array,
        judged: Codes | None,
        rng: np.random.Generator,
        progress: Callable[[float], None],
    ) -> Array:
        """Mean squared leave-one-out error of some rows for every λ, shape (L,).

        They are rows that have not chosen groups of columns: those outside of the sample, and those judged in it.
        """
        free = np.ones(len(self.X), dtype=np.bool_)
        if judged is not None:
            free[self.sample] = False
            free[self.sample[judged]] = True
        # Whole groups, in the order in which they are drawn.
        groups = np.arange(len(self.X)) if self.groups is None else self.groups
        order = rng.permutation(int(groups.max()) + 1)[groups]
        rows = np.flatnonzero(free)
        rows = rows[np.argsort(order[rows], kind="stable")]
        if len(rows) > _JUDGING_ROWS:
            rows = rows[order[rows] <= order[rows[_JUDGING_ROWS - 1]]]
        rows = np.sort(rows)
        n, penalties = len(self.X), penalties_for(len(self.X))
        errors = np.zeros(len(penalties))
        blocks = list(row_blocks(self.X, part_of(self.groups, rows), rows))
        for done, (at, alike) in enumerate(blocks):
            missing = self._missing(self._rotated(design, medoids, directions, at), sizes, inner, at, alike)
            for number, penalty in enumerate(penalties):
                errors[number] += missing.squared_errors(n * penalty / (sizes + n * penalty)).sum()
                progress((done + (number + 1) / len(penalties)) / len(blocks))
        return errors / len(rows)


def part_of_progress(report: Callable[[float], None], begin: float, end: float) -> Callable[[float], None]:
    """Progress of a part that takes a fit from one fraction done to another."""
    return lambda done: report(begin + (end - begin) * done)


def scaled_rows(X: Array, rank_scaling: RankScaling, linear_scaling: Scaling) -> Scaled:
    """Raw rows, scaled both ways."""
    return Scaled(rank_scaling.apply(X), np.clip(linear_scaling.apply(X), -CLIP, CLIP))


def row_blocks(X: Array, groups: Codes | None, rows: Codes | None = None) -> Iterator[RowBlock]:
    """Blocks of some rows of X, all by default, of whole groups; `groups` has a number for each of these rows."""
    rows = np.arange(len(X)) if rows is None else rows
    if groups is None:
        yield from ((rows[part], None) for part in row_slices(rows, _BLOCK_ROWS))
        return
    order = np.argsort(groups, kind="stable")
    # A group belongs to the block that its first row falls into.
    counts = np.bincount(groups)
    starts = np.cumsum(counts) - counts
    cuts = np.flatnonzero(np.diff(starts // _BLOCK_ROWS)) + 1
    for part in np.split(order, starts[cuts]):
        chosen = np.sort(part)
        own = part_of(groups, chosen)
        yield rows[chosen], None if own is None else RowGroups(own, X[rows[chosen]])
