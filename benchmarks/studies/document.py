"""The document of a study as plain values, and as files: a CSV per table, an SVG per picture, and one page.

Files of an earlier report are replaced where they are unchanged; other files of the folder are not.
"""

import csv
import hashlib
import io
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from qmedoid.exceptions import ParameterError, some_of
from qmedoid.markup.page import picture_file, render
from qmedoid.model.storage.atomic import atomic_file, cannot_write

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


PAGE, FINDINGS = "index.html", "findings.txt"
# The last line of a page: the SHA-256 of every file of its report, and of the page without this line.
_BEFORE, _AFTER = b"<!-- qmedoid report: ", b" -->\n"
# Numbers from here on are written with commas; a year or a seed of four digits reads better without.
_MANY = 10_000

Cell = dict[str, Any]


def check_replaceable(folder: str | Path, contents: Mapping[str, bytes] | None = None) -> None:
    """Raise where a file that no report wrote, or that was changed since, would be lost.

    Parameters
    ----------
    folder : str or Path
    contents : mapping of str to bytes, optional
        Files to be written, by name; without it, before long work, the page alone is checked.

    Raises
    ------
    ParameterError
        There is such a file.
    """
    folder = Path(folder)
    listed = _listed(folder)
    names = [PAGE] if contents is None else list(contents)
    foreign = [name for name in names if _would_be_lost(folder / name, listed, (contents or {}).get(name))]
    if foreign:
        raise ParameterError(
            f"The folder {str(folder)!r} holds files that no report of this command wrote, or that were changed since: "
            f"{some_of([repr(name) for name in foreign], 5)}. Give another folder, or --force to overwrite them."
        )


def _listed(folder: Path) -> dict[str, str]:
    """The SHA-256 of the files of the report that lies in a folder; nothing where there is none."""
    try:
        content = (folder / PAGE).read_bytes()
    except OSError:
        return {}
    body, mark, listing = content.rpartition(_BEFORE)
    try:
        found = json.loads(listing.removesuffix(_AFTER)) if mark else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.get(PAGE) == _digest(body) else {}


