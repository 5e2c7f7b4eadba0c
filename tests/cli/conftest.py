"""Small models, fitted once, and a way to call the command line within this process."""

import io
import json
import sys
from typing import NamedTuple

import pandas  # noqa: F401 (before a command keeps it away from Arrow for the rest of this process)
import pytest
from small_tables import small_table, write
from tests.printed_json import check_printed

from few_trees import few_trees
from qmedoid.cli import main


class Outcome(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self):
        return self.raw.decode()

    @property
    def json(self):
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.out)


def _call(arguments, stdin=None):
    """Run a command with its streams apart from those of the test; JSON must be as its schema says.

    The commands are asked, not the trees: fits grow few of them.
    """
    kept = sys.argv, sys.stdin, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.argv, sys.stdout, sys.stderr = ["qmedoid", *map(str, arguments)], out, err
    if stdin is not None:
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with few_trees():
            main()
    except SystemExit as stop:
        code = stop.code or 0
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = kept
    outcome = Outcome(code, out.buffer.getvalue(), err.buffer.getvalue().decode())
    assert b"Traceback" not in outcome.raw + err.buffer.getvalue()
    check_printed(arguments, outcome.raw)
    return outcome


@pytest.fixture(scope="session")
def cli():
    """``cli(*arguments, stdin=None)``, which gives an outcome; ``cli.ok`` insists on success."""

    def run(*arguments, stdin=None):
        return _call(arguments, stdin)

    def ok(*arguments, stdin=None):
        outcome = _call(arguments, stdin)
        assert outcome.code == 0, outcome.err or outcome.out
        return outcome

    run.ok = ok
    return run


class Case(NamedTuple):
    """A table, the file it is in, and the model that was fitted to it."""

    table: object
    file: object
    model: object
    printed: dict


def _case(cli, folder, name, classes, *options):
    table = small_table(classes)
    file = write(table, folder / f"{name}.csv")
    outcome = cli.ok("fit", file, "--target", "y", "-o", folder / name, "--refine", "never", "--json", *options)
    return Case(table, file, folder / name, outcome.json)


@pytest.fixture(scope="session")
def two(cli, tmp_path_factory):
    """Two classes."""
    return _case(cli, tmp_path_factory.mktemp("two"), "two", ("no", "yes"))


@pytest.fixture(scope="session")
def three(cli, tmp_path_factory):
    """Three classes."""
    return _case(cli, tmp_path_factory.mktemp("three"), "three", ("a", "b", "c"))
