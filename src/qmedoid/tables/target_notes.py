"""What is odd about a target: a quantity, classes of one row, classes that differ by case or blanks only."""

from collections.abc import Sequence
from typing import Any

from qmedoid.exceptions import some_of
from qmedoid.model.operating_point import Counts

# So many different numbers are a quantity; fewer are one where each has only a few rows.
_MANY_NUMBERS, _SOME_NUMBERS, _FEW_ROWS = 30, 10, 10
# Records called rare per record that is, below which nobody wants to decide for the likelier class.
_SELDOM = 0.2
# Names in a note.
_NAMED = 5


def target_notes(labels: Sequence[Any], counts: Sequence[int]) -> list[str]:
    """Notes about the classes of a target.

    Parameters
    ----------
    labels : sequence
        The classes.
    counts : sequence of int
        Rows of each.
    """
    return [*_quantity(labels, sum(counts)), *_single_rows(labels, counts), *_alike(labels)]


def seldom_note(labels: Sequence[Any], counts: Counts) -> str | None:
    """A note on a rare class that is hardly ever called so where the likelier class decides; None where it is.

    Parameters
    ----------
    labels : sequence of two
        The classes; the second is the one that the counts call positive.
    counts : Counts
        What was decided about rows whose class is known.
    """
    tp, fp, fn, tn = counts
    rows, called = (tp + fn, fp + tn), (tp + fp, fn + tn)
    rare = 0 if rows[0] <= rows[1] else 1
    if called[rare] >= _SELDOM * rows[rare]:
        return None
    are = ["is" if n == 1 else "are" for n in (called[rare], rows[rare])]
    return (
        f"no operating point was asked for, and the likelier class decides: {called[rare]:,} of {sum(counts):,} rows "
        f"{are[0]} called {labels[1 - rare]!r}, and {rows[rare]:,} {are[1]}. To find more, fit with an operating "
        f"point: alert_rate={max(rows[rare] / sum(counts), 1e-4):.2g}, min_recall or cost (--alert-rate, --min-recall, "
        "--cost)."
    )


def _quantity(labels: Sequence[Any], n_rows: int) -> list[str]:
    numbers = [label for label in labels if isinstance(label, int | float) and not isinstance(label, bool)]
    few = len(numbers) > _SOME_NUMBERS and n_rows < _FEW_ROWS * len(numbers)
    if len(numbers) < len(labels) or not (len(numbers) > _MANY_NUMBERS or few):
        return []
    return [
        f"the target holds {len(numbers):,} different numbers, from {min(numbers)} to {max(numbers)}: that looks like "
        "a quantity, and each number is fitted as a class. Cut it into a few ranges in a new column, and fit that."
    ]


def _single_rows(labels: Sequence[Any], counts: Sequence[int]) -> list[str]:
    single = [repr(label) for label, count in zip(labels, counts, strict=True) if count == 1]
    if not single:
        return []
    which = f"the class {single[0]} has"
    if len(single) > 1:
        which = f"{len(single):,} classes ({some_of(single, _NAMED)}) have"
    return [f"{which} one row only, so that none can be held out. Add rows, join classes, or leave such rows out."]


def _alike(labels: Sequence[Any]) -> list[str]:
    spellings: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            spellings.setdefault("".join(label.casefold().split()), []).append(label)
    return [
        f"the classes {' and '.join(map(repr, alike[:_NAMED]))} differ by case or blanks only, and are fitted as "
        f"{len(alike)} classes. Write them alike if one class is meant."
        for alike in spellings.values()
        if len(alike) > 1
    ]
