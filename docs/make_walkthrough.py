"""Makes the numbers and pictures of ``docs/walkthrough.md``: one patient of the heart data, step by step.

``python docs/make_walkthrough.py`` writes the tables between the markers of the page, and the pictures.
``python docs/make_walkthrough.py --check`` writes nothing and fails when the page differs from what would be written.
"""

import argparse
import csv
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the studies lie beside the documentation

import numpy as np
import numpy.typing as npt
from benchmarks.datasets import Dataset, load_heart
from benchmarks.studies.cells import Split, paper_split
from marked_sections import Row, number, table, write_or_check

from qmedoid import NearestMedoidClassifier, SwapTest, compact_swap_test
from qmedoid.datasets import read_shipped
from qmedoid.geometry.channels import fusion_scores, normalize_channel
from qmedoid.geometry.groups import correlation_ratio
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.metrics.classification import evaluate

Array = npt.NDArray[np.float64]

FOLDER = Path(__file__).parent
PAGE = FOLDER / "walkthrough.md"
PICTURES = FOLDER / "pictures"
SEED = 0
RECORD = 602  # row of heart.csv, counted from 0; a test row of the split
SHOTS = 4096
UNITS = {"Age": "years", "RestingBP": "mm Hg", "Cholesterol": "mg/dl", "MaxHR": "1/min", "Oldpeak": "mm"}


