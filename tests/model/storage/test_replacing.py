"""However saving ends, the file is the old model or the new one, complete, and nothing stray is left after the next."""

import errno
import os
import tempfile
import zipfile
from pathlib import Path

import pytest
from sample_models import all_models, same

from qmedoid.exceptions import DataError, ParameterError
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


@pytest.mark.parametrize("kept", [slice(None), slice(0), slice(100), slice(-20)])
def test_whole_or_damaged_model_is_replaced_and_other_files_stay(path, kept):
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


@pytest.mark.parametrize("call", ["fsync", "open", "replace"])
def test_write_that_fails_leaves_the_old_model(path, monkeypatch, call):
    before = contents(path.parent)

    def fail(*_arguments, **_named):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        for target in (path, path.with_name("new")):
            message = message_of(save_model, MODELS["circuit"], target)
            assert "cannot be written: No space left on device. What was there is unchanged. Free some" in message
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
