"""``qmedoid inspect``: what a saved model is."""

from collections.abc import Mapping
from typing import Any

from qmedoid.cli.documents import InspectDict
from qmedoid.cli.options import Budgets, Json, ModelPath, NextRows, command, listed
from qmedoid.cli.output import print_budgets, print_json, show
from qmedoid.model.importance import by_importance
from qmedoid.model.operating_point import budget_dict
from qmedoid.model.storage.card import model_card
from qmedoid.model.storage.model_file import ModelFile, load_file
from qmedoid.report.verdict import verdict
from qmedoid.spelling import printable


@command(
    "qmedoid inspect patients.qmedoid",
    "qmedoid inspect patients.qmedoid --budgets 100,1%",
    most_used=("budgets", "json"),
)
def run(model: ModelPath, *, json: Json = False, budgets: Budgets = None, rows: NextRows = None) -> None:
    """Show what is in a saved model, and how good it was.

    Prints the model card: how it decides, which columns it needs, what it showed on held-out rows, which training
    rows are in the file.
    """
    loaded = load_file(model)
    spent = None
    if budgets is not None:
        training = loaded.model.training
        curve = None if training is None else training.curve
        spent = loaded.model.decision.budgets(listed(budgets), curve)
    if json:
        document = _summary(loaded, rows)
        if spent is not None:
            document["budgets"] = [budget_dict(*one) for one in spent]
        print_json(document)
        return
    if spent is not None:
        print_budgets(spent, "rows, each scored by a model that had not seen it")
        return
    from rich.markdown import Markdown

    # Made from the model: a stored card may be of another version, or hold what steers a terminal.
    card = model_card(loaded.model, raw_rows=loaded.model.records is not None, rows=rows)
    said: list[Any] = []
    held_out = loaded.model.metrics.get("held_out")
    if isinstance(held_out, Mapping) and "confusion" in held_out:
        operating = loaded.model.decision.operating
        alerts = operating is not None and operating.rule != "likeliest"
        said = [*map(printable, verdict(held_out, alerts=alerts)), ""]
    show(*said, Markdown(card))


def _summary(loaded: ModelFile, rows: int | None) -> InspectDict:
    """The model as plain values."""
    model, decision = loaded.model, loaded.model.decision
    medoids = [] if model.medoids is None else zip(model.medoids.classes, model.medoids.numbers, strict=True)
    facts = model.facts
    return {
        "sha256": loaded.sha256,
        "parent": model.parent,
        "versions": dict(loaded.versions),
        "method": model.method,
        "refinement": model.policy,
        "classes": list(model.decision.classes),
        "cut": decision.cut,
        "operating": None if model.decision.operating is None else model.decision.operating.as_dict(rows),
        "priors": None if decision.priors is None else decision.priors.tolist(),
        "expected_priors": None if decision.expected_priors is None else decision.expected_priors.tolist(),
        "target": model.contract.target,
        "columns": [
            {
                "name": one.name,
                "kind": one.kind,
                "missing": one.missing,
                "levels": list(one.levels),
                "open": one.is_open,
                "spelling": one.spelling,
                "missing_values": list(one.missing_values),
            }
            for one in model.contract.columns
        ],
        "importances": None if model.importances is None else by_importance(model.contract.names, model.importances),
        "left_out": dict(model.contract.left_out),
        "encoded_columns": list(model.layout.names),
        "groups": [[model.layout.names[column] for column in group] for group in facts["groups"]],
        "alpha": facts["numbers"].get("alpha"),
        "medoids": [{"class": model.decision.classes[code], "training_row": int(row)} for code, row in medoids],
        "known_records": model.n_neighbors,
        "raw_rows": model.records is not None,
        "row_hashes": 0 if model.seen is None else len(model.seen.hashes),
        "parameters": dict(model.parameters),
        "metrics": dict(model.metrics),
        "training_rows": None if model.training is None else model.training.n_rows,
    }
