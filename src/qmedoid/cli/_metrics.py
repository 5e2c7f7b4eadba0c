"""Metrics as a table in the terminal."""

from collections.abc import Mapping
from typing import Any

from qmedoid.cli._output import plain_console, shown
from qmedoid.model.operating_point import OperatingSummary, rule_in_words

_NAMES = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "weighted_f1": "weighted F1",
    "log_loss": "log-loss",
    "prevalence": "prevalence",
    "alert_rate": "alert rate",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "by_circuit": "decided by the circuit",
}
UNDEFINED = "–"
"""What stands for a figure that is not defined, such as the precision without an alert."""
_FIGURES = {"alert_rate": "alert rate", "precision": "precision", "recall": "recall"}


def print_metrics(report: Mapping[str, Any], title: str) -> None:
    """Print a report of `qmedoid.tables.evaluating`."""
    from rich.table import Table

    console = plain_console()
    console.print(shown(title))
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for key, name in _NAMES.items():
        if key in report:
            of = f" ({shown(report['positive'])})" if key in ("precision", "recall", "f1", "prevalence") else ""
            table.add_row(name + of, _figure(report[key]))
    if "calibration" in report:
        own = report["calibration"]
        table.add_row("calibration error", f"{own['error']:.4f}")
        table.add_row("by chance, on average", f"{own['by_chance']:.4f}")
        table.add_row("by chance, once in 20", f"{own['by_chance_high']:.4f}")
    console.print(table)
    by_class = Table()
    labels = list(report["classes"])
    for column in ("class", "rows", "precision", "recall", "F1", *(f"→ {shown(label)}" for label in labels)):
        by_class.add_column(column, justify="left" if column == "class" else "right")
    for place, label in enumerate(labels[:20]):
        own = report["classes"][label]
        figures = [_figure(own[name]) for name in ("precision", "recall", "f1")]
        by_class.add_row(shown(label), f"{own['rows']:,}", *figures, *(f"{n:,}" for n in report["confusion"][place]))
    if len(labels) <= 20:
        console.print("by class: true in rows, predicted in columns")
        console.print(by_class)


def print_operating(summary: OperatingSummary, positive: Any) -> None:
    """Print where two classes are told apart, and what held-out rows say is to be expected of it."""
    from rich.table import Table

    console = plain_console()
    console.print(f"called {shown(positive)} above a probability of {summary.threshold:.4g}: {rule_in_words(summary)}")
    if summary.counts is None:
        return
    table = Table(title=None)
    for column in (f"expected, from {summary.n_rows:,} held-out rows", "value", "95 % from", "to"):
        table.add_column(column, justify="right" if table.columns else "left")
    for key, name in _FIGURES.items():
        table.add_row(name, *map(_figure, getattr(summary, key) or (None, None, None)))
    console.print(table)


def _figure(value: float | None) -> str:
    """Four digits, or a dash for what is not defined."""
    return UNDEFINED if value is None else f"{value:.4f}"
