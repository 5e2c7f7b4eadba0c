"""How likely normal errors, and sums of their squares, are by chance; by finite sums, for even degrees of freedom.

Models are scored and planned without SciPy, which has the same functions for all degrees of freedom.
"""

from math import erfc, exp, inf, lgamma, log, log1p, sqrt

import numpy as np

from qmedoid.arrays import Array


def chi_square_chance(freedom: int, square: float) -> float:
    """Probability that a chi-square variable of an even number of degrees of freedom is above `square`."""
    if square <= 0.0:
        return 1.0
    half = square / 2.0
    terms = [place * log(half) - half - lgamma(place + 1.0) for place in range(freedom // 2)]
    return _sum(terms)


def f_chance(more: int, freedom: int, ratio: float) -> float:
    """Probability that an F variable with `more` (even) and `freedom` degrees of freedom is above `ratio`."""
    if ratio <= 0.0:
        return 1.0
    a, rest = freedom / 2.0, more * ratio / (freedom + more * ratio)
    if rest == 1.0:
        return 0.0
    power = a * log1p(-rest)
    terms = [power + lgamma(a + i) - lgamma(a) - lgamma(i + 1.0) + i * log(rest) for i in range(more // 2)]
    return _sum(terms)


def chance_below(values: Array) -> Array:
    """Probability that a standard normal variable is below each value."""
    flat = [erfc(-value / sqrt(2.0)) / 2.0 for value in np.ravel(values).tolist()]
    return np.array(flat).reshape(np.shape(values))


def _sum(logarithms: list[float]) -> float:
    largest = max(logarithms, default=-inf)
    if largest == -inf:
        return 0.0
    return min(1.0, exp(largest) * float(np.sum(np.exp(np.array(logarithms) - largest))))
