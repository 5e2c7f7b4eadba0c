"""Small tables with a model for each, fitted once."""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from qmedoid import MedoidClassifier
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import score_file


def raw_table(n_classes=2, n=80, seed=0):
    """Numbers, a category and a truth value; the class is in ``y``."""
    rng = np.random.default_rng(seed)
    code = rng.permutation(np.arange(n) % n_classes)
    color = np.where(rng.random(n) < 0.7, code % 3, rng.integers(0, 3, n))
    return pa.table(
        {
            "x1": rng.normal(size=n) + 1.8 * code,
            "x2": rng.normal(size=n) - code,
            "color": np.array(["red", "green", "blue"])[color],
            "member": rng.random(n) < 0.3 + 0.4 * (code > 0),
            "y": pa.array(["a", "b", "c"]).take(pa.array(code)),
        }
    )


@lru_cache
def fitted(n_classes=2, **settings):
    """A table, and the classifier that was fitted to it."""
    table = raw_table(n_classes)
    classifier = MedoidClassifier(refine="never", **settings, random_state=0)
    return table, classifier.fit(table.drop_columns(["y"]), table["y"].to_pylist())


def with_column(table, name, values, new_name=None):
    return table.set_column(table.column_names.index(name), new_name or name, values)


def score(model, table, out, *, on_progress=None, **settings):
    """Score a table into a file with settings by name."""
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    return score_file(model, str(table), str(out), ScoreSettings(**settings), on_progress=on_progress)
