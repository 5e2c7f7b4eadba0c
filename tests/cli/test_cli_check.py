"""`qmedoid check`: it reads a table exactly as `fit` does, and finds what would make a model wrong."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from small_tables import csv_bytes, small_table, write

import qmedoid
from qmedoid.model.storage.model_file import load_model

QUICK = ("--refine", "never", "--medoids", "6", "--neighbors", "0", "--json")


def check(cli, file, *options):
    return cli.ok("check", file, "--json", *options).json


def codes(report):
    return {(finding["code"], *finding["columns"]) for finding in report["findings"]}


def strange_table(seed, n=120):
    """Columns on the edge between kinds: which side they are on differs between all rows and a part of them."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.arange(n) % 2)
    words = np.array([f"w{k}" for k in range(n)])
    words[rng.integers(n)] = "w0"
    almost = np.arange(n)
    almost[rng.integers(1, n)] = 0
    mostly = np.where(rng.random(n) < 0.1, "n.a.", rng.integers(0, 9, n).astype(str))
    diagnosis = np.where(rng.random(n) < 0.03, "V45", rng.choice(["250.83", "428", "401.9"], n))
    return pa.table({
        "x": rng.normal(size=n) + label, "id": 1000 + 7 * np.arange(n), "paid": 7 * rng.permutation(n), "words": words,
        "almost": almost, "mostly": mostly, "diagnosis": diagnosis, "zip": rng.integers(10, 20, n),
        "one": np.where(rng.random(n) < 0.02, "b", "a"), "y": np.array(["no", "yes"])[label],
    })  # fmt: skip


@pytest.mark.parametrize(("seed", "ending"), [(0, "csv"), (1, "parquet"), (2, "parquet"), (3, "csv")])
def test_check_and_fit_never_disagree(cli, tmp_path, seed, ending):
    file = write(strange_table(seed), tmp_path / f"t.{ending}")
    asked = ("--target", "y", "--category", "zip", "--ignore", "x" if seed == 3 else "almost")
    report = check(cli, file, *asked)
    cli.ok("fit", file, *asked, "-o", tmp_path / "m", *QUICK)
    contract = qmedoid.load(tmp_path / "m").model.contract
    shown = {column["name"]: column for column in report["columns"]}
    assert {name: shown[name]["kind"] for name in contract.names} == {one.name: one.kind for one in contract.columns}
    for name, why in contract.left_out.items():
        # Only what the rows that are held out cannot know: that training rows are all the same.
        assert shown[name]["why"] == why or why == "every cell is 'a'"
    assert set(shown) == {*contract.names, *contract.left_out}
    fit_all = cli.ok("fit", file, *asked, "-o", tmp_path / "all", "--test", "0", *QUICK).json
    assert {name: shown[name]["why"] for name in shown if not shown[name]["used"]} == fit_all["left_out"]
    notes = [note for note in fit_all["notes"] if note.startswith("column ") and " was left out" not in note]
    assert notes == [column["note"] for column in report["columns"] if column["note"]]


def test_text_tells_the_same(cli, two):
    report = check(cli, two.file, "--target", "y")
    printed = cli.ok("check", two.file, "--target", "y").out
    for column in report["columns"]:
        assert column["name"] in printed
        assert set(column["why"].split()) <= set(printed.split())  # cells may wrap
    assert all(finding["message"] in printed for finding in report["findings"])
    assert "nothing odd" in cli.ok("check", "-", stdin=csv_bytes(small_table().select(["x1", "x2"]))).out


def planted(n=300):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % 2)
    table = {
        "x": rng.normal(size=n), "same": np.ones(n), "void": [None] * n,
        "leak": y + rng.normal(size=n) / 10, "copy": np.array(["b", "a"])[y], "whole": rng.integers(0, 50, n),
        "after": np.where((y == 1) & (rng.random(n) < 0.7), np.nan, rng.normal(size=n)),
        "rare": np.where(rng.random(n) < 0.7, np.nan, rng.normal(size=n)),
        "town": rng.choice(["Bern", "bern", "Basel ", "Basel"], n),
        "inf": np.where(np.arange(n) == 3, np.inf, rng.normal(size=n)),
    }  # fmt: skip
    return table | {"y": y}


