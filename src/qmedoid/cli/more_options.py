"""Commands about models, circuits, data sets and studies, as in `qmedoid.cli.options`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from qmedoid.cli._option_kinds import (
    DEVICE,
    EVALUATION,
    LARGE,
    OUTPUT,
    READING,
    RESULTS,
    Budgets,
    Force,
    Model,
    Names,
    Options,
    Output,
    ReadingOptions,
    Seed,
    Table,
    TargetName,
    Text,
    argument,
    option,
)
from qmedoid.cli.options import PointOptions


@dataclass(frozen=True, kw_only=True)
class ImportanceOptions(ReadingOptions):
    """Show how much each column counts (feature importance).

    The mean absolute contribution of each column to the decisions, about the training rows or about a table.
    """

    most_used = ("json",)
    examples = ("qmedoid importance patients.qmedoid", "qmedoid importance patients.qmedoid new.csv")

    model: Model
    table: Annotated[Text, argument("TABLE", "Table of other rows. Default: the training rows.")] = None


@dataclass(frozen=True, kw_only=True)
class EffectOptions(ReadingOptions):
    """Show what the values of one column add to the decisions."""

    most_used = ("column", "toward", "bins", "plot", "json")
    examples = ("qmedoid effect patients.qmedoid new.csv --column age --plot age.svg",)

    model: Model
    table: Table
    column: Annotated[str, option(RESULTS, "Column to show.", metavar="COLUMN")]
    toward: Annotated[
        Text, option(RESULTS, "Class that values speak for or against. Default: the positive one.", metavar="CLASS")
    ] = None
    bins: Annotated[
        int, option(RESULTS, "Number of bins of a number or a date, of about equally many rows.", min=1, metavar="N")
    ] = 10
    plot: Annotated[
        Path | None,
        option(OUTPUT, "Picture to write, an SVG file.", metavar="FILE"),
    ] = None
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class InspectOptions(Options):
    """Show what is in a saved model, and how good it was.

    Prints the model card: how it decides, which columns it needs, what it showed on held-out rows, which training
    rows are in the file.
    """

    most_used = ("budgets", "json")
    examples = ("qmedoid inspect patients.qmedoid", "qmedoid inspect patients.qmedoid --budgets 100,1%")

    model: Model
    budgets: Budgets = None


@dataclass(frozen=True, kw_only=True)
class DiffOptions(ReadingOptions):
    """Show what changed from one model to another.

    With a table, also how many of its records the two models decide otherwise, and which columns are the reason.
    """

    most_used = ("exit_code", "json")
    examples = ("qmedoid diff patients.qmedoid patients-2.qmedoid new.csv",)

    old: Annotated[Path, argument("OLD", "File of a saved model.")]
    new: Annotated[Path, argument("NEW", "File of the model that came after it.")]
    table: Annotated[Text, argument("TABLE", "Table about whose records both decide.")] = None
    exit_code: Annotated[
        bool,
        option(OUTPUT, "End with exit code 5 if decisions differ (without a table: if models do).", "--exit-code"),
    ] = False


@dataclass(frozen=True, kw_only=True)
class RecalibrateOptions(PointOptions, ReadingOptions):
    """Fit probabilities and threshold to newly labeled rows.

    For a model that is in use while the frequency of the classes changes: everything else stays as it was, and the
    new model names the old one.
    """

    most_used = ("output", "target", "alert_rate", "operating_point", "min_precision", "min_recall", "cost", "json")
    examples = ("qmedoid recalibrate patients.qmedoid labeled.csv -o patients-2.qmedoid",)

    model: Model
    table: Table
    output: Output
    target: TargetName = None


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Options):
    """Write a model as JavaScript, SQL or ONNX, to deploy it.

    What is written scores records without Python.
    """

    most_used = ("format", "output", "dialect", "table", "force", "json")
    examples = (
        "qmedoid export patients.qmedoid --format sql --dialect postgres",
        "qmedoid export patients.qmedoid --format onnx -o patients.onnx",
    )

    model: Model
    format: Annotated[
        Literal["js", "sql", "onnx"],
        option(OUTPUT, "What to write: js (JavaScript), sql (one SELECT) or onnx (a graph).", metavar="FORMAT"),
    ]
    dialect: Annotated[
        Literal["duckdb", "sqlite", "postgres"] | None,
        option(OUTPUT, "Database that the SQL is for: duckdb, sqlite or postgres. Default: duckdb.", metavar="NAME"),
    ] = None
    table: Annotated[Text, option(OUTPUT, "Table that the SQL selects from. Default: records.", metavar="NAME")] = None
    force: Force = False
    output: Annotated[
        Path | None,
        option(OUTPUT, "File to write. Default: the model's name with the format's ending.", "--output", "-o",
               metavar="FILE"),
    ] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CircuitExportOptions(ReadingOptions):
    """Draw a circuit, or write it for other tools.

    What is written says how its outcomes become a probability or a distance.
    """

    most_used = ("format", "output", "row", "which", "medoid", "measure", "json")
    examples = (
        "qmedoid circuit export patients.qmedoid",
        "qmedoid circuit export patients.qmedoid new.csv --row 3 --format qasm",
    )

    model: Model
    table: Annotated[
        Text, argument("TABLE", "Table with the record whose angles are put in. Default: they stay open.")
    ] = None
    row: Annotated[int | None, option(DEVICE, "Row of the table, counted from 0.", min=0, metavar="N")] = None
    format: Annotated[
        Literal["qpy", "qasm", "qasm2", "text"],
        option(
            OUTPUT,
            "What to write: qpy, qasm (OpenQASM 3), qasm2 (of a record) or text (a drawing).",
            metavar="FORMAT",
        ),
    ] = "text"
    which: Annotated[
        Literal["auto", "variational", "swap-test", "interference"],
        option(DEVICE, "Circuit: variational (the trained one), swap-test, interference (a cheaper test) or auto.",
               metavar="CIRCUIT"),
    ] = "auto"  # fmt: skip
    medoid: Annotated[
        int | None, option(DEVICE, "Medoid for the SWAP test: its training row, as explain shows it.", min=0,
                           metavar="ROW"),
    ] = None  # fmt: skip
    measure: Annotated[bool, option(DEVICE, "Measure the qubits of the trained circuit.", "--measure")] = False
    output: Annotated[
        str, option(OUTPUT, "File to write, or - for standard output.", "--output", "-o", metavar="FILE")
    ] = "-"
    force: Force = False


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


_Name = Annotated[str, argument("NAME", "Name of the data set.")]


@dataclass(frozen=True, kw_only=True)
class DataListOptions(Options):
    """List the data sets, and where each comes from."""

    examples = ("qmedoid data list",)


@dataclass(frozen=True, kw_only=True)
class DataWhereOptions(Options):
    """Print the path of a data set's file on this machine."""

    examples = ("qmedoid data where heart",)

    name: _Name


