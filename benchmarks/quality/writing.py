"""The files of ``benchmarks/results/quality``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks._timing import RESULTS, versions, write_table
from benchmarks.quality import comparison, goals, ranks
from benchmarks.quality.card_tables import write_card
from benchmarks.quality.cells import Part
from benchmarks.quality.figures import Figures, Row, read_cells, write_cells
from benchmarks.quality.picture import draw_ranks
from benchmarks.quality.protocol import Seeds
from benchmarks.quality.rivals import RIVALS
from benchmarks.quality.tables import load_table
from benchmarks.studies.cells import Cell

COMMAND = "python -m benchmarks.quality"
PACKAGES = ("numpy", "scipy", "scikit-learn", "lightgbm")
TABLES = {
    "means": comparison.mean_table,
    "ranks": ranks.rank_table,
    "paired": comparison.paired_table,
    "over_tables": comparison.over_tables,
    "rival_wins": comparison.rival_wins,
    "goals": goals.goal_table,
    "calibration": comparison.calibration_table,
    "cost": comparison.cost_table,
    "ablations": comparison.ablation_table,
}
"""What is made of the cells, by the name of the file."""
SHOWN = ("goals",)
"""What is printed, too."""


def folder(seeds: Seeds) -> Path:
    """Where the tables go: figures of tuning splits are not kept with those that are reported."""
    if seeds == "tuning":
        return Path("build") / "quality-tuning"
    return RESULTS / "quality" / ("" if seeds == "report" else seeds)


def write_results(part: Part, seeds: Seeds, found: Mapping[Cell, dict[str, Any]]) -> None:
    """Write the cells that are done, and all tables that they fill."""
    target = folder(seeds)
    target.mkdir(parents=True, exist_ok=True)
    if part == "card":
        write_card(target, seeds, found)
        return
    rows = with_kept_rivals([_row(cell, result) for cell, result in found.items()], target / "cells.csv")
    command = f"{COMMAND} run" + ("" if seeds == "report" else f" --seeds {seeds}")
    further = {rival.package: rival.release for rival in RIVALS.values() if rival.package not in PACKAGES}
    made_by = ", ".join([versions(*PACKAGES), *further.values()])
    write_cells(target / "cells.csv", f"{command} | {made_by}", rows)
    write_from_csv(seeds)  # from the digits of the file, so that the file gives the same tables again


def with_kept_rivals(rows: list[Row], path: Path) -> list[Row]:
    """The rows, and those rivals of an earlier run that were not run again: they do not depend on the package."""
    if not path.exists():
        return rows
    before = read_cells(path)
    by_key = {_key(row): row for row in [*(row for row in before if row["method"] in RIVALS), *rows]}
    return [by_key[key] for key in dict.fromkeys(map(_key, [*before, *rows])) if key in by_key]


def _key(row: Row) -> tuple[str, int, int, str]:
    return row["data"], row["size"], row["seed"], row["method"]


def write_from_csv(seeds: Seeds) -> None:
    """Make the tables again from the cells of an earlier run."""
    write_tables(folder(seeds), Figures(read_cells(folder(seeds) / "cells.csv")))


def write_tables(target: Path, figures: Figures) -> None:
    """Write every table that the cells fill, and the picture of the ranks."""
    for name, make in TABLES.items():
        lines = make(figures)
        if lines:
            write_table(target / f"{name}.csv", f"{COMMAND} tables", lines, PACKAGES, shown=name in SHOWN)
    draw_ranks(figures, target / "ranks.svg")


def _row(cell: Cell, result: Mapping[str, Any]) -> dict[str, Any]:
    table = load_table(cell.data)
    about = {"data": cell.data, "source": table.source, "rows": len(table), "columns": len(table.columns)}
    own = {"classes": len(table.class_names), "size": int(cell.part), "seed": cell.seed, "method": cell.method}
    return {**about, **own, **result}
