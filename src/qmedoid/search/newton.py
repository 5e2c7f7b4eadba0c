r"""Newton's method for a convex function of a few parameters, some of which have a lowest value.

It is run until rounding is all that is left: a search that ends as soon as the function hardly falls stops at another
place when its input changes in the last digit.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Flags

_MOST_STEPS = 100
_MOST_HALVINGS = 40
# What a step promises, as a share of the value: below the first it is taken without a look, since rounding would say
# whether the function falls; below the second there is nothing left to gain.
_UNSEEN, _SETTLED = 1e-10, 1e-24
# Steps that are taken without a look at most: each doubles the digits.
_MOST_UNSEEN = 4
# Keeps the curvature away from 0 where a parameter changes nothing.
_LEAST_CURVATURE = 1e-13


class Local(NamedTuple):
    """A function at one place: its value, gradient of shape (p,) and Hessian of shape (p, p)."""

    value: float
    gradient: Array
    hessian: Array


def newton(function: Callable[[Array], Local], start: Array, lowest: Array) -> Array:
    """Where a convex function is smallest.

    Parameters
    ----------
    function : callable
    start, lowest : ndarray of shape (p,)
        Where to begin, and the lowest value of every parameter, −∞ for none.
    """
    place = np.maximum(start, lowest)
    here = function(place)
    unseen = 0
    for _ in range(_MOST_STEPS):
        step = _step(here, place <= lowest)
        promised = float(-here.gradient @ step)
        if promised <= _SETTLED * (1.0 + abs(here.value)) or unseen == _MOST_UNSEEN:
            break
        following = np.maximum(place + step, lowest)
        if promised <= _UNSEEN * (1.0 + abs(here.value)):
            place, here, unseen = following, function(following), unseen + 1
            continue
        there = function(following)
        for _ in range(_MOST_HALVINGS):
            if there.value <= here.value - 1e-4 * float(here.gradient @ (place - following)):
                break
            step = step / 2.0
            following = np.maximum(place + step, lowest)
            there = function(following)
        place, here = following, there
    return place


def _step(here: Local, at_lowest: Flags) -> Array:
    """The Newton step of all parameters but those that would leave their range at once."""
    step = np.zeros_like(here.gradient)
    free = ~(at_lowest & (here.gradient >= 0.0))
    if free.any():
        hessian = here.hessian[np.ix_(free, free)]
        size = max(float(np.abs(np.diag(hessian)).max()), np.finfo(np.float64).tiny)
        step[free] = np.linalg.solve(hessian + _LEAST_CURVATURE * size * np.eye(len(hessian)), -here.gradient[free])
    return step
