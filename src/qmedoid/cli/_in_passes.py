"""``qmedoid fit`` of a table that is larger than the memory of a fit: in passes, which can be taken up again."""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from qmedoid._version import __version__
from qmedoid.cli._fitting import fit_dataset, notes_of_fit, share_or_file, with_time_limit
from qmedoid.cli._training_rows import dataset_settings
from qmedoid.cli.documents import FitPassesDict
from qmedoid.cli.output import keeps, note, progress_bar
from qmedoid.estimators._time_limit import TimeLimit
from qmedoid.exceptions import ParameterError
from qmedoid.model.storage.model_file import model_bytes, read_model
from qmedoid.spelling import number_of
from qmedoid.tables.dataset import Dataset, DatasetSettings, check_group_type, check_names
from qmedoid.tables.roles import Role
from qmedoid.tables.source import TableSource
from qmedoid.tables.targets import refuse_quantity

if TYPE_CHECKING:
    from qmedoid.cli.fit import FitOptions

# Bytes of a text that is fitted as a whole, packed or not, without a look at its rows.
_SMALL = 2**22
# Notes about files that are shown one by one.
_MOST_NOTES = 10


class Asked(NamedTuple):
    """A fit in passes: who goes through the partitions, what was counted, and settings of the table and of the fit."""

    runner: Any
    counted: Any
    settings: DatasetSettings
    how: dict[str, Any]
    folder: Any


def memory_of(options: "FitOptions") -> int | None:
    """Bytes beyond which a table is fitted in passes; None where it is read as a whole in any case."""
    from qmedoid.large.split import DEFAULT_MEMORY, memory_bytes

    memory = DEFAULT_MEMORY if options.memory is None else memory_bytes(options.memory)
    is_asked = options.memory is not None or options.resume or options.dask is not None
    if options.table == "-" and is_asked:
        raise ParameterError("A pipe can be read once, and a fit in passes reads its table several times: give files.")
    return None if options.table == "-" or (options.max_rows is not None and not is_asked) else memory


@contextmanager
def asked_passes(
    options: "FitOptions", output: Path, source: TableSource, memory: int | None
) -> Iterator[Asked | None]:
    """What a fit in passes needs; None where the table is to be read as a whole."""
    from qmedoid.large.passes import count_rows
    from qmedoid.large.runner import file_table
    from qmedoid.large.split import needed_bytes, sizes_for, width_of

    if memory is None:
        yield None
        return
    width = width_of(source.schema)
    sizes_for(memory, width)  # too little memory is refused before anything is read
    # How many rows a text has is not known before it is read.
    is_small = (source.n_bytes or 0) <= _SMALL
    if source.n_rows is not None:
        is_small = needed_bytes(source.n_rows, width) <= memory
    if not is_small and options.max_rows is not None and needed_bytes(options.max_rows, width) > memory:
        raise ParameterError(
            f"A fit of --max-rows {options.max_rows:,} rows needs about {needed_bytes(options.max_rows, width):,} "
            "bytes: give more --memory or fewer rows, or leave --max-rows out for a fit in passes."
        )
    if is_small or options.max_rows is not None:
        yield None
        return
    table = file_table(options.table, delimiter=options.delimiter, decimal=options.decimal)
    settings = dataset_settings(options, source.names)
    check_names(source.names, source.description, [options.target, *settings.all_roles])
    if settings.groups is not None:
        check_group_type(settings.groups, source.schema.field(settings.groups).type)
    folder = None
    if options.resume:
        from qmedoid.large.runner import SummaryFolder

        folder = SummaryFolder(parts_folder(output))
        keeps(f"finished partitions are in {folder.path}, and the same command goes on from there")
    with _bar() as on_rows, _runner(options, table, folder, on_rows) as runner:
        counted = count_rows(runner, options.target)
        if needed_bytes(counted.n_rows, width) <= memory:
            if folder is not None:
                folder.remove()
                keeps("nothing was written")
            yield None
            return
        if not settings.takes_numbers:
            _refuse_quantity(table, options.target, counted)
        test = _test_share(options)
        _check_first_rows(table, counted.notes, settings.all_roles)
        is_asked = options.test != type(options).test
        how = {"test": test, "is_asked": is_asked, "memory": memory, "seed": options.seed}
        yield Asked(runner, counted, settings, how, folder)


def _refuse_quantity(table: Any, target: str, labels: Any) -> None:
    """Refuse numbers of which each would be a class; texts that look like numbers are names."""
    if not table.reading.as_text:
        kind = table.schema.field(target).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            return
    sides = labels.sides(None)
    numbers = [number for text in sides if (number := number_of(text)) is not None]
    if len(numbers) == len(sides):
        labels_of_them = [int(number) if number.is_integer() else number for number in numbers]
        refuse_quantity(target, labels_of_them, list(sides.values()))


