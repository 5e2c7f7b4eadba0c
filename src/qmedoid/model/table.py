"""A model with all it takes to decide about records of a raw table: contract, encodings, classes, operating point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ModelError
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.kernels.ties import first_largest_of_rows
from qmedoid.methods.base import Method, refuse_overflow
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.contract import Contract, Encoding, Label
from qmedoid.model.decision import PriorShift, asked_priors
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.novelty import Novelty
from qmedoid.model.operating_point import OperatingSummary
from qmedoid.model.seen import SeenRows
from qmedoid.variational.model import VariationalModel

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
    classes : tuple
        Class labels in the order of their codes; of two, the second is the positive one.
    models : tuple of HybridModel or VariationalModel
        The best first; they read the encoded columns.
    cut : float or None
        Log-odds above which a record is called the second of two classes; None decides for the highest score.
    probabilistic : bool
        Whether the softmax of the scores is a probability.
    records : tuple of tuple of Record, or None
        For each model its medoids as rows of the training table; None where they were not kept.
    parameters, metrics : mapping
        How the model was made, and what it showed, for the reader; fit for JSON.
    priors : ndarray of shape (C,) or None
        The class frequencies for which the probabilities were made; None where they are not known.
    prior_shift : PriorShift or None
        What is added to the scores of the models where other priors are expected.
    operating : OperatingSummary or None
        Where two classes are told apart and what is to be expected of it.
    seen : SeenRows or None
        Hashes of the rows that the model was fitted on; None where they were not kept.
    novelty : Novelty or None
        A summary of the training rows, by which records unlike them are noticed; None where nothing is known.
    """

    contract: Contract
    encodings: tuple[Encoding, ...]
    classes: tuple[Label, ...]
    models: tuple[HybridModel | VariationalModel, ...]
    cut: float | None = None
    probabilistic: bool = True
    records: tuple[tuple[Record, ...], ...] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    priors: Array | None = None
    prior_shift: PriorShift | None = None
    operating: OperatingSummary | None = None
    seen: SeenRows | None = None
    novelty: Novelty | None = None

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
    def n_known_records(self) -> int:
        """Training rows that the first stage keeps beside its medoids."""
        stage = self.method
        return 0 if stage is None else stage.n_neighbors

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
        if self.prior_shift is not None:
            scores = self.prior_shift.apply(scores)
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

    @property
    def expected_priors(self) -> Array | None:
        """The class frequencies for which the scores of `decide` are made."""
        return self.priors if self.prior_shift is None else self.prior_shift.priors

    def shifted(self, new_prevalence: Any) -> "TableModel":
        """The same model where the classes are as frequent as said, and look the same otherwise.

        A cut that was chosen on held-out rows by alert rate, precision, recall or a metric moves along, so that the
        same records are picked; the likelier class, a given probability and a cost stay at their probability.

        Parameters
        ----------
        new_prevalence : float, mapping or array-like of shape (C,)
            How frequent the second of two classes is, or every class, by label or in the order of their codes.
        """
        shift = PriorShift.to(self._known_priors(), asked_priors(new_prevalence, self.classes))
        if len(self.classes) > 2 or self.operating is None:
            return replace(self, prior_shift=shift)
        before = 0.0 if self.prior_shift is None else self.prior_shift.of_log_odds
        operating = self.operating.at_prevalence(shift.prevalence, shift.of_log_odds - before)
        return replace(
            self, prior_shift=shift, operating=operating, cut=None if self.cut is None else operating.log_odds
        )

    def estimated_prevalence(self, scores: Array) -> PrevalenceEstimate:
        """How frequent the classes are among unlabeled records, by the scores of `decide`."""
        self._known_priors()
        expected = self.expected_priors
        assert expected is not None, "priors are known"
        return PriorShift.estimated(expected, scores)

    def _known_priors(self) -> Array:
        if not self.probabilistic:
            raise ModelError(
                "This model has no probabilities that another prevalence could change: fit a GeometricClassifier."
            )
        if self.priors is None:
            raise ModelError(
                "This model was saved without the class frequencies it was made for, so that nothing is known of "
                "another prevalence: fit and save it again."
            )
        return self.priors

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
        return first_largest_of_rows(self.probabilities(scores) if self.probabilistic else scores)
