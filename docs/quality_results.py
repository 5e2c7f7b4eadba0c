"""What the study of quality left in ``benchmarks/results/quality``, and how its figures are written."""

import csv
from pathlib import Path

from marked_sections import number, table

Record = dict[str, str]

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "quality"
COMMAND = "python -m benchmarks.quality"
OURS = "ours"
RUNS = {
    "first/": "seeds 0 up, first recipe",
    "second/": "seeds 20 up, second",
    "third/": "seeds 40 up, third",
    "": "seeds 60 up, present",
}
"""Folders of the reports, and the splits and recipes that they are of."""


class NotMeasured(Exception):  # noqa: N818, it is no error
    """A file of the study is not there yet; the message says how it is made."""


def lines(name: str) -> list[str]:
    """The lines of a file of the study."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        part = " --part card" if name.startswith("card") else ""
        changes = " --methods changes" if name == "ablations" else ""
        how = f"'{COMMAND} run{part}{changes}', then '{COMMAND} tables{part}'"
        how = f"'{COMMAND}.again'" if name == "again" else how
        raise NotMeasured(f"There is no benchmarks/results/quality/{name}.csv. Run {how}.")
    return path.read_text(encoding="utf-8").splitlines()


def read(name: str) -> list[Record]:
    """The rows of a table; its first line says how it was made."""
    return list(csv.DictReader(lines(name)[1:]))


def provenance(name: str) -> str:
    """Command and versions, which a file begins with."""
    command, versions = lines(name)[0].removeprefix("# ").split(" | ")
    return f"`{command}`, {versions}."


def whole(name: str, numbers_from: int | None = None) -> str:
    """All of a table as it is; columns from `numbers_from` on, if any, are numbers."""
    found = read(name)
    names = list(found[0])
    return table(names, [[row[column] for column in names] for row in found], numbers_from or len(names))


def runs(name: str) -> str:
    """The goals that some report has not met, as every report found them."""
    every = [read(f"{folder}{name}") for folder in RUNS]
    shared = [rows for rows in zip(*every, strict=True) if any(row["met"] != "yes" for row in rows)]
    told = [column for column in every[0][0] if column not in ("found", "met")]
    return table(
        [*told, *RUNS.values()],
        [[*(rows[-1][column] for column in told), *(row["found"] for row in rows)] for rows in shared],
        len(told) + len(RUNS),
    )


def signed(value: str, digits: int = 4) -> str:
    """A rounded number with its sign, and none before zero."""
    text = number(float(value), digits)
    return f"+{text}" if float(text.replace("−", "-")) > 0 else text


def bullets(*sentences: str) -> str:
    """A list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)
