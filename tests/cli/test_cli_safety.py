"""Cells and names that mean harm: to a spreadsheet by formulas, to a terminal by escape characters and markup."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import cells, replaced, small_table, write

FORMULAS = ["=1+1", "+1+1", "-1-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", '=HYPERLINK("x","y")', "＝1"]
HARMLESS = ["plain", "a=b", "-1.5", "+2", "-3e-7", "1,5", "-1,5", "-1.000,25", " =1", "'quoted'", "", "ünïcode"]


@pytest.fixture(scope="module")
def risky(two, tmp_path_factory):
    """A table with formulas in a text column that is carried, and in its name."""
    texts = [*FORMULAS, *HARMLESS]
    texts = (texts * 9)[:90]
    numbers = [-1.5 + k for k in range(90)]
    table = two.table.append_column("=name()", [texts]).append_column("amount", pa.array(numbers))
    folder = tmp_path_factory.mktemp("risky")
    return table, {ending: write(table, folder / f"t.{ending}") for ending in ("csv", "parquet", "feather")}


def safe(text):
    return "'" + text if text in FORMULAS else text


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_formulas_are_made_safe_in_csv_alone(cli, two, risky, tmp_path, ending):
    table, files = risky
    texts = table["=name()"].to_pylist()
    carried = ("--columns", "=name(),amount")
    cli.ok("score", two.model, files[ending], "-o", tmp_path / "safe.csv", *carried)
    out = cells(tmp_path / "safe.csv")
    assert list(out)[:2] == ["'=name()", "amount"]
    assert out["'=name()"] == [safe(text) for text in texts]
    assert list(map(float, out["amount"])) == table["amount"].to_pylist()
    assert any(text.startswith("-") for text in out["margin"])
    cli.ok("score", two.model, files[ending], "-o", tmp_path / "raw.csv", "--no-safe-csv", *carried)
    assert cells(tmp_path / "raw.csv")["=name()"] == texts
    cli.ok("score", two.model, files[ending], "-o", tmp_path / "o.parquet", *carried)
    kept = pq.read_table(tmp_path / "o.parquet")
    assert [text or "" for text in kept["=name()"].to_pylist()] == texts


TINY = ("--medoids", "6", "--neighbors", "0")
BREAK = "\nBROKEN"
FIRST, SECOND = f"[red]x[/red]{BREAK}", f"\x1b[31mred{BREAK}"
X1, X2, COLOR, Y = f"\x9b31m:smile:{BREAK}", "[link=http://x]y[/link]\u202eltr", f"color{BREAK}\x07", f"y{BREAK}"


@pytest.fixture(scope="module")
def hostile(cli, tmp_path_factory):
    """A model and tables whose names, classes and cells break lines, steer a terminal or hold markup."""
    folder, table = tmp_path_factory.mktemp("hostile"), small_table((FIRST, SECOND))
    for name, new in (("id", f"id{BREAK}"), ("x1", X1), ("x2", X2), ("y", Y)):
        table = replaced(table, name, table[name], new)
    table = replaced(table, "color", [[f"\x1b]0;{color}{BREAK}" for color in table["color"].to_pylist()]], COLOR)
    table = table.append_column(f"same{BREAK}", [[f"a{BREAK}"] * 90])
    other = replaced(table, COLOR, [[f"new{BREAK}"] * 90]).drop_columns([X1])
    files = [write(one, folder / f"{name}.parquet") for name, one in (("t", table), ("new", other))]
    cli.ok("fit", files[0], "--target", Y, "-o", folder / "m", *TINY)
    return folder / "m", *files, table


class TestTerminal:
    def test_no_name_class_or_cell_breaks_a_line_or_steers_a_terminal(self, cli, hostile, tmp_path):
        (model, file, new, _), out, none = hostile, ("-o", tmp_path / "o.csv"), f"none{BREAK}\x1b"
        fit = ("fit", file, "--target", Y, "-o", tmp_path / "m", *TINY)
        calls = [
            ("check", file, "--target", Y),
            (*fit, "--alert-rate", "20%", "--cv", 2),
            (*fit, "--test", new),
            (*fit, "--positive", none),
            ("fit", file, "--target", none),
            (*fit, "--ignore", none),
            ("fit", tmp_path / f"none{BREAK}.csv", "--target", "y"),
            ("inspect", model),
            ("inspect", tmp_path / f"none{BREAK}"),
            ("score", model, file, *out),
            ("score", model, new, *out),
            ("score", model, new, *out, "--on-mismatch", "warn"),
            ("score", model, file, *out, "--columns", none),
            ("evaluate", model, file),
            ("evaluate", model, file, "--target", none),
            ("explain", model, file, "--row", 3, "--known", file),
        ]
        for arguments in calls:
            for more in ((), ("--json",)):
                outcome = cli(*arguments, *more)
                for line in (outcome.out + outcome.err).split("\n"):
                    assert line.isprintable(), (arguments, line)
                    assert not line.lstrip("│┃ ").startswith("BROKEN"), (arguments, line)

    def test_markup_is_printed_as_it_stands(self, cli, hostile):
        text = cli.ok("check", hostile[1], "--target", Y).out
        assert "[red]x[/red]" in text
        assert "\\x1b[31mred" in text
        assert ":smile:" in cli.ok("explain", *hostile[:2], "--row", "0").out

    def test_json_keeps_the_names_themselves(self, cli, hostile):
        model, file, _, table = hostile
        assert list(cli.ok("evaluate", model, file, "--json").json["classes"]) == sorted([FIRST, SECOND])
        names = [column["name"] for column in cli.ok("inspect", model, "--json").json["columns"]]
        assert names == [name for name in table.column_names if name not in (f"id{BREAK}", f"same{BREAK}", Y)]

    def test_terminal_without_unicode(self, hostile):
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        for more in ((), ("--json",)):
            command = [sys.executable, "-m", "qmedoid", "evaluate", *map(str, hostile[:2]), *more]
            done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            assert done.stdout.isascii()
        assert list(json.loads(done.stdout)["classes"]) == sorted([FIRST, SECOND])


@settings(max_examples=20, deadline=None)
@given(names=st.lists(st.text(min_size=1, max_size=8), min_size=3, max_size=3, unique_by=str.strip), cell=st.text())
def test_check_prints_a_line_for_a_line_whatever_names_are(cli, tmp_path_factory, names, cell):
    """As many lines as for the same table with plain names."""
    folder = tmp_path_factory.mktemp("names")
    columns = [[1.5, 2.5, 4.5] * 8, [cell, "b", "c"] * 8, ["no", "yes", "no"] * 8]
    table = pa.table(dict(zip(names, columns, strict=True)))
    outcome = cli("check", write(table, folder / "t.parquet"), "--target", names[2])
    assert outcome.code in (0, 3)
    assert all(line.isprintable() for line in (outcome.out + outcome.err).split("\n"))
