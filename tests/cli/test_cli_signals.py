"""SIGTERM while a command runs: it leaves as after Ctrl-C, what it forked ends, and afterwards all is as before."""

import os
import signal
import sys
import threading

import pytest

from qmedoid.datasets import entry

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks of POSIX")


@pytest.fixture
def during(cli, monkeypatch, tmp_path):
    """What a command left during which a function was called."""

    def run(call):
        monkeypatch.setattr("qmedoid.cli.data.entry", lambda name: (call(), entry(name))[1])
        return cli("data", "fetch", "wine", "-o", tmp_path / "wine.csv")

    return run


def test_the_command_leaves(during):
    assert during(lambda: signal.raise_signal(signal.SIGTERM)).code == 143


def test_a_forked_process_ends_whatever_it_catches(during):
    statuses = []

    def fork():
        child = os.fork()
        if child == 0:
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                os._exit(0)
        statuses.append(os.waitpid(child, 0)[1])

    during(fork)
    assert [os.WTERMSIG(status) for status in statuses if os.WIFSIGNALED(status)] == [signal.SIGTERM]


def test_the_handler_is_as_before(cli):
    before = signal.getsignal(signal.SIGTERM)
    for arguments in (["--help"], ["inspect", "nosuch"]):
        cli(*arguments)
        assert signal.getsignal(signal.SIGTERM) is before


def test_beside_the_main_thread_no_handler_is_set(during):
    found, before = [], signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=during, args=[lambda: found.append(signal.getsignal(signal.SIGTERM))])
    thread.start()
    thread.join()
    assert found == [before]
