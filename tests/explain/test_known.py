"""The rows of a table that lie nearest to a record: found as plain loops find them, and named as what they are."""

import numpy as np
import pytest
from test_explanations_from_outside import fitted

from outside import Convex, Evidence, Outside, Part, Rare
from qmedoid import VariationalClassifier
from qmedoid.exceptions import ModelError, QMedoidWarning
from qmedoid.explain.explaining import N_SHOWN, NearestRows, explain_record
from qmedoid.model.contract import Contract
from qmedoid.saved import SavedModel, load
from qmedoid.tables.difference import Issues


def place(outside, record):
    """Where a record lies, by the saved arrays."""
    x = outside.encoded(record)
    outside = Part(outside, "parts.0", outside.first)
    match outside.first["type"]:
        case "evidence":
            return Evidence(outside, x).scaled[1] * np.sqrt(outside["column_weights"])
        case "rare":
            return Rare(outside, x).z * np.sqrt(outside["geometry.metrics"][0])
    return Convex(outside, x).v


@pytest.fixture(scope="module", params=["evidence", "sum", "rare", "nearest"])
def case(request, tmp_path_factory):
    table, codes, classifier = fitted(request.param)
    folder = classifier.save(tmp_path_factory.mktemp("known") / "m")
    return table.append_column("y", [codes]), codes, named(load(folder)), Outside(folder)


def named(model, target="y"):
    """The model with a name for its target."""
    contract = model.contract
    object.__setattr__(model.model, "contract", Contract(contract.columns, target, contract.left_out))
    return model


def test_nearest_rows_are_those_that_plain_loops_find(case):
    table, codes, model, outside = case
    records = table.drop_columns(["y"]).to_pylist()[:60]
    places = [place(outside, record) for record in records]
    for row in (2, 31):
        far = [float(np.sqrt(((one - places[row]) ** 2).sum())) for one in places]
        expected = sorted(range(60), key=lambda other, far=far: (far[other], other))[:N_SHOWN]
        known = model.explain(table, row, known=table.slice(0, 60))["known"]
        assert known["rows"] == 60
        assert [one["row"] for one in known["nearest"]] == expected
        assert expected[0] == row
        for one in known["nearest"]:
            assert one["distance"] == pytest.approx(far[one["row"]], abs=1e-9)
            assert one["class"] == codes[one["row"]]
            assert one["record"] == records[one["row"]]


def test_medoids_and_known_rows_are_as_far_as_each_other_says(case):
    table, _, model, _ = case
    for row in (5, 60):
        report = model.explain(table, row, known=table)
        for medoid in report["medoids"]:
            alone = model.explain(table, row, known=table.slice(medoid["training_row"], 1))["known"]["nearest"][0]
            assert alone["distance"] == pytest.approx(medoid["distance"], rel=1e-9, abs=1e-9)
            assert alone["record"] == medoid["record"]
            if medoid["training_row"] != row:
                assert report["known"]["nearest"][0]["distance"] <= medoid["distance"] + 1e-9


def test_batches_find_what_the_whole_table_does(case):
    table, _, model, _ = case
    report = explain_record(model.model, table.slice(7, 1), Issues())
    whole, parts = (NearestRows(model.model, table.slice(7, 1), report) for _ in range(2))
    whole.add(table, table["y"], Issues())
    for start in range(0, len(table), 23):
        part = table.slice(start, 23)
        parts.add(part, part["y"], Issues())
    assert whole.found() == parts.found()


def test_rows_without_a_target_have_no_class(case):
    table, _, model, _ = case
    why = model.explain(table, 1, known=table.drop_columns(["y"]))
    assert {one["class"] for one in why["known"]["nearest"]} == {None}
    assert [one["class"] for one in why["similar"]] == [None]


def test_record_itself_is_not_among_the_known_rows_of_its_own_table(case):
    table, _, model, _ = case
    why = model.explain(table, 31, known=table)
    assert why["known"]["rows"] == len(table)
    assert 31 not in [one["row"] for one in (*why["known"]["nearest"], *why["similar"])]


def test_most_similar_rows_of_each_class_share_the_cells_that_decide_most(case):
    table, codes, model, _ = case
    rows = table.slice(0, 60)
    for row in (2, 31):
        why = model.explain(table, row, known=rows)
        assert sorted(one["class"] for one in why["similar"]) == [0, 1]
        for one in why["similar"]:
            assert codes[one["row"]] == one["class"]
            alone = {}
            for other in np.flatnonzero(np.array(codes[:60]) == one["class"]).tolist():
                found = model.explain(table, row, known=rows.slice(other, 1))["similar"][0]
                alone[other] = found["difference"]
            assert one["difference"] == pytest.approx(min(alone.values()), abs=1e-12)
            assert one["row"] == min(alone, key=lambda other, alone=alone: (alone[other], other))
        same = next(one for one in why.similar if one["class"] == codes[row])
        assert same["difference"] == 0
        assert not same["differs"]


def test_rows_that_cannot_be_compared_are_passed_over(case):
    table, _, model, _ = case
    place = table.column_names.index("age")
    ages = table["age"].to_pylist()
    ages[4] = None
    broken = table.set_column(place, "age", [ages])
    with pytest.warns(QMedoidWarning, match="age"):
        known = model.explain(table, 4, known=broken, on_mismatch="warn")["known"]
    assert 4 not in [one["row"] for one in known["nearest"]] or known["nearest"][0]["distance"] > 0


def test_circuit_alone_measures_no_distance():
    table, codes, _ = fitted("evidence")
    X = np.column_stack([table["age"].to_numpy(), table["load"].to_numpy()])
    circuit = VariationalClassifier(n_steps=5, n_seeds=1, random_state=0).fit(X, codes)
    model = SavedModel(circuit.model_)
    with pytest.raises(ModelError, match="measures no distance"):
        NearestRows(model.model, table.slice(0, 1), {})
