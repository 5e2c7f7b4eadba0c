"""The circuit that refines a method: training, policy, and whether it pays."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.callback import CallbackContext
from sklearn.utils import check_random_state

from qmedoid.estimators import _parameters as allowed
from qmedoid.estimators._folds import TrainingTable, splits_of_part
from qmedoid.estimators._inputs import loss_weights
from qmedoid.estimators._training import TrainingPlan, grid_candidates, reporting_watch
from qmedoid.exceptions import ParameterError, warn
from qmedoid.geometry.row_groups import part_of
from qmedoid.kernels.ties import tolerance
from qmedoid.methods.variational.selection import OutOfFold
from qmedoid.model.hybrid import DeltaSettings
from qmedoid.model.refinement import CalibratedMethod, circuit_pays
from qmedoid.model.storage.checkpoints import CheckpointFolder

if TYPE_CHECKING:
    from qmedoid.estimators.variational import VariationalClassifier


@dataclass(frozen=True)
class Refiner:
    """Trains circuits on the deltas of calibrated methods; callbacks receive the owner.

    Under the policy ``"auto"`` circuits decide that share of the records.
    """

    owner: Any
    context: CallbackContext
    settings: "VariationalClassifier"
    policy: str | float
    share: float
    data: TrainingTable
    entropy: list[int]

    @classmethod
    def of(
        cls,
        owner: Any,
        context: CallbackContext,
        settings: "VariationalClassifier",
        policy: str | float,
        share: float,
        data: TrainingTable,
        cv: Any,
    ) -> "Refiner":
        """As the parameters of a `MedoidClassifier` say; `cv` is given where there are validation rows."""
        allowed.check_parameters(type(settings).__name__, settings.get_params(deep=False), settings._constraints)
        if settings.shots is not None:
            raise ParameterError(
                "A MedoidClassifier runs its circuit exactly: pass shots=None to its VariationalClassifier, and use "
                "measured_by(expectations=...) of the fitted classifier for shots."
            )
        # The circuit judges its candidates by the metric of the classifier.
        point = owner.operating_point
        settings.set_params(operating_point=point if isinstance(point, str | float | int) else None)
        if cv is not None:
            settings.set_params(cv=cv)
        seed = owner.random_state if settings.random_state is None else settings.random_state
        entropy = [int(value) for value in check_random_state(seed).randint(2**31, size=4)]
        return cls(owner, context, settings, policy, share, data, entropy)

    def check(self, deltas: DeltaSettings, n_deltas: int) -> None:
        """Raise for circuits that cannot take the deltas, or a folder that cannot be used, before any work is done."""
        n_classes = len(self.data.classes)
        between_two = deltas.decides_between_two(n_classes)
        if between_two and self.settings.class_weight is not None:
            raise ParameterError(
                "A circuit between a record's two nearest classes has no weights of classes: pass class_weight=None to "
                "its VariationalClassifier, or deltas='pairs'."
            )
        for candidate in grid_candidates(self.settings)[1]:
            candidate.circuit.network(n_deltas, 2 if between_two else n_classes)
        if self.settings.checkpoint is not None:
            CheckpointFolder(Path(self.settings.checkpoint))

    def fit(self, method: CalibratedMethod) -> CalibratedMethod:
        """The method with a circuit; under ``"auto"`` only if held-out rows are likelier with it."""
        codes, classes = self.data.codes, self.data.classes
        refine_below = self._refine_below(method)
        data, rows = method.training_data(codes, loss_weights(self.settings.class_weight, codes, classes))
        if len(np.unique(data.codes)) == 1:
            if self.policy != "auto":
                warn("No training row belongs to its second-nearest class: the method decides without a circuit.")
            return method
        circuit = clone(self.settings)
        numbers = rows if self.data.row_numbers is None else self.data.row_numbers[rows]
        given, numbers = np.unique(numbers, return_inverse=True)
        n_given = len(codes) if self.data.n_given is None else self.data.n_given
        circuit.set_params(cv=splits_of_part(self.settings.cv, given, n_given))
        between_two = method.model.deltas.decides_between_two(len(classes))
        circuit.classes_ = np.array(["runner-up", "nearest"]) if between_two else classes
        part = TrainingTable(
            data.features, data.codes, circuit.classes_, part_of(self.data.groups, rows),
            row_numbers=numbers, n_given=len(given),
        )  # fmt: skip
        plan = TrainingPlan.of(circuit, data, part, self.entropy, out_of_fold=True)
        task = self.context.subcontext("circuit", max_subtasks=plan.n_reports)
        task.call_on_fit_task_begin(estimator=self.owner)
        trained, params, choice = plan.run(reporting_watch(self.owner, task, self.settings.checkpoint))
        task.call_on_fit_task_end(estimator=self.owner)
        circuit._keep(trained, params, choice, data.codes, self.entropy)
        held_out: OutOfFold | None = None
        if choice is not None:
            held_out = method.refined_held_out(choice.out_of_fold, rows, refine_below)
        if self.policy == "auto" and (
            held_out is None
            or method.held_out is None
            or not circuit_pays(method.held_out, held_out, codes, self.data.groups)
        ):
            return method
        model = replace(method.model, variational=trained.model, refine_below=refine_below)
        return replace(method, model=model, circuit=circuit, held_out=held_out)

    def _refine_below(self, method: CalibratedMethod) -> float:
        """The margin up to which the circuit decides."""
        if self.policy == "always":
            return float(np.inf)
        share = self.share if self.policy == "auto" else float(self.policy)
        margins = method.model.refinement_margins(method.scores)
        # Rows that are equal have one margin up to rounding: those at the limit are all on one side of it.
        return float(np.quantile(margins, share)) + tolerance(margins)
