"""What commands say about classes and rows: which are meant, what is odd or new about them, what is not known."""

import re

import numpy as np
import pyarrow as pa
import pytest
from small_tables import replaced, small_table, write

import qmedoid
from qmedoid import EvidenceClassifier, MedoidClassifier
from qmedoid.exceptions import QMedoidWarning
from qmedoid.model.storage.card import model_card
from qmedoid.model.storage.model_file import load_model

TINY = ("--refine", "never", "--medoids", "6", "--neighbors", "0")


def lopsided(classes, n=120, share=0.15, seed=0):
    """A small table in which the first class is rare."""
    table = small_table(classes, n=2 * n, seed=seed)
    labels = np.array(table["y"].to_pylist())
    first, second = (np.flatnonzero(labels == one) for one in classes)
    return table.take(np.sort(np.concatenate([first[: round(share * n)], second])))


@pytest.mark.parametrize(("classes", "meant"), [(("bad", "good"), "bad"), (("apple", "pear"), "apple")])
def test_alerts_are_of_the_class_that_is_meant(cli, tmp_path, classes, meant):
    file = write(lopsided(classes), tmp_path / "t.csv")
    fit = ("fit", file, "--target", "y", "-o", tmp_path / "m", "--alert-rate", "0.1", *TINY)
    outcome = cli.ok(*fit, "--json")
    assert (outcome.json["positive"], outcome.json["classes"][1]) == (meant, meant)
    assert outcome.json["held_out"]["alert_rate"] < 0.4
    assert [note for note in outcome.json["notes"] if f"about the class {meant!r}" in note]
    assert outcome.err.count("is about the class") == cli.ok(*fit).err.count("is about the class") == 1
    named = cli.ok(*fit, "--json", "--positive", classes[1])
    assert named.json["positive"] == classes[1]
    assert "is about the class" not in named.err


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_quantity_as_target_is_refused_before_any_fit(cli, tmp_path, ending):
    ages = replaced(small_table(n=420), "y", pa.array(np.arange(420) % 21 + 20))
    file = write(ages, tmp_path / f"ages.{ending}")
    for command in (("fit", file, "-o", tmp_path / "m"), ("stability", file)):
        refused = cli(*command, "--target", "y")
        assert refused.code == 3
        assert "The target 'y' holds 21 different numbers, from 20 to 40: that is a quantity" in refused.err
        assert "--classes" in refused.err
    assert not (tmp_path / "m").exists()
    (found,) = (one for one in cli.ok("check", file, "--target", "y", "--json").json["findings"]
                if one["code"] == "target_quantity")  # fmt: skip
    assert found["severity"] == "problem"
    # One number against all others is a question about classes.
    assert cli.ok("fit", file, "--target", "y", "-o", tmp_path / "m", "--positive", "20", *TINY, "--json")
    named = write(replaced(ages, "y", pa.array([f"no {age}" for age in ages["y"].to_pylist()])), tmp_path / "n.csv")
    cli.ok("fit", named, "--target", "y", "-o", tmp_path / "n", *TINY)


def test_rare_class_that_is_never_called_gets_a_note_and_a_dash(cli, tmp_path):
    rng = np.random.default_rng(0)
    n = 400
    rare = np.arange(n) % 25 == 0
    table = pa.table({"x": rng.normal(size=n) + 0.3 * rare, "y": np.where(rare, "fraud", "legit")})
    file = write(table, tmp_path / "t.csv")
    fitted = cli.ok("fit", file, "--target", "y", "-o", tmp_path / "m", "--positive", "fraud", *TINY)
    assert "To find more, set an operating point" in " ".join(fitted.err.split())
    assert "'alert_rate': 0.04" in fitted.err
    assert "it calls none 'fraud'" in fitted.out
    assert re.search(r"│ precision of 'fraud' *│ *– *│ *– *│", fitted.out)
    outcome = cli.ok("evaluate", tmp_path / "m", file, "--json")
    assert outcome.json["precision"] is None
    assert outcome.json["recall"] == 0
    assert [note for note in outcome.json["notes"] if "set an operating point" in note]
    assert "| precision | – | – | – |" in model_card(load_model(tmp_path / "m"), raw_rows=True)


