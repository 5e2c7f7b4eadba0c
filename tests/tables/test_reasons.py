"""The reasons of a decision: the largest contributions of columns, in words; five tables, twenty records of each."""

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from outside import Outside
from sklearn.datasets import load_breast_cancer, load_wine

from few_trees import few_trees
from qmedoid import MedoidClassifier, load
from qmedoid.explanations.digits import signed
from qmedoid.explanations.sentences import two_sentences
from qmedoid.studies.datasets import shipped_path
from qmedoid.tables.saved import SavedModel

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


TABLES = {
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
    with few_trees(n_iterations=60):
        return SavedModel(MedoidClassifier(random_state=0).fit(X[list(columns)], y).table_model())


@lru_cache
def reports(name, seed=None):
    """Explanations of all records."""
    model, (_, _, records) = fitted(name, seed), split(name)
    return [model.explain(records, row) for row in range(len(records))]


def said(contributions, cells, sign):
    ordered = sorted(contributions, key=lambda name: -sign * contributions[name])
    named = [name for name in ordered if sign * contributions[name] > 0][: 2 if sign > 0 else 1]
    return " and ".join(f"{name} is {cells[name]} ({signed(contributions[name], 2)})" for name in named)


def text(cell):
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return "missing"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


@pytest.mark.parametrize("name", TABLES)
def test_named_reasons_are_the_largest_contributions_with_the_records_own_cells(name, tmp_path):
    model, (_, _, records) = fitted(name), split(name)
    model.save(tmp_path / "m")
    outside, probabilities = Outside(tmp_path / "m"), load(tmp_path / "m").predict_proba(records)
    for row in range(len(records)):
        report = reports(name)[row]
        contributions = {one["name"]: one["contribution"] for one in report["columns"]}
        cells = {column: text(cell) for column, cell in records.astype(object).iloc[row].items()}
        assert sum(contributions.values()) + sum(report["terms"].values()) == pytest.approx(report["margin"], abs=1e-9)
        sentence = two_sentences(report, [])[0]
        reasons, doubts = (said(contributions, cells, sign) for sign in (1, -1))
        assert not reasons or f"most of all because {reasons}" in sentence
        assert not doubts or sentence.endswith(f"; against it speaks that {doubts}.")
        if row % 10 == 0:
            assert contributions == pytest.approx(
                outside.explain(report["record"], probabilities[row])["columns"], rel=1e-8, abs=1e-9
            )


@pytest.mark.parametrize("name", TABLES)
def test_another_order_of_the_files_columns_changes_no_reason(name):
    assert fitted(name).contract.names != fitted(name, seed=2).contract.names
    for one, same in zip(reports(name), reports(name, seed=2), strict=True):
        assert two_sentences(one, []) == two_sentences(same, [])


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
        winner, against = (classes.index(report[key]) for key in ("prediction", "against"))
        reason = max(report["columns"], key=lambda column: column["contribution"])["name"]
        replaced = pd.concat([records.iloc[[row]]] * len(others))
        replaced[reason] = others[reason].to_numpy()
        scores = model.decide(replaced).scores
        falls += (scores[:, winner] - scores[:, against]).mean() < report["margin"]
    assert falls >= 9


def test_column_that_is_the_same_everywhere_is_no_reason():
    X, y, records = split("heart")
    model = SavedModel(MedoidClassifier(random_state=0).fit(X.assign(ward=1.0), y).table_model())
    for row in range(5):
        columns = {one["name"]: one for one in model.explain(records.assign(ward=1.0), row)["columns"]}
        assert "ward" not in columns or columns["ward"]["contribution"] == 0.0
