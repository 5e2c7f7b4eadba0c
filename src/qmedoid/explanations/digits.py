"""Printed numbers that add up: what is rounded adds up to the rounded sum."""

import math
from collections.abc import Sequence


def rounded_to_sum(values: Sequence[float], digits: int) -> list[float]:
    """Values with so many decimals that add up to their sum with so many decimals, exactly in print.

    Each is its value rounded down or up: those whose fractions are largest are rounded up.
    """
    unit = 10.0**digits
    scaled = [value * unit for value in values]
    low = [math.floor(value) for value in scaled]
    missing = round(math.fsum(scaled)) - sum(low)
    by_fraction = sorted(range(len(values)), key=lambda place: (low[place] - scaled[place], place))
    for place in by_fraction[: max(0, missing)]:
        low[place] += 1
    return [whole / unit for whole in low]


def signed(value: float, digits: int) -> str:
    """A number with its sign and so many decimals; a zero has none."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def plain(value: float, digits: int = 4) -> str:
    """A number with so many significant digits."""
    return f"{value:.{digits}g}".replace("-", "−")
