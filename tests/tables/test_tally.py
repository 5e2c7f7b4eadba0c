"""What all decisions about a table say together: counted once, however often the table is read."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from fitted_tables import fitted, raw_table, score
from qmedoid import NearestMedoidClassifier
from qmedoid.exceptions import DataError, ModelError, ParameterError, QMedoidWarning
from qmedoid.tables.difference import Issues
from qmedoid.tables.evaluating import estimate_in_file
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import decide_batch

SETTINGS = ScoreSettings()


@pytest.fixture(scope="module")
def model():
    return fitted(method="nearest")[1].model_


@pytest.fixture
def file(tmp_path):
    table = raw_table(n=700, seed=5)
    path = tmp_path / "t.csv"
    pyarrow.csv.write_csv(table, path)
    return table, path


def test_estimate_of_a_file_is_that_of_its_rows(model, file, tmp_path):
    table, path = file
    found = estimate_in_file(model, str(path), SETTINGS)
    whole = model.decision.estimated_priors(decide_batch(model, table, Issues())[0].scores)
    assert found.prevalence == pytest.approx(whole.prevalence, rel=1e-9)
    assert found.n_rows == 700
    # A shifted model says the same of the records: its log-odds are for other priors, and it knows.
    shifted = estimate_in_file(replace(model, decision=model.decision.at_priors(0.03)), str(path), SETTINGS)
    assert shifted.prevalence == pytest.approx(whole.prevalence, rel=1e-4)
    scored = score(model, path, tmp_path / "o.csv")
    assert scored.prevalence(model).prevalence == pytest.approx(whole.prevalence, rel=1e-9)


def test_table_that_is_read_again_is_counted_once(model, file, tmp_path, monkeypatch):
    """A cell that is no number turns up late: the file is read from its beginning, with texts as they are."""
    table, path = file
    monkeypatch.setattr("qmedoid.tables.text_files._BLOCK", 2**12)
    monkeypatch.setattr("qmedoid.tables.text_files._SAMPLE", 2**11)
    cells = [str(value) for value in table["x1"].to_pylist()]
    cells[-1] = "oops"
    pyarrow.csv.write_csv(table.set_column(0, "x1", pa.array(cells)), path)
    readings = []
    with pytest.warns(QMedoidWarning, match="such as 'oops'"):
        scored = score(
            model, path, tmp_path / "o.csv", on_mismatch="warn",
            on_progress=lambda rows, *_: readings.append(rows),
        )  # fmt: skip
    assert (np.diff(readings) < 0).sum() == 1  # read from its beginning again, after some batches were decided
    assert scored.prevalence(model).n_rows == scored.rows == 700


def test_estimate_that_has_no_meaning_is_refused(model, file, tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_text("x1,x2,color,member\n")
    with pytest.raises(DataError, match="no rows"):
        estimate_in_file(model, str(empty), SETTINGS)
    table, path = file
    three = fitted(3, method="nearest")[1].model_
    with pytest.raises(ParameterError, match="each of the 3 classes"):
        estimate_in_file(three, str(path), SETTINGS)
    margins = NearestMedoidClassifier(random_state=0).fit(
        table.select(["x1", "x2"]).to_pandas(), table["y"].to_pylist()
    )
    with pytest.raises(ModelError, match="no probabilities"):
        estimate_in_file(margins.model_, str(path), SETTINGS)
