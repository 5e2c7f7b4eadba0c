"""The hybrid model: a calibrated method, and a circuit that decides the records its policy picks (algorithm 20)."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.geometry.channels import DeltaKind, delta_features, delta_names, nearest_two
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.calibration_curve import Calibration
from qmedoid.methods.part import CLOSED_FORM, Backends, Part, Scored, score_part
from qmedoid.methods.registry import METHODS, model_class
from qmedoid.methods.variational.model import ExpectationFunction, VariationalModel
from qmedoid.methods.variational.training import TrainingData
from qmedoid.schema import RefusedError, Tagged, Values


@dataclass(frozen=True)
class DeltaSettings:
    """Deltas for a circuit: of all pairs of classes or of the two nearest, with or without those of the score."""

    kind: DeltaKind = "pairs"
    fused: bool = False

    def decides_between_two(self, n_classes: int) -> bool:
        """Whether the circuit only decides between a record's two nearest classes."""
        return self.kind == "nearest" and n_classes > 2

    def n_features(self, n_classes: int, angular: bool) -> int:
        """Number of deltas."""
        return len(delta_names([""] * n_classes, kind=self.kind, angular=angular, fused=self.fused))

    def features(self, model: Part, found: Scored, scores: Array | None = None) -> Array:
        """Deltas of a method, shape (n, m); class scores, if given, say which two classes are nearest."""
        if found.features is not None:
            return found.features
        return delta_features(
            found.channels,
            found.scores,
            kind=self.kind,
            angular=use_angular(model),
            fused=self.fused,
            ranking=None if scores is None else -scores,
        )


def use_angular(method: Part) -> bool:
    """Whether the angle is one of the channels for a circuit."""
    base = getattr(method, "base", method)
    return bool(getattr(base, "use_angular", True))


def n_deltas(method: Part) -> int | None:
    """Number of deltas for a circuit; None where they are made from the channels."""
    features = getattr(getattr(method, "base", method), "circuit_features", None)
    return None if features is None else len(features)


def decider(method: Part) -> str:
    """What decides, in one word."""
    return str(getattr(method, "decider", method.name))


