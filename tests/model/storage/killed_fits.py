"""Fits that are killed and repeated, run as a program: fork, kill, fork again, until one comes through.

Usage: killed_fits.py FOLDER OPTIMIZER KILLS. Writes undisturbed.npz and survivor.npz into the folder and prints how
many steps either took.
"""

import functools
import itertools
import os
import random
import signal
import sys
from pathlib import Path

import numpy as np

from qmedoid.estimators import _training, refining
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.model.storage import checkpoints

WAYS = ("after a step", "before the rename", "in the middle of a write")


def fit(checkpoint, optimizer):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 2)) + 0.8 * y[:, None]
    model = VariationalClassifier(
        n_steps=40, batch_size=16, grid={"n_reps": [1, 2]}, cv=2, n_seeds=2, optimizer=optimizer,
        operating_point="macro_f1", checkpoint=checkpoint, random_state=3,
    ).fit(X, y)  # fmt: skip
    return {
        "weights": model.weights_, "probabilities": model.predict_proba(X), "cv_scores": model.cv_scores_,
        "threshold": model.threshold_, "seed_losses": model.seed_losses_, "loss_curve": model.loss_curve_,
    }  # fmt: skip


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def count_steps(kill_at=None, way=WAYS[0]):
    """Count the steps of this process; die at or after one of them, in one of three ways."""
    steps = itertools.count(1)
    seen = [0]
    note, replace = checkpoints.CheckpointFolder.note, os.replace

    def counted(self, name, state, *, finished):
        seen[0] = next(steps)
        note(self, name, state, finished=finished)
        if kill_at is not None and seen[0] >= kill_at and way == WAYS[0]:
            die()

    def renamed(source, target):
        if kill_at is not None and seen[0] >= kill_at and way != WAYS[0]:
            if way == WAYS[2]:
                os.truncate(source, Path(source).stat().st_size // 2)
            die()
        replace(source, target)

    checkpoints.CheckpointFolder.note = counted
    os.replace = renamed
    return seen


def in_a_child(work):
    """Exit status of a forked process that does the work; negative for a signal."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main(folder, optimizer, kills):
    choose = random.Random(optimizer)
    for module in (_training, refining):
        module.CheckpointFolder = functools.partial(checkpoints.CheckpointFolder, every=7)

    def complete(name, checkpoint):
        seen = count_steps()
        result = fit(checkpoint, optimizer)
        np.savez(folder / name, steps=seen[0], **result)

    def cut_off():
        count_steps(choose.randint(1, 40), choose.choice(WAYS))
        fit(folder / "kept", optimizer)

    assert in_a_child(lambda: complete("undisturbed.npz", folder / "other")) == 0
    for _ in range(kills):
        choose.random()  # the children draw from copies; let them differ
        status = in_a_child(cut_off)
        assert status == -signal.SIGKILL, status
    assert in_a_child(lambda: complete("survivor.npz", folder / "kept")) == 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
