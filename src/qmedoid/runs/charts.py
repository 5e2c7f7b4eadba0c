"""Pictures of a run as SVG text, each with its values as a table below it."""

from collections.abc import Mapping, Sequence
from typing import Any

from qmedoid.markup.html import Html, element, table
from qmedoid.markup.svg import Axis, axes, label, line, path, picture, short, spanning
from qmedoid.model_report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, count, figure

WIDE, WIDE_RIGHT = 440.0, 428.0
_ERRORS = 2.0


def overlaps_chart(overlaps: Mapping[str, Any]) -> Html:
    """Measured overlaps against exact ones."""
    points = overlaps["points"]
    drawing = _against_exact(points, (0.0, 1.0), "Overlaps of tests: measured against exact", "overlap")
    shown, every = len(points), overlaps["all"]
    about = f"{count(shown)} of {count(every)} tests." if shown < every else f"All {count(every)} tests."
    about += " Dashed: no error. Measured overlaps may lie below 0 or above 1: they are not cut off."
    rows = [
        (f"{label(one['from'])} to {label(one['to'])}", count(one["tests"]), label(one["mean_error"]),
         label(one["rms_error"]), label(one["rms_stated"]))
        for one in overlaps["bins"]
    ]  # fmt: skip
    head = ("exact overlap", "tests", "mean error", "rms error", "rms error stated")
    return figure("Overlaps", about, drawing, table("Errors by exact overlap", head, rows, numbers=(1, 2, 3, 4)))


def values_chart(values: Mapping[str, Any]) -> Html:
    """Measured expectation values of a trained circuit against exact ones."""
    points, ends = values["points"], tuple(values["ends"])
    name = "Expectation values of the trained circuit: measured against exact"
    shown, every = len(points), values["all"]
    about = f"{count(shown)} of {count(every)} values." if shown < every else f"All {count(every)} values."
    about += " Exact is what a simulation gives for the same inputs. Dashed: no error."
    rows = [
        (one["observable"], label(one["mean_error"]), label(one["rms_error"]), label(one["rms_stated"]))
        for one in values["observables"]
    ]
    head = ("observable", "mean error", "rms error", "rms error stated")
    made = table("Errors by observable", head, rows, numbers=(1, 2, 3))
    return figure("Expectation values", about, _against_exact(points, ends, name, "value"), made)


def _against_exact(points: Sequence[Sequence[float]], ends: tuple[float, float], title: str, what: str) -> Html:
    """Points (exact, measured) of numbers that are between two ends if they are exact."""
    measured = [point[1] for point in points]
    x = Axis(*ends, LEFT, RIGHT)
    y = Axis(min([ends[0], *measured]), max([ends[1], *measured]), BOTTOM, TOP)
    dots = [
        element("circle", cx=short(x.place(exact)), cy=short(y.place(read)), r=2, class_="plainly")
        for exact, read in points
    ]
    diagonal = path([(x.place(end), y.place(end)) for end in ends], "by-chance")
    return picture(WIDTH, HEIGHT, title, axes(x, y, f"exact {what}", f"measured {what}"), diagonal, *dots)


def margins_chart(margins: Sequence[Mapping[str, Any]], n_records: int, n_classes: int) -> Html:
    """Margins in their order, with two errors on either side; those of undecided records are marked."""
    x = Axis(-0.5, max(len(margins) - 0.5, 0.5), LEFT, WIDE_RIGHT)
    ends = [one["margin"] + sign * _ERRORS * one["margin_error"] for one in margins for sign in (-1, 1)]
    y = spanning([*ends, *(one["margin_in_closed_form"] for one in margins)], BOTTOM, TOP, zero=True)
    drawn = [line(LEFT, y.place(0.0), WIDE_RIGHT, y.place(0.0), "cut")]
    for place, one in enumerate(margins):
        at, reach = x.place(place), _ERRORS * one["margin_error"]
        kind = "toward" if one["undecided"] else "plainly"
        drawn.append(line(at, y.place(one["margin"] - reach), at, y.place(one["margin"] + reach), "whisker"))
        drawn.append(element("circle", cx=short(at), cy=short(y.place(one["margin"])), r=3, class_=kind))
        true = y.place(one["margin_in_closed_form"])
        drawn.append(line(at - 2.5, true, at + 2.5, true, "axis"))
    drawing = picture(
        WIDE, HEIGHT, "Margins with two errors on either side, in the order of the margins",
        axes(x, y, "records, by margin", "margin"), *drawn,
    )  # fmt: skip
    about = f"{count(len(margins))} of {count(n_records)} records" if len(margins) < n_records else "All records"
    about += ", with two errors on either side. Short line: the closed form. Other color: undecided, because zero is "
    about += "within two errors"
    about += "; above zero for the second class." if n_classes == 2 else "; the best class minus the next."
    rows = [
        (count(one["row"]), label(one["margin"]), label(one["margin_error"]), label(one["margin_in_closed_form"]),
         "undecided" if one["undecided"] else "settled")
        for one in margins
    ]  # fmt: skip
    head = ("row", "margin", "error", "closed form", "")
    return figure("Margins", about, drawing, table("Margins with errors", head, rows, numbers=(0, 1, 2, 3)))
