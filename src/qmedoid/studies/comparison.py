"""Methods side by side on the same repeated splits, with standard errors."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.estimators.fusion import NearestMedoidClassifier
from qmedoid.estimators.geometric import GeometricClassifier
from qmedoid.metrics.classification import evaluate
from qmedoid.studies.baselines import BASELINES
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.splits import Split, paper_split


class Method(Protocol):
    """Fits on the training and validation rows of a split and predicts its test rows."""

    def __call__(self, data: Dataset, split: Split, seed: int) -> npt.NDArray[Any]:
        """Predicted labels of the test rows."""


@dataclass(frozen=True)
class Outcome:
    """Mean and standard error over splits of one method on one data set; one split has no standard error."""

    data: str
    method: str
    splits: int
    accuracy: float
    accuracy_se: float | None
    macro_f1: float
    macro_f1_se: float | None

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for tables and JSON."""
        return asdict(self)


def fusion(make: Callable[[], NearestMedoidClassifier | GeometricClassifier]) -> Method:
    """A classifier of ours that chooses within the training and validation rows."""

    def method(data: Dataset, split: Split, seed: int) -> npt.NDArray[Any]:
        rows = split.fit
        return make().set_params(random_state=seed).fit(data.X[rows], data.y[rows]).predict(data.X[split.test])

    return method


def fusion_with_validation(make: Callable[[], NearestMedoidClassifier]) -> Method:
    """A fusion classifier that chooses on the validation rows and is fitted on the training rows, as printed."""

    def method(data: Dataset, split: Split, seed: int) -> npt.NDArray[Any]:
        model = make().set_params(random_state=seed)
        model.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])
        return model.predict(data.X[split.test])

    return method


def baseline(make: Callable[[int], Any]) -> Method:
    """A plain classifier fitted on the training and validation rows together."""

    def method(data: Dataset, split: Split, seed: int) -> npt.NDArray[Any]:
        rows = split.fit
        predicted: npt.NDArray[Any] = make(seed).fit(data.X[rows], data.y[rows]).predict(data.X[split.test])
        return predicted

    return method


METHODS: dict[str, Method] = {
    "qmedoid": fusion(GeometricClassifier),
    "qmedoid, convex": fusion(NearestMedoidClassifier),
    "qmedoid, as printed": fusion_with_validation(NearestMedoidClassifier.paper),
    **{name: baseline(make) for name, make in BASELINES.items()},
}
"""What the demo compares."""


def compare(data: Dataset, methods: dict[str, Method], seeds: Sequence[int]) -> Iterator[Outcome]:
    """Outcomes of every method on the same splits of one data set, as they come."""
    classes, codes = np.unique(data.y, return_inverse=True)
    for name, method in methods.items():
        scores = []
        for seed in seeds:
            split = paper_split(data.y, seed)
            predicted = np.searchsorted(classes, method(data, split, seed))
            metrics = evaluate(codes[split.test], predicted, len(classes))
            scores.append((metrics.accuracy, metrics.macro_f1))
        yield _outcome(data.name, name, np.array(scores))


def _outcome(data: str, method: str, scores: Array) -> Outcome:
    """Means and their standard errors; one split has none."""
    mean = scores.mean(axis=0)
    error = (scores.std(axis=0, ddof=1) / np.sqrt(len(scores))).tolist() if len(scores) > 1 else [None, None]
    return Outcome(data, method, len(scores), float(mean[0]), error[0], float(mean[1]), error[1])
