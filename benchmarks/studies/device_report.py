"""The study of devices as one document: its tables, plots, and what they say in sentences."""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.studies.data import load_data
from benchmarks.studies.device_tables import (
    KINDS,
    Measured,
    all_measured,
    circuits_table,
    decisions_table,
    errors_table,
    goals_table,
    kept_shares,
    shapes_table,
)
from benchmarks.studies.devices import BACKENDS, REGISTERS, STUDY, DevicePlan
from benchmarks.studies.document import Document, Picture, Section, Table
from benchmarks.studies.measured import SIMULATOR
from benchmarks.studies.panels import Curve, CurvePanel, Role, curve_grid
from benchmarks.studies.report import cost_table
from benchmarks.studies.results import StudyResults

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
