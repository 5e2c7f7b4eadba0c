"""Row groups of a fit: those that were given, or equal rows, with a note where there are many."""

from typing import Any

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import warn
from qmedoid.geometry.row_groups import equal_rows_note, given_groups, row_groups


class Together:
    """Groups that are already known, passed from one estimator to the next instead of labels."""

    def __init__(self, groups: Codes | None) -> None:
        self.groups = groups


def groups_of_fit(given: Any, table: Array, codes: Codes) -> Codes | None:
    """Group of every row, None where every row is a group; a warning says how many rows are equal.

    Parameters
    ----------
    given : array-like of shape (n,), Together or None
        Labels of groups; None takes equal rows as groups.
    table : ndarray of shape (n, M)
    codes : ndarray of shape (n,)
        Classes.
    """
    if isinstance(given, Together):
        return given.groups
    if given is not None:
        return given_groups(given, len(table))
    found = row_groups(table, codes)
    note = equal_rows_note(found)
    if note is not None:
        warn(f"{note}.")
    return found