def test_classes_that_do_not_occur_are_told(cli, three, tmp_path):
    rows = np.flatnonzero(np.array(three.table["y"].to_pylist()) != "b")
    file = write(three.table.take(rows), tmp_path / "t.csv")
    outcome = cli.ok("evaluate", three.model, file, "--json")
    assert outcome.json["absent"] == ["b"]
    assert "the class 'b' does not occur" in outcome.err
    found = [own["f1"] for label, own in outcome.json["classes"].items() if label != "b"]
    assert outcome.json["macro_f1"] == pytest.approx(np.mean(found))


def test_rows_that_were_seen_in_fitting_are_told(cli, two, tmp_path):
    # The model was fitted on three quarters of this file.
    outcome = cli.ok("evaluate", two.model, two.file, "--json")
    found, seen = outcome.json, {"rows": two.printed["training_rows"], "checked": 90}
    assert found["seen"] == seen
    assert found["rows"] == 90 - seen["rows"] == 90 - found["left_out"]["seen"]
    assert f"left out: {seen['rows']} of 90 rows, which were seen in fitting" in outcome.err
    everything = cli.ok("evaluate", two.model, two.file, "--all-rows", "--json")
    assert everything.json["rows"] == 90
    assert f"{seen['rows']} of 90 rows were seen in fitting" in everything.err
    # A pipe, and cells that break the contract, are read as texts; the cells are the same.
    assert cli.ok("evaluate", two.model, "-", "--json", stdin=two.file.read_bytes()).json["seen"] == seen
    outcome = cli.ok("evaluate", two.model, write(small_table(seed=9), tmp_path / "new.csv"), "--json")
    assert outcome.json["seen"] == {"rows": 0, "checked": 90}
    assert "seen in fitting" not in outcome.err


def test_rows_of_which_all_were_seen_judge_nothing(cli, two, tmp_path):
    cli.ok("fit", two.file, "--target", "y", "-o", tmp_path / "m", "--test", "0", *TINY)
    refused = cli("evaluate", tmp_path / "m", two.file)
    assert refused.code == 3
    assert "All 90 rows with a class were seen in fitting" in refused.err
    assert "--all-rows" in refused.err
    assert cli.ok("evaluate", tmp_path / "m", two.file, "--all-rows", "--json").json["rows"] == 90
    # A model that held rows out shows what they showed, and says so.
    fresh = write(small_table(seed=9), tmp_path / "new.csv")
    held_out = cli.ok("fit", two.file, "--target", "y", "-o", tmp_path / "n", "--test", fresh, "--json", *TINY).json
    found = cli.ok("evaluate", tmp_path / "n", two.file, "--json")
    assert found.json["source"] == "held-out"
    assert found.json["accuracy"] == held_out["held_out"]["accuracy"]
    assert "these figures are of the 90 rows that the fit held out" in found.err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("--target", "Y"), "y"),
        (("--target", "y", "--ignore", "colour"), "color"),
        (("--target", "y", "--time-column", "days"), "day"),
        (("--target", "y", "--group-column", "membr"), "member"),
        (("--target", "y", "--positive", "Yess"), "yes"),
    ],
)
def test_misspelt_names_in_a_fit_are_asked_back(cli, two, tmp_path, arguments, meant):
    outcome = cli("fit", two.file, *arguments, "-o", tmp_path / "m", "--method", "evidence")
    assert outcome.code in (2, 3)
    assert f"Did you mean {meant!r}?" in outcome.err
    assert not (tmp_path / "m").exists()


def fitted(cli, file, model, *options):
    return cli.ok("fit", file, "--target", "y", "-o", model, "--refine", "never", "--json", *options).json


def scored(cli, model, file, out, *options):
    cli.ok("evaluate", model, file, *options)
    return cli.ok("score", model, file, "-o", out, "--json", *options).json["difference"]


@pytest.mark.parametrize("row", range(0, 90, 15))
def test_level_of_one_row_wherever_it_falls(cli, tmp_path, row):
    table = small_table()
    colors = table["color"].to_pylist()
    colors[row] = "violet"
    labels = table["y"].to_pylist()
    labels[(row + 1) % 90] = None
    colors[(row + 1) % 90] = "of a row without a class"
    table = replaced(replaced(table, "color", pa.array(colors)), "y", pa.array(labels))
    file = write(table, tmp_path / "t.csv")
    fitted(cli, file, tmp_path / "m")
    assert not scored(cli, tmp_path / "m", file, tmp_path / "o.csv")["breaks"]
    other = write(replaced(table, "color", pa.array(["pink"] * 90)), tmp_path / "other.csv")
    assert cli("score", tmp_path / "m", other, "-o", tmp_path / "o.csv").code == 3


