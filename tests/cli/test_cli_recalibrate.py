"""`qmedoid recalibrate`: what it saves is what the function makes, and tables that cannot be used are refused."""

import json

import numpy as np
import pyarrow as pa
import pytest
from small_tables import replaced, small_table, write

import qmedoid


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """Labeled rows that the models have not seen."""
    return write(small_table(seed=5, n=120), tmp_path_factory.mktemp("new") / "new.csv")


def test_saved_model_is_that_of_the_function(cli, two, new, tmp_path):
    printed = cli.ok("recalibrate", two.model, new, "-o", tmp_path / "m", "--min-recall", 0.9, "--json").json
    found = qmedoid.recalibrate(
        qmedoid.load(two.model), small_table(seed=5, n=120), operating_point={"min_recall": 0.9}
    )
    found.model.save(tmp_path / "other")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "other").read_bytes()
    assert {key: printed[key] for key in found.as_dict()} == json.loads(json.dumps(found.as_dict()))
    card = cli.ok("inspect", tmp_path / "m").out
    assert "fitted anew to 120 labeled rows" in " ".join(card.split())
    inspected = cli.ok("inspect", tmp_path / "m", "--json").json
    assert inspected["parent"] == cli.ok("inspect", two.model, "--json").json["sha256"] == printed["parent"]
    assert inspected["metrics"]["parent"]["held_out"] == two.printed["held_out"]


def test_text_tells_figures_before_and_after(cli, two, new, tmp_path):
    printed = cli.ok("recalibrate", two.model, new, "-o", tmp_path / "m", "--json").json
    text = cli.ok("recalibrate", two.model, new, "-o", tmp_path / "m").out
    assert "new.csv: 120 labeled rows that the model was not fitted on" in text
    for part in ("before", "after"):
        assert f"{printed[part]['log_loss']:.4f}" in text
        assert f"{printed[part]['calibration']['error']:.4f}" in text
    assert "Recalibration " in text
    assert printed["parent"] in text


def test_three_classes_and_labels_spelled_otherwise(cli, three, tmp_path):
    table = small_table(("a", "b", "c"), seed=5)
    labels = pa.array([f" {label} " for label in table["y"].to_pylist()])
    file = write(replaced(table, "y", labels, "kind"), tmp_path / "t.csv")
    wrong = cli("recalibrate", three.model, file, "-o", tmp_path / "m")
    assert wrong.code == 3
    assert "There is no column 'y' with the classes" in wrong.err
    printed = cli.ok("recalibrate", three.model, file, "--target", "kind", "-o", tmp_path / "m", "--json").json
    assert printed["rows"] == 90
    assert printed["operating"] is None
    np.testing.assert_allclose(printed["priors"], [1 / 3] * 3)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--alert-rate", 0.1, "--cost", 3), 2, "--alert-rate and --cost both say where to cut"),
        (("--operating-point", "best"), 2, "'operating_point' parameter of recalibrate must be 'same', None"),
        (("--alert-rate", 1), 2, "'alert_rate' parameter of recalibrate must be"),
        (("--target", "color"), 3, "No row has a class of the model ('no', 'yes'): 0 are missing, 120 are others"),
    ],
)
def test_wrong_calls_leave_nothing(cli, two, new, tmp_path, options, code, message):
    outcome = cli("recalibrate", two.model, new, "-o", tmp_path / "m", *options)
    assert outcome.code == code
    assert message in outcome.err
    assert not (tmp_path / "m").exists()


def test_tables_that_cannot_be_used_leave_nothing(cli, two, tmp_path):
    table = small_table(seed=5)
    cases = {
        "empty": (table.slice(0, 0), "The table has no rows: there is nothing to calibrate on."),
        "one row": (table.slice(0, 1), "needs 10 different new rows of every class"),
        "of the fit": (two.table, "labeled rows were in the fit"),
        "other columns": (table.drop_columns(["x1"]), "- missing: 'x1' (number)"),
    }
    for name, (content, message) in cases.items():
        outcome = cli(
            "recalibrate", two.model, write(content, tmp_path / f"{name}.csv"), "-o", tmp_path / "m", "--json"
        )
        assert outcome.code == 3
        assert message in outcome.json["error"], name
    damaged = tmp_path / "damaged"
    damaged.write_bytes(two.model.read_bytes()[:-9] + b"123456789")
    assert cli("recalibrate", damaged, tmp_path / "one row.csv", "-o", tmp_path / "m").code == 4
    assert not (tmp_path / "m").exists()
