"""One table in more than sixty spellings, as spreadsheets and databases write it.

``python tests/tables/spellings.py FOLDER`` writes them all.
"""

import gzip
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

ROWS = 60
NAMES = ("amount", "count", "rate", "day", "size", "place", "y")


@cache
def base() -> dict[str, list[Any]]:
    """The table as plain values; sizes and places are missing in some rows."""
    rng = np.random.default_rng(7)
    amount = np.round(np.exp(rng.normal(6.5, 1.2, ROWS)) * np.where(rng.random(ROWS) < 0.3, -1, 1), 2)
    count = np.round(np.exp(rng.normal(6.5, 1.0, ROWS))).astype(int)
    rate = rng.integers(1, 1000, ROWS) / 1000
    day = [one.item() for one in np.datetime64("2023-01-01") + rng.integers(0, 700, ROWS)]
    size = [None if rng.random() < 0.1 else float(np.round(value, 3)) for value in rng.normal(0.4, 0.2, ROWS)]
    place = [None if rng.random() < 0.1 else str(rng.choice(["Bern", "Zürich", "Åbo"])) for _ in range(ROWS)]
    y = np.where(amount + 300 * rng.normal(size=ROWS) > 200, "yes", "no").tolist()
    return dict(zip(NAMES, (amount.tolist(), count.tolist(), rate.tolist(), day, size, place, y), strict=True))


def typed() -> pa.Table:
    """The table with the types that it means."""
    return pa.table(base())


@dataclass(frozen=True)
class Text:
    """How a text file writes the table."""

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    money: str = "{}"
    negative: str = "-{}"
    positive: str = "{}"
    percent: str = ""
    date: Callable[[Any], str] = str
    missing: str = ""
    quote: bool = False
    encoding: str = "utf-8"
    newline: str = "\n"
    before: str = ""
    cell: str = "{}"
    digits: str = "0123456789"
    end: str = ""
    blank_lines: bool = False

    def number(self, value: float, digits: int | None = None) -> str:
        """A number without its sign."""
        text = f"{abs(value):,.{digits}f}" if digits is not None else f"{abs(value):,}"
        return text.translate(str.maketrans({",": self.thousands, ".": self.decimal}))

    def cells(self) -> list[list[str]]:
        """The rows as texts."""
        rows = []
        for amount, count, rate, day, size, place, y in zip(*base().values(), strict=True):
            money = self.money.format(self.number(amount, 2))
            rows.append(
                [
                    self.negative.format(money) if amount < 0 else self.positive.format(money),
                    self.number(count),
                    self.number(100 * rate, 1) + self.percent if self.percent else self.number(rate, 3),
                    self.date(day),
                    self.missing if size is None else ("-" if size < 0 else "") + self.number(size, 3),
                    self.missing if place is None else place,
                    y,
                ]
            )
        return rows

    def write(self, path: Path) -> None:
        """Write the file."""
        lines = [self.delimiter.join(map(self._cell, row)) + self.end for row in [list(NAMES), *self.cells()]]
        between = self.newline * (2 if self.blank_lines else 1)
        path.write_bytes((self.before + between.join(lines) + self.newline).encode(self.encoding))

    def _cell(self, text: str) -> str:
        text = self.cell.format(text).translate(str.maketrans("0123456789", self.digits))
        needs = self.quote or self.delimiter in text
        return f'"{text}"' if needs else text


@dataclass(frozen=True)
class Spelling:
    """A spelling: how it is written to a folder, and what must come of it."""

    name: str
    suffix: str
    write: Callable[[Path], None]
    must: str = "read"
    options: dict[str, Any] = field(default_factory=dict)


def _us(day: Any) -> str:
    return f"{day.month}/{day.day}/{day.year}"


