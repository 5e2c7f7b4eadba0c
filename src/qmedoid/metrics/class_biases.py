r"""Class biases: where three or more classes are separated, for a metric or by cost.

A record is called the class of the highest :math:`s_c + b_c`. Biases are sought one class at a time: as :math:`b_c`
rises, records flip to class c one by one, and the figure after each flip is known from running sums. Classes of the
rows count a quarter as they are and three quarters as the probabilities say, so that a figure does not hang on a few
rows.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes

CLASS_METRICS = ("macro_f1", "balanced_accuracy")
"""Metrics that biases can be chosen for."""
# Share of the classes of the rows; the rest is that of their probabilities.
_AS_LABELED = 0.25
_PASSES = 3
# Figures that differ by less than this are the same: the bias stays nearer to where it was.
_SAME = 1e-9


def fit_class_biases(scores: Array, codes: Codes, rule: str, cost: Array | None = None) -> Array:
    """Biases of the classes, shape (C,), of mean 0, by out-of-fold rows.

    Parameters
    ----------
    scores : ndarray of shape (n, C)
        Their softmax is a probability.
    codes : ndarray of shape (n,)
    rule : {"macro_f1", "balanced_accuracy", "cost"}
    cost : ndarray of shape (C, C), optional
        What it costs to call a record of class i class j, for ``"cost"``.
    """
    n_classes = scores.shape[1]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    targets = _AS_LABELED * np.eye(n_classes)[codes] + (1.0 - _AS_LABELED) * probabilities
    biases = np.zeros(n_classes)
    for _ in range(_PASSES):
        before = biases.copy()
        for code in range(n_classes):
            biases[code] = _best_bias(scores + biases, code, biases[code], targets, rule, cost)
        if np.array_equal(before, biases):
            break
    return np.asarray(biases - biases.mean())


def _best_bias(scores: Array, code: int, bias: float, targets: Array, rule: str, cost: Array | None) -> float:
    """The bias of one class of the best figure, the others as they are."""
    others = np.where(np.arange(scores.shape[1]) == code, -np.inf, scores)
    rival = others.argmax(axis=1)
    # By how much the bias has to rise for the row to be called this class.
    gap = others[np.arange(len(scores)), rival] - scores[:, code]
    order = np.argsort(gap, kind="stable")
    figures = figures_by_flips(targets[order], rival[order], code, rule, cost)
    now = int(np.searchsorted(gap[order], 0.0))
    best = np.flatnonzero(figures >= figures.max() - _SAME)
    place = int(best[np.abs(best - now).argmin()])
    if place == now:
        return bias
    edges = np.concatenate([[gap[order[0]] - 1.0], gap[order], [gap[order[-1]] + 1.0]])
    return bias + 0.5 * float(edges[place] + edges[place + 1])


def figures_by_flips(targets: Array, rival: Codes, code: int, rule: str, cost: Array | None) -> Array:
    """The figure after each number of flips, shape (n + 1,); larger is better."""
    n, n_classes = targets.shape
    called = np.eye(n_classes)[rival]
    if rule == "cost":
        assert cost is not None, "the rule comes with its costs"
        by_call = targets @ cost
        change = by_call[:, code] - by_call[np.arange(n), rival]
        return -np.concatenate([[0.0], np.cumsum(change)])
    # Hits and calls of every class, before any flip and after each.
    hits = (called * targets).sum(axis=0) - np.vstack([np.zeros(n_classes), np.cumsum(called * targets, axis=0)])
    hits[:, code] = np.concatenate([[0.0], np.cumsum(targets[:, code])])
    support = targets.sum(axis=0)
    if rule == "balanced_accuracy":
        return np.asarray((hits / np.maximum(support, 1e-12)).mean(axis=1))
    calls = called.sum(axis=0) - np.vstack([np.zeros(n_classes), np.cumsum(called, axis=0)])
    calls[:, code] = np.arange(n + 1)
    return np.asarray((2.0 * hits / np.maximum(calls + support, 1e-12)).mean(axis=1))


def cost_matrix(asked: Any, classes: list[Any]) -> Array | None:
    """The matrix of costs by class codes, from an array (C, C) or a mapping of class to mapping; None if it is none."""
    if isinstance(asked, Mapping):
        rows = [asked, *asked.values()]
        if not all(isinstance(row, Mapping) and set(row) == set(classes) for row in rows):
            return None
        asked = [[asked[true][called] for called in classes] for true in classes]
    try:
        matrix = np.asarray(asked, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return matrix if matrix.shape == (len(classes),) * 2 and np.isfinite(matrix).all() and matrix.min() >= 0 else None
