"""`circuit export`: the circuits of a model, with open angles or those of a record."""

import base64
import io
import json

import pytest

pytest.importorskip("qiskit", reason="needs the extra quantum")

from qiskit import qasm3, qpy
from small_tables import write

import qmedoid
from qmedoid import EvidenceClassifier, MedoidClassifier, VariationalClassifier
from qmedoid.quantum import qasm_text

QUICK = {"n_steps": 4, "n_seeds": 1, "n_reps": 1, "cv": 2, "random_state": 0}


@pytest.fixture(scope="module")
def refined(two, tmp_path_factory):
    """A model whose circuit decides a fifth of the records of the table of two classes."""
    frame = two.table.to_pandas()
    model = MedoidClassifier(
        method=EvidenceClassifier(n_medoids=6, n_neighbors=0, cv=3), refine=0.2, random_state=0,
        variational=VariationalClassifier(**QUICK), ignore=["id"],
    )  # fmt: skip
    model.fit(frame.drop(columns="y"), frame["y"])
    return model.save(tmp_path_factory.mktemp("refined") / "m.qmedoid")


def described(text):
    (line,) = [line for line in text.splitlines() if line.startswith("// qmedoid: ")]
    return json.loads(line.removeprefix("// qmedoid: "))


def test_circuits_in_every_form_are_one_circuit(cli, two, tmp_path):
    call = ("circuit", "export", two.model)
    (circuit,) = qpy.load(io.BytesIO(cli.ok(*call, "--format", "qpy").raw))
    assert circuit.num_qubits > 1
    text = cli.ok(*call, "--format", "qasm").out
    version, comment, *rest = text.splitlines()
    assert [version, *rest] == qasm3.dumps(circuit, disable_constants=True).splitlines()
    assert described(comment) == circuit.metadata["qmedoid"]
    assert "H" in cli.ok(*call).out
    printed = cli.ok(*call, "--format", "qasm", "--json").json
    assert printed["content"] == text
    assert printed["description"] == circuit.metadata["qmedoid"]
    packed = cli.ok(*call, "--format", "qpy", "--json").json
    (again,) = qpy.load(io.BytesIO(base64.b64decode(packed["content"])))
    assert qasm3.dumps(again) == qasm3.dumps(circuit)
    out = tmp_path / "c.qasm"
    report = cli.ok(*call, "--format", "qasm", "-o", out, "--json").json
    del printed["content"]
    assert report == {**printed, "output": str(out)}
    assert out.read_text() == text


def test_plain_qasm_is_that_of_python_and_measures_nothing(cli, two):
    call = ("circuit", "export", two.model, "--format", "qasm-plain")
    text = cli.ok(*call).out
    assert text == qasm_text(qmedoid.load(two.model).circuit(), plain=True)
    assert "include" not in text
    assert "measure" not in text
    refused = cli(*call, "--measure")
    assert refused.code == 2
    assert "measures nothing" in refused.err
    assert "--format qasm." in refused.err


def test_record_of_a_table_is_bound_in_every_form(cli, two, refined):
    saved = qmedoid.load(refined)
    row = int((saved.decided_by(two.table) == "circuit").argmax())
    call = ("circuit", "export", refined, two.file, "--row", row, "--measure")
    expected = saved.circuit(two.table, row, measure=True)
    description = expected.metadata["qmedoid"]
    (circuit,) = qpy.load(io.BytesIO(cli.ok(*call, "--format", "qpy").raw))
    assert circuit == expected
    assert circuit.metadata["qmedoid"] == description
    text = cli.ok(*call, "--format", "qasm").out
    assert text.startswith("OPENQASM 3.0;\n")
    assert described(text) == description
    assert description["row"] == row
    assert description["model"] == saved.sha256
    assert description["method"]["decides"] is True
    assert description["expected"]["class"] == saved.predict(two.table)[row]
    assert description["expected"]["probabilities"] == saved.predict_proba(two.table)[row].tolist()
    assert "outcome" in cli.ok(*call).out


def test_record_that_the_circuit_does_not_decide_is_noted(cli, two, refined):
    row = int((qmedoid.load(refined).decided_by(two.table) != "circuit").argmax())
    outcome = cli.ok("circuit", "export", refined, two.file, "--row", row)
    assert "note: The circuit does not decide this record, evidence does" in outcome.err
    printed = cli.ok("circuit", "export", refined, two.file, "--row", row, "--format", "qasm", "--json").json
    assert printed["description"]["method"]["decides"] is False
    assert len(printed["notes"]) == 1


def test_swap_test_of_a_record_and_a_medoid(cli, two, refined):
    medoids = cli.ok("explain", refined, two.file, "--row", 7, "--json").json["medoids"]
    call = ("circuit", "export", refined, two.file, "--row", 7)
    for medoid in medoids:
        named = ("--medoid", medoid["training_row"], "--format", "qasm")
        found = described(cli.ok(*call, "--which", "swap-test", *named).out)
        assert found["expected"]["distance"] == pytest.approx(medoid["distance"], rel=1e-12)
        assert found["medoid"] == {"training_row": medoid["training_row"], "class": medoid["class"]}
        assert described(cli.ok(*call, *named).out) == found  # a medoid says which circuit is meant
    outcome = cli(*call, "--which", "swap-test")
    assert outcome.code == 2
    for medoid in medoids:
        assert f"{medoid['training_row']} ({medoid['class']})" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--which", "variational"), 2, "--which swap-test"),
        (("--row", 3), 2, "need both a table and its row"),
        (("TABLE",), 2, "need both a table and its row"),
        (("--medoid", 3), 2, "give a table and a row as well"),
        (("TABLE", "--row", 90, "--medoid", 3), 3, "the table has 90 rows"),
        (("TABLE", "--row", 0, "--medoid", 10**6), 2, "Training row 1000000 is no medoid"),
        (("WITHOUT", "--row", 0, "--medoid", 3), 3, "missing: 'x1'"),
    ],
)
def test_wrong_calls_say_what_to_do(cli, two, tmp_path, arguments, code, message):
    other = write(two.table.drop_columns(["x1"]), tmp_path / "other.csv")
    given = [{"TABLE": two.file, "WITHOUT": other}.get(one, one) for one in arguments]
    outcome = cli("circuit", "export", two.model, *given)
    assert outcome.code == code, outcome
    assert message in outcome.err
    assert outcome.out == ""
    as_json = cli("circuit", "export", two.model, *given, "--json").json
    assert as_json["exit_code"] == code
    assert message in as_json["error"]
