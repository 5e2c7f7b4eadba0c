"""The evidence of a record in SQL: lines, squares of differences, distances, sums."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from qmedoid.exceptions import ModelError
from qmedoid.export.sql.dialects import curve, smallest, times, total
from qmedoid.export.sql.stages import Stages
from qmedoid.methods.evidence.part import EvidencePart

# Pairs of a group and a medoid, and squares of differences, that one stage computes at most.
_MOST_PAIRS, _MOST_SQUARES = 400, 600
_LOG_2 = float(np.log(2.0))


class _Pair(NamedTuple):
    """A medoid on the lines of a group: (line, value) of each, and its terms."""

    places: tuple[tuple[int, float], ...]
    distance: tuple[float, ...] | None
    near: tuple[tuple[float, tuple[float, ...]], ...]


def write(model: EvidencePart, stages: Stages, encoded: Mapping[int, str], counts: bool) -> tuple[list[str], list[str]]:
    """Names of the K outputs, if they count, and of the training rows of the nearest medoids."""
    made = _EvidenceStages(model, stages, encoded, counts)
    return made.outputs, made.nearest


class _EvidenceStages:
    """The outputs of an evidence model, and the training row of the nearest medoid of each class.

    Attributes
    ----------
    outputs : list of str
        Names of the K outputs; empty where they count nothing.
    nearest : list of str
        Names of the training rows, class by class.
    """

    def __init__(self, model: EvidencePart, stages: Stages, encoded: Mapping[int, str], counts: bool) -> None:
        if model.neighbors is not None:
            raise ModelError(
                "SQL cannot express the neighbor term of this model, which looks for the nearest of many rows: "
                "export it as js or onnx, or fit with n_neighbors=0."
            )
        self._stages, self._dialect, self._plan = stages, stages.dialect, model.plan
        self._n_outputs = len(model.intercepts) if counts else 0
        self._lines = self._scaled(encoded)
        stages.next()
        self.outputs = self._by_line()
        first, *others = self._pairs()
        self.nearest = self._nearest(first, model)
        pairs = [pair for of_group in others for pair in of_group] if counts else []
        for start in range(0, len(pairs), _MOST_PAIRS):
            self._add(pairs[start : start + _MOST_PAIRS])

    def _scaled(self, encoded: Mapping[int, str]) -> list[str]:
        """Names of the lines: columns by rank or standardized, times the roots of their weights."""
        plan, columns, number = self._plan, self._plan.columns, self._dialect.number
        scaled: dict[tuple[int, bool], str] = {}
        of_line = list[tuple[int, bool]]()
        for u, column in enumerate(columns.used.tolist()):
            x = encoded[column]
            for line in range(plan.line_offsets[u], plan.line_offsets[u + 1]):
                key = u, bool(plan.line_by_rank[line])
                of_line.append(key)
                if key in scaled:
                    continue
                if key[1]:
                    knots = slice(columns.knot_offsets[u], columns.knot_offsets[u + 1])
                    text = curve(self._dialect, x, columns.knots[knots], columns.marks[knots], columns.rises[knots])
                else:
                    text = f"({x}-{number(columns.center[u])})/{number(columns.scale[u])}"
                    text = self._dialect.greatest(
                        self._dialect.least(text, number(columns.clip)), number(-columns.clip)
                    )
                scaled[key] = self._stages.add("z", text)
        self._stages.next()
        names = list[str]()
        for (u, by_rank), root in zip(of_line, plan.line_root.tolist(), strict=True):
            name = scaled[u, by_rank]
            names.append(name if root == 1.0 else self._stages.add("v", times(self._dialect, root, name)))
        return names

    def _by_line(self) -> list[str]:
        """Sums of what single lines add: squares, values and folds."""
        plan, names = self._plan, list[str]()
        fold_line = np.repeat(np.arange(len(self._lines)), np.diff(plan.fold_offsets))
        for k in range(self._n_outputs):
            terms = [self._dialect.number(plan.intercepts[k])]
            for line, v in enumerate(self._lines):
                square, linear = plan.quadratic[line, k], plan.linear[line, k]
                if square and linear:
                    terms.append(f"({times(self._dialect, square, v)}+{self._dialect.number(linear)})*{v}")
                elif square or linear:
                    terms.append(
                        times(self._dialect, square, f"{v}*{v}") if square else times(self._dialect, linear, v)
                    )
            for place, value, weight in zip(fold_line.tolist(), plan.folds, plan.fold_weights[:, k], strict=True):
                if weight:
                    fold = f"ABS({self._lines[place]}-{self._dialect.number(value)})"
                    terms.append(times(self._dialect, weight, fold))
            names.append(self._stages.add("o", total(terms, "")))
        return names

    def _pairs(self) -> list[list[_Pair]]:
        """The pairs, group by group; those of the first tell the nearest medoids."""
        plan, groups = self._plan, list[list[_Pair]]()
        for group in range(len(plan.member_offsets) - 1):
            lines = plan.members[plan.member_offsets[group] : plan.member_offsets[group + 1]].tolist()
            values = plan.values[plan.value_offsets[group] : plan.value_offsets[group + 1]]
            pairs = range(plan.pair_offsets[group], plan.pair_offsets[group + 1])
            rows = values.reshape(len(pairs), len(lines)).tolist()
            groups.append(
                [self._pair(pair, tuple(zip(lines, row, strict=True))) for pair, row in zip(pairs, rows, strict=True)]
            )
        return groups

    def _pair(self, pair: int, places: tuple[tuple[int, float], ...]) -> _Pair:
        plan = self._plan
        distance = tuple(plan.distance_weights[pair].tolist()) if plan.has_distance[pair] else None
        near = tuple(
            (plan.near_rates[place] * _LOG_2, tuple(plan.near_weights[place].tolist()))
            for place in range(plan.near_offsets[pair], plan.near_offsets[pair + 1])
        )
        return _Pair(places, distance, near)

    def _squares(self, pairs: list[_Pair]) -> dict[tuple[int, float], str]:
        """Squared differences from values on lines that several pairs share, in a stage of their own."""
        self._stages.next()
        counts = Counter(place for pair in pairs for place in pair.places if len(pair.places) > 1)
        shared = [place for place, count in counts.most_common(_MOST_SQUARES) if count > 1]
        found = {place: self._stages.add("s", self._square(*place)) for place in shared}
        self._stages.next()
        return found

    def _square(self, line: int, value: float) -> str:
        difference = f"({self._lines[line]}-{self._dialect.number(value)})"
        return f"{difference}*{difference}"

    def _nearest(self, pairs: list[_Pair], model: EvidencePart) -> list[str]:
        """Squared distances to all medoids, their terms, and the first of the nearest of each class."""
        plan, stages = self._plan, self._stages
        found = list[str]()
        for start in range(0, len(pairs), _MOST_PAIRS):
            some = pairs[start : start + _MOST_PAIRS]
            known = self._squares(some)
            squared = [
                total([known.get(place) or self._square(*place) for place in pair.places], self._dialect.number(0.0))
                for pair in some
            ]
            found += [stages.add("q", text) for text in squared]
        stages.next()
        terms = [(pair, f"SQRT({name})") for pair, name in zip(pairs, found, strict=True) if pair.distance or pair.near]
        if terms and self._n_outputs:
            self._sum(terms)
        rows = model.medoid_rows[plan.medoid_indices].tolist()
        parts = [slice(*plan.class_offsets[c : c + 2].tolist()) for c in range(model.n_classes)]
        least = [stages.add("l", smallest(self._dialect, found[part])) for part in parts]
        stages.next()
        return [self._first(found[part], name, rows[part]) for part, name in zip(parts, least, strict=True)]

    def _first(self, found: list[str], least: str, rows: list[int]) -> str:
        """The training row of the first medoid at the least distance."""
        if len(rows) == 1:
            return self._stages.add("n", str(rows[0]))
        cases = " ".join(f"WHEN {one}<={least} THEN {row}" for one, row in zip(found, rows, strict=True))
        return self._stages.add("n", f"CASE {cases} END")

    def _add(self, pairs: list[_Pair]) -> None:
        """Add the terms of some pairs to the outputs."""
        known = self._squares(pairs)
        terms = list[tuple[_Pair, str]]()
        for pair in pairs:
            if len(pair.places) == 1:
                line, value = pair.places[0]
                text = f"ABS({self._lines[line]}-{self._dialect.number(value)})"
            else:
                text = f"SQRT({total([known.get(place) or self._square(*place) for place in pair.places], '')})"
            terms.append((pair, text))
        self._sum(terms)

    def _sum(self, terms: list[tuple[_Pair, str]]) -> None:
        """Outputs with terms of pairs, whose distances are given as expressions."""
        stages, number = self._stages, self._dialect.number
        named = list[tuple[_Pair, str]]()
        for pair, distance in terms:
            is_used_once = (pair.distance is not None) + len(pair.near) == 1
            named.append((pair, distance if is_used_once else stages.add("d", distance)))
        stages.next()
        values = list[tuple[str, tuple[float, ...]]]()
        for pair, distance in named:
            if pair.distance is not None:
                values.append((distance, pair.distance))
            values += [(self._dialect.exp(f"{number(rate)}*{distance}"), weights) for rate, weights in pair.near]
        if self._n_outputs > 1:
            values = [(stages.add("g", value), weights) for value, weights in values]
            stages.next()
        for k in range(self._n_outputs):
            added = [times(self._dialect, weights[k], value) for value, weights in values if weights[k]]
            self.outputs[k] = stages.add("o", total([self.outputs[k], *added], ""))
        stages.next()
