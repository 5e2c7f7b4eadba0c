"""Odd files: encodings, signs between cells, lines that are no records, and names of columns."""

import bz2
import gzip
import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from benchmarks.odd.base import N_ROWS, Columns, Odd, base, lines_of, plain_file, with_cells

_NAMES = ("Bern", "Oslo", "Rome"), ("Zürich", "Malmö", "Åbo")


def _abroad() -> Columns:
    """Names of places with letters that ASCII does not have."""
    columns = base()
    columns["place"] = [_NAMES[1][_NAMES[0].index(one)] for one in columns["place"]]
    return columns


def encodings() -> Iterator[Odd]:
    """Bytes of letters, ends of lines, and compressions."""
    columns = _abroad()
    text = "\n".join(lines_of(columns)) + "\n"
    for name, data in {
        "UTF-8 with a mark": text.encode("utf-8-sig"),
        "UTF-16 with a mark": text.encode("utf-16"),
        "UTF-16 big end first": b"\xfe\xff" + text.encode("utf-16-be"),
        "Latin-1": text.encode("latin-1"),
        "Windows 1252": text.replace("Åbo", "Åbo € “x”").encode("cp1252"),
        "carriage returns and line feeds": text.replace("\n", "\r\n").encode(),
        "carriage returns alone": text.replace("\n", "\r").encode(),
        "no line break at the end": text.rstrip("\n").encode(),
        "blank lines at the end": (text + "\n\n\n").encode(),
        "blank lines between": text.replace("\n", "\n\n").encode(),
        "two ends of lines": text.replace("\n", "\r\n", 40).encode(),
        "packed by gzip": gzip.compress(text.encode()),
        "packed by bzip2": bz2.compress(text.encode()),
        "a mark in the middle": text.encode().replace(b"\nB", b"\n\xef\xbb\xbfB"),
    }.items():
        says = "UTF-8" if "UTF-16" in name else "mark|invisible" if name == "a mark in the middle" else ""
        means = dict(columns)
        if name == "Windows 1252":
            means["place"] = [one.replace("Åbo", "Åbo € “x”") for one in means["place"]]
        yield Odd(name, data, means, says)
    yield Odd("a NUL byte", text.encode().replace(b"Malm", b"Ma\0m", 1), None, "NUL|binary|byte|sign|\\\\x00|control")
    yield Odd(
        "bytes of no encoding",
        text.encode().replace("ö".encode(), b"\xff\xfe\x81"),
        None,
        "encod|UTF|byte|decode|read as",
    )


def signs() -> Iterator[Odd]:
    """What stands between cells and around them."""
    columns = base()
    for name, sign in {"semicolons": ";", "tabs": "\t", "bars": "|"}.items():
        yield Odd(f"{name} between cells", plain_file(columns, sign), columns)
    yield Odd("quotes around all", ("\n".join(lines_of(columns, ",", lambda _: True)) + "\n").encode(), columns)
    commas = with_cells(place=[f"{one}, city" for one in columns["place"]])
    yield Odd("commas within quotes", plain_file(commas), commas)
    breaks = with_cells(place=[f"{one}\nsouth" for one in columns["place"]])
    yield Odd("line breaks within quotes", plain_file(breaks), breaks)
    marks = with_cells(place=[f'{one} "old"' for one in columns["place"]])
    yield Odd("quotes within quotes", plain_file(marks), marks)
    apart = "\n".join(line.replace(",", ", ") for line in lines_of(columns))
    yield Odd("blanks behind commas", apart.encode(), columns)
    wide = "\n".join(line.replace(",", " ; ") for line in lines_of(columns))
    yield Odd("blanks around semicolons", wide.encode(), columns)
    trailing = "\n".join(line + "," for line in lines_of(columns))
    yield Odd("a comma at the end of each line", trailing.encode(), columns, "empty|name|blank")
    with_sign = "sep=;\n" + "\n".join(lines_of(columns, ";"))
    yield Odd("a line that names the sign", with_sign.encode(), columns)
    decimal = with_cells(x=[str(one).replace(".", ",") for one in columns["x"]])
    yield Odd("decimal commas between commas", plain_file(decimal), {"x": columns["x"]})
    yield Odd("decimal commas between tabs", plain_file(decimal, "\t"), {"x": columns["x"]})
    bare = "\n".join(lines_of(marks, ",", lambda _: False))
    yield Odd("quotes that open nowhere", bare.encode(), {"place": marks["place"]}, "quote|line")


