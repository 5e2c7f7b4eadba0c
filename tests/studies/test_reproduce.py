"""``qmedoid reproduce``: a folder that stands alone, runs that go on where they were, and errors before work."""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from benchmarks.studies import devices, report, runner
from benchmarks.studies.devices import DevicePlan
from benchmarks.studies.paper import Plan
from tests.studies.made_up_devices import made_up

TABLES = {
    "test_comparison", "summary", "test_fusion", "confusion_matrices", "class_wise", "alpha_sweep", "f_beta_sweep",
    "paired_differences", "within_the_spread", "cost",
}  # fmt: skip
PICTURES = {
    "accuracy_against_paper", "confusion_matrices", "confusion_matrices_validation", "alpha_sweep", "f_beta_sweep",
    "search_trace",
}  # fmt: skip


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def kept(folder):
    """The files of the results that runs have kept."""
    return sorted(folder.rglob("*.json.gz"))


def records(folder, name):
    """The rows of a table by the header of its file."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        assert file.readline().startswith("# command: qmedoid reproduce")
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def wine(cli, tmp_path_factory):
    """A quick run on the wines, in a folder whose name is no plain word."""
    folder = tmp_path_factory.mktemp("wine")
    output, cache = folder / "all of it" / "Übersicht 'α'", folder / "cache"
    outcome = cli.ok("reproduce", "wine", "--quick", "-o", output, "--cache", cache, "--jobs", 1)
    return SimpleNamespace(outcome=outcome, output=output, cache=cache, written=bytes_of(output), results=kept(cache))


@pytest.fixture
def no_work(monkeypatch):
    """Nothing may be run."""

    def refuse(_method, _load, cell, *_):
        raise AssertionError(f"{cell} was run")

    monkeypatch.setattr(runner, "_run_and_keep", refuse)


class TestFolder:
    def test_files(self, wine):
        names = {f"{name}.csv" for name in TABLES} | {f"{name}.svg" for name in PICTURES}
        assert set(wine.written) == names | {"findings.txt", "index.html"}
        assert all(wine.written.values())
        assert wine.outcome.err.startswith("16 cells are to be run. On a common machine that takes about 1 min.\n")
        assert wine.outcome.err.endswith(f"{len(wine.written)} files written to {wine.output}; open "
                                         f"{wine.output / 'index.html'}.\n")  # fmt: skip
        for title in ("Test rows: ours against plain classifiers", "Data sets, splits", "Confusion matrices"):
            assert title in wine.outcome.out

    def test_tables_have_a_header_and_rows_of_its_length(self, wine):
        for name in TABLES:
            rows = records(wine.output, name)
            assert rows
            assert all(None not in row and None not in row.values() for row in rows), name
        comparison = {row["figure"]: row for row in records(wine.output, "test_comparison")}
        assert comparison["accuracy"]["ours: paper"] == "0.9556"
        assert 0.8 < float(comparison["accuracy"]["ours: as printed"]) <= 1
        assert float(comparison["accuracy"]["LogReg: here"]) > 0.9
        assert "LogReg: here ±" in comparison["accuracy"]


class TestAgain:
    @pytest.mark.usefixtures("no_work")
    def test_second_run_runs_nothing_and_writes_the_same_bytes_beside_other_files(
        self, cli, wine, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        folder = tmp_path / "reproduction"  # unless another one is asked for
        folder.mkdir()
        (folder / "mine.txt").write_text("mine")
        outcome = cli.ok("reproduce", "wine", "--quick", "--cache", wine.cache, "--jobs", 1)
        assert bytes_of(folder) == wine.written | {"mine.txt": b"mine"}
        assert outcome.out == wine.outcome.out
        assert "reproduction" in outcome.err

    @pytest.mark.usefixtures("no_work")
    def test_json_holds_every_table(self, cli, wine):
        document = cli.ok("reproduce", "wine", "--quick", "-o", wine.output, "--cache", wine.cache, "--json").json
        assert bytes_of(wine.output) == wine.written
        assert document["folder"] == str(wine.output)
        assert set(document["files"]) == set(wine.written)
        assert document["provenance"]["command"] == "qmedoid reproduce wine --quick"
        assert "\n".join(document["findings"]) + "\n" == wine.written["findings.txt"].decode()
        assert set(document["tables"]) == TABLES
        for name, table in document["tables"].items():
            rows = records(wine.output, name)
            assert table["columns"] == list(rows[0]), name
            for own, row in zip(table["rows"], rows, strict=True):
                for value, text in zip(own, row.values(), strict=True):
                    if isinstance(value, float):
                        assert float(text) == pytest.approx(value, abs=0.51)
                    else:
                        assert text == ("" if value is None else str(value))


@pytest.mark.usefixtures("no_work")
class TestErrors:
    @pytest.mark.parametrize("as_json", [False, True])
    @pytest.mark.parametrize("option", ["-o", "--cache"])
    def test_output_or_cache_that_is_a_file(self, cli, tmp_path, option, as_json):
        (tmp_path / "file").write_text("mine")
        places = {"-o": tmp_path / "out", "--cache": tmp_path / "cache"} | {option: tmp_path / "file"}
        asked = [part for place in places.items() for part in place] + ["--json"][:as_json]
        outcome = cli("reproduce", "wine", "--quick", "--jobs", 1, *asked)
        assert outcome.code == 1
        assert f"'{tmp_path / 'file'}' cannot be written" in (outcome.json["error"] if as_json else outcome.err)
        assert not (tmp_path / "cache").exists()
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "file"]
        assert (tmp_path / "file").read_text() == "mine"

    @pytest.mark.parametrize(
        ("modules", "part", "named"),
        [
            (["lightgbm"], "wine", "LightGBM is not installed. Get it"),
            (["imblearn"], "fraud", "imbalanced-learn is not installed. Get it"),
            (["imblearn", "lightgbm"], "all", "LightGBM, imbalanced-learn are not installed. Get them"),
        ],
    )
    def test_missing_extra(self, cli, tmp_path, monkeypatch, modules, part, named):
        monkeypatch.setattr(report, "find_spec", lambda name: None if name in modules else object())
        outcome = cli("reproduce", part, "--quick", "-o", tmp_path / "out", "--cache", tmp_path / "cache")
        assert outcome.code == 1
        assert outcome.err == f"error: {named} with: pip install 'qmedoid[baselines]'\n"
        assert list(tmp_path.iterdir()) == []
        if modules == ["imblearn"]:
            report.require_extras(Plan(["wine", "heart", "breast-cancer"]))  # they need no SMOTE


def test_cell_that_fails_is_named(cli, tmp_path, monkeypatch):
    def fail(*_):
        raise FloatingPointError("no luck")

    monkeypatch.setattr(runner, "threadpool_limits", fail)
    outcome = cli("reproduce", "wine", "--quick", "-o", tmp_path / "out", "--cache", tmp_path / "c", "--jobs", 1)
    assert outcome.code == 1
    _outlook_line, error = outcome.err.splitlines()
    assert re.fullmatch(r"error: The cell 'wine, [\w-]+, random split 0' failed: no luck", error)
    assert list((tmp_path / "out").iterdir()) == []


def test_run_that_ctrl_c_stops_leaves_nothing_and_goes_on_where_it_was(cli, tmp_path, wine):
    """Stopped as soon as it has kept a result; a pipe that ends says that no worker holds it any more."""
    # Half of the results are there from before, so that the test takes half as long.
    for result in wine.results[::2]:
        copied = tmp_path / "cache" / result.relative_to(wine.cache)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(result, copied)
    asked = ("reproduce", "wine", "--quick", "-o", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), "--jobs")
    command, pipe = [sys.executable, "-m", "qmedoid", *asked, "2"], subprocess.PIPE
    process, limit = subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True), time.monotonic() + 60
    while len(kept(tmp_path)) == 8 and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    assert list((tmp_path / "out").iterdir()) == []
    done = len(kept(tmp_path))
    assert 8 < done < 16
    again = cli.ok(*asked, 1)
    assert f"{done} of 16 cells are there from before; {16 - done} are to be run." in again.err
    written = bytes_of(tmp_path / "out")
    assert set(written) == set(wine.written)
    # What it took differs from run to run, and the page shows it; all else is the same, side by side or in turn.
    assert {name for name in written if written[name] != wine.written[name]} <= {"cost.csv", "index.html"}


class TestDevices:
    """The study of devices is written as the other experiments are; what its cells find is tested with the studies."""

    @pytest.mark.usefixtures("no_work")
    def test_folder_and_terminal(self, cli, tmp_path):
        plan, store = DevicePlan().quick(), runner.CellStore(tmp_path / "cache")
        for cell, result in made_up(plan).by_cell.items():
            store.put(devices.STUDY.key(cell), result)
        outcome = cli.ok("reproduce", "devices", "--quick", "-o", tmp_path / "out", "--cache", tmp_path / "cache")
        assert {row["met"] for row in records(tmp_path / "out", "device_goals")} == {"yes"}
        assert "What records cost" in outcome.out
        assert "Goals of calibrated packed columns: 7 of 7 are met." in outcome.out
        first = (tmp_path / "out" / "device_goals.csv").read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("# command: qmedoid reproduce devices --quick | seed: 0")
        assert "| qiskit-aer: " in first
