"""Recipes: estimators that fit the parts of a model, by name, and what they share.

fit the parts on all rows and in folds → calibrate on the out-of-fold scores → (circuit, see `refining`) → decision

A fit reports to the callbacks of scikit-learn. Of one with a time limit, parts that would end after it are not begun,
or given up, and a warning says so.
"""

import functools
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.callback import CallbackContext, with_callbacks
from sklearn.utils import check_random_state

from qmedoid.arrays import Array, Codes
from qmedoid.estimators import parameters as allowed
from qmedoid.estimators._fitted import ProbabilisticClassifier
from qmedoid.estimators.folds import Splits, TrainingTable, ordered_table
from qmedoid.estimators.inputs import one_blas_thread, refuse_factors
from qmedoid.exceptions import InterruptedWarning, ParameterError, warn
from qmedoid.geometry.channels import DeltaKind
from qmedoid.geometry.row_groups import first_rows, part_of
from qmedoid.methods.calibration import CALIBRATION_KINDS, CalibrationKind, fit_calibration
from qmedoid.methods.part import Calibration, FittedParts, OutOfFold, Scored
from qmedoid.methods.variational.training import out_of_fold_score
from qmedoid.model.model import Model
from qmedoid.model.refinement import CircuitInputs, Refinement
from qmedoid.schema import renumbered

if TYPE_CHECKING:
    from qmedoid.estimators.medoid import MedoidClassifier

T = TypeVar("T")
Progress = Callable[[float], None]
"""Progress callback; receives the fraction done."""


