"""Makes the figures of ``docs/how-to/export.md``, from ``benchmarks/results/exports.csv``.

``python docs/make_export.py`` writes them into the page; with ``--check`` it writes nothing and fails when the page
differs from what would be written.
"""

import argparse
import csv
from pathlib import Path

from marked_sections import Row, table, write_or_check

PAGE = Path(__file__).parent / "how-to" / "export.md"
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "exports.csv"
ENGINES = ("DuckDB", "SQLite", "onnxruntime", "Node")


def sections() -> dict[str, str]:
    """A row for every model: sizes in kilobytes and records per core-second by engine, and the largest difference."""
    with RESULTS.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(line for line in file if not line.startswith("#")))
    models = {line["model"]: {} for line in lines}
    for line in lines:
        models[line["model"]][line["engine"]] = line
    rows: list[Row] = []
    for name, engines in models.items():
        differences = [float(engines[one]["largest difference"]) for one in ENGINES if engines[one]["bytes"]]
        own = engines["qmedoid"]["records per core-second"]
        rows.append([name, *(_cell(engines[one]) for one in ENGINES), f"{int(own):,}", f"{max(differences):.0e}"])
    header = ["model", *(f"{one}, KB and records/s" for one in ENGINES), "qmedoid, records/s", "difference"]
    return {"figures": table(header, rows)}


def _cell(line: dict[str, str]) -> str:
    if not line["bytes"]:
        return "refused"
    return f"{int(line['bytes']) / 1000:.0f}, {int(line['records per core-second']):,}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    write_or_check(PAGE, sections(), check=arguments.check)
