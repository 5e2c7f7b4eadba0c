"""A fit in passes over the partitions of a table that need not fit in memory.

count → sample → (pilot → hard rows) → fit of the sample → judge: scores of all rows that calibrate or are held out

The fit of the sample is that of a table in memory. What the other passes add depends on all rows: rates of the sample,
rows of a common class that are easily taken for rare ones, calibration, operating point, held-out curve and figures,
counts of levels and of missing cells.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import clone
from sklearn.utils import check_random_state

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import DataError, ParameterError, QMedoidWarning, some_of, warn
from qmedoid.geometry.row_groups import is_coarse
from qmedoid.large import passes
from qmedoid.large.base import ROW, Summary, in_order, table_digest
from qmedoid.large.runner import Runner, TableFacts
from qmedoid.large.split import (
    CALIBRATE,
    DEFAULT_MEMORY,
    HARD_SHARE,
    TEST,
    TRAIN,
    RowSplit,
    class_rates,
    memory_bytes,
    moments,
    needed_bytes,
    read_cells,
    shares_for,
    sizes_for,
    width_of,
)
from qmedoid.methods.calibration import CalibrationKind
from qmedoid.model.contract import Column
from qmedoid.model.model import Model
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import DECIMAL, WORDS, as_category, kept_words, without_missing
from qmedoid.tables.cells import cell_ranks, in_one_look, read, with_missing_values_out
from qmedoid.tables.dataset import Dataset, DatasetSettings, clock_note, groups_in, in_roles
from qmedoid.tables.kinds import Inferred, are_times_of_day, infer_columns, kind_of_type
from qmedoid.tables.roles import check_missing
from qmedoid.tables.targets import Target, class_labels, label_codes, refuse_quantity

# Held-out rows that are kept as they are, for a page about the model.
_HELD_ROWS = 20_000
# Rows of a pilot model: of the rare class at most, and of the other.
_PILOT_RARE, _PILOT_COMMON = 4_000, 16_000
_PILOT_MEDOIDS = 8


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


def in_types(raw: pa.Table, facts: TableFacts, settings: DatasetSettings, *, decided: bool = True) -> pa.Table:
    """Raw rows in the types that their cells have in common.

    Unless that is `decided`, it shows which words for missing cells are levels.
    """
    table, roles = raw, settings.all_roles
    if facts.reading.as_text:
        from qmedoid.tables.text_kinds import infer_types

        texts = [name for name, role in roles.items() if role in ("category", "date")]
        missing = dict.fromkeys(raw.column_names, ("",)) if decided else settings.missing
        table = infer_types(raw.drop_columns([ROW]), facts.reading.decimal, texts, settings.target, missing)
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
    table = in_types(raw, facts, settings).combine_chunks()
    rows, name = table.column(ROW).to_numpy(), str(settings.target)
    kept, target = Target.of_column(table.column(name), name, totals)
    assert len(kept) == len(table), "rows without a class are not drawn"
    groups = None if settings.groups is None else groups_in(table, settings.groups)
    weights = None if weights is None or np.ptp(weights) == 0 else weights
    return Dataset.of(
        table.drop_columns([ROW]), target, settings, groups=groups, weights=weights, rows=rows, kinds=kinds
    )


class InPasses(NamedTuple):
    """A fit in passes."""

    model: Model
    report: dict[str, Any] | None  # figures of all rows that were held out
    held_out: pa.Table  # some of these as they are in the table
    notes: list[str]
    rows: int  # that have a class
    training_rows: int  # those that were not held out
    sampled: int  # those that the model was fitted on
    times: list[tuple[str, float, int]]  # of each pass its name, seconds, and partitions that had to be read


class PassFit:
    """A fit of a classifier to a table in passes, which `run` does.

    The parameters of `owner`, a `MedoidClassifier`, say what is fitted. A share `test` of the rows is held out: without
    `is_requested`, no more than can be judged in memory. `sizes` are rows that are fitted and judged at most, by
    default as many as the bytes of `memory` take.
    """

    def __init__(
        self,
        owner: Any,
        runner: Runner,
        counted: passes.Counted,
        settings: DatasetSettings,
        *,
        test: float = 0.0,
        is_requested: bool = False,
        memory: int = DEFAULT_MEMORY,
        seed: int = 0,
        sizes: tuple[int, int] | None = None,
    ) -> None:
        if owner.class_weight is not None:
            raise ParameterError(
                "Weights of classes are not for a fit in passes, which calibrates at the frequencies of the whole "
                "table: leave class_weight out, and move the operating point instead."
            )
        self.owner, self.runner, self.settings, self.counted = owner, runner, settings, counted
        self.reading, self.target, self.seed = runner.facts.reading, str(settings.target), seed
        self.sizes, self.requested = sizes or sizes_for(memory, width_of(runner.facts.schema)), test
        self.test, self.calibrate = shares_for(counted.n_rows, self.sizes[1], test, is_requested=is_requested)
        self.rare = self._rare_texts()
        share = 1.0 - self.test - self.calibrate
        self.rates = class_rates(self.counted.counts, share, self.sizes[0], self.rare)

    def run(self, fit_sample: FitSample) -> InPasses:
        """Fit a sample of the rows by `fit_sample`, which fits the owner or a copy, and the rest to all rows."""
        settings = self.settings
        raw = self._run("sample", passes.sample_rows, rates=self.rates).rows[passes.SAMPLE]
        table = in_types(raw, self.runner.facts, settings, decided=False)
        if self.reading.as_text:
            labels = {self.target: [text.strip() for text in self.counted.counts if text.strip() in WORDS]}
            words = kept_words(table.drop_columns([self.target])) | labels
            self.reading = self.reading._replace(words=words)
            read = [
                pa.chunked_array([without_missing(chunk, words.get(name, ())) for chunk in column.chunks], column.type)
                if column.type == pa.string()
                else column
                for name, column in zip(raw.column_names, raw.columns, strict=True)
            ]
            raw = pa.Table.from_arrays(read, names=raw.column_names)
        if not settings.takes_numbers:
            _, target = Target.of_column(table.column(self.target), self.target, self.counted.counts)
            for note in refuse_quantity(self.target, target.classes.tolist(), target.counts.tolist()):
                warn(note)
        table, alike = in_one_look(table, settings.unread)
        rows = table.column(ROW).to_numpy()
        kinds = settings.infer(table.drop_columns([ROW]), self.counted.n_rows, rows, alike)
        split = self._split(table, kinds.columns)
        training, draws = self._training_rows(raw, split)
        weights = None
        if self.rare:
            training, weights = self._with_hard_rows(training, kinds, split)
        sampled = sample_of(training, self.runner.facts, settings, kinds, self.counted.counts, weights)
        model, notes = fit_sample(sampled)
        held_rate = min(1.0, _HELD_ROWS / max(self.test * self.counted.n_rows, 1.0))
        found = self._run("judge", passes.judge_rows, model=model, split=split, held_rate=held_rate)
        calibrating, test = (passes.JudgedRows.of(found.rows[passes.JUDGED], part) for part in (CALIBRATE, TEST))
        recipe = self.owner.recipe(np.array(list(self.counted.sides(self.owner.positive).values())))
        kind: CalibrationKind = recipe.calibration_kind(self.owner.calibration)
        calibrated, more = passes.calibrate_judged(model, calibrating, found, self.owner.operating_point, kind)
        report = passes.judged_report(calibrated, test, found) if len(test.codes) else None
        held_out = in_types(found.rows[passes.HELD_OUT], self.runner.facts, settings).drop_columns([ROW])
        n_training = found.total("training")
        more += self._own_notes(len(sampled.rows), n_training, kinds)
        more += [one.message() for one in replace(sampled, is_part=False).repeats if one.kind == "shared_class"]
        notes = [*notes, *more, *self._time_notes(test, np.append(draws, calibrating.draws))]
        return InPasses(
            calibrated, report, held_out, notes, self.counted.n_rows, n_training, len(sampled.rows), self.runner.times
        )

    def _run(self, name: str, function: Callable[..., Summary], **how: Any) -> Summary:
        one = partial(function, reading=self.reading, target=self.target, seed=self.seed, **how)
        return self.runner.run(name, one, self.counted.lengths)

    def _rare_texts(self) -> frozenset[str]:
        """Labels of the rare class, where the method is about one; none otherwise."""
        sides = self.counted.sides(self.owner.positive)
        if not all(sides.values()):
            classes = sorted(set(self.counted.classes.values()))
            shown, hint = some_of([*map(repr, classes)], 10), did_you_mean(str(self.owner.positive), classes)
            raise ParameterError(
                f"The positive class {self.owner.positive!r} is no class in {self.target!r}.{hint} The "
                f"classes are {shown}."
            )
        if len(sides) != 2:
            return frozenset()
        counts = np.array(list(sides.values()))
        if not self.owner.recipe(counts).separates_rare:
            return frozenset()
        rare_side = min(sides, key=lambda side: sides[side])
        return frozenset(text for text, side in self.counted.side_of(self.owner.positive).items() if side == rare_side)

    def _split(self, table: pa.Table, columns: tuple[Column, ...]) -> RowSplit:
        settings, time, last = self.settings, None, np.inf
        if settings.times is not None:
            kind = kind_of_type(table.schema.field(settings.times).type)
            time = Column(settings.times, kind or "category")
            if kind not in ("number", "date"):
                texts, how = table.select([settings.times]), settings.date_order
                time = infer_columns(texts, roles={settings.times: "date"}, date_order=how).columns[0]
            # How many rows of the table each row of the sample counts, and the moment up to which they train.
            rates = np.array([*self.rates.values(), 1.0])
            each = 1.0 / rates[label_codes(table.column(self.target).cast(pa.string()), tuple(self.rates))]
            times = moments(table.column(settings.times), time)
            given = read(table.column(settings.times), time.kind, time.spelling).values
            if time.kind == "date" and are_times_of_day(given):
                warn(f"{clock_note(settings.times)}.")
            order = np.argsort(times, kind="stable")
            done = np.cumsum(each[order])
            last = float(times[order[min(np.searchsorted(done, (1.0 - self.test) * done[-1]), len(order) - 1)]])
        places, _ = cell_ranks(with_missing_values_out(table, columns), columns)
        by_place = settings.groups is None and is_coarse(places)
        return RowSplit(columns, self.test, self.calibrate, self.seed, settings.groups, time, last, by_place)

    def _training_rows(self, raw: pa.Table, split: RowSplit) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """Rows of the sample that train, and the hashes of what belongs together."""
        read = self.reading.in_kinds(raw, split.columns)
        part, draws = split.parts(read_cells(read, split.columns), raw, raw.column(ROW).to_numpy())
        self._check_classes(label_codes(raw.column(self.target).cast(pa.string()), tuple(self.rates)), part)
        return raw.filter(pa.array(part == TRAIN)), draws[part == TRAIN]

    def _with_hard_rows(self, training: pa.Table, kinds: Inferred, split: RowSplit) -> tuple[pa.Table, Array]:
        """Training rows with hard ones of the whole table, and how many rows each of them counts."""
        common = tuple(sorted(frozenset(self.rates) - self.rare))
        rate, of_rare = self.rates[common[0]], self.rates[min(self.rare)]
        is_rare = self._is_rare(training)
        if rate >= 1.0:
            return training, np.where(is_rare, 1.0 / of_rare, 1.0)
        pilot = self._pilot(training, is_rare, kinds)
        known = passes.likeness(pilot, self.reading.in_kinds(training, split.columns))
        scale = passes.scale_for(known[~is_rare], 1.0 / rate, HARD_SHARE * self.sizes[0])
        found = self._run("hard rows", passes.hard_rows, common=common, pilot=pilot, split=split, scale=scale)
        hard = found.rows[passes.HARD]
        new = ~np.isin(hard.column(ROW).to_numpy(), training.column(ROW).to_numpy())
        together = in_order([training, hard.filter(pa.array(new))])
        odds = passes.likeness(pilot, self.reading.in_kinds(together, split.columns))
        # A row is kept if either of two independent draws keeps it.
        kept = 1.0 - (1.0 - rate) * (1.0 - np.minimum(1.0, odds * scale))
        return together, 1.0 / np.where(self._is_rare(together), of_rare, kept)

    def _is_rare(self, rows: pa.Table) -> Flags:
        return np.asarray(label_codes(rows.column(self.target).cast(pa.string()), tuple(sorted(self.rare))) >= 0)

    def _pilot(self, training: pa.Table, is_rare: Flags, kinds: Inferred) -> Model:
        """A small model of the rare class against the other, fast to score."""
        rng = np.random.default_rng(self.seed)
        chosen = [
            rng.permutation(np.flatnonzero(is_rare == side))[:most]
            for side, most in ((True, _PILOT_RARE), (False, _PILOT_COMMON))
        ]
        rows = np.sort(np.concatenate(chosen))
        target = Target(self.settings.target, np.array([0, 1]), is_rare[rows].astype(np.intp))
        sampled = sample_of(training.take(pa.array(rows)), self.runner.facts, self.settings, kinds)
        evidence = self.owner.recipe_class("evidence")(n_medoids=_PILOT_MEDOIDS, n_neighbors=0)
        pilot = type(self.owner)(method=evidence, refine="never", random_state=self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QMedoidWarning)  # nobody sees the pilot: what it says is not of the model
            made: Model = pilot.fit(replace(sampled, target=target)).model_
        return made

    def _check_classes(self, codes: Codes, part: Codes) -> None:
        """Refuse a class that has no training row, or too few rows that calibrate, before it is fitted."""
        positive, side_of = self.owner.positive, self.counted.side_of(self.owner.positive)
        sides, places = np.unique([side_of[text] for text in self.rates], return_inverse=True)
        counts = np.zeros((len(sides), TEST + 1), dtype=np.intp)
        np.add.at(counts, (places[codes], part), 1)
        incomplete = {side_of[text] for text, rate in self.rates.items() if rate < 1.0}
        calibrating = dict[str, int]()
        for side, found in zip(sides.tolist(), counts, strict=True):
            name = side or f"not {positive}"
            if not found[TRAIN]:
                raise DataError(
                    f"No row of the class {name!r} is a training row: all are held out, or calibrate. Give more rows "
                    "of it, leave it out, or give more --memory, so that the table is fitted as a whole."
                )
            if side not in incomplete:  # all of its rows are in the sample
                calibrating[name] = int(found[CALIBRATE])
        passes.check_calibrating(calibrating)

    def _time_notes(self, test: passes.JudgedRows, known: npt.NDArray[np.int64]) -> list[str]:
        """What is odd about rows that are held out by time."""
        settings = self.settings
        if settings.times is None or not self.test:
            return []
        if not len(test.codes):
            return [f"no row is held out: none is later in {settings.times!r} than the training rows"]
        n_known = int(np.isin(test.draws, known).sum())
        what = "are equal to one" if settings.groups is None else f"have the {settings.groups!r} of one"
        such = f"{n_known:,} of the rows that are held out by time {what} that the model was fitted or calibrated on"
        return [such] if n_known else []

    def _own_notes(self, n_sampled: int, n_training: int, inferred: Inferred) -> list[str]:
        notes = [
            f"the table was fitted in passes: the model is that of {n_sampled:,} of {n_training:,} training rows, and "
            "the others are counted"
        ]
        seen = [name for name in inferred.left_out if self.settings.all_roles.get(name) != "ignore"]
        if seen and min(self.rates.values()) < 1.0:
            notes.append(f"why columns are left out ({some_of([*map(repr, seen)])}) was seen in a sample of the rows")
        merged = len(self.counted.counts) - len({*self.counted.classes.values()})
        if merged:
            such = "differ from another by blanks or odd letters only"
            notes.append(f"{merged:,} of the classes in {self.target!r} {such}")
        if self.counted.unlabeled:
            notes.append(f"{self.counted.unlabeled:,} rows have no class in {self.target!r} and are left out")
        if self.test < self.requested:
            share = 100 * self.test
            notes.append(f"{share:.3g} % of the rows are held out: as many as can be judged in the memory of the fit")
        return notes


def fit_collection(owner: Any, X: Any, y: Any, memory: Any, refused: dict[str, Any]) -> None:
    """Fit a `MedoidClassifier` to Dask collections, of which y may be a name, and set its fitted attributes.

    `memory` is what the fit may use in this process; `refused` are other parameters of the fit, for tables in memory.
    """
    from qmedoid.exceptions import require_dask

    require_dask("A fit of Dask collections")
    from qmedoid.large.collections import collection_runner

    given = next((name for name, value in refused.items() if value is not None), None)
    if given is not None:
        raise ParameterError(f"{given} is for tables in memory, and X is a Dask collection: leave it out.")
    limit = DEFAULT_MEMORY if memory is None else memory_bytes(memory)
    runner = collection_runner(X, y)
    target, schema = str(runner.target), runner.facts.schema
    counted = passes.count_rows(runner, target)
    fitted = clone(owner)
    if needed_bytes(counted.n_rows, width_of(schema)) <= limit:
        # All rows are brought here: the fit of a table in memory.
        rates, reading = dict.fromkeys(counted.counts, 1.0), runner.facts.reading
        everything = partial(passes.sample_rows, reading=reading, target=target, rates=rates, seed=0)
        table = runner.run("read", everything, counted.lengths).rows[passes.SAMPLE]
        labels = np.array(class_labels(table.column(target), target)[1].to_pylist())
        rows: Any = table.drop_columns([target, ROW])
        if not hasattr(X, "columns"):
            rows = np.column_stack([column.to_numpy() for column in rows.columns])
        fitted.fit(rows, labels)
        notes = [f"{counted.unlabeled:,} rows have no class in {target!r} and are left out"] * (counted.unlabeled > 0)
    else:
        settings = DatasetSettings(
            target=target,
            roles={**dict.fromkeys(fitted.ignore or (), "ignore"), **(fitted.roles or {})},
            date_order=fitted.date_order,
            takes_numbers=True,
            missing=check_missing("The 'missing' parameter", fitted.missing, names=schema.names, target=target),
        )
        seed = int(check_random_state(fitted.random_state).randint(2**31))

        def fit_sample(sampled: Dataset) -> tuple[Model, list[str]]:
            return fitted.fit(sampled).model_, []

        found = PassFit(fitted, runner, counted, settings, memory=limit, seed=seed).run(fit_sample)
        if not hasattr(X, "columns"):
            del fitted.feature_names_in_
        fitted.model_, notes = found.model, found.notes
    fitted.notes_ += notes
    for note in notes:
        warn(f"{note[0].upper()}{note[1:]}.")
    parameters = owner.get_params(deep=False)
    vars(owner).update({name: value for name, value in vars(fitted).items() if name not in parameters})
