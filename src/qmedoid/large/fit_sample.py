"""What a fit in passes is asked for, and the sample that it fits in memory."""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import QMedoidWarning
from qmedoid.large.base import ROW, RawReading, Summary, chances, in_order, kept_rows, key_of, label_texts, table_digest
from qmedoid.large.runner import Runner, TableFacts
from qmedoid.large.split import DEFAULT_MEMORY, TRAIN, RowSplit, read_cells
from qmedoid.model.model import Model
from qmedoid.schema import renumbered
from qmedoid.tables.arrow import DECIMAL, as_category
from qmedoid.tables.issues import Issues
from qmedoid.tables.kinds import DateOrder, Inferred
from qmedoid.tables.roles import Role, in_roles
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.source import TableSource
from qmedoid.tables.targets import class_labels, label_codes


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
    sizes : tuple of int or None
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
    sizes: tuple[int, int] | None = None


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
        hashed = hashlib.blake2b(table_digest(self.table).encode(), digest_size=16)
        hashed.update(json.dumps([sorted(self.totals.items()), repr(self.inferred), more], default=repr).encode())
        hashed.update(self.rows.tobytes())
        hashed.update(b"" if self.weights is None else self.weights.tobytes())
        return hashed.hexdigest()


FitSample = Callable[[Sampled], tuple[Model, list[str]]]
"""Fits the rows of a sample in memory, with notes; medoids are numbered by their places in the whole table."""


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


def with_places(model: Model, rows: Codes) -> Model:
    """A model whose medoids are numbered by their places in the whole table."""
    return renumbered(model, rows)


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
    settings: PassSettings,
    training: pa.Table,
    inferred: Inferred,
    split: RowSplit,
    sample: RareSample,
) -> tuple[pa.Table, Array]:
    """The training rows of a sample with hard ones of the whole table, and how many rows each of them stands for."""
    rate, of_rare = sample.rates[min(sample.common)], sample.rates[min(sample.rare)]
    is_rare, reading = sample.is_rare(training, settings.target), runner.facts.reading
    if rate >= 1.0:
        return training, np.where(is_rare, 1.0 / of_rare, 1.0)
    pilot = _pilot(owner, runner, settings, training, is_rare, inferred)
    known = likeness(pilot, reading.in_kinds(training, split.columns))
    scale = scale_for(known[~is_rare], 1.0 / rate, sample.n_hard)
    common, seed = tuple(sorted(sample.common)), settings.seed
    how: dict[str, Any] = {"common": common, "pilot": pilot, "split": split, "scale": scale, "seed": seed}
    looking = partial(hard_rows, reading=reading, target=settings.target, **how)
    hard = runner.run("hard rows", looking, lengths).rows[HARD]
    new = ~np.isin(hard.column(ROW).to_numpy(), training.column(ROW).to_numpy())
    together = in_order([training, hard.filter(pa.array(new))])
    odds = likeness(pilot, reading.in_kinds(together, split.columns))
    # A row is kept if either of two independent draws keeps it.
    kept = 1.0 - (1.0 - rate) * (1.0 - np.minimum(1.0, odds * scale))
    return together, 1.0 / np.where(sample.is_rare(together, settings.target), of_rare, kept)


def _pilot(
    owner: Any, runner: Runner, settings: PassSettings, training: pa.Table, is_rare: Flags, inferred: Inferred
) -> Model:
    """A small model of the rare class against the other, fast to score."""
    rng = np.random.default_rng(settings.seed)
    chosen = [
        rng.permutation(np.flatnonzero(is_rare == side))[:most]
        for side, most in ((True, _PILOT_RARE), (False, _PILOT_COMMON))
    ]
    rows = np.sort(np.concatenate(chosen))
    table = sample_of(training.take(pa.array(rows)), runner.facts, settings, inferred, {}).table
    pilot = type(owner)(
        method=owner.recipe_class("evidence")(n_medoids=_PILOT_MEDOIDS, n_neighbors=0),
        refine="never",
        roles=dict(settings.roles),
        date_order=settings.date_order,
        random_state=settings.seed,
    )
    pilot._settled = inferred
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QMedoidWarning)  # nobody sees the pilot: what it says is not of the model
        made: Model = pilot.fit(table.drop_columns([settings.target]), is_rare[rows].astype(int)).model_
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