def _would_be_lost(file: Path, listed: Mapping[str, str], new: bytes | None) -> bool:
    if not file.is_file():  # a folder, say, is refused by whoever writes
        return False
    content = file.read_bytes()
    # A run that was stopped left files of a report whose page was not written yet; the same run writes the same again.
    if content == new:
        return False
    return file.name not in listed if file.name == PAGE else listed.get(file.name) != _digest(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def check_folder(folder: str | Path) -> None:
    """Make a folder when absent and see that files can be written to it: to ask before long work.

    Raises
    ------
    OutputError
        The folder cannot be made, or takes no files.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise cannot_write(folder, error) from error


def write_report(document: Document, folder: str | Path, *, force: bool = False) -> list[Path]:
    """Write a report.

    Every file is there whole or not at all, and the page is written last: where it is new, so is the rest. The same
    document gives the same bytes. Other files of the folder are left alone; a file that has the name of one of ours is
    replaced if an earlier report wrote it.

    Parameters
    ----------
    document : Document
    folder : str or Path
        Made when absent.
    force : bool
        Whether to overwrite files that no report wrote, or that were changed since.

    Returns
    -------
    list of Path
        The files, in the order of writing.

    Raises
    ------
    OutputError
        The folder cannot be made, or a file cannot be written.
    ParameterError
        A file would be lost that no report wrote; nothing was written.
    """
    folder = Path(folder)
    contents = _contents(document)
    check_folder(folder)
    if not force:
        check_replaceable(folder, contents)
    written = []
    for name, content in contents.items():
        with atomic_file(folder / name) as out:
            out.write(content)
        written.append(folder / name)
    return written


def csv_text(table: Table, provenance: Mapping[str, str]) -> str:
    """A table as CSV: a comment that says how it was made, a header, and a line per row."""
    out = io.StringIO()
    # A line even where there is nothing to say: who reads these files always skips one.
    out.write(_one_line("# " + " | ".join(f"{key}: {value}" for key, value in provenance.items())) + "\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.labels)
    for row in range(len(table.rows)):
        writer.writerow([table.cell_text(row, column) for column in range(len(table.columns))])
    return out.getvalue()


def _contents(document: Document) -> dict[str, bytes]:
    """What each file holds, by name: all of it, so that a document that cannot be written leaves no file behind."""
    contents = {f"{table.name}.csv": _encoded(csv_text(table, document.provenance)) for table in document.tables}
    for picture in document.pictures:
        contents[f"{picture.name}.svg"] = picture_file(picture.svg).encode()
    contents[FINDINGS] = _encoded("".join(f"{_one_line(finding)}\n" for finding in document.findings))
    page = _encoded(html_page(document))
    listing = {name: _digest(content) for name, content in (contents | {PAGE: page}).items()}
    contents[PAGE] = page + _BEFORE + json.dumps(listing, sort_keys=True).encode() + _AFTER
    return contents


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _encoded(text: str) -> bytes:
    # Commands and paths may hold bytes that were no UTF-8; they must not cost the report.
    return text.encode("utf-8", "replace")


def html_page(document: Document) -> str:
    """The page of a study: findings first, then the sections with their tables and pictures, and how it was made.

    Nothing in a title or a cell is markup. The same document gives the same text.
    """
    sections = [
        {"title": one.title, "paragraphs": one.paragraphs, "parts": [_part(part) for part in one.parts]}
        for one in document.sections
    ]
    return render(Path(__file__).with_name("study.html"), **vars(document) | {"sections": sections})


def _part(part: Table | Picture) -> dict[str, Any]:
    """A part in plain values. The id is made of its name, which is unlike that of any other part of its kind."""
    if isinstance(part, Picture):
        return {"anchor": f"picture-{part.name}", "title": part.title, "note": part.note, "picture": Markup(part.svg)}
    # Columns of errors share the place of the column before them.
    places = [place for place, column in enumerate(part.columns) if not column.is_error]
    kinds = {place: _alignment([row[place] for row in part.rows]) for place in places}
    return {
        "anchor": f"table-{part.name}", "title": part.title, "note": part.note, "picture": "",
        "head": _head(part, kinds),
        "rows": [[_cell(part, row, place, kind) for place, kind in kinds.items()] for row in range(len(part.rows))],
    }  # fmt: skip


def _alignment(values: list[Any]) -> str:
    """The class of a column: of numbers unless it holds texts alone."""
    has_text = any(isinstance(value, str) for value in values)
    return "" if has_text and not any(isinstance(value, int | float) for value in values) else "num"


def _head(table: Table, kinds: dict[int, str]) -> list[list[Cell]]:
    """One line of headings, or two where there are groups: a group spans its neighbors, the rest spans both lines."""
    has_groups = any(column.group for column in table.columns)
    above, below = list[Cell](), list[Cell]()
    for group, neighbors in groupby(kinds.items(), key=lambda item: table.columns[item[0]].group):
        own = [{"text": table.columns[place].name, "kind": kind, "lines": 1} for place, kind in neighbors]
        if group:
            above.append({"text": group, "kind": "group", "lines": 1, "columns": len(own)})
            below += own
        else:
            above += [{**one, "lines": 1 + has_groups} for one in own]
    return [above, below] if has_groups else [above]


def _cell(table: Table, row: int, place: int, kind: str) -> Cell:
    has_error = place + 1 < len(table.columns) and table.columns[place + 1].is_error
    # A name that goes on from the row above is paler, so that the eye sees where another begins.
    is_again = place == 0 and not kind and row > 0 and table.rows[row][0] == table.rows[row - 1][0]
    return {
        "text": _shown(table, row, place),
        "kind": "again" if is_again else kind,
        "has_error": has_error,
        "error": table.cell_text(row, place + 1) if has_error else "",
    }


def _shown(table: Table, row: int, column: int) -> str:
    """A cell for the eye: a dash for none, commas in large numbers, a minus as long as a plus."""
    value = table.rows[row][column]
    if value is None or isinstance(value, str):
        return "–" if value is None else value
    if isinstance(value, bool) or abs(value) < _MANY:
        text = table.cell_text(row, column)
    else:
        text = f"{value:,.{table.digits_of(row, column)}f}" if isinstance(value, float) else f"{value:,}"
    return text.replace("-", "−")
