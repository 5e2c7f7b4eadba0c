"""What commands print in a narrow terminal: lines that fit, words that are whole, nothing that is cut off."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from qmedoid.cli.output import column_widths, grid, tell

words = st.text(alphabet="abcdefghij0123456789._", min_size=1, max_size=12)
cells = st.lists(words, max_size=4).map(" ".join)


@st.composite
def tables(draw):
    n_columns = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(cells, min_size=n_columns, max_size=n_columns), min_size=1, max_size=4))
    return draw(st.lists(words, min_size=n_columns, max_size=n_columns)), rows


def printed(table, width):
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False, emoji=False)
    console.print(table)
    return console.file.getvalue()


@given(tables(), st.integers(26, 90))
def test_tables_fit_and_break_no_word(table, width):
    names, rows = table
    text = printed(grid(names, rows), width)
    assert max(map(len, text.splitlines())) <= width
    found = [word for word in text.replace(";", " ").replace(":", " ").split() if word.strip("┃│┏┓┗┛┡┩└┘━─┳┻╇┴┬┼")]
    for word in " ".join(cell for row in rows for cell in row).split():
        assert word in found
        found.remove(word)


def test_tables_are_paragraphs_where_a_word_would_break():
    table = ("a" * 10, "b" * 10, "c" * 10), [("d" * 10, "e" * 10, "f" * 10)]
    narrowest = 3 * 10 + 3 * 3 + 1
    assert max(map(len, printed(grid(*table), narrowest).splitlines())) == narrowest
    for width in (narrowest, narrowest - 1, narrowest - 3):
        text = printed(grid(*table), width)
        assert ("┃" in text) == (width == narrowest)
        for word in table[1][0]:
            assert word in text


@given(tables(), st.integers(0, 90))
def test_widths_share_the_room(table, room):
    columns = [list(column) for column in zip(*([table[0], *table[1]]), strict=True)]
    longest_words = [max(len(word) for text in column for word in text.split() or [""]) for column in columns]
    longest_lines = [max(map(len, column)) for column in columns]
    widths = column_widths(columns, room)
    assert (widths is None) == (sum(longest_words) > room)
    if widths is not None:
        assert sum(widths) <= room
        assert all(low <= width <= high for low, width, high in zip(longest_words, widths, longest_lines, strict=True))
        if sum(longest_lines) <= room:
            assert widths == longest_lines
        else:  # what is left over is less than a sign for each column
            assert room - sum(widths) < len(widths)


@pytest.mark.parametrize("columns", [60, 80])
def test_commands_print_what_the_terminal_holds(cli, two, three, monkeypatch, tmp_path, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal: elsewhere a sentence is one line, for programs
    calls = [
        ("data", "list"),
        ("schema",),
        ("check", two.file, "--target", "y"),
        ("inspect", two.model),
        ("inspect", three.model),
        ("inspect", two.model, "--budgets", "5,10,10%"),
        ("importance", two.model),
        ("importance", three.model, three.file),
        ("effect", two.model, two.file, "--column", "color"),
        ("evaluate", three.model, three.file, "--all-rows"),
        ("explain", two.model, two.file, "--row", 4),
        ("explain", three.model, three.file, "--row", 4),
        ("fit", two.file, "--target", "y", "-o", tmp_path / "m", "--refine", "never", "--alert-rate", 0.1),
    ]
    for arguments in calls:
        lines = re.sub(r"\x1b\[[\d;]*m", "", cli.ok(*arguments).out).splitlines()
        lines = [line for line in lines if str(tmp_path) not in line]  # names of files, and calls, are one line
        assert max(map(len, lines)) <= columns, (arguments, max(lines, key=len))


def test_nothing_is_cut_in_a_pipe(cli, two, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    name = "a_column_of_a_name_that_is_longer_than_a_terminal_is_wide_and_still_no_longer_than_a_pipe"
    assert name in printed(grid((name, "b"), [("1", "2")]), 200)
    shown = cli.ok("inspect", two.model).out
    for column in two.table.column_names:
        assert column in shown


def test_messages_are_wrapped_at_blanks_in_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    message = "error: the table has no column 'patients'.\n" + "word " * 30 + "a" * 50
    for stream, longest in ((Terminal(), 50), (io.StringIO(), 200)):
        monkeypatch.setenv("COLUMNS", "40")
        monkeypatch.setattr("sys.stderr", stream)
        tell(message)
        assert stream.getvalue().split() == message.split()
        assert max(map(len, stream.getvalue().splitlines())) == longest
