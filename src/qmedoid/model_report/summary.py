"""The summary of a model: everything that its page shows, as plain values fit for JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from qmedoid._version import __version__
from qmedoid.arrays import Codes
from qmedoid.exceptions import MissingExtraError
from qmedoid.metrics.texts import count_text
from qmedoid.model.cut import curve_counts
from qmedoid.model.seen_rows import seen_in_words
from qmedoid.model.table import Decisions, TableModel
from qmedoid.model_report.columns import (
    KnownRows,
    column_list,
    effects,
    graph,
    importances,
    left_out_list,
    pairs,
    together,
)
from qmedoid.model_report.figures import calibration, held_out_figures, opening, stored_figures, table_figures
from qmedoid.model_report.findings import gather, judged
from qmedoid.model_report.operating import RankedRows, at_counts, operating
from qmedoid.model_report.reading import Looked
from qmedoid.model_report.rows import holds, kept_rows, live, medoid_rows, start_record
from qmedoid.model_report.unseen import curve_squares, errors, judges, slices, squares
from qmedoid.storage.card import model_card
from qmedoid.tables.evaluating import SEEN, labeled_report, without_seen
from qmedoid.variational.model import VariationalModel

FORMAT = 1
"""Of the summary."""
MOST_BYTES = 3_000_000
"""Size of a page at most, with its live model."""


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """What a report is asked for.

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
        Codes of findings that are not judged.
    all_rows : bool
        Whether rows of a table that the fit has seen are counted as well.
    """

    cost: float | None = None
    rows: bool = True
    live: bool = True
    max_bytes: int = MOST_BYTES
    ignore: tuple[str, ...] = ()
    all_rows: bool = False


@dataclass(frozen=True, kw_only=True)
class Names:
    """What a page calls its files: model and table, the hash of the model, and the command that makes the page."""

    model: str | None = None
    sha256: str | None = None
    table: str | None = None
    command: str | None = None


def summarize(
    model: TableModel,
    looked: Looked | None = None,
    *,
    names: Names | None = None,
    settings: ReportSettings | None = None,
    baselines: Mapping[str, Any] | None = None,
    stability: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The summary of a model, and of what it decides about a table if one was looked at.

    Parameters
    ----------
    model : TableModel
    looked : Looked or None
    names : Names
    settings : ReportSettings
    baselines, stability : mapping or None
        What layers above found, in the form of the summary.
    """
    names, settings = names or Names(), settings or ReportSettings()
    counted = looked
    if looked is not None and not settings.all_rows:
        counted = replace(looked, codes=without_seen(model, looked.codes, looked.hashes))
    known, importance = None, model.importances
    if model.method is not None and looked is not None:
        known = KnownRows(looked.sample.table, looked.sample.encoded)
        importance = importances(model, known)
    elif model.method is not None:
        known = kept_rows(model)
    sets, found = together(model, known), None if counted is None else judges(model, counted)
    summary: dict[str, Any] = {
        "format": FORMAT,
        "made": _made(names),
        "model": _model(model, settings),
        "columns": column_list(model, importance),
        "n_columns": len(model.contract.columns),
        "left_out": left_out_list(model),
        **_judged(model, counted, settings),
        "baselines": None if baselines is None else dict(baselines),
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
        "expected": _expected(model),
    }
    if counted is not None and found is not None:
        summary["squares"] = squares(model, counted, found, with_rows=settings.rows)
        summary["errors"] = errors(model, counted, found, with_rows=settings.rows)
        summary["slices"] = slices(model, found, importance)
        if settings.rows and summary["squares"] is not None:
            n_rows = len(summary["squares"]["rank"])
            summary["model"]["holds"] += f" It also holds cells of {n_rows:,} rows of the table, one for each square."
    elif summary["operating"] is not None:
        summary["squares"] = _held_out_squares(model)
    summary["findings"] = judged(gather(model, looked, summary, importance), settings.ignore)
    summary["opening"] = opening(summary)
    summary["live"] = live(
        model, names.sha256, is_wanted=settings.live, with_rows=settings.rows, max_bytes=settings.max_bytes,
        summary=summary,
    )  # fmt: skip
    return summary


