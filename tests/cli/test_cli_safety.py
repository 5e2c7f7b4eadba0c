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

from qmedoid.cli.output import shown

FORMULAS = ["=1+1", "+1+1", "-1-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", '=HYPERLINK("x","y")', "＝1"]
HARMLESS = ["plain", "a=b", "-1.5", "+2", "-3e-7", "1,5", "-1,5", "-1.000,25", " =1", "'quoted'", "", "ünïcode"]
ESCAPES = ["[red]x[/red]", "\x1b[31mred", "\x9b31m", "a\rb", ":smile:", "[link=http://x]y[/link]", "\u202eltr"]


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


def test_tabs_and_pipes_are_as_safe(cli, two, risky, tmp_path):
    table, files = risky
    expected = [safe(text) for text in table["=name()"].to_pylist()]
    cli.ok("score", two.model, files["csv"], "-o", tmp_path / "o.tsv", "--columns", "=name()")
    assert cells(tmp_path / "o.tsv", "\t")["'=name()"] == expected
    (tmp_path / "o.csv").write_bytes(cli.ok("score", two.model, files["csv"], "-o", "-", "--columns", "=name()").raw)
    assert cells(tmp_path / "o.csv")["'=name()"] == expected


def test_classes_that_are_formulas(cli, tmp_path):
    labels = ("=no()", "@yes")
    file = write(small_table(labels), tmp_path / "t.csv")
    cli.ok("fit", file, "--target", "y", "-o", tmp_path / "m", "--refine", "never")
    cli.ok("score", tmp_path / "m", file, "-o", tmp_path / "o.csv")
    out = cells(tmp_path / "o.csv")
    assert set(out["prediction"]) == {"'=no()", "'@yes"}
    cli.ok("score", tmp_path / "m", file, "-o", tmp_path / "raw.csv", "--no-safe-csv")
    assert set(cells(tmp_path / "raw.csv")["prediction"]) == set(labels)


def test_quoted_line_breaks_and_quotes_come_through(cli, two, tmp_path):
    texts = (['a "b"', "a,b", "a\nb", "a\r\nb", "tab\there", " edge "] * 15)[:90]
    file = write(two.table.append_column("note", [texts]), tmp_path / "t.csv")
    cli.ok("score", two.model, file, "-o", tmp_path / "o.csv", "--columns", "note")
    assert cells(tmp_path / "o.csv")["note"] == texts


@pytest.fixture(scope="module")
def odd(cli, tmp_path_factory):
    """A model whose classes and columns are full of escapes."""
    folder = tmp_path_factory.mktemp("odd")
    table = small_table((ESCAPES[0], ESCAPES[1]))
    table = replaced(table, "x1", table["x1"], ESCAPES[2] + ESCAPES[4])
    table = replaced(table, "x2", table["x2"], ESCAPES[5] + ESCAPES[6])
    colors = [f"\x1b]0;{color}\x07" for color in table["color"].to_pylist()]
    table = replaced(table, "color", [colors])
    file = write(table, folder / "t.parquet")
    cli.ok("fit", file, "--target", "y", "-o", folder / "m", "--refine", "never")
    return folder / "m", file, table


