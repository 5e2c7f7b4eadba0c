"""Odd dates, truth values, levels, and columns with nothing to learn from."""

import unicodedata
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np

from benchmarks.odd.base import N_ROWS, Odd, base, column, draws, is_yes, only_said, plain_file, with_cells

_MONTHS = "January February March April May June July August September October November December"
_GERMAN = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"


def _days() -> list[datetime]:
    rng = draws(2)
    return [
        datetime(2023, 1, 1) + timedelta(days=int(one) + 120 * yes)
        for one, yes in zip(rng.integers(0, 500, N_ROWS), is_yes(), strict=True)
    ]


def _moments() -> list[datetime]:
    rng = draws(3)
    return [day + timedelta(minutes=int(one)) for day, one in zip(_days(), rng.integers(0, 1440, N_ROWS), strict=True)]


def dates() -> Iterator[Odd]:
    """Dates and times as people write them."""
    days, moments = _days(), _moments()
    for name, write in {
        "days with points": lambda one: f"{one:%d.%m.%Y}",
        "days with slashes, the month first": lambda one: f"{one.month}/{one.day}/{one.year}",
        "days with hyphens, the day first": lambda one: f"{one:%d-%m-%Y}",
        "days as eight digits": lambda one: f"{one:%Y%m%d}",
        "years first and slashes": lambda one: f"{one:%Y/%m/%d}",
        "months by name": lambda one: f"{one.day} {_MONTHS.split()[one.month - 1]} {one.year}",
        "months by short name": lambda one: f"{_MONTHS.split()[one.month - 1][:3]} {one.day}, {one.year}",
        "German months": lambda one: f"{one.day}. {_GERMAN.split()[one.month - 1]} {one.year}",
        "days of ISO": lambda one: f"{one:%Y-%m-%d}",
        "days in quotes of spreadsheets": lambda one: f"'{one:%Y-%m-%d}",
    }.items():
        yield column(name, days, write, "date|quote|text" if "spreadsheets" in name else "")
    for name, write in {
        "moments of ISO": lambda one: f"{one:%Y-%m-%dT%H:%M:%S}",
        "moments in universal time": lambda one: f"{one:%Y-%m-%dT%H:%M:%S}Z",
        "moments with an offset": lambda one: f"{one + timedelta(hours=2):%Y-%m-%dT%H:%M:%S}+02:00",
        "moments and a blank": lambda one: f"{one:%Y-%m-%d %H:%M}",
        "moments of the afternoon": lambda one: f"{one:%m/%d/%Y %I:%M %p}",
    }.items():
        yield column(name, moments, write)
    zones = [f"{one:%Y-%m-%d %H:%M} {('CET', 'CEST')[one.month in range(4, 10)]}" for one in moments]
    yield only_said("names of time zones", zones, "zone|CET|date")
    yield only_said(
        "two zones",
        [f"{one:%Y-%m-%d %H:%M} {('PST', 'UTC')[i % 2]}" for i, one in enumerate(moments)],
        "zone|PST|UTC|date",
    )
    yield only_said("years of two digits", [f"{one:%d.%m.%y}" for one in days], "two digits|year")
    yield only_said(
        "days or months",
        [f"{1 + i % 12:02d}/{1 + i % 11:02d}/2023" for i in range(N_ROWS)],
        "month|day-first|date-order",
    )
    bad = [f"{one:%Y-%m-%d}" for one in days]
    for i in (5, 50):
        bad[i] = "2023-02-30"
    kept: list = [None if i in (5, 50) else one for i, one in enumerate(days)]
    yield column("impossible dates", kept, bad, "date|2023-02-30", both=True)
    spelt = [f"{one:%d.%m.%Y}" for one in days]
    spelt[7] = "31.02.2023"
    yield column(
        "an impossible date with points",
        [None if i == 7 else one for i, one in enumerate(days)],
        spelt,
        "date|31.02.2023",
        both=True,
    )
    for far in ("9999-12-31", "1900-01-01"):
        held = [f"{one:%Y-%m-%d}" if i % 8 else far for i, one in enumerate(days)]
        yield Odd(f"{far} for an open end", plain_file(with_cells(x=held)), None, far)
    clock = [f"{one:%H:%M}" for one in moments]
    first = [datetime(1970, 1, 1, one.hour, one.minute) for one in moments]
    yield column("times of day", first, clock)
    ordered = Odd("times of day are no order of rows", plain_file(with_cells(x=clock)), None, "^(?!.*--time-column).*$")
    yield ordered
    yield only_said("months of years", [f"{one:%Y-%m}" for one in days], "month|date|text|level|different|categor")
    quarters = [f"{one.year}Q{1 + (one.month - 1) // 3}" for one in days]
    yield Odd("quarters", plain_file(with_cells(x=quarters)), {"x": quarters})
    names = [f"{one:%A}" for one in days]
    yield Odd("days of the week", plain_file(with_cells(x=names)), {"x": names})
    serial = [float((one - datetime(1899, 12, 30)).days) for one in days]
    yield column("days as spreadsheets count them", serial, lambda one: f"{one:.0f}")
    epoch = [float((one - datetime(1970, 1, 1)).total_seconds()) for one in moments]
    yield column("seconds since 1970", epoch, lambda one: f"{one:.0f}")
    mixed = [f"{one:%Y-%m-%d}" if i % 2 else f"{one:%d.%m.%Y}" for i, one in enumerate(days)]
    yield column("two ways to write days", days, mixed, "alike|date|spel")
    yield only_said(
        "days first and months first",
        [f"{one:%d/%m/%Y}" if i % 2 else f"{one:%m/%d/%Y}" for i, one in enumerate(days)],
        "day|month",
    )
    yield only_said(
        "days and texts",
        [f"{one:%Y-%m-%d}" if i % 3 else "soon" for i, one in enumerate(days)],
        "date|different|text",
    )


