"""The reasons of a decision: the largest contributions, in order and with their direction, on seven tables."""

import os
from functools import lru_cache
from math import log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from few_trees import few_trees
from qmedoid import MedoidClassifier
from qmedoid.datasets import shipped_path
from qmedoid.metrics.texts import SMALLEST_FACTOR, column_text, odds_text

TRAINING, RECORDS = 200, 20


def from_folder(name, target):
    path = Path(os.environ.get("QMEDOID_DATA", "")) / f"{name}.parquet"
    if not path.is_file():
        pytest.skip(f"{name} is not here: run 'qmedoid data fetch {name}', or set QMEDOID_DATA to its folder")
    table = pd.read_parquet(path)
    return table.drop(columns=target), table[target]


def heart():
    table = pd.read_csv(shipped_path("heart.csv"))
    return table.drop(columns="HeartDisease"), table["HeartDisease"]


def without_copies():
    """Hypothyroid without flags that say which cells are missing: which of two equal columns is named is arbitrary."""
    X, y = from_folder("hypothyroid", "target")
    return X.drop(columns=[f"f{number}" for number in (14, 16, 18, 20, 22, 24)]), y


def frauds():
    """The fraud sample with all its frauds and as many others."""
    table = pd.read_parquet(shipped_path("creditcard_sample.parquet"))
    table = pd.concat([table[table["Class"] == 1], table[table["Class"] == 0].head(600)])
    return table.drop(columns="Class"), table["Class"]


TABLES = {
    "frauds": frauds,
    "stroke": lambda: from_folder("stroke", "stroke"),
    "heart": heart,
    "wine": lambda: load_wine(return_X_y=True, as_frame=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True, as_frame=True),
    "german_credit": lambda: from_folder("german_credit", "target"),
    "hypothyroid": without_copies,
}


@lru_cache
def split(name):
    X, y = TABLES[name]()
    order = np.random.default_rng(1).permutation(len(X))
    n = min(TRAINING, len(X) - RECORDS)
    training, held_out = order[:n], order[n : n + RECORDS]
    return X.iloc[training], y.iloc[training], X.iloc[held_out].reset_index(drop=True)


@lru_cache
def fitted(name, seed=None):
    """A model, on the columns of the table in their order or in another one."""
    X, y, _ = split(name)
    columns = X.columns if seed is None else np.random.default_rng(seed).permutation(X.columns)
    rule = {"operating_point": {"alert_rate": 0.2}} if name in ("frauds", "stroke", "german_credit") else {}
    with few_trees(n_iterations=60):
        return MedoidClassifier(random_state=0, **rule).fit(X[list(columns)], y).to_saved()


@lru_cache
def reports(name, seed=None):
    """Explanations of all records."""
    model, (_, _, records) = fitted(name, seed), split(name)
    return [model.explain(records, row) for row in range(len(records))]


def text(cell):
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return "missing"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def log_odds(name, row):
    """The log-odds of the class that reasons are for: of two the positive one, of more the predicted one."""
    report, classes = reports(name)[row], list(fitted(name).classes_)
    chances = fitted(name).predict_proba(split(name)[2])[row]
    toward = classes.index(report["toward"])
    other = classes.index(report["against"] if report["toward"] == report["prediction"] else report["prediction"])
    assert len(classes) > 2 or toward == 1
    assert report["toward"] == (classes[1] if len(classes) == 2 else report["prediction"])
    return float(np.log(chances[toward]) - np.log(chances[other]))


def parts(report):
    """What columns, and terms that belong to no column, add for one record."""
    return {one["name"]: one["contribution"] for one in report["columns"]} | {
        f"term {name}": value for name, value in report["varying"].items()
    }


