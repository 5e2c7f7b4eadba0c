"""A table with values that stand for missing cells, and the same table where these cells are empty."""

from typing import Any

import numpy as np
import pandas as pd

MISSING: dict[str, list[Any]] = {"chol": [0], "day": ["1900-01-01"], "town": ["unknown"], "age": [-9.5, 99]}
"""Values of a few columns that are read as missing."""


def both_tables(n: int = 400, *, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """The table with the values, the one with empty cells, and the classes."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({
        "chol": rng.integers(85, 400, n),
        "day": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 500, n), "D"),
        "town": rng.choice(["A", "B", "C"], n),
        "age": rng.normal(50, 10, n).round(1),
        "dose": rng.normal(0, 1, n),
    })  # fmt: skip
    score = table.chol + 5 * table.age + 80 * (table.town == "A") + rng.normal(0, 60, n)
    raw, empty = table.copy(), table.astype({"chol": float, "town": object})
    for name, values in MISSING.items():
        held = np.flatnonzero(rng.random(n) < 0.15)
        written = pd.Series(values).take(np.arange(len(held)) % len(values)).to_numpy()
        raw.loc[held, name] = pd.to_datetime(written) if name == "day" else written
        empty.loc[held, name] = pd.NaT if name == "day" else None if name == "town" else np.nan
    return raw, empty, (score > 530).astype(int).to_numpy()
