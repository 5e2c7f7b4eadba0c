"""Texts as numbers in one spelling: thousands and decimals, units, magnitudes, durations, feet and inches.

A spelling is a short text of the contract: ``""`` for plain numbers, else one of these.

- ``"1.234,5"``: what separates thousands and decimals, without the 5 where no cell has decimals. A ``k`` behind it says
  that letters such as k, M and bn multiply. A unit stands behind a blank, as in ``"1,234.5 kg"``, and every cell has
  it; of currencies, and where a question mark follows, numbers without the unit are read as well.
- ``"h:mm:ss"`` and the other keys of `COMPOUND`: durations in seconds, lengths in inches.
"""

import re
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Flags
from qmedoid.model.contract import COMPOUND, FACTORS, split_spelling
from qmedoid.tables.cells import DIGIT_SIGNS, Cells, ascii_digits, other_zeros
from qmedoid.tables.dates import ZONES, Spelt

# What Arrow's own parser takes; the patterns keep it from raising at the first cell that is something else.
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_INFINITE = r"^[+-]?(?i:inf|infinity)$"
_NOT_A_NUMBER = r"^(?i:[+-]?nan)?$"
_ZERO_PADDED = r"^0\d+$"
MOSTLY = 0.9
"""A text column is one of numbers if at least this share of its cells are."""

_CURRENCY = (
    r"(?:US|R|A|C)?\$|[€£¥₹₩₽₺₫₴₪฿₱]|kr\.?|zł|Kč|Ft|Fr\.?|Rs\.?|USD|EUR|GBP|JPY|CHF|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF"
    r"|CNY|INR|BRL|MXN|ZAR|TRY|RUB|KRW|SGD|HKD"
)
_MAGNITUDES = {"k": 3, "K": 3, "M": 6, "m": 6, "B": 9, "b": 9} | {
    written: power
    for power, words in ((3, "tsd thousand"), (6, "mn mio mln million"), (9, "bn mrd billion"), (12, "tn trillion"))
    for word in words.split()
    for written in (word, word.title(), word.upper())
}
_BODY = r"\d(?:[\d.,' ]*\d)?[.,]?|[.,]\d+"
# A sign, or a word, maybe with an exponent; several of them, as in kg/m2, mg/dL, L/100 km and beats per min.
_ATOM = r"""(?:[°℃℉‰Ω%"'][A-Za-z]?|(?:[kcdm]?m|ft|in|yd|mi|s)\^?-?[1-4]|\pL+[²³]?\.?)"""
_UNIT = rf"{_ATOM}(?:(?: ?[/·*] ?(?:10{{1,3}} ?)?| ){_ATOM}){{0,3}}"
# Digits with their signs, and what stands around them, with 0 for these. A larger pattern of the front is much slower.
_SPLIT = rf"^(?P<front>[^\d.,]*)(?P<body>{_BODY})(?P<power>(?:[eE][+-]?\d+)?)(?P<back>.*)$"
_AROUND = (
    rf"^(?P<open>\(?)(?P<before>[+-]?) ?(?P<left>(?:{_CURRENCY}|(?:kg|lbs?|oz|cm|mm|km|ft|mi) )?) ?(?P<inner>\(?)"
    rf"(?P<sign>[+-]?)0(?P<close>\)?) ?(?P<after>-?) ?"
    rf"(?P<right>(?:(?:(?:{'|'.join(_MAGNITUDES)})?\.? ?)(?:{_CURRENCY})|{_UNIT})?)(?P<last>[-)]?)$"
)
_MONEY = rf"^(?:{_CURRENCY}|%)?$"
# Signs that mean the same, and powers of ten as they are printed.
_SAME_SIGNS = (
    ("[\u00a0\u2007\u2008\u2009\u202f]", " "),
    ("[\u2212\u2013\ufe63\uff0d]", "-"),
    ("[\u2019\u02bc\u00b4\u2032]", "'"),
    ("[\u201d\u2033]", '"'),
    ("[\u00b5]", "\u03bc"),
    ("[\u00ba]", "\u00b0"),
)
_ABBREVIATED = (r"^(\W*(?:kr|Fr|Rs))\. ?", r"\1 ")
_POWER = (r" ?[×x·*] ?10(?:\^|\*\*)\(?\+?(-?\d+)\)?", r"e\1")
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))


