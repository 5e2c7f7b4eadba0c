"""Texts that were not made for us: how they are written is found out, or one line says what is wrong and where."""

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.model.contract import Column
from qmedoid.tables.arrow import MISSING, CellTypeError
from qmedoid.tables.cells import texts
from qmedoid.tables.dialect import DELIMITERS, detect_dialect
from qmedoid.tables.kinds import infer_columns, with_levels_of
from qmedoid.tables.source import open_table

cells = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=8)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path, **options):
    with open_table(path, **options) as source:
        return source.read()[0].to_pydict(), source.notes


@pytest.fixture
def file(tmp_path):
    return tmp_path / "table.csv"


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(*[st.one_of(cells, st.just('a\n"b"'), st.just("x,y;z\t|"))] * 3), min_size=1, max_size=6))
@pytest.mark.parametrize("delimiter", DELIMITERS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_what_a_writer_quotes_is_read_back(tmp_path_factory, delimiter, line_end, rows):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=csv.QUOTE_ALL)
    rows = [*rows, ("x", "y", "z")]  # an empty line at the end is no record
    writer.writerows([("first", "second", "third"), *rows])
    path = write(tmp_path_factory.mktemp("texts") / "t.csv", text.getvalue())
    with open_table(path, delimiter=delimiter) as source:
        (batch,) = source.batches(types=dict.fromkeys(source.names, pa.string()))
    missing = {*MISSING, *(f" {cell}" for cell in MISSING)}
    expected = [tuple(None if cell in missing else cell for cell in row) for row in rows]
    assert list(zip(*batch.to_pydict().values(), strict=True)) == expected


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_delimiter_is_found(file, delimiter):
    lines = [
        ["a", "b b", "c"],
        ["1", '"x,;|\t y"', "2"],
        ["3", "p, q", "4"] if delimiter != "," else ["3", "p; q", "4"],
    ]
    write(file, "\n".join(delimiter.join(line) for line in lines))
    table, _ = read(file)
    assert list(table) == lines[0]
    assert table["a"] == [1, 3]
    assert table["b b"] == ["x,;|\t y", lines[2][1]]


def test_decimal_comma(file):
    table, notes = read(write(file, "a;b;c\n3,14;1;x\n-2,5e3;2;y\n"))
    assert table == {"a": [3.14, -2500.0], "b": [1, 2], "c": ["x", "y"]}
    assert any("decimal comma" in note for note in notes)
    assert read(write(file, "a;b\n3,14;1.5\n"))[0] == {"a": ["3,14"], "b": [1.5]}


def test_decimal_commas_beside_a_word_are_numbers(file):
    """So that the column is one of numbers, with cells that are none, as it would be with points."""
    text = "a;b\n" + "3,25;x\n4,5;y\n" * 10 + "n.v.;0,5 l\n"
    with open_table(write(file, text)) as source:
        for read_, _ in (source.read(), source.read(max_rows=100)):
            inferred = infer_columns(read_)
            assert [(column.kind, column.spelling) for column in inferred.columns] == [
                ("number", "1234,5"), ("category", "")]  # fmt: skip
            assert "1 of 21 cells are not numbers, such as 'n.v.'" in next(iter(inferred.notes.values()))


def test_thousands_are_not_taken_for_decimals_unasked(file):
    write(file, "a;b\n1,234;1\n12,345;2\n")
    assert read(file)[0]["a"] == ["1,234", "12,345"]
    with open_table(file) as source, pytest.raises(DataError, match=r"'a' holds '1,234'.*--decimal"):
        infer_columns(source.read()[0])
    assert read(file, decimal=",")[0]["a"] == [1.234, 12.345]
    # No thousands begin with a zero.
    assert read(write(file, "a;b\n0,234;1\n12,345;2\n"))[0]["a"] == [0.234, 12.345]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1"])
def test_encodings(file, encoding):
    table, notes = read(write(file, "größe,ort\n1,Zürich\n2,Åbo\n".encode(encoding)))
    assert table == {"größe": [1, 2], "ort": ["Zürich", "Åbo"]}
    assert bool(notes) == (not encoding.startswith("utf-8"))


