"""Cells run in turn or side by side: the same results, kept as they come, and nothing left behind when one fails."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import light_tasks
import pytest
from benchmarks.studies.cells import Cell
from benchmarks.studies.paper import STUDY
from benchmarks.studies.runner import StudyError, find_done, run_cells
from light_tasks import LIGHT, SLOW, run_light

CODE = 1
OF_THE_RUN = ("seconds", "peak_mb")
"""What a result says of the machine and not of the method."""
BOTH = pytest.mark.parametrize("fresh", [False, True], ids=["kept", "fresh"])


def wine(method, seed=0):
    return Cell("small", "wine", "random", seed, method)


def figures(results):
    """Results without what differs from run to run, as text: equal to the last bit or not at all."""
    return {
        cell: json.dumps({key: value for key, value in result.items() if key not in OF_THE_RUN})
        for cell, result in results.items()
    }


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
    def test_results_are_kept_and_reported(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        cells, told = [wine("LogReg", seed) for seed in range(3)], []
        results = run_cells(STUDY, cells, None, jobs=1, report=lambda *done: told.append(done))
        assert {cell: result["seed"] for cell, result in results.items()} == {cell: cell.seed for cell in cells}
        assert told == list(results.items()) == [(cell, results[cell]) for cell in cells]
        assert all(result["seconds"] >= 0 and result["rows"] == 178 for result in results.values())
        assert list(tmp_path.iterdir()) == []
        results = run_cells(STUDY, cells, tmp_path, jobs=1)
        assert find_done(STUDY, cells, tmp_path) == results
        assert run_cells(STUDY, [], tmp_path, jobs=2) == {}

    def test_a_second_run_takes_what_is_left(self, toy, tmp_path):
        cells = [wine(method, seed) for method in ("LogReg", "printed") for seed in range(4)]
        run_cells(STUDY, cells[::2], tmp_path, jobs=1)
        done = find_done(STUDY, cells, tmp_path)
        assert set(done) == set(cells[::2])
        toy.clear()
        rest = run_cells(STUDY, [cell for cell in cells if cell not in done], tmp_path, jobs=1)
        assert sorted(toy) == sorted(cells[1::2])
        assert find_done(STUDY, cells, tmp_path) == done | rest

    @pytest.mark.usefixtures("toy")
    def test_a_cell_that_fails_is_named_and_those_before_it_are_kept(self, tmp_path):
        cells = [wine("LogReg", seed) for seed in (2, 5, 13, 20)]
        with pytest.raises(StudyError, match=r"'wine, LogReg, random split 13' failed: by seed") as failed:
            run_cells(STUDY, cells, tmp_path, jobs=1)
        assert isinstance(failed.value.__cause__, ZeroDivisionError)
        assert set(find_done(STUDY, cells, tmp_path)) == {wine("LogReg", 2), wine("LogReg", 5)}


class TestSideBySide:
    def test_results_are_those_of_one_after_another(self, tmp_path, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
        before = dict(os.environ)
        cells = [wine(method, seed) for method in ("printed", "LogReg") for seed in (0, 1)]
        told = []
        pair = run_cells(STUDY, cells, tmp_path / "2", jobs=2, report=lambda cell, _: told.append(cell))
        assert sorted(told) == sorted(cells)
        assert dict(os.environ) == before
        assert multiprocessing.active_children() == []
        in_turn = run_cells(STUDY, cells, tmp_path / "1", jobs=1)
        assert figures(pair) == figures(in_turn)
        assert find_done(STUDY, cells, tmp_path / "2") == pair
        assert find_done(STUDY, cells, tmp_path / "1") == in_turn

    @BOTH
    def test_every_cell_has_a_new_process_where_that_is_asked_for(self, tmp_path, fresh):
        results = run_light(*range(4), folder=tmp_path, jobs=2, fresh=fresh)
        processes = {result["process"] for result in results.values()}
        assert len(processes) == 4 if fresh else 1 <= len(processes) <= 2
        assert os.getpid() not in processes
        assert find_done(LIGHT, list(results), tmp_path) == results
        assert all(result["peak_mb"] > 0 for result in results.values())

    @BOTH
    def test_a_cell_that_fails_ends_all_at_once_and_is_named(self, fresh):
        begun, other = time.monotonic(), multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
        other.start()
        try:
            with pytest.raises(StudyError, match=r"The cell 'light, only, random split 13' failed: by seed"):
                run_light(15, 13, 16, 17, jobs=2, fresh=fresh)
            assert time.monotonic() - begun < SLOW
            assert multiprocessing.active_children() == [other]  # those of others are left alone
        finally:
            other.kill()
            other.join()

    @pytest.mark.skipif(os.name != "posix", reason="kills")
    @BOTH
    def test_a_process_that_is_killed_is_named_with_the_way_out(self, tmp_path, fresh):
        with pytest.raises(StudyError, match=r"was killed.*kept: run the same command again, with --jobs 1"):
            run_light(15, 14, folder=tmp_path, jobs=2, fresh=fresh)
        assert multiprocessing.active_children() == []

    @pytest.mark.skipif(os.name != "posix", reason="kills")
    def test_workers_do_not_outlive_a_parent_that_is_killed(self, tmp_path):
        code = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(light_tasks.__file__).parent)!r})
from light_tasks import run_light
if __name__ == "__main__":
    run_light(0, 15, 16, jobs=2, report=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
"""
        (tmp_path / "killed.py").write_text(code)
        # Workers hold the pipes of their parent: as long as one lives, reading does not end.
        command = [sys.executable, str(tmp_path / "killed.py")]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=env, capture_output=True, timeout=SLOW - 10, check=False)
        assert done.returncode == -signal.SIGKILL
        assert b"Traceback" not in done.stderr

    def test_an_interrupt_in_the_report_ends_the_workers_before_anybody_catches_it(self, tmp_path):
        def interrupt(_cell, _result):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_light(0, 15, 16, 17, folder=tmp_path, jobs=2, report=interrupt)
        assert multiprocessing.active_children() == []
        assert len([*tmp_path.rglob("*.json.gz")]) == 1
