"""SIGTERM while a command runs: it leaves as after Ctrl-C, what it forked ends, and afterwards all is as before."""

import os
import signal
import sys
import threading

import pytest

from qmedoid.cli import _terminated_as_by_ctrl_c

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks of POSIX")


def test_the_command_leaves():
    with pytest.raises(SystemExit) as left, _terminated_as_by_ctrl_c():
        signal.raise_signal(signal.SIGTERM)
    assert left.value.code == 143


def test_a_forked_process_ends_whatever_it_catches():
    with _terminated_as_by_ctrl_c():
        child = os.fork()
        if child == 0:
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGTERM


def test_the_handler_is_as_before(cli):
    before = signal.getsignal(signal.SIGTERM)
    for arguments in (["--help"], ["inspect", "nosuch"]):
        cli(*arguments)
        assert signal.getsignal(signal.SIGTERM) is before


def test_beside_the_main_thread_no_handler_is_set():
    found, before = [], signal.getsignal(signal.SIGTERM)

    def beside():
        with _terminated_as_by_ctrl_c():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert found == [before]
