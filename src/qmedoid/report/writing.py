"""A report as one page of HTML that loads nothing and runs nothing but its own script, and as a file."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from qmedoid.exceptions import ParameterError
from qmedoid.export.javascript import engine
from qmedoid.markup import page
from qmedoid.markup.html import plain
from qmedoid.markup.page import html_of_markdown
from qmedoid.model.storage.atomic import atomic_file, check_target
from qmedoid.model.table import TableModel
from qmedoid.report.parts import MOST_BYTES, ReportSettings, left_out_for_size
from qmedoid.report.reading import look_at_data
from qmedoid.report.summary import summarize
from qmedoid.report.unseen import OUTCOMES

SCRIPTS = ("base.js", "slider.js", "controls.js", "medoids.js", "whatif.js", "squares.js")
"""Files of the page's script, in the order in which they run."""
_SIGNS = {"problem": "✕", "tip": "!", "passed": "✓", "not applicable": "–", "ignored": "–"}
_LONG = {"card": 100_000, "drawing": 100_000, "text": 20_000, "command": 2_000, "about": 2_000}
"""Characters that are shown of longer texts, by their keys; all others are names, cells and sentences."""
_SENTENCES = ("why", "do", "title", "holds", "reason", "absent", "encoding", "decided_by", "headline", "sentences")
_LENGTHS = {**dict.fromkeys(_SENTENCES, 1_000), **_LONG}


class Report(NamedTuple):
    """A page that was written: where, its size in bytes, and the summary that it shows."""

    path: Path
    bytes: int
    summary: dict[str, Any]


def script(*, is_live: bool) -> str:
    """The page's script, with the engine before it where a model is in the page."""
    folder = files("qmedoid.report") / "assets"
    return "\n".join([*([engine()] if is_live else []), *((folder / name).read_text("utf-8") for name in SCRIPTS)])


def shown(value: Any, key: str = "") -> Any:
    """A summary in which every text is fit to be shown: short, and without characters that steer what follows."""
    if isinstance(value, str):
        return plain(value, _LENGTHS.get(key, 120), keep="\n" if key in _LONG else "")
    if isinstance(value, Mapping):
        return {plain(name): shown(one, name) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [shown(one, key) for one in value]
    return value


def render(summary: Mapping[str, Any]) -> str:
    """The page of a summary (see `qmedoid.report.summary`); the same summary gives the same text.

    Every text of the summary is escaped, and shortened where it is long: nothing in a name, a level or a cell is
    markup.
    """
    document = summary["live"].get("document")
    parts = shown({name: value for name, value in summary.items() if name not in ("live", "start_record")})
    drawn, ranked = parts["squares"], sorted(summary["columns"], key=lambda column: -(column["importance"] or 0.0))
    start, positive = summary["start_record"], summary["model"].get("positive")
    data: dict[str, Any] = {
        "operating": parts["operating"] and {**parts["operating"], "curves": None},
        # Cells are put into the what-if panel as they are.
        "squares": drawn and {**drawn, "tenths": None, "cells": summary["squares"]["cells"]},
        "whatIf": document and {"start": start, "order": [one["name"] for one in ranked], "positive": positive},
    }
    return page.render(
        "report.html",
        script=script(is_live=document is not None),
        data={**({} if document is None else {"live-data": document}), "report-data": data},
        summary=parts,
        ranked=[one for one in parts["columns"] if one["importance"]],
        parts=[(f"Part: {one['name']}", f"{one['weight']:.3g}") for one in parts["model"]["parts"]],
        card=html_of_markdown(parts["model"]["card"], 3) if parts["model"].get("card") else None,
        absent=shown(summary["live"].get("absent"), "absent"),
        signs=_SIGNS,
        kinds=OUTCOMES,
    )


def check_output(path: str | Path) -> Path:
    """The path of a page; raise where it is none, or cannot be written, before long work."""
    found = Path(path)
    if found.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"A report is a web page: its file must end in .html. Got {str(path)!r} instead.")
    # A page that this command wrote it may write again.
    check_target(found, lambda start: b"<title>Model report" in start, "report of a model")
    return found


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
    names = {"sha256": sha256, "table": None if looked is None else f"{looked.rows:,} rows in memory"}
    return write_report(summarize(model, looked, names=names, settings=asked), output, max_bytes=asked.max_bytes).path
