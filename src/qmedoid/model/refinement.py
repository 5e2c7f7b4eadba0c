"""The circuit that decides some records after the calibration, or corrects their scores (algorithm 20)."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.channels import delta_features, delta_names, nearest_two
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.part import Calibration, Scored
from qmedoid.methods.variational.model import ExpectationFunction, VariationalModel
from qmedoid.schema import Values


@dataclass(frozen=True)
class CircuitInputs:
    """What a refining circuit reads of a record.

    Attributes
    ----------
    kind : {"pairs", "nearest", "own"}
        Deltas of all pairs of classes, deltas of the two nearest, or the features of a part that has its own.
    fused, angular : bool
        Whether there are deltas of the score, and of the angle.
    """

    kind: Literal["pairs", "nearest", "own"] = "pairs"
    fused: bool = False
    angular: bool = True

    def decides_between_two(self, n_classes: int) -> bool:
        """Whether the circuit only decides between a record's two nearest classes."""
        return self.kind == "nearest" and n_classes > 2

    def n_features(self, n_classes: int, n_own: int) -> int:
        """Number of inputs; counted, not listed, as a file may name very many classes."""
        n = 2 if self.decides_between_two(n_classes) else n_classes
        return n_own if self.kind == "own" else n * (n - 1) // 2 * (1 + self.angular + self.fused)

    def names(self, classes: list[str], n_own: int) -> list[str]:
        """Names of the inputs."""
        if self.kind == "own":
            return [f"delta[{number}]" for number in range(n_own)]
        return delta_names(classes, kind=self.kind, angular=self.angular, fused=self.fused)

    def features(self, found: Scored, scores: Array | None = None) -> Array:
        """The inputs, shape (n, m); class scores, if given, say which two classes are nearest."""
        if self.kind == "own":
            assert found.features is not None, "the part has features of its own"
            return found.features
        ranking = None if scores is None else -scores
        return delta_features(
            found.channels, found.scores, kind=self.kind, angular=self.angular, fused=self.fused, ranking=ranking
        )


@dataclass(frozen=True)
class Refinement:
    """A trained circuit, and which records it decides.

    Attributes
    ----------
    circuit : VariationalModel
    inputs : CircuitInputs
    refine_below : float
        Records whose margin of calibrated scores is at most this are decided by the circuit; ∞ is all.
    residual : bool
        Whether the circuit corrects the calibrated scores instead of replacing them.
    margin_of : int or None
        The class by how far whose score is above the other's records are picked, the lowest margins first, with its
        sign changed: the rare class. None picks by the best score minus the second.
    recalibration : Calibration or None
        Of the scores after the circuit, fitted to new labels: the circuit keeps the scores that it was trained on.
    """

    circuit: VariationalModel
    inputs: CircuitInputs = CircuitInputs()
    refine_below: Annotated[float, Values(infinite=True)] = np.inf
    residual: bool = False
    margin_of: Annotated[int | None, Values(most=1)] = None
    recalibration: Calibration | None = None

    def picks(self, scores: Array) -> Flags:
        """Which records the circuit decides, from calibrated scores."""
        return refinement_margins(scores, self.margin_of) <= self.refine_below

    def apply(
        self, scores: Array, found: Scored, picked: Flags | None = None, backend: ExpectationFunction | None = None
    ) -> tuple[Array, Flags]:
        """Class scores (n, C) from calibrated ones, and the records that the circuit decided: `picked`, if given."""
        picked = self.picks(scores) if picked is None else picked
        rows = np.flatnonzero(picked)
        if len(rows):
            scores[rows] = self.refined(scores[rows], self.inputs.features(found.take(rows), scores[rows]), backend)
        return (scores if self.recalibration is None else self.recalibration.apply(-scores)), picked

    def refined(self, scores: Array, features: Array, backend: ExpectationFunction | None = None) -> Array:
        """Scores by the circuit, from calibrated scores and its inputs."""
        if not self.inputs.decides_between_two(scores.shape[1]):
            return self.circuit.scores(features, scores if self.residual else None, backend=backend)
        offset = two_nearest_scores(scores) if self.residual else None
        return shared_out(scores, scores, self.circuit.scores(features, offset, backend=backend))


def refinement_margins(scores: Array, margin_of: int | None = None) -> Array:
    """Margins of calibrated scores, shape (n,), by which a circuit is given records, the smallest first."""
    if margin_of is not None:
        return np.asarray(scores[:, 1 - margin_of] - scores[:, margin_of])
    ranked = np.sort(scores, axis=1)
    return np.asarray(ranked[:, -1] - ranked[:, -2])


def two_nearest(scores: Array) -> tuple[Codes, Codes]:
    """The best class and the runner-up of every record, by the highest scores; of equal ones the first.

    The margin is between these. A calibration with biases may rank other classes first than the parts do.
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
    shares = log_softmax(between_two)
    log_p[rows, second], log_p[rows, best] = both + shares[:, 0], both + shares[:, 1]
    return log_p
