"""The report of the study of devices: its tables, findings and pictures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks.studies.cells import FRAUD_SAMPLE, Result, load_data
from benchmarks.studies.devices import BACKENDS, MODELS, REGISTERS, STUDY, TABLES, DevicePlan, method_name
from benchmarks.studies.document import Document, Heading, Picture, Section, Table, Value
from benchmarks.studies.measured import SIMULATOR
from benchmarks.studies.panels import Curve, CurvePanel, Role, curve_grid
from benchmarks.studies.report import cost_table
from benchmarks.studies.results import StudyResults

KINDS = ("raw", "calibrated")
INFINITE = "∞"
"""What tables call shots without number: the noise of a device alone."""
GOAL_SHOTS = (1024, 4096)
_RECORD_COLUMNS = ("model", "data", "circuit", "device")


@dataclass(frozen=True)
class Measured:
    """What was measured of a model of a table, by one kind of circuit on one device."""

    model: str
    data: str
    register: str
    backend: str
    title: str
    result: Result

    @property
    def names(self) -> tuple[str, str, str, str]:
        """Model, table, circuit and device, as pages call them."""
        return MODELS[self.model], self.title, REGISTERS[self.register], BACKENDS[self.backend]

    def at(self, shots: int | None) -> Result | None:
        """Figures at a number of shots; None for infinitely many."""
        return next((one for one in self.result["measured"] if one["shots"] == shots), None)


def all_measured(results: StudyResults, titles: Mapping[str, str]) -> list[Measured]:
    """The cells that were run, in the order of models, tables, circuits and devices."""
    return [
        Measured(model, data, register, backend, titles[data], result)
        for model, data, register, backend in product(MODELS, TABLES, REGISTERS, BACKENDS)
        for result in results.of(data, method_name(model, register, backend))
    ]


def _rows(found: Sequence[Measured]) -> Iterator[tuple[Measured, Result, list[Value]]]:
    """Every number of shots of every cell, and the first columns of its row."""
    for one in found:
        for figures in one.result["measured"]:
            shots = INFINITE if figures["shots"] is None else str(figures["shots"])
            yield one, figures, [*one.names, shots, one.result["records"], figures["repeats"]]


def _headings(*groups: tuple[str, Sequence[str]], digits: int = 4) -> list[Heading]:
    first = [Heading(name) for name in (*_RECORD_COLUMNS, "shots", "records", "times")]
    return first + [Heading(name, group, digits) for group, names in groups for name in names]


def decisions_table(found: Sequence[Measured]) -> Table:
    """Decisions that are those of the closed form, and how many are right."""
    rows = []
    for one, figures, row in _rows(found):
        cells: list[Value] = []
        for kind in KINDS:
            own = figures[kind]
            cells += [None] * 4 if own is None else [*kept_shares(own), own["accuracy"]]
        rows.append([*row, *cells, one.result["closed_form_accuracy"]])
    names = ("kept", "clear", "kept of clear", "accuracy")
    columns = [*_headings(*((kind, names) for kind in KINDS)), Heading("accuracy", "closed form")]
    return Table(
        "device_decisions",
        "Decisions that are kept",
        columns,
        rows,
        "Kept: decided as the closed form decides. Clear: the measured margin is more than two of its stated errors "
        f"from the cut. {INFINITE}: the noise of the device alone, without that of shots. Without noise nothing is "
        "calibrated.",
    )


def kept_shares(own: Result) -> tuple[float, float, float | None]:
    """Share of decisions that are kept, that are clear, and that are kept of the clear ones."""
    clear = own["clear_kept"] / own["clear"] if own["clear"] else None
    return own["kept"] / own["decisions"], own["clear"] / own["decisions"], clear


def errors_table(found: Sequence[Measured]) -> Table:
    """Errors of overlaps and margins: measured, stated by the run, and planned before it."""
    rows = []
    for _, figures, row in _rows(found):
        if figures["shots"] is None:
            planned: list[Value] = [None, None]
        else:
            planned = [figures["planned"]["s_error"], figures["planned"]["margin_error"]]
        raw, best = figures["raw"], figures["calibrated"]
        has_shots = figures["shots"] is not None
        overlaps = [raw["s_error"], None if best is None else best["s_error"], planned[0]]
        scores = [one["s_score_deviation"] if one and has_shots else None for one in (raw, best)]
        margins = [raw["margin_error"], None if best is None else best["margin_error"]]
        last = best or raw
        margins += [last["margin_stated"] if has_shots else None, planned[1], last["margin_shift"]]
        rows.append([*row, *overlaps, *scores, *margins, min(last["margin_errors"]), max(last["margin_errors"])])
    columns = _headings(
        ("error of s", ("raw", "calibrated", "planned")),
        ("errors of s over stated ones", KINDS),
        ("error of the margin", ("raw", "calibrated", "stated", "planned", "shift", "least of a run", "most of a run")),
        digits=5,
    )
    return Table(
        "device_errors",
        "Errors of overlaps and margins",
        columns,
        rows,
        "Root mean squares. Planned: expected before the run, by shots and by the error rates that the device reports. "
        "Stated: by the run itself. Errors over stated ones are near 1 where the stated ones are honest. Shift: what "
        "is left of the margin's error in the mean over repeats. Stated, shift, least and most are of calibrated "
        "measurements, and without noise of raw ones.",
    )


def circuits_table(found: Sequence[Measured]) -> Table:
    """Circuits of a record, together with others and alone, their gates, and seconds of a device."""
    rows: list[list[Value]] = []
    for one in found:
        plan, alone = one.result["plan"], one.result["circuits_alone"]
        shapes = plan["shapes"]
        n, widest = plan["records"], max(shapes, key=lambda shape: shape["columns"])
        # Gates that a record's tests take, were each run once.
        mean_gates = sum(shape["tests"] * shape["two_qubit_gates"] for shape in shapes) / max(1, plan["tests"])
        rows.append([
            *one.names, n, plan["tests_asked"] / n, plan["tests"] / n, plan["circuits_per_record"],
            sum(alone) / len(alone), max(alone), plan["calibration_circuits"], plan["jobs"], widest["columns"],
            widest["qubits"] // widest["side_by_side"], widest["side_by_side"], widest["two_qubit_gates"],
            widest["depth"], mean_gates, plan["device_seconds"] / n,
        ])  # fmt: skip
    columns = [Heading(name) for name in (*_RECORD_COLUMNS, "records")]
    columns += [Heading(name, "tests of a record", 1) for name in ("asked", "distinct")]
    columns += [Heading("together", "circuits of a record", 2), Heading("alone", "circuits of a record", 1)]
    columns += [Heading("alone, most", "circuits of a record"), Heading("calibration circuits"), Heading("jobs")]
    columns += [Heading(name, "widest test") for name in ("columns", "qubits", "side by side")]
    columns += [Heading("gates between qubits", "widest test", 0), Heading("depth", "widest test")]
    columns += [Heading("gates between qubits of a test", digits=2), Heading("device seconds of a record", digits=2)]
    return Table(
        "device_circuits",
        "What records cost",
        columns,
        rows,
        "Together: measured in one run, records share tests. Alone: a run of one record. Calibration circuits are "
        "those of the run. Seconds are estimated for the largest number of shots, at 250 µs between shots.",
    )


def shapes_table(found: Sequence[Measured]) -> Table:
    """Every shape of circuit on every device: gates, depth, and what noise does to its overlap."""
    rows: dict[tuple[Any, ...], list[Value]] = {}
    for one in found:
        exact = one.at(None)
        lines = exact["lines"] if exact else []
        for shape, line in zip(one.result["plan"]["shapes"], lines, strict=True):
            key = one.backend, one.register == "paper", shape["columns"]
            if line is None or key in rows:
                continue
            qubits = shape["qubits"] // shape["side_by_side"]
            circuit = "compact SWAP test" if one.register == "paper" else "interference"
            noise = [line["slope"], line["slope_least"], line["slope_most"], line["intercept"], line["excess"]]
            rows[key] = [BACKENDS[one.backend], circuit, shape["columns"], qubits, shape["side_by_side"],
                         shape["two_qubit_gates"], shape["depth"], *noise]  # fmt: skip
    columns = [Heading(name) for name in ("device", "circuit", "columns", "qubits", "side by side")]
    columns += [Heading("gates between qubits", digits=0), Heading("depth")]
    columns += [Heading(name, "slope") for name in ("mean", "least", "most")]
    columns += [Heading("intercept"), Heading("left over", digits=5)]
    return Table(
        "device_shapes",
        "What noise does to an overlap",
        columns,
        [rows[key] for key in sorted(rows)],
        "The line r = intercept + slope · s through known pairs, without shot noise, over the places side by side. "
        "Left over: root mean square distance of known pairs from the line, in units of r.",
    )


def goals_table(found: Sequence[Measured]) -> Table:
    """What the default model's calibrated packed columns were to show on both noisy devices, and whether they do."""
    rows: list[list[Value]] = []
    for one in found:
        if (one.model, one.register) != ("default", "column") or one.data == FRAUD_SAMPLE:
            continue
        most = max(one.result["circuits_alone"])
        rows.append([*one.names[1::2], None, "circuits of a record alone", "at most 20", float(most), _yes(most <= 20)])
        for shots in GOAL_SHOTS:
            figures = one.at(shots)
            if figures is None or figures["calibrated"] is None:
                continue
            for name, wanted, value, low, high in _goals(figures):
                met = None if value is None else _yes(low <= value <= high)
                rows.append([*one.names[1::2], str(shots), name, wanted, value, met])
    columns = [Heading(name) for name in ("data", "device", "shots", "goal", "wanted", "measured", "met")]
    return Table("device_goals", "Goals of the default model, packed columns, calibrated", columns, rows)


