"""From what a command line says to a client of a cluster: workers of this machine, or a scheduler elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Client, LocalCluster

from qmedoid.exceptions import ClusterError, ParameterError
from qmedoid.kernels._backend import thread_count

LOCAL = "local"
"""What asks for workers of this machine."""
# Seconds until a scheduler must have answered.
_ANSWER = 10.0
# How often workers of this machine are counted.
_WATCH = "1s"


@contextmanager
def connected(where: str) -> Iterator[Client]:
    """A client of the scheduler at an address, or of workers of this machine, one process for each core.

    Workers of this machine listen on loopback alone, are replaced when they die, and end with the block.
    """
    if where == LOCAL:
        n_workers = thread_count(None)
        with (
            LocalCluster(
                n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None,
                silence_logs=50,
            ) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            # A worker that dies while it starts is given up by what watches it: others are started then.
            cluster.adapt(minimum=n_workers, maximum=n_workers, interval=_WATCH)
            yield client
        return
    if "://" not in where:
        raise ParameterError(
            f"--dask must be {LOCAL!r} or the address of a scheduler, such as tcp://host:8786. Got {where!r} instead."
        )
    try:
        client = Client(where, timeout=_ANSWER)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at {where}: {error}. Check the address, or start one."
        ) from error
    with client:
        yield client
