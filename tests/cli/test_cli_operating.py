"""Operating points, drift and prevalence on the command line."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from small_tables import csv_bytes, small_table, write

import qmedoid


@pytest.fixture(scope="module")
def case(cli, tmp_path_factory):
    """A model with a floor, its table, and one where its positive class is twenty times rarer."""
    folder = tmp_path_factory.mktemp("operating")
    table, new = small_table(n=300), small_table(n=1200, seed=7)
    file = write(table, folder / "t.csv")
    codes = np.array(new["y"].to_pylist()) == "yes"
    rare = new.take(np.flatnonzero(~codes | (np.cumsum(codes) % 20 == 0)))
    options = ("--target", "y", "--refine", "never", "--min-recall", "0.9", "--json")
    printed = cli.ok("fit", file, *options, "-o", folder / "m").json
    return folder / "m", file, write(rare, folder / "rare.csv"), write(new, folder / "new.csv"), printed, rare


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [("--min-precision", 0.8, "min_precision"), ("--min-recall", 0.9, "min_recall"), ("--cost", 3.0, "cost"),
     ("--alert-rate", 0.2, "alert_rate"), ("--operating-point", 0.4, "probability"),
     ("--operating-point", "f1", "f1")],
)  # fmt: skip
def test_every_rule_is_asked_for_stored_and_shown(cli, two, tmp_path, option, value, rule):
    printed = cli.ok(
        "fit", two.file, "--target", "y", "-o", tmp_path / "m", "--refine", "never", option, value, "--json"
    ).json
    operating = printed["operating"]
    assert operating["rule"] == rule
    assert operating["asked"] == (value if isinstance(value, float) else None)
    assert operating["held_out_rows"] == sum(operating["counts"].values()) == 68
    assert cli.ok("inspect", tmp_path / "m", "--json").json["operating"] == operating
    loaded = qmedoid.load(tmp_path / "m")
    assert loaded.expected_.as_dict() == operating
    frame = two.table.to_pandas()
    np.testing.assert_array_equal(
        loaded.predict(frame) == "yes", loaded.predict_proba(frame)[:, 1] > operating["threshold"]
    )


def test_text_says_what_to_expect(cli, case, tmp_path):
    _, file, _, _, printed, _ = case
    out = cli.ok("fit", file, "--target", "y", "--refine", "never", "--min-recall", "0.9", "-o", tmp_path / "m").out
    for text in (out, cli.ok("inspect", tmp_path / "m").out):  # however wide the terminal is
        assert "a recall of at least 0.9" in " ".join(text.split())
    for name in ("precision", "recall", "alert_rate"):
        assert all(f"{printed['operating']['forecast'][name][end]:.4f}" in out for end in ("low", "high"))
    assert "19 of 20 new tables with as many rows will show" in " ".join(out.split())
    assert "calibration error" in out


def test_rows_of_the_next_table_are_those_that_were_asked_for(cli, case, tmp_path):
    model, file, *_ = case
    many = cli.ok("inspect", model, "--rows", 100_000)
    assert "19 of 20 new tables with 100,000 rows will show" in " ".join(many.out.split())
    few, lots = (
        json.loads(cli.ok("inspect", model, "--rows", rows, "--json").out)["operating"] for rows in (20, 100_000)
    )
    assert (few["forecast_rows"], lots["forecast_rows"]) == (20, 100_000)
    widths = [one["forecast"]["recall"]["high"] - one["forecast"]["recall"]["low"] for one in (few, lots)]
    assert widths[0] > widths[1]
    out = cli.ok("fit", file, "--target", "y", "--refine", "never", "--rows", 77, "-o", tmp_path / "m").out
    assert "19 of 20 new tables with 77 rows will show" in " ".join(out.split())


def test_only_one_rule(cli, two, tmp_path):
    outcome = cli("fit", two.file, "--target", "y", "-o", tmp_path / "m", "--min-recall", 0.9, "--cost", 2)
    assert outcome.code == 2
    assert "--min-recall and --cost both say where to cut" in outcome.err
    outcome = cli("fit", two.file, "--target", "y", "-o", tmp_path / "m", "--min-precision", 1.5)
    assert outcome.code == 2
    assert "'--min-precision': A share is a number from 0 to 1" in outcome.err


def test_alert_rate_like_the_held_out_one_is_no_drift(cli, case, tmp_path):
    model, _, _, new, printed, _ = case
    outcome = cli.ok("score", model, new, "-o", tmp_path / "o.csv")
    assert "as expected" in outcome.err
    assert "note:" not in outcome.err
    report = cli.ok("score", model, new, "-o", tmp_path / "o.csv", "--json").json
    assert report["drift"] == "none"
    assert report["alerts"] == report["predicted"]["yes"]
    assert report["alert_rate"] == report["alerts"] / report["rows"]
    assert report["expected_alert_rate"] == printed["operating"]["alert_rate"]["value"]
    assert report["expected_low"] < report["alert_rate"] < report["expected_high"]
    assert report["prevalence"]["low"] < 0.5 < report["prevalence"]["high"]


def test_drift_is_a_warning_with_its_direction_and_size(cli, case, tmp_path):
    model, _, rare, *_ = case
    outcome = cli.ok("score", model, rare, "-o", tmp_path / "o.csv", "--json")
    assert "note: The alert rate is" in outcome.err
    assert "score with --prevalence estimate" in outcome.err
    assert outcome.json["drift"] == "down"
    assert outcome.json["standard_errors"] < -3
    # Also where results are on standard output, and nothing else is said.
    assert cli.ok("score", model, rare, "-o", "-").err.count("standard errors") == 1


def test_estimated_prevalence_is_used(cli, case, tmp_path):
    model, _, rare, *_, table = case
    truth = np.mean(np.array(table["y"].to_pylist()) == "yes")
    score = ("score", model, rare, "-o", tmp_path / "o.parquet")
    outcome = cli.ok(*score, "--prevalence", "estimate", "--json")
    found, prevalence = outcome.json, outcome.json["prevalence"]
    assert prevalence["low"] < truth < prevalence["high"]
    assert prevalence["used"] == pytest.approx(prevalence["estimate"])
    assert prevalence["trained"] == pytest.approx(0.5, abs=0.01)
    scores = np.array(pq.read_table(tmp_path / "o.parquet")["score"].to_pylist())
    assert scores.mean() == pytest.approx(prevalence["estimate"], rel=1e-2)
    text = cli.ok(*score, "--prevalence", "estimate").err
    assert f"prevalence of yes estimated as {prevalence['estimate']:.4g}" in text
    # The threshold moved along: the same records, and now as many as are expected.
    plain = cli.ok(*score, "--json").json
    assert found["predicted"] == plain["predicted"]
    assert plain["prevalence"]["estimate"] == pytest.approx(prevalence["estimate"], rel=1e-6)
    assert found["drift"] == "none"


@pytest.mark.parametrize("value", ["0", "1", "-0.1", "nan", "much", "2"])
def test_prevalence_that_makes_no_sense_is_refused(cli, case, tmp_path, value):
    outcome = cli("score", case[0], case[1], "-o", tmp_path / "o.csv", f"--prevalence={value}")
    assert outcome.code == 2
    assert not (tmp_path / "o.csv").exists()


def test_pipes_and_several_classes_have_no_estimate(cli, case, three, tmp_path):
    asked = ("-o", tmp_path / "o.csv", "--prevalence", "estimate")
    outcome = cli("score", case[0], "-", *asked, stdin=csv_bytes(case[5]))
    assert (outcome.code, "a pipe can be read once" in outcome.err) == (2, True)
    outcome = cli("score", three.model, three.file, *asked)
    assert (outcome.code, "this model has 3: leave it out" in outcome.err) == (2, True)
    report = cli.ok("score", three.model, three.file, *asked[:2], "--json").json
    assert "alerts" not in report
    assert report["prevalence"] is None


def test_prevalence_of_one_record_is_within_half_a_record(cli, case, tmp_path):
    one = write(case[5].slice(0, 1), tmp_path / "one.csv")
    outcome = cli.ok("score", case[0], one, "-o", tmp_path / "o.csv", "--prevalence", "estimate")
    assert "probabilities are for 0.5, which is half a record" in outcome.err
    report = cli.ok("score", case[0], one, "-o", tmp_path / "o.csv", "--prevalence", "estimate", "--json").json
    assert report["prevalence"]["used"] == 0.5
    assert report["drift"] == "none"


def test_evaluation_tells_calibration_beside_chance(cli, case):
    model, file, *_ = case
    own = cli.ok("evaluate", model, file, "--json").json["calibration"]
    assert own["ratio"] == pytest.approx(own["error"] / own["by_chance"])
    text = cli.ok("evaluate", model, file).out
    assert f"{own['error']:.4f}, {'as chance allows' if own['error'] <= own['by_chance_high'] else 'beyond'}" in text
