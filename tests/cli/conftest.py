"""Small models, fitted once."""

from typing import NamedTuple

import pandas  # noqa: F401 (before a command keeps it away from Arrow for the rest of this process)
import pytest
from small_tables import small_table, write


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
