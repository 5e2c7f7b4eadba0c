"""The model of a raw table: contract, encodings, hybrid model and decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.methods.base import Method, refuse_overflow
from qmedoid.model.contract import Contract, Encoding, Label
from qmedoid.model.decision import Decision
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.novelty import Novelty, SeenRows
from qmedoid.model.operating_point import OperatingSummary
from qmedoid.model.training_summary import TrainingSummary
from qmedoid.variational.model import VariationalModel

Record = Mapping[str, Any]
"""A row of the training table: numbers, texts, truth values, ISO dates or None, by column."""


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


@dataclass(frozen=True, eq=False)
class TableModel:
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
    parent : str or None
        SHA-256 of the model file that the model was derived from, such as by a prior shift.
    """

    contract: Contract
    encodings: tuple[Encoding, ...]
    decision: Decision
    models: tuple[HybridModel | VariationalModel, ...]
    records: tuple[tuple[Record, ...], ...] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    seen: SeenRows | None = None
    novelty: Novelty | None = None
    training: TrainingSummary | None = None
    parent: str | None = None

    @property
    def classes(self) -> tuple[Label, ...]:
        """Class labels in the order of their codes; of two, the second is the positive one."""
        return self.decision.classes

    @property
    def operating(self) -> OperatingSummary | None:
        """The operating point of two classes, with its expected figures."""
        return self.decision.operating

    @property
    def best(self) -> HybridModel | VariationalModel:
        """The model that decides."""
        return self.models[0]

    @property
    def method(self) -> Method | None:
        """The first stage of the best model, if it has one."""
        model = self.best
        if isinstance(model, VariationalModel):
            return None
        return model.method.plain

    @property
    def n_neighbors(self) -> int:
        """Number of training rows that the method keeps in addition to its medoids."""
        stage = self.method
        return 0 if stage is None else stage.n_neighbors

    @property
    def refinement(self) -> str:
        """Which records a circuit decides: ``"none"``, ``"selective"`` or ``"always"``."""
        model = self.best
        return "always" if isinstance(model, VariationalModel) else model.refinement

    @property
    def deciders(self) -> tuple[str, str]:
        """Who decides without and with the circuit: the method's name, and ``"circuit"``."""
        method = self.method
        return "circuit" if method is None else method.name, "circuit"

    @cached_property
    def label_array(self) -> npt.NDArray[Any]:
        """The classes as an array."""
        return np.array(self.classes)

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        pairs = zip(self.encodings, self.contract.names, strict=True)
        return tuple(output for encoding, name in pairs for output in encoding.output_names(name))

    @cached_property
    def used_columns(self) -> tuple[int, ...]:
        """Columns of the contract that the best model reads."""
        source = np.repeat(np.arange(len(self.encodings)), [encoding.width for encoding in self.encodings])
        method = self.method
        read = source if method is None else source[method.used]
        return tuple(int(column) for column in np.unique(read))

    @cached_property
    def read_outputs(self) -> Flags:
        """For every encoded column, whether it is of a column that the best model reads, shape (M,)."""
        source = np.repeat(np.arange(len(self.encodings)), [encoding.width for encoding in self.encodings])
        return np.isin(source, self.used_columns)

    @cached_property
    def checked_columns(self) -> frozenset[int]:
        """Columns of the contract whose bad values `decide` is sure to refuse: they need not be looked for first."""
        method = self.method
        if method is None:
            return frozenset()
        widths = [encoding.width for encoding in self.encodings]
        first = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.intp)
        return frozenset(place for place in self.used_columns if method.notices_bad_values[first[place]])

    def decide(self, columns: Sequence[npt.NDArray[Any]], *, threads: int | None = None) -> Decisions:
        """Decide about records from their encoded columns; what the best model does not read may be anything.

        Raises
        ------
        ModelError
            Scores are not finite, because the model holds numbers whose products overflow.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            decided = self._decided(columns, threads)
        refuse_overflow(decided.scores, decided.margins)
        return decided

    def _decided(self, columns: Sequence[npt.NDArray[Any]], threads: int | None) -> Decisions:
        model = self.best
        if isinstance(model, VariationalModel):
            scores = model.scores(np.column_stack(columns), threads=threads)
            by_circuit, nearest = np.ones(len(scores), dtype=np.bool_), None
        else:
            scores, by_circuit, nearest = model.decide_with_medoids(columns, threads=threads)
        scores = self.decision.shifted_scores(scores)
        margins = self.decision.margins(scores)
        return Decisions(self.decision.codes(scores, margins), scores, margins, by_circuit, nearest)
