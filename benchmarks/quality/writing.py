"""The files of ``benchmarks/results/quality``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks._timing import RESULTS, versions, write_table
from benchmarks.quality import comparison
from benchmarks.quality.baselines import FAMILIES
from benchmarks.quality.card_tables import write_card
from benchmarks.quality.cells import Part
from benchmarks.quality.figures import Figures, Row, read_cells, write_cells
from benchmarks.quality.protocol import Seeds
from benchmarks.quality.tables import load_table

from qmedoid.studies.splits import Cell

COMMAND = "python -m benchmarks.quality"
PACKAGES = ("numpy", "scipy", "scikit-learn", "lightgbm")
TABLES = {
    "macro_f1": comparison.macro_f1_table,
    "ranks": comparison.rank_table,
    "paired": comparison.paired_table,
    "goals": comparison.goal_table,
    "ablations": comparison.ablation_table,
    "calibration": comparison.calibration_table,
    "cost": comparison.cost_table,
}
"""What is made of the cells, by the name of the file."""


def folder(seeds: Seeds) -> Path:
    """Where the tables go: figures of tuning splits are not kept with those that are reported."""
    kept = {"report": RESULTS / "quality"} | {name: RESULTS / "quality" / name for name in ("first", "second")}
    return kept.get(seeds, Path("build") / "quality-tuning")


def write_results(part: Part, seeds: Seeds, found: Mapping[Cell, dict[str, Any]]) -> None:
    """Write the cells that are done, and all tables that they fill."""
    target = folder(seeds)
    target.mkdir(parents=True, exist_ok=True)
    if part == "card":
        write_card(target, seeds, found)
        return
    rows = _with_kept_baselines([_row(cell, result) for cell, result in found.items()], target / "cells.csv")
    command = f"{COMMAND} run --seeds {seeds}"
    write_cells(target / "cells.csv", f"{command} | {versions(*PACKAGES)}", rows)
    write_from_csv(seeds)  # from the digits of the file, so that the file gives the same tables again


def _with_kept_baselines(rows: list[Row], path: Path) -> list[Row]:
    """The rows, and those baselines of an earlier run that were not run again: they do not depend on the package."""
    if not path.exists():
        return rows
    kept = [row for row in read_cells(path) if row["method"] in FAMILIES]
    by_key = {_key(row): row for row in [*kept, *rows]}
    order = {_key(row): place for place, row in enumerate([*read_cells(path), *rows])}
    return sorted(by_key.values(), key=lambda row: order[_key(row)])


def _key(row: Row) -> tuple[str, int, str]:
    return row["data"], row["seed"], row["method"]


def write_from_csv(seeds: Seeds) -> None:
    """Make the tables again from the cells of an earlier run."""
    write_tables(folder(seeds), Figures(read_cells(folder(seeds) / "cells.csv")))


def write_tables(target: Path, figures: Figures) -> None:
    """Print and write every table that the cells fill."""
    for name, make in TABLES.items():
        lines = make(figures)
        if lines:
            print(f"\n{name}")
            write_table(target / f"{name}.csv", f"{COMMAND} tables", lines, PACKAGES)


def _row(cell: Cell, result: Mapping[str, Any]) -> dict[str, Any]:
    table = load_table(cell.data)
    about = {"data": cell.data, "source": table.source, "rows": len(table), "columns": len(table.columns)}
    return {**about, "classes": len(table.class_names), "seed": cell.seed, "method": cell.method, **result}
