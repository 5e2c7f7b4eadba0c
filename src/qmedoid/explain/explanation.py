"""The explanation of one decision, as an object to look at: a dictionary, a picture, a page, a view in a notebook."""

import datetime
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar, cast

import pyarrow as pa
from markupsafe import Markup

from qmedoid._version import __version__
from qmedoid.exceptions import ParameterError
from qmedoid.explain import documents
from qmedoid.explain.flips import nearest_flips
from qmedoid.explain.sentences import in_words, term_text
from qmedoid.markup import charts
from qmedoid.markup.page import picture_file, render
from qmedoid.metrics.texts import cell_text, chance_texts, class_name, column_text, effect_text
from qmedoid.model.model import Model
from qmedoid.model.operating_point import probability
from qmedoid.spelling import did_you_mean

TOP = 10
"""Columns, groups and rows that are shown one by one."""
N_MEDOIDS = 5
"""Classes whose nearest medoids are shown."""
PAGE_TITLE, PICTURE_TITLE = "Why this record is called", "What the decision for"
"""How the titles of every page and picture begin."""
DIGITS = 3
"""Decimals of contributions in print."""
_PROBABILITIES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)

Made = Mapping[str, Any]
Part = TypeVar("Part", bound=Mapping[str, Any])


class Explanation(Mapping[str, Any]):
    """Why one record was decided as it was: contributions that add up to the margin, at every level.

    It is a mapping of all that is known; `to_dict` has what is worth to be kept or shown. Contributions are for the
    class ``"toward"`` where they are above 0: the positive one of two classes, whatever was decided, and the predicted
    one of more.

    Attributes
    ----------
    sentences : tuple of str
        The decision, where every record starts, the reasons by size, and the smallest change that turns the decision.
    similar : list of dict
        The most similar row of either class by the columns that decide this record, among the medoids or the known
        rows: what it shares with the record, where it is close, and where it differs.
    flips : list of dict
        The smallest changes of one column that lead to another class, each verified by scoring it. They are looked for
        when they are first used.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from qmedoid import EvidenceClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> why = EvidenceClassifier(random_state=0).fit(X, y).explain(X, row=0)
    >>> parts = [column["contribution"] for column in why["columns"]] + list(why["terms"].values())
    >>> bool(abs(sum(parts) - why["margin"]) < 1e-9)
    True
    >>> why.sentences[0].startswith("Called class 0: probability")
    True
    """

    def __init__(
        self,
        report: Mapping[str, Any],
        model: Model,
        record: pa.Table,
        *,
        top: int | None = TOP,
        fixed: Collection[str] = (),
        sha256: str | None = None,
        difference: Collection[str] = (),
    ) -> None:
        names = model.contract.names
        for name in fixed:
            if name not in names:
                raise ParameterError(f"There is no column {name!r} that could be fixed.{did_you_mean(name, names)}")
        self._report, self._model, self._record = dict(report), model, record
        self._top, self._fixed, self._sha256 = top, tuple(fixed), sha256
        self._difference = tuple(difference)
        self._time = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        if "probabilities" in report:
            self._report["probability"] = report["probabilities"][str(report["prediction"])]

    def __getitem__(self, name: str) -> Any:
        return self._report[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._report)

    def __len__(self) -> int:
        return len(self._report)

    @property
    def flips(self) -> list[documents.FlipDict]:
        """The smallest changes that lead to another class, the smallest first."""
        return cast("list[documents.FlipDict]", self._words["flips"])

    @cached_property
    def _words(self) -> dict[str, Any]:
        return in_words(self._report, nearest_flips(self._model, self._record, fixed=self._fixed))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The decision in sentences, the reason first; every number of them is in the dictionary."""
        return cast("tuple[str, ...]", self._words["sentences"])

    @property
    def similar(self) -> list[documents.SimilarRowDict]:
        """The most similar row of either class by the columns that decide, that of the predicted class first."""
        return cast("list[documents.SimilarRowDict]", self._words["similar"])

    def to_dict(self, top: int | None = None) -> documents.ExplainDict:
        """The explanation as plain values, fit for JSON.

        Parameters
        ----------
        top : int or None
            Columns, groups and rows that are listed, those that contribute most; the others are summed up under
            ``"rest"``, so that every level still adds up. None takes what `explain` was asked for; 0 lists all.
        """
        most = (self._top if top is None else top) or None
        columns, rest_of_columns = _listed(self._report["columns"], most)
        groups, rest_of_groups = _listed(self._report["groups"], most)
        rows, rest_of_rows = (None, None) if self._rows is None else _listed(self._rows, most)
        names = {one["name"] for one in columns}
        names |= {flip["column"] for flip in self.flips}
        shown = {name: cell for name, cell in self._report["record"].items() if most is None or name in names}
        report, mine = self._report, ("sentences", "similar", "medoids", "groups", "columns", "record")
        made = {name: value for name, value in report.items() if name not in mine}
        made |= {
            "row": report.get("row"),
            "sentences": list(self.sentences),
            "start_probability": probability(report["start"]) if "probabilities" in report else None,
            "record": shown,
            "columns": columns,
            "reasons": self._words["reasons"],
            "groups": [{name: value for name, value in one.items() if name != "records"} for one in groups],
            "rows": rows,
            "rest": {"columns": rest_of_columns, "groups": rest_of_groups, "rows": rest_of_rows},
            "similar": self.similar,
            "medoids": self._medoids(most, shown),
            "flips": self.flips,
            "fixed": list(self._fixed),
            "difference": list(self._difference),
            "model": {"sha256": self._sha256, "qmedoid": __version__},
            "time": self._time.isoformat(),
        }
        return cast("documents.ExplainDict", made)

    @cached_property
    def _rows(self) -> list[documents.RowTotalDict] | None:
        """Contributions by training row, over all groups; None where groups are not made of rows."""
        totals: dict[tuple[int, Any], float] = {}
        for group in self._report["groups"]:
            if "records" not in group:
                return None
            for one in group["records"]:
                key = one["training_row"], one["class"]
                totals[key] = totals.get(key, 0.0) + one["contribution"]
        parts: list[documents.RowTotalDict] = [
            {"training_row": row, "class": label, "contribution": one} for (row, label), one in totals.items()
        ]
        return sorted(parts, key=lambda part: (-abs(part["contribution"]), part["training_row"]))

    def _medoids(self, most: int | None, shown: Mapping[str, Any]) -> list[documents.NearestMedoidDict]:
        """The nearest medoids of the first classes, with the cells that are shown.

        ``"differs"`` are the columns in which their cells are not those of the record.
        """
        made = list[Any]()
        for one in self._report["medoids"][: N_MEDOIDS if most else None]:
            cells = None if one["record"] is None else {name: one["record"].get(name) for name in shown}
            differs = None if cells is None else [name for name, cell in cells.items() if cell != shown[name]]
            made.append({**one, "record": cells, "differs": differs})
        return made

    def to_svg(self) -> str:
        """A picture of the contributions, from the starting point of every record to the margin of this one."""
        return picture_file(_picture(self.to_dict()))

    def to_html(self) -> str:
        """A page that stands alone, without scripts: sentences, picture, columns, groups, rows, medoids and flips."""
        made = self.to_dict()
        title = f"{PAGE_TITLE} {class_name(made['prediction'], made['target'])}"
        return _page(made, "base.html", title, is_open=True)

    def _repr_html_(self) -> str:
        return _page(self.to_dict(), "notebook/view.html", self.sentences[0], is_open=False)

    def __repr__(self) -> str:
        return "\n".join(self.sentences)


def _listed(parts: list[Part], most: int | None) -> tuple[list[Part], documents.RestDict]:
    """The first parts, and the count and sum of the rest."""
    rest = [] if most is None else parts[most:]
    added = math.fsum(part["contribution"] for part in rest)
    return parts if most is None else parts[:most], {"count": len(rest), "contribution": added}


def steps(made: Made) -> list[dict[str, Any]]:
    """The bars from 0 to the margin, the start first: label, ends, value in print and what it does.

    Their printed values add up to the printed margin.
    """
    has_odds = made.get("probabilities") is not None
    parts = [("every record starts at", made["start"])]
    parts += [
        (column_text(cell_text(one["name"]), cell_text(one["cell"])), one["contribution"]) for one in made["columns"]
    ]
    rest, cut = made["rest"]["columns"], made["terms"].get("operating point", 0.0)
    parts += [(_counted(rest["count"], "other column"), rest["contribution"])] if rest["count"] else []
    parts += [(term_text(name), value) for name, value in made["varying"].items() if value]
    is_pair = made["threshold"] is not None
    parts += [("the threshold, taken off" if is_pair else term_text("operating point"), cut)] if cut else []
    found, at = [], 0.0
    printed = rounded_to_sum([value for _, value in parts], DIGITS)
    for (label, value), text in zip(parts, printed, strict=True):
        effect = effect_text(value, odds=has_odds)
        found.append({"label": label, "start": at, "end": at + value, "text": signed(text, DIGITS), "effect": effect})
        at += value
    if has_odds:
        found[0]["effect"] = chance_texts(made["start_probability"])[0]
    return found


def _picture(made: Made) -> Markup:
    """The picture: a bar for each contribution, with scales of log-odds and of probabilities."""
    margin, chances, is_pair = made["margin"], made.get("probabilities"), made["threshold"] is not None
    about, said = (
        f"{PICTURE_TITLE} {class_name(made['prediction'], made['target'])} is made of",
        " ".join(made["sentences"]),
    )
    # From the start that every record has to this one; 0 is the threshold, or level classes.
    first, *others = steps(made)
    moved = made["terms"].get("operating point", 0.0)
    cut, others = (moved, others[:-1]) if is_pair and moved else (0.0, others)
    drawn = [(first["label"], first["end"] + cut, first["end"] + cut, first["effect"])]
    drawn += [(one["label"], one["start"] + cut, one["end"] + cut, one["effect"]) for one in others]
    unit = ("log-odds" if chances else "score") + (" above the threshold" if is_pair else "")
    if chances is None:
        total = "this record", margin, signed(float(f"{margin:.{DIGITS}f}"), DIGITS)
        return charts.waterfall(about, said, drawn, total, unit)
    # Of more than two classes the margin tells of two: what their probabilities are if it is one of them.
    against = f", not {cell_text(made['against'])[:10]}" if len(chances) > 2 else ""
    toward = cell_text(made["toward"])[:10] if against else class_name(made["toward"], made["target"])[:20]
    above = f"probability of {toward}{against}"
    marks = [(math.log(one / (1.0 - one)) + moved, chance_texts(one)[0]) for one in _PROBABILITIES]
    if is_pair:
        ends = [0.0, margin, *(end for _, *both, _ in drawn for end in both)]
        near = 0.1 * (max(ends) - min(ends))
        marks = sorted([one for one in marks if abs(one[0]) > near] + [(0.0, chance_texts(made["threshold"])[0])])
    held = min(max(margin - moved, -50.0), 50.0)
    total = "this record", margin, chance_texts(1.0 / (1.0 + math.exp(-held)))[0]
    return charts.waterfall(about, said, drawn, total, unit, above, marks)


def _page(made: Made, base: str, title: str, *, is_open: bool) -> str:
    """A page that loads nothing and runs nothing, or a view within a notebook, whose tables are folded."""
    medoids, record = made["medoids"], made["record"]
    groups = []
    for one in made["groups"]:
        more, names = len(one["columns"]) - 4, ", ".join(cell_text(name) for name in one["columns"][:4])
        names += f" and {more} more" if more > 0 else ""
        groups.append((f"{names}: {one['name']}" if "name" in one else names,))
    rows = [(str(one["training_row"]), cell_text(one["class"])) for one in made["rows"] or ()]
    return render(
        "decision.html",
        base=base,
        title=title,
        is_open=is_open,
        drawing=_picture(made),
        toward=class_name(made["toward"], made["target"]),
        parts=steps(made),
        is_pair=made["threshold"] is not None,
        has_odds=made.get("probabilities") is not None,
        margin=signed(float(f"{made['margin']:.{DIGITS}f}"), DIGITS),
        flips=[
            (one["text"], cell_text(one["prediction"]), one["probability"] and chance_texts(one["probability"])[0])
            for one in made["flips"]
        ],
        classes=[cell_text(one["class"]) for one in medoids],
        cells=[(name, cell_text(cell), [_beside(one, name) for one in medoids]) for name, cell in record.items()],
        groups=_level(made, "groups", groups, "other group"),
        rows=_level(made, "rows", rows, "other row"),
        **{name: made[name] for name in ("sentences", "similar", "difference", "medoids", "model", "time")},
    )


def _beside(medoid: Mapping[str, Any], name: str) -> tuple[str, bool]:
    """The cell of a medoid, and whether it differs from that of the record."""
    if medoid["record"] is None:
        return "not kept", False
    return cell_text(medoid["record"][name]), name in medoid["differs"]


def _level(made: Made, level: str, names: Sequence[tuple[str, ...]], rest: str) -> list[tuple[str, ...]]:
    """Contributions of one level, whose printed digits add up."""
    if not names:
        return []
    others = made["rest"][level]
    values = [*(one["contribution"] for one in made[level]), others["contribution"]]
    printed = [signed(value, DIGITS) for value in rounded_to_sum(values, DIGITS)]
    rows = [(*name, text) for name, text in zip(names, printed, strict=False)]
    if others["count"]:
        rows.append((_counted(others["count"], rest), *[""] * (len(names[0]) - 1), printed[-1]))
    return rows


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def rounded_to_sum(values: Sequence[float], digits: int) -> list[float]:
    """Values with so many decimals that add up to their sum with so many decimals, exactly in print.

    Each is its value rounded down or up: those whose fractions are largest are rounded up.
    """
    unit = 10.0**digits
    scaled = [value * unit for value in values]
    low = [math.floor(value) for value in scaled]
    missing = round(math.fsum(scaled)) - sum(low)
    by_fraction = sorted(range(len(values)), key=lambda place: (low[place] - scaled[place], place))
    for place in by_fraction[: max(0, missing)]:
        low[place] += 1
    return [whole / unit for whole in low]


def signed(value: float, digits: int) -> str:
    """A number with its sign and so many decimals; a zero has none."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")
