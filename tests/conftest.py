"""What all tests start from."""

import gc
import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import settings
from tests.closed_network import close_network

if TYPE_CHECKING:
    from tests.plain_environment import Plain

# Before anything imports SciPy, so that scikit-learn's checks of array inputs run instead of being skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Workers of pytest have the width of the terminal as a variable; what a command prints there must not depend on it.
os.environ.pop("COLUMNS", None)
# Laws that name no number of examples are tried on so many, and on others in every run.
settings.register_profile("check", max_examples=int(os.environ.get("QMEDOID_EXAMPLES", "100")), deadline=None)
settings.load_profile("check")
# A shell starts what it puts in the background with Ctrl-C turned off, and some tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def closed_network() -> None:
    """No test opens a connection beyond this machine."""
    close_network()


class Outcome(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self):
        return self.raw.decode()

    @property
    def json(self):
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.out)


def _call(arguments, stdin=None):
    """Run a command with its streams apart from those of the test; JSON must be as its schema says.

    The commands are asked, not the trees: fits grow few of them.
    """
    from tests.printed_json import check_printed

    from few_trees import few_trees
    from qmedoid.cli import main

    kept = sys.argv, sys.stdin, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.argv, sys.stdout, sys.stderr = ["qmedoid", *map(str, arguments)], out, err
    if stdin is not None:
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with few_trees():
            main()
    except SystemExit as stop:
        code = stop.code or 0
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = kept
    outcome = Outcome(code, out.buffer.getvalue(), err.buffer.getvalue().decode())
    assert b"Traceback" not in outcome.raw + err.buffer.getvalue()
    check_printed(arguments, outcome.raw)
    return outcome


@pytest.fixture(scope="session")
def cli():
    """``cli(*arguments, stdin=None)``, which gives an outcome; ``cli.ok`` insists on success."""

    def run(*arguments, stdin=None):
        return _call(arguments, stdin)

    def ok(*arguments, stdin=None):
        outcome = _call(arguments, stdin)
        assert outcome.code == 0, outcome.err or outcome.out
        return outcome

    run.ok = ok
    return run


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No data folder, an empty cache, and no network."""
    import sklearn.datasets

    def refuse(**_):
        raise OSError("there is no network")

    monkeypatch.delenv("QMEDOID_DATA", raising=False)
    monkeypatch.setenv("QMEDOID_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Plain"]:
    """What runs code with the package and some extras alone, of all that is installed."""
    from tests.plain_environment import Plain

    made = Plain(tmp_path_factory.mktemp("plain"))
    yield made
    made.close()


# Tests of some ten seconds, which share nothing with others, begin first: at the end, a core would wait for them.
LONGEST = (
    "test_site_builds_without_a_warning_and_stands_alone",
    "test_the_commands_print_what_the_pages_show",
    "test_every_processor_finds_the_same_model",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.name not in LONGEST)


def pytest_collection_finish() -> None:
    """What is there when tests begin stays to the end: the collector of garbage need not look at it again and again.

    Fits make many objects and few cycles, so it need not look often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
