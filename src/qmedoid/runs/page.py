"""A run as one page of HTML that loads nothing and runs no script."""

from collections.abc import Mapping, Sequence
from typing import Any

from qmedoid.markup.html import Child, Html, element, join, plain, table
from qmedoid.markup.policy import policy_element, style_element
from qmedoid.markup.svg import label, percent
from qmedoid.model_report.charts import count
from qmedoid.model_report.page import style
from qmedoid.model_report.sections import Section, definition_list, paragraph
from qmedoid.runs.charts import margins_chart, overlaps_chart, values_chart

PAGE = "report.html"
_SECONDS, _MINUTES = 120.0, 7200.0
_WHERE = {
    "exact simulator": (
        "No device was used. An ordinary computer drew these counts from exact probabilities: they have the noise of "
        "shots and no other."
    ),
    "simulated device": (
        "No device was used. An ordinary computer drew these counts from a noise model, which is made of the error "
        "rates that a device reported once. A device drifts, its qubits disturb each other, and some of its errors are "
        "in no such table: a simulated device is not a device."
    ),
    "device of a service": "A service ran these circuits on a device.",
    "sampler": (
        "A sampler that the caller made ran these circuits; whether that is a device or a simulation of one is not "
        "known here."
    ),
}
_ONE_QUBIT = (
    "Each test of one column is a single qubit without a gate to another. Tests side by side share a circuit, and are "
    "not entangled: independent coins of the same bias would give the same counts. Such a run shows what a device's "
    "noise does to decisions, and how well known pairs undo it. It shows no quantum advantage."
)
_WIDER = (
    "Tests of several columns load a whole group into several qubits, by gates between them, and one qubit is read. "
    "Here a device does something that coins side by side do not: it keeps the amplitudes of the group together until "
    "the end. The number that is read is one that a computer knows in closed form, in less time, and that tests of one "
    "column each give as well, drawn by their weights. That it is known is what makes it possible to say how well the "
    "device did."
)
_TRAINED = (
    "The trained circuit has gates between its qubits, all of which are read. Its inputs come from the measured "
    "distances, if the model has any. A computer simulates so small a circuit exactly, in less time: that its values "
    "are known is what makes it possible to say how well the device did."
)
_ABOUT = (
    "Gates between two qubits are those of one test. Noise turns an overlap s into intercept + slope · s, about; the "
    "line is fitted to pairs of known overlap in every job and inverted, unless known pairs read what they should "
    "within their shots. Where every place of the circuit has a line of its own, the means are shown."
)


def render(values: Mapping[str, Any]) -> str:
    """The page of a run.

    Every text is escaped, and shortened where it is long. A policy within the page lets the browser load and run
    nothing.

    Parameters
    ----------
    values : mapping
        `writing.summary_of` and `values.page_values`, with the times of begin and end.
    """
    measured = [] if _is_circuit_alone(values) else [_circuits(values), _overlaps(values)]
    measured += [] if values["values"] is None else [_trained(values)]
    sections = [_found(values), _ran(values), *measured, _margins(values), _undecided(values), _meaning(values),
                _made(values)]  # fmt: skip
    css, title = style(), "Run of circuits"
    head = element(
        "head", Html("\n"), element("meta", charset="utf-8"), policy_element([], [css]),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"), element("title", f"{title}: {_device(values)}"),
        style_element(css),
    )  # fmt: skip
    of = [values["names"].get("model"), values["names"].get("table"), _device(values), values["finished"]]
    said = " · ".join(_shown(one) for one in of if one)
    links = (element("li", element("a", one.title, href=f"#{one.anchor}")) for one in sections)
    body = element(
        "body",
        element("a", "Skip to the result", href="#found", class_="skip"),
        element("header", element("h1", title), element("p", said, class_="note")),
        element("nav", element("ol", *links), aria_label="Contents"),
        element("main", join([one.html for one in sections], "\n"), id="main"),
    )  # fmt: skip
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _is_circuit_alone(values: Mapping[str, Any]) -> bool:
    """Whether a trained circuit ran and no distance was measured."""
    return not values["plan"]["shapes"] and values["values"] is not None


def _device(values: Mapping[str, Any]) -> str:
    return _shown(values["plan"]["device"]["name"])


def _shown(value: Any) -> str:
    """A text of foreign origin, such as a class or the name of a file."""
    return plain(str(value), 120)


