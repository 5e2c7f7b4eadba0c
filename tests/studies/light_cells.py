"""A study whose cells import nothing heavy, for processes that tests start."""

import os
import time

from qmedoid.studies.runner import Study
from qmedoid.studies.splits import Cell, StudyMethod

SLOW = 120
"""Seconds that a slow cell takes: no test waits for one."""


def process_of(_data, cell):
    """The process that runs the cell; seed 13 fails, and those beyond are slow."""
    if cell.seed == 13:
        raise ZeroDivisionError("by seed")
    if cell.seed > 13:
        time.sleep(SLOW)
    return {"process": os.getpid()}


LIGHT = Study({"part": {"method": StudyMethod(process_of)}}, load=str, digest=str)


def light(*seeds):
    """Cells of these seeds."""
    return [Cell("part", "data", "random", seed, "method") for seed in seeds]
