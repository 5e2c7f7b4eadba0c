"""Makes what commands print on the pages of the docs, by running them one by one.

``python docs/make_command_line.py`` writes commands and their output between the markers of ``command-line.md``,
``evidence.md``, ``rare-events.md`` and ``saved-models.md``.
``python docs/make_command_line.py --check`` writes nothing and fails when a page differs from what would be written.

The commands run in an empty folder, in the order of the pages. Seconds and hashes, which are others every time, are
replaced by signs, and numbers are rounded to five decimals: no more are the same on every processor.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from marked_sections import marked, write_or_check

FOLDER = Path(__file__).parent
PAGE, SAVED_PAGE = FOLDER / "command-line.md", FOLDER / "saved-models.md"
EVIDENCE_PAGE, RARE_PAGE = FOLDER / "evidence.md", FOLDER / "rare-events.md"
STATUS = "echo $?"
"""Shows the exit code of the command before it, which may then be another than 0."""

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "prepare": (
        "qmedoid data fetch heart",
        "awk 'NR == 1 || NR % 5' heart.csv > known.csv",
        "awk 'NR == 1 || NR % 5 == 0' heart.csv > new.csv",
    ),
    "check": (
        'awk -F, -v OFS=, \'NR == 1 {print "visit_id", $0, "code", "ward"; next} {if ($5 == 0) $5 = ""; '
        'print 70000 + 7 * NR, $0, NR % 40 ? 400 + NR % 9 : "V45", ($12 ? "C" : "G") NR % 3}\' heart.csv > wards.csv',
        "qmedoid check wards.csv --target HeartDisease",
        "qmedoid check wards.csv --target HeartDisease --ignore ward --keep visit_id --strict > /dev/null",
        STATUS,
    ),
    "fit": ("qmedoid fit known.csv --target HeartDisease -o heart.qmedoid",),
    "compare": (
        "qmedoid fit known.csv --target HeartDisease --method evidence --compare -o compared.qmedoid "
        "| grep 'plain baseline'",
    ),
    "inspect": ("qmedoid inspect heart.qmedoid | sed '/^How it was made/,$d'",),
    "score": (
        "qmedoid score heart.qmedoid new.csv --columns Age,Sex -o decisions.csv",
        "head -4 decisions.csv",
    ),
    "cut": (
        "qmedoid score heart.qmedoid new.csv --alert-rate 10% -o decisions.csv",
        "qmedoid score heart.qmedoid new.csv --top 20 -o decisions.csv",
    ),
    "added": (
        "qmedoid score heart.qmedoid new.csv --add probabilities,row,reasons -o decisions.csv",
        "cut -d, -f1,7- decisions.csv | head -3",
    ),
    "bad_rows": (
        """sed '3s/^[^,]*/unknown/; 5s/$/,1/' new.csv > spoilt.csv""",
        "qmedoid score heart.qmedoid spoilt.csv --columns Age,Sex --on-bad-row skip -o decisions.csv",
        "cat decisions.bad-rows.csv",
    ),
    "evaluate": ("qmedoid evaluate heart.qmedoid new.csv",),
    "evaluate_bad_rows": ("qmedoid evaluate heart.qmedoid spoilt.csv --on-bad-row skip | head -2",),
    "budgets": (
        "qmedoid evaluate heart.qmedoid new.csv --budgets 10,50,25% | tail -8",
        "qmedoid inspect heart.qmedoid --budgets 10,50,25%",
    ),
    "explain": ("qmedoid explain heart.qmedoid new.csv --row 2",),
    "importance": (
        "qmedoid importance heart.qmedoid new.csv",
        "qmedoid effect heart.qmedoid new.csv --column Oldpeak --bins 4",
    ),
    "raw": (
        'awk -F, -v OFS=, \'NR == 1 {print "visit_id,day", $0; next} {if ($5 == 0) $5 = ""; '
        'print 70000 + 7 * NR, sprintf("2024-%02d-%02d", 1 + NR % 12, 1 + NR % 28), $0}\' heart.csv > visits.csv',
        "head -2 visits.csv",
        "qmedoid fit visits.csv --target HeartDisease --refine never -o visits.qmedoid | grep Saved",
        "qmedoid inspect visits.qmedoid | grep -E '^ (visit_id|day|Cholesterol|Sex) .*[a-z]'",
    ),
    "broken": (
        """sed '1s/"Oldpeak"/"old_peak"/; s/"ATA"/"atypical"/' new.csv > changed.csv""",
        "qmedoid score heart.qmedoid changed.csv -o decisions.csv",
        STATUS,
        "qmedoid score heart.qmedoid changed.csv -o decisions.csv --on-mismatch warn",
        STATUS,
    ),
    "fraud": (
        "qmedoid data fetch creditcard-sample",
        "qmedoid fit creditcard-sample.parquet --target Class --alert-rate 0.04 -o fraud.qmedoid",
    ),
    "by_circuit": (
        "qmedoid fit creditcard-sample.parquet --target Class --alert-rate 0.04 --refine 0.01 -o circuit.qmedoid "
        "| grep Saved",
        "qmedoid explain circuit.qmedoid creditcard-sample.parquet --row 379 --verbose | grep -E 'circuit|margin'",
    ),
    "by_time": (
        "qmedoid fit creditcard-sample.parquet --target Class --alert-rate 0.04 --time-column Time --refine never "
        "-o later.qmedoid | grep -E 'never saw|test rows|prevalence|alert rate|recall'",
    ),
    "circuit": (
        "qmedoid circuit export circuit.qmedoid --format qasm | grep -A 8 'qubit'",
        "qmedoid circuit export circuit.qmedoid creditcard-sample.parquet --row 330 --format qasm -o record.qasm",
        "head -6 record.qasm | cut -c1-47",
    ),
    "device": (
        "qmedoid circuit plan heart.qmedoid new.csv --backend fake_torino --limit 20",
        "qmedoid circuit run heart.qmedoid new.csv -o run --backend fake_torino --limit 20",
        "head -3 run/records.csv | cut -d, -f1-7",
        "qmedoid circuit run heart.qmedoid new.csv -o run --backend fake_torino --limit 21",
        STATUS,
    ),
    "export": (
        "qmedoid export heart.qmedoid --format sql --dialect sqlite --table patients -o heart.sql | cut -d' ' -f1-3",
        "sed -n 2p heart.sql | cut -c1-100",
    ),
    "pipes": ("head -3 new.csv | qmedoid score heart.qmedoid - -o - | cut -d, -f1-3",),
    "json": (
        "qmedoid score heart.qmedoid new.csv -o decisions.parquet --json",
        "qmedoid score no.qmedoid new.csv -o decisions.parquet --json",
        STATUS,
    ),
    "formulas": (
        'awk \'NR == 1 {print "remark," $0} NR == 2 {print "=1+1," $0} NR == 3 {print "-5," $0}\' new.csv '
        "> remarks.csv",
        "qmedoid score heart.qmedoid remarks.csv --columns remark -o - | cut -d, -f1,2",
    ),
    "data": ("qmedoid data list",),
    "reproduce": (
        "qmedoid reproduce wine --quick -o wine-again --cache cells | tail -2",
        "grep -v '^#' wine-again/test_fusion.csv | cut -d, -f1-5",
    ),
}
"""The commands of each section of the first page, in the order in which they run."""
EVIDENCE_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "tiny": (
        "qmedoid fit known.csv --target HeartDisease --medoids 6 --neighbors 0 -o tiny.qmedoid | grep Saved",
        "qmedoid explain tiny.qmedoid new.csv --row 2 --verbose",
    ),
}
RARE_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "budget": (
        "qmedoid data fetch creditcard-sample -o payments.csv",
        "awk 'NR == 1 || NR % 4' payments.csv > past.csv",
        "awk 'NR == 1 || NR % 4 == 0' payments.csv > later.csv",
        "qmedoid fit past.csv --target Class --ignore Time --alert-rate 0.04 --test 0 -o card.qmedoid",
        "qmedoid score card.qmedoid later.csv -o alerts.csv",
    ),
    "why": ("qmedoid explain card.qmedoid later.csv --row 206 --verbose",),
    "shifted": (
        "awk -F, 'NR == 1 || $31 == 1 || NR % 10 == 0' later.csv > fewer.csv",
        "qmedoid score card.qmedoid fewer.csv -o alerts.csv",
        "qmedoid score card.qmedoid fewer.csv --prevalence estimate -o alerts.csv",
    ),
}
SAVED_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "files": (
        "unzip -Z1 heart.qmedoid",
        "unzip -p heart.qmedoid manifest.json | head -10",
        "unzip -p heart.qmedoid card.md | head -5",
    ),
    "life": (
        "qmedoid recalibrate heart.qmedoid new.csv -o heart-2.qmedoid --min-recall 0.95 | sed '$d'",
        "qmedoid diff heart.qmedoid heart-2.qmedoid | head -13",
        "qmedoid diff heart.qmedoid heart-2.qmedoid new.csv | sed -n '/^new.csv/,$p'",
        "qmedoid diff heart.qmedoid heart-2.qmedoid new.csv --exit-code > /dev/null",
        STATUS,
    ),
    "damaged": (
        "printf x >> heart.qmedoid",
        "qmedoid inspect heart.qmedoid",
        STATUS,
    ),
}
PAGES: Mapping[Path, Mapping[str, tuple[str, ...]]] = {
    PAGE: SECTIONS,
    EVIDENCE_PAGE: EVIDENCE_SECTIONS,
    RARE_PAGE: RARE_SECTIONS,
    SAVED_PAGE: SAVED_SECTIONS,
}
"""The commands of each page; those of later ones run after the others in the same folder."""
SLOW = (
    "compare",
    "raw",
    "fraud",
    "by_circuit",
    "circuit",
    "device",
    "by_time",
    "reproduce",
    "budget",
    "why",
    "shifted",
)
"""Sections whose fits take most of the time; the others do not need them."""
_WIDTH = 100


def compute(names: Iterable[str] | None = None) -> dict[str, str]:
    """The sections of all pages, or those named and none else, as blocks of Markdown."""
    every = {name: commands for sections in PAGES.values() for name, commands in sections.items()}
    chosen = every if names is None else {name: every[name] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        return {name: section(commands, Path(folder)) for name, commands in chosen.items()}


def section(commands: Iterable[str], folder: Path) -> str:
    """A block with commands and what they print."""
    lines, code = [], 0
    for command in commands:
        lines.append(f"$ {command}")
        if command == STATUS:
            lines.append(str(code))
            code = 0
            continue
        _check_ended_well(code, lines)
        code, printed = run(command, folder)
        lines += printed
    _check_ended_well(code, lines)
    return "\n".join(["```console", *lines, "```"])


def run(command: str, folder: Path) -> tuple[int, list[str]]:
    """The exit code of a command, and the lines that a user sees, with what changes from run to run replaced."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("QMEDOID_", "_TYPER_"))}
    environment |= {
        "QMEDOID_CACHE": str(folder / "cache"), "COLUMNS": str(_WIDTH), "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8", "LC_ALL": "C", "NO_COLOR": "1", "PYTHON": sys.executable,
    }  # fmt: skip
    # The command of this Python, whatever other is installed.
    script = 'qmedoid() { "$PYTHON" -m qmedoid "$@"; }\n' + command
    ended = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    lines = steady(ended.stdout.decode()).splitlines()
    # Of a pipe the shell gives the exit code of the last command only.
    failed = any(line.startswith(("error: ", "Traceback")) for line in lines)
    return ended.returncode or int(failed), lines


def steady(text: str) -> str:
    """The text without what is another every time: seconds, versions, the last digits of numbers."""
    text = re.sub(r"\(\d[\d.e+]* s\)", "(… s)", text)
    text = re.sub(r'"((?:numpy|pyarrow|python|qmedoid|safetensors|scikit-learn)": )"[\d.]+\w*"', r'"\1"…"', text)
    text = re.sub(r"\b\d+\.\d{6,}\b(?!e)", lambda match: f"{float(match[0]):.5f}", text)
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def _check_ended_well(code: int, lines: list[str]) -> None:
    if code:
        sys.exit(f"A command failed with {code}:\n" + "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    made = compute()
    for page, sections in PAGES.items():
        others = [name for name in marked(page.read_text(encoding="utf-8")) if name not in sections]
        write_or_check(page, {name: made[name] for name in sections}, check=arguments.check, others=others)
