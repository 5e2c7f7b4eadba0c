"""The front door: fusion first, a variational circuit where it is needed (algorithms 16 and 20)."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.callback import CallbackContext, CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qmedoid.estimators._operating_point import AlertRate, OperatingPoint
from qmedoid.estimators._parameters import Choice, Constraint, Either, Estimator, Flag, Optional, Seed
from qmedoid.estimators._probabilistic import ProbabilisticClassifier
from qmedoid.estimators._refinement import (
    Refinement,
    Refiner,
    StageName,
    check_circuits,
    circuit_settings,
    policy_for,
)
from qmedoid.estimators._saving import SavingMixin
from qmedoid.estimators._tables import check_table
from qmedoid.estimators._threads import one_blas_thread
from qmedoid.estimators.deltas import seeded_fusion
from qmedoid.estimators.fusion import FusionClassifier
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.fitting.calibration import CALIBRATION_KINDS, CalibrationKind
from qmedoid.fitting.geometric import Stage, calibrated_stage
from qmedoid.fitting.select import Selected
from qmedoid.geometry.deltas import DELTA_KINDS, DeltaKind
from qmedoid.geometry.protocols import SwapTestFunction
from qmedoid.models.fusion import MeasuredFusion
from qmedoid.models.geometric import DeltaSettings
from qmedoid.models.variational import MeasuredVariational
from qmedoid.variational.protocols import ExpectationFunction

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

PAIRS_UP_TO = 5
"""Classes up to which a circuit is fed the deltas of all pairs by default; there are 20 of them then."""


class GeometricClassifier(SavingMixin, CallbackSupportMixin, ProbabilisticClassifier):
    """Classify by distance to real records, and by a small quantum circuit where that is not enough.

    The fusion score of distance and angle decides first. A variational circuit on contrastive deltas takes over where
    the table is large and a class rare, or for the single records whose fusion margin is small.

    Parameters
    ----------
    fusion : "convex" or FusionClassifier, default="convex"
        The first stage. ``"convex"`` is `FusionClassifier()`.
    variational : VariationalClassifier or None, default=None
        How circuits are built and trained. None is `VariationalClassifier()`; pass one to search over its parameters.
    refine : {"auto", "always", "never"} or float, default="auto"
        When the circuit decides. A number is the share of the records, those of the smallest margin over the training
        rows, and is turned into a margin at fit. ``"auto"`` is ``"always"`` for tables of at least 10,000 rows whose
        rarest class has at most 5 %; on other tables of at least 1,000 rows it is 0.1 if that makes held-out rows
        likelier by more than a standard error; else ``"never"``.
    residual : bool, default=False
        Whether the circuit corrects the log-odds of the fusion score instead of replacing them.
    deltas : {"pairs", "nearest"}, default="pairs"
        For more than two classes: deltas of all pairs, or of the two nearest classes by calibrated score, between which
        the circuit then decides.
    fused_delta : bool, default=False
        Whether the fusion score has a delta of its own.
    calibration : {"logistic", "temperature"}, default="logistic"
        How fusion scores become probabilities, on held-out rows: with a slope and a bias for each class, or with a
        slope alone, which keeps the decision of the fusion score.
    operating_point : str, float or None, default=None
        For two classes: a metric whose best threshold on held-out rows is used, or the threshold itself. None decides
        for the likelier class.
    alert_rate : float or None, default=None
        For two classes, instead of an operating point: the share of the records that may be called the second. The
        threshold is where this share of the held-out rows lies above it.
    random_state : int, RandomState or None, default=None
        Seed of both stages, where they have none of their own.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    stage_ : {"fusion", "selective", "variational"}
        Who decides: the fusion score, the circuit for some records, or the circuit for all.
    fusion_ : FusionClassifier
        The first stage; its medoids are those that decide.
    variational_ : VariationalClassifier or None
        The circuit of the best model as an estimator of its own, fitted on deltas, with its loss curve, the scores of
        the grid and `circuit()`; None where fusion decides everything.
    model_ : GeometricModel
        The best model; `models_` holds one for each fusion model that was kept: by `held_out_scores_` where a circuit
        takes part, else in the order of `fusion_`.
    margin_ : float
        Records whose fusion margin, in log-odds, is at most this are decided by the circuit; −∞ and ∞ mean none, all.
    threshold_ : float
        Probability of the second class above which a record is called so; 0.5 without operating point and alert rate.
    held_out_scores_ : ndarray
        Quality of each of `models_` on held-out rows: the metric of the operating point, or the mean log-likelihood.
        The same rows chose configuration, α and calibration, so on small tables it is more than new rows will show.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
    """

    def __init__(
        self,
        *,
        fusion: str | FusionClassifier = "convex",
        variational: VariationalClassifier | None = None,
        refine: str | float = "auto",
        residual: bool = False,
        deltas: DeltaKind | Literal["auto"] = "auto",
        fused_delta: bool = False,
        calibration: CalibrationKind = "logistic",
        operating_point: str | float | None = None,
        alert_rate: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.fusion = fusion
        self.variational = variational
        self.refine = refine
        self.residual = residual
        self.deltas = deltas
        self.fused_delta = fused_delta
        self.calibration = calibration
        self.operating_point = operating_point
        self.alert_rate = alert_rate
        self.random_state = random_state

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "fusion": Either(Choice(("convex",)), Estimator(FusionClassifier)),
        "variational": Optional(Estimator(VariationalClassifier)),
        "refine": Refinement(),
        "residual": Flag(),
        "deltas": Choice(("auto", *DELTA_KINDS)),
        "fused_delta": Flag(),
        "calibration": Choice(CALIBRATION_KINDS),
        "operating_point": OperatingPoint(),
        "alert_rate": AlertRate(),
        "random_state": Seed(),
    }

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Both stages as printed: see `FusionClassifier.paper` and `VariationalClassifier.paper`.

        Everything is still fitted on training rows only. The paper chooses a threshold for two classes, and uses 0.3
        in its fraud tables: pass ``operating_point="macro_f1"`` or ``0.3``. `changes` override single parameters.
        """
        printed: dict[str, Any] = {
            "fusion": FusionClassifier.paper(),
            "variational": VariationalClassifier.paper(operating_point=None),
            "deltas": "nearest",
            "calibration": "temperature",
        }
        return cls(**(printed | changes))

    @with_callbacks
    @one_blas_thread
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the fusion models, calibrate them, and train circuits on their deltas where the policy asks for them.

        Parameters
        ----------
        X : array-like or data frame of shape (n, M)
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        """
        table, codes = self._checked(X, y)
        variational, policy = circuit_settings(self.variational, self.operating_point), policy_for(self.refine, codes)
        self.fusion_ = seeded_fusion(None if isinstance(self.fusion, str) else self.fusion, self.random_state)
        if policy != "never":
            check_circuits(variational, self._delta_settings(), len(self.classes_), self.fusion_.use_angular)
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        selected, stages = self._fusion_stages(X, y, table, codes, context)
        entropy = self._entropy(variational)
        refiner = Refiner(self, context, variational, policy, self.classes_, codes, entropy)
        fitted = [refiner.fit(stage) for stage in stages]
        if any(one.stage != "fusion" for one in fitted):
            # A circuit may do more for the second fusion model than for the first.
            order = sorted(range(len(fitted)), key=lambda number: -fitted[number].score)
            fitted = [fitted[number] for number in order]
            self.fusion_._keep([selected[number] for number in order], table)
        best = fitted[0]
        self.models_ = [one.model for one in fitted]
        self.model_ = best.model
        self.stage_: StageName = best.stage
        self.variational_ = best.circuit
        self.margin_ = best.model.refine_below
        self.held_out_scores_ = np.array([one.score for one in fitted])
        self._set_cut(codes, best.held_out)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def decided_by(self, X: Any) -> npt.NDArray[np.str_]:
        """Who decides each row, ``"fusion"`` or ``"variational"``, shape (n,)."""
        return np.where(self._decide(X)[1], "variational", "fusion")

    def measured_by(
        self, swap_test: SwapTestFunction | None = None, expectations: ExpectationFunction | None = None
    ) -> Self:
        """The same fitted classifier with one or both stages run by circuits instead of by closed form and simulator.

        Parameters
        ----------
        swap_test : callable (X, Y) -> SwapTest, optional
            Measures the overlaps, for example `qmedoid.circuits.SamplerSwapTest`.
        expectations : callable, optional
            Runs the variational circuit, for example `qmedoid.circuits.SamplerExpectations`.

        Returns
        -------
        GeometricClassifier
            A copy; this one is left as it is.
        """
        check_is_fitted(self)
        model = self.model_
        if swap_test is not None:
            plain = model.fusion.model if isinstance(model.fusion, MeasuredFusion) else model.fusion
            model = replace(model, fusion=MeasuredFusion(plain, swap_test))
        if expectations is not None and model.variational is not None:
            circuit = model.variational
            circuit = circuit.model if isinstance(circuit, MeasuredVariational) else circuit
            model = replace(model, variational=MeasuredVariational(circuit, expectations))
        measured = copy.copy(self)
        measured.model_ = model
        return measured

    def _scores(self, X: Any) -> Array:
        return self._decide(X)[0]

    def _decide(self, X: Any) -> tuple[Array, npt.NDArray[np.bool_]]:
        check_is_fitted(self)
        return self.model_.decide(check_table(self, X, reset=False))

    def _delta_settings(self) -> DeltaSettings:
        kind: DeltaKind = "pairs" if len(self.classes_) <= PAIRS_UP_TO else "nearest"
        return DeltaSettings(kind if self.deltas == "auto" else self.deltas, bool(self.fused_delta))

    def _fusion_stages(
        self, X: Any, y: Any, table: Array, codes: Codes, context: CallbackContext
    ) -> tuple[list[Selected], list[Stage]]:
        """The fusion models, best first, and what becomes of each by calibration."""
        task = context.subcontext("fusion")
        with task.propagate_callback_context(self.fusion_):
            task.call_on_fit_task_begin(estimator=self)
            selected, folds = self.fusion_._fit_selected(X, y)
            task.call_on_fit_task_end(estimator=self)
        settings, residual = self._delta_settings(), bool(self.residual)
        return selected, [
            calibrated_stage(choice, folds, table, codes, kind=self.calibration, deltas=settings, residual=residual)
            for choice in selected
        ]

    def _entropy(self, variational: VariationalClassifier) -> list[int]:
        seed = self.random_state if variational.random_state is None else variational.random_state
        return [int(value) for value in check_random_state(seed).randint(2**31, size=4)]
