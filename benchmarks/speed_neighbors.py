"""Neighbors under a learnt metric: queries per core-second in cells, by brute force and by scikit-learn's trees.

Run ``python benchmarks/speed_neighbors.py`` (some minutes; ``--rows 10000`` for a first look). It reads
``covertype.parquet`` in the folder ``QMEDOID_DATA``. The metric is learnt once, from 8,000 rows and the frequencies of
the classes; then each table takes as many rows of covertype and looks for the 16 nearest of 1,000 further rows.
``recall`` is the share of the true neighbors that the cells around a record hold. The log-losses are those of the
frequencies corrected by the mean vote of these neighbors, times the gain that the queries like best.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from sklearn.neighbors import BallTree, KDTree
from threadpoolctl import threadpool_limits

from _timing import RESULTS, core_seconds, write_table
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.kernels.nearest import CellSearch, cell_centers, cells_of, nearest_squared
from qmedoid.methods.evidence.design import fit_rank_scaling
from qmedoid.methods.neighbors.fit import N_NEAREST, fit_neighbors
from qmedoid.methods.neighbors.part import averaged

SIZES, N_LEARNT, N_QUERIES = (10_000, 30_000, 100_000, 300_000), 8_000, 1_000
TREES = {"kd_tree": KDTree, "ball_tree": BallTree}


def covertype(n_rows):
    """The first rows of covertype in a random order, and their classes."""
    table = pd.read_parquet(Path(os.environ["QMEDOID_DATA"]) / "covertype.parquet")
    order = np.random.default_rng(0).permutation(len(table))[:n_rows]
    codes = np.unique(table.iloc[:, -1], return_inverse=True)[1].astype(np.intp)
    return table.iloc[order, :-1].to_numpy(float), codes[order]


def learnt_metric(X, codes, prior):
    scores = np.tile(prior, (len(codes), 1))
    return fit_neighbors(X, codes, scores, fit_rank_scaling(X), np.random.default_rng(0))[0]


def log_loss(distances, places, votes, length, prior, codes):
    moved = averaged(distances, places, length, votes)
    return minimize_scalar(lambda gain: row_losses(prior + gain * moved, codes).mean(), (0.0, 2.0)).fun


def compare(n_rows, rows, codes, queries, query_codes, length, prior):
    votes = np.eye(len(prior))[codes] - np.exp(prior)
    build = core_seconds(lambda: cell_centers(rows, np.random.default_rng(0)), 1)
    search = CellSearch(rows, build.result, cells_of(rows, build.result))
    cells = core_seconds(lambda: search.nearest_squared(queries, k=N_NEAREST), 5)
    single = core_seconds(lambda: [search.nearest_squared(query[None], k=N_NEAREST) for query in queries[:200]], 3)
    brute = core_seconds(lambda: nearest_squared(queries, rows, k=N_NEAREST), 3)
    trees = {}
    for name, kind in TREES.items():
        tree = kind(rows)
        trees[f"{name}_per_s"] = 200 / core_seconds(lambda tree=tree: tree.query(queries[:200], k=N_NEAREST), 1).core
    found, true = cells.result[1], brute.result[1]
    losses = [
        log_loss(np.sqrt(squared), places, votes, length, prior, query_codes)
        for squared, places in (brute.result, cells.result)
    ]
    return {
        "rows": n_rows,
        "columns": rows.shape[1],
        "cells": len(search.centers),
        "build_s": build.core,
        "cells_per_s": len(queries) / cells.core,
        "one_by_one_per_s": 200 / single.core,
        "brute_per_s": len(queries) / brute.core,
        **trees,
        "recall": float(np.mean([np.isin(one, other).mean() for one, other in zip(found, true, strict=True)])),
        "log_loss_brute": float(losses[0]),
        "log_loss_cells": float(losses[1]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=list(SIZES), choices=list(SIZES))
    args = parser.parse_args()
    X, codes = covertype(max(args.rows) + N_QUERIES)
    prior = np.log(np.bincount(codes) / len(codes))
    with threadpool_limits(limits=1):
        model = learnt_metric(X[:N_LEARNT], codes[:N_LEARNT], prior)
        x = model.points(X)
        queries, query_codes = x[-N_QUERIES:], codes[-N_QUERIES:]
        rows = [compare(n, x[:n], codes[:n], queries, query_codes, model.length, prior) for n in args.rows]
    command = " ".join(["python benchmarks/speed_neighbors.py", *(["--rows", *map(str, args.rows)] * (len(rows) < 4))])
    write_table(RESULTS / "speed_neighbors.csv", command, rows, ("numpy", "scikit-learn"))


if __name__ == "__main__":
    main()
