"""Summaries of models for the tests of pages: made by hand, with or without a live model, plain or hostile."""

from typing import Any

from qmedoid import SavedModel
from qmedoid.export.javascript import as_document
from qmedoid.report.verdict import opening

HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 2">',
    "javascript:window.hacked=3",
    "=HYPERLINK(\"http://example.com\",\"x\")",
    "</script><svg onload=window.hacked=4>",
    "‮\u0000\u2028]]><!-- ${alert(1)} {{7*7}} '",
    "long " + "x" * 5_000,
]  # fmt: skip
"""Texts that would do harm in a page that does not escape them, and a long one."""
HUGE = "huge " + "x" * 10_000_000


def stops(n_rows: int, n_positives: int) -> dict[str, Any]:
    """A slider's stops: every number of alerts, with texts that no formula of the page could make."""
    alerts = list(range(n_rows + 1))
    tp = [round(n_positives * (1 - (1 - one / n_rows) ** 4)) for one in alerts]
    fp = [one - hit for one, hit in zip(alerts, tp, strict=True)]
    names = ("alerts", "alert_rate", "precision", "recall", "f1", "accuracy", "per_day", "cost")
    intervals = ("alert_rate_interval", "precision_interval", "recall_interval")
    return {
        "alerts": alerts,
        "threshold": [1 - (one + 0.5) / (n_rows + 1) for one in alerts],
        "threshold_text": [f"T{one}<" for one in alerts],
        "tp": tp,
        "fp": fp,
        "fn": [n_positives - one for one in tp],
        "tn": [n_rows - n_positives - one for one in fp],
        "texts": {
            **{name: [f"{name} {one} &lt;" for one in alerts] for name in names},
            **{name: [f"{name} {one} (&lt;{one} to 9)" for one in alerts] for name in intervals},
        },
        "command": [f"--threshold 0.{one:04d}" for one in alerts],
    }


def operating(n_rows: int) -> dict[str, Any]:
    n_positives = n_rows * 3 // 20
    line = [[step / 12, (step / 12) ** 0.5] for step in range(13)]
    return {
        "positive": "yes", "negative": "no", "rows": n_rows, "positives": n_positives, "per_day": 12.0,
        "about": "Counted on held-out rows.", "start": n_rows // 5, "stops": stops(n_rows, n_positives),
        "curves": {"roc": line, "pr": [[x, 1 - x / 2] for x, _ in line], "recall_by_alert_rate": line},
    }  # fmt: skip


