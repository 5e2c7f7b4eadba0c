"""The cut that options ask for, and what held-out rows say is to be expected of it."""

import csv
import math
from collections.abc import Sequence
from typing import Any

from qmedoid.cli._output import grid, plain_console, shown, tell
from qmedoid.cli.options import CutOptions
from qmedoid.exceptions import ParameterError
from qmedoid.metrics.texts import interval_text
from qmedoid.model.budgets import SpentBudget
from qmedoid.model.operating_point import cut_in_words
from qmedoid.model.table import TableModel

_INNER = (0.0, 1.0, "a number above 0 and below 1")
_FLOOR = (0.0, math.nextafter(1.0, 2.0), "a number above 0 and at most 1")
_RANGES = {"threshold": _INNER, "alert_rate": _INNER, "min_precision": _FLOOR, "min_recall": _FLOOR}
_CUTS = ("threshold", "alert_rate", "min_precision", "min_recall", "cost", "top")


def asked_cut(options: CutOptions) -> Any:
    """The operating point of the options, None where there is none.

    Raises
    ------
    ParameterError
        There are two of them, or a number is out of range.
    """
    given: dict[str, float] = {name: value for name in _CUTS if (value := getattr(options, name, None)) is not None}
    if len(given) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in list(given)[:2])
        raise ParameterError(f"{first} and {second} both say where to cut: give one of them.")
    for name, value in given.items():
        low, high, allowed = _RANGES.get(name, (0.0, math.inf, "a number above 0"))
        if not low < value < high:
            raise ParameterError(f"--{name.replace('_', '-')} must be {allowed}. Got {value:g} instead.")
    return given.get("threshold", given) or None


def listed(columns: list[str] | None) -> list[str]:
    """Names with commas between them; a name with a comma in it is put in double quotes."""
    names = [name.strip() for part in columns or [] for name in _names(part)]
    return [name for name in dict.fromkeys(names) if name]


def _names(part: str) -> list[str]:
    """The names of an option; one that is no line of a CSV file, as it has a line break, is a name itself."""
    try:
        return [name for row in csv.reader([part], skipinitialspace=True) for name in row]
    except csv.Error:
        return [part]


def tell_cut(model: TableModel) -> None:
    """Say where a model cuts, and with which precision and recall on held-out rows."""
    summary = model.decision.operating
    if summary is None:
        return
    positive = shown(model.decision.classes[1])
    tell(f"Threshold: {cut_in_words(summary, positive)}.")
    if summary.counts is not None:
        figures = [("precision", summary.precision), ("recall", summary.recall), ("alert rate", summary.alert_rate)]
        at = "" if summary.prevalence is None else f", at a prevalence of {summary.prevalence:.4g}"
        parts = ", ".join(f"{name} {interval_text(figure)}" for name, figure in figures)
        tell(f"Expected of new rows (95 % intervals from {_unseen(summary.n_rows)}{at}): {parts}.")


def tell_top(positive: Any, asked: int, threshold: float, expected: SpentBudget | None) -> None:
    """Say where the highest scores of a table begin, and what held-out rows show at this alert rate."""
    tell(
        f"Called {shown(positive)} are the {asked:,} highest scores of this table (probability above {threshold:.4g})."
    )
    if expected is None:
        tell("the model holds no curve of held-out rows: nothing is known of the precision at this alert rate.")
        return
    parts = ", ".join(f"{name} {interval_text(getattr(expected.operating, name))}" for name in ("precision", "recall"))
    tell(
        f"Expected at this alert rate of {str(expected.budget).removesuffix('%')} % (95 % intervals from "
        f"{_unseen(expected.operating.n_rows)}): {parts}."
    )


def _unseen(n_rows: int) -> str:
    """The rows behind a curve: test rows of a fit in passes, else training rows that folds were scored on."""
    return f"{n_rows:,} rows, each scored by a model that had not seen it"


def print_budgets(spent: Sequence[SpentBudget], about: str) -> None:
    """Print what budgets of alerts mean on some rows."""
    rows = [
        (str(one.budget), f"{one.operating.threshold:.4g}", f"{one.alerts:,}",
         *(interval_text(figure) for figure in (one.operating.precision, one.operating.recall)))
        for one in spent
    ]  # fmt: skip
    n_rows = spent[0].operating.n_rows if spent else 0
    names = ("budget", "probability above", "alerts", "precision (95 %)", "recall (95 %)")
    plain_console().print(grid(names, rows, title=f"budgets of alerts, {n_rows:,} {about}"))
