"""Estimators of methods: what a `MedoidClassifier` asks of them, and the one fit that they share.

fit the method on all rows and in folds → calibrate on the out-of-fold scores → (circuit, see `_refinement`) → decision
"""

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.callback import CallbackContext, CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes
from qmedoid.calibration.fit import CALIBRATION_KINDS, CalibrationKind
from qmedoid.estimators._folds import check_splits, stratified_splits
from qmedoid.estimators._inputs import check_table, groups_of_fit, one_blas_thread
from qmedoid.estimators._parameters import CV, FLAG, NONE, OPERATING_POINT, SEED, Constraint, choice
from qmedoid.estimators._probabilistic import ProbabilisticClassifier
from qmedoid.estimators._saving import SavingMixin, assembled, measured_error, numbered_records
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.geometry.row_groups import part_of
from qmedoid.methods.base import Measured, Method, Scorer
from qmedoid.model.hybrid import DeltaSettings, HybridModel
from qmedoid.model.novelty import fit_novelty
from qmedoid.model.refinement import CalibratedMethod, FittedMethod, calibrated
from qmedoid.model.table import TableModel
from qmedoid.variational.selection import OutOfFold

Refine = Literal["auto", "always", "never"]
Progress = Callable[[float], None]
"""Progress callback; receives the fraction done."""

LARGE = 10_000
"""Rows from which on a table counts as large."""
RARE = 0.05
"""Share up to which the rarest class counts as rare."""
# Reports of a fit that tells its progress as a fraction.
_REPORTS = 20


def is_large_and_rare(counts: Codes) -> bool:
    """Whether a table has at least `LARGE` rows and its rarest class at most the share `RARE` of them."""
    return bool(counts.sum() >= LARGE and counts.min() <= RARE * counts.sum())


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """The rows of a fit.

    Attributes
    ----------
    X : ndarray of shape (n, M)
    codes : ndarray of shape (n,)
        Class codes.
    classes : ndarray of shape (C,)
        Labels by their codes.
    groups : ndarray of shape (n,) or None
        Group of every row, held out together; None where every row is a group.
    names : sequence of str or None
        Of the columns, for messages.
    is_checked : bool
        Whether constant columns were noted already.
    """

    X: Array
    codes: Codes
    classes: npt.NDArray[Any]
    groups: Codes | None = None
    names: Any = None
    is_checked: bool = False

    def part(self, rows: Codes) -> "TrainingTable":
        """Some of the rows."""
        return replace(self, X=self.X[rows], codes=self.codes[rows], groups=part_of(self.groups, rows))


class FitReport:
    """Reports one task of a fit to the callbacks of an estimator.

    Parameters
    ----------
    owner : the estimator that callbacks receive
    begin : makes and begins the task of so many steps
    """

    def __init__(self, owner: Any, begin: Callable[[int], CallbackContext]) -> None:
        self._owner, self._begin, self._done = owner, begin, 0
        self.task: CallbackContext | None = None

    @classmethod
    def of_fit(cls, estimator: Any, X: Any, y: Any) -> "FitReport":
        """The report of the fit of an estimator itself."""
        make = estimator._init_callback_context
        return cls(estimator, lambda n: make(max_subtasks=n).call_on_fit_task_begin(estimator=estimator, X=X, y=y))

    def begin(self, n_steps: int) -> None:
        """Begin the task."""
        self.task = self._begin(n_steps)

    def step(self, name: str) -> bool:
        """Report a step; whether a callback asks to stop."""
        assert self.task is not None, "the task has begun"
        step = self.task.subcontext(task_name=name).call_on_fit_task_begin(estimator=self._owner)
        return bool(step.call_on_fit_task_end(estimator=self._owner))

    def fraction(self, done: float) -> None:
        """Report the fraction done, in at most 20 steps."""
        if self.task is None:
            self.begin(_REPORTS)
        while self._done < min(_REPORTS, int(done * _REPORTS + 1e-9)):
            self._done += 1
            self.step(f"{self._done} of {_REPORTS}")

    def end(self, **data: Any) -> None:
        """End the task."""
        if self.task is not None:
            self.task.call_on_fit_task_end(estimator=self._owner, **data)


