"""``qmedoid fit`` of a table that is larger than the memory of a fit: in passes, which can be taken up again."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmedoid._version import __version__
from qmedoid.cli.fitting import fit_dataset, notes_of_fit, share_or_file, with_time_limit
from qmedoid.cli.output import keeps, note, progress_bar
from qmedoid.cli.training_rows import dataset_settings, open_source
from qmedoid.estimators.time_limit import TimeLimit
from qmedoid.exceptions import ParameterError
from qmedoid.model.storage.model_file import model_bytes, read_model
from qmedoid.tables.dataset import Dataset, check_group_type, check_names
from qmedoid.tables.source import TableSource

if TYPE_CHECKING:
    from qmedoid.cli.fit import FitOptions
    from qmedoid.large.fit import InPasses

SMALL_TEXT = 2**22
"""Bytes of a text that is fitted as a whole, packed or not, without a look at its rows."""
# Notes about files that are shown one by one.
_MOST_NOTES = 10
_CHANGES_NO_MODEL = ("output", "report", "json", "memory", "resume", "dask", "table")
Passes = Callable[[Any, TimeLimit], "InPasses"]
"""Fits a classifier in passes."""


@contextmanager
def open_for_fit(options: "FitOptions", output: Path) -> Iterator[tuple[TableSource, Passes | None]]:
    """The table of a fit, and what fits it in passes; None where it is to be read as a whole.

    Summaries of finished partitions are removed at the end, once the model is there.
    """
    is_asked = options.memory is not None or options.resume or options.dask is not None
    if options.table == "-" and is_asked:
        raise ParameterError("A pipe can be read once, and a fit in passes reads its table several times: give files.")
    with open_source(options) as source:
        if is_asked or not (options.table == "-" or options.max_rows is not None or _is_small_text(source)):
            with _passes(options, output, source) as passes:
                yield source, passes
        else:
            yield source, None


def _is_small_text(source: TableSource) -> bool:
    # How many rows a text has is not known before it is read.
    return source.n_rows is None and (source.n_bytes or 0) <= SMALL_TEXT


@contextmanager
def _passes(options: "FitOptions", output: Path, source: TableSource) -> Iterator[Passes | None]:
    from qmedoid.large.fit import dataset_digest, fit_in_passes
    from qmedoid.large.passes import count_rows
    from qmedoid.large.runner import SummaryFolder, file_table
    from qmedoid.large.split import DEFAULT_MEMORY, memory_bytes, needed_bytes, sizes_for, width_of

    memory, width = DEFAULT_MEMORY if options.memory is None else memory_bytes(options.memory), width_of(source.schema)
    sizes_for(memory, width)  # too little memory is refused before anything is read
    is_small = _is_small_text(source)
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
    folder = SummaryFolder(output.with_name(output.name + ".parts")) if options.resume else None
    if folder is not None:
        keeps(f"finished partitions are in {folder.path}, and the same command goes on from there")
    with _bar() as on_rows, _runner(options, table, folder, on_rows) as runner:
        counted = count_rows(runner, options.target)
        if needed_bytes(counted.n_rows, width) <= memory:
            if folder is not None:
                folder.remove()
                keeps("nothing was written")
            yield None
            return
        how: dict[str, Any] = {"test": _test_share(options), "is_asked": options.test != type(options).test}
        for one in counted.notes[:_MOST_NOTES]:
            note(one)
        if len(counted.notes) > _MOST_NOTES:
            note(f"{len(counted.notes) - _MOST_NOTES:,} more such notes about the files are left out.")
        asked = {name: value for name, value in vars(options).items() if name not in _CHANGES_NO_MODEL}

        def fit(classifier: Any, limit: TimeLimit) -> "InPasses":
            def fit_sample(sampled: Dataset) -> tuple[Any, list[str]]:
                # The fit of the sample is kept as well where passes are.
                key = f"fit-{dataset_digest(sampled, __version__, sorted(asked.items()))}"
                known = None if folder is None else folder.get_bytes(key)
                if known is not None:
                    head, _, content = known.partition(b"\n")
                    return read_model(content).model, json.loads(head)
                fitted, model = fit_dataset(options, classifier, sampled)
                model, notes = with_time_limit(model, limit), notes_of_fit(fitted)
                if folder is not None:
                    folder.put_bytes(key, json.dumps(notes).encode() + b"\n" + model_bytes(model))
                return model, notes

            return fit_in_passes(
                classifier, runner, counted, settings, fit_sample, **how, memory=memory, seed=options.seed
            )

        yield fit
        if folder is not None:
            folder.remove()


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
    from qmedoid.large.runner import file_runner

    if options.dask is None:
        yield file_runner(table, folder=folder, on_rows=on_rows)
        return
    from qmedoid.extras import require_dask

    require_dask("--dask")
    from qmedoid.large.workers import connected, results_by

    with connected(options.dask) as client:
        yield file_runner(table, results_by(client), folder=folder, on_rows=on_rows)


@contextmanager
def _bar() -> Iterator[Any]:
    """A bar for passes, one after the other; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with progress_bar() as bar:
        task = bar.add_task("pass: count", total=None)

        def on_rows(name: str, rows: int, total: int | None) -> None:
            bar.update(task, description=f"pass: {name}", completed=rows, total=total)

        yield on_rows
