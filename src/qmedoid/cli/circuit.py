"""``qmedoid circuit``: the circuits of a saved model, and the records of a table measured by them on a device."""

import base64
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from qmedoid.cli.documents import CircuitExportDict, CircuitPlanCommandDict
from qmedoid.cli.options import (
    DEVICE,
    OUTPUT,
    READING,
    Force,
    Json,
    ModelPath,
    ReadingOptions,
    Seed,
    Table,
    Text,
    argument,
    command,
    flag,
    option,
)
from qmedoid.cli.output import (
    Said,
    facts,
    grid,
    note,
    print_json,
    progress_bar,
    reading_bar,
    show,
    tell,
)
from qmedoid.exceptions import ParameterError
from qmedoid.markup.charts import label
from qmedoid.model.storage.atomic import atomic_file, check_unchanged
from qmedoid.model.storage.model_file import ModelFile, load_file
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away

if TYPE_CHECKING:
    from qmedoid.arrays import Array
    from qmedoid.quantum import MeasurementSettings

_SHAPE = ("columns", "tests", "side_by_side", "qubits", "two_qubit_gates", "depth")
_REGISTERS = {
    "column": "a test for each column",
    "group": "a test for each group of columns",
    "paper": "the paper's test for each group of columns",
}


@command(
    "qmedoid circuit export patients.qmedoid",
    "qmedoid circuit export patients.qmedoid new.csv --row 3 --format qasm",
    most_used=("format", "output", "row", "which", "medoid", "measure", "json"),
)
def export(
    model: ModelPath,
    table: Annotated[
        Text, argument("TABLE", "Table with the record whose angles are put in. Default: they stay open.")
    ] = None,
    *,
    reading: ReadingOptions,
    json: Json = False,
    row: Annotated[int | None, option(DEVICE, "N", "Row of the table, counted from 0.", min=0)] = None,
    format: Annotated[
        Literal["qpy", "qasm", "qasm-plain", "text"],
        option(
            OUTPUT,
            "FORMAT",
            "What to write: qpy, qasm (OpenQASM 3), qasm-plain (for Braket and PennyLane) or text (a drawing).",
        ),
    ] = "text",
    which: Annotated[
        Literal["auto", "variational", "swap-test", "interference"],
        option(
            DEVICE,
            "CIRCUIT",
            "Circuit: variational (the trained one), swap-test, interference (a cheaper test) or auto.",
        ),
    ] = "auto",
    medoid: Annotated[
        int | None, option(DEVICE, "ROW", "Medoid for the SWAP test: its training row, as explain shows it.", min=0)
    ] = None,
    measure: Annotated[bool, flag(DEVICE, "Measure the qubits of the trained circuit.", "--measure")] = False,
    output: Annotated[str, option(OUTPUT, "FILE", "File to write, or - for standard output.", "--output", "-o")] = "-",
    force: Force = False,
) -> None:
    """Draw a circuit, or write it for other tools.

    What is written says how its outcomes become a probability or a distance.
    """
    from qmedoid.quantum import circuit_of_record, drawing, export_circuit, qasm_text, qpy_bytes
    from qmedoid.tables.results import ScoreSettings
    from qmedoid.tables.scoring import read_row

    if (table is None) != (row is None):
        raise ParameterError("The angles of a record need both a table and its row, such as: records.csv --row 3.")
    if measure and format == "qasm-plain":
        raise ParameterError(
            "--format qasm-plain measures nothing, as other tools say by themselves what they measure: leave --measure "
            "out, or take --format qasm."
        )
    keep_pandas_away()
    loaded = load_file(model)
    asked: dict[str, Any] = {"which": which, "medoid": medoid, "measure": measure, "sha256": loaded.sha256}
    if table is None or row is None:
        circuit = export_circuit(loaded.model, **asked)
    else:
        look = partial(circuit_of_record, loaded.model, row=row, **asked)
        _, circuit, _ = read_row(loaded.model, table, ScoreSettings(**vars(reading)), row, look)
    if format == "qpy":
        content = qpy_bytes(circuit)
    else:
        text = drawing(circuit) if format == "text" else qasm_text(circuit, plain=format == "qasm-plain")
        content = (text.rstrip("\n") + "\n").encode()
    if output != "-":
        if not force:
            check_unchanged(output, content)
        with atomic_file(Path(output)) as file:
            file.write(content)
    if json:
        text = base64.b64encode(content).decode() if format == "qpy" else content.decode()
        document: CircuitExportDict = {"format": format, "description": circuit.metadata["qmedoid"]}
        document |= {"content": text} if output == "-" else {"output": output}
        print_json(document)
    elif output == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(ReadingOptions):
    """Records that are measured, and how."""

    model: ModelPath
    table: Table
    backend: Annotated[
        str,
        option(
            DEVICE,
            "NAME",
            "Where circuits run: simulator, a fake device such as fake_torino, or a device of the service.",
        ),
    ] = "simulator"
    shots: Annotated[int, option(DEVICE, "N", "Shots of each circuit.", min=1)] = 4096
    circuit: Annotated[
        Literal["interference", "compact_swap"] | None,
        option(
            DEVICE, "CIRCUIT", "Circuit of a test: interference, or the paper's compact_swap. Default: by --register."
        ),
    ] = None
    register: Annotated[
        Literal["column", "group", "paper"],
        option(DEVICE, "HOW", "A test for each column (one qubit), for each group of columns, or as in the paper."),
    ] = "column"
    refine: Annotated[
        Literal["device", "simulated"],
        option(DEVICE, "WHERE", "Where a trained circuit runs: on the device too, or exactly simulated."),
    ] = "device"
    n_qubits: Annotated[int, option(DEVICE, "N", "Maximum number of qubits.", min=1)] = 100
    calibrate: Annotated[
        bool, flag(DEVICE, "Run known pairs in every job, to undo what noise does.", "--calibrate/--no-calibrate")
    ] = True
    circuits_per_job: Annotated[int, option(DEVICE, "N", "Circuits of a job, without those of known pairs.", min=1)] = (
        100
    )
    limit: Annotated[int | None, option(READING, "N", "Measure only this many first rows.", min=1)] = None
    seed: Seed = 0
    json: Json = False


