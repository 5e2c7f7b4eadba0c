"""The front door: fusion first, a variational circuit where it is needed (algorithms 16 and 20)."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.callback import CallbackContext, CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qmedoid.artifacts.checkpoints import CheckpointFolder
from qmedoid.estimators._class_weights import loss_weights
from qmedoid.estimators._folds import splits_of_part
from qmedoid.estimators._operating_point import OperatingPoint
from qmedoid.estimators._parameters import Choice, Constraint, Either, Estimator, Flag, Optional, Seed, check_parameters
from qmedoid.estimators._probabilistic import ProbabilisticClassifier
from qmedoid.estimators._tables import check_table
from qmedoid.estimators._threads import one_blas_thread
from qmedoid.estimators._training import TrainingPlan, grid_candidates, reporting_watch
from qmedoid.estimators.deltas import seeded_fusion
from qmedoid.estimators.fusion import FusionClassifier
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.exceptions import ParameterError, warn
from qmedoid.fitting.calibration import CALIBRATION_KINDS, CalibrationKind
from qmedoid.fitting.geometric import Stage, calibrated_stage, circuit_pays
from qmedoid.fitting.select import Selected
from qmedoid.fitting.variational_selection import OutOfFold, out_of_fold_score
from qmedoid.geometry.deltas import DELTA_KINDS, DeltaKind, delta_names
from qmedoid.geometry.protocols import SwapTestFunction
from qmedoid.models.fusion import MeasuredFusion
from qmedoid.models.geometric import DeltaSettings, GeometricModel, score_margins
from qmedoid.models.variational import MeasuredVariational
from qmedoid.variational.protocols import ExpectationFunction

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
StageName = Literal["fusion", "selective", "variational"]

LARGE = 10_000
"""Rows from which on a table counts as large."""
RARE = 0.05
"""Share up to which the rarest class counts as rare."""
ENOUGH = 1_000
"""Rows from which on a circuit is tried on a table that is not both large and imbalanced."""
AUTO_QUANTILE = 0.1
"""Share of the records, those of the smallest margin, that the circuit then decides."""


@dataclass(frozen=True)
class Refinement:
    """When the circuit is used: a word, or the share of the records with the smallest margins."""

    words: ClassVar[tuple[str, ...]] = ("auto", "always", "never")

    def allows(self, value: Any) -> bool:
        """Whether the value is one of these."""
        if isinstance(value, str):
            return value in self.words
        return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.words)) + ", or a number above 0 and below 1"


@dataclass(frozen=True)
class Fitted:
    """A hybrid model with its stage, its out-of-fold scores and their quality.

    A circuit that was stopped before it was judged has no scores, and is taken to be as good as fusion alone.
    """

    model: GeometricModel
    stage: StageName
    held_out: OutOfFold | None
    score: float


class GeometricClassifier(CallbackSupportMixin, ProbabilisticClassifier):
    """Classify by distance to real records, and by a small quantum circuit where that is not enough.

    The fusion score of distance and angle decides first. A variational circuit on contrastive deltas takes over where
    the table is large and a class rare, or for the single records whose fusion margin is small.

    Parameters
    ----------
    fusion : "convex" or FusionClassifier, default="convex"
        The first stage. ``"convex"`` is `FusionClassifier()`.
    variational : VariationalClassifier or None, default=None
        How circuits are built and trained. None is `VariationalClassifier()`.
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
    random_state : int, RandomState or None, default=None
        Seed of both stages, where they have none of their own.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    stage_ : {"fusion", "selective", "variational"}
        Who decides: the fusion score, the circuit for some records, or the circuit for all.
    fusion_ : FusionClassifier
        The first stage; its medoids are those that decide.
    model_ : GeometricModel
        The best model; `models_` holds one for each fusion model that was kept: by `held_out_scores_` where a circuit
        takes part, else in the order of `fusion_`.
    margin_ : float
        Records whose fusion margin, in log-odds, is at most this are decided by the circuit; −∞ and ∞ mean none, all.
    threshold_ : float
        Probability of the second class above which a record is called so; 0.5 without an operating point.
    held_out_scores_ : ndarray
        Quality of each of `models_` on held-out rows: the metric of the operating point, or the mean log-likelihood.
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
        deltas: DeltaKind = "pairs",
        fused_delta: bool = False,
        calibration: CalibrationKind = "logistic",
        operating_point: str | float | None = None,
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
        self.random_state = random_state

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "fusion": Either(Choice(("convex",)), Estimator(FusionClassifier)),
        "variational": Optional(Estimator(VariationalClassifier)),
        "refine": Refinement(),
        "residual": Flag(),
        "deltas": Choice(DELTA_KINDS),
        "fused_delta": Flag(),
        "calibration": Choice(CALIBRATION_KINDS),
        "operating_point": OperatingPoint(),
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
        variational, policy = self._variational(), self._policy(codes)
        self.fusion_ = seeded_fusion(None if isinstance(self.fusion, str) else self.fusion, self.random_state)
        if policy != "never":
            self._check_circuits(variational)
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        selected, stages = self._fusion_stages(X, y, table, codes, context)
        if policy == "never":
            fitted = [self._without_circuit(stage, codes) for stage in stages]
        else:
            fitted = [self._with_circuit(stage, codes, policy, variational, context) for stage in stages]
        if any(one.stage != "fusion" for one in fitted):
            # A circuit may do more for the second fusion model than for the first.
            order = sorted(range(len(fitted)), key=lambda number: -fitted[number].score)
            fitted = [fitted[number] for number in order]
            self.fusion_._keep([selected[number] for number in order], table)
        best = fitted[0]
        self.models_ = [one.model for one in fitted]
        self.model_ = best.model
        self.stage_: StageName = best.stage
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

    def _variational(self) -> VariationalClassifier:
        """A fresh, seeded copy of the circuit's settings."""
        fresh: VariationalClassifier = VariationalClassifier() if self.variational is None else clone(self.variational)
        check_parameters(type(fresh).__name__, fresh.get_params(deep=False), fresh._constraints)
        if fresh.operating_point is not None:
            raise ParameterError(
                "The operating point of a GeometricClassifier is its own: pass operating_point= to it, and "
                "operating_point=None to its VariationalClassifier."
            )
        if fresh.shots is not None:
            raise ParameterError(
                "A GeometricClassifier runs its circuit exactly: pass shots=None to its VariationalClassifier, and use "
                "measured_by(expectations=...) of the fitted classifier for shots."
            )
        # The circuit judges its candidates by what the whole is judged by.
        return fresh.set_params(operating_point=self.operating_point)

    def _check_circuits(self, variational: VariationalClassifier) -> None:
        """Raise for circuits that cannot take the deltas, or a folder that cannot be used, before any work is done."""
        settings, n_classes = self._delta_settings(), len(self.classes_)
        if settings.decides_between_two(n_classes) and variational.class_weight is not None:
            raise ParameterError(
                "A circuit between a record's two nearest classes has no weights of classes: pass class_weight=None to "
                "its VariationalClassifier, or deltas='pairs'."
            )
        names = delta_names(
            [""] * n_classes, kind=settings.kind, angular=self.fusion_.use_angular, fused=settings.fused
        )
        n_outcomes = 2 if settings.decides_between_two(n_classes) else n_classes
        for candidate in grid_candidates(variational)[1]:
            candidate.circuit.network(len(names), n_outcomes)
        if variational.checkpoint is not None:
            CheckpointFolder(Path(variational.checkpoint))

    def _delta_settings(self) -> DeltaSettings:
        return DeltaSettings(self.deltas, bool(self.fused_delta))

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

    def _policy(self, codes: Codes) -> str | float:
        """What ``"auto"`` means for this table, else what was asked for."""
        if self.refine != "auto":
            return self.refine
        counts = np.bincount(codes)
        if len(codes) >= LARGE and counts.min() <= RARE * len(codes):
            return "always"
        return "auto" if len(codes) >= ENOUGH else "never"

    def _without_circuit(self, stage: Stage, codes: Codes) -> Fitted:
        score = out_of_fold_score(stage.held_out, codes, self._metric())
        return Fitted(stage.model, "fusion", stage.held_out, score)

    def _with_circuit(
        self,
        stage: Stage,
        codes: Codes,
        policy: str | float,
        variational: VariationalClassifier,
        context: CallbackContext,
    ) -> Fitted:
        """Train a circuit on the stage's deltas; under ``"auto"`` keep it only if held-out rows say so."""
        refine_below = np.inf
        if policy != "always":
            quantile = AUTO_QUANTILE if policy == "auto" else float(policy)
            refine_below = float(np.quantile(score_margins(stage.scores), quantile))
        weights = loss_weights(variational.class_weight, codes, self.classes_)
        data, rows = stage.training_data(codes, weights)
        if len(np.unique(data.codes)) == 1:
            if policy != "auto":
                warn("No training row belongs to its second-nearest class: the circuit is left out, fusion decides.")
            return self._without_circuit(stage, codes)
        between_two = stage.model.deltas.decides_between_two(len(self.classes_))
        labels = np.array(["second", "nearest"]) if between_two else self.classes_
        part = clone(variational).set_params(cv=splits_of_part(variational.cv, rows, len(codes)))
        entropy = self._entropy(variational)
        plan = TrainingPlan.of(part, data, labels, entropy, out_of_fold=True)
        task = context.subcontext("variational", max_subtasks=plan.n_reports).call_on_fit_task_begin(estimator=self)
        chosen = plan.run(reporting_watch(self, task, variational.checkpoint))
        task.call_on_fit_task_end(estimator=self)
        held_out = None
        if chosen.out_of_fold is not None:
            held_out = stage.refined_held_out(chosen.out_of_fold, rows, refine_below)
        if policy == "auto" and (held_out is None or not circuit_pays(stage.held_out, held_out, codes)):
            return self._without_circuit(stage, codes)
        model = stage.with_circuit(chosen.trained.model, refine_below)
        name: StageName = "variational" if policy == "always" else "selective"
        return Fitted(model, name, held_out, out_of_fold_score(held_out or stage.held_out, codes, self._metric()))

    def _metric(self) -> str | None:
        return self.operating_point if isinstance(self.operating_point, str) else None

    def _entropy(self, variational: VariationalClassifier) -> list[int]:
        seed = self.random_state if variational.random_state is None else variational.random_state
        return [int(value) for value in check_random_state(seed).randint(2**31, size=4)]
