"""Lines of a text that are no records: left out with a note where that is sure, as is where it is not."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid import MedoidClassifier
from qmedoid.exceptions import DataError
from qmedoid.tables import text_files
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.dialect import no_record
from qmedoid.tables.evaluating import evaluate_file
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import score_file
from qmedoid.tables.source import open_table

HEADER = "weight,age,sex,sick"
N = 120


def records(n=N, seed=0):
    rng = np.random.default_rng(seed)
    sick = rng.integers(0, 2, n)
    cells = (rng.normal(70, 9, n) + 8 * sick).round(1), rng.integers(20, 80, n), rng.choice(["m", "f"], n), sick
    return [",".join(map(str, row)) for row in zip(*cells, strict=True)]


ROWS = records()
# Lines of a table, how many of them are left out, and what the note says.
ODD = {
    "total": ([HEADER, *ROWS, "Total,,,60"], 1, "(a line of totals): line 122, 'Total,,,60'"),
    "total behind": ([HEADER, *ROWS, ",,Grand total:,60"], 1, "a line of totals"),
    "short total": ([HEADER, *ROWS[:50], "Subtotal,25", *ROWS[50:]], 1, "line 52, 'Subtotal,25'"),
    "quoted total": ([HEADER, *ROWS, '"Total","","","60"'], 1, "a line of totals"),
    "mean": ([HEADER, *ROWS, "Mean,49.2,,0.5", "Sum,5900,,60"], 2, "the first is line 122, 'Mean,49.2,,0.5'"),
    "footers": ([HEADER, *ROWS, "", "Source: WHO, 2024", "3 rows selected"], 2, "(a footer): the first is line 123"),
    "padded footer": ([HEADER, *ROWS, ",,,", "Source: WHO,,,", ",,,"], 3, "a footer"),
    "count": ([HEADER, *ROWS, "(120 rows)"], 1, "a footer"),
    "units": (
        [HEADER, "kg,years,,", *ROWS],
        1,
        "line 2, under the header, is no record and is left out (a line of units)",
    ),
    "types": ([HEADER, "float,int,str,int", *ROWS], 1, "a line of units"),
    "rules": ([HEADER, "----,---,---,----", *ROWS, "===="], 2, "a rule"),
    "one rule": ([HEADER, "-" * 30, *ROWS], 1, "a rule"),
    "header again": ([HEADER, *ROWS[:70], HEADER, *ROWS[70:], HEADER], 2, "(the header again): the first is line 72"),
    "header with a mark": ([HEADER, *ROWS[:70], f"\ufeff{HEADER}", *ROWS[70:]], 1, "the header again"),
    "comments": (["# made by", "# a, b, c, d", HEADER, *ROWS[:9], "# stop", *ROWS[9:]], 3, "line 13, '# stop'"),
    "empty": ([HEADER, "", *ROWS[:9], "", "  ", *ROWS[9:], ",,,", "", ",,,"], 3, "a line without cells"),
}


def lines_to(path, lines, end="\n"):
    text = end.join(lines) + end
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def read(path):
    with open_table(path) as source:
        return Dataset.read(source, DatasetSettings(target="sick"), 10_000, np.random.default_rng(0))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = lines_to(tmp_path_factory.mktemp("fit") / "plain.csv", [HEADER, *ROWS])
    return MedoidClassifier(method="evidence", random_state=0).fit(read(path)).model_


@pytest.mark.parametrize("block", [400, 1 << 23])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ODD)
def test_what_is_no_record_is_left_out_with_a_note(tmp_path, monkeypatch, name, end, block):
    monkeypatch.setattr(text_files, "_BLOCK", block)
    monkeypatch.setattr(text_files, "_BYTES_OF_COLUMN", 100)
    if block < 1000:
        monkeypatch.setattr(text_files, "_SAMPLE", 600)
    lines, _, said = ODD[name]
    data = read(lines_to(tmp_path / "t.csv", lines, end))
    plain = read(lines_to(tmp_path / "plain.csv", [HEADER, *ROWS], end))
    assert data.table.equals(plain.table)
    assert data.table.schema.equals(plain.table.schema)
    assert any(said in note for note in data.notes), data.notes
    assert plain.notes == ()


@pytest.mark.parametrize("name", ODD)
def test_they_are_left_out_at_scoring_and_evaluation_with_the_same_note(tmp_path, model, name):
    lines, count, said = ODD[name]
    odd, plain = lines_to(tmp_path / "t.csv.gz", lines), lines_to(tmp_path / "plain.csv", [HEADER, *ROWS])
    for how in (ScoreSettings(columns=("sick",)), ScoreSettings(on_bad_row="flag")):
        scored = score_file(model, str(odd), str(tmp_path / "odd.csv"), how)
        score_file(model, str(plain), str(tmp_path / "out.csv"), how)
        assert (tmp_path / "odd.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
        assert scored.bad_rows == 0
        assert any(said in line for line in scored.difference.deviations())
    codes, decided, *_ = evaluate_file(model, str(odd), "sick", ScoreSettings())
    expected = evaluate_file(model, str(plain), "sick", ScoreSettings())
    np.testing.assert_array_equal(codes, expected[0])
    np.testing.assert_array_equal(decided.scores, expected[1].scores)
    with open_table(odd) as source:
        for _ in range(2):  # the note of a second pass is that of the first
            assert sum(len(batch) for batch in source.batches()) == N
            (*_, last) = source.left_out
            assert len(source.left_out) <= 2
            assert said in " ".join(source.left_out)
        assert str(count) in last or "one line" in last or "line 2" in last


@pytest.mark.parametrize(
    "lines",
    [
        ["town,age,sick", *["Total,30,1", "Rome,31,0"] * 20, "Total,33,1"],  # a level
        ["town,age,sick", *["Rome,30,1", "Oslo,31,0"] * 20, "Lima,,"],  # cells that are missing
        ["town,age,sick", *["Rome,30,1", "Oslo,31,0"] * 20, "Sum,x,1"],
        ["a,b,sick", *["m,x,1", "kg,y,0"] * 20],  # no column of numbers
        ["a,b,sick", "kg,n,1", *["m,x,1", "kg,y,0"] * 20],  # the unit is a level
        ["a,b,sick", "kg,cm,yes", *["3,4,yes", "5,6,no"] * 20],  # the row has a class
        ["a,b,sick", "n/a,?,1", *["3,4,1", "5,6,0"] * 20],
        ["a,b,sick", *["-,-,1", "--x,5,0"] * 20],
        ["#id,b,sick", *["#1,4,1", "#2,5,0"] * 20],
        ["#id,b,sick", *["1,4,1", "#2,5,0"] * 20],
        ["x,y", *["x,1", "y,2"] * 20, "x,3"],
        ["5.1,3.5,no", *["5.1,3.5,no", "4.9,3.0,yes"] * 20],  # a table without a header
    ],
)
def test_what_may_be_a_record_is_one(tmp_path, lines):
    with open_table(lines_to(tmp_path / "t.csv", lines)) as source:
        assert sum(len(batch) for batch in source.batches()) == len(lines) - 1
        assert source.left_out == []


@pytest.mark.parametrize("last", ["71.2,3", "John Smith", "71.2,30,m,1,9", "total of nothing at all,3"])
def test_a_line_of_another_length_is_refused_as_ever(tmp_path, last):
    with pytest.raises(DataError, match=r"line 122 has \d cells?, the header has 4"):
        read(lines_to(tmp_path / "t.csv", [HEADER, *ROWS, last]))
    lines = [HEADER, *ROWS[:9], "Source: x", "", "# note", *ROWS[9:], "Total,,,60", last]
    with pytest.raises(DataError, match=r"line 126 has \d cells?, the header has 4"):
        read(lines_to(tmp_path / "t.csv", lines))
    with pytest.raises(DataError, match=r"line 123 has \d cells?, the header has 4"):
        read(lines_to(tmp_path / "t.csv", [HEADER, *ROWS[:9], HEADER, *ROWS[9:], last]))


def test_lines_within_quotes_are_cells(tmp_path):
    lines = ["note,age,sick", *[f'"a\nnote,age,sick\nTotal\n# b",{age},{age % 2}' for age in range(30)]]
    with open_table(lines_to(tmp_path / "t.csv", [*lines, "note,age,sick"])) as source:
        assert sum(len(batch) for batch in source.batches()) == 30
        assert source.left_out[0].endswith("(the header again): line 122, 'note,age,sick'.")


@pytest.mark.parametrize("letter", ["a", "z"])
def test_a_header_of_frequent_letters_is_found_too(tmp_path, letter):
    rows = [f"{letter * 9},{number}" for number in range(300)]
    lines = ["aa,a", *rows[:100], "aa,a", *rows[100:200], "aa,a ", *rows[200:]]
    with open_table(lines_to(tmp_path / "t.csv", lines)) as source:
        assert sum(len(batch) for batch in source.batches()) == 301  # one has a blank more, and is not sure


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False).map(str), min_size=2, max_size=5),
    st.sampled_from(",;\t"),
)
def test_records_of_numbers_are_records(cells, delimiter):
    line = delimiter.join(cells)
    assert no_record(line, delimiter, len(cells), is_last=True) is None
    assert no_record(line, delimiter, len(cells) + 1) is None
