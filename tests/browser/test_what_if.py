"""The what-if panel says of a record what the model says of it."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from summaries import summary, with_model

from model_kinds import MODEL_KINDS, exported
from qmedoid.report.summary import render

N_SCORED = 300
MIXED = "categories, dates and missing cells"
SCORE = """(records) => records.map((record) => {
  const found = report.live.score(record);
  return found.probabilities || found.scores;
})"""


def says(kind: str, table: pa.Table) -> Any:
    """What the model itself says: probabilities, or scores where it has none."""
    saved = exported(kind, N_SCORED).saved
    return saved.predict_proba(table) if saved.model.decision.probabilistic else saved.decide(table).scores


def as_texts(records: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: [None if one[name] is None else str(one[name]) for one in records] for name in records[0]})


def answer(opened) -> list[float]:
    return json.loads(opened.page.get_attribute("#wi-panel", "data-answer"))


def settle(opened) -> None:
    """Two frames: an answer follows its input in the next one."""
    opened.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def field(opened, column: str):
    return opened.page.get_by_label(column, exact=True)


@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_live_model_says_what_the_model_says(kind, open_page):
    found = exported(kind, N_SCORED)
    opened = open_page(render(with_model(found.saved, found.records[0])))
    expected = says(kind, found.table)
    np.testing.assert_allclose(opened.page.evaluate(SCORE, found.records), expected, atol=1e-9, rtol=0)
    np.testing.assert_allclose(answer(opened), expected[0], atol=1e-9, rtol=0)
    opened.assert_clean()


def test_form_changes_the_record_that_is_scored(open_page):
    found = exported(MIXED, N_SCORED)
    record = dict(found.records[1])
    opened = open_page(render(with_model(found.saved, record)))
    changes: list[tuple[str, Any]] = [
        ("first", 0.123456789012345), ("second", -7.5), ("third", None), ("kind of", "blue's"), ("kind of", None),
        ("city", "town 007"), ("flag", "true"), ("flag", None), ("day", "2024-03-01"),
        ("moment", "2001-02-03T04:05:06.789"), ("moment", None), ("fourth", 1e5),
    ]  # fmt: skip
    for column, cell in changes:
        control = field(opened, column)
        if control.evaluate("(one) => one.localName") == "select":
            control.select_option(label="(missing)" if cell is None else str(cell))
        else:
            control.fill("" if cell is None else str(cell))
        record[column] = cell
        settle(opened)
        np.testing.assert_allclose(
            answer(opened), says(MIXED, as_texts([record]))[0], atol=1e-9, rtol=0, err_msg=column
        )
    opened.page.click("#wi-reset")
    settle(opened)
    np.testing.assert_allclose(answer(opened), says(MIXED, found.table)[1], atol=1e-9, rtol=0)
    opened.assert_clean()


def test_form_is_filled_in_by_keys_alone(open_page):
    found = exported(MIXED, N_SCORED)
    record = dict(found.records[2])
    opened = open_page(render(with_model(found.saved, record)))
    field(opened, "first").focus()
    opened.page.keyboard.press("Control+A")
    opened.page.keyboard.type("1.25")
    record["first"] = 1.25
    settle(opened)
    np.testing.assert_allclose(answer(opened), says(MIXED, as_texts([record]))[0], atol=1e-9, rtol=0)


def test_form_starts_from_a_medoid(open_page):
    found = exported("evidence", N_SCORED)
    opened = open_page(render(with_model(found.saved, found.records[0])))
    opened.page.select_option("#wi-start", "3")
    settle(opened)
    medoid = found.saved.model.records[3]
    expected = found.saved.predict_proba(pa.table({name: [cell] for name, cell in medoid.items()}))
    np.testing.assert_allclose(answer(opened), expected[0], atol=1e-9, rtol=0)
    differing = opened.page.eval_on_selector_all(
        "#wi-near td:nth-of-type(2)", "(all) => all.map((one) => one.className)"
    )
    assert set(differing) == {""}  # the record is the medoid next to it


def cells_of(opened, table: str) -> list[list[str]]:
    return opened.page.eval_on_selector_all(
        f"{table} tbody tr", "(all) => all.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )


@pytest.mark.parametrize("kind", [MIXED, "shifted priors and a cut", "sum of more classes", "rare events"])
def test_contributions_add_up_in_printed_digits(kind, open_page):
    found = exported(kind, N_SCORED)
    opened = open_page(render(with_model(found.saved, found.records[0])))
    decided = found.saved.decide(found.table.slice(0, 1))
    rows = cells_of(opened, "#wi-why")
    terms = [round(1000 * float(row[2].replace("−", "-"))) for row in rows]
    assert sum(terms[:-1]) == terms[-1]
    scores = np.sort(decided.scores[0]) if len(decided.scores[0]) > 2 else decided.scores[0]
    assert terms[-1] == pytest.approx(1000 * (scores[-1] - scores[-2]), abs=0.51)
    assert rows[-1][0] == "Sum: log-odds"


def test_contributions_are_those_of_the_model(open_page):
    found = exported(MIXED, N_SCORED)
    opened = open_page(render(with_model(found.saved, found.records[0])))
    expected = found.saved.explain(found.table, row=0)
    own = {row[0]: float(row[2].replace("−", "-")) for row in cells_of(opened, "#wi-why")}
    for column in expected["columns"]:
        if column["contribution"]:
            assert own[column["name"]] == pytest.approx(column["contribution"], abs=1.1e-3)


def test_panel_says_decision_probability_and_what_is_wrong(open_page):
    found = exported(MIXED, N_SCORED)
    opened = open_page(render(with_model(found.saved, found.records[0])))
    page, expected = opened.page, says(MIXED, found.table)[0]
    assert page.inner_text("#wi-probability") == f"{100 * expected[1]:.1f} %"
    assert page.inner_text(".decision").startswith(f"Decision: {found.saved.predict(found.table)[0]}.")
    field(opened, "kind of").select_option(label="(another value)")
    field(opened, "first").fill("")
    settle(opened)
    assert page.eval_on_selector_all(".issues li", "(all) => all.map((one) => one.textContent)") == [
        "first is missing, and no training row lacked it.", "kind of has a value that no training row had.",
    ]  # fmt: skip
    assert field(opened, "first").get_attribute("aria-invalid") == "true"
    assert field(opened, "second").get_attribute("aria-invalid") == "false"
    opened.assert_clean()


def test_nearest_medoids_are_those_of_the_model_with_differing_cells_marked(open_page):
    found = exported(MIXED, N_SCORED)
    opened = open_page(render(with_model(found.saved, found.records[0])))
    model, decided = found.saved.model, found.saved.decide(found.table.slice(0, 1))
    head = opened.page.eval_on_selector_all("#wi-near thead th", "(all) => all.map((one) => one.textContent)")
    named = {int(text.split("training row ")[1].split(",")[0]) for text in head[2:]}
    assert named == {int(model.medoids.numbers[place]) for place in decided.nearest[0]}
    for row in opened.page.query_selector_all("#wi-near tbody tr"):
        own, *others = row.query_selector_all("td")
        for cell in others:
            differs = cell.text_content().startswith("≠ ")
            assert differs == ("differs" in (cell.get_attribute("class") or ""))
            assert differs == (cell.text_content().removeprefix("≠ ") != own.text_content())


def test_cells_of_medoids_are_computed_back_where_only_their_numbers_are_there(open_page):
    found = exported("rare events", N_SCORED)
    without = with_model(found.saved, found.records[0])
    without["live"]["document"]["medoids"]["records"] = None
    opened = open_page(render(without))
    head = opened.page.eval_on_selector_all("#wi-near thead th", "(all) => all.map((one) => one.textContent)")
    shown = cells_of(opened, "#wi-near")
    numbers = found.saved.model.medoids.numbers.tolist()
    for place, title in enumerate(head[2:]):
        medoid = found.saved.model.records[numbers.index(int(title.split("training row ")[1].split(",")[0]))]
        for row in shown:
            assert float(row[2 + place].removeprefix("≠ ")) == pytest.approx(medoid[row[0]], rel=1e-5)
    opened.assert_clean()


def test_wide_tables_show_the_most_important_columns_and_the_rest_on_demand(open_page):
    base = summary()
    found = exported("evidence", N_SCORED)
    wide = with_model(found.saved, found.records[0], base)
    # Columns that are declared to be read although no part of the model uses their values.
    extra = [
        {"name": f"x{place}", "kind": "number", "missing": True, "isOpen": False, "levels": [], "read": True,
         "missingValues": [], "outputs": 1, "encoding": {"type": "numbers", "fill": 0.0, "indicator": False}}
        for place in range(60)
    ]  # fmt: skip
    wide["live"]["document"]["columns"] += extra
    wide["columns"] = [{**base["columns"][0], "name": "x59", "importance": 9.0}, *base["columns"]]
    opened = open_page(render(wide))
    assert opened.page.locator(".field").count() == 24
    assert opened.page.locator(".field label").first.text_content() == "x59"
    opened.page.click("#wi-all")
    assert opened.page.locator(".field").count() == 64
