"""Results of cells on disk, so that a run that was stopped goes on and a second one takes seconds."""

import gzip
import json
import zlib
from pathlib import Path

from qmedoid.storage.atomic import cannot_write, write_atomic
from qmedoid.studies.reproduction.cells import Result


class CellStore:
    """A folder with a file for every cell that was run, named by the cell's key.

    Parameters
    ----------
    folder : Path
        Made where it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> Result | None:
        """The result of a key, or None where there is none; a file that is damaged counts as none."""
        try:
            content = gzip.decompress(self._file(key).read_bytes())
            result: Result = json.loads(content)
        except (OSError, EOFError, ValueError, RecursionError, zlib.error):
            return None
        return result if isinstance(result, dict) else None

    def put(self, key: str, result: Result) -> None:
        """Keep a result."""
        file = self._file(key)
        content = gzip.compress(json.dumps(result).encode(), mtime=0)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(file, content)
        except OSError as error:
            raise cannot_write(file, error) from error

    def _file(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json.gz"
