"""Columns of results: what is written about every record, and what can be added to it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ContractError, ModelError, ParameterError, some_of
from qmedoid.kernels.ties import first_largest_of_rows
from qmedoid.metrics.texts import (
    LONGEST,
    SMALLEST_FACTOR,
    cell_text,
    column_sign,
    effect_text,
    shortened,
)
from qmedoid.model.contract import Column
from qmedoid.model.importance import check_explained, column_contributions
from qmedoid.model.model import Decisions, Model
from qmedoid.spelling import did_you_mean, printable
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import TEXT_TYPES, as_text, joined_texts, one_chunk, read, without_missing_values
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.novelty import record_novelty
from qmedoid.tables.writing import OnBadRow


@dataclass(frozen=True)
class ScoreSettings:
    """What a score writes and how it reads its table, for a file, a folder, a data frame and a worker alike."""

    columns: tuple[str, ...] = ()  # of the table, carried through before the results
    add: tuple[str, ...] = ()  # further results, of `ADDED`
    n_reasons: int = 3  # columns that are named at most as reasons
    on_mismatch: OnMismatch = "error"
    on_bad_row: OnBadRow = "refuse"
    bad_rows: str | None = None  # file that takes the rows that are left out, as they were
    safe_csv: bool = True  # whether texts that a spreadsheet would run as a formula get an apostrophe before them
    delimiter: str | None = None  # of a text; it and the decimal sign are detected where None
    decimal: str | None = None

    def key(self) -> dict[str, Any]:
        """What results depend on, for JSON; equal results have equal keys."""
        settings = {name: value for name, value in vars(self).items() if name != "bad_rows"}
        return settings | {"safe_csv": self.safe_csv or self.on_bad_row != "skip"}


class Cut(NamedTuple):
    """Another cut of a model: a prevalence of the second class, and an operating point or log-odds to cut at."""

    prevalence: float | None = None
    point: Any = None
    log_odds: float | None = None

    def key(self) -> dict[str, Any]:
        """The cut for JSON."""
        return self._asdict() | {"log_odds": None if self.log_odds is None else repr(self.log_odds)}  # may be infinite


def at(model: Model, cut: Cut) -> Model:
    """A copy of a model for another prevalence and with another cut, where these are given."""
    if cut.prevalence is not None:
        model = replace(model, decision=model.decision.at_priors(cut.prevalence))
    if cut.log_odds is not None:
        curve = None if model.training is None else model.training.curve
        return replace(model, decision=model.decision.at_log_odds(cut.log_odds, curve))
    return model if cut.point is None else model.at_operating_point(cut.point)


ADDED = ("probabilities", "source", "row", "reasons", "novelty")
"""What can be added to the results, in the order of their columns."""
# Parts of a score up to this size are rounding.
_ROUNDING = 1e-9


class DecidedRows(NamedTuple):
    """Rows of a batch that could be decided about: records, encoded columns, decisions; and why the others are bad."""

    n_rows: int
    records: pa.RecordBatch | pa.Table
    encoded: list[Array]
    decided: Decisions
    bad: pa.Array | None = None
    """Why rows could not be decided about, null for those that could; None where all could."""

    @classmethod
    def none(cls, model: Model, n_rows: int = 0, bad: pa.Array | None = None) -> "DecidedRows":
        """No row that could be decided about."""
        n_classes, codes = len(model.decision.classes), np.zeros(0, dtype=np.intp)
        nearest = None if model.medoids is None else np.zeros((0, n_classes), dtype=np.intp)
        decided = Decisions(codes, np.zeros((0, n_classes)), np.zeros(0), codes.astype(np.bool_), nearest)
        return cls(n_rows, pa.table({}), [], decided, bad)


class ResultColumns:
    """The columns of results about records, of one model.

    Raises
    ------
    ParameterError, ModelError
        There is no such result, or the model does not have what is requested.
    """

    def __init__(self, model: Model, settings: ScoreSettings) -> None:
        unknown = [name for name in settings.add if name not in ADDED]
        if unknown:
            raise ParameterError(f"What is added must be among {', '.join(ADDED)}. Got {unknown[0]!r} instead.")
        if "probabilities" in settings.add and not model.decision.probabilistic:
            raise ModelError("This model has no probabilities, only margins: fit a MedoidClassifier.")
        if "reasons" in settings.add:
            check_explained(model)
        self.model, self.carried, self.n_reasons = model, list(settings.columns), settings.n_reasons
        self._flags = settings.on_bad_row == "flag"
        self.add = tuple(name for name in ADDED if name in settings.add)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in their order."""
        classes = self.model.decision.classes
        medoids = () if self.model.medoids is None else tuple(f"nearest_medoid_{label}" for label in classes)
        added = {"probabilities": tuple(f"probability_{label}" for label in classes)}
        more = (name for one in self.add for name in added.get(one, (one,)))
        flag = ("flag",) if self._flags else ()
        return ("prediction", "score", "margin", *medoids, "decided_by", *more, *flag)

    def batch(
        self, rows: pa.RecordBatch | pa.Table, part: DecidedRows, origin: tuple[str, int] = ("", 0)
    ) -> pa.RecordBatch:
        """A batch of results, behind the carried columns.

        ``score`` is the probability of the second of two classes, else of the predicted one (the margin where the model
        has no probabilities); ``nearest_medoid_…`` is the training row of the nearest medoid of each class.

        Bad rows are kept with empty results, or left out. `origin` is the name of the file, and the index of the first
        of these rows in it.
        """
        bad, columns, carried = part.bad, self._of_decisions(part), rows.select(self.carried)
        before = [one_chunk(column) for column in carried.columns]
        places = self._places(part, *origin)
        if bad is not None and self._flags:
            good = bad.is_null().to_numpy(zero_copy_only=False)
            back = pa.array(np.cumsum(good) - 1, mask=~good)
            columns = {name: column.take(back) for name, column in columns.items()}
        elif bad is not None:
            before = [column.filter(bad.is_null()) for column in before]
            places = {name: column.filter(bad.is_null()) for name, column in places.items()}
        arrays = [*before, *(places[name] if name in places else columns[name] for name in self.names)]
        return pa.record_batch(arrays, names=[*carried.schema.names, *self.names])

    def _places(self, part: DecidedRows, source: str, first_row: int) -> dict[str, pa.Array]:
        """The columns that say where a row stands and why it is bad, by name, of all rows."""
        n_rows, places = part.n_rows, {}
        if "source" in self.add:
            places["source"] = pa.repeat(source, n_rows)
        if "row" in self.add:
            places["row"] = pa.array(np.arange(first_row, first_row + n_rows))
        if self._flags:
            places["flag"] = pa.nulls(n_rows, pa.string()) if part.bad is None else part.bad
        return places

    def _of_decisions(self, part: DecidedRows) -> dict[str, pa.Array]:
        """The columns of decided rows, by name, without those that say where a row stands."""
        decision, medoids, decided = self.model.decision, self.model.medoids, part.decided
        classes = decision.classes
        if not decision.probabilistic:
            scores = decided.margins
        elif len(classes) == 2:
            scores = decision.probabilities_of_second(decided.scores)
        else:
            scores = np.take_along_axis(decision.probabilities(decided.scores), decided.codes[:, None], axis=1)[:, 0]
        columns: list[Any] = [_chosen(classes, decided.codes), scores, decided.margins]
        if medoids is not None and decided.nearest is not None:
            columns += [medoids.numbers.take(decided.nearest[:, code]) for code in range(len(classes))]
        columns.append(_chosen((self.model.method, "circuit"), decided.by_circuit.astype(np.intp)))
        if "probabilities" in self.add:
            columns += list(np.ascontiguousarray(decision.probabilities(decided.scores).T))
        if "reasons" in self.add:
            columns.append(reason_texts(self.model, part.records, part.encoded, decided, self.n_reasons))
        if "novelty" in self.add:
            n_rows = len(decided.codes)
            columns.append(record_novelty(self.model, part.encoded, threads=1) if n_rows else np.zeros(0))
        names = [name for name in self.names if name not in ("source", "row", "flag")]
        arrays = [pa.array(column) if isinstance(column, np.ndarray) else column for column in columns]
        return dict(zip(names, arrays, strict=True))

    def nothing(self, schema: pa.Schema) -> pa.RecordBatch:
        """The results of no rows of a table, whose carried columns are checked: each is there, and hides no result."""
        absent = [name for name in self.carried if name not in schema.names]
        if absent:
            has, hint = some_of([*map(repr, schema.names)]), did_you_mean(absent[0], schema.names)
            raise ContractError(f"There is no column {absent[0]!r} to carry through.{hint} The table has: {has}.")
        hidden = [name for name in self.carried if name in self.names]
        if hidden:
            raise ParameterError(
                f"The column {hidden[0]!r} cannot be carried through: a result has this name. Rename it in the table."
            )
        return self.batch(schema.empty_table(), DecidedRows.none(self.model))