class MethodMixin:
    """What a `MedoidClassifier` asks of the estimator of a method; `MethodClassifier` is the usual base of one.

    Attributes
    ----------
    method_name : str
        Its name in `qmedoid.methods.registry.METHODS`.
    default_calibration : str
        What ``calibration="auto"`` means.
    corrects_scores : bool
        Whether a circuit corrects the calibrated scores by default, instead of replacing them.
    circuit_defaults : mapping
        Parameters of the default circuit.
    refined_share : float
        Share of the records, those of the smallest margins, that a circuit decides under ``refine="auto"``.
    """

    method_name: ClassVar[str]
    default_calibration: ClassVar[CalibrationKind] = "curve"
    corrects_scores: ClassVar[bool] = True
    circuit_defaults: ClassVar[Mapping[str, Any]] = {}
    refined_share: ClassVar[float] = 0.1
    models_: Sequence[Method]
    _medoid_tables: Sequence[Array]

    @classmethod
    def suits(cls, counts: Codes) -> bool:  # noqa: ARG003
        """Whether ``method="auto"`` chooses this method for classes with so many rows."""
        return False

    @classmethod
    def auto_refine(cls, counts: Codes) -> Refine:  # noqa: ARG003
        """What ``refine="auto"`` means for classes with so many rows; ``"auto"`` lets held-out rows decide."""
        return "never"

    def n_circuit_features(self, n_classes: int, deltas: DeltaSettings) -> int:
        """Number of features of a circuit."""
        return deltas.n_features(n_classes, True)

    @abstractmethod
    def fit_method(self, data: TrainingTable, report: FitReport) -> list[FittedMethod]:
        """Fit the method, the best model first; parameters are checked and `random_state` is set."""

    def keep(self, fits: Sequence[CalibratedMethod], data: TrainingTable) -> None:
        """Set the fitted attributes, the best model first."""
        self.models_ = [fit.model.method.plain for fit in fits]
        self._medoid_tables = [data.X[model.medoid_rows] for model in self.models_]


