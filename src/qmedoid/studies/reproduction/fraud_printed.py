"""The frauds as the paper prints them, step by step: method models, deltas, circuits, and the better of two.

What the paper leaves open is read in more than one way: `READINGS`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.estimators.fusion import NearestMedoidClassifier
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.methods.nearest.model import NearestModel
from qmedoid.metrics.thresholds import best_threshold, metric_at
from qmedoid.model.hybrid import DeltaSettings
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.reproduction.cells import Result
from qmedoid.studies.splits import Split

PAPER_THRESHOLD = 0.3
"""Probability above which the paper's own model calls a row a fraud."""


@dataclass(frozen=True)
class Reading:
    """One way to read the paper on the frauds.

    Attributes
    ----------
    method, circuit : mapping
        Changes of `NearestMedoidClassifier.paper` and of `VariationalClassifier.paper`.
    has_circuit : bool
        Whether a circuit decides; else the fusion score does.
    """

    method: Mapping[str, Any] = field(default_factory=dict)
    circuit: Mapping[str, Any] = field(default_factory=dict)
    has_circuit: bool = True


_UNWEIGHTED = {"class_weight": None}
_ROOT_PRIOR = {0: 1.0, 1: 24.0}
READINGS: dict[str, Reading] = {
    "printed": Reading(),
    "printed, no class weights": Reading(_UNWEIGHTED),
    "printed, no class weights, balanced loss": Reading(_UNWEIGHTED, {"class_weight": "balanced"}),
    "printed, no class weights, direct read-out, 1/√π in the loss": Reading(
        _UNWEIGHTED, {"readout": "direct", "class_weight": _ROOT_PRIOR}
    ),
    "printed, direct read-out, 1/√π in the loss": Reading({}, {"readout": "direct", "class_weight": _ROOT_PRIOR}),
    "printed, no class weights, no circuit": Reading(_UNWEIGHTED, has_circuit=False),
}
"""Open points read otherwise; the first is the paper preset as it is. 1/√π is 24 for a fraud and 1 for another row."""


def run_reading(reading: Reading, data: Dataset, split: Split, seed: int) -> tuple[Array, float, Result]:
    """Scores of all rows, the threshold of the paper on them, and what was chosen.

    Fusion models are fitted on the training rows, and the validation rows choose k and α. A circuit is trained on the
    deltas of the training rows for each of the two best models; the validation rows choose between them by macro-F1.
    """
    method = NearestMedoidClassifier.paper(random_state=seed, **reading.method)
    method.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])
    if not reading.has_circuit:
        return method.decision_function(data.X), 0.0, _chosen(method, method.models_[0])
    best: tuple[float, Array, NearestModel] | None = None
    for model in method.models_:
        deltas = DeltaSettings().features(model, model.measure(data.X))
        circuit = VariationalClassifier.paper(operating_point=None, random_state=seed, **reading.circuit)
        circuit.fit(deltas[split.train], data.y[split.train])
        log_odds = circuit.decision_function(deltas)
        quality = _macro_f1(data.y[split.val], log_odds[split.val])
        if best is None or quality > best[0]:
            best = quality, log_odds, model
    assert best is not None
    return best[1], math.log(PAPER_THRESHOLD) - math.log1p(-PAPER_THRESHOLD), _chosen(method, best[2])


def _macro_f1(codes: npt.NDArray[Any], scores: Array) -> float:
    return metric_at(codes, scores, best_threshold(codes, scores, "macro_f1"), "macro_f1")


def _chosen(method: NearestMedoidClassifier, model: NearestModel) -> Result:
    """What was chosen, and whether the search had anything to choose from: how many of its scores differ."""
    scores = [step.score for step in method.search_trace_]
    return {
        "k": max(len(subset) for subset in model.configuration),
        "alpha": float(model.alpha),
        "search": {"evaluations": len(scores), "different": len(set(scores)), "best": max(scores)},
    }
