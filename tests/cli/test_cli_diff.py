"""`qmedoid diff`: what it prints is what the function finds, with exit codes for scripts."""

import json

import pytest
from small_tables import replaced, small_table, write

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


def test_text_tells_the_same(cli, two, new):
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


def test_models_of_other_classes_are_compared(cli, two, three):
    printed = cli.ok("diff", two.model, three.model, two.file, "--json").json
    assert printed["classes"] == {"added": ["a", "b", "c"], "removed": ["no", "yes"]}
    assert printed["decisions"]["changed"] == 90
    assert "added 'a', 'b', 'c'; removed 'no', 'yes'" in cli.ok("diff", two.model, three.model).out


def test_tables_in_other_kinds_of_files_and_with_odd_cells(cli, two, new, tmp_path):
    odd = replaced(two.table, "x2", [["many" if k == 3 else str(v) for k, v in enumerate(two.table["x2"].to_pylist())]])
    file, parquet = write(odd, tmp_path / "odd.csv"), write(two.table, tmp_path / "t.parquet")
    assert cli("diff", two.model, new, file).code == 3
    printed = cli.ok("diff", two.model, new, file, "--on-mismatch", "warn", "--json").json
    assert printed["decisions"]["rows"] == 90
    first, second = (cli.ok("diff", two.model, new, one, "--json").json for one in (parquet, two.file))
    assert first == second


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