@dataclass(frozen=True, kw_only=True)
class DataFetchOptions(Options):
    """Write a data set to a file.

    One that is not on this machine is downloaded and checked first.
    """

    most_used = ("output", "force", "json")
    examples = ("qmedoid data fetch heart -o heart.csv",)

    name: _Name
    output: Annotated[
        Text,
        option(OUTPUT, "File to write, CSV or Parquet. Default: NAME.csv, or NAME.parquet for a large one.",
               "--output", "-o", metavar="FILE"),
    ] = None  # fmt: skip
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class SchemaOptions(Options):
    """Print the JSON Schema of what a command prints with --json.

    Without a command, it lists the schemas.
    """

    examples = ("qmedoid schema score",)

    command: Annotated[Names, argument("COMMAND", "Command, such as score or data list; or error.")] = None


@dataclass(frozen=True, kw_only=True)
class DemoOptions(Options):
    """Fit a shipped table, explain a decision and write a report.

    918 patients, with and without heart disease.
    """

    most_used = ("output", "seed", "json")
    examples = ("qmedoid demo",)

    output: Annotated[
        Path | None,
        option(OUTPUT, "Folder of the files. Default: qmedoid-demo.", "--output", "-o", metavar="FOLDER"),
    ] = None
    seed: Annotated[int, option(EVALUATION, "Seed of the split and of the fit.", min=0, metavar="N")] = 0


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Options):
    """Run the paper's experiments again, and set ours beside them.

    On the paper's terms and on held-out rows, in a checkout of the source of qmedoid. A run that was stopped goes on
    where it was. Needs the extra 'baselines', for devices 'ibm'.
    """

    most_used = ("output", "quick", "jobs", "seed", "cache", "force", "json")
    examples = ("qmedoid reproduce heart --quick",)

    what: Annotated[
        Literal["all", "heart", "breast-cancer", "wine", "fraud", "devices"],
        argument(
            "WHAT",
            "Data set: heart, breast-cancer, wine, fraud or all; devices: decisions of simulated quantum devices.",
        ),
    ] = "all"
    output: Annotated[
        Path, option(OUTPUT, "Folder for tables, plots and the page.", "--output", "-o", metavar="FOLDER")
    ] = Path("reproduction")
    jobs: Annotated[int | None, option(LARGE, "Processes side by side. Default: one per core.", min=1, metavar="N")] = (
        None
    )
    seed: Seed = 0
    quick: Annotated[
        bool, option(EVALUATION, "A smoke run: few splits or records, a sample of the frauds.", "--quick")
    ] = False
    cache: Annotated[
        Path | None,
        option(LARGE, "Folder of results that are done. Default: one in the user's cache.", metavar="FOLDER"),
    ] = None
    force: Force = False
