"""``qmedoid reproduce``: the paper's experiments again, our figures next to the paper's and to plain baselines."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.studies.cells import Cell, Result, cell_folder
from benchmarks.studies.document import Document, Table, check_folder, check_replaceable, write_report
from benchmarks.studies.paper import PARTS, STUDY, Part, Plan
from benchmarks.studies.report import PAPER_TABLES, make_report, require_extras
from benchmarks.studies.results import StudyResults
from benchmarks.studies.runner import Study, find_done, run_cells
from qmedoid.cli.documents import ReproduceDict, StudyTableDict
from qmedoid.cli.output import Said, grid, print_json, progress_bar, show, tell

Experiment = tuple[Study, Sequence[Cell], Callable[[StudyResults, str], Document], Sequence[str]]
"""What is run again: its cells, the document that their results make, and the tables of it that are printed."""


def _experiment(what: str, seed: int, *, quick: bool) -> Experiment:
    """The study of devices, or the paper's experiments on some of its data sets; raises where packages are missing."""
    if what == "devices":
        # Here and not at the top: most calls are not about devices.
        from benchmarks.studies import devices

        devices.require_extras()
        from benchmarks.studies.device_report import SHOWN_TABLES, make_device_report

        chosen = devices.DevicePlan(seed=seed)
        chosen = chosen.quick() if quick else chosen
        return devices.STUDY, chosen.cells, partial(make_device_report, chosen), SHOWN_TABLES
    parts: Sequence[Part] = PARTS if what == "all" else [part for part in PARTS if part == what]
    asked = Plan(parts, seed=seed)
    asked = asked.quick() if quick else asked
    require_extras(asked)
    return STUDY, asked.cells, partial(make_report, asked), PAPER_TABLES


def reproduce(
    what: str,
    output: Path,
    *,
    jobs: int | None,
    seed: int,
    quick: bool,
    cache: Path | None,
    force: bool,
    json: bool,
) -> None:
    """Run what is not done yet, write the folder, and print the main tables and the findings."""
    study, cells, report, shown = _experiment(what, seed, quick=quick)
    check_folder(output)
    if not force:
        check_replaceable(output)
    folder = cache or cell_folder()
    done = find_done(study, cells, folder)
    left = [cell for cell in cells if cell not in done]
    if left:
        check_folder(folder)
        jobs = jobs or os.cpu_count() or 1
        tell(outlook(study, len(done), left, jobs))
        done |= _run_left(study, left, folder, jobs)
    # The call that gives the same tables on any machine.
    words = ["qmedoid", "reproduce", what, *(["--quick"] if quick else []), *(["--seed", str(seed)] if seed else [])]
    document = report(StudyResults(done), " ".join(words))
    written = write_report(document, output, force=force)
    if json:
        tables: dict[str, StudyTableDict] = {
            table.name: {"title": table.title, "columns": table.labels, "rows": [list(row) for row in table.rows]}
            for table in document.tables
        }
        printed: ReproduceDict = {
            "provenance": dict(document.provenance),
            "findings": list(document.findings),
            "tables": tables,
            "folder": str(output),
            "files": [path.name for path in written],
        }
        print_json(printed)
        return
    for table in document.tables:
        if table.name in shown:
            print_table(table)
    show(*(f"• {finding}" for finding in document.findings))
    tell(f"{len(written)} files written to {output}; open {output / 'index.html'}.")


def outlook(study: Study, n_done: int, left: Sequence[Cell], jobs: int) -> str:
    """What is to come, for those who see no bar: cells, and roughly how long they take."""
    before = f"{n_done:,} of {n_done + len(left):,} cells are there from before; " if n_done else ""
    cells = "" if n_done else " cells"
    minutes = max(1, round(sum(map(study.seconds, left)) / 60 / jobs))
    return f"{before}{len(left):,}{cells} are to be run. On a common machine that takes about {minutes} min."


def _run_left(study: Study, cells: Sequence[Cell], folder: Path | None, jobs: int = 1) -> dict[Cell, Result]:
    """Run cells, with a bar over the seconds that they are expected to take."""
    from rich.progress import TextColumn

    n_done = 0
    with progress_bar(TextColumn("{task.fields[count]}")) as bar:
        task = bar.add_task("starting", total=sum(map(study.seconds, cells)), count=f"0/{len(cells)}")

        def report(cell: Cell, _: Result) -> None:
            nonlocal n_done
            n_done += 1
            if folder is not None:
                Said.kept = (
                    f"{n_done:,} results of this run are kept in {folder}, and the same command goes on from there"
                )
            bar.update(task, advance=study.seconds(cell), description=str(cell), count=f"{n_done}/{len(cells)}")

        return run_cells(study, cells, folder, jobs=jobs, report=report)


def print_table(table: Table) -> None:
    """Print a table; means and their errors share a column."""

    def text(row: int, place: int) -> str:
        has_error = place + 1 < len(table.columns) and table.columns[place + 1].is_error
        error = table.cell_text(row, place + 1) if has_error else ""
        return f"{table.cell_text(row, place)} ± {error}" if error else table.cell_text(row, place)

    shown = [place for place, column in enumerate(table.columns) if not column.is_error]
    rows = [[text(row, place) for place in shown] for row in range(len(table.rows))]
    words = [number for number, place in enumerate(shown) if all(isinstance(row[place], str) for row in table.rows)]
    note = [table.note] if table.note else []
    show(table.title, grid([table.labels[place] for place in shown], rows, left=words), *note, "")
