"""Cells that import nothing heavy, for processes that tests start."""

import os
import signal
import time

from benchmarks.studies.cells import Cell, StudyMethod
from benchmarks.studies.runner import Study, run_cells

CODE = 1
SLOW = 120
"""Seconds that a slow cell takes: no test waits for one."""


def load(name):
    """The data set of such a cell."""
    return name


def process_of(_data, cell):
    """The process that runs the cell; seed 13 fails, 14 is killed, and those beyond are slow."""
    if cell.seed == 13:
        raise ZeroDivisionError("by seed")
    if cell.seed == 14:
        os.kill(os.getpid(), signal.SIGKILL)
    if cell.seed > 14:
        time.sleep(SLOW)
    return {"process": os.getpid()}


LIGHT = Study({"light": {"only": StudyMethod(process_of)}}, load, str)


def run_light(*seeds, folder=None, **options):
    """Cells that say which process ran them."""
    return run_cells(LIGHT, [Cell("light", "light", "random", seed, "only") for seed in seeds], folder, **options)