def _chosen(values: Sequence[Any], places: Codes) -> Any:
    """The value at each place; Arrow's functions, which are slow to import, only where texts differ."""
    if isinstance(values[0], str):
        same = places[0] if len(places) else 0
        if (places == same).all():
            return pa.repeat(values[same], len(places))
        return pa.array(values).take(pa.array(places))
    return np.array(values)[places]


def reason_texts(
    model: Model, batch: pa.RecordBatch | pa.Table, encoded: Sequence[Array], decided: Decisions, n_reasons: int
) -> pa.Array:
    """The columns that contributed most to each decision, such as ``Age 61 (×1.7 odds); Sex F (÷1.2)``.

    The same words as in an explanation: × raises the odds of the positive class of two, of more those of the predicted
    class against the next best one. Of equal contributions the first by name comes first, as in
    `qmedoid.explain.explaining`. Columns that change the odds by less than a twentieth of a percent are left out.
    """
    if not len(decided.codes):
        return pa.array([], pa.string())
    names = model.contract.names
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.intp)
    ordered = [model.contract.columns[place] for place in by_name]
    toward, others = decided.codes, model.decision.runners_up(decided.scores, decided.codes)
    if len(model.decision.classes) == 2:
        toward, others = np.ones_like(toward), np.zeros_like(others)
    contributions = column_contributions(model, encoded, toward, others)[:, by_name]
    sizes, each = np.abs(contributions), np.arange(len(contributions))
    # Smaller factors of the odds would be written as 1.000.
    sizes[sizes < (log(SMALLEST_FACTOR) if model.decision.probabilistic else _ROUNDING)] = 0.0
    units = ([" odds"] if model.decision.probabilistic else []) + [""] * n_reasons
    parts = []
    for unit in units[: min(n_reasons, len(names))]:
        places = first_largest_of_rows(sizes)
        values = np.where(sizes[each, places] > 0, contributions[each, places], 0.0)
        parts.append(_named(batch, ordered, places, values, unit, odds=model.decision.probabilistic))
        sizes[each, places] = 0.0
    return joined_texts(parts, "; ")