GERMAN = Text(";", ",", ".")
ENGLISH = Text(",", ".", ",", quote=True)
TEXTS: dict[str, Text] = {
    "plain": Text(),
    "semicolon": Text(";"),
    "tab": Text("\t"),
    "bar": Text("|"),
    "comma decimals": Text(";", ","),
    "comma decimals, tab": Text("\t", ","),
    "comma decimals, bar": Text("|", ","),
    "comma decimals in quotes": Text(",", ","),
    "german": GERMAN,
    "german, all quoted": replace(GERMAN, quote=True),
    "german, tab": replace(GERMAN, delimiter="\t"),
    "german dates": replace(GERMAN, date=lambda day: f"{day:%d.%m.%Y}"),
    "german export": replace(GERMAN, date=lambda day: f"{day:%d.%m.%Y}", percent=" %", encoding="cp1252", money="{} €"),
    "english": ENGLISH,
    "english, semicolon": replace(ENGLISH, delimiter=";", quote=False),
    "english, tab": replace(ENGLISH, delimiter="\t", quote=False),
    "swiss": Text(",", ".", "'"),
    "swiss, typographic": Text(",", ".", "’"),
    "french": Text(";", ",", " "),
    "french, no-break": Text(";", ",", "\u00a0"),
    "french, narrow": Text(";", ",", "\u202f"),
    "french, thin": Text(";", ",", "\u2009"),
    "french, latin": Text(";", ",", "\u00a0", encoding="latin-1"),
    "dollars": replace(ENGLISH, money="${}"),
    "euros behind": replace(GERMAN, money="{} €"),
    "euros before": replace(GERMAN, money="EUR {}"),
    "pounds": Text(",", ".", "", money="£{}"),
    "francs": Text(",", ".", "'", money="CHF {}"),
    "crowns": Text(";", ",", " ", money="{} kr"),
    "braces": Text(negative="({})"),
    "accounting": replace(ENGLISH, money="${}", negative="({})"),
    "minus behind": Text(negative="{}-"),
    "minus behind, german": replace(GERMAN, negative="{}-"),
    "typographic minus": Text(negative="−{}"),
    "plus": Text(positive="+{}"),
    "percent": Text(percent="%"),
    "percent, blank": Text(percent=" %"),
    "percent, no-break": Text(";", ",", percent="\u00a0%"),
    "date 31.01.2023": Text(date=lambda day: f"{day:%d.%m.%Y}"),
    "date 1.2.2023": Text(date=lambda day: f"{day.day}.{day.month}.{day.year}"),
    "date 01/31/2023": Text(date=lambda day: f"{day:%m/%d/%Y}"),
    "date 1/31/2023": Text(date=_us),
    "date 31/01/2023": Text(date=lambda day: f"{day:%d/%m/%Y}"),
    "date 31-01-2023": Text(date=lambda day: f"{day:%d-%m-%Y}"),
    "date 2023/01/31": Text(date=lambda day: f"{day:%Y/%m/%d}"),
    "date 2023.01.31": Text(date=lambda day: f"{day:%Y.%m.%d}"),
    "date 31.01.23": Text(date=lambda day: f"{day:%d.%m.%y}"),
    "date 1/31/23": Text(date=lambda day: f"{day:%m/%d/%y}"),
    "date with a zone by name": Text(date=lambda day: f"{day} 00:00 UTC"),
    "kilograms": Text(money="{} kg"),
    "kilograms, german": replace(GERMAN, money="{}kg"),
    "Arabic-Indic digits": Text(digits="٠١٢٣٤٥٦٧٨٩"),
    "Devanagari digits": Text(digits="०१२३४५६७८९"),
    "full-width digits": Text(digits="０１２３４５６７８９"),
    "date 20230131": Text(date=lambda day: f"{day:%Y%m%d}"),
    "date 31-Jan-2023": Text(date=lambda day: f"{day:%d-%b-%Y}"),
    "date 31 January 2023": Text(date=lambda day: f"{day:%d %B %Y}"),
    "date Jan 31, 2023": Text(date=lambda day: f"{day:%b %d, %Y}"),
    "date with 12 AM": Text(date=lambda day: f"{_us(day)} 12:00 AM"),
    "date with midnight": Text(date=lambda day: f"{day:%d.%m.%Y} 00:00:00"),
    "date with T": Text(date=lambda day: f"{day}T00:00:00"),
    "date with Z": Text(date=lambda day: f"{day}T00:00:00Z"),
    "byte order mark": Text(encoding="utf-8-sig"),
    "latin": Text(encoding="latin-1"),
    "sep line": Text(";", ",", before="sep=;\n"),
    "sep line, windows": Text("|", before='"sep=|"\r\n', newline="\r\n"),
    "windows lines": Text(newline="\r\n"),
    "old mac lines": Text(newline="\r"),
    "blank lines": Text(blank_lines=True),
    "blank lines first": Text(before="\n\n"),
    "separators behind": Text(";", end=";;"),
    "all quoted": Text(quote=True),
    "blanks around": Text(";", cell=" {} "),
    "missing NA": Text(missing="NA"),
    "missing N/A": Text(missing="N/A"),
    "missing #N/A": Text(missing="#N/A"),
    "missing null": Text(missing="null"),
    "missing -": Text(missing="-"),
    "missing ?": Text(missing="?"),
    "missing n.a.": Text(missing="n.a."),
    "missing <NA>": Text(missing="<NA>"),
}


