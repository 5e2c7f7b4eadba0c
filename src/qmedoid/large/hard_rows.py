"""Rows of a common class that are easily taken for rare ones: found in all rows of a table by a pilot model."""

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import QMedoidWarning
from qmedoid.large.base import ROW, in_order
from qmedoid.large.fit_sample import PassSettings, reading_of, sample_of
from qmedoid.large.likeness import HARD, LikenessPass, likeness, scale_for
from qmedoid.large.runner import Runner
from qmedoid.large.split import RowSplit
from qmedoid.methods.registry import estimator_class
from qmedoid.model.storage.model_file import model_bytes
from qmedoid.model.table import TableModel
from qmedoid.tables.kinds import Inferred
from qmedoid.tables.targets import label_codes

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
    is_rare, reading = sample.is_rare(training, settings.target), reading_of(runner)
    if rate >= 1.0:
        return training, np.where(is_rare, 1.0 / of_rare, 1.0)
    pilot = _pilot(owner, runner, settings, training, is_rare, inferred)
    digest = hashlib.blake2b(model_bytes(pilot), digest_size=16).hexdigest()
    known = likeness(pilot, reading.in_kinds(training, split.columns))
    scale = scale_for(known[~is_rare], 1.0 / rate, sample.n_hard)
    looking = LikenessPass(reading, settings.target, sample.common, pilot, digest, split, scale, settings.seed)
    hard = runner.run(looking, lengths).rows[HARD]
    new = ~np.isin(hard.column(ROW).to_numpy(), training.column(ROW).to_numpy())
    together = in_order([training, hard.filter(pa.array(new))])
    odds = likeness(pilot, reading.in_kinds(together, split.columns))
    # A row is kept if either of two independent draws keeps it.
    kept = 1.0 - (1.0 - rate) * (1.0 - np.minimum(1.0, odds * scale))
    return together, 1.0 / np.where(sample.is_rare(together, settings.target), of_rare, kept)


def _pilot(
    owner: Any, runner: Runner, settings: PassSettings, training: pa.Table, is_rare: Flags, inferred: Inferred
) -> TableModel:
    """A small model of the rare class against the other, fast to score."""
    rng = np.random.default_rng(settings.seed)
    chosen = [
        rng.permutation(np.flatnonzero(is_rare == side))[:most]
        for side, most in ((True, _PILOT_RARE), (False, _PILOT_COMMON))
    ]
    rows = np.sort(np.concatenate(chosen))
    table = sample_of(training.take(pa.array(rows)), runner.facts, settings, inferred, {}).table
    pilot = type(owner)(
        method=estimator_class("evidence")(n_medoids=_PILOT_MEDOIDS, n_neighbors=0),
        refine="never",
        roles=dict(settings.roles),
        date_order=settings.date_order,
        random_state=settings.seed,
    )
    pilot._settled = inferred
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QMedoidWarning)  # nobody sees the pilot: what it says is not of the model
        made: TableModel = pilot.fit(table.drop_columns([settings.target]), is_rare[rows].astype(int)).table_model()
    return made
