"""The only place where the golden values touch the package: its names today, on one side, neutral ones on the other.

A step that renames or moves something of the package changes this file; the stored values stay as they are.
"""

import csv
import io
import json
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmarks.studies.cells import load_numbered_heart

import qmedoid
from golden.cases import N_NEW, Case, Table
from qmedoid.cli import main

SEED = 0
LARGEST = 8
"""Groups of columns that an explanation keeps one by one."""
_EVIDENCE = ("n_medoids", "n_neighbors")
_RARE = ("n_rare", "n_common", "n_hard")
_NEAREST = ("n_anchors", "group_size", "n_medoids", "cv")


def prepared(case: Case) -> Case:
    """The case with its rows: those of an embedded table are read from the package."""
    if "embedded" not in case.settings:
        return case
    heart = load_numbered_heart()
    settings = {name: value for name, value in case.settings.items() if name not in ("embedded", "n_rows")}
    last = case.settings["n_rows"]
    new = slice(last, last + N_NEW)
    tables = [dict(zip(heart.feature_names, heart.X[rows].T.tolist(), strict=True)) for rows in (slice(last), new)]
    return Case(tables[0], tables[1], heart.y[:last].tolist(), {"raw": True, **settings})


def build(case: Case) -> Any:
    """The fitted classifier of a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = {} if case.groups is None else {"groups": case.groups}
        fitted = _classifier(case.settings).fit(case.train, case.target, **groups)
        return fitted if case.prevalence is None else fitted.prior_shift(case.prevalence)


def saved(model: Any, folder: Path) -> Any:
    """A classifier, or a loaded model, saved and loaded again."""
    model.save(folder)
    return qmedoid.load(folder)


def observe(model: Any, rows: Table) -> dict[str, Any]:
    """What a fitted classifier or a loaded model says of rows; both say the same.

    Classes stand in the order of the saved model: of two, the positive one is the second.
    """
    is_saved = isinstance(model, qmedoid.SavedModel)
    classes = model.classes_.tolist()
    found: dict[str, Any] = {"decisions": model.predict(rows).tolist()}
    values = model.decision_function(rows)
    order = list(range(len(classes)))
    positive = None if is_saved else getattr(model, "positive_", None)
    if positive is not None and positive != classes[1]:
        order, values = [1, 0], -values
    found["classes"] = [classes[place] for place in order]
    found["scores" if values.ndim == 2 else "margins"] = values.tolist()
    has_probabilities = model.model.decision.probabilistic if is_saved else hasattr(model, "predict_proba")
    found["probabilities"] = model.predict_proba(rows)[:, order].tolist() if has_probabilities else None
    return found


def describe(model: Any, folder: Path, rows: Table, explained: Sequence[int]) -> dict[str, Any]:
    """Everything about a loaded model and its decisions, by neutral names; `folder` is where it was loaded from."""
    card = json.loads(_printed("inspect", str(folder), "--json"))
    decided, observed = model.decide(rows), observe(model, rows)
    method = card["method"]
    medoid_rows = np.array([one["training_row"] for one in card["medoids"]], dtype=int)
    return {
        "method": method,
        "classes": observed["classes"],
        "columns": [{name: column[name] for name in ("name", "kind", "missing")} for column in card["columns"]],
        "left_out_columns": sorted(card["left_out"]),
        "encoded_columns": card["encoded_columns"],
        "groups": card["groups"],
        "alpha": card["alpha"],
        "medoids": {
            "classes": [one["class"] for one in card["medoids"]],
            "training_rows": [one["training_row"] for one in card["medoids"]],
        },
        "n_neighbors_kept": card["known_records"],
        "operating_point": _operating(card["operating"]),
        "priors": {"training": card["priors"], "expected": card["expected_priors"]},
        "steps": _steps(model),
        "decisions": observed["decisions"],
        "probabilities": observed["probabilities"],
        "scores": decided.scores.tolist(),
        "margins": decided.margins.tolist(),
        "novelty": model.novelty(rows).tolist(),
        "decided_by": model.decided_by(rows).tolist(),
        "nearest_medoids": None if decided.nearest is None else medoid_rows[decided.nearest].tolist(),
        "explanations": [_explained(model, folder, rows, row) for row in explained],
    }


def configuration(model: Any) -> dict[str, Any]:
    """What a fitted classifier chose beyond what its saved model shows."""
    method = getattr(model, "estimator_", model)
    found: dict[str, Any] = {}
    if hasattr(method, "regularization_"):
        found["lambda"] = float(method.regularization_)
    if hasattr(method, "configuration_"):
        found["subsets"] = [list(subset) for subset in method.configuration_]
        found["class_multipliers"] = method.class_multipliers_.tolist()
    if hasattr(model, "margin_") and np.isfinite(model.margin_):
        found["circuit_below_margin"] = float(model.margin_)
    return found


def _steps(model: Any) -> dict[str, Any]:
    """The steps of a fit in their order, each as a few figures: the first one that changed is where to look."""
    fitted = model.model
    part = fitted.medoid_part
    scaling, groups, medoids, weights = (dict[str, Any]() for _ in range(4))
    if part is None:
        scaling |= {"centers": fitted.circuit.angle_map.center, "scales": fitted.circuit.angle_map.scale}
    elif part.name == "evidence":
        linear, ranks, terms = part.linear_scaling, part.rank_scaling, part.terms
        scaling |= {"centers": linear.center, "scales": linear.scale, "knots": ranks.values, "ranks": ranks.scores}
        groups |= {"members": _joined(one.columns for one in part.groups)}
        groups |= {"weights": _joined(one.weights for one in part.groups)}
        medoids |= {"encoded": part.medoids}
        weights |= {"columns": part.column_weights, "lengths": terms.length, "centers": terms.center}
        weights |= {"terms": terms.weights, "intercepts": part.intercepts}
        if part.neighbors is not None:
            medoids |= {"neighbors": part.neighbors.records}
            weights |= {"neighbors": part.neighbors.amounts, "length": [part.neighbors.length]}
    elif part.name == "rare":
        geometry = part.geometry
        outer, inner = geometry.scaling.outer, geometry.scaling.inner
        scaling |= {"centers": outer.center, "scales": outer.scale}
        scaling |= {"centers of logarithms": inner.center, "scales of logarithms": inner.scale}
        groups |= {"metrics": geometry.metrics}
        medoids |= {"rare": geometry.rare, "common": geometry.common}
        weights |= {"centers": part.center, "scales": part.scale, "features": part.weights}
        weights |= {"intercepts": [part.intercept]}
    else:
        for name, one in (("inputs", part.input_scaling), ("features", part.feature_scaling)):
            scaling |= {f"centers of {name}": one.center, f"scales of {name}": one.scale}
        groups |= {"members": _joined(part.configuration), "weights": _joined(part.weights)}
        medoids |= {"features": part.medoids}
        weights |= {"classes": part.multipliers, "distance": [part.alpha]}
    if fitted.circuit is not None:
        weights |= {"circuit": fitted.circuit.theta}
    bend = None if part is None else fitted.calibration
    steps = {"scaling": scaling, "groups": groups, "medoids": medoids, "weights": weights}
    found = {step: {name: _figures(values) for name, values in arrays.items()} for step, arrays in steps.items()}
    names = ("biases", "knots", "heights")
    calibration = (
        None if bend is None else {"slope": float(bend.slope), **{n: getattr(bend, n).tolist() for n in names}}
    )
    return {**found, "calibration": calibration}


def _joined(parts: Iterable[Any]) -> Any:
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])


def _figures(values: Any) -> list[float | int]:
    """How many numbers an array has, and means of their sizes and of themselves, weighted by their order."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    turned = np.abs(flat) * (1.0 + np.cos(np.arange(len(flat))))
    signed = flat * (1.0 + np.sin(np.arange(len(flat))))
    return [len(flat), *(float(one.mean()) if len(flat) else 0.0 for one in (turned, signed))]


