"""Records unlike anything known: counted while a table is read, and compared with the training rows.

A table is compared in three ways. Values beyond the limits of their column are counted in all rows. Bins of columns,
and distances to the nearest medoid, are counted in all rows of a short table and in every 16th of a long one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import warn
from qmedoid.metrics.intervals import Change, share_change
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
_SHORT, _EVERY = 8192, 16
_SHOWN = 5


class Outside(NamedTuple):
    """Values of an encoded column beyond its limits, in `rows` rows; `row` holds the one farthest out, `value`.

    The row is that of the table, or of a `file` where each file of a table was scored by itself.
    """

    column: str
    rows: int
    row: int
    value: float
    lowest: float
    highest: float
    is_date: bool = False
    file: str | None = None

    def as_dict(self) -> OutsideDict:
        """The values by name, fit for JSON; the file only where there are several."""
        found = {name: value for name, value in self._asdict().items() if name != "file" or value is not None}
        return cast("OutsideDict", found)

    def line(self, n_rows: int) -> str:
        """The values in words."""
        value, lowest, highest = (_shown(one, self.is_date) for one in (self.value, self.lowest, self.highest))
        where = f"is {value} in row {self.row}" + ("" if self.file is None else f" of {self.file}")
        if self.rows > 1:
            where += f", and far out in {self.rows - 1:,} more of {n_rows:,} rows"
        return f"{self.column!r} {where}: the training rows had {lowest} to {highest}"


class Shifted(NamedTuple):
    """An encoded column whose values are distributed otherwise.

    From `low` to `high` (None where open) is the bin that has changed the most, `share` and `expected` its rows here
    and in training; `moved` is the share of the rows that lie in other bins than expected (total variation).
    """

    column: str
    low: float | None
    high: float | None
    share: float
    expected: float
    moved: float
    kind: Literal["number", "flag", "level"] = "number"

    def line(self) -> str:
        """The change in words."""
        if self.kind != "number":
            what = "has a new level" if self.kind == "level" else "holds"
        elif self.low is None:
            what = f"is below {self.high:.6g}"
        else:
            what = f"is {self.low:.6g} " + ("or more" if self.high is None else f"to {self.high:.6g}")
        shares = f"{100 * self.share:.3g} % of the rows, and {100 * self.expected:.3g} % was expected"
        return f"{self.column!r} {what} in {shares}"


@dataclass(frozen=True)
class NoveltyReport:
    """How unlike the training rows the records of a table are.

    Of "too few" rows only single values beyond all limits are named; of a model without a summary of its training rows
    the status is "unknown". Bins and distances were counted in `compared` rows. Columns that changed the most come
    first. `far_share` of the records lie farther from every medoid than 99 % of the training rows; `far_change` has the
    standard errors to what was expected, and the shares that a sample of this size may show.
    """

    status: Literal["none", "unlike", "too few", "unknown"]
    rows: int = 0
    compared: int = 0
    outside_rows: int = 0
    outside: tuple[Outside, ...] = ()
    shifted: tuple[Shifted, ...] = ()
    far_share: float | None = None
    far_expected: float | None = None
    far_change: Change | None = None
    is_far: bool = False

    def lines(self) -> list[str]:
        """What there is to say, a line for each thing."""
        if self.status != "unlike":
            return []
        lines = [_more([one.line(self.rows) for one in self.outside])] if self.outside else []
        lines += [_more([one.line() for one in self.shifted])] if self.shifted else []
        if self.is_far and self.far_change is not None:
            lines.append(
                f"{100 * (self.far_share or 0):.3g} % of the records lie farther from every medoid than 99 % of the "
                f"training rows do ({100 * (self.far_expected or 0):.2g} % was expected, up to "
                f"{100 * self.far_change.high:.2g} %)"
            )
        return lines

    def with_rows(self, rows: npt.NDArray[np.int64]) -> "NoveltyReport":
        """The report about rows that stand at these places of a file, under their numbers in the file."""
        return replace(self, outside=tuple(one._replace(row=int(rows[one.row])) for one in self.outside))

    def warn(self) -> None:
        """A warning, if there is something to say."""
        lines = self.lines()
        if lines:
            warn("Records are unlike those the model was fitted on:\n" + "\n".join(f"~ {line}" for line in lines))

    def as_dict(self) -> NoveltyDict:
        """Everything by name, fit for JSON."""
        change = self.far_change
        return {
            "status": self.status,
            "compared_rows": self.compared,
            "outside_rows": self.outside_rows,
            "outside": [one.as_dict() for one in self.outside],
            "shifted": [cast("ShiftedDict", one._asdict()) for one in self.shifted],
            "far_share": self.far_share,
            "far_expected": self.far_expected,
            "far_low": None if change is None else change.low,
            "far_high": None if change is None else change.high,
            "far_standard_errors": None if change is None else change.standard_errors,
            "is_far": self.is_far,
        }


@dataclass
class _Counts:
    """Bins and far records of some rows."""

    rows: int = 0
    far: int = 0
    bins: Codes | int = 0

    def add(self, model: Model, novelty: Novelty, columns: Columns, rows: slice) -> None:
        part = [np.ascontiguousarray(column[rows], dtype=np.float64) for column in columns]
        if not len(part[0]):
            return
        self.rows += len(part[0])
        bins, far = novelty.counted(part, model.layout.is_read, model.medoid_part)
        self.bins, self.far = self.bins + bins, self.far + far

    def merge(self, other: "_Counts") -> None:
        self.rows, self.far, self.bins = self.rows + other.rows, self.far + other.far, self.bins + other.bins


@dataclass
class NoveltyTally:
    """Counts over the encoded columns of a table, batch by batch, in memory that does not grow.

    They hold no model, and can be sent elsewhere; those of the parts of a table add up.

    `outside` has, by place among the columns with limits, how far out the farthest value is, and what is said of it.
    Bins and distances were counted in all of the first rows, and in every 16th row.
    """

    rows: int = 0
    outside_rows: int = 0
    outside: dict[int, tuple[float, Outside]] = field(default_factory=dict)
    first: _Counts = field(default_factory=_Counts)
    thin: _Counts = field(default_factory=_Counts)

    def merge(self, other: "NoveltyTally", file: str) -> None:
        """Add the rows of one more file of the table."""
        self.rows += other.rows
        self.outside_rows += other.outside_rows
        for place, (excess, worst) in other.outside.items():
            self._keep_outside(place, excess, worst._replace(file=file))
        self.first.merge(other.first)
        self.thin.merge(other.thin)

    def _keep_outside(self, place: int, excess: float, worst: Outside) -> None:
        """Add values beyond the limits of a column, and keep the one that is farthest out."""
        before = self.outside.get(place, (0.0, worst._replace(rows=0)))
        kept = before if before[0] >= excess else (excess, worst)
        self.outside[place] = kept[0], kept[1]._replace(rows=before[1].rows + worst.rows)

    def add(self, model: Model, columns: Columns, rows: Codes | None = None) -> None:
        """Count the encoded columns of the next rows, all of which the model could decide about.

        `rows` are their places in the table, where rows between them were left out.
        """
        novelty, n_rows = model.novelty, len(columns[0])
        if novelty is None or not n_rows:
            return
        self._add_outside(model, novelty, columns, rows)
        if self.rows < _SHORT:
            self.first.add(model, novelty, columns, slice(0, _SHORT - self.rows))
        self.thin.add(model, novelty, columns, slice(-self.rows % _EVERY, n_rows, _EVERY))
        self.rows += n_rows

    def _add_outside(self, model: Model, novelty: Novelty, columns: Columns, places: Codes | None) -> None:
        found = novelty.outside(columns, model.layout.is_read)
        if not found:
            return
        self.outside_rows += int(np.logical_or.reduce(list(found.values())).sum())
        are_days = _are_days(model)
        for place, rows in found.items():
            column = int(novelty.limited[place])
            excess = novelty.excess(place, columns[column])
            row = int(np.argmax(excess))
            place_in_table = self.rows + row if places is None else int(places[row])
            name, value = model.layout.names[column], float(columns[column][row])
            bounds = float(novelty.lowest[place]), float(novelty.highest[place])
            worst = Outside(name, int(rows.sum()), place_in_table, value, *bounds, are_days[column])
            self._keep_outside(place, float(excess[row]), worst)

    def report(self, model: Model) -> NoveltyReport:
        """All of it compared with the training rows."""
        novelty = model.novelty
        if novelty is None:
            return NoveltyReport("unknown", self.rows)
        counts = self.first if self.rows <= _SHORT else self.thin
        usual = _RARE_ROWS * self.rows / novelty.n_rows
        ordered = sorted(self.outside.items(), key=lambda item: (-item[1][1].rows, item[0]))
        outside = tuple(one for _, (excess, one) in ordered if one.rows > usual or excess > _FAR_OUT)
        found = NoveltyReport("unlike", self.rows, counts.rows, self.outside_rows, outside)
        if self.rows < ENOUGH_ROWS:
            return found if outside else replace(found, status="too few")
        found = replace(found, shifted=self._shifted(model, novelty, counts))
        if novelty.far is not None and model.medoids is not None:
            width = NormalDist().inv_cdf(1.0 - _CHANCE)
            far = share_change(counts.far, counts.rows, novelty.far.beyond, novelty.far.n_rows, width=width)
            share, expected = counts.far / counts.rows, novelty.far.beyond / novelty.far.n_rows
            is_far = far.standard_errors > width and counts.far >= LEAST_FAR * counts.rows
            found = replace(found, far_share=share, far_expected=expected, far_change=far, is_far=is_far)
        return found if outside or found.shifted or found.is_far else replace(found, status="none")

    def _shifted(self, model: Model, novelty: Novelty, counts: _Counts) -> tuple[Shifted, ...]:
        read = model.layout.is_read[novelty.binned]
        width = NormalDist().inv_cdf(1.0 - _CHANCE / max(int(read.sum()), 1))
        found, starts = [], novelty.offsets + np.arange(len(novelty.offsets))
        for place in np.flatnonzero(read).tolist():
            bins = slice(starts[place], starts[place + 1])
            here, before = np.asarray(counts.bins)[bins], novelty.counts[bins]
            share, expected = here / counts.rows, before / novelty.n_rows
            moved = float(np.abs(share - expected).sum() / 2.0)
            if moved >= LEAST_SHIFT and _deviates(here, before) > width:
                name = model.layout.names[novelty.binned[place]]
                found.append(_shift(name, novelty.bin_edges(place), share, expected, moved))
        return tuple(sorted(found, key=lambda one: -one.moved))


def _shift(name: str, edges: Array, share: Array, expected: Array, moved: float) -> Shifted:
    kind: Literal["number", "flag", "level"] = "number"
    worst = int(np.argmax(share - expected))
    if name.endswith(": frequency"):
        kind, worst, name = "level", 0, name.removesuffix(": frequency")
    elif edges.tolist() == [0.5]:
        kind, worst = "flag", 1
    low = None if worst == 0 else float(edges[worst - 1])
    high = None if worst == len(edges) else float(edges[worst])
    return Shifted(name, low, high, float(share[worst]), float(expected[worst]), moved, kind)


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


def _are_days(model: Model) -> list[bool]:
    """For every encoded column, whether it counts days."""
    return [
        isinstance(encoding, Dates) and number < len(encoding.parts) and encoding.parts[number] == "days"
        for encoding in model.encodings
        for number in range(len(encoding.outputs))
    ]


def _more(lines: list[str]) -> str:
    return "; ".join(lines[:_SHOWN]) + (f"; and {len(lines) - _SHOWN} more columns" if len(lines) > _SHOWN else "")


def _shown(value: float, is_date: bool) -> str:
    if not is_date or not abs(value) < 2.0**31:
        return f"{value:.6g}"
    return str(np.datetime64(int(np.floor(value)), "D"))
