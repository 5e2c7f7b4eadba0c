"""The model card: a description of a saved model in Markdown."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qmedoid.methods.part import KeptRows
from qmedoid.model.contract import Column, Dates, Encoding, Levels
from qmedoid.model.importance import by_importance
from qmedoid.model.model import Model
from qmedoid.model.operating_point import rule_in_words
from qmedoid.model.training_summary import TrainingSummary

_REFINEMENTS = {
    "none": "Every record is decided by {}, which are real training rows.",
    "selective": "Records are decided by {}, which are real training rows; those with a narrow margin by a small "
    "trained quantum circuit, simulated exactly.",
    "always": "Every record is decided by a small trained quantum circuit, simulated exactly.",
}
# Columns that are named as the most important ones.
_MOST_IMPORTANT = 10
# Rows of a table that a reader still takes in; the manifest has all of them.
_MOST_ROWS = 200
_LONGEST_TEXT = 200
# An underscore within a word is no markup.
_MARKUP = re.compile(r"[\\`*{}\[\]<>#|!~$&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def model_card(model: Model, *, raw_rows: bool) -> str:
    """The card of a model.

    Parameters
    ----------
    model : Model
    raw_rows : bool
        Whether its medoids are saved as rows of the training table.
    """
    sections = [
        ("Saved model", [_decided(model), "", *_facts(model)]),
        ("What to expect", _expected(model)),
        ("Columns", _columns(model)),
        ("Importance of the columns", _importances(model)),
        ("Left out", _left_out(model.contract.left_out)),
        ("Training rows in this file", [*_privacy(model, raw_rows), *_summary(model)]),
        ("How it was made", _values(model.parameters, "parameter")),
        ("What it showed", _metrics(model.metrics)),
        ("How to use it", _usage()),
    ]
    lines: list[str] = []
    for title, body in sections:
        if body:
            lines += [f"{'##' if lines else '#'} {title}", "", *body, ""]
    return "\n".join(lines).rstrip() + "\n"


def cell(value: Any) -> str:
    """Any text within a table or a sentence of Markdown: on one line, and nothing in it is markup."""
    text = value if isinstance(value, str) else _number(value) if isinstance(value, float) else str(value)
    if len(text) > _LONGEST_TEXT:
        text = text[: _LONGEST_TEXT - 1] + "…"
    # Line breaks of any alphabet, and characters that steer a terminal.
    text = "".join(one if one.isprintable() else " " for one in text)
    return _MARKUP.sub(r"\\\g<0>", text)


def _decided(model: Model) -> str:
    return _REFINEMENTS[model.policy].format(model.facts["description"])


def _facts(model: Model) -> Iterator[str]:
    yield f"- Target: {cell(model.contract.target) if model.contract.target is not None else 'not named'}"
    classes = ", ".join(cell(label) for label in model.decision.classes[:20])
    yield f"- Classes ({len(model.decision.classes)}): {classes}{', …' if len(model.decision.classes) > 20 else ''}"
    if model.decision.operating is not None:
        yield (
            f"- A record is called {cell(model.decision.classes[1])} if its probability is above "
            f"{_number(model.decision.operating.threshold)} ({rule_in_words(model.decision.operating)})."
        )
    elif model.decision.cut is not None:
        positive = cell(model.decision.classes[1])
        yield f"- A record is called {positive} when its margin is above {_number(model.decision.cut)}."
    elif model.decision.biases is not None:
        biases = ", ".join(
            f"{cell(label)} {_number(bias)}"
            for label, bias in zip(model.decision.classes, model.decision.biases, strict=True)
        )
        yield f"- A record is called the class of the highest score with its bias: {biases}."
    about = model.metrics.get("recalibration")
    if isinstance(about, Mapping):
        yield (
            f"- Probabilities and operating point were fitted anew to {cell(about.get('rows'))} labeled rows that the "
            f"model was not fitted on. All else is of the model file with the SHA-256 {model.parent or '(not known)'}."
        )
    if model.decision.probabilistic:
        yield "- It gives a probability of every class."
    else:
        yield "- Scores rank the classes; they are not probabilities."
    if model.medoids is not None:
        yield f"- Medoids: {_medoid_counts(model, model.medoids)}"
    if len(model.neighbors):
        yield f"- Neighbors: {len(model.neighbors)} further training rows, the nearest of which are compared with"
    if model.circuit is not None:
        ansatz = model.circuit.network.ansatz
        yield f"- Circuit: {ansatz.n_qubits} qubits, {ansatz.n_inputs} inputs, {ansatz.n_reps} repetitions"


def _expected(model: Model) -> list[str]:
    """Precision, recall and alert rate on held-out rows, and the priors that probabilities are made for."""
    lines: list[str] = []
    operating = model.decision.operating
    if operating is not None and operating.counts is not None:
        figures = {
            f"share called {cell(model.decision.classes[1])} (alert rate)": operating.alert_rate,
            "precision": operating.precision,
            "recall": operating.recall,
        }
        rows = [
            [name, *(["–"] * 3 if figure is None else [_number(bound) for bound in figure])]
            for name, figure in figures.items()
        ]
        at = "" if operating.prevalence is None else f", at a prevalence of {_number(operating.prevalence)}"
        lines += [
            f"From {operating.n_rows:,} rows, each scored by a model that had not seen it{at}, with 95 % intervals:",
            "",
            *_table(["figure", "value", "from", "to"], rows),
        ]
    if model.decision.priors is not None and len(model.decision.classes) <= _MOST_ROWS:
        shares = zip(model.decision.classes, model.decision.priors, strict=True)
        text = ", ".join(f"{cell(label)} {_number(float(share))}" for label, share in shares)
        lines += [*([""] if lines else []), f"Shares of the classes that the model was made for: {text}."]
        if model.decision.shift is not None:
            shares = zip(model.decision.classes, model.decision.shift.priors, strict=True)
            text = ", ".join(f"{cell(label)} {_number(float(share))}" for label, share in shares)
            lines += ["", f"Probabilities are those for other shares: {text}."]
    return lines


def _medoid_counts(model: Model, medoids: KeptRows) -> str:
    counts = [int((medoids.classes == code).sum()) for code in range(len(model.decision.classes))]
    parts = [f"{count} of {cell(label)}" for count, label in zip(counts[:20], model.decision.classes, strict=False)]
    return f"{sum(counts)} ({', '.join(parts)}{', …' if len(counts) > 20 else ''})"


def _columns(model: Model) -> list[str]:
    used = set(model.layout.used)
    pairs = zip(model.contract.columns, model.encodings, strict=True)
    rows = [
        [cell(column.name), column.kind, _encoded(column, encoding), "yes" if number in used else "no"]
        for number, (column, encoding) in enumerate(pairs)
    ]
    return _table(["column", "kind", "becomes", "used"], rows)


def _encoded(column: Column, encoding: Encoding) -> str:
    if isinstance(encoding, Levels):
        levels = f"{len(encoding.levels)} levels{', new ones expected' if column.is_open else ''}"
        numbers = f"{len(encoding.outputs)} {'number' if len(encoding.outputs) == 1 else 'numbers'}"
        return f"{numbers} from {levels}{column.missing_note}"
    what = ", ".join(encoding.parts) if isinstance(encoding, Dates) else "the number itself"
    if column.spelling:
        what += f", written like {column.spelling}"
    what += ", and whether it is missing" if encoding.indicator else ""
    return what + column.missing_note


def _importances(model: Model) -> list[str]:
    """The columns that contribute most."""
    if model.importances is None:
        return []
    ranked = list(by_importance(model.contract.names, model.importances).items())
    rows = [[cell(name), f"{value:.4f}"] for name, value in ranked[:_MOST_IMPORTANT]]
    more = len(ranked) - len(rows)
    others = "1 more column contributes less." if more == 1 else f"{more} more columns contribute less."
    unit = "in log-odds" if model.decision.probabilistic else "in units of the score"
    return [
        f"Mean absolute contribution to the margin of training rows, {unit}:",
        "",
        *_table(["column", "contribution"], rows),
        *(["", others] if more else []),
    ]


def _left_out(left_out: Mapping[str, str]) -> list[str]:
    return _table(["column", "why"], [[cell(name), cell(reason)] for name, reason in left_out.items()])


def _privacy(model: Model, raw_rows: bool) -> list[str]:
    hashed = []
    if model.seen is not None and raw_rows:
        hashed = [
            "",
            f"The file also holds {len(model.seen.hashes):,} hashes of training rows, so that a report can say "
            "whether rows are new. No row can be read from them, but whoever has a row, or guesses it, can test "
            "whether it was there. To leave them out, save with raw_rows=False.",
        ]
    return [*_rows_kept(model, raw_rows), *hashed]


def _rows_kept(model: Model, raw_rows: bool) -> list[str]:
    records = (model.records or ()) if raw_rows else ()
    kept = [line for one in model.facts["kept"] for line in ("", one)]
    if records:
        names = list(dict.fromkeys(name for record in records for name in record))
        more = ", …" if len(names) > _MOST_ROWS else ""
        return [
            f"Medoids are real rows of the training table. This file holds {len(records)} of them, with "
            f"{len(names)} columns each, as they were there. Whoever can read the file can read them. To leave them "
            "out, save with raw_rows=False.",
            "",
            f"Columns: {', '.join(cell(name) for name in names[:_MOST_ROWS])}{more}",
            *kept,
        ]
    if model.medoids is None:
        return ["None: a circuit keeps its trained numbers only."]
    return [
        "Medoids are real rows of the training table. This file holds none of them as they were there, only numbers "
        f"that the model compares with, of {len(model.medoids.numbers)} medoids, and their row numbers. Where it "
        "compares column by column, or a feature is made of one column, values of columns can be computed back.",
        *kept,
    ]


def _summary(model: Model) -> list[str]:
    """What else is kept of the training table: counts, extremes and quantiles of columns."""
    lines = []
    if model.training is not None:
        n_rows, counted = model.training.n_rows, _counted(model.training)
        lines += ["", f"The model keeps counts of its {n_rows:,} training rows: {counted}."]
    if model.novelty is None:
        return lines
    return [
        *lines,
        "",
        "To notice records unlike the training rows, the model keeps the smallest and the largest value and up to nine "
        "quantiles of each column of numbers, and how many rows lie between them.",
    ]


def _counted(training: TrainingSummary) -> str:
    counted = ["rows of each level and missing cells of every column"]
    if training.curve is not None:
        cuts = len(training.curve.thresholds)
        counted.append(f"true and false positives at {cuts:,} threshold{'' if cuts == 1 else 's'}")
    if training.days is not None:
        days = len(training.days.days)
        counted.append(f"rows of {days:,} day{'' if days == 1 else 's'}")
    return "; ".join(counted)


def _values(values: Mapping[str, Any], what: str, none: str = "None") -> list[str]:
    return _table([what, "value"], [[cell(name), cell(_one_line(value, none))] for name, value in values.items()])


def _metrics(metrics: Mapping[str, Any]) -> list[str]:
    """Figures one by one; tables of classes and the like are in the manifest of the file."""
    flat: dict[str, Any] = {}
    for name, value in metrics.items():
        parts = value if isinstance(value, Mapping) else {"": value}
        flat |= {
            f"{name.replace('held_out', 'held-out')} {part}".strip().replace("_", " "): one
            for part, one in parts.items()
            if one is not None and not isinstance(one, Mapping | list | tuple) and (part != "by_circuit" or one)
        }
    return _values(flat, "figure")


def _one_line(value: Any, none: str) -> str:
    if value is None:
        return none
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_one_line(one, none)}" for name, one in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_one_line(one, none) for one in value)
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows[:_MOST_ROWS])]
    more = len(rows) - _MOST_ROWS
    return [*lines, "", f"{more} more are in manifest.json."] if more > 0 else lines


def _usage() -> list[str]:
    return [
        "```python",
        "import qmedoid",
        "",
        'model = qmedoid.load("this file")',
        "```",
        "",
        "Loading runs no code from this file, and needs neither scikit-learn nor Qiskit. Any zip tool extracts it.",
    ]
