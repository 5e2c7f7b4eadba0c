"""A classifier whose probabilities are exact: normal densities that are known, at the priors of its training rows."""

import numpy as np

from qmedoid.estimators._inputs import check_table
from qmedoid.estimators._parameters import OPERATING_POINT
from qmedoid.estimators._probabilistic import ProbabilisticClassifier
from qmedoid.methods.variational.selection import OutOfFold


def drawn(n, priors, seed=0, apart=2.0, labels=None):
    """Rows of classes that lie along the diagonals, `apart` from each other, and their labels."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(priors), size=n, p=priors)
    X = rng.normal(size=(n, len(priors))) + apart * np.eye(len(priors))[codes]
    return X, codes if labels is None else np.array(labels)[codes]


class GaussianClasses(ProbabilisticClassifier):
    """Knows the densities of `drawn`; rows of its folds are held out from nothing, because nothing is fitted."""

    _constraints = {"operating_point": OPERATING_POINT}  # noqa: RUF012

    def __init__(self, *, apart=2.0, n_folds=5, operating_point=None):
        self.apart = apart
        self.n_folds = n_folds
        self.operating_point = operating_point

    def fit(self, X, y):
        table, codes, _ = self._checked(X, y)
        self.log_priors_ = np.log(np.bincount(codes) / len(codes))
        held_out = OutOfFold(self._scores(table), np.arange(len(codes)) % self.n_folds) if self.n_folds else None
        self._set_cut(codes, held_out)
        return self

    def _scores(self, X):
        # log N(x; apart·e_c, 1) up to a constant of the row.
        return self.apart * check_table(self, X, reset=False) + self.log_priors_
