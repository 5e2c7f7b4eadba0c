"""A run as one page of HTML that loads nothing and runs no script."""

from collections.abc import Mapping
from typing import Any

from qmedoid.markup.page import render as render_page
from qmedoid.markup.svg import label

PAGE = "report.html"
_SECONDS, _MINUTES = 120.0, 7200.0


def render(values: Mapping[str, Any]) -> str:
    """The page of a run.

    Parameters
    ----------
    values : mapping
        `writing.summary_of` and `values.page_values`, with the times of begin and end.
    """
    device_time = duration(values["plan"]["device_seconds"])
    return render_page("run.html", **values, device_time=device_time, fitted=_fitted)


def duration(seconds: float) -> str:
    """A time in the unit that it is read in."""
    if seconds < _SECONDS:
        return f"{label(seconds)} s"
    return f"{label(seconds / 60)} min" if seconds < _MINUTES else f"{label(seconds / 3600)} h"


def _fitted(line: Mapping[str, Any]) -> list[str]:
    """The cells of a fitted line, and whether it was used."""
    used = ("a line for each place" if line["by_position"] else "one line") if line["used"] else "left out"
    ends = (f"{line[name]:.4f} ± {line[f'{name}_error']:.4f}" for name in ("slope", "intercept"))
    return [*ends, f"{line['known_pairs']:,}", used]