def _made(names: Names) -> dict[str, Any]:
    now = datetime.now(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
    return {
        "qmedoid": __version__, "time": now, "model": names.model, "sha256": names.sha256, "table": names.table,
        "command": names.command,
    }  # fmt: skip


def _model(model: TableModel, settings: ReportSettings) -> dict[str, Any]:
    decision, method, training = model.decision, model.method, model.training
    raw_rows = model.records is not None and settings.rows
    return {
        "target": model.contract.target,
        "classes": list(decision.classes),
        "positive": decision.classes[1] if len(decision.classes) == 2 else None,
        "probabilistic": decision.probabilistic,
        "decided_by": _decided_by(model),
        "parts": _parts(model),
        "n_medoids": 0 if method is None else len(method.medoid_rows),
        "n_neighbors": model.n_neighbors,
        "training_rows": None if training is None else training.n_rows,
        "class_shares": None if decision.priors is None else decision.priors.tolist(),
        "threshold": None if decision.operating is None else decision.operating.threshold,
        "rule": None if decision.operating is None else decision.operating.rule,
        "parameters": dict(model.parameters),
        "card": model_card(model, raw_rows=raw_rows),
        "holds": holds(model, settings.rows, settings.live),
    }


def _decided_by(model: TableModel) -> str:
    if model.method is None:
        return "a trained quantum circuit, simulated exactly"
    words = model.method.description
    if model.refinement == "selective":
        return f"{words}; records with a narrow margin by a small trained quantum circuit, simulated exactly"
    return "a trained quantum circuit on distances to medoids" if model.refinement == "always" else words


def _parts(model: TableModel) -> list[dict[str, Any]]:
    method = model.method
    if method is None:
        return [{"name": "circuit", "weight": 1.0}]
    weights = method.facts.get("weights") or {method.name: 1.0}
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


def _judged(model: TableModel, looked: Looked | None, settings: ReportSettings) -> dict[str, Any]:
    """Figures, confusion, operating point and calibration: of the table, else of held-out rows."""
    days = None if model.training is None else model.training.days
    per_day = None if days is None else float(days.counts.sum()) / len(days.days)
    if looked is not None and looked.is_labeled:
        report = labeled_report(model, looked.codes, looked.decided, looked.hashes)
        return _of_table(model, looked, report, settings, per_day)
    seen = 0 if looked is None else int((looked.codes == SEEN).sum())
    said = (
        f" All {seen:,} rows of the table that have a class were seen in fitting, and show nothing new." if seen else ""
    )
    return _of_held_out(model, settings, per_day, said)


def _of_table(
    model: TableModel, looked: Looked, report: dict[str, Any], settings: ReportSettings, per_day: float | None
) -> dict[str, Any]:
    decision, known = model.decision, looked.codes >= 0
    codes = looked.codes[known]
    decided = Decisions._make([*(array[known] for array in looked.decided[:4]), None])
    about = _about_table(report)
    labels = [str(label) for label in decision.classes]
    cuttable = len(labels) == 2 and decision.probabilistic
    point = None
    if cuttable:
        rows = RankedRows(codes == 1, decided.scores[:, 1] - decided.scores[:, 0])
        point = {
            **operating(rows, decision, cost=settings.cost, rows_per_day=per_day),
            "source": "table", "about": _about_stops(f"{len(codes):,} rows of the table", per_day),
        }  # fmt: skip
    return {
        "figures": {
            "source": "table", "on": _rows_on(report), "is_new": _is_new(report), "about": about,
            "rows": report["rows"],
            "figures": table_figures(report, decision, codes, decided.margins, decided.scores),
        },
        "confusion": {"labels": labels, "counts": report["confusion"], "about": about},
        "operating": point,
        "calibration": calibration(report, decision, codes, decided.scores),
    }  # fmt: skip


def _rows_on(report: Mapping[str, Any]) -> str:
    """Which rows a report on a table is of, and whether the model has seen them."""
    rows, seen, left_out = count_text(report["rows"]), report["seen"], report["left_out"]["seen"]
    if seen is None:
        return f"{rows} rows of the table; whether the model has seen them is not known, as it keeps no hashes"
    if seen["rows"] and not left_out:
        return f"{rows} rows of the table, {count_text(seen['rows'])} of which were seen in fitting"
    checked = "" if seen["checked"] >= report["rows"] or left_out else f" ({count_text(seen['checked'])} were checked)"
    return f"{rows} rows the model has never seen{checked}"


def _is_new(report: Mapping[str, Any]) -> bool | None:
    """Whether the fit has seen none of the rows that are counted; None where that is not known."""
    return None if report["seen"] is None else bool(report["left_out"]["seen"] or not report["seen"]["rows"])


def _about_table(report: dict[str, Any]) -> str:
    left_out, seen = report["left_out"], seen_in_words(report["seen"], report["rows"])
    kinds = {"seen": "seen in fitting (--all-rows counts them)", "missing": "without a class",
             "unknown": "of other classes"}  # fmt: skip
    parts = [f"{_rows_on(report)}."[0].upper() + f"{_rows_on(report)}."[1:]]
    if any(left_out.values()):
        said = [f"{count_text(left_out[key])} rows {words}" for key, words in kinds.items() if left_out[key]]
        parts.append(f"Left out: {', '.join(said)}.")
    if seen is not None and not left_out["seen"]:
        parts.append(seen[0].upper() + seen[1:])
    return " ".join(parts)


def _held_out_squares(model: TableModel) -> dict[str, Any] | None:
    """Squares of the held-out curve, where it has every row."""
    curve = None if model.training is None else model.training.curve
    if curve is None:
        return None
    rows = RankedRows.of_curve(curve, 0.0 if model.decision.shift is None else model.decision.shift.of_log_odds)
    return None if rows.is_compressed else curve_squares(model, rows.positive, rows.log_odds)


def _about_stops(rows: str, per_day: float | None) -> str:
    about = f"Counted on {rows}; intervals are Clopper and Pearson's, at 95 %."
    if per_day is not None:
        about += f" Alerts per day are for {per_day:,.6g} rows per day, the mean of the training rows."
    return about


def _of_held_out(model: TableModel, settings: ReportSettings, per_day: float | None, said: str) -> dict[str, Any]:
    decision, training = model.decision, model.training
    nothing: dict[str, Any] = {"figures": None, "confusion": None, "operating": None, "calibration": None}
    labels = [str(label) for label in decision.classes]
    curve = None if training is None else training.curve
    if curve is not None and decision.probabilistic and len(labels) == 2:
        shift = 0.0 if decision.shift is None else decision.shift.of_log_odds
        rows = RankedRows.of_curve(curve, shift)
        cut = 0.0 if decision.cut is None else decision.cut
        counts = curve_counts(curve, cut - shift)
        summary = at_counts(decision, cut, counts, is_held_out=True)
        on = f"{sum(counts):,} training rows, each decided by a fit that had not seen it (out-of-fold)"
        about = f"{on[0].upper()}{on[1:]}, at the present cut.{said}"
        nothing["figures"] = {
            "source": "held-out", "on": on, "is_new": True, "about": about, "rows": sum(counts),
            "figures": held_out_figures(summary, rows.positive, rows.log_odds),
        }  # fmt: skip
        tp, fp, fn, tn = counts
        nothing["confusion"] = {"labels": labels, "counts": [[tn, fp], [fn, tp]], "about": about}
        nothing["operating"] = {
            **operating(rows, decision, cost=settings.cost, rows_per_day=per_day),
            "source": "held-out",
            "about": _about_stops(f"{sum(counts):,} out-of-fold rows of the fit", per_day),
        }
    stored = model.metrics.get("held_out")
    if isinstance(stored, Mapping) and "confusion" in stored and nothing["figures"] is None:
        on = f"{stored['rows']:,} rows that the fit held out"
        about = f"{on[0].upper()}{on[1:]}, from the model file.{said}"
        nothing["figures"] = {
            "source": "held-out", "on": on, "is_new": True, "about": about, "rows": stored["rows"],
            "figures": stored_figures(stored, len(labels)),
        }  # fmt: skip
        nothing["confusion"] = {"labels": labels, "counts": stored["confusion"], "about": about}
    return nothing


def _expected(model: TableModel) -> dict[str, Any] | None:
    """Counts of the held-out rows at the present cut, of two classes."""
    point = model.decision.operating
    if point is None or point.counts is None or point.prevalence is not None:
        return None
    return {**point.counts._asdict(), "draws_per_row": point.draws_per_row}


def _table(model: TableModel, looked: Looked, counted: Codes, settings: ReportSettings) -> dict[str, Any]:
    """What there is to say of a table, with classes or without.

    Decisions are counted without rows that `counted` says were seen in fitting, unless there are no others.
    """
    codes, is_new = looked.decided.codes, counted != SEEN
    codes = codes[is_new] if is_new.any() else codes
    called = np.bincount(codes, minlength=len(model.decision.classes)).tolist()
    operating_point = model.decision.operating
    drift = None
    if operating_point is not None and len(model.decision.classes) == 2:
        found = operating_point.drift(int(called[1]), len(codes))
        drift = None if found is None else found._asdict()
    labeled, seen = looked.codes >= 0, None
    if model.seen is not None and looked.hashes is not None and labeled.any():
        seen = model.seen.among(looked.hashes[labeled])._asdict()
    return {
        "rows": looked.rows,
        "target": looked.target,
        "labeled": int(labeled.sum()),
        "unknown_labels": looked.n_unknown,
        "called": [
            {"class": str(label), "rows": int(n)} for label, n in zip(model.decision.classes, called, strict=True)
        ],
        "drift": drift,
        "seen": seen,
        "counts_seen": settings.all_rows,
        "novelty": {**looked.novelty.as_dict(), "lines": looked.novelty.lines()},
        "difference": {**looked.difference.as_dict(), "lines": looked.difference.lines()},
    }


MOST_STEPS = 500
"""Steps of the loss that are shown at most, evenly spread."""


def trained_circuit(model: TableModel) -> dict[str, Any] | None:
    """The circuit of the best model; None where it has none."""
    best = model.best
    circuit = best if isinstance(best, VariationalModel) else best.variational
    if not isinstance(circuit, VariationalModel):
        return None
    ansatz = circuit.network.ansatz
    about = [
        f"{ansatz.n_qubits} qubits, {ansatz.n_inputs} inputs, {ansatz.n_reps} repetitions; it is simulated exactly.",
        {"always": "It decides every record.", "selective": "It decides records with a narrow margin."}.get(
            model.refinement, "It takes part in decisions."
        ),
    ]
    drawn = _drawing(circuit)
    if drawn is None:
        about.append("To see it drawn, install the extra 'quantum'.")
    loss = _loss(model)
    about.append("The loss is that of the batches." if loss is not None else "The file keeps no loss of its training.")
    return {"drawing": drawn, "loss": loss, "about": " ".join(about)}


def _drawing(circuit: VariationalModel) -> str | None:
    try:
        from qmedoid.circuits import export
    except (ImportError, MissingExtraError):
        return None
    return export.drawing(export.trained_circuit(circuit))


def _loss(model: TableModel) -> list[float] | None:
    kept = model.metrics.get("loss_curve")
    if not isinstance(kept, list | tuple) or not kept:
        return None
    step = -(-len(kept) // MOST_STEPS)
    return [float(value) for value in kept[::step]]
