"""A classifier whose groups, medoids and decisions are plain to see, and that remembers what it was fitted on."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from qmedoid.methods.part import KeptRows, Part


@dataclass
class PlantedPart(Part):
    """Groups, and the rows of medoids."""

    groups: Any
    numbers: Any
    columns = np.zeros(0, dtype=np.intp)
    score = score_measured = contributions = column_contributions = None
    facts = property(lambda self: {"groups": self.groups})
    rows = property(lambda self: KeptRows(self.numbers, np.zeros(len(self.numbers), dtype=np.intp)))


class Planted(ClassifierMixin, BaseEstimator):
    """Column 0 is the number of the row. Decides by the nearest class mean in column 1.

    The medoid of a class is the row nearest to its mean, and the group is column 1 with that of columns 2 and 3 whose
    mean is larger.
    """

    fits: ClassVar[list] = []

    def __init__(self, n_medoids=1, fails_at=None, random_state=None):
        self.n_medoids = n_medoids
        self.fails_at = fails_at
        self.random_state = random_state

    def fit(self, X, y):
        if len(self.fits) == self.fails_at:
            raise ValueError("the rows are not to my taste")
        self.classes_ = np.unique(y)
        self.rows = X[:, 0].astype(int)
        self.means = np.array([X[y == label, 1].mean() for label in self.classes_])
        medoids = [
            np.flatnonzero(y == label)[np.argsort(np.abs(X[y == label, 1] - mean), kind="stable")[: self.n_medoids]]
            for label, mean in zip(self.classes_, self.means, strict=True)
        ]
        partner = 2 if X[:, 2].mean() > X[:, 3].mean() else 3
        self.part = PlantedPart(((1, partner), (2,), (0, 1, 2, 3)), np.concatenate(medoids))
        self.model_ = SimpleNamespace(medoid_part=self.part)
        type(self).fits.append(self)
        return self

    def decision_function(self, X):
        return np.abs(X[:, 1] - self.means[0]) - np.abs(X[:, 1] - self.means[1])

    def predict_proba(self, X):
        second = 1 / (1 + np.exp(-self.decision_function(X)))
        return np.column_stack([1 - second, second])

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class Fixed(Planted):
    """The same whatever the rows: nothing about it can change."""

    fits: ClassVar[list] = []

    def fit(self, X, y):
        super().fit(X, y)
        self.means = np.array([0.0, 1.0])
        self.part.groups = ((1, 2),)
        return self


def planted_rows(n=60, seed=0):
    """Rows in which the three things that `Planted` finds are all unsure."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return np.column_stack([np.arange(n), rng.normal(size=n) + y, rng.normal(size=(n, 2))]), np.array(["a", "b"])[y]
