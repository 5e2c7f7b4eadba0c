"""``qmedoid importance`` and ``qmedoid effect``."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import qmedoid


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


def test_importance_of_a_table_is_that_of_its_rows(cli, two):
    printed = cli.ok("importance", two.model, two.file, "--json").json
    assert printed["rows"] == len(two.table)
    found = qmedoid.load(two.model).importances(two.table.drop_columns(["y"]))
    assert printed["importances"] == pytest.approx(found)
    assert f"{len(two.table):,} rows" in cli.ok("importance", two.model, two.file).out


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


def test_wrong_calls_are_refused_in_one_sentence(cli, two, tmp_path):
    for arguments, code, words in (
        (("effect", two.model, two.file, "--column", "nothing"), 2, "The model has no column 'nothing'"),
        (("effect", two.model, two.file, "--column", "y", "--plot", "x.pdf"), 2, "ends in .svg"),
        (("importance", tmp_path / "none"), 4, "There is no saved model"),
        (("importance", two.model, tmp_path / "none.csv"), 3, "none.csv"),
    ):
        outcome = cli(*arguments)
        assert (outcome.code, outcome.out) == (code, "")
        assert words in outcome.err
