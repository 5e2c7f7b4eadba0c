"""A nearest-medoid model in SQL: features of groups of columns, distances and angles to medoids."""

from collections.abc import Mapping

import numpy as np

from qmedoid.export.sql.dialects import smallest, times, total
from qmedoid.export.sql.stages import Stages
from qmedoid.geometry.channels import EPSILON
from qmedoid.geometry.overlap import row_norms
from qmedoid.methods.nearest.part import NearestPart


def write(model: NearestPart, stages: Stages, encoded: Mapping[int, str], counts: bool) -> tuple[list[str], list[str]]:
    """Names of the outputs, and of the training rows of the nearest medoids."""
    del counts  # it always does: distances are needed for the medoids
    made = _NearestMedoid(model, stages, encoded)
    return made.outputs, made.nearest


class _NearestMedoid:
    """The scores of the classes as outputs, and the training row of the nearest medoid of each.

    Attributes
    ----------
    outputs : list of str
        Names: of two classes how much lower the score of the second is, of more every score with its sign changed.
    nearest : list of str
        Names of the training rows, class by class.
    """

    def __init__(self, model: NearestPart, stages: Stages, encoded: Mapping[int, str]) -> None:
        self._model, self._stages, self._number = model, stages, stages.dialect.number
        features = self._features(encoded)
        places = self._places(features)
        self.nearest = [self._chosen("n", place, list(map(str, self._rows(c)))) for c, place in enumerate(places)]
        shares = self._shares([distance for _, distance in self._found])
        if model.use_angular:
            by_angle, alpha = self._shares(self._angles(features, places)), float(model.alpha)
            pairs = zip(shares, by_angle, strict=True)
            shares = [f"({self._number(alpha)}*{d}+{self._number(1.0 - alpha)}*{a})" for d, a in pairs]
        scores = [times(stages.dialect, w, share) for w, share in zip(model.multipliers.tolist(), shares, strict=True)]
        texts = [f"{scores[0]}-{scores[1]}"] if len(scores) == 2 else [f"-({score})" for score in scores]
        self.outputs = [stages.add("o", text) for text in texts]
        stages.next()

    def _rows(self, c: int) -> list[int]:
        rows: list[int] = self._model.medoid_rows[self._model.medoid_classes == c].tolist()
        return rows

    def _features(self, encoded: Mapping[int, str]) -> list[str]:
        """Names of the standardized anchor features."""
        model, stages, number = self._model, self._stages, self._number
        scaling, scaled = model.input_scaling, dict[int, str]()
        for column in model.columns.tolist():
            text = f"({encoded[column]}-{number(scaling.center[column])})/{number(scaling.scale[column])}"
            scaled[column] = stages.add("z", text)
        stages.next()
        lengths = list[str]()
        for subset, weights in zip(model.configuration, model.weights, strict=True):
            # A column without weight is not read.
            pairs = [
                (scaled[column], w) for column, w in zip(subset, weights.tolist(), strict=True) if column in scaled
            ]
            squares = [f"{number(w * w)}*{z}*{z}" for z, w in pairs]
            length = f"SQRT({total(squares, number(0.0))})"
            if model.signed:
                mean = total([f"{number(w)}*{z}" for z, w in pairs], number(0.0))
                length = f"CASE WHEN {mean}<{number(0.0)} THEN -{length} ELSE {length} END"
            lengths.append(stages.add("f", length))
        stages.next()
        centers, scales = model.feature_scaling.center.tolist(), model.feature_scaling.scale.tolist()
        names = [
            stages.add("h", f"({length}-{number(center)})/{number(scale)}")
            for length, center, scale in zip(lengths, centers, scales, strict=True)
        ]
        stages.next()
        return names

    def _places(self, features: list[str]) -> list[str]:
        """Of every class the place of the nearest medoid among its own; the first of equal ones."""
        model, stages, number = self._model, self._stages, self._number
        squared = list[str]()
        for medoid in model.medoids.tolist():
            apart = [f"({h}-{number(value)})" for h, value in zip(features, medoid, strict=True)]
            squared.append(stages.add("q", total([f"{one}*{one}" for one in apart], "")))
        stages.next()
        classes = [np.flatnonzero(model.medoid_classes == c).tolist() for c in range(model.n_classes)]
        least = [stages.add("l", smallest(stages.dialect, [squared[p] for p in own])) for own in classes]
        stages.next()
        places = list[str]()
        for own, name in zip(classes, least, strict=True):
            cases = " ".join(f"WHEN {squared[p]}<={name} THEN {place}" for place, p in enumerate(own))
            places.append(stages.add("j", f"CASE {cases} END"))
        self._found = [(name, stages.add("d", f"SQRT({name})")) for name in least]
        stages.next()
        return places

    def _chosen(self, prefix: str, place: str, values: list[str]) -> str:
        """Of one value for each medoid of a class that of the nearest."""
        if len(set(values)) == 1:
            return self._stages.add(prefix, values[0])
        cases = " ".join(f"WHEN {number} THEN {value}" for number, value in enumerate(values))
        return self._stages.add(prefix, f"CASE {place} {cases} END")

    def _angles(self, features: list[str], places: list[str]) -> list[str]:
        """The angle to the nearest medoid of every class."""
        model, stages, number = self._model, self._stages, self._number
        zero, norms = number(0.0), row_norms(model.medoids)
        length = stages.add("x", f"SQRT({total([f'{h}*{h}' for h in features], '')})")
        own = [np.flatnonzero(model.medoid_classes == c) for c in range(model.n_classes)]
        lengths = [self._chosen("x", places[c], [number(norms[p]) for p in own[c]]) for c in range(model.n_classes)]
        units = [
            [
                self._chosen("u", places[c], [number(model.medoids[p, a] / (norms[p] or 1.0)) for p in own[c]])
                for a in range(len(features))
            ]
            for c in range(model.n_classes if model.angle == "true" else 0)
        ]
        stages.next()
        angles = list[str]()
        for c, of_medoid in enumerate(lengths):
            if model.angle == "printed":
                both = f"({length}*{length}+{of_medoid}*{of_medoid})"
                shared = f"{self._found[c][0]}/({number(2.0)}*{both})"
                angle = f"ACOS(SQRT({stages.dialect.least(shared, number(1.0))}))"
                text = f"CASE WHEN {length}={zero} OR {of_medoid}={zero} THEN {zero} ELSE {angle} END"
            else:
                across, along = (
                    total(
                        [
                            f"({h}/{length}{sign}{u})*({h}/{length}{sign}{u})"
                            for h, u in zip(features, units[c], strict=True)
                        ],
                        "",
                    )
                    for sign in "-+"
                )
                right = number(np.pi / 2.0)
                text = (
                    f"CASE WHEN {length}={zero} AND {of_medoid}={zero} THEN {zero} "
                    f"WHEN {length}={zero} OR {of_medoid}={zero} THEN {right} "
                    f"ELSE {number(2.0)}*ATAN2(SQRT({across}),SQRT({along})) END"
                )
            angles.append(stages.add("a", text))
        stages.next()
        return angles

    def _shares(self, channel: list[str]) -> list[str]:
        """Of every class its part of the channels of all."""
        whole = self._stages.add("x", total([*channel, self._number(EPSILON)], ""))
        self._stages.next()
        return [f"{one}/{whole}" for one in channel]
