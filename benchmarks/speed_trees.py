"""Sums of trees of comparisons: the compiled kernel against LightGBM and XGBoost with as many trees and leaves.

Run as ``python benchmarks/speed_trees.py``. Rows are random numbers, the classes depend on pairs of columns, and every
model is grown to the same number of trees of at most four levels and 16 leaves on a part of the rows. All score the
same float64 matrix on one thread, without the step from outputs to probabilities. Ours and the rivals take turns; the
ratio is the median over the turns. XGBoost is left out where it is not installed.
"""

import argparse
import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from _timing import RESULTS, write_table
from qmedoid.methods.comparisons.fit import comparisons_of
from qmedoid.methods.comparisons.growing import BoostingSettings, by_histograms

Array = npt.NDArray[np.float64]
Scorer = Callable[[Array], Any]

N_COLUMNS, N_TRAINING, N_LEAVES, LEVELS, RATE = 30, 10_000, 16, 4, 0.1
# Classes and iterations: a model has as many trees as iterations for two classes, and one for each class for more.
MODELS = ((2, 100), (2, 500), (7, 70))


def make_rows(n_rows: int, n_classes: int) -> tuple[Array, npt.NDArray[np.intp]]:
    """Normal columns, and classes by the largest of some noisy products of two columns."""
    rng = np.random.default_rng(n_classes)
    X = rng.standard_normal((n_rows, N_COLUMNS))
    products = X[:, :n_classes] * X[:, n_classes : 2 * n_classes] + X[:, 2 * n_classes : 3 * n_classes]
    return X, (products + rng.standard_normal(products.shape)).argmax(axis=1)


def ours(X: Array, y: npt.NDArray[np.intp], n_iterations: int) -> tuple[Scorer, int]:
    """Trees of comparisons of all columns."""
    known, ranks = zip(*(np.unique(column, return_inverse=True) for column in X.T), strict=True)
    rows = np.column_stack(ranks).astype(np.float64), y, None
    grown = by_histograms(rows, BoostingSettings(learning_rate=RATE, share_of_columns=1.0), 0, n_iterations)
    model = comparisons_of(grown.full_trees(known), grown.start, X, y, int(y.max()) + 1)
    return lambda rows: model.score(rows, threads=1).scores, len(model.node_columns)


def lightgbm(X: Array, y: npt.NDArray[np.intp], n_iterations: int) -> tuple[Scorer, int]:
    import lightgbm as lgb

    model = lgb.LGBMClassifier(
        n_estimators=n_iterations, num_leaves=N_LEAVES, max_depth=LEVELS, learning_rate=RATE, n_jobs=1, verbose=-1
    ).fit(X, y)
    booster = model.booster_
    return lambda rows: booster.predict(rows, raw_score=True, num_threads=1), booster.num_trees()


def xgboost(X: Array, y: npt.NDArray[np.intp], n_iterations: int) -> tuple[Scorer, int]:
    import xgboost as xgb

    model = xgb.XGBClassifier(
        n_estimators=n_iterations, max_depth=LEVELS, learning_rate=RATE, tree_method="hist", n_jobs=1
    ).fit(X, y)
    booster = model.get_booster()
    return lambda rows: booster.inplace_predict(rows, predict_type="margin"), len(booster.get_dump())


def core_time(score: Scorer, X: Array) -> float:
    start = time.process_time()
    score(X)
    return time.process_time() - start


def main(n_rows: int, repeats: int) -> None:
    warnings.simplefilter("ignore")
    makers = {"qmedoid": ours, "LightGBM": lightgbm} | ({"XGBoost": xgboost} if _installed("xgboost") else {})
    rows: list[dict[str, object]] = []
    for n_classes, n_iterations in MODELS:
        X, y = make_rows(n_rows, n_classes)
        made = {name: make(X[:N_TRAINING], y[:N_TRAINING], n_iterations) for name, make in makers.items()}
        times: dict[str, list[float]] = {name: [] for name in made}
        for _ in range(repeats):
            for name, (score, _) in made.items():
                times[name].append(core_time(score, X))
        for name, (_, n_trees) in made.items():
            ratios = [theirs / own for theirs, own in zip(times[name], times["qmedoid"], strict=True)]
            rows.append(
                {
                    "classes": n_classes,
                    "trees": n_trees,
                    "model": name,
                    "thousand rows/s": n_rows / statistics.median(times[name]) / 1e3,
                    "ns a row and tree": 1e9 * statistics.median(times[name]) / n_rows / n_trees,
                    "qmedoid is faster by": statistics.median(ratios),
                }
            )
    packages = ["numpy", "scikit-learn", "lightgbm", *(["xgboost"] if "XGBoost" in makers else [])]
    command = f"python benchmarks/speed_trees.py --rows {n_rows} --repeats {repeats}"
    write_table(RESULTS / "speed_trees.csv", command, rows, packages)


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    main(arguments.rows, arguments.repeats)
