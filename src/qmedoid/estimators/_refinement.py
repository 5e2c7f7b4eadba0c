"""The second stage of the front door: when a circuit is used, how it is trained, and whether it is kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.callback import CallbackContext

from qmedoid.arrays import Codes
from qmedoid.estimators._class_weights import loss_weights
from qmedoid.estimators._folds import splits_of_part
from qmedoid.estimators._parameters import check_parameters
from qmedoid.estimators._training import TrainingPlan, grid_candidates, reporting_watch
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.exceptions import ParameterError, warn
from qmedoid.geometry.row_groups import part_of
from qmedoid.model.hybrid import DeltaSettings, HybridModel
from qmedoid.model.refinement import Stage, circuit_pays
from qmedoid.storage.checkpoints import CheckpointFolder
from qmedoid.variational.selection import OutOfFold, out_of_fold_score

StageName = Literal["fusion", "selective", "variational"]
FirstStageName = Literal["evidence", "rare", "nearest"]
Policy = str | float

LARGE = 10_000
"""Rows from which on a table counts as large."""
RARE = 0.05
"""Share up to which the rarest class counts as rare."""
ENOUGH = 1_000
"""Rows from which on a circuit is tried on a table that is not both large and imbalanced."""
RARE_CIRCUIT: Mapping[str, Any] = {"n_qubits": 4, "clip": 3.0, "cv": 3}
"""Settings of the circuit for rare events, where they are not the usual ones."""
RARE_QUANTILE = 0.005
"""Share of the records, those likeliest to be rare events, that the circuit corrects."""
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


def first_stage_for(codes: Codes) -> FirstStageName:
    """What ``method="auto"`` means for this table: rare events where it is large and one of two classes is rare."""
    counts = np.bincount(codes)
    return "rare" if len(counts) == 2 and _is_large_and_rare(counts) else "evidence"


def policy_for(refine: Policy, codes: Codes, first: FirstStageName = "nearest") -> Policy:
    """What ``"auto"`` means for this table (itself where held-out rows are to decide), else what was asked for.

    Evidence is not refined unless that is asked for, so that its fit stays a matter of seconds.
    """
    if refine != "auto":
        return refine
    if first != "nearest":
        return "auto" if first == "rare" else "never"
    if _is_large_and_rare(np.bincount(codes)):
        return "always"
    return "auto" if len(codes) >= ENOUGH else "never"


def _is_large_and_rare(counts: Codes) -> bool:
    return bool(counts.sum() >= LARGE and counts.min() <= RARE * counts.sum())


def circuit_settings(
    given: VariationalClassifier | None, operating_point: str | float | None, first: FirstStageName = "nearest"
) -> VariationalClassifier:
    """A fresh copy of the circuit's settings, or the default; what belongs to the whole classifier is refused."""
    default = VariationalClassifier(**(RARE_CIRCUIT if first == "rare" else {}))
    fresh: VariationalClassifier = default if given is None else clone(given)
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
    return fresh.set_params(operating_point=operating_point)


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
class Fitted:
    """A hybrid model with its stage, its circuit as an estimator, its out-of-fold scores and their quality.

    A circuit that was stopped before it was judged has no scores, and is taken to be as good as method alone.
    """

    model: HybridModel
    stage: StageName
    circuit: VariationalClassifier | None
    held_out: OutOfFold | None
    score: float


@dataclass(frozen=True)
class Refiner:
    """Trains circuits on the deltas of calibrated method models.

    Attributes
    ----------
    owner : the estimator that callbacks hear of
    context : its callback context
    settings : of the circuits
    policy : when they decide
    classes, codes : the classes, and the class code of every training row
    entropy : of the trainings
    groups : group of every training row, None where every row is one
    """

    owner: Any
    context: CallbackContext
    settings: VariationalClassifier
    policy: Policy
    classes: npt.NDArray[Any]
    codes: Codes
    entropy: list[int]
    groups: Codes | None = None

    def fit(self, stage: Stage) -> Fitted:
        """The hybrid model of one method model; under ``"auto"`` a circuit is kept only if held-out rows say so."""
        if self.policy == "never":
            return self._without_circuit(stage)
        refine_below = self._refine_below(stage)
        data, rows = stage.training_data(self.codes, loss_weights(self.settings.class_weight, self.codes, self.classes))
        if len(np.unique(data.codes)) == 1:
            if self.policy != "auto":
                warn("No training row belongs to its second-nearest class: the circuit is left out, method decides.")
            return self._without_circuit(stage)
        circuit = clone(self.settings)
        circuit.set_params(cv=splits_of_part(self.settings.cv, rows, len(self.codes)))
        between_two = stage.model.deltas.decides_between_two(len(self.classes))
        circuit.classes_ = np.array(["runner-up", "nearest"]) if between_two else self.classes
        own_groups = part_of(self.groups, rows)
        plan = TrainingPlan.of(circuit, data, circuit.classes_, self.entropy, out_of_fold=True, groups=own_groups)
        task = self.context.subcontext("variational", max_subtasks=plan.n_reports)
        task.call_on_fit_task_begin(estimator=self.owner)
        chosen = plan.run(reporting_watch(self.owner, task, self.settings.checkpoint))
        task.call_on_fit_task_end(estimator=self.owner)
        circuit._keep(chosen, data.codes, self.entropy)
        held_out = None
        if chosen.out_of_fold is not None:
            held_out = stage.refined_held_out(chosen.out_of_fold, rows, refine_below)
        if self.policy == "auto" and (
            held_out is None or not circuit_pays(stage.held_out, held_out, self.codes, self.groups)
        ):
            return self._without_circuit(stage)
        model = stage.with_circuit(chosen.trained.model, refine_below)
        name: StageName = "variational" if self.policy == "always" else "selective"
        return Fitted(model, name, circuit, held_out, self._score(held_out or stage.held_out))

    def _without_circuit(self, stage: Stage) -> Fitted:
        return Fitted(stage.model, "fusion", None, stage.held_out, self._score(stage.held_out))

    def _refine_below(self, stage: Stage) -> float:
        """The margin up to which the circuit decides."""
        if self.policy == "always":
            return float(np.inf)
        of_auto = AUTO_QUANTILE if stage.model.method.rare_class is None else RARE_QUANTILE
        quantile = of_auto if self.policy == "auto" else float(self.policy)
        return float(np.quantile(stage.model.refinement_margins(stage.scores), quantile))

    def _score(self, held_out: OutOfFold) -> float:
        metric = self.settings.operating_point
        return out_of_fold_score(held_out, self.codes, metric if isinstance(metric, str) else None)
