"""Cells run in turn or side by side: the same results, kept as they come, and nothing left behind when one fails."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import types
from dataclasses import replace
from pathlib import Path

import light_cells
import pytest
from light_cells import LIGHT, SLOW, light

from qmedoid.exceptions import DataError, OutputError
from qmedoid.studies import runner, workers
from qmedoid.studies.plan import STUDY
from qmedoid.studies.runner import CellStore, StudyError, find_done, run_cells
from qmedoid.studies.splits import Cell
from qmedoid.studies.workers import WorkerKilledError

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
    def test_every_cell_has_a_new_process_where_that_is_asked_for(self):
        results = run_cells(LIGHT, light(0, 1), None, jobs=1, fresh=True)
        processes = {result["process"] for result in results.values()}
        assert len(processes) == 2
        assert os.getpid() not in processes

    def test_a_worker_runs_one_task_after_another(self):
        answers = list(workers.run_tasks(os.getpid, [(), (), ()], 1))
        assert [number for number, _ in answers] == [0, 1, 2]
        assert len({answer() for _, answer in answers}) == 1
        assert n_workers() == 0

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_fresh_workers_do_not_go_on_after_a_cell_that_fails(self, jobs):
        begun = time.monotonic()
        with pytest.raises(StudyError, match=r"'data, method, random split 13' failed: by seed") as failed:
            run_cells(LIGHT, light(0, 13, 14, 15, 16), None, jobs=jobs, fresh=True)
        assert time.monotonic() - begun < SLOW
        assert n_workers() == 0
        assert "in process_of" in failed.value.__cause__.__notes__[0]

    def test_what_cannot_be_sent_back_is_an_error_of_the_task(self):
        ((_, answer),) = workers.run_tasks(threading.Lock, [()], 1)
        with pytest.raises(RuntimeError, match="cannot be sent"):
            answer()

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

    def test_a_cell_that_fails_ends_all_and_is_named(self, tmp_path):
        before = dict(os.environ)
        # A seed below 0 is refused by scikit-learn. The good cell is longer, so it is begun first.
        cells = [wine("printed"), wine("LogReg", -1), *(wine("LinearSVM", seed) for seed in range(4))]
        with pytest.raises(StudyError, match=r"The cell 'wine, LogReg, random split -1' failed: .*-1"):
            run_cells(STUDY, cells, tmp_path, jobs=2)
        assert dict(os.environ) == before
        assert n_workers() == 0

    def test_an_interrupt_in_the_report_ends_the_workers_before_anybody_catches_it(self, tmp_path):
        def interrupt(_cell, _result):
            raise KeyboardInterrupt

        before, cells = dict(os.environ), light(0, 14, 15, 16)
        with pytest.raises(KeyboardInterrupt):
            run_cells(LIGHT, cells, tmp_path, jobs=2, report=interrupt)
        assert n_workers() == 0
        assert dict(os.environ) == before
        assert set(find_done(LIGHT, cells, tmp_path)) == {cells[0]}

    @pytest.mark.skipif(os.name != "posix", reason="kills")
    def test_a_worker_that_is_killed(self, tmp_path):
        def kill(_cell, _result):
            for worker in multiprocessing.active_children():
                worker.kill()

        cells = light(0, 14, 15, 16)
        with pytest.raises(StudyError, match=r"was killed.*kept: run the same command again, with --jobs 1") as failed:
            run_cells(LIGHT, cells, tmp_path, jobs=2, report=kill)
        assert isinstance(failed.value.__cause__, WorkerKilledError)
        assert n_workers() == 0
        assert set(find_done(LIGHT, cells, tmp_path)) == {cells[0]}

    @pytest.mark.skipif(os.name != "posix", reason="kills")
    def test_workers_do_not_outlive_a_parent_that_is_killed(self, tmp_path):
        code = f"""
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(Path(light_cells.__file__).parent)!r})
from light_cells import LIGHT, light
from qmedoid.studies.runner import run_cells
if __name__ == "__main__":
    end = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    run_cells(LIGHT, light(0, 14, 15), Path({str(tmp_path)!r}), jobs=2, report=end)
"""
        script = tmp_path / "killed.py"
        script.write_text(code)
        # Workers hold the pipe of their parent: as long as one lives, reading does not end.
        done = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=SLOW - 10, check=False)
        assert done.returncode == -signal.SIGKILL
        assert b"Traceback" not in done.stderr
        assert list(tmp_path.rglob("*.json.gz"))

    def test_other_children_of_the_process_are_left_alone(self, tmp_path):
        other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
        other.start()
        try:
            with pytest.raises(StudyError):
                run_cells(LIGHT, light(13, 13), tmp_path, jobs=2)
            other.join(0.5)
            assert other.is_alive()
        finally:
            other.kill()
            other.join()


class TestOutcome:
    def test_a_result_is_passed_on(self):
        assert runner._outcome(lambda: {"x": 1}, wine("LogReg")) == {"x": 1}

    def test_interrupts_are_passed_on(self):
        def interrupted():
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            runner._outcome(interrupted, wine("LogReg"))


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="masks of POSIX")
class TestCtrlC:
    def test_it_waits_until_the_block_ends(self):
        reached = []

        def interrupted():
            with workers._ctrl_c_waits():
                signal.raise_signal(signal.SIGINT)
                reached.append("end")

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert reached == ["end"]

    def test_the_mask_is_as_before(self):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        with workers._ctrl_c_waits():
            assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before

    def test_where_there_are_no_masks_nothing_is_done(self, monkeypatch):
        monkeypatch.setattr(workers, "signal", types.SimpleNamespace())
        with workers._ctrl_c_waits():
            pass
