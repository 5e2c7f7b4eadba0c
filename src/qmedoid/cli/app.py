"""The commands of ``qmedoid``; each imports what it needs when it runs, so that ``--help`` answers at once."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

app = typer.Typer(
    no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
data_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The data sets of the paper.")
app.add_typer(data_app, name="data")


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
        Literal["auto", "evidence", "rare", "nearest"],
        typer.Option(help="What decides: evidence by group of columns, rare-event prototypes, or the nearest medoid."),
    ] = "auto"
    medoids: Annotated[Text, typer.Option(help="Most medoids of the evidence method: a number, or tiny.")] = None
    neighbors: Annotated[Text, typer.Option(help="Most rows kept for its neighbor term: a number, or auto.")] = None


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


def _command(options: type) -> Callable[[Callable[[Any], int | None]], None]:
    """Make a function a command whose options are the fields of a dataclass, of which it takes an instance."""
    signature = inspect.signature(options)
    # The options of the command itself come before those that it shares with others.
    order = dict.fromkeys(name for kind in options.__mro__ for name in inspect.get_annotations(kind))

    def register(run: Callable[[Any], int | None]) -> None:
        def call(**given: Any) -> int | None:
            return run(options(**given))

        ordered = [signature.parameters[name] for name in order]
        call.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]
        app.command(run.__name__, help=inspect.getdoc(run))(call)

    return register


def _print_version() -> None:
    from qmedoid import __version__

    typer.echo(f"qmedoid {__version__}")
    raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=lambda asked: asked and _print_version(), is_eager=True, help="Print and stop."),
]


@app.callback()
def qmedoid(version: Version = False) -> None:
    """A geometry-first, quantum-inspired classifier for tables.

    Exit codes: 0 all well, 1 the machine failed, 2 wrong call, 3 data that cannot be used or break the model's
    contract, 4 model unreadable, 130 interrupted.
    """


@_command(CheckOptions)
def check(options: CheckOptions) -> int:
    """Show how every column of a table would be read and why, and what is odd about it, before any fit."""
    from qmedoid.cli.check import run

    return run(options)


@_command(FitOptions)
def fit(options: FitOptions) -> None:
    """Fit a model to a table, show what it does on held-out rows, and save it."""
    from qmedoid.cli.fit import run

    run(options)


@app.command()
def score(
    model: Model,
    table: Table,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File to write, CSV or Parquet by its ending; - for CSV on a pipe.")
    ],
    columns: Annotated[
        Names, typer.Option(help="Columns to carry through, such as ids; repeated, or with commas between.")
    ] = None,
    prevalence: Annotated[
        Text,
        typer.Option(help="Share of the positive class in this table, or 'estimate': probabilities are then for it."),
    ] = None,
    safe_csv: Annotated[bool, typer.Option(help="Make texts safe that a spreadsheet would run as formulas.")] = True,
    force: Force = False,
    novelty: Annotated[
        bool, typer.Option("--novelty", help="Add a column: above 1 for records unlike the training rows.")
    ] = False,
    on_mismatch: OnMismatch = "error",
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: AsJson = False,
) -> None:
    """Score a table of any size: prediction, score, margin, nearest medoid of each class, who decided."""
    from qmedoid.cli.score import run

    run(model, table, output, columns=columns or [], prevalence=prevalence, safe_csv=safe_csv, force=force,
        novelty=novelty, on_mismatch=on_mismatch, as_json=json, delimiter=delimiter, decimal=decimal)  # fmt: skip


@app.command()
def evaluate(
    model: Model,
    table: Table,
    target: Annotated[Text, typer.Option(help="Column of the classes, if it is called otherwise.")] = None,
    on_mismatch: OnMismatch = "error",
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: AsJson = False,
) -> None:
    """Compare a model's decisions with the classes in a table."""
    from qmedoid.cli.score import evaluate as run

    run(model, table, target=target, on_mismatch=on_mismatch, as_json=json, delimiter=delimiter, decimal=decimal)


@app.command()
def explain(
    model: Model,
    table: Table,
    row: Annotated[int, typer.Option(min=0, help="Row of the table, counted from 0.")],
    known: Annotated[
        Text,
        typer.Option(metavar="TABLE", help="Table, such as the fitted one, to show the nearest rows of."),
    ] = None,
    on_mismatch: OnMismatch = "error",
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: AsJson = False,
) -> None:
    """Explain one decision: what each column contributed, and the nearest medoid of each class."""
    from qmedoid.cli.explain import run

    run(model, table, row, known=known, on_mismatch=on_mismatch, as_json=json, delimiter=delimiter, decimal=decimal)


@app.command("inspect")
def inspect_model(model: Model, json: AsJson = False) -> None:
    """Show what a saved model is, which columns it needs and what it showed on held-out rows."""
    from qmedoid.cli.inspect import run

    run(model, as_json=json)


@app.command()
def circuit(
    model: Model,
    format: Annotated[Literal["qpy", "qasm", "text"], typer.Option(help="How to write it.")] = "text",
    which: Annotated[
        Literal["auto", "variational", "swap-test"],
        typer.Option(help="The trained circuit, or the SWAP test of the features; auto takes what the model has."),
    ] = "auto",
    output: Annotated[str, typer.Option("--output", "-o", help="File to write; - for standard output.")] = "-",
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write a model's circuit for other tools (needs the extra 'quantum')."""
    from qmedoid.cli.inspect import write_circuit

    write_circuit(model, format, which, output, force=force, as_json=json)


@_command(StabilityOptions)
def stability(options: StabilityOptions) -> None:
    """Fit bootstrap samples of a table, and show how much groups, medoids and decisions change."""
    from qmedoid.cli.stability import run

    run(options)


@data_app.command("list")
def data_list(json: AsJson = False) -> None:
    """The data sets, and where each comes from."""
    from qmedoid.cli.data import list_sets

    list_sets(as_json=json)


@data_app.command("where")
def data_where(name: Annotated[str, typer.Argument(help="Name of the data set.")], json: AsJson = False) -> None:
    """The path of a data set's file on this machine."""
    from qmedoid.cli.data import where

    where(name, as_json=json)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(help="Name of the data set.")],
    output: Annotated[Text, typer.Option("--output", "-o", help="File to write, CSV or Parquet.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write a data set to a file; one that is not here is downloaded and checked first."""
    from qmedoid.cli.data import fetch

    fetch(name, output, force=force, as_json=json)


@app.command()
def demo(
    splits: Annotated[int, typer.Option(min=1, help="Repeated splits of each small data set.")] = 5,
    fraud_splits: Annotated[int, typer.Option(min=0, help="Repeated splits of the fraud sample; 0 leaves it out.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first split.")] = 0,
    json: AsJson = False,
) -> None:
    """Fit heart, breast cancer, wine and a sample of card frauds; print ours, the paper's and plain baselines."""
    from qmedoid.cli.studies import run_demo

    run_demo(splits=splits, fraud_splits=fraud_splits, seed=seed, as_json=json)


@_command(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> None:
    """Run the paper's experiments again: its tables next to ours, on its terms and on held-out rows.

    A run that was stopped goes on where it was. Needs the extras 'baselines' and 'plots'.
    """
    from qmedoid.cli.studies import reproduce

    reproduce(options)
