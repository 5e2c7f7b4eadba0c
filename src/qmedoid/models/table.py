"""A model with all it takes to decide about records of a raw table: contract, encodings, classes, operating point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.models.contract import Contract, Label
from qmedoid.models.encoding import Encoding
from qmedoid.models.geometric import GeometricModel
from qmedoid.models.stage import PlainStage
from qmedoid.models.variational import VariationalModel
from qmedoid.variational.loss import log_softmax

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Record = Mapping[str, Any]
"""A row of the training table: numbers, texts, truth values, ISO dates or None, by column."""

# Scores further apart than this have probabilities that are apart.
_CLOSE = 1e-8


class Decisions(NamedTuple):
    """What is decided about n records, with C classes.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        The class of each.
    scores : ndarray of shape (n, C)
        Class scores; the largest decides where there is no operating point.
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
    by_circuit: npt.NDArray[np.bool_]
    nearest: Codes | None


@dataclass(frozen=True, eq=False)
class TableModel:
    """Models that decide about one kind of table.

    Attributes
    ----------
    contract : Contract
    encodings : tuple of Encoding
        One for each column of the contract.
    classes : tuple
        Class labels in the order of their codes; of two, the second is the positive one.
    models : tuple of GeometricModel or VariationalModel
        The best first; they read the encoded columns.
    cut : float or None
        Log-odds above which a record is called the second of two classes; None decides for the highest score.
    probabilistic : bool
        Whether the softmax of the scores is a probability.
    records : tuple of tuple of Record, or None
        For each model its medoids as rows of the training table; None where they were not kept.
    parameters, metrics : mapping
        How the model was made, and what it showed, for the reader; fit for JSON.
    """

    contract: Contract
    encodings: tuple[Encoding, ...]
    classes: tuple[Label, ...]
    models: tuple[GeometricModel | VariationalModel, ...]
    cut: float | None = None
    probabilistic: bool = True
    records: tuple[tuple[Record, ...], ...] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def best(self) -> GeometricModel | VariationalModel:
        """The model that decides."""
        return self.models[0]

    @property
    def fusion(self) -> PlainStage | None:
        """The first stage of the best model, if it has one."""
        model = self.best
        if isinstance(model, VariationalModel):
            return None
        return model.fusion.plain

    @property
    def stage(self) -> str:
        """Who decides: ``"fusion"``, ``"selective"`` or ``"variational"``."""
        model = self.best
        if isinstance(model, VariationalModel) or model.refine_below == np.inf:
            return "variational"
        return "fusion" if model.variational is None else "selective"

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
        fusion = self.fusion
        read = source if fusion is None else source[fusion.used]
        return tuple(int(column) for column in np.unique(read))

    @cached_property
    def checked_columns(self) -> frozenset[int]:
        """Columns of the contract whose bad values `decide` is sure to refuse: they need not be looked for first."""
        fusion = self.fusion
        if fusion is None:
            return frozenset()
        widths = [encoding.width for encoding in self.encodings]
        first = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.intp)
        return frozenset(place for place in self.used_columns if fusion.notices_bad_values[first[place]])

    def decide(self, columns: Sequence[npt.NDArray[Any]], *, threads: int | None = None) -> Decisions:
        """Decide about records from their encoded columns; what the best model does not read may be anything."""
        model = self.best
        if isinstance(model, VariationalModel):
            scores = model.scores(np.column_stack(columns), threads=threads)
            by_circuit, nearest = np.ones(len(scores), dtype=np.bool_), None
        else:
            scores, by_circuit, nearest = model.decide_with_medoids(columns, threads=threads)
        if len(self.classes) > 2:
            ranked = np.sort(scores, axis=1)
            return Decisions(self._argmax(scores), scores, ranked[:, -1] - ranked[:, -2], by_circuit, nearest)
        margins = scores[:, 1] - scores[:, 0]
        if self.cut is not None:
            margins = margins - self.cut
        codes = (margins > 0).astype(np.intp)
        if self.cut is None and self.probabilistic:
            close = np.flatnonzero(np.abs(margins) < _CLOSE)
            codes[close] = self._argmax(scores[close])
        return Decisions(codes, scores, margins, by_circuit, nearest)

    def probabilities(self, scores: Array) -> Array:
        """Class probabilities of class scores, shape (n, C)."""
        probabilities: Array = np.exp(log_softmax(scores))
        return probabilities

    def probabilities_of_second(self, scores: Array) -> Array:
        """The second column of `probabilities` of two classes, bit for bit, in half the time."""
        first, second = scores[:, 0], scores[:, 1]
        highest = np.maximum(first, second)
        first, second = first - highest, second - highest
        probabilities: Array = np.exp(second - np.log(np.exp(first) + np.exp(second)))
        return probabilities

    def _argmax(self, scores: Array) -> Codes:
        # Where scores are probabilities, theirs decide: two scores may be apart that have one probability.
        codes: Codes = np.argmax(self.probabilities(scores) if self.probabilistic else scores, axis=1)
        return codes
