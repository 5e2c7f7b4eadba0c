"""``qmedoid circuit plan`` and ``qmedoid circuit run``: the records of a table, measured on a quantum device."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from qmedoid.cli._output import grid, keeps, note, plain_console, print_json, progress_bar, reading_bar, shown, tell
from qmedoid.cli.documents import CircuitPlanCommandDict
from qmedoid.cli.options import DEVICE, OUTPUT, READING, Model, ReadingOptions, Seed, Table, option
from qmedoid.exceptions import ParameterError, some_of
from qmedoid.model.storage.model_file import ModelFile, load_file
from qmedoid.quantum.documents import CircuitRunDict
from qmedoid.quantum.measuring import plan_measurement
from qmedoid.tables.arrow import keep_pandas_away

if TYPE_CHECKING:
    from qmedoid.quantum.devices import Device
    from qmedoid.quantum.measurement import MeasurementPlan, MeasurementSettings
    from qmedoid.quantum.measuring import Records
    from qmedoid.quantum.runs.folder import RunFolder

# Undecided rows that are listed.
_LISTED = 10
_REGISTERS = {"column": "a test for each column", "group": "a test for each group of columns",
              "paper": "the paper's test for each group of columns"}  # fmt: skip


def shot_count(text: str) -> int | str:
    """A number of shots, or ``auto``: the parser of the option.

    Raises
    ------
    typer.BadParameter
        The text is neither.
    """
    # A default is parsed, too, and may be a number.
    if str(text) == "auto":
        return "auto"
    if not str(text).isascii() or not str(text).isdigit() or int(text) < 1:
        raise typer.BadParameter(f"Shots are a whole number above 0, or auto. Got {text!r} instead.")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(ReadingOptions):
    """How the records of a table are measured on a quantum device."""

    model: Model
    table: Table
    backend: Annotated[
        str,
        option(DEVICE, "Where circuits run: simulator, a fake device such as fake_torino, or a device of the service.",
               metavar="NAME"),
    ] = "simulator"  # fmt: skip
    shots: Annotated[
        Any,
        option(DEVICE, "Shots of each circuit; auto takes more for small margins.", parser=shot_count,
               metavar="N|auto"),
    ] = 4096  # fmt: skip
    budget: Annotated[
        int | None,
        option(DEVICE, "Mean shots of a circuit that --shots auto keeps to. Default: 4096.", min=1, metavar="SHOTS"),
    ] = None
    circuit: Annotated[
        Literal["interference", "compact_swap"],
        option(DEVICE, "Circuit of a test: interference, or the paper's compact_swap.", metavar="CIRCUIT"),
    ] = "interference"
    register: Annotated[
        Literal["column", "group", "paper"],
        option(DEVICE, "A test for each column (one qubit), for each group of columns, or as in the paper.",
               metavar="HOW"),
    ] = "column"  # fmt: skip
    refine: Annotated[
        Literal["device", "simulated"],
        option(DEVICE, "Where a trained circuit runs: on the device too, or exactly simulated.", metavar="WHERE"),
    ] = "device"
    n_qubits: Annotated[int, option(DEVICE, "Maximum number of qubits.", min=1, metavar="N")] = 100
    calibrate: Annotated[
        bool,
        option(DEVICE, "Run known pairs in every job, to undo what noise does.", "--calibrate/--no-calibrate"),
    ] = True
    circuits_per_job: Annotated[
        int, option(DEVICE, "Circuits of a job, without those of known pairs.", min=1, metavar="N")
    ] = 100
    limit: Annotated[int | None, option(READING, "Measure only this many first rows.", min=1, metavar="N")] = None
    seed: Seed = 0


@dataclass(frozen=True, kw_only=True)
class CircuitPlanOptions(MeasureOptions):
    """Say what a measurement would take; no circuit runs.

    Circuits, shots, jobs and time on a device, and how sure the decisions will be.
    """

    most_used = ("backend", "shots", "limit", "circuit", "register", "refine", "n_qubits", "json")
    examples = ("qmedoid circuit plan patients.qmedoid new.csv --backend fake_torino",)


@dataclass(frozen=True, kw_only=True)
class CircuitRunOptions(MeasureOptions):
    """Measure the records of a table on a device, into a folder.

    A run that was stopped goes on when the same command is called again.
    """

    most_used = ("output", "backend", "shots", "limit", "max_circuits", "dry_run", "json")
    examples = ("qmedoid circuit run patients.qmedoid new.csv --limit 20 -o run",)

    output: Annotated[
        Path,
        option(OUTPUT, "Folder of the run; the same one goes on with it.", "--output", "-o", metavar="FOLDER"),
    ]
    max_circuits: Annotated[
        int | None, option(DEVICE, "Refuse to run more circuits than this, known pairs included.", min=1, metavar="N")
    ] = None
    dry_run: Annotated[bool, option(DEVICE, "Print the plan, and run nothing.", "--dry-run")] = False


class _Asked(NamedTuple):
    """A model, the records that are measured, and how."""

    loaded: ModelFile
    records: "Records"
    settings: "MeasurementSettings"

    def plan(self, device: "Device") -> "MeasurementPlan":
        """The plan for a device."""
        how = {name: one for name, one in vars(self.settings).items() if name != "seed"}
        return plan_measurement(self.loaded.model, self.records.columns, device, seed=self.settings.seed, **how)


def plan(options: CircuitPlanOptions) -> None:
    """Print what a measurement takes."""
    from qmedoid.quantum.devices import as_device

    asked = _asked(options)
    _tell_plan(options, asked.plan(as_device(options.backend, n_qubits=options.n_qubits, seed=options.seed)))


def run(options: CircuitRunOptions) -> None:
    """Measure, and print what was found; a finished run is printed again."""
    from qmedoid.quantum.runs.folder import RunFolder, asked_for

    asked = _asked(options)
    if options.dry_run:
        from qmedoid.quantum.devices import as_device

        made = asked.plan(as_device(options.backend, n_qubits=options.n_qubits, seed=options.seed))
        _tell_plan(options, made, for_run=True)
        return
    facts = {"model": asked.loaded.sha256, "records": asked.records.sha256}
    with RunFolder(options.output) as folder:
        folder.refuse_other(asked_for(asked.settings, options.backend, options.n_qubits, asked.records.n_rows, **facts))
        was_finished = folder.is_finished
        if not was_finished:
            _measure(options, asked, folder, facts)
        _tell_run(options, folder, was_finished=was_finished)


def _asked(options: MeasureOptions) -> _Asked:
    from qmedoid.quantum.measurement import MeasurementSettings
    from qmedoid.quantum.measuring import read_records

    if options.budget is not None and options.shots != "auto":
        raise ParameterError("--budget is what --shots auto keeps to: give both, or neither.")
    budget: dict[str, Any] = {} if options.budget is None else {"budget": options.budget}
    settings = MeasurementSettings(
        circuit=options.circuit, register=options.register, shots=options.shots, calibrate=options.calibrate,
        circuits_per_job=options.circuits_per_job, refine=options.refine, seed=options.seed, **budget,
    )  # fmt: skip
    keep_pandas_away()
    loaded = load_file(options.model)
    with reading_bar("reading") as progress:
        records = read_records(
            loaded.model, options.table, limit=options.limit, on_mismatch=options.on_mismatch, on_progress=progress,
            delimiter=options.delimiter, decimal=options.decimal,
        )  # fmt: skip
    return _Asked(loaded, records, settings)


def _measure(options: CircuitRunOptions, asked: _Asked, folder: "RunFolder", facts: Mapping[str, str | None]) -> None:
    made = asked.plan(folder.device(options.backend, n_qubits=options.n_qubits, seed=options.seed))
    needed = made.n_circuits + made.n_calibration_circuits
    if options.max_circuits is not None and needed > options.max_circuits:
        raise ParameterError(
            f"The plan has {needed:,} circuits ({made.n_calibration_circuits:,} of them known pairs), and "
            f"--max-circuits allows {options.max_circuits:,}: nothing was run. Measure fewer records with --limit, or "
            "allow more."
        )
    keeps(f"jobs that have finished are kept in {options.output}, and the same command goes on")
    names = {"model": Path(options.model).name, "table": Path(options.table).name}
    with _jobs_bar(len(made.jobs)) as on_job:
        folder.run(made, facts=facts, names=names, on_job=on_job)


@contextmanager
def _jobs_bar(total: int) -> Iterator[Callable[[int, int], None]]:
    with progress_bar() as bar:
        task = bar.add_task("jobs", total=total)
        yield lambda done, _: bar.update(task, completed=done)


def _tell_plan(options: MeasureOptions, made: "MeasurementPlan", *, for_run: bool = False) -> None:
    from qmedoid.quantum.runs.writing import planned, where

    for one in made.notes:
        note(one)
    document: CircuitPlanCommandDict = {"where": where(made.device), "plan": planned(made)}
    if options.json:
        not_run: CircuitRunDict = {
            **document,
            "output": None,
            "finished_before": False,
            "started": None,
            "finished": None,
            "result": None,
            "files": {},
        }
        print_json(not_run if for_run else document)
        return
    for part in _plan_parts(document):
        plain_console().print(part)


def _tell_run(options: CircuitRunOptions, folder: "RunFolder", *, was_finished: bool) -> None:
    assert folder.manifest is not None
    found = {name: folder.manifest[name] for name in ("where", "plan", "started", "finished", "result", "files")}
    if options.json:
        print_json({"output": str(options.output), "finished_before": was_finished, **found})
        return
    if was_finished:
        tell(f"This run was finished on {found['finished']}; nothing was run.")
    console = plain_console()
    for part in _run_parts(found):
        console.print(part)
    files = ", ".join(sorted(found["files"]))
    console.print(f"in {shown(options.output)}: {files}, and the counts of every job.")


def _plan_parts(document: Mapping[str, Any]) -> Iterator[Any]:
    """The plan as a line and two tables."""
    from qmedoid.quantum.runs.writing import duration

    found, expected = document["plan"], document["plan"]["expected"]
    yield _headline(document)
    undecided = f"{expected['undecided']:,} of {found['records']:,}"
    if expected["undecided"]:
        rows = [str(row) for row in expected["undecided_rows"]]
        undecided += f": rows {some_of(rows, _LISTED)}" if len(rows) == expected["undecided"] else (
            f": rows {', '.join(rows[:_LISTED])}, …"
        )  # fmt: skip
    tests, of_s = list[tuple[str, str]](), list[tuple[str, str]]()
    if found["shapes"]:
        saved = 1.0 - found["tests"] / max(found["tests_asked"], 1)
        tests = [("tests", f"{found['tests']:,} distinct ones of {found['tests_asked']:,} "
                           f"({100 * saved:.0f} % are repeats)")]  # fmt: skip
        of_s = [("expected rms error of s", f"{expected['overlap_rms_error']:.2g}")]
    yield grid(("", ""), [
        *tests,
        ("circuits", f"{found['circuits']:,} ({found['circuits_per_record']:.3g} a record)"),
        ("circuits of known pairs" if found["trained_circuit"] is None else "circuits of known pairs and inputs",
         f"{found['calibration_circuits']:,}"),
        ("jobs", f"{found['jobs']:,}"),
        ("shots in all", f"{found['total_shots']:,}"),
        ("time on a device, about", duration(found["device_seconds"])),
        *of_s,
        *([] if expected["value_rms_error"] is None else
          [("expected rms error of the trained circuit's values", f"{expected['value_rms_error']:.2g}")]),
        ("expected rms error of margins", f"{expected['margin_rms_error']:.2g}"),
        ("expected to be undecided", undecided),
    ], left=(0, 1))  # fmt: skip
    names = ("columns", "tests", "side by side", "qubits", "two-qubit gates of a test", "depth")
    if found["shapes"]:
        yield grid(names, [
            (f"{one['columns']:,}", f"{one['tests']:,}", f"{one['side_by_side']:,}", f"{one['qubits']:,}",
             f"{one['two_qubit_gates']:.3g}", f"{one['depth']:,}")
            for one in found["shapes"]
        ], left=())  # fmt: skip
    if found["trained_circuit"] is not None:
        yield "The trained circuit:"
        yield _trained(found["trained_circuit"])


def _trained(one: Mapping[str, Any]) -> Any:
    """What the trained circuit takes."""
    names = ("records", "circuits", "of known", "jobs", "side by side", "qubits", "two-qubit gates", "depth")
    return grid(names, [
        (f"{one['records']:,}", f"{one['circuits']:,}", f"{one['calibration_circuits']:,}", f"{one['jobs']:,}",
         f"{one['side_by_side']:,}", f"{one['qubits']:,}", f"{one['two_qubit_gates']:.3g}", f"{one['depth']:,}"),
    ], left=())  # fmt: skip


def _run_parts(document: Mapping[str, Any]) -> Iterator[Any]:
    """What was found, as lines and tables."""
    found, expected = document["result"], document["plan"]["expected"]
    yield _headline(document)
    kept = round(found["agreement"] * found["records"])
    settled = found["agreement_of_decided"]
    yield grid(("", ""), [
        ("decided as the closed form", f"{kept:,} of {found['records']:,} ({100 * found['agreement']:.4g} %)"),
        ("undecided (within two errors)", f"{found['undecided']:,}, {expected['undecided']:,} were expected"),
        ("the others, as the closed form", "–" if settled is None else f"{100 * settled:.4g} %"),
    ], left=(0, 1))  # fmt: skip
    of_s = [
        ("of s", f"{expected['overlap_rms_error']:.2g}", "", f"{found['overlap_rms_error']:.2g}"),
        ("of s, without calibration", "", "", f"{found['overlap_rms_error_raw']:.2g}"),
    ]
    yield grid(("rms error", "expected", "stated", "against the closed form"), [
        *(of_s if document["plan"]["shapes"] else ()),
        *_trained_errors(found["trained_circuit"], expected["value_rms_error"]),
        ("of margins", f"{expected['margin_rms_error']:.2g}", f"{found['margin_rms_stated']:.2g}",
         f"{found['margin_rms_error']:.2g}"),
    ])  # fmt: skip
    yield from _calibrations("columns", "known pairs", found["calibration"])
    if found["trained_circuit"] is not None:
        yield from _calibrations("observable", "known inputs", found["trained_circuit"]["calibration"])
    yield from found["notes"]


def _trained_errors(found: Mapping[str, Any] | None, expected: float | None) -> list[tuple[str, str, str, str]]:
    """Rows for errors of the trained circuit's values, if one ran."""
    if found is None or expected is None:
        return []
    return [
        ("of the trained circuit's values", f"{expected:.2g}", f"{found['value_rms_stated']:.2g}",
         f"{found['value_rms_error']:.2g}"),
        ("of these, without calibration", "", "", f"{found['value_rms_error_raw']:.2g}"),
    ]  # fmt: skip


def _calibrations(what: str, known: str, calibration: Sequence[Mapping[str, Any] | None]) -> Iterator[Any]:
    """Fitted lines as a table, if there are any."""
    lines = [one for one in calibration if one is not None]
    if lines:
        yield grid((what, "slope", "intercept", known, "calibration"), [
            (f"{one[what]}", f"{one['slope']:.4f} ± {one['slope_error']:.4f}",
             f"{one['intercept']:.4f} ± {one['intercept_error']:.4f}", f"{one['known_pairs']:,}",
             "used" if one["used"] else "left out")
            for one in lines
        ], left=())  # fmt: skip


def _headline(document: Mapping[str, Any]) -> str:
    found = document["plan"]
    shots = "shots by margins" if found["shots"] == "auto" else f"{found['shots']:,} shots of each circuit"
    how = f"{found['circuit'].replace('_', ' ')}, {_REGISTERS[found['register']]}"
    if found["trained_circuit"] is not None:
        how = f"{how}, then the trained circuit" if found["shapes"] else "the trained circuit alone"
    return f"{found['records']:,} records on {shown(found['device']['name'])} ({document['where']}): {how}, {shots}"
