"""What users write: numbers and percentages, and names that are nearly right.

Apart from the errors, which every module imports: results of studies are stored under a hash of the code they reach.
"""

import difflib
from collections.abc import Iterable


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
