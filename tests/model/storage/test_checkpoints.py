"""Checkpoints: whole or not at all, never another training's, never code; a killed fit ends as if it had not been."""

import errno
import hashlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.exceptions import DataError, QMedoidWarning
from qmedoid.model.storage import checkpoints
from qmedoid.model.storage.checkpoints import FORMAT, SUFFIX, CheckpointFolder
from qmedoid.optimize.minimizers import TrainingState

ANY_TIMES = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def state(step=4, seed=0):
    rng = np.random.default_rng(seed)
    begun = TrainingState(rng.normal(size=5), rng)
    begun.step, begun.losses, begun.smoothed, begun.best_loss, begun.lowest = step, [0.5] * step, 0.4, 0.3, 0.2
    begun.moments, begun.average, begun.averaged = rng.normal(size=(2, 5)), rng.normal(size=5), 3
    return begun


def same(a, b):
    assert repr(a.as_dict()) == repr(b.as_dict())  # NaN, too


@pytest.fixture
def folder(tmp_path):
    return CheckpointFolder(tmp_path / "kept", every=2)


@pytest.fixture
def written(folder):
    """A state on disk under the name "a", and its bytes."""
    folder.note("a", state(), finished=False)
    return folder, (folder.path / f"a{SUFFIX}").read_bytes()


def unreadable(folder, content, reason, name="a"):
    (folder.path / f"{name}{SUFFIX}").write_bytes(content)
    with pytest.warns(QMedoidWarning, match=reason) as caught:
        assert folder.load(name) is None
    assert len(caught) == 1
    assert "its training starts anew" in str(caught[0].message)


def signed(content):
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


# --- write and read ---------------------------------------------------------------------------------------------


def test_state_comes_back_bit_for_bit(written):
    folder, content = written
    same(folder.load("a"), state())
    assert remade(content) == content
    fresh = TrainingState(np.zeros(2), np.random.default_rng(0))  # with infinities and NaN
    folder.note("new", fresh, finished=False)
    same(folder.load("new"), fresh)


def test_states_are_written_when_due_and_at_the_end(folder):
    for step, due in [(1, False), (2, True), (3, False), (4, True)]:
        folder.note(f"step{step}", state(step), finished=False)
        assert (folder.load(f"step{step}") is not None) == due
    folder.note("end", state(3), finished=True)
    same(folder.load("end"), state(3))


def test_folder_that_cannot_be_made_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "below"):
        with pytest.raises(DataError, match=r"checkpoint folder '.*file.*' cannot be used: .*\. Give another path"):
            CheckpointFolder(path)


# --- atomic writes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()], ids=["full", "ctrl-c"])
def test_write_that_fails_leaves_the_last_state(written, monkeypatch, error):
    folder, before = written

    def fail(*_arguments, **_named):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        ends = pytest.warns(QMedoidWarning, match="the training goes on")
        with ends if isinstance(error, OSError) else pytest.raises(KeyboardInterrupt):
            folder.note("a", state(6, seed=1), finished=False)
    assert [path.name for path in folder.path.iterdir()] == [f"a{SUFFIX}"]
    assert (folder.path / f"a{SUFFIX}").read_bytes() == before
    same(folder.load("a"), state())


def test_file_is_on_disk_before_it_gets_its_name(folder, monkeypatch):
    calls, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: calls.append("fsync") or fsync(handle))
    monkeypatch.setattr(os, "replace", lambda a, b: calls.append((Path(a).parent, Path(b).name)) or replace(a, b))
    folder.note("a", state(), finished=True)
    assert calls == ["fsync", (folder.path, f"a{SUFFIX}")]


# --- damaged and foreign files ----------------------------------------------------------------------------------


@given(where=st.floats(0, 1, exclude_max=True))
@ANY_TIMES
def test_file_cut_anywhere_is_not_read(written, where):
    folder, content = written
    unreadable(folder, content[: int(where * len(content))], "do not match its checksum")


@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@ANY_TIMES
def test_file_with_one_bit_turned_is_not_read(written, where, bit):
    folder, content = written
    spoilt = bytearray(content)
    spoilt[int(where * len(content))] ^= 1 << bit
    unreadable(folder, bytes(spoilt), "do not match its checksum")


