"""What options are made of: panels of the help, kinds of values, and options that several commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer

from qmedoid.spelling import number_of

LEARNED = "What is learned from"
POINT = "Operating point (threshold)"
MODEL = "Model"
EVALUATION = "Evaluation"
RESULTS = "What the results hold"
DEVICE = "Device and circuits"
READING = "How the table is read"
LARGE = "Large tables and limited time"
OUTPUT = "Output"
PANELS = (LEARNED, POINT, MODEL, EVALUATION, RESULTS, DEVICE, READING, LARGE, OUTPUT)
"""Panels of options in the order of the help; a first one has those that a command is used with most."""


def option(panel: str, help: str, *names: str, metavar: str | None = None, **more: Any) -> Any:
    """An option of a panel; without names it is called like its field."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **more)


def argument(metavar: str, help: str) -> Any:
    """An argument, by its place in the call."""
    return typer.Argument(metavar=metavar, help=help)


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
        is_percent = number is not None and 1.0 < number <= 100.0 and "%" not in str(text)
        meant = f" {number:g} percent is {number:g}%." if is_percent else ""
        raise typer.BadParameter(
            f"A share is a number from 0 to 1, such as 0.05, or a percentage, such as 5%. Got {text!r} instead.{meant}"
        )
    return number


def share_option(panel: str, help: str) -> Any:
    """An option that takes a share."""
    return option(panel, help, parser=share, metavar="SHARE")


Text = str | None
Number = float | None
Names = list[str] | None
Table = Annotated[
    str,
    argument("TABLE", "CSV, JSON lines, Parquet, Feather or xlsx: a file, a folder, a pattern, or - for a pipe."),
]
Model = Annotated[Path, argument("MODEL", "File of a saved model.")]
Row = Annotated[int, option(RESULTS, "Row of the table, counted from 0.", min=0, metavar="N")]
Output = Annotated[Path, option(OUTPUT, "File of the new model.", "--output", "-o", metavar="FILE")]
Delimiter = Annotated[
    Text, option(READING, "Sign between the cells of a CSV file (detected by default).", metavar="SIGN")
]
Decimal = Annotated[Text, option(READING, "Decimal sign of a CSV file (detected by default).", metavar="SIGN")]
Force = Annotated[bool, option(OUTPUT, "Overwrite a file that another program or command wrote.", "--force")]
Seed = Annotated[int, option(MODEL, "Seed of everything random.", min=0, max=2**31 - 1, metavar="N")]
MaxRows = Annotated[
    int | None,
    option(LEARNED, "Use this many rows at most: a random sample of a longer table.", min=2, metavar="N"),
]
Budgets = Annotated[
    Names,
    option(RESULTS, "Precision and recall of so many alerts, such as 10,100,1% (repeatable).", metavar="ALERTS"),
]
OnMismatch = Annotated[
    Literal["error", "warn"],
    option(READING, "If the table breaks the model's contract: stop, or go on with a note.", metavar="error|warn"),
]
TargetName = Annotated[
    Text, option(READING, "Column of the true classes, if its name is another than in the fit.", metavar="COLUMN")
]
AllRows = Annotated[
    bool, option(EVALUATION, "Count rows too that the fit has seen. Default: only new rows.", "--all-rows")
]
MissedCost = Annotated[
    Number, option(POINT, "Lowest cost, if a missed positive costs this many false alerts.", metavar="RATIO")
]
BadRows = Annotated[Text, option(READING, "File for the rows that are left out. Default: none.", metavar="FILE")]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What all commands share."""

    most_used: ClassVar[tuple[str, ...]] = ()
    """Options of the first panel of the help, by their fields; eight at most."""
    examples: ClassVar[tuple[str, ...]]
    """Calls that end the help."""

    json: Annotated[bool, option(OUTPUT, "Print one JSON document instead of text.", "--json")] = False


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(Options):
    """How a table is read that a model decides about."""

    on_mismatch: OnMismatch = "error"
    delimiter: Delimiter = None
    decimal: Decimal = None


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
