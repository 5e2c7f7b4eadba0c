"""A model as ONNX decides as the model itself, in onnxruntime."""

import json
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from agreement import assert_onnx_agrees
from engines import in_onnxruntime, onnx_session

from model_kinds import MODEL_KINDS, exported
from qmedoid import SavedModel, __version__
from qmedoid.exceptions import MissingExtraError, ModelError
from qmedoid.export.onnx.model import MISSING_MOMENT, onnx_file
from qmedoid.methods.neighbors.part import RowCells

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'qmedoid[onnx]'")
N_SCORED = 300
MIXED = "categories, dates and missing cells"


@pytest.mark.parametrize("kind", [kind for kind in MODEL_KINDS if kind != "nearest medoid"])
def test_onnx_decides_as_the_model(kind):
    saved, table = exported(kind, N_SCORED)
    found = in_onnxruntime(onnx_file(saved.model), table)
    assert_onnx_agrees(found, saved, table)
    assert not found["issues"].any()


def test_onnx_looks_for_neighbors_in_the_cells_around_a_record():
    """Cells of rows that lie anywhere: the nearest of all rows are often in none of the cells that are looked at."""
    saved, table = exported("sum", N_SCORED)
    model, rng = saved.model, np.random.default_rng(4)
    base, trees, near = model.parts
    cells = RowCells(np.arange(50), rng.permutation(len(near.row_numbers)) % 50)
    scattered = SavedModel(replace(model, parts=(base, trees, replace(near, cells=cells))))
    assert np.abs(scattered.decide(table).scores - saved.decide(table).scores).max() > 0.01
    assert_onnx_agrees(in_onnxruntime(onnx_file(scattered.model), table), scattered, table)


def test_onnx_takes_a_record_and_none():
    saved, table = exported("sum", N_SCORED)
    content = onnx_file(saved.model)
    assert_onnx_agrees(in_onnxruntime(content, table.slice(0, 1)), saved, table.slice(0, 1))
    assert in_onnxruntime(content, table.slice(0, 0))["margin"].shape == (0,)


def test_onnx_reads_odd_cells_as_the_model():
    saved, table = exported(MIXED, N_SCORED)
    row = table.slice(0, 1).to_pylist()[0]
    changes = [
        ({"third": None}, 0), ({"first": None}, 1), ({"second": float("inf")}, 1),
        ({"second": -1e200, "first": float("nan")}, 2), ({"kind of": None}, 0), ({"kind of": "green"}, 1),
        ({"kind of": "RED"}, 1), ({"city": "nowhere"}, 0), ({"city": None}, 1), ({"flag": None}, 0),
        ({"day": None}, 1), ({"moment": None}, 0), ({"moment": "1969-12-31T23:59:59.999999"}, 0),
        ({"moment": "2000-02-29T00:00:00"}, 0), ({"moment": "1900-03-01T12:30:15"}, 0),
        ({"moment": "2023-12-31T23:00:00"}, 0), ({"moment": "0004-02-29T01:00:00"}, 0),
    ]  # fmt: skip
    records = [row | change for change, _ in changes]
    for record in records:
        if isinstance(record["moment"], str):
            record["moment"] = np.datetime64(record["moment"], "us").item()
    odd = pa.Table.from_pylist(records, table.schema)
    found = in_onnxruntime(onnx_file(saved.model), odd)
    with pytest.warns(UserWarning, match="first"):
        assert_onnx_agrees(found, saved, odd)
    assert found["issues"].tolist() == [count for _, count in changes]


def test_onnx_has_every_month_right():
    """Days over the end of a century, against NumPy's calendar."""
    saved, table = exported(MIXED, N_SCORED)
    days = np.arange("1895-01-01", "2105-01-01", 11, dtype="M8[D]")
    rows = pa.Table.from_pylist(table.slice(0, 1).to_pylist() * len(days), table.schema)
    place = table.column_names.index("day")
    rows = rows.set_column(place, "day", pa.array(days, pa.date32()))
    found = in_onnxruntime(onnx_file(saved.model), rows)
    np.testing.assert_allclose(found["scores"], saved.decide(rows).scores, rtol=0, atol=1e-9)


def test_onnx_refuses_a_record_that_the_model_refuses():
    saved, table = exported("evidence", N_SCORED)
    model = saved.model
    strict = replace(model, encodings=(replace(model.encodings[0], fill=np.nan), *model.encodings[1:]))
    table = table.slice(0, 3).set_column(0, "first", pa.array([None, 0.5, float("inf")]))
    found = in_onnxruntime(onnx_file(strict), table)
    assert found["issues"].tolist() == [1, 0, 1]
    for row in (0, 2):
        assert np.isnan(found["margin"][row])
        assert np.isnan(found["probabilities"][row]).all()
        assert found["label"][row] == MISSING_MOMENT
        assert (found["nearest"][row] == -1).all()
    assert_onnx_agrees({name: values[1:2] for name, values in found.items()}, saved, table.slice(1, 1))


def test_onnx_says_what_it_is():
    saved, _ = exported(MIXED, N_SCORED)
    content = onnx_file(saved.model, "ab12")
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    about = onnx_session(content).get_modelmeta()
    properties = about.custom_metadata_map
    assert (properties["qmedoid"], properties["sha256"]) == (__version__, "ab12")
    assert json.loads(properties["classes"]) == [0, 1]
    kinds = {one["name"]: one["kind"] for one in json.loads(properties["inputs"])}
    assert kinds["moment"] == "date"
    assert "microseconds since 1970" in about.description


def test_onnx_refuses_the_papers_rule_in_a_sentence():
    message = r"^ONNX cannot express the part 'nearest' of this model: export the model as js\.$"
    with pytest.raises(ModelError, match=message):
        onnx_file(exported("nearest medoid", N_SCORED).saved.model)


def test_onnx_refuses_an_empty_name():
    saved, _ = exported("evidence", N_SCORED)
    model = saved.model
    columns = (replace(model.contract.columns[0], name=""), *model.contract.columns[1:])
    with pytest.raises(ModelError, match="empty name"):
        onnx_file(replace(model, contract=replace(model.contract, columns=columns)))


def test_onnx_names_the_extra_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"qmedoid\[onnx\]"):
        onnx_file(exported("evidence", N_SCORED).saved.model)
