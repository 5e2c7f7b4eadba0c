"""What users write: numbers and percentages, and names that are nearly right.

Apart from the errors, which every module imports: results of studies are stored under a hash of the code they reach.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterable

HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
"""Letters that do not show: soft hyphens, signs of no width, marks of byte order and direction, fillers."""
_BLANK = re.compile(r"\s")
_SIGNS = str.maketrans("`´‘’‚‛ʹʻʼˈ′＇“”„‟″«»‐‑‒–—―−", "''''''''''''" + '"""""""' + "-------")
_LETTERS = str.maketrans("АВЕКМНОРСТХЅІЈаеорсухѕіјΑΒΕΖΗΙΚΜΝΟΡΤΥΧον", "ABEKMHOPCTXSIJaeopcyxsijABEZHIKMNOPTYXov")
_WORD = re.compile(r"[^\W\d_]+")
ODD_LETTERS = r"[^\x00-\x7f]|`|\.\s*$|[\t-\r]"
"""What texts hold of which another may look the same."""


def did_you_mean(name: object, names: Iterable[object]) -> str:
    """The end of a message about a name that is not there: the closest of those that are, if one is close, asked back.

    Case does not count: ``age`` is close to ``AGE``.

    Examples
    --------
    >>> did_you_mean("Ages", ["Age", "Sex"])
    " Did you mean 'Age'?"
    >>> did_you_mean("income", ["Age", "Sex"])
    ''
    """
    plain: dict[str, object] = {}
    for one in names:
        plain.setdefault(str(one).casefold(), one)
    close = difflib.get_close_matches(str(name).casefold(), plain, 1)
    return f" Did you mean {plain[close[0]]!r}?" if close else ""


def printable(value: object) -> str:
    """A cell or name as text on one line that is safe in a terminal: what does not print is escaped."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in str(value))


def number_of(text: str) -> float | None:
    """The number that a text writes, also as a percentage (5% is 0.05); None where it writes none."""
    plain = text.strip()
    try:
        return float(plain.removesuffix("%")) / 100.0 if plain.endswith("%") else float(plain)
    except ValueError:
        return None


def look(text: str) -> str:
    r"""A text that is the same for all texts that look like it.

    Without invisible letters and dots at the end, with plain blanks, quotes and hyphens, in full-width and composed
    letters (NFKC), and words with some Latin letters wholly in these, if the others look like such.

    Examples
    --------
    >>> look("Caf\u0065\u0301\u200b") == look("Caf\u00e9."), look("\u0441at") == "cat"
    (True, True)
    """
    if re.search(ODD_LETTERS, text) is None:
        return text
    plain = _BLANK.sub(" ", HIDDEN.sub("", unicodedata.normalize("NFKC", text.translate(_SIGNS)))).strip()
    plain = _WORD.sub(_in_latin, plain)
    return plain.rstrip(". ") or plain


def _in_latin(word: re.Match[str]) -> str:
    """A word in Latin letters, if it has some, and all others look like one."""
    letters = word[0]
    if letters.isascii() or not any(one < "\u0250" for one in letters):
        return letters
    latin = letters.translate(_LETTERS)
    return latin if all(one < "\u0250" for one in latin) else letters