def truths() -> Iterator[Odd]:
    """Two answers, in many words."""
    for no, yes in (
        ("no", "yes"),
        ("N", "Y"),
        ("f", "t"),
        ("nein", "ja"),
        ("off", "on"),
        ("non", "oui"),
        ("✗", "✓"),
        ("No", "Yes"),
    ):
        answers = [(no, yes)[one ^ (i % 5 == 0)] for i, one in enumerate(is_yes())]
        yield Odd(f"{no} and {yes}", plain_file(with_cells(x=answers)), {"x": answers})
    for no, yes in (("false", "true"), ("FALSE", "TRUE"), ("False", "True")):
        answers = [one ^ (i % 5 == 0) for i, one in enumerate(is_yes())]
        yield Odd(f"{no} and {yes}", plain_file(with_cells(x=[(no, yes)[one] for one in answers])), {"x": answers})
    several = [("no", "yes", "No", "YES", "n", "y")[(2 * (i % 3) + one)] for i, one in enumerate(is_yes())]
    yield only_said("one answer in several words", several, "case|level|truth|differ")
    mixed = [("0", "true", "false", "1")[2 * (i % 2) + one] for i, one in enumerate(is_yes())]
    yield Odd("truth values and numbers", plain_file(with_cells(x=mixed)), {"x": is_yes()})


