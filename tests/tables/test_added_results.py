"""What can be added to results: probabilities, places, reasons and novelty, the same in a file and in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from fitted_tables import fitted, score, with_column
from qmedoid.saved import SavedModel
from qmedoid.tables.results import ADDED


@pytest.fixture(scope="module", params=[2, 3])
def case(request):
    table, classifier = fitted(request.param)
    return table, SavedModel(classifier.model_)


def test_probabilities_are_those_of_the_model_and_add_up(case):
    table, model = case
    found = model.score_table(table, add=["probabilities"])
    names = [f"probability_{label}" for label in model.classes_]
    assert found.column_names[-len(names) :] == names
    values = np.column_stack([found[name].to_numpy() for name in names])
    np.testing.assert_array_equal(values, model.predict_proba(table))
    np.testing.assert_allclose(values.sum(axis=1), 1.0)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_file_and_memory_have_the_same_results(case, tmp_path, ending):
    table, model = case
    write = pyarrow.csv.write_csv if ending == "csv" else pyarrow.parquet.write_table
    write(table, tmp_path / f"t.{ending}")
    out = tmp_path / "o.parquet"
    score(model.model, str(tmp_path / f"t.{ending}"), str(out), columns=["y"], add=ADDED, n_reasons=2)
    of_file = pyarrow.parquet.read_table(out)
    in_memory = model.score_table(table, columns=["y"], add=ADDED, n_reasons=2)
    assert of_file.column_names == in_memory.column_names
    assert of_file.drop_columns(["source"]).equals(in_memory.drop_columns(["source"]))


def test_cells_are_shown_short_and_missing_ones_in_words(case):
    table, model = case
    absent = with_column(table, "x1", pa.nulls(len(table), pa.float64()))
    with pytest.warns(UserWarning, match="missing cells"):
        found = model.score_table(absent, add=["reasons"], n_reasons=99, on_mismatch="warn")
    # A column that does not change the odds noticeably is not named.
    named = [text for text in found["reasons"].to_pylist() if "x1" in text]
    assert len(named) > len(table) / 2
    assert all("x1 = missing (" in text for text in named)
    long = with_column(table, "color", pa.array(["x" * 100] * len(table)))
    with pytest.warns(UserWarning, match="unseen"):
        found = model.score_table(long, add=["reasons"], n_reasons=99, on_mismatch="warn")
    named = [text for text in found["reasons"].to_pylist() if "color" in text]
    assert len(named) > len(table) / 2
    assert all(f"color {'x' * 27}…{'x' * 12} (" in text for text in named)
