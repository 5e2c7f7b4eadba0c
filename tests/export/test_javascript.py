"""A model as JavaScript decides, measures and explains as the model itself."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from engines import as_javascript

from model_kinds import MODEL_KINDS, exported
from qmedoid import EvidenceClassifier, MedoidClassifier, SavedModel
from qmedoid.exceptions import ModelError
from qmedoid.export.javascript import FORMAT, as_document, engine, packed
from qmedoid.geometry.channels import EPSILON
from qmedoid.kernels.nearest import N_VISITS
from qmedoid.kernels.ties import SAME_PLACE, TIE
from qmedoid.methods.evidence.part import CLIP as EVIDENCE_CLIP
from qmedoid.methods.part import LARGEST
from qmedoid.methods.rare.part import CLIP as RARE_CLIP
from qmedoid.tables.difference import Issues
from qmedoid.tables.encode import encode_batch

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
    found = run_in_node(as_javascript(saved.model), exported(kind, N_SCORED).records, tmp_path)
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
    found = run_in_node(as_javascript(saved.model), records, tmp_path, N_EXPLAINED)
    for row, why in enumerate(found["why"]):
        expected = saved.explain(table, row=row)
        own = {column["name"]: column["contribution"] for column in why["columns"]}
        for column in expected["columns"]:
            assert own[column["name"]] == pytest.approx(column["contribution"], abs=1e-9)
        assert why["decision"] == expected["prediction"]
        assert why["toward"] == expected["toward"]
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
    found = run_in_node(as_javascript(saved.model), records, tmp_path)
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
    found = run_in_node(as_javascript(saved.model), records, tmp_path)
    assert [[(one["column"], one["problem"]) for one in issues] for issues in found["issues"]] == [
        [("kind of", "new level")], [("first", "missing")], [("day", "no date")], [("flag", "no boolean")],
        [("second", "no number")], [("second", "too large")], [("second", "absent"), ("second", "missing")],
    ]  # fmt: skip


ODD_CELLS = {
    "third": [
        "NaN", " nan ", "", " ", "1,5", "+1.5", ".5", "5.", "1E3", "0x10", "0b1", "0o7", "-Infinity", "inf", "1_000",
        "\u00a01.5\u00a0", "\ufeff1.5", "1.5\u0085", "\x1c1.5", True, 2**53 + 1, 1e150, 1.1e150, "1e400", "1e", "1.5f",
    ],
    "first": ["NaN", "", "0x10"],
    "flag": ["NaN", "TRUE", "on", "01", "-0", 2, 0.5, -0.0, " y ", "y\x1f"],
    "kind of": [
        " 1.500", "01.5", "+1.5", "RED", "NaN", "toString", "constructor", "__proto__", 1.5, True, "\ufeffred",
        "red\x85",
    ],
    "day": [
        "2023-02-29", "29.02.2024", 20240229, "2024-02-29T12:00Z", "2024-02-29T24:00", "0001-01-01", "10000-01-01",
        "12:30", "2024-02-29T12:00+23:59", "2024-02-29T12:00+24:00", "2024-02-29T12:00+99:99", "NaT",
    ],
}  # fmt: skip


@needs_node
def test_javascript_reads_odd_cells_as_tables_do(tmp_path):
    """What is no number, date, truth value or known level to a table is none to the engine, and both say so."""
    saved, table = exported("categories, dates and missing cells", N_SCORED)
    record = exported("categories, dates and missing cells", N_SCORED).records[0]
    cases = [(name, cell) for name, cells in ODD_CELLS.items() for cell in cells]
    script = as_javascript(saved.model)
    found = run_in_node(script, [record | {name: cell} for name, cell in cases], tmp_path)
    for (name, cell), scores, said in zip(cases, found["scores"], found["issues"], strict=True):
        changed = table.slice(0, 1).set_column(table.column_names.index(name), name, pa.array([cell]))
        expected, issues = _decided(saved.model, changed)
        np.testing.assert_allclose(scores, expected, atol=1e-10, err_msg=f"{name}: {cell!r}")
        assert bool(said) == bool(issues.columns), (name, cell)


def _decided(model, table):
    issues = Issues()
    return model.decide(encode_batch(table, model.contract, model.encodings, issues=issues)).scores[0], issues


@needs_node
def test_javascript_reads_texts_by_the_spelling_of_their_column(tmp_path):
    """A decimal comma, points between thousands, a percent sign, a currency, days before months."""
    rng = np.random.default_rng(3)
    values, y = rng.uniform(1, 9000, (120, 3)), rng.integers(0, 2, 120)
    values[:, 0] += 4000 * y
    turned = str.maketrans(",.", ".,")
    table = pa.table(
        {
            "amount": [f"{one:,.2f}".translate(turned) for one in values[:, 0]],
            "rate": [f"{one / 100:.1f} %" for one in values[:, 1]],
            "price": [f"${one:,.2f}" for one in values[:, 2]],
            "when": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(120)],
        }
    )
    classifier = MedoidClassifier(method=EvidenceClassifier(random_state=0), refine="never", random_state=0)
    model = classifier.fit(table, y).model_
    assert [column.spelling for column in model.contract.columns] == ["1.234,5", "1234.5 %", "1,234.5 $", "d.m.y"]
    changes = {
        "amount": ["1.234", "1.234,50", "1234.5", "1234,5", "1,234.5", "-12", "\u221212,5", ",5", "1.23", 1234.5],
        "rate": ["12.5 %", "12.5%", "12.5", "1e1 %", 12.5, 0.125],
        "price": ["1,234.5", "$ 1,234.5", "1,234.5$", "-$5", "1.234,5", "€5"],
        "when": ["2024-03-02", "2.3.2024", "02.03.2024 7:05", "03/02/2024", "31.02.2024"],
    }
    first = table.slice(0, 1)
    cases = [(name, cell) for name, cells in changes.items() for cell in cells]
    records = [first.to_pylist()[0] | {name: cell} for name, cell in cases]
    found = run_in_node(as_javascript(model), records, tmp_path)
    for (name, cell), scores, said in zip(cases, found["scores"], found["issues"], strict=True):
        changed = first.set_column(first.column_names.index(name), name, pa.array([cell]))
        expected, issues = _decided(model, changed)
        np.testing.assert_allclose(scores, expected, atol=1e-10, err_msg=f"{name}: {cell!r}")
        assert bool(said) == bool(issues.columns), (name, cell)


WRITTEN = {
    "weight": ("{:.1f} kg", ["84KG", "84 kgs.", "84 lb", "84", "kg 84", "٨٤ kg", "８４kg", "1.5e1 kg", "x kg"]),
    "price": ("€{:.1f}k", ["€1.2M", "1.2 Mio. €", "€800", "1.2", "$1.2k", "1.2k", "1e3k €", "1.2 lb"]),
    "elapsed": ("{:.0f}:28:03.5", ["1:28:00", "2 days, 1:28:00", "-1:28:00,5", "1:28", "99:59:59", "1:60:00", "9 min"]),
    "words": ("{:.0f}h 30m", ["90 min", "1h30m", "1.5 hours and 3 minutes", "45s", "1 week, 2 days", "5", "-1h"]),
    "iso": ("PT{:.0f}H30M", ["PT90M", "P1DT2H", "PT1.5S", "1h", "P", "pt1h"]),
    "height": ("{:.0f}'11\"", ["5'11\"", "5’11”", "5 ft 11 in", "5 feet", "6'", "5'12\"", "71", "5′10.5″"]),
    "power": ("{:.1f}×10^3", ["1.5×10³", "1.5x10^-2", "2·10⁻¹²", "1.5e3", "−1.5", "(2)", "2-", "1,5", "$5"]),
    "short": ("{:02d}.12.24", ["31.01.69", "31.01.68", "1.2.2024", "2024-01-02", "31.01.24 7:05", "31.02.24"]),
    "zone": ("2024-01-{:02d} 12:00 CET", ["2024-01-05 12:00 CEST", "2024-01-05 12:00 +01:00", "2024-01-05 12:00 IST",
                                          "2024-01-05T12:00Z", "２０２４-01-05"]),
    "time": ("{:d}:05", ["7:13", "07:13", "23:59:59", "24:00", "7"]),
}  # fmt: skip


@needs_node
def test_javascript_reads_units_durations_zones_and_digits_as_tables_do(tmp_path):
    """What a table reads is the same number, what it does not read is named by both."""
    values, y = np.arange(120) % 22 + 1, np.arange(120) // 11 % 2
    cells = {
        name: [form.format(v if "d" in form.split("}")[0] else v / 1.0) for v in values.tolist()]
        for name, (form, _) in WRITTEN.items()
    }
    table = pa.table(cells)
    classifier = MedoidClassifier(method=EvidenceClassifier(random_state=0), refine="never", random_state=0)
    model = classifier.fit(table, y).model_
    assert [(column.kind, column.spelling) for column in model.contract.columns] == [
        ("number", "1234.5 kg"), ("number", "1234.5k €"), ("number", "h:mm:ss"), ("number", "1h 30m"),
        ("number", "PT1H30M"), ("number", "5'11\""), ("number", "1234.5"), ("date", "d.m.yy"), ("date", ""),
        ("date", ""),
    ]  # fmt: skip
    first = table.slice(0, 1)
    tried = [(name, cell) for name, (_, given) in WRITTEN.items() for cell in given]
    records = [first.to_pylist()[0] | {name: cell} for name, cell in tried]
    found = run_in_node(as_javascript(model), records, tmp_path)
    for (name, cell), scores, said in zip(tried, found["scores"], found["issues"], strict=True):
        changed = first.set_column(first.column_names.index(name), name, pa.array([cell]))
        expected, issues = _decided(model, changed)
        np.testing.assert_allclose(scores, expected, atol=1e-10, err_msg=f"{name}: {cell!r}")
        assert bool(said) == bool(issues.columns), (name, cell)


@needs_node
def test_javascript_knows_columns_by_names_that_objects_are_born_with(tmp_path):
    names = ["__proto__", "constructor", "toString", "length"]
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 4))
    table = pa.table({name: X[:, place] for place, name in enumerate(names)})
    saved = SavedModel(MedoidClassifier(refine="never", random_state=0).fit(table, (X.sum(axis=1) > 0) * 1).model_)
    script = as_javascript(saved.model)
    records = table.to_pylist()
    found = run_in_node(script, [*records, {}], tmp_path)
    np.testing.assert_allclose(found["scores"][:-1], saved.decide(table).scores, atol=1e-10)
    assert not any(found["issues"][:-1])
    assert {one["column"] for one in found["issues"][-1] if one["problem"] == "absent"} == {*names}
    held = subprocess.run(
        [str(NODE), "-p", "JSON.stringify(require(process.argv[1]).medoids.records)", str(tmp_path / "model.js")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(held.stdout) == [dict(one) for one in saved.model.records]


def test_engine_has_the_constants_of_the_package():
    source = engine()
    for name, value in (
        ("LARGEST", LARGEST), ("TIE", TIE), ("SAME_PLACE", SAME_PLACE), ("EPSILON", EPSILON), ("FORMAT", FORMAT),
        ("MOST_VISITS", N_VISITS), ("EVIDENCE_CLIP", EVIDENCE_CLIP), ("RARE_CLIP", RARE_CLIP),
    ):  # fmt: skip
        text = source.split(f"{name} = ")[1]
        assert float(text[: min(text.index(sign) for sign in ",;" if sign in text)]) == value, name


@pytest.mark.parametrize(
    ("values", "kind"),
    [([0, 255], "u1"), ([-1, 7], "i2"), ([70_000], "i4"), ([0.5, np.nan], "f4"), ([[0.1]], "f8"), ([2.0**31], "f4"),
     ([], "u1")],
)  # fmt: skip
def test_packed_takes_the_smallest_type_that_is_exact(values, kind):
    one = packed(np.array(values))
    assert one["type"] == kind
    back = np.frombuffer(base64.b64decode(one["data"]), "<" + kind).reshape(one["shape"])
    np.testing.assert_array_equal(back, values)


def test_flattened_refuses_a_circuit():
    from sklearn.datasets import load_iris

    from qmedoid import VariationalClassifier

    X, y = load_iris(return_X_y=True)
    circuit = VariationalClassifier(n_steps=2, random_state=0).fit(X[:100:2], y[:100:2])
    with pytest.raises(ModelError, match="circuit takes part"):
        as_document(circuit.model_)


@needs_node
def test_javascript_finds_levels_that_look_the_same_as_tables_do(tmp_path):
    rng = np.random.default_rng(0)
    levels = ["Roma", "it's", "Caf\u00e9", "\u043d\u043e\u0441", "2.5", "a-b", "...", "m2"]
    town, x = rng.choice(levels, 400), rng.normal(size=400)
    label = (np.isin(town, levels[::2]) ^ (rng.random(400) < 0.2)).astype(int)
    made = MedoidClassifier(method="evidence", random_state=0).fit({"town": town, "x": x}, label).to_saved()
    letters = [
        *"Rom.ait'sCf-b25 \u0301\u200b\u00ad\u00a0\u2009\u2019`\u2013\u043e\u0430\u0435\u0421",
        *"\uff52\uff12\u00b2\u03bf\t\ufeff\u00e9\u043d\u0441",
        *levels * 8,
    ]
    odd = ["".join(rng.choice(letters, rng.integers(0, 4))) for _ in range(600)]
    odd += [
        level[:place] + one + level[place:] for level in levels for one in letters[:34] for place in range(len(level))
    ]
    odd += ["\uff32\uff4f\uff4d\uff41", "Cafe\u0301", "\uff12.5", "m\u00b2", "\u2026"]
    table = pa.table({"town": odd, "x": np.zeros(len(odd))})
    found = run_in_node(as_javascript(made.model), table.to_pylist(), tmp_path)
    np.testing.assert_allclose(found["scores"], made.decide(table, on_mismatch="warn").scores, atol=1e-10)
    assert len(np.unique(np.round(np.array(found["scores"])[:, 1], 6))) > len(levels)
