"""Columns that number or name the rows, by their names and by their cells; and codes that look like numbers."""

import re

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array

NUMBERS_ROWS = "it numbers the rows"
OWN_NUMBER = "every row has its own number: it names rows"
OWN_TEXT = "every row has its own text: it names rows"
IDENTIFIERS = frozenset((NUMBERS_ROWS, OWN_NUMBER, OWN_TEXT))
"""Reasons to leave a column out that are a guess; a user who knows better keeps the column."""

NEARLY = 0.95
"""Share of different cells from which on a column that is kept looks like an identifier."""
_REPEATS = 8.0
"""Pairs of equal cells from which on it is no chance that there is none."""
_MANY_ROWS = 100
"""Rows from which on codes recur and measured values do not."""

# Between "customer" and "Id", and between "URL" and "Key".
_HUMP = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_LAST_WORDS = frozenset(("id", "ids", "uuid", "guid", "key", "nr", "no", "number", "rowid", "pk"))
_BEFORE_INDEX = frozenset(("", "row", "record", "sample", "unnamed", "line"))
_THINGS = (
    "account|case|client|customer|cust|device|doc|document|employee|emp|event|household|invoice|item|member|object|"
    "order|passenger|patient|person|policy|product|record|row|sample|serial|session|student|subject|trans|transaction|"
    "trip|txn|unique|user|visit"
)
# Words that are written together in small letters, as in "userid"; "paid" and "grid" are none.
_GROWN_TOGETHER = re.compile(rf"({_THINGS})id")

# ICD-9 beside numbers such as 250.83: V45, E909. Not O5 and l2, where a letter was typed for a digit.
_CODE = r"^(?:[A-HJ-NP-Za-hj-kmnp-z][A-Za-z]?-?\d[\dA-Za-z.\-]*|\d+[A-Za-z]\d+)$"
_PLAIN_NUMBER = r"^(\d+(\.\d+)?|(?i:nan))$"


def is_identifier_name(name: str) -> bool:
    """Whether a name is one that is given to columns of row numbers and keys: whole words, ``paid`` is none."""
    if name.strip().lower() in ("column 1", "unnamed: 0"):
        return True
    words = [word.lower() for word in _WORD.findall(_HUMP.sub(" ", name))]
    if not words:
        return False
    if words[-1] in _LAST_WORDS or words[0] == "id" or _GROWN_TOGETHER.fullmatch(words[-1]):
        return True
    before = words[-2] if len(words) > 1 else ""
    return words[-1] in ("index", "row") and before in _BEFORE_INDEX


def id_reason(name: str, values: Array, is_whole: bool, n_different: int | None = None) -> str | None:
    """Why a column of numbers is taken for one that numbers or names the rows, or None.

    `n_different` are the different numbers, where floats are too coarse to count them.
    """
    in_sequence = is_whole and _are_of_a_run(values)
    if not (in_sequence or is_identifier_name(name)) or not (values == np.trunc(values)).all():
        return None
    if (len(np.unique(values)) if n_different is None else n_different) < len(values):
        return None
    return NUMBERS_ROWS if in_sequence else OWN_NUMBER


def _are_of_a_run(values: Array) -> bool:
    """Whether so many whole numbers, all different, are too close together for anything but numbered rows.

    The rows of a fit are a share of those of the file, so that there are gaps between their numbers. Of n numbers
    drawn by chance from a range of R, about n²/2R pairs would be equal.
    """
    n, spread = len(values), values.max() - values.min() + 1
    return bool(spread == n or (spread <= 4 * n and n * n / (2 * spread) >= _REPEATS))


def code_among_numbers(text: pa.Array, wrong: pa.Array) -> str | None:
    """A cell that shows that texts, most of them numbers, are codes such as those of ICD-9; None where none does.

    Codes are plain numbers but for a few that have letters, as ``V45`` and ``E909`` beside ``250.83``, and they recur
    in a table of many rows.

    Parameters
    ----------
    text : pyarrow.Array of str
        The cells without blanks around them.
    wrong : pyarrow.Array of str
        Those that are not numbers.
    """
    import pyarrow.compute as pc

    codes = wrong.filter(pc.match_substring_regex(wrong, _CODE))
    if 2 * len(codes) < len(wrong) or not len(codes):
        return None
    numbers = text.filter(pc.invert(pc.is_in(text, value_set=wrong.unique().cast(text.type)))).drop_null()
    if not pc.all(pc.match_substring_regex(numbers, _PLAIN_NUMBER)).as_py():
        return None
    recurs = 2 * len(numbers.unique()) <= len(numbers)
    if not recurs and (len(text) >= _MANY_ROWS or len(codes.unique()) < 2):
        return None
    found: str = codes[0].as_py()
    return found
