"""The fit of a `MedoidClassifier` on numbers: method, calibration, and circuits where they help (algorithm 20)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.callback import CallbackContext
from sklearn.utils import check_random_state

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._folds import splits_of_part
from qmedoid.estimators._inputs import loss_weights
from qmedoid.estimators._methods import FitReport, MethodMixin, TrainingTable, calibration_kind
from qmedoid.estimators._parameters import INNER_SHARE, check_parameters, choice
from qmedoid.estimators._training import TrainingPlan, grid_candidates, reporting_watch
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.exceptions import ParameterError, warn
from qmedoid.geometry.channels import DeltaKind
from qmedoid.geometry.row_groups import first_rows, part_of
from qmedoid.kernels.ties import tolerance
from qmedoid.methods.registry import METHODS, estimator_class
from qmedoid.model.hybrid import DeltaSettings
from qmedoid.model.refinement import CalibratedMethod, calibrated, circuit_pays
from qmedoid.storage.checkpoints import CheckpointFolder
from qmedoid.variational.selection import OutOfFold, out_of_fold_score

Policy = str | float
Splits = list[tuple[Codes, Codes]]
PAIRS_UP_TO = 5
"""Classes up to which a circuit is fed the deltas of all pairs by default; there are 20 of them then."""
REFINE = choice(("auto", "always", "never")) | INNER_SHARE
"""The parameter `refine`: a word, or the share of the records with the smallest margins."""


def circuit_settings(given: VariationalClassifier | None, method: MethodMixin, point: Any) -> VariationalClassifier:
    """A fresh copy of the circuit's parameters, or the default of the method."""
    fresh: VariationalClassifier = VariationalClassifier(**method.circuit_defaults) if given is None else clone(given)
    check_parameters(type(fresh).__name__, fresh.get_params(deep=False), fresh._constraints)
    check_no_point(fresh)
    if fresh.shots is not None:
        raise ParameterError(
            "A MedoidClassifier runs its circuit exactly: pass shots=None to its VariationalClassifier, and use "
            "measured_by(expectations=...) of the fitted classifier for shots."
        )
    # The circuit judges its candidates by the metric of the classifier.
    return fresh.set_params(operating_point=point if isinstance(point, str | float | int) else None)


def check_no_point(part: Any) -> None:
    """Raise where a part of a `MedoidClassifier` has an operating point."""
    if getattr(part, "operating_point", None) is not None:
        raise ParameterError(
            "The operating point belongs to the MedoidClassifier: pass operating_point= to it, and "
            f"operating_point=None to its {type(part).__name__}."
        )


def check_circuits(settings: VariationalClassifier, deltas: DeltaSettings, n_classes: int, n_deltas: int) -> None:
    """Raise for circuits that cannot take the deltas, or a folder that cannot be used, before any work is done."""
    between_two = deltas.decides_between_two(n_classes)
    if between_two and settings.class_weight is not None:
        raise ParameterError(
            "A circuit between a record's two nearest classes has no weights of classes: pass class_weight=None to "
            "its VariationalClassifier, or deltas='pairs'."
        )
    for candidate in grid_candidates(settings)[1]:
        candidate.circuit.network(n_deltas, 2 if between_two else n_classes)
    if settings.checkpoint is not None:
        CheckpointFolder(Path(settings.checkpoint))


@dataclass(frozen=True)
class Refiner:
    """Trains circuits on the deltas of calibrated methods.

    Attributes
    ----------
    owner : the estimator that callbacks receive
    context : its callback context
    settings : of the circuits
    policy : when they decide
    share : of the records that they decide under the policy ``"auto"``
    data : the training rows
    entropy : of the trainings
    """

    owner: Any
    context: CallbackContext
    settings: VariationalClassifier
    policy: Policy
    share: float
    data: TrainingTable
    entropy: list[int]

    def fit(self, method: CalibratedMethod) -> CalibratedMethod:
        """The method with a circuit; under ``"auto"`` only if held-out rows are likelier with it."""
        if self.policy == "never":
            return method
        codes, classes = self.data.codes, self.data.classes
        refine_below = self._refine_below(method)
        data, rows = method.training_data(codes, loss_weights(self.settings.class_weight, codes, classes))
        if len(np.unique(data.codes)) == 1:
            if self.policy != "auto":
                warn("No training row belongs to its second-nearest class: the method decides without a circuit.")
            return method
        circuit = clone(self.settings)
        circuit.set_params(cv=splits_of_part(self.settings.cv, rows, len(codes)))
        between_two = method.model.deltas.decides_between_two(len(classes))
        circuit.classes_ = np.array(["runner-up", "nearest"]) if between_two else classes
        groups = part_of(self.data.groups, rows)
        plan = TrainingPlan.of(circuit, data, circuit.classes_, self.entropy, out_of_fold=True, groups=groups)
        task = self.context.subcontext("circuit", max_subtasks=plan.n_reports)
        task.call_on_fit_task_begin(estimator=self.owner)
        chosen = plan.run(reporting_watch(self.owner, task, self.settings.checkpoint))
        task.call_on_fit_task_end(estimator=self.owner)
        circuit._keep(chosen, data.codes, self.entropy)
        held_out: OutOfFold | None = None
        if chosen.out_of_fold is not None:
            held_out = method.refined_held_out(chosen.out_of_fold, rows, refine_below)
        if self.policy == "auto" and (
            held_out is None
            or method.held_out is None
            or not circuit_pays(method.held_out, held_out, codes, self.data.groups)
        ):
            return method
        model = method.with_circuit(chosen.trained.model, refine_below)
        return replace(method, model=model, circuit=circuit, held_out=held_out)

    def score(self, refined: CalibratedMethod, before: CalibratedMethod) -> float:
        """Quality on held-out rows; a circuit that was stopped before it had any is as good as the method alone."""
        held_out = refined.held_out or before.held_out
        assert held_out is not None, "a method has out-of-fold scores"
        metric = self.settings.operating_point
        return out_of_fold_score(held_out, self.data.codes, metric if isinstance(metric, str) else None)

    def _refine_below(self, method: CalibratedMethod) -> float:
        """The margin up to which the circuit decides."""
        if self.policy == "always":
            return float(np.inf)
        share = self.share if self.policy == "auto" else float(self.policy)
        margins = method.model.refinement_margins(method.scores)
        # Rows that are equal have one margin up to rounding: those at the limit are all on one side of it.
        return float(np.quantile(margins, share)) + tolerance(margins)


