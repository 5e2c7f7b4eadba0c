"""Expressions of moderate depth: long sums, choices between many intervals, the smallest of many."""

from collections.abc import Callable, Sequence

from qmedoid.arrays import Array
from qmedoid.export.sql.dialects import Dialect

# Terms side by side: SQLite nests a sum of n terms n deep, and allows 1,000 levels; its functions take 127 arguments.
_SIDE_BY_SIDE = 64


def in_parts(terms: Sequence[str], join: Callable[[Sequence[str]], str]) -> str:
    """Terms joined in parts, and these in turn."""
    while len(terms) > _SIDE_BY_SIDE:
        terms = [join(terms[start : start + _SIDE_BY_SIDE]) for start in range(0, len(terms), _SIDE_BY_SIDE)]
    return join(terms)


def total(terms: Sequence[str], zero: str) -> str:
    """The sum of terms; `zero` where there are none."""
    return in_parts(terms, lambda some: f"({'+'.join(some)})" if len(some) > 1 else some[0]) if terms else zero


def joined(texts: Sequence[str]) -> str:
    """Texts end to end."""
    return in_parts(texts, lambda some: f"({'||'.join(some)})")


def smallest(dialect: Dialect, values: Sequence[str]) -> str:
    """The smallest of many values."""
    return in_parts(values, lambda some: dialect.least(*some))


def largest(dialect: Dialect, values: Sequence[str]) -> str:
    """The largest of many values."""
    return in_parts(values, lambda some: dialect.greatest(*some))


def choice(x: str, cuts: Sequence[str], results: Sequence[str]) -> str:
    """The result of the interval that x lies in, by bisection: one more than there are cuts, in rising order."""
    if not cuts:
        return results[0]
    middle = len(cuts) // 2
    below = choice(x, cuts[:middle], results[: middle + 1])
    above = choice(x, cuts[middle + 1 :], results[middle + 1 :])
    return f"CASE WHEN {x}<{cuts[middle]} THEN {below} ELSE {above} END"


def curve(dialect: Dialect, x: str, knots: Array, heights: Array, rises: Array) -> str:
    """A function that is linear from each knot on, with its rise, and constant outside of them."""
    last = len(knots) - 1
    # Of knots in one place the last one counts.
    kept = [place for place in range(last + 1) if place == last or knots[place] < knots[place + 1]]
    results = [dialect.number(heights[0])]
    for place in kept:
        height = dialect.number(heights[place])
        if place == last or rises[place] == 0:
            results.append(height)
        else:
            results.append(f"{dialect.number(rises[place])}*({x}-{dialect.number(knots[place])})+{height}")
    return choice(x, [dialect.number(knots[place]) for place in kept], results)


def times(dialect: Dialect, factor: float, value: str) -> str:
    """A value times a number; the value alone where this is 1."""
    return value if factor == 1.0 else f"{dialect.number(factor)}*{value}"
