"""Coordinate descent: evaluations per core-second of the incremental objective against a plain NumPy rebuild.

Run ``python benchmarks/speed_search.py`` (some minutes; ``--rows 0`` for breast cancer alone, a few seconds). Breast
cancer is split as in the paper (319 training and 107 validation rows); the larger tables repeat its rows with Gaussian
jitter. The descent visits all 30 anchors for k = 2..5 with groups of 8 and two passes. ``naive`` rebuilds features,
scalers, medoids and predictions for every evaluation; it is timed on evaluations taken evenly from the descent, and
should find the very scores of the incremental objective.
"""

import argparse
from statistics import median

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from _timing import RESULTS, Timing, core_seconds, write_table
from qmedoid.geometry.groups import build_groups
from qmedoid.methods.nearest.problem import IncrementalObjective, NearestSettings, prepare_folds
from qmedoid.optimize.descent import coordinate_descent

SIZES, GROUP_SIZE, PASSES, ALPHA = (2, 3, 4, 5), 8, 2, 0.5
SETTINGS = {"paper": ("weighted", "printed"), "signed": ("signed", "true")}
# Rows of the table (0: breast cancer itself): evaluations on which the naive side is timed, repeats, wanted ratio.
TABLES = {0: (300, 15, 100), 10_000: (40, 3, 80), 100_000: (8, 3, 80)}


def table(n_rows, rng):
    """Breast cancer, or rows drawn from it with a twentieth of a deviation of jitter."""
    X, codes = load_breast_cancer(return_X_y=True)
    if not n_rows:
        return X, codes
    drawn = rng.integers(0, len(X), n_rows)
    return X[drawn] + 0.05 * X.std(axis=0) * rng.normal(size=(n_rows, X.shape[1])), codes[drawn]


def one_fold(n_rows, settings):
    """56 % of the rows to train, 19 % to validate; the rest would be the test rows of the paper."""
    rng = np.random.default_rng(0)
    X, codes = table(n_rows, rng)
    kept, _ = train_test_split(np.arange(len(X)), test_size=0.25, stratify=codes, random_state=0)
    split = train_test_split(kept, test_size=0.25, stratify=codes[kept], random_state=0)
    return prepare_folds(X, codes, [tuple(split)], 2, settings, rng)


def naive_score(fold, configuration, kind, angle):
    """Macro-F1 of one configuration: a loop over anchors, standardization, cdist, closed forms, argmin."""
    train, val = naive_features(fold.train, fold.X_val, configuration, kind)
    medoids = []
    for sample in fold.train.samples:
        own = train[sample]
        medoids.append(own[np.argmin(cdist(own, own).sum(axis=1))])
    distance, theta = naive_channels(val, np.array(medoids), angle)
    scores = ALPHA * distance / distance.sum(axis=1, keepdims=True)
    scores += (1.0 - ALPHA) * theta / theta.sum(axis=1, keepdims=True)
    predicted = np.argmin(scores, axis=1)
    hits = np.bincount(fold.codes_val[predicted == fold.codes_val], minlength=2)
    counted = np.bincount(predicted, minlength=2) + np.bincount(fold.codes_val, minlength=2)
    return float(np.mean(2.0 * hits / counted))


def naive_features(train, X_val, configuration, kind):
    features = []
    for X in (train.X, X_val):
        columns = np.empty((len(X), len(configuration)))
        for j, subset in enumerate(configuration):
            terms = X[:, list(subset)] * train.correlation[subset[0], list(subset)]
            norm = np.sqrt((terms**2).sum(axis=1))
            columns[:, j] = np.where(terms.sum(axis=1) < 0, -norm, norm) if kind == "signed" else norm
        features.append(columns)
    mean, deviation = features[0].mean(axis=0), features[0].std(axis=0)
    return [(columns - mean) / deviation for columns in features]


def naive_channels(val, medoids, angle):
    squared = ((val[:, None, :] - medoids) ** 2).sum(axis=2)
    norms, medoid_norms = (val**2).sum(axis=1)[:, None], (medoids**2).sum(axis=1)
    if angle == "printed":
        return np.sqrt(squared), np.arccos(np.sqrt(squared / (2.0 * (norms + medoid_norms))))
    return np.sqrt(squared), np.arccos(np.clip(val @ medoids.T / np.sqrt(norms * medoid_norms), -1.0, 1.0))


class Recorder:
    """Passes everything on to an objective and keeps each configuration it scored."""

    def __init__(self, objective):
        self.objective, self.seen = objective, []

    def start(self, configuration):
        """Score a configuration and keep it."""
        score = self.objective.start(configuration)
        self.seen.append((configuration, score))
        return score

    def scores(self, anchor, subsets):
        """Score candidates and keep the configurations they make."""
        scores = self.objective.scores(anchor, subsets)
        current = self.objective.configuration
        for subset, score in zip(subsets, scores, strict=True):
            self.seen.append(((*current[:anchor], subset, *current[anchor + 1 :]), float(score)))
        return scores

    def commit(self, anchor, subset):
        """Pass on."""
        self.objective.commit(anchor, subset)


def descend(objective, groups):
    return coordinate_descent(objective, groups.members, SIZES, max_passes=PASSES, rng=np.random.default_rng(0))


def alternately(first, second, repeats):
    """Median timings of two functions that take turns, so that other work on the machine slows both alike."""
    pairs = [(core_seconds(first, 1), core_seconds(second, 1)) for _ in range(repeats)]
    return [
        Timing(median(t.core for t in timings), median(t.wall for t in timings), timings[-1].result)
        for timings in zip(*pairs, strict=True)
    ]


def compare(n_rows, name):
    kind, angle = SETTINGS[name]
    n_naive, repeats, wanted = TABLES[n_rows]
    settings = NearestSettings(kind=kind, angle=angle)
    folds = one_fold(n_rows, settings)
    groups = build_groups(folds[0].train.correlation, group_size=GROUP_SIZE)

    def objective():
        return IncrementalObjective(folds, settings, alpha=ALPHA, multipliers=np.ones(2))

    recorder = Recorder(objective())
    descend(recorder, groups)
    picked = recorder.seen[:: len(recorder.seen) // n_naive]
    naive, fast = alternately(
        lambda: [naive_score(folds[0], configuration, kind, angle) for configuration, _ in picked],
        lambda: descend(objective(), groups),
        repeats,
    )
    rates = [len(picked) / naive.core, len(fast.result.trace) / fast.core]
    return {
        "rows": n_rows or len(folds[0].train.X) + len(folds[0].X_val),
        "setting": name,
        "evaluations": len(fast.result.trace),
        "naive_per_s": rates[0],
        "kernel_per_s": rates[1],
        "ratio": rates[1] / rates[0],
        "wanted": wanted,
        "same_scores": f"{sum(score == s for score, (_, s) in zip(naive.result, picked, strict=True))}/{len(picked)}",
        "macro_f1": fast.result.ranked()[0].score,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=list(TABLES), choices=list(TABLES))
    args = parser.parse_args()
    with threadpool_limits(limits=1):  # both sides are measured per core
        rows = [compare(n_rows, name) for n_rows in args.rows for name in SETTINGS]
    command = " ".join(["python benchmarks/speed_search.py", *(["--rows", *map(str, args.rows)] * (len(rows) < 6))])
    write_table(RESULTS / "speed_search.csv", command, rows)


if __name__ == "__main__":
    main()