def _in_any_case(words: str) -> str:
    """A pattern for each word in small letters and in capitals."""
    return "|".join("".join(f"[{one}{one.upper()}]" for one in word) for word in words.split())


# What is one unit: with a point behind it or in the plural, and in capitals where these mean nothing else.
_SAME_UNIT = (
    (rf"^({_CURRENCY})\|(\pL+)\.?$", r"\2 \1"),
    (r"^''$", '"'),
    (r" ?([/·*]) ?", r"\1"),
    (r"(\d) (\pL)", r"\1\2"),
    (r"^(\pL.*)\.$", r"\1"),
    (r"\^?²|\^2", "2"),
    (r"\^?³|\^3", "3"),
    (rf"^(\pL{{3,}}[a-hj-rtv-z]|{_in_any_case('lb kg yr hr wk day min sec pc pt')})[sS]$", r"\1"),
)
_CASELESS = rf"^(?:{_in_any_case('kg km cm lb ft oz cc hp yr hr day min sec')}|[A-Z][a-z]{{2,}}|[A-Z]{{4,}})$"
_MAY_BE_UNITS = frozenset("KMmBb")
"""Magnitudes that are units as well, unless another magnitude or a currency stands in the column."""
_SCALED = rf"^(?P<letters>(?:{'|'.join(_MAGNITUDES)})?)\.? ?(?P<rest>(?:{_CURRENCY})?)$"
_MOST_UNITS = 20
"""Different units of a column from which on they are no units."""
# Ordinals, seats and rooms, streets; a liter, a volt and the like are units.
_OF_NAMES = r"^(?:st|nd|rd|th|[B-EHIOPQRXYZ])$|[a-z] [A-Z][a-z]"

# A number of 1 to 3 digits, and one with exactly three behind one point: 1275 or 1.275?
_SHORT = r"^[+-]?\d{1,3}$"
_GROUP_OR_FRACTION = r"^[+-]?[1-9]\d{0,2}\.\d{3}$"
_POINTED = r"^[+-]?(\d+\.\d*|\.\d+)$"
_POINT_CURRENCIES = ("$", "US$", "£", "₹", "USD", "GBP")
"""Currencies of places where a comma separates thousands."""
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = rf"^{_OCTET}(?:\.{_OCTET}){{3}}$"
_DURATION_NAME = r"(?i)duration|elapsed|run_?time|lap_?time|up_?time|down_?time|split|dauer|time_(taken|spent)"
_CLOCK = r"^-?(?:\d+ days?,? )?\d+:[0-5]\d(?::[0-5]\d)?(?:[.,]\d+)?$"
_OF_DAY = r"^(?:(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?|24:00(?::00)?)$"
_IN_THE_WAY = {
    "an ordinal": r"\d+ ?(?:st|nd|rd|th)",
    "a range": r"\d+(?:[.,]\d+)? ?(?:-|–|to|bis|\.\.) ?\d+(?:[.,]\d+)?(?: ?\pL+)?",
    "a bound": r"(?:[<>≤≥]=?|under|over|up to|at (?:least|most)) ?\d[\d.,]*(?: ?\pL+)?|\d[\d.,]* ?(?:\+|or more)",
    "an approximation": r"(?:~|≈|ca\.?|circa|about|approx\.?|around) ?\d[\d.,]*(?: ?\pL+)?",
    "a number with thousands as in India": r"[-+₹ ]{0,3}\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d*)?",
    "a number with its error": r"[+-]?\d[\d.,]* ?(?:±|\+/?-) ?\d[\d.,]*(?: ?\pL+)?",
    "a number or a date behind a quote": r"['’][+-]?\d[\d.,:/ -]*",
    "a number or a date with an invisible letter": r"[\p{Cf}\d.,:/ +-]*\p{Cf}[\p{Cf}\d.,:/ +-]*",
    "a hexadecimal number": r"0[xX][\da-fA-F]+",
    "a fraction, or a pair of numbers": r"(?:\d+ )?\d+ ?[/⁄] ?\d+|\d* ?[½¼¾⅓⅔]",
}
DOUBTFUL = r"^[^.,]*[1-9]\d{0,2}[.,]\d{3}[^.,\d]*$"