@dataclass(frozen=True)
class HybridModel:
    """A method with calibrated scores, and a circuit that refines some of its decisions.

    Attributes
    ----------
    method : NearestPart, EvidencePart, RarePart or SumModel
    calibration : Calibration
        Of its scores.
    deltas : DeltaSettings
        Features of the circuit.
    variational : VariationalModel or None
        The circuit, if there is one.
    refine_below : float
        Records whose margin, the best calibrated score minus the second, is at most this are decided by the circuit:
        −∞ is none, ∞ is all. For rare events the margin is the score of the common class minus that of the rare one.
    residual : bool
        Whether the circuit corrects the calibrated scores instead of replacing them.
    recalibration : Calibration or None
        Of the scores after the circuit, fitted to new labels: the circuit keeps the scores that it was trained on.
        Without a circuit new labels replace `calibration`.
    """

    method: Annotated[Part, Tagged(model_class, METHODS)]
    calibration: Calibration
    deltas: DeltaSettings = DeltaSettings()
    variational: VariationalModel | None = None
    refine_below: Annotated[float, Values(infinite=True)] = -np.inf
    residual: bool = False
    recalibration: Calibration | None = None

    def validate(self) -> None:
        """Refuse a second calibration where there is no circuit between the two."""
        if self.recalibration is not None and self.variational is None:
            raise RefusedError("recalibration belongs to a model with a circuit, and there is none")

    @property
    def slope(self) -> float:
        """What the scores of the method are stretched by, before and after the circuit."""
        return self.calibration.slope * (1.0 if self.recalibration is None else self.recalibration.slope)

    @property
    def last_calibration(self) -> Calibration:
        """The calibration that class scores come from; that of a circuit which nobody recalibrated changes nothing."""
        if self.variational is None:
            return self.calibration
        return self.recalibration or Calibration(1.0, np.zeros(len(self.calibration.biases)))

    def with_last_calibration(self, calibration: Calibration) -> "HybridModel":
        """A copy with another last calibration."""
        if self.variational is None:
            return replace(self, calibration=calibration)
        return replace(self, recalibration=calibration)

    @property
    def refinement(self) -> str:
        """Which records the circuit decides: ``"none"``, ``"selective"`` or ``"always"``."""
        if self.variational is None:
            return "none"
        return "always" if self.refine_below == np.inf else "selective"

    def decide(
        self,
        X: Table,
        *,
        backends: Backends = CLOSED_FORM,
        picked: Flags | None = None,
        threads: int | None = None,
    ) -> tuple[Array, Flags, Codes]:
        """Class scores (n, C), which records the circuit decided, and the place of each class's nearest medoid, (n, C).

        The largest score decides, and their softmax is the class probability. Records that are `picked` go to the
        circuit, if they are given, and else those that the policy picks by these scores.
        """
        found = score_part(self.method, X, backends, channels=self.variational is not None, threads=threads)
        assert found.nearest is not None, "a method has medoids"
        scores = self.calibration.apply(found.scores)
        if self.variational is None:
            return scores, np.zeros(len(scores), dtype=np.bool_), found.nearest
        picked = self.picks(scores) if picked is None else picked
        rows = np.flatnonzero(picked)
        if len(rows):
            features = self.deltas.features(self.method, found.take(rows), scores[rows])
            scores[rows] = self.refined(scores[rows], features, backends.expectations)
        if self.recalibration is not None:
            scores = self.recalibration.apply(-scores)
        return scores, picked, found.nearest

    def picks(self, scores: Array) -> Flags:
        """Which records the policy gives to the circuit, from calibrated scores."""
        if self.variational is None:
            return np.zeros(len(scores), dtype=np.bool_)
        return self.refinement_margins(scores) <= self.refine_below

    def refinement_margins(self, scores: Array) -> Array:
        """Margins of calibrated scores, shape (n,); records with the smallest go to the circuit."""
        rare = getattr(self.method, "rare_class", None)
        return score_margins(scores) if rare is None else scores[:, 1 - rare] - scores[:, rare]

    def training_data(
        self, measured: Scored, scores: Array, codes: Codes, class_weights: Array
    ) -> tuple[TrainingData, Codes]:
        """What the circuit is trained on, from measurements and calibrated scores of rows, and which rows that are.

        A circuit that decides between the two nearest classes learns from the records that belong to one of them:
        code 1 is the nearest, 0 the runner-up.
        """
        features = self.deltas.features(self.method, measured, scores)
        if not self.deltas.decides_between_two(scores.shape[1]):
            offset = scores if self.residual else None
            return TrainingData(features, codes, class_weights, offset), np.arange(len(codes))
        best, second = two_nearest(scores)
        rows = np.flatnonzero((codes == best) | (codes == second))
        offset = two_nearest_scores(scores)[rows] if self.residual else None
        between = (codes == best)[rows].astype(np.intp)
        return TrainingData(features[rows], between, np.ones(2), offset), rows

    def refined(self, scores: Array, features: Array, backend: ExpectationFunction | None = None) -> Array:
        """Scores by the circuit, from calibrated scores and deltas."""
        if self.variational is None:
            return scores
        if not self.deltas.decides_between_two(scores.shape[1]):
            return self.variational.scores(features, scores if self.residual else None, backend=backend)
        offset = two_nearest_scores(scores) if self.residual else None
        return shared_out(scores, scores, self.variational.scores(features, offset, backend=backend))


def score_margins(scores: Array) -> Array:
    """Best class score minus the second best, shape (n,)."""
    ranked = np.sort(scores, axis=1)
    return np.asarray(ranked[:, -1] - ranked[:, -2])


def two_nearest(scores: Array) -> tuple[Codes, Codes]:
    """The best class and the runner-up of every record, by the highest scores; of equal ones the first.

    The margin is between these. A calibration with biases may rank other classes first than the method does.
    """
    return nearest_two(-scores)


def two_nearest_scores(scores: Array) -> Array:
    """Class scores of the runner-up and of the best, shape (n, 2)."""
    best, second = two_nearest(scores)
    rows = np.arange(len(scores))
    return np.column_stack([scores[rows, second], scores[rows, best]])


def shared_out(scores: Array, ranking: Array, between_two: Array) -> Array:
    """Scores where the probability of the two classes that rank highest is shared out anew.

    Parameters
    ----------
    scores, ranking : ndarray of shape (n, C)
        Class scores, and those whose two highest are the classes.
    between_two : ndarray of shape (n, 2)
        New scores of the runner-up and of the best.
    """
    best, second = two_nearest(ranking)
    rows = np.arange(len(scores))
    log_p = log_softmax(scores)
    both = np.logaddexp(log_p[rows, best], log_p[rows, second])
    shares: npt.NDArray[Any] = log_softmax(between_two)
    log_p[rows, second], log_p[rows, best] = both + shares[:, 0], both + shares[:, 1]
    return log_p
