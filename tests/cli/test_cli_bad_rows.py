"""`--on-bad-row` of `score` and `evaluate`: what cannot be read is flagged or set aside, counted, and no failure."""

import pytest
from small_tables import cells


@pytest.fixture(scope="module")
def broken(two, tmp_path_factory):
    """The table with a word for a number in row 3, and a line that is too short for row 5."""
    lines = two.file.read_text().splitlines()
    row = lines[4].split(",")
    lines[4], lines[6] = ",".join([row[0], "abc", *row[2:]]), "005"
    file = tmp_path_factory.mktemp("broken") / "t.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_flagged_rows_stay_in_their_place(cli, two, broken, tmp_path):
    assert cli("score", two.model, broken, "-o", tmp_path / "o.csv").code == 3
    outcome = cli.ok("score", two.model, broken, "-o", tmp_path / "o.csv", "--on-bad-row", "flag", "--columns", "id")
    found = cells(tmp_path / "o.csv")
    assert [row for row, flag in enumerate(found["flag"]) if flag] == [3, 5]
    assert found["flag"][3] == "x1: 'abc' is no number"
    assert [found["id"][row] for row in (2, 3, 4, 6)] == ["002", "003", "004", "006"]
    assert [found["prediction"][row] for row in (3, 5)] == ["", ""]
    assert "88 rows scored" in outcome.err
    assert "2 rows could not be read: flagged, without results." in outcome.err


def test_skipped_rows_are_in_a_file_next_to_the_results(cli, two, broken, tmp_path):
    out = tmp_path / "o.csv.gz"
    report = cli.ok("score", two.model, broken, "-o", out, "--on-bad-row", "skip", "--json").json
    aside = tmp_path / "o.bad-rows.csv"
    assert (report["rows"], report["bad_rows"], report["bad_rows_file"]) == (88, 2, str(aside))
    found = cells(aside)
    assert (found["line"], found["record"][1]) == (["5", "7"], "005")
    piped = cli.ok("score", two.model, "-", "-o", out, "--force", "--on-bad-row", "skip", stdin=broken.read_bytes())
    assert "88 rows scored" in piped.err
    assert cells(aside)["file"] == ["standard input"] * 2
    itself = cli("score", two.model, aside, "-o", tmp_path / "o.csv", "--on-bad-row", "skip")
    assert (itself.code, "is the table itself" in itself.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        ("score", ("-o", "-", "--on-bad-row", "skip"), "--on-bad-row flag"),
        ("score", ("-o", "OUT", "--on-bad-row", "drop"), "drop"),
        ("score", ("-o", "OUT", "--add", "prices"), "must be among"),
        ("evaluate", ("--on-bad-row", "flag"), "flag"),
    ],
)
def test_wrong_calls(cli, two, broken, tmp_path, command, arguments, words):
    outcome = cli(command, two.model, broken, *(tmp_path / "o.csv" if one == "OUT" else one for one in arguments))
    assert (outcome.code, words in outcome.err) == (2, True), outcome.err
    assert list(tmp_path.iterdir()) == []


def test_evaluation_leaves_out_what_it_cannot_read(cli, two, broken, tmp_path):
    refused = cli("evaluate", two.model, broken)
    assert refused.code == 3
    good = tmp_path / "good.csv"
    lines = broken.read_text().splitlines()
    good.write_text("\n".join(line for place, line in enumerate(lines) if place not in (4, 6)) + "\n")
    wanted = cli.ok("evaluate", two.model, good, "--json", "--all-rows").json
    outcome = cli.ok("evaluate", two.model, broken, "--on-bad-row", "skip", "--json", "--all-rows")
    found = outcome.json
    assert (found["rows"], found["bad_rows"], wanted["bad_rows"]) == (88, 2, 0)
    # The classes belong to the rows that are left: all figures are those of the table without the bad rows.
    for key in ("confusion", "accuracy", "log_loss", "seen", "left_out", "classes"):
        assert found[key] == wanted[key], key
    words = f"2 rows that could not be read, the first at line 5 of {broken}: x1: 'abc' is no number"
    assert any(words in one for one in found["notes"]), found["notes"]


def test_evaluation_of_bad_rows_alone_is_refused(cli, two, tmp_path):
    lines = two.file.read_text().splitlines()
    file = tmp_path / "t.csv"
    file.write_text("\n".join([lines[0], "005", "006"]) + "\n")
    outcome = cli("evaluate", two.model, file, "--on-bad-row", "skip")
    assert outcome.code == 3
    assert "None of the 2 rows could be read" in outcome.err
