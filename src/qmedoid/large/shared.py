"""Saved models that a process has loaded, by their hash.

Work that is spread over processes (Dask, Spark, Ray) names a model by the SHA-256 of its file. The hash decides which
model it is: another file under the same path is refused, and never used in its place.
"""

from pathlib import Path

from qmedoid.exceptions import ModelError
from qmedoid.model.storage.model_file import ModelFile, load_file

MOST_KEPT = 8
"""Models that a process keeps: those that were used last."""
_models: dict[str, ModelFile] = {}


def cached_model(path: str | Path, sha256: str | None = None) -> ModelFile:
    """The saved model whose file has this hash, loaded from the path once per process; without a hash, any model.

    A model that is kept is the right one by its hash, whatever lies at the path by now; the file is not read again. It
    is shared: callers must not change it. Safe to call from several threads.

    Raises
    ------
    ModelError
        The file has another hash, or cannot be read.
    """
    loaded = None if sha256 is None else _models.get(sha256)
    if loaded is None:
        loaded = load_file(path)
        if sha256 not in (None, loaded.sha256):
            raise ModelError(
                f"The saved model {str(path)!r} is not the one that was meant: its SHA-256 is {loaded.sha256}, and "
                f"{sha256} is expected. Restore that file, or start again with the new one."
            )
    _models.pop(loaded.sha256, None)
    _models[loaded.sha256] = loaded
    for oldest in list(_models)[:-MOST_KEPT]:
        _models.pop(oldest, None)
    return loaded
