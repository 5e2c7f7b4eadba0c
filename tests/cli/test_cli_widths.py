"""What commands print in a narrow terminal: words that are whole, and nothing that is cut off."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from qmedoid.cli.output import grid, tell

words = st.text(alphabet="abcdefghij0123456789._", min_size=1, max_size=10)
cells = st.lists(words, max_size=4).map(" ".join)


@st.composite
def tables(draw):
    n_columns = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(cells, min_size=n_columns, max_size=n_columns), min_size=1, max_size=4))
    return draw(st.lists(words, min_size=n_columns, max_size=n_columns)), rows


@given(tables(), st.integers(10, 90))
def test_tables_break_no_word_and_fit_where_the_words_do(table, width):
    names, rows = table
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False, emoji=False)
    console.print(grid(names, rows), crop=False)
    text = console.file.getvalue()
    longest = [
        max(len(word) for text in column for word in text.split() or [""]) for column in zip(names, *rows, strict=True)
    ]
    assert max(map(len, text.splitlines())) <= max(width + len(names), sum(longest) + 3 * len(names) + 1)
    found = [word for word in text.split() if word.strip("┃│┏┓┗┛┡┩└┘━─┳┻╇┴┬┼")]
    for word in " ".join(cell for row in rows for cell in row).split():
        assert word in found
        found.remove(word)


def test_table_wider_than_the_terminal_is_as_wide_as_its_longest_words():
    console = Console(file=io.StringIO(), width=20, markup=False, highlight=False, emoji=False)
    console.print(grid(("a", "b"), [("one longest", "0.5 (0.25 to 0.75)"), ("two", "123456.789")]), crop=False)
    lines = console.file.getvalue().splitlines()
    assert {len(line) for line in lines} == {len("│ longest │ 123456.789 │")}
    assert any("longest" in line for line in lines)
    assert any("123456.789" in line for line in lines)


def test_commands_print_what_the_terminal_holds(cli, two, three, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal: elsewhere a sentence is one line, for programs
    calls = [
        ("data", "list"),
        ("schema",),
        ("check", two.file, "--target", "y"),
        ("inspect", two.model, "--budgets", "5,10,10%"),
        ("importance", three.model, three.file),
        ("effect", two.model, two.file, "--column", "color"),
        ("evaluate", three.model, three.file, "--all-rows"),
        ("explain", three.model, three.file, "--row", 4),
        ("fit", two.file, "--target", "y", "-o", tmp_path / "m", "--refine", "never", "--alert-rate", 0.1),
    ]
    for arguments in calls:
        lines = re.sub(r"\x1b\[[\d;]*m", "", cli.ok(*arguments).out).splitlines()
        lines = [line for line in lines if str(tmp_path) not in line]  # names of files, and calls, are one line
        assert max(map(len, lines)) <= 80, (arguments, max(lines, key=len))


@pytest.mark.parametrize(("is_terminal", "longest"), [(True, 50), (False, 200)])
def test_messages_are_wrapped_at_blanks_in_a_terminal(monkeypatch, is_terminal, longest):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    message = "error: the table has no column 'patients'.\n" + "word " * 30 + "a" * 50
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stderr", stream)
    tell(message)
    assert stream.getvalue().split() == message.split()
    assert max(map(len, stream.getvalue().splitlines())) == longest
