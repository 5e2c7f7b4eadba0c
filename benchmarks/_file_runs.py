"""One way to get from a file to decisions, in a separate process: prints the core-seconds after the imports.

The first call touches its memory for the first time, as a command does; a second one, printed as well, finds it there.

``python benchmarks/_file_runs.py read|score|pandas MODEL TABLE OUT``
"""

import sys
import time
from pathlib import Path
from typing import Any


def read(_model: str, table: str, _out: str) -> Any:
    """Reading alone, by PyArrow, into memory."""
    import pyarrow.csv
    import pyarrow.parquet

    def run() -> None:
        pyarrow.csv.read_csv(table) if table.endswith(".csv") else pyarrow.parquet.read_table(table)

    return run


def score(model: str, table: str, out: str) -> Any:
    """What ``qmedoid score`` does once it is imported."""
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    from qmedoid.model.storage.model_file import load_model
    from qmedoid.tables.arrow import keep_pandas_away
    from qmedoid.tables.results import ScoreSettings
    from qmedoid.tables.scoring import score_file

    keep_pandas_away()
    loaded = load_model(model)
    return lambda: score_file(loaded, table, out, ScoreSettings())


def pandas(model: str, table: str, out: str) -> Any:
    """A data frame is read and written, NumPy computes."""
    import pandas as pd
    import pyarrow.parquet  # noqa: F401

    from qmedoid.model.storage.model_file import load_model

    loaded = load_model(model)

    def run() -> None:
        frame = pd.read_csv(table) if table.endswith(".csv") else pd.read_parquet(table)
        results = by_numpy(loaded, frame)
        results.to_csv(out, index=False) if out.endswith(".csv") else results.to_parquet(out, index=False)

    return run


def by_numpy(model: Any, frame: Any) -> Any:
    """The results as one writes them without this package: a loop over the anchors, then whole arrays."""
    import numpy as np
    import pandas as pd

    method = model.parts[0]
    X = frame[list(model.contract.names)].to_numpy(dtype=np.float64)
    Z = (X - method.input_scaling.center) / method.input_scaling.scale
    features = np.empty((len(X), len(method.configuration)))
    for anchor, (subset, weights) in enumerate(zip(method.configuration, method.weights, strict=True)):
        parts = weights * Z[:, subset]
        norm = np.sqrt(np.sum(parts**2, axis=1))
        features[:, anchor] = np.where(parts.sum(axis=1) < 0, -norm, norm) if method.signed else norm
    features = (features - method.feature_scaling.center) / method.feature_scaling.scale
    distance = np.stack([np.linalg.norm(features - medoid, axis=1) for medoid in method.medoids], axis=1)
    norms = np.linalg.norm(features, axis=1)[:, None] * np.linalg.norm(method.medoids, axis=1)
    angle = np.arccos(np.clip(features @ method.medoids.T / norms, -1.0, 1.0))
    shares = distance / (distance.sum(axis=1, keepdims=True) + 1e-12)
    if method.use_angular:
        turned = angle / (angle.sum(axis=1, keepdims=True) + 1e-12)
        shares = method.alpha * shares + (1 - method.alpha) * turned
    scores = model.calibration.apply(shares * method.multipliers)
    margin = scores[:, 1] - scores[:, 0]
    rows = method.rows.numbers
    return pd.DataFrame(
        {
            "prediction": np.array(model.decision.classes)[(margin > 0).astype(int)],
            "score": 1 / (1 + np.exp(-margin)),
            "margin": margin,
            f"nearest_medoid_{model.decision.classes[0]}": rows[0],
            f"nearest_medoid_{model.decision.classes[1]}": rows[1],
            "decided_by": "nearest",
        }
    )


if __name__ == "__main__":
    task = {"read": read, "score": score, "pandas": pandas}[sys.argv[1]](*sys.argv[2:])
    Path(sys.argv[3]).read_bytes()  # into the system's cache
    for _ in range(2):
        began = time.process_time()
        task()
        print(time.process_time() - began)
