"""A new method as somebody would add it: a part, its estimator, and one entry of the registry.

The score of a class is the squared distance to its only medoid, the training row nearest to its mean.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._methods import MethodClassifier
from qmedoid.methods.contributions import Contributions, GroupContribution
from qmedoid.methods.part import KeptRows, Part, Scored, measured_distances
from qmedoid.methods.registry import MethodEntry
from qmedoid.methods.variational.selection import OutOfFold
from qmedoid.schema import RowNumbers, Values

ENTRY = MethodEntry("toy_method:ToyPart", "toy_method:ToyClassifier")


@dataclass(frozen=True, eq=False)
class ToyPart(Part):
    """Squared distances to one medoid per class."""

    medoids: Annotated[Array, Values("C M")]
    numbers: Annotated[Codes, RowNumbers("C")]
    name: ClassVar[str] = "toy"
    columns = property(lambda self: np.arange(self.medoids.shape[1]))
    rows = property(lambda self: KeptRows(self.numbers, np.arange(len(self.medoids)), self.medoids, np.copy, "Euclid"))
    facts = property(
        lambda self: {"description": "distances to the medoids", "groups": (tuple(self.columns.tolist()),), "kept": (),
                      "vector_length": len(self.columns), "numbers": {}}
    )  # fmt: skip

    def score(self, X, *, channels=False, threads=None):  # noqa: ARG002
        rows = X if isinstance(X, np.ndarray) else np.column_stack(X)
        return self._scored(np.sqrt(((rows[:, None] - self.medoids) ** 2).sum(axis=2)))

    def score_measured(self, X, backend):
        return self._scored(measured_distances(backend, np.asarray(X).T if isinstance(X, list) else X, self.medoids))

    def _scored(self, distance):
        nearest = np.broadcast_to(np.arange(len(self.medoids)), distance.shape)
        return Scored(distance**2, nearest, distance, np.zeros_like(distance))

    def contributions(self, row, winner, other):
        columns = self.column_contributions(row, winner, other)[0]
        return Contributions(columns, (GroupContribution(self.facts["groups"][0], float(columns.sum())),), {})

    def column_contributions(self, X, winners, others):
        return (X - self.medoids[others]) ** 2 - (X - self.medoids[winners]) ** 2


class ToyClassifier(MethodClassifier):
    """The nearest class, calibrated on three folds."""

    method_name = "toy"
    _constraints = MethodClassifier._constraints

    def __init__(self, *, calibration="auto", operating_point=None, cv=3, refit=True, random_state=None):
        self.calibration = calibration
        self.operating_point = operating_point
        self.cv = cv
        self.refit = refit
        self.random_state = random_state

    def _fit_rows(self, data, seed, progress):  # noqa: ARG002
        rows = [np.flatnonzero(data.codes == code) for code in range(len(data.classes))]
        middle = [own[((data.X[own] - data.X[own].mean(axis=0)) ** 2).sum(axis=1).argmin()] for own in rows]
        model = ToyPart(data.X[middle], np.array(middle))
        progress(1.0)
        return model, OutOfFold(model.score(data.X).scores, np.zeros(len(data.codes), dtype=np.intp)), None