class TimeLimit:
    """Seconds that a fit may take, and the names of the parts that it left out for them."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.seconds, self.clock = seconds, clock
        self.left_out: list[str] = []
        self._end = clock() + seconds

    @property
    def is_up(self) -> bool:
        """Whether the time is up."""
        return self.clock() > self._end

    def allows(self, what: str, expected: float = 0.0) -> bool:
        """Whether there is time for a part that takes so many seconds; if not, it is noted as left out."""
        if self.clock() + expected <= self._end:
            return True
        self.left_out.append(what)
        warn(f"The time limit of {self.seconds:g} s left out: {what}.", InterruptedWarning)
        return False


_NONE = TimeLimit(math.inf, time.monotonic)
_current: ContextVar[TimeLimit] = ContextVar("qmedoid_time_limit", default=_NONE)


@contextmanager
def time_limit(seconds: float = math.inf, clock: Callable[[], float] = time.monotonic) -> Iterator[TimeLimit]:
    """Put a limit on the fits within the block."""
    limit = TimeLimit(seconds, clock)
    before = _current.set(limit)
    try:
        yield limit
    finally:
        _current.reset(before)


def time_is_up() -> bool:
    """Whether the time of the fit is up; what can stop with its best so far does."""
    return _current.get().is_up


def is_time_for(what: str, expected: float = 0.0) -> bool:
    """Whether a part that takes about so many seconds may begin."""
    return _current.get().allows(what, expected)


class _OutOfTimeError(Exception):
    """A part would end after the limit."""


def part_in_time(
    what: str, expected: float, fit: Callable[[Progress], T], progress: Progress | None = None
) -> T | None:
    """A part of a fit, or None where there is no time for it.

    It is not begun where the expected seconds are too many, and given up where it is slower than expected: at every
    report of the fraction done, the rest is expected to go on at the pace so far.
    """
    limit = _current.get()
    if not limit.allows(what, expected):
        return None
    began = limit.clock()

    def report(done: float) -> None:
        if progress is not None:
            progress(done)
        if 0.0 < done < 1.0 and not limit.allows(what, (limit.clock() - began) * (1.0 - done) / done):
            raise _OutOfTimeError

    try:
        return fit(report)
    except _OutOfTimeError:
        return None


# Reports of a fit that tells its progress as a fraction.
_REPORTS = 100


class FitReport:
    """Reports one task of a fit, which `make` makes, to the callbacks of its owner; X and y where it is the fit."""

    def __init__(self, owner: Any, make: Callable[..., CallbackContext], **data: Any) -> None:
        self._owner, self._make, self._data = owner, make, data
        self._done = 0
        self.task: CallbackContext | None = None

    def begin(self, n_steps: int) -> None:
        """Begin the task."""
        self.task = self._make(max_subtasks=n_steps).call_on_fit_task_begin(estimator=self._owner, **self._data)

    def step(self, name: str) -> bool:
        """Report a step; whether a callback asks to stop, or the time is up."""
        assert self.task is not None, "the task has begun"
        step = self.task.subcontext(task_name=name).call_on_fit_task_begin(estimator=self._owner)
        return bool(step.call_on_fit_task_end(estimator=self._owner)) or time_is_up()

    def fraction(self, done: float) -> None:
        """Report the fraction done, in steps of a percent."""
        if self.task is None:
            self.begin(_REPORTS)
        while self._done < min(_REPORTS, int(done * _REPORTS + 1e-9)):
            self._done += 1
            self.step(f"{self._done} of {_REPORTS}")

    def end(self) -> None:
        """End the task."""
        if self.task is not None:
            self.task.call_on_fit_task_end(estimator=self._owner, **self._data)


RECIPES = {
    "rare": "qmedoid.estimators.rare:RareEventClassifier",
    "sum": "qmedoid.estimators.sum:SumClassifier",
    "evidence": "qmedoid.estimators.evidence:EvidenceClassifier",
    "nearest": "qmedoid.estimators.nearest:NearestMedoidClassifier",
}
"""Each as ``"module:class"``; ``method="auto"`` is the first that suits the numbers of rows per class."""
LARGE = 10_000
"""Rows from which on a table counts as large."""
RARE = 0.05
"""Share up to which the rarest class counts as rare."""


def recipe_class(name: str) -> Any:
    """The estimator of a method."""
    module, _, kind = RECIPES[name].partition(":")
    return getattr(import_module(module), kind)


def is_large_and_rare(counts: Codes) -> bool:
    """Whether a table has at least `LARGE` rows and its rarest class at most the share `RARE` of them."""
    return bool(counts.sum() >= LARGE and counts.min() <= RARE * counts.sum())


class Recipe:
    """What a `MedoidClassifier` needs of the estimator of a method; `MethodClassifier` is the usual base of one."""

    method_name: ClassVar[str]  # in RECIPES
    default_calibration: ClassVar[CalibrationKind] = "curve"  # what calibration="auto" means
    corrects_scores: ClassVar[bool] = True  # whether a circuit corrects calibrated scores by default, or replaces them
    circuit_defaults: ClassVar[Mapping[str, Any]] = {}
    refines: ClassVar[bool] = False  # whether refine="auto" lets a circuit decide large tables with a rare class
    carries_factors: ClassVar[bool] = False  # whether weights of rows may be other than copies
    separates_rare: ClassVar[bool] = False  # whether it is for a rare class, all rows of which a sample should have
    # Rows from which on method="auto" may choose it; None: if it separates large tables with a rare class, else never.
    least_rows: ClassVar[int | None] = None
    random_state: Any
    cv: Any
    get_params: Any
    set_params: Any
    _constraints: ClassVar[Mapping[str, allowed.Constraint]]

    @classmethod
    def suits(cls, counts: Codes) -> bool:
        """Whether ``method="auto"`` may choose this method for these numbers of rows per class."""
        if cls.least_rows is None:
            return cls.separates_rare and len(counts) == 2 and is_large_and_rare(counts)
        return bool(counts.sum() >= cls.least_rows)

    def circuit_inputs(self, kind: DeltaKind, fused: bool) -> tuple[CircuitInputs, int]:
        """What a circuit reads, and the number of features that the part has for it."""
        return CircuitInputs(kind, fused), 0

    def calibration_kind(self, requested: CalibrationKind | Literal["auto"]) -> CalibrationKind:
        """How scores are calibrated: as requested, else by its parameter, else by its default."""
        kinds: tuple[Any, ...] = (requested, getattr(self, "calibration", "auto"), self.default_calibration)
        return cast("CalibrationKind", next(kind for kind in kinds if kind != "auto"))

    def check_factors(self, data: TrainingTable) -> None:
        """Raise where weights of rows are other than copies, and the method cannot carry them."""
        if not self.carries_factors:
            refuse_factors(data.weights, type(self).__name__)

    @abstractmethod
    def fit_parts(self, data: TrainingTable, report: FitReport) -> list[FittedParts]:
        """Fit the parts of a model, the best first; parameters are checked and `random_state` is set."""

    def keep(self, model: Model, fits: Sequence[FittedParts]) -> None:
        """Set the fitted attributes: the model of the first of the fits."""
        del fits
        self.model_ = model


class Fit(NamedTuple):
    """Fitted parts with their calibration, and with a circuit, which is also there as an estimator, once there is one.

    `held_out` are calibrated out-of-fold scores, after the circuit; None where it was stopped before it had any.
    """

    fitted: FittedParts
    calibration: Calibration
    held_out: OutOfFold | None
    refinement: Refinement | None = None
    circuit: Any = None


def calibrated(fitted: FittedParts, kind: CalibrationKind, data: TrainingTable) -> Fit:
    """Calibrate fitted parts on their out-of-fold scores; rows of one group count as one draw."""
    rows, raw = np.concatenate(fitted.folds), fitted.out_of_fold.scores
    weights = None if data.weights is None else data.weights[rows] / data.weights[rows].mean()
    calibration = fit_calibration(raw[rows], data.codes[rows], kind, part_of(data.groups, rows), weights)
    held_out = OutOfFold(np.full(raw.shape, np.nan), np.full(len(raw), -1, dtype=np.intp))
    held_out.scores[rows] = calibration.apply(raw[rows])
    held_out.fold[rows] = np.repeat(np.arange(len(fitted.folds)), [len(fold) for fold in fitted.folds])
    return Fit(fitted, calibration, held_out)


@allowed.with_parameters
class MethodClassifier(Recipe, ProbabilisticClassifier):
    """A classifier of numbers by one method, with calibrated probabilities and an operating point.

    A subclass sets the attributes of `Recipe`, declares its own parameters below `allowed.with_parameters`, and fits
    parts to rows in `_fit_rows`.
    """

    class_weight: Annotated[Mapping[Any, float] | Literal["balanced"] | None, allowed.CLASS_WEIGHT] = None
    calibration: Annotated[CalibrationKind | Literal["auto"], allowed.choice(("auto", *CALIBRATION_KINDS))] = "auto"
    operating_point: Annotated[float | str | Mapping[str, float] | None, allowed.OPERATING_POINT] = None
    cv: Annotated[Any, allowed.NONE | allowed.CV] = None
    refit: bool = True
    random_state: Annotated[Any, allowed.SEED] = None

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
            Rows with the same label belong together and are held out together. None takes equal rows as groups, and
            nearly equal ones of one class.
        sample_weight : array-like of shape (n,), optional
            How many rows each row stands for. Rows of weight 0 are left out. Whole numbers are copies, if they are at
            most 10 times as many in all as there are rows; other weights are factors in every loss, scaled to mean 1.
        """
        table, codes, weighted = self._checked(X, y, sample_weight, self.class_weight)
        data = ordered_table(self, table, codes, self.classes_, groups, weighted)
        self.check_factors(data)
        report = FitReport(self, self._init_callback_context, X=X, y=y)
        fits = self.fit_parts(data, report)
        fit = calibrated(fits[0], self.calibration_kind("auto"), data)
        decision, curve = self._chosen_decision(data, fit.held_out)
        model = self._model_of_numbers(
            data, fits[0].parts, decision, curve=curve, held_out=fit.held_out, method=self.method_name,
            weights=fits[0].weights, biases=fits[0].biases, calibration=fit.calibration,
        )  # fmt: skip
        self.keep(model, fits)
        for note in fits[0].notes:
            warn(f"{note[0].upper()}{note[1:]}.")
        report.end()
        return self

    def fit_parts(self, data: TrainingTable, report: FitReport) -> list[FittedParts]:
        """Fit the parts, on all rows or on the training part of the only split; groups are held out together."""
        seed, progress = self._seed(), report.fraction
        progress(0.0)
        if self.cv is None:
            return [self._fit_rows(data, seed, progress)]
        splits = data.splits(self, np.random.default_rng(seed))
        n_fits = len(splits) + bool(self.refit)
        scores, features = np.full((len(data.codes), len(data.classes)), np.nan), None
        for number, (some, held) in enumerate(splits):
            train = data.in_own_order(some)
            fitted = self._fit_rows(data.part(train), seed, _part_of(progress, number, n_fits))
            found, own = fitted.score(data.X[held], channels=True), fitted.out_of_fold.features
            scores[held] = found.scores
            if own is not None and found.features is not None:
                features = np.full((len(data.codes), own.shape[1]), np.nan) if features is None else features
                features[train], features[held] = own, found.features
            fitted = fitted._replace(parts=tuple(renumbered(part, train) for part in fitted.parts))
        if self.refit:
            fitted = self._fit_rows(data, seed, _part_of(progress, n_fits - 1, n_fits))
            features = fitted.out_of_fold.features
        out_of_fold = Scored(scores, features=features)
        return [fitted._replace(out_of_fold=out_of_fold, folds=[held for _, held in splits])]

    @abstractmethod
    def _fit_rows(self, data: TrainingTable, seed: int, progress: Progress) -> FittedParts:
        """The parts of these rows, with out-of-fold scores."""

    def _seed(self) -> int:
        """The seed of the fit: `random_state` itself, or drawn from it where it is no number."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    @property
    def weights_(self) -> dict[str, float]:
        """Weights by the names of the parts."""
        return dict(zip([part.name for part in self.model_.parts], self.model_.weights.tolist(), strict=True))


def _part_of(progress: Progress, number: int, n_fits: int) -> Progress:
    return lambda done: progress((number + done) / n_fits)


def fit_model(
    owner: "MedoidClassifier", data: TrainingTable, splits: Splits | None, context: CallbackContext
) -> tuple[Any, list[Fit], Array]:
    """Fit the parts of a `MedoidClassifier`, calibrate them, and train circuits where `refine` says so.

    With `splits`, a list of one (training rows, validation rows), they are calibrated on these instead of in folds.
    Returns the recipe, its fits, the best first, and their quality on held-out rows.
    """
    from qmedoid.estimators.refining import Refiner

    draws = data.codes if data.groups is None else data.codes[first_rows(data.groups)]
    counts = np.bincount(draws, minlength=len(data.classes)) if data.totals is None else data.totals
    recipe = _prepared(owner, counts, splits)
    recipe.check_factors(data)
    policy = owner.refine
    if policy == "auto":
        is_refined = recipe.refines and is_large_and_rare(counts) and data.weights is None
        policy = "always" if is_refined else "never"
    elif data.weights is not None and policy != "never":
        refuse_factors(data.weights, "A circuit that refines decisions")
    refiner = None
    if policy != "never" or owner.variational is not None:
        refiner = Refiner.of(owner, context, recipe, policy, data, splits)
    report = FitReport(owner, functools.partial(context.subcontext, recipe.method_name))
    kind = recipe.calibration_kind(owner.calibration)
    fits = [calibrated(fitted, kind, data) for fitted in recipe.fit_parts(data, report)]
    report.end()
    refined = fits
    if refiner is not None and policy != "never" and is_time_for("the circuit"):
        refined = [refiner.fit(fit) for fit in fits]
    metric = owner.operating_point if isinstance(owner.operating_point, str) else None
    # A circuit that was stopped before it had out-of-fold scores is as good as the parts alone.
    held_out = [after.held_out or before.held_out for after, before in zip(refined, fits, strict=True)]
    scores = np.array([out_of_fold_score(one, data.codes, metric) for one in held_out if one is not None])
    if any(fit.circuit is not None for fit in refined):
        # A circuit may do more for the second candidate than for the first.
        order = np.argsort(-scores, kind="stable")
        refined, scores = [refined[place] for place in order], scores[order]
    return recipe, refined, scores


def recipe_of(method: Any, counts: Codes) -> Any:
    """A copy of the estimator of a method that was given, or that of its name for these rows per class."""
    if not isinstance(method, str):
        return clone(method)
    if method == "auto":
        method = next(name for name in RECIPES if recipe_class(name).suits(counts))
    return recipe_class(method)()


def _prepared(owner: "MedoidClassifier", counts: Codes, splits: Splits | None) -> Any:
    """The recipe with a seed and the folds; its parameters, and those of the circuit, are checked."""
    recipe = recipe_of(owner.method, counts)
    allowed.check_parameters(type(recipe).__name__, recipe.get_params(deep=False), recipe._constraints)
    for part in (recipe, owner.variational):
        if getattr(part, "operating_point", None) is not None:
            raise ParameterError(
                "The operating point belongs to the MedoidClassifier: pass operating_point= to it, and "
                f"operating_point=None to its {type(part).__name__}."
            )
    if isinstance(recipe, MethodClassifier) and recipe.class_weight is not None:
        raise ParameterError(
            "The weights of the classes belong to the MedoidClassifier: pass class_weight= to it, and "
            f"class_weight=None to its {type(recipe).__name__}."
        )
    if splits is not None:
        recipe.set_params(cv=splits, refit=False)
    if recipe.random_state is None:
        recipe.set_params(random_state=int(check_random_state(owner.random_state).randint(2**31)))
    return recipe
