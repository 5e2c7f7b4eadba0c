"""Our classifier on the payments, and others on what its circuit is fed: what the circuit itself adds.

A rival gets exactly what the circuit gets of the training rows, deltas and log-odds of the method by models that have
not seen the row, and corrects the log-odds as the circuit does.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.datasets import Dataset
from benchmarks.quality.baselines import FOLDS
from benchmarks.quality.card import Clock, Payments, judge_payments, make_payments
from benchmarks.quality.ours import OURS, build
from benchmarks.studies.baselines import lightgbm, logistic
from benchmarks.studies.cells import PAPER_ALERT_RATE, Cell
from qmedoid.arrays import Array, Codes
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.rare import RareEventClassifier
from qmedoid.methods.part import FittedParts
from qmedoid.metrics.classification import pr_auc
from qmedoid.model.model import Model

CODE = 1
"""Number of what these functions compute: whoever changes their figures takes the next one."""
Corrected = Callable[[Array, Array], Array]
"""From deltas (n, m) and the log-odds of the method (n,) to log-odds (n,)."""


class Watched(RareEventClassifier):
    """The method that keeps what the circuit would be trained on."""

    def keep(self, model: Model, fits: Sequence[FittedParts]) -> None:
        """Set the fitted attributes."""
        super().keep(model, fits)
        self.watched_ = fits[0].out_of_fold


def _logistic(deltas: Array, log_odds: Array, y: Codes, seed: int) -> Corrected:
    """L2 logistic regression on the log-odds and the deltas, C by cross-validated PR-AUC."""
    inputs = np.column_stack([log_odds, deltas])

    def fit(C: float, rows: Codes) -> Any:
        return logistic(seed, C=C, max_iter=1000).fit(inputs[rows], y[rows])

    def score(C: float, inner: Codes, outer: Codes) -> float:
        return pr_auc(y[outer] == 1, fit(C, inner).decision_function(inputs[outer]))

    folds = _folds(deltas, y, seed)
    best = max((0.001, 0.01, 0.1, 1.0), key=lambda C: np.mean([score(C, *fold) for fold in folds]))
    fitted = fit(best, np.arange(len(y)))
    return lambda new, offset: np.asarray(fitted.decision_function(np.column_stack([offset, new])))


def _boosted(deltas: Array, log_odds: Array, y: Codes, seed: int) -> Corrected:
    """Boosted trees on the deltas that start from the log-odds; leaves and their number by cross-validated PR-AUC."""
    sizes = (0, 10, 30, 100, 300)

    def fit(leaves: int, trees: int, rows: Codes) -> Any:
        settings = {"learning_rate": 0.03, "min_child_weight": 1.0, "reg_lambda": 10.0, "num_leaves": leaves}
        model = lightgbm(seed, **settings, n_estimators=trees)
        return model.fit(deltas[rows], y[rows], init_score=log_odds[rows])

    def corrected(model: Any, trees: int, new: Array, offset: Array) -> Array:
        return offset if trees == 0 else offset + model.predict(new, raw_score=True, num_iteration=trees)

    found = np.zeros((2, len(sizes)))
    for inner, outer in _folds(deltas, y, seed):
        for place, leaves in enumerate((4, 15)):
            model = fit(leaves, sizes[-1], inner)
            for column, trees in enumerate(sizes):
                margin = corrected(model, trees, deltas[outer], log_odds[outer])
                found[place, column] += pr_auc(y[outer] == 1, margin)
    place, column = np.unravel_index(int(found.argmax()), found.shape)
    trees = sizes[column]
    whole = fit((4, 15)[place], max(trees, 1), np.arange(len(y)))
    return lambda new, offset: corrected(whole, trees, new, offset)


def _folds(deltas: Array, y: Codes, seed: int) -> list[tuple[Codes, Codes]]:
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(deltas, y))


Rival = Callable[[Array, Array, Codes, int], Corrected]
RIVALS: dict[str, Rival] = {
    f"{OURS}, LogReg instead of its circuit": _logistic,
    f"{OURS}, LightGBM instead of its circuit": _boosted,
}
"""What is put in the place of the circuit."""


def run_payments(_: Dataset, cell: Cell, *, settings: dict[str, Any], rival: str | None = None) -> dict[str, Any]:
    """The cell of our classifier with some settings, or of it with something else in the place of its circuit."""
    data = make_payments(cell.split, cell.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rival is None:
            return _run_ours(settings, data, cell.seed)
        return _run_rival(RIVALS[rival], {**settings, "refine": "never"}, data, cell.seed)


def _run_ours(settings: dict[str, Any], data: Payments, seed: int) -> dict[str, Any]:
    classifier = build(settings, seed, operating_point={"alert_rate": PAPER_ALERT_RATE})
    clock = Clock()
    classifier.fit(data.X, data.y)
    times = clock.fitted()
    called = np.asarray(classifier.predict(data.X_test))
    times |= clock.predicted(len(data.y_test))
    own = {"own_recall": float(called[data.y_test == 1].mean()), "own_alerts": float(called.mean())}
    return {**judge_payments(data, log_odds_of(classifier, data.X_test)), **own, **times}


def _run_rival(rival: Rival, settings: dict[str, Any], data: Payments, seed: int) -> dict[str, Any]:
    clock = Clock()
    watched = build({**settings, "method": Watched()}, seed).fit(data.X, data.y)
    known = watched.estimator_.watched_
    scores = watched.model_.calibration.apply(known.scores)
    correct = rival(known.features, scores[:, 1] - scores[:, 0], data.y, seed)
    times = clock.fitted()
    model = watched.model_
    measured = model.score(data.X_test, channels=True)
    scores = model.calibration.apply(measured.scores)
    deltas = measured.features
    log_odds = correct(deltas, scores[:, 1] - scores[:, 0])
    times |= clock.predicted(len(data.y_test))
    return {**judge_payments(data, log_odds), **times}


def log_odds_of(classifier: MedoidClassifier, X: Array) -> Array:
    """Log-odds of fraud, whatever the threshold."""
    scores = classifier.model_.decide(X).scores
    return np.asarray(scores[:, 1] - scores[:, 0])