def _named(
    batch: pa.RecordBatch | pa.Table,
    columns: Sequence[Column],
    places: npt.NDArray[np.intp],
    values: Array,
    unit: str,
    *,
    odds: bool,
) -> pa.Array:
    """One column of each record with its cell and its effect; null where that is nothing."""
    import pyarrow.compute as pc

    order = np.argsort(places, kind="stable")
    # In the order of the columns, each of which is written at once.
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    pieces = [pa.array([], pa.string())]
    for rows in np.split(order, starts[1:]) if len(order) else ():
        column = columns[places[rows[0]]]
        effects = pa.array(
            [f" ({effect_text(value, odds=odds)}{unit})" for value in values[rows].tolist()], pa.string()
        )
        name = shortened(printable(column.name))
        said = pc.binary_join_element_wise(name + column_sign(name), _shown(batch, column, rows), pa.array(effects), "")
        pieces.append(pc.if_else(pa.array(values[rows] != 0), said, pa.scalar(None, pa.string())))
    back = np.empty(len(order), dtype=np.intp)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(pieces).take(pa.array(back))


def _shown(batch: pa.RecordBatch | pa.Table, column: Column, rows: npt.NDArray[np.intp]) -> pa.Array:
    """Some cells of a column as `explain` shows them: numbers with six digits, and missing ones in words."""
    import pyarrow.compute as pc

    if column.name not in batch.schema.names:
        return pa.repeat("missing", len(rows))
    given = one_chunk(without_missing_values(batch.column(column.name), column)).take(pa.array(rows))
    if pa.types.is_dictionary(given.type):
        given = given.dictionary_decode()
    if given.type in TEXT_TYPES and not column.spelling and column.kind in ("number", "boolean"):
        # Cells of a file that had to be read as texts are shown as those of any other.
        values = read(given, column.kind).values
        given = pa.array(values, mask=np.isnan(values))
        given = given.cast(pa.bool_()) if column.kind == "boolean" else given
    if pa.types.is_floating(given.type):
        values = given.to_numpy(zero_copy_only=False).astype(np.float64)
        text = pa.array(np.char.mod("%.6g", values).tolist(), pa.string(), mask=np.isnan(values))
    elif pa.types.is_boolean(given.type):
        text = pc.if_else(given, "True", "False")
    elif given.type in TEXT_TYPES or pa.types.is_integer(given.type):
        text = as_text(given).cast(pa.string())
        if pc.any(pc.greater(pc.utf8_length(text), LONGEST)).as_py():
            text = pa.array([None if cell is None else cell_text(cell) for cell in text.to_pylist()], pa.string())
    else:
        text = pa.array([cell_text(cell[""]) for cell in plain_records(pa.table({"": given}))], pa.string())
    return pc.fill_null(text, "missing")