def _found(values: Mapping[str, Any]) -> Section:
    found, plan = values["result"], values["plan"]
    expected = plan["expected"]
    said = f"{count(round(found['agreement'] * found['records']))} of {count(found['records'])} records are decided as "
    said += f"the closed form decides ({percent(found['agreement'])})."
    if found["undecided"]:
        said += f" The margins of {count(found['undecided'])} are not settled within two errors."
        if found["agreement_of_decided"] is not None:
            said += f" Of the others {percent(found['agreement_of_decided'])} agree."
    else:
        said += " The margins of all are settled within two errors."
    head = ("", "expected", "stated by the run", "against the closed form")
    rows: list[Sequence[Child]] = []
    if not _is_circuit_alone(values):
        rows += [
            ("rms error of an overlap", label(expected["overlap_rms_error"]), "–", label(found["overlap_rms_error"])),
            ("the same without calibration", "–", "–", label(found["overlap_rms_error_raw"])),
        ]
    trained = found["trained_circuit"]
    if trained is not None:
        rows += [
            ("rms error of a value of the trained circuit", label(expected["value_rms_error"]),
             label(trained["value_rms_stated"]), label(trained["value_rms_error"])),
            ("the same without calibration", "–", "–", label(trained["value_rms_error_raw"])),
        ]  # fmt: skip
    rows += [
        ("rms error of a margin", label(expected["margin_rms_error"]), label(found["margin_rms_stated"]),
         label(found["margin_rms_error"])),
        ("records not settled", count(expected["undecided"]), count(found["undecided"]), "–"),
    ]  # fmt: skip
    of_overlaps = [] if _is_circuit_alone(values) else [f"{label(found['overlap_score_deviation'])} for overlaps"]
    of_values = [] if trained is None else [f"{label(trained['value_score_deviation'])} for the trained circuit"]
    honest = (
        "Errors in units of the stated ones have a deviation of "
        f"{' and '.join([*of_overlaps, *of_values])}; it is 1 where stated errors are neither too small nor too large."
    )
    notes = [paragraph(note, "note") for note in found["notes"]]
    return Section(
        "found", "What was found",
        join([paragraph(said), table("Errors", head, rows, numbers=(1, 2, 3)), paragraph(honest), *notes]),
    )  # fmt: skip


def _ran(values: Mapping[str, Any]) -> Section:
    plan, device = values["plan"], values["plan"]["device"]
    facts: list[tuple[Child, Child]] = [
        ("Device", _device(values)), ("Kind", values["where"]),
        ("Begun", values["started"]), ("Finished", values["finished"]),
        ("Model", _named(values, "model")), ("Table", _named(values, "table")),
        ("Records", count(plan["records"])),
        ("Circuits", f"{count(plan['circuits'])}, {label(plan['circuits_per_record'])} for a record"),
        ("Circuits of known pairs", count(plan["calibration_circuits"])),
        ("Jobs", count(plan["jobs"])),
        ("Shots", f"{_shots(plan['shots'])}, {count(plan['total_shots'])} in all"),
        ("Tests", f"{count(plan['tests'])} distinct ones of {count(plan['tests_asked'])} that records ask for"),
        ("Time on a device, about", duration(plan["device_seconds"])),
    ]  # fmt: skip
    for key, name in (("qubits_of_the_device", "Qubits of the device"), ("qubits_usable", "Qubits within error limits"),
                      ("median_readout_error", "Median error of reading"),
                      ("median_coupler_error", "Median error of a gate between two qubits")):  # fmt: skip
        if device.get(key) is not None:
            facts.append((name, label(device[key])))
    return Section(
        "ran", "What was run, where and when", join([definition_list(facts), paragraph(_WHERE[values["where"]])])
    )


def _shots(shots: int | str) -> str:
    return "more where margins are small" if shots == "auto" else f"{int(shots):,} of each circuit"


def duration(seconds: float) -> str:
    """A time in the unit that it is read in."""
    if seconds < _SECONDS:
        return f"{label(seconds)} s"
    return f"{label(seconds / 60)} min" if seconds < _MINUTES else f"{label(seconds / 3600)} h"


def _named(values: Mapping[str, Any], what: str) -> str:
    name, digest = values["names"].get(what), values["asked"].get({"table": "records"}.get(what, what))
    said = "not named" if name is None else _shown(name)
    of = "its records, " if what == "table" else ""
    return said if digest is None else f"{said} ({of}SHA-256 {digest[:16]}…)"


def _circuits(values: Mapping[str, Any]) -> Section:
    plan, calibration = values["plan"], values["result"]["calibration"]
    rows = []
    for shape, line in zip(plan["shapes"], calibration, strict=True):
        fitted: list[Child] = ["–", "–", "–", "not measured"] if line is None else _line(line)
        rows.append((count(shape["columns"]), count(shape["tests"]), count(shape["side_by_side"]),
                     label(shape["two_qubit_gates"]), count(shape["depth"]), *fitted))  # fmt: skip
    head = ("columns", "tests", "side by side", "two-qubit gates", "depth", "slope", "intercept",
            "known pairs", "calibration")  # fmt: skip
    circuit, register = plan["circuit"].replace("_", " "), _register(plan["register"])
    about = f"The circuit is {circuit}, with a register for each {register}. {_ABOUT}"
    made = table("Circuits by width, with their calibration", head, rows, numbers=range(8))
    return Section("circuits", "Circuits and calibration", join([paragraph(about), made]))