@pytest.mark.parametrize(("encoding", "n_notes"), [("utf-8", 0), ("cp1252", 1)])
def test_encoding_that_shows_late(file, encoding, n_notes):
    write(file, b"a,b\n" + b"1,plain\n" * 1_200_000 + "2,Zürich\n".encode(encoding))
    with open_table(file) as source:
        *_, last = source.batches()
        assert last["b"][-1].as_py() == "Zürich"
        assert len(source.notes) == n_notes


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_encodings_of_long_files(file, encoding):
    write(file, ("größe,ort\n" + "1,Zürich\n" * 100_000).encode(encoding))
    with open_table(file) as source:
        for _ in range(2):
            assert sum(batch["ort"].to_pylist().count("Zürich") for batch in source.batches()) == 100_000
        assert source.read()[0]["ort"].to_pylist() == ["Zürich"] * 100_000
        assert len(source.notes) == (encoding != "utf-8")


def test_two_encodings_are_refused(file):
    write(file, "a,b\n1,Zürich\n".encode() + b"1,plain\n" * 1_200_000 + "2,Zürich\n".encode("cp1252"))
    with open_table(file) as source:
        with pytest.raises(DataError, match="not in one encoding"):
            list(source.batches())
        with pytest.raises(DataError, match="not in one encoding"):
            source.read()


def test_missing_cells(file):
    write(file, "n,t\n" + "".join(f"{cell},{cell}\n {cell}, {cell}\n" for cell in MISSING) + "1.5,text\n")
    table, _ = read(file)
    assert table["n"] == [None] * (2 * len(MISSING)) + [1.5]
    assert table["t"] == [None] * (2 * len(MISSING)) + ["text"]


def test_large_numbers_and_dates(file):
    write(
        file,
        "i,f,d,t,z\n99999999999999999999,1e308,2024-02-29,2024-02-29 10:00:00,2024-02-29T10:00:00+02:00\n1,inf,,,\n",
    )
    with open_table(file) as source:
        table = source.read()[0]
    # A float would lose digits of the first.
    assert table["i"].to_pylist() == ["99999999999999999999", "1"]
    assert table["f"].to_pylist() == [1e308, float("inf")]
    assert pa.types.is_date(table["d"].type)
    assert table["t"].type == pa.timestamp("s")
    assert table["z"].type == pa.timestamp("s", tz="UTC")


def test_mixed_types_are_text_even_if_the_first_part_is_numbers(file):
    write(file, "a,b\n" + "1,2\n" * 400_000 + "x,3\n")
    with open_table(file) as source:
        assert source.schema.types == [pa.int64(), pa.int64()]
        table = source.read()[0]
        assert (table["a"].type, table["b"].type) == (pa.string(), pa.int64())
        assert table["a"][0].as_py() == "1"
        with pytest.raises(CellTypeError, match=r"column 'a', row 400001: .*'x'"):
            list(source.batches())


def test_long_cell_is_shown_in_one_short_line(file):
    write(file, 'a,b\n1,"' + "long\n" * 1000 + '"\n')
    with open_table(file) as source, pytest.raises(CellTypeError) as caught:
        list(source.batches(types={"b": pa.float64()}))
    assert "'long long" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200 + len(str(file))


def test_names(file):
    table, notes = read(write(file, ' a ,"b",,"two\nlines"\n1,2,3,4\n'))
    assert list(table) == ["a", "b", "column 3", "two\nlines"]
    assert len(notes) == 2
    with pytest.raises(DataError, match=r"'x' \(columns 1, 3\)"):
        open_table(write(file, "x,y, x\n1,2,3\n"))
    assert "header" in read(write(file, "1,2\n3,4\n"))[1][0]
    many, notes = read(write(file, "a" + "," * 500 + "\n1" + ",2" * 500 + "\n"))
    assert list(many)[-1] == "column 501"
    assert notes == ["500 columns have no name; they are called 'column 2' and so on."]
    with pytest.raises(DataError, match="a name of more than 131,072 characters"):
        open_table(write(file, "a," + "b" * 200_000 + "\n1,2\n"))