@dataclass(frozen=True)
class Walk:
    """A fitted classifier and one test record on its way through it; every array is of that record unless said."""

    data: Dataset
    split: Split
    fitted: NearestMedoidClassifier
    record: int

    @cached_property
    def raw(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of heart.csv as they were written, without the target."""
        text = read_shipped("heart.csv").decode()
        header, *rows = csv.reader(text.splitlines())
        return header[:-1], [row[:-1] for row in rows]

    @property
    def x(self) -> Array:
        """The encoded record as a table of one row, shape (1, M)."""
        return self.data.X[[self.record]]

    @cached_property
    def medoid_rows(self) -> list[int]:
        """Rows of heart.csv that are the medoids, class by class."""
        return [int(row) for row in self.split.fit[self.fitted.medoid_indices_]]

    @property
    def part(self) -> NearestPart:
        """The nearest-medoid rule."""
        part = self.fitted.model_.parts[0]
        assert isinstance(part, NearestPart), "it fits no other"
        return part

    @cached_property
    def features(self) -> Array:
        """Standardized anchor features v, shape (A,)."""
        return self.part.features(self.x)[0]

    @cached_property
    def measured(self) -> SwapTest:
        """Overlap, distance and angle to both medoids, each of shape (1, 2)."""
        return self.part.swap_test(self.features[None, :])

    @cached_property
    def scores(self) -> Array:
        """Fusion scores, shape (2,)."""
        return self.part.score(self.x).scores[0]

    @cached_property
    def contributions(self) -> Array:
        """Term of each anchor in (D_0 − D_1)/(D_0 + D_1), shape (A,); their sum is exact."""
        away = (self.features - self.part.medoids) ** 2
        return (away[0] - away[1]) / self.measured.distance.sum() ** 2

    @cached_property
    def margin_parts(self) -> dict[str, float]:
        """The margin s_0 − s_1 as a sum: distance, angle, and what unequal class multipliers add."""
        model, (d, angles) = self.part, (self.measured.distance[0], self.measured.angle[0])
        mixed = model.alpha * d / d.sum() + (1.0 - model.alpha) * angles / angles.sum()
        added = (model.multipliers - 1.0) * mixed
        return {
            "distance": model.alpha * float(self.contributions.sum()),
            "angle": (1.0 - model.alpha) * float((angles[0] - angles[1]) / angles.sum()),
            "class weights": float(added[0] - added[1]),
        }

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return self.data.feature_names

    @cached_property
    def worked_anchor(self) -> int:
        """Number of the anchor that is worked out in full: the one that says most about this record."""
        return int(np.argmax(np.abs(self.contributions)))


def compute(**changes: object) -> Walk:
    """Fit on the training and validation rows of a split; `changes` are parameters of the classifier."""
    data = load_heart()
    split = paper_split(data.y, SEED)
    if RECORD not in split.test:
        raise SystemExit(f"Row {RECORD} is not a test row of split {SEED}. Test rows: {sorted(split.test.tolist())}")
    fitted = NearestMedoidClassifier(random_state=SEED, **changes).fit(data.X[split.fit], data.y[split.fit])
    return Walk(data, split, fitted, RECORD)


def patients(walk: Walk, rows: dict[str, int]) -> str:
    """Rows of heart.csv in original units, under their labels."""
    header, table_rows = walk.raw
    heads = [f"{name} ({UNITS[name]})" if name in UNITS else name for name in header]
    outcome = [walk.data.class_names[walk.data.y[row]] for row in rows.values()]
    cells: list[Row] = [
        [label, row, *table_rows[row], result] for (label, row), result in zip(rows.items(), outcome, strict=True)
    ]
    return table(["", "row", *heads, "heart disease"], cells)


def record_table(walk: Walk) -> str:
    """The record as the table has it."""
    return patients(walk, {"record": walk.record})


def split_text(walk: Walk) -> str:
    """Sizes of the parts of the table, and where the record is."""
    fit, test = len(walk.split.fit), len(walk.split.test)
    return (
        f"The table has {len(walk.data.y)} patients and {len(walk.raw[0])} columns. "
        f"{fit} rows are for fitting, {test} for testing (`paper_split` with seed {SEED}). "
        f"The record is row {walk.record} of `heart.csv`, counted from 0, and a test row: the fit never saw it."
    )


def columns_table(walk: Walk) -> str:
    """Encoded columns: the record's value, and the value after scaling with training statistics."""
    scaled = walk.part.input_scaling.apply(walk.x)[0]
    rows: list[Row] = [
        [f"`{name}`", f"{value:g}", number(z, 3)] for name, value, z in zip(walk.names, walk.x[0], scaled, strict=True)
    ]
    return table(["column", "value", "standardized"], rows)


def groups_table(walk: Walk) -> str:
    """The first groups, down to that of the worked anchor."""
    groups = walk.fitted.groups_
    count = max(5, walk.worked_anchor + 1)
    eta = correlation_ratio(walk.data.X[walk.split.fit], walk.data.y[walk.split.fit].astype(np.intp))
    rows: list[Row] = []
    for anchor, members in list(zip(groups.anchors, groups.members, strict=True))[:count]:
        others = ", ".join(f"`{walk.names[f]}` {number(groups.correlation[anchor, f], 2)}" for f in members[1:])
        rows.append([f"`{walk.names[anchor]}`", number(eta[anchor], 3), others])
    rest = len(groups.anchors) - count
    size = len(groups.members[0])
    return table(["anchor", "η", "members and their correlation ρ with the anchor"], rows, 3) + (
        f"\n\n{rest} more anchors follow. Every column anchors one group of {size} columns, itself among them."
    )


def search_table(walk: Walk) -> str:
    """The search by subset size."""
    rows: list[Row] = []
    for record in walk.fitted.search_records_:
        steps = [step for step in walk.fitted.search_trace_ if step.size == record.size]
        taken = sum(step.accepted for step in steps) - 1
        rows.append([record.size, len(steps), taken, number(steps[0].score), number(record.score)])
    best = max(walk.fitted.search_records_, key=lambda record: (record.score, -record.size))
    total = len(walk.fitted.search_trace_)
    head = ["k", "configurations scored", "steps taken", "macro-F1 at the start", "macro-F1 at the end"]
    return table(head, rows, 0) + f"\n\nIn all {total} configurations were scored. The best one has k = {best.size}."


def worked_feature_table(walk: Walk) -> str:
    """One anchor feature in full."""
    j, model = walk.worked_anchor, walk.part
    subset, weights = model.configuration[j], model.weights[j]
    z = model.input_scaling.apply(walk.x)[0, list(subset)]
    rows: list[Row] = [
        [f"`{walk.names[f]}`", f"{walk.x[0, f]:g}", number(z_f), number(w), number(w * z_f)]
        for f, z_f, w in zip(subset, z, weights, strict=True)
    ]
    total, norm = float(weights @ z), float(np.sqrt(np.sum((weights * z) ** 2)))
    u = -norm if total < 0 else norm
    mean, deviation = model.feature_scaling.center[j], model.feature_scaling.scale[j]
    steps = [
        f"- The anchor is `{walk.names[subset[0]]}`.",
        f"- The sum of the last column is {number(total)}, so the sign is {'−' if total < 0 else '+'}.",
        f"- The root of the sum of its squares is {number(norm)}, so the feature is u = {number(u)}.",
        f"- Over the fitting rows u has mean {number(mean)} and deviation {number(deviation)}: "
        f"v = (u − mean) / deviation = {number(walk.features[j])}.",
    ]
    return table(["column", "value", "standardized x", "ρ", "ρ·x"], rows) + "\n\n" + "\n".join(steps)


def configuration_table(walk: Walk) -> str:
    """Subset and feature of every anchor."""
    model = walk.part
    rows: list[Row] = [
        [f"`{walk.names[subset[0]]}`", ", ".join(f"`{walk.names[f]}`" for f in subset[1:]), number(v, 3)]
        for subset, v in zip(model.configuration, walk.features, strict=True)
    ]
    return table(["anchor", "columns that join it", "v of the record"], rows, 2)


def medoids_table(walk: Walk) -> str:
    """The medoids and the record, in original units."""
    names = walk.data.class_names
    rows = {f"medoid of “{name}”": row for name, row in zip(names, walk.medoid_rows, strict=True)}
    return patients(walk, rows | {"record": walk.record})


def swap_table(walk: Walk) -> str:
    """The compact SWAP test of the record against each medoid."""
    v, medoids = walk.features, walk.part.medoids
    drawn = compact_swap_test(v, medoids, shots=SHOTS, rng=np.random.default_rng(SEED))
    columns = [_swap_column(v, mu) for mu in medoids]
    exact = walk.measured
    for c, column in enumerate(columns):
        s = exact.overlap[0, c]
        column |= {
            "p₀ = (1 + s)/2": number((1 + s) / 2, 5),
            "s = 2p₀ − 1": number(s, 5),
            "distance D = √(2Zs)": number(exact.distance[0, c]),
            "‖v − μ‖, computed directly": number(float(np.linalg.norm(v - medoids[c]))),
            "angle Θ": f"{number(np.degrees(exact.angle[0, c]), 2)}°",
            f"D from {SHOTS} shots": number(drawn.distance[0, c]),
            f"Θ from {SHOTS} shots": f"{number(np.degrees(drawn.angle[0, c]), 2)}°",
        }
    rows: list[Row] = [[label, *(column[label] for column in columns)] for label in columns[0]]
    return table(["", *(f"medoid of “{name}”" for name in walk.data.class_names)], rows)


def _swap_column(v: Array, mu: Array) -> dict[str, str]:
    """Norms and amplitudes of the two states for one medoid."""
    nv, nm = float(np.linalg.norm(v)), float(np.linalg.norm(mu))
    root_z = np.hypot(nv, nm)
    psi = np.column_stack([v / nv, mu / nm]).ravel() / np.sqrt(2)
    qubits = int(np.ceil(np.log2(len(psi))))
    return {
        "‖v‖": number(nv),
        "‖μ‖": number(nm),
        "Z = ‖v‖² + ‖μ‖²": number(root_z**2),
        "amplitudes of φ (1 qubit)": f"{number(nv / root_z)}, {number(-nm / root_z)}",
        f"first amplitudes of ψ ({qubits} qubits)": ", ".join(number(a, 3) for a in psi[:4]) + ", …",
    }


def scores_table(walk: Walk) -> str:
    """Channels, their shares and the scores."""
    model = walk.part
    distance, angle = normalize_channel(walk.measured.distance)[0], normalize_channel(walk.measured.angle)[0]
    rows: list[Row] = [
        [f"“{name}”", number(walk.measured.distance[0, c]), number(distance[c]),
         number(walk.measured.angle[0, c]), number(angle[c]), number(model.multipliers[c]), number(walk.scores[c])]
        for c, name in enumerate(walk.data.class_names)
    ]  # fmt: skip
    head = ["class", "D", "share of D", "Θ (radians)", "share of Θ", "multiplier w", "score s"]
    return table(head, rows)


def decision_text(walk: Walk) -> str:
    """The decision, the truth and the margin."""
    chosen = walk.data.class_names[int(np.argmin(walk.scores))]
    truth = walk.data.class_names[walk.data.y[walk.record]]
    margin = walk.scores[0] - walk.scores[1]
    nearer = np.abs(walk.fitted.decision_function(walk.data.X[walk.split.test])) < abs(margin)
    return (
        f"α is {walk.fitted.alpha_:g}. The smaller score is that of “{chosen}”, so the decision is “{chosen}”. "
        f"The table says “{truth}”. The margin s₀ − s₁ is {number(margin)}; "
        f"{int(nearer.sum())} of the {len(nearer)} test records have a margin nearer to 0."
    )


def alpha_text(walk: Walk) -> str:
    """The choice of α."""
    sweep = walk.fitted.alpha_sweep_
    ends = f"{number(sweep.scores[0])} with the angle alone (α = 0), {number(sweep.scores[-1])} with the distance alone"
    return (
        f"The choice is α = {sweep.value:g}, with a macro-F1 of {number(sweep.score)} on held-out rows; "
        f"it is {ends} (α = 1). The search compared its configurations at α = {walk.fitted.search_alpha:g} "
        "(`search_alpha`), so the curve favors values near that."
    )


def contributions_table(walk: Walk) -> str:
    """All anchors by the size of their term, then the sum."""
    medoids = walk.part.medoids
    rows: list[Row] = []
    for j in np.argsort(-np.abs(walk.contributions), kind="stable"):
        name = f"`{walk.names[walk.fitted.configuration_[j][0]]}`"
        values = [number(value, 3) for value in (walk.features[j], medoids[0, j], medoids[1, j])]
        rows.append([name, *values, number(walk.contributions[j], 5)])
    rows.append(["**sum**", "", "", "", f"**{number(walk.contributions.sum(), 5)}**"])
    no, yes = walk.data.class_names
    return table(["anchor a", "v", f"μ of “{no}”", f"μ of “{yes}”", "term"], rows)


def margin_text(walk: Walk) -> str:
    """The margin as a sum of its parts."""
    d, parts, alpha = walk.measured.distance[0], walk.margin_parts, walk.fitted.alpha_
    angles = walk.measured.angle[0]
    ratio = (d[0] - d[1]) / d.sum()
    turned = (angles[0] - angles[1]) / angles.sum()
    return "\n".join([
        f"- The sum, {number(walk.contributions.sum(), 5)}, is (D₀ − D₁)/(D₀ + D₁) = {number(ratio, 5)}.",
        f"- Times α = {alpha:g} it is the distance part of the margin: {number(parts['distance'], 5)}.",
        f"- The angle part is (1 − α)·(Θ₀ − Θ₁)/(Θ₀ + Θ₁) = {number(1 - alpha, 2)} · {number(turned, 5)} = "
        f"{number(parts['angle'], 5)}.",
        f"- Class multipliers add {number(parts['class weights'], 5)}.",
        f"- Together: {number(sum(parts.values()), 5)}, the margin.",
    ])  # fmt: skip


def outcome_text(walk: Walk) -> str:
    """How the same classifier does on all test rows."""
    X, y = walk.data.X[walk.split.test], walk.data.y[walk.split.test]
    metrics = evaluate(y.astype(np.intp), walk.part.labels(X), 2)
    moved = _moved_by_angle(walk, X)
    return (
        f"Of {len(y)} test records it decides {int(np.trace(metrics.confusion))} correctly: accuracy "
        f"{number(metrics.accuracy)}, macro-F1 {number(metrics.macro_f1)}. "
        f"For {moved} of them the angle turns the decision that the distance alone would make."
    )


def _moved_by_angle(walk: Walk, X: Array) -> int:
    model = walk.part
    channels = model.feature_channels(model.features(X))
    alone = fusion_scores(channels, 1.0, use_angular=False, multipliers=model.multipliers)
    return int(np.sum(np.argmin(alone, axis=1) != model.labels(X)))


SECTIONS = {
    "split": split_text,
    "record": record_table,
    "columns": columns_table,
    "groups": groups_table,
    "search": search_table,
    "feature": worked_feature_table,
    "configuration": configuration_table,
    "medoids": medoids_table,
    "swap": swap_table,
    "alpha": alpha_text,
    "scores": scores_table,
    "decision": decision_text,
    "contributions": contributions_table,
    "margin": margin_text,
    "outcome": outcome_text,
}
"""What is written between the markers of the page."""


def sections(walk: Walk) -> dict[str, str]:
    """Text of every marked section."""
    return {name: write(walk) for name, write in SECTIONS.items()}


def main() -> None:
    """Write the page and the pictures, or check the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date; write nothing")
    check = parser.parse_args().check
    walk = compute()
    write_or_check(PAGE, sections(walk), check=check)
    if not check:
        from walkthrough_pictures import draw_all

        draw_all(walk, PICTURES)


if __name__ == "__main__":
    main()
