r"""The fitted model: a contract with encodings, a weighted sum of parts, a calibration, a refinement and a decision.

.. math:: S_c(x) = \sum_j w_j\,S^{(j)}_c(x) - b_c, \qquad w \ge 0

Every part is a sum of statements about real training rows, and so is their sum: contributions add up exactly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.methods.contributions import Contributions
from qmedoid.methods.part import (
    CLOSED_FORM,
    Backends,
    Calibration,
    KeptRows,
    Part,
    PartFacts,
    Scored,
    medoid_part,
    refuse_overflow,
    score_sum,
)
from qmedoid.methods.registry import PARTS, part_class
from qmedoid.methods.variational.model import ExpectationFunction, VariationalModel
from qmedoid.model.contract import Contract, Dates, Encoding, Kind, Levels, Numbers
from qmedoid.model.decision import Decision
from qmedoid.model.novelty import Novelty
from qmedoid.model.refinement import Refinement
from qmedoid.model.training_summary import HeldOutCurve, SeenRows, TrainingSummary
from qmedoid.schema import MODERATE, Tagged, Unstored, Values

Policy = Literal["none", "selective", "always"]
Record = Mapping[str, Any]
"""A row of the training table: numbers, texts, truth values, ISO dates or None, by column."""
# The encoding that columns of each kind have: what applies one relies on it.
ENCODING_OF: dict[Kind, type[Encoding]] = {"number": Numbers, "boolean": Numbers, "date": Dates, "category": Levels}
_SUM = "a weighted sum of the parts named below: statements about medoids and other rows"


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
    """Encoded columns of a model, M of them, and which columns it reads.

    Attributes
    ----------
    names : tuple of str
        Of the encoded columns.
    used : tuple of int
        Columns of the contract that the model reads.
    is_read : ndarray of shape (M,)
        For every encoded column, whether it is of one of these.
    checked : frozenset of int
        Columns of the contract whose bad values `Model.decide` is sure to refuse: they need not be looked for first.
    """

    names: tuple[str, ...]
    used: tuple[int, ...]
    is_read: Flags
    checked: frozenset[int]


@dataclass(frozen=True, eq=False)
class Model:
    """A model that decides about one kind of table, with J parts and C classes.

    Attributes
    ----------
    contract : Contract
    encodings : tuple of Encoding
        One for each column of the contract.
    decision : Decision
        How class scores become decisions.
    method : str
        The name of the method that made it, which is said to decide.
    parts : tuple of Part
        They read the encoded columns; the first one that has medoids gives the nearest of them.
    weights : ndarray of shape (J,)
        w; a part of weight 0 only gives medoids, or features for the circuit.
    biases : ndarray of shape (C,)
        b.
    calibration : Calibration
        Of the sum.
    refinement : Refinement or None
        The circuit that decides some records, or all of them, after the calibration.
    records : tuple of Record, or None
        The medoids as rows of the training table; None where they were not kept.
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
    n_classes : int
        C.
    medoid_part : Part or None
        The part that gives the nearest medoids; None for a circuit alone.
    medoids : KeptRows or None
        Its rows.
    n_neighbors : int
        Encoded training rows that are kept in addition to medoids, by the part that has most.
    circuit : VariationalModel or None
        The trained circuit, which refines decisions or is the only part.
    policy : {"none", "selective", "always"}
        Which records a circuit decides.
    source : ndarray of shape (M,)
        The column of the contract that each encoded column is of.
    columns : ndarray
        Encoded columns that the parts read, rising.
    layout : Layout
        The encoded columns, and which columns the model reads.
    slope : float
        What the sums are stretched by, before and after the circuit.
    """

    contract: Contract
    encodings: tuple[Encoding, ...]
    decision: Decision
    method: Annotated[str, "[a-z]{1,40}"]
    parts: Annotated[
        tuple[Annotated[Part, Tagged(part_class, PARTS)], ...], {"M": "encodings.outputs", "C": "decision.classes"}
    ]
    weights: Annotated[Array, Values("n_parts", least=0, most=MODERATE)]
    biases: Annotated[Array, Values("n_biases", largest=MODERATE)]
    calibration: Annotated[Calibration, {"C": "decision.classes"}]
    refinement: Refinement | None = None
    records: tuple[Record, ...] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    seen: SeenRows | None = None
    novelty: Annotated[Novelty | None, {"M": "encodings.outputs"}] = None
    training: TrainingSummary | None = None
    importances: Annotated[Array | None, Values("columns", least=0, most=MODERATE)] = None
    parent: Annotated[str | None, "[0-9a-f]{64}"] = None
    backends: Annotated[Backends, Unstored()] = CLOSED_FORM

    n_classes: Annotated[int, Unstored()] = field(init=False)
    medoid_part: Annotated[Part | None, Unstored()] = field(init=False)
    medoids: Annotated[KeptRows | None, Unstored()] = field(init=False)
    n_neighbors: Annotated[int, Unstored()] = field(init=False)
    circuit: Annotated[VariationalModel | None, Unstored()] = field(init=False)
    policy: Annotated[Policy, Unstored()] = field(init=False)
    source: Annotated[Codes, Unstored()] = field(init=False)
    columns: Annotated[Codes, Unstored()] = field(init=False)
    layout: Annotated[Layout, Unstored()] = field(init=False)
    slope: Annotated[float, Unstored()] = field(init=False)

    def __post_init__(self) -> None:
        refinement, part = self.refinement, medoid_part(self.parts)
        alone = next((one for one in self.parts if one.backend == "expectations"), None)
        policy: Policy = "none" if alone is None else "always"
        if refinement is not None:
            policy = "always" if refinement.refine_below == np.inf else "selective"
        after = None if refinement is None else refinement.recalibration
        derived = {
            "n_classes": len(self.decision.classes),
            "medoid_part": part,
            "medoids": None if part is None else part.rows,
            "n_neighbors": max((len(one.rows.neighbors) for one in self.parts), default=0),
            "circuit": alone if refinement is None else refinement.circuit,
            "policy": policy,
            "source": np.repeat(np.arange(len(self.encodings)), [len(one.outputs) for one in self.encodings]),
            "slope": self.calibration.slope * (1.0 if after is None else after.slope),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        columns = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *(one.columns for one in self.parts)]))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "layout", self._layout())

    def _layout(self) -> Layout:
        # A file may hold more or fewer encodings than columns: it is refused once everything is read.
        pairs = list(zip(self.contract.columns, self.encodings, strict=False))
        names = tuple(column.name + output for column, encoding in pairs for output in encoding.outputs)
        used = tuple(np.unique(self.source[self.columns]).tolist())
        checked: frozenset[int] = frozenset()
        if self.medoid_part is not None:
            read = set(self.medoid_part.columns.tolist())
            checked = frozenset(index for index in used if int(np.searchsorted(self.source, index)) in read)
        return Layout(names, used, np.isin(self.source, used), checked)

    @cached_property
    def _is_one(self) -> bool:
        """Whether the scores are those of one part as it is."""
        return len(self.parts) == 1 and self.weights[0] == 1.0 and not self.biases.any()

    @property
    def facts(self) -> PartFacts:
        """Facts about the parts together, with their weights; groups are those of the part with medoids."""
        facts = [part.facts for part in self.parts]
        if self._is_one:
            return facts[0]
        weights = dict(zip([part.name for part in self.parts], self.weights.tolist(), strict=True))
        words = ", ".join(f"{name} {weight:.3g}" for name, weight in weights.items())
        numbers = {part.name: one["numbers"] for part, one in zip(self.parts[1:], facts[1:], strict=True)}
        return {
            "description": _SUM,
            "groups": facts[0]["groups"] if self.medoid_part is None else self.medoid_part.facts["groups"],
            "kept": (
                f"The parts of the sum and their weights: {words}.",
                *(one for part in facts for one in part["kept"]),
            ),
            "vector_length": max(1, *(part["vector_length"] for part in facts)),
            "numbers": {**facts[0]["numbers"], **numbers, "weights": weights},
        }

    def measured_by(
        self, swap_test: SwapTestFunction | None = None, expectations: ExpectationFunction | None = None
    ) -> "Model":
        """A copy whose distances, circuit, or both are measured by backends; one that nothing asks is refused."""
        if swap_test is not None and not any(part.backend == "swap_test" for part in self.parts):
            raise ParameterError(
                "This model is a circuit alone, and has no distances that a 'swap_test' could measure: pass a backend "
                "of expectation values as 'expectations'."
            )
        if expectations is not None and self.circuit is None:
            raise ParameterError(
                "This model has no trained circuit that 'expectations' could run: leave it out, or fit a model with a "
                "circuit (refine='always')."
            )
        return replace(self, backends=Backends(swap_test, expectations))

    # --- scores and decisions ---------------------------------------------------------------------------------------

    def score(self, X: Table, *, channels: bool = False, threads: int | None = None) -> Scored:
        """The weighted sum of the parts, with what the part with medoids found; measured where there are backends."""
        if self._is_one:
            if (backend := getattr(self.backends, self.parts[0].backend)) is None:
                return self.parts[0].score(X, channels=channels, threads=threads)
            return self.parts[0].score_measured(X, backend)
        return score_sum(
            self.parts,
            self.weights,
            self.biases,
            X,
            backends=self.backends,
            channels=channels,
            threads=threads,
            reads_features=self.refinement is not None and self.refinement.inputs.kind == "own",
        )

    def class_scores(self, found: Scored, picked: Flags | None = None) -> tuple[Array, Flags]:
        """Class scores (n, C) at the training priors, and which records the circuit decided."""
        scores = self.calibration.apply(found.scores)
        if self.refinement is None:
            return scores, np.full(len(scores), self.circuit is not None)
        return self.refinement.apply(scores, found, picked, self.backends.expectations)

    def shifted_scores(self, columns: Table) -> Array:
        """Class scores of records at the expected priors, shape (n, C), without a decision."""
        scores, _ = self.class_scores(self.score(columns, channels=self.refinement is not None))
        return self.decision.shifted_scores(scores)

    def decide(
        self, columns: Sequence[npt.NDArray[Any]] | Array, *, threads: int | None = None, picked: Flags | None = None
    ) -> Decisions:
        """Decide about records from their encoded columns; what the model does not read may be anything.

        Records that are `picked` go to the circuit; without it those that the refinement picks.

        Raises
        ------
        ModelError
            Scores are not finite, because the model holds numbers whose products overflow.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = self.score(columns, channels=self.refinement is not None, threads=threads)
            scores, by_circuit = self.class_scores(found, picked)
            codes, scores, margins = self.decision.decide(scores)
        refuse_overflow(scores, margins)
        return Decisions(codes, scores, margins, by_circuit, found.nearest)

    # --- contributions ----------------------------------------------------------------------------------------------

    def contributions(self, row: Array, winner: int, other: int, *, unit: float = 1.0) -> Contributions:
        """Contributions to `unit` times the difference of two classes' sums, for one encoded row of shape (1, M)."""
        parts = zip(self.parts, self.weights.tolist(), strict=True)
        first, *rest = [part.contributions(row, winner, other).times(unit * weight) for part, weight in parts]
        for one in rest:
            first = first.plus(one)
        if self.biases.any():
            bias = unit * float(self.biases[winner] - self.biases[other])
            first = replace(first, terms={**first.terms, "intercept": first.terms.get("intercept", 0.0) + bias})
        return first

    # --- other calibrations and cuts --------------------------------------------------------------------------------

    @property
    def last_calibration(self) -> Calibration:
        """The calibration that class scores come from; that of a circuit which nobody recalibrated changes nothing."""
        if self.refinement is None:
            return self.calibration
        return self.refinement.recalibration or Calibration.plain(self.n_classes)

    def with_last_calibration(self, calibration: Calibration) -> "Model":
        """A copy with another last calibration."""
        if self.refinement is None:
            return replace(self, calibration=calibration)
        return replace(self, refinement=replace(self.refinement, recalibration=calibration))

    def before_calibration(self) -> "Model":
        """A copy whose scores are those that the last calibration is fitted to, the largest first.

        Raises
        ------
        ModelError
            The scores are no probabilities, or the model is a circuit alone.
        """
        if not self.decision.probabilistic or self.medoids is None:
            what = "a circuit alone" if self.medoids is None else "without probabilities"
            raise ModelError(
                f"This model is {what}: it has no calibration that new labels could replace. Fit a MedoidClassifier."
            )
        plain = self.with_last_calibration(Calibration.plain(self.n_classes))
        return replace(plain, decision=Decision(self.decision.classes))

    def recalibrated(self, calibration: Calibration, decision: Decision, curve: HeldOutCurve | None) -> "Model":
        """A copy with another last calibration, decision and held-out curve.

        Contributions are stretched as the scores are; importances keep the pairs of classes of the training rows.
        """
        again = self.with_last_calibration(calibration)
        importances = None if self.importances is None else self.importances * (again.slope / self.slope)
        training = None if self.training is None else replace(self.training, curve=curve)
        return replace(again, decision=decision, importances=importances, training=training)

    def at_priors(self, new_prevalence: Any) -> "Model":
        """A copy for other class priors; see `Decision.at_priors`. It has no figures of the cut of the fit."""
        kept = {name: value for name, value in self.metrics.items() if name not in ("threshold", "out_of_fold")}
        return replace(self, decision=self.decision.at_priors(new_prevalence), metrics=kept)

    def at_operating_point(self, operating_point: Any) -> "Model":
        """A copy that cuts elsewhere, by the curve of held-out rows; see `Decision.at_operating_point`.

        Metrics are about the cut of the fit, and are left out.
        """
        curve = None if self.training is None else self.training.curve
        kept = {name: value for name, value in self.metrics.items() if name == "training_rows"}
        return replace(self, decision=self.decision.at_operating_point(operating_point, curve), metrics=kept)
