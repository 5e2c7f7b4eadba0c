"""The sample that a fit in passes fits in memory."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.large.base import ROW, RawReading, Summary, chances, kept_rows, key_of, label_texts, table_digest
from qmedoid.large.runner import TableFacts
from qmedoid.large.split import TRAIN, RowSplit, read_cells
from qmedoid.model.model import Model
from qmedoid.tables.arrow import DECIMAL, as_category
from qmedoid.tables.dataset import Dataset, DatasetSettings, groups_in
from qmedoid.tables.difference import Issues
from qmedoid.tables.kinds import Inferred
from qmedoid.tables.roles import Role, in_roles
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.source import TableSource
from qmedoid.tables.targets import Target

FitSample = Callable[[Dataset], tuple[Model, list[str]]]
"""Fits the rows of a sample in memory, with notes; medoids are numbered by their places in the whole table."""


def dataset_digest(data: Dataset, *more: Any) -> str:
    """Hash of all that the fit of some rows depends on."""
    hashed = hashlib.blake2b(table_digest(data.table).encode(), digest_size=16)
    totals = None if data.target.totals is None else data.target.totals.tolist()
    hashed.update(json.dumps([totals, repr(data.kinds), more], default=repr).encode())
    hashed.update(data.rows.tobytes())
    hashed.update(b"" if data.weights is None else data.weights.tobytes())
    return hashed.hexdigest()


def in_types(raw: pa.Table, facts: TableFacts, roles: Mapping[str, Role]) -> pa.Table:
    """Raw rows in the types that their cells have in common."""
    table = raw
    if facts.reading.as_text:
        from qmedoid.tables.text_kinds import infer_types

        texts = [name for name, role in roles.items() if role in ("category", "date")]
        table = infer_types(raw.drop_columns([ROW]), facts.reading.decimal, texts)
        table = table.append_column(ROW, raw.column(ROW))
    for name in facts.categories:
        table = table.set_column(table.column_names.index(name), name, as_category(table.column(name)))
    if facts.given_decimal is not None:
        table = table.replace_schema_metadata({DECIMAL: facts.given_decimal})
    return in_roles(table, roles)


def sample_of(
    raw: pa.Table,
    facts: TableFacts,
    settings: DatasetSettings,
    kinds: Inferred,
    totals: Mapping[str, int] | None = None,
    weights: Array | None = None,
) -> Dataset:
    """Raw rows as they are fitted; weights that are all the same are none."""
    table = in_types(raw, facts, settings.all_roles).combine_chunks()
    rows, name = table.column(ROW).to_numpy(), str(settings.target)
    kept, target = Target.of_column(table.column(name), name, totals)
    assert len(kept) == len(table), "rows without a class are not drawn"
    groups = None if settings.groups is None else groups_in(table, settings.groups)
    weights = None if weights is None or np.ptp(weights) == 0 else weights
    return Dataset.of(
        table.drop_columns([ROW]), target, settings, groups=groups, weights=weights, rows=rows, kinds=kinds
    )


HARD = "hard"
# Odds beyond which a row is as hard as can be.
_MOST_LOG_ODDS = 30.0


def likeness(pilot: Model, rows: pa.RecordBatch | pa.Table) -> Array:
    """Odds of the second class, by the pilot."""
    scores = decide_batch(pilot, rows, Issues(trusts_points=True))[0].scores
    odds: Array = np.exp(np.clip(scores[:, 1] - scores[:, 0], -_MOST_LOG_ODDS, _MOST_LOG_ODDS))
    return odds


def hard_rows(
    source: TableSource,
    first_row: int,
    *,
    reading: RawReading,
    target: str,
    common: tuple[str, ...],
    pilot: Model,
    split: RowSplit,
    scale: float,
    seed: int,
) -> Summary:
    """Training rows of the common class, each kept if its chance is below min(1, odds · τ)."""
    key, found, places = key_of(HARD, seed), list[pa.RecordBatch](), []
    for batch, row in reading.batches(source, first_row):
        codes, texts = label_texts(batch.column(target))
        is_common = np.array([*(text in common for text in texts), False])[codes]
        drawn = chances(key, row, batch.num_rows)
        odds = likeness(pilot, reading.in_kinds(batch, split.columns))
        taken = np.flatnonzero(is_common & (drawn < np.minimum(1.0, odds * scale)))
        if not len(taken):
            continue
        kept = batch.take(pa.array(taken))
        some = reading.in_kinds(kept, split.columns)
        is_train = split.parts(read_cells(some, split.columns), kept, taken + row)[0] == TRAIN
        found.append(kept.filter(pa.array(is_train)))
        places.append(taken[is_train] + row)
    return Summary({}, {HARD: kept_rows(found, reading.schema(source), places)})


def scale_for(odds: Array, each: float, count: float) -> float:
    """τ so that about `count` rows are kept, where every one of some rows with these odds stands for `each`."""
    low, high = 1e-30, 1e30
    for _ in range(200):
        middle = float(np.sqrt(low * high))
        if each * np.minimum(1.0, odds * middle).sum() < count:
            low = middle
        else:
            high = middle
    return low