def test_what_is_planted_is_found():
    data = planted()
    report = qmedoid.check_table(data, "y")
    assert codes(report) >= {
        ("constant", "same"), ("empty", "void"), ("gives_away", "leak"), ("target_copy", "copy"),
        ("missing_by_class", "after"), ("mostly_missing", "rare"), ("spellings", "town"),
        ("reading", "inf"),
    }  # fmt: skip
    # And nothing is said of what is in order.
    assert not [finding for finding in report["findings"] if finding["columns"] in (["x"], ["whole"])]
    problems = {finding["code"] for finding in report["findings"] if finding["severity"] == "problem"}
    assert problems == {"gives_away", "target_copy", "missing_by_class"}
    assert report["problems"] == 3
    without = qmedoid.check_table({name: cells for name, cells in data.items() if name != "y"})
    assert codes(without) == codes(report) - {
        ("gives_away", "leak"), ("target_copy", "copy"), ("missing_by_class", "after"),
        ("without", "copy", "leak", "after"),
    }  # fmt: skip
    assert without["without"] is None


def test_noise_gives_no_class_away():
    """Neither of many levels, nor of many values, nor of a rare class, alone and out-of-fold."""
    rng = np.random.default_rng(0)
    for classes in (rng.random(600) < 0.05, rng.integers(0, 4, 600)):
        noise = {f"n{k}": rng.normal(size=600) for k in range(10)} | {"who": rng.integers(0, 300, 600).astype(str)}
        report = qmedoid.check_table({**noise, "y": classes.astype(int)}, "y")
        assert all(column["alone"] < 0.7 for column in report["columns"])
        assert report["problems"] == 0


@pytest.mark.parametrize(("rows", "positive"), [(60, 20), (300, 150), (5000, 12)])
def test_column_that_gives_the_class_away_is_found_however_rare_it_is(rows, positive):
    y, z = np.arange(rows) < positive, np.sin(np.arange(rows))
    x = np.random.default_rng(0).normal(size=rows) - 8 * y
    assert codes(qmedoid.check_table({"x": x, "z": z, "y": y}, "y")) == {("gives_away", "x"), ("without", "x")}
    for classes in (2, 3):
        y = np.arange(rows) % classes
        town = np.char.add(np.array(["a", "b", "c"])[y], (np.arange(rows) // 3 % 5).astype(str))
        assert ("gives_away", "town") in codes(qmedoid.check_table({"town": town, "x": z, "y": y}, "y"))


@pytest.mark.parametrize("copies", [0, 1, 3])
def test_equal_rows_are_counted_and_rows_that_contradict_each_other(copies):
    data = planted(100)
    table = pa.table({name: data[name] for name in ("x", "town", "whole", "y")})
    doubled = pa.concat_tables([table, *([table.slice(0, 20)] * copies)])
    found = qmedoid.check_table(doubled, "y")["duplicates"]
    assert found == {"rows": 20 * copies, "contrary_rows": 0}
    turned = table.slice(0, 5).set_column(3, "y", pa.array(1 - np.asarray(data["y"][:5])))
    found = qmedoid.check_table(pa.concat_tables([doubled, turned]), "y")["duplicates"]
    assert (found["rows"], found["contrary_rows"]) == (20 * copies + 5, 5 * (copies + 2))


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (["a"] * 40, "one_class"),
        (["a"] * 20 + ["b"] * 19 + ["c"], "single_row"),
        (["a"] * 20 + ["b"] * 16 + ["c"] * 4, "few_rows"),
        (["Yes"] * 20 + ["yes"] * 20, "class_spellings"),
        ([k / 7 for k in range(40)], "target"),
        (list(range(40)), "target_quantity"),
        ([[k % 2] for k in range(40)], "target"),
        ([None] * 20 + ["a", "b"] * 10, "unlabeled"),
        ([None] * 40, "no_classes"),
    ],
)
def test_targets_that_are_no_classes_are_found_and_no_error(target, code):
    report = qmedoid.check_table(pa.table({"x": np.random.default_rng(0).normal(size=40), "y": target}), "y")
    assert code in {finding["code"] for finding in report["findings"]}
    assert len(report["columns"]) == 1


