"""``qmedoid inspect``: what a saved model is."""

from pathlib import Path
from typing import Any

from qmedoid.cli._output import print_json
from qmedoid.methods.nearest.model import NearestModel
from qmedoid.model.table import TableModel
from qmedoid.storage.card import model_card
from qmedoid.storage.loading import load_model


def run(model: Path, *, as_json: bool) -> None:
    """Print the model card, or its contents as JSON."""
    loaded = load_model(model)
    if as_json:
        print_json(summary(loaded))
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(highlight=False, emoji=False).print(Markdown(model_card(loaded, raw_rows=loaded.records is not None)))


def summary(model: TableModel) -> dict[str, Any]:
    """The model as plain values."""
    method = model.method
    return {
        "method": model.deciders[0],
        "refinement": model.refinement,
        "classes": list(model.classes),
        "cut": model.decision.cut,
        "operating": None if model.operating is None else model.operating.as_dict(),
        "priors": None if model.decision.priors is None else model.decision.priors.tolist(),
        "expected_priors": None if model.decision.expected_priors is None else model.decision.expected_priors.tolist(),
        "target": model.contract.target,
        "columns": [
            {
                "name": c.name,
                "kind": c.kind,
                "missing": c.missing,
                "levels": list(c.levels),
                "open": c.is_open,
                "spelling": c.spelling,
            }
            for c in model.contract.columns
        ],
        "left_out": dict(model.contract.left_out),
        "encoded_columns": list(model.output_names),
        "models": len(model.models),
        "groups": [] if method is None else [[model.output_names[c] for c in group] for group in method.column_groups],
        "alpha": method.alpha if isinstance(method, NearestModel) else None,
        "medoids": []
        if method is None
        else [
            {"class": model.classes[code], "training_row": int(row)}
            for code, row in zip(method.medoid_classes, method.medoid_rows, strict=True)
        ],
        "known_records": model.n_known_records,
        "raw_rows": model.records is not None,
        "row_hashes": 0 if model.seen is None else len(model.seen.hashes),
        "parameters": dict(model.parameters),
        "metrics": dict(model.metrics),
    }
