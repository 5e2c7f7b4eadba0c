"""Commands that are killed at random moments: what is at the output afterwards must be whole, the old or the new."""

import functools
import time

import pyarrow as pa
from small_tables import small_table, write

import forked
from qmedoid.exceptions import ModelError
from qmedoid.model.storage.model_file import load_model


def run(*arguments):
    """How long a command takes that nobody kills."""
    began = time.perf_counter()
    child = forked.start(arguments)
    child.join(300)
    assert child.exitcode == 0
    return time.perf_counter() - began


def kill(arguments, seconds, is_begun=None):
    """Start a command and kill it so many seconds after its begin, or after the output has begun to show."""
    child = forked.start(arguments)
    limit = time.perf_counter() + 60
    while is_begun is not None and child.is_alive() and not is_begun() and time.perf_counter() < limit:
        time.sleep(0.0005)
    child.join(seconds)
    child.kill()
    child.join()
    return child.exitcode


def fit_once(folder):
    """A model, a table, and how long it takes to fit."""
    file = write(small_table(), folder / "table.csv")
    options = ("fit", file, "--target", "y", "--method", "evidence", "--refine", "never", "-o", folder / "model")
    return file, options, run(*options)


def kill_scores(folder, kills, choose):
    """Kill `score -o`; the counts of old and new outputs."""
    fit_once(folder)
    rows = pa.concat_tables([small_table(seed=seed) for seed in range(20)] * 20)
    file = write(rows, folder / "many.csv")
    outputs = folder / "outputs"
    outputs.mkdir(exist_ok=True)
    out = outputs / "out.csv"
    arguments = ("score", folder / "model", file, "-o", out, "--columns", "id", "--force")
    took = run(*arguments)
    new = out.read_bytes()
    old = b"what was here before\n"
    seen = {"old": 0, "new": 0}
    for number in range(kills):
        out.write_bytes(old)
        # Every other one while the hidden file is there, which is a small part of the time.
        begun = functools.partial(has_changed, outputs, {"out.csv"}) if number % 2 else None
        kill(arguments, choose.uniform(0, took / 40 if begun else took), begun)
        left = out.read_bytes()
        assert left in (old, new), f"{len(left)} bytes, which are neither the old nor the new output"
        seen["old" if left == old else "new"] += 1
    run(*arguments)
    assert out.read_bytes() == new
    assert [path.name for path in outputs.iterdir()] == ["out.csv"]
    return seen


def kill_fits(folder, kills, choose):
    """Kill `fit -o`; the counts of old and new models."""
    _, options, took = fit_once(folder)
    model = folder / "model"
    count = len(list(folder.iterdir()))
    seed, seen = 0, {"old": 0, "new": 0}
    for number in range(1, kills + 1):
        names = {path.name for path in folder.iterdir()}
        begun = functools.partial(has_changed, folder, names) if number % 2 else None
        kill((*options, "--seed", number), choose.uniform(0, 0.02 if begun else took), begun)
        found = seed_of(model)
        assert found in (seed, number), f"the model of seed {found}, which is neither the old nor the new one"
        seen["old" if found == seed else "new"] += 1
        seed = found
    run(*options, "--seed", kills + 1)
    assert seed_of(model) == kills + 1
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == count, f"stray files: {names}"
    assert not any(name.startswith(".") for name in names)
    return seen


def has_changed(folder, names):
    return {path.name for path in folder.iterdir()} != names


def seed_of(model):
    """The seed of the model that is there, which must be complete."""
    try:
        return load_model(model).parameters["command"]["seed"]
    except ModelError as error:
        raise AssertionError(f"after a kill the model cannot be loaded: {error}") from error
