"""Odd numbers: signs, units, scripts, sentinels, and what only looks like a number."""

from collections.abc import Iterator

import numpy as np

from benchmarks.odd.base import N_ROWS, Odd, base, column, draws, is_yes, only_said, plain_file, with_cells

_FULL_WIDTH = str.maketrans("0123456789.", "０１２３４５６７８９．")
_ARABIC = str.maketrans("0123456789.", "٠١٢٣٤٥٦٧٨٩٫")
_DEVANAGARI = str.maketrans("0123456789", "०१२३४५६७८९")


def _x() -> list[float]:
    return base()["x"]


def _large() -> list[float]:
    """Amounts of different sizes with two decimals, some of them negative."""
    rng = draws(1)
    sizes = np.round(np.exp(rng.normal(7, 1.2, N_ROWS)) + 900 * np.array(is_yes()), 2)
    return np.where(rng.random(N_ROWS) < 0.25, -sizes, sizes).tolist()


def _grouped(value: float, thousands: str, point: str) -> str:
    return f"{value:,.2f}".translate(str.maketrans({",": thousands, ".": point}))


def _signed(value: float, form: str, text: str) -> str:
    return form.format(text) if value < 0 else text


def spelt() -> Iterator[Odd]:
    """Signs of decimals and thousands, of what is negative, percent and money."""
    large, shares = _large(), [round(one / 100, 3) for one in _x()]
    for name, thousands, point in (
        ("commas between thousands", ",", "."),
        ("points between thousands", ".", ","),
        ("blanks between thousands", " ", ","),
        ("hard blanks between thousands", "\u00a0", ","),
        ("narrow hard blanks between thousands", "\u202f", ","),
        ("apostrophes between thousands", "'", "."),
        ("curly apostrophes between thousands", "\u2019", "."),
        ("a decimal comma", "", ","),
    ):  # fmt: skip
        yield column(name, large, lambda one, t=thousands, p=point: _grouped(one, t, p))
    plain = "{:.2f}".format
    for name, write in {
        "negative in parentheses": lambda one: _signed(one, "({})", plain(abs(one))),
        "a minus behind": lambda one: _signed(one, "{}-", plain(abs(one))),
        "a minus of typesetters": lambda one: _signed(one, "\u2212{}", plain(abs(one))),
        "a minus and a blank": lambda one: _signed(one, "- {}", plain(abs(one))),
        "a plus before": lambda one: f"{one:+.2f}",
        "dollars before": lambda one: ("-$" if one < 0 else "$") + _grouped(abs(one), ",", "."),
        "euros behind": lambda one: _grouped(one, ".", ",") + " €",
        "francs before": lambda one: "CHF " + _grouped(one, "'", "."),
        "pounds in parentheses": lambda one: _signed(one, "(£{})", plain(abs(one))) if one < 0 else "£" + plain(one),
        "rupees": lambda one: "₹" + plain(one),
        "powers of ten": lambda one: f"{one:.6e}",
        "powers of ten and a comma": lambda one: f"{one:.6e}".replace(".", ","),
        "blanks around": lambda one: f"  {one:.2f} ",
        "hard blanks around": lambda one: f"\u00a0{one:.2f}\u00a0",
        "an apostrophe of spreadsheets before": lambda one: "'" + plain(one),
        "a formula of spreadsheets": lambda one: f'="{one:.2f}"',
    }.items():  # fmt: skip
        yield column(name, large, write, "number|text|quote" if "of spreadsheets" in name else "")
    yield column("per cent", shares, lambda one: f"{100 * one:.1f}%")
    yield column("per cent and a blank", shares, lambda one: f"{100 * one:.1f} %")
    yield column("per cent and a comma", shares, lambda one: f"{100 * one:.1f} %".replace(".", ","))
    yield column("per mille", [one / 1000 for one in _x()], lambda one: f"{1000 * one:.1f} ‰", "‰|unit|number")
    whole = [float(round(one)) for one in _x()]
    yield column("whole numbers with a point", whole, lambda one: f"{one:.0f}.")
    yield column("fractions without a zero", [round(one / 1000, 4) for one in _x()], lambda one: f"{one:.4f}"[1:])
    yield column("thousands as in India", [one * 1000 for one in large], _indian, "number|spelt|alike")
    yield only_said(
        "points or thousands", [f"{1 + i % 9}.{100 + i * 7:03d}" for i in range(N_ROWS)], "thousands|decimal|point"
    )
    yield only_said(
        "commas and points",
        [f"{one}".replace(".", ",.  "[i % 2]) for i, one in enumerate(_x())],
        "spelt|alike|comma|decimal|text",
    )


