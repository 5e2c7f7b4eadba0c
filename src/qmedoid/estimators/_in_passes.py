"""A fit in passes over the partitions of a table that need not fit in memory.

count → sample → (pilot → hard rows) → fit of the sample → judge: scores of all rows that calibrate or are held out

The fit of the sample is that of a table in memory. What the other passes add depends on all rows: rates of the sample,
rows of a common class that are easily taken for rare ones, calibration, operating point, held-out curve and figures,
counts of levels and of missing cells.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.calibration.fit import CalibrationKind
from qmedoid.estimators._judged import calibrate_judged, judged_report
from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.estimators.rare import RareEventClassifier
from qmedoid.exceptions import ParameterError
from qmedoid.model.contract import Column
from qmedoid.model.table import TableModel
from qmedoid.passes.base import ROW, Summary, in_order, merge
from qmedoid.passes.count import CountPass
from qmedoid.passes.judge import HELD_OUT, JUDGED, JudgedRows, JudgePass
from qmedoid.passes.likeness import HARD, LikenessPass, likeness, scale_for
from qmedoid.passes.plan import Labels, labels_of
from qmedoid.passes.reading import RawReading
from qmedoid.passes.runner import PassTime, Runner
from qmedoid.passes.sample import SAMPLE, SamplePass
from qmedoid.passes.sizes import DEFAULT_MEMORY, HARD_SHARE, Shares, Sizes, class_rates, shares_for, sizes_for
from qmedoid.passes.split import CALIBRATE, TEST, TRAIN, RowSplit, moments, read_cells
from qmedoid.storage.model_file import model_bytes
from qmedoid.tables.arrow import DECIMAL, as_category
from qmedoid.tables.kinds import DateOrder, Inferred, infer_columns, kind_of_type
from qmedoid.tables.roles import Role, in_roles
from qmedoid.tables.targets import class_labels, label_codes

# Rows of a pilot model: of the rare class at most, and of the other.
_PILOT_RARE, _PILOT_COMMON = 4_000, 16_000
_PILOT_MEDOIDS = 8
# Held-out rows that are kept as they are, for a page about the model.
_HELD_ROWS = 20_000


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
        hashed = hashlib.blake2b(json.dumps([sorted(self.totals.items()), more], default=repr).encode(), digest_size=16)
        for column in self.table.columns:
            for chunk in column.combine_chunks().buffers() if column.num_chunks == 1 else ():
                hashed.update(b"" if chunk is None else chunk)
        hashed.update(self.rows.tobytes())
        hashed.update(b"" if self.weights is None else self.weights.tobytes())
        return hashed.hexdigest()


class FittedSample(NamedTuple):
    """The model of a sample, and notes of its fit."""

    model: TableModel
    notes: list[str]


FitSample = Callable[[Sampled], FittedSample]
"""Fits the rows of a sample in memory; medoids are numbered by their places in the whole table."""


class InPasses(NamedTuple):
    """A fit in passes.

    Attributes
    ----------
    model : TableModel
    report : dict or None
        Figures of all rows that were held out.
    held_out : pyarrow.Table
        Some of these as they stand in the table.
    notes : list of str
    rows, training_rows, sampled : int
        Rows with a class, those that were not held out, and those that the model was fitted on.
    times : list of PassTime
    """

    model: TableModel
    report: dict[str, Any] | None
    held_out: pa.Table
    notes: list[str]
    rows: int
    training_rows: int
    sampled: int
    times: list[PassTime]


class Counted(NamedTuple):
    """What the first pass shows: rows of every partition, and labels."""

    lengths: list[int]
    labels: Labels


def count_rows(runner: Runner, target: str) -> Counted:
    """Count rows and labels."""
    found = runner.each(CountPass(reading_of(runner), target))
    return Counted([one.total("rows") for one in found], labels_of(merge(found), target, runner.description))


def reading_of(runner: Runner) -> RawReading:
    """How raw cells of a table are read."""
    return RawReading(runner.facts.as_text, runner.facts.decimal)


def all_rows(runner: Runner, counted: Counted, target: str) -> pa.Table:
    """All rows with a class, in their types: a table that fits in memory."""
    everything = SamplePass(reading_of(runner), target, dict.fromkeys(counted.labels.counts, 1.0), 0, name="read")
    return runner.run(everything, counted.lengths).rows[SAMPLE]


def fit_in_passes(
    owner: Any, runner: Runner, counted: Counted, settings: PassSettings, fit_sample: FitSample
) -> InPasses:
    """Fit a classifier to a table in passes.

    Parameters
    ----------
    owner : MedoidClassifier
        Its parameters say what is fitted; `fit_sample` fits it or a copy.
    runner : Runner
        Goes through the partitions.
    counted : Counted
        From `count_rows`.
    settings : PassSettings
    fit_sample : callable
    """
    _check_owner(owner)
    return _Fit(owner, runner, counted, settings).run(fit_sample)


def _check_owner(owner: Any) -> None:
    if owner.class_weight is not None:
        raise ParameterError(
            "Weights of classes are not for a fit in passes, which calibrates at the frequencies of the whole table: "
            "leave class_weight out, and move the operating point instead."
        )


class _Fit:
    """The state of one fit."""

    def __init__(self, owner: Any, runner: Runner, counted: Counted, settings: PassSettings) -> None:
        self.owner, self.runner, self.settings, self.counted = owner, runner, settings, counted
        self.reading, self.labels = reading_of(runner), counted.labels
        self.sizes: Sizes = sizes_for(settings.memory, len(runner.facts.names))
        self.shares: Shares = shares_for(self.labels.n_rows, self.sizes, settings.test, is_asked=settings.is_asked)
        self.rare = self._rare_texts()
        share = 1.0 - self.shares.test - self.shares.calibrate
        self.rates = class_rates(self.labels.counts, share, self.sizes, self.rare)

    def run(self, fit_sample: FitSample) -> InPasses:
        settings, target = self.settings, self.settings.target
        raw = self._run(SamplePass(self.reading, target, self.rates, settings.seed)).rows[SAMPLE]
        table = in_roles(self._typed(raw), settings.roles)
        inferred = infer_columns(table, skip={target, ROW}, roles=settings.roles, date_order=settings.date_order)
        inferred.check_any()
        split = self._split(table, inferred.columns)
        training = self._training_rows(raw, split)
        weights = None
        if self.rare:
            training, weights = self._with_hard_rows(training, inferred, split)
        sampled = self._sampled(training, inferred, weights)
        model, notes = fit_sample(sampled)
        held_rate = min(1.0, _HELD_ROWS / max(self.shares.test * self.labels.n_rows, 1.0))
        digest = hashlib.blake2b(model_bytes(model), digest_size=16).hexdigest()
        judge = JudgePass(self.reading, target, model, digest, split, held_rate, settings.seed)
        found = self._run(judge)
        calibrated, more = calibrate_judged(
            model, JudgedRows.of(found.rows[JUDGED], CALIBRATE), found, self.owner.operating_point, self._kind()
        )
        test = JudgedRows.of(found.rows[JUDGED], TEST)
        report = judged_report(calibrated, test, found) if len(test.codes) else None
        held_out = self._typed(found.rows[HELD_OUT]).drop_columns([ROW])
        n_training = found.total("training")
        notes = [*notes, *more, *self._own_notes(len(sampled.rows), n_training)]
        return InPasses(
            calibrated, report, held_out, notes, self.labels.n_rows, n_training, len(sampled.rows), self.runner.times
        )

    def _run(self, one: Any) -> Summary:
        return self.runner.run(one, self.counted.lengths)

    def _rare_texts(self) -> frozenset[str]:
        """Labels of the rare class, where the method is about one; none otherwise."""
        method, sides = self.owner.method, self.labels.sides(self.owner.positive)
        if len(sides) != 2:
            return frozenset()
        counts = np.array(list(sides.values()))
        is_asked = method == "rare" or isinstance(method, RareEventClassifier)
        if not (is_asked or (method == "auto" and RareEventClassifier.suits(counts))):
            return frozenset()
        return self.labels.texts_of(min(sides, key=lambda side: sides[side]), self.owner.positive)

    def _kind(self) -> CalibrationKind:
        method = self.owner.method
        kinds = (self.owner.calibration, getattr(method, "calibration", "auto"))
        default = "logistic" if method == "nearest" else getattr(method, "default_calibration", "curve")
        return cast("CalibrationKind", next((kind for kind in kinds if kind != "auto"), default))

    def _typed(self, raw: pa.Table) -> pa.Table:
        """Raw rows in the types that their cells have in common."""
        facts = self.runner.facts
        table = raw
        if facts.as_text:
            from qmedoid.tables._text_types import infer_types

            texts = [name for name, role in self.settings.roles.items() if role in ("category", "date")]
            table = infer_types(raw.drop_columns([ROW]), facts.decimal, texts)
            table = table.append_column(ROW, raw.column(ROW))
        for name in facts.categories:
            table = table.set_column(table.column_names.index(name), name, as_category(table.column(name)))
        if facts.given_decimal is not None:
            table = table.replace_schema_metadata({DECIMAL: facts.given_decimal})
        return table

    def _split(self, table: pa.Table, columns: tuple[Column, ...]) -> RowSplit:
        settings, time, last = self.settings, None, np.inf
        if settings.time is not None:
            time = _time_column(table, settings.time, settings.date_order)
            each = self._each(table.column(settings.target))
            last = _last_of_training(moments(table.column(settings.time), time), each, self.shares.test)
        return RowSplit(columns, self.shares.test, self.shares.calibrate, settings.seed, settings.group, time, last)

    def _each(self, target: pa.ChunkedArray) -> Array:
        """How many rows of the table each row of the sample stands for."""
        texts, rates = list(self.rates), np.array([*self.rates.values(), 1.0])
        return 1.0 / rates[label_codes(target.cast(pa.string()), tuple(texts))]

    def _training_rows(self, raw: pa.Table, split: RowSplit) -> pa.Table:
        read = self.reading.in_kinds(raw, split.columns)
        part = split.parts(read_cells(read, split.columns), raw).part
        return raw.filter(pa.array(part == TRAIN))

    def _with_hard_rows(self, training: pa.Table, inferred: Inferred, split: RowSplit) -> tuple[pa.Table, Array]:
        """The sample with rows of the common class that a pilot finds hard to separate, and the weight of each row."""
        settings, common = self.settings, frozenset(self.labels.counts) - self.rare
        rate = self.rates[next(iter(common))]
        of_rare = self._is_rare(training)
        if rate >= 1.0:
            return training, np.where(of_rare, 1.0 / self.rates[next(iter(self.rare))], 1.0)
        pilot = self._pilot(training, of_rare, inferred)
        digest = hashlib.blake2b(model_bytes(pilot), digest_size=16).hexdigest()
        known = likeness(pilot, self.reading.in_kinds(training, split.columns))
        scale = scale_for(known[~of_rare], 1.0 / rate, HARD_SHARE * self.sizes.sample)
        hard = self._run(
            LikenessPass(self.reading, settings.target, common, pilot, digest, split, scale, settings.seed)
        ).rows[HARD]
        new = ~np.isin(hard.column(ROW).to_numpy(), training.column(ROW).to_numpy())
        together = in_order([training, hard.filter(pa.array(new))])
        odds = likeness(pilot, self.reading.in_kinds(together, split.columns))
        # A row is kept if either of two independent draws keeps it.
        kept = 1.0 - (1.0 - rate) * (1.0 - np.minimum(1.0, odds * scale))
        kept = np.where(self._is_rare(together), self.rates[next(iter(self.rare))], kept)
        return together, 1.0 / kept

    def _is_rare(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        target = rows.column(self.settings.target).cast(pa.string())
        return np.asarray(label_codes(target, tuple(sorted(self.rare))) >= 0)

    def _pilot(self, training: pa.Table, of_rare: npt.NDArray[np.bool_], inferred: Inferred) -> TableModel:
        """A small model of the rare class against the other, fast to score."""
        rng = np.random.default_rng(self.settings.seed)
        chosen = [
            rng.permutation(np.flatnonzero(of_rare == side))[:most]
            for side, most in ((True, _PILOT_RARE), (False, _PILOT_COMMON))
        ]
        rows = np.sort(np.concatenate(chosen))
        sampled = self._sampled(training.take(pa.array(rows)), inferred, None)
        pilot = type(self.owner)(
            method=EvidenceClassifier(n_medoids=_PILOT_MEDOIDS, n_neighbors=0), refine="never",
            roles=dict(self.settings.roles), date_order=self.settings.date_order, random_state=self.settings.seed,
        )  # fmt: skip
        pilot._settled = inferred
        pilot.fit(_columns_of(sampled.table, self.settings.target), of_rare[rows].astype(int))
        made: TableModel = pilot.table_model()
        return made

    def _sampled(self, raw: pa.Table, inferred: Inferred, weights: Array | None) -> Sampled:
        settings = self.settings
        table = in_roles(self._typed(raw), settings.roles).combine_chunks()
        rows = table.column(ROW).to_numpy()
        kept, labels = class_labels(table.column(settings.target), settings.target)
        assert len(kept) == len(table), "rows without a class are not drawn"
        table = table.drop_columns([ROW])
        groups = None if settings.group is None else np.array(table.column(settings.group).to_pylist())
        if weights is not None:
            weights = None if np.ptp(weights) == 0 else weights
        found = np.array(labels.to_pylist())
        return Sampled(table, found, rows, groups, weights, inferred, self.labels.counts)

    def _own_notes(self, n_sampled: int, n_training: int) -> list[str]:
        notes = [
            f"the table was fitted in passes: {n_sampled:,} of {n_training:,} training rows are those of the model, and "
            "all others are counted"
        ]
        if self.labels.unlabeled:
            notes.append(f"{self.labels.unlabeled:,} rows have no class in {self.settings.target!r} and are left out")
        if self.shares.test < self.settings.test:
            notes.append(
                f"{100 * self.shares.test:.3g} % of the rows are held out, as many as can be judged in the memory of the fit"
            )
        return notes


def _columns_of(table: pa.Table, target: str) -> pa.Table:
    return table.drop_columns([target])


def _time_column(table: pa.Table, name: str, date_order: DateOrder | None) -> Column:
    """The draft of a time column."""
    kind = kind_of_type(table.schema.field(name).type)
    if kind in ("number", "date"):
        return Column(name, kind)
    return infer_columns(table.select([name]), roles={name: "date"}, date_order=date_order).columns[0]


def _last_of_training(times: Array, each: Array, test: float) -> float:
    """The moment up to which rows are training rows, where each row of a sample stands for several."""
    order = np.argsort(times, kind="stable")
    done = np.cumsum(each[order])
    return float(times[order[min(np.searchsorted(done, (1.0 - test) * done[-1]), len(order) - 1)]])


def with_places(model: TableModel, rows: Codes) -> TableModel:
    """A model whose medoids are numbered by their places in the whole table."""
    hybrids = cast("tuple[Any, ...]", model.models)
    return replace(model, models=tuple(replace(one, method=one.method.with_row_numbers(rows)) for one in hybrids))
