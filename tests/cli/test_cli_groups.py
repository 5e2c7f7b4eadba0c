"""Rows that belong together on the command line: equal rows, and rows of one value of a column."""

import pyarrow as pa
import pytest
from small_tables import small_table, write


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table, the same table twice, and with a column of customers who have three rows each."""
    folder, table = tmp_path_factory.mktemp("groups"), small_table()
    customers = pa.array([f"customer {row // 3}" for row in range(len(table))])
    return {
        "once": write(table, folder / "once.csv"),
        "twice": write(pa.concat_tables([table, table]).combine_chunks(), folder / "twice.csv"),
        "customers": write(table.append_column("customer", customers), folder / "customers.csv"),
    }


def fit(cli, file, output, *more):
    return cli.ok("fit", file, "--target", "y", "-o", output, "--json", *more).json


def test_doubled_file_expects_what_the_file_does_and_says_so(cli, files, tmp_path):
    once, twice = (fit(cli, files[name], tmp_path / name) for name in ("once", "twice"))
    assert any("rows are equal to an earlier row" in note for note in twice["notes"])
    assert not any("equal" in note for note in once["notes"])
    assert twice["operating"]["draws_per_row"] == 0.5
    for figure in ("precision", "recall", "alert_rate"):
        before, after = once["operating"][figure], twice["operating"][figure]
        assert before["low"] <= after["value"] <= before["high"]
    assert twice["held_out"]["rows"] % 2 == 0  # both copies of a row, or none


def test_group_column_is_no_feature_and_keeps_its_rows_together(cli, files, tmp_path):
    found = fit(cli, files["customers"], tmp_path / "m", "--group-column", "customer", "--test", "0.3")
    assert found["left_out"]["customer"] == "it says which rows belong together"
    assert found["operating"]["draws_per_row"] == pytest.approx(1 / 3)
    assert found["training_rows"] % 3 == found["held_out"]["rows"] % 3 == 0
    assert abs(found["held_out"]["rows"] / 90 - 0.3) < 0.05
    others = fit(cli, files["customers"], tmp_path / "m", "--group-column", "customer", "--test", files["once"])
    assert others["held_out"]["rows"] == 90  # which need no such column
    stability = ("stability", files["customers"], "--target", "y", "--group-column", "customer", "--bootstraps", 2)
    assert cli.ok(*stability, "--json").json["rows"] == 90


def test_group_column_that_is_absent_or_has_holes_is_refused(cli, files, tmp_path):
    command = ["fit", files["customers"], "--target", "y", "-o", tmp_path / "m", "--group-column"]
    assert "no column 'nobody'" in cli(*command, "nobody").err
    table = small_table()
    holes = write(table.append_column("who", pa.array([None, *range(1, len(table))])), tmp_path / "holes.csv")
    refused = cli("fit", holes, "--target", "y", "-o", tmp_path / "m", "--group-column", "who")
    assert refused.code == 3
    assert "missing in 1 rows" in refused.err


def test_rows_held_out_by_time_that_are_known_are_told_of(cli, tmp_path):
    table = small_table()
    twice = pa.concat_tables([table, table]).append_column("when", pa.array(range(2 * len(table))))
    file = write(twice.combine_chunks(), tmp_path / "times.csv")
    told = cli.ok("fit", file, "--target", "y", "-o", tmp_path / "m", "--time-column", "when")
    assert "rows that are held out by time are equal to one of the training rows" in told.err