def _indian(value: float) -> str:
    whole, cents = f"{abs(value):.2f}".split(".")
    head, tail = whole[:-3], whole[-3:]
    parts = []
    while len(head) > 2:
        head, last = head[:-2], head[-2:]
        parts.insert(0, last)
    text = ",".join([one for one in [head, *parts, tail] if one])
    return ("-" if value < 0 else "") + f"{text}.{cents}"


def units() -> Iterator[Odd]:
    """Units, scripts and durations."""
    x = _x()
    yield column("kilograms", x, lambda one: f"{one} kg")
    yield column("kilograms without a blank", x, lambda one: f"{one}kg")
    yield column("centimeters", x, lambda one: f"{one} cm")
    yield column("degrees", x, lambda one: f"{one}°C", "°|unit|number")
    yield column("minutes", x, lambda one: f"{one} min")
    yield column("per hour", x, lambda one: f"{one} km/h", "unit|km/h|number")
    yield column("a unit in most cells", x, [f"{one} kg" if i % 10 else f"{one}" for i, one in enumerate(x)], "unit|kg")
    mixed = [f"{one} kg" if i % 2 else f"{round(one * 2.2046, 1)} lb" for i, one in enumerate(x)]
    yield only_said("kilograms and pounds", mixed, "(kg.*lb)|(lb.*kg)|two units")
    yield only_said(
        "grams and kilograms",
        [f"{one} kg" if i % 2 else f"{1000 * one:.0f} g" for i, one in enumerate(x)],
        "kg|two units",
    )
    money = [f"{'€$'[i % 2]}{one}" for i, one in enumerate(x)]
    yield only_said("euros and dollars", money, "(€.*\\$)|(\\$.*€)|two units|currenc")
    inches = [float(round(one)) for one in x]
    yield column("feet and inches", inches, lambda one: f"{one // 12:.0f}'{one % 12:.0f}\"", "feet|inch|'")
    yield column(
        "feet and inches in words", inches, lambda one: f"{one // 12:.0f} ft {one % 12:.0f} in", "feet|ft|unit"
    )
    yield column("digits of full width", x, lambda one: str(one).translate(_FULL_WIDTH))
    yield column("Arabic-Indic digits", x, lambda one: str(one).translate(_ARABIC))
    yield column(
        "Devanagari digits",
        [float(round(one)) for one in x],
        lambda one: f"{one:.0f}".translate(_DEVANAGARI),
        "",
    )
    seconds = [float(round(60 * one)) for one in x]
    said = "duration|time|hour|number"
    yield only_said(
        "durations", [f"{one // 3600:.0f}:{one // 60 % 60:02.0f}:{one % 60:02.0f}" for one in seconds], said
    )
    yield only_said("durations of minutes", [f"{one // 60:.0f}:{one % 60:02.0f}" for one in seconds], said)
    yield only_said(
        "durations in words", [f"{one // 3600:.0f}h {one // 60 % 60:.0f}m" for one in seconds], said + "|unit"
    )
    yield only_said("durations of ISO", [f"PT{one // 60:.0f}M" for one in seconds], said + "|text|categor|different")
    yield only_said("fractions", [f"{round(one)}/7" for one in x], "number|fraction|text|date|different")
    ranges = [f"{10 * (one // 10):.0f}-{10 * (one // 10) + 9:.0f}" for one in x]
    yield Odd("ranges", plain_file(with_cells(x=ranges)), {"x": ranges}, "range|number|date")
    yield only_said("about", [f"~{one}" for one in x], "~|number|text|name")
    below = [f"<{one:.0f}" if one < 66 else str(one) for one in x]
    yield only_said("below a limit", below, "<|number|not")
    yield only_said("plus or minus", [f"{one} ± 0.5" for one in x], "±|number|text|name")
    yield only_said(
        "numbers with letters of a lab",
        [f"{one}{'HL '[i % 3]}".strip() for i, one in enumerate(x)],
        "number|unit|text|name",
    )


