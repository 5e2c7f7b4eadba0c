"""Options about the table of a fit as the settings of a dataset, and the dataset of a file."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qmedoid.cli.options import TableOptions
from qmedoid.cli.output import note
from qmedoid.exceptions import ParameterError
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.roles import ROLES, Role, check_missing, check_roles, read_roles_file
from qmedoid.tables.source import TableSource, open_table

MOST_ROWS = 5_000_000
"""Rows that are read as a whole at most, where no number is asked for."""
_COLUMNS = {"groups": "group_column", "weights": "weight_column", "times": "time_column"}


def dataset_settings(options: TableOptions, names: Sequence[str]) -> DatasetSettings:
    """What the options say about a table with these columns."""
    roles: list[tuple[str, Mapping[str, Role]]] = []
    if options.roles is not None:
        roles.append((options.roles.name, read_roles_file(options.roles)))
    roles += [(f"--{role}", dict.fromkeys(getattr(options, role) or (), role)) for role in ROLES]
    return DatasetSettings(
        target=options.target,
        roles=check_roles(*roles, target=options.target),
        date_order=options.date_order,
        missing=_missing_values(options, names),
        takes_numbers=getattr(options, "classes", False) or getattr(options, "positive", None) is not None,
        **{use: getattr(options, option, None) for use, option in _COLUMNS.items()},
    )


def _missing_values(options: TableOptions, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Values that are read as missing, by column; a name may hold an equals sign itself."""
    found: dict[str, list[str]] = {}
    for text in options.missing or ():
        places = [place for place, sign in enumerate(text) if sign == "="]
        if not places:
            raise ParameterError(f"--missing takes a column and a value, such as Cholesterol=0. Got {text!r} instead.")
        name, value = next(
            ((text[:place], text[place + 1 :]) for place in reversed(places) if text[:place] in names),
            (text[: places[0]], text[places[0] + 1 :]),
        )
        found.setdefault(name, []).append(value)
    return check_missing("--missing", found, names=names, target=options.target)


def open_source(options: TableOptions, where: str | None = None) -> TableSource:
    """The table of a command, or another one that is written in the same way."""
    return open_table(where or options.table, delimiter=options.delimiter, decimal=options.decimal)


def read_dataset(options: TableOptions, source: TableSource, like: Dataset | None = None) -> Dataset:
    """The rows of an open table that have a class, with notes on how they were read."""
    settings = dataset_settings(options, source.names) if like is None else like.settings
    rng = np.random.default_rng(options.seed)
    data = Dataset.read(source, settings, options.max_rows or MOST_ROWS, rng, like)
    for one in data.notes:
        note(one)
    return data
