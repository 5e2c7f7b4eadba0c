"""However a saving ends, the folder holds the old model or the new one, and nothing stray after the next."""

import errno
import json
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sample_models import all_models, contents, same

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.storage import folders
from qmedoid.storage._files import CONTENT_NAME, MANIFEST
from qmedoid.storage.bundle import save_model
from qmedoid.storage.folders import check_target_folder
from qmedoid.storage.loading import load_model

MODELS = all_models()
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")


def test_an_old_model_is_replaced_and_its_files_go(tmp_path):
    save_model(MODELS["selective"], tmp_path)
    save_model(MODELS["circuit"], tmp_path)
    alone = save_model(MODELS["circuit"], tmp_path / "alone" / "nested")
    assert contents(alone) == contents(tmp_path)
    same(load_model(tmp_path), MODELS["circuit"])


def test_other_folders_are_refused_and_left_alone(tmp_path):
    for name, files in {
        "work": {"notes.txt": "x"},
        "app": {MANIFEST: '{"name": "app"}'},
        "both": {MANIFEST: "", "a": ""},
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text)
        before = contents(folder)
        for refused in (
            lambda folder=folder: save_model(MODELS["method"], folder),
            lambda folder=folder: check_target_folder(folder),
        ):
            with pytest.raises(ParameterError, match="holds other things than a saved model, such as"):
                refused()
        assert contents(folder) == before


def test_remains_and_damaged_models_are_replaced_and_other_files_kept(tmp_path):
    save_model(MODELS["selective"], tmp_path)
    (tmp_path / MANIFEST).write_text("damaged")
    check_target_folder(tmp_path)
    save_model(MODELS["method"], tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / f".{MANIFEST}.0123456789abcdef.part").write_text("left by a killed process")
    (tmp_path / ".out.csv.0123456789abcdef.part").write_text("somebody else's")
    (tmp_path / "rows-0123456789abcdef.json").write_text("left by a killed process")
    save_model(MODELS["circuit"], tmp_path)
    same(load_model(tmp_path), MODELS["circuit"])
    others = {name for name in contents(tmp_path) if not CONTENT_NAME.fullmatch(name)}
    assert others == {MANIFEST, "notes.txt", ".out.csv.0123456789abcdef.part"}
    assert "rows-0123456789abcdef.json" not in contents(tmp_path)
    (tmp_path / MANIFEST).unlink()
    (tmp_path / "notes.txt").unlink()
    (tmp_path / ".out.csv.0123456789abcdef.part").unlink()
    save_model(MODELS["method"], tmp_path)
    same(load_model(tmp_path), MODELS["method"])


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(DataError, match=r"cannot be written: .*Give another path"):
            save_model(MODELS["method"], path)
        with pytest.raises(DataError, match="cannot be written: Not a directory"):
            check_target_folder(path)
    check_target_folder(tmp_path / "new" / "model")
    assert not (tmp_path / "new").exists()


def failing(number, error, real):
    """The function, but its call of that number raises."""
    count = [0]

    def call(*arguments, **named):
        count[0] += 1
        if count[0] == number:
            raise error
        return real(*arguments, **named)

    return call


@pytest.mark.parametrize(("call", "code"), [("fsync", errno.ENOSPC), ("open", errno.EROFS), ("replace", errno.EIO)])
def test_wherever_writing_fails_the_old_model_is_untouched(tmp_path, monkeypatch, call, code):
    model, new = tmp_path / "model", tmp_path / "new"
    save_model(MODELS["selective"], model)
    before = contents(model)
    messages = []
    for number in range(1, 20):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing(number, OSError(code, os.strerror(code)), getattr(os, call)))
            try:
                save_model(MODELS["circuit"], new)
                save_model(MODELS["circuit"], model)
            except DataError as error:
                messages.append(str(error))
        if new.exists():
            same(load_model(new), MODELS["circuit"])
            for file in new.iterdir():
                file.unlink()
            new.rmdir()
        if load_model(model).refinement == "always":  # only the sync of a folder failed, after the rename
            save_model(MODELS["selective"], model)
        assert contents(model) == before
    assert len(messages) > 3
    assert all(f"{os.strerror(code)}. What was there is unchanged." in message for message in messages)


