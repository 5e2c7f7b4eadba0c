"""Small tables and models of them, fitted once for each table."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.csv

from qmedoid.estimators.medoid import MedoidClassifier


def mixed_table(n=160, seed=0, classes=("no", "yes")):
    """Rows with numbers, one of them with missing cells, a category, a truth value, and the class in ``y``."""
    rng = np.random.default_rng(seed)
    code = rng.permutation(np.arange(n) % len(classes))
    color = np.where(rng.random(n) < 0.6, code % 3, rng.integers(0, 3, n))
    x3 = rng.normal(size=n)
    return pa.table({
        "x1": rng.normal(size=n) + 1.2 * code,
        "x2": rng.normal(size=n) - 0.8 * code,
        "x3": pa.array(x3, mask=rng.random(n) < 0.1),
        "color": np.array(["red", "green", "blue"])[color],
        "member": rng.random(n) < 0.3 + 0.3 * (code > 0),
        "y": pa.array([classes[one] for one in code]),
    })  # fmt: skip


def fitted(table, **parameters):
    """A model of a table, whose classes are in ``y``."""
    made = MedoidClassifier(method="evidence", refine="never", random_state=0, **parameters)
    made.fit(table.drop_columns(["y"]), table.column("y").to_pandas().rename("y"))
    return made.model_


@cache
def _cached(key):
    table = pa.ipc.open_stream(key).read_all()
    return fitted(table)


def model_of(table):
    """A model of a table; the same table is fitted once."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return _cached(sink.getvalue().to_pybytes())


def write_csv(table, path):
    pyarrow.csv.write_csv(table, path)
    return path


def replaced(table, name, values):
    """The table with another column of this name."""
    return table.set_column(table.schema.get_field_index(name), name, values)
