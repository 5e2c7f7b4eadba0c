"""What a fit in passes is asked for, and the sample that it fits in memory."""

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.large.base import ROW
from qmedoid.large.reading import RawReading
from qmedoid.large.runner import Runner, TableFacts
from qmedoid.large.sizes import DEFAULT_MEMORY, Sizes
from qmedoid.model.table import TableModel
from qmedoid.schema import renumbered
from qmedoid.tables.arrow import DECIMAL, as_category
from qmedoid.tables.kinds import DateOrder, Inferred
from qmedoid.tables.roles import Role, in_roles
from qmedoid.tables.targets import class_labels


@dataclass(frozen=True)
class PassSettings:
    """What a fit in passes reads, holds out and may use.

    Attributes
    ----------
    target : str
    roles : mapping
        Of all columns that have one; those of group and time are ``"ignore"``.
    test : float
        Share of the rows that is held out; without `is_asked` no more than can be judged in memory.
    memory : int
        Bytes.
    group, time : str or None
        Columns that keep rows together and that order them.
    seed : int
    missing : mapping
        Values that are read as missing, by column.
    sizes : Sizes or None
        Rows that are fitted and judged at most; by the memory where None.
    """

    target: str
    roles: Mapping[str, Role]
    test: float = 0.0
    is_asked: bool = False
    memory: int = DEFAULT_MEMORY
    group: str | None = None
    time: str | None = None
    date_order: DateOrder | None = None
    seed: int = 0
    missing: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    sizes: Sizes | None = None


class _Hashed(io.RawIOBase):
    """A file whose bytes are hashed, and kept nowhere."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._hash.update(data)
        return len(data)

    def hexdigest(self) -> str:
        """The hash of all bytes."""
        return self._hash.hexdigest()


class Sampled(NamedTuple):
    """Rows that are fitted: a table in types, its labels, their places, and weights where rows count differently."""

    table: pa.Table
    labels: npt.NDArray[Any]
    rows: npt.NDArray[np.int64]
    groups: npt.NDArray[Any] | None
    weights: Array | None
    inferred: Inferred
    totals: Mapping[str, int]

    def digest(self, *more: Any) -> str:
        """Hash of all that the fit of the rows depends on."""
        hashed = _Hashed()
        hashed.write(json.dumps([sorted(self.totals.items()), repr(self.inferred), more], default=repr).encode())
        with pa.ipc.new_stream(pa.PythonFile(hashed, "w"), self.table.schema) as stream:
            stream.write_table(self.table)
        hashed.write(self.rows.tobytes())
        hashed.write(b"" if self.weights is None else self.weights.tobytes())
        return hashed.hexdigest()


class FittedSample(NamedTuple):
    """The model of a sample, and notes of its fit."""

    model: TableModel
    notes: list[str]


FitSample = Callable[[Sampled], FittedSample]
"""Fits the rows of a sample in memory; medoids are numbered by their places in the whole table."""


def reading_of(runner: Runner) -> RawReading:
    """How raw cells of a table are read."""
    return RawReading(runner.facts.as_text, runner.facts.decimal)


def in_types(raw: pa.Table, facts: TableFacts, roles: Mapping[str, Role]) -> pa.Table:
    """Raw rows in the types that their cells have in common."""
    table = raw
    if facts.as_text:
        from qmedoid.tables._text_types import infer_types

        texts = [name for name, role in roles.items() if role in ("category", "date")]
        table = infer_types(raw.drop_columns([ROW]), facts.decimal, texts)
        table = table.append_column(ROW, raw.column(ROW))
    for name in facts.categories:
        table = table.set_column(table.column_names.index(name), name, as_category(table.column(name)))
    if facts.given_decimal is not None:
        table = table.replace_schema_metadata({DECIMAL: facts.given_decimal})
    return in_roles(table, roles)


def sample_of(
    raw: pa.Table,
    facts: TableFacts,
    settings: PassSettings,
    inferred: Inferred,
    totals: Mapping[str, int],
    weights: Array | None = None,
) -> Sampled:
    """Raw rows as they are fitted; weights that are all the same are none."""
    table = in_types(raw, facts, settings.roles).combine_chunks()
    rows = table.column(ROW).to_numpy()
    kept, labels = class_labels(table.column(settings.target), settings.target)
    assert len(kept) == len(table), "rows without a class are not drawn"
    table = table.drop_columns([ROW])
    groups = None if settings.group is None else np.array(table.column(settings.group).to_pylist())
    weights = None if weights is None or np.ptp(weights) == 0 else weights
    return Sampled(table, np.array(labels.to_pylist()), rows, groups, weights, inferred, totals)


def with_places(model: TableModel, rows: Codes) -> TableModel:
    """A model whose medoids are numbered by their places in the whole table."""
    return renumbered(model, rows)