def test_header_only_and_one_row(file):
    with open_table(write(file, "a,b\n")) as source:
        assert source.names == ("a", "b")
        assert list(source.batches()) == []
        assert source.read()[0].num_rows == source.read(max_rows=3)[0].num_rows == 0
    assert read(write(file, "a,b\n1,2"))[0] == {"a": [1], "b": [2]}


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "  \n"])
def test_empty(file, content):
    with pytest.raises(DataError, match="is empty"):
        open_table(write(file, content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,c\n1,2,3\n4,5\n", "line 3 has 2 cells, the header has 3"),
        ("a,b\n1,2\n\n\n3,4,5\n", "line 5 has 3 cells, the header has 2"),
        ('a,b\n"x\ny",2\n"z\n\nz",2\n7\n', "line 7 has 1 cell, the header has 2"),
        ('\n\n"a\n",b\n1\n', "line 5 has 1 cell, the header has 2"),
    ],
)
def test_line_of_another_length_is_named(file, content, message):
    line = int(message.split()[1])
    start = content.index("\n", content.index("b")) + 1
    filler = "1,2,3\n" if "c" in content else "1,2\n"
    for number in (0, 200_000):  # in the first part, and in a later one
        write(file, content[:start] + filler * number + content[start:])
        wanted = message.replace(f"line {line}", f"line {line + number}")
        with pytest.raises(DataError, match=wanted), open_table(file) as source:
            source.read()
        with pytest.raises(DataError, match=wanted), open_table(file) as source:
            list(source.batches())


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1,\x00\n", bytes(range(256)) * 20, b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"],
)
def test_what_is_no_text_is_refused(file, content):
    with pytest.raises(DataError, match="zero bytes"):
        open_table(write(file, content))


def test_quote_never_closed(file, monkeypatch):
    monkeypatch.setattr("qmedoid.tables.text_files._BLOCK", 1 << 12)
    monkeypatch.setattr("qmedoid.tables.text_files._LONGEST_RECORD", 1 << 14)
    write(file, "a,b\n" + "1,2\n" * 70_000 + '"1,2\n' + "1,2\n" * 400_000)
    with open_table(file) as source, pytest.raises(DataError, match="never closed"):
        list(source.batches())


def test_quote_never_closed_does_not_hide_the_rest(file):
    write(file, "a,b\n" + "1,2\n" * 10 + '1,"2\n' + "1,2\n" * 20)
    with open_table(file) as source, pytest.raises(DataError, match="never closed, 21 lines before the end"):
        source.read()
    # Quotes inside of cells are signs like others, and need no second one.
    assert read(write(file, 'a,b\n1,5" pipe\n2,"x"\n'))[0] == {"a": [1, 2], "b": ['5" pipe', "x"]}


