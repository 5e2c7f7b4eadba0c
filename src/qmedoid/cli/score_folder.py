"""``qmedoid score -o FOLDER/``: a file of decisions for every input file, a part of them or what is missing."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qmedoid.cli.documents import ScoreFilesDict
from qmedoid.cli.output import keeps, note, reading_bar, tell
from qmedoid.cli.score import ScoreOptions, model_at_cut, say_scored, score_settings
from qmedoid.exceptions import ParameterError, QMedoidError
from qmedoid.extras import require_dask
from qmedoid.large.score_files import BAD_ROWS, PartResult, PartTotals, ScoreTask, plan_scoring, score_part

if TYPE_CHECKING:
    from qmedoid.tables.scoring import OnProgress

RunTasks = Callable[[Sequence[ScoreTask], "OnProgress | None"], Iterable[PartResult]]
"""Runs tasks in some place, and yields what became of each as it is done."""


def run_folder(options: ScoreOptions) -> None:
    """Score the files of a table one by one into a folder, and say what they were called."""
    shard = _asked_shard(options)
    if options.bad_rows is not None:
        raise ParameterError(
            f"--bad-rows is one file, and in a folder every input has its own: they are written to "
            f"{Path(options.output) / BAD_ROWS}. Leave it out."
        )
    settings = score_settings(options)
    file, cut, estimate, expected = model_at_cut(options, settings)
    task = ScoreTask(str(options.model.absolute()), file.sha256, cut, settings)
    how = {"resume": options.resume, "force": options.force}
    tasks, finish = plan_scoring(task, options.table, options.output, shard=shard, **how)
    totals = PartTotals.none(file.model)
    try:
        with reading_bar("scoring") as progress:
            run_tasks: RunTasks = _run_here if options.dask is None else partial(_run_on_dask, options.dask)
            for part in run_tasks(tasks, progress):
                totals.add(part)
                keeps(_done(totals, len(tasks)))
    except QMedoidError:
        if totals.scored + totals.skipped:
            note(f"{_done(totals, len(tasks))}.")
        raise
    files: ScoreFilesDict = {"shard": options.shard, **finish(totals)}
    keeps(f"{options.output} was written before")
    totals.now.difference.raise_or_warn("warn")
    aside = str(Path(options.output) / BAD_ROWS) if options.on_bad_row == "skip" else None
    say_scored(options, file.model, totals.now, totals, aside, estimate, expected, files)
    if not options.json:
        _tell_files(options.output, files, totals.rows)


def _asked_shard(options: ScoreOptions) -> tuple[int, int]:
    """The shard K/N that is asked for; 1/1 is everything."""
    if options.shard is None:
        return 1, 1
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", options.shard)
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= count:
        raise ParameterError(
            f"--shard must be K/N with K from 1 to N, such as 3/16: the third of 16 parts of the input files. Got "
            f"{options.shard!r} instead."
        )
    whole = {"--top": options.top is not None, "--prevalence estimate": options.prevalence == "estimate"}
    for name, is_given in whole.items():
        if is_given:
            raise ParameterError(
                f"{name} is about the whole table, and --shard scores a part of it. Leave one of them out, or give the "
                f"{'cut by --threshold or --alert-rate' if name == '--top' else 'prevalence as a number'}."
            )
    return number, count


def _run_here(tasks: Sequence[ScoreTask], progress: "OnProgress | None") -> Iterable[PartResult]:
    """Run the tasks one after the other; the bar shows bytes of all of them."""
    sizes = [Path(task.input).stat().st_size for task in tasks]
    total, rows, before = sum(sizes), 0, 0
    for task, size in zip(tasks, sizes, strict=True):

        def advance(more: int, read: int, _: int | None, rows: int = rows, before: int = before) -> None:
            if progress is not None:
                progress(rows + more, before + read, total)

        part = score_part(task, advance)
        rows, before = rows + (part[0].rows if part[1] else 0), before + size
        advance(0, 0, None, rows, before)
        yield part


def _run_on_dask(where: str, tasks: Sequence[ScoreTask], progress: "OnProgress | None") -> Iterable[PartResult]:
    """Run the tasks on Dask workers, which see the same files; what became of them comes in their order."""
    require_dask("--dask")
    from qmedoid.large.workers import connected, results_by

    sizes = [Path(task.input).stat().st_size for task in tasks]
    rows = read = n_given = 0
    found: dict[int, PartResult] = {}
    with connected(where) as client:
        for place, part in results_by(client)("score", _score_on_worker, None, [(task,) for task in tasks]):
            found[place] = part
            rows, read = rows + (part[0].rows if part[1] else 0), read + sizes[place]
            if progress is not None:
                progress(rows, read, sum(sizes))
            while n_given in found:
                yield found.pop(n_given)
                n_given += 1


def _score_on_worker(_: None, task: ScoreTask) -> PartResult:
    return score_part(task)


def _done(totals: PartTotals, n_files: int) -> str:
    return f"{totals.scored + totals.skipped:,} of {n_files:,} files are done, and --resume goes on from there"


def _tell_files(output: str, files: ScoreFilesDict, rows: int) -> None:
    """Say which files were scored, which were done before, and which are missing."""
    tell(
        f"{files['scored']:,} {'file' if files['scored'] == 1 else 'files'} scored into {output}, "
        f"{files['skipped']:,} were done before: {rows:,} rows in all."
    )
    if files["removed"]:
        tell(f"results removed that are of another content, model or option: {files['removed']:,}.")
    if files["missing"]:
        tell(f"inputs without results so far, of other shards: {files['missing']:,} of {files['inputs']:,}.")