def remade(content, state=None, **changes):
    """The bytes with other fields, and a checksum that is right again."""
    document = json.loads(content.partition(b"\n")[2])
    document["state"] |= state or {}
    return signed(json.dumps(document | changes).encode())


def generator(**changes):
    return {"state": {"generator": state().as_dict()["generator"] | changes}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": FORMAT + 1}, f"it has format {FORMAT + 1}, and this version reads {FORMAT}"),
        ({"name": "b"}, "it belongs to another training"),
        ({"state": {"step": 5}}, "'losses' of a training after 5 steps with 5 parameters must be of shape"),
        ({"state": {"step": None}}, "cannot be read"),
        ({"state": {"step": 1e400}}, "cannot be read"),
        ({"state": {"generator": {}}}, "cannot be read"),
        ({"state": {"generator": 3}}, "cannot be read"),
        (generator(bit_generator="MT19937"), "cannot be read"),
        (generator(state={"state": 2**200, "inc": 1}), "cannot be read"),
        (generator(state={"state": -1, "inc": 1}), "cannot be read"),
        (generator(has_uint32="x"), "cannot be read"),
        ({"state": {"theta": [0.0] * 4}}, "must be of shape"),
        ({"state": {"theta": 1.0}}, "cannot be read"),
        ({"state": {"theta": [[0.0]] * 5}}, "must be of shape"),
        ({"state": {"moments": [[0.0] * 4] * 2}}, "must be of shape"),
        ({"state": {"moments": "x"}}, "cannot be read"),
    ],
)
def test_foreign_file_with_a_right_checksum_is_not_used(written, changes, reason):
    folder, content = written
    unreadable(folder, remade(content, **changes), reason)


def test_file_under_another_name_is_not_used(written):
    folder, content = written
    unreadable(folder, content, "it belongs to another training", name="b")


def test_huge_file_is_not_even_opened(written, monkeypatch):
    folder, _ = written
    with (folder.path / f"a{SUFFIX}").open("wb") as sparse:
        sparse.truncate(2**40)
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("it was read"))
    with pytest.warns(QMedoidWarning, match="it has 1099511627776 bytes"):
        assert folder.load("a") is None


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("exploded",))


def test_reading_runs_no_code(written, monkeypatch, tmp_path):
    folder, content = written
    monkeypatch.chdir(tmp_path)
    bomb = pickle.dumps(Bomb())
    unreadable(folder, bomb, "cannot be read")
    unreadable(folder, signed(bomb), "cannot be read")
    unreadable(folder, remade(content, state={"theta": bomb.decode("latin-1")}), "cannot be read")
    assert not (tmp_path / "exploded").exists()
    pickle.loads(bomb)
    assert (tmp_path / "exploded").exists()  # so the bomb was a real one


# --- fits -------------------------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
Y = np.arange(60) % 2
X = rng.normal(size=(60, 2)) + 0.8 * Y[:, None]


class Steps:
    """A callback that counts reports and may stop the fit at one of them."""

    def __init__(self, stop_at=None):
        self.count, self.stop_at = 0, stop_at

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context, *, metadata=None):  # noqa: ARG002
        self.count += metadata is not None
        return self.count == self.stop_at


def fitted(path=None, features=X, labels=Y, steps=None, **changes):
    parameters = {"n_steps": 50, "n_reps": 1, "n_seeds": 2, "batch_size": 16, "random_state": 0}
    model = VariationalClassifier(**(parameters | changes), checkpoint=path)
    return model.set_callbacks(steps or Steps()).fit(features, labels)


def test_checkpoints_change_no_bit_and_a_finished_fit_takes_no_step(tmp_path):
    plain, kept, steps = fitted(), fitted(tmp_path), Steps()
    again = fitted(tmp_path, steps=steps)
    assert steps.count == 0
    for model in (kept, again):
        np.testing.assert_array_equal(model.weights_, plain.weights_)
        np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
        np.testing.assert_array_equal(model.loss_curve_, plain.loss_curve_)
        np.testing.assert_array_equal(model.seed_losses_, plain.seed_losses_)


