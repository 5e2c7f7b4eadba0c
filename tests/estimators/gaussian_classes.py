"""A classifier whose probabilities are exact: normal densities that are known, at the priors of its training rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmedoid.estimators._fitted import ProbabilisticClassifier
from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.parameters import OPERATING_POINT
from qmedoid.methods.part import Calibration, KeptRows, OutOfFold, Part, Scored


def drawn(n, priors, seed=0, apart=2.0, labels=None):
    """Rows of classes that lie along the diagonals, `apart` from each other, and their labels."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(priors), size=n, p=priors)
    X = rng.normal(size=(n, len(priors))) + apart * np.eye(len(priors))[codes]
    return X, codes if labels is None else np.array(labels)[codes]


@dataclass(frozen=True, eq=False)
class GaussianPart(Part):
    """Minus log N(x; apart·e_c, 1) and the prior, up to a constant of the row."""

    apart: float
    log_priors: Any

    name = "gaussian"
    score_measured = contributions = column_contributions = facts = None
    columns = property(lambda self: np.arange(len(self.log_priors)))
    rows = property(lambda self: KeptRows(self.columns[:0], self.columns[:0]))

    def score(self, X, *, channels=False, threads=None):  # noqa: ARG002
        return Scored(-(self.apart * np.asarray(X) + self.log_priors))


class GaussianClasses(ProbabilisticClassifier):
    """Knows the densities of `drawn`; rows of its folds are held out from nothing, because nothing is fitted."""

    _constraints = {"operating_point": OPERATING_POINT}  # noqa: RUF012

    def __init__(self, *, apart=2.0, n_folds=5, operating_point=None):
        self.apart = apart
        self.n_folds = n_folds
        self.operating_point = operating_point

    def fit(self, X, y):
        table, codes, _ = self._checked(X, y)
        return self.hold(table, codes, np.arange(len(codes)) % self.n_folds if self.n_folds else None)

    def hold(self, table, codes, fold, weights=None):
        """Decide by rows of these folds."""
        part = GaussianPart(self.apart, np.log(np.bincount(codes) / len(codes)))
        held_out = None if fold is None else OutOfFold(-part.score(table).scores, fold)
        data = TrainingTable(table, codes, self.classes_, weights=weights)
        decision, curve = self._chosen_decision(data, held_out)
        n_classes = len(self.classes_)
        self.model_ = self._model_of_numbers(
            data, (part,), decision, curve=curve, method=part.name,
            weights=np.ones(1), biases=np.zeros(n_classes), calibration=Calibration.plain(n_classes),
        )  # fmt: skip
        return self
