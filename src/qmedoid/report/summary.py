"""What a report says, as plain values, and the page of it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from qmedoid._version import __version__
from qmedoid.arrays import Codes
from qmedoid.exceptions import MissingExtraError, ParameterError
from qmedoid.export.js.document import engine
from qmedoid.markup import page
from qmedoid.markup.html import plain
from qmedoid.markup.page import html_of_markdown
from qmedoid.model.cut import curve_counts
from qmedoid.model.model import Model
from qmedoid.model.operating_point import Counts
from qmedoid.model.storage.atomic import atomic_file, check_target
from qmedoid.model.storage.card import model_card
from qmedoid.model.training_summary import seen_in_words
from qmedoid.report.documents import (
    EvaluatedDict,
    ReportBaselinesDict,
    ReportCircuitDict,
    ReportModelDict,
    ReportOperatingDict,
    ReportTableDict,
    SummaryDict,
)
from qmedoid.report.figures import calibration, held_out_figures, opening, stored_figures, table_figures
from qmedoid.report.findings import ReportFacts, evaluate_findings
from qmedoid.report.operating import RankedLogOdds, at_counts, operating
from qmedoid.report.parts import (
    MOST_BYTES,
    ReportSettings,
    column_list,
    effects,
    graph,
    holds,
    importances,
    kept_rows,
    left_out_for_size,
    live,
    medoid_rows,
    pairs,
    start_record,
    together,
)
from qmedoid.report.reading import Looked, look_at_data
from qmedoid.report.unseen import OUTCOMES, curve_squares, errors, evaluated_rows, slices, squares
from qmedoid.tables.evaluating import SEEN, labeled_report, without_seen
from qmedoid.tables.targets import UNKNOWN

FORMAT = 1
"""Of the summary."""
MOST_LEFT_OUT = 200
"""Columns that were left out and are listed at most, and letters of the reason."""


def summarize(
    model: Model,
    looked: Looked | None = None,
    *,
    names: Mapping[str, str | None] | None = None,
    settings: ReportSettings | None = None,
    baselines: ReportBaselinesDict | None = None,
    stability: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The summary of a model, and of what it decides about a table if one was looked at.

    Parameters
    ----------
    model : Model
    looked : Looked or None
    names : mapping of str to str, optional
        What the page calls its files: ``"model"``, its ``"sha256"``, ``"table"``, and the ``"command"`` that makes it.
    settings : ReportSettings
    baselines, stability : mapping or None
        What layers above found, in the form of the summary.
    """
    names = {**dict.fromkeys(("model", "sha256", "table", "command")), **(names or {})}
    settings = settings or ReportSettings()
    counted = looked
    if looked is not None and not settings.all_rows:
        counted = replace(looked, codes=without_seen(model, looked.codes, looked.hashes))
    known = None if model.medoids is None else kept_rows(model) if looked is None else looked.sample
    importance = model.importances if looked is None or known is None else importances(model, known)
    sets, found = together(model, known), None if counted is None else evaluated_rows(model, counted)
    held_out = _held_out(model)
    summary: SummaryDict = {
        "format": FORMAT,
        "made": {
            "qmedoid": __version__,
            "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "model": names["model"],
            "sha256": names["sha256"],
            "table": names["table"],
            "command": names["command"],
        },
        "model": _model(model, settings),
        "columns": column_list(model, importance),
        "n_columns": len(model.contract.columns),
        "left_out": [
            {"name": name, "reason": reason[:MOST_LEFT_OUT]}
            for name, reason in list(model.contract.left_out.items())[:MOST_LEFT_OUT]
        ],
        **_evaluation(model, counted, held_out, settings),
        "baselines": baselines,
        "effects": [] if known is None or importance is None else effects(model, known, importance),
        "pairs": pairs(model, sets),
        "groups": graph(model, sets, importance),
        "medoids": medoid_rows(model) if settings.rows else None,
        "circuit": trained_circuit(model),
        "stability": None if stability is None else dict(stability),
        "table": None if looked is None or counted is None else _table(model, looked, counted.codes, settings),
        "squares": None,
        "errors": None,
        "slices": [],
        "start_record": start_record(model, with_rows=settings.rows),
        "expected": None,
    }
    if counted is not None and found is not None:
        summary["squares"] = squares(model, counted, found, with_rows=settings.rows)
        summary["errors"] = errors(model, counted, found, with_rows=settings.rows)
        summary["slices"] = slices(model, found, importance)
        if settings.rows and summary["squares"] is not None:
            n_rows = len(summary["squares"]["rank"])
            summary["model"]["holds"] += f" It also holds cells of {n_rows:,} rows of the table, one for each square."
    elif held_out is not None and not held_out[0].is_compressed:
        summary["squares"] = curve_squares(model, held_out[0])
    point = model.decision.operating
    if point is not None and point.counts is not None and point.prevalence is None:
        # Counts of the held-out rows at the present cut, of two classes.
        tp, fp, fn, tn = point.counts
        summary["expected"] = {"tp": tp, "fp": fp, "fn": fn, "tn": tn, "draws_per_row": point.draws_per_row}
    made: dict[str, Any] = {
        **summary,
        "findings": evaluate_findings(ReportFacts(summary, model, looked, importance), settings.ignore),
    }
    made["opening"] = opening(made)
    made["live"] = live(model, names["sha256"], settings, made)
    return made


