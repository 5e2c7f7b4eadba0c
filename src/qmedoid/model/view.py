"""Views of a model and of an operating point for notebooks."""

from collections.abc import Sequence

from qmedoid.markup.html import Html, folded, join, plain, table
from qmedoid.markup.notebook import Bar, bars, facts, view, with_interval
from qmedoid.markup.svg import label
from qmedoid.metrics.intervals import Interval
from qmedoid.model.importance import by_importance
from qmedoid.model.operating_point import OperatingSummary, rule_in_words
from qmedoid.model.table import TableModel

# Classes and columns that are named.
_CLASSES, _IMPORTANT, _COLUMNS = 10, 10, 50


def model_view(model: TableModel, title: str, sha256: str | None = None) -> Html:
    """What a model is, what to expect of it, and which columns matter."""
    decision, method = model.decision, model.method
    labels = [plain(str(one), 40) for one in decision.classes]
    classes = ", ".join(labels[:_CLASSES]) + (f" and {len(labels) - _CLASSES} more" if len(labels) > _CLASSES else "")
    rows = [
        ("target", None if model.contract.target is None else plain(model.contract.target)),
        ("classes", classes),
        ("decided by", model.deciders[0]),
        ("medoids", None if method is None else f"{len(method.medoid_rows):,} training rows"),
        ("neighbors", f"{model.n_neighbors:,} further training rows" if model.n_neighbors else None),
        ("training rows", None if model.training is None else f"{model.training.n_rows:,}"),
        ("columns", f"{len(model.contract.columns):,}, left out {len(model.contract.left_out):,}"),
        *([] if decision.operating is None else operating_facts(decision.operating, labels[1])),
        ("SHA-256", sha256),
    ]
    return view(title, facts(rows), _important(model), _columns(model))


def operating_view(summary: OperatingSummary) -> Html:
    """Where an operating point cuts, and what to expect of it."""
    return view("Operating point", facts(operating_facts(summary, "positive")))


def operating_facts(summary: OperatingSummary, positive: str) -> list[tuple[str, str | None]]:
    """The cut, and the figures of held-out rows with their intervals."""
    named = (("precision", summary.precision), ("recall", summary.recall), ("alert rate", summary.alert_rate))
    return [
        (f"called {positive}", f"above a probability of {label(summary.threshold)}: {rule_in_words(summary)}"),
        *((name, _with_interval(figure)) for name, figure in named),
        ("held-out rows", f"{summary.n_rows:,}" if summary.n_rows else "none: nothing is known of these figures"),
        ("expected prevalence", None if summary.prevalence is None else label(summary.prevalence)),
    ]


def _with_interval(figure: Interval | None) -> str | None:
    return None if figure is None else with_interval(*figure)


def _important(model: TableModel) -> Html | None:
    if model.importances is None:
        return None
    ranked = list(by_importance(model.contract.names, model.importances).items())[:_IMPORTANT]
    about = "Importance of the columns: mean absolute contribution in log-odds"
    drawn = bars(about, [Bar(name, value, label(value)) for name, value in ranked])
    return join([folded(about, drawn, is_open=True)])


def _columns(model: TableModel) -> Html:
    used = set(model.layout.used)
    rows: Sequence[Sequence[str]] = [
        (plain(column.name), column.kind, "yes" if place in used else "no", "yes" if column.missing else "no")
        for place, column in enumerate(model.contract.columns[:_COLUMNS])
    ]
    more = len(model.contract.columns) - _COLUMNS
    caption = "The columns" if more <= 0 else f"The first {_COLUMNS} columns; {more:,} more are not listed"
    return folded("Columns", table(caption, ("column", "kind", "read", "may be missing"), rows))
