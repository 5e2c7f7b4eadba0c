"""However saving ends, the file is the old model or the new one, complete, and nothing stray is left after the next."""

import errno
import os
import signal
import tempfile
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sample_models import all_models, same

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.model.storage import atomic
from qmedoid.model.storage.atomic import check_target
from qmedoid.model.storage.model_file import load_model, save_model

MODELS = all_models()
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")


@pytest.fixture
def path(tmp_path):
    """A saved model."""
    return save_model(MODELS["selective"], tmp_path / "m.qmedoid")


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_old_model_is_replaced(path):
    alone = save_model(MODELS["circuit"], path.with_name("alone"))
    save_model(MODELS["circuit"], path)
    assert alone.read_bytes() == path.read_bytes()
    assert set(contents(path.parent)) == {"alone", "m.qmedoid"}


def test_file_that_is_no_model_is_refused_and_left_alone(tmp_path):
    with zipfile.ZipFile(tmp_path / "book.xlsx", "w") as other:
        other.writestr("[Content_Types].xml", "<x/>")
    (tmp_path / "heart.csv").write_text("Age,Target\n1,2\n")
    (tmp_path / "app.json").write_text('{"manifest.json": 1}')
    before = contents(tmp_path)
    for name in before:
        for refused in (check_target, lambda file: save_model(MODELS["circuit"], file)):
            with pytest.raises(ParameterError, match="is there already and is no saved model, so it is not replaced"):
                refused(tmp_path / name)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("kept", [slice(0), slice(100), slice(-20)])
def test_damaged_model_is_replaced_and_other_files_stay(path, kept):
    path.write_bytes(path.read_bytes()[kept])
    others = ["notes.txt", ".out.csv.0123456789abcdef.part", "m.qmedoid.bak"]
    for name in [".m.qmedoid.0123456789abcdef.part", *others]:
        path.with_name(name).write_text("left by a killed process, or somebody else's")
    check_target(path)
    save_model(MODELS["circuit"], path)
    same(load_model(path), MODELS["circuit"])
    assert set(contents(path.parent)) == {"m.qmedoid", *others}


def test_path_that_cannot_be_a_file_is_refused_before_and_while_saving(tmp_path):
    (tmp_path / "file").write_text("x")
    for path, reason in {
        tmp_path: "Is a directory. What was there is unchanged. Give another path",
        tmp_path / "file" / "m": "Not a directory. What was there is unchanged. Give another path",
    }.items():
        for refused in (check_target, lambda file: save_model(MODELS["circuit"], file)):
            with pytest.raises(DataError, match=f"cannot be written: {reason}"):
                refused(path)
    check_target(tmp_path / "new" / "er" / "m")
    assert set(contents(tmp_path)) == {"file"}


def test_missing_folders_are_made(tmp_path):
    path = save_model(MODELS["circuit"], tmp_path / "new" / "er" / "m.qmedoid")
    same(load_model(path), MODELS["circuit"])


def failing(number, error, real):
    """The function, but its call of that number raises."""
    count = [0]

    def call(*arguments, **named):
        count[0] += 1
        if count[0] == number:
            raise error
        return real(*arguments, **named)

    return call


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize(("call", "code"), [("fsync", errno.ENOSPC), ("open", errno.EROFS), ("replace", errno.EIO)])
def test_write_that_fails_anywhere_leaves_the_old_file(path, monkeypatch, call, code, is_damaged):
    if is_damaged:
        path.write_bytes(path.read_bytes()[:-20])
    new, before, messages = path.with_name("new"), path.read_bytes(), []
    for number in range(1, 6):
        for target in (new, path):
            with monkeypatch.context() as patch:
                patch.setattr(os, call, failing(number, OSError(code, os.strerror(code)), getattr(os, call)))
                message = message_of(save_model, MODELS["circuit"], target)
            if message == "no error":  # there was no such call, or only the sync of the folder failed
                same(load_model(target), MODELS["circuit"])
                target.unlink()
                path.write_bytes(before)
            else:
                messages.append(message)
            assert contents(path.parent) == {"m.qmedoid": before}
    assert len(messages) >= 2
    assert all(f"{os.strerror(code)}. What was there is unchanged." in message for message in messages)


