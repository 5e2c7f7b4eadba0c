"""`score` and `evaluate` cut where they are asked to, by the held-out rows of the fit."""

from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tables import cells, write

import qmedoid

CUTS = {
    ("--threshold", "0.8"): 0.8,
    ("--threshold", "80%"): 0.8,
    ("--alert-rate", "20%"): {"alert_rate": 0.2},
    ("--min-precision", "0.9"): {"min_precision": 0.9},
    ("--min-recall", "0.9"): {"min_recall": 0.9},
    ("--cost", "3"): {"cost": 3.0},
}


@pytest.mark.parametrize("cut", CUTS, ids="=".join)
def test_every_command_cuts_as_the_model_in_python(cli, two, tmp_path, cut):
    model = qmedoid.load(two.model).at_operating_point(CUTS[cut])
    out = tmp_path / "o.csv"
    report = cli.ok("score", two.model, two.file, "-o", out, *cut, "--json").json
    predicted = model.predict(two.table)
    assert cells(out)["prediction"] == predicted.tolist()
    assert report["operating"] == model.expected_.as_dict()
    evaluated = cli.ok("evaluate", two.model, two.file, *cut, "--json", "--all-rows").json
    assert evaluated["operating"] == report["operating"]
    assert evaluated["alert_rate"] == report["alert_rate"] == (predicted == "yes").mean()
    said = cli.ok("score", two.model, two.file, "-o", out, *cut).err
    assert f"called yes if its probability is above {model.expected_.threshold:.4g}" in said
    assert "rows: precision" in said
    assert "rows, each scored by a model that had not seen it." in said


def test_two_cuts_and_numbers_out_of_range_are_wrong_calls(cli, two, tmp_path):
    out = tmp_path / "o.csv"
    for command in (("score", two.model, two.file, "-o", out), ("evaluate", two.model, two.file)):
        outcome = cli(*command, "--threshold", "0.3", "--cost", "2")
        assert outcome.code == 2
        assert "--threshold and --cost both say where to cut" in outcome.err
        for option, value in (("threshold", "1"), ("min-recall", "0"), ("cost", "-1")):
            outcome = cli(*command, f"--{option}", value)
            assert (outcome.code, f"--{option} must be a number above 0" in outcome.err) == (2, True)
        for value in ("many", "150%"):
            outcome = cli(*command, "--alert-rate", value)
            assert (outcome.code, "such as 0.05, or a percentage" in outcome.err) == (2, True)
    assert not out.exists()


def test_three_classes_have_no_cut(cli, three, tmp_path):
    outcome = cli("score", three.model, three.file, "-o", tmp_path / "o.csv", "--threshold", "0.3")
    assert outcome.code == 4
    assert "cut of 3 classes" in outcome.err


def test_header_alone_gives_a_header_alone(cli, two, tmp_path):
    header, out = tmp_path / "h.csv", tmp_path / "o.csv"
    header.write_text(two.file.read_text().splitlines()[0] + "\n")
    assert "0 rows scored" in cli.ok("score", two.model, header, "-o", out, "--columns", "id").err
    names = "id", "prediction", "score", "margin", "nearest_medoid_no", "nearest_medoid_yes", "decided_by"
    assert out.read_text() == ",".join(f'"{name}"' for name in names) + "\n"
    report = cli.ok("score", two.model, header, "-o", out, "--json").json
    assert (report["rows"], report["alert_rate"], report["notes"]) == (0, None, [])
    assert cli("evaluate", two.model, header).code == 3


@pytest.mark.parametrize("top", [1, 7, 90, 500])
def test_top_calls_the_highest_scores(cli, two, tmp_path, top):
    out = tmp_path / "o.csv"
    report = cli.ok("score", two.model, two.file, "-o", out, "--top", top, "--json").json
    found = cells(out)
    scores = np.array(found["score"], dtype=float)
    called = np.array(found["prediction"]) == "yes"
    assert report["alerts"] == called.sum() == min(top, 90)
    assert scores[called].min() > scores[~called].max(initial=-1)
    assert report["top"]["alerts"] <= min(top, 90) / 90 * report["top"]["rows"] + 1e-9
    assert report["drift"] is None
    said = cli.ok("score", two.model, two.file, "-o", out, "--top", top).err
    assert f"Called yes: {min(top, 90)} with the highest scores (probability above " in said
    assert "rows: precision" in said
    assert "rows, each scored by a model that had not seen it." in said


