"""The fit of an evidence model."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from qmedoid.fitting.evidence.settings import EvidenceSettings, FittedEvidence
from qmedoid.fitting.rank_scaling import fit_rank_scaling
from qmedoid.geometry.scaling import fit_standard
from qmedoid.models.evidence import DISTANCE, NEAR, SQUARE, EvidenceModel, Group, Terms

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


def fit_evidence(
    X: Array,
    codes: Codes,
    n_classes: int,
    settings: EvidenceSettings,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> FittedEvidence:
    """Fit an evidence model."""
    rng = np.random.default_rng(seed)
    per_class = max(1, settings.n_medoids // n_classes)
    rows = np.concatenate(
        [rng.permutation(np.flatnonzero(codes == code))[:per_class] for code in range(n_classes)]
    ).astype(np.intp)
    n_columns = X.shape[1]
    medoids = X[rows]
    groups, parts = [], []
    for column in range(n_columns):
        low, high = int(np.argmin(medoids[:, column])), int(np.argmax(medoids[:, column]))
        if medoids[low, column] == medoids[high, column]:
            continue
        groups.append(Group((column,), np.ones(1), False))
        parts += [(len(groups) - 1, low, SQUARE, 1.0), (len(groups) - 1, high, SQUARE, 1.0)]
        groups.append(Group((column,), np.ones(1), True))
        parts += [(len(groups) - 1, place, DISTANCE, 1.0) for place in range(min(8, len(rows)))]
    groups.append(Group(tuple(range(n_columns)), np.ones(n_columns), True))
    parts += [(len(groups) - 1, place, NEAR, float(np.sqrt(n_columns))) for place in range(len(rows))]
    group, medoid, channel, length = (np.array(column) for column in zip(*parts, strict=True))
    n_outputs = 1 if n_classes == 2 else n_classes
    model = EvidenceModel(
        fit_rank_scaling(X), fit_standard(X), medoids, codes[rows], rows, np.ones(n_columns), tuple(groups),
        Terms(group, medoid, channel, length, np.zeros(len(parts)), np.zeros((len(parts), n_outputs))),
        np.zeros(n_outputs), n_classes,
    )  # fmt: skip
    design = model.evidence(X)
    center, spread = design.mean(axis=0), design.std(axis=0)
    scaled = np.where(spread > 1e-9, (design - center) / np.maximum(spread, 1e-9), 0.0) / np.sqrt(len(parts))
    targets = np.where(codes == 1, 1.0, -1.0)[:, None] if n_classes == 2 else np.eye(n_classes)[codes] * 2.0 - 1.0
    mean = targets.mean(axis=0)
    u, s, vt = np.linalg.svd(scaled, full_matrices=False)
    best = None
    for ridge in np.logspace(-3, 3, 13):
        shrink = s**2 / (s**2 + ridge)
        fitted = mean + u @ (shrink[:, None] * (u.T @ (targets - mean)))
        leverage = (u**2 @ shrink + 1.0 / len(X))[:, None]
        left_out = targets - (targets - fitted) / np.maximum(1.0 - leverage, 1e-6)
        error = float(((left_out - targets) ** 2).mean())
        if best is None or error < best[0]:
            best = error, float(ridge), left_out
    assert best is not None
    error, ridge, left_out = best
    weights = vt.T @ ((s / (s**2 + ridge))[:, None] * (u.T @ (targets - mean)))
    weights = np.where(spread > 1e-9, 1.0 / np.maximum(spread, 1e-9), 0.0)[:, None] * weights / np.sqrt(len(parts))
    model = replace(model, terms=replace(model.terms, center=center, weights=weights), intercepts=mean)
    if progress is not None:
        progress(1.0)
    return FittedEvidence(model, model.class_scores(left_out), ridge, error)
