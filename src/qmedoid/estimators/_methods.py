"""Estimators of methods: what a `MedoidClassifier` asks of them, and the one fit that they share.

fit the method on all rows and in folds → calibrate on the out-of-fold scores → (circuit, see `_training`) → decision
"""

import copy
import functools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.callback import CallbackContext, CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes
from qmedoid.estimators import _parameters as allowed
from qmedoid.estimators._described import described
from qmedoid.estimators._fit_report import FitReport
from qmedoid.estimators._folds import Splits, TrainingTable
from qmedoid.estimators._importances import keep_importances
from qmedoid.estimators._inputs import one_blas_thread
from qmedoid.estimators._number_columns import (
    encoded_names,
    number_cells,
    number_columns,
    number_encodings,
    number_places,
    read_numbers,
)
from qmedoid.estimators._probabilistic import ProbabilisticClassifier
from qmedoid.estimators._refiner import Refiner
from qmedoid.estimators._row_order import in_own_order, ordered_table
from qmedoid.estimators._saving import SavingMixin
from qmedoid.estimators._time_limit import Progress, is_time_for
from qmedoid.estimators._weights import refuse_factors
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.channels import DeltaKind
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.geometry.row_groups import first_rows
from qmedoid.methods.calibration import CALIBRATION_KINDS, CalibrationKind
from qmedoid.methods.part import Backends, Part, score_part
from qmedoid.methods.registry import METHODS, estimator_class
from qmedoid.methods.variational.selection import OutOfFold, out_of_fold_score
from qmedoid.model.hybrid import DeltaSettings, HybridModel
from qmedoid.model.model import Model
from qmedoid.model.novelty import fit_novelty
from qmedoid.model.refinement import CalibratedMethod, FittedMethod, calibrated
from qmedoid.schema import renumbered

Refine = Literal["auto", "always", "never"]
LARGE = 10_000
"""Rows from which on a table counts as large."""
RARE = 0.05
"""Share up to which the rarest class counts as rare."""
PAIRS_UP_TO = 5
"""Classes up to which a circuit is fed the deltas of all pairs by default; there are 20 of them then."""