def squares(names: list[str], n_rows: int) -> dict[str, Any]:
    """Forty squares of rows at even ranks, with the outcomes of the first stop."""
    cut, n = n_rows // 5, 40
    rank = [place * n_rows // n for place in range(n)]
    positive = [int(place % 3 == 0) for place in range(n)]
    outcome = [
        (0 if at < cut else 1) if one else (2 if at < cut else 3) for at, one in zip(rank, positive, strict=True)
    ]
    return {
        "classes": ["no", names[0]], "rows": n_rows, "counts": [5, 9, 3, 23], "about": "An even sample.",
        "rank": rank, "outcome": outcome, "row": list(range(n)), "class": positive,
        "called": [int(at < cut) for at in rank], "chance": [f"{100 - place} %" for place in range(n)],
        "columns": names, "why": [[[0, names[1], 0.7, "×2.0"], [1, None, -0.7, "÷2.0"]]] * n,
        "used": [0, 1], "cells": [[1.0, names[1]]] * n,
    }  # fmt: skip


def effect(column: str, labels: list[str], *, has_numbers: bool) -> dict[str, Any]:
    bins = [
        {"value": label, "low": float(place) if has_numbers else None, "high": place + 0.5 if has_numbers else None,
         "mean": place / 4 - 0.3, "p10": place / 4 - 0.5, "p90": place / 4, "rows": 10 + place}
        for place, label in enumerate(labels)
    ]  # fmt: skip
    missing = {"value": "missing", "low": None, "high": None, "mean": 0.1, "p10": 0.0, "p90": 0.2, "rows": 3}
    kind = "number" if has_numbers else "category"
    return {"column": column, "kind": kind, "unit": "log-odds", "toward": "yes", "bins": bins, "missing": missing}


def summary(texts: list[str] | None = None, n_rows: int = 200) -> dict[str, Any]:
    """A summary with every part; names, levels and cells are the given texts, or plain ones."""
    names = texts or ["age", "city", "income", "weight", "day", "kind", "flag"]
    statuses = ("problem", "tip", "passed", "not applicable", "ignored")
    found: dict[str, Any] = {
        "format": 2,
        "made": {"qmedoid": "0", "time": "2026-01-01T00:00:00Z", "model": names[0], "sha256": "ab" * 32,
                 "table": names[1], "command": f"qmedoid report {names[2]}"},
        "model": {
            "target": names[0], "classes": ["no", names[0]], "positive": names[0], "decided_by": "a sum", "rule": None,
            "parts": {names[1]: 1.0}, "n_medoids": 2, "n_neighbors": 0,
            "training_rows": 2000, "class_shares": [0.85, 0.15], "parameters": {names[1]: names[0], "seed": 1},
            "holds": "This page holds 2 rows.",
        },
        "columns": [
            {"name": name, "kind": "number", "read": True, "encoding": "the number itself", "missing": 0.01,
             "importance": 1.0 / (1 + place)}
            for place, name in enumerate(names)
        ],
        "n_columns": len(names),
        "left_out": [{"name": names[0], "reason": names[1]}],
        "figures": {"source": "held-out", "about": "Of held-out rows.", "rows": 2000, "on": "rows", "is_new": True,
                    "figures": [{"key": "accuracy", "name": "accuracy", "value": 0.9, "low": 0.8, "high": 0.95,
                                 "text": "0.9 (x to y)"}]},
        "baselines": {"about": "Side by side.", "figures": ["accuracy"],
                      "rows": [{"name": names[2], "values": ["0.9"], "best": [True]}],
                      "verdict": "No plain baseline wins.", "better": None},
        "confusion": {"labels": ["no", names[0]], "counts": [[1500, 200], [50, 250]], "about": None},
        "operating": operating(n_rows),
        "calibration": {"bins": [{"mean": p, "share": p, "low": p - 0.05, "high": p + 0.05, "count": 100}
                                 for p in (0.1, 0.5, 0.9)],
                        "error": 0.01, "by_chance": 0.02, "by_chance_high": 0.03},
        "effects": [effect(names[0], list("abcde"), has_numbers=True), effect(names[1], names, has_numbers=False)],
        "medoids": {"columns": names, "rows": [{"training_row": 7, "class": names[0], "cells": names}]},
        "table": None,
        "findings": [{"code": f"QM10{place}", "status": status, "title": names[0], "why": names[1], "do": names[2]}
                     for place, status in enumerate(statuses)],
        "live": {"absent": "There is no live model here."},
        "start_record": {},
        "squares": squares(names, n_rows),
        "errors": {"total": 3, "of_sample": False,
                   "rows": [{"row": 3, "true": "no", "called": names[0], "chance": "99 %", "why": f"{names[1]} (×2)"}]},
        "slices": [{"column": names[1], "levels": [
            {"level": name, "rows": 20, "counts": [5, 5, 5, 5], "right": "50 %", "interval": "27 to 73 %",
             "differs": differs} for name, differs in ((names[0], None), (names[2], "worse"))]}],
    }  # fmt: skip
    return {**found, "opening": opening(found)}


def with_model(saved: SavedModel, record: dict[str, Any], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """A summary with a live model that starts at a record."""
    document = as_document(saved.model)
    found = {**(summary() if base is None else base), "live": {"document": document}, "start_record": record}
    found["model"] = {**found["model"], "positive": document["classes"][1] if len(document["classes"]) == 2 else None}
    return found


def renamed(saved: SavedModel, record: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    """A summary whose live model has these texts as names of columns and as levels, where it has enough of them."""
    document = as_document(saved.model)
    found = with_model(saved, record, summary(texts))
    names = {column["name"]: text for column, text in zip(document["columns"], texts, strict=False)}
    for column in document["columns"]:
        column["name"] = names.get(column["name"], column["name"])
        if column["encoding"]["type"] == "levels":
            own = column["encoding"]["levels"]
            own[: len(texts)] = texts[: len(own)]
            column["levels"] = list(own)
    for one in document["medoids"]["records"] or []:
        for old, new in names.items():
            one[new] = texts[0] if isinstance(one.get(old), str) else one.pop(old, None)
    found["live"] = {"document": document}
    found["start_record"] = {names.get(name, name): cell for name, cell in record.items()}
    return found
