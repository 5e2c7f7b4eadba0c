"""Rare events: rankings, alerts and probabilities of several methods on the same repeated splits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score, log_loss

from qmedoid.arrays import Array
from qmedoid.estimators.geometric import GeometricClassifier
from qmedoid.studies.baselines import BASELINES
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.splits import paper_split

Maker = Callable[[int], Any]

ALERT_BUDGET = 0.04
"""Share of the records that may be looked at: a little more than the 3.3 % frauds of the sample, so that a perfect
ranking finds all of them and a random one 4 %."""

METHODS: dict[str, Maker] = {
    "qmedoid": lambda seed: GeometricClassifier(random_state=seed),
    "qmedoid, without circuit": lambda seed: GeometricClassifier(refine="never", random_state=seed),
    "qmedoid, convex": lambda seed: GeometricClassifier(method="nearest", random_state=seed),
    "qmedoid, as printed": lambda seed: GeometricClassifier.paper(random_state=seed),
    "LogReg": BASELINES["LogReg"],
    "RandomForest": lambda seed: BASELINES["RandomForest"](seed).set_params(n_jobs=-1),
}
"""What the demo compares: makers of unfitted classifiers with probabilities, given a seed."""


@dataclass(frozen=True)
class RareOutcome:
    """Mean and standard error over splits of one method; one split has no standard error.

    Attributes
    ----------
    pr_auc : float
        Average precision of the ranking by probability.
    recall : float
        Share of the rare records among the `alert_budget` most probable ones; see :func:`recall_at`.
    log_loss : float
        Mean of −log p of the class that it was: the smaller, the better calibrated and the sharper.
    stage : str or None
        Who decides, for methods of more than one stage.
    by_circuit : float or None
        Share of the test records that the circuit decided.
    """

    data: str
    method: str
    splits: int
    prevalence: float
    alert_budget: float
    pr_auc: float
    pr_auc_se: float | None
    recall: float
    recall_se: float | None
    log_loss: float
    log_loss_se: float | None
    stage: str | None
    by_circuit: float | None

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for tables and JSON."""
        return asdict(self)


def recall_at(codes: npt.NDArray[Any], scores: Array, budget: float) -> float:
    """Share of the records of class 1 among the ⌊budget·n⌋ of the highest scores; ties are drawn at random, on average.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        0 or 1.
    scores : ndarray of shape (n,)
        Larger means likelier 1.
    budget : float
        Share of the records that may be looked at.
    """
    alerts = int(budget * len(scores))
    if alerts == 0:
        return 0.0
    last = np.partition(scores, -alerts)[-alerts]
    above, tied = scores > last, scores == last
    share = (alerts - above.sum()) / tied.sum()
    return float((codes[above].sum() + share * codes[tied].sum()) / codes.sum())


def compare_rare(data: Dataset, methods: dict[str, Maker], seeds: Sequence[int]) -> Iterator[RareOutcome]:
    """Outcomes of every method on the same stratified 75/25 splits of a table with labels 0 and 1, as they come."""
    for name, make in methods.items():
        figures, stages, shares = [], [], []
        for seed in seeds:
            split = paper_split(data.y, seed)
            model = make(seed).fit(data.X[split.fit], data.y[split.fit])
            truth, probability = data.y[split.test], model.predict_proba(data.X[split.test])[:, 1]
            figures.append(
                (
                    average_precision_score(truth, probability),
                    recall_at(truth, probability, ALERT_BUDGET),
                    log_loss(truth, probability, labels=[0, 1]),
                )
            )
            if isinstance(model, GeometricClassifier):
                stages.append(model.stage_)
                shares.append(float((model.decided_by(data.X[split.test]) == "variational").mean()))
        yield _outcome(data, name, np.array(figures), stages, shares)


def _outcome(data: Dataset, method: str, figures: Array, stages: list[Any], shares: list[float]) -> RareOutcome:
    mean: list[float] = figures.mean(axis=0).tolist()
    error: list[float | None] = [None] * len(mean)
    if len(figures) > 1:
        error = (figures.std(axis=0, ddof=1) / np.sqrt(len(figures))).tolist()
    return RareOutcome(
        data.name,
        method,
        len(figures),
        float(data.y.mean()),
        ALERT_BUDGET,
        *(mean[0], error[0]),
        *(mean[1], error[1]),
        *(mean[2], error[2]),
        " or ".join(dict.fromkeys(stages)) or None,
        float(np.mean(shares)) if shares else None,
    )
