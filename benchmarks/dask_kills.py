"""Workers of a Dask cluster killed at random moments: a fit in passes, scoring, and LightGBM's Dask fit as it is.

Run as ``QMEDOID_DATA=... python benchmarks/dask_kills.py``. A cluster of 4 worker processes on this machine reads a
folder of Parquet files of noised card rows; every so often one of its workers is killed (SIGKILL), until there were 20
kills. The work is repeated until then, and every round must give the bytes that it gives without kills, and every row
once. LightGBM fits once without kills, then under the same kills with a time limit. Kills that were done, rounds, and
the longest time without progress are written to ``results/dask_kills.csv``. ``--kills 3 --rows 48000`` is a small run.
"""

import argparse
import csv
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

from qmedoid import MedoidClassifier
from qmedoid.estimators.rare import RareEventClassifier
from qmedoid.large.fit import PassFit
from qmedoid.large.passes import count_rows
from qmedoid.large.runner import file_runner, file_table
from qmedoid.large.workers import results_by
from qmedoid.model.storage.model_file import model_bytes
from qmedoid.saved import SavedModel
from qmedoid.tables.dataset import Dataset, DatasetSettings

WORKERS, FILES, LIMIT = 4, 24, 120.0
RESULTS = Path(__file__).parent / "results" / "dask_kills.csv"
Work = Callable[[Client, Path, Callable[[], None]], tuple[str, int]]
"""Some work on a cluster: it says that it goes on, and returns a hash of what it made and how many rows that is of."""


