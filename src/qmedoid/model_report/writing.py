"""A report as a file: summarized, drawn as a page, and written whole or not at all."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from qmedoid.exceptions import ParameterError
from qmedoid.model.table import TableModel
from qmedoid.model_report.live import left_out_for_size
from qmedoid.model_report.page import render
from qmedoid.model_report.reading import look_at_data
from qmedoid.model_report.summary import MOST_BYTES, Names, ReportSettings, summarize
from qmedoid.storage.atomic import atomic_file, check_target

SUFFIXES = (".html", ".htm")


class Report(NamedTuple):
    """A page that was written: where, its size in bytes, and the summary that it shows."""

    path: Path
    bytes: int
    summary: dict[str, Any]


def check_output(path: str | Path) -> Path:
    """The path of a page; raise where it is none, or cannot be written, before long work."""
    found = Path(path)
    if found.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"A report is a web page: its file must end in .html. Got {str(path)!r} instead.")
    check_target(found, is_report, "report of a model")
    return found


def is_report(start: bytes) -> bool:
    """Whether a file that begins so is a page that this command wrote, and may write again."""
    return b"<title>Model report" in start


def write_report(summary: Mapping[str, Any], path: str | Path, *, max_bytes: int = MOST_BYTES) -> Report:
    """Write the page of a summary; a live model that makes it too large is left out, with a sentence."""
    output, shown = check_output(path), dict(summary)
    content = render(shown).encode()
    if len(content) > max_bytes and "document" in shown["live"]:
        shown["live"] = left_out_for_size(len(content), max_bytes)
        content = render(shown).encode()
    with atomic_file(output) as file:
        file.write(content)
    return Report(output, len(content), shown)


def report_model(
    model: TableModel,
    path: str | Path,
    data: Any = None,
    *,
    sha256: str | None = None,
    target: str | None = None,
    on_mismatch: Any = "error",
    **settings: Any,
) -> Path:
    """Write the page of a model and, if given, of data in memory; see `SavedModel.report`."""
    output, asked = check_output(path), ReportSettings(**settings)
    looked = None if data is None else look_at_data(model, data, target=target, on_mismatch=on_mismatch)
    names = Names(sha256=sha256, table=None if looked is None else f"{looked.rows:,} rows in memory")
    return write_report(summarize(model, looked, names=names, settings=asked), output, max_bytes=asked.max_bytes).path