def test_interrupt_leaves_the_old_model(path, monkeypatch):
    before = contents(path.parent)
    for call in ("fsync", "replace", "fdopen"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing(1, KeyboardInterrupt(), getattr(os, call)))
            with pytest.raises(KeyboardInterrupt):
                save_model(MODELS["circuit"], path)
        assert contents(path.parent) == before


def in_a_child(work):
    """What the work of a forked process returns, as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


def message_of(call, *arguments):
    try:
        call(*arguments)
    except DataError as error:
        return str(error)
    return "no error"


@FORKS
def test_full_disk_leaves_the_old_model(path):
    """The system itself refuses the bytes, by a limit on the size of files."""
    import resource

    before = contents(path.parent)

    def save_with_little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        return message_of(save_model, MODELS["circuit"], path)

    said = in_a_child(save_with_little_room)
    assert "cannot be written: File too large. What was there is unchanged. Free some space" in said
    assert contents(path.parent) == before


@FORKS
def test_read_only_folder_leaves_the_old_model():
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = save_model(MODELS["selective"], folder / "m.qmedoid")
        before = contents(folder)
        path.chmod(0o644)
        folder.chmod(0o555)

        def save_without_permission():
            if os.geteuid() == 0:  # to whom everything is permitted
                os.setuid(65534)
            save, check = message_of(save_model, MODELS["circuit"], path), message_of(check_target, path)
            return f"{save}\n{check}\n{load_model(path).policy}"

        save, check, stage = in_a_child(save_without_permission).splitlines()
        expected = f"{str(path)!r} cannot be written: Permission denied. What was there is unchanged. Change the perm"
        assert save.startswith(expected)
        assert check.startswith(expected)
        assert stage == "selective"
        assert contents(folder) == before
        folder.chmod(0o755)


@FORKS
def test_kill_at_random_moments_leaves_the_old_model_or_the_new(path):
    old, new = MODELS["selective"], MODELS["circuit"]
    bytes_of = {}
    start = time.perf_counter()
    for model in (new, old):
        bytes_of[model.policy] = save_model(model, path).read_bytes()
    both = time.perf_counter() - start
    rng = np.random.default_rng(0)
    seen, strays = set(), 0
    for number in range(150):
        save_model(old, path)
        assert contents(path.parent) == {path.name: bytes_of[old.policy]}  # nothing stray after the next save
        # Later tries wait longer: on a busy machine the child may hardly have begun.
        kill_while_saving((new, old), path, rng.uniform(0, both * (1 + number / 10)))
        stage = load_model(path).policy
        assert path.read_bytes() == bytes_of[stage]
        seen.add(stage)
        strays += len(contents(path.parent)) > 1
        if number >= 8 and len(seen) == 2 and strays:
            break
    assert seen == {old.policy, new.policy}  # so the kills did fall into savings
    assert strays  # and some in the midst of one


def kill_while_saving(models, path, after):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, b".")
            for model in models * 50:
                save_model(model, path)
        finally:
            os._exit(1)
    os.read(reader, 1)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)


def test_concurrent_readers_and_writers_see_complete_models(path):
    models = [MODELS["selective"], MODELS["circuit"]]
    stop, errors = threading.Event(), []

    def save_again(turn):
        try:
            while not stop.is_set():
                save_model(models[turn], path)
                turn = 1 - turn
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=save_again, args=(turn,)) for turn in (0, 1)]
    for writer in writers:
        writer.start()
    try:
        stages = {load_model(path).policy for _ in range(150)}
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not errors
    assert stages == {"selective", "always"}
    assert list(contents(path.parent)) == [path.name]
    assert load_model(path).policy in stages


def test_model_is_saved_where_there_are_no_locks(path, monkeypatch):
    monkeypatch.setattr(atomic, "fcntl", None)
    save_model(MODELS["circuit"], path)
    same(load_model(path), MODELS["circuit"])


def test_link_is_written_through(path):
    link, loop = path.with_name("latest"), path.with_name("loop")
    link.symlink_to(path.name)
    loop.symlink_to("loop")
    check_target(link)
    save_model(MODELS["circuit"], link)
    assert link.is_symlink()
    same(load_model(path), MODELS["circuit"])
    same(load_model(str(link)), MODELS["circuit"])
    with pytest.raises(DataError, match="symbolic links"):
        save_model(MODELS["circuit"], loop)