@command(
    "qmedoid circuit plan patients.qmedoid new.csv --backend fake_torino",
    most_used=("backend", "shots", "limit", "circuit", "register", "refine", "n_qubits", "json"),
)
def plan(
    options: MeasureOptions,
    *,
    dry_run: Annotated[
        bool, flag(DEVICE, "Let the service check all jobs and say how long they take; none runs.", "--dry-run")
    ] = False,
) -> None:
    """Say what a measurement would take; no circuit runs.

    Circuits, shots, jobs and time on a device, and how sure the decisions will be.
    """
    from qmedoid.quantum import as_device, plan_measurement

    loaded, columns, settings = _read(options)
    device = as_device(options.backend, n_qubits=options.n_qubits, seed=options.seed)
    made = plan_measurement(loaded.model, columns, device, settings)
    for one in made.notes:
        note(one)
    document: CircuitPlanCommandDict = {"where": made.device.place, "plan": made.summary()}
    if dry_run:
        document["service_seconds"] = made.dry_run()
    if options.json:
        print_json(document)
        return
    show(*_plan_parts(document))


@command(
    "qmedoid circuit run patients.qmedoid new.csv --limit 20 -o run",
    most_used=("output", "backend", "shots", "limit", "max_circuits", "json"),
)
def run(
    options: MeasureOptions,
    *,
    output: Annotated[
        Path, option(OUTPUT, "FOLDER", "Folder of the run; the same one goes on with it.", "--output", "-o")
    ],
    max_circuits: Annotated[
        int | None, option(DEVICE, "N", "Refuse to run more circuits than this, known pairs included.", min=1)
    ] = None,
    repeats: Annotated[
        int, option(DEVICE, "N", "How often every job runs, to see how much decisions scatter.", min=1)
    ] = 1,
) -> None:
    """Measure the records of a table on a device, into a folder.

    A run that was stopped goes on when the same command is called again.
    """
    from qmedoid.quantum import RunFolder, asked_for, plan_measurement, records_digest

    loaded, columns, settings = _read(options)
    about = {"model": loaded.sha256, "records": records_digest(columns), "repeats": str(repeats)}
    with RunFolder(output) as folder:
        folder.refuse_other(asked_for(settings, options.backend, options.n_qubits, len(columns[0]), **about))
        was_finished = folder.is_finished
        if not was_finished:
            device = folder.device(options.backend, n_qubits=options.n_qubits, seed=options.seed)
            made = plan_measurement(loaded.model, columns, device, settings)
            needed = repeats * (made.n_circuits + made.n_calibration_circuits)
            if max_circuits is not None and needed > max_circuits:
                raise ParameterError(
                    f"The plan has {needed:,} circuits ({repeats * made.n_calibration_circuits:,} of them known "
                    f"pairs), and --max-circuits allows {max_circuits:,}: nothing was run. Measure fewer records with "
                    "--limit, or allow more."
                )
            Said.kept = f"jobs that have finished are kept in {output}, and the same command goes on"
            with progress_bar() as bar:
                task = bar.add_task("jobs", total=repeats * len(made.all_jobs))
                folder.run(made, repeats=repeats, facts=about, on_job=lambda done, _: bar.update(task, completed=done))
        assert folder.manifest is not None
        found = {name: folder.manifest[name] for name in ("where", "plan", "started", "finished", "result", "files")}
    if options.json:
        print_json({"output": str(output), "finished_before": was_finished, **found})
        return
    if was_finished:
        tell(f"This run was finished on {found['finished']}; nothing was run.")
    files = ", ".join(sorted(found["files"]))
    show(*_run_parts(found), f"in {printable(output)}: {files}, and the counts of every job.")