def _goals(figures: Result) -> Iterator[tuple[str, str, float | None, float, float]]:
    own, planned = figures["calibrated"], figures["planned"]
    kept, _, of_clear = kept_shares(own)
    yield "decisions kept of the clear ones", "at least 0.995", of_clear, 0.995, 1.0
    yield "decisions kept of all", "at least 0.98", kept, 0.98, 1.0
    yield "errors of s over stated ones", "0.9 to 1.15", own["s_score_deviation"], 0.9, 1.15
    for name, title in (("s_error", "s"), ("margin_error", "the margin")):
        yield f"planned error of {title} over measured", "0.85 to 1.15", planned[name] / own[name], 0.85, 1.15


def _yes(met: bool) -> str:
    return "yes" if met else "no"


SHOWN_TABLES = ("device_goals", "device_circuits")
"""Names of the tables that a terminal shows; the others are longer."""
ENOUGH = 0.98
"""Share of decisions that are to be kept."""
_ROLES: dict[str, Role] = {"paper": "printed", "group": "baseline", "column": "ours"}


def make_device_report(plan: DevicePlan, results: StudyResults, command: str) -> Document:
    """The document of a run of all cells of a plan; the command is the one that makes it again."""
    results = StudyResults({cell: results.by_cell[cell] for cell in plan.cells})
    titles = {cell.data: load_data(cell.data).name for cell in plan.cells}
    found = all_measured(results, titles)
    goals = goals_table(found)
    sections = [
        Section("Decisions", (), [goals, decisions_table(found), *_pictures(found, "kept")]),
        Section("Errors", (), [errors_table(found), *_pictures(found, "s_error")]),
        Section("Circuits", (), [circuits_table(found), shapes_table(found), cost_table(results, titles)]),
    ]
    introduction = (
        "Fitted models decide about test records with overlaps that circuits measure, on simulated devices: without "
        "noise, and with the noise of two real devices as they were calibrated on a day in the past. Raw overlaps are "
        "taken as they are read; calibrated ones are put right by pairs of known overlap that run beside them.",
        "Nothing here ran on a real device. Fake devices know errors of gates and of reading, and relaxation; they "
        "know no crosstalk, no drift and no leakage.",
    )
    made_by = {"command": command, "seed": str(plan.seed), **STUDY.versions()}
    title = "The same decisions on a quantum device"
    return Document(title, introduction, [*device_findings(found), *goal_findings(goals)], sections, made_by)


