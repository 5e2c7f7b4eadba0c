"""The document of a study: tables, pictures and sections, as plain values that know no file."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from qmedoid.exceptions import ParameterError

Value = str | int | float | None

_PLAIN_NAME = re.compile(r"[a-z0-9_-]+")


@dataclass(frozen=True)
class Heading:
    """The heading of a column of a table, and how its values are written.

    Attributes
    ----------
    name : str
        Within its group.
    group : str
        Heading above this column and its neighbors of the same group; empty for none.
    digits : int
        Decimals of its floats.
    is_error : bool
        Whether it holds the standard errors of the column before it. A page joins the two by ±.
    """

    name: str
    group: str = ""
    digits: int = 4
    is_error: bool = False

    @property
    def label(self) -> str:
        """Group and name, for files whose header has one line."""
        return f"{self.group}: {self.name}" if self.group else self.name


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    name : str
        Of its file, without ending: small letters of ASCII, digits, ``_`` and ``-``.
    title, note : str
        What a page prints above and below it.
    columns : sequence of Heading
    rows : sequence of sequences
        A value per column; None is an empty cell.
    row_digits : sequence of int or None
        Decimals of the floats of each row, where not those of their column; empty for none.

    Raises
    ------
    ParameterError
        The name is none of a file, two columns have one label, the first column holds errors of nothing, or a row
        has more or fewer values than there are columns.
    """

    name: str
    title: str
    columns: Sequence[Heading]
    rows: Sequence[Sequence[Value]]
    note: str = ""
    row_digits: Sequence[int | None] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.row_digits and len(self.row_digits) != len(self.rows):
            raise ParameterError(
                f"Table {self.name!r} must have decimals for none of its rows or for each. It has {len(self.rows)} "
                f"rows and decimals for {len(self.row_digits)}."
            )
        if self.columns and self.columns[0].is_error:
            raise ParameterError(
                f"The first column of table {self.name!r} must not hold errors: they belong to the column before them. "
                f"Put {self.columns[0].label!r} behind the column that it is about."
            )
        if repeated := _repeated(self.labels):
            raise ParameterError(
                f"The columns of table {self.name!r} must have different labels. More than one is called "
                f"{repeated!r}. Give them other names or groups."
            )
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ParameterError(
                    f"Row {number} of table {self.name!r} must have {len(self.columns)} values, one per column. "
                    f"Got {len(row)}. Write None for an empty cell."
                )

    @property
    def labels(self) -> list[str]:
        """The header for files, which has one line: a column of errors is called after the one it belongs to."""
        labels: list[str] = []
        for column in self.columns:
            labels.append(f"{labels[-1]} {column.name}" if column.is_error else column.label)
        return labels

    def digits_of(self, row: int, column: int) -> int:
        """Decimals of a cell: those of its row, where it has some, else those of its column."""
        own = self.row_digits[row] if self.row_digits else None
        return self.columns[column].digits if own is None else own

    def cell_text(self, row: int, column: int) -> str:
        """A cell as it is written to files: floats rounded, without the sign of a zero, and None empty."""
        value = self.rows[row][column]
        if isinstance(value, float):
            return f"{value:z.{self.digits_of(row, column)}f}"
        return "" if value is None else str(value)


@dataclass(frozen=True)
class Picture:
    """A drawing in SVG; `name` is that of its file, without ending, and as plain as that of a table."""

    name: str
    title: str
    svg: str
    note: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)


@dataclass(frozen=True)
class Section:
    """A part of a report under a heading."""

    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Table | Picture] = ()


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes
    ----------
    findings : sequence of str
        What a reader should know first, a sentence or two each.
    provenance : mapping of str to str
        How it was made: command, seed, versions.

    Raises
    ------
    ParameterError
        Two tables, or two pictures, have one name. A table and a picture may share theirs.
    """

    title: str
    introduction: Sequence[str]
    findings: Sequence[str]
    sections: Sequence[Section]
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = {
            "tables": [table.name for table in self.tables],
            "pictures": [picture.name for picture in self.pictures],
        }
        for kind, of_kind in names.items():
            if repeated := _repeated(of_kind):
                raise ParameterError(
                    f"The {kind} of a document must have different names, "
                    f"because their files do. More than one is called {repeated!r}. Rename all but one."
                )

    @property
    def tables(self) -> list[Table]:
        """All tables, in order."""
        return [part for section in self.sections for part in section.parts if isinstance(part, Table)]

    @property
    def pictures(self) -> list[Picture]:
        """All pictures, in order."""
        return [part for section in self.sections for part in section.parts if isinstance(part, Picture)]


def _check_name(name: str) -> None:
    if not _PLAIN_NAME.fullmatch(name):
        raise ParameterError(
            f"The name of a table or picture must be made of a-z, 0-9, '_' and '-', because its file bears it. "
            f"Got {name!r} instead. Its title may be any text."
        )


def _repeated(names: Iterable[str]) -> str | None:
    """A name that occurs more than once, or None."""
    return next((name for name, count in Counter(names).items() if count > 1), None)
