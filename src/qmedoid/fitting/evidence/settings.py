"""How an evidence model is fitted, and what comes of it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmedoid.models.evidence import EvidenceModel

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EvidenceSettings:
    """Settings of an evidence model.

    Attributes
    ----------
    n_medoids : int
        Medoids at most, but at least one per class.
    """

    n_medoids: int = 64


@dataclass(frozen=True, eq=False)
class FittedEvidence:
    """An evidence model, and what its fit showed.

    Attributes
    ----------
    model : EvidenceModel
    held_out : ndarray of shape (n, C)
        Dissimilarities of every training row by weights that have not seen it.
    regularisation : float
        The λ that was chosen.
    loo_error : float
        Mean squared leave-one-out error of the outputs at that λ.
    """

    model: EvidenceModel
    held_out: Array
    regularisation: float
    loo_error: float
