"""Views of a model and of an operating point for notebooks."""

from collections.abc import Sequence

from qmedoid.markup.charts import label
from qmedoid.markup.page import render
from qmedoid.metrics.intervals import Interval
from qmedoid.model.importance import by_importance
from qmedoid.model.model import Model
from qmedoid.model.operating_point import OperatingSummary, rule_in_words

# Classes and columns that are named.
_CLASSES, _IMPORTANT, _COLUMNS = 10, 10, 50
_VIEW = "notebook/model.html"


def model_view(model: Model, title: str, sha256: str | None = None, *, settings: Sequence[tuple[str, str]] = ()) -> str:
    """What a model is, what to expect of it, which columns matter, and the parameters that were set."""
    decision, medoids, names = model.decision, model.medoids, model.contract.names
    labels, contract, used = [str(one)[:80] for one in decision.classes], model.contract, set(model.layout.used)
    classes = ", ".join(labels[:_CLASSES]) + (f" and {len(labels) - _CLASSES} more" if len(labels) > _CLASSES else "")
    facts = [
        ("target", contract.target),
        ("classes", classes),
        ("decided by", model.method),
        ("medoids", None if medoids is None else f"{len(medoids.numbers):,} training rows"),
        ("neighbors", f"{model.n_neighbors:,} further training rows" if model.n_neighbors else None),
        ("training rows", None if model.training is None else f"{model.training.n_rows:,}"),
        ("columns", f"{len(contract.columns):,}, left out {len(contract.left_out):,}"),
        *([] if decision.operating is None else _operating_facts(decision.operating, labels[1])),
        ("SHA-256", sha256),
    ]
    ranked = {} if model.importances is None else by_importance(names, model.importances)
    columns = [
        (one.name, one.kind, "yes" if place in used else "no", "yes" if one.missing else "no")
        for place, one in enumerate(contract.columns)
    ]
    important = [(name, value, label(value)) for name, value in list(ranked.items())[:_IMPORTANT]]
    return render(
        _VIEW, title=title, facts=facts, importances=important, columns=columns[:_COLUMNS],
        more=max(len(columns) - _COLUMNS, 0), settings=settings,
    )  # fmt: skip


def settings_view(title: str, settings: Sequence[tuple[str, str]]) -> str:
    """The parameters of an estimator that is not fitted."""
    return render(_VIEW, title=title, facts=settings)


def operating_view(summary: OperatingSummary) -> str:
    """Where an operating point cuts, and what to expect of it."""
    return render(_VIEW, title="Operating point", facts=_operating_facts(summary, "positive"))


def _operating_facts(summary: OperatingSummary, positive: str) -> list[tuple[str, str | None]]:
    """The cut, and the figures of held-out rows with their intervals."""
    named = (("precision", summary.precision), ("recall", summary.recall), ("alert rate", summary.alert_rate))
    return [
        (f"{positive} is called", f"above a probability of {label(summary.threshold)} ({rule_in_words(summary)})"),
        *((name, _with_interval(figure)) for name, figure in named),
        ("held-out rows", f"{summary.n_rows:,}" if summary.n_rows else "none: nothing is known of these figures"),
        ("expected prevalence", None if summary.prevalence is None else label(summary.prevalence)),
    ]


def _with_interval(figure: Interval | None) -> str | None:
    """A figure with its 95 % interval."""
    return None if figure is None else f"{label(figure.value)} (95 %: {label(figure.low)} to {label(figure.high)})"