def _model(model: Model, settings: ReportSettings) -> ReportModelDict:
    decision, medoids, training = model.decision, model.medoids, model.training
    raw_rows = model.records is not None and settings.rows
    weights = zip([part.name for part in model.parts], model.weights.tolist(), strict=True)
    return {
        "target": model.contract.target,
        "classes": list(decision.classes),
        "positive": decision.classes[1] if len(decision.classes) == 2 else None,
        "probabilistic": decision.probabilistic,
        "decided_by": _decided_by(model),
        "parts": [{"name": name, "weight": weight} for name, weight in weights],
        "n_medoids": 0 if medoids is None else len(medoids.numbers),
        "n_neighbors": len(model.neighbors),
        "training_rows": None if training is None else training.n_rows,
        "class_shares": None if decision.priors is None else decision.priors.tolist(),
        "threshold": None if decision.operating is None else decision.operating.threshold,
        "rule": None if decision.operating is None else decision.operating.rule,
        "parameters": dict(model.parameters),
        "card": model_card(model, raw_rows=raw_rows),
        "holds": holds(model, settings),
    }


def _decided_by(model: Model) -> str:
    words = model.facts["description"]
    if model.medoids is None:
        return words
    if model.policy == "selective":
        return f"{words}; records with a narrow margin by a small trained quantum circuit, simulated exactly"
    return "a trained quantum circuit on distances to medoids" if model.policy == "always" else words


def _held_out(model: Model) -> tuple[RankedLogOdds, Counts] | None:
    """The out-of-fold rows of two classes, and their counts at the present cut."""
    decision, curve = model.decision, None if model.training is None else model.training.curve
    if curve is None or not decision.probabilistic or len(decision.classes) != 2:
        return None
    shift = 0.0 if decision.shift is None else decision.shift.of_log_odds
    return RankedLogOdds.of_curve(curve, shift), curve_counts(curve, (decision.cut or 0.0) - shift)


def _evaluation(
    model: Model, looked: Looked | None, held_out: tuple[RankedLogOdds, Counts] | None, settings: ReportSettings
) -> EvaluatedDict:
    """Figures, confusion, operating point and calibration: of the table, else of held-out rows."""
    decision, days = model.decision, None if model.training is None else model.training.days
    per_day = None if days is None else float(days.counts.sum()) / len(days.days)
    labels = [str(label) for label in decision.classes]
    source: Literal["table", "held-out"] = "held-out"
    ranked, curve, is_new = None, None, cast("bool | None", True)
    seen = 0 if looked is None else int((looked.codes == SEEN).sum())
    said = f" All {seen:,} rows of the table that have a class were seen in fitting, and show nothing new."
    stored = model.metrics.get("held_out")
    if looked is not None and looked.is_labeled:
        report, known = labeled_report(model, looked.codes, looked.decided, looked.hashes), looked.codes >= 0
        codes, scores, margins = looked.codes[known], looked.decided.scores[known], looked.decided.margins[known]
        # Whether the fit has seen none of the rows that are counted; None where that is not known.
        is_new = None if report["seen"] is None else bool(report["left_out"]["seen"] or not report["seen"]["rows"])
        source, n, confusion = "table", len(codes), report["confusion"]
        on, about = _rows_on(report), _about_table(report)
        figures = table_figures(report, decision, codes, margins, scores)
        curve = calibration(report, decision, codes, scores)
        if len(labels) == 2 and decision.probabilistic:
            ranked, stops = RankedLogOdds(codes == 1, scores[:, 1] - scores[:, 0]), "rows of the table"
    elif held_out is not None:
        ranked, (tp, fp, fn, tn) = held_out
        n, confusion, stops = tp + fp + fn + tn, [[tn, fp], [fn, tp]], "out-of-fold rows of the fit"
        on = f"{n:,} training rows, each decided by a fit that had not seen it (out-of-fold)"
        about = f"{on}, at the present cut.{said if seen else ''}"
        at_cut = at_counts(decision, decision.cut or 0.0, held_out[1], is_held_out=True)
        figures = held_out_figures(at_cut, ranked.positive, ranked.log_odds)
    elif isinstance(stored, Mapping) and "confusion" in stored:
        n, confusion, figures = stored["rows"], stored["confusion"], stored_figures(stored, len(labels))
        on = f"{n:,} rows that the fit held out"
        about = f"{on}, from the model file.{said if seen else ''}"
    else:
        return {"figures": None, "confusion": None, "operating": None, "calibration": None}
    about = f"{about[0].upper()}{about[1:]}"
    point: ReportOperatingDict | None = None
    if ranked is not None:
        counted = f"Counted on {n:,} {stops}; intervals are Clopper and Pearson's, at 95 %."
        if per_day is not None:
            counted += f" Alerts per day are for {per_day:,.6g} rows per day, the mean of the training rows."
        cuts = operating(ranked, decision, cost=settings.cost, rows_per_day=per_day)
        point = {**cuts, "source": source, "about": counted}
    return {
        "figures": {"source": source, "on": on, "is_new": is_new, "about": about, "rows": n, "figures": figures},
        "confusion": {"labels": labels, "counts": confusion, "about": about},
        "operating": point,
        "calibration": curve,
    }


