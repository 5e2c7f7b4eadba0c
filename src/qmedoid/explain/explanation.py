"""The explanation of one decision, as an object to look at."""

import datetime
import math
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar, cast

import pyarrow as pa

from qmedoid._version import __version__
from qmedoid.explain import view
from qmedoid.explain.documents import (
    ContributingRowDict,
    ContributionDict,
    ExplainDict,
    FlipDict,
    GroupContributionDict,
    NearestMedoidDict,
    ReasonDict,
    RestDict,
    RowTotalDict,
    SimilarRowDict,
)
from qmedoid.explain.explaining import SimilarRows
from qmedoid.explain.flips import check_fixed, nearest_flips
from qmedoid.explain.view import reason_text, reasons, sentences, similar_text
from qmedoid.markup.page import picture_file
from qmedoid.markup.plots import draw_waterfall
from qmedoid.metrics.texts import class_name
from qmedoid.model.model import Model
from qmedoid.model.operating_point import probability

TOP = 10
"""Columns, groups and rows that are shown one by one."""
N_MEDOIDS = 5
"""Classes whose nearest medoids are shown."""
N_DECIDING = 5
"""Columns that similar rows are compared in, those that contribute most."""
# Share of the training rows between two numbers that are close.
_CLOSE = 0.05
# Rows of a group that are listed.
_RECORDS = 3

