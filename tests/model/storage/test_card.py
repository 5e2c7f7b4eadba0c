"""The model card says what a reader must know, and no name in a table can break it."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_models import all_models, geometric, table_model

from qmedoid.model.contract import Column, Contract, Numbers
from qmedoid.model.storage.card import cell, model_card

MODELS = all_models()


@pytest.mark.parametrize("name", MODELS)
def test_card_tables_have_the_same_number_of_cells_in_all_rows(name):
    card = model_card(MODELS[name], raw_rows=True)
    tables = re.findall(r"(?:^\|.*\n)+", card, flags=re.M)
    assert tables
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert card.startswith("# Saved model\n")
    assert card.endswith("\n")


@given(st.text())
@settings(deadline=None)
def test_cell_of_any_text_is_one_line_without_markup(text):
    shown = cell(text)
    assert len(shown.splitlines()) <= 1
    assert not re.search(r"(?<!\\)(?:\\\\)*[`|<*\[]", re.sub(r"\\[`|<*\[]", "", shown))


def test_card_says_who_decides_about_what():
    selective = model_card(MODELS["selective"], raw_rows=True)
    assert "those with a narrow margin by a small trained quantum circuit" in selective
    assert "- Target: fraud?" in selective
    assert "- Classes (2): no, yes" in selective
    assert "- Circuit: 2 qubits, 3 inputs, 2 repetitions" in selective
    assert "| id | numbers its rows |" in selective
    assert r"| age \| \`x\` \_y\_ | number | the number itself, and whether it is missing |" in selective
    assert "| shop | category | 2 numbers from 4 levels, new ones expected |" in selective
    assert "| when | date | hour, days, and whether it is missing |" in selective
    assert "| accuracy | 0.75 |" in selective
    assert "| loss | nan |" in selective
    assert "| nested | a: None |" in selective
    cut = model_card(MODELS["nearest"], raw_rows=True)
    assert "called yes when its margin is above -0.25" in cut
    assert "they are not probabilities" in model_card(MODELS["printed"], raw_rows=True)
    assert "Every record is decided by a small trained quantum circuit" in model_card(MODELS["circuit"], raw_rows=True)
    several = model_card(MODELS["several medoids"], raw_rows=True)
    assert "- Medoids: 12 (3 of 0, 3 of 1, 3 of 2, 3 of 3)" in several


def test_card_says_what_to_expect():
    evidence = model_card(MODELS["evidence"], raw_rows=True)
    assert "by weighted distances, group of columns by group of columns, to the medoids" in evidence
    rule = "a recall of at least 0.9 on the rows it was chosen on"
    assert f"called yes if its probability is above 0.1824 ({rule}" in evidence
    assert "From 100 rows, each scored by a model that had not seen it. 19 of 20 new tables with as many" in evidence
    low, high = MODELS["evidence"].decision.operating.forecast()["alert_rate"][1:]
    assert f"| share called yes (alert rate) | 0.3 | {low:.4g} | {high:.4g} |" in evidence
    low, high = MODELS["evidence"].decision.operating.forecast(10_000)["alert_rate"][1:]
    many = model_card(MODELS["evidence"], raw_rows=True, rows=10_000)
    assert "that had not seen it. 19 of 20 new tables with 10,000 rows will show" in many
    assert f"| share called yes (alert rate) | 0.3 | {low:.4g} | {high:.4g} |" in many
    assert "| precision | 0.6667 |" in evidence
    assert "| recall | 0.9091 |" in evidence
    assert "circuit" not in evidence.split("## What it showed")[-1]
    assert "Shares of the classes that the model was made for: no 0.75, yes 0.25." in evidence
    assert "other shares" not in evidence
    shifted = model_card(MODELS["shifted"], raw_rows=True)
    assert "that had not seen it, at a prevalence of 0.01. 19 of 20 new tables" in shifted
    assert "Probabilities are those for other shares: no 0.99, yes 0.01." in shifted
    by_cost = model_card(MODELS["shifted by cost"], raw_rows=True)
    assert "a missed positive costs as much as 3.5 false alerts" in by_cost
    assert "new tables" not in by_cost
    assert "What to expect" not in model_card(MODELS["printed"], raw_rows=True)


def test_card_says_which_rows_are_kept():
    kept = model_card(MODELS["nearest"], raw_rows=True)
    assert "This file holds 2 of them, with 7 columns each" in kept
    bare = model_card(MODELS["nearest"], raw_rows=False)
    assert bare.count("holds none of them") == 1
    assert "2026-02-03" not in kept + bare  # a card names columns, not cells
    assert "holds none of them" in model_card(MODELS["no rows"], raw_rows=True)
    assert "counts of its 300 training rows: missing cells of every column" in kept
    assert "counts of its" not in model_card(MODELS["no rows"], raw_rows=True)
    assert "None: a circuit keeps" in model_card(MODELS["circuit"], raw_rows=True)


def test_card_of_a_wide_table_is_cut_short():
    columns = tuple(Column(f"c{i}", "number") for i in range(3000))
    numbers = tuple(Numbers(0.0) for _ in columns)
    parts = geometric(np.random.default_rng(0), n_columns=3000)
    wide = table_model(parts, records=None, contract=Contract(columns), encodings=numbers, training=None)
    card = model_card(wide, raw_rows=False)
    assert "2800 more are in manifest.json." in card
    assert len(card) < 20_000