def _rows_on(report: Mapping[str, Any]) -> str:
    """Which rows a report on a table is of, and whether the model has seen them."""
    rows, seen, left_out = f"{report['rows']:,}", report["seen"], report["left_out"]["seen"]
    if seen is None:
        return f"{rows} rows of the table; whether the model has seen them is not known, as it keeps no hashes"
    if seen["rows"] and not left_out:
        return f"{rows} rows of the table, {seen['rows']:,} of which were seen in fitting"
    checked = "" if seen["checked"] >= report["rows"] or left_out else f" ({seen['checked']:,} were checked)"
    return f"{rows} rows the model has never seen{checked}"


def _about_table(report: Mapping[str, Any]) -> str:
    left_out, seen = report["left_out"], seen_in_words(report["seen"], report["rows"])
    kinds = {"seen": "seen in fitting (--all-rows counts them)", "missing": "without a class",
             "unknown": "of other classes"}  # fmt: skip
    about = f"{_rows_on(report)}."
    if any(left_out.values()):
        said = [f"{left_out[key]:,} rows {words}" for key, words in kinds.items() if left_out[key]]
        about += f" Left out: {', '.join(said)}."
    if seen is not None and not left_out["seen"]:
        about += f" {seen[0].upper()}{seen[1:]}"
    return about


def _table(model: Model, looked: Looked, counted: Codes, settings: ReportSettings) -> ReportTableDict:
    """What there is to say of a table; rows that `counted` calls seen are left out, unless there are no others."""
    labels, labeled = model.decision.classes, looked.codes >= 0
    codes, is_new = looked.decided.codes, counted != SEEN
    codes = codes[is_new] if is_new.any() else codes
    called = np.bincount(codes, minlength=len(labels)).tolist()
    drift = seen = None
    if model.decision.operating is not None and len(labels) == 2:
        drift = model.decision.operating.drift(int(called[1]), len(codes))
    if model.seen is not None and looked.hashes is not None and labeled.any():
        seen = model.seen.among(looked.hashes[labeled])
    return {
        "rows": looked.rows,
        "target": looked.target,
        "labeled": int(labeled.sum()),
        "unknown_labels": int((looked.codes == UNKNOWN).sum()),
        "called": [{"class": str(label), "rows": n} for label, n in zip(labels, called, strict=True)],
        "drift": None if drift is None else drift._asdict(),
        "seen": None if seen is None else {"rows": seen[0], "checked": seen[1]},
        "counts_seen": settings.all_rows,
        "novelty": {**looked.novelty.as_dict(), "lines": looked.novelty.lines()},
        "difference": {**looked.difference.as_dict(), "lines": looked.difference.lines()},
    }


MOST_STEPS = 500
"""Steps of the loss that are shown at most, evenly spread."""


def trained_circuit(model: Model) -> ReportCircuitDict | None:
    """The circuit of the best model; None where it has none."""
    circuit = model.circuit
    if circuit is None:
        return None
    ansatz = circuit.network.ansatz
    decides = {"always": "It decides every record.", "selective": "It decides records with a narrow margin."}
    about = [
        f"{ansatz.n_qubits} qubits, {ansatz.n_inputs} inputs, {ansatz.n_reps} repetitions; it is simulated exactly.",
        decides.get(model.policy, "It takes part in decisions."),
    ]
    drawn, loss, kept = None, None, model.metrics.get("loss_curve")
    try:
        from qmedoid.quantum.circuits import export

        drawn = export.drawing(export.trained_circuit(circuit))
    except (ImportError, MissingExtraError):
        about.append("To see it drawn, install the extra 'quantum'.")
    if isinstance(kept, list | tuple) and kept:
        loss = [float(value) for value in kept[:: -(-len(kept) // MOST_STEPS)]]
    about.append("The loss is that of the batches." if loss is not None else "The file keeps no loss of its training.")
    return {"drawing": drawn, "loss": loss, "about": " ".join(about)}


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
