"""How a `GeometricClassifier` gathers evidence: the settings of its evidence model."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qmedoid.estimators._first_stage import Apart, FirstStageSettings, Told
from qmedoid.estimators._parameters import Choice, Constraint, Either, Whole
from qmedoid.fitting.evidence.fit import fit_evidence
from qmedoid.fitting.evidence.settings import EvidenceSettings
from qmedoid.models.stage import PlainStage

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

TINY = 6
"""Medoids of the setting ``"tiny"``."""


class EvidenceFusion(FirstStageSettings):
    """Settings of the evidence model: ``GeometricClassifier(fusion=EvidenceFusion(medoids="tiny"))``.

    Parameters
    ----------
    medoids : int or "tiny", default=64
        How many training rows the model may compare with at most, but at least one per class; ``"tiny"`` is 6.
    cv : int, splitter, iterable or None, default=None
        Folds whose held-out rows calibrate the scores and set thresholds. None takes leave-one-out scores.
    refit : bool, default=True
        Whether the final model is fitted on all rows; False keeps that of the only split.

    Attributes
    ----------
    model_ : EvidenceModel
    regularization_ : float
        The λ of the smallest leave-one-out error.
    """

    def __init__(self, *, medoids: int | str = 64, cv: Any = None, refit: bool = True) -> None:
        self.medoids = medoids
        self.cv = cv
        self.refit = refit

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        **FirstStageSettings._constraints,
        "medoids": Either(Whole(1), Choice(("tiny",))),
    }

    def _fit_rows(
        self, table: Array, codes: Codes, classes: npt.NDArray[Any], seed: int, told: Told
    ) -> tuple[PlainStage, Apart]:
        settings = EvidenceSettings(n_medoids=TINY if isinstance(self.medoids, str) else int(self.medoids))
        fitted = fit_evidence(table, codes, len(classes), settings, seed, told)
        self.regularization_ = fitted.regularisation
        return fitted.model, Apart(fitted.held_out)
