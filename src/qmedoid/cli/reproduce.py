"""``qmedoid reproduce``: the paper's experiments, its tables beside ours, and the truth about both."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qmedoid.cli._output import plain_console, print_json, tell
from qmedoid.cli._printing import print_table
from qmedoid.reporting.document import Document
from qmedoid.reporting.files import check_folder, check_replaceable, write_report
from qmedoid.studies.catalog import cell_folder
from qmedoid.studies.plan import PARTS, STUDY, Part, Plan
from qmedoid.studies.report import PAPER_TABLES, make_report, require_extras
from qmedoid.studies.results import StudyResults
from qmedoid.studies.runner import Report, find_done, run_cells
from qmedoid.studies.splits import Cell, Result


@dataclass(frozen=True)
class Options:
    """What the command was called with."""

    what: str
    output: Path
    jobs: int
    seed: int
    quick: bool
    cache: Path | None
    force: bool = False

    @property
    def plan(self) -> Plan:
        """Which cells are asked for."""
        parts: Sequence[Part] = PARTS if self.what == "all" else [part for part in PARTS if part == self.what]
        plan = Plan(parts, seed=self.seed)
        return plan.quick() if self.quick else plan

    @property
    def command(self) -> str:
        """The call that gives the same tables on any machine."""
        words = ["qmedoid", "reproduce", self.what]
        words += ["--quick"] if self.quick else []
        words += ["--seed", str(self.seed)] if self.seed else []
        return " ".join(words)


def run(options: Options, *, as_json: bool) -> None:
    """Run what is not done yet, write the folder, and print the paper's tables and the findings."""
    plan = options.plan
    require_extras(plan)
    check_folder(options.output)
    if not options.force:
        check_replaceable(options.output)
    folder = options.cache or cell_folder()
    cells = plan.cells
    done = find_done(STUDY, cells, folder)
    left = [cell for cell in cells if cell not in done]
    if left:
        check_folder(folder)
        tell(_outlook(len(done), left, options.jobs))
    with _cell_bar(left) as report:
        done |= run_cells(STUDY, left, folder, jobs=options.jobs, report=report)
    document = make_report(plan, StudyResults(done), options.command)
    written = write_report(document, options.output, force=options.force)
    if as_json:
        print_json(_as_json(document, options.output, written))
        return
    console = plain_console()
    for table in document.tables:
        if table.name in PAPER_TABLES:
            print_table(console, table)
    for finding in document.findings:
        console.print(f"• {finding}")
    tell(f"{len(written)} files written to {options.output}; open {options.output / 'index.html'}.")


def _outlook(n_done: int, left: Sequence[Cell], jobs: int) -> str:
    """What is to come, for those who see no bar: cells, and roughly how long they take."""
    before = f"{n_done:,} of {n_done + len(left):,} cells are there from before; " if n_done else ""
    cells = "" if n_done else " cells"
    minutes = max(1, round(sum(map(STUDY.seconds, left)) / 60 / jobs))
    return f"{before}{len(left):,}{cells} are to be run. On a common machine that takes about {minutes} min."


@contextmanager
def _cell_bar(cells: Sequence[Cell]) -> Iterator[Report]:
    """A bar over the seconds that cells are expected to take, with the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[count]}"))
    total = sum(map(STUDY.seconds, cells))
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal or not cells
    ) as bar:
        task = bar.add_task("starting", total=total, count=f"0/{len(cells)}")
        n_done = 0

        def report(cell: Cell, _: Result) -> None:
            nonlocal n_done
            n_done += 1
            bar.update(task, advance=STUDY.seconds(cell), description=str(cell), count=f"{n_done}/{len(cells)}")

        yield report


def _as_json(document: Document, folder: Path, written: Sequence[Path]) -> Mapping[str, Any]:
    tables = {
        table.name: {
            "title": table.title,
            "columns": table.labels,
            "rows": [list(row) for row in table.rows],
        }
        for table in document.tables
    }
    return {
        "provenance": dict(document.provenance),
        "findings": list(document.findings),
        "tables": tables,
        "folder": str(folder),
        "files": [path.name for path in written],
    }
