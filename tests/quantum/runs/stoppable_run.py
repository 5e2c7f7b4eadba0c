"""A run that tests kill: ``stoppable_run.py FOLDER LOG SECONDS`` runs a toy plan, each job so many seconds slower.

A line of the log is the file that a job will have, and the files that were there when the process began.
"""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.quantum.runs.toy_run import toy_plan

from qmedoid.quantum import Device, RunFolder


def main(path: Path, log: Path, seconds: float) -> None:
    there = " ".join(file.name[:5] for file in (path / "jobs").glob("*.npz"))
    with RunFolder(path) as folder:
        device = folder.device(Device(n_qubits=4))
        submit = device.submit

        def logged(batches, *, seed=(), key=None):
            with log.open("a") as file:
                file.write(f"{seed[0]:05d} {there}\n")
                file.flush()
                os.fsync(file.fileno())
            time.sleep(seconds)
            return submit(batches, seed=seed, key=key)

        device.submit = logged
        folder.run(toy_plan(device))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