def test_names_of_held_out_levels_are_all_that_enters(cli, tmp_path):
    """The model is that of the training rows, number for number."""
    table = small_table()
    colors, names = table["color"].to_pylist(), ("plain", "named")
    held_out = write(table.slice(60), tmp_path / "held_out.csv")
    fitted(cli, write(table.slice(0, 60), tmp_path / "plain.csv"), tmp_path / "plain", "--test", held_out)
    order = pa.array(range(90))
    colors[89] = "violet"
    timed = replaced(table, "color", pa.array(colors)).append_column("t", order)
    fitted(cli, write(timed, tmp_path / "timed.csv"), tmp_path / "named", "--time-column", "t", "--test", str(1 / 3))
    plain, named = (qmedoid.load(tmp_path / name).model for name in names)
    assert next(column for column in named.contract.columns if column.name == "color").levels[-1] == "violet"
    numbers = [[len(encoding.outputs) for encoding in model.encodings] for model in (named, plain)]
    assert numbers[0] == numbers[1]
    X = table.slice(0, 60)
    np.testing.assert_array_equal(*(qmedoid.load(tmp_path / name).decision_function(X) for name in names))


@pytest.fixture(scope="module")
def novel(cli, tmp_path_factory):
    """A model, a table like the one it was fitted on, and the same with x1 far out."""
    folder = tmp_path_factory.mktemp("novelty")
    known, new = small_table(n=400), small_table(n=100, seed=1)
    odd = replaced(new, "x1", [pa.array(np.array(new["x1"].to_pylist()) + 200)])
    cli.ok("fit", write(known, folder / "known.csv"), "--target", "y", "-o", folder / "model")
    return folder / "model", write(new, folder / "new.csv"), write(odd, folder / "odd.csv")


def test_note_names_the_column_and_json_has_it(cli, novel, tmp_path):
    model, *files = novel
    for command, *more in (("score", "-o", tmp_path / "out.csv"), ("evaluate",)):
        usual, unlike = (cli.ok(command, model, file, *more, "--json") for file in files)
        assert "unlike" not in usual.err
        assert "Records are unlike those the model was fitted on:" in unlike.err
        assert "'x1' lies outside of its training range (" in unlike.err
        assert ") in 100 % of the rows, such as " in unlike.err
        usual, unlike = (one.json["novelty"] for one in (usual, unlike))
        assert (usual["status"], usual["compared_rows"], usual["outside_rows"]) == ("none", 100, 0)
        assert (unlike["status"], unlike["outside_rows"]) == ("unlike", 100)
        assert unlike["outside"][0]["column"] == "x1"


def test_fit_says_of_a_test_table_what_evaluate_says(cli, novel, tmp_path):
    """The row that is named is one of the file, where rows without a class are left out too."""
    model, new, odd = novel
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


def _novelty_note(text):
    """The lines of the note."""
    lines = text.splitlines()
    start = next((place for place, line in enumerate(lines) if "Records are unlike" in line), len(lines))
    stop = next((place for place in range(start + 1, len(lines)) if not lines[place].startswith("~ ")), len(lines))
    return lines[start:stop]


