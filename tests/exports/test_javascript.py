"""A model as JavaScript decides, measures and explains as the model itself."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from model_kinds import MODEL_KINDS, exported
from qmedoid.exceptions import ModelError
from qmedoid.exports.flat import flattened
from qmedoid.exports.javascript import FORMAT, as_document, as_javascript, engine, script_json
from qmedoid.exports.packing import packed
from qmedoid.geometry.channels import EPSILON
from qmedoid.kernels.cells import N_VISITS
from qmedoid.kernels.ties import SAME_PLACE, TIE
from qmedoid.methods.base import LARGEST
from qmedoid.methods.evidence.model import CLIP as EVIDENCE_CLIP
from qmedoid.methods.rare.model import CLIP as RARE_CLIP

N_SCORED, N_EXPLAINED = 300, 10
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed: install Node.js 18 or later")

_RUN = """
const [model, records, count] = [require(process.argv[1]), require(process.argv[2]), Number(process.argv[3])];
const scored = records.map((one) => model.score(one));
console.log(JSON.stringify({
  scores: scored.map((one) => one.scores), codes: scored.map((one) => one.code),
  margins: scored.map((one) => one.margin), probabilities: scored.map((one) => one.probabilities),
  nearest: scored.map((one) => one.nearest.map((near) => near.place)), issues: scored.map((one) => one.issues),
  why: records.slice(0, count).map((one) => model.explain(one)),
}));
"""


def run_in_node(script: str, records: list, folder: Path, n_explained: int = 0) -> dict:
    assert NODE is not None
    (folder / "model.js").write_text(script, encoding="utf-8")
    (folder / "records.json").write_text(json.dumps(records), encoding="utf-8")
    files = [str(folder / "model.js"), str(folder / "records.json"), str(n_explained)]
    done = subprocess.run([NODE, "-e", _RUN, *files], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_javascript_decides_as_the_model(kind, tmp_path):
    saved, table = exported(kind, N_SCORED)
    found = run_in_node(as_javascript(flattened(saved.model)), exported(kind, N_SCORED).records, tmp_path)
    decided = saved.decide(table)
    np.testing.assert_allclose(found["scores"], decided.scores, atol=1e-10)
    np.testing.assert_allclose(found["margins"], decided.margins, atol=1e-10)
    clear = np.abs(decided.margins) > 1e-9
    np.testing.assert_array_equal(np.array(found["codes"])[clear], decided.codes[clear])
    np.testing.assert_array_equal(found["nearest"], decided.nearest)
    assert not any(found["issues"])
    if saved.model.decision.probabilistic:
        expected = saved.model.decision.probabilities(decided.scores)
        np.testing.assert_allclose(found["probabilities"], expected, atol=1e-12)


@needs_node
@pytest.mark.parametrize("kind", [kind for kind in MODEL_KINDS if kind != "nearest medoid"])
def test_javascript_explains_as_the_model(kind, tmp_path):
    saved, table = exported(kind, N_SCORED)
    records = exported(kind, N_SCORED).records[:N_EXPLAINED]
    found = run_in_node(as_javascript(flattened(saved.model)), records, tmp_path, N_EXPLAINED)
    for row, why in enumerate(found["why"]):
        expected = saved.explain(table, row=row)
        own = {column["name"]: column["contribution"] for column in why["columns"]}
        for column in expected["columns"]:
            assert own[column["name"]] == pytest.approx(column["contribution"], abs=1e-9)
        assert why["decision"] == expected["prediction"]
        assert sum(own.values()) + sum(why["terms"].values()) == pytest.approx(expected["margin"], abs=1e-9)
        for name, value in expected["terms"].items():
            assert why["terms"].get(name, 0.0) == pytest.approx(value, abs=1e-9), name


@needs_node
def test_javascript_reads_cells_as_tables_do(tmp_path):
    """Levels in other spellings, words for truth values, dates with zones, numbers as texts, and what is wrong."""
    saved, table = exported("categories, dates and missing cells", N_SCORED)
    plain = exported("categories, dates and missing cells", N_SCORED).records[:1] * 6
    changes = [
        {"kind of": " 1.5 ", "city": "town 007 "},
        {"flag": "Yes", "kind of": None},
        {"day": "2024-02-29", "moment": "2024-03-01T00:30:00+02:00"},
        {"moment": "1965-07-01 05:06:07.125", "third": None},
        {"moment": None, "flag": None},
        {"moment": "2024-02-28T23:59", "city": "nowhere"},
    ]
    records = [one | change for one, change in zip(plain, changes, strict=True)]
    columns = {name: [one[name] for one in records] for name in table.column_names}
    texts = pa.table({name: [None if v is None else str(v) for v in cells] for name, cells in columns.items()})
    found = run_in_node(as_javascript(flattened(saved.model)), records, tmp_path)
    np.testing.assert_allclose(found["scores"], saved.decide(texts).scores, atol=1e-10)


@needs_node
def test_javascript_names_what_is_wrong_with_a_record(tmp_path):
    saved, _ = exported("categories, dates and missing cells", N_SCORED)
    record = exported("categories, dates and missing cells", N_SCORED).records[0]
    changes = [
        {"kind of": "green"}, {"first": None}, {"day": "2024-02-30"}, {"flag": "maybe"}, {"second": "much"},
        {"second": 1e200},
    ]  # fmt: skip
    records = [record | change for change in changes]
    records.append({name: cell for name, cell in record.items() if name != "second"})
    found = run_in_node(as_javascript(flattened(saved.model)), records, tmp_path)
    assert [[(one["column"], one["problem"]) for one in issues] for issues in found["issues"]] == [
        [("kind of", "new level")], [("first", "missing")], [("day", "no date")], [("flag", "no boolean")],
        [("second", "no number")], [("second", "too large")], [("second", "absent"), ("second", "missing")],
    ]  # fmt: skip


def test_engine_has_the_constants_of_the_package():
    source = engine()
    for name, value in (
        ("LARGEST", LARGEST), ("TIE", TIE), ("SAME_PLACE", SAME_PLACE), ("EPSILON", EPSILON), ("FORMAT", FORMAT),
        ("MOST_VISITS", N_VISITS), ("EVIDENCE_CLIP", EVIDENCE_CLIP), ("RARE_CLIP", RARE_CLIP),
    ):  # fmt: skip
        text = source.split(f"{name} = ")[1]
        assert float(text[: min(text.index(sign) for sign in ",;" if sign in text)]) == value, name


def test_script_json_ends_no_script():
    text = script_json({"</script><!--": ["\u2028", "a&b"]})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"</script><!--": ["\u2028", "a&b"]}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 255], "u1"),
        ([-1, 7], "i2"),
        ([70_000], "i4"),
        ([0.5, np.nan], "f4"),
        ([0.1], "f8"),
        ([2.0**31], "f4"),
        ([], "u1"),
    ],
)
def test_packed_takes_the_smallest_type_that_is_exact(values, kind):
    assert packed(np.array(values))["type"] == kind


def test_packed_comes_back_exactly():
    import base64

    values = np.random.default_rng(0).normal(size=(3, 2))
    one = packed(values)
    back = np.frombuffer(base64.b64decode(one["data"]), "<" + one["type"]).reshape(one["shape"])
    np.testing.assert_array_equal(back, values)


def test_documents_are_json():
    for kind in MODEL_KINDS:
        json.dumps(as_document(flattened(exported(kind, N_SCORED).saved.model)), allow_nan=False)


def test_flattened_refuses_a_circuit():
    from sklearn.datasets import load_iris

    from qmedoid import SavedModel, VariationalClassifier

    X, y = load_iris(return_X_y=True)
    circuit = VariationalClassifier(n_steps=2, random_state=0).fit(X[:100:2], y[:100:2])
    with pytest.raises(ModelError, match="circuit takes part"):
        flattened(SavedModel(circuit.table_model()).model)
