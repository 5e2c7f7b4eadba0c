"""People who come back: `check` names them, and what `fit` prints is what new people will show."""

import csv

import numpy as np
import pytest

import qmedoid

IDS = {
    "text": lambda person: f"c{person:04d}",
    "number": lambda person: 100_000 + 7_919 * person % 90_001,
    "hash": lambda person: f"{(person + 1) * 0x9E3779B97F4A7C15 % 2**64:016x}",
}
QUICK = ("--target", "churn", "--method", "evidence", "--medoids", "8", "--neighbors", "0")


def people(path, ids="text", first=0, n=150, noise=0.05, name="customer", shuffled=True):
    """A file of people with ten rows each: a class of their own, and columns that say nothing of it."""
    rng = np.random.default_rng(first)
    person = np.repeat(np.arange(n), 10)
    churn = rng.integers(0, 2, n)[person]
    X = rng.normal(size=(n, 6))[person] + noise * rng.normal(size=(10 * n, 6))
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*([name] if name else []), *(f"x{place}" for place in range(6)), "churn"])
        for row in rng.permutation(10 * n) if shuffled else range(10 * n):
            named = [IDS[ids](first + int(person[row]))] if name else []
            rows.writerow([*named, *X[row].round(9), "yes" if churn[row] else "no"])
    return path


def accuracy(report):
    return report["held_out"]["accuracy"], report["held_out"]["log_loss"]


@pytest.mark.parametrize("ids", IDS)
def test_following_the_advice_of_check_gives_the_figures_of_new_customers(cli, tmp_path, ids):
    file, new = people(tmp_path / "old.csv", ids), people(tmp_path / "new.csv", ids, first=5000)
    (finding,) = cli.ok("check", file, "--target", "churn", "--json").json["findings"]
    assert finding["code"] == "shared_class"
    assert "--group-column customer" in finding["message"]
    asked = ("fit", file, "--target", "churn", "-o", tmp_path / "m", "--json", "--refine", "never")
    for advice in (("--group-column", "customer"), ("--ignore", "customer")):
        report = cli.ok(*asked, *advice).json
        shown = cli.ok("evaluate", tmp_path / "m", new, "--json").json
        right, loss = accuracy(report)
        assert 0.3 < right < 0.7
        assert loss > 0.6
        assert abs(right - shown["accuracy"]) < 0.15
        assert abs(loss - shown["log_loss"]) < 0.15
    model = qmedoid.load(tmp_path / "m").model
    assert model.parameters["command"]["group_column"] == "customer"
    assert "customer" not in model.contract.names
    assert model.decision.operating.draws_per_row < 0.2  # people, not rows


def test_fit_says_what_it_found_and_what_it_changes(cli, tmp_path):
    file = people(tmp_path / "t.csv")
    outcome = cli.ok("fit", file, *QUICK, "--ignore", "customer", "-o", tmp_path / "m", "--json")
    found = outcome.json["held_together"]
    assert (found["kind"], found["column"], found["groups"]) == ("shared_class", "customer", 150)
    assert found["used"]
    assert found["beyond_errors"]
    assert found["together"]["accuracy"] == pytest.approx(outcome.json["held_out"]["accuracy"])
    assert found["together"]["log_loss"] == pytest.approx(outcome.json["held_out"]["log_loss"])
    assert found["one_by_one"]["log_loss"] < 0.5 * found["together"]["log_loss"]
    (said,) = [note for note in outcome.json["notes"] if "share their class" in note]
    assert f"accuracy is {found['one_by_one']['accuracy']:.4f}" in said
    assert "as with --group-column customer; --group-column none undoes that" in said
    assert any("those of cross-validation count each 'customer' once" in note for note in outcome.json["notes"])
    given = cli.ok("fit", file, *QUICK, "--group-column", "customer", "-o", tmp_path / "g", "--json").json
    assert "held_together" not in given
    assert given["held_out"] == outcome.json["held_out"]


@pytest.mark.parametrize("way_out", ["none", ""])
def test_no_group_column_insists_on_plain_rows(cli, tmp_path, way_out):
    file = people(tmp_path / "t.csv")
    asked = (*QUICK, "--ignore", "customer", "--group-column", way_out, "--json")
    report = cli.ok("fit", file, *asked, "-o", tmp_path / "m").json
    assert "held_together" not in report
    assert accuracy(report)[0] > 0.9
    assert not [note for note in report["notes"] if "share their class" in note or "count each" in note]


def test_a_column_that_is_called_none_groups_the_rows(cli, tmp_path):
    file = people(tmp_path / "t.csv", name="none")
    asked = (*QUICK, "--json", "-o", tmp_path / "m")
    report = cli.ok("fit", file, *asked, "--group-column", "none").json
    assert accuracy(report)[0] < 0.7
    assert report["left_out"]["none"] == "it says which rows belong together"
    assert any("'' looks for no groups" in note for note in report["notes"])
    alone = cli.ok("fit", file, *asked, "--ignore", "none", "--group-column", "").json
    assert accuracy(alone)[0] > 0.9