def _check_first_rows(table: Any, notes: Sequence[str], roles: Mapping[str, Role]) -> None:
    """Say how the files are read, and refuse rows of units below the header, as a fit in memory does."""
    from qmedoid.tables.roles import find_units

    for one in notes[:_MOST_NOTES]:
        note(one)
    if len(notes) > _MOST_NOTES:
        note(f"{len(notes) - _MOST_NOTES:,} more such notes about the files are left out.")
    with table.partitions[0].open() as source:
        first = next(
            iter(source.batches(types=dict.fromkeys(source.names, pa.string()) if table.reading.as_text else {})), None
        )
    if first is not None and table.reading.as_text:
        from qmedoid.tables.text_types import infer_types

        units = find_units(infer_types(pa.table(first), table.reading.decimal, ()), roles)
        if units is not None:
            units.refuse_or_warn(table.first_row)


def parts_folder(output: Path) -> Path:
    """Where summaries of finished partitions are kept."""
    return output.with_name(output.name + ".parts")


def _test_share(options: "FitOptions") -> float:
    """The share of the rows that is held out; what a fit in passes has not is refused."""
    test = share_or_file("--test", options.test)
    if isinstance(test, str):
        raise ParameterError(
            "The table is fitted in passes, and --test is a share of its rows then: leave it out, and run 'qmedoid "
            f"evaluate MODEL {test}' on the model."
        )
    lacking = ("valid", "compare", "cv", "weight_column", "class_weight", "paper")
    given = next((name for name in lacking if getattr(options, name) not in (None, False)), None)
    if given is not None:
        raise ParameterError(
            f"--{given.replace('_', '-')} is for tables that fit in memory, and this one is fitted in passes: leave it "
            "out, give more --memory, or fit a sample with --max-rows."
        )
    return test


@contextmanager
def _runner(options: "FitOptions", table: Any, folder: Any, on_rows: Any) -> Iterator[Any]:
    if options.dask is not None:
        from qmedoid.extras import require_dask

        require_dask("--dask")
        from qmedoid.large.runner import file_runner
        from qmedoid.large.workers import connected, results_by

        with connected(options.dask) as client:
            yield file_runner(table, results_by(client), folder=folder, on_rows=on_rows)
        return
    from qmedoid.large.runner import file_runner

    yield file_runner(table, folder=folder, on_rows=on_rows)


@contextmanager
def _bar() -> Iterator[Any]:
    """A bar for every pass; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with progress_bar() as bar:
        tasks: dict[str, Any] = {}

        def on_rows(name: str, rows: int, total: int | None) -> None:
            for other, task in tasks.items():
                bar.update(task, visible=other == name)
            if name not in tasks:
                tasks[name] = bar.add_task(f"pass: {name}", total=total)
            bar.update(tasks[name], completed=rows, total=total)

        yield on_rows


def run_passes(asked: Asked, classifier: Any, options: "FitOptions", limit: TimeLimit) -> Any:
    """Fit in passes; the fit of the sample is kept as well where passes are."""
    from qmedoid.large.fit import fit_in_passes
    from qmedoid.large.fit_sample import dataset_digest

    def fit_sample(sampled: Dataset) -> tuple[Any, list[str]]:
        key = dataset_digest(sampled, __version__, _asked_of(options))
        known = None if asked.folder is None else asked.folder.get_bytes(f"fit-{key}")
        if known is not None:
            head, _, content = known.partition(b"\n")
            return read_model(content).model, json.loads(head)
        fitted, model = fit_dataset(options, classifier, sampled)
        model, notes = with_time_limit(model, limit), notes_of_fit(fitted)
        if asked.folder is not None:
            asked.folder.put_bytes(f"fit-{key}", json.dumps(notes).encode() + b"\n" + model_bytes(model))
        return model, notes

    return fit_in_passes(classifier, asked.runner, asked.counted, asked.settings, fit_sample, **asked.how)


def _asked_of(options: "FitOptions") -> str:
    """Options that change the model, as text."""
    left = ("output", "report", "json", "memory", "resume", "dask", "table")
    asked: Mapping[str, Any] = {name: value for name, value in vars(options).items() if name not in left}
    return hashlib.blake2b(repr(sorted(asked.items())).encode(), digest_size=16).hexdigest()


def tell_passes(found: Any) -> FitPassesDict:
    """What the passes did, by name and fit for JSON."""
    return {
        "rows": found.rows,
        "sampled": found.sampled,
        "passes": [{"name": name, "seconds": round(seconds, 3), "read": read} for name, seconds, read in found.times],
    }