def numbers_of_text(array: pa.Array, spelling: str) -> Cells:
    """Texts as numbers by the rule of a spelling; infinities stay, and what says that it is not a number is missing.

    Percentages are divided by 100, as a spreadsheet holds them. A unit must be there unless the spelling says that it
    may be absent, and no other unit may be there.
    """
    text = pc.utf8_trim_whitespace(array)
    if not spelling:
        fits = pc.or_(pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _INFINITE))
        parsed = pc.if_else(fits, text, pa.scalar(None, text.type)).cast(pa.float64())
        absent = pc.match_substring_regex(text, _NOT_A_NUMBER)
        wrong = text.filter(pc.invert(pc.or_(fits, absent))).cast(pa.string())
        return Cells(parsed.to_numpy(zero_copy_only=False), wrong)
    if spelling in COMPOUND:
        plain = _plain_signs(text)
        is_given = pc.match_substring_regex(plain, r"\d")
        parts = pc.extract_regex(pc.if_else(is_given, plain, pa.scalar(None, plain.type)), _anchored(spelling))
        values = np.zeros(len(text))
        for name in (name for name in FACTORS if f"<{name}>" in COMPOUND[spelling]):
            part = pc.replace_substring(pc.struct_field(parts, name), ",", ".")
            part = pc.if_else(pc.equal(part, ""), pa.scalar("0", part.type), part).cast(pa.float64())
            values = values + FACTORS[name] * part.to_numpy(zero_copy_only=False)
        is_negative = pc.fill_null(pc.starts_with(plain, "-"), False).to_numpy(zero_copy_only=False)
        values = np.where(is_negative, -values, values)
        is_wrong = pc.and_(pa.array(np.isnan(values)), pc.fill_null(pc.not_equal(text, ""), False))
        return Cells(values, text.filter(is_wrong).cast(pa.string()))
    form, is_scaled, unit, _ = split_spelling(spelling)
    body, power, units, negative = _parts(text)
    fits = pc.fill_null(_fits(body, form), False)
    if is_scaled:
        exponent, units = _magnitudes(units)
        fits = pc.and_(fits, pc.or_(pc.equal(power, ""), pc.equal(exponent, "")))
        power = pc.binary_join_element_wise(power, exponent, "")
    allowed = [unit] if needs_unit(spelling) else ["", unit]
    fits = pc.and_(pc.fill_null(fits, False), pc.is_in(units, value_set=pa.array(allowed, units.type)))
    body = pc.if_else(fits, body, pa.scalar(None, body.type))
    group, point, _ = _signs(form)
    if group:
        body = pc.replace_substring(body, group, "")
    if point == ",":
        body = pc.replace_substring(body, ",", ".")
    values = pc.binary_join_element_wise(body, power, "").cast(pa.float64()).to_numpy(zero_copy_only=False)
    is_negative = pc.fill_null(negative, False).to_numpy(zero_copy_only=False)
    values = np.where(is_negative, -values, values) / (100.0 if unit == "%" else 1.0)
    wrong = pc.and_(pc.invert(fits), pc.fill_null(pc.not_equal(text, ""), False))
    return Cells(values, text.filter(wrong).cast(pa.string()))


def needs_unit(spelling: str) -> bool:
    """Whether a number alone is no cell of a column with a spelling: 84 may be pounds or kilograms."""
    if not spelling or spelling in COMPOUND:
        return bool(spelling)
    _, _, unit, may_lack = split_spelling(spelling)
    return bool(unit) and not may_lack and re.fullmatch(_CURRENCY, unit) is None


def rules_of_texts() -> dict[str, Any]:
    """The patterns and tables by which texts are read, for the engine of another language."""
    return {
        "zeros": other_zeros(),
        "digitSigns": DIGIT_SIGNS,
        "plain": (_POWER, _ABBREVIATED),
        "signs": _SAME_SIGNS,
        "superscripts": _SUPERSCRIPTS,
        "split": _SPLIT,
        "around": _AROUND,
        "units": _SAME_UNIT,
        "caseless": _CASELESS,
        "money": _MONEY,
        "scaled": _SCALED,
        "magnitudes": _MAGNITUDES,
        "compound": dict(COMPOUND),
        "factors": FACTORS,
        "zones": ZONES,
    }


