"""Options of the commands: what they are called, what they mean, and their defaults."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def _column(help: str) -> Any:
    return typer.Option(metavar="NAME", help=help)


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
MaxRows = Annotated[int, typer.Option(min=2, help="Maximum number of rows; of more, a random sample is used.")]
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
class FitOptions(TrainingOptions):
    """Options of ``fit``."""

    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Model file. Default: the table's name with .qmedoid.")
    ] = None
    test: Annotated[str, typer.Option(help="Held-out rows: a file, or a share of the rows; 0 for none.")] = "0.25"
    valid: Annotated[
        Text, typer.Option(help="Rows to choose settings by: a file or a share. Else cross-validation.")
    ] = None
    alert_rate: Annotated[Number, typer.Option(help="Share of the records to be called positive.")] = None
    operating_point: Annotated[Text, typer.Option(help="Probability to cut at, or metric to maximize.")] = None
    min_precision: Annotated[Number, typer.Option(help="Best recall with at least this precision.")] = None
    min_recall: Annotated[Number, typer.Option(help="Fewest alerts with at least this recall.")] = None
    cost: Annotated[Number, typer.Option(help="What a missed positive costs, in false alerts.")] = None
    time_column: Annotated[Text, typer.Option(help="Order of the rows: the last ones are held out.")] = None
    weight_column: Annotated[Text, typer.Option(help="How many rows each row stands for; 0 leaves it out.")] = None
    class_weight: Annotated[
        Literal["balanced"] | None, typer.Option(help="Weights that give every class the same total.")
    ] = None
    paper: Annotated[bool, typer.Option("--paper", help="Everything as printed in the paper.")] = False
    refine: Annotated[
        str, typer.Option(help="When the circuit decides: auto, always, never, or a share of the records.")
    ] = "auto"
    raw_rows: Annotated[bool, typer.Option(help="Whether the model holds its medoids as rows of the table.")] = True
    circuits: Annotated[bool, typer.Option("--circuits", help="Write circuits too, as QPY and OpenQASM 3.")] = False


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Options of ``reproduce``."""

    what: Annotated[
        Literal["all", "heart", "breast-cancer", "wine", "fraud"], typer.Argument(help="Data set, or all four.")
    ] = "all"
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables, plots and the page.")] = Path(
        "reproduction"
    )
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes side by side; by default one per core.")] = None
    seed: Seed = 0
    quick: Annotated[bool, typer.Option("--quick", help="A smoke run: few splits, a sample of the frauds.")] = False
    cache: Annotated[
        Path | None, typer.Option(help="Folder of results that are done; by default in the user's cache.")
    ] = None
    force: Force = False
    json: AsJson = False