def test_fit_that_was_stopped_goes_on(tmp_path):
    plain, first, second = fitted(), Steps(stop_at=70), Steps()
    with pytest.warns(QMedoidWarning, match="The training was stopped after"):
        fitted(tmp_path, steps=first)
    resumed = fitted(tmp_path, steps=second)
    assert 0 < second.count < 100
    np.testing.assert_array_equal(resumed.weights_, plain.weights_)


def test_damaged_checkpoints_are_named_at_the_line_of_the_user_and_made_anew(tmp_path):
    plain = fitted(tmp_path)
    for file in tmp_path.iterdir():
        file.write_bytes(b"nonsense")
    with pytest.warns(QMedoidWarning, match=r"\.training cannot be read .* its training starts anew") as caught:
        again = fitted(tmp_path)
    assert [warning.filename for warning in caught] == [__file__] * 2
    np.testing.assert_array_equal(again.weights_, plain.weights_)
    steps = Steps()
    fitted(tmp_path, steps=steps)
    assert steps.count == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"features": X + np.eye(60, 2) * 1e-14},
        {"labels": np.where(np.arange(60) == 5, 1 - Y, Y)},
        {"features": X[:-1], "labels": Y[:-1]},
        {"random_state": 1},
        {"n_steps": 51},
        {"n_reps": 2},
        {"reupload": False, "n_reps": 2},
        {"learning_rate": 0.06},
        {"batch_size": 17},
        {"sampling": "uniform"},
        {"optimizer": "spsa"},
        {"optimizer": "spsa", "spsa_gains": (0.2, 0.1, 0.6, 0.101)},
        {"clip": 5.0},
        {"span": 1.0},
        {"clip_norm": 0.1},
        {"patience": 49},
        {"patience": 49, "tolerance": 0.01},
        {"average": 0.5},
        {"average": 0.0},
        {"readout": "parity"},
        {"input_scales": 1.0},
        {"input_scales": [1.0, 2.0]},
        {"final_rz": True},
        {"class_weight": {0: 1, 1: 2}},
        {"precision": "float32"},
        {"n_qubits": 1},
    ],
    ids=lambda changes: "-".join(changes) if isinstance(changes, dict) else None,
)
def test_checkpoint_of_other_data_or_parameters_is_never_used(kept_once, changes):
    steps = Steps()
    before = {file.name for file in kept_once.iterdir()}
    other = fitted(kept_once, steps=steps, **changes)
    expected = 2 * changes.get("n_steps", 50)
    assert steps.count == expected or "patience" in changes
    assert len({file.name for file in kept_once.iterdir()} - before) == 2
    np.testing.assert_array_equal(other.weights_, fitted(**changes).weights_)


@pytest.fixture(scope="module")
def kept_once(tmp_path_factory):
    path = tmp_path_factory.mktemp("kept")
    fitted(path)
    return path


def test_fit_without_a_seed_says_that_its_checkpoints_are_of_no_use(tmp_path):
    with pytest.warns(QMedoidWarning, match=r"never taken up\. Set random_state to an int"):
        fitted(tmp_path, random_state=None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize(("optimizer", "kills"), [("adam", 10), ("spsa", 6)])
def test_fit_killed_many_times_ends_with_the_same_bits(tmp_path, optimizer, kills):
    program = Path(__file__).with_name("killed_fits.py")
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, program, tmp_path, optimizer, str(kills)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    undisturbed, survivor = (np.load(tmp_path / f"{name}.npz") for name in ("undisturbed", "survivor"))
    assert undisturbed["steps"] == 2 * 2 * 2 * 40 + 2 * 40  # candidates, folds and seeds, then the seeds on all rows
    assert 0 < survivor["steps"] < undisturbed["steps"] - 4 * kills  # what was killed was not in vain
    assert set(undisturbed.files) == set(survivor.files)
    for name in set(undisturbed.files) - {"steps"}:
        assert undisturbed[name].tobytes() == survivor[name].tobytes(), name
    assert checkpoints.SUFFIX in {path.suffix for path in (tmp_path / "kept").iterdir()}
