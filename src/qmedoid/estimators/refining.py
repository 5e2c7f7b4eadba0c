"""The circuit that refines the scores of a `MedoidClassifier`: how it is trained (algorithm 20)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone
from sklearn.callback import CallbackContext
from sklearn.utils import check_random_state

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.estimators import parameters as allowed
from qmedoid.estimators._training import TrainingPlan, grid_candidates, reporting_watch
from qmedoid.estimators.folds import Splits, TrainingTable, splits_of_part
from qmedoid.estimators.inputs import loss_weights
from qmedoid.estimators.recipes import (
    Fit,
    Recipe,
)
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.exceptions import ParameterError, warn
from qmedoid.geometry.channels import DeltaKind, class_channels
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.geometry.row_groups import part_of
from qmedoid.kernels.ties import tolerance
from qmedoid.methods.part import FittedParts, KeptRows, OutOfFold, Scored, medoid_part
from qmedoid.methods.variational.training import TrainingData
from qmedoid.model.refinement import (
    CircuitInputs,
    Refinement,
    refinement_margins,
    shared_out,
    two_nearest,
    two_nearest_scores,
)

if TYPE_CHECKING:
    from qmedoid.estimators.medoid import MedoidClassifier

PAIRS_UP_TO = 5
"""Classes up to which a circuit is fed the deltas of all pairs by default; there are 20 of them then."""
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Refiner:
    """Trains circuits on what calibrated parts say of the rows of a fit; callbacks receive the owner."""

    owner: "MedoidClassifier"
    context: CallbackContext
    settings: VariationalClassifier
    policy: str | float
    inputs: CircuitInputs
    residual: bool
    data: TrainingTable
    entropy: list[int]

    @classmethod
    def of(
        cls,
        owner: "MedoidClassifier",
        context: CallbackContext,
        recipe: Recipe,
        policy: str | float,
        data: TrainingTable,
        splits: Splits | None,
    ) -> "Refiner":
        """As the parameters of a `MedoidClassifier` say; they are checked before any work."""
        given = owner.variational
        settings = VariationalClassifier(**recipe.circuit_defaults) if given is None else clone(given)
        allowed.check_parameters(type(settings).__name__, settings.get_params(deep=False), settings._constraints)
        # The circuit chooses among its candidates by the metric of the classifier.
        point = owner.operating_point
        settings.set_params(operating_point=point if isinstance(point, str | float | int) else None)
        if splits is not None:
            settings.set_params(cv=splits)
        seed = owner.random_state if settings.random_state is None else settings.random_state
        entropy = [int(value) for value in check_random_state(seed).randint(2**31, size=4)]
        n_classes = len(data.classes)
        few: DeltaKind = "pairs" if n_classes <= PAIRS_UP_TO else "nearest"
        inputs, n_own = recipe.circuit_inputs(few if owner.deltas == "auto" else owner.deltas, bool(owner.fused_delta))
        residual = recipe.corrects_scores if owner.residual == "auto" else bool(owner.residual)
        if policy != "never":
            between_two = inputs.decides_between_two(n_classes)
            if between_two and settings.class_weight is not None:
                raise ParameterError(
                    "A circuit between a record's two nearest classes has no weights of classes: pass "
                    "class_weight=None to its VariationalClassifier, or deltas='pairs'."
                )
            for circuit in grid_candidates(settings)[1]:
                circuit.network(inputs.n_features(n_classes, n_own), 2 if between_two else n_classes)
        return cls(owner, context, settings, policy, inputs, residual, data, entropy)

    def fit(self, fit: Fit) -> Fit:
        """The fit with a circuit."""
        codes, classes, fitted = self.data.codes, self.data.classes, fit.fitted
        in_sample = fitted.score(self.data.X, channels=True)
        found = held_out_scored(fitted, in_sample, self.inputs, self.data)
        scores = fit.calibration.apply(found.scores)
        refine_below = np.inf
        if self.policy != "always":
            margins = refinement_margins(fit.calibration.apply(in_sample.scores), fitted.rare_class)
            # Rows that are equal have one margin up to rounding: those at the limit are all on one side of it.
            refine_below = float(np.quantile(margins, float(self.policy))) + tolerance(margins)
        class_weights = loss_weights(self.settings.class_weight, codes, classes)
        data, rows = training_data(self.inputs, self.residual, found, scores, codes, class_weights)
        if len(np.unique(data.codes)) == 1:
            warn("No training row belongs to its second-nearest class: the method decides without a circuit.")
            return fit
        circuit = clone(self.settings)
        numbers = rows if self.data.row_numbers is None else self.data.row_numbers[rows]
        given, numbers = np.unique(numbers, return_inverse=True)
        n_given = len(codes) if self.data.n_given is None else self.data.n_given
        circuit.set_params(cv=splits_of_part(self.settings.cv, given, n_given))
        between_two = self.inputs.decides_between_two(len(classes))
        circuit.classes_ = np.array(["runner-up", "nearest"]) if between_two else classes
        part = TrainingTable(
            data.features,
            data.codes,
            circuit.classes_,
            part_of(self.data.groups, rows),
            row_numbers=numbers,
            n_given=len(given),
        )
        plan = TrainingPlan.of(circuit, data, part, self.entropy, out_of_fold=True)
        task = self.context.subcontext("circuit", max_subtasks=plan.n_reports)
        task.call_on_fit_task_begin(estimator=self.owner)
        trained, params, choice = plan.run(reporting_watch(self.owner, task))
        task.call_on_fit_task_end(estimator=self.owner)
        circuit.n_features_in_ = data.features.shape[1]
        circuit._keep(trained, params, choice, part)
        refinement = Refinement(trained.model, self.inputs, refine_below, self.residual, fitted.rare_class)
        held_out: OutOfFold | None = None
        if choice is not None and fit.held_out is not None:
            held_out = refined_held_out(fit.held_out, scores, refinement, choice[2], rows)
        return fit._replace(refinement=refinement, circuit=circuit, held_out=held_out)


def training_data(
    inputs: CircuitInputs, residual: bool, found: Scored, scores: Array, codes: Codes, class_weights: Array
) -> tuple[TrainingData, Codes]:
    """What a circuit is trained on, from out-of-fold and calibrated scores of rows, and which rows that are.

    A circuit that decides between the two nearest classes learns from the records that belong to one of them: code 1 is
    the nearest, 0 the runner-up.
    """
    features = inputs.features(found, scores)
    if not inputs.decides_between_two(scores.shape[1]):
        return TrainingData(features, codes, class_weights, scores if residual else None), np.arange(len(codes))
    best, second = two_nearest(scores)
    rows = np.flatnonzero((codes == best) | (codes == second))
    offset = two_nearest_scores(scores)[rows] if residual else None
    return TrainingData(features[rows], (codes == best)[rows].astype(np.intp), np.ones(2), offset), rows


def held_out_scored(fitted: FittedParts, in_sample: Scored, inputs: CircuitInputs, data: TrainingTable) -> Scored:
    """Scores and channels of the training rows by models that were not fitted on the row, where a fold holds it out.

    A row that is a medoid, or helped to choose one, lies nearer to its class than new rows do, and would tell the
    circuit its label.
    """
    found = fitted.out_of_fold
    scores = np.where(np.isfinite(found.scores), found.scores, in_sample.scores)
    if found.distance is None:
        # A circuit on features of the part itself is fed nothing else.
        own, part = inputs.kind == "own", medoid_part(fitted.parts)
        assert part is not None, "a recipe fits medoids"
        channels = in_sample.channels if own else _channels_of_others(part.rows, data, in_sample)
        found = found._replace(distance=channels[0], angle=channels[1])
    return found._replace(scores=scores)


def _channels_of_others(kept: KeptRows, data: TrainingTable, in_sample: Scored) -> tuple[Array, Array]:
    """Channels of the training rows, those of a group that has a medoid to the medoids of other groups.

    A class without another medoid keeps the nearest.
    """
    groups = np.arange(len(data.X)) if data.groups is None else data.groups
    of_medoids = groups[kept.numbers]
    rows = np.flatnonzero(np.isin(groups, of_medoids))
    assert kept.to_points is not None, "medoids are points"
    distance, angle = (one.copy() for one in in_sample.channels)
    medoids = kept.to_points(data.X[kept.numbers])
    for block in row_slices(len(rows), _BLOCK_ROWS):
        some = rows[block]
        tested = compact_swap_test(kept.to_points(data.X[some]), medoids)
        to_others = np.where(groups[some][:, None] == of_medoids, np.inf, tested.distance)
        others, _ = class_channels(to_others, tested.angle, kept.classes, len(data.classes))
        has_other = np.isfinite(others.distance)
        distance[some] = np.where(has_other, others.distance, distance[some])
        angle[some] = np.where(has_other, others.angle, angle[some])
    return distance, angle


def refined_held_out(
    before: OutOfFold, scores: Array, refinement: Refinement, circuit: OutOfFold, rows: Codes
) -> OutOfFold:
    """Out-of-fold scores after the refinement: the circuit's where calibrated scores pick a row, else those before.

    `circuit` has scores of the rows that the circuit was trained on, and `rows` are their numbers.
    """
    held_out = before.scores.copy()
    by_circuit = np.full((len(held_out), circuit.scores.shape[1]), np.nan)
    by_circuit[rows] = circuit.scores
    # Other rows belong to neither of their two nearest classes: sharing those out anew leaves their own class be.
    concerned = np.isin(np.arange(len(held_out)), rows) & refinement.picks(scores)
    judged = (before.fold >= 0) & (~concerned | np.isfinite(by_circuit[:, 0]))
    picked = np.flatnonzero(judged & concerned)
    if refinement.inputs.decides_between_two(held_out.shape[1]):
        held_out[picked] = shared_out(held_out[picked], scores[picked], by_circuit[picked])
    else:
        held_out[picked] = by_circuit[picked]
    return OutOfFold(held_out, np.where(judged, before.fold, -1))