@dataclass(frozen=True)
class FittedHybrid:
    """A fitted method with its hybrid models, the best first, and their quality on held-out rows."""

    method: MethodMixin
    models: Sequence[CalibratedMethod]
    scores: Array


def fit_hybrid(owner: Any, data: TrainingTable, splits: Splits | None, context: CallbackContext) -> FittedHybrid:
    """Fit the method of a `MedoidClassifier`, calibrate it, and train circuits where its policy asks for them.

    Parameters
    ----------
    owner : MedoidClassifier
        Its parameters say how.
    data : TrainingTable
    splits : list of one (training rows, validation rows), or None
        Choose and calibrate on these rows instead of in folds.
    context : CallbackContext
        Of the fit of the owner.
    """
    n_classes = len(data.classes)
    draws = data.codes if data.groups is None else data.codes[first_rows(data.groups)]
    counts = np.bincount(draws, minlength=n_classes)
    method = _fresh_method(owner, counts, splits)
    policy = method.auto_refine(counts) if owner.refine == "auto" else owner.refine
    circuit = circuit_settings(owner.variational, method, owner.operating_point)
    if splits is not None:
        circuit.set_params(cv=splits)
    kind: DeltaKind = "pairs" if n_classes <= PAIRS_UP_TO else "nearest"
    deltas = DeltaSettings(kind if owner.deltas == "auto" else owner.deltas, bool(owner.fused_delta))
    if policy != "never":
        check_circuits(circuit, deltas, n_classes, method.n_circuit_features(n_classes, deltas))
    residual = method.corrects_scores if owner.residual == "auto" else bool(owner.residual)
    calibration = calibration_kind(method, owner.calibration)
    report = FitReport(
        owner,
        lambda n_steps: context.subcontext(method.method_name, max_subtasks=n_steps).call_on_fit_task_begin(
            estimator=owner
        ),
    )
    fits = [
        calibrated(fit, data.codes, kind=calibration, deltas=deltas, residual=residual, groups=data.groups)
        for fit in method.fit_method(data, report)
    ]
    report.end()
    seed = owner.random_state if circuit.random_state is None else circuit.random_state
    entropy = [int(value) for value in check_random_state(seed).randint(2**31, size=4)]
    refiner = Refiner(owner, context, circuit, policy, method.refined_share, data, entropy)
    refined = [refiner.fit(fit) for fit in fits]
    scores = np.array([refiner.score(after, before) for after, before in zip(refined, fits, strict=True)])
    if any(one.circuit is not None for one in refined):
        # A circuit may do more for the second model than for the first.
        order = np.argsort(-scores, kind="stable")
        fits, refined, scores = [fits[place] for place in order], [refined[place] for place in order], scores[order]
    method.keep(fits, data)
    return FittedHybrid(method, refined, scores)


def auto_method(counts: Codes) -> str:
    """The name that ``method="auto"`` stands for: the first method that suits classes with so many rows."""
    return next(name for name in METHODS if estimator_class(name).suits(counts))


def _fresh_method(owner: Any, counts: Codes, splits: Splits | None) -> Any:
    """A copy of the estimator that was given, or that of the name, with a seed; its parameters are checked."""
    if not isinstance(owner.method, str):
        method = clone(owner.method)
    elif owner.method == "auto":
        method = estimator_class(auto_method(counts))()
    else:
        method = estimator_class(owner.method)()
    check_parameters(type(method).__name__, method.get_params(deep=False), method._constraints)
    check_no_point(method)
    if splits is not None:
        method.set_params(cv=splits, refit=False)
    if method.random_state is None:
        method.set_params(random_state=int(check_random_state(owner.random_state).randint(2**31)))
    return method
