"""Atomic writes: errors, interrupts, kills, links and concurrent writers."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from qmedoid.exceptions import DataError
from qmedoid.model.storage import atomic
from qmedoid.model.storage.atomic import atomic_file, write_atomic

PART = ".out.csv.0123456789abcdef.part"
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")


@pytest.fixture
def target(tmp_path):
    file = tmp_path / "out.csv"
    file.write_text("old")
    return file


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_file_is_on_disk_before_it_gets_its_name(target, monkeypatch):
    calls, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: calls.append("fsync") or fsync(handle))
    monkeypatch.setattr(os, "replace", lambda a, b: calls.append((Path(a).parent, Path(b))) or replace(a, b))
    write_atomic(target, b"new")
    assert calls == ["fsync", (target.parent, target)]


def test_target_changes_only_at_the_end(target):
    with atomic_file(target) as out:
        out.write(b"new")
        out.flush()
        assert target.read_text() == "old"
        (part,) = set(names(target.parent)) - {target.name}
        assert atomic.PART.fullmatch(part)
        assert part.startswith(".out.csv.")
    assert target.read_text() == "new"
    assert names(target.parent) == ["out.csv"]


def test_permissions_of_a_new_file_are_the_usual_and_those_of_an_old_one_stay(target):
    usual = target.with_name("usual")
    usual.touch()
    with atomic_file(str(target.with_name("new"))) as out:
        out.write(b"x")
    assert target.with_name("new").stat().st_mode == usual.stat().st_mode
    target.chmod(0o640)
    with atomic_file(target) as out:
        out.write(b"x")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "error", [ValueError("bad row"), KeyboardInterrupt(), SystemExit(3), FileNotFoundError(2, "x", "in.csv")]
)
def test_exception_leaves_the_old_file_alone(target, error):
    def write():
        with atomic_file(target) as out:
            out.write(b"half")
            raise error

    with pytest.raises(type(error)) as caught:
        write()
    assert caught.value is error
    assert target.read_text() == "old"
    assert names(target.parent) == ["out.csv"]


@pytest.mark.parametrize(
    ("code", "remedy"),
    [(errno.ENOSPC, "Free some space"), (errno.EROFS, "Change the permissions"), (errno.EIO, "Try again")],
)
@pytest.mark.parametrize("where", ["open", "write", "fsync", "replace"])
def test_system_error_is_one_line_with_a_remedy(target, monkeypatch, where, code, remedy):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    def write():
        with atomic_file(target) as out:
            if where == "write":
                refuse()
            out.write(b"new")

    with monkeypatch.context() as patch:
        if where != "write":
            patch.setattr(os, where, refuse)
        with pytest.raises(DataError) as caught:
            write()
    assert str(caught.value).startswith(f"{str(target)!r} cannot be written: {os.strerror(code)}. What was there is")
    assert remedy in str(caught.value)
    assert target.read_text() == "old"
    assert names(target.parent) == ["out.csv"]


@FORKS
def test_disk_that_fills_up_while_buffers_are_written(target):
    """The last bytes are refused only when the file is closed."""
    code = (
        "import resource, signal, sys\n"
        "from qmedoid.model.storage.atomic import atomic_file\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "for size in (1500, 100_000):\n"
        "    try:\n"
        "        with atomic_file(sys.argv[1]) as out:\n"
        "            out.write(b'x' * size)\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, target], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.count("cannot be written: File too large. What was there is unchanged. Free some space") == 2
    assert target.read_text() == "old"
    assert names(target.parent) == ["out.csv"]


def test_folder_or_missing_folder_is_refused(tmp_path):
    for path, reason in {
        tmp_path: "Is a directory. What was there is unchanged. Give another path",
        tmp_path / "no" / "out.csv": r"No such file or directory.* Make the folder '.*no' first",
    }.items():
        with pytest.raises(DataError, match=reason), atomic_file(path):
            pytest.fail("it was opened")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="Not a directory"), atomic_file(tmp_path / "file" / "out.csv"):
        pytest.fail("it was opened")
    assert names(tmp_path) == ["file"]


def test_links_are_written_through(target):
    link, dangling, loop = (target.with_name(name) for name in ("link", "dangling", "loop"))
    link.symlink_to(target.name)
    dangling.symlink_to("new.csv")
    loop.symlink_to("loop")
    for path in (link, dangling):
        with atomic_file(path) as out:
            out.write(b"new")
        assert path.is_symlink()
        assert path.read_text() == "new"
    assert target.read_text() == target.with_name("new.csv").read_text() == "new"
    with pytest.raises(DataError, match="symbolic links"), atomic_file(loop):
        pytest.fail("it was opened")


def test_devices_and_pipes_are_written_to_and_not_replaced(tmp_path):
    with atomic_file(os.devnull) as out:
        out.write(b"x")
    assert Path(os.devnull).is_char_device()
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with atomic_file(pipe) as out:
        out.write(b"through")
    reader.join()
    assert read == [b"through"]
    assert names(tmp_path) == ["pipe"]


def test_writer_may_close_the_file_it_is_given(target):
    with atomic_file(target) as out:
        out.write(b"new")
        out.close()
    assert target.read_text() == "new"
    assert names(target.parent) == ["out.csv"]


def test_leftovers_of_this_target_are_removed_and_all_else_stays(target):
    others = [".other.csv.0123456789abcdef.part", ".out.csv.swp", ".out.csv.bak.0123456789abcdef.part", "out.csv.part"]
    for name in (PART, *others):
        target.with_name(name).touch()
    with atomic_file(target) as out:
        assert not target.with_name(PART).exists()
        out.write(b"new")
    assert names(target.parent) == sorted([*others, "out.csv"])


def test_file_that_is_being_written_is_no_leftover(target):
    with atomic_file(target) as first:
        first.write(b"first")
        with atomic_file(target) as second:
            second.write(b"second")
        assert target.read_text() == "second"
    assert target.read_text() == "first"
    assert names(target.parent) == ["out.csv"]


def test_leftovers_without_locks_are_recognized_by_age(target, monkeypatch):
    monkeypatch.setattr(atomic, "fcntl", None)
    old, young = target.with_name(PART), target.with_name(PART.replace("0123", "4567"))
    for part in (old, young):
        part.touch()
    os.utime(old, (0, 0))
    with atomic_file(target) as out:
        out.write(b"new")
    assert target.read_text() == "new"
    assert names(target.parent) == [young.name, "out.csv"]


def test_longest_names_can_be_written(tmp_path):
    target = tmp_path / ("ü" * 120 + ".csv")
    for _ in range(2):
        with atomic_file(target) as out:
            out.write(b"x")
    assert names(tmp_path) == [target.name]


@FORKS
def test_kill_at_random_moments_leaves_a_complete_file(target):
    sizes, seen, strays = (40_000, 90_000), set(), 0
    for number in range(60):
        child = os.fork()
        if child == 0:
            try:
                for turn in range(1000):
                    with atomic_file(target) as out:
                        for _ in range(sizes[turn % 2] // 1000):
                            out.write(b"x" * 1000)
            finally:
                os._exit(1)
        time.sleep(0.002 + 0.0007 * number)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert target.stat().st_size in (3, *sizes)
        seen.add(target.stat().st_size)
        strays += len(names(target.parent)) > 1
        if number >= 8 and {*sizes} <= seen and strays:
            break
    assert {*sizes} <= seen
    assert strays
    with atomic_file(target) as out:
        out.write(b"new")
    assert names(target.parent) == ["out.csv"]
