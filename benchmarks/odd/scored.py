"""Odd tables for a model that was fitted to a plain one: decisions stay the same, or a sentence names the trouble."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from benchmarks.odd.base import Columns, base, is_yes, lines_of, plain_file

NAMES = ("x", "place", "flag", "day", "y")


class Scored(NamedTuple):
    """A file to score. Its rows are those of the plain table; `says` where that may be refused or named instead."""

    name: str
    data: bytes
    says: str = ""
    is_same: bool = True


def plain() -> Columns:
    """The table of the fit: a number, a category, an answer and a day."""
    columns, start = base(), datetime(2023, 1, 1)
    truth = is_yes()
    flag = [("no", "yes")[one ^ (i % 4 == 0)] for i, one in enumerate(truth)]
    day = [f"{start + timedelta(days=5 * i % 400 + 60 * one):%d.%m.%Y}" for i, one in enumerate(truth)]
    found = {"x": columns["x"], "place": columns["place"], "flag": flag, "day": day, "y": columns["y"]}
    assert tuple(found) == NAMES
    return found


def scored() -> Iterator[Scored]:
    """Files that mean the plain table, or something else."""
    columns = plain()
    x, place, flag, day = (columns[name] for name in NAMES[:4])

    def other(name: str, says: str = "", *, is_same: bool = True, sign: str = ",", **changed: list[Any]) -> Scored:
        return Scored(name, plain_file({**columns, **changed}, sign), says, is_same)

    def without(*names: str) -> Columns:
        return {name: cells for name, cells in columns.items() if name not in names}

    iso = [f"{datetime.strptime(one, '%d.%m.%Y'):%Y-%m-%d}" for one in day]
    yield other("as it was")
    yield Scored("columns in another order", plain_file({name: columns[name] for name in reversed(NAMES)}))
    yield other("more columns", extra=list(range(len(x))))
    yield Scored("no target", plain_file(without("y")))
    yield other("semicolons instead", sign=";")
    yield other("tabs instead", sign="\t")
    yield Scored("a mark of UTF-8", b"\xef\xbb\xbf" + plain_file(columns))
    yield Scored("quotes around everything", "\n".join(lines_of(columns, ",", lambda _: True)).encode())
    yield Scored("carriage returns", plain_file(columns).replace(b"\n", b"\r\n"))
    yield other(
        "decimal commas instead", "comma|spell|number|decimal", sign=";", x=[str(one).replace(".", ",") for one in x]
    )
    yield other("zeros at the end", x=[f"{one:.3f}" for one in x])
    yield other("signs before", x=[f"{one:+.1f}" for one in x])
    yield other("powers of ten instead", x=[f"{one:.2e}" for one in x])
    yield other("blanks around cells", x=[f" {one} " for one in x], place=[f" {one}" for one in place])
    yield other("hard blanks around cells", "place", place=[f"{one}\u00a0" for one in place])
    yield other("days of ISO instead", day=iso)
    yield other("days without zeros", day=[one.lstrip("0").replace(".0", ".") for one in day])
    month_first = [f"{datetime.strptime(one, '%d.%m.%Y'):%m/%d/%Y}" for one in day]
    yield other("months first instead", "'day'", is_same=False, day=month_first)
    swapped = [f"{datetime.strptime(one, '%d.%m.%Y'):%m.%d.%Y}" for one in day]
    yield other("days and months the other way round", "'day'", is_same=False, day=swapped)
    yield other("years of two digits instead", "'day'", day=[one[:6] + one[8:] for one in day])
    yield other("answers as truth values", "'flag'", flag=["true" if one == "yes" else "false" for one in flag])
    yield other("answers as numbers", "'flag'", flag=[int(one == "yes") for one in flag])
    yield other("answers in capitals", "'flag'", flag=[one.upper() for one in flag])
    yield other("places in capitals", "'place'", place=[one.upper() for one in place])
    yield other("a new place", "'place'", is_same=False, place=["Wien", *place[1:]])
    yield other(
        "missing places", "'place'", is_same=False, place=["NA" if i % 5 == 0 else one for i, one in enumerate(place)]
    )
    yield other("invisible letters in places", "'place'", place=[f"{one}\u200b" for one in place])
    yield other("words for numbers", "'x'", is_same=False, x=["much" if i % 5 == 0 else one for i, one in enumerate(x)])
    yield other("units behind numbers", "'x'", x=[f"{one} kg" for one in x])
    yield other("commas between thousands", "'x'", is_same=False, x=[f"{1000 * one:,.1f}" for one in x])
    yield other("numbers as per cent", "'x'", is_same=False, x=[f"{one}%" for one in x])
    yield other(
        "full-width digits",
        "'x'",
        x=[str(one).translate(str.maketrans("0123456789", "０１２３４５６７８９")) for one in x],
    )
    far = "'x' lies outside of its training range.*in 100 % of the rows"
    yield other("a hundred times as much", far, is_same=False, x=[round(100 * one, 1) for one in x])
    yield other("pounds for kilograms", far, is_same=False, x=[round(2.2046 * one, 1) for one in x])
    yield other("hexadecimal numbers instead", "'x'", is_same=False, x=[f"0x{int(one):X}" for one in x])
    yield other(
        "errors of spreadsheets", "'x'", is_same=False, x=["#REF!" if i % 5 == 0 else one for i, one in enumerate(x)]
    )
    yield other("missing numbers", "'x'", is_same=False, x=["" if i % 5 == 0 else one for i, one in enumerate(x)])
    yield other("no number at all", "'x'", is_same=False, x=[""] * len(x))
    yield other("infinite numbers", "'x'", is_same=False, x=["inf", *x[1:]])
    yield Scored("no column of numbers", plain_file(without("x")), "missing: 'x'", is_same=False)
    yield Scored(
        "a column of another name",
        plain_file({("x " if name == "x" else name): cells for name, cells in columns.items()}),
    )
    renamed = {("Place" if name == "place" else name): cells for name, cells in columns.items()}
    yield Scored("a name in capitals", plain_file(renamed), "did you mean 'Place'")
    yield Scored(
        "two columns of one name", plain_file(columns).replace(b"flag", b"x", 1), "more than once", is_same=False
    )
    yield Scored(
        "two columns exchanged", plain_file(columns).replace(b"x,place", b"place,x", 1), "'x'|'place'", is_same=False
    )
    yield Scored("a header alone", plain_file(columns).split(b"\n")[0] + b"\n", r"no rows|\b0 rows", is_same=False)
    yield Scored("nothing", b"", "empty", is_same=False)
    head, *rows = plain_file(columns).decode().splitlines()
    yield Scored(
        "a short line", "\n".join([head, *rows[:9], "1,Bern", *rows[9:]]).encode(), "line|cells", is_same=False
    )
    yield Scored(
        "a header in the middle", "\n".join([head, *rows[:9], head, *rows[9:]]).encode(), "'x'|header", is_same=False
    )
    yield Scored("a totals line", "\n".join([head, *rows, "7654.3,,,,"]).encode(), "total|missing", is_same=False)
    yield Scored("no header", "\n".join(rows).encode(), "missing", is_same=False)
