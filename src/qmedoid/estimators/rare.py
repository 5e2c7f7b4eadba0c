"""How a `GeometricClassifier` looks for rare events: the settings of its rare-event model."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._first_stage import Apart, FirstStageSettings, Told
from qmedoid.estimators._parameters import Constraint, Flag, Some, Whole
from qmedoid.exceptions import ParameterError
from qmedoid.methods.base import Method
from qmedoid.methods.column_order import order_by_content, rare_in_order
from qmedoid.methods.rare.fit import fit_rare
from qmedoid.methods.rare.prototypes import RareSettings

KINDS = ("deltas", "nearness", "position", "middle")
"""Kinds of evidence of a rare-event model."""


class RareEventClassifier(FirstStageSettings):
    """Settings of the rare-event model: ``GeometricClassifier(method=RareEventClassifier(n_hard=0))``.

    Parameters
    ----------
    n_rare : int, default=2000
        How many rows of the rare class are prototypes at most; all of them where there are fewer.
    n_common : int, default=3000
        How many rows of the common class, drawn at random, are prototypes.
    n_hard : int, default=1000
        How many more are chosen for their likeness to the rare class; 0 for none.
    blocks : list of str, default=("deltas", "nearness", "position", "middle")
        Kinds of evidence: distances to the nearest prototypes of both classes, nearness to them on every column,
        where on every column a record lies, and how far from the middle prototype of each class.
    contrast : bool, default=True
        Whether there is a second metric that weighs each column by how well it tells the classes apart.
    signed_log : bool, default=True
        Whether long tails are compressed before rows are compared.
    leave_one_out : bool, default=True
        Whether a training row is not compared with itself. Without, the rare rows know their own class.
    n_folds : int, default=3
        Folds of the scores that calibrate and set thresholds: in each, everything is fitted anew.
    cv : int, splitter, iterable or None, default=None
        Other folds in place of these.
    refit : bool, default=True
        Whether the final model is fitted on all rows; False keeps that of the only split of `cv`.

    Attributes
    ----------
    model_ : RareEventModel
    """

    def __init__(
        self,
        *,
        n_rare: int = 2000,
        n_common: int = 3000,
        n_hard: int = 1000,
        blocks: Sequence[str] = KINDS,
        contrast: bool = True,
        signed_log: bool = True,
        leave_one_out: bool = True,
        n_folds: int = 3,
        cv: Any = None,
        refit: bool = True,
    ) -> None:
        self.n_rare = n_rare
        self.n_common = n_common
        self.n_hard = n_hard
        self.blocks = blocks
        self.contrast = contrast
        self.signed_log = signed_log
        self.leave_one_out = leave_one_out
        self.n_folds = n_folds
        self.cv = cv
        self.refit = refit

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        **FirstStageSettings._constraints,
        "n_rare": Whole(2),
        "n_common": Whole(2),
        "n_hard": Whole(0),
        "blocks": Some(KINDS),
        "contrast": Flag(),
        "signed_log": Flag(),
        "leave_one_out": Flag(),
        "n_folds": Whole(2),
    }

    @property
    def n_circuit_features(self) -> int:
        """How many features a circuit is fed."""
        return self._settings().n_circuit_features

    def _settings(self) -> RareSettings:
        usual = RareSettings()
        return RareSettings(
            deltas_strength=usual.deltas_strength if "deltas" in self.blocks else 0.0,
            nearness_strength=usual.nearness_strength if "nearness" in self.blocks else 0.0,
            position_strength=usual.position_strength if "position" in self.blocks else 0.0,
            middle_strength=usual.middle_strength if "middle" in self.blocks else 0.0,
            n_rare=int(self.n_rare),
            n_common=int(self.n_common),
            n_hard=int(self.n_hard),
            metrics=("plain", "contrast") if self.contrast else ("plain",),
            signed_log=bool(self.signed_log),
            leave_one_out=bool(self.leave_one_out),
            n_folds=int(self.n_folds),
        )

    def _fit_rows(
        self,
        table: Array,
        codes: Codes,
        classes: npt.NDArray[Any],
        seed: int,
        told: Told,
        groups: Codes | None,
    ) -> tuple[Method, Apart]:
        if len(classes) != 2:
            raise ParameterError(
                f"method='rare' tells one rare class from another, and there are {len(classes)} classes. "
                "Use method='evidence'."
            )
        order = order_by_content(table)
        fitted = fit_rare(np.ascontiguousarray(table[:, order]), codes, self._settings(), seed, told, groups)
        return rare_in_order(fitted.model, order), Apart(fitted.out_of_fold, fitted.circuit_features, fitted.fold)