def test_an_interrupt_leaves_the_old_model(tmp_path, monkeypatch):
    save_model(MODELS["selective"], tmp_path)
    before = contents(tmp_path)
    for number in range(1, 5):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", failing(number, KeyboardInterrupt(), os.fsync))
            with pytest.raises(KeyboardInterrupt):
                save_model(MODELS["circuit"], tmp_path)
        assert contents(tmp_path) == before


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
def test_a_full_disk(tmp_path):
    """The system itself refuses the bytes, by a limit on the size of files."""
    import resource

    save_model(MODELS["selective"], tmp_path)
    before = contents(tmp_path)

    def save_with_little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        return message_of(save_model, MODELS["circuit"], tmp_path)

    said = in_a_child(save_with_little_room)
    assert "cannot be written: File too large. What was there is unchanged. Free some space" in said
    assert contents(tmp_path) == before


@FORKS
def test_a_read_only_folder():
    with tempfile.TemporaryDirectory() as place:
        path = save_model(MODELS["selective"], Path(place) / "model")
        before = contents(path)
        Path(place).chmod(0o755)
        path.chmod(0o555)

        def save_without_permission():
            if os.geteuid() == 0:  # to whom everything is permitted
                os.setuid(65534)
            save, check = message_of(save_model, MODELS["circuit"], path), message_of(check_target_folder, path)
            return f"{save}\n{check}\n{load_model(path).refinement}"

        save, check, stage = in_a_child(save_without_permission).splitlines()
        expected = f"{str(path)!r} cannot be written: Permission denied. What was there is unchanged. Change the perm"
        assert save.startswith(expected)
        assert check.startswith(expected)
        assert stage == "selective"
        assert contents(path) == before
        path.chmod(0o755)


@FORKS
def test_killed_at_random_moments_the_old_model_or_the_new_is_there(tmp_path):
    old, new = MODELS["selective"], MODELS["circuit"]
    bytes_of = {}
    start = time.perf_counter()
    for model in (old, new):
        save_model(model, tmp_path)
        bytes_of[model.refinement] = contents(tmp_path)
    both = time.perf_counter() - start
    rng = np.random.default_rng(0)
    found, strays = set(), 0
    for number in range(100):
        save_model(old, tmp_path)
        assert contents(tmp_path) == bytes_of[old.refinement]  # nothing stray after the next save
        kill_while_saving((new, old), tmp_path, rng.uniform(0, both))
        loaded = load_model(tmp_path)
        same(loaded, old if loaded.refinement == old.refinement else new)
        found.add(loaded.refinement)
        strays += set(contents(tmp_path)) > set(bytes_of[loaded.refinement])
        if number >= 8 and len(found) == 2 and strays:
            break
    assert found == {old.refinement, new.refinement}  # so the kills did fall into savings
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


def test_readers_and_savers_at_once_see_whole_models(tmp_path):
    models = [MODELS["selective"], MODELS["circuit"]]
    save_model(models[0], tmp_path)
    stop, errors = threading.Event(), []

    def save_again(turn):
        try:
            while not stop.is_set():
                save_model(models[turn], tmp_path)
                turn = 1 - turn
        except BaseException as error:
            errors.append(error)

    savers = [threading.Thread(target=save_again, args=(turn,)) for turn in (0, 1)]
    for saver in savers:
        saver.start()
    try:
        stages = {load_model(tmp_path).refinement for _ in range(150)}
    finally:
        stop.set()
        for saver in savers:
            saver.join()
    assert not errors
    assert stages == {"selective", "always"}
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert {file.name for file in tmp_path.iterdir()} == {MANIFEST, *(e["name"] for e in manifest["files"].values())}


def test_a_folder_without_locks_is_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "fcntl", None)
    save_model(MODELS["method"], tmp_path)
    same(load_model(tmp_path), MODELS["method"])


def test_a_link_to_a_folder_is_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    save_model(MODELS["method"], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    same(load_model(tmp_path / "real"), MODELS["method"])
    same(load_model(str(tmp_path / "link")), MODELS["method"])
