"""Commands that fit and decide: what their options are called, what they mean, and their defaults.

A class is a command: its docstring is the help, and its fields are the arguments and options.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from qmedoid.cli._option_kinds import (
    EVALUATION,
    LARGE,
    LEARNED,
    MODEL,
    OUTPUT,
    POINT,
    READING,
    RESULTS,
    AllRows,
    BadRows,
    Budgets,
    Decimal,
    Delimiter,
    Force,
    MaxRows,
    MissedCost,
    Model,
    Names,
    Number,
    Options,
    ReadingOptions,
    Row,
    Seed,
    Table,
    TargetName,
    Text,
    argument,
    option,
    share_option,
)


@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """How the table of a check or a fit is read."""

    table: Table
    target: Text
    category: Annotated[
        Names, option(LEARNED, "Column of names, even if they are numbers (repeatable).", metavar="COLUMN")
    ] = None
    number: Annotated[Names, option(LEARNED, "Column of numbers (repeatable).", metavar="COLUMN")] = None
    date: Annotated[Names, option(LEARNED, "Column of dates (repeatable).", metavar="COLUMN")] = None
    keep: Annotated[
        Names, option(LEARNED, "Column to use although it looks like an identifier (repeatable).", metavar="COLUMN")
    ] = None
    ignore: Annotated[Names, option(LEARNED, "Column to leave out (repeatable).", metavar="COLUMN")] = None
    missing: Annotated[
        Names,
        option(LEARNED, "Value of a column to read as missing, such as Cholesterol=0 (repeatable).",
               metavar="COLUMN=VALUE"),
    ] = None  # fmt: skip
    roles: Annotated[
        Path | None, option(LEARNED, 'TOML file of such roles, with lines like zip = "category".', metavar="FILE")
    ] = None
    seed: Seed = 0
    max_rows: MaxRows = 5_000_000
    delimiter: Delimiter = None
    decimal: Decimal = None
    date_order: Annotated[
        Literal["day-first", "month-first"] | None,
        option(
            READING,
            "Read 01/02/2024 as day-first or month-first (detected by default).",
            metavar="ORDER",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CheckOptions(TableOptions):
    """Show how each column would be read, and what is odd about it.

    Run it before a fit: it names columns that give the target away, identifiers, texts among numbers, and rows that
    occur twice. It writes nothing.
    """

    most_used = ("target", "ignore", "missing", "category", "number", "strict", "json")
    examples = ("qmedoid check patients.csv --target outcome",)

    target: Annotated[Text, option(LEARNED, "Column that holds the classes.", metavar="COLUMN")] = None
    strict: Annotated[bool, option(OUTPUT, "End with exit code 3 if there are problems.", "--strict")] = False


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(TableOptions):
    """What is fitted, and how."""

    target: Annotated[str, option(LEARNED, "Column that holds the classes.", metavar="COLUMN")]
    positive: Annotated[
        Text,
        option(
            LEARNED,
            "Class to look for, such as fraud; of three classes or more, against all others. Default, for alerts: the "
            "one whose name says so, else the rarer of two.",
            metavar="CLASS",
        ),
    ] = None
    classes: Annotated[
        bool,
        option(READING, "Take each number of the target as a class of its own, however many there are.", "--classes"),
    ] = False
    group_column: Annotated[
        Text,
        option(EVALUATION, "Rows with the same value here, such as a customer, are held out together.",
               metavar="COLUMN"),
    ] = None  # fmt: skip
    method: Annotated[
        Literal["auto", "evidence", "rare", "sum", "nearest"],
        option(
            MODEL,
            "What decides: evidence (distances to medoids), rare (prototypes of a rare class), sum (these and boosted "
            "trees), nearest (the paper's rule), or auto, which chooses one for the table.",
            metavar="METHOD",
        ),
    ] = "auto"
    medoids: Annotated[
        int | None,
        option(MODEL, "Maximum number of medoids, the real rows that records are compared with.", min=1, metavar="N"),
    ] = None
    neighbors: Annotated[
        Text, option(MODEL, "Maximum number of rows kept as nearest neighbors: a number, or auto.", metavar="N")
    ] = None


@dataclass(frozen=True, kw_only=True)
class StabilityOptions(TrainingOptions):
    """Refit samples of the rows, and count decisions that change.

    Fits bootstrap samples of a table, and shows how often decisions, groups of columns and medoids are others than in
    the fit of all rows.
    """

    most_used = ("target", "bootstraps", "positive", "ignore", "method", "max_rows", "seed", "json")
    examples = ("qmedoid stability patients.csv --target outcome",)

    max_rows: MaxRows = 20_000
    bootstraps: Annotated[
        int, option(EVALUATION, "Number of bootstrap samples that are fitted, 2 or more.", min=2, metavar="N")
    ] = 20


@dataclass(frozen=True, kw_only=True)
class PointOptions(Options):
    """Where records are separated."""

    alert_rate: Annotated[Number, share_option(POINT, "Share of the records to call positive, such as 1%.")] = None
    operating_point: Annotated[
        Text, option(POINT, "Probability above which a record is positive, or a metric to maximize, such as f1.",
                     metavar="POINT"),
    ] = None  # fmt: skip
    min_precision: Annotated[Number, share_option(POINT, "Best recall with at least this precision.")] = None
    min_recall: Annotated[Number, share_option(POINT, "Fewest alerts with at least this recall.")] = None
    cost: MissedCost = None


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ReadingOptions):
    """Say why a row got its class: what each column contributes.

    The contributions add up exactly to the decision. Also shows similar real rows, and the smallest change that
    would lead to another class.
    """

    most_used = ("row", "top", "html", "svg", "known", "fixed", "json")
    examples = (
        "qmedoid explain patients.qmedoid new.csv --row 3",
        "qmedoid explain patients.qmedoid new.csv --row 3 --html why.html",
    )

    model: Model
    table: Table
    row: Row
    top: Annotated[
        int, option(RESULTS, "Columns, groups and rows that are listed; 0 lists all.", min=0, metavar="N")
    ] = 10
    fixed: Annotated[
        Names, option(RESULTS, "Columns that cannot change, such as age (with commas between).", metavar="COLUMNS")
    ] = None
    html: Annotated[Path | None, option(OUTPUT, "Page to write, without scripts.", metavar="FILE")] = None
    svg: Annotated[Path | None, option(OUTPUT, "Picture of the contributions to write.", metavar="FILE")] = None
    known: Annotated[
        Text,
        option(RESULTS, "Table, such as the fitted one, of which the rows most like this one are shown.",
               metavar="TABLE"),
    ] = None  # fmt: skip
    verbose: Annotated[bool, option(RESULTS, "Show distances, angles and the exact sum.", "--verbose", "-v")] = False


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ReadingOptions):
    """Write one page: how good a model is, and what decides.

    Any browser opens it without a network: figures, a slider of the threshold, what columns contribute, checks, and
    the model itself, which scores records in the page.
    """

    most_used = ("output", "target", "cost", "baselines", "stability", "rows", "live", "json")
    examples = ("qmedoid report patients.qmedoid new.csv -o report.html",)

    model: Model
    table: Annotated[Text, argument("TABLE", "Table to decide about; with classes, the figures are of its rows.")] = (
        None
    )
    output: Annotated[
        Path | None,
        option(OUTPUT, "Page to write. Default: the model's name with .html.", "--output", "-o", metavar="FILE"),
    ] = None
    target: TargetName = None
    all_rows: AllRows = False
    cost: Annotated[
        Number, option(POINT, "What a missed positive costs, in false alerts: shows costs too.", metavar="RATIO")
    ] = None
    baselines: Annotated[
        bool, option(RESULTS, "Fit plain baselines to folds of the table, and compare.", "--baselines")
    ] = False
    stability: Annotated[
        int | None,
        option(RESULTS, "Fit this many bootstrap samples of the table, 2 or more, and show what changes.", min=2,
               metavar="N"),
    ] = None  # fmt: skip
    ignore: Annotated[
        Names, option(RESULTS, "Code of a check to leave out, such as QM103 (repeatable).", metavar="CODE")
    ] = None
    max_size: Annotated[
        float, option(RESULTS, "Size from which on the page leaves the live model out, in megabytes.", metavar="MB")
    ] = 3.0
    live: Annotated[
        bool, option(RESULTS, "Put the model into the page, so that it scores records.", "--live/--no-live")
    ] = True
    rows: Annotated[bool, option(RESULTS, "Show rows of the table in the page.", "--rows/--no-rows")] = True


@dataclass(frozen=True, kw_only=True)
class FitOptions(PointOptions, TrainingOptions):
    """Learn from a table, say how good the model is, save it.

    A quarter of the rows is held out: the model never sees them, and they say how good it is. Two classes or more
    (multiclass). For imbalanced classes set the threshold, such as with --alert-rate.
    """

    most_used = ("target", "output", "positive", "alert_rate", "ignore", "test", "compare", "report")
    examples = (
        "qmedoid fit patients.csv --target outcome",
        "qmedoid fit payments.parquet --target fraud --alert-rate 1% --compare",
    )

    output: Annotated[
        Path | None,
        option(OUTPUT, "Model file. Default: the table's name with .qmedoid.", "--output", "-o", metavar="FILE"),
    ] = None
    test: Annotated[
        str, option(EVALUATION, "Held-out rows: a share of the rows, a file, or 0 for none.", metavar="SHARE|FILE")
    ] = "0.25"
    valid: Annotated[
        Text,
        option(EVALUATION, "Rows to choose the settings by: a share or a file. Default: cross-validation.",
               metavar="SHARE|FILE"),
    ] = None  # fmt: skip
    time_column: Annotated[
        Text,
        option(EVALUATION, "Hold out the last rows by this column, which is not learned from.", metavar="COLUMN"),
    ] = None
    weight_column: Annotated[
        Text,
        option(LEARNED, "Sample weights: how many rows each row counts as; 0 leaves it out.", metavar="COLUMN"),
    ] = None
    class_weight: Annotated[
        Literal["balanced"] | None,
        option(LEARNED, "For imbalanced classes: weight the rows so that every class counts as much as the others.",
               metavar="balanced"),
    ] = None  # fmt: skip
    paper: Annotated[
        bool, option(MODEL, "Method and circuit of the paper, but for what docs/findings.md lists.", "--paper")
    ] = False
    refine: Annotated[
        str,
        option(MODEL, "When a trained circuit decides: auto, always, never, or a share of the records.",
               metavar="WHEN"),
    ] = "auto"  # fmt: skip
    raw_rows: Annotated[
        bool, option(MODEL, "Keep medoids as readable rows in the model file.", "--raw-rows/--no-raw-rows")
    ] = True
    circuits: Annotated[bool, option(OUTPUT, "Write the circuits too, as QPY and OpenQASM 3.", "--circuits")] = False
    compare: Annotated[
        bool, option(EVALUATION, "Fit plain baselines to the same rows, and compare on the held-out ones.", "--compare")
    ] = False
    report: Annotated[
        Path | None,
        option(OUTPUT, "Page to write: the model, and what it shows on the held-out rows.", metavar="FILE"),
    ] = None
    cv: Annotated[
        int | None,
        option(EVALUATION, "Also fit and evaluate this many folds of the training rows (cross-validation), 2 or more.",
               min=2, metavar="FOLDS"),
    ] = None  # fmt: skip
    max_rows: MaxRows = None
    memory: Annotated[
        Text,
        option(LARGE, "Fit a table in passes that needs more memory than this, such as 2GB. Default: 4GB.",
               metavar="SIZE"),
    ] = None  # fmt: skip
    resume: Annotated[
        bool, option(LARGE, "Go on where a fit in passes was stopped; keep what passes have finished.", "--resume")
    ] = False
    dask: Annotated[
        Text,
        option(LARGE, "Run passes on Dask workers: local, or a scheduler such as tcp://host:8786.", metavar="WHERE"),
    ] = None
    time_limit: Annotated[
        Number,
        option(LARGE, "Leave out what would end later: trees, neighbors, circuit, baselines, folds.",
               metavar="SECONDS"),
    ] = None  # fmt: skip
    quiet: Annotated[bool, option(OUTPUT, "Print the name of the model file, and errors.", "--quiet", "-q")] = False
    verbose: Annotated[bool, option(OUTPUT, "Print all figures, and tables of classes.", "--verbose", "-v")] = False


@dataclass(frozen=True, kw_only=True)
class CutOptions(ReadingOptions):
    """A table about which a model decides, and where it cuts; one cut at most."""

    model: Model
    table: Table
    threshold: Annotated[Number, share_option(POINT, "Probability above which a record is called positive.")] = None
    alert_rate: Annotated[Number, share_option(POINT, "Share of the records to call positive, by held-out rows.")] = (
        None
    )
    min_precision: Annotated[
        Number, share_option(POINT, "Best recall with at least this precision on held-out rows.")
    ] = None
    min_recall: Annotated[Number, share_option(POINT, "Fewest alerts with at least this recall on held-out rows.")] = (
        None
    )
    cost: MissedCost = None


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(CutOptions):
    """Predict: a class and a score for each row of a table.

    The table may be larger than the memory. Each run also says whether the share of alerts, and the values, are like
    those of the training rows: that is how to monitor a model.
    """

    most_used = ("output", "columns", "add", "reasons", "threshold", "alert_rate", "top", "on_mismatch")
    examples = (
        "qmedoid score patients.qmedoid new.csv -o decisions.csv",
        "qmedoid score patients.qmedoid new.csv -o out.csv --columns id --add reasons",
    )

    output: Annotated[
        str,
        option(
            OUTPUT,
            "File to write, CSV or Parquet by its ending; - for CSV on a pipe; FOLDER/ for a file per input.",
            "--output", "-o", metavar="FILE",
        ),
    ]  # fmt: skip
    columns: Annotated[
        Names,
        option(RESULTS, "Columns to carry through, such as ids (repeatable, or with commas between).",
               metavar="COLUMNS"),
    ] = None  # fmt: skip
    prevalence: Annotated[
        Text,
        option(POINT, "Share of the positive class in this table, or 'estimate': probabilities are then for it.",
               metavar="SHARE"),
    ] = None  # fmt: skip
    safe_csv: Annotated[
        bool,
        option(OUTPUT, "Make texts safe that a spreadsheet would run as formulas.", "--safe-csv/--no-safe-csv"),
    ] = True
    force: Force = False
    top: Annotated[
        int | None, option(POINT, "Call this many records positive: the highest scores.", min=1, metavar="N")
    ] = None
    add: Annotated[
        Names,
        option(
            RESULTS,
            "Columns to add: probabilities, source, row, reasons, sentence, novelty, flags (repeatable, or with commas "
            "between).",
            metavar="WHAT",
        ),
    ] = None
    reasons: Annotated[
        int | None,
        option(RESULTS, "Add this many reasons: the columns that contribute most. Default: 3.", min=1, metavar="N"),
    ] = None
    explain: Annotated[
        int | None, option(RESULTS, "Add this many reasons, and each decision in words.", min=1, metavar="N")
    ] = None
    on_bad_row: Annotated[
        Literal["refuse", "flag", "skip"],
        option(READING, "If a row cannot be read: refuse the table, flag the row, or skip it.", metavar="WHAT"),
    ] = "refuse"
    bad_rows: Annotated[
        Text,
        option(READING, "File for the rows that are left out. Default: OUT with .bad-rows.csv.", metavar="FILE"),
    ] = None
    resume: Annotated[
        bool, option(LARGE, "Into a folder: score only files whose results are missing or out of date.", "--resume")
    ] = False
    shard: Annotated[
        Text, option(LARGE, "Into a folder: score the K-th of N parts of the input files.", metavar="K/N")
    ] = None
    dask: Annotated[
        Text,
        option(LARGE, "Into a folder: score files on Dask workers: local, or a scheduler such as tcp://host:8786.",
               metavar="WHERE"),
    ] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(CutOptions):
    """Compare a model's decisions with the true classes.

    Counts rows that the fit has not seen. A table of labels that came later shows whether a model in use is still as
    good as it was.
    """

    most_used = ("target", "budgets", "threshold", "alert_rate", "min_precision", "min_recall", "cost", "json")
    examples = (
        "qmedoid evaluate patients.qmedoid labeled.csv",
        "qmedoid evaluate patients.qmedoid labeled.csv --budgets 100,1%",
    )

    target: TargetName = None
    all_rows: AllRows = False
    budgets: Budgets = None
    on_bad_row: Annotated[
        Literal["refuse", "skip"],
        option(READING, "If a row cannot be read: refuse the table, or skip the row.", metavar="WHAT"),
    ] = "refuse"
    bad_rows: BadRows = None
    force: Force = False
