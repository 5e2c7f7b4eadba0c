"""A task that imports nothing heavy, for processes that tests start."""

import os
import time

SLOW = 120
"""Seconds that a slow task takes: no test waits for one."""


def process_of(seed):
    """The process that runs the task; seed 13 fails, and those beyond are slow."""
    if seed == 13:
        raise ZeroDivisionError("by seed")
    if seed > 13:
        time.sleep(SLOW)
    return os.getpid()
