"""A report as files in a folder: a CSV per table, two formats per picture, the findings, and the page."""

import csv
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path

from qmedoid.reporting.document import Document, Table
from qmedoid.reporting.ownership import check_replaceable, signed_page
from qmedoid.reporting.page import html_page
from qmedoid.storage.atomic import atomic_file, cannot_write

PAGE = "index.html"
FINDINGS = "findings.txt"


def check_report_folder(folder: str | Path) -> None:
    """Raise where the page of a report would overwrite what is not ours: to ask before long work."""
    check_replaceable(Path(folder), PAGE)


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
        check_replaceable(folder, PAGE, contents)
    written = []
    for name, content in contents.items():
        with atomic_file(folder / name) as out:
            out.write(content)
        written.append(folder / name)
    return written


def csv_text(table: Table, provenance: Mapping[str, str]) -> str:
    """A table as CSV: a comment that says how it was made, a header, and a line per row."""
    out = io.StringIO()
    out.write(_comment(provenance) + "\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.labels)
    for row in range(len(table.rows)):
        writer.writerow([table.cell_text(row, column) for column in range(len(table.columns))])
    return out.getvalue()


def _contents(document: Document) -> dict[str, bytes]:
    """What each file holds, by name: all of it, so that a document that cannot be written leaves no file behind."""
    contents = {f"{table.name}.csv": _encoded(csv_text(table, document.provenance)) for table in document.tables}
    for picture in document.pictures:
        contents[f"{picture.name}.png"] = picture.png
        contents[f"{picture.name}.svg"] = picture.svg
    contents[FINDINGS] = _encoded("".join(f"{_one_line(finding)}\n" for finding in document.findings))
    contents[PAGE] = signed_page(_encoded(html_page(document)), PAGE, contents)
    return contents


def _comment(provenance: Mapping[str, str]) -> str:
    # A line even where there is nothing to say: who reads these files always skips one.
    return _one_line("# " + " | ".join(f"{key}: {value}" for key, value in provenance.items()))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _encoded(text: str) -> bytes:
    # Commands and paths may hold bytes that were no UTF-8; they must not cost the report.
    return text.encode("utf-8", "replace")
