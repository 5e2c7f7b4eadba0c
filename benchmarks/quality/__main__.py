"""The quality study: ``python -m benchmarks.quality run`` and then ``python -m benchmarks.quality tables``.

``run`` fits what is not in the store of cells yet and prints no figure. ``status`` counts what is there. ``tables``
gathers the cells and writes ``benchmarks/results/quality``; with ``--from-csv`` it makes the tables again from the
committed cells alone.
"""

import argparse
from pathlib import Path

from benchmarks.quality.cells import PARTS, STUDY, planned
from benchmarks.quality.tables import available
from benchmarks.studies.cells import Cell, Result, cell_folder
from benchmarks.studies.runner import find_done, run_cells


def main() -> None:
    options = _parser().parse_args()
    if options.command == "tables" and options.from_csv:
        from benchmarks.quality.writing import write_from_csv

        write_from_csv(options.seeds)
        return
    if options.part == "tables":
        for name, why in available()[1].items():
            print(f"left out: {name}. {why}", flush=True)
    few = {"sets": options.sets, "methods": options.methods, "splits": options.splits, "sizes": options.sizes}
    cells = planned(options.part, options.seeds, **few)
    known = find_done(STUDY, cells, options.cache)
    print(f"{len(known)} of {len(cells)} cells are done", flush=True)
    if options.command == "run":
        _run([cell for cell in cells if cell not in known], options.cache, options.jobs)
    elif options.command == "tables":
        from benchmarks.quality.writing import write_results

        write_results(options.part, options.seeds, known)


def _run(cells: list[Cell], folder: Path, jobs: int) -> None:
    seconds = 0.0
    count = 0

    def report(cell: Cell, result: Result) -> None:
        nonlocal seconds, count
        count, seconds = count + 1, seconds + result["seconds"]
        print(
            f"[{count}/{len(cells)}, {seconds / 60:.1f} min] {cell.part} rows, {cell}: {result['seconds']:.1f} s",
            flush=True,
        )

    run_cells(STUDY, cells, folder, jobs=jobs, report=report, fresh=any(cell.part == "card" for cell in cells))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("command", choices=("run", "status", "tables"))
    parser.add_argument("--part", choices=PARTS, default="tables", help="many tables, or the credit-card frauds")
    parser.add_argument("--seeds", choices=("report", "tuning"), default="report")
    parser.add_argument("--sets", nargs="*", default=(), help="only these tables")
    parser.add_argument("--sizes", nargs="*", type=int, default=(), help="only these numbers of fit rows")
    parser.add_argument(
        "--methods", nargs="*", default=(), help='only these; "baselines" and "changes" are all of their kind'
    )
    parser.add_argument("--splits", type=int, help="maximum number of splits of each table")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--cache", type=Path, default=cell_folder(), help="the store of cells")
    parser.add_argument("--from-csv", action="store_true", help="make the tables from the committed cells")
    return parser


if __name__ == "__main__":
    main()