def is_large_and_rare(counts: Codes) -> bool:
    """Whether a table has at least `LARGE` rows and its rarest class at most the share `RARE` of them."""
    return bool(counts.sum() >= LARGE and counts.min() <= RARE * counts.sum())


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
    carries_factors : bool
        Whether weights of rows may be other than copies.
    """

    method_name: ClassVar[str]
    default_calibration: ClassVar[CalibrationKind] = "curve"
    corrects_scores: ClassVar[bool] = True
    circuit_defaults: ClassVar[Mapping[str, Any]] = {}
    refined_share: ClassVar[float] = 0.1
    carries_factors: ClassVar[bool] = False
    models_: Sequence[Part]
    _medoid_tables: Sequence[Array]
    # What a fit limited, in words.
    _fit_notes: Sequence[str] = ()

    @classmethod
    def suits(cls, counts: Codes) -> bool:  # noqa: ARG003
        """Whether ``method="auto"`` may choose this method for these numbers of rows per class."""
        return False

    @classmethod
    def auto_refine(cls, counts: Codes) -> Refine:  # noqa: ARG003
        """What ``refine="auto"`` means for these numbers of rows per class; ``"auto"`` lets held-out rows decide."""
        return "never"

    def n_circuit_features(self, n_classes: int, deltas: DeltaSettings) -> int:
        """Number of features of a circuit."""
        return deltas.n_features(n_classes, True)

    @abstractmethod
    def fit_method(self, data: TrainingTable, report: FitReport) -> list[FittedMethod]:
        """Fit the method, the best model first; parameters are checked and `random_state` is set."""

    def keep(self, fits: Sequence[CalibratedMethod], data: TrainingTable) -> None:
        """Set the fitted attributes, the best model first."""
        models = [fit.model.method for fit in fits]
        self.models_ = [data.as_given(model) for model in models]
        self._medoid_tables = [data.X[model.rows.numbers] for model in models]


class MethodClassifier(MethodMixin, SavingMixin, CallbackSupportMixin, ProbabilisticClassifier):
    """A classifier of numbers by one method, with calibrated probabilities and an operating point.

    A subclass sets the attributes of `MethodMixin`, writes ``__init__`` with the parameters of `_constraints` and its
    own, and fits a model to rows in `_fit_rows`.

    Attributes
    ----------
    model_ : Part
        The fitted model; `models_` is the list of it.
    calibration_ : Calibration
        How its scores become log-probabilities.
    """

    _constraints: ClassVar[Mapping[str, allowed.Constraint]] = {
        "calibration": allowed.choice(("auto", *CALIBRATION_KINDS)),
        "operating_point": allowed.OPERATING_POINT,
        "cv": allowed.NONE | allowed.CV,
        "refit": allowed.FLAG,
        "random_state": allowed.SEED,
    }
    calibration: CalibrationKind | Literal["auto"]
    cv: Any
    refit: bool
    random_state: Any

    @with_callbacks
    @one_blas_thread
    def fit(self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit the method, calibrate it on out-of-fold scores, and set the threshold.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, M)
            Numbers. Missing cells (NaN) get the median of their column, and a column that has any a second number that
            says so. A sparse table of at most 2²⁷ cells (1 GiB) is made dense.
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        groups : array-like of shape (n,), optional
            Rows with the same label belong together and are held out together. None takes equal rows as groups.
        sample_weight : array-like of shape (n,), optional
            How many rows each row stands for. Rows of weight 0 are left out. Whole numbers are copies, if they are at
            most 10 times as many in all as there are rows; other weights are factors in every loss, scaled to mean 1.
        """
        table, codes, weighted = self._checked(X, y, sample_weight, getattr(self, "class_weight", None))
        data = ordered_table(
            table, codes, self.classes_, groups, encoded_names(self), weighted, number_cells(self, table)
        )
        _check_factors(self, data)
        report = FitReport(self, self._init_callback_context, X=X, y=y)
        fits = _calibrated_fits(self, data, report, "auto", DeltaSettings("nearest"))
        self.keep(fits, data)
        self._novelty = fit_novelty(data.X, number_encodings(self), fits[0].model.method)
        self._importances = None
        keep_importances(self, data.X, fits[0].held_out, number_places(self))
        report.end()
        return self

    def fit_method(self, data: TrainingTable, report: FitReport) -> list[FittedMethod]:
        """Fit the model, on all rows or on the training part of the only split; groups are held out together."""
        seed, progress = self._seed(), report.fraction
        progress(0.0)
        if self.cv is None:
            model, held_out, deltas = self._fit_rows(data, seed, progress)
            folds = [np.flatnonzero(held_out.fold == number) for number in range(held_out.fold.max() + 1)]
            return [described(model, data, held_out.scores, deltas, folds)]
        splits = data.splits(self, np.random.default_rng(seed))
        n_fits = len(splits) + bool(self.refit)
        scores = np.full((len(data.codes), len(data.classes)), np.nan)
        deltas = None
        for number, (some, held) in enumerate(splits):
            train = in_own_order(data, some)
            model, _, own = self._fit_rows(data.part(train), seed, _part_of(progress, number, n_fits))
            found = model.score(data.X[held], channels=True)
            scores[held] = found.scores
            if own is not None and found.features is not None:
                deltas = np.full((len(data.codes), own.shape[1]), np.nan) if deltas is None else deltas
                deltas[train], deltas[held] = own, found.features
            model = renumbered(model, train)
        if self.refit:
            model, _, deltas = self._fit_rows(data, seed, _part_of(progress, n_fits - 1, n_fits))
        return [described(model, data, scores, deltas, [held for _, held in splits])]

    @abstractmethod
    def _fit_rows(self, data: TrainingTable, seed: int, progress: Progress) -> tuple[Part, OutOfFold, Array | None]:
        """The model of these rows, its out-of-fold dissimilarities, and out-of-fold deltas if the method has any."""

    def keep(self, fits: Sequence[CalibratedMethod], data: TrainingTable) -> None:
        """Set the fitted attributes, the best model first."""
        super().keep(fits, data)
        self.classes_ = data.classes
        if number_columns(self) is None:
            self.n_features_in_ = data.X.shape[1]
        self.model_: Part = self.models_[0]
        self.calibration_ = fits[0].model.calibration
        self._set_cut(data.codes, fits[0].held_out, data.groups, data.weights)

    def measured_by(self, swap_test: SwapTestFunction) -> Self:
        """A copy whose distances a SWAP test measures, for example `qmedoid.quantum.circuits.SamplerSwapTest`."""
        check_is_fitted(self)
        measured = copy.copy(self)
        measured._backends = Backends(swap_test)
        return measured

    def table_model(self) -> Model:
        """The fitted model as it is saved and scored without scikit-learn."""
        check_is_fitted(self)
        models = (HybridModel(self.models_[0], self.calibration_),)
        return self._numbers_model(models, self.decision_, threshold=float(self.threshold_))

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        found = score_part(self.model_, read_numbers(self, X), self._backends, channels=False, threads=None)
        return self.calibration_.apply(found.scores)

    def _seed(self) -> int:
        """The seed of the fit: `random_state` itself, or drawn from it where it is no number."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))


def _part_of(progress: Progress, number: int, n_fits: int) -> Progress:
    return lambda done: progress((number + done) / n_fits)


def _calibrated_fits(
    method: Any, data: TrainingTable, report: FitReport, kind: Any, deltas: DeltaSettings, residual: bool = False
) -> list[CalibratedMethod]:
    """Fit a method and calibrate it: as asked for, else by its parameter, else by its default."""
    kinds: tuple[Any, ...] = (kind, getattr(method, "calibration", "auto"), method.default_calibration)
    chosen = next(one for one in kinds if one != "auto")
    return [
        calibrated(
            fit, data.codes, kind=chosen, deltas=deltas, residual=residual, groups=data.groups, row_weights=data.weights
        )
        for fit in method.fit_method(data, report)
    ]


def fit_hybrid(
    owner: Any, data: TrainingTable, splits: Splits | None, context: CallbackContext
) -> tuple[Any, list[CalibratedMethod], Array]:
    """Fit the method of a `MedoidClassifier`, calibrate it, and train circuits where its policy asks for them.

    With `splits`, a list of one (training rows, validation rows), it is calibrated on these instead of in folds.
    Returns the fitted method, its hybrid models, the best first, and their quality on held-out rows.
    """
    n_classes = len(data.classes)
    draws = data.codes if data.groups is None else data.codes[first_rows(data.groups)]
    counts = owner._counts_of(data.classes, np.bincount(draws, minlength=n_classes))
    method = _fresh_method(owner, counts, splits)
    for part in (method, owner.variational):
        if getattr(part, "operating_point", None) is not None:
            raise ParameterError(
                "The operating point belongs to the MedoidClassifier: pass operating_point= to it, and "
                f"operating_point=None to its {type(part).__name__}."
            )
    if isinstance(method, MethodClassifier) and getattr(method, "class_weight", None) is not None:
        raise ParameterError(
            "The weights of the classes belong to the MedoidClassifier: pass class_weight= to it, and "
            f"class_weight=None to its {type(method).__name__}."
        )
    _check_factors(method, data)
    policy = method.auto_refine(counts) if owner.refine == "auto" else owner.refine
    if data.weights is not None and policy != "never":
        if owner.refine != "auto":
            refuse_factors(data.weights, "A circuit that refines decisions")
        policy = "never"
    few: DeltaKind = "pairs" if n_classes <= PAIRS_UP_TO else "nearest"
    deltas = DeltaSettings(few if owner.deltas == "auto" else owner.deltas, bool(owner.fused_delta))
    refiner = None
    if policy != "never" or owner.variational is not None:
        given = owner.variational
        circuit = VariationalClassifier(**method.circuit_defaults) if given is None else clone(given)
        refiner = Refiner.of(owner, context, circuit, policy, method.refined_share, data, splits)
    if refiner is not None and policy != "never":
        refiner.check(deltas, method.n_circuit_features(n_classes, deltas))
    residual = method.corrects_scores if owner.residual == "auto" else bool(owner.residual)
    report = FitReport(owner, functools.partial(context.subcontext, method.method_name))
    fits = _calibrated_fits(method, data, report, owner.calibration, deltas, residual)
    report.end()
    is_refined = refiner is not None and policy != "never" and is_time_for("the circuit")
    refined = [refiner.fit(fit) for fit in fits] if refiner is not None and is_refined else fits
    metric = owner.operating_point if isinstance(owner.operating_point, str) else None
    # A circuit that was stopped before it had out-of-fold scores is as good as the method alone.
    held_out = [after.held_out or before.held_out for after, before in zip(refined, fits, strict=True)]
    scores = np.array([out_of_fold_score(one, data.codes, metric) for one in held_out if one is not None])
    if any(one.circuit is not None for one in refined):
        # A circuit may do more for the second model than for the first.
        order = np.argsort(-scores, kind="stable")
        fits, refined, scores = [fits[place] for place in order], [refined[place] for place in order], scores[order]
    method.keep(fits, data)
    return method, refined, scores


def _check_factors(method: MethodMixin, data: TrainingTable) -> None:
    """Raise where weights of rows are other than copies, and the method cannot carry them."""
    if not method.carries_factors:
        refuse_factors(data.weights, type(method).__name__)


def auto_method(counts: Codes) -> str:
    """The name that ``method="auto"`` stands for: the first method that suits these numbers of rows per class."""
    return next(name for name in METHODS if estimator_class(name).suits(counts))


def _fresh_method(owner: Any, counts: Codes, splits: Splits | None) -> Any:
    """A copy of the estimator that was given, or that of the name, with a seed; its parameters are checked."""
    if isinstance(owner.method, str):
        method = estimator_class(auto_method(counts) if owner.method == "auto" else owner.method)()
    else:
        method = clone(owner.method)
    allowed.check_parameters(type(method).__name__, method.get_params(deep=False), method._constraints)
    if splits is not None:
        method.set_params(cv=splits, refit=False)
    if method.random_state is None:
        method.set_params(random_state=int(check_random_state(owner.random_state).randint(2**31)))
    return method