def _classifier(settings: dict[str, Any]) -> Any:
    point = {name: settings[name] for name in ("operating_point",) if name in settings}
    circuit = qmedoid.VariationalClassifier(**settings["circuit"]) if "circuit" in settings else None
    if settings.get("paper"):
        nearest = qmedoid.NearestMedoidClassifier.paper(group_size=settings["group_size"])
        if circuit is not None:
            circuit = qmedoid.VariationalClassifier.paper(operating_point=None, **settings["circuit"])
            point |= {"variational": circuit, "refine": settings["refine"]}
        return qmedoid.MedoidClassifier.paper(method=nearest, random_state=SEED, **point)
    if settings.get("alone"):
        if circuit is not None:
            return circuit.set_params(random_state=SEED, **point)
        return _nearest(settings).set_params(random_state=SEED)
    return qmedoid.MedoidClassifier(
        method=_method_settings(settings), variational=circuit, refine=settings.get("refine", "auto"),
        positive=settings.get("positive"), random_state=SEED, **point,
    )  # fmt: skip


def _method_settings(settings: dict[str, Any]) -> Any:
    match settings["method"]:
        case "rare":
            return qmedoid.RareEventClassifier(comparisons=False, **{name: settings[name] for name in _RARE})
        case "nearest":
            return _nearest(settings)
    # "auto" is evidence on tables of this size.
    return qmedoid.EvidenceClassifier(**{name: settings[name] for name in _EVIDENCE})


