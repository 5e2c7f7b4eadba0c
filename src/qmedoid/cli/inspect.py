"""``qmedoid inspect``: what a saved model is."""

from pathlib import Path
from typing import Any

import numpy as np

from qmedoid.cli._output import print_json, tell
from qmedoid.methods.nearest.model import NearestModel
from qmedoid.model.contract import Levels
from qmedoid.model.table import TableModel
from qmedoid.storage.card import model_card
from qmedoid.storage.model_file import ModelFile, load_file


def run(model: Path, *, as_json: bool) -> None:
    """Print the model card, or its contents as JSON."""
    loaded = load_file(model)
    if as_json:
        print_json(summary(loaded))
        return
    from rich.console import Console
    from rich.markdown import Markdown

    # Made from the model: a stored card may be of another version, or hold what steers a terminal.
    card = model_card(loaded.model, raw_rows=loaded.model.records is not None)
    Console(highlight=False, emoji=False).print(Markdown(card))
    if card != loaded.card:
        tell("note: card.md in the file differs from this card: another version wrote it, or it was changed.")


def summary(loaded: ModelFile) -> dict[str, Any]:
    """The model as plain values."""
    model = loaded.model
    method = model.method
    return {
        "sha256": loaded.sha256,
        "parent": model.parent,
        "versions": dict(loaded.versions),
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
        "known_records": model.n_neighbors,
        "raw_rows": model.records is not None,
        "row_hashes": 0 if model.seen is None else len(model.seen.hashes),
        "parameters": dict(model.parameters),
        "metrics": dict(model.metrics),
        "training": _training(model),
    }


def _training(model: TableModel) -> dict[str, Any] | None:
    """The summary of the training table."""
    training = model.training
    if training is None:
        return None
    columns = zip(model.contract.columns, model.encodings, training.level_shares, strict=True)
    levels = {
        column.name: dict(
            zip(encoding.levels if isinstance(encoding, Levels) else ("false", "true"), shares.tolist(), strict=True)
        )
        for column, encoding, shares in columns
        if len(shares)
    }
    curve, days = training.curve, training.days
    return {
        "rows": training.n_rows,
        "missing_shares": dict(zip(model.contract.names, training.missing_shares.tolist(), strict=True)),
        "level_shares": levels,
        "curve": None
        if curve is None
        else {
            "log_odds": curve.thresholds.tolist(),
            "true_positives": curve.true_positives.tolist(),
            "false_positives": curve.false_positives.tolist(),
            "positive": curve.n_positive,
            "negative": curve.n_negative,
        },
        "rows_per_day": None
        if days is None
        else dict(zip(np.datetime_as_string(days.days.astype("M8[D]")).tolist(), days.counts.tolist(), strict=True)),
    }
