"""Parts of a model in SQL: functions by the names of the parts.

Each gives the names of its outputs, if they count, and of the training rows of the nearest medoids, if it has some.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from qmedoid.exceptions import ModelError
from qmedoid.export.sql.dialects import Stages, curve, times, total
from qmedoid.kernels.trees import N_NODES
from qmedoid.methods.comparisons.part import ComparisonsPart
from qmedoid.methods.evidence.part import EvidencePart

Written = tuple[list[str], list[str]]
# Pairs of a group and a medoid, and squares of differences, that one stage computes at most.
_MOST_PAIRS, _MOST_SQUARES = 400, 600
_LOG_2 = float(np.log(2.0))
# A medoid on the lines of a group: (line, value) of each; and its terms: weights of the distance, or of the exponential
# of a rate times the distance.
_Terms = list[tuple[float | None, list[float]]]
_Pair = tuple[tuple[tuple[int, float], ...], _Terms]


class _EvidenceStages:
    """The outputs of an evidence model, and the training row of the nearest medoid of each class, by names."""

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
            places = [tuple(zip(lines, row, strict=True)) for row in rows]
            groups.append([(own, self._terms(pair)) for own, pair in zip(places, pairs, strict=True)])
        return groups

    def _terms(self, pair: int) -> _Terms:
        plan, near = self._plan, range(self._plan.near_offsets[pair], self._plan.near_offsets[pair + 1])
        plain = [(None, plan.distance_weights[pair].tolist())] if plan.has_distance[pair] else []
        return [
            *plain,
            *((float(plan.near_rates[place]) * _LOG_2, plan.near_weights[place].tolist()) for place in near),
        ]

    def _squared(self, pairs: list[_Pair]) -> list[str]:
        """Squared distances of some pairs; squares that several of them share are in a stage of their own."""
        self._stages.next()
        counts = Counter(place for places, _ in pairs for place in places if len(places) > 1)
        shared = [place for place, count in counts.most_common(_MOST_SQUARES) if count > 1]
        known = {place: self._stages.add("s", self._square(*place)) for place in shared}
        self._stages.next()
        zero = self._dialect.number(0.0)
        return [total([known.get(place) or self._square(*place) for place in places], zero) for places, _ in pairs]

    def _square(self, line: int, value: float) -> str:
        difference = f"({self._lines[line]}-{self._dialect.number(value)})"
        return f"{difference}*{difference}"

    def _nearest(self, pairs: list[_Pair], model: EvidencePart) -> list[str]:
        """Squared distances to all medoids, their terms, and the first of the nearest of each class."""
        plan, stages = self._plan, self._stages
        found = list[str]()
        for start in range(0, len(pairs), _MOST_PAIRS):
            found += [stages.add("q", text) for text in self._squared(pairs[start : start + _MOST_PAIRS])]
        stages.next()
        self._sum([(terms, f"SQRT({name})") for (_, terms), name in zip(pairs, found, strict=True) if terms])
        rows = model.medoid_rows[plan.medoid_indices].tolist()
        parts = [slice(*plan.class_offsets[c : c + 2].tolist()) for c in range(model.n_classes)]
        least = [stages.add("l", self._dialect.least(*found[part])) for part in parts]
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
        found = list[tuple[_Terms, str]]()
        for (places, terms), squared in zip(pairs, self._squared(pairs), strict=True):
            line, value = places[0]
            plain = f"ABS({self._lines[line]}-{self._dialect.number(value)})"
            found.append((terms, plain if len(places) == 1 else f"SQRT({squared})"))
        self._sum(found)

    def _sum(self, pairs: list[tuple[_Terms, str]]) -> None:
        """Outputs with the terms of pairs, whose distances are given as expressions."""
        if not pairs or not self._n_outputs:
            return
        stages, number = self._stages, self._dialect.number
        named = [(terms, text if len(terms) == 1 else stages.add("d", text)) for terms, text in pairs]
        stages.next()
        values = [
            (distance if rate is None else self._dialect.exp(f"{number(rate)}*{distance}"), weights)
            for terms, distance in named
            for rate, weights in terms
        ]
        if self._n_outputs > 1:
            values = [(stages.add("g", value), weights) for value, weights in values]
            stages.next()
        for k in range(self._n_outputs):
            added = [times(self._dialect, weights[k], value) for value, weights in values if weights[k]]
            self.outputs[k] = stages.add("o", total([self.outputs[k], *added], ""))
        stages.next()


def evidence(model: EvidencePart, stages: Stages, encoded: Mapping[int, str], counts: bool) -> Written:
    """Names of the K outputs, if they count, and of the training rows of the nearest medoids."""
    made = _EvidenceStages(model, stages, encoded, counts)
    return made.outputs, made.nearest


def comparisons(model: ComparisonsPart, stages: Stages, encoded: Mapping[int, str], counts: bool) -> Written:
    """Names of the K outputs, if they count; there are no medoids."""
    if not counts:
        return [], []
    number, names = stages.dialect.number, list[str]()
    columns, thresholds, values = model.node_columns.tolist(), model.trees.thresholds.tolist(), model.values.tolist()

    def branch(tree: int, node: int) -> str:
        if node >= N_NODES:
            return number(values[tree][node])
        below = branch(tree, 2 * node + 1)
        if columns[tree][node] < 0:
            return below
        above, x = branch(tree, 2 * node + 2), encoded[columns[tree][node]]
        return f"CASE WHEN {x}>{number(thresholds[tree][node])} THEN {above} ELSE {below} END"

    for k, intercept in enumerate(model.intercepts.tolist()):
        of_output = [branch(tree, 0) for tree in range(len(columns)) if model.outputs[tree] == k]
        names.append(stages.add("o", total([number(intercept), *of_output], "")))
    return names, []
