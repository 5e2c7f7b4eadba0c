"""What was fitted on can be scored: the file itself breaks no contract, whichever of its rows were held out."""

import numpy as np
import pyarrow as pa
import pytest
from small_tables import replaced, small_table, write

import qmedoid


def fit(cli, file, model, *options):
    return cli.ok("fit", file, "--target", "y", "-o", model, "--refine", "never", "--json", *options).json


def scored(cli, model, file, out, *options):
    cli.ok("evaluate", model, file, *options)
    return cli.ok("score", model, file, "-o", out, "--json", *options).json["difference"]


@pytest.mark.parametrize("rows", [[0], [3, 50, 88], range(5)])
def test_few_cells_that_are_no_numbers(cli, tmp_path, rows):
    table = small_table()
    cells = ["junk" if row in rows else repr(cell) for row, cell in enumerate(table["x1"].to_pylist())]
    file = write(replaced(table, "x1", pa.array(cells)), tmp_path / "t.csv")
    fit(cli, file, tmp_path / "m")
    difference = scored(cli, tmp_path / "m", file, tmp_path / "o.csv")
    assert difference["cells"]["x1"]["wrong"] == len(rows)
    assert not difference["breaks"]
    words = write(replaced(table, "x1", pa.array(["junk"] * 90)), tmp_path / "words.csv")
    assert cli("score", tmp_path / "m", words, "-o", tmp_path / "o.csv").code == 3


@pytest.mark.parametrize("row", range(0, 90, 15))
def test_level_of_one_row_wherever_it_falls(cli, tmp_path, row):
    table = small_table()
    colors = table["color"].to_pylist()
    colors[row] = "violet"
    labels = table["y"].to_pylist()
    labels[(row + 1) % 90] = None
    colors[(row + 1) % 90] = "of a row without a class"
    table = replaced(replaced(table, "color", pa.array(colors)), "y", pa.array(labels))
    file = write(table, tmp_path / "t.csv")
    fit(cli, file, tmp_path / "m", "--valid", "0.2")
    assert not scored(cli, tmp_path / "m", file, tmp_path / "o.csv")["breaks"]
    other = write(replaced(table, "color", pa.array(["pink"] * 90)), tmp_path / "other.csv")
    assert cli("score", tmp_path / "m", other, "-o", tmp_path / "o.csv").code == 3


def test_names_of_held_out_levels_are_all_that_enters(cli, tmp_path):
    """The model is that of the training rows, number for number."""
    table = small_table()
    colors, names = table["color"].to_pylist(), ("plain", "named")
    held_out = write(table.slice(60), tmp_path / "held_out.csv")
    fit(cli, write(table.slice(0, 60), tmp_path / "plain.csv"), tmp_path / "plain", "--test", held_out)
    order = pa.array(range(90))
    colors[89] = "violet"
    timed = replaced(table, "color", pa.array(colors)).append_column("t", order)
    fit(cli, write(timed, tmp_path / "timed.csv"), tmp_path / "named", "--time-column", "t", "--test", str(1 / 3))
    plain, named = (qmedoid.load(tmp_path / name).model for name in names)
    assert next(column for column in named.contract.columns if column.name == "color").levels[-1] == "violet"
    assert [len(encoding.outputs) for encoding in named.encodings] == [
        len(encoding.outputs) for encoding in plain.encodings
    ]
    np.testing.assert_array_equal(named.parts[0].medoids, plain.parts[0].medoids)
    X = table.slice(0, 60)
    np.testing.assert_array_equal(
        qmedoid.load(tmp_path / "named").decision_function(X), qmedoid.load(tmp_path / "plain").decision_function(X)
    )
