"""``qmedoid fit --resume``, killed at random moments: the model at the end, and what had to be read again.

Run as ``PYTHONPATH=. python benchmarks/kills_fit.py``. A made table of 600,000 rows in 12 files, with 2 % frauds, is
fitted in passes with 700 MB. The command is killed (SIGKILL) 20 times and started again; whenever a fit ends before it
was killed, the next one begins anew. Every model that a fit leaves must have the bytes of the one that nobody
disturbed. The figures are written to ``results/kills_fit.csv``.
"""

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from _timing import RESULTS, write_table

FILES, ROWS, COLUMNS, KILLS = 12, 50_000, 8, 20
PASSES = ("count", "sample", "hard rows", "fit", "judge")


def make_files(folder: Path) -> None:
    """Files of rows with a rare class, which two of the columns show."""
    folder.mkdir()
    for number in range(FILES):
        rng = np.random.default_rng(number)
        X = rng.normal(size=(ROWS, COLUMNS))
        is_fraud = rng.random(ROWS) < 1.0 / (1.0 + np.exp(6.0 - 2.0 * X[:, 0] - X[:, 1] * X[:, 2]))
        columns = {f"x{place}": X[:, place] for place in range(COLUMNS)}
        pq.write_table(pa.table({**columns, "class": is_fraud.astype(int)}), folder / f"{number:02}.parquet")


def command(folder: Path, model: Path, *options: str) -> list[str]:
    asked = ["--target", "class", "--memory", "700MB", "--method", "rare", "--json", "-o", str(model), *options]
    return [sys.executable, "-m", "qmedoid", "fit", str(folder / "table"), *asked]


def finished(parts: Path) -> str:
    """The pass that a fit is at, by what is finished."""
    found = Counter(path.name.rpartition("-")[0].replace("-", " ") for path in parts.glob("*.summary"))
    return next((name for name in PASSES if found[name] < (1 if name == "fit" else FILES)), "end")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder / "table")
        began = time.perf_counter()
        subprocess.run(command(folder, folder / "plain"), check=True, capture_output=True)
        took = time.perf_counter() - began
        wanted, chance, model = (folder / "plain").read_bytes(), random.Random(0), folder / "resumed"
        parts, at, kills, fits, saved = Path(f"{model}.parts"), Counter[str](), 0, 0, 0
        while kills < KILLS or not model.exists():
            if model.exists():
                model.unlink()
            child = subprocess.Popen(
                command(folder, model, "--resume"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            try:
                out, _ = child.communicate(timeout=chance.uniform(0.05, 1.0) * took if kills < KILLS else None)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                kills += 1
                at[finished(parts)] += 1
                assert not model.exists(), "a model is there before the fit has ended"
                continue
            assert child.returncode == 0
            assert model.read_bytes() == wanted, "the model is another one"
            assert not parts.exists()
            fits += 1
            saved += 4 * FILES - sum(one["read"] for one in json.loads(out)["passes"]["passes"])
        shutil.rmtree(parts, ignore_errors=True)
    row = {
        "rows": FILES * ROWS, "partitions": FILES, "kills": kills, **{f"killed at {one}": at[one] for one in PASSES},
        "fits that ended": fits, "of these the bytes of the undisturbed model": fits,
        "partitions not read again by the last runs": saved, "undisturbed fit s": round(took, 1),
    }  # fmt: skip
    write_table(
        RESULTS / "kills_fit.csv", "python benchmarks/kills_fit.py", [row], ("numpy", "pyarrow", "scikit-learn")
    )
    print(row)


if __name__ == "__main__":
    main()
