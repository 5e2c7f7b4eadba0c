"""Records unlike the training rows on the command line: a note, a column on request, and the same in JSON."""

import numpy as np
import pyarrow as pa
import pytest
from small_tables import cells, replaced, small_table, write


@pytest.fixture(scope="module")
def tables(cli, tmp_path_factory):
    """A model, a table like the one it was fitted on, and the same with x1 far out."""
    folder = tmp_path_factory.mktemp("novelty")
    known, new = small_table(n=400), small_table(n=100, seed=1)
    odd = replaced(new, "x1", [pa.array(np.array(new["x1"].to_pylist()) + 200)])
    cli.ok("fit", write(known, folder / "known.csv"), "--target", "y", "-o", folder / "model")
    return folder / "model", write(new, folder / "new.csv"), write(odd, folder / "odd.csv")


def test_note_names_the_column_and_json_has_it(cli, tables, tmp_path):
    model, *files = tables
    for command, *more in (("score", "-o", tmp_path / "out.csv"), ("evaluate",)):
        usual, unlike = (cli.ok(command, model, file, *more, "--json") for file in files)
        assert "unlike" not in usual.err
        assert "Records are unlike those the model was fitted on:" in unlike.err
        assert "'x1' is " in unlike.err
        usual, unlike = (one.json["novelty"] for one in (usual, unlike))
        assert (usual["status"], usual["compared_rows"], usual["outside_rows"]) == ("none", 100, 0)
        assert (unlike["status"], unlike["outside_rows"]) == ("unlike", 100)
        assert unlike["outside"][0]["column"] == "x1"


def test_column_on_request(cli, tables, tmp_path):
    model, _, odd = tables
    cli.ok("score", model, odd, "-o", tmp_path / "plain.csv")
    cli.ok("score", model, odd, "-o", tmp_path / "with.csv", "--add", "novelty")
    plain, more = cells(tmp_path / "plain.csv"), cells(tmp_path / "with.csv")
    assert [*plain, "novelty"] == list(more)
    assert all(float(cell) > 1 for cell in more.pop("novelty"))
    assert more == plain


def test_few_rows_are_said_to_be_too_few(cli, tables, tmp_path):
    model, new, _ = tables
    few = tmp_path / "few.csv"
    few.write_text("\n".join(new.read_text().splitlines()[:6]))
    outcome = cli.ok("score", model, few, "-o", tmp_path / "out.csv")
    assert "too few rows to compare with those the model was fitted on" in outcome.err
    assert cli.ok("score", model, few, "-o", tmp_path / "out.csv", "--json").json["novelty"]["status"] == "too few"


def test_fit_says_of_a_test_table_what_evaluate_says(cli, tables, tmp_path):
    """The row that is named is one of the file, where rows without a class are left out too."""
    model, new, odd = tables
    known, out = model.parent / "known.csv", tmp_path / "model"
    header, *lines = odd.read_text().splitlines()
    unlabeled = [line.rpartition(",")[0] + "," for line in lines[:7]]
    holes = tmp_path / "holes.csv"
    holes.write_text("\n".join([header, *unlabeled, *new.read_text().splitlines()[1:], lines[40]]) + "\n")
    for file, is_unlike in ((new, False), (odd, True), (holes, True)):
        fitted = cli.ok("fit", known, "--target", "y", "-o", out, "--test", file)
        as_json = cli.ok("fit", known, "--target", "y", "-o", out, "--test", file, "--json")
        assert ("Records are unlike" in fitted.err) == ("Records are unlike" in as_json.err) == is_unlike
        if file is holes:
            assert "'x1' is " in fitted.err
            assert "in row 107:" in fitted.err
            continue
        evaluated = cli.ok("evaluate", out, file)
        assert _novelty_note(fitted.err) == _novelty_note(evaluated.err)
        assert as_json.json["novelty"] == cli.ok("evaluate", out, file, "--json").json["novelty"]


def test_fit_compares_later_rows_and_none_drawn_by_chance(cli, tmp_path):
    table = small_table(n=200)
    moved = np.array(table["x1"].to_pylist()) + np.where(np.arange(200) < 150, 0, 200)
    table = replaced(table, "x1", [pa.array(moved)]).append_column("when", pa.array(np.arange(200)))
    file = write(table, tmp_path / "table.csv")
    common = ("fit", file, "--target", "y", "-o", tmp_path / "model", "--json", "--test", "0.25")
    later = cli.ok(*common, "--time-column", "when")
    assert "'x1' is " in later.err
    assert 150 <= later.json["novelty"]["outside"][0]["row"] < 200
    drawn = cli.ok(*common, "--ignore", "when")
    assert drawn.json["novelty"] is None
    assert "unlike" not in drawn.err


def _novelty_note(text):
    """The lines of the note."""
    lines = text.splitlines()
    start = next((place for place, line in enumerate(lines) if "Records are unlike" in line), len(lines))
    stop = next((place for place in range(start + 1, len(lines)) if not lines[place].startswith("~ ")), len(lines))
    return lines[start:stop]