@pytest.mark.parametrize("name", TABLES)
def test_start_and_all_contributions_add_up_to_the_log_odds(name):
    starts = {}
    for row in range(RECORDS):
        report = reports(name)[row]
        total = report["start"] + sum(parts(report).values())
        assert total == pytest.approx(log_odds(name, row), abs=1e-8)
        # Every record starts where every other one does.
        starts.setdefault((report["toward"], report["against"], report["prediction"]), []).append(report["start"])
        made = report.to_dict()
        assert made["start_probability"] == pytest.approx(1 / (1 + np.exp(-report["start"])))
        above = (
            report["margin"]
            if made["threshold"] is None
            else total - np.log(made["threshold"] / (1 - made["threshold"]))
        )
        assert above == pytest.approx(report["margin"], abs=1e-8)
    for values in starts.values():
        assert values == pytest.approx([values[0]] * len(values), abs=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_named_reasons_are_the_largest_in_order_and_each_moves_the_probability_as_it_says(name):
    records = split(name)[2]
    for row in range(RECORDS):
        report, at = reports(name)[row], log_odds(name, row)
        added, cells = parts(report), records.astype(object).iloc[row]
        said = " ".join(report.sentences)
        largest = max(map(abs, added.values()))
        for word, sign in (("Raises", 1), ("Lowers", -1)):
            ordered = sorted((one for one in added if sign * added[one] > 0), key=lambda one: -abs(added[one]))
            expected = [one for one in ordered if abs(added[one]) >= 0.1 * largest][:3]
            assert (f"{word} it: " in said) == bool(expected)
            if not expected:
                continue
            sentence = next(one for one in report.sentences if one.startswith(f"{word} it: "))
            named = sentence.removeprefix(f"{word} it: ").removesuffix(".").replace(" odds)", ")").split("), ")
            named = [f"{one.removesuffix(')')})" for one in named]
            assert len(named) == len(expected)
            for text_of, one in zip(named, expected, strict=True):
                assert text_of.endswith(f"({odds_text(added[one])})")
                if not one.startswith("term "):
                    assert text_of.startswith(f"{column_text(one, text(cells[one]))} (")
                # Without it, the probability is lower where it raises it.
                assert sign * (1 / (1 + np.exp(-at)) - 1 / (1 + np.exp(added[one] - at))) > 0
        start = report["margin"] - sum(added.values())
        if len(fitted(name).classes_) == 2:
            assert ("which weighs more than any reason" in said) == (abs(start) > largest)


@pytest.mark.parametrize("name", ["heart", "wine", "frauds"])
def test_reasons_of_scores_are_those_of_explanations(name):
    records, model = split(name)[2], fitted(name)
    found = model.score_table(records, add=["reasons"], n_reasons=4)["reasons"].to_pylist()
    for row, said in enumerate(found):
        report = reports(name)[row]
        named = [
            f"{column_text(one['name'], text(one['cell']))} ({odds_text(one['contribution'])}"
            for one in report["columns"][:4]
        ]
        assert said == "; ".join(f"{one}{'' if number else ' odds'})" for number, one in enumerate(named))


@pytest.mark.parametrize("name", ["heart", "wine"])
def test_reason_goes_where_its_cell_goes(name):
    """The margin falls, on the whole, where the cell of the first reason is replaced by those of training rows."""
    X, _, records = split(name)
    model = fitted(name)
    classes = list(model.classes_)
    others = X.sample(30, random_state=0)
    falls = 0
    for row in range(0, RECORDS, 2):
        report = reports(name)[row]
        sign = 1 if report["toward"] == report["prediction"] else -1
        winner, against = (classes.index(report[key]) for key in ("prediction", "against"))
        reason = max(report["columns"], key=lambda column: sign * column["contribution"])["name"]
        replaced = pd.concat([records.iloc[[row]]] * len(others))
        replaced[reason] = others[reason].to_numpy()
        scores = model.decide(replaced).scores
        falls += (scores[:, winner] - scores[:, against]).mean() < sign * report["margin"]
    assert falls >= 9


def test_column_that_does_not_change_the_odds_is_no_reason_of_a_score():
    rng = np.random.default_rng(1)
    X, y = pd.DataFrame(rng.random((225, 2)).round(4), columns=["a", "b"]), rng.choice(["p", "q"], 225)
    with few_trees():
        saved = MedoidClassifier(random_state=0).fit(X, y).to_saved()
    contributions = [abs(one["contribution"]) for row in range(20) for one in saved.explain(X, row)["columns"]]
    assert any(0 < size < log(SMALLEST_FACTOR) for size in contributions), "the model learned too much for this test"
    reasons = saved.score_table(X[:20], add=["reasons"]).column("reasons").to_pylist()
    assert not [text for text in reasons if text and ("×1.000" in text or "÷1.000" in text)]
