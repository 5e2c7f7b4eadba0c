"""How our methods are fitted on a split, and what is kept of them: as printed, and through the front door.

Plain classifiers have nothing to do with this file, so that their cells stay as they are when it changes.
"""

from typing import Any

import numpy as np

from qmedoid.arrays import Array
from qmedoid.estimators.fusion import NearestMedoidClassifier
from qmedoid.estimators.geometric import GeometricClassifier
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.reproduction.cells import Result
from qmedoid.studies.reproduction.judging import judged_on
from qmedoid.studies.splits import Split

TRACE_POINTS = 400
"""At most so many points of a search are kept."""


def printed_small(data: Dataset, split: Split, seed: int, **changes: Any) -> Result:
    """The paper preset on a small data set: fitted on the training rows, chosen on the validation rows."""
    model = NearestMedoidClassifier.paper(random_state=seed, **changes)
    model.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])
    return _chosen(model) | {"test": judged_on(model, data, split.test), "val": judged_on(model, data, split.val)}


def front_small(data: Dataset, split: Split, seed: int, **changes: Any) -> Result:
    """The front door on a small data set: fitted on training and validation rows, within which it chooses.

    For the figures of the validation rows another is fitted on the training rows alone.
    """
    model = GeometricClassifier(random_state=seed, **changes).fit(data.X[split.fit], data.y[split.fit])
    before = GeometricClassifier(random_state=seed, **changes).fit(data.X[split.train], data.y[split.train])
    found = {"test": judged_on(model, data, split.test), "val": judged_on(before, data, split.val)}
    return found | (_chosen(model.estimator_) if isinstance(model.estimator_, NearestMedoidClassifier) else {})


def front_fraud(data: Dataset, split: Split, seed: int, **changes: Any) -> tuple[Array, float, Result]:
    """The front door on the frauds, fitted on the training rows: log-odds of all rows, their threshold, who decides."""
    model = GeometricClassifier(random_state=seed, **changes).fit(data.X[split.train], data.y[split.train])
    return model.decision_function(data.X), 0.0, {"stage": model.stage_, "first_stage": model.method_}


def _chosen(model: NearestMedoidClassifier) -> Result:
    """What the search and the α sweep chose, and how they came there."""
    sweep = model.alpha_sweep_
    best = np.maximum.accumulate([step.score for step in model.search_trace_])
    kept = np.unique(np.linspace(0, len(best) - 1, TRACE_POINTS).astype(int)) if len(best) else np.array([], dtype=int)
    return {
        "k": max(len(subset) for subset in model.configuration_),
        "alpha": float(model.alpha_),
        "sweep": {"alphas": sweep.grid.tolist(), "macro_f1": sweep.scores.tolist()},
        "trace": {"evaluation": (kept + 1).tolist(), "best": best[kept].tolist()},
        "evaluations": len(best),
    }