VALUES = ['"a\nb"', "plain", '"say ""hi"""', "1", '""', '"\n\n"']


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(VALUES), min_size=2, max_size=100), st.integers(1, 40), st.booleans())
def test_blocks_end_where_records_end(tmp_path_factory, values, size, stray):
    """However small the blocks, the rows are those of the file read at once, with stray quotes or quoted line ends."""
    values = [cell for value in values for cell in ('5" pipe', value)] if stray else values
    path = write(tmp_path_factory.mktemp("blocks") / "t.csv", "n,v\n" + "".join(f"1,{value}\n" for value in values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qmedoid.tables.text_files._SAMPLE", 16)
        patch.setattr("qmedoid.tables.text_files._BLOCK", size)
        with open_table(path, delimiter=",") as source:
            batches = list(source.batches(types={"n": pa.int64(), "v": pa.string()}))
    with open_table(path) as source:
        whole = source.read()[0]["v"].cast(pa.string()).to_pylist()
    assert [cell for batch in batches for cell in batch["v"].to_pylist()] == whole
    assert len(whole) == len(values)


def test_mask_hides_quoted_line_ends_only():
    text = b'a,"b\n",5" x\n"\n"\n'
    assert detect_dialect(text, True, "t", ",", None).mask_quoted(text).count(b"\n") == 2


@pytest.mark.parametrize(
    "options", [{"delimiter": "ab"}, {"delimiter": '"'}, {"decimal": "x"}, {"delimiter": ",", "decimal": ","}]
)
def test_wrong_options(file, options):
    with pytest.raises(ParameterError, match=r"must be|cannot both"):
        open_table(write(file, "a,b\n1,2\n"), **options)


def test_point_beside_decimal_commas_is_no_decimal_sign(file):
    """It parts thousands; where a whole column is read strictly, such a cell is not a number."""
    write(file, "a;b\n" + "3,25;1.234\n" * 19 + "1.234;2.345\n")
    with open_table(file, decimal=",") as source:
        for rows, _ in (source.read(), source.read(max_rows=100)):
            inferred = infer_columns(rows)
            assert [column.spelling for column in inferred.columns] == ["1.234,5", "1.234"]
            assert "'1.234' is 1234" in next(iter(inferred.notes.values()))
        with pytest.raises(CellTypeError):
            list(source.batches(["a"], {"a": pa.float64()}))


@pytest.mark.parametrize(
    ("cells_", "is_text"),
    [
        (["00123", "12345"], True),
        (["12345", " 00123 "], True),
        (["007", ""], True),
        (["-01", "5"], False),
        (["0", "10"], False),
        (["0.5", "10"], False),
        (["0", "0"], False),
        (["2024-01-01", "2024-01-02"], False),
    ],
)
def test_whole_numbers_with_leading_zeros_stay_texts(file, cells_, is_text):
    write(file, "z,n\n" + "".join(f"{cell},{place}\n" for place, cell in enumerate(cells_)))
    with open_table(file) as source:
        assert (source.schema.field("z").type == pa.string()) is is_text
        for rows, _ in (source.read(), source.read(max_rows=10)):
            assert (rows.schema.field("z").type == pa.string()) is is_text
            assert rows["n"].type == pa.int64()
            if is_text:
                found = [cell and cell.strip() for cell in rows["z"].to_pylist()]
                assert found == [cell.strip() or None for cell in cells_]


def test_leading_zeros_that_show_late_are_seen_where_texts_are_drawn_from(file):
    write(file, "z,n\n" + "".join(f"{10_000 + k},{k}\n" for k in range(60_000)) + "00123,1\n")
    with open_table(file) as source:
        assert source.schema.field("z").type == pa.int64()
        assert source.read(max_rows=100_000)[0]["z"].type == pa.string()


def test_blanks_after_commas_are_no_part_of_anything(file):
    last = ["NA ", *"xyxyxxyyx"]
    text = "a, b, day, t, c\n" + "".join(
        f"{k}.5, {k % 7}, 2024-01-{k + 1:02d}, {'red' if k % 2 else 'blue '}, {last[k % 10]}\n" for k in range(25)
    )
    written = []
    for content in (text, text.replace(", ", ",").replace(" ,", ",").replace(" \n", "\n")):
        with open_table(write(file, content)) as source:
            assert source.names == ("a", "b", "day", "t", "c")
            table = source.read()[0]
            inferred = infer_columns(table)
            assert [column.kind for column in inferred.columns] == ["number", "number", "date", "category", "category"]
            assert [column.missing for column in inferred.columns] == [False] * 4 + [True]
            columns = with_levels_of((Column("t", "category", levels=("red",)),), table)
            assert columns[0].levels == ("blue", "red")
            written.append(texts(table["c"]).to_pylist())
    assert written[0] == written[1]


def test_long_records(file):
    write(file, "a,b\n" + "".join(f'{i},"{"x" * 3_000_000}"\n' for i in range(3)))
    for read_all in (lambda s: s.read()[0], lambda s: pa.Table.from_batches(s.batches())):
        with open_table(file) as source:
            table = read_all(source)
        assert table["a"].to_pylist() == [0, 1, 2]
        assert [len(cell.as_py()) for cell in table["b"]] == [3_000_000] * 3
