"""Splits in the proportions of the paper: 25 % test, then 25 % of the rest for validation, both stratified."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

Rows = npt.NDArray[np.intp]


class Split(NamedTuple):
    """Row numbers of the three parts of a table."""

    train: Rows
    val: Rows
    test: Rows

    @property
    def fit(self) -> Rows:
        """Training and validation rows together, for methods that need no validation split."""
        return np.concatenate([self.train, self.val])


def paper_split(y: npt.NDArray[Any], seed: int) -> Split:
    """A stratified split for one seed."""
    rest, test = train_test_split(np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed)
    train, val = train_test_split(rest, test_size=0.25, stratify=y[rest], random_state=seed)
    return Split(train, val, test)
