"""Explanations recomputed from what a saved model holds, with JSON, arrays and plain loops: no code of the package.

Formulas are written as they stand on the page, term by term, and slowly.
"""

import itertools
import json
import math
import zipfile

import numpy as np
import safetensors.numpy

CLIP_STANDARD, CLIP_RARE, GUARD = 8.0, 12.0, 1e-12


class Outside:
    """A saved model of tables of numbers and categories."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.manifest = json.loads(archive.read("manifest.json"))["model"]
            self.arrays = safetensors.numpy.load(archive.read("arrays.safetensors"))
        self.names = [column["name"] for column in self.manifest["contract"]["columns"]]
        self.decision = self.manifest["decision"]
        self.classes = self.decision["classes"]
        self.first = self.manifest["parts"][0]
        self.kind, self.rare_class = self.manifest["method"], self.first.get("rare_class")
        self.sources, self.encoded_names = self._sources()

    def __getitem__(self, name):
        return self.arrays[name]

    def _sources(self):
        sources, names = [], []
        for name, entry in zip(self.names, self.manifest["encodings"], strict=True):
            own = [name + output for output in entry["outputs"]] if entry["type"] == "Levels" else [name]
            own += [f"{name} is missing"] if entry.get("indicator") else []
            sources += [name] * len(own)
            names += own
        return sources, names

    def encoded(self, record):
        """The numbers of a record."""
        found = []
        for number, (name, entry) in enumerate(zip(self.names, self.manifest["encodings"], strict=True)):
            cell = record[name]
            if entry["type"] == "Numbers":
                fill = float(entry["fill"]["$float"]) if isinstance(entry["fill"], dict) else entry["fill"]
                found += [fill if cell is None else float(cell)] + ([float(cell is None)] if entry["indicator"] else [])
                continue
            own = f"encodings.{number}"
            texts, offsets = bytes(self.arrays[f"{own}.levels"]), self.arrays[f"{own}.levels.offsets"].tolist()
            levels = [texts[a:b].decode() for a, b in itertools.pairwise(offsets)]
            rows = self.arrays[f"{own}.values"].tolist()
            found += rows[-2] if cell is None else rows[levels.index(cell)] if cell in levels else rows[-1]
        return np.array(found)

    def explain(self, record, probabilities):
        """The report, as nested plain values; probabilities are those that the model gives the record."""
        x = self.encoded(record)
        stage = Sum(self, x)
        n = len(self.classes)
        slope, biases = self.manifest["calibration"]["slope"], self.arrays["calibration.biases"]
        straight = [biases[c] - slope * stage.scores[c] for c in range(n)]
        curved = [straight[c] + self._curve(straight, c) for c in range(n)]
        log_p = [math.log(p) for p in probabilities]
        shift = [0.0] * n
        if self.decision["shift"] is not None:
            priors = zip(self.arrays["decision.shift.priors"], self.arrays["decision.priors"], strict=True)
            shift = [math.log(new / old) for new, old in priors]
        cut = self.decision["cut"]
        if n == 2:
            decided = int(log_p[1] - log_p[0] > (cut or 0.0))
            next_best = 1 - decided
            winner, other = 1, 0  # of two classes all is said of the positive one
        else:
            winner, other = (int(c) for c in np.argsort(-np.array(log_p), kind="stable")[:2])
            decided, next_best = winner, other
        parts = stage.between(winner, other)
        margin = log_p[winner] - log_p[other]
        at_cut = 0.0 if cut is None else cut * (1 if winner == 0 else -1)
        by_column = dict.fromkeys(self.names, 0.0)
        for source, amount in zip(self.sources, slope * np.array(parts["columns"]), strict=True):
            by_column[source] += amount
        terms = {name: slope * value for name, value in parts["terms"].items()}
        beyond_slope = [curved[c] + slope * stage.scores[c] for c in range(n)]
        terms["calibration"] = beyond_slope[winner] - beyond_slope[other]
        terms["prevalence"] = shift[winner] - shift[other]
        terms["operating point"] = at_cut
        terms["circuit"] = margin - (curved[winner] - curved[other]) - terms["prevalence"]
        ranked = sorted(curved)
        is_rare, rare_class = self.kind == "rare", self.rare_class
        ahead = curved[1 - rare_class] - curved[rare_class] if is_rare else ranked[-1] - ranked[-2]
        refinement = self.manifest["refinement"]
        below = -math.inf if refinement is None else refinement["refine_below"]
        below = float(below["$float"]) if isinstance(below, dict) else below
        return {
            "prediction": self.classes[decided],
            "against": self.classes[next_best],
            "toward": self.classes[winner],
            "margin": margin + at_cut,
            "columns": by_column,
            "groups": [
                (tuple(self.encoded_names[f] for f in columns), name, slope * amount,
                 sorted((row, self.classes[code], far, slope * part) for row, code, far, part in records))
                for columns, name, amount, records in parts["groups"]
            ],
            "neighbors": sorted(
                (row, self.classes[code], far, slope * part) for row, code, far, part in parts["neighbors"]
            ),
            "terms": terms,
            "medoids": [self._medoid(stage, code) for code in dict.fromkeys([decided, next_best, *range(n)])],
            "decided_by": "circuit" if ahead <= below else self.kind,
        }  # fmt: skip

    def _curve(self, straight, c):
        knots, heights = (self.arrays[f"calibration.{name}"] for name in ("knots", "heights"))
        if not len(knots):
            return 0.0
        if len(straight) > 2:
            return np.interp(straight[c], knots, heights)
        return (1 if c == 1 else -1) * np.interp(straight[1] - straight[0], knots, heights) / 2

    def _medoid(self, stage, code):
        place, distance, angle = stage.nearest[code]
        cells = self.manifest["records"][place]
        return self.classes[code], int(stage.medoid_rows[place]), distance, angle, cells


def angle_between(a, b):
    if not a.any() or not b.any():
        return 0.0 if not a.any() and not b.any() else math.pi / 2
    return math.acos(max(-1.0, min(1.0, a @ b / math.sqrt((a @ a) * (b @ b)))))


def nearest_of_classes(x, medoids, codes, n_classes):
    found = []
    for code in range(n_classes):
        own = [place for place in range(len(medoids)) if codes[place] == code]
        far = [math.sqrt(sum((x - medoids[place]) ** 2)) for place in own]
        place = own[int(np.argmin(far))]
        found.append((place, min(far), angle_between(x, medoids[place])))
    return found


class Part:
    """A part of a saved model, read as if it were the model."""

    def __init__(self, saved, path, first):
        self.saved, self.path, self.first, self.classes = saved, path, first, saved.classes
        self.encoded_names = saved.encoded_names

    def __getitem__(self, name):
        return self.saved[f"{self.path}.{name}"]


class Sum:
    """The scores of all parts times their weights, minus the biases."""

    def __init__(self, saved, x):
        self.biases, weights = saved["biases"], saved["weights"]
        kinds = {"evidence": Evidence, "rare": Rare, "nearest": Convex, "comparisons": Comparisons}
        self.parts = []
        for number, first in enumerate(saved.manifest["parts"]):
            kind = (kinds | {"neighbors": LearntNeighbors})[first["type"]]
            self.parts.append((weights[number], kind(Part(saved, f"parts.{number}", first), x)))
        base = self.parts[0][1]
        self.nearest, self.medoid_rows = base.nearest, base.medoid_rows
        self.scores = [
            sum(weight * part.scores[c] for weight, part in self.parts) - self.biases[c]
            for c in range(len(saved.classes))
        ]

    def between(self, winner, other):
        columns, terms, neighbors, groups = 0.0, {}, [], []
        for weight, part in self.parts:
            said = part.between(winner, other)
            columns = columns + weight * np.array(said["columns"])
            for name, value in said["terms"].items():
                terms[name] = terms.get(name, 0.0) + weight * value
            neighbors += [(row, code, far, weight * amount) for row, code, far, amount in said["neighbors"]]
            groups += [
                (own, name, weight * amount, [(row, code, far, weight * one) for row, code, far, one in records])
                for own, name, amount, records in said["groups"]
            ]
        if any(self.biases):
            terms["intercept"] += self.biases[winner] - self.biases[other]
        return {"columns": columns, "terms": terms, "neighbors": neighbors, "groups": groups}


class Comparisons:
    """Trees whose nodes ask which of two rows is nearer in a column."""

    def __init__(self, saved, x):
        self.saved, self.x, self.n = saved, x, len(saved.classes)
        outputs = list(saved["intercepts"])
        self.steps, self.starts = [], []
        for tree, output in enumerate(saved["outputs"]):
            self.starts.append((output, saved["values"][tree][0]))
            node = 0
            while node < 15 and saved["node_columns"][tree][node] >= 0:
                column = saved["node_columns"][tree][node]
                near, far = (saved[name][tree][node] for name in ("near_values", "far_values"))
                is_far = abs(x[column] - far) < abs(x[column] - near)
                child = 2 * node + 1 + is_far
                change = saved["values"][tree][child] - saved["values"][tree][node]
                place, value = (saved["far"][tree][node], far) if is_far else (saved["near"][tree][node], near)
                self.steps.append((output, int(column), int(place), value, change))
                node = child
            # Below a leaf nothing changes.
            outputs[output] += saved["values"][tree][node]
        self.scores = [outputs[0] / 2, -outputs[0] / 2] if self.n == 2 else [-one for one in outputs]

    def between(self, winner, other):
        def sign(output):
            return (1 if winner == 1 else -1) if self.n == 2 else int(output == winner) - int(output == other)

        saved, columns, groups, values = self.saved, np.zeros(len(self.x)), {}, {}
        for output, column, place, value, change in self.steps:
            if sign(output) * change == 0:
                continue
            columns[column] += sign(output) * change
            shares = groups.setdefault(column, {})
            shares[place] = shares.get(place, 0.0) + sign(output) * change
            values[place, column] = value
        start = sum(sign(output) * value for output, value in enumerate(saved["intercepts"]))
        start += sum(sign(output) * value for output, value in self.starts)
        return {
            "columns": columns,
            "terms": {"intercept": start},
            "neighbors": [],
            "groups": [
                ([column], "comparisons", sum(shares.values()), [
                    (int(saved["row_numbers"][place]), int(saved["row_classes"][place]),
                     abs(self.x[column] - values[place, column]) / saved["scaling.scale"][column], share)
                    for place, share in shares.items()
                ]) for column, shares in groups.items()
            ],
        }  # fmt: skip


class LearntNeighbors:
    """Votes of the nearest rows under learnt weights of the columns."""

    def __init__(self, saved, x):
        self.saved, self.x = saved, x
        offsets, weights = saved["rank_scaling.offsets"], saved["column_weights"]

        def place(row):
            knots = [slice(offsets[f], offsets[f + 1]) for f in range(len(row))]
            return np.array([np.interp(row[f], saved["rank_scaling.values"][k], saved["rank_scaling.scores"][k])
                             for f, k in enumerate(knots)])  # fmt: skip

        far = [math.sqrt(sum(weights * (place(row) - place(x)) ** 2)) for row in saved["records"]]
        self.nearest = np.argsort(far, kind="stable")[: saved.first["n_nearest"]]
        near = {i: math.exp(-(far[i] - far[self.nearest[0]]) / saved.first["length"]) for i in self.nearest}
        self.far, self.shares = far, {i: near[i] / sum(near.values()) for i in self.nearest}
        votes = sum(share * saved["votes"][i] for i, share in self.shares.items())
        self.scores = [-vote for vote in votes]

    def between(self, winner, other):
        saved = self.saved
        found = [
            (int(saved["row_numbers"][i]), int(saved["row_classes"][i]), self.far[i],
             share * (saved["votes"][i][winner] - saved["votes"][i][other]))
            for i, share in self.shares.items()
        ]  # fmt: skip
        terms = {"intercept": 0.0, "neighbors": sum(one[-1] for one in found)}
        return {"columns": np.zeros(len(self.x)), "terms": terms, "neighbors": found, "groups": []}


class Evidence:
    def __init__(self, saved, x):
        self.saved, self.x, self.n = saved, x, len(saved.classes)
        self.medoid_rows = saved["medoid_rows"]
        offsets = saved["rank_scaling.offsets"]

        def ranks(row):
            knots = [slice(offsets[f], offsets[f + 1]) for f in range(len(row))]
            return np.array([np.interp(row[f], saved["rank_scaling.values"][k], saved["rank_scaling.scores"][k])
                             for f, k in enumerate(knots)])  # fmt: skip

        def standard(row):
            return np.clip(
                (row - saved["linear_scaling.center"]) / saved["linear_scaling.scale"], -CLIP_STANDARD, CLIP_STANDARD
            )

        self.scaled = {0: standard(x), 1: ranks(x)}
        self.medoids = {0: [standard(row) for row in saved["medoids"]], 1: [ranks(row) for row in saved["medoids"]]}
        roots = np.sqrt(saved["column_weights"])
        self.nearest = nearest_of_classes(
            ranks(x) * roots, [one * roots for one in self.medoids[1]], saved["medoid_classes"], self.n
        )
        self.terms = [self._term(t) for t in range(len(saved["terms.group"]))]
        self.neighbors = self._neighbors(standard, ranks)
        outputs = saved["intercepts"].copy()
        for _, _, value, _, t in self.terms:
            outputs = outputs + value * saved["terms.weights"][t]
        for *_, amounts in self.neighbors:
            outputs = outputs + amounts
        self.scores = [outputs[0] / 2, -outputs[0] / 2] if self.n == 2 else list(-outputs)

    def _term(self, t):
        """Columns, medoid, channel minus center, and that by column."""
        saved = self.saved
        group, medoid = saved["terms.group"][t], saved["terms.medoid"][t]
        place = slice(saved["groups.offsets"][group], saved["groups.offsets"][group + 1])
        columns, space = saved["groups.columns"][place].tolist(), int(saved["groups.by_rank"][group])
        weights = saved["groups.weights"][place]
        own = self.medoids[space][medoid][columns]
        squares = weights * (self.scaled[space][columns] - own) ** 2
        distance, length, center = math.sqrt(squares.sum()), saved["terms.length"][t], saved["terms.center"][t]
        channel = saved["terms.channel"][t]
        value = [distance**2, distance, math.exp(-distance / length)][channel] - center
        typical = [center, center**2, (length * math.log(center)) ** 2 if center > 0 else 0.0][channel]
        usual = weights * (1 + own**2)
        apart = squares - typical * usual / usual.sum()
        by_column = value * apart / apart.sum() if abs(apart.sum()) > 1e-9 * squares.sum() else 0 * apart
        if len(columns) == 1:
            by_column = np.array([value])
        return columns, medoid, value, by_column, t

    def _neighbors(self, standard, ranks):
        saved = self.saved
        if saved.first["neighbors"] is None:
            return []
        how = saved.first["neighbors"]
        scale = ranks if how["by_rank"] else standard
        used = saved["column_weights"] > 0
        far = [math.sqrt(sum((scale(row)[used] - scale(self.x)[used]) ** 2)) for row in saved["neighbors.records"]]
        nearest = np.argsort(far, kind="stable")[: how["n_nearest"]]
        near = {i: (far[i] / how["length"] + 0.05) ** -3 for i in nearest}
        total = 1 + sum(near.values())
        rows, classes, amounts = (saved[f"neighbors.{name}"] for name in ("rows", "classes", "amounts"))
        return [(int(rows[i]), int(classes[i]), far[i], near[i] / total * amounts[i]) for i in nearest]

    def between(self, winner, other):
        def said(outputs):
            return (outputs[0] if winner == 1 else -outputs[0]) if self.n == 2 else outputs[winner] - outputs[other]

        saved, columns, groups = self.saved, np.zeros(len(self.x)), {}
        for own, medoid, value, by_column, t in self.terms:
            weight = said(saved["terms.weights"][t])
            columns[own] += weight * by_column
            of_medoids = groups.setdefault(tuple(own), {})
            of_medoids[int(medoid)] = of_medoids.get(int(medoid), 0.0) + weight * value
        terms = {"intercept": said(saved["intercepts"])}
        neighbors = [(row, code, far, said(amounts)) for row, code, far, amounts in self.neighbors]
        if neighbors:
            terms["neighbors"] = sum(one[-1] for one in neighbors)
        return {
            "columns": columns,
            "terms": terms,
            "neighbors": neighbors,
            "groups": [(own, None, sum(shares.values()), self._records(own, shares)) for own, shares in groups.items()],
        }

    def _records(self, own, shares):
        saved = self.saved
        for place, part in shares.items():
            far = math.sqrt(sum((self.scaled[1][list(own)] - self.medoids[1][place][list(own)]) ** 2))
            yield int(saved["medoid_rows"][place]), int(saved["medoid_classes"][place]), far, part


class Rare:
    def __init__(self, saved, x):
        self.saved, self.medoid_rows = saved, saved["medoid_rows"]
        z = (x - saved["geometry.scaling.outer.center"]) / saved["geometry.scaling.outer.scale"]
        if saved.first["geometry"]["scaling"]["inner"] is not None:
            z = (np.sign(z) * np.log(1 + np.abs(z)) - saved["geometry.scaling.inner.center"]) / saved[
                "geometry.scaling.inner.scale"
            ]
        self.z, self.common, self.rare = z, saved["geometry.common"], saved["geometry.rare"]
        self.typical = self.common[saved["geometry.hard"] == 0]
        self.features = []
        self._deltas(saved.first["geometry"])
        self._columns(saved.first["geometry"])
        self.added = []
        for number, (columns, name, parts, usual) in enumerate(self.features):
            center, scale = saved["center"][number], saved["scale"][number]
            beyond = (sum(parts) - center) / scale
            amount = saved["weights"][number] * np.clip(beyond, -CLIP_RARE, CLIP_RARE)
            apart = np.array(parts) - center * np.array(usual)
            self.added.append((columns, name, amount, amount * apart / apart.sum() if apart.sum() else 0 * apart))
        logit = saved.first["intercept"] + sum(one[2] for one in self.added)
        self.rare_class = saved.first["rare_class"]
        self.scores = [logit / 2, -logit / 2] if self.rare_class == 1 else [-logit / 2, logit / 2]
        roots = np.sqrt(saved["geometry.metrics"][0])
        codes = [self.rare_class] * len(self.rare) + [1 - self.rare_class] * len(self.common)
        self.nearest = nearest_of_classes(z * roots, [*(self.rare * roots), *(self.common * roots)], codes, 2)

    def _deltas(self, first):
        between = np.array([
            np.mean([(a - b) ** 2 for a in self.typical[:, f] for b in self.rare[:, f]]) for f in range(len(self.z))
        ])  # fmt: skip
        for metric, weights in zip(first["metric_names"], self.saved["geometry.metrics"], strict=True):
            for k in self.saved["geometry.counts"]:
                mean, parts = [], []
                for prototypes in (self.common, self.rare):
                    squares = [weights * (self.z - row) ** 2 for row in prototypes]
                    nearest = sorted(range(len(squares)), key=lambda i, of=squares: of[i].sum())
                    nearest = nearest[: min(k, len(prototypes) - 1)]
                    far = [math.sqrt(squares[i].sum()) for i in nearest]
                    mean.append(np.mean(far))
                    parts.append(sum(squares[i] / d for i, d in zip(nearest, far, strict=True) if d > 0) / len(far))
                columns = [f for f in range(len(self.z)) if weights[f] > 0]
                name = " against ".join(
                    f"nearest {kind} row" if k == 1 else f"{k} nearest {kind} rows" for kind in ("rare", "common")
                )
                delta = ((parts[0] - parts[1]) / (mean[0] + mean[1]))[columns]
                usual = (weights * between / (weights @ between))[columns]
                self.features.append((columns, f"{name} ({metric} metric)", delta, usual))

    def _columns(self, first):
        length, floor = first["length"], first["floor"]
        every = range(len(self.z))

        def near(prototypes, f):
            return np.mean([math.exp(-abs(self.z[f] - row[f]) / length) for row in prototypes]) + floor

        def middle(prototypes, f):
            return sorted(prototypes[:, f])[(len(prototypes) - 1) // 2]

        both = np.concatenate([self.typical, self.rare])
        by_name = {
            "nearness to rare rows against common rows": lambda f: math.log(near(self.rare, f) / near(self.typical, f)),
            "nearness to its highest row against its lowest": lambda f: (
                self.z[f] - (min(both[:, f]) + max(both[:, f])) / 2
            ),
            "distance to the middle common row": lambda f: abs(self.z[f] - middle(self.typical, f)),
            "distance to the middle rare row": lambda f: abs(self.z[f] - middle(self.rare, f)),
        }
        self.features += [([f], name, [value(f)], [1.0]) for name, value in by_name.items() for f in every]

    def between(self, winner, _other):
        sign = 1 if winner == self.rare_class else -1
        columns = np.zeros(len(self.z))
        for own, _, _, by_column in self.added:
            columns[own] += sign * by_column
        return {
            "columns": columns,
            "terms": {"intercept": sign * self.saved.first["intercept"]},
            "neighbors": [],
            "groups": [(own, name, sign * amount, []) for own, name, amount, _ in self.added],
        }


class Convex:
    def __init__(self, saved, x):
        self.saved, n = saved, len(saved.classes)
        self.medoid_rows = saved["medoid_rows"]
        scaled = (x - saved["input_scaling.center"]) / saved["input_scaling.scale"]
        offsets, self.v, self.parts, self.subsets = saved["configuration.offsets"], [], [], []
        for anchor in range(len(offsets) - 1):
            place = slice(offsets[anchor], offsets[anchor + 1])
            subset, weights = saved["configuration"][place].tolist(), saved["weights"][place]
            products = weights * scaled[subset]
            norm = math.sqrt(sum(products**2))
            sign = -1 if saved.first["signed"] and sum(products) < 0 else 1
            self.subsets.append(subset)
            self.parts.append((sign * products**2 / norm, weights**2 / sum(weights**2)))
            self.v.append(
                (sign * norm - saved["feature_scaling.center"][anchor]) / saved["feature_scaling.scale"][anchor]
            )
        self.v = np.array(self.v)
        self.nearest = nearest_of_classes(self.v, saved["medoids"], saved["medoid_classes"], n)
        self.alpha = saved.first["alpha"] if saved.first["use_angular"] else 1.0
        self.far, self.turned = (np.array([one[k] for one in self.nearest]) for k in (1, 2))
        shares = self.alpha * self.far / (sum(self.far) + GUARD) + (1 - self.alpha) * self.turned / (
            sum(self.turned) + GUARD
        )
        self.shares, self.scores = shares, shares * saved["multipliers"]

    def between(self, winner, other):
        saved, v = self.saved, self.v
        to_winner, to_other = (saved["medoids"][self.nearest[c][0]] for c in (winner, other))
        multiplier = (saved["multipliers"][winner] + saved["multipliers"][other]) / 2
        of_distance = self.alpha * multiplier / (sum(self.far) + GUARD)
        by_distance = of_distance * ((v - to_other) ** 2 - (v - to_winner) ** 2) / (self.far[winner] + self.far[other])
        of_angle = (1 - self.alpha) * multiplier / (sum(self.turned) + GUARD)
        unit = [one / math.sqrt(one @ one) for one in (v, to_winner, to_other)]
        products = unit[0] * (unit[1] - unit[2])
        by_angle = of_angle * (self.turned[other] - self.turned[winner]) * products / sum(products)
        columns = np.zeros(len(saved.encoded_names))
        middle = (to_winner + to_other) / 2
        for a, subset in enumerate(self.subsets):
            parts, usual = self.parts[a]
            center, scale = saved["feature_scaling.center"][a], saved["feature_scaling.scale"][a]
            for amount, at in ((by_distance[a], middle[a]), (by_angle[a], 0.0)):
                if v[a] != at:
                    columns[subset] += amount / (v[a] - at) / scale * (parts - (center + scale * at) * usual)
        half = (saved["multipliers"][other] - saved["multipliers"][winner]) / 2
        return {
            "columns": columns,
            "terms": {"class weights": half * (self.shares[winner] + self.shares[other])},
            "neighbors": [],
            "groups": [(s, None, by_distance[a] + by_angle[a], []) for a, s in enumerate(self.subsets)],
        }
