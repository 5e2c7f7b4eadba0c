"""Whether data are a Dask collection, and whether Dask is there; neither imports it."""

from importlib.util import find_spec
from typing import Any

from qmedoid.exceptions import MissingExtraError


def is_collection(data: Any) -> bool:
    """Whether the data are a data frame, a series or an array of Dask."""
    return type(data).__module__.partition(".")[0] == "dask" and hasattr(data, "__dask_graph__")


def require_dask(what: str) -> None:
    """Raise an error that names the extra, if Dask is not installed."""
    if any(find_spec(name) is None for name in ("dask", "distributed")):
        raise MissingExtraError(f"{what} needs Dask: pip install 'qmedoid[dask]'.")
