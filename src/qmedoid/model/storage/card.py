"""The model card: a description of a saved model in Markdown."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from qmedoid.model.contract import Column, Dates, Encoding, Levels
from qmedoid.model.importance import by_importance
from qmedoid.model.model import Model
from qmedoid.model.operating_point import rule_in_words

_REFINEMENTS = {
    "none": "Every record is decided by {}, which are real training rows.",
    "selective": "Records are decided by {}, which are real training rows; those with a narrow margin by a small "
    "trained quantum circuit, simulated exactly.",
    "always": "Every record is decided by a small trained quantum circuit, simulated exactly.",
}
_USAGE = """\
```python
import qmedoid

model = qmedoid.load("this file")
```

Loading runs no code from this file, and needs neither scikit-learn nor Qiskit. Any zip tool extracts it."""
# Columns that are named as the most important ones, and classes that are named at most.
_MOST_IMPORTANT, _MOST_CLASSES = 10, 20
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
    left_out = [[cell(name), cell(reason)] for name, reason in model.contract.left_out.items()]
    parameters = [[cell(name), cell(_one_line(value))] for name, value in model.parameters.items()]
    sections = {
        "Saved model": [_REFINEMENTS[model.policy].format(model.facts["description"]), "\n".join(_facts(model))],
        "What to expect": _expected(model),
        "Columns": [_columns(model)],
        "Importance of the columns": _importances(model),
        "Left out": [_table(["column", "why"], left_out)],
        "Training rows in this file": _kept(model, raw_rows),
        "How it was made": [_table(["parameter", "value"], parameters)],
        "What it showed": [_metrics(model.metrics)],
        "How to use it": [_USAGE],
    }
    filled = {title: [text for text in texts if text] for title, texts in sections.items()}
    parts = ["\n\n".join([f"## {title}", *texts]) for title, texts in filled.items() if texts]
    return "\n\n".join(parts)[1:] + "\n"


def cell(value: Any) -> str:
    """Any text within a table or a sentence of Markdown: on one line, and nothing in it is markup."""
    text = value if isinstance(value, str) else _number(value) if isinstance(value, float) else str(value)
    if len(text) > _LONGEST_TEXT:
        text = text[: _LONGEST_TEXT - 1] + "…"
    # Line breaks of any alphabet, and characters that steer a terminal.
    text = "".join(one if one.isprintable() else " " for one in text)
    return _MARKUP.sub(r"\\\g<0>", text)


def _facts(model: Model) -> Iterator[str]:
    decision, operating = model.decision, model.decision.operating
    yield f"- Target: {cell(model.contract.target) if model.contract.target is not None else 'not named'}"
    yield f"- Classes ({len(decision.classes)}): {_some(map(cell, decision.classes))}"
    if operating is not None:
        yield (
            f"- A record is called {cell(decision.classes[1])} if its probability is above "
            f"{_number(operating.threshold)} ({rule_in_words(operating)})."
        )
    elif decision.cut is not None:
        yield f"- A record is called {cell(decision.classes[1])} when its margin is above {_number(decision.cut)}."
    elif decision.biases is not None:
        biases = _of_classes(model, decision.biases)
        yield f"- A record is called the class of the highest score with its bias: {biases}."
    about = model.metrics.get("recalibration")
    if isinstance(about, Mapping):
        yield (
            f"- Probabilities and operating point were fitted anew to {cell(about.get('rows'))} labeled rows that the "
            f"model was not fitted on. All else is of the model file with the SHA-256 {model.parent or '(not known)'}."
        )
    is_chance = decision.probabilistic
    yield (
        "- It gives a probability of every class."
        if is_chance
        else ("- Scores rank the classes; they are not probabilities.")
    )
    if model.medoids is not None:
        counts = [int((model.medoids.classes == code).sum()) for code in range(len(decision.classes))]
        parts = [f"{count} of {cell(label)}" for count, label in zip(counts, decision.classes, strict=True)]
        yield f"- Medoids: {sum(counts)} ({_some(parts)})"
    if len(model.neighbors):
        yield f"- Neighbors: {len(model.neighbors)} further training rows, the nearest of which are compared with"
    if model.circuit is not None:
        ansatz = model.circuit.network.ansatz
        yield f"- Circuit: {ansatz.n_qubits} qubits, {ansatz.n_inputs} inputs, {ansatz.n_reps} repetitions"


def _expected(model: Model) -> list[str]:
    """Precision, recall and alert rate on held-out rows, and the priors that probabilities are made for."""
    texts, decision, operating = list[str](), model.decision, model.decision.operating
    if operating is not None and operating.counts is not None:
        names = f"share called {cell(decision.classes[1])} (alert rate)", "precision", "recall"
        figures = operating.alert_rate, operating.precision, operating.recall
        rows = [
            [name, *(["–"] * 3 if figure is None else map(_number, figure))]
            for name, figure in zip(names, figures, strict=True)
        ]
        at = "" if operating.prevalence is None else f", at a prevalence of {_number(operating.prevalence)}"
        of = f"From {operating.n_rows:,} rows, each scored by a model that had not seen it{at}, with 95 % intervals:"
        texts += [of, _table(["figure", "value", "from", "to"], rows)]
    if decision.priors is not None and len(decision.classes) <= _MOST_ROWS:
        texts.append(f"Shares of the classes that the model was made for: {_of_classes(model, decision.priors)}.")
        if decision.shift is not None:
            texts.append(f"Probabilities are those for other shares: {_of_classes(model, decision.shift.priors)}.")
    return texts


def _columns(model: Model) -> str:
    used, rows = set(model.layout.used), list[list[str]]()
    for number, (column, encoding) in enumerate(zip(model.contract.columns, model.encodings, strict=True)):
        rows.append(
            [cell(column.name), column.kind, encoding_text(column, encoding), "yes" if number in used else "no"]
        )
    return _table(["column", "kind", "becomes", "used"], rows)


def encoding_text(column: Column, encoding: Encoding) -> str:
    """What a column becomes, in words."""
    if isinstance(encoding, Levels):
        levels = f"{len(encoding.levels)} levels{', new ones expected' if column.is_open else ''}"
        return f"{_counted(len(encoding.outputs), 'number')} from {levels}{column.missing_note}"
    plain = "0 or 1" if column.kind == "boolean" else "the number itself"
    what = ", ".join(encoding.parts) if isinstance(encoding, Dates) else plain
    what += f", written like {column.spelling}" if column.spelling else ""
    what += ", and whether it is missing" if encoding.indicator else ""
    return what + column.missing_note


def _importances(model: Model) -> list[str]:
    """The columns that contribute most."""
    if model.importances is None:
        return []
    ranked = list(by_importance(model.contract.names, model.importances).items())
    rows = [[cell(name), f"{value:.4f}"] for name, value in ranked[:_MOST_IMPORTANT]]
    more = len(ranked) - len(rows)
    others = f"{_counted(more, 'more column')} {'contributes' if more == 1 else 'contribute'} less." if more else ""
    unit = "in log-odds" if model.decision.probabilistic else "in units of the score"
    about = f"Mean absolute contribution to the margin of training rows, {unit}:"
    return [about, _table(["column", "contribution"], rows), others]


def _kept(model: Model, raw_rows: bool) -> list[str]:
    """What the file holds of the training table: rows, hashes, counts, extremes and quantiles of columns."""
    records, texts = (model.records or ()) if raw_rows else (), ["None: a circuit keeps its trained numbers only."]
    if records:
        names = list(dict.fromkeys(name for record in records for name in record))
        texts = [
            f"Medoids are real rows of the training table. This file holds {len(records)} of them, with "
            f"{len(names)} columns each, as they were there. Whoever can read the file can read them. To leave them "
            "out, save with raw_rows=False.",
            f"Columns: {', '.join(map(cell, names[:_MOST_ROWS]))}{', …' if len(names) > _MOST_ROWS else ''}",
        ]
    elif model.medoids is not None:
        texts = [
            "Medoids are real rows of the training table. This file holds none of them as they were there, only "
            f"numbers that the model compares with, of {len(model.medoids.numbers)} medoids, and their row numbers. "
            "Where it compares column by column, or a feature is made of one column, values of columns can be "
            "computed back."
        ]
    texts += model.facts["kept"]
    if model.seen is not None and raw_rows:
        texts.append(
            f"The file also holds {len(model.seen.hashes):,} hashes of training rows, so that a report can say "
            "whether rows are new. No row can be read from them, but whoever has a row, or guesses it, can test "
            "whether it was there. To leave them out, save with raw_rows=False."
        )
    if model.training is not None:
        counted = ["rows of each level and missing cells of every column"]
        if model.training.curve is not None:
            cuts = _counted(len(model.training.curve.thresholds), "threshold")
            counted.append(f"true and false positives at {cuts}")
        if model.training.days is not None:
            counted.append(f"rows of {_counted(len(model.training.days.days), 'day')}")
        texts.append(f"The model keeps counts of its {model.training.n_rows:,} training rows: {'; '.join(counted)}.")
    if model.novelty is not None:
        texts.append(
            "To notice records unlike the training rows, the model keeps the smallest and the largest value and up to "
            "nine quantiles of each column of numbers, and how many rows lie between them."
        )
    return texts


def _metrics(metrics: Mapping[str, Any]) -> str:
    """Figures one by one; tables of classes and the like are in the manifest of the file."""
    flat: dict[str, Any] = {}
    for name, value in metrics.items():
        parts = value if isinstance(value, Mapping) else {"": value}
        flat |= {
            f"{name.replace('held_out', 'held-out')} {part}".strip().replace("_", " "): one
            for part, one in parts.items()
            if one is not None and not isinstance(one, Mapping | list | tuple) and (part != "by_circuit" or one)
        }
    return _table(["figure", "value"], [[cell(name), cell(_one_line(value))] for name, value in flat.items()])


def _of_classes(model: Model, numbers: Iterable[float]) -> str:
    """A number of every class."""
    pairs = zip(model.decision.classes, numbers, strict=True)
    return ", ".join(f"{cell(label)} {_number(float(number))}" for label, number in pairs)


def _some(texts: Iterable[str]) -> str:
    shown = list(texts)
    return ", ".join(shown[:_MOST_CLASSES]) + (", …" if len(shown) > _MOST_CLASSES else "")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _one_line(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_one_line(one)}" for name, one in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_one_line, value))
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def _table(head: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows[:_MOST_ROWS])]
    more = len(rows) - _MOST_ROWS
    return "\n".join([*lines, *(["", f"{more} more are in manifest.json."] if more > 0 else [])])
