"""Cells run in turn or side by side: the same results, kept as they come, and nothing left behind when one fails."""

import json
import multiprocessing
import os
from dataclasses import replace

import pytest
from benchmarks.studies import runner
from benchmarks.studies.plan import STUDY
from benchmarks.studies.runner import CellStore, StudyError, find_done, run_cells
from benchmarks.studies.splits import Cell
from benchmarks.studies.workers import WorkerKilledError

from qmedoid.exceptions import DataError, OutputError

OF_THE_RUN = ("seconds", "peak_mb")
"""What a result says of the machine and not of the method."""


def wine(method, seed=0):
    return Cell("small", "wine", "random", seed, method)


def figures(results):
    """Results without what differs from run to run, as text: equal to the last bit or not at all."""
    return {
        cell: json.dumps({key: value for key, value in result.items() if key not in OF_THE_RUN})
        for cell, result in results.items()
    }


def n_workers():
    return len(multiprocessing.active_children())


def replaced(monkeypatch, run):
    """The study with another function for all its methods."""
    methods = {
        part: {name: replace(method, run=run, settings={}) for name, method in own.items()}
        for part, own in STUDY.methods.items()
    }
    monkeypatch.setitem(globals(), "STUDY", replace(STUDY, methods=methods))


@pytest.fixture
def toy(monkeypatch):
    """Cells that take no time; the list of those that were run. A cell of seed 13 fails."""
    seen = []

    def run(data, cell):
        if cell.seed == 13:
            raise ZeroDivisionError("by seed")
        seen.append(cell)
        return {"seed": cell.seed, "rows": len(data.y)}

    replaced(monkeypatch, run)
    return seen


