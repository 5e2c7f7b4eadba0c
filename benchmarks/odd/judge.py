"""What qmedoid makes of a table: how it is read, what is said, and whether that is right."""

import datetime
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.odd.base import Columns, Odd
from qmedoid import check_table
from qmedoid.exceptions import QMedoidError
from qmedoid.tables import cells
from qmedoid.tables.arrow import as_table
from qmedoid.tables.checking import check_rows
from qmedoid.tables.dataset import Dataset, DatasetSettings, read_rows
from qmedoid.tables.source import open_table
from qmedoid.tables.targets import Target


class Seen(NamedTuple):
    """How a table is read: cells by column, the target among them, and all that was said about it."""

    columns: Mapping[str, list[Any]]
    said: list[str]


def look(odd: Odd, folder: Path) -> Seen:
    """Read a table as `check` and `fit` do, without a fit."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            seen = _look(odd, folder)
        return seen._replace(said=[*seen.said, *(str(one.message) for one in caught)])
    except QMedoidError as error:
        return Seen({}, [str(error)])
    except (ValueError, TypeError):
        return Seen({}, ["It is not the package that raises."])


def write(odd: Odd, folder: Path) -> Path:
    """The file of a table."""
    path = folder / f"odd{odd.suffix}"
    path.write_bytes(odd.data)
    return path


def _look(odd: Odd, folder: Path) -> Seen:
    settings, rng = DatasetSettings(target=odd.target), np.random.default_rng(0)
    if isinstance(odd.data, bytes):
        path = write(odd, folder)
        with open_table(path) as source:
            table, _, notes = read_rows(source, settings, 10**6, rng, ())
        report = check_rows(table, odd.target, {})
        with open_table(path) as source:
            dataset = Dataset.read(source, settings, 10**6, rng)
        kinds, rows, target, notes = dataset.kinds, dataset.rows, dataset.target, [*notes, *dataset.notes]
        read = dataset.whole
    else:
        report, notes = check_table(odd.data, odd.target), []
        if any(one["severity"] == "problem" for one in report["findings"]) and not report["classes"]:
            return Seen({}, _said(report, notes))
        table = as_table(odd.data)
        rows, target = Target.of_column(table[odd.target], odd.target)
        kinds = settings.infer(table)
        read = cells.with_missing_values_out(table, kinds.columns)
    columns = {one.name: _cells(read[one.name], one) for one in kinds.columns}
    labels: list[Any] = [None] * read.num_rows
    for row, code in zip(np.asarray(rows).tolist(), target.codes.tolist(), strict=True):
        labels[row] = _label(target.classes.tolist()[code])
    columns[odd.target] = labels
    said = [*_said(report, notes), *kinds.notes.values(), *(f"{name!r}: {why}" for name, why in kinds.left_out.items())]
    return Seen(columns, [*said, *(one.message(name) for name, one in kinds.sentinels.items())])


def _said(report: Mapping[str, Any], notes: list[str]) -> list[str]:
    return [*notes, *(one["message"] for one in report["findings"])]


def _cells(given: Any, column: Any) -> list[Any]:
    if column.kind == "category":
        return list(cells.texts(given).to_pylist())
    values = cells.read(given, column).values
    if column.kind == "date":
        return [None if one is None else one for one in values.astype("M8[us]").tolist()]
    if column.kind == "boolean":
        return [None if np.isnan(one) else bool(one) for one in values.tolist()]
    return [None if np.isnan(one) else one for one in values.astype(float).tolist()]


def _label(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_same(found: list[Any], means: list[Any]) -> bool:
    """Whether cells are those that are meant, of the same kind."""
    return len(found) == len(means) and all(map(_is_same_cell, found, means))


def _is_same_cell(found: Any, means: Any) -> bool:
    if found is None or means is None:
        return found is None and means is None
    if isinstance(means, str | bool) or isinstance(found, str | bool | datetime.datetime):
        return type(found) is type(means) and found == means
    return bool(np.isclose(found, means, rtol=1e-9, atol=0))


def is_read(seen: Seen, means: Columns | None) -> bool:
    """Whether all columns that are named are read as they are meant."""
    return means is not None and all(
        name in seen.columns and is_same(seen.columns[name], one) for name, one in means.items()
    )


def is_said(said: list[str], says: str) -> bool:
    """Whether a sentence, or all of them where it is about what must not be said, matches."""
    if says.startswith("^(?!"):
        return all(re.search(says, one, re.DOTALL) for one in said)
    return bool(says) and any(re.search(says, one, re.IGNORECASE | re.DOTALL) for one in said)


def verdict(odd: Odd, seen: Seen) -> str:
    """Empty where what is right holds; else what does not."""
    read, said = is_read(seen, odd.means), is_said(seen.said, odd.says)
    if (read and said) if odd.both else (read or said):
        return ""
    wrong = [
        name
        for name, one in (odd.means or {}).items()
        if name not in seen.columns or not is_same(seen.columns[name], one)
    ]
    shown = {name: seen.columns.get(name, ["left out"])[:4] for name in wrong}
    return f"read as {shown}, said {seen.said[:6]}"