Part = TypeVar("Part", ContributionDict, GroupContributionDict, ContributingRowDict, RowTotalDict)


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
        The smallest changes of one or two columns that lead to another class, each verified by scoring it. They are
        looked for when they are first asked for.

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
        check_fixed(model, fixed)
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

    @cached_property
    def flips(self) -> list[FlipDict]:
        """The smallest changes that lead to another class, the smallest first."""
        return nearest_flips(self._model, self._record, fixed=self._fixed)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The decision in sentences, the reason first; every number of them is in the dictionary."""
        return sentences(self._report, self.flips)

    @cached_property
    def similar(self) -> list[SimilarRowDict]:
        """The most similar row of either class by the columns that decide, that of the predicted class first."""
        report = self._report
        found = report["known"]["similar"] if "known" in report else report["similar"]
        if not found:  # the model keeps no cells of its medoids
            found = [{**one, "difference": None} for one in report["medoids"]]
        first = [report["prediction"], report["against"], None]
        found = sorted((one for one in found if one["class"] in first), key=lambda one: first.index(one["class"]))
        contributions = {one["name"]: one["contribution"] for one in report["columns"]}
        measure = SimilarRows(self._model, self._record, contributions)
        return [self._compared(one, measure) for one in found]

    def _compared(self, similar: Mapping[str, Any], measure: SimilarRows) -> SimilarRowDict:
        """A similar row, and in which of the columns that decide it is the same, close or another."""
        keys = ("class", "training_row", "row", "difference")
        made: dict[str, Any] = {key: similar[key] for key in keys if key in similar}
        made |= {"is_equal": False, "same": [], "close": [], "differs": []}
        if similar["difference"] is not None:
            cells, differences = similar["record"], measure.by_column(similar["record"])
            own_cells = self._report["record"]
            made["is_equal"] = all(_alike(cells.get(name), own_cells.get(name)) for name in self._model.contract.names)
            for column in self._report["columns"][:N_DECIDING]:
                name, own = column["name"], column["cell"]
                if differences.get(name) is not None:
                    is_close = differences[name] <= _CLOSE and measure.is_ordered(name)
                    how = "same" if _alike(cells.get(name), own) else "close" if is_close else "differs"
                    made[how].append({"name": name, "cell": cells.get(name), "own": own})
        return cast("SimilarRowDict", {**made, "sentence": similar_text(made, self._report)})

    def to_dict(self, top: int | None = None) -> ExplainDict:
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
        names |= {change["column"] for flip in self.flips for change in flip["changes"]}
        shown = {name: cell for name, cell in self._report["record"].items() if most is None or name in names}
        report, has_odds = self._report, "probabilities" in self._report
        made: ExplainDict = {
            "row": report.get("row"),
            "sentences": list(self.sentences),
            "prediction": report["prediction"],
            "against": report["against"],
            "toward": report["toward"],
            "target": report["target"],
            "margin": report["margin"],
            "start": report["start"],
            "threshold": report["threshold"],
            "is_alert": report["is_alert"],
            "decided_by": report["decided_by"],
            "start_probability": probability(report["start"]) if has_odds else None,
            "record": shown,
            "columns": columns,
            "reasons": [_reason(one, odds=has_odds) for one in reasons(report)],
            "groups": [_short_group(group, most) for group in groups],
            "rows": rows,
            "rest": {"columns": rest_of_columns, "groups": rest_of_groups, "rows": rest_of_rows},
            "terms": dict(report["terms"]),
            "varying": dict(report["varying"]),
            "similar": self.similar,
            "medoids": self._medoids(most, shown),
            "flips": self.flips,
            "fixed": list(self._fixed),
            "difference": list(self._difference),
            "model": {"sha256": self._sha256, "qmedoid": __version__},
            "time": self._time.isoformat(),
        }
        known = {
            name: report[name] for name in ("probability", "probabilities", "neighbors", "known") if name in report
        }
        return cast("ExplainDict", {**made, **known})

    @cached_property
    def _rows(self) -> list[RowTotalDict] | None:
        """Contributions by training row, over all groups; None where groups are not made of rows."""
        totals: dict[tuple[int, Any], float] = {}
        for group in self._report["groups"]:
            if "records" not in group:
                return None
            for one in group["records"]:
                key = one["training_row"], one["class"]
                totals[key] = totals.get(key, 0.0) + one["contribution"]
        parts: list[RowTotalDict] = [
            {"training_row": row, "class": label, "contribution": one} for (row, label), one in totals.items()
        ]
        return sorted(parts, key=lambda part: (-abs(part["contribution"]), part["training_row"]))

    def _medoids(self, most: int | None, shown: Mapping[str, Any]) -> list[NearestMedoidDict]:
        """The nearest medoids of the first classes and the nearest of all, with the cells that are shown.

        ``"differs"`` are the columns in which their cells are not those of the record.
        """
        medoids: list[dict[str, Any]] = self._report["medoids"]
        nearest, made = min(medoids, key=lambda one: float(one["distance"])), list[NearestMedoidDict]()
        for place, one in enumerate(medoids):
            if not most or place < N_MEDOIDS or one is nearest:
                cells = None if one["record"] is None else {name: one["record"].get(name) for name in shown}
                differs = None if cells is None else [name for name, cell in cells.items() if cell != shown[name]]
                made.append(cast("NearestMedoidDict", {**one, "record": cells, "differs": differs}))
        return made

    def to_svg(self) -> str:
        """A picture of the contributions, from the starting point of every record to the margin of this one."""
        return picture_file(view.picture(self.to_dict()))

    def to_html(self) -> str:
        """A page that stands alone, without scripts: sentences, picture, columns, groups, rows, medoids and flips."""
        made = self.to_dict()
        title = f"{view.PAGE_TITLE} {class_name(made['prediction'], made['target'])}"
        return view.as_html(made, "explanation.html", title, is_open=True)

    def _repr_html_(self) -> str:
        return view.as_html(self.to_dict(), "notebook/explanation.html", self.sentences[0], is_open=False)

    def plot(self, ax: Any = None) -> Any:
        """Draw the contributions with Matplotlib (extra ``plots``) on the given axes, or on new ones; returns them."""
        made = self.to_dict()
        return draw_waterfall(view.title(made), view.bars(made), made["margin"], ax)

    def __repr__(self) -> str:
        return "\n".join(self.sentences)


def _alike(one: Any, other: Any) -> bool:
    """Whether two cells are the same; those of a file may be texts where those of the record are numbers."""
    if one is None or other is None or one == other:
        return bool(one == other)
    try:
        return float(one) == float(other)
    except ValueError:
        return str(one) == str(other)


def _reason(reason: Mapping[str, Any], *, odds: bool) -> ReasonDict:
    return cast("ReasonDict", {**reason, "text": reason_text(reason, odds=odds)})


def _short_group(group: GroupContributionDict, most: int | None) -> GroupContributionDict:
    """A group with the rows that contribute most, and the others summed up."""
    if most is None or "records" not in group:
        return group
    listed, rest = _listed(group["records"], min(most, _RECORDS))
    return {**group, "records": listed, "rest": rest}


def _listed(parts: list[Part], most: int | None) -> tuple[list[Part], RestDict]:
    """The first parts, and the count and sum of the rest."""
    rest = [] if most is None else parts[most:]
    added = math.fsum(part["contribution"] for part in rest)
    return parts if most is None else parts[:most], {"count": len(rest), "contribution": added}
