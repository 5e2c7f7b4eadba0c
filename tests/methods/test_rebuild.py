"""The plain configuration objective: held to a computation with loops and nothing of the package but its settings."""

import math
from dataclasses import replace

import numpy as np
import pytest

from qmedoid.methods.nearest.problem import NearestSettings, RebuildObjective, fold_confusion, prepare_folds
from qmedoid.metrics.classification import ClassMetrics

CONFIGURATION = ((0, 2), (1, 3), (2, 0), (3, 1, 2))


def blobs(seed=0, n=60, n_classes=3):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    return rng.normal(size=(n, 4)) + np.outer(codes, [1.0, -0.5, 0.3, 0.8]), codes


def two_folds(X, codes, settings):
    rows = np.random.default_rng(1).permutation(len(X))
    splits = [(np.sort(rows[20:]), np.sort(rows[:20])), (np.sort(rows[:40]), np.sort(rows[40:]))]
    return prepare_folds(X, codes, splits, int(codes.max()) + 1, settings, np.random.default_rng(0))


def by_loops(fold, configuration, alpha, multipliers):
    """Confusion counts of signed features and true angles, one number at a time."""
    rho = fold.train.correlation

    def feature(x, subset):
        terms = [rho[subset[0], f] * x[f] for f in subset]
        return math.copysign(1.0, sum(terms) or 1.0) * math.hypot(*terms)

    train = np.array([[feature(x, s) for s in configuration] for x in fold.train.X])
    val = np.array([[feature(x, s) for s in configuration] for x in fold.X_val])
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    train, val = (train - mean) / deviation, (val - mean) / deviation
    medoids = []
    for c in range(len(multipliers)):
        own = train[fold.train.codes == c]
        medoids.append(min(own, key=lambda row: sum(math.dist(row, other) for other in own)))
    counts = np.zeros((len(multipliers),) * 2)
    for x, truth in zip(val, fold.codes_val, strict=True):
        distance = np.array([math.dist(x, m) for m in medoids])
        angle = np.array([math.acos(x @ m / math.hypot(*x) / math.hypot(*m)) for m in medoids])
        scores = multipliers * (alpha * distance / distance.sum() + (1 - alpha) * angle / angle.sum())
        counts[truth, np.argmin(scores)] += 1
    return counts


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_score_is_macro_f1_of_the_pooled_counts(alpha):
    X, codes = blobs()
    settings = NearestSettings()
    folds = two_folds(X, codes, settings)
    multipliers = np.array([1.0, 0.8, 1.3])
    expected = [by_loops(fold, CONFIGURATION, alpha, multipliers) for fold in folds]
    for fold, counts in zip(folds, expected, strict=True):
        got = fold_confusion(fold, CONFIGURATION, settings, alpha=alpha, multipliers=multipliers)
        np.testing.assert_array_equal(got, counts)
    objective = RebuildObjective(folds, settings, alpha=alpha, multipliers=multipliers)
    assert objective.start(CONFIGURATION) == ClassMetrics(sum(expected)).macro_f1


def test_scores_look_ahead_and_commit_makes_it_so():
    X, codes = blobs()
    settings = NearestSettings(kind="weighted", angle="printed")
    objective = RebuildObjective(two_folds(X, codes, settings), settings, alpha=0.5, multipliers=np.ones(3))
    before = objective.start(CONFIGURATION)
    subsets = [(1, 0), (1, 2), (1, 0, 3)]
    scores = objective.scores(1, subsets)
    assert len(set(scores) | {before}) > 1, "the candidates must not all score alike for this test to mean anything"
    assert objective.scores(1, [CONFIGURATION[1]])[0] == before
    for subset, score in zip(subsets, scores, strict=True):
        objective.commit(1, subset)
        assert objective.configuration == (CONFIGURATION[0], subset, *CONFIGURATION[2:])
        assert objective.start(objective.configuration) == score
    assert objective.scores(1, []).shape == (0,)


def test_the_search_uses_one_medoid_whatever_the_final_model_uses():
    X, codes = blobs(seed=3)
    settings = NearestSettings()
    folds = two_folds(X, codes, settings)
    scores = [
        RebuildObjective(folds, replace(settings, n_medoids=k), alpha=0.5, multipliers=np.ones(3)).start(CONFIGURATION)
        for k in (1, 4)
    ]
    assert scores[0] == scores[1]