def _trained(values: Mapping[str, Any]) -> Section:
    plan, found = values["plan"]["trained_circuit"], values["result"]["trained_circuit"]
    about = (
        f"The trained circuit decides {count(plan['records'])} records. It has {count(plan['qubits'])} qubits, "
        f"{count(plan['inputs'])} inputs and {label(plan['two_qubit_gates'])} gates between two qubits; "
        f"{count(plan['side_by_side'])} copies run side by side, in {count(plan['circuits'])} circuits and "
        f"{count(plan['calibration_circuits'])} of known inputs. Noise turns an expectation value v into intercept + "
        "slope · v, about; each observable has a line of its own, fitted to known inputs."
    )
    rows = [(_shown(line["observable"]), *_line(line)) for line in found["calibration"] if line is not None]
    head = ("observable", "slope", "intercept", "known inputs", "calibration")
    made = table("Calibration by observable", head, rows, numbers=(1, 2, 3)) if rows else None
    chart = element("div", values_chart(values["values"]), class_="charts")
    return Section("trained", "The trained circuit", join([paragraph(about), made, chart]))


def _line(line: Mapping[str, Any]) -> list[Child]:
    """A fitted line, and whether it was used."""
    used = ("a line for each place" if line["by_position"] else "one line") if line["used"] else "left out"
    return [f"{line['slope']:.4f} ± {line['slope_error']:.4f}",
            f"{line['intercept']:.4f} ± {line['intercept_error']:.4f}", count(line["known_pairs"]), used]  # fmt: skip


def _register(name: str) -> str:
    return {"column": "column", "group": "group of columns", "paper": "group of columns, one in each circuit"}[name]


def _overlaps(values: Mapping[str, Any]) -> Section:
    return Section("overlaps", "Measured and exact overlaps",
                   element("div", overlaps_chart(values["overlaps"]), class_="charts"))  # fmt: skip


def _margins(values: Mapping[str, Any]) -> Section:
    chart = margins_chart(values["margins"], values["plan"]["records"], values["n_classes"])
    return Section("margins", "Margins with their errors", chart)


def _undecided(values: Mapping[str, Any]) -> Section:
    found, parts = values["result"], list[Html | None]()
    listed, changed = values["undecided"], values["changed"]
    if listed:
        more = "" if len(listed) == found["undecided"] else f"; the first {len(listed)} of {count(found['undecided'])}"
        parts.append(_records(f"Records that are not settled{more}", listed))
    else:
        parts.append(paragraph("Every record is settled: its margin is more than two errors from zero."))
    if changed:
        parts.append(_records("Records that the closed form decides otherwise", changed))
    return Section("undecided", "Undecided records", join(parts))


def _records(caption: str, records: Sequence[Mapping[str, Any]]) -> Html:
    head = ("row", "class", "probability", "margin", "class in closed form", "margin in closed form")
    rows = [
        (count(one["row"]), _shown(one["class"]), _with_error(one, "probability") if "probability" in one else "none",
         _with_error(one, "margin"), _shown(one["class_in_closed_form"]),
         label(one["margin_in_closed_form"]))
        for one in records
    ]  # fmt: skip
    return table(caption, head, rows, numbers=(0, 2, 3, 5))


def _with_error(record: Mapping[str, Any], name: str) -> str:
    return f"{label(record[name])} ± {label(record[f'{name}_error'])}"


def _meaning(values: Mapping[str, Any]) -> Section:
    widths = [shape["columns"] for shape in values["plan"]["shapes"]]
    said = [_ONE_QUBIT] if 1 in widths else []
    said += [_WIDER] if max(widths, default=1) > 1 else []
    said += [] if values["values"] is None else [_TRAINED]
    if widths and max(widths) == 1:
        said.append("Wider registers, such as one for each group of columns, are where a device does something else.")
    return Section(
        "meaning", "What this says, and what not", join([paragraph(one) for one in [*said, _WHERE[values["where"]]]])
    )


def _made(values: Mapping[str, Any]) -> Section:
    settings = [
        (_shown(name.replace("_", " ")), _shown(one)) for name, one in values["asked"].items() if one is not None
    ]
    versions = [(name, _shown(one or "not installed")) for name, one in values["versions"].items()]
    return Section("made", "How it was made", join([
        table("What was asked for", ("setting", "value"), settings),
        table("Versions", ("package", "version"), versions),
    ]))  # fmt: skip
