"""`score --on-bad-row`: what cannot be read is flagged or set aside, counted, and no failure."""

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
    named = tmp_path / "named.csv"
    text = broken.read_bytes()
    piped = cli.ok("score", two.model, "-", "-o", "-", "--on-bad-row", "skip", "--bad-rows", named, stdin=text)
    assert piped.raw.count(b"\n") == 89
    assert cells(named)["file"] == ["standard input"] * 2


def test_wrong_calls(cli, two, broken, tmp_path):
    command = ("score", two.model, broken, "-o")
    out = tmp_path / "o.csv"
    for arguments, words in (
        ((out, "--bad-rows", tmp_path / "b.csv"), "give both"),
        (("-", "--on-bad-row", "skip"), "--bad-rows FILE"),
        ((out, "--on-bad-row", "skip", "--bad-rows", out), "file of its own"),
        ((out, "--on-bad-row", "skip", "--bad-rows", broken), "is the table itself"),
        ((out, "--on-bad-row", "skip", "--bad-rows", two.file), "--force"),
        ((out, "--on-bad-row", "drop"), "drop"),
        ((out, "--add", "prices"), "must be among"),
    ):
        outcome = cli(*command, *arguments)
        assert (outcome.code, words in outcome.err) == (2, True), outcome.err
    assert not out.exists()
