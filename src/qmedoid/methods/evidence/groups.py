r"""Groups of columns of an evidence model: pairs and triples that explain what single columns do not.

Columns are cut at quantiles. Crossing the cells of two columns explains

.. math:: \sum_{\text{cells}} \Bigl(\frac{(\sum_{i\in\text{cell}} r_i)^2}{n_\text{cell}} - \bar{r^2}\Bigr)

of the residuals r that single columns leave; what chance alone would explain is taken off cell by cell, and so is what
either column explains by itself. All crossings together are a few matrix products.
"""

import math
from itertools import combinations

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.ties import TIE, stable_order
from qmedoid.methods.evidence.design import Blocks, Columns

_PAIR_CELLS = 6
_TRIPLE_CELLS = 4
# Pairs that are tried with every third column, at least.
_MIN_STEMS = 8
# Directions of the residuals of many classes that are looked at.
_MAX_RESIDUALS = 8
# Share of the rows that a bag chooses its groups on: so bags differ, and the other rows can judge what was chosen.
_GROUP_ROWS = 0.6


def bag_groups(
    blocks: Blocks, residuals: Array, rng: np.random.Generator, together: Codes | None
) -> tuple[list[Columns], Codes | None]:
    """Pairs and triples of a bag, from the residuals of single columns, shape (n, K); groups of rows stay together.

    Also the rows by which they were not chosen; None if they were not chosen by any.
    """
    columns, settings = blocks.varying, blocks.settings
    n_pairs, n_triples, judged = settings.n_pairs, settings.n_triples, None
    if "group" not in settings.blocks or len(columns) < 2:
        return [], None
    if settings.targeted:
        order = rng.permutation(len(residuals) if together is None else int(together.max()) + 1)
        some, others = np.split(order, [math.ceil(_GROUP_ROWS * len(order))])
        if together is not None:
            some, others = (np.flatnonzero(np.isin(together, part)) for part in (some, others))
        values = blocks.rows.ranks[some][:, list(columns)]
        found, judged = chosen_groups(values, residuals[some], n_pairs, n_triples), np.sort(others)
    else:
        found = drawn_groups(len(columns), n_pairs, n_triples, rng)
    named = [tuple(columns[place] for place in group) for group in found]
    return named, judged if judged is not None and len(judged) else None


def chosen_groups(Z: Array, residuals: Array, n_pairs: int, n_triples: int) -> list[Columns]:
    """The pairs and triples of the columns of Z that explain most of the residuals, of shape (n, K)."""
    residuals = _main_directions(residuals - residuals.mean(axis=0))
    cells = [_cells(column, _PAIR_CELLS) for column in Z.T]
    explained = _crossing_gains(cells, cells, residuals)
    alone = np.maximum(np.diag(explained), 0.0)
    gains = explained - alone[:, None] - alone[None, :]
    first, second = np.triu_indices(len(cells), 1)
    order = stable_order(-gains[first, second], float(np.abs(explained).max()))
    pairs: list[Columns] = [(int(first[place]), int(second[place])) for place in order]
    triples = _chosen_triples(Z, residuals, pairs[: max(_MIN_STEMS, n_triples)]) if n_triples else []
    return pairs[:n_pairs] + triples[:n_triples]


def drawn_groups(n_columns: int, n_pairs: int, n_triples: int, rng: np.random.Generator) -> list[Columns]:
    """Pairs and triples without regard to the classes."""
    groups: list[Columns] = []
    for size, wanted in ((2, n_pairs), (3, n_triples)):
        if n_columns <= 16:
            every = list(combinations(range(n_columns), size))
            groups += [every[place] for place in rng.permutation(len(every))[:wanted]]
        else:
            drawn = (tuple(sorted(rng.choice(n_columns, size, replace=False).tolist())) for _ in range(wanted))
            groups += list(dict.fromkeys(drawn))
    return groups


def _chosen_triples(Z: Array, residuals: Array, stems: list[Columns]) -> list[Columns]:
    if Z.shape[1] < 3:
        return []
    cells = [_cells(column, _TRIPLE_CELLS) for column in Z.T]
    gains = _crossing_gains([_crossed(cells[f], cells[g]) for f, g in stems], cells, residuals)
    best: dict[Columns, float] = {}
    for stem, (f, g) in enumerate(stems):
        for h in range(len(cells)):
            if h not in (f, g):
                triple = tuple(sorted((f, g, h)))
                best[triple] = max(best.get(triple, -np.inf), float(gains[stem, h]))
    triples = sorted(best)
    return [triples[place] for place in stable_order(np.array([-best[triple] for triple in triples]))]


def _cells(column: Array, n_cells: int) -> Array:
    """Membership of every row in the cells between quantiles, shape (n, cells); cells without rows are left out."""
    # An edge that is a value of the column is so up to rounding.
    edges = np.unique(np.quantile(column, np.arange(1, n_cells) / n_cells)) - TIE * np.abs(column).max()
    _, cell = np.unique(np.searchsorted(edges, column, side="right"), return_inverse=True)
    return np.asarray(cell[:, None] == np.arange(cell.max() + 1), dtype=np.float64)


def _crossed(left: Array, right: Array) -> Array:
    both = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
    return both[:, both.any(axis=0)]


def _crossing_gains(left: list[Array], right: list[Array], residuals: Array) -> Array:
    """What crossing each of `left` with each of `right` explains, shape (len(left), len(right))."""
    rows, columns = np.hstack(left), np.hstack(right)
    counts = rows.T @ columns
    squares = np.zeros_like(counts)
    for residual in residuals.T:
        squares += ((rows * residual[:, None]).T @ columns) ** 2
    by_chance = float((residuals**2).sum(axis=1).mean())
    gains = np.where(counts > 0, squares / np.maximum(counts, 1.0) - by_chance, 0.0)
    of_rows = np.add.reduceat(gains, _starts(left), axis=0)
    return np.asarray(np.add.reduceat(of_rows, _starts(right), axis=1))


def _starts(cells: list[Array]) -> Codes:
    return np.concatenate([[0], np.cumsum([part.shape[1] for part in cells])[:-1]]).astype(np.intp)


def _main_directions(residuals: Array) -> Array:
    if residuals.shape[1] <= _MAX_RESIDUALS:
        return residuals
    _, vectors = np.linalg.eigh(residuals.T @ residuals)
    return np.asarray(residuals @ vectors[:, -_MAX_RESIDUALS:])
