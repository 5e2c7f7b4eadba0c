"""The front door: method first, a variational circuit where it is needed (algorithms 16 and 20)."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.callback import CallbackContext, CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.calibration.fit import CALIBRATION_KINDS, CalibrationKind
from qmedoid.estimators._first_stage import REPORTS, reported
from qmedoid.estimators._operating_point import AlertRate, OperatingPoint
from qmedoid.estimators._parameters import Choice, Constraint, Either, Estimator, Flag, Optional, Seed
from qmedoid.estimators._probabilistic import ProbabilisticClassifier
from qmedoid.estimators._refinement import (
    FirstStageName,
    Refinement,
    Refiner,
    StageName,
    check_circuits,
    circuit_settings,
    first_stage_for,
    policy_for,
)
from qmedoid.estimators._row_groups import Together, groups_of_fit
from qmedoid.estimators._saving import SavingMixin
from qmedoid.estimators._tables import check_table
from qmedoid.estimators._threads import one_blas_thread
from qmedoid.estimators.deltas import seeded_method
from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.estimators.fusion import NearestMedoidClassifier
from qmedoid.estimators.rare import RareEventClassifier
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.channels import DELTA_KINDS, DeltaKind
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.geometry.row_groups import first_rows
from qmedoid.methods.base import Measured, Scorer
from qmedoid.methods.nearest.fit import Selected
from qmedoid.model.hybrid import DeltaSettings
from qmedoid.model.novelty import fit_novelty
from qmedoid.model.refinement import Stage, calibrated_stage, fusion_apart
from qmedoid.variational.model import ExpectationFunction, MeasuredVariational

PAIRS_UP_TO = 5
"""Classes up to which a circuit is fed the deltas of all pairs by default; there are 20 of them then."""


class GeometricClassifier(SavingMixin, CallbackSupportMixin, ProbabilisticClassifier):
    """Classify by distance to real records, and by a small quantum circuit where that is not enough.

    A first stage fuses distances to medoids, which are training rows, into a score for each class. A variational
    circuit on contrastive deltas refines it where that pays.

    Parameters
    ----------
    method : {"auto", "evidence", "rare", "nearest"}, EvidenceClassifier, RareEventClassifier or NearestMedoidClassifier, default="auto"
        The first stage. ``"evidence"`` learns signed weights on distances, group of columns by group of columns;
        ``"rare"`` compares with many prototypes of a rare class and of its hardest counterparts (two classes);
        ``"nearest"`` is the nearest medoid by a mean of distance and angle over searched groups, as in the paper.
        ``"auto"`` is ``"rare"`` for tables of at least 10,000 rows where one of two classes has at most 5 %, else
        ``"evidence"``. Pass one of the objects to set its parameters.
    variational : VariationalClassifier or None, default=None
        How circuits are built and trained. None is `VariationalClassifier()`; pass one to search over its parameters.
    refine : {"auto", "always", "never"} or float, default="auto"
        When the circuit decides. A number is the share of the records, those of the smallest margin over the training
        rows, and is turned into a margin at fit. ``"auto"`` is ``"never"`` for evidence. For rare events it is the
        share likeliest to be one, if that makes held-out rows likelier by more than a standard error. For the convex
        method it is ``"always"`` for tables of at least 10,000 rows whose rarest class has at most 5 %; on other tables
        of at least 1,000 rows 0.1 under the same condition; else ``"never"``.
    residual : bool or "auto", default="auto"
        Whether the circuit corrects the log-odds of the first stage instead of replacing them. ``"auto"`` corrects
        evidence and rare events, and replaces the convex method.
    deltas : {"pairs", "nearest"}, default="pairs"
        For more than two classes: deltas of all pairs, or of the two nearest classes by calibrated score, between which
        the circuit then decides.
    fused_delta : bool, default=False
        Whether the fusion score has a delta of its own.
    calibration : {"auto", "curve", "logistic", "temperature"}, default="auto"
        How the scores of the first stage become probabilities, on held-out rows: with a slope and a bias for each
        class, bent where held-out rows ask for it (``"curve"``); without the bend (``"logistic"``); or
        with a slope alone, which keeps the decision of the scores. ``"auto"`` is ``"curve"``, and ``"logistic"`` for
        the convex method.
    operating_point : str, float or None, default=None
        For two classes: a metric whose best threshold on held-out rows is used, or the threshold itself. None decides
        for the likelier class.
    alert_rate : float or None, default=None
        For two classes, instead of an operating point: the share of the records that may be called the second. The
        threshold is where this share of the held-out rows lies above it.
    min_precision, min_recall : float or None, default=None
        For two classes, instead: the least precision or recall of the second class on held-out rows; the threshold
        then has the best recall or precision.
    cost : float or None, default=None
        For two classes, instead: what a missed record of the second class costs, in false alerts.
    random_state : int, RandomState or None, default=None
        Seed of both stages, where they have none of their own.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    stage_ : {"fusion", "selective", "variational"}
        Who decides: the fusion score, the circuit for some records, or the circuit for all.
    method_ : {"evidence", "rare", "nearest"}
        Which method it is.
    estimator_ : EvidenceClassifier, RareEventClassifier or NearestMedoidClassifier
        The first stage; the medoids of its `model_` are those that decide.
    variational_ : VariationalClassifier or None
        The circuit of the best model as an estimator of its own, fitted on deltas, with its loss curve, the scores of
        the grid and `circuit()`; None where method decides everything.
    model_ : HybridModel
        The best model; `models_` holds one for each method model that was kept (several are convex only): by
        `held_out_scores_` where a circuit takes part, else in the order of `estimator_`.
    margin_ : float
        Records whose fusion margin, in log-odds, is at most this are decided by the circuit; −∞ and ∞ mean none, all.
    class_priors_ : ndarray of shape (C,)
        Class frequencies that the probabilities are made for; see `prior_shift`.
    expected_ : OperatingSummary or None
        For two classes: what the threshold did to held-out rows, with 95 % intervals of precision, recall and alerts.
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
        method: str | NearestMedoidClassifier | EvidenceClassifier | RareEventClassifier = "auto",
        variational: VariationalClassifier | None = None,
        refine: str | float = "auto",
        residual: bool | str = "auto",
        deltas: DeltaKind | Literal["auto"] = "auto",
        fused_delta: bool = False,
        calibration: CalibrationKind | Literal["auto"] = "auto",
        operating_point: str | float | None = None,
        alert_rate: float | None = None,
        min_precision: float | None = None,
        min_recall: float | None = None,
        cost: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.variational = variational
        self.refine = refine
        self.residual = residual
        self.deltas = deltas
        self.fused_delta = fused_delta
        self.calibration = calibration
        self.operating_point = operating_point
        self.alert_rate = alert_rate
        self.min_precision = min_precision
        self.min_recall = min_recall
        self.cost = cost
        self.random_state = random_state

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "method": Either(
            Choice(("auto", "evidence", "rare", "nearest")),
            Either(
                Estimator(EvidenceClassifier),
                Either(Estimator(RareEventClassifier), Estimator(NearestMedoidClassifier)),
            ),
        ),
        "variational": Optional(Estimator(VariationalClassifier)),
        "refine": Refinement(),
        "residual": Either(Flag(), Choice(("auto",))),
        "deltas": Choice(("auto", *DELTA_KINDS)),
        "fused_delta": Flag(),
        "calibration": Choice(("auto", *CALIBRATION_KINDS)),
        "operating_point": OperatingPoint(),
        "alert_rate": AlertRate(),
        "random_state": Seed(),
    }

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Both stages as printed: see `NearestMedoidClassifier.paper` and `VariationalClassifier.paper`.

        Everything is still fitted on training rows only. The paper chooses a threshold for two classes, and uses 0.3
        in its fraud tables: pass ``operating_point="macro_f1"`` or ``0.3``. `changes` override single parameters.
        """
        printed: dict[str, Any] = {
            "method": NearestMedoidClassifier.paper(),
            "variational": VariationalClassifier.paper(operating_point=None),
            "residual": False,
            "deltas": "nearest",
            "calibration": "temperature",
        }
        return cls(**(printed | changes))

    @with_callbacks
    @one_blas_thread
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Fit the first stage, calibrate it, and train circuits on its deltas where the policy asks for them.

        Parameters
        ----------
        X : array-like or data frame of shape (n, M)
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        groups : array-like of shape (n,), optional
            Rows with the same label belong together, such as those of one customer: they are left out together, and
            count as one in the intervals of `expected_`. None takes equal rows as groups.
        """
        table, codes = self._checked(X, y)
        together = groups_of_fit(groups, table, codes)
        draws = codes if together is None else codes[first_rows(together)]
        self.method_ = self._first_stage(draws)
        policy = policy_for(self.refine, draws, self.method_)
        variational = circuit_settings(self.variational, self.operating_point, self.method_)
        if self.method_ == "nearest":
            given = self.method if isinstance(self.method, NearestMedoidClassifier) else None
            self.estimator_: Any = seeded_method(given, self.random_state)
        else:
            self.estimator_ = self._stage_settings(self.method_)
            self.estimator_.check()
        if policy != "never":
            check_circuits(variational, self._delta_settings(), len(self.classes_), self._n_deltas())
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        selected: list[Selected] = []
        if self.method_ == "nearest":
            selected, stages = self._fusion_stages(X, y, table, codes, context, together)
        else:
            stages = [self._only_stage(table, codes, context, together)]
        entropy = self._entropy(variational)
        refiner = Refiner(self, context, variational, policy, self.classes_, codes, entropy, together)
        fitted = [refiner.fit(stage) for stage in stages]
        if len(fitted) > 1 and any(one.stage != "fusion" for one in fitted):
            # A circuit may do more for the second method model than for the first.
            order = sorted(range(len(fitted)), key=lambda number: -fitted[number].score)
            fitted = [fitted[number] for number in order]
            self.estimator_._keep([selected[number] for number in order], table)
        best = fitted[0]
        self.models_ = [one.model for one in fitted]
        self.model_ = best.model
        self.stage_: StageName = best.stage
        self.variational_ = best.circuit
        self.margin_ = best.model.refine_below
        self.held_out_scores_ = np.array([one.score for one in fitted])
        self._set_cut(codes, best.held_out, together)
        self._novelty = fit_novelty(table, method=best.model.method.plain)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the stages by two underscores, such as ``method__medoids``.

        Raises
        ------
        ParameterError
            The stage is given by name, or not at all: it has no parameters to set.
        """
        for stage, example in (("method", "EvidenceClassifier"), ("variational", "VariationalClassifier")):
            inner = next((name for name in params if name.startswith(f"{stage}__")), None)
            owner = params.get(stage, getattr(self, stage))
            if inner is not None and not hasattr(owner, "set_params"):
                raise ParameterError(
                    f"{inner!r} is a parameter of the object that is passed as {stage}=, and {stage} is {owner!r}. "
                    f"Pass {stage}={example}() first."
                )
        return super().set_params(**params)

    def decided_by(self, X: Any) -> npt.NDArray[np.str_]:
        """Who decides each row, shape (n,): the name of the method, such as ``"evidence"``, or ``"circuit"``."""
        return np.where(self._decide(X)[1], "circuit", self.model_.method.plain.name)

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
            model = replace(model, method=model.method.plain.with_swap_test(swap_test))
        if expectations is not None and model.variational is not None:
            circuit = model.variational
            circuit = circuit.model if isinstance(circuit, MeasuredVariational) else circuit
            model = replace(model, variational=MeasuredVariational(circuit, expectations))
        measured = copy.copy(self)
        measured.model_ = model
        return measured

    def _scores(self, X: Any) -> Array:
        return self._decide(X)[0]

    def _decide(self, X: Any) -> tuple[Array, Flags]:
        check_is_fitted(self)
        return self.model_.decide(check_table(self, X, reset=False))

    def _delta_settings(self) -> DeltaSettings:
        kind: DeltaKind = "pairs" if len(self.classes_) <= PAIRS_UP_TO else "nearest"
        return DeltaSettings(kind if self.deltas == "auto" else self.deltas, bool(self.fused_delta))

    def _n_deltas(self) -> int:
        """How many features a circuit is fed."""
        if self.method_ == "rare":
            return int(self.estimator_.n_circuit_features)
        angular = self.method_ != "nearest" or self.estimator_.use_angular
        return self._delta_settings().n_features(len(self.classes_), angular)

    def _fusion_stages(
        self, X: Any, y: Any, table: Array, codes: Codes, context: CallbackContext, groups: Codes | None
    ) -> tuple[list[Selected], list[Stage]]:
        """The method models, best first, and what becomes of each by calibration."""
        task = context.subcontext("fusion")
        with task.propagate_callback_context(self.estimator_):
            task.call_on_fit_task_begin(estimator=self)
            selected, folds = self.estimator_._fit_selected(X, y, groups=Together(groups))
            task.call_on_fit_task_end(estimator=self)
        stages = []
        for choice in selected:
            measured = choice.model.measure(table)
            apart = fusion_apart(choice, folds, measured)
            stages.append(self._calibrated(choice.model, measured, apart, folds, codes, groups))
        return selected, stages

    def _only_stage(self, table: Array, codes: Codes, context: CallbackContext, groups: Codes | None) -> Stage:
        """The first stage that is fitted in one go, calibrated."""
        task = context.subcontext(self.method_, max_subtasks=REPORTS)
        task.call_on_fit_task_begin(estimator=self)
        seed = int(check_random_state(self.random_state).randint(2**31))
        found = self.estimator_.fit_stage(table, codes, self.classes_, seed, reported(self, task), groups)
        task.call_on_fit_task_end(estimator=self)
        return self._calibrated(found.model, found.measured, found.apart, found.folds, codes, groups)

    def _calibrated(
        self,
        model: Scorer,
        measured: Measured,
        apart: Measured,
        folds: list[Codes],
        codes: Codes,
        groups: Codes | None,
    ) -> Stage:
        residual = self.method_ != "nearest" if self.residual == "auto" else bool(self.residual)
        return calibrated_stage(
            model, measured, apart, folds, codes,
            kind=self._calibration_kind(), deltas=self._delta_settings(), residual=residual, groups=groups,
        )  # fmt: skip

    def _calibration_kind(self) -> CalibrationKind:
        if self.calibration != "auto":
            return self.calibration
        return "logistic" if self.method_ == "nearest" else "curve"

    def _first_stage(self, codes: Codes) -> FirstStageName:
        match self.method:
            case "nearest" | NearestMedoidClassifier():
                return "nearest"
            case "evidence" | EvidenceClassifier():
                return "evidence"
            case "rare" | RareEventClassifier():
                return "rare"
        return first_stage_for(codes)

    def _stage_settings(
        self, first: FirstStageName
    ) -> NearestMedoidClassifier | EvidenceClassifier | RareEventClassifier:
        """A fresh copy of the first stage that was given, or the default of that name."""
        if not isinstance(self.method, str):
            given: NearestMedoidClassifier | EvidenceClassifier | RareEventClassifier = clone(self.method)
            return given
        match first:
            case "nearest":
                return NearestMedoidClassifier()
            case "rare":
                return RareEventClassifier()
        return EvidenceClassifier()

    def _entropy(self, variational: VariationalClassifier) -> list[int]:
        seed = self.random_state if variational.random_state is None else variational.random_state
        return [int(value) for value in check_random_state(seed).randint(2**31, size=4)]