def test_strict_fails_where_there_are_problems_alone(cli, two, tmp_path):
    assert cli("check", two.file, "--target", "y", "--strict").code == 0
    file = write(pa.table(planted()), tmp_path / "t.parquet")
    assert cli("check", file, "--target", "y").code == 0
    outcome = cli("check", file, "--target", "y", "--strict", "--json")
    assert (outcome.code, outcome.json["problems"]) == (3, 3)
    roles = ("--ignore", "leak", "--ignore", "copy", "--ignore", "after")
    assert cli("check", file, "--target", "y", "--strict", *roles).code == 0


def test_roles_by_options_and_by_file_are_the_same_model(cli, tmp_path):
    file = write(strange_table(0), tmp_path / "t.csv")
    (tmp_path / "roles.toml").write_text('zip = "category"\nid = "keep"\nwords = "ignore"\n')
    by_option = ("--category", "zip", "--keep", "id", "--ignore", "words")
    for name, roles in (("a", by_option), ("b", ("--roles", tmp_path / "roles.toml"))):
        cli.ok("fit", file, "--target", "y", "-o", tmp_path / name, *roles, *QUICK)
        cli.ok("score", tmp_path / name, file, "-o", tmp_path / f"{name}.csv")
    one, two = (qmedoid.load(tmp_path / name).model for name in "ab")
    assert one.contract == two.contract
    assert one.parameters["roles"] == {"zip": "category", "id": "keep", "words": "ignore"}
    zips = next(column for column in one.contract.columns if column.name == "zip")
    assert zips.levels == tuple(str(number) for number in range(10, 20))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    # Numbers of another file are the same levels: no level is new.
    write(strange_table(0).set_column(7, "zip", pa.array(strange_table(0)["zip"].to_pylist(), pa.float64())), file)
    assert "unseen" not in cli.ok("score", tmp_path / "a", file, "-o", tmp_path / "c.csv").err


@pytest.mark.parametrize("command", ["check", "fit", "stability"])
@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--category", "zpi"), 3, "no column 'zpi'"),
        (("--category", "x1", "--ignore", "x1"), 2, "'x1' has two roles: 'category' by --category and 'ignore' by"),
        (("--date", "color"), 3, "none of its cells is a date, such as"),
        (("--keep", "y"), 2, "'y' is the target"),
        (("--roles", "none.toml"), 3, "cannot be read"),
    ],
)
def test_roles_that_cannot_be_are_refused_by_every_command(cli, two, tmp_path, command, options, code, words):
    output = ("-o", tmp_path / "m") if command == "fit" else ()
    outcome = cli(command, two.file, "--target", "y", *output, *options)
    assert outcome.code == code
    assert words in outcome.err
    assert outcome.err.count("error: ") == 1


CLOCK = [f"{minute // 60:02d}:{minute % 60:02d}" for minute in range(0, 1400, 7)]


@pytest.mark.parametrize(
    "cells",
    [
        CLOCK,
        [f"{text}:30" for text in CLOCK],
        [datetime.time(*map(int, text.split(":"))) for text in CLOCK],
        pa.array(CLOCK).dictionary_encode().cast(pa.string()),
    ],
    ids=["texts", "seconds", "times", "cast"],
)
def test_times_of_day_are_not_advised_as_the_order_of_rows(cells):
    table = pa.table({"at": cells, "x": np.arange(200.0) % 17, "y": ["a", "b"] * 100})
    report = qmedoid.check_table(table, "y")
    assert "time" not in {finding["code"] for finding in report["findings"]}
    assert report["columns"][0]["why"].endswith("times of day")
    days = [f"2024-01-{1 + day % 28:02d} {text}" for day, text in enumerate(CLOCK)]
    report = qmedoid.check_table(table.set_column(0, "at", pa.array(days)), "y")
    assert "time" in {finding["code"] for finding in report["findings"]}


def test_times_of_day_as_the_order_of_rows_are_noted(cli, tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({"at": CLOCK, "x": rng.normal(size=200), "y": ["a", "b"] * 100})
    for ending in ("csv", "parquet"):
        file = write(table, tmp_path / f"clock.{ending}")
        how = ("--target", "y", "--time-column", "at", "-o", tmp_path / "m", "--method", "evidence", "--json")
        notes = cli.ok("fit", file, *how).json["notes"]
        assert any("the time column 'at' holds times of day, such as 07:13" in note for note in notes)
        assert load_model(tmp_path / "m").training.rows_per_day is None
