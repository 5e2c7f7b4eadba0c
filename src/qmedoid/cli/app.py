"""The commands of ``qmedoid``; each imports what it needs when it runs, so that ``--help`` answers at once."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from qmedoid.cli.options import (
    AsJson,
    Budgets,
    CheckOptions,
    CircuitExportOptions,
    CircuitPlanOptions,
    CircuitRunOptions,
    Decimal,
    Delimiter,
    EvaluateOptions,
    ExplainOptions,
    ExportOptions,
    FitOptions,
    Force,
    Model,
    Names,
    OnMismatch,
    RecalibrateOptions,
    ReportOptions,
    ReproduceOptions,
    ScoreOptions,
    StabilityOptions,
    Table,
    Text,
)

app = typer.Typer(
    no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
data_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The data sets of the paper.")
app.add_typer(data_app, name="data")
circuit_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The circuits of a model (needs the extra 'quantum')."
)
app.add_typer(circuit_app, name="circuit")


def _command(
    options: type, group: typer.Typer = app, name: str | None = None
) -> Callable[[Callable[[Any], int | None]], None]:
    """Make a function a command whose options are the fields of a dataclass, of which it takes an instance.

    It belongs to a group of commands, and is called like the function unless it has another name.
    """
    signature = inspect.signature(options)
    # The options of the command itself come before those that it shares with others.
    order = dict.fromkeys(name for kind in options.__mro__ for name in inspect.get_annotations(kind))

    def register(run: Callable[[Any], int | None]) -> None:
        def call(**given: Any) -> int | None:
            return run(options(**given))

        ordered = [signature.parameters[name] for name in order]
        call.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]
        group.command(name or run.__name__, help=inspect.getdoc(run))(call)

    return register


def _print_version() -> None:
    from qmedoid import __version__
    from qmedoid.kernels._backend import kernels_in_use

    typer.echo(f"qmedoid {__version__}\nkernels: {kernels_in_use()}")
    raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=lambda asked: asked and _print_version(), is_eager=True, help="Print and stop."),
]


@app.callback()
def qmedoid(version: Version = False) -> None:
    """A geometry-first, quantum-inspired classifier for tables.

    Exit codes: 0 all well, 1 the machine failed, 2 wrong call, 3 data that cannot be used or break the model's
    contract, 4 model unreadable, 5 models differ (diff --exit-code), 130 interrupted.
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


@_command(ScoreOptions)
def score(options: ScoreOptions) -> None:
    """Score a table of any size: prediction, score, margin, nearest medoid of each class, who decided."""
    from qmedoid.cli.score import run

    run(options)


@_command(EvaluateOptions)
def evaluate(options: EvaluateOptions) -> None:
    """Compare a model's decisions with the classes in a table."""
    from qmedoid.cli.evaluate import run

    run(options)


@_command(ReportOptions)
def report(options: ReportOptions) -> None:
    """Show a model, and what it decides about a table, in one page that any browser opens without a network."""
    from qmedoid.cli.report import run

    run(options)


@_command(ExportOptions)
def export(options: ExportOptions) -> None:
    """Write a model in another language, which scores records without Python."""
    from qmedoid.cli.export import run

    run(options)


@_command(ExplainOptions)
def explain(options: ExplainOptions) -> None:
    """Explain one decision: what each column contributed, the nearest medoids, and what would turn it."""
    from qmedoid.cli.explain import run

    run(options)


@app.command()
def importance(
    model: Model,
    table: Annotated[Text, typer.Argument(help="Table whose rows are decided about; else training rows.")] = None,
    on_mismatch: OnMismatch = "error",
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: AsJson = False,
) -> None:
    """Show how much each column contributes to decisions, on average."""
    from qmedoid.cli.importance import run

    run(model, table, on_mismatch=on_mismatch, as_json=json, delimiter=delimiter, decimal=decimal)


@app.command()
def effect(
    model: Model,
    table: Table,
    column: Annotated[str, typer.Option(metavar="NAME", help="Column of the model.")],
    toward: Annotated[
        Text, typer.Option(metavar="CLASS", help="Class that is spoken for; of two the positive one by default.")
    ] = None,
    bins: Annotated[int, typer.Option(min=1, help="Bins of a number or a date, with about equally many rows.")] = 10,
    plot: Annotated[Path | None, typer.Option(help="Picture to write, .svg or .png (needs the extra 'plots').")] = None,
    force: Force = False,
    on_mismatch: OnMismatch = "error",
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: AsJson = False,
) -> None:
    """Show what the values of one column contribute to decisions about a table."""
    from qmedoid.cli.importance import effect as run

    run(model, table, column, toward=toward, bins=bins, plot=plot, force=force, on_mismatch=on_mismatch, as_json=json,
        delimiter=delimiter, decimal=decimal)  # fmt: skip


@app.command("inspect")
def inspect_model(model: Model, budgets: Budgets = None, json: AsJson = False) -> None:
    """Show what a saved model is, which columns it needs and what it showed on held-out rows."""
    from qmedoid.cli.inspect import run

    run(model, budgets, as_json=json)


@_command(CircuitExportOptions, circuit_app, "export")
def circuit_export(options: CircuitExportOptions) -> None:
    """Write a circuit for other tools, with what leads from its outcomes to a probability or a distance."""
    from qmedoid.cli.circuit import export

    export(options)


@_command(CircuitPlanOptions, circuit_app, "plan")
def circuit_plan(options: CircuitPlanOptions) -> None:
    """Say what a measurement of a table on a device takes, and how sure it will be; no circuit runs."""
    from qmedoid.cli.circuit_run import plan

    plan(options)


@_command(CircuitRunOptions, circuit_app, "run")
def circuit_run(options: CircuitRunOptions) -> None:
    """Measure the records of a table on a device, into a folder; called again, it goes on where it was stopped."""
    from qmedoid.cli.circuit_run import run

    run(options)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(help="File of a saved model.")],
    new: Annotated[Path, typer.Argument(help="File of the model that came after it.")],
    table: Annotated[Text, typer.Argument(help="Table about whose records both decide.")] = None,
    exit_code: Annotated[
        bool,
        typer.Option("--exit-code", help="End with exit code 5 if decisions differ (without a table, models)."),
    ] = False,
    on_mismatch: OnMismatch = "error",
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: AsJson = False,
) -> int:
    """Show what changed between two saved models and, with a table, in their decisions about its records."""
    from qmedoid.cli.diff import run

    return run(old, new, table, exit_code=exit_code, on_mismatch=on_mismatch, as_json=json, delimiter=delimiter,
               decimal=decimal)  # fmt: skip


@_command(RecalibrateOptions)
def recalibrate(options: RecalibrateOptions) -> None:
    """Fit probabilities and operating point of a model to new labels; everything else stays as it was."""
    from qmedoid.cli.recalibrate import run

    run(options)


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


@app.command("schema")
def print_schema(
    command: Annotated[Names, typer.Argument(help="Command, such as score or data list; or error.")] = None,
    json: AsJson = False,
) -> None:
    """Print the JSON Schema of what a command prints with --json; without a command, what schemas there are."""
    from qmedoid.cli.schema import run

    run(command or [], as_json=json)


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

    A run that was stopped goes on where it was. Needs the extras 'baselines' and 'plots', for devices 'ibm'.
    """
    from qmedoid.cli.studies import reproduce

    reproduce(options)