class MethodClassifier(MethodMixin, SavingMixin, CallbackSupportMixin, ProbabilisticClassifier):
    """A classifier of numbers by one method, with calibrated probabilities and an operating point.

    A subclass sets the attributes of `MethodMixin`, writes ``__init__`` with the parameters of `_constraints` and its
    own, and fits a model to rows in `_fit_rows`.

    Attributes
    ----------
    model_ : Method
        The fitted model, or the same measured by a backend; `models_` is the list of it.
    calibration_ : Calibration
        How its scores become log-probabilities.
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "calibration": choice(("auto", *CALIBRATION_KINDS)),
        "operating_point": OPERATING_POINT,
        "cv": NONE | CV,
        "refit": FLAG,
        "random_state": SEED,
    }
    calibration: CalibrationKind | Literal["auto"]
    cv: Any
    refit: bool
    random_state: Any

    @with_callbacks
    @one_blas_thread
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Fit the method, calibrate it on out-of-fold scores, and set the threshold.

        Parameters
        ----------
        X : array-like or data frame of shape (n, M)
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        groups : array-like of shape (n,), optional
            Rows with the same label belong together and are held out together. None takes equal rows as groups.
        """
        table, codes = self._checked(X, y)
        names = getattr(self, "feature_names_in_", None)
        data = TrainingTable(table, codes, self.classes_, groups_of_fit(groups, table, codes), names)
        report = FitReport.of_fit(self, X, y)
        kind = calibration_kind(self, "auto")
        fits = [
            calibrated(fit, codes, kind=kind, deltas=DeltaSettings("nearest"), groups=data.groups)
            for fit in self.fit_method(data, report)
        ]
        self.keep(fits, data)
        self._novelty = fit_novelty(table, method=self.models_[0])
        report.end(X=X, y=y)
        return self

    def fit_method(self, data: TrainingTable, report: FitReport) -> list[FittedMethod]:
        """Fit the model, on all rows or on the training part of the only split; groups are held out together."""
        seed, progress = self._seed(), report.fraction
        progress(0.0)
        if self.cv is None:
            model, held_out, deltas = self._fit_rows(data, seed, progress)
            folds = [np.flatnonzero(held_out.fold == number) for number in range(held_out.fold.max() + 1)]
            return [_described(model, data.X, held_out.scores, deltas, folds)]
        generator = np.random.default_rng(seed)
        splits = stratified_splits(self.cv, data.X, data.codes, data.classes, generator, data.groups)
        check_splits(type(self).__name__, splits, data.codes, data.classes)
        check_refit(self.refit, len(splits))
        n_fits = len(splits) + bool(self.refit)
        scores = np.full((len(data.codes), len(data.classes)), np.nan)
        deltas = None
        for number, (train, held) in enumerate(splits):
            model, _, own = self._fit_rows(data.part(train), seed, _part_of(progress, number, n_fits))
            found = model.measure(data.X[held])
            scores[held] = found.scores
            if own is not None and found.deltas is not None:
                deltas = np.full((len(data.codes), own.shape[1]), np.nan) if deltas is None else deltas
                deltas[train], deltas[held] = own, found.deltas
            model = model.with_row_numbers(train)
        if self.refit:
            model, _, deltas = self._fit_rows(data, seed, _part_of(progress, n_fits - 1, n_fits))
        return [_described(model, data.X, scores, deltas, [held for _, held in splits])]

    @abstractmethod
    def _fit_rows(self, data: TrainingTable, seed: int, progress: Progress) -> tuple[Method, OutOfFold, Array | None]:
        """The model of these rows, its out-of-fold dissimilarities, and out-of-fold deltas if the method has any."""

    def keep(self, fits: Sequence[CalibratedMethod], data: TrainingTable) -> None:
        """Set the fitted attributes, the best model first."""
        super().keep(fits, data)
        self.classes_, self.n_features_in_ = data.classes, data.X.shape[1]
        self.model_: Scorer = self.models_[0]
        self.calibration_ = fits[0].model.calibration
        self._set_cut(data.codes, fits[0].held_out, data.groups)

    def measured_by(self, swap_test: SwapTestFunction) -> Self:
        """A copy whose distances a SWAP test measures, for example `qmedoid.circuits.SamplerSwapTest`."""
        check_is_fitted(self)
        measured = copy.copy(self)
        measured.model_ = self.models_[0].with_swap_test(swap_test)
        return measured

    def table_model(self) -> TableModel:
        """The fitted model as it is saved and scored without scikit-learn."""
        check_is_fitted(self)
        if self.model_ is not self.models_[0]:
            raise measured_error()
        hybrid = HybridModel(self.models_[0], self.calibration_)
        metrics = {"threshold": float(self.threshold_)}
        return assembled(self, (hybrid,), decision=self.decision_, records=numbered_records(self), metrics=metrics)

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.calibration_.apply(self.model_.scores_and_medoids(check_table(self, X, reset=False))[0])

    def _seed(self) -> int:
        """The seed of the fit: `random_state` itself, or drawn from it where it is no number."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))


def calibration_kind(method: Any, asked: CalibrationKind | Literal["auto"]) -> CalibrationKind:
    """The kind of calibration: as asked for, else the parameter of the method, else its default."""
    kind: CalibrationKind | Literal["auto"] = asked if asked != "auto" else getattr(method, "calibration", "auto")
    default: CalibrationKind = method.default_calibration
    return default if kind == "auto" else kind


def check_refit(refit: bool, n_splits: int) -> None:
    """Raise where the training rows of one split are to be kept and there are several splits."""
    if not refit and n_splits > 1:
        raise ParameterError(
            f"refit=False keeps the training rows of a single split, but cv made {n_splits}. "
            "Pass refit=True, or a cv with one split."
        )


def _described(model: Method, X: Array, scores: Array, deltas: Array | None, folds: list[Codes]) -> FittedMethod:
    measured = model.measure(X)
    known = np.where(np.isfinite(scores), scores, measured.scores)
    return FittedMethod(model, measured, Measured(measured.channels, known, measured.nearest, deltas), folds)


def _part_of(progress: Progress, number: int, n_fits: int) -> Progress:
    return lambda done: progress((number + done) / n_fits)
