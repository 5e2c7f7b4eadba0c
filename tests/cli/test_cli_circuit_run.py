"""`circuit plan` and `circuit run`: what a measurement takes, runs that go on, and calls that are refused."""

import csv
import json
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason="needs the extra quantum")

from small_tables import small_table, write

import qmedoid
from qmedoid import EvidenceClassifier
from qmedoid.quantum import Device, RunFolder

QUICK = ("--shots", 16, "--n-qubits", 8, "--limit", 3, "--circuits-per-job", 2)


@pytest.fixture(scope="module")
def small(two, tmp_path_factory):
    """A model of few medoids for the table of two classes."""
    frame = two.table.to_pandas()
    model = EvidenceClassifier(n_medoids=4, n_neighbors=0, n_pairs=1, n_triples=0, cv=2, random_state=0)
    model.fit(frame[["x1", "x2"]], frame["y"])
    return model.save(tmp_path_factory.mktemp("small") / "small.qmedoid")


def patched(monkeypatch, *, fail_at=None, error=None):
    """Numbers of the jobs that are sent; one of them may fail."""
    found, submit = [], Device.submit

    def submits(self, batches, *, seed=(), key=None):
        if seed[0] == fail_at:
            raise error
        found.append(seed[0])
        return submit(self, batches, seed=seed, key=key)

    monkeypatch.setattr(Device, "submit", submits)
    return found


@pytest.fixture
def sent(monkeypatch):
    return patched(monkeypatch)