class TestInTurn:
    @pytest.mark.usefixtures("toy")
    def test_results_are_kept_and_reported(self, tmp_path):
        cells, told = [wine("LogReg", seed) for seed in range(3)], []
        results = run_cells(STUDY, cells, tmp_path, jobs=1, report=lambda *done: told.append(done))
        assert {cell: result["seed"] for cell, result in results.items()} == {cell: cell.seed for cell in cells}
        assert told == list(results.items()) == [(cell, results[cell]) for cell in cells]
        assert find_done(STUDY, cells, tmp_path) == results
        assert all(result["seconds"] >= 0 and result["rows"] == 178 for result in results.values())

    def test_a_second_run_takes_what_is_left(self, toy, tmp_path):
        cells = [wine(method, seed) for method in ("LogReg", "printed") for seed in range(4)]
        run_cells(STUDY, cells[::2], tmp_path, jobs=1)
        done = find_done(STUDY, cells, tmp_path)
        assert set(done) == set(cells[::2])
        toy.clear()
        rest = run_cells(STUDY, [cell for cell in cells if cell not in done], tmp_path, jobs=1)
        assert sorted(toy) == sorted(cells[1::2])
        assert find_done(STUDY, cells, tmp_path) == done | rest

    def test_long_cells_come_first(self, toy, tmp_path):
        run_cells(STUDY, [wine("LogReg"), wine("default"), wine("RandomForest")], tmp_path, jobs=1)
        assert [cell.method for cell in toy] == ["default", "RandomForest", "LogReg"]

    @pytest.mark.usefixtures("toy")
    def test_a_cell_that_fails_is_named_and_those_before_it_are_kept(self, tmp_path):
        cells = [wine("LogReg", seed) for seed in (2, 5, 13, 20)]
        with pytest.raises(StudyError, match=r"'wine, LogReg, random split 13' failed: by seed") as failed:
            run_cells(STUDY, cells, tmp_path, jobs=1)
        assert isinstance(failed.value.__cause__, ZeroDivisionError)
        assert set(find_done(STUDY, cells, tmp_path)) == {wine("LogReg", 2), wine("LogReg", 5)}

    def test_errors_of_the_package_stay_what_they_are(self, monkeypatch, tmp_path):
        def refuse(_data, _cell):
            raise DataError("these data")

        replaced(monkeypatch, refuse)
        with pytest.raises(DataError, match=r"^these data$"):
            run_cells(STUDY, [wine("LogReg")], tmp_path, jobs=1)

    @pytest.mark.usefixtures("toy")
    def test_a_store_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(OutputError, match="cannot be written"):
            run_cells(STUDY, [wine("LogReg")], tmp_path / "file", jobs=1)

    def test_results_are_kept_under_the_key_of_what_ran(self, monkeypatch, tmp_path):
        cell, edited = wine("LogReg"), []

        def edit_sources(_data, _cell):
            edited.append(monkeypatch.setattr(runner, "module_digest", lambda _: "other sources"))
            return {"x": 1}

        replaced(monkeypatch, edit_sources)
        key = STUDY.key(cell)
        run_cells(STUDY, [cell], tmp_path)
        assert edited
        assert STUDY.key(cell) != key
        assert CellStore(tmp_path).get(STUDY.key(cell)) is None
        assert CellStore(tmp_path).get(key)["x"] == 1

    @pytest.mark.usefixtures("toy")
    def test_without_a_store_nothing_is_kept(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert run_cells(STUDY, [wine("LogReg")], None)[wine("LogReg")]["rows"] == 178
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.usefixtures("toy")
    def test_a_damaged_file_is_run_again(self, tmp_path):
        cells = [wine("LogReg", seed) for seed in range(2)]
        run_cells(STUDY, cells, tmp_path, jobs=1)
        damaged = sorted(tmp_path.rglob("*.json.gz"))[0]
        damaged.write_bytes(damaged.read_bytes()[:-9])
        assert len(find_done(STUDY, cells, tmp_path)) == 1

    @pytest.mark.usefixtures("toy")
    def test_nothing_to_do(self, tmp_path):
        assert run_cells(STUDY, [], tmp_path, jobs=2) == {}
        assert find_done(STUDY, [], tmp_path) == {}


def test_what_is_kept_is_what_was_measured(tmp_path):
    """Through the file nothing is lost: tables of a second run are those of the first."""
    cells = [wine(method) for method in ("printed", "LogReg")]
    results = run_cells(STUDY, cells, tmp_path, jobs=1)
    found = find_done(STUDY, cells, tmp_path)
    assert {cell: json.dumps(result) for cell, result in found.items()} == {
        cell: json.dumps(result) for cell, result in results.items()
    }
    assert found == results


class TestSideBySide:
    def test_results_are_those_of_one_after_another(self, tmp_path, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
        before = dict(os.environ)
        cells = [wine(method, seed) for method in ("printed", "LogReg", "LightGBM") for seed in (0, 1)]
        told = []
        pair = run_cells(STUDY, cells, tmp_path / "2", jobs=2, report=lambda cell, _: told.append(cell))
        assert sorted(told) == sorted(cells)
        assert dict(os.environ) == before
        assert n_workers() == 0
        in_turn = run_cells(STUDY, cells, tmp_path / "1", jobs=1)
        assert figures(pair) == figures(in_turn)
        assert figures(find_done(STUDY, cells, tmp_path / "2")) == figures(find_done(STUDY, cells, tmp_path / "1"))

    def test_a_cell_that_fails_in_a_fresh_process_ends_all_and_is_named(self, tmp_path, monkeypatch):
        before, asked, run_tasks = dict(os.environ), [], runner.run_tasks

        def spied(*arguments, fresh):
            asked.append(fresh)
            return run_tasks(*arguments, fresh=fresh)

        monkeypatch.setattr(runner, "run_tasks", spied)
        # A seed below 0 is refused by scikit-learn. The good cell is longer, so it is begun first.
        cells = [wine("printed"), wine("LogReg", -1), *(wine("LinearSVM", seed) for seed in range(4))]
        with pytest.raises(StudyError, match=r"The cell 'wine, LogReg, random split -1' failed: .*-1"):
            run_cells(STUDY, cells, tmp_path, jobs=1, fresh=True)
        assert asked == [True]
        assert dict(os.environ) == before
        assert n_workers() == 0
        assert set(find_done(STUDY, cells, tmp_path)) == {cells[0]}
        assert find_done(STUDY, cells, tmp_path)[cells[0]]["peak_mb"] > 0

    def test_an_interrupt_in_the_report_ends_the_workers_before_anybody_catches_it(self, tmp_path):
        def interrupt(_cell, _result):
            raise KeyboardInterrupt

        cells = [wine("LogReg", seed) for seed in range(8)]
        with pytest.raises(KeyboardInterrupt):
            run_cells(STUDY, cells, tmp_path, jobs=2, report=interrupt)
        assert n_workers() == 0
        assert 1 <= len(find_done(STUDY, cells, tmp_path)) < len(cells)


class TestOutcome:
    def test_a_result_is_passed_on(self):
        assert runner._outcome(lambda: {"x": 1}, wine("LogReg")) == {"x": 1}

    def test_interrupts_are_passed_on(self):
        def interrupted():
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            runner._outcome(interrupted, wine("LogReg"))

    def test_a_process_that_was_killed_is_named_with_the_way_out(self):
        def killed():
            raise WorkerKilledError

        with pytest.raises(StudyError, match=r"was killed.*kept: run the same command again, with --jobs 1") as failed:
            runner._outcome(killed, wine("LogReg"))
        assert isinstance(failed.value.__cause__, WorkerKilledError)
