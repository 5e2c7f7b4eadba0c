"""Made-up tables for tests of the study of quality."""

import numpy as np
from benchmarks.quality.protocol import Rows
from benchmarks.quality.tables import Table


def two_class_rows():
    """Rows to fit and to test, of two classes that overlap."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = rng.normal(size=(400, 3)) + 1.2 * y[:, None]
    columns = {f"x{place}": column for place, column in enumerate(X.T)}
    return Rows(
        {name: own[:250] for name, own in columns.items()},
        {name: own[250:] for name, own in columns.items()},
        y[:250],
        y[250:],
        2,
    )


def make_table(rng, n=200, n_classes=2):
    """A number with missing cells and two categories."""
    numbers = rng.normal(size=n)
    numbers[rng.random(n) < 0.2] = np.nan
    three = rng.choice(["x", "y", "z"], size=n).astype(object)
    three[:3] = "x", "y", "z"
    columns = {
        "number": numbers,
        "two": rng.choice(["a", "b"], size=n).astype(object),
        "three": np.where(rng.random(n) < 0.1, None, three),
    }
    y = rng.integers(n_classes, size=n)
    return Table("made up", columns, y, tuple(map(str, range(n_classes))), "nowhere")
