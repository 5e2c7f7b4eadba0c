"""The model of a raw table: contract, encodings, hybrid model and decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import lt
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ModelError
from qmedoid.methods.calibration_curve import Calibration
from qmedoid.methods.part import CLOSED_FORM, Backends, Part, refuse_overflow
from qmedoid.methods.variational.model import VariationalModel
from qmedoid.model.contract import Contract, Dates, Encoding, Kind, Levels, Numbers
from qmedoid.model.decision import Decision
from qmedoid.model.hybrid import HybridModel, decider, n_deltas, use_angular
from qmedoid.model.novelty import Novelty
from qmedoid.model.training_summary import SeenRows, TrainingSummary
from qmedoid.schema import MODERATE, RefusedError, Unstored, Values

Record = Mapping[str, Any]
"""A row of the training table: numbers, texts, truth values, ISO dates or None, by column."""
# The encoding that columns of each kind have: what applies one relies on it.
ENCODING_OF: dict[Kind, type[Encoding]] = {"number": Numbers, "boolean": Numbers, "date": Dates, "category": Levels}


class Decisions(NamedTuple):
    """What is decided about n records, with C classes.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        The class of each.
    scores : ndarray of shape (n, C)
        Class scores, at the prevalence that is expected; the largest decides where there is no operating point.
    margins : ndarray of shape (n,)
        For two classes the score of the second minus that of the first and minus the cut, above 0 for the second; for
        more the best score minus the next.
    by_circuit : ndarray of shape (n,)
        Whether the circuit decided.
    nearest : ndarray of shape (n, C) or None
        The nearest medoid of each class, as a place in the list of medoids; None where there are no medoids.
    """

    codes: Codes
    scores: Array
    margins: Array
    by_circuit: Flags
    nearest: Codes | None


class Layout(NamedTuple):
    """Encoded columns of a model, M of them, and which columns the best model reads.

    Attributes
    ----------
    names : tuple of str
        Of the encoded columns.
    used : tuple of int
        Columns of the contract that the best model reads.
    is_read : ndarray of shape (M,)
        For every encoded column, whether it is of one of these.
    checked : frozenset of int
        Columns of the contract whose bad values `Model.decide` is sure to refuse: they need not be looked for
        first.
    """

    names: tuple[str, ...]
    used: tuple[int, ...]
    is_read: Flags
    checked: frozenset[int]


@dataclass(frozen=True, eq=False)
class Model:
    """Models that decide about one kind of table.

    Attributes
    ----------
    contract : Contract
    encodings : tuple of Encoding
        One for each column of the contract.
    decision : Decision
        How the scores of the best model become decisions.
    models : tuple of HybridModel or VariationalModel
        The best first; they read the encoded columns.
    records : tuple of tuple of Record, or None
        For each model its medoids as rows of the training table; None where they were not kept.
    parameters, metrics : mapping
        How the model was made, and what it showed, for the reader; fit for JSON.
    seen : SeenRows or None
        Hashes of the rows that the model was fitted on; None where they were not kept.
    novelty : Novelty or None
        Summary of the training rows that finds records unlike them; None where there is none.
    training : TrainingSummary or None
        Held-out curve, levels, missing cells and rows per day of the training table; None where nothing is known.
    importances : ndarray of shape (columns,) or None
        Mean absolute contribution of every column of the contract to the margins of training rows, between the class
        that out-of-fold scores decide for and the runner-up; None where decisions are no sums over columns.
    parent : str or None
        SHA-256 of the model file that the model was derived from, such as by a prior shift.
    backends : Backends
        What measures distances and the circuit, if anything does; such a model is not saved.
    """

    contract: Contract
    encodings: tuple[Encoding, ...]
    decision: Decision
    models: Annotated[tuple[HybridModel | VariationalModel, ...], {"M": "encodings.outputs", "C": "decision.classes"}]
    records: Annotated[tuple[tuple[Record, ...], ...] | None, Unstored()] = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    seen: SeenRows | None = None
    novelty: Annotated[Novelty | None, {"M": "encodings.outputs"}] = None
    training: TrainingSummary | None = None
    importances: Annotated[Array | None, Values("columns", least=0, most=MODERATE)] = None
    parent: Annotated[str | None, "[0-9a-f]{64}"] = None
    backends: Annotated[Backends, Unstored()] = CLOSED_FORM

    def validate(self) -> None:
        """Refuse a stored model whose encodings, models and summary are not those of its columns and classes."""
        if [type(encoding) for encoding in self.encodings] != [ENCODING_OF[one.kind] for one in self.contract.columns]:
            raise RefusedError("encodings must be one for each column of the contract, as its kind asks for")
        for number, encoding in enumerate(self.encodings):
            parts = encoding.parts if isinstance(encoding, Dates) else ()
            levels = encoding.levels if isinstance(encoding, Levels) else ()
            if len(encoding.outputs) < 1 or len(set(parts)) != len(parts) or not all(map(lt, levels, levels[1:])):
                raise RefusedError(f"encodings.{number} must have outputs, or parts, each once; levels must ascend")
        if not self.models:
            raise RefusedError("models is empty")
        if self.importances is not None and len(self.importances) != len(self.encodings):
            raise RefusedError(f"importances must be {len(self.encodings)} numbers, one for each column")
        shape = sum(len(encoding.outputs) for encoding in self.encodings), len(self.decision.classes)
        for number, model in enumerate(self.models):
            circuit: VariationalModel | None = None if isinstance(model, HybridModel) else model
            expected = shape
            if isinstance(model, HybridModel):
                if len(np.unique(model.method.rows.classes)) != shape[1]:
                    raise RefusedError(f"models.{number}.method must be for the {shape[1]} classes")
                if model.variational is None and model.refine_below == np.inf:
                    raise RefusedError(
                        f"models.{number}.refine_below leaves all records to a circuit, and there is none"
                    )
                circuit, expected = model.variational, _circuit_shape(model) if model.variational else shape
            if isinstance(circuit, VariationalModel):
                network = circuit.network
                if (network.ansatz.n_inputs, network.readout.n_classes) != expected:
                    raise RefusedError(f"models.{number} must have a circuit for (inputs, classes) {expected}")
        if self.training is not None:
            sizes = [
                len(encoding.levels) if isinstance(encoding, Levels) else 2 * (column.kind == "boolean")
                for column, encoding in zip(self.contract.columns, self.encodings, strict=True)
            ]
            if [len(counts) for counts in self.training.levels] != sizes:
                raise RefusedError("training.levels must count the levels of each column")
            if self.training.curve is not None and shape[1] != 2:
                raise RefusedError("training.curve belongs to two classes")

    @property
    def best(self) -> HybridModel | VariationalModel:
        """The model that decides."""
        return self.models[0]

    @property
    def method(self) -> Part | None:
        """The method of the best model; None for a circuit alone."""
        return self.best.method if isinstance(self.best, HybridModel) else None

    @property
    def n_neighbors(self) -> int:
        """Number of training rows that the method keeps in addition to its medoids."""
        return 0 if self.method is None else len(self.method.rows.neighbors)

    @property
    def refinement(self) -> str:
        """Which records a circuit decides: ``"none"``, ``"selective"`` or ``"always"``."""
        return self.best.refinement if isinstance(self.best, HybridModel) else "always"

    @property
    def deciders(self) -> tuple[str, str]:
        """Who decides without and with the circuit: the method's name, and ``"circuit"``."""
        method = self.method
        return "circuit" if method is None else decider(method), "circuit"

    def at_operating_point(self, operating_point: Any) -> "Model":
        """A copy that cuts elsewhere, by the curve of held-out rows; see `Decision.at_operating_point`.

        Metrics are about the cut of the fit, and are left out.
        """
        curve = None if self.training is None else self.training.curve
        kept = {name: value for name, value in self.metrics.items() if name == "training_rows"}
        return replace(self, decision=self.decision.at_operating_point(operating_point, curve), metrics=kept)

    @cached_property
    def source(self) -> Codes:
        """The column of the contract that each encoded column is of, shape (M,)."""
        return np.repeat(np.arange(len(self.encodings)), [len(encoding.outputs) for encoding in self.encodings])

    @cached_property
    def layout(self) -> Layout:
        """The encoded columns, and which columns the best model reads."""
        pairs = list(zip(self.contract.columns, (encoding.outputs for encoding in self.encodings), strict=True))
        names = tuple(column.name + output for column, outputs in pairs for output in outputs)
        widths, method, source = [len(outputs) for _, outputs in pairs], self.method, self.source
        used = tuple(np.unique(source if method is None else source[method.columns]).tolist())
        checked: frozenset[int] = frozenset()
        if method is not None:
            first, columns = np.cumsum([0, *widths]), getattr(method, "base", method).columns
            checked = frozenset(place for place in used if first[place] in columns)
        return Layout(names, used, np.isin(source, used), checked)

    def before_calibration(self) -> "Model":
        """A copy whose scores are those that the last calibration of the best model is fitted to, the largest first.

        Raises
        ------
        ModelError
            The scores are no probabilities, or the model is a circuit alone.
        """
        best = self.best
        if not self.decision.probabilistic or not isinstance(best, HybridModel):
            what = "a circuit alone" if isinstance(best, VariationalModel) else "without probabilities"
            raise ModelError(
                f"This model is {what}: it has no calibration that new labels could replace. Fit a MedoidClassifier."
            )
        plain = best.with_last_calibration(Calibration(1.0, np.zeros(len(self.decision.classes))))
        return replace(self, models=(plain, *self.models[1:]), decision=Decision(self.decision.classes))

    def decide(
        self, columns: Sequence[npt.NDArray[Any]], *, threads: int | None = None, picked: Flags | None = None
    ) -> Decisions:
        """Decide about records from their encoded columns; what the best model does not read may be anything.

        Records that are `picked` go to the circuit; without it those that the policy of the model picks.

        Raises
        ------
        ModelError
            Scores are not finite, because the model holds numbers whose products overflow.
        """
        model = self.best
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if isinstance(model, HybridModel):
                scores, by_circuit, nearest = model.decide(
                    columns, backends=self.backends, picked=picked, threads=threads
                )
            else:
                features = np.column_stack(columns)
                scores = model.scores(features, backend=self.backends.expectations, threads=threads)
                by_circuit, nearest = np.ones(len(scores), dtype=np.bool_), None
            codes, scores, margins = self.decision.decide(scores)
        refuse_overflow(scores, margins)
        return Decisions(codes, scores, margins, by_circuit, nearest)


def _circuit_shape(model: HybridModel) -> tuple[int, int]:
    """Inputs and classes of the circuit of a model; counted, not listed, as a file may name very many classes."""
    n_classes, own = len(model.calibration.biases), n_deltas(model.method)
    n_outputs = 2 if model.deltas.decides_between_two(n_classes) else n_classes
    n_pairs = n_outputs * (n_outputs - 1) // 2
    n_inputs = n_pairs * (1 + use_angular(model.method) + model.deltas.fused) if own is None else own
    return n_inputs, n_outputs
