"""The commands of ``qmedoid``; only the module of the one that is called is imported, so that ``--help`` is quick."""

import inspect
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer

from qmedoid.cli._help import Command, Group
from qmedoid.cli.options import OUTPUT
from qmedoid.exceptions import ModelError

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Start here": {
        "check": ("check.run", "Show how each column would be read, and what is odd about it."),
        "fit": ("fit.run", "Learn from a table, say how good the model is, save it."),
        "score": ("score.run", "Predict: a class and a score for each row of a table."),
        "explain": ("explain.run", "Say why a row got its class: what each column contributes."),
        "report": ("report.run", "Write one page: how good a model is, and what decides."),
    },
    "Look closer": {
        "evaluate": ("evaluate.run", "Compare a model's decisions with the true classes."),
        "importance": ("importance.run", "Show how much each column counts (feature importance)."),
        "effect": ("importance.effect", "Show what the values of one column add to the decisions."),
        "inspect": ("inspect.run", "Show what is in a saved model, and how good it was."),
        "stability": ("stability.run", "Refit samples of the rows, and count decisions that change."),
    },
    "Deploy it, keep it healthy": {
        "export": ("export.run", "Write a model as JavaScript, SQL or ONNX, to deploy it."),
        "diff": ("diff.run", "Show what changed from one model to another."),
        "recalibrate": ("recalibrate.run", "Fit probabilities and threshold to newly labeled rows."),
    },
    "Research": {
        "demo": ("demo.run", "Fit a shipped table, explain a decision and write a report."),
        "reproduce": ("reproduce.run", "Run the paper's experiments again, and set ours beside them."),
        "circuit export": ("circuit.export", "Draw a circuit, or write it for other tools."),
        "circuit plan": ("circuit_run.plan", "Say what a measurement would take; no circuit runs."),
        "circuit run": ("circuit_run.run", "Measure the records of a table on a device, into a folder."),
        "data list": ("data.list_sets", "List the data sets, and where each comes from."),
        "data where": ("data.where", "Print the path of a data set's file on this machine."),
        "data fetch": ("data.fetch", "Write a data set to a file."),
        "schema": ("schema.run", "Print the JSON Schema of what a command prints with --json."),
    },
}
"""Commands by their groups in the help: the function of this package that runs each, and its help in a sentence."""
_GROUPS = {
    "circuit": "Export a model's circuits, or run them (extra 'quantum').",
    "data": "List the paper's data sets, and write them to files.",
}


def load_command(name: str) -> Any:
    """A command with its options: those are the fields of what its function takes, and the docstring is the help."""
    runs = next(commands[name][0] for commands in COMMANDS.values() if name in commands)
    module, function = runs.split(".")
    run = getattr(import_module(f"qmedoid.cli.{module}"), function)
    (kind,) = (hint for key, hint in get_type_hints(run).items() if key != "return")

    def call(**given: Any) -> Any:
        try:
            return run(kind(**given))
        except ModelError:
            _refuse_swapped(given.get("model"), given.get("table"))
            raise

    call.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    vars(call).update(most_used=kind.most_used, examples=kind.examples)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name.split()[-1], cls=Command, help=inspect.getdoc(kind))(call)
    return typer.main.get_command(alone)


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
        "--version",
        callback=lambda asked: asked and _print_version(),
        is_eager=True,
        help="Print the version, and which kernels are in use.",
        rich_help_panel=OUTPUT,
    ),
]


def _qmedoid(version: Version = False) -> None:
    """Say what the program is."""


ABOUT = (
    "A scikit-learn classifier for tables that adds up boosted trees, nearest neighbors and distances to a few dozen "
    "real rows, and shows every decision as an exact sum: which columns, which real rows, how much."
)


class LazyGroup(Group):
    """Commands that are known by name and by a sentence until one of them is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, and import it."""
        name, command, rest = super().resolve_command(ctx, args)
        known_as = getattr(getattr(command, "callback", None), "known_as", None)
        return name, command if known_as is None else load_command(known_as), rest


def _typer(**more: Any) -> typer.Typer:
    return typer.Typer(
        cls=LazyGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        **more,
    )


def _not_imported(name: str) -> Any:
    def call() -> None:
        """Nothing: `LazyGroup` takes the command itself."""

    vars(call).update(known_as=name)
    return call


def _app() -> typer.Typer:
    """The app with all commands, in the order of their groups."""
    made = _typer(callback=_qmedoid, help=ABOUT)
    groups: dict[str, typer.Typer] = {}
    for panel, commands in COMMANDS.items():
        for name, (_, short) in commands.items():
            group, _, last = name.rpartition(" ")
            if group and group not in groups:
                groups[group] = _typer(help=_GROUPS[group])
                made.add_typer(groups[group], name=group, rich_help_panel=panel)
            register = (groups[group] if group else made).command
            register(last, help=short, rich_help_panel=None if group else panel)(_not_imported(name))
    return made


app = _app()
