"""Makes the figures of ``docs/how-to/engines.md``, from ``benchmarks/results/speed_engines.csv``.

``python docs/make_engines.py`` writes them into the page; with ``--check`` it writes nothing and fails when the page
differs from what would be written.
"""

import argparse
import csv
from pathlib import Path

from marked_sections import table, write_or_check

PAGE = Path(__file__).parent / "how-to" / "engines.md"
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "speed_engines.csv"


def sections() -> dict[str, str]:
    """A row for every model, with the core-seconds of each way."""
    with RESULTS.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(line for line in file if not line.startswith("#")))
    ways = list(dict.fromkeys(line["way"] for line in lines))
    seconds = {(line["model"], line["way"]): f"{float(line['core-seconds']):.2f}" for line in lines}
    models = dict.fromkeys(line["model"] for line in lines)
    return {"figures": table(["model", *ways], [[model, *(seconds[model, way] for way in ways)] for model in models])}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    write_or_check(PAGE, sections(), check=arguments.check)
