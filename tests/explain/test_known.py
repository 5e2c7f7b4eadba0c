"""The rows of a table that are most similar to a record: those that single comparisons find."""

import pytest
from test_explanations_from_outside import fitted

from qmedoid.explain.explaining import N_SHOWN, NearestRows, explain_record
from qmedoid.model.contract import Contract
from qmedoid.saved import SavedModel
from qmedoid.tables.difference import Issues


@pytest.fixture(scope="module", params=["evidence", "sum", "rare", "nearest"])
def case(request):
    table, codes, classifier = fitted(request.param)
    model, contract = SavedModel(classifier.model_), classifier.model_.contract
    object.__setattr__(model.model, "contract", Contract(contract.columns, "y", contract.left_out))
    return table.append_column("y", [codes]), codes, model


def test_rows_that_differ_least_come_first_and_those_of_each_class_are_similar(case):
    table, codes, model = case
    rows = table.slice(0, 60)
    records = rows.drop_columns(["y"]).to_pylist()
    for row in (2, 31):
        alone = [model.explain(table, row, known=rows.slice(other, 1))["known"]["nearest"][0] for other in range(60)]
        far = [one["difference"] for one in alone]
        assert (far[row], min(far) >= 0, max(far) <= 1) == (0.0, True, True)
        why = model.explain(table, row, known=rows)
        assert why["known"]["rows"] == 60
        nearest = why["known"]["nearest"]
        assert [one["row"] for one in nearest] == sorted(range(60), key=lambda other: (far[other], other))[:N_SHOWN]
        for one in nearest:
            assert one["difference"] == pytest.approx(far[one["row"]], abs=1e-12)
            assert (one["class"], one["record"]) == (codes[one["row"]], records[one["row"]])
        assert sorted(one["class"] for one in why["similar"]) == [0, 1]
        for one in why["similar"]:
            of_class = [other for other in range(60) if codes[other] == one["class"]]
            assert one["row"] == min(of_class, key=lambda other: (far[other], other))
            assert bool(one["differs"]) <= (one["row"] != row)


def test_batches_find_what_the_whole_table_does(case):
    table, _, model = case
    report = explain_record(model.model, table.slice(7, 1), Issues())
    whole, parts = (NearestRows(model.model, table.slice(7, 1), report) for _ in range(2))
    whole.add(table, table["y"], Issues())
    for start in range(0, len(table), 23):
        part = table.slice(start, 23)
        parts.add(part, part["y"], Issues())
    assert whole.found() == parts.found()


def test_rows_without_a_target_have_no_class(case):
    table, _, model = case
    why = model.explain(table, 1, known=table.drop_columns(["y"]))
    assert {one["class"] for one in why["known"]["nearest"]} == {None}
    assert [one["class"] for one in why["similar"]] == [None]


def test_record_itself_is_not_among_the_known_rows_of_its_own_table(case):
    table, _, model = case
    why = model.explain(table, 31, known=table)
    assert why["known"]["rows"] == len(table)
    assert 31 not in [one["row"] for one in (*why["known"]["nearest"], *why["similar"])]
