"""The bags of an evidence model of a wide table: each has terms of the columns that are worth most to it.

A column that was chosen because it fits the classes of some rows fits these rows better than new ones, and with very
many columns to choose from much better. So rows are dealt into parts, and there is a bag for each: its columns and
groups of columns are chosen without the rows of its part, which then judge λ. What a row is told out of fold comes
from the bag that was chosen without it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.groups import most_worth
from qmedoid.geometry.row_groups import group_folds
from qmedoid.kernels.ties import first_smallest
from qmedoid.methods.evidence.bag import Bag, BagFits, chosen_groups
from qmedoid.methods.evidence.design import Blocks, Columns
from qmedoid.methods.evidence.long_table import LongTable
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
    row_groups = np.arange(len(targets)) if together is None else together.groups
    codes = targets.argmax(axis=1) if targets.shape[1] > 1 else (targets[:, 0] > 0).astype(np.intp)
    part = group_folds(row_groups, codes, min(_N_PARTS, int(row_groups.max()) + 1), rng)
    fits = BagFits(blocks, targets, together, rng, table)
    chosen = [
        (_chosen(blocks, targets, places[number % len(places)], part == number, columns), part == number)
        for number, columns in _best_columns(blocks, targets, part, together).items()
    ]
    report(0.25)
    path = _shared_path(chosen, targets, together) if table is None and len(targets) < _FEW_ROWS else None
    for number, ((narrow, of_bag, groups), judged) in enumerate(chosen):
        unseen = judged
        if table is not None:
            unseen = np.ones(len(table.targets), dtype=np.bool_)
            unseen[table.sample] = judged
        fits.add(narrow, of_bag, groups, np.flatnonzero(judged), lambda _: None, path, unseen)
        report(0.25 + 0.7 * (number + 1) / len(chosen))
    return fits.best()


Chosen = tuple[Blocks, Codes, list[Columns]]
"""What a bag looks at: its blocks, medoids and groups of columns."""


def _shared_path(chosen: Sequence[tuple[Chosen, Flags]], targets: Array, together: RowGroups | None) -> RidgePath:
    """Errors of all rows along the path of λ, each by the bag that was chosen without it: few rows judge together."""
    counts = np.array([judged.sum() for _, judged in chosen], dtype=np.float64)[:, None]
    paths = [
        fit_ridge(blocks.design(places, groups).features, targets, np.flatnonzero(judged), together=together).path
        for (blocks, places, groups), judged in chosen
    ]
    errors = np.array([path.errors for path in paths]) * counts / counts.sum()
    return RidgePath(paths[0].penalties, errors.sum(axis=0))


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
            path = fit_ridge(features, targets, judged, together=together).path
            errors[place] += len(judged) * float(path.errors.min())
    count = counts[first_smallest(errors)]
    return {number: best[:count] for number, best in found.items()}


def _chosen(blocks: Blocks, targets: Array, places: Codes, judged: Flags, best: Codes) -> Chosen:
    """Terms of the best columns, and groups of columns that rows choose which are not judged."""
    settings, curved, some = blocks.settings, np.sort(best[:_MOST_CURVED]), np.flatnonzero(~judged)
    many_valued = curved[np.isin(curved, blocks.many_valued)]
    narrow = replace(blocks, chosen=tuple(np.sort(best).tolist()), many_valued=tuple(many_valued.tolist()))
    residuals = targets[some] - targets[some].mean(axis=0)
    if (alone := narrow.design(places)).parts:
        features = alone.features[some] - alone.features[some].mean(axis=0)
        residuals = targets[some] - fit_ridge(features, targets[some]).out_of_fold
    values = blocks.rows.ranks[np.ix_(some, curved)]
    found = chosen_groups(values, residuals, settings.n_pairs, settings.n_triples)
    return narrow, places, [tuple(curved[list(group)].tolist()) for group in found]


def wide_note(bags: Sequence[Bag], n_columns: int) -> str:
    """What was limited, in words."""
    count = sum(part.block == "linear" for part in bags[0].design.parts)
    return (
        f"of {n_columns:,} columns that vary, each of the {len(bags)} models of the evidence has terms of the "
        f"{count:,} that are worth most to rows that do not judge it; the others count in the distances to medoids and "
        "neighbors"
    )
