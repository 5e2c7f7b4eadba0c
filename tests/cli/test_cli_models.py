"""`importance`, `effect`, `diff` and `recalibrate`: what they print and save is what the functions find."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from small_tables import small_table, write

import qmedoid


@pytest.fixture(scope="module")
def new(cli, two, tmp_path_factory):
    """A model that was made from the other."""
    folder = tmp_path_factory.mktemp("new")
    file = write(small_table(seed=5, n=120), folder / "labeled.csv")
    cli.ok("recalibrate", two.model, file, "--alert-rate", 0.2, "-o", folder / "new")
    return folder / "new"


def test_json_is_what_the_function_finds(cli, two, new):
    printed = cli.ok("diff", two.model, new, two.file, "--json").json
    found = qmedoid.diff(qmedoid.load(two.model), qmedoid.load(new), two.table).as_dict()
    assert {key: printed[key] for key in found} == json.loads(json.dumps(found))
    assert printed["derived"]
    assert printed["decisions"]["rows"] == 90


def test_text_of_a_diff_tells_the_same(cli, two, new):
    printed = cli.ok("diff", two.model, new, two.file, "--json").json
    text = cli.ok("diff", two.model, new, two.file).out
    decisions = printed["decisions"]
    assert "new was made from two." in text
    assert f"two.csv: {decisions['changed']} of 90 records get another class" in text
    assert f"mean change of the probability: {decisions['mean_change']:.4f}" in text
    assert "operating.rule" in text
    assert all(f" {one['row']} " in text for one in decisions["largest"])


def test_exit_codes(cli, two, new):
    assert cli("diff", two.model, new, two.file).code == 0
    assert cli("diff", two.model, new, two.file, "--exit-code").code == 5
    assert cli("diff", new, two.model, two.file, "--exit-code").code == 5
    assert cli("diff", two.model, new, "--exit-code", "--json").code == 5
    same = cli("diff", two.model, two.model, two.file, "--exit-code")
    assert same.code == 0
    assert "0 of 90 records get another class" in same.out
    assert "The models decide alike." in cli("diff", two.model, two.model, "--exit-code").out


@pytest.mark.parametrize(("table", "code"), [("empty.csv", 3), ("fewer.csv", 3), ("nothing.csv", 3), ("-", 2)])
def test_tables_that_cannot_be_compared(cli, two, new, tmp_path, table, code):
    write(two.table.slice(0, 0), tmp_path / "empty.csv")
    write(two.table.drop_columns(["x1"]), tmp_path / "fewer.csv")
    outcome = cli("diff", two.model, new, table if table == "-" else tmp_path / table, "--json")
    assert outcome.code == outcome.json["exit_code"] == code
    assert ("The old model cannot read the table." in outcome.json["error"]) == (table == "fewer.csv")
    damaged = tmp_path / "damaged"
    damaged.write_bytes(two.model.read_bytes()[:-1])
    assert cli("diff", two.model, damaged, "--json").code == 4


def test_importance_of_training_rows_is_that_of_the_model(cli, two):
    saved = qmedoid.load(two.model)
    printed = cli.ok("importance", two.model, "--json").json
    assert printed["rows"] is None
    expected = dict(zip(saved.contract.names, saved.feature_importances_, strict=True))
    assert printed["importances"] == pytest.approx(expected)
    assert list(printed["importances"].values()) == sorted(expected.values(), reverse=True)
    assert cli.ok("inspect", two.model, "--json").json["importances"] == printed["importances"]
    text = cli.ok("importance", two.model).out
    assert "training rows, in log-odds" in text
    assert next(iter(printed["importances"])) in text


def test_effect_prints_what_python_gives(cli, two, tmp_path):
    saved = qmedoid.load(two.model)
    for column in saved.contract.names:
        printed = cli.ok("effect", two.model, two.file, "--column", column, "--bins", "4", "--json").json
        assert printed.pop("plot") is None
        effect = saved.effect(two.table.drop_columns(["y"]), column, bins=4).to_dict()
        assert [one["rows"] for one in printed["bins"]] == [one["rows"] for one in effect["bins"]]
        np.testing.assert_allclose(
            [one["mean"] for one in printed["bins"]], [one["mean"] for one in effect["bins"]], rtol=1e-9
        )
    name = saved.contract.names[0]
    text = cli.ok("effect", two.model, two.file, "--column", name).out
    assert f"What the values of {name} contribute: above 0 toward" in text
    # A mean in log-odds is a factor of the odds, in the same direction.
    odds = re.findall(r"^│ [^│]+│[^│]+│ +([×÷])[\d.]+ │ +([+-])", text, flags=re.MULTILINE)
    assert odds
    assert set(odds) <= {("×", "+"), ("÷", "-")}
    picture = tmp_path / "effect.svg"
    cli.ok("effect", two.model, two.file, "--column", name, "--plot", picture)
    assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    # The same picture again; but no file of somebody else.
    cli.ok("effect", two.model, two.file, "--column", name, "--plot", picture)
    picture.write_bytes(b"mine")
    assert cli("effect", two.model, two.file, "--column", name, "--plot", picture).code == 2
    assert picture.read_bytes() == b"mine"
    cli.ok("effect", two.model, two.file, "--column", name, "--plot", picture, "--force")


def test_wrong_calls_of_importance_and_effect(cli, two, tmp_path):
    for arguments, code, words in (
        (("effect", two.model, two.file, "--column", "nothing"), 2, "The model has no column 'nothing'"),
        (("effect", two.model, two.file, "--column", "y", "--plot", "x.pdf"), 2, "ends in .svg"),
        (("importance", tmp_path / "none"), 4, "There is no saved model"),
        (("importance", two.model, tmp_path / "none.csv"), 3, "none.csv"),
    ):
        outcome = cli(*arguments)
        assert (outcome.code, outcome.out) == (code, "")
        assert words in outcome.err


@pytest.fixture(scope="module")
def labeled(tmp_path_factory):
    """Labeled rows that the models have not seen."""
    return write(small_table(seed=5, n=120), tmp_path_factory.mktemp("labeled") / "labeled.csv")


def test_saved_model_is_that_of_the_function(cli, two, labeled, tmp_path):
    printed = cli.ok("recalibrate", two.model, labeled, "-o", tmp_path / "m", "--min-recall", 0.9, "--json").json
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


def test_text_tells_figures_before_and_after(cli, two, labeled, tmp_path):
    printed = cli.ok("recalibrate", two.model, labeled, "-o", tmp_path / "m", "--json").json
    text = cli.ok("recalibrate", two.model, labeled, "-o", tmp_path / "m").out
    assert "labeled.csv: 120 labeled rows that the model was not fitted on" in text
    for part in ("before", "after"):
        assert f"{printed[part]['log_loss']:.4f}" in text
        assert f"{printed[part]['calibration']['error']:.4f}" in text
    assert "Recalibration " in text
    assert printed["parent"] in text


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--alert-rate", 0.1, "--cost", 3), 2, "--alert-rate and --cost both say where to cut"),
        (("--operating-point", "best"), 2, "'operating_point' parameter of recalibrate must be 'same', None"),
        (("--alert-rate", 1), 2, "--alert-rate must be a number above 0 and below 1. Got 1 instead"),
        (("--target", "color"), 3, "No row has a class of the model ('no', 'yes'): 0 are missing, 120 are others"),
    ],
)
def test_wrong_calls_leave_nothing(cli, two, labeled, tmp_path, options, code, message):
    outcome = cli("recalibrate", two.model, labeled, "-o", tmp_path / "m", *options)
    assert outcome.code == code
    assert message in outcome.err
    assert not (tmp_path / "m").exists()