def _read(options: MeasureOptions) -> tuple[ModelFile, "list[Array]", "MeasurementSettings"]:
    """A model, the records that are measured, and how."""
    from qmedoid.quantum import MeasurementSettings, read_records

    names = {one.name for one in fields(MeasurementSettings)} & {one.name for one in fields(options)}
    settings = MeasurementSettings(**{name: getattr(options, name) for name in names})
    keep_pandas_away()
    loaded = load_file(options.model)
    with reading_bar("reading") as progress:
        columns = read_records(
            loaded.model,
            options.table,
            limit=options.limit,
            on_mismatch=options.on_mismatch,
            delimiter=options.delimiter,
            decimal=options.decimal,
            on_progress=progress,
        )
    return loaded, columns, settings


def _plan_parts(document: Mapping[str, Any]) -> Iterator[Any]:
    """The plan as a line and two tables."""
    found = document["plan"]
    expected, trained, seconds = found["expected"], found["trained_circuit"], document.get("service_seconds")
    yield _headline(document)
    undecided = f"{expected['undecided']:,} of {found['records']:,}"
    tests = f"{found['tests']:,} distinct ones of {found['tests_asked']:,}"
    costs = {
        "tests": tests if found["shapes"] else None,
        "circuits": f"{found['circuits']:,} ({found['circuits_per_record']:.3g} a record)",
        f"circuits of known pairs{'' if trained is None else ' and inputs'}": f"{found['calibration_circuits']:,}",
        "jobs": f"{found['jobs']:,}",
        "shots in all": f"{found['total_shots']:,}",
        "time on a device, about": _duration(found["device_seconds"]),
        "time by its service": None if seconds is None else _duration(seconds),
        "expected rms error of s": _figure(expected["overlap_rms_error"]) if found["shapes"] else None,
        "expected rms error of the trained circuit's values": _figure(expected["value_rms_error"]),
        "expected rms error of margins": _figure(expected["margin_rms_error"]),
        "expected to be undecided": undecided,
    }
    yield facts(costs, left=(0, 1))
    if found["shapes"]:
        names = ("columns", "tests", "side by side", "qubits", "two-qubit gates of a test", "depth")
        rows = [
            [f"{one[key]:.3g}" if key == "two_qubit_gates" else f"{one[key]:,}" for key in _SHAPE]
            for one in found["shapes"]
        ]
        yield grid(names, rows, left=())


def _duration(seconds: float) -> str:
    """A time in the unit that it is read in."""
    unit, size = ("s", 1) if seconds < 120 else ("min", 60) if seconds < 7200 else ("h", 3600)
    return f"{label(seconds / size)} {unit}"


def _figure(error: float | None) -> str | None:
    return None if error is None else f"{error:.2g}"


def _run_parts(document: Mapping[str, Any]) -> Iterator[Any]:
    """What was found, as lines and tables."""
    found, expected = document["result"], document["plan"]["expected"]
    yield _headline(document)
    kept = round(found["agreement"] * found["records"])
    settled = found["agreement_of_decided"]
    settling = {
        "decided as the closed form": f"{kept:,} of {found['records']:,} ({100 * found['agreement']:.4g} %)",
        "undecided (within two errors)": f"{found['undecided']:,}, {expected['undecided']:,} were expected",
        "the others, as the closed form": "–" if settled is None else f"{100 * settled:.4g} %",
    }
    again = found["repeats"]
    if again is not None:
        scatter, planned = again["margin_rms_scatter"], again["margin_rms_planned"]
        settling[f"margins of {again['repeats']} repeats scatter by"] = (
            f"{scatter:.2g} (rms), {planned:.2g} was planned"
        )
    yield facts(settling, left=(0, 1))
    errors = list[tuple[Any, ...]]()
    if document["plan"]["shapes"]:
        errors.append(("of s", expected["overlap_rms_error"], None, found["overlap_rms_error"]))
        errors.append(("of s, without calibration", None, None, found["overlap_rms_error_raw"]))
    trained = found["trained_circuit"]
    if trained is not None:
        of_values = expected["value_rms_error"], trained["value_rms_stated"], trained["value_rms_error"]
        errors.append(("of the trained circuit's values", *of_values))
        errors.append(("of these, without calibration", None, None, trained["value_rms_error_raw"]))
    errors.append(("of margins", expected["margin_rms_error"], found["margin_rms_stated"], found["margin_rms_error"]))
    names = ("rms error", "expected", "stated", "against the closed form")
    yield grid(names, [(name, *(_figure(error) or "" for error in of)) for name, *of in errors])
    yield from found["notes"]


def _headline(document: Mapping[str, Any]) -> str:
    found = document["plan"]
    shots = f"{found['shots']:,} shots of each circuit"
    how = f"{found['circuit'].replace('_', ' ')}, {_REGISTERS[found['register']]}"
    if found["trained_circuit"] is not None:
        how = f"{how}, then the trained circuit" if found["shapes"] else "the trained circuit alone"
    return f"{found['records']:,} records on {printable(found['device']['name'])} ({document['where']}): {how}, {shots}"
