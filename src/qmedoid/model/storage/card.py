"""The model card: a description of a saved model in Markdown."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from qmedoid.model.contract import Column, Dates, Encoding, Levels
from qmedoid.model.model import Model
from qmedoid.model.operating_point import rule_in_words

_USAGE = """\
```python
import qmedoid

model = qmedoid.load("this file")
```

Loading runs no code from this file, and needs neither scikit-learn nor Qiskit. Any zip tool extracts it."""
# Classes that are named, and rows of a table that are listed at most.
_MOST_CLASSES, _MOST_ROWS = 20, 200
_LONGEST_TEXT = 200
# An underscore within a word is no markup.
_MARKUP = re.compile(r"[\\`*{}\[\]<>#|!~$&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def model_card(model: Model, *, raw_rows: bool, rows: int | None = None) -> str:
    """The card of a model.

    Parameters
    ----------
    model : Model
    raw_rows : bool
        Whether its medoids are saved as rows of the training table.
    rows : int or None
        Rows of the next table, which figures are expected of; None takes as many as were held out.
    """
    by_circuit = "by a small trained quantum circuit, simulated exactly."
    by_medoids = f"by {model.facts['description']}, which are real training rows"
    decides = {
        "none": f"Every record is decided {by_medoids}.",
        "selective": f"Records are decided {by_medoids}; those with a narrow margin {by_circuit}",
        "always": f"Every record is decided {by_circuit}",
    }
    showed = {
        f"{name.replace('held_out', 'held-out')} {part}".strip().replace("_", " "): one
        for name, value in model.metrics.items()
        for part, one in (value if isinstance(value, Mapping) else {"": value}).items()
        if one is not None and not isinstance(one, Mapping | list | tuple) and (part != "by_circuit" or one)
    }
    sections = {
        "Saved model": [decides[model.policy], "\n".join(_facts(model))],
        "What to expect": _expected(model, rows),
        "Columns": [_columns(model)],
        "Left out": [_table(["column", "why"], model.contract.left_out.items())],
        "Training rows in this file": _kept(model, raw_rows),
        "How it was made": [_table(["parameter", "value"], model.parameters.items())],
        "What it showed": [_table(["figure", "value"], showed.items())],
        "How to use it": [_USAGE],
    }
    filled = {title: [text for text in texts if text] for title, texts in sections.items()}
    parts = ["\n\n".join([f"## {title}", *texts]) for title, texts in filled.items() if texts]
    return "\n\n".join(parts)[1:] + "\n"


def cell(value: Any) -> str:
    """Any text within a table or a sentence of Markdown: on one line, and nothing in it is markup."""
    text = value if isinstance(value, str) else _one_line(value)
    if len(text) > _LONGEST_TEXT:
        text = text[: _LONGEST_TEXT - 1] + "…"
    # Line breaks of any alphabet, and characters that steer a terminal.
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    return _MARKUP.sub(r"\\\g<0>", text)


def _facts(model: Model) -> list[str]:
    decision, operating, target = model.decision, model.decision.operating, model.contract.target
    labels = [cell(label) for label in decision.classes]
    facts = [
        f"- Target: {'not named' if target is None else cell(target)}",
        f"- Classes ({len(labels)}): {_some(labels)}",
    ]
    if operating is not None:
        cut = f"its probability is above {_one_line(operating.threshold)} ({rule_in_words(operating)})."
        facts.append(f"- A record is called {labels[1]} if {cut}")
    elif decision.cut is not None:
        facts.append(f"- A record is called {labels[1]} when its margin is above {_one_line(decision.cut)}.")
    elif decision.biases is not None:
        biases = _of_classes(model, decision.biases)
        facts.append(f"- A record is called the class of the highest score with its bias: {biases}.")
    about = model.metrics.get("recalibration")
    if isinstance(about, Mapping):
        facts.append(
            f"- Probabilities and operating point were fitted anew to {cell(about.get('rows'))} labeled rows that the "
            f"model was not fitted on. All else is of the model file with the SHA-256 {model.parent or '(not known)'}."
        )
    plain = "Scores rank the classes; they are not probabilities."
    facts.append(f"- {'It gives a probability of every class.' if decision.probabilistic else plain}")
    if model.medoids is not None:
        counts = [int((model.medoids.classes == code).sum()) for code in range(len(labels))]
        parts = [f"{count} of {label}" for count, label in zip(counts, labels, strict=True)]
        facts.append(f"- Medoids: {sum(counts)} ({_some(parts)})")
    if model.n_neighbors:
        facts.append(f"- Neighbors: {model.n_neighbors} further training rows, the nearest of which are compared with")
    if model.circuit is not None:
        ansatz = model.circuit.network.ansatz
        facts.append(f"- Circuit: {ansatz.n_qubits} qubits, {ansatz.n_inputs} inputs, {ansatz.n_reps} repetitions")
    return facts


def _expected(model: Model, rows: int | None) -> list[str]:
    """What the next rows will show, and the priors that probabilities are made for."""
    texts, decision, operating = list[str](), model.decision, model.decision.operating
    if operating is not None and operating.counts is not None:
        forecast = operating.forecast(rows)
        named = {f"share called {decision.classes[1]} (alert rate)": forecast.get("alert_rate")}
        named |= {name: forecast.get(name) for name in ("precision", "recall")}
        lines = [(name, *(["–"] * 3 if figure is None else figure)) for name, figure in named.items()]
        at = "" if operating.prevalence is None else f", at a prevalence of {_one_line(operating.prevalence)}"
        of = (
            f"From {operating.n_rows:,} rows, each scored by a model that had not seen it{at}. 19 of 20 new tables "
            f"with {'as many' if rows is None else f'{rows:,}'} rows will show figures between the bounds:"
        )
        texts += [of, _table(["figure", "value", "from", "to"], lines)]
    if decision.priors is not None and len(decision.classes) <= _MOST_ROWS:
        texts.append(f"Shares of the classes that the model was made for: {_of_classes(model, decision.priors)}.")
        if decision.shift is not None:
            texts.append(f"Probabilities are those for other shares: {_of_classes(model, decision.shift.priors)}.")
    return texts


def _columns(model: Model) -> str:
    pairs = enumerate(zip(model.contract.columns, model.encodings, strict=True))
    rows = [
        (column.name, column.kind, encoding_text(column, encoding), "yes" if number in model.layout.used else "no")
        for number, (column, encoding) in pairs
    ]
    return _table(["column", "kind", "becomes", "used"], rows)


def encoding_text(column: Column, encoding: Encoding) -> str:
    """What a column becomes, in words."""
    missing = f", {' and '.join(column.missing_values)} read as missing" if column.missing_values else ""
    if isinstance(encoding, Levels):
        levels = f"{len(encoding.levels)} levels{', new ones expected' if column.is_open else ''}"
        count = len(encoding.outputs)
        return f"{count} number{'s' * (count > 1)} from {levels}{missing}"
    plain = "0 or 1" if column.kind == "boolean" else "the number itself"
    what = ", ".join(encoding.parts) if isinstance(encoding, Dates) else plain
    what += f", written like {column.spelling}" if column.spelling else ""
    what += ", and whether it is missing" if encoding.indicator else ""
    return what + missing


def _kept(model: Model, raw_rows: bool) -> list[str]:
    """What the file holds of the training table: rows, hashes, counts, extremes and quantiles of columns."""
    texts = ["None: a circuit keeps its trained numbers only."]
    if raw_rows and model.records:
        texts = [
            f"Medoids are real rows of the training table. This file holds {len(model.records)} of them, with "
            f"{len(model.records[0])} columns each, as they were there. Whoever can read the file can read them. To "
            "leave them out, save with raw_rows=False."
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
        texts.append(
            f"The model keeps counts of its {model.training.n_rows:,} training rows: missing cells of every "
            "column, true and false positives by threshold, rows per day."
        )
    if model.novelty is not None:
        texts.append(
            "To notice records unlike the training rows, the model keeps the smallest and the largest value and up to "
            "nine quantiles of each column of numbers, and how many rows lie between them."
        )
    return texts


def _of_classes(model: Model, numbers: Iterable[float]) -> str:
    """A number of every class."""
    pairs = zip(model.decision.classes, numbers, strict=True)
    return ", ".join(f"{cell(label)} {_one_line(float(number))}" for label, number in pairs)


def _some(texts: list[str]) -> str:
    return ", ".join(texts[:_MOST_CLASSES]) + (", …" if len(texts) > _MOST_CLASSES else "")


def _one_line(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_one_line(one)}" for name, one in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_one_line, value))
    return f"{value:.4g}" if isinstance(value, float) and math.isfinite(value) else str(value)


def _table(head: list[str], rows: Iterable[Sequence[Any]]) -> str:
    listed = [[cell(value) for value in row] for row in rows]
    if not listed:
        return ""
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *listed[:_MOST_ROWS])]
    more = len(listed) - _MOST_ROWS
    return "\n".join([*lines, *(["", f"{more} more are in manifest.json."] if more > 0 else [])])
