"""Processes of the command line that begin with everything imported: it is their work that tests kill, not imports.

A server without threads imports once and forks, so that a process is there at once and ends as any other does.
"""

import multiprocessing
import os
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

_IMPORTED = [
    "pytest",
    "sklearn.ensemble",
    "pyarrow.parquet",
    "qmedoid.cli.fit",
    "qmedoid.cli.score",
    "qmedoid.estimators.medoid",
]
_CONTEXT = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
_CONTEXT.set_forkserver_preload(_IMPORTED)


def start(arguments: tuple[Any, ...], printed: Path | None = None, row_bytes: int | None = None) -> BaseProcess:
    """Begin a command with few trees; `printed` gets what it prints, and `row_bytes` is what a row of a fit takes."""
    process = _CONTEXT.Process(target=_command, args=(tuple(map(str, arguments)), printed, row_bytes))
    process.start()
    return process


def _command(arguments: tuple[str, ...], printed: Path | None, row_bytes: int | None) -> None:
    from few_trees import few_trees
    from qmedoid.cli import main
    from qmedoid.large import split

    opened = os.open(printed or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(opened, 1)
    os.dup2(opened, 2)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    if row_bytes is not None:
        split.ROW_BYTES = row_bytes
    sys.argv = ["qmedoid", *arguments]
    with few_trees():
        main()