class TestTerminal:
    def test_text_holds_no_character_that_steers_a_terminal(self, cli, odd, tmp_path):
        model, file, table = odd
        absent = write(table.drop_columns([table.column_names[1]]), tmp_path / "absent.parquet")
        calls = [
            ("inspect", model),
            ("evaluate", model, file),
            ("explain", model, file, "--row", "0"),
            ("score", model, file, "-o", tmp_path / "o.csv"),
            ("fit", file, "--target", "y", "-o", tmp_path / "m", "--refine", "never"),
            ("score", model, absent, "-o", tmp_path / "o.csv"),
            ("score", model, absent, "-o", tmp_path / "o.csv", "--on-mismatch", "warn"),
            ("score", model, file, "-o", tmp_path / "o.csv", "--columns", "none"),
            ("evaluate", model, file, "--target", "none"),
            ("fit", file, "--target", "none", "-o", tmp_path / "m"),
            ("fit", file, "--target", "y", "-o", tmp_path / "m", "--positive", "none\x1b"),
        ]
        for arguments in calls:
            for more in ((), ("--json",)):
                outcome = cli(*arguments, *more)
                harmful = [s for s in outcome.out + outcome.err if not (s.isprintable() or s == "\n")]
                assert not harmful, (arguments, harmful)

    def test_markup_is_printed_as_it_stands(self, cli, odd):
        model, file, _ = odd
        text = cli.ok("evaluate", model, file).out
        assert "[red]x[/red]" in text
        assert "\\x1b[31mred" in text
        assert ":smile:" in cli.ok("explain", model, file, "--row", "0").out

    def test_json_keeps_the_names_themselves(self, cli, odd):
        model, file, table = odd
        assert list(cli.ok("evaluate", model, file, "--json").json["classes"]) == [ESCAPES[1], ESCAPES[0]]
        names = [column["name"] for column in cli.ok("inspect", model, "--json").json["columns"]]
        assert names == table.column_names[1:-1]

    def test_terminal_without_unicode(self, odd):
        model, file, _ = odd
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        for more in ((), ("--json",)):
            command = [sys.executable, "-m", "qmedoid", "evaluate", str(model), str(file), *more]
            done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            assert done.stdout.isascii()
        assert list(json.loads(done.stdout)["classes"]) == [ESCAPES[1], ESCAPES[0]]

    @pytest.mark.parametrize("text", ESCAPES)
    def test_shown_text_can_be_read_back(self, text):
        assert shown(text).isprintable()
        assert shown("plain [red] ü") == "plain [red] ü"
        assert shown(text) == text or "\\" in shown(text)


BREAK = "\nBROKEN"


@pytest.fixture(scope="module")
def broken(cli, tmp_path_factory):
    """A model and tables whose names, classes and cells break lines."""
    folder = tmp_path_factory.mktemp("broken")
    table = small_table((f"no{BREAK}", f"yes{BREAK}"))
    for name in ("id", "x1", "y"):
        table = replaced(table, name, table[name], name + BREAK)
    table = replaced(table, "color", [[color + BREAK for color in table["color"].to_pylist()]], f"color{BREAK}\x07")
    table = table.append_column(f"same{BREAK}", [[f"a{BREAK}"] * 90])
    new = replaced(table, f"color{BREAK}\x07", [[f"new{BREAK}"] * 90]).drop_columns([f"x1{BREAK}"])
    files = [write(one, folder / f"{name}.parquet") for name, one in (("t", table), ("new", new))]
    cli.ok("fit", files[0], "--target", f"y{BREAK}", "-o", folder / "m", *TINY)
    return folder / "m", *files


TINY = ("--medoids", "6", "--neighbors", "0")


def test_no_name_class_or_cell_breaks_a_line(cli, broken, tmp_path):
    model, file, new = broken
    target, out = f"y{BREAK}", tmp_path / "o.csv"
    calls = [
        ("check", file, "--target", target),
        ("fit", file, "--target", target, "-o", tmp_path / "m", *TINY, "--alert-rate", "20%", "--cv", 2),
        ("fit", file, "--target", target, "-o", tmp_path / "m", *TINY, "--test", new),
        ("fit", file, "--target", target, "-o", tmp_path / "m", "--positive", f"none{BREAK}"),
        ("fit", file, "--target", f"other{BREAK}"),
        ("fit", file, "--target", target, "--ignore", f"other{BREAK}"),
        ("fit", tmp_path / f"none{BREAK}.csv", "--target", "y"),
        ("inspect", model),
        ("inspect", tmp_path / f"none{BREAK}"),
        ("score", model, file, "-o", out),
        ("score", model, new, "-o", out),
        ("score", model, new, "-o", out, "--on-mismatch", "warn"),
        ("score", model, file, "-o", out, "--columns", f"none{BREAK}"),
        ("evaluate", model, file),
        ("evaluate", model, file, "--target", f"none{BREAK}"),
        ("explain", model, file, "--row", 3, "--known", file),
    ]
    for arguments in calls:
        outcome = cli(*arguments)
        for line in (outcome.out + outcome.err).split("\n"):
            assert line.isprintable(), (arguments, line)
            assert not line.lstrip("│┃ ").startswith("BROKEN"), (arguments, line)


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
