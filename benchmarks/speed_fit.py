"""Core time of a default fit of ours beside one fit of LightGBM with its defaults and the tuned LightGBM of the study.

Writes ``benchmarks/results/speed_fit.csv``. Tables are those of the study of quality (``QMEDOID_DATA`` names their
folder), with at most the rows that ``--most`` says, drawn as there. The tuned LightGBM tries four settings and three
numbers of trees in three folds, and is then fitted to all rows (`benchmarks.quality.rivals`). Core-seconds add up what
all threads used and hardly depend on what else is running; wall seconds do. All matrix products and rivals have one
thread. Run it from the root of the repository: ``PYTHONPATH=. python benchmarks/speed_fit.py``. Where tables are named,
their rows alone are measured, and replace those of the file; ``--into`` names another file.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _timing import RESULTS, core_seconds, write_table
from benchmarks.quality.ours import as_table
from benchmarks.quality.protocol import Rows, known_rows
from benchmarks.quality.rivals import RIVALS, forms, tune
from benchmarks.quality.tables import load_table
from qmedoid import MedoidClassifier

TABLES = (
    *("heart", "german_credit", "tic-tac-toe", "chess", "mushroom", "spambase", "phoneme", "magic", "electricity"),
    *("adult", "covertype"),
)
SEED = 100


def ours(rows: Rows) -> Callable[[], Any]:
    """A default fit, from the table as it is."""
    table = as_table(rows.fit)
    return lambda: MedoidClassifier(random_state=0).fit(table, rows.y)


def untuned(rows: Rows) -> Callable[[], Any]:
    """One fit with the defaults of LightGBM."""
    rival = RIVALS["LightGBM"]
    X, _ = forms(rows, rival.form)
    return lambda: rival.fit(X, rows.y, rows.is_category, SEED, {})


def tuned(rows: Rows) -> Callable[[], Any]:
    """The settings are tried, and the best one is fitted."""
    rival = RIVALS["LightGBM"]
    X, _ = forms(rows, rival.form)
    return lambda: rival.fit(X, rows.y, rows.is_category, SEED, tune(rival, X, rows, SEED).setting)


def known_results(file: Path) -> dict[str, dict[str, object]]:
    """What the file has of each table."""
    if not file.is_file():
        return {}
    with file.open(newline="") as lines:
        next(lines)  # the command
        return {row["table"]: dict[str, object](row) for row in csv.DictReader(lines)}


def main() -> None:
    """Measure every table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=50_000, help="rows of a table at most")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--into", type=Path, default=RESULTS / "speed_fit.csv")
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], metavar="TABLE")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    # What is imported by the first fit is no part of any.
    ours(known_rows(load_table("heart"), 500, SEED))()
    most = "" if asked.most == parser.get_default("most") else f" --most {asked.most}"
    command, found = f"python benchmarks/speed_fit.py{most}", known_results(asked.into) if asked.tables else {}
    for name in asked.tables or TABLES:
        rows, begun = known_rows(load_table(name), asked.most, SEED), time.perf_counter()
        fits = [core_seconds(fit(rows), asked.repeats) for fit in (ours, untuned, tuned)]
        found[name] = {
            "table": name, "rows": len(rows.y), "columns": len(rows.fit), "classes": rows.n_classes,
            "ours, core s": round(fits[0].core, 2), "ours, wall s": round(fits[0].wall, 1),
            "one LightGBM, core s": round(fits[1].core, 2), "tuned LightGBM, core s": round(fits[2].core, 2),
            "ours / one": round(fits[0].core / fits[1].core, 1), "ours / tuned": round(fits[0].core / fits[2].core, 2),
        }  # fmt: skip
        print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
        packages = ("numpy", "scipy", "scikit-learn", "lightgbm")
        in_order = [found[name] for name in TABLES if name in found]
        write_table(asked.into, command, in_order, packages, shown=False)


if __name__ == "__main__":
    main()