def write_rows(folder: Path, n_rows: int) -> None:
    """Card rows, drawn with noise, in files; each row has a number of its own."""
    X, y = card_rows()
    rng = np.random.default_rng(0)
    for number in range(FILES):
        rows = rng.integers(0, len(X), n_rows // FILES)
        values = X[rows] * (1.0 + 0.01 * rng.normal(size=(len(rows), X.shape[1])))
        columns = {f"v{place}": values[:, place] for place in range(X.shape[1])}
        ids = np.arange(len(rows)) + number * (n_rows // FILES)
        pq.write_table(pa.table(columns | {"id": ids, "fraud": y[rows]}), folder / f"part-{number:03}.parquet")


def card_rows() -> tuple[Any, Any]:
    """Numbers and classes of the card data, in the folder that ``QMEDOID_DATA`` names."""
    table = pq.read_table(Path(os.environ["QMEDOID_DATA"]) / "creditcard.parquet")
    y = np.array([int(str(label).strip("'")) for label in table.column("Class").to_pylist()])
    return np.column_stack([table.column(name).to_numpy() for name in table.column_names if name != "Class"]), y


class Killer(Thread):
    """Kills a running worker every so often, until it has killed as many as asked for."""

    def __init__(self, cluster: LocalCluster, client: Client, kills: int, seed: int = 0) -> None:
        super().__init__(daemon=True)
        self._cluster, self._client, self._most, self._random = cluster, client, kills, random.Random(seed)
        self.kills, self.stop = 0, Event()

    def run(self) -> None:
        """Kill until it is stopped."""
        while self.kills < self._most and not self.stop.wait(self._random.uniform(0.2, 3.0)):
            there = self._client.nthreads()
            # One that still starts is not killed: its nanny would give it up.
            alive = [one.pid for one in self._cluster.workers.values() if one.worker_address in there and one.pid]
            # The last one is left: workers take seconds to start, and kills come faster than that.
            if len(alive) > 1:
                try:
                    os.kill(self._random.choice(alive), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                self.kills += 1


def fitting(client: Client, folder: Path, on: Callable[[], None]) -> tuple[str, int]:
    """A fit in passes over the files; the sample is fitted in this process, which nobody kills."""
    runner = file_runner(file_table(str(folder)), results_by(client), on_rows=lambda *_: on())
    method = RareEventClassifier(comparisons=False, n_rare=300, n_common=600, n_hard=200)
    owner = MedoidClassifier(method=method, roles={"id": "ignore"}, random_state=0)
    settings = DatasetSettings(target="fraud", roles={"id": "ignore"})

    def fit_sample(sampled: Dataset) -> tuple[Any, list[str]]:
        return (owner.fit(sampled).model_, [])

    asked: Any = {"test": 0.05, "sizes": (10_000, 200_000)}
    found = PassFit(owner, runner, count_rows(runner, "fraud"), settings, **asked).run(fit_sample)
    made = model_bytes(found.model) + json.dumps(found.report, sort_keys=True).encode()
    return hashlib.sha256(made).hexdigest(), found.rows


def scoring(saved: SavedModel) -> Work:
    """Lazy results about the files, hashed partition by partition, with the numbers of all rows."""

    def work(client: Client, folder: Path, on: Callable[[], None]) -> tuple[str, int]:
        results = saved.score_table(dd.read_parquet(folder), columns=["id"], add=["probabilities"])
        found = {}
        for place, part in results_by(client)("score", hashed, None, [(one,) for one in results.to_delayed()]):
            found[place] = part
            on()
        ids = np.concatenate([found[place][1] for place in sorted(found)])
        assert len(np.unique(ids)) == len(ids), "a row was scored twice"
        return hashlib.sha256("".join(found[place][0] for place in sorted(found)).encode()).hexdigest(), len(ids)

    return work


def hashed(_: None, frame: Any) -> tuple[str, Any]:
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest(), frame["id"].to_numpy()


def lightgbm(client: Client, folder: Path, on: Callable[[], None]) -> tuple[str, int]:
    """The fit of LightGBM on Dask, as it is: whether it ends, as two of its models differ even without kills."""
    from lightgbm.dask import DaskLGBMClassifier

    # Held by the workers: read apart, rows and classes would be split in different ways, and are refused.
    frame = dd.read_parquet(folder).persist()
    fitted = DaskLGBMClassifier(client=client, n_estimators=100, random_state=0, verbose=-1)
    fitted.fit(frame.drop(columns=["fraud", "id"]), frame["fraud"])
    on()
    return "", len(frame)


def under_kills(name: str, work: Work, folder: Path, kills: int, n_rows: int) -> dict[str, Any]:
    """Work on a cluster that nobody disturbs, then again and again while its workers are killed."""
    settings = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None, "silence_logs": 60}
    with LocalCluster(n_workers=WORKERS, **settings) as cluster, Client(cluster) as client:
        # A worker that dies while it starts is given up by its nanny: others are started then.
        cluster.adapt(minimum=WORKERS, maximum=WORKERS, interval="1s")
        began = time.perf_counter()
        wanted = work(client, folder, lambda: None)
        alone = time.perf_counter() - began
        assert wanted[1] == n_rows, "rows are missing"
        last, gaps, same, rounds = time.perf_counter(), [0.0], 0, 0

        def on() -> None:
            nonlocal last
            gaps.append(time.perf_counter() - last)
            last = time.perf_counter()

        killer = Killer(cluster, client, kills)
        killer.start()
        began = time.perf_counter()
        try:
            while killer.kills < kills or rounds == 0:
                last = time.perf_counter()
                same += work(client, folder, on) == wanted
                rounds += 1
        finally:
            killer.stop.set()
            killer.join()
        return {
            "work": name, "rows": n_rows, "kills": killer.kills, "rounds": rounds, "same bytes": same,
            "seconds alone": f"{alone:.2f}", "seconds under kills": f"{time.perf_counter() - began:.1f}",
            "longest without progress": f"{max(gaps):.1f}", "outcome": "ok" if same == rounds else "other results",
        }  # fmt: skip


def lightgbm_row(folder: Path, kills: int, n_rows: int) -> dict[str, Any]:
    """LightGBM in a process of its own, which is ended after the time limit."""
    command = [sys.executable, __file__, "--lightgbm-in", str(folder), "--kills", str(kills), "--rows", str(n_rows)]
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        printed, errors = child.communicate(timeout=LIMIT)
        lines = [line for line in (printed if child.returncode == 0 else errors).strip().splitlines() if line]
        outcome = lines[-1] if lines else f"ended with {child.returncode}"
    except subprocess.TimeoutExpired:
        outcome = f"not done after {LIMIT:g} seconds"
        os.killpg(child.pid, signal.SIGKILL)  # the group of this child alone
        child.communicate()
    seconds = f"{time.perf_counter() - began:.1f}"
    return {"work": "lightgbm.dask fit", "rows": n_rows, "seconds under kills": seconds, "outcome": outcome[:200]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2_400_000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--lightgbm-in", type=Path, default=None, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    n_rows = asked.rows // FILES * FILES
    if asked.lightgbm_in is not None:
        found = under_kills("lightgbm.dask fit", lightgbm, asked.lightgbm_in, asked.kills, n_rows)
        print(f"done: {found['rounds']} fits under {found['kills']} kills")
        return
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_rows(folder, n_rows)
        sample = dd.read_parquet(folder).partitions[0].compute()[:20_000]
        known = sample.drop(columns=["fraud", "id"])
        model = MedoidClassifier(method="evidence", random_state=0).fit(known, sample["fraud"])
        works: dict[str, Work] = {"fit in passes": fitting, "scoring": scoring(SavedModel(model.model_))}
        rows = [under_kills(name, work, folder, asked.kills, n_rows) for name, work in works.items()]
        rows.append(lightgbm_row(folder, asked.kills, n_rows))
    names = list(rows[0])
    with asked.output.open("w", newline="") as file:
        file.write(f"# python benchmarks/dask_kills.py --kills {asked.kills} --rows {asked.rows}\n")
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
