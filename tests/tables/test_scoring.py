"""A table in a file against a model, below the command line."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from fitted_tables import fitted, raw_table, score, with_column
from qmedoid.exceptions import ContractError, QMedoidWarning
from qmedoid.tables.difference import BrokenContractError
from qmedoid.tables.results import ADDED
from qmedoid.tables.scoring import TableReading


@pytest.fixture(scope="module")
def model():
    return fitted()[1].model_


def saved(table, path):
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
    return str(path)


def test_scores_and_counts(model, tmp_path):
    table = raw_table(seed=3)
    scored = score(model, saved(table, tmp_path / "t.csv"), str(tmp_path / "o.parquet"), columns=["y"])
    out = pyarrow.parquet.read_table(tmp_path / "o.parquet")
    assert scored.rows == 80 == len(out)
    assert scored.predicted == {label: out["prediction"].to_pylist().count(label) for label in "ab"}
    assert not scored.difference.breaks
    assert out["y"].to_pylist() == table["y"].to_pylist()


def test_progress_grows_to_all_rows_and_bytes(model, tmp_path):
    file = saved(pa.concat_tables([raw_table()] * 2500), tmp_path / "t.csv")
    steps = []
    score(model, file, str(tmp_path / "o.parquet"), on_progress=lambda *step: steps.append(step))
    assert len(steps) > 1
    assert steps == sorted(steps)
    size = (tmp_path / "t.csv").stat().st_size
    assert steps[-1] == (200_000, size, size)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_broken_contract_is_an_error_with_its_difference(model, tmp_path, ending):
    table = with_column(raw_table(), "color", [["violet"] * 80])
    file, out = saved(table, tmp_path / f"t.{ending}"), tmp_path / "o.csv"
    with pytest.raises(BrokenContractError) as refused:
        score(model, file, str(out))
    assert isinstance(refused.value, ContractError)
    assert refused.value.difference["cells"]["color"]["unseen"] == 80
    assert not out.exists()
    with pytest.warns(QMedoidWarning, match="'violet'"):
        scored = score(model, file, str(out), on_mismatch="warn")
    assert scored.difference.breaks
    assert scored.rows == 80


def test_carried_column_of_numbers_may_hold_late_texts(model, tmp_path):
    table = pa.concat_tables([raw_table()] * 400)
    key = pa.array([*map(str, range(31_999)), "last"])
    file = saved(table.append_column("key", key), tmp_path / "t.csv")
    score(model, file, str(tmp_path / "o.parquet"), columns=["key"])
    assert pyarrow.parquet.read_table(tmp_path / "o.parquet")["key"].to_pylist() == key.to_pylist()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_table_without_rows_gives_results_without_rows(model, tmp_path, ending):
    files = [saved(raw_table().slice(0, n), tmp_path / f"{n}.{ending}") for n in (0, 5)]
    outs = [tmp_path / "none.parquet", tmp_path / "some.parquet"]
    none, _ = (score(model, file, str(out), columns=["x1"], add=ADDED) for file, out in zip(files, outs, strict=True))
    assert (none.rows, set(none.predicted.values()), none.prevalence(model)) == (0, {0}, None)
    empty, some = map(pyarrow.parquet.read_table, outs)
    assert len(empty) == 0
    assert empty.schema.names == some.schema.names
    if ending == "parquet":  # the cells of a text say what type they are of
        assert empty.schema == some.schema
    score(model, files[0], str(tmp_path / "o.csv"), columns=["x1"])
    assert (tmp_path / "o.csv").read_text().startswith('"x1","prediction",')


def test_reading_takes_only_columns_that_the_model_reads(model, tmp_path):
    table = raw_table().append_column("blob", pa.array([b"\xff"] * 80)).append_column("list", pa.array([[1]] * 80))
    with TableReading(model, saved(table, tmp_path / "t.parquet")) as reading:
        ((batch, extra),) = reading.batches(["list"])
    names = [model.contract.columns[place].name for place in model.layout.used]
    assert batch.schema.names == names
    assert extra.schema.names == ["list"]


def test_carried_texts_that_look_like_missing_cells_stay_as_they_are(model, tmp_path):
    lands = ["NA", "-", "None", "?", "", "null", "007", " x "] * 10
    table = raw_table().append_column("land", pa.array(lands))
    file = saved(table, tmp_path / "t.csv")
    plain, carried = tmp_path / "plain.csv", tmp_path / "carried.csv"
    score(model, file, str(plain))
    score(model, file, str(carried), columns=["land", "color"])
    rows = [line.split(",", 2) for line in carried.read_text().splitlines()[1:]]
    assert [row[0].strip('"') for row in rows] == lands
    # What is missing for the model does not depend on what is carried.
    assert [row[2] for row in rows] == plain.read_text().splitlines()[1:]


def test_refused_table_is_closed(model, tmp_path):
    file = saved(raw_table().drop_columns(["x1"]), tmp_path / "t.csv")
    with pytest.raises(BrokenContractError, match="missing: 'x1'"):
        TableReading(model, file)


def test_words_for_truth_values_are_read_the_second_time(model, tmp_path):
    table = raw_table()
    words = with_column(table, "member", [["yes" if m else "no" for m in table["member"].to_pylist()]])
    outputs = [tmp_path / "words.csv", tmp_path / "plain.csv"]
    for one, out in zip((words, table), outputs, strict=True):
        assert not score(model, saved(one, tmp_path / "t.csv"), str(out)).difference.breaks
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
