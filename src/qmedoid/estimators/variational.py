"""The variational quantum classifier as an estimator (algorithms 14 to 18)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Codes
from qmedoid.estimators import parameters as allowed
from qmedoid.estimators._fitted import ProbabilisticClassifier
from qmedoid.estimators._training import GRID, TrainingPlan, reporting_watch
from qmedoid.estimators.folds import TrainingTable, ordered_table
from qmedoid.estimators.inputs import column_label, loss_weights, one_blas_thread, refuse_factors
from qmedoid.exceptions import warn
from qmedoid.geometry.scaling import column_powers, is_constant
from qmedoid.methods.part import Calibration, OutOfFold
from qmedoid.methods.variational.ansatz import PRINTED_SPAN, SPAN
from qmedoid.methods.variational.model import ExpectationFunction, Precision, VariationalModel
from qmedoid.methods.variational.readout import ReadoutKind
from qmedoid.methods.variational.training import Optimizer, Sampling, Selection, Trained, TrainingData
from qmedoid.metrics.classification import ClassMetrics, confusion_matrix
from qmedoid.model.decision import Decision
from qmedoid.model.operating_point import asked_rule, probability
from qmedoid.optimize.minimizers import GAINS

if TYPE_CHECKING:
    from qiskit import QuantumCircuit


@allowed.with_parameters
class VariationalClassifier(ProbabilisticClassifier):
    """A small trained quantum circuit that classifies a few features, such as deltas.

    Features are standardized, clipped and turned into rotation angles of a circuit with data re-uploading; its
    expectation values give class scores. The circuit is simulated exactly and trained by exact gradients.

    Parameters
    ----------
    n_qubits : int or None, default=None
        1 to 12; each one more doubles the work. None takes one per feature, at most 4. Feature j turns qubit j mod n.
    n_reps : int, default=3
        Repetitions of encoding, entangling and trained rotations.
    reupload : bool, default=True
        Whether the features enter in every repetition or in the first only.
    readout : {"strings", "parity", "direct", "printed"}, default="strings"
        Trained weights on ⟨Z⟩, ⟨ZZ⟩ and the full parity; the probability of odd parity (two classes); basis state c
        for class c; or, as the paper has it, parity for two classes and basis states for more.
    input_scales : "learned", float or sequence of float, default="learned"
        Factors λ on the angles of the features: trained, or fixed.
    clip : float or None, default=None
        Standardized values beyond ±clip count as ±clip. None takes the largest of the training rows, but at least
        3 and at most 10.
    span : float, default=π/2
        The angle of a value at the clip. At π both ends are the same state.
    final_rz : bool, default=False
        Whether to keep the last R_z rotations, which change nothing.
    optimizer : {"adam", "spsa"}, default="adam"
        Exact gradients, or random perturbations with two losses a step.
    n_steps : int, default=400
    batch_size : int or None, default=None
        Rows per step. None takes 256. All rows where there are fewer.
    sampling : {"importance", "uniform"}, default="importance"
        Batches with rows of every class, weighted so that the loss keeps the true prior; or rows drawn alike.
    learning_rate : float, default=0.05
        First step size of Adam.
    spsa_gains : (float, float, float, float), default=(6.0, 0.1, 0.602, 0.101)
        a, c, α and γ of SPSA.
    clip_norm : float or None, default=None
        Longest gradient that is followed.
    patience : int or None, default=None
        Stop after this number of steps without a batch loss that is lower by `tolerance`.
    tolerance : float, default=0.0
    average : float, default=0.3
        Share of the last steps whose parameters are averaged. 0 keeps the last.
    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes in the loss: see `MedoidClassifier`.
    n_seeds : int, default=3
        Trainings from different starts, side by side; the one with the lowest loss on all rows is kept.
    grid : dict or None, default=None
        Values to choose from by cross-validation, such as ``{"n_reps": [1, 3], "n_steps": [200, 400]}``.
    cv : int, splitter or iterable, default=5
        Folds of that choice, and of the out-of-fold predictions that set the threshold.
    operating_point : float, str, dict or None, default=None
        For two classes, the threshold: see `MedoidClassifier`.
    precision : {"float64", "float32"}, default="float64"
        Of the simulation.
    random_state : int, RandomState or None, default=None
        Seed of starts, batches and folds.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    model_ : Model
        Its only part is the circuit, a `VariationalModel`.
    weights_ : ndarray of shape (2·L − 1, n) or (2·L, n)
        Trained rotations, layers of R_y and R_z alternately.
    input_scales_ : ndarray of shape (m,)
    readout_weights_ : ndarray
        Trained weights of the read-out; empty for parity and direct.
    threshold_, expected_ : float, OperatingSummary or None
    best_params_ : dict
        The values that were chosen from the grid.
    cv_scores_ : ndarray or None
        Score of each point of the grid on held-out rows.
    seed_losses_ : ndarray of shape (n_seeds,)
        Loss of each training on all rows.
    loss_curve_ : ndarray
        Batch loss of every step of the training that was kept.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> from qmedoid import VariationalClassifier
    >>> model = VariationalClassifier(n_qubits=2, n_steps=60, n_seeds=1, random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.8
    True
    """

    n_qubits: Annotated[int | None, GRID["n_qubits"]] = None
    n_reps: Annotated[int, GRID["n_reps"]] = 3
    reupload: Annotated[bool, GRID["reupload"]] = True
    readout: ReadoutKind = "strings"
    input_scales: Annotated[Any, allowed.SCALES] = "learned"
    clip: Annotated[float | None, GRID["clip"]] = None
    span: Annotated[float, allowed.POSITIVE] = SPAN
    final_rz: bool = False
    optimizer: Optimizer = "adam"
    n_steps: Annotated[int, GRID["n_steps"]] = 400
    batch_size: Annotated[int | None, GRID["batch_size"]] = None
    sampling: Sampling = "importance"
    learning_rate: Annotated[float, GRID["learning_rate"]] = 0.05
    spsa_gains: Annotated[tuple[float, float, float, float], allowed.GAINS] = GAINS
    clip_norm: Annotated[float | None, allowed.NONE | allowed.POSITIVE] = None
    patience: Annotated[int | None, allowed.NONE | allowed.whole(1)] = None
    tolerance: Annotated[float, allowed.NOT_NEGATIVE] = 0.0
    average: Annotated[float, allowed.SHARE] = 0.3
    class_weight: Annotated[str | Mapping[Any, float] | None, allowed.CLASS_WEIGHT] = None
    n_seeds: Annotated[int, allowed.whole(1)] = 3
    grid: Annotated[Mapping[str, Sequence[Any]] | None, allowed.NONE | allowed.grid(GRID)] = None
    cv: Annotated[Any, allowed.CV] = 5
    operating_point: Annotated[float | str | Mapping[str, float] | None, allowed.OPERATING_POINT] = None
    precision: Precision = "float64"
    random_state: Annotated[Any, allowed.SEED] = None

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The classifier as printed, but for what the notes list: angles to ±π, fixed scales, SPSA, the last weights.

        Two classes are read by parity, more by basis states. `changes` override single parameters. The page *What we
        found in the paper* of the documentation lists what is not as printed; numbers of the procedures are ours.
        """
        printed: dict[str, Any] = {
            "readout": "printed",
            "input_scales": 1.0,
            "clip": 3.0,
            "span": PRINTED_SPAN,
            "final_rz": True,
            "optimizer": "spsa",
            "n_steps": 1000,
            "sampling": "uniform",
            "clip_norm": 1.0,
            "average": 0.0,
            "n_seeds": 1,
            "operating_point": "macro_f1",
        }
        return cls(**(printed | changes))

    @with_callbacks
    @one_blas_thread
    def fit(self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None) -> Self:
        """Choose from the grid, train, and set the threshold.

        Parameters
        ----------
        X, y, groups, sample_weight
            As of `EvidenceClassifier.fit`: a few features. Weights are whole numbers, at most 10 times as many in all
            as there are rows.
        """
        table, codes, weighted = self._checked(X, y, sample_weight)
        refuse_factors(weighted.factors, "VariationalClassifier")
        rows = ordered_table(self, table, codes, self.classes_, groups, weighted)
        scaled = rows.X * column_powers(rows.X)  # so that the squares of tiny values do not vanish
        constant = is_constant(scaled.mean(axis=0), scaled.var(axis=0), len(scaled))
        if constant.all():
            warn("Every feature is constant: nothing can be learned but how frequent the classes are.")
        else:
            for column in np.flatnonzero(constant):
                warn(f"Feature {column_label(int(column), rows.names)} is constant: its qubit is turned by nothing.")
        data = TrainingData(rows.X, rows.codes, loss_weights(self.class_weight, codes, self.classes_))
        entropy = check_random_state(self.random_state).randint(2**31, size=4).tolist()
        rule, _ = asked_rule(self.operating_point, self.classes_.tolist())
        needed = rule not in ("likeliest", "probability")
        plan = TrainingPlan.of(self, data, rows, entropy, out_of_fold=needed)
        context = self._init_callback_context(max_subtasks=plan.n_reports)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        self._keep(*plan.run(reporting_watch(self, context)), rows)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def circuit(self, *, measure: bool = False) -> "QuantumCircuit":
        """The trained circuit in Qiskit; its free parameters ``x[j]`` are λ_j·a_j (extra ``quantum``).

        `model_.circuit.encoded(features)` are the values of x for given records.
        """
        check_is_fitted(self)
        from qmedoid.quantum import variational_circuit

        model = self._circuit
        return variational_circuit(model.network.ansatz, weights=model.parameters.rotations, measure=measure)

    def measured_by(  # type: ignore[override]
        self, backend: ExpectationFunction
    ) -> Self:
        """A copy whose circuit is run by one of the variational backends of :mod:`qmedoid.quantum`."""
        return super().measured_by(expectations=backend)

    @property
    def _circuit(self) -> VariationalModel:
        circuit = self.model_.circuit
        assert circuit is not None, "it is the only part"
        return circuit

    def _keep(
        self,
        trained: Trained,
        params: dict[str, Any],
        choice: Selection | None,
        rows: TrainingTable,
    ) -> None:
        """Hold what a training leaves."""
        self.best_params_, self.cv_scores_ = params, None if choice is None else choice[1]
        self.seed_losses_ = trained.seed_losses
        self.loss_curve_ = trained.minima[trained.best][1]
        class_weights = loss_weights(self.class_weight, rows.codes, self.classes_)
        held_out = None if choice is None else choice[2]
        decision, curve = self._chosen_decision(rows, held_out, class_weights)
        threshold = probability(decision.cut or 0.0)
        metrics: dict[str, Any] = {"loss": float(self.seed_losses_.min()), "threshold": threshold}
        if held_out is not None:
            metrics["out_of_fold"] = _figures(decision, held_out, rows.codes)
        n_classes = len(self.classes_)
        self.model_ = self._model_of_numbers(
            rows, (trained.model,), decision, curve=curve, method=trained.model.name, weights=np.ones(1),
            biases=np.zeros(n_classes), calibration=Calibration.plain(n_classes), metrics=metrics,
        )  # fmt: skip
        parameters = trained.model.parameters
        self.weights_, self.input_scales_ = parameters.rotations, parameters.scales
        self.readout_weights_ = parameters.readout


def _figures(decision: Decision, found: OutOfFold, codes: Codes) -> dict[str, Any]:
    """Metrics of the out-of-fold rows as they are decided, fit for JSON (algorithm 19)."""
    rows = np.flatnonzero(found.fold >= 0)
    counts = None if decision.operating is None else decision.operating.counts
    if counts is not None:
        confusion = np.array([[counts.tn, counts.fp], [counts.fn, counts.tp]], dtype=np.float64)
    else:
        confusion = confusion_matrix(codes[rows], decision.codes(found.scores[rows]), len(decision.classes))
    metrics = ClassMetrics(confusion)
    return {
        "rows": len(rows),
        "accuracy": metrics.accuracy,
        "macro_f1": metrics.macro_f1,
        "confusion": confusion.astype(int).tolist(),
    }