def _mixed(path: Path) -> None:
    """Amounts half in one spelling and half in another."""
    one, other = ENGLISH.cells(), replace(GERMAN, delimiter=",").cells()
    rows = [(one if number % 2 else other)[number] for number in range(ROWS)]
    plain = Text().cells()
    lines = [",".join(NAMES)] + [",".join([f'"{a[0]}"', *b[1:]]) for a, b in zip(rows, plain, strict=True)]
    path.write_text("\n".join(lines))


def _two_currencies(path: Path) -> None:
    rows = [[f"{'$' if number % 2 else '€'}{row[0]}", *row[1:]] for number, row in enumerate(Text().cells())]
    path.write_text("\n".join(",".join(row) for row in [list(NAMES), *rows]))


def _records() -> list[dict[str, Any]]:
    return [dict(zip(NAMES, row, strict=True)) for row in zip(*base().values(), strict=True)]


def _texts(text: Text) -> pa.Table:
    columns = zip(*text.cells(), strict=True)
    return pa.table({name: [cell or None for cell in cells] for name, cells in zip(NAMES, columns, strict=True)})


def _indented() -> str:
    return json.dumps({"rows": _records()}, default=str, indent=1)


_POINT, _COMMA = {"decimal": "."}, {"decimal": ","}
_PERCENT, _OLD_WORKBOOK = replace(GERMAN, percent="%"), b"\xd0\xcf\x11\xe0" + bytes(500)
OTHERS: list[Spelling] = [
    Spelling("two spellings in a column", ".csv", _mixed, "note"),
    Spelling("two currencies in a column", ".csv", _two_currencies, "note"),
    Spelling("missing with a word", ".csv", Text(missing="unknown").write, "note"),
    Spelling("separators behind the rows alone", ".csv", lambda path: path.write_text(_ragged()), "refuse"),
    Spelling("thousands alone", ".csv", lambda path: path.write_text(_thousands_alone()), "refuse"),
    Spelling("thousands alone, said", ".csv", lambda path: path.write_text(_thousands_alone()), "note", _COMMA),
    Spelling("packed", ".csv.gz", lambda path: path.write_bytes(gzip.compress(_bytes_of(GERMAN, path)))),
    Spelling("UTF-16", ".csv", Text("\t", encoding="utf-16").write, "refuse"),
    Spelling("UTF-16 without a mark", ".csv", Text(encoding="utf-16-le").write, "refuse"),
    Spelling("JSON", ".json", lambda path: path.write_text(json.dumps(_records(), default=str)), "refuse"),
    Spelling("JSON, indented", ".json", lambda path: path.write_text(_indented()), "refuse"),
    Spelling("old workbook", ".xls", lambda path: path.write_bytes(_OLD_WORKBOOK), "refuse"),
    Spelling("first feather", ".feather", lambda path: path.write_bytes(b"FEA1" + bytes(60)), "refuse"),
    Spelling("web page", ".xls", lambda path: path.write_text("<html><table><td>1</td></table></html>"), "refuse"),
    Spelling("german in a comma file", ".csv", replace(GERMAN, delimiter=",").write, "read", _COMMA),
    Spelling("parquet", ".parquet", lambda path: pq.write_table(typed(), path)),
    Spelling("parquet of texts", ".parquet", lambda path: pq.write_table(_texts(Text()), path)),
    Spelling("parquet of german texts", ".parquet", lambda to: pq.write_table(_texts(_PERCENT), to), "read", _COMMA),
    Spelling("feather of texts", ".feather", lambda to: feather.write_feather(_texts(ENGLISH), to), "read", _POINT),
]  # fmt: skip


def _ragged() -> str:
    rows = Text(";").cells()
    return "\n".join([";".join(NAMES), *(";".join(row) + ";" for row in rows)])


def _thousands_alone() -> str:
    """Whole numbers with points between thousands, where nothing else has a decimal sign."""
    rows = [[f"{count:,}".replace(",", "."), y] for count, y in zip(base()["count"], base()["y"], strict=True)]
    return "\n".join(";".join(row) for row in [["count", "y"], *rows])


def _bytes_of(text: Text, path: Path) -> bytes:
    text.write(path)
    return path.read_bytes()


def spellings() -> list[Spelling]:
    """All spellings."""
    return [Spelling(name, ".csv", text.write) for name, text in TEXTS.items()] + OTHERS


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for number, one in enumerate(spellings()):
        one.write(folder / f"{number:02d}{one.suffix}")
        print(f"{number:02d}{one.suffix}", one.name)