def test_a_column_that_is_learned_from_is_warned_of_and_kept(cli, tmp_path):
    file = people(tmp_path / "t.csv", name="who: the customer")
    report = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--json").json
    found = report["held_together"]
    assert not found["used"]
    assert "who: the customer" in qmedoid.load(tmp_path / "m").model.contract.names
    assert found["one_by_one"]["accuracy"] == pytest.approx(accuracy(report)[0])
    assert found["together"]["accuracy"] < 0.7
    (said,) = [note for note in report["notes"] if "share their class" in note]
    assert said.endswith("rows that are known: hold them out together with --group-column 'who: the customer'.")


def test_where_it_changes_nothing_rows_are_held_out_one_by_one(cli, tmp_path):
    """Customers whose columns are noise in each row: there is nothing to know them by."""
    file = people(tmp_path / "t.csv", noise=30.0)
    report = cli.ok("fit", file, *QUICK, "--ignore", "customer", "-o", tmp_path / "m", "--json").json
    found = report["held_together"]
    assert found["beyond_errors"] is False
    assert not found["used"]
    assert report["left_out"]["customer"] == "it was to be ignored"
    assert any("That is within the errors" in note for note in report["notes"])


def test_rows_that_are_nearly_equal_are_held_out_together(cli, tmp_path):
    file = people(tmp_path / "t.csv", name=None, noise=1e-6)
    (finding,) = cli.ok("check", file, "--target", "churn", "--json").json["findings"]
    assert finding["code"] == "near_rows"
    report = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--json", "--cv", "3").json
    assert report["held_together"]["used"]
    assert accuracy(report)[0] < 0.7
    assert report["cross_validation"]["methods"][0]["log_loss"] > 0.5
    plain = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--json", "--group-column", "none").json
    assert accuracy(plain)[0] > 0.9


def test_runs_of_a_file_are_named_and_left_as_they_are(cli, tmp_path):
    file = people(tmp_path / "t.csv", name=None, noise=0.3, shuffled=False)
    (finding,) = cli.ok("check", file, "--target", "churn", "--json").json["findings"]
    assert finding["code"] == "runs"
    report = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--json").json
    found = report["held_together"]
    assert (found["kind"], found["used"], found["column"]) == ("runs", False, None)
    assert found["together"]["log_loss"] > found["one_by_one"]["log_loss"]
    assert any("--time-column" in note for note in report["notes"])


def test_a_column_that_is_the_only_one_is_named(cli, tmp_path):
    """Without it there is nothing to learn from, and no figure of rows that are held out together."""
    file = people(tmp_path / "t.csv")
    asked = (*QUICK, *(f"--ignore=x{place}" for place in range(6)), "-o", tmp_path / "m", "--json")
    report = cli.ok("fit", file, *asked).json
    assert any("rows of one 'customer' share their class" in note for note in report["notes"])
    assert accuracy(report)[0] < 0.7  # rows of one customer are equal then


@pytest.mark.parametrize("test", ["0", "file"])
def test_groups_are_used_where_no_share_is_held_out(cli, tmp_path, test):
    file, new = people(tmp_path / "t.csv"), people(tmp_path / "new.csv", first=5000)
    asked = (*QUICK, "--ignore", "customer", "-o", tmp_path / "m", "--json", "--test")
    report = cli.ok("fit", file, *asked, new if test == "file" else test).json
    assert report["held_together"]["used"]
    assert report["training_rows"] == 1500
    assert qmedoid.load(tmp_path / "m").model.decision.operating.draws_per_row == pytest.approx(0.1)


def test_in_an_order_of_time_people_are_named_alone(cli, tmp_path):
    file = people(tmp_path / "t.csv")
    lines = file.read_text().splitlines()
    dated = [f"{line},{place or 'day'}" for place, line in enumerate(lines)]
    file.write_text("\n".join(dated) + "\n")
    asked = (*QUICK, "--ignore", "customer", "--time-column", "day", "-o", tmp_path / "m", "--json")
    report = cli.ok("fit", file, *asked).json
    assert "held_together" not in report
    assert any("--group-column customer" in note for note in report["notes"])


def test_a_time_limit_leaves_the_second_fit_out(cli, tmp_path):
    file = people(tmp_path / "t.csv")
    asked = (*QUICK, "--ignore", "customer", "-o", tmp_path / "m", "--json", "--time-limit", "0.001")
    report = cli.ok("fit", file, *asked).json
    assert "the figures with and without groups" in report["time_limit"]["left_out"]
    assert report["held_together"]["used"]
    assert report["held_together"]["one_by_one"] is None
    assert accuracy(report)[0] < 0.7


def test_stability_names_people_who_come_back(cli, tmp_path):
    file = people(tmp_path / "t.csv", n=40)
    asked = ("--target", "churn", "--method", "evidence", "--medoids", "4", "--neighbors", "0", "--bootstraps", "2")
    assert "--group-column customer" in cli.ok("stability", file, *asked).err
    assert "--group-column" not in cli.ok("stability", file, *asked, "--group-column", "customer").err
