"""`circuit plan` and `circuit run` of models with trained circuits."""

import json

import pyarrow as pa
import pyarrow.csv
import pytest

pytest.importorskip("qiskit_aer", reason="needs the extra quantum")

from small_tables import write
from tests.quantum.measurement.trained_models import alone, hybrid

import qmedoid

FEW = ("--shots", 20, "--n-qubits", 4, "--circuits-per-job", 5)


@pytest.fixture(scope="module", params=["hybrid", "circuit alone"])
def case(request, tmp_path_factory):
    """A saved model, and a table in a file."""
    model, rows = hybrid("two classes, some records") if request.param == "hybrid" else alone()
    folder = tmp_path_factory.mktemp("trained")
    names = [column.name for column in model.model.contract.columns]
    table = pa.table(dict(zip(names, rows[:6].T, strict=True)))
    return model.save(folder / "trained.qmedoid"), write(table, folder / "new.csv"), request.param


def text(outcome):
    return " ".join(outcome.out.split())


def test_plan_and_run_say_what_the_trained_circuit_takes_and_showed(cli, case, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # no cell of a table is broken into lines
    model, table, kind = case
    planned = cli.ok("circuit", "plan", model, table, *FEW, "--json").json
    own = planned["plan"]["trained_circuit"]
    assert own["records"] > 0
    assert planned["plan"]["jobs"] >= own["jobs"] > 0
    assert planned["notes"] == []
    shown = text(cli.ok("circuit", "plan", model, table, *FEW))
    assert ("then the trained circuit" if kind == "hybrid" else "the trained circuit alone") in shown
    assert ("rms error of s" in shown) == (kind == "hybrid")
    call = ("circuit", "run", model, table, "-o", tmp_path / "run", *FEW)
    found = cli.ok(*call, "--json").json
    assert found["plan"] == planned["plan"]
    plan = qmedoid.load(model).measurement_plan(pa.csv.read_csv(table), shots=20, n_qubits=4, circuits_per_job=5)
    assert found["result"] == json.loads(json.dumps(plan.run().summary()))
    assert len(found["result"]["trained_circuit"]["calibration"]) == own["observables"]
    again = text(cli.ok(*call))
    assert "of the trained circuit's values" in again
    assert "by_circuit" in (tmp_path / "run" / "records.csv").read_text()


def test_the_circuit_stays_simulated_where_that_is_asked_for(cli, case):
    model, table, kind = case
    outcome = cli("circuit", "plan", model, table, *FEW, "--refine", "simulated", "--json")
    if kind == "hybrid":
        assert outcome.json["plan"]["trained_circuit"] is None
        assert "simulated exactly" in outcome.json["notes"][0]
    else:
        assert outcome.code != 0
        assert "leaves nothing to measure" in outcome.json["error"]
    refused = cli("circuit", "plan", model, table, "--n-qubits", 1)
    assert refused.code == 2
    assert "trained circuit takes 2 qubits" in refused.err
