"""What a model is made of, for those who write it in another language: encodings, a weighted sum, a decision."""

from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import ModelError
from qmedoid.methods.calibration_curve import Calibration
from qmedoid.methods.part import Part
from qmedoid.methods.sum.model import SumModel
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.model import Model


@dataclass(frozen=True, eq=False)
class FlatModel:
    """A model without a circuit: class scores are a calibrated, weighted sum of a method and parts.

    Attributes
    ----------
    table : Model
        Has the contract, the encodings and the decision.
    base : Part
        Has the medoids.
    parts : tuple of Part
    weights : ndarray of shape (1 + J,)
        Of the base first, then of each of J parts.
    biases : ndarray of shape (C,)
        Taken off the weighted sum.
    calibration : Calibration
    sha256 : str or None
        Of the model file.
    """

    table: Model
    base: Part
    parts: tuple[Part, ...]
    weights: Array
    biases: Array
    calibration: Calibration
    sha256: str | None = None


def flattened(table: Model, sha256: str | None = None) -> FlatModel:
    """The parts of a model.

    Raises
    ------
    ModelError
        A circuit takes part in its decisions.
    """
    best, method = table.best, table.method
    if method is None or not isinstance(best, HybridModel) or best.variational is not None:
        raise ModelError(
            "A quantum circuit takes part in the decisions of this model, and no export can run it: fit a model "
            "without one (refine='never'), or export its circuits with 'qmedoid circuit export'."
        )
    biases = np.zeros(len(table.decision.classes))
    if isinstance(method, SumModel):
        return FlatModel(table, method.base, method.parts, method.weights, method.biases, best.calibration, sha256)
    return FlatModel(table, method, (), np.ones(1), biases, best.calibration, sha256)
