"""What a model shows on records whose class is known."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import ContractError
from qmedoid.metrics.calibration import calibration_error, confidence_outcomes
from qmedoid.metrics.classification import evaluate
from qmedoid.metrics.ranking import log_loss, pr_auc, roc_auc
from qmedoid.models.table import Decisions, TableModel
from qmedoid.tables.labels import MISSING, UNKNOWN

Codes = npt.NDArray[np.intp]


def joined(parts: Iterable[Decisions]) -> Decisions:
    """Decisions about one part of a table after the other as one; nearest medoids are left out."""
    codes, scores, margins, by_circuit, _ = zip(*parts, strict=True)
    return Decisions(
        np.concatenate(codes), np.concatenate(scores), np.concatenate(margins), np.concatenate(by_circuit), None
    )


def labelled_report(model: TableModel, codes: Codes, decided: Decisions) -> dict[str, Any]:
    """The report over rows that have a class of the model; codes are those of `qmedoid.tables.labels`."""
    known = codes >= 0
    left_out = {"missing": int((codes == MISSING).sum()), "unknown": int((codes == UNKNOWN).sum())}
    if not known.any():
        raise ContractError(
            f"None of the {len(codes):,} rows has a class of the model ({', '.join(map(str, model.classes))}) in its "
            f"target column: {left_out['missing']:,} are missing, {left_out['unknown']:,} are other labels."
        )
    codes_found, scores, margins, by_circuit, _ = decided
    part = Decisions(codes_found[known], scores[known], margins[known], by_circuit[known], None)
    return {**decision_report(model, codes[known], part), "left_out": left_out}


def _calibration(codes: Codes, probabilities: npt.NDArray[np.float64]) -> dict[str, float]:
    """How far probabilities are off, beside chance: of the second of two classes, else of the likeliest one."""
    # The same seed for every report: the same decisions give the same figures.
    found = calibration_error(*confidence_outcomes(codes, probabilities), rng=np.random.default_rng(0))
    return {
        "error": found.error,
        "by_chance": found.by_chance,
        "by_chance_high": found.by_chance_high,
        "ratio": found.ratio,
    }


def decision_report(model: TableModel, codes: Codes, decided: Decisions) -> dict[str, Any]:
    """Counts and metrics of decisions against the true class codes, by name and fit for JSON.

    For two classes the second is the positive one: precision, recall and the areas are of it.
    """
    metrics = evaluate(codes, decided.codes, len(model.classes))
    labels = [str(label) for label in model.classes]
    report: dict[str, Any] = {
        "rows": len(codes),
        "accuracy": metrics.accuracy,
        "macro_f1": metrics.macro_f1,
        "weighted_f1": metrics.average(metrics.f1, "weighted"),
    }
    if model.probabilistic:
        probabilities = model.probabilities(decided.scores)
        report["log_loss"] = log_loss(codes, probabilities)
        report["calibration"] = _calibration(codes, probabilities)
    if len(labels) == 2:
        positive = codes == 1
        report |= {
            "positive": model.classes[1],
            "prevalence": float(positive.mean()),
            "alert_rate": float((decided.codes == 1).mean()),
            "precision": float(metrics.precision[1]),
            "recall": float(metrics.recall[1]),
            "f1": float(metrics.f1[1]),
            "roc_auc": roc_auc(positive, decided.margins),
            "pr_auc": pr_auc(positive, decided.margins),
        }
    report["by_circuit"] = float(decided.by_circuit.mean())
    report["classes"] = {
        label: {
            "rows": int(metrics.support[code]),
            "precision": float(metrics.precision[code]),
            "recall": float(metrics.recall[code]),
            "f1": float(metrics.f1[code]),
        }
        for code, label in enumerate(labels)
    }
    report["confusion"] = metrics.confusion.astype(int).tolist()
    return report
