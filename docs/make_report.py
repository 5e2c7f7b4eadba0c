"""Makes the tables of the page on reports: the findings from their code, the cost from the benchmark's results.

``python docs/make_report.py`` writes them into ``how-to/report.md``; with ``--check`` it writes nothing and fails when
the page differs from what would be written.
"""

import argparse
import csv
from pathlib import Path

from marked_sections import table, write_or_check

from qmedoid.report.findings import FINDINGS, TEXTS

PAGE = Path(__file__).parent / "how-to" / "report.md"
RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "report.csv"


def sections() -> dict[str, str]:
    """Both tables."""
    findings = [
        [code, TEXTS[code]["title"], (FINDINGS[code].__doc__ or "").split("\n")[0]] for code in sorted(FINDINGS)
    ]
    lines = [line for line in RESULTS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    cost = [
        [one["table"], f"{int(one['rows']):,}", f"{int(one['columns']):,}", one["evaluate_cpu_s"], one["beyond_cpu_s"],
         f"{one['page_mb']} MB", "yes" if one["live"] == "True" else "no", one["without_table_cpu_s"]]
        for one in csv.DictReader(lines)
    ]  # fmt: skip
    seconds = ["evaluate, s", "report beyond it, s"]
    head = ["table", "rows", "columns", *seconds, "page", "live model", "without a table, s"]
    return {"findings": table(["code", "title", "what it is about"], findings, 3), "cost": table(head, cost)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    write_or_check(PAGE, sections(), check=parser.parse_args().check)