def _nearest(settings: dict[str, Any]) -> Any:
    return qmedoid.NearestMedoidClassifier(**{name: settings[name] for name in _NEAREST if name in settings})


def _operating(card: dict[str, Any] | None) -> dict[str, Any] | None:
    if card is None:
        return None
    same = ("rule", "asked", "threshold", "log_odds", "held_out_rows", "draws_per_row", "counts", "prevalence")
    return {name: card[name] for name in (*same, "alert_rate", "precision", "recall")}


def _explained(model: Any, folder: Path, rows: Table, row: int) -> dict[str, Any]:
    given = model.explain(rows, row)
    report = _for_the_winner(given, 1.0 if given["toward"] == given["prediction"] else -1.0)
    return {
        "row": row,
        "prediction": report["prediction"],
        "against": report["against"],
        "margin": report["margin"],
        "probabilities": report.get("probabilities"),
        "decided_by": report["decided_by"],
        "columns": report["columns"],
        "groups": [_group(group) for group in report["groups"][:LARGEST]],
        "all_groups": sum(group["contribution"] for group in report["groups"]),
        "terms": report["terms"],
        "medoids": report["medoids"],
        "neighbors": report.get("neighbors", []),
        "reasons": _reasons(model, folder, rows, row),
    }


def _for_the_winner(value: Any, sign: float) -> Any:
    """A report whose contributions are for the class that was decided for, where they are above 0."""
    if isinstance(value, list):
        return [_for_the_winner(one, sign) for one in value]
    if not isinstance(value, Mapping):
        return value
    signed = {"contribution", "margin"}
    made = {key: sign * one if key in signed else _for_the_winner(one, sign) for key, one in value.items()}
    if "terms" in made:
        made["terms"] = {name: sign * one for name, one in made["terms"].items()}
    return made


def _group(group: dict[str, Any]) -> dict[str, Any]:
    """A group's part; of its medoids the first two."""
    kept = ("name", "columns", "contribution", "value", "medoid_values")
    found = {name: group[name] for name in kept if name in group}
    if "records" in group:
        of_medoid = ("class", "training_row", "distance", "contribution")
        found["medoids"] = [{name: one[name] for name in of_medoid} for one in group["records"][:2]]
    return found


def _reasons(model: Any, folder: Path, rows: Table, row: int) -> str:
    """The columns that ``qmedoid explain`` says decide, three for the decision and three against it, as a sentence."""
    names = list(model.contract.names)
    columns = [rows[name] for name in names] if isinstance(rows, dict) else rows.T.tolist()
    table = folder.parent / "rows.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([names, *zip(*columns, strict=True)])
    made = json.loads(_printed("explain", str(folder), str(table), "--row", str(row), "--top", "0", "--json"))
    made = _for_the_winner(made, 1.0 if made["toward"] == made["prediction"] else -1.0)
    named = [
        [
            f"{one['name']} is {_cell(one['cell'])} ({one['contribution']:+.3g})"
            for one in made["columns"]
            if sign * one["contribution"] > 0
        ][:3]
        for sign in (1, -1)
    ]
    parts = [", ".join(one) or "no column" for one in named]
    return f"Speaks for {made['prediction']}: {parts[0]}; against it: {parts[1]}."


def _cell(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _printed(*arguments: str) -> str:
    """What a command prints."""
    printed = io.StringIO()
    with patch.object(sys, "argv", ["qmedoid", *arguments]), patch.dict("os.environ", {"COLUMNS": "1000"}):
        try:
            with redirect_stdout(printed):
                main()
        except SystemExit as left:
            if left.code:
                raise RuntimeError(f"qmedoid {arguments[0]}: {printed.getvalue()}") from None
    return printed.getvalue()
