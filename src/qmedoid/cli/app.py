"""The commands of ``qmedoid``; each imports what it needs when it runs, so that ``--help`` answers at once."""

import inspect
from importlib import import_module
from typing import Annotated, Any

import typer

from qmedoid.cli import more_options as more
from qmedoid.cli import options
from qmedoid.cli._help import Command, Group
from qmedoid.cli._option_kinds import OUTPUT, Options
from qmedoid.exceptions import ModelError

COMMANDS: dict[str, dict[str, tuple[type[Options], str]]] = {
    "Start here": {
        "check": (options.CheckOptions, "check.run"),
        "fit": (options.FitOptions, "fit.run"),
        "score": (options.ScoreOptions, "score.run"),
        "explain": (options.ExplainOptions, "explain.run"),
        "report": (options.ReportOptions, "report.run"),
    },
    "Look closer": {
        "evaluate": (options.EvaluateOptions, "evaluate.run"),
        "importance": (more.ImportanceOptions, "importance.run"),
        "effect": (more.EffectOptions, "importance.effect"),
        "inspect": (more.InspectOptions, "inspect.run"),
        "stability": (options.StabilityOptions, "stability.run"),
    },
    "Deploy it, keep it healthy": {
        "export": (more.ExportOptions, "export.run"),
        "diff": (more.DiffOptions, "diff.run"),
        "recalibrate": (more.RecalibrateOptions, "recalibrate.run"),
    },
    "Research": {
        "demo": (more.DemoOptions, "demo.run"),
        "reproduce": (more.ReproduceOptions, "reproduce.run"),
        "circuit export": (more.CircuitExportOptions, "circuit.export"),
        "circuit plan": (more.CircuitPlanOptions, "circuit_run.plan"),
        "circuit run": (more.CircuitRunOptions, "circuit_run.run"),
        "data list": (more.DataListOptions, "data.list_sets"),
        "data where": (more.DataWhereOptions, "data.where"),
        "data fetch": (more.DataFetchOptions, "data.fetch"),
        "schema": (more.SchemaOptions, "schema.run"),
    },
}
"""Commands by their groups in the help: the class of their options, and the function of this package that runs them."""
_GROUPS = {
    "circuit": "Export a model's circuits, or run them (extra 'quantum').",
    "data": "List the paper's data sets, and write them to files.",
}


def _call(kind: type[Options], runs: str) -> Any:
    """A function whose parameters are the fields of a class of options, which imports what it calls."""

    def call(**given: Any) -> Any:
        module, name = runs.split(".")
        try:
            return getattr(import_module(f"qmedoid.cli.{module}"), name)(kind(**given))
        except ModelError:
            _refuse_swapped(given.get("model"), given.get("table"))
            raise

    call.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    vars(call).update(most_used=kind.most_used, examples=kind.examples)
    return call


def _refuse_swapped(model: Any, table: Any) -> None:
    """Say that a table and a model stand in the wrong order, where that is why no model could be loaded."""
    from zipfile import is_zipfile  # slow, and needed after an error only

    if model is not None and isinstance(table, str) and not is_zipfile(model) and is_zipfile(table):
        found = f"{str(model)!r} is no model, and {table!r} may be one"
        raise ModelError(f"The model comes first, then the table: {found}.")


def _print_version() -> None:
    from qmedoid import __version__
    from qmedoid.kernels._backend import kernels_in_use

    typer.echo(f"qmedoid {__version__}\nkernels: {kernels_in_use()}")
    raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=lambda asked: asked and _print_version(), is_eager=True,
        help="Print the version, and which kernels are in use.", rich_help_panel=OUTPUT,
    ),
]  # fmt: skip


def _qmedoid(version: Version = False) -> None:
    """Say what the program is."""


ABOUT = (
    "A scikit-learn classifier for tables that adds up boosted trees, nearest neighbors and distances to a few dozen "
    "real rows, and shows every decision as an exact sum: which columns, which real rows, how much."
)


def _typer(**more: Any) -> typer.Typer:
    return typer.Typer(
        cls=Group, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]}, **more,
    )  # fmt: skip


def _app() -> typer.Typer:
    """The app with all commands, in the order of their groups."""
    made = _typer(callback=_qmedoid, help=ABOUT)
    groups: dict[str, typer.Typer] = {}
    for panel, commands in COMMANDS.items():
        for name, (kind, runs) in commands.items():
            group, _, last = name.rpartition(" ")
            if group and group not in groups:
                groups[group] = _typer(help=_GROUPS[group])
                made.add_typer(groups[group], name=group, rich_help_panel=panel)
            register = (groups[group] if group else made).command
            register(last, cls=Command, help=inspect.getdoc(kind), rich_help_panel=None if group else panel)(
                _call(kind, runs)
            )
    return made


app = _app()
