"""Fits with few trees, for tests that ask nothing of the trees: growing them is most of a fit."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from unittest import mock

from qmedoid.estimators import rare, sum


@contextmanager
def few_trees(**settings: int) -> Iterator[None]:
    """Other settings for the trees of all methods that have any; without any, as few as can be."""
    asked = settings or {"n_iterations": 10, "n_folds": 2, "n_seeds": 1}
    with ExitStack() as patches:
        for module in (rare, sum):
            few = partial(module.BoostingSettings, **asked)
            patches.enter_context(mock.patch.object(module, "BoostingSettings", few))
        yield
