"""What options are made of: panels of the help, kinds of values, and options that several commands share."""

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from qmedoid.exceptions import ParameterError
from qmedoid.spelling import number_of

Run = TypeVar("Run", bound=Callable[..., int | None])
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

_INNER = (0.0, 1.0, "a number above 0 and below 1")
_FLOOR = (0.0, math.nextafter(1.0, 2.0), "a number above 0 and at most 1")
_RANGES = {"threshold": _INNER, "alert_rate": _INNER, "min_precision": _FLOOR, "min_recall": _FLOOR}
_CUTS = ("operating_point", "threshold", "alert_rate", "min_precision", "min_recall", "cost", "top")


def option(panel: str, metavar: str, help: str, *names: str, **more: Any) -> Any:
    """An option of a panel that takes a value; without names it is called like its field."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **more)


def flag(panel: str, help: str, *names: str) -> Any:
    """An option of a panel that takes none."""
    return typer.Option(*names, help=help, rich_help_panel=panel)


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
    return option(panel, "SHARE", help, parser=share)


def listed(columns: list[str] | None) -> list[str]:
    """Names with commas between them; a name with a comma in it is put in double quotes."""
    names = [name.strip() for part in columns or [] for name in _names(part)]
    return [name for name in dict.fromkeys(names) if name]


def _names(part: str) -> list[str]:
    """The names of an option; one that is no line of a CSV file, as it has a line break, is a name itself."""
    try:
        return [name for row in csv.reader([part], skipinitialspace=True) for name in row]
    except csv.Error:
        return [part]


def command(*examples: str, most_used: tuple[str, ...] = ()) -> Callable[[Run], Run]:
    """Mark a function as a command: calls that end its help, and options of the first panel there, eight at most.

    Its parameters are arguments and options; one that is a dataclass has those of its fields.
    """

    def mark(run: Run) -> Run:
        vars(run).update(examples=examples, most_used=most_used)
        return run

    return mark


Text = str | None
Number = float | None
Names = list[str] | None
Table = Annotated[str, argument("TABLE", "CSV, Parquet or Feather: a file, a folder, a pattern, or - for a pipe.")]
ModelPath = Annotated[Path, argument("MODEL", "File of a saved model.")]
Row = Annotated[int, option(RESULTS, "N", "Row of the table, counted from 0.", min=0)]
Output = Annotated[Path, option(OUTPUT, "FILE", "File of the new model.", "--output", "-o")]
Delimiter = Annotated[Text, option(READING, "SIGN", "Sign between the cells of a CSV file (detected by default).")]
Decimal = Annotated[Text, option(READING, "SIGN", "Decimal sign of a CSV file (detected by default).")]
Json = Annotated[bool, flag(OUTPUT, "Print one JSON document instead of text.", "--json")]
Force = Annotated[bool, flag(OUTPUT, "Overwrite a file that another program or command wrote.", "--force")]
Seed = Annotated[int, option(MODEL, "N", "Seed of everything random.", min=0, max=2**31 - 1)]
MaxRows = Annotated[
    int | None, option(LEARNED, "N", "Use this many rows at most: a random sample of a longer table.", min=2)
]
Budgets = Annotated[
    Names, option(RESULTS, "ALERTS", "Precision and recall of so many alerts, such as 10,100,1% (repeatable).")
]
NextRows = Annotated[
    int | None,
    option(RESULTS, "N", "Say what a table of so many next rows will show. Default: as many as were counted.", min=1),
]
OnMismatch = Annotated[
    Literal["error", "warn"],
    option(READING, "error|warn", "If the table breaks the model's contract: stop, or go on with a note."),
]
TargetName = Annotated[
    Text, option(READING, "COLUMN", "Column of the true classes, if its name is another than in the fit.")
]
AllRows = Annotated[
    bool, flag(EVALUATION, "Count rows too that the fit has seen. Default: only new rows.", "--all-rows")
]
AlertRate = Annotated[Number, share_option(POINT, "Share of the records to call positive, such as 1%.")]
MinPrecision = Annotated[Number, share_option(POINT, "Best recall with at least this precision on held-out rows.")]
MinRecall = Annotated[Number, share_option(POINT, "Fewest alerts with at least this recall on held-out rows.")]
MissedCost = Annotated[
    Number, option(POINT, "RATIO", "Lowest cost, if a missed positive costs this many false alerts.")
]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a table is read that a model decides about: settings of the same names."""

    on_mismatch: OnMismatch = "error"
    delimiter: Delimiter = None
    decimal: Decimal = None


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How the table of a check or a fit is read."""

    table: Table
    target: Text
    category: Annotated[Names, option(LEARNED, "COLUMN", "Column of names, even if they are numbers (repeatable).")] = (
        None
    )
    number: Annotated[Names, option(LEARNED, "COLUMN", "Column of numbers (repeatable).")] = None
    date: Annotated[Names, option(LEARNED, "COLUMN", "Column of dates (repeatable).")] = None
    keep: Annotated[
        Names, option(LEARNED, "COLUMN", "Column to use although it looks like an identifier (repeatable).")
    ] = None
    ignore: Annotated[Names, option(LEARNED, "COLUMN", "Column to leave out (repeatable).")] = None
    missing: Annotated[
        Names,
        option(
            LEARNED,
            "COLUMN=VALUE",
            "Value of a column to read as missing, such as Cholesterol=0; without one, NA is a name (repeatable).",
        ),
    ] = None
    roles: Annotated[
        Path | None, option(LEARNED, "FILE", 'TOML file of such roles, with lines like zip = "category".')
    ] = None
    seed: Seed = 0
    max_rows: MaxRows = 5_000_000
    delimiter: Delimiter = None
    decimal: Decimal = None
    date_order: Annotated[
        Literal["day-first", "month-first"] | None,
        option(READING, "ORDER", "Read 01/02/2024 as day-first or month-first (detected by default)."),
    ] = None
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(TableOptions):
    """What is fitted, and how."""

    target: Annotated[str, option(LEARNED, "COLUMN", "Column that holds the classes.")]
    positive: Annotated[
        Text,
        option(
            LEARNED,
            "CLASS",
            "Class to look for, such as fraud; of three classes or more, against all others. Default, for alerts: the "
            "one whose name says so, else the rarer of two.",
        ),
    ] = None
    classes: Annotated[
        bool,
        flag(READING, "Take each number of the target as a class of its own, however many there are.", "--classes"),
    ] = False
    group_column: Annotated[
        Text,
        option(
            EVALUATION,
            "COLUMN",
            "Rows with the same value here, such as a customer, are held out together; none looks for no such rows.",
        ),
    ] = None
    method: Annotated[
        str,
        option(
            MODEL,
            "METHOD",
            "What decides: evidence (distances to medoids), rare (prototypes of a rare class), sum (these and boosted "
            "trees), nearest (the paper's rule), or auto, which chooses one for the table.",
        ),
    ] = "auto"
    medoids: Annotated[
        int | None,
        option(MODEL, "N", "Maximum number of medoids, the real rows that records are compared with.", min=1),
    ] = None
    neighbors: Annotated[
        Text, option(MODEL, "N", "Maximum number of rows kept as nearest neighbors: a number, or auto.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class PointOptions:
    """Where records are separated."""

    alert_rate: AlertRate = None
    operating_point: Annotated[
        Text,
        option(POINT, "POINT", "Probability above which a record is positive, or a metric to maximize, such as f1."),
    ] = None
    min_precision: MinPrecision = None
    min_recall: MinRecall = None
    cost: MissedCost = None


@dataclass(frozen=True, kw_only=True)
class CutOptions(ReadingOptions):
    """A table about which a model decides, and where it cuts; one cut at most."""

    model: ModelPath
    table: Table
    threshold: Annotated[Number, share_option(POINT, "Probability above which a record is called positive.")] = None
    alert_rate: AlertRate = None
    min_precision: MinPrecision = None
    min_recall: MinRecall = None
    cost: MissedCost = None
    json: Json = False


def cut_of(options: PointOptions | CutOptions) -> Any:
    """The operating point that options ask for, None where there is none.

    Raises
    ------
    ParameterError
        There are two of them, or a number is out of range.
    """
    given: dict[str, Any] = {name: value for name in _CUTS if (value := getattr(options, name, None)) is not None}
    if len(given) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in list(given)[:2])
        raise ParameterError(f"{first} and {second} both say where to cut: give one of them.")
    word = given.pop("operating_point", None)
    for name, value in given.items():
        low, high, allowed = _RANGES.get(name, (0.0, math.inf, "a number above 0"))
        if not low < value < high:
            raise ParameterError(f"--{name.replace('_', '-')} must be {allowed}. Got {value:g} instead.")
    if word is None:
        return given.get("threshold", given) or None
    number = number_of(word)
    return word if number is None else number  # words are checked with the parameters of a fit