@pytest.mark.parametrize(
    ("factor", "hint"), [(100.0, ": about 100 times as far out"), (30.0, ""), (0.01, ""), (-2.0, "")]
)
def test_alert_rate_is_not_as_expected_where_records_are_not(cli, tmp_path, factor, hint):
    """A rule that cuts at 0 calls as many rows, whatever the unit: the rate says nothing of the decisions."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 2))
    y = np.where(x[:, 0] + 0.5 * x[:, 1] + 0.5 * rng.normal(size=900) > 0, "yes", "no")
    table = pa.table({"x": x[:, 0], "z": x[:, 1], "y": y})
    known, new = write(table.slice(0, 500), tmp_path / "known.csv"), table.slice(500)
    cli.ok("fit", known, "--target", "y", "-o", tmp_path / "m", "--method", "evidence", "--test", "0")
    score = ("score", tmp_path / "m", write(new, tmp_path / "new.csv"), "-o", tmp_path / "o.csv")
    assert " are called yes, as expected (" in cli.ok(*score).err
    once = write(replaced(new, "x", pa.array([1000.0, *x[501:, 0]])), tmp_path / "once.csv")
    said = cli.ok("score", tmp_path / "m", once, "-o", tmp_path / "o.csv").err
    assert "'x' is 1000 in row 0: the training rows had" in said
    assert " are called yes, as expected (" in said  # one row moves no rate
    other = write(replaced(new, "x", pa.array(factor * x[500:, 0])), tmp_path / "other.csv")
    outcome = cli.ok("score", tmp_path / "m", other, "-o", tmp_path / "o.csv")
    assert ", as expected (" not in outcome.err
    assert "Records are unlike those the model was fitted on:" in outcome.err
    assert hint in outcome.err
    assert ("in other units" in outcome.err) == bool(hint)
    if "standard errors" not in outcome.err:
        assert "was expected of records like the training rows, which these are not." in outcome.err
    if factor == 100.0:
        outside = r"'x' lies outside of its training range \(-[\d.]+ to [\d.]+\) in 9\d(\.\d)? % of the rows, such as "
        assert re.search(outside, outcome.err)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_codes_as_target_are_fitted_with_a_note(cli, tmp_path, ending):
    rng = np.random.default_rng(0)
    code = np.tile(np.arange(1, 27), 12)
    table = pa.table({"x": code + rng.normal(size=len(code)), "z": code % 5 + rng.normal(size=len(code)), "y": code})
    file, method = write(table, tmp_path / f"t.{ending}"), ("--method", "evidence", "--medoids", "26")
    outcome = cli.ok("fit", file, "--target", "y", "-o", tmp_path / "m", *method, "--json").json
    said = "the 26 different numbers of the target, from 1 to 26, are taken as codes of classes: each has 12 rows"
    assert [said in note for note in outcome["notes"]].count(True) == 1
    assert not any("looks like a quantity" in note for note in outcome["notes"])  # of three quarters of the rows
    (found,) = (one for one in cli.ok("check", file, "--target", "y", "--json").json["findings"]
                if one["code"] == "target_codes")  # fmt: skip
    assert (found["severity"], said in found["message"]) == ("note", True)
    classifier = MedoidClassifier(method=EvidenceClassifier(n_medoids=26), random_state=0)
    with pytest.warns(QMedoidWarning, match="The 26 different numbers of the target, from 1 to 26, are taken as codes"):
        classifier.fit(table.drop_columns(["y"]), code)


@pytest.mark.parametrize(("cell", "n", "differs"), [("", 13, True), ("", 2, False), ("inf", 13, True)])
def test_alert_rate_is_not_as_expected_where_many_cells_are_new(cli, novel, tmp_path, cell, n, differs):
    """Filled in with the median they look like the training rows."""
    model, new, _ = novel
    header, *lines = new.read_text().splitlines()
    assert header.split(",")[1].strip('"') == "x1"
    for number in range(n):
        first, _, *rest = lines[number].split(",")
        lines[number] = ",".join([first, cell, *rest])
    (tmp_path / "t.csv").write_text("\n".join([header, *lines]) + "\n")
    said = cli.ok("score", model, tmp_path / "t.csv", "-o", tmp_path / "o.csv", "--on-mismatch", "warn").err
    assert "'x1' has " in said
    assert (", as expected (" in said) == (not differs)
    assert ("which these are not." in said) == differs


def test_another_prevalence_makes_no_record_unlike(cli, tmp_path):
    """Its rows have other values on the whole, as those of the rare class have."""
    rng = np.random.default_rng(0)

    def table(n, share):
        label = rng.random(n) < share
        x = rng.normal(size=(n, 2)) + 2.0 * label[:, None]
        return pa.table({"x": x[:, 0], "z": x[:, 1], "y": np.where(label, "yes", "no")})

    known, new = write(table(900, 0.15), tmp_path / "known.csv"), table(500, 0.6)
    cli.ok(
        "fit",
        known,
        "--target",
        "y",
        "-o",
        tmp_path / "m",
        "--method",
        "evidence",
        "--alert-rate",
        "0.1",
        "--test",
        "0",
    )
    how = ("-o", tmp_path / "o.csv", "--prevalence", "estimate")
    said = cli.ok("score", tmp_path / "m", write(new, tmp_path / "new.csv"), *how).err
    assert "Records are unlike those the model was fitted on" in said
    assert ", as expected (" in said
    assert "which these are not" not in said
    odd = write(replaced(new, "x", pa.array(100.0 * new["x"].to_numpy())), tmp_path / "odd.csv")
    said = cli.ok("score", tmp_path / "m", odd, *how).err
    assert "both hold of records like the training rows, which these are not." in said
