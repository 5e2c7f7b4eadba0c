"""The columns of a model's contract, and those that were left out, as a report lists them."""

from typing import Any

from qmedoid.arrays import Array
from qmedoid.kernels.ties import stable_order
from qmedoid.model.contract import Column, Dates, Encoding, Levels
from qmedoid.model.table import TableModel

MOST_COLUMNS = 200
"""Columns that are listed at most; of more the most important ones."""
MOST_LEFT_OUT = 200
_LONGEST = 200


def column_list(model: TableModel, importance: Array | None) -> list[dict[str, Any]]:
    """Columns in the order of the contract; of more than `MOST_COLUMNS` the most important first."""
    columns, training = model.contract.columns, model.training
    order = list(range(len(columns)))
    if len(columns) > MOST_COLUMNS:
        order = (order if importance is None else stable_order(-importance).tolist())[:MOST_COLUMNS]
    used = set(model.layout.used)
    shares = None if training is None else training.missing_shares
    total = 0.0 if importance is None else float(importance.sum())
    return [
        {
            "name": columns[place].name,
            "kind": columns[place].kind,
            "read": place in used,
            "encoding": encoding_words(columns[place], model.encodings[place]),
            "missing": None if shares is None else float(shares[place]),
            "missing_text": None if shares is None else f"{100 * shares[place]:.3g} %",
            "n_levels": _n_levels(columns[place], model.encodings[place]),
            "importance": None if importance is None else float(importance[place]),
            "text": _importance_text(None if importance is None else float(importance[place]), total),
        }
        for place in order
    ]


def _importance_text(importance: float | None, total: float) -> str:
    if importance is None:
        return "–"
    return f"{importance:.4f}" + (f" ({100 * importance / total:.1f} %)" if total > 0 else "")


def _n_levels(column: Column, encoding: Encoding) -> int | None:
    if column.kind == "boolean":
        return 2
    return len(encoding.levels) if isinstance(encoding, Levels) else None


def encoding_words(column: Column, encoding: Encoding) -> str:
    """What a column becomes, in words."""
    if isinstance(encoding, Levels):
        n = len(encoding.outputs)
        new = ", new ones expected" if column.is_open else ""
        return f"{n} {'number' if n == 1 else 'numbers'} from {len(encoding.levels)} levels{new}{column.missing_note}"
    what = ", ".join(encoding.parts) if isinstance(encoding, Dates) else "the number itself"
    if column.kind == "boolean":
        what = "0 or 1"
    if column.spelling:
        what += f", written like {column.spelling}"
    what += ", and whether it is missing" if encoding.indicator else ""
    return what + column.missing_note


def left_out_list(model: TableModel) -> list[dict[str, str]]:
    """Columns that no model reads, with the reason."""
    items = list(model.contract.left_out.items())[:MOST_LEFT_OUT]
    return [{"name": name, "reason": reason[:_LONGEST]} for name, reason in items]
