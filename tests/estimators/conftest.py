"""What tests of estimators share."""

import pytest

import few_trees as trees


@pytest.fixture(scope="module")
def few_trees():
    """As few trees as can be, in all fits of a module."""
    with trees.few_trees():
        yield