def device_findings(found: Sequence[Measured]) -> Iterator[str]:
    """For every model and table, how many decisions survive each circuit on the noisy devices."""
    noisy = [one for one in found if one.backend != SIMULATOR]
    for model, title in dict.fromkeys((one.names[0], one.title) for one in noisy):
        own = [one for one in noisy if one.names[:2] == (model, title)]
        shots = max(one["shots"] or 0 for one in own[0].result["measured"])
        parts = []
        for register, name in REGISTERS.items():
            shares = {kind: _kept(own, register, shots, kind) for kind in KINDS}
            parts.append(f"{name} {shares['raw']} raw and {shares['calibrated']} calibrated")
        yield (
            f"{title}, {model} model, {shots:,} shots, share of decisions kept on "
            f"{' and '.join(dict.fromkeys(BACKENDS[one.backend] for one in own))}: {'; '.join(parts)}."
        )
    yield from _shots_findings([one for one in noisy if (one.model, one.register) == ("default", "column")])


def _shots_findings(found: Sequence[Measured]) -> Iterator[str]:
    """How many shots calibrated packed columns take; tables and devices that take as many share a sentence."""
    where: dict[str, list[str]] = {}
    for one in found:
        enough = [n for n in _shots(one) if _share(one, n, "calibrated") >= ENOUGH]
        least = f"{min(enough):,} shots keep" if enough else "no number of shots that was tried keeps"
        where.setdefault(least, []).append(f"{one.title} on {BACKENDS[one.backend]}")
    for least, places in where.items():
        among = "all tables and devices" if len(places) == len(found) else ", ".join(places)
        yield f"Calibrated packed columns, default model: {least} at least {ENOUGH:.0%} of decisions ({among})."


