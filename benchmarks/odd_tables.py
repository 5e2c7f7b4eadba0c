"""Odd tables through every door: `check`, `fit`, `score` and the estimator.

Run as ``python benchmarks/odd_tables.py [--only TEXT]``; it writes ``benchmarks/results/odd_tables.csv``. A table of
``benchmarks/odd`` is *read* where a door makes of it what a plain table of the same meaning gives (the same cells, or
the same model and scores), *said* where a sentence names the trouble, and *silent* where neither is so. Doors that a
table has nothing to do with are empty.
"""

import argparse
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PROJECT), str(PROJECT / "tests")]
from benchmarks._timing import RESULTS, write_table  # noqa: E402
from benchmarks.odd.all import ODD  # noqa: E402
from benchmarks.odd.doors import SILENT, fit_plain, score_odd, through  # noqa: E402
from benchmarks.odd.scored import scored  # noqa: E402

OUT = RESULTS / "odd_tables.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="tables whose name contains this; nothing is written")
    only: str = parser.parse_args().only
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for odd in ODD.values():
            if only in odd.name:
                doors = through(odd, folder)
                rows.append({"table": odd.name, **doors._asdict()})
                print(*rows[-1].values(), sep=" | ", flush=True)
        model, expected = fit_plain(folder)
        for one in scored():
            if only in one.name:
                found = {"check": "", "fit": "", "score": score_odd(one, model, expected, folder), "estimator": ""}
                rows.append({"table": f"to score: {one.name}", **found})
                print(*rows[-1].values(), sep=" | ", flush=True)
    silent = sum(SILENT in row.values() for row in rows)
    print(f"{len(rows):,} tables, {silent:,} of them silent in a door")
    if not only:
        write_table(OUT, "python benchmarks/odd_tables.py", rows, ("numpy", "pyarrow", "pandas", "polars"), shown=False)


if __name__ == "__main__":
    main()
