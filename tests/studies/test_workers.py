"""Tasks in other processes: answers as they come, errors of tasks and of processes, and nothing left behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import types
from contextlib import closing
from pathlib import Path

import light_tasks
import pytest
from benchmarks.studies import workers
from benchmarks.studies.workers import WorkerKilledError, run_tasks
from light_tasks import SLOW, process_of

FRESH = pytest.mark.parametrize("fresh", [False, True], ids=["kept", "fresh"])


def run(*seeds, jobs=1, fresh=False):
    return closing(run_tasks(process_of, [(seed,) for seed in seeds], jobs, fresh=fresh))


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert multiprocessing.active_children() == []


@FRESH
def test_every_task_has_a_new_process_where_that_is_asked_for(fresh):
    with run(0, 1, 2, fresh=fresh) as answers:
        done = list(answers)
    assert [number for number, _ in done] == [0, 1, 2]
    processes = {answer() for _, answer in done}
    assert len(processes) == (3 if fresh else 1)
    assert os.getpid() not in processes


@FRESH
def test_an_error_comes_at_once_and_with_it_all_workers_end(fresh):
    begun = time.monotonic()
    with run(14, 13, 15, 16, jobs=2, fresh=fresh) as answers:
        number, answer = next(answers)
        assert number == 1
        with pytest.raises(ZeroDivisionError, match="by seed") as failed:
            answer()
    assert time.monotonic() - begun < SLOW
    assert "in process_of" in failed.value.__notes__[0]


def test_what_cannot_be_sent_back_is_an_error_of_the_task():
    ((_, answer),) = run_tasks(threading.Lock, [()], 1)
    with pytest.raises(RuntimeError, match="cannot be sent"):
        answer()


@pytest.mark.skipif(os.name != "posix", reason="kills")
def test_a_worker_that_is_killed_busy_or_idle():
    with run(0, 14, 1, jobs=2) as answers:
        assert next(answers)[0] == 0
        for worker in multiprocessing.active_children():
            worker.kill()
            worker.join()
        rest = dict(answers)
    assert set(rest) == {1, 2}
    for answer in rest.values():
        with pytest.raises(WorkerKilledError, match="ended before its task did"):
            answer()


@pytest.mark.skipif(os.name != "posix", reason="kills")
def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path):
    code = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(light_tasks.__file__).parent)!r})
from light_tasks import process_of
from benchmarks.studies.workers import run_tasks
if __name__ == "__main__":
    for number, _ in run_tasks(process_of, [(0,), (14,), (15,)], 2):
        os.kill(os.getpid(), signal.SIGKILL)
"""
    script = tmp_path / "killed.py"
    script.write_text(code)
    # Workers hold the pipe of their parent: as long as one lives, reading does not end.
    done = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=SLOW - 10, check=False)
    assert done.returncode == -signal.SIGKILL
    assert b"Traceback" not in done.stderr


def test_other_children_of_the_process_are_left_alone():
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    try:
        with run(0, 14, jobs=2) as answers:
            next(answers)
        other.join(0.2)
        assert other.is_alive()
    finally:
        other.kill()
        other.join()


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
