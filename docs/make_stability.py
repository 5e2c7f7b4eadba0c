"""Makes what ``docs/stability.md`` shows: the command on the heart data.

``python docs/make_stability.py`` writes the sections between the markers of the page; it takes some minutes.
``python docs/make_stability.py --check`` writes nothing and fails when the page differs from what would be written.
"""

import argparse
import io
import os
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path

from marked_sections import write_or_check

from qmedoid.cli.stability import StabilityOptions, run
from qmedoid.datasets import locate

PAGE = Path(__file__).parent / "stability.md"
REFITS = 20


def command() -> str:
    """What the command prints on the heart data."""
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    asked = StabilityOptions(table=str(locate("heart")), target="HeartDisease", bootstraps=REFITS)
    with redirect_stdout(io.StringIO()) as printed:
        run(asked)
    lines = [line.rstrip() for line in printed.getvalue().rstrip().splitlines()]
    return "\n".join(["```console", "$ qmedoid stability heart.csv --target HeartDisease", *lines, "```"])


SECTIONS: Mapping[str, Callable[[], str]] = {"command": command}
"""The sections of the page."""

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    write_or_check(PAGE, {name: make() for name, make in SECTIONS.items()}, check=arguments.check)
