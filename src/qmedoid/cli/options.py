"""Options of the commands: what they are called, what they mean, and their defaults."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from qmedoid.spelling import number_of


def _column(help: str) -> Any:
    return typer.Option(metavar="NAME", help=help)


def share(text: str) -> float:
    """A share, written as a number (0.05) or as a percentage (5%): the parser of options that take one.

    Raises
    ------
    typer.BadParameter
        The text writes no number between 0 and 1.
    """
    # A default is parsed, too, and may be a number.
    number = number_of(str(text))
    if number is None or not 0.0 <= number <= 1.0:
        meant = "" if number is None or not 1.0 < number <= 100.0 else f" {number:g} percent is {number:g}%."
        raise typer.BadParameter(
            f"A share is a number from 0 to 1, such as 0.05, or a percentage, such as 5%. Got {text!r} instead.{meant}"
        )
    return number


def _share(help: str) -> Any:
    return typer.Option(parser=share, metavar="SHARE", help=help)


Text = str | None
Number = float | None
Names = list[str] | None
Table = Annotated[
    str, typer.Argument(help="CSV, JSON lines, Parquet, Feather or xlsx: a file, a folder, a glob, or - for a pipe.")
]
Model = Annotated[Path, typer.Argument(help="File of a saved model.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Delimiter = Annotated[Text, typer.Option(help="Field separator of a CSV file (detected by default).")]
Decimal = Annotated[Text, typer.Option(help="Decimal sign of a CSV file (detected by default).")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that another program or command wrote.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Random seed.")]
MaxRows = Annotated[int | None, typer.Option(min=2, help="Maximum number of rows; of more, a random sample is used.")]
Budgets = Annotated[
    Names, typer.Option(help="Alerts to look at, such as 10,100,1%: precision and recall of each; with commas between.")
]
OnMismatch = Annotated[
    Literal["error", "warn"],
    typer.Option(help="Refuse a table that breaks the model's contract, or score it as well as possible."),
]


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How the table of a check or a fit is read."""

    table: Table
    target: Text
    category: Annotated[Names, _column("Column of names, even if of digits; repeatable.")] = None
    number: Annotated[Names, _column("Column of numbers; repeatable.")] = None
    date: Annotated[Names, _column("Column of dates; repeatable.")] = None
    keep: Annotated[Names, _column("Column to use although it looks like an id; repeatable.")] = None
    ignore: Annotated[Names, _column("Column to leave out; repeatable.")] = None
    roles: Annotated[Path | None, typer.Option(help='TOML file of roles, such as zip = "category".')] = None
    seed: Seed = 0
    max_rows: MaxRows = 5_000_000
    delimiter: Delimiter = None
    decimal: Decimal = None
    date_order: Annotated[
        Literal["day-first", "month-first"] | None, typer.Option(help="Order of dates that do not show it: 01/02/2024.")
    ] = None
    json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class CheckOptions(TableOptions):
    """Options of ``check``."""

    target: Annotated[Text, typer.Option(help="Column that holds the classes.")] = None
    strict: Annotated[bool, typer.Option("--strict", help="End with exit code 3 if there are problems.")] = False


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(TableOptions):
    """What is fitted, and how."""

    target: Annotated[str, typer.Option(help="Column that holds the classes.")]
    positive: Annotated[
        Text,
        typer.Option(help="Class to look for; of more than two, against all. Else, for alerts, the rarer of two."),
    ] = None
    group_column: Annotated[Text, typer.Option(help="Rows with the same value here are held out together.")] = None
    method: Annotated[
        Literal["auto", "evidence", "rare", "sum", "nearest"],
        typer.Option(help="What decides: evidence by groups, rare-event prototypes, a sum, or nearest medoid."),
    ] = "auto"
    medoids: Annotated[int | None, typer.Option(min=1, help="Maximum number of medoids of the evidence method.")] = None
    neighbors: Annotated[
        Text, typer.Option(help="Maximum number of rows kept for its neighbor term: a number, or auto.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class StabilityOptions(TrainingOptions):
    """Options of ``stability``."""

    max_rows: MaxRows = 20_000
    bootstraps: Annotated[int, typer.Option(min=2, help="How many samples of the rows are fitted again.")] = 20


@dataclass(frozen=True, kw_only=True)
class PointOptions:
    """Where records are separated."""

    alert_rate: Annotated[Number, _share("Share of the records to be called positive.")] = None
    operating_point: Annotated[Text, typer.Option(help="Probability to cut at, or metric to maximize.")] = None
    min_precision: Annotated[Number, _share("Best recall with at least this precision.")] = None
    min_recall: Annotated[Number, _share("Fewest alerts with at least this recall.")] = None
    cost: Annotated[Number, typer.Option(help="What a missed positive costs, in false alerts.")] = None


@dataclass(frozen=True, kw_only=True)
class RecalibrateOptions(PointOptions):
    """Options of ``recalibrate``."""

    model: Model
    table: Table
    output: Annotated[Path, typer.Option("--output", "-o", help="File of the new model.")]
    target: Annotated[Text, typer.Option(help="Column of the classes, if it is called otherwise.")] = None
    on_mismatch: OnMismatch = "error"
    delimiter: Delimiter = None
    decimal: Decimal = None
    json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """Options of ``explain``."""

    model: Model
    table: Table
    row: Annotated[int, typer.Option(min=0, help="Row of the table, counted from 0.")]
    top: Annotated[int, typer.Option(min=0, help="Columns, groups and rows that are listed; 0 lists all.")] = 10
    fixed: Annotated[Names, typer.Option(help="Columns that cannot change, with commas between.")] = None
    html: Annotated[Path | None, typer.Option(help="Page to write, without scripts.")] = None
    svg: Annotated[Path | None, typer.Option(help="Picture of the contributions to write.")] = None
    known: Annotated[
        Text, typer.Option(metavar="TABLE", help="Table, such as the fitted one, to show the nearest rows of.")
    ] = None
    on_mismatch: OnMismatch = "error"
    delimiter: Delimiter = None
    decimal: Decimal = None
    json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of ``export``."""

    model: Model
    format: Annotated[
        Literal["js", "sql", "onnx"], typer.Option(help="JavaScript, one SELECT statement, or an ONNX graph.")
    ]
    dialect: Annotated[
        Literal["duckdb", "sqlite", "postgres"] | None, typer.Option(help="Database that SQL is for (duckdb).")
    ] = None
    table: Annotated[Text, typer.Option(metavar="NAME", help="Table that SQL selects from (records).")] = None
    force: Force = False
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File. Default: the model's name with the format's ending.")
    ] = None
    json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class CircuitExportOptions:
    """Options of ``circuit export``."""

    model: Model
    table: Annotated[
        Text, typer.Argument(help="Table with the record whose angles are put in; without one they stay open.")
    ] = None
    row: Annotated[int | None, typer.Option(min=0, help="Row of the table, counted from 0.")] = None
    format: Annotated[
        Literal["qpy", "qasm", "qasm2", "text"],
        typer.Option(help="QPY, OpenQASM 3, OpenQASM 2 (which needs a record), or a drawing."),
    ] = "text"
    which: Annotated[
        Literal["auto", "variational", "swap-test", "interference"],
        typer.Option(help="The trained circuit, the SWAP test, or its cheaper twin; auto takes what the model has."),
    ] = "auto"
    medoid: Annotated[
        int | None, typer.Option(min=0, help="Medoid for the SWAP test, by its training row as explain shows it.")
    ] = None
    measure: Annotated[bool, typer.Option("--measure", help="Measure the qubits of the trained circuit.")] = False
    output: Annotated[str, typer.Option("--output", "-o", help="File to write; - for standard output.")] = "-"
    force: Force = False
    on_mismatch: OnMismatch = "error"
    delimiter: Delimiter = None
    decimal: Decimal = None
    json: AsJson = False


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
class MeasureOptions:
    """How the records of a table are measured on a quantum device."""

    model: Model
    table: Table
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Where circuits run: simulator, a fake device such as fake_torino, or a device of the service.",
        ),
    ] = "simulator"
    shots: Annotated[
        Any,
        typer.Option(parser=shot_count, metavar="N|auto", help="Shots of each circuit; auto: more for small margins."),
    ] = 4096
    budget: Annotated[
        int | None, typer.Option(min=1, help="Mean shots of a circuit that --shots auto keeps to (4096).")
    ] = None
    circuit: Annotated[
        Literal["interference", "compact_swap"], typer.Option(help="Circuit of a test; compact_swap is the paper's.")
    ] = "interference"
    register: Annotated[
        Literal["column", "group", "paper"],
        typer.Option(help="A test for each column (one qubit), for each group of columns, or as in the paper."),
    ] = "column"
    refine: Annotated[
        Literal["device", "simulated"],
        typer.Option(help="Where a trained circuit runs: on the device as well, or in an exact simulation."),
    ] = "device"
    n_qubits: Annotated[int, typer.Option(min=1, help="Maximum number of qubits.")] = 100
    calibrate: Annotated[
        bool, typer.Option("--calibrate/--no-calibrate", help="Run known pairs in every job to undo what noise does.")
    ] = True
    circuits_per_job: Annotated[int, typer.Option(min=1, help="Circuits of a job, without those of known pairs.")] = 100
    limit: Annotated[int | None, typer.Option(min=1, help="Measure the first rows only, this many.")] = None
    seed: Seed = 0
    on_mismatch: OnMismatch = "error"
    delimiter: Delimiter = None
    decimal: Decimal = None
    json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class CircuitPlanOptions(MeasureOptions):
    """Options of ``circuit plan``."""


@dataclass(frozen=True, kw_only=True)
class CircuitRunOptions(MeasureOptions):
    """Options of ``circuit run``."""

    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the run; the same one goes on with it.")
    ]
    max_circuits: Annotated[
        int | None, typer.Option(min=1, help="Refuse to run more circuits than this, known pairs included.")
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and run nothing.")] = False


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of ``report``."""

    model: Model
    table: Annotated[Text, typer.Argument(help="Table to decide about; with classes, figures are of its rows.")] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Page to write. Default: the model's name with .html.")
    ] = None
    target: Annotated[Text, typer.Option(help="Column of the classes, if it is called otherwise.")] = None
    cost: Annotated[Number, typer.Option(help="What a missed positive costs, in false alerts.")] = None
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Fit plain baselines to folds of the table, and compare.")
    ] = False
    stability: Annotated[
        int | None, typer.Option(min=2, help="Fit this many samples of the table, and show what changes.")
    ] = None
    ignore: Annotated[Names, typer.Option(metavar="CODE", help="Finding not to judge, such as QM103; repeatable.")] = (
        None
    )
    max_size: Annotated[
        float, typer.Option(metavar="MB", help="Size of the page from which on the live model is left out.")
    ] = 3.0
    live: Annotated[bool, typer.Option("--live/--no-live", help="Whether the page scores records by itself.")] = True
    rows: Annotated[bool, typer.Option("--rows/--no-rows", help="Whether the page holds rows of the table.")] = True
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Count rows too that the model was fitted on. Default: new rows alone.")
    ] = False
    on_mismatch: OnMismatch = "error"
    delimiter: Delimiter = None
    decimal: Decimal = None
    json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class FitOptions(PointOptions, TrainingOptions):
    """Options of ``fit``."""

    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Model file. Default: the table's name with .qmedoid.")
    ] = None
    test: Annotated[str, typer.Option(help="Held-out rows: a file, or a share of the rows; 0 for none.")] = "0.25"
    valid: Annotated[
        Text, typer.Option(help="Rows to choose settings by: a file or a share. Else cross-validation.")
    ] = None
    time_column: Annotated[Text, typer.Option(help="Order of the rows: the last ones are held out.")] = None
    weight_column: Annotated[Text, typer.Option(help="How many rows each row stands for; 0 leaves it out.")] = None
    class_weight: Annotated[
        Literal["balanced"] | None, typer.Option(help="Weights that give every class the same total.")
    ] = None
    paper: Annotated[bool, typer.Option("--paper", help="As in the paper but for what docs/findings.md lists.")] = False
    refine: Annotated[
        str, typer.Option(help="When the circuit decides: auto, always, never, or a share of the records.")
    ] = "auto"
    raw_rows: Annotated[bool, typer.Option(help="Whether the model holds its medoids as rows of the table.")] = True
    circuits: Annotated[bool, typer.Option("--circuits", help="Write circuits too, as QPY and OpenQASM 3.")] = False
    compare: Annotated[
        bool, typer.Option("--compare", help="Fit plain baselines to the same rows, and compare on the held-out ones.")
    ] = False
    report: Annotated[
        Path | None, typer.Option(help="Page to write: the model, and what it shows on the held-out rows.")
    ] = None
    cv: Annotated[int | None, typer.Option(min=2, help="Also fit and judge folds of the training rows.")] = None
    max_rows: MaxRows = None
    memory: Annotated[
        Text, typer.Option(metavar="SIZE", help="Fit in passes a table that needs more memory, such as 2GB.")
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep what passes have finished, and go on where a fit was stopped.")
    ] = False
    dask: Annotated[
        Text, typer.Option(metavar="WHERE", help="Run passes on Dask workers: local, or a scheduler such as tcp://…")
    ] = None
    time_limit: Annotated[
        Number,
        typer.Option(metavar="SECONDS", help="Leave out what would end later: trees, neighbors, circuit, folds."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CutOptions:
    """A table about which a model decides, and where it cuts; one cut at most."""

    model: Model
    table: Table
    threshold: Annotated[Number, _share("Probability above which a record is called positive.")] = None
    alert_rate: Annotated[Number, _share("Share of the records to be called positive, by held-out rows.")] = None
    min_precision: Annotated[Number, _share("Best recall with at least this precision on held-out rows.")] = None
    min_recall: Annotated[Number, _share("Fewest alerts with at least this recall on held-out rows.")] = None
    cost: Annotated[Number, typer.Option(help="What a missed positive costs, in false alerts.")] = None
    on_mismatch: OnMismatch = "error"
    delimiter: Delimiter = None
    decimal: Decimal = None
    json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(CutOptions):
    """Options of ``score``."""

    output: Annotated[
        str,
        typer.Option(
            "--output", "-o",
            help="File to write, CSV or Parquet by its ending; - for CSV on a pipe; FOLDER/ for a file per input.",
        ),
    ]  # fmt: skip
    columns: Annotated[
        Names, typer.Option(help="Columns to carry through, such as ids; repeated, or with commas between.")
    ] = None
    prevalence: Annotated[
        Text,
        typer.Option(help="Share of the positive class in this table, or 'estimate': probabilities are then for it."),
    ] = None
    safe_csv: Annotated[bool, typer.Option(help="Make texts safe that a spreadsheet would run as formulas.")] = True
    force: Force = False
    top: Annotated[int | None, typer.Option(min=1, help="Call this many records positive: the highest scores.")] = None
    add: Annotated[
        Names,
        typer.Option(
            help="Add columns: probabilities, source, row, reasons, sentence, novelty, flags; repeated, or with commas."
        ),
    ] = None
    reasons: Annotated[
        int | None, typer.Option(min=1, help="Add reasons: this many columns that contributed most (3).")
    ] = None
    explain: Annotated[int | None, typer.Option(min=1, help="Add this many reasons, and each decision in words.")] = (
        None
    )
    on_bad_row: Annotated[
        Literal["refuse", "flag", "skip"],
        typer.Option(help="A row that cannot be read: refuse the table, flag the row, or set it aside."),
    ] = "refuse"
    bad_rows: Annotated[
        Text, typer.Option(metavar="FILE", help="File for rows set aside. Default: OUT with .bad-rows.csv.")
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Into a folder: score only files whose results are missing or out of date.")
    ] = False
    shard: Annotated[
        Text, typer.Option(metavar="K/N", help="Into a folder: score the K-th of N parts of the input files.")
    ] = None
    dask: Annotated[
        Text,
        typer.Option(
            metavar="WHERE", help="Into a folder: score files on Dask workers: local, or a scheduler, tcp://…"
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(CutOptions):
    """Options of ``evaluate``."""

    target: Annotated[Text, typer.Option(help="Column of the classes, if it is called otherwise.")] = None
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Count rows too that the model was fitted on. Default: new rows alone.")
    ] = False
    budgets: Budgets = None
    on_bad_row: Annotated[
        Literal["refuse", "skip"],
        typer.Option(help="A row that cannot be read: refuse the table, or leave the row out."),
    ] = "refuse"
    bad_rows: Annotated[Text, typer.Option(metavar="FILE", help="File for rows left out. Default: none.")] = None
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Options of ``reproduce``."""

    what: Annotated[
        Literal["all", "heart", "breast-cancer", "wine", "fraud", "devices"],
        typer.Argument(help="Data set, or all four; or devices: the same decisions on simulated quantum devices."),
    ] = "all"
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables, plots and the page.")] = Path(
        "reproduction"
    )
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes side by side; by default one per core.")] = None
    seed: Seed = 0
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke run: few splits or records, a sample of the frauds.")
    ] = False
    cache: Annotated[
        Path | None, typer.Option(help="Folder of results that are done; by default in the user's cache.")
    ] = None
    force: Force = False
    json: AsJson = False