def goal_findings(goals: Table) -> Iterator[str]:
    """How many goals are met, and which are not."""
    missed = [row for row in goals.rows if row[-1] == "no"]
    if goals.rows:
        yield f"Goals of calibrated packed columns: {len(goals.rows) - len(missed)} of {len(goals.rows)} are met."
    for data, device, shots, goal, wanted, value, _ in missed:
        at = f", {int(str(shots)):,} shots" if shots else ""
        yield f"Not met: {data}, {device}{at}: {goal} is {float(str(value)):.3f}, and was to be {wanted}."


def _share(one: Measured, shots: int, kind: str) -> float:
    figures = one.at(shots)
    return float("nan") if figures is None or figures[kind] is None else kept_shares(figures[kind])[0]


def _kept(own: Sequence[Measured], register: str, shots: int, kind: str) -> str:
    shares = [_share(one, shots, kind) for one in own if one.register == register]
    return " and ".join(f"{100 * share:.1f} %" for share in shares)


def _shots(one: Measured) -> list[int]:
    return [figures["shots"] for figures in one.result["measured"] if figures["shots"] is not None]


def _pictures(found: Sequence[Measured], figure: str) -> Iterator[Picture]:
    """A figure by shots: a panel for every table and noisy device, a curve for every circuit, raw and calibrated."""
    titles = {
        "kept": ("device_decisions", "Share of decisions that are kept", "decisions kept"),
        "s_error": ("device_errors", "Root mean square error of s", "error of s"),
    }
    for model in dict.fromkeys(one.model for one in found):
        own = [one for one in found if one.model == model and one.backend != SIMULATOR]
        panels = []
        for title, backend in dict.fromkeys((one.title, one.backend) for one in own):
            cells = [one for one in own if (one.title, one.backend) == (title, backend)]
            curves = [_curve(one, figure, kind) for one in cells for kind in KINDS]
            panels.append(CurvePanel(f"{title}, {BACKENDS[backend]}", _shots(cells[0]), curves))
        name, title, label = titles[figure]
        if panels and len(_shots(own[0])) > 1:
            yield curve_grid(
                f"{name}_{model}",
                f"{title}: {own[0].names[0]} model",
                panels,
                x_label="shots",
                y_label=label,
                log_x=True,
            )


def _curve(one: Measured, figure: str, kind: str) -> Curve:
    values = []
    for shots in _shots(one):
        own = (one.at(shots) or {}).get(kind)
        values.append(np.nan if own is None else kept_shares(own)[0] if figure == "kept" else own[figure])
    return Curve(f"{REGISTERS[one.register]}, {kind}", values, role=_ROLES[one.register])
