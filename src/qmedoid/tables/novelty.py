"""Records unlike anything known: counted while a table is read, and compared with the training rows.

A table is compared in three ways. Values beyond the limits of their column are counted in all rows. Bins of columns,
and distances to the nearest medoid, are counted in all rows of a short table and in every 16th of a long one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import warn
from qmedoid.metrics.intervals import share_change
from qmedoid.model.contract import Dates
from qmedoid.model.model import Model
from qmedoid.model.novelty import Novelty
from qmedoid.tables.documents import NoveltyDict, OutsideDict, ShiftedDict

Columns = Sequence[npt.NDArray[Any]]

ENOUGH_ROWS = 20
"""Rows from which on shares are compared; fewer are too few to tell."""
LEAST_SHIFT = 0.1
"""Share of the rows that must have moved to other bins of a column before that is said, however sure it is."""
LEAST_FAR = 0.05
"""Share of the rows that must lie far from all medoids before that is said."""
_CHANCE = 0.001
# Values beyond the limits are reported if they are more frequent than this many training rows, or this far out.
_RARE_ROWS, _FAR_OUT = 2.0, 10.0
_ONE_POWER = 0.3
_SHORT, _EVERY = 8192, 16
_SHOWN = 5


def are_single(found: NoveltyDict, rows: int) -> bool:
    """Whether at most single rows of a table are unlike the training rows, too few to move its alert rate."""
    most = max((one["rows"] for one in found["outside"]), default=0)
    return not (found["shifted"] or found["is_far"]) and most < LEAST_SHIFT * rows


@dataclass(frozen=True)
class NoveltyReport:
    """How unlike the training rows the records of a table are.

    Attributes
    ----------
    found : dict
        What was found, by name. Of "too few" rows only single values beyond all limits are named; of a model without a
        summary of its training rows the status is "unknown". Columns that changed the most come first.
    lines : list of str
        What there is to say, a line for each thing.
    """

    found: NoveltyDict
    lines: list[str]

    def warn(self) -> None:
        """A warning, if there is something to say."""
        if self.lines:
            warn("Records are unlike those the model was fitted on:\n" + "\n".join(f"~ {line}" for line in self.lines))


def _lines(found: NoveltyDict, n_rows: int) -> list[str]:
    outside, shifted = list[str](), list[str]()
    for far in found["outside"]:
        value, lowest, highest = (_shown(far[name], far["is_date"]) for name in ("value", "lowest", "highest"))
        where = f"{value} in row {far['row']}" + (f" of {far['file']}" if "file" in far else "")
        if far["rows"] < max(LEAST_SHIFT * n_rows, 2):
            more = f", and far out in {far['rows'] - 1:,} more of {n_rows:,} rows" if far["rows"] > 1 else ""
            outside.append(f"{far['column']!r} is {where}{more}: the training rows had {lowest} to {highest}")
        else:
            which = f"{100 * far['rows'] / n_rows:.3g} % of the rows, such as {where}{_units(far)}"
            outside.append(f"{far['column']!r} lies outside of its training range ({lowest} to {highest}) in {which}")
    for moved in found["shifted"]:
        low, high = moved["low"], moved["high"]
        if moved["kind"] != "number":
            what = "has a new level" if moved["kind"] == "level" else "holds"
        elif low is None:
            what = f"is below {high:.6g}"
        else:
            what = f"is {low:.6g} " + ("or more" if high is None else f"to {high:.6g}")
        shares = f"{100 * moved['share']:.3g} % of the rows, and {100 * moved['expected']:.3g} % was expected"
        shifted.append(f"{moved['column']!r} {what} in {shares}")
    lines = [_more(parts) for parts in (outside, shifted) if parts]
    if found["is_far"]:
        share, expected, high = (100 * (found[name] or 0) for name in ("far_share", "far_expected", "far_high"))
        lines.append(
            f"{share:.3g} % of the records lie farther from every medoid than 99 % of the training rows do "
            f"({expected:.2g} % was expected, up to {high:.2g} %)"
        )
    return lines if found["status"] == "unlike" else []


@dataclass
class NoveltyTally:
    """Counts over the encoded columns of a table, batch by batch, in memory that does not grow.

    They hold no model, and can be sent elsewhere; those of the parts of a table add up.

    `outside` has, by place among the columns with limits, how far out the farthest value is, and what is said of it.
    Rows, far rows and bins were counted in the `first` rows, and in every 16th row (`thin`).
    """

    rows: int = 0
    outside_rows: int = 0
    outside: dict[int, tuple[float, OutsideDict]] = field(default_factory=dict)
    first: Codes | int = 0
    thin: Codes | int = 0

    def merge(self, other: "NoveltyTally", file: str) -> None:
        """Add the rows of one more file of the table."""
        self.rows += other.rows
        self.outside_rows += other.outside_rows
        for place, (excess, worst) in other.outside.items():
            self._keep_outside(place, excess, {**worst, "file": file})
        self.first, self.thin = self.first + other.first, self.thin + other.thin

    def _keep_outside(self, place: int, excess: float, worst: OutsideDict) -> None:
        """Add values beyond the limits of a column, and keep the one that is farthest out."""
        before, kept = self.outside.get(place, (0.0, worst))
        rows = worst["rows"] + (kept["rows"] if place in self.outside else 0)
        kept = kept if before >= excess else worst
        self.outside[place] = max(before, excess), {**kept, "rows": rows}

    def add(self, model: Model, columns: Columns, rows: Codes | None = None) -> None:
        """Count the encoded columns of the next rows, all of which the model could decide about.

        `rows` are their places in the table, where rows between them were left out.
        """
        novelty, n_rows = model.novelty, len(columns[0])
        if novelty is None or not n_rows:
            return
        self._add_outside(model, novelty, columns, rows)

        def counted(some: slice) -> Codes | int:
            part = [np.ascontiguousarray(column[some], dtype=np.float64) for column in columns]
            if not len(part[0]):
                return 0
            bins, far = novelty.counted(part, model.layout.is_read, model.medoid_part)
            return np.concatenate([[len(part[0]), far], bins])

        if self.rows < _SHORT:
            self.first = self.first + counted(slice(0, _SHORT - self.rows))
        self.thin = self.thin + counted(slice(-self.rows % _EVERY, n_rows, _EVERY))
        self.rows += n_rows

    def _add_outside(self, model: Model, novelty: Novelty, columns: Columns, places: Codes | None) -> None:
        found = novelty.outside(columns, model.layout.is_read)
        if not found:
            return
        self.outside_rows += int(np.logical_or.reduce(list(found.values())).sum())
        are_days = [isinstance(one, Dates) and name == ": days" for one in model.encodings for name in one.outputs]
        for place, rows in found.items():
            column = int(novelty.limited[place])
            excess = novelty.excess(place, columns[column])
            row = int(np.argmax(excess))
            worst: OutsideDict = {
                "column": model.layout.names[column],
                "rows": int(rows.sum()),
                "row": self.rows + row if places is None else int(places[row]),
                "value": float(columns[column][row]),
                "lowest": float(novelty.lowest[place]),
                "highest": float(novelty.highest[place]),
                "is_date": are_days[column],
            }
            self._keep_outside(place, float(excess[row]), worst)

    def report(self, model: Model, numbers: Codes | None = None) -> NoveltyReport:
        """All of it compared with the training rows; rows have `numbers` in their file, if they are part of it."""
        novelty = model.novelty
        found: NoveltyDict = {
            "status": "unknown",
            "compared_rows": 0,
            "outside_rows": 0,
            "outside": [],
            "shifted": [],
            "far_share": None,
            "far_expected": None,
            "far_low": None,
            "far_high": None,
            "far_standard_errors": None,
            "is_far": False,
        }
        if novelty is None:
            return NoveltyReport(found, [])
        usual = _RARE_ROWS * self.rows / novelty.n_rows
        ordered = sorted(self.outside.items(), key=lambda item: (-item[1][1]["rows"], item[0]))
        found["outside"] = [one for _, (excess, one) in ordered if one["rows"] > usual or excess > _FAR_OUT]
        if numbers is not None:
            found["outside"] = [{**one, "row": int(numbers[one["row"]])} for one in found["outside"]]
        found["outside_rows"] = self.outside_rows
        if self.rows:
            counts = np.asarray(self.first if self.rows <= _SHORT else self.thin)
            found["compared_rows"] = int(counts[0])
        if self.rows >= ENOUGH_ROWS:
            self._compare(model, novelty, counts, found)
        is_unlike = found["outside"] or found["shifted"] or found["is_far"]
        found["status"] = "unlike" if is_unlike else "none" if self.rows >= ENOUGH_ROWS else "too few"
        return NoveltyReport(found, _lines(found, self.rows))

    def _compare(self, model: Model, novelty: Novelty, counts: Codes, found: NoveltyDict) -> None:
        """Compare the bins of columns, and the distances from the medoids, with those of the training rows."""
        rows, far, bins = int(counts[0]), int(counts[1]), counts[2:]
        read = model.layout.is_read[novelty.binned]
        width = NormalDist().inv_cdf(1.0 - _CHANCE / max(int(read.sum()), 1))
        starts = novelty.offsets + np.arange(len(novelty.offsets))
        for place in np.flatnonzero(read).tolist():
            own = slice(starts[place], starts[place + 1])
            here, before = bins[own], novelty.counts[own]
            share, expected = here / rows, before / novelty.n_rows
            moved = float(np.abs(share - expected).sum() / 2.0)
            if moved >= LEAST_SHIFT and _deviates(here, before) > width:
                name, edges = model.layout.names[novelty.binned[place]], novelty.bin_edges(place)
                worst = int(np.argmax(share - expected))
                kind: Literal["number", "flag", "level"] = "number"
                if name.endswith(": frequency"):
                    kind, worst, name = "level", 0, name.removesuffix(": frequency")
                elif edges.tolist() == [0.5]:
                    kind, worst = "flag", 1
                shift: ShiftedDict = {
                    "column": name,
                    "low": None if worst == 0 else float(edges[worst - 1]),
                    "high": None if worst == len(edges) else float(edges[worst]),
                    "share": float(share[worst]),
                    "expected": float(expected[worst]),
                    "moved": moved,
                    "kind": kind,
                }
                found["shifted"].append(shift)
        found["shifted"].sort(key=lambda one: -one["moved"])
        if novelty.far is not None and model.medoids is not None:
            width = NormalDist().inv_cdf(1.0 - _CHANCE)
            change = share_change(far, rows, novelty.far.beyond, novelty.far.n_rows, width=width)
            found["far_share"], found["far_expected"] = far / rows, novelty.far.beyond / novelty.far.n_rows
            found["far_standard_errors"], found["far_low"], found["far_high"] = change
            found["is_far"] = change.standard_errors > width and far >= LEAST_FAR * rows


def record_novelty(model: Model, columns: Columns, *, threads: int | None = None) -> Array:
    """Novelty of every record from its encoded columns, shape (n,): see `Novelty.of_records`; NaN where unknown."""
    novelty = model.novelty
    if novelty is None:
        return np.full(len(columns[0]), np.nan)
    return novelty.of_records(columns, model.layout.is_read, model.medoid_part, threads)


def _deviates(here: Codes, before: Codes) -> float:
    r"""By how many standard errors the counts of k bins in two samples differ more than by chance.

    .. math:: \chi^2_{k-1} \approx \sum_b (1 - p_b)\,z_b^2

    z is the difference of the shares of a bin in standard errors (Anscombe's, which holds for a few rows), p the share
    in both samples; Wilson and Hilferty's cube root makes it a normal deviate.
    """
    n, expected_n, freedom = int(here.sum()), int(before.sum()), len(here) - 1
    changes = [
        share_change(int(now), n, int(then), expected_n, width=1.0).standard_errors
        for now, then in zip(here, before, strict=True)
    ]
    pooled = (here + before) / (n + expected_n)
    square = float((1.0 - pooled) @ np.square(changes))
    spread = 2.0 / (9.0 * freedom)
    return float(((square / freedom) ** (1.0 / 3.0) - (1.0 - spread)) / np.sqrt(spread))


def _units(far: OutsideDict) -> str:
    """Whether a column may be in other units: what the farthest value is of the training value next to it."""
    end = far["highest"] if far["value"] > far["highest"] else far["lowest"]
    ratio = abs(far["value"] / end) if end else 1.0
    power = round(math.log10(ratio)) if ratio > 1.0 and not far["is_date"] else 0
    # The farthest of new values is rarely twice as far out as that of training, or half.
    if power < 1 or abs(math.log10(ratio) - power) > _ONE_POWER:
        return ""
    return f": about {10**power:,} times as far out, as in other units"


def _more(lines: list[str]) -> str:
    return "; ".join(lines[:_SHOWN]) + (f"; and {len(lines) - _SHOWN} more columns" if len(lines) > _SHOWN else "")


def _shown(value: float, is_date: bool) -> str:
    if not is_date or not abs(value) < 2.0**31:
        return f"{value:.6g}"
    return str(np.datetime64(int(np.floor(value)), "D"))