def spell(value: float, spelling: str) -> str:
    """A number as a spelling writes it, so that it is read back; plain where the spelling is empty."""
    sign, size = "-" if value < 0 else "", round(abs(value), 6)
    if spelling == "5'11\"":
        return f"{sign}{size // 12:.0f}'{size % 12:.12g}\""
    if spelling in COMPOUND:
        (hours, minutes), seconds = divmod(int(size // 60), 60), f"{size % 60:.9g}"
        padded = ("0" if size % 60 < 10 else "") + seconds
        if spelling in ("1h 30m", "PT1H30M"):
            words = f"{hours}h {minutes}m {seconds}s"
            return sign + (words if spelling == "1h 30m" else f"PT{words.replace(' ', '').upper()}")
        if spelling == "m:ss":
            return f"{sign}{60 * hours + minutes}:{padded}"
        return f"{sign}{hours}:{minutes:02d}" + ("" if spelling == "h:mm" else f":{padded}")
    form, _, unit, _ = split_spelling(spelling or "1234.5")
    group, point, _ = _signs(form)
    shown = float(f"{value * (100.0 if unit == '%' else 1.0):.12g}")
    digits = f"{shown:,}".removesuffix(".0").translate({ord(","): group, ord("."): point})
    return f"{digits} {unit}".rstrip()


def zero_padded(text: pa.Array) -> pa.Array:
    """The texts that are whole numbers with leading zeros, which a number would lose."""
    return text.filter(pc.match_substring_regex(pc.utf8_trim_whitespace(text), _ZERO_PADDED))


def look_like_numbers(text: pa.Array) -> pa.Array:
    """Whether texts are numbers in any spelling, with any unit."""
    body, *_ = _parts(pc.utf8_trim_whitespace(text))
    return _are_numbers(body)


def _are_numbers(body: pa.Array) -> pa.Array:
    return pc.fill_null(reduce(pc.or_, (_fits(body, form) for form in _FORMS)), False)


def respelt(text: pa.Array, spelling: str) -> pa.Array:
    """Whether texts are numbers that a spelling does not read, so that it is not known what its other cells mean.

    They have other signs between thousands and decimals, another unit, or none where the spelling has one.
    """
    plain = pc.utf8_trim_whitespace(text.cast(pa.string()))
    body, _, units, _ = _parts(plain)
    is_number = _are_numbers(body)
    if spelling in COMPOUND:
        plain = _plain_signs(plain)
        return pc.fill_null(reduce(pc.or_, (_matches(plain, one) for one in COMPOUND), is_number), False)
    form, is_scaled, unit, _ = split_spelling(spelling or "1234.5")
    units = _magnitudes(units)[1] if is_scaled else units
    has_money = pc.match_substring_regex(units, rf"^(?:{_CURRENCY})$")
    has_none, is_own = pc.equal(units, ""), pc.equal(units, unit)
    other = pc.or_(pc.invert(_fits(body, form)), pc.invert(pc.or_(has_none, is_own)))
    if not unit:  # a few words behind numbers are just cells of another kind
        other = pc.and_(other, pc.or_(pc.or_(has_none, has_money), pc.equal(units, "%")))
        other = pc.and_(other, pc.or_(pc.invert(_fits(body, form)), has_money))
    elif needs_unit(spelling):
        other = pc.or_(other, has_none)
    return pc.and_(is_number, pc.fill_null(other, False))


def find_spelling(text: pa.Array, decimal: str | None = None) -> Spelt:
    """The one spelling of all texts (trimmed) that look like numbers; `decimal` is for those that do not show it."""
    cells = text.drop_null().unique()
    body, _, marks, _ = _parts(cells)
    is_number = _are_numbers(body)
    cells, body, marks = (one.filter(is_number) for one in (cells, body, marks))
    if not len(cells):
        return Spelt(None)
    scaled = ""
    if _are_magnitudes(cells, marks):
        scaled, marks = "k", _magnitudes(marks)[1]
    units = [unit for unit in marks.unique().to_pylist() if unit]
    bare = pc.equal(marks, "")
    n_bare = pc.sum(bare).as_py()
    is_money = all(re.fullmatch(_CURRENCY, unit) for unit in units)
    if n_bare >= MOSTLY * len(cells) and not is_money and units != ["%"]:
        # A few words behind numbers are cells of another kind.
        cells, body, units = cells.filter(bare), body.filter(bare), []
        n_bare = len(cells)
    if len(units) > 1:
        is_few = len(units) <= max(2, min(_MOST_UNITS, len(cells) // 4))
        if not is_few or any(re.search(_OF_NAMES, unit) for unit in units):
            return Spelt(None)
        examples = [_example(cells, pc.equal(marks, unit)) for unit in sorted(units)[:2]]
        return Spelt(None, problem=f"{examples[0]!r} and {examples[1]!r} have two units")
    unit = units[0] if units else ""
    if len(unit) > 20 or re.search(_OF_NAMES, unit):
        return Spelt(None)
    may_lack = ""
    if unit and n_bare and not is_money:
        marked = _example(cells, pc.invert(bare))
        if unit == "%":
            return Spelt(None, problem=f"{marked!r} has a percent sign and {_example(cells, bare)!r} has none")
        if n_bare > (1 - MOSTLY) * len(cells):
            return Spelt(None, problem=f"{marked!r} has the unit {unit!r} and {_example(cells, bare)!r} has none")
        may_lack = "?"
    if not is_money or not unit:
        padded = pc.match_substring_regex(body, _ZERO_PADDED)
        if unit != "%" and pc.any(padded).as_py():
            return Spelt(None, problem=f"{_example(cells, padded)!r} begins with a zero")
    forms = _fitting(body)
    if not forms:
        best = max((*_FORMS, "1234.5", "1234,5"), key=lambda form: pc.sum(_fits(body, form)).as_py() or 0)
        fits = _fits(body, best)
        odd = f"{_example(cells, fits)!r} and {_example(cells, pc.invert(fits))!r}"
        return Spelt(None, problem=f"{odd} are not spelt alike")
    if forms == ["1.234"] and pc.all(pc.match_substring_regex(cells, _ADDRESS)).as_py():
        return Spelt(None, problem=f"{cells[0].as_py()!r} is an address")
    suffix = scaled + (f" {unit}{may_lack}" if unit else "")
    if len(forms) == 1:
        return Spelt(forms[0] + suffix)
    if decimal is None and unit in _POINT_CURRENCIES:
        decimal = "."
    chosen = next((form for form in forms if _signs(form)[1] == decimal), None)
    return Spelt(None if chosen is None else chosen + suffix, ambiguous=".,")


def find_compound(name: str, text: pa.Array, *, insists: bool = False) -> str | None:
    """The spelling of a column of durations or of feet and inches, None where it is neither, or of times of day.

    Times of day have hours below 24: all are of two digits, or there are no seconds, or some are in the afternoon. The
    name of a column, or a user who insists, says that they are durations all the same.
    """
    cells = _plain_signs(text.drop_null().unique())
    enough = MOSTLY * len(cells)
    clock = cells.filter(pc.match_substring_regex(cells, _CLOCK))
    if len(clock) < enough or not len(clock):
        others = ("1h 30m", "PT1H30M", "5'11\"")
        return next((one for one in others if (pc.sum(_matches(cells, one)).as_py() or 0) >= max(enough, 1)), None)
    has_seconds = pc.match_substring_regex(clock, r":\d\d:")
    first = pc.replace_substring_regex(clock, r"^-?(?:\d+ days?,? )?(\d+):.*$", r"\1").cast(pa.float64())
    largest = pc.max(first).as_py()
    is_named = names_durations(name)
    if not (is_named or insists) and _n_matches(clock, _OF_DAY) == len(clock):
        is_padded = _n_matches(clock, r"^\d\d:") == len(clock)
        has_fractions = pc.any(pc.match_substring_regex(clock, r"[.,]\d+$")).as_py()
        if (is_padded and not has_fractions) or not pc.any(has_seconds).as_py() or largest >= 13:
            return None
    if pc.all(has_seconds).as_py():
        return "h:mm:ss"
    if pc.any(has_seconds).as_py():
        return "[h:]mm:ss"
    is_hours = largest > 59 or (insists and not is_named)
    return "h:mm" if is_hours and not pc.any(pc.match_substring_regex(clock, "[.,]")).as_py() else "m:ss"


def names_durations(name: str) -> bool:
    """Whether the name of a column is one of durations."""
    return re.search(_DURATION_NAME, name) is not None


def what_is_in_the_way(text: pa.Array) -> str:
    """Why texts with numbers are none: all but one in ten are numbers, ranges, bounds and the like; empty otherwise."""
    cells = text.drop_null().unique()
    odd = cells.filter(pc.match_substring_regex(cells, rf"^(?:{'|'.join(_IN_THE_WAY.values())})$"))
    n_numbers = pc.sum(look_like_numbers(cells)).as_py() if len(odd) > (1 - MOSTLY) * len(cells) else 0
    if not n_numbers + len(odd) >= MOSTLY * len(cells) > 0:
        return ""
    patterns = {what: rf"^(?:{pattern})$" for what, pattern in _IN_THE_WAY.items()}
    what = max(patterns, key=lambda one: _n_matches(odd, patterns[one]))
    return f"{_example(odd, pc.match_substring_regex(odd, patterns[what]))!r} is {what}"


def may_be_thousands(text: pa.Array) -> bool:
    """Whether the points of plain numbers may part thousands, as in ``1.275`` and ``935``.

    So it is where every point has three digits behind it and one to three before it, and all numbers without a point
    are below 1000: a column of fractions would show another number of digits.
    """
    is_grouped = is_short = False
    for part in (text.slice(0, 256), text):  # the first cells tell of most columns that they hold fractions
        part = pc.utf8_trim_whitespace(part)
        grouped, short = (pc.match_substring_regex(part, pattern) for pattern in (_GROUP_OR_FRACTION, _SHORT))
        numbers = pc.match_substring_regex(part, r"^[+-]?[\d.]+$")
        if pc.any(pc.and_(numbers, pc.invert(pc.or_(grouped, short)))).as_py():
            return False
        is_grouped, is_short = pc.any(grouped).as_py(), pc.any(short).as_py()
    return bool(is_grouped and is_short)


def example_of_thousands(text: pa.Array) -> str | None:
    """A cell of at least five different ones that all look like ``1.275`` and ``20.628``; None where some do not."""
    for part in (text.slice(0, 256), text):
        cells = pc.utf8_trim_whitespace(part).drop_null()
        if not pc.all(pc.match_substring_regex(cells, _GROUP_OR_FRACTION), min_count=0).as_py():
            return None
    different = cells.unique()
    return str(different[0].as_py()) if len(different) >= 5 else None


def shows_points(text: pa.Array) -> bool:
    """Whether texts are numbers with a decimal point without doubt."""
    text = pc.utf8_trim_whitespace(text)
    pointed, grouped = (pc.match_substring_regex(text, pattern) for pattern in (_POINTED, _GROUP_OR_FRACTION))
    return bool(pc.any(pc.and_(pointed, pc.invert(grouped))).as_py())


_FORMS = ("1,234.5", "1.234,5", "1 234.5", "1 234,5", "1'234.5", "1'234,5")


def _signs(form: str) -> tuple[str, str, bool]:
    """What parts thousands (or nothing), the decimal sign, and whether it was seen."""
    before, _, after = form.partition("234")
    return before[1:], after[:1] or ("," if before[1:] == "." else "."), bool(after)


def _plain_signs(text: pa.Array) -> pa.Array:
    """Texts with plain digits, blanks, minus signs, quotes and powers of ten for the typographic ones."""
    if pc.any(pc.match_substring_regex(text, r"10(?:\^|\*\*)")).as_py():
        text = pc.replace_substring_regex(text, *_POWER)
    if pc.any(pc.match_substring_regex(text, _ABBREVIATED[0])).as_py():
        text = pc.replace_substring_regex(text, *_ABBREVIATED)
    if pc.all(pc.string_is_ascii(text)).as_py():
        return text
    text = ascii_digits(text)
    for given, plain in _SAME_SIGNS:
        text = pc.replace_substring_regex(text, given, plain)
    is_raised = pc.match_substring_regex(text, r"[×x·*] ?10[⁰¹²³⁴-⁹⁻]")
    if not pc.any(is_raised).as_py():
        return text
    raised = pc.replace_substring_regex(text, r" ?[×x·*] ?10", "e")
    for sign, digit in _SUPERSCRIPTS.items():
        raised = pc.replace_substring(raised, sign, digit)
    return pc.if_else(is_raised, raised, text)


def _parts(text: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """Body, power, unit and whether it is negative, of texts that look like numbers; null where a text does not."""
    parts = pc.extract_regex(_plain_signs(text), _SPLIT)
    front, body, power, back = (pc.struct_field(parts, name) for name in ("front", "body", "power", "back"))
    # Most columns have few different texts around their digits.
    encoded = pc.binary_join_element_wise(front, "0", back, "").dictionary_encode()
    # Groups are found much slower than a match, and of names few match.
    others = pc.invert(pc.match_substring_regex(encoded.dictionary, _AROUND))
    around = pc.extract_regex(pc.if_else(others, pa.scalar(None, encoded.dictionary.type), encoded.dictionary), _AROUND)
    field = {
        name: pc.struct_field(around, name) for name in ("before", "sign", "after", "open", "inner", "close", "last")
    }
    last, after = field["last"], field["after"]
    signs = pc.binary_join_element_wise(field["before"], field["sign"], after, pc.replace_substring(last, ")", ""), "")
    ends = pc.binary_join_element_wise(field["close"], pc.replace_substring(last, "-", ""), "")
    braces = pc.binary_join_element_wise(field["open"], field["inner"], ends, "")
    units = pc.binary_join_element_wise(pc.struct_field(around, "left"), pc.struct_field(around, "right"), "|")
    unit = pc.utf8_trim_whitespace(pc.utf8_trim(units, "|"))
    for given, plain in _SAME_UNIT:
        unit = pc.replace_substring_regex(unit, given, plain)
    unit = pc.if_else(pc.match_substring_regex(unit, _CASELESS), pc.utf8_lower(unit), unit)
    # One sign at most, braces that are closed and in no company, one unit, and no word behind a dash: 12-A is a code.
    is_one = pc.and_(
        pc.is_in(pc.binary_join_element_wise(braces, signs, ""), value_set=pa.array(["", "+", "-", "()"], braces.type)),
        pc.invert(pc.match_substring(unit, "|")),
    )
    is_one = pc.and_(is_one, pc.or_(pc.equal(after, ""), pc.match_substring_regex(unit, _MONEY)))
    negative = pc.or_(pc.equal(braces, "()"), pc.equal(signs, "-"))
    unit = pc.if_else(is_one, unit, pa.scalar(None, unit.type)).take(encoded.indices)
    body = pc.if_else(unit.is_valid(), body, pa.scalar(None, body.type))
    return body, power, unit, negative.take(encoded.indices)


def _magnitudes(units: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The powers of ten of units such as k, M and Mio. €, as ``"e3"``, and what is left of the units."""
    found = pc.extract_regex(units, _SCALED)
    letters = pc.fill_null(pc.struct_field(found, "letters"), "")
    place = pc.index_in(letters, value_set=pa.array(list(_MAGNITUDES), letters.type))
    power = pa.array([f"e{power}" for power in _MAGNITUDES.values()], units.type).take(place)
    return pc.fill_null(power, ""), pc.coalesce(pc.struct_field(found, "rest"), units)


def _are_magnitudes(cells: pa.Array, units: pa.Array) -> bool:
    """Whether all units of numbers are magnitudes, maybe with a currency, and no units such as meters or kelvins."""
    found = pc.extract_regex(units.unique(), _SCALED)
    letters = {one for one in pc.struct_field(found, "letters").to_pylist() if one}
    if found.null_count or not letters:
        return False
    has_money = pc.any(pc.not_equal(pc.struct_field(found, "rest"), "")).as_py()
    return bool(
        has_money
        or not letters <= _MAY_BE_UNITS
        or len({_MAGNITUDES[one] for one in letters}) > 1
        or pc.any(pc.match_substring_regex(cells, r"\d[KM]$")).as_py()
    )


def _anchored(spelling: str) -> str:
    return rf"(?i)^(?:-?{COMPOUND[spelling]})$"


def _matches(text: pa.Array, spelling: str) -> pa.Array:
    """Whether texts are written in one of the spellings of several parts; some of these match a text without digits."""
    return pc.and_(pc.match_substring_regex(text, _anchored(spelling)), pc.match_substring_regex(text, r"\d"))


def _n_matches(cells: pa.Array, pattern: str) -> int:
    return int(pc.sum(pc.match_substring_regex(cells, pattern)).as_py() or 0)


def _fitting(body: pa.Array) -> list[str]:
    """The forms that read all bodies, by which signs occur and where; two where it is open what a sign means."""
    has = {sign: pc.any(pc.match_substring(body, sign)).as_py() for sign in (",", ".", " ", "'")}
    if has[" "] or has["'"]:
        if (has[" "] and has["'"]) or (has[","] and has["."]):
            return []
        form = f"1{' ' if has[' '] else chr(39)}234{',5' if has[','] else '.5' if has['.'] else ''}"
        return [form] if _all_fit(body, form) else []
    if not (has[","] or has["."]):
        return ["1234"]
    if has[","] and has["."]:
        return [form for form in ("1,234.5", "1.234,5") if _all_fit(body, form)]
    if has["."] and not may_be_thousands(body):
        # Numbers of one size with three decimals each are far more usual than thousands alone.
        return [form for form in ("1234.5", "1.234") if _all_fit(body, form)][:1]
    return [form for form in (("1,234", "1234,5") if has[","] else ("1234.5", "1.234")) if _all_fit(body, form)]


def _all_fit(body: pa.Array, form: str) -> bool:
    return bool(pc.all(_fits(body, form)).as_py())


def _fits(body: pa.Array, form: str) -> pa.Array:
    """Whether what stands between signs and units is written in a form."""
    group, sign, is_shown = _signs(form)
    point = re.escape(sign)
    whole = rf"(?:[1-9]\d{{0,2}}(?:{re.escape(group)}\d{{3}})+|\d+)" if group else r"\d+"
    # Where no decimals were seen it is open what a sign before three digits means.
    decimals = r"\d*" if is_shown else r"(?:\d{1,2}|\d{4,})?"
    return pc.match_substring_regex(body, rf"^(?:{whole}(?:{point}{decimals})?|{point}\d+)$")


def _example(cells: pa.Array, chosen: pa.Array) -> str:
    return str(cells.filter(chosen)[0].as_py())


def doubtful_points(given: pa.Array, spelling: str) -> tuple[Flags, pa.Array] | None:
    """Which cells may have thousands for decimals, and their texts; None where others show what the sign means.

    With a spelling that parts thousands, as 1.234,5, the decimals of 1,275 are doubtful where every decimal sign has
    three digits behind it and one to three before it, and no thousands are parted as the spelling has it.
    """
    if spelling in COMPOUND:
        return None
    if not spelling:
        is_doubtful, is_shown = may_be_thousands(given), shows_points(given)
    else:
        group, point, has_decimals = _signs(split_spelling(spelling)[0])
        body = _parts(pc.utf8_trim_whitespace(given))[0].drop_null()
        decimals = body.filter(pc.match_substring(body, point))
        fit = pc.match_substring_regex(decimals, rf"^[1-9]\d{{0,2}}{re.escape(point)}\d{{3}}$")
        is_open = has_decimals and group and not pc.any(pc.match_substring(body, group)).as_py()
        is_doubtful, is_shown = bool(is_open and len(decimals) and pc.all(fit).as_py()), False
    if not is_doubtful:
        return None if is_shown else (np.zeros(len(given), dtype=bool), pa.array([], pa.string()))
    text = pc.utf8_trim_whitespace(given)
    doubtful = pc.fill_null(pc.match_substring_regex(text, DOUBTFUL), False)
    return doubtful.to_numpy(zero_copy_only=False), text.filter(doubtful).cast(pa.string())
