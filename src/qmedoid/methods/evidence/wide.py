"""The bags of an evidence model of a wide table: each has terms of the columns that are worth most to it.

A column that was chosen because it fits the classes of some rows fits these rows better than new ones, and with very
many columns to choose from much better. So rows are dealt into parts, and there is a bag for each: its columns and
groups of columns are chosen without the rows of its part, which then judge λ. What a row is told out of fold comes
from the bag that was chosen without it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.column_worth import most_worth
from qmedoid.geometry.row_groups import group_folds
from qmedoid.kernels.ties import first_smallest
from qmedoid.methods.evidence.bag import Bag, chosen_groups, drawn_groups, fit_bag, multinomial_bag
from qmedoid.methods.evidence.design import Blocks, Columns, Design
from qmedoid.methods.evidence.long_table import LongTable
from qmedoid.methods.evidence.multinomial import deal_folds, is_likelier
from qmedoid.methods.evidence.ridge import RidgePath, RowGroups, fit_ridge

# Numbers of columns that are tried, and those at most that have nearnesses of their own or are crossed in groups.
_COUNTS = (12, 40, 125, 400, 1200)
_MOST_CURVED = 125
_N_PARTS = 5
# With fewer rows, those of a single part are too few to judge λ by.
_FEW_ROWS = 1000


def fit_wide_bags(
    blocks: Blocks,
    targets: Array,
    places: Sequence[Codes],
    together: RowGroups | None,
    rng: np.random.Generator,
    report: Callable[[float], None],
    table: LongTable | None = None,
) -> list[Bag]:
    """Fit the bags of a wide table; see `fit_bags`."""
    settings = blocks.settings
    row_groups = np.arange(len(targets)) if together is None else together.groups
    codes = targets.argmax(axis=1) if targets.shape[1] > 1 else (targets[:, 0] > 0).astype(np.intp)
    part = group_folds(row_groups, codes, min(_N_PARTS, int(row_groups.max()) + 1), rng)
    all_targets, all_groups, all_weights = (
        (targets, None if together is None else row_groups, blocks.row_weights)
        if table is None
        else (table.targets, table.groups, table.row_weights)
    )
    all_codes = all_targets.argmax(axis=1)
    folds = deal_folds(all_codes, all_groups, rng) if settings.multinomial and targets.shape[1] > 1 else None
    chosen = [
        _chosen(blocks, targets, places[number % len(places)], part == number, columns, rng)
        for number, columns in _best_columns(blocks, targets, part, together).items()
    ]
    report(0.25)
    path = _shared_path(chosen, targets, together) if table is None and len(targets) < _FEW_ROWS else None
    penalties = None if path is None else path.penalties[[path.chosen(settings.selection)]]
    bags, refits = [], []
    for number, one in enumerate(chosen):
        judged = np.flatnonzero(one.judged)
        if table is None:
            design, unseen = one.design(), one.judged
            ridge = fit_ridge(
                design.features, targets, settings.selection, judged, penalties, together, same_intercept=True,
                row_weights=all_weights,
            )  # fmt: skip
            bag = fit_bag(design, ridge, targets, settings.logistic, together, None, all_weights)
        else:
            parts = one.blocks.parts(one.places, one.groups)
            design, ridge = table.fit_ridge(parts, blocks.medoids, settings.selection, judged, rng)
            bag = fit_bag(design, ridge, all_targets, settings.logistic, None, table.blocks, all_weights)
            unseen = np.ones(len(all_targets), dtype=np.bool_)
            unseen[table.sample] = one.judged
        bags.append(bag._replace(unseen=unseen, path=ridge.path if path is None else path))
        if folds is not None:
            refitted = multinomial_bag(design, ridge, all_codes, folds, all_weights)
            refits.append(refitted._replace(unseen=unseen, path=bags[-1].path))
        report(0.25 + 0.7 * (number + 1) / len(chosen))
    plain = mean_out_of_fold(bags)
    if refits and is_likelier(mean_out_of_fold(refits), plain, all_codes, all_groups, all_weights):
        return refits
    return bags


class _Chosen(NamedTuple):
    """What a bag looks at: its blocks, medoids and groups of columns, and the rows that have chosen none of them."""

    blocks: Blocks
    places: Codes
    groups: list[Columns]
    judged: Flags

    def design(self) -> Design:
        return self.blocks.design(self.places, self.groups)


def _shared_path(chosen: Sequence[_Chosen], targets: Array, together: RowGroups | None) -> RidgePath:
    """Errors of all rows along the path of λ, each by the bag that was chosen without it: few rows judge together."""
    counts = np.array([one.judged.sum() for one in chosen], dtype=np.float64)[:, None]
    paths = [
        fit_ridge(one.design().features, targets, "best", np.flatnonzero(one.judged), together=together).path
        for one in chosen
    ]
    errors, deviations = (np.array([path[place] for path in paths]) * counts / counts.sum() for place in (1, 2))
    return RidgePath(paths[0].penalties, errors.sum(axis=0), np.sqrt((deviations**2).sum(axis=0)))


def mean_out_of_fold(bags: Sequence[Bag]) -> Array:
    """Mean of the leave-one-out outputs of the bags that have chosen no column by a row, shape (n, K)."""
    if bags[0].unseen is None:
        return np.asarray(np.mean([bag.out_of_fold for bag in bags], axis=0))
    unseen = np.array([bag.unseen for bag in bags], dtype=np.float64)[:, :, None]
    total = np.sum([mask * bag.out_of_fold for mask, bag in zip(unseen, bags, strict=True)], axis=0)
    return np.asarray(total / unseen.sum(axis=0))


def _best_columns(blocks: Blocks, targets: Array, part: Codes, together: RowGroups | None) -> dict[int, Codes]:
    """For every part the columns that are worth most to the other rows, the best first, as many as predict it best."""
    columns, ranks = np.array(blocks.varying), blocks.rows.ranks
    counts = sorted({min(count, len(columns)) for count in _COUNTS})
    found, errors = dict[int, Codes](), np.zeros(len(counts))
    for number in np.unique(part).tolist():
        some, judged = np.flatnonzero(part != number), np.flatnonzero(part == number)
        sizes = None if together is None else together.sizes[some]
        found[number] = columns[most_worth(ranks[some][:, columns], targets[some], counts[-1], sizes)]
        for place, count in enumerate(counts):
            features = ranks[:, found[number][:count]]
            features = (features - features.mean(axis=0)) / np.sqrt(count)
            path = fit_ridge(features, targets, blocks.settings.selection, judged, together=together).path
            errors[place] += len(judged) * float(path.errors.min())
    count = counts[first_smallest(errors)]
    return {number: best[:count] for number, best in found.items()}


def _chosen(
    blocks: Blocks, targets: Array, places: Codes, judged: Flags, best: Codes, rng: np.random.Generator
) -> _Chosen:
    """Terms of the best columns, and groups of columns that rows choose which are not judged."""
    settings, curved, some = blocks.settings, np.sort(best[:_MOST_CURVED]), np.flatnonzero(~judged)
    many_valued = curved[np.isin(curved, blocks.many_valued)]
    narrow = replace(blocks, chosen=tuple(np.sort(best).tolist()), many_valued=tuple(many_valued.tolist()))
    if "group" not in settings.blocks:
        return _Chosen(narrow, places, [], judged)
    if settings.targeted:
        residuals = targets[some] - targets[some].mean(axis=0)
        if (alone := narrow.design(places)).parts:
            features = alone.features[some] - alone.features[some].mean(axis=0)
            residuals = targets[some] - fit_ridge(features, targets[some], settings.selection).out_of_fold
        values = blocks.rows.ranks[np.ix_(some, curved)]
        found = chosen_groups(values, residuals, settings.n_pairs, settings.n_triples)
    else:
        found = drawn_groups(len(curved), settings.n_pairs, settings.n_triples, rng)
    return _Chosen(narrow, places, [tuple(curved[list(group)].tolist()) for group in found], judged)


def wide_note(bags: Sequence[Bag], n_columns: int) -> str:
    """What was limited, in words."""
    count = sum(part.block == "linear" for part in bags[0].design.parts)
    return (
        f"of {n_columns:,} columns that vary, each of the {len(bags)} models of the evidence has terms of the "
        f"{count:,} that are worth most to rows that do not judge it; the others count in the distances to medoids and "
        "neighbors"
    )