def test_top_of_equal_scores_and_of_pipes(cli, two, tmp_path):
    twice, out = write(pa.concat_tables([two.table] * 3), tmp_path / "thrice.csv"), ("-o", tmp_path / "o.csv")
    found = cli.ok("score", two.model, twice, *out, "--top", "4", "--json").json
    assert found["alerts"] == 3
    assert found["top_tied"] == 3
    (note,) = (note for note in found["notes"] if "instead of" in note)
    assert note == (
        "3 records are called yes instead of 4: 3 have one score and tie for the other 1. Records of one score are all "
        "called so or none is: --top 6 calls these too."
    )
    assert cli.ok("score", two.model, twice, *out, "--top", "6", "--json").json["alerts"] == 6
    said = cli.ok("score", two.model, twice, *out, "--top", "2").err
    assert "0 records are called yes instead of 2: 3 have one score and tie for the other 2." in said
    assert "highest scores" not in said
    assert "Expected of new rows" not in said
    outcome = cli("score", two.model, "-", *out, "--top", "4", stdin=two.file.read_bytes())
    assert (outcome.code, "read twice" in outcome.err) == (2, True)
    assert cli("score", two.model, two.file, *out, "--top", "4", "--cost", "2").code == 2


def test_top_holds_few_scores_and_cuts_the_same(two, monkeypatch):
    from qmedoid.metrics.thresholds import threshold_at_count
    from qmedoid.tables import text_files
    from qmedoid.tables.evaluating import top_in_file
    from qmedoid.tables.results import ScoreSettings

    model = qmedoid.load(two.model).model
    decided = qmedoid.load(two.model).decide(two.table)
    log_odds = decided.scores[:, 1] - decided.scores[:, 0]
    monkeypatch.setattr(text_files, "_BLOCK", 500)
    monkeypatch.setattr(text_files, "_SAMPLE", 500)
    for count in (1, 3, 20):
        found = top_in_file(model, str(two.file), count, ScoreSettings())
        assert found == (threshold_at_count(log_odds, count), 90, count, 0)


@given(st.lists(st.lists(st.integers(-3, 3), max_size=30), max_size=8), st.integers(1, 12))
def test_top_counts_those_above_and_those_that_tie(parts, count):
    """Batch by batch as all at once, whatever the batches."""
    from qmedoid.tables import evaluating
    from qmedoid.tables.results import ScoreSettings

    def first_pass(_model, _where, _settings, _progress, gather, *_how):
        return gather(np.array(part, dtype=float) for part in parts)

    every = np.sort(np.array([score for part in parts for score in part], dtype=float))[::-1]
    model = mock.Mock()
    with mock.patch.object(evaluating, "_first_pass", first_pass):
        cut, rows, above, tied = evaluating.top_in_file(model, "", count, ScoreSettings())
    assert rows == len(every)
    assert above == (every > cut).sum() <= count
    wanted = min(count, rows)
    assert (tied > 0) == (above < wanted)
    if tied:
        assert tied == (every == every[above]).sum() > wanted - above


def test_budgets_say_where_rows_tie(cli, two, tmp_path):
    thrice = write(pa.concat_tables([two.table] * 3), tmp_path / "thrice.csv")
    said = cli.ok("evaluate", two.model, thrice, "--all-rows", "--budgets", "2,3,7").out
    assert "Rows of one score are all alerts or none is: there are fewer alerts than 2 and 7 allows." in said
    assert "fewer alerts" not in cli.ok("evaluate", two.model, two.file, "--all-rows", "--budgets", "2,500").out


def test_budgets_on_labeled_rows_and_on_held_out_ones(cli, two, three):
    asked = ("--budgets", "5,20%", "--budgets", "0.5")
    model = qmedoid.load(two.model)
    evaluated = cli.ok("evaluate", two.model, two.file, *asked, "--json", "--all-rows").json["budgets"]
    assert evaluated == model.budgets([5, "20%", 0.5], two.table)
    assert [one["alerts"] for one in evaluated] == [5, 18, 45]
    inspected = cli.ok("inspect", two.model, *asked, "--json").json["budgets"]
    assert inspected == model.budgets(["5", 0.2, "50%"])
    for command in (("evaluate", two.model, two.file), ("inspect", two.model)):
        assert "20%" in cli.ok(*command, *asked).out
        assert cli(*command, "--budgets", "some").code == 2
    assert cli("inspect", three.model, "--budgets", "5").code == 4
    assert cli("evaluate", three.model, three.file, "--budgets", "5").code == 4
