"""Fits whose bits do not depend on the number of threads that linear algebra may use."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

P = ParamSpec("P")
R = TypeVar("R")


def one_blas_thread(fit: Callable[P, R]) -> Callable[P, R]:
    """Let a fit use one thread for matrix products: on more, the order of their sums depends on how many there are.

    The kernels keep their own threads; they are parallel over outputs only.
    """

    @functools.wraps(fit)
    def limited(*arguments: P.args, **named: P.kwargs) -> R:
        with threadpool_limits(limits=1, user_api="blas"):
            return fit(*arguments, **named)

    return limited
