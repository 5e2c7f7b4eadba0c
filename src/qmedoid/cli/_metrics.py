"""Metrics as a table in the terminal."""

from collections.abc import Mapping
from typing import Any

from qmedoid.cli._output import plain_console, shown

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
            table.add_row(name + of, f"{report[key]:.4f}")
    console.print(table)
    by_class = Table()
    labels = list(report["classes"])
    for column in ("class", "rows", "precision", "recall", "F1", *(f"→ {shown(label)}" for label in labels)):
        by_class.add_column(column, justify="left" if column == "class" else "right")
    for place, label in enumerate(labels[:20]):
        own = report["classes"][label]
        figures = (f"{own['precision']:.4f}", f"{own['recall']:.4f}", f"{own['f1']:.4f}")
        by_class.add_row(shown(label), f"{own['rows']:,}", *figures, *(f"{n:,}" for n in report["confusion"][place]))
    if len(labels) <= 20:
        console.print("by class: true in rows, predicted in columns")
        console.print(by_class)