def test_plan_says_what_python_says_and_runs_nothing(cli, two, small, sent):
    printed = cli.ok("circuit", "plan", small, two.file, *QUICK, "--json").json
    assert sent == []
    plan = qmedoid.load(small).measurement_plan(two.table.slice(0, 3), shots=16, n_qubits=8, circuits_per_job=2)
    assert printed["plan"] == json.loads(json.dumps(plan.summary()))
    expected = printed["plan"]["expected"]
    assert printed["where"] == "exact simulator"
    assert expected["undecided"] == plan.undecided.sum()
    assert expected["undecided_rows"] == np.flatnonzero(plan.undecided).tolist()
    assert expected["margin_rms_error"] == pytest.approx(np.sqrt(np.mean(plan.expected_errors.margins**2)))
    errors = np.concatenate([one.errors for one in plan.expected_estimates])
    assert expected["overlap_rms_error"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    out = " ".join(cli.ok("circuit", "plan", small, two.file, *QUICK).out.split())  # whatever the width
    for words in (
        "3 records on simulator (exact simulator): interference, a test for each column, 16 shots",
        f"{printed['plan']['tests']:,} distinct ones of {printed['plan']['tests_asked']:,}",
        f"{printed['plan']['calibration_circuits']:,}",
        "expected rms error of s",
        f"{expected['undecided']} of 3",
    ):
        assert words in out


def test_run_writes_decisions_and_prints_what_was_found(cli, two, small, sent, tmp_path):
    out = tmp_path / "run"
    call = ("circuit", "run", small, two.file, "-o", out, *QUICK)
    printed = cli.ok(*call, "--json").json
    assert printed["finished_before"] is False
    assert sent == list(range(printed["plan"]["jobs"]))
    assert {*printed["files"]} == {"records.csv"}
    plan = qmedoid.load(small).measurement_plan(two.table.slice(0, 3), shots=16, n_qubits=8, circuits_per_job=2)
    result = plan.run()
    assert printed["result"] == json.loads(json.dumps(result.summary()))
    with (out / "records.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == result.columns()["class"].tolist()
    assert [float(row["margin"]) for row in rows] == result.decided.margins.tolist()
    manifest = json.loads((out / "run.json").read_text())
    assert manifest["asked"]["model"] == qmedoid.load(small).sha256
    sent.clear()
    again = cli.ok(*call)
    assert sent == []
    assert "was finished on" in again.err
    assert f"{int(result.kept.sum())} of 3" in again.out
    assert "records.csv, and the counts" in again.out
    as_json = cli.ok(*call, "--json").json
    assert as_json == {**printed, "finished_before": True}


def test_repeats_are_run_and_their_scatter_is_printed(cli, two, small, sent, tmp_path):
    call = ("circuit", "run", small, two.file, "-o", tmp_path / "run", *QUICK, "--repeats", 3)
    refused = cli(*call, "--max-circuits", 3)
    needed = 3 * cli.ok("circuit", "plan", small, two.file, *QUICK, "--json").json["plan"]["circuits"]
    assert refused.code == 2
    assert int(refused.err.partition("The plan has ")[2].split()[0]) > needed
    assert sent == []
    printed = cli.ok(*call, "--json").json
    found = printed["result"]["repeats"]
    assert sent == list(range(3 * printed["plan"]["jobs"]))
    assert found["repeats"] == 3
    assert found["margin_rms_scatter"] > 0
    assert found["margin_rms_planned"] == printed["plan"]["expected"]["margin_rms_error"]
    assert "margins of 3 repeats scatter by" in cli.ok(*call).out
    other = cli(*call[:-1], 2)
    assert other.code == 2
    assert "repeats (3 there, 2 now)" in other.err


def test_edited_counts_of_a_finished_run_are_not_printed(cli, two, small, sent, tmp_path):
    call = ("circuit", "run", small, two.file, "-o", tmp_path / "run", *QUICK)
    cli.ok(*call)
    sent.clear()
    file = min((tmp_path / "run" / "jobs").glob("*.npz"))
    file.write_bytes(file.read_bytes()[:-3] + b"abc")
    for more in ((), ("--json",)):
        refused = cli(*call, *more)
        assert refused.code != 0
        assert "agreement" not in refused.out
        assert "decided" not in refused.out
        assert f"{file.name} in" in refused.out + refused.err
        assert "changed after the run was finished" in refused.out + refused.err
    assert sent == []


def test_deprecations_of_a_sampler_are_shown_to_who_asks_for_warnings(cli, two, small, monkeypatch, tmp_path):
    submit = Device.submit

    def on_its_way_out(self, *asked, **settings):
        warnings.warn("this sampler is on its way out", DeprecationWarning, stacklevel=1)
        return submit(self, *asked, **settings)

    monkeypatch.setattr(Device, "submit", on_its_way_out)
    for options in ([], ["default::DeprecationWarning"]):
        monkeypatch.setattr(sys, "warnoptions", options)
        done = cli.ok("circuit", "run", small, two.file, "-o", tmp_path / f"run{len(options)}", *QUICK)
        assert ("on its way out" in done.err) == bool(options)


def test_dry_run_without_a_service_is_refused(cli, two, small):
    refused = cli("circuit", "plan", small, two.file, *QUICK, "--dry-run")
    assert refused.code == 2
    assert "A dry run is what the service of a device offers" in refused.err


def test_more_circuits_than_allowed_are_refused_before_any_runs(cli, two, small, sent, tmp_path):
    plan = cli.ok("circuit", "plan", small, two.file, *QUICK, "--json").json["plan"]
    needed = plan["circuits"] + plan["calibration_circuits"]
    call = ("circuit", "run", small, two.file, "-o", tmp_path / "run", *QUICK, "--max-circuits")
    refused = cli(*call, needed - 1)
    assert refused.code == 2
    assert f"The plan has {needed} circuits" in refused.err
    assert "--limit" in refused.err
    assert list(tmp_path.iterdir()) == sent == []
    cli.ok(*call, needed)
    assert len(sent) == plan["jobs"]


def test_other_model_table_or_options_in_the_same_folder_are_refused(cli, two, small, tmp_path):
    out = ("-o", tmp_path / "run")
    cli.ok("circuit", "run", small, two.file, *out, *QUICK)
    before = (tmp_path / "run" / "run.json").read_bytes()
    changed = write(small_table(seed=7), tmp_path / "other.csv")
    for arguments, words in (
        ((two.model, two.file), "the model ("),
        ((small, changed), "the records ("),
        ((small, two.file, "--seed", 1), "seed (0 there, 1 now)"),
        ((small, two.file, "--shots", 32), "shots (16 there, 32 now)"),
        ((small, two.file, "--no-calibrate"), "calibrate (True there, False now)"),
        ((small, two.file, "--limit", 2), "--limit) (3 there, 2 now)"),
        ((small, two.file, "--backend", "fake_torino"), "backend (simulator there, fake_torino now)"),
    ):
        refused = cli("circuit", "run", *arguments[:2], *out, *QUICK, *arguments[2:])
        assert refused.code == 2, refused
        assert "holds another run" in refused.err
        assert words in refused.err
        assert "Give another folder" in refused.err
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_rows_after_the_limit_do_not_matter(cli, two, small, sent, tmp_path):
    call = ("-o", tmp_path / "run", *QUICK)
    cli.ok("circuit", "run", small, two.file, *call)
    first = write(two.table.slice(0, 3), tmp_path / "first.csv")
    sent.clear()
    assert "was finished" in cli.ok("circuit", "run", small, first, *call).err
    assert sent == []


@pytest.mark.parametrize(
    ("job", "error", "code", "words"),
    [
        (1, KeyboardInterrupt(), 130, "are kept in"),
        (0, ConnectionError("no route to the device"), 1, "job 0 with ConnectionError: no route to the device."),
    ],
)
def test_run_that_was_stopped_says_so_and_goes_on(cli, two, small, monkeypatch, tmp_path, job, error, code, words):
    call = ("circuit", "run", small, two.file, "-o", tmp_path / "run", *QUICK)
    whole = cli.ok(*call[:5], tmp_path / "whole", *QUICK, "--json").json
    with monkeypatch.context() as patch:
        patched(patch, fail_at=job, error=error)
        stopped = cli(*call)
    assert stopped.code == code
    assert words in stopped.err
    assert code == 130 or "the same command goes on from there" in stopped.err
    assert code != 130 or len([*(tmp_path / "run" / "jobs").iterdir()]) == 1
    found = cli.ok(*call, "--json").json
    assert found["result"] == whole["result"]
    assert found["files"] == whole["files"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--shots", 0), 2, "--shots"),
        (("--shots", "many"), 2, "--shots"),
        (("--limit", 0), 2, "--limit"),
        (("--backend", "fake_nowhere"), 2, "There is no fake device 'fake_nowhere'"),
        (("--register", "row"), 2, "--register"),
    ],
)
def test_wrong_calls_say_what_to_do(cli, two, small, arguments, code, message):
    if "fake_nowhere" in arguments:
        pytest.importorskip("qiskit_ibm_runtime")
    outcome = cli("circuit", "plan", small, two.file, *arguments)
    assert outcome.code == code
    assert message in outcome.err
    assert outcome.out == ""


def test_tables_and_folders_that_cannot_be_used_are_refused(cli, two, small, tmp_path):
    empty = write(two.table.slice(0, 0), tmp_path / "empty.csv")
    other = write(two.table.drop_columns(["x1"]), tmp_path / "other.csv")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("")
    with RunFolder(tmp_path / "used"):
        for table, folder, code, words in (
            (empty, "run", 3, "no row"),
            (other, "run", 3, "missing: 'x1'"),
            (two.file, "full", 2, "files that are no run: notes.txt"),
            (two.file, "used", 2, "Another process is at work"),
        ):
            outcome = cli("circuit", "run", small, table, "-o", tmp_path / folder, *QUICK)
            assert (outcome.code, words in outcome.err) == (code, True), outcome.err
    assert not (tmp_path / "run").exists()