def lines() -> Iterator[Odd]:
    """Lines that are no records."""
    columns = base()
    head, *rows = lines_of(columns)
    total = f"Total,{sum(columns['x']):.1f},,"
    named = with_cells(name=[f"n{i}" for i in range(N_ROWS)])
    head_of_named, *rows_of_named = lines_of({"name": named["name"], **columns})
    half = N_ROWS // 2
    for name, parts, says in (
        ("a title above the header", ["Patients of 2024", "", head, *rows], "title|line|header|above"),
        ("comments above the header", ["# made by a tool", "# 2024-01-01", head, *rows], "comment|line|header|above"),
        ("the header once more in the middle", [head, *rows[:half], head, *rows[half:]], "header|repeat"),
        ("a row of units", [head, "kg,name,class", *rows], "unit|'class'|line"),
        ("a line of dashes", [head, "-----,-----,-----", *rows], "dash|line|---"),
        ("a line of dashes at the end", [head, *rows, "-----,-----,-----"], "dash|line|---"),
        ("a totals line", [head_of_named, *rows_of_named, total], "total|no class|no record"),
        ("a totals line with a count of classes", [head, *rows, f"{sum(columns['x']):.1f},,{half}"], f"total|'{half}'"),
        ("a footer", [head, *rows, "Source: register of 2024"], "footer|line|cells|source"),
        ("a count of rows at the end", [head, *rows, f"({N_ROWS} rows)"], "footer|line|cells|rows\\)"),
        ("a footer of one cell and commas", [head, *rows, "Source: register of 2024,,"], "footer|line|no class|source"),
        ("a line of means", [head, *rows, f"{sum(columns['x']) / N_ROWS:.1f},mean,"], "mean|total|line|no class"),
    ):  # fmt: skip
        yield Odd(name, ("\n".join(parts) + "\n").encode(), columns, says)
    short, long = list(rows), list(rows)
    short[30], long[30] = "80.1,Bern", "80.1,Bern,yes,more"
    yield Odd("a short line", "\n".join([head, *short]).encode(), None, "line|cells")
    yield Odd("a long line", "\n".join([head, *long]).encode(), None, "line|cells")
    yield Odd(
        "a line without an end of quotes",
        "\n".join([head, *rows[:20], '"80.1,Bern,yes', *rows[20:]]).encode(),
        None,
        "quot|line|cells",
    )
    yield Odd("a header alone", f"{head}\n".encode(), None, "no row|empty|header")
    yield Odd("nothing at all", b"", None, "empty|no ")
    yield Odd("blanks alone", b"   \n \n", None, "empty|no |column")
    yield Odd("no header", "\n".join(rows).encode(), None, "header|names|no column")
    yield Odd("one column", ("y\n" + "\n".join(columns["y"])).encode(), None, "no column|learn")
    yield Odd("one row", "\n".join([head, rows[0]]).encode(), None, "one class|at least")
    yield Odd("a page of the web", b"<!DOCTYPE html><html><table><tr><td>1</td></tr></table>", None, "web page|format")
    yield Odd("a workbook", b"PK\x03\x04" + bytes(100), None, "workbook|format")
    yield Odd("lines of JSON", b'{"x": 1, "y": "no"}\n{"x": 2, "y": "yes"}\n', None, "JSON|format")


def names() -> Iterator[Odd]:
    """Names of columns."""
    columns = base()
    _, *rows = lines_of(columns)
    for name, head, says, means in (
        ("two columns of one name", "x,x,y", "twice|name|same|duplicate", None),
        ("a blank name", "x,,y", "name|blank|empty", None),
        ("names that differ by case", "x,X,y", "", {"x": columns["x"]}),
        ("blanks around names", " x , place , y ", "", {"x": columns["x"]}),
        ("the target twice", "x,y,y", "twice|name|same|duplicate", None),
        ("a name with a line break", '"a\nb",place,y', "", {"a\nb": columns["x"]}),
        ("a name of numbers", "2023,2024,y", "", {"2023": columns["x"]}),
        ("a name with quotes", '"the ""x""",place,y', "", {'the "x"': columns["x"]}),
        ("an invisible letter in the name of the target", "x,place,\u200by", "name|column|y", None),
        ("a mark in quotes", '\ufeff"x","place","y"', "", {"x": columns["x"]}),
    ):
        yield Odd(f"{name}", "\n".join([head, *rows]).encode(), means, says)
    unnamed = [",x,place,y", *(f"{i},{row}" for i, row in enumerate(rows))]
    yield Odd("an index without a name", "\n".join(unnamed).encode(), columns, "name|number")
    long = "z" * 5000
    yield Odd("a very long name", "\n".join([f"{long},place,y", *rows]).encode(), {long: columns["x"]}, "long|name")


def typed() -> Iterator[Odd]:
    """Files that carry types."""
    columns = base()

    def stored(table: pa.Table, write=pa.parquet.write_table) -> bytes:
        out = io.BytesIO()
        write(table, out)
        return out.getvalue()

    plain = pa.table(columns)
    place = plain["place"].combine_chunks()
    x = plain["x"].combine_chunks()
    yield Odd("Parquet", stored(plain), columns, suffix=".parquet")
    yield Odd("Feather", stored(plain, pa.feather.write_feather), columns, suffix=".feather")
    yield Odd("Parquet called CSV", stored(plain), columns)
    yield Odd("CSV called Parquet", plain_file(columns), None, "not what its name says", suffix=".parquet")
    for name, cells in {
        "a dictionary": plain.set_column(1, "place", place.dictionary_encode()),
        "large texts": plain.set_column(1, "place", place.cast(pa.large_string())),
        "decimals": plain.set_column(0, "x", x.cast(pa.decimal128(9, 1))),
        "single precision": plain.set_column(0, "x", pa.array([round(one) for one in columns["x"]]).cast(pa.float32())),
    }.items():
        means = columns if name != "single precision" else columns | {"x": [float(round(one)) for one in columns["x"]]}
        yield Odd(f"Parquet with {name}", stored(cells), means, suffix=".parquet")
    lists = plain.append_column("z", pa.array([[1.0, 2.0]] * N_ROWS))
    yield Odd("Parquet with lists", stored(lists), columns, "list", suffix=".parquet", both=True)
    structs = plain.append_column("z", pa.array([{"a": 1}] * N_ROWS))
    yield Odd("Parquet with structures", stored(structs), columns, "struct", suffix=".parquet", both=True)
    raw = plain.append_column("z", pa.array([b"\x01"] * N_ROWS))
    yield Odd("Parquet with bytes", stored(raw), columns, "binary|bytes", suffix=".parquet", both=True)
    nothing = plain.append_column("z", pa.nulls(N_ROWS))
    yield Odd(
        "Parquet with a column without a type", stored(nothing), columns, "missing|empty", suffix=".parquet", both=True
    )
