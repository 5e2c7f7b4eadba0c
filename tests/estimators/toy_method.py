"""A new method as somebody would add it: a model, its estimator, and one entry of the registry.

The score of a class is the squared distance to its only medoid, the training row nearest to its mean.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._methods import MethodClassifier
from qmedoid.geometry.channels import Channels
from qmedoid.methods.base import Measured, MeasuredMethod, measured_distances
from qmedoid.methods.contributions import Contributions, GroupContribution
from qmedoid.methods.registry import MethodEntry
from qmedoid.methods.variational.selection import OutOfFold
from qmedoid.schema import Values

ENTRY = MethodEntry("toy_method:ToyModel", "toy_method:ToyClassifier")


@dataclass(frozen=True, eq=False)
class ToyModel:
    """Squared distances to one medoid per class."""

    medoids: Annotated[Array, Values("C M")]
    medoid_rows: Annotated[Codes, Values("C")]
    name: ClassVar[str] = "toy"
    decider: ClassVar[str] = name
    description: ClassVar[str] = "distances to the medoids"
    kept_rows: ClassVar[tuple[str, ...]] = ()
    distance_name: ClassVar[str] = "Euclidean distance"
    use_angular: ClassVar[bool] = False
    rare_class: ClassVar[None] = None
    n_neighbors: ClassVar[int] = 0
    n_deltas: ClassVar[None] = None

    plain = property(lambda self: self)
    n_classes = property(lambda self: len(self.medoids))
    medoid_classes = property(lambda self: np.arange(len(self.medoids)))
    medoid_coordinates = property(lambda self: self.medoids)
    column_groups = property(lambda self: (tuple(range(self.medoids.shape[1])),))
    n_measured = property(lambda self: self.medoids.shape[1])
    used = property(lambda self: np.arange(self.medoids.shape[1]))
    notices_bad_values = property(lambda self: np.zeros(self.medoids.shape[1], dtype=bool))
    facts = property(lambda self: {"medoids": len(self.medoids)})

    def measure(self, X, *, threads=None):  # noqa: ARG002
        rows = X if isinstance(X, np.ndarray) else np.column_stack(X)
        return self._measured(np.sqrt(((rows[:, None] - self.medoids) ** 2).sum(axis=2)))

    def measure_with(self, X, swap_test):
        rows = X if isinstance(X, np.ndarray) else np.column_stack(X)
        return self._measured(measured_distances(swap_test, rows, self.medoids))

    def _measured(self, distance):
        nearest = np.broadcast_to(np.arange(len(self.medoids)), distance.shape)
        return Measured(Channels(distance, np.zeros_like(distance)), distance**2, nearest)

    def scores_and_medoids(self, X, *, threads=None):  # noqa: ARG002
        measured = self.measure(X)
        return measured.scores, measured.nearest

    def coordinates(self, rows):
        return rows

    def contributions(self, row, measured, winner, other):  # noqa: ARG002
        columns = (row[0] - self.medoids[other]) ** 2 - (row[0] - self.medoids[winner]) ** 2
        return Contributions(columns, (GroupContribution(self.column_groups[0], float(columns.sum())),), {})

    def column_contributions(self, rows, winners, others):
        return (rows - self.medoids[others]) ** 2 - (rows - self.medoids[winners]) ** 2

    def with_swap_test(self, swap_test):
        return MeasuredMethod(self, swap_test)

    def with_row_numbers(self, rows):
        return replace(self, medoid_rows=rows[self.medoid_rows])


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
        model = ToyModel(data.X[middle], np.array(middle))
        progress(1.0)
        return model, OutOfFold(model.measure(data.X).scores, np.zeros(len(data.codes), dtype=np.intp)), None