def sizes() -> Iterator[Odd]:
    """Numbers that are large, infinite, exact, coded, or none."""
    x = _x()
    infinite = [str(one) for one in x]
    infinite[3], infinite[40] = "inf", "-Infinity"
    yield only_said("infinite numbers", infinite, "infinite|too large|1e150|inf")
    huge = [f"{one}e200" if i % 9 == 0 else str(one) for i, one in enumerate(x)]
    yield only_said("numbers beyond 1e150", huge, "1e150|too large|huge|beyond")
    exact = [str(2**53 + 2 * i + int(one)) for i, one in enumerate(is_yes())]
    yield only_said("whole numbers beyond 2^53", exact, "2\\^53|exact|name|identif|number")
    yield column(
        "not numbers among numbers",
        [None if i % 9 == 0 else one for i, one in enumerate(x)],
        lambda one: str(one),
        seen=None,
    )
    nan = [None if i % 9 == 0 else one for i, one in enumerate(x)]
    for word in ("NaN", "NA", "N/A", "null", "NULL", "None", "-", "?", "#N/A", "n.a.", "<NA>"):
        texts = [word if one is None else str(one) for one in nan]
        yield column(f"numbers and {word}", nan, texts)
    for word in ("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"):
        texts = [word if one is None else str(one) for one in nan]
        yield column(f"numbers and {word}", nan, texts)
    for word in ("missing", "unknown", "not measured", "keine Angabe", ".", "--", "n/d", "tbd", "(blank)"):
        rare = [None if i % 12 == 0 else one for i, one in enumerate(x)]
        texts = [word if one is None else str(one) for one in rare]
        yield column(f"numbers and {word}", rare, texts, "number|missing", both=True)
    wrong = [str(one) for one in x]
    for i in range(0, N_ROWS, 16):
        wrong[i] = "error"
    rest = [None if i % 16 == 0 else one for i, one in enumerate(x)]
    yield column("a few texts among numbers", rest, wrong, "number", both=True)
    half = [f"text {i}" if i % 3 == 0 else str(one) for i, one in enumerate(x)]
    yield only_said("many texts among numbers", half, "number|different|text")
    letters = [str(one).replace("0", "O").replace("1", "l") for one in x]
    yield only_said("letters for digits", letters, "61 of 96 cells are numbers, and others")
    codes = [f"{round(one) % 7:03d}" for one in x]
    yield Odd("codes with zeros before", plain_file(with_cells(x=codes)), {"x": codes}, "zero", both=True)
    codes = [f"0x{round(one) % 8:02X}" for one in x]
    yield Odd("hexadecimal codes", plain_file(with_cells(x=codes)), {"x": codes}, "hexadecimal|0x")
    for value in (-999, 9999, -1):
        held = [float(value) if i % 8 == 0 else one for i, one in enumerate(x)]
        yield column(f"{value} for missing", held, lambda one: f"{one:g}", f"{value}", both=True)
    zeros = [0.0 if i % 8 == 0 else one for i, one in enumerate(x)]
    yield column("0 for not measured", zeros, lambda one: f"{one:g}", "\\b0\\b|zero", both=True)
    hidden = [f"{one}\u200b" for one in x]
    yield column("invisible letters behind numbers", x, hidden, "invisible|number|sign")
    joined = [f"{one}\u00ad" if i % 10 == 0 else str(one) for i, one in enumerate(x)]
    yield column("soft hyphens behind some numbers", x, joined, "invisible|number|sign")
    yield column("minus zero", [-0.0 if i % 2 else 1.0 for i in range(N_ROWS)], lambda one: f"{one:.1f}")
    same = [1e-300 * (1 + i) for i in range(N_ROWS)]
    yield column("tiny numbers", same, lambda one: repr(one))
    steps = [1e6 + i % 7 * 1e-9 for i in range(N_ROWS)]
    yield column(
        "numbers that differ in the last digits", steps, lambda one: f"{one:.10f}", "constant|digits|same|equal"
    )
