"""How often the next table shows what `OperatingSummary.forecast` says it will: 95 % of the time, if it is right.

Run as ``QMEDOID_DATA=... python benchmarks/forecast_coverage.py`` (some 20 minutes on one core). Every run fits 1,000
rows of a table, or half of a shorter one, sets the threshold by each of six rules, and compares the forecast with what
up to three next tables of as many rows show. On tables whose rarer class is below a fifth, the method for rare events
is fitted, too, and counts as a rule. A figure that the next table does not define, such as the precision without an
alert, is left out. ``model's rate`` is how often the interval of the rate holds it, which is not made for it.

The constants of `qmedoid.metrics.intervals.next_table` were tried on the seeds 0 to 15; these are others.
"""

import argparse
import json
import math
import os
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.datasets import load_breast_cancer

from _timing import RESULTS, write_table
from qmedoid import MedoidClassifier
from qmedoid.metrics.intervals import Interval

# One class against all others, of tables with more than two.
ONE = {"sleep": "2", "optdigits": "3", "waveform_40": "0", "ann_thyroid": "3", "car": "2", "letter": "1"}
ONE |= {"covertype": "2"}
# Of a thousand rows of this one, one or two are frauds.
LEFT_OUT = ("creditcard",)
RULES: dict[str, Any] = {
    "likelier class": None,
    "alert rate 5 %": {"alert_rate": 0.05},
    "recall 90 %": {"min_recall": 0.9},
    "precision 80 %": {"min_precision": 0.8},
    "cost 5": {"cost": 5.0},
    "best F1": "f1",
}
RARE = "method rare"
MOST_ROWS, N_FIT, N_NEXT, FIRST_SEED = 20_000, 1000, 3, 100
Raw = tuple[pd.DataFrame, npt.NDArray[Any]]


def tables() -> Iterator[tuple[str, Raw]]:
    """The tables of the folder and a shipped one, with labels of two classes."""
    folder = Path(os.environ["QMEDOID_DATA"])
    for name, about in json.loads((folder / "MANIFEST.json").read_text()).items():
        if name in LEFT_OUT:
            continue
        file = folder / about["file"]
        table = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
        table = table.sample(min(len(table), MOST_ROWS), random_state=0).reset_index(drop=True)
        labels = table.pop(about["target"]).astype(str).to_numpy()
        yield name, (table, np.where(labels == ONE[name], "yes", "no") if name in ONE else labels)
    shipped = load_breast_cancer(as_frame=True).frame
    yield "breast cancer", (shipped, shipped.pop("target").astype(str).to_numpy())


def shown(positive: npt.NDArray[np.bool_], alerts: npt.NDArray[np.bool_], cost: float | None) -> dict[str, float]:
    """Figures of a table, NaN where one is not defined."""
    tp, fp, fn = (int(np.sum(one)) for one in (alerts & positive, alerts & ~positive, ~alerts & positive))
    n = len(positive)
    found = {
        "alert_rate": (tp + fp) / n,
        "precision": tp / (tp + fp) if tp + fp else math.nan,
        "recall": tp / (tp + fn) if tp + fn else math.nan,
        "f1": 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else math.nan,
    }
    return found if cost is None else found | {"cost": (cost * fn + fp) / n}


def run(raw: Raw, method: str, seed: int) -> Iterator[tuple[str, str, float, Interval, Interval | None]]:
    """Rule, figure, what a next table shows, its forecast, and the interval of the model's rate."""
    table, labels = raw
    n = min(N_FIT, len(labels) // 2)
    order = np.random.default_rng(seed).permutation(len(labels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MedoidClassifier(method=method, random_state=seed).fit(table.iloc[order[:n]], labels[order[:n]])
        rest = order[n : n + N_NEXT * n]
        decided = fitted.predict_proba(table.iloc[rest])
        with np.errstate(divide="ignore"):
            log_odds, positive = np.log(decided[:, 1]) - np.log(decided[:, 0]), labels[rest] == fitted.positive_
        for rule, asked in RULES.items():
            operating = fitted.model_.at_operating_point(asked).decision.operating
            assert operating is not None, "two classes have an operating point"
            forecast = operating.forecast(n)
            for start in range(0, len(rest) - n + 1, n):
                some = slice(start, start + n)
                alerts = log_odds[some] > operating.log_odds
                found = shown(positive[some], alerts, operating.asked if operating.rule == "cost" else None)
                for figure, value in found.items():
                    if figure in forecast and not math.isnan(value):
                        name = RARE if method == "rare" else rule
                        yield name, figure, value, forecast[figure], getattr(operating, figure, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4, help="samples of each table")
    parser.add_argument("--out", type=Path, default=RESULTS / "forecast_coverage.csv")
    asked = parser.parse_args()
    inside: dict[tuple[str, str], list[tuple[bool, bool | None]]] = defaultdict(list)
    by_table = list[str]()
    for name, raw in tables():
        by_table.append(name)
        rarer = min(np.mean(raw[1] == label) for label in np.unique(raw[1]))
        for method in ("auto", "rare") if rarer < 0.2 else ("auto",):
            for seed in range(FIRST_SEED, FIRST_SEED + asked.seeds):
                for rule, figure, value, forecast, rate in run(raw, method, seed):
                    of_rate = None if rate is None else rate.low <= value <= rate.high
                    inside[rule, figure].append((forecast.low <= value <= forecast.high, of_rate))
        every = [one for found in inside.values() for one, _ in found]
        print(f"{name}: {np.mean(every):.3f} of {len(every):,} figures so far", flush=True)
    lines = []
    for rule in [*RULES, RARE, "all"]:
        for figure in ("alert_rate", "precision", "recall", "f1", "cost", "all"):
            keys = [key for key in inside if rule in (key[0], "all") and figure in (key[1], "all")]
            found = [one for key in keys for one in inside[key]]
            rates = [one for _, one in found if one is not None]
            if found:
                lines.append(
                    {
                        "rule": rule,
                        "figure": figure,
                        "figures": len(found),
                        "forecast": round(float(np.mean([one for one, _ in found])), 3),
                        "model's rate": round(float(np.mean(rates)), 3) if rates else "",
                    }
                )
    print(f"{len(by_table)} tables")
    write_table(asked.out, "python benchmarks/forecast_coverage.py", lines, ("numpy", "scipy", "scikit-learn"))


if __name__ == "__main__":
    main()
