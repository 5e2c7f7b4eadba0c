"""A cell that imports nothing heavy, for processes that tests start."""

import os


def process_of(_data, _cell):
    """The process that runs the cell."""
    return {"process": os.getpid()}