def levels() -> Iterator[Odd]:
    """Levels that look the same, words for missing cells among them, and sentinels."""
    place = base()["place"]
    blank: list = [None if i % 7 == 0 else one for i, one in enumerate(place)]
    for word in ("NA", "null", "None", "-", "?", "n/a", " ", "NaN", "#N/A"):
        yield Odd(
            f"levels and {word.strip() or 'a blank'}",
            plain_file(with_cells(place=[word if one is None else one for one in blank])),
            {"place": blank},
        )
    for word in ("missing", "unknown", "not available"):
        named = [word if one is None else one for one in blank]
        yield Odd(f"levels and {word}", plain_file(with_cells(place=named)), {"place": named})
    drinks = [("None", "Beer", "Wine")[(i + one) % 3] for i, one in enumerate(is_yes())]
    yield Odd("None as a level of many rows", plain_file(with_cells(place=drinks)), {"place": drinks}, "None")
    country = [("NA", "DE", "FR")[(i + one) % 3] for i, one in enumerate(is_yes())]
    yield Odd("NA as a level of many rows", plain_file(with_cells(place=country)), {"place": country}, "\\bNA\\b")
    for name, change in {
        "invisible letters in levels": lambda one: one[:2] + "\u200b" + one[2:],
        "hard blanks in levels": lambda one: one + "\u00a0",
        "marks in levels": lambda one: "\ufeff" + one,
        "look-alike letters in levels": lambda one: one.replace("e", "е").replace("o", "о"),
        "a point behind levels": lambda one: one + ".",
        "two blanks in levels": lambda one: one[:2] + "  " + one[2:],
        "letters of full width in levels": lambda one: "".join(chr(ord(letter) + 0xFEE0) for letter in one),
    }.items():
        texts = [change(one) if i % 3 == 0 else one for i, one in enumerate(place)]
        if name == "two blanks in levels":
            texts = [one[:2] + " " + one[2:] if "  " not in one else one for one in texts]
        yield Odd(
            name,
            plain_file(with_cells(place=texts)),
            {"place": place},
            "look|alike|invisible|same|differ",
        )
    accents = ["Zürich" if one == "Bern" else one for one in place]
    texts = [unicodedata.normalize(("NFC", "NFD")[i % 2], one) for i, one in enumerate(accents)]
    yield Odd("accents in two ways", plain_file(with_cells(place=texts)), {"place": accents}, "look|alike|same|differ")
    yield Odd(
        "levels that differ by case",
        plain_file(with_cells(place=[one.upper() if i % 3 == 0 else one for i, one in enumerate(place)])),
        None,
        "case",
    )
    yield Odd(
        "levels with blanks around",
        plain_file(with_cells(place=[f" {one} " if i % 3 == 0 else one for i, one in enumerate(place)])),
        {"place": place},
    )
    numbers = [("1", "1.0", "1.00")[i % 3] if one else "2" for i, one in enumerate(is_yes())]
    yield column("one number in three ways", [1.0 if one else 2.0 for one in is_yes()], numbers, "target|class")
    long = [("a" * 3000, "b" * 3000)[one ^ (i % 4 == 0)] for i, one in enumerate(is_yes())]
    yield Odd("very long levels", plain_file(with_cells(place=long)), {"place": long})
    emoji = [("🙂", "🙁", "👩‍🔬")[(i + one) % 3] for i, one in enumerate(is_yes())]
    yield Odd("levels of pictures", plain_file(with_cells(place=emoji)), {"place": emoji})
    formula = [("=1+1", "@cmd", "-x")[(i + one) % 3] for i, one in enumerate(is_yes())]
    yield Odd("levels that spreadsheets run", plain_file(with_cells(place=formula)), {"place": formula})


def useless() -> Iterator[Odd]:
    """Columns with nothing to learn from, and identifiers."""
    rng = draws(4)
    many = np.array(["alpha", "beta", "gamma", "delta"])
    for name, cells, says in (
        ("an empty column", [""] * N_ROWS, "missing"),
        ("a constant column", ["5"] * N_ROWS, "every cell is"),
        ("a constant text", ["same"] * N_ROWS, "every cell is"),
        ("numbers of rows", [str(i + 1) for i in range(N_ROWS)], "number"),
        ("numbers of rows backward", [str(N_ROWS - i) for i in range(N_ROWS)], "number"),
        ("identifiers", [str(uuid.UUID(int=int(one))) for one in rng.integers(1, 2**60, N_ROWS)], "identifier"),
        ("names of persons", [f"Person {one}" for one in rng.permutation(N_ROWS)], "identifier"),
        ("addresses of mail", [f"p{one}@example.org" for one in rng.permutation(N_ROWS)], "identifier"),
        ("almost all missing", [f"{one}" if one < 3 else "" for one in range(N_ROWS)], "missing"),
    ):  # fmt: skip
        yield Odd(name, plain_file(with_cells(z=cells)), {"x": base()["x"]}, says, both=True)
    phrases = [" ".join(rng.choice(many, 5)) + f" {'good' if one else 'bad'}" for one in is_yes()]
    yield Odd("free text", plain_file(with_cells(z=phrases)), None, "text|different|name")
    nearly = [" ".join(rng.choice(many, 12)) for _ in range(N_ROWS)]
    phrases = [nearly[i // 2] for i in range(N_ROWS)]
    yield Odd("free text of few phrases", plain_file(with_cells(z=phrases)), {"z": phrases})
    gaps: list = [None if i % 4 == 0 else 5.0 for i in range(N_ROWS)]
    yield Odd("a constant column with gaps", plain_file(with_cells(z=gaps)), {"z": gaps}, "every cell")
    steps = [100.0 * i for i in range(N_ROWS)]
    yield Odd("numbers of rows by hundreds", plain_file(with_cells(z=steps)), {"z": steps}, "numbers the rows")
    text = [f"{'€$'[i % 2]}{one}" for i, one in enumerate(base()["x"])]
    yield Odd("alternating signs are no names of rows", plain_file(with_cells(z=text)), None, "^(?!.*own text).*$")
    plates = [f"{'ABCDEFGH'[i % 8]}-{one}" for i, one in enumerate(rng.integers(0, 90, N_ROWS))]
    yield Odd("many levels", plain_file(with_cells(z=plates)), {"x": base()["x"]})
