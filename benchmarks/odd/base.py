"""What odd tables are made of: a plain table, ways to write it, and what is right for an odd one."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

N_ROWS = 96
Columns = dict[str, list[Any]]
Write = Callable[[Any], str]


class Odd(NamedTuple):
    """An odd table and what is right for it: to be read as `means`, or that something is said that matches `says`.

    `data` are the bytes of a file, or a data frame or a dictionary with the target in it. `means` are plain columns:
    floats, texts, truth values, dates, None where a cell is missing; the target are texts, None where there is no
    class. Columns that it does not name may be read in any way. Where both are given one of them will do; with `both`
    they must hold together.
    """

    name: str
    data: Any
    means: Columns | None = None
    says: str = ""
    suffix: str = ".csv"
    target: str = "y"
    both: bool = False


@cache
def _base() -> Columns:
    rng = np.random.default_rng(11)
    y = rng.integers(0, 2, N_ROWS)
    x = np.round(rng.normal(74, 8, N_ROWS) + 12 * y, 1)
    place = np.array(["Bern", "Oslo", "Rome"])[(rng.integers(0, 2, N_ROWS) + y)]
    return {"x": x.tolist(), "place": place.tolist(), "y": np.where(y == 1, "yes", "no").tolist()}


def base() -> Columns:
    """A number, a category and two classes."""
    return {name: list(cells) for name, cells in _base().items()}


def is_yes() -> list[bool]:
    """Which rows are of the second class."""
    return [cell == "yes" for cell in _base()["y"]]


def draws(seed: int = 0) -> np.random.Generator:
    """Draws that are the same in every run."""
    return np.random.default_rng(seed)


def text_of(cell: Any) -> str:
    """A cell as a plain file has it."""
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def quoted(cell: str) -> str:
    """A cell in quotes."""
    return '"' + cell.replace('"', '""') + '"'


def lines_of(columns: Columns, sign: str = ",", quote: Callable[[str], bool] | None = None) -> list[str]:
    """Header and rows; cells that hold the sign, a quote or a line break are quoted, or those that are asked for."""

    def cell(text: str) -> str:
        must = quote(text) if quote else any(one in text for one in (sign, '"', "\n", "\r"))
        return quoted(text) if must else text

    rows = zip(*([text_of(one) for one in cells] for cells in columns.values()), strict=True)
    return [sign.join(cell(name) for name in columns), *(sign.join(map(cell, row)) for row in rows)]


def plain_file(columns: Columns, sign: str = ",") -> bytes:
    """A file as everybody would write it."""
    return ("\n".join(lines_of(columns, sign)) + "\n").encode()


def with_cells(**changed: list[Any]) -> Columns:
    """The plain table with other columns; those that are new come before the target."""
    columns = base() | changed
    return columns | {"y": columns.pop("y")}


def column(
    name: str, values: list[Any], write: Write | list[str], says: str = "", *, sign: str = ";",
    both: bool = False, seen: list[Any] | None = None,
) -> Odd:  # fmt: skip
    """A table whose column x means some values, and is written in some way."""
    texts = write if isinstance(write, list) else ["" if one is None else write(one) for one in values]
    data = plain_file(with_cells(x=texts), sign)
    return Odd(name, data, {"x": values if seen is None else seen}, says, both=both)


def only_said(name: str, texts: list[str], says: str, sign: str = ";") -> Odd:
    """A table whose column x has no one meaning: something must be said."""
    return Odd(name, plain_file(with_cells(x=texts), sign), None, says)


def joined(*parts: Iterator[Odd]) -> list[Odd]:
    """All tables of some parts; names are different."""
    every = [one for part in parts for one in part]
    names = [one.name for one in every]
    assert len(set(names)) == len(names), sorted({name for name in names if names.count(name) > 1})
    return every
