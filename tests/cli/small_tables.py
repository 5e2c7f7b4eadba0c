"""Small tables of every kind of column, and the same table in every format."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet


def small_table(classes=("no", "yes"), n=90, seed=0):
    """Rows with an id, numbers, a category, a truth value, a day, and the class in ``y``."""
    rng = np.random.default_rng(seed)
    code = rng.permutation(np.arange(n) % len(classes))
    color = np.where(rng.random(n) < 0.7, code % 3, rng.integers(0, 3, n))
    return pa.table(
        {
            "id": [f"{k:03d}" for k in range(n)],
            "x1": rng.normal(size=n) + 1.8 * code,
            "x2": rng.normal(size=n) - code,
            "color": np.array(["red", "green", "blue"])[color],
            "member": rng.random(n) < 0.3 + 0.4 * (code > 0),
            "day": pa.array(rng.integers(18_000, 19_000, n).astype(np.int32), pa.date32()),
            "y": pa.array([classes[c] for c in code]),
        }
    )


def write(table, path):
    """Write a table by the ending of the name."""
    match path.suffix:
        case ".csv":
            pyarrow.csv.write_csv(table, path)
        case ".parquet":
            pyarrow.parquet.write_table(table, path)
        case ".feather":
            pyarrow.feather.write_feather(table, path)
    return path


def csv_bytes(table):
    out = io.BytesIO()
    pyarrow.csv.write_csv(table, out)
    return out.getvalue()


def cells(path, delimiter=","):
    """The cells of a CSV file as texts, by column."""
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=False)
    names = pyarrow.csv.open_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter)).schema.names
    options.column_types = dict.fromkeys(names, pa.string())
    parsing = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    return pyarrow.csv.read_csv(path, convert_options=options, parse_options=parsing).to_pydict()


def replaced(table, name, values, new_name=None):
    """The table with another column in the place of one."""
    return table.set_column(table.schema.get_field_index(name), new_name or name, values)
