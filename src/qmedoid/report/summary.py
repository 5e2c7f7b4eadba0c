"""What a report says, as plain values, and the page of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from qmedoid._version import __version__
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.export.javascript import as_document, engine
from qmedoid.markup import page
from qmedoid.markup.charts import plain
from qmedoid.model.model import Model
from qmedoid.model.storage.atomic import atomic_file, check_target
from qmedoid.report.documents import ReportBaselinesDict, ReportExpectedDict, ReportModelDict, SummaryDict
from qmedoid.report.evaluation import evaluated
from qmedoid.report.findings import FINDINGS, evaluate_findings
from qmedoid.report.parts import MOST_MEDOIDS, OUTCOMES, describe, plain_cells
from qmedoid.report.reading import Looked, look_at_data
from qmedoid.report.verdict import opening
from qmedoid.spelling import did_you_mean
from qmedoid.tables.evaluating import without_seen

FORMAT = 2
"""Of the summary."""
MOST_BYTES = 3_000_000
"""Size of a page at most, with its live model."""


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """The settings of a report.

    Attributes
    ----------
    cost : float or None
        What a missed positive costs, in false alerts.
    rows : bool
        Whether real rows are shown: medoids, and a live model, which holds rows.
    live : bool
        Whether the model itself is in the page.
    max_bytes : int
        Size of the page from which on the live model is left out.
    ignore : tuple of str
        Codes of findings to ignore.
    all_rows : bool
        Whether rows of a table that the fit has seen are counted as well.
    """

    cost: float | None = None
    rows: bool = True
    live: bool = True
    max_bytes: int = MOST_BYTES
    ignore: tuple[str, ...] = ()
    all_rows: bool = False

    def __post_init__(self) -> None:
        for code in self.ignore:
            if code not in FINDINGS:
                near = did_you_mean(code, FINDINGS)
                raise ParameterError(f"There is no finding {code!r}.{near} There are {', '.join(sorted(FINDINGS))}.")


def summarize(
    model: Model,
    looked: Looked | None = None,
    *,
    names: Mapping[str, str | None] | None = None,
    settings: ReportSettings | None = None,
    baselines: ReportBaselinesDict | None = None,
) -> dict[str, Any]:
    """The summary of a model, and of what it decides about a table if one was looked at.

    Parameters
    ----------
    model : Model
    looked : Looked or None
    names : mapping of str to str, optional
        What the page calls its files: ``"model"``, its ``"sha256"``, ``"table"``, and the ``"command"`` that makes it.
    settings : ReportSettings
    baselines : mapping or None
        What layers above found, in the form of the summary.
    """
    names, settings = names or {}, settings or ReportSettings()
    counted, sample = looked, None if looked is None else looked.sample
    if looked is not None and not settings.all_rows:
        counted = replace(looked, codes=without_seen(model, looked.codes, looked.hashes))
    shown = evaluated(model, counted, cost=settings.cost)
    about, importance = describe(model, counted, with_rows=settings.rows)
    holds = _holds(model, settings)
    if counted is not None and settings.rows and about["squares"] is not None:
        holds += f" It also holds cells of {len(about['squares']['rank']):,} rows of the table, one for each square."
    point = model.decision.operating
    expected: ReportExpectedDict | None = None
    if point is not None and point.counts is not None and point.prevalence is None:
        # Counts of the held-out rows at the present cut, of two classes.
        tp, fp, fn, tn = point.counts
        expected = {"tp": tp, "fp": fp, "fn": fn, "tn": tn, "draws_per_row": point.draws_per_row}
    summary: SummaryDict = {
        "format": FORMAT,
        "made": {
            "qmedoid": __version__,
            "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "model": names.get("model"),
            "sha256": names.get("sha256"),
            "table": names.get("table"),
            "command": names.get("command"),
        },
        "model": _fitted(model, holds),
        **about,
        **shown,
        "baselines": baselines,
        "expected": expected,
    }
    made: dict[str, Any] = {**summary}
    made["findings"] = evaluate_findings(made, model, sample, importance, settings.ignore)
    made["opening"] = opening(made)
    made["live"] = _live(model, names.get("sha256"), settings)
    return made


def _fitted(model: Model, holds: str) -> ReportModelDict:
    decision, medoids, training = model.decision, model.medoids, model.training
    decided_by = model.facts["description"]
    if model.policy == "selective":
        decided_by += "; records with a narrow margin by a small trained quantum circuit, simulated exactly"
    elif model.refinement is not None:
        decided_by = "a trained quantum circuit on distances to medoids"
    return {
        "target": model.contract.target,
        "classes": list(decision.classes),
        "positive": decision.classes[1] if len(decision.classes) == 2 else None,
        "probabilistic": decision.probabilistic,
        "decided_by": decided_by,
        "parts": dict(zip([part.name for part in model.parts], model.weights.tolist(), strict=True)),
        "n_medoids": 0 if medoids is None else len(medoids.numbers),
        "n_neighbors": model.n_neighbors,
        "training_rows": None if training is None else training.n_rows,
        "class_shares": None if decision.priors is None else decision.priors.tolist(),
        "threshold": None if decision.operating is None else decision.operating.threshold,
        "rule": None if decision.operating is None else decision.operating.rule,
        "parameters": dict(model.parameters),
        "holds": holds,
    }


def _holds(model: Model, settings: ReportSettings) -> str:
    """Which rows of the training table a page holds, in sentences."""
    medoids = model.medoids
    if not settings.rows:
        return "This page holds no rows of the training table: they were left out (--no-rows)."
    said = "This page holds no row of the training table as it was there: the model was saved without them."
    if model.records:
        n_raw = len(model.records)
        said = f"This page holds {n_raw:,} rows of the training table as they were there, the medoids."
    if settings.live and medoids is not None:
        further = f" and {model.n_neighbors:,} further rows" if model.n_neighbors else ""
        said += (
            f" Where the page has its live model, it holds the numbers that the model compares with, of "
            f"{len(medoids.numbers):,} medoids{further}: values of columns can be computed back."
        )
    return f"{said} Whoever can read the page can read them."


def _live(model: Model, sha256: str | None, settings: ReportSettings) -> dict[str, Any]:
    """The document of the model, or why there is none."""
    if not settings.live:
        return {"absent": "The live model was left out (--no-live)."}
    if not settings.rows:
        return {"absent": "The live model was left out, as it holds rows of the training table (--no-rows)."}
    try:
        document = as_document(model, sha256)
    except ModelError as error:
        return {"absent": str(error)}
    if len(document["medoids"]["records"] or ()) > MOST_MEDOIDS:
        # Scoring needs their numbers alone, and the list of medoids has some of them as they were.
        document["medoids"]["records"] = None
    elif document["medoids"]["records"]:
        document["medoids"]["records"] = plain_cells(model, document["medoids"]["records"])
    return {"document": document}


SCRIPTS = ("base.js", "slider.js", "controls.js", "medoids.js", "whatif.js", "squares.js")
"""Files of the page's script, in the order in which they run."""
_SIGNS = {"problem": "✕", "tip": "!", "passed": "✓", "not applicable": "–", "ignored": "–"}
_LONG = {"text": 20_000, "command": 2_000, "about": 2_000}
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
        "squares": drawn and {**drawn, "cells": summary["squares"]["cells"]},
        "whatIf": document and {"start": start, "order": [one["name"] for one in ranked], "positive": positive},
    }
    return page.render(
        "report.html",
        script=script(is_live=document is not None),
        data={**({} if document is None else {"live-data": document}), "report-data": data},
        summary=parts,
        ranked=[one for one in parts["columns"] if one["importance"]],
        parts=[(f"Part: {name}", f"{weight:.3g}") for name, weight in parts["model"]["parts"].items()],
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
        shown["live"] = {
            "absent": f"The live model was left out: with it the page would have {len(content) / 1e6:.1f} MB, and "
            f"{max_bytes / 1e6:.1f} MB are allowed. 'qmedoid export' writes it to a file."
        }
        content = render(shown).encode()
    with atomic_file(output) as file:
        file.write(content)
    return Report(output, len(content), shown)


def report_model(
    model: Model,
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
