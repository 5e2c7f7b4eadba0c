"""The sample that a fit in passes fits in memory."""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import QMedoidWarning
from qmedoid.large.base import ROW, RawReading, Summary, chances, in_order, kept_rows, key_of, label_texts, table_digest
from qmedoid.large.runner import Runner, TableFacts
from qmedoid.large.split import TRAIN, RowSplit, read_cells
from qmedoid.model.model import Model
from qmedoid.tables.arrow import DECIMAL, as_category
from qmedoid.tables.dataset import Dataset, DatasetSettings, groups_in
from qmedoid.tables.issues import Issues
from qmedoid.tables.kinds import Inferred
from qmedoid.tables.roles import Role, in_roles
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.source import TableSource
from qmedoid.tables.targets import Target, label_codes

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
        from qmedoid.tables.text_types import infer_types

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


# Rows of a pilot model: of the rare class at most, and of the other.
_PILOT_RARE, _PILOT_COMMON = 4_000, 16_000
_PILOT_MEDOIDS = 8


class RareSample(NamedTuple):
    """A sample of a table with a rare class: rates by label, the rare labels, and how many hard rows to add."""

    rates: Mapping[str, float]
    rare: frozenset[str]
    n_hard: float

    @property
    def common(self) -> frozenset[str]:
        """The other labels."""
        return frozenset(self.rates) - self.rare

    def is_rare(self, rows: pa.Table, target: str) -> Flags:
        """Which rows are of the rare class."""
        return np.asarray(label_codes(rows.column(target).cast(pa.string()), tuple(sorted(self.rare))) >= 0)


def add_hard_rows(
    owner: Any,
    runner: Runner,
    lengths: list[int],
    settings: DatasetSettings,
    training: pa.Table,
    kinds: Inferred,
    split: RowSplit,
    sample: RareSample,
    seed: int,
) -> tuple[pa.Table, Array]:
    """The training rows of a sample with hard ones of the whole table, and how many rows each of them stands for."""
    target = str(settings.target)
    rate, of_rare = sample.rates[min(sample.common)], sample.rates[min(sample.rare)]
    is_rare, reading = sample.is_rare(training, target), runner.facts.reading
    if rate >= 1.0:
        return training, np.where(is_rare, 1.0 / of_rare, 1.0)
    pilot = _pilot(owner, runner, settings, training, is_rare, kinds, seed)
    known = likeness(pilot, reading.in_kinds(training, split.columns))
    scale = scale_for(known[~is_rare], 1.0 / rate, sample.n_hard)
    how: dict[str, Any] = {"common": tuple(sorted(sample.common)), "pilot": pilot, "split": split, "scale": scale}
    looking = partial(hard_rows, reading=reading, target=target, seed=seed, **how)
    hard = runner.run("hard rows", looking, lengths).rows[HARD]
    new = ~np.isin(hard.column(ROW).to_numpy(), training.column(ROW).to_numpy())
    together = in_order([training, hard.filter(pa.array(new))])
    odds = likeness(pilot, reading.in_kinds(together, split.columns))
    # A row is kept if either of two independent draws keeps it.
    kept = 1.0 - (1.0 - rate) * (1.0 - np.minimum(1.0, odds * scale))
    return together, 1.0 / np.where(sample.is_rare(together, target), of_rare, kept)


def _pilot(
    owner: Any,
    runner: Runner,
    settings: DatasetSettings,
    training: pa.Table,
    is_rare: Flags,
    kinds: Inferred,
    seed: int,
) -> Model:
    """A small model of the rare class against the other, fast to score."""
    rng = np.random.default_rng(seed)
    chosen = [
        rng.permutation(np.flatnonzero(is_rare == side))[:most]
        for side, most in ((True, _PILOT_RARE), (False, _PILOT_COMMON))
    ]
    rows = np.sort(np.concatenate(chosen))
    target = Target(settings.target, np.array([0, 1]), is_rare[rows].astype(np.intp))
    data = replace(sample_of(training.take(pa.array(rows)), runner.facts, settings, kinds), target=target)
    evidence = owner.recipe_class("evidence")(n_medoids=_PILOT_MEDOIDS, n_neighbors=0)
    pilot = type(owner)(method=evidence, refine="never", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QMedoidWarning)  # nobody sees the pilot: what it says is not of the model
        made: Model = pilot.fit(data).model_
    return made


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
