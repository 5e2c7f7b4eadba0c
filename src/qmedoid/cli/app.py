"""The commands of ``qmedoid`` and their help; only the module of the one that is called is imported.

Names that other programs have for commands are answered with ours.
"""

import inspect
import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from qmedoid.cli.options import PANELS
from qmedoid.exceptions import ModelError
from qmedoid.spelling import did_you_mean

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
        "circuit plan": ("circuit.plan", "Say what a measurement would take; no circuit runs."),
        "circuit run": ("circuit.run", "Measure the records of a table on a device, into a folder."),
        "data list": ("data.list_sets", "List the data sets, and where each comes from."),
        "data fetch": ("data.fetch", "Write a data set to a file."),
        "schema": ("documents.run", "Print the JSON Schema of what a command prints with --json."),
    },
}
"""Commands by their groups in the help: the function of this package that runs each, and its help in a sentence."""
_GROUPS = {
    "circuit": "Export a model's circuits, or run them (extra 'quantum').",
    "data": "List the paper's data sets, and write them to files.",
}


WRONG_CALL: Any = typer.BadParameter.__mro__[2]
"""The base of all errors about a wrong call; its place differs from one version of Typer to the next."""

EXIT_CODES = {
    0: "All went well.",
    1: "The program or the machine failed: disk, memory, a missing extra.",
    2: "The call is wrong: no such command, option or value.",
    3: "The table cannot be used, or breaks the model's contract.",
    4: "The model file cannot be read.",
    5: "Two models differ (only of diff --exit-code).",
    130: "Interrupted by Ctrl-C.",
}
_ELSEWHERE = {
    "qmedoid fit TABLE --target COLUMN": "train learn build create update",
    "qmedoid score MODEL TABLE -o FILE": "predict predict-proba classify infer apply batch monitor drift",
    "qmedoid fit TABLE --target COLUMN --compare": "compare benchmark baseline baselines",
    "qmedoid fit TABLE --target COLUMN --cv 5": "cv cross-validate cross-validation",
    "qmedoid export MODEL --format sql (or js, onnx)": "deploy serve convert onnx sql",
    "qmedoid evaluate MODEL TABLE": "validate eval test metrics accuracy confusion",
    "qmedoid explain MODEL TABLE --row N": "why shap lime interpret reasons",
    "qmedoid importance MODEL": "importances feature-importance features",
    "qmedoid inspect MODEL": "show info describe card",
    "qmedoid recalibrate MODEL TABLE -o FILE": "calibrate calibration",
    "qmedoid check TABLE --target COLUMN": "profile eda summary lint",
    "qmedoid data list": "datasets dataset download",
    "qmedoid --help": "help",
}
_COMMANDS = {name: use for use, names in _ELSEWHERE.items() for name in names.split()}
"""What other programs call a command, and what does it here."""


class Command(TyperCommand):
    """A command whose help has panels without Rich, whose import takes longer than the help."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options and commands by their panels."""
        _write_panels(self, ctx, formatter)


class CommandGroup(TyperGroup):
    """Commands that are known by name and by a sentence until they are called."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write options and commands by their panels."""
        _write_panels(self, ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, and import it."""
        name, command, rest = super().resolve_command(ctx, args)
        known_as = getattr(getattr(command, "callback", None), "known_as", None)
        return name, command if known_as is None else load_command(known_as), rest


def _write_panels(command: Any, context: Any, formatter: Any) -> None:
    panels: dict[str, list[tuple[str, str]]] = {}
    for one in command.get_params(context):
        kind = "Arguments" if one.param_type_name == "argument" else "Options"
        panels.setdefault(getattr(one, "rich_help_panel", None) or kind, []).append(one.get_help_record(context))
    for name, one in getattr(command, "commands", {}).items():
        panels.setdefault(one.rich_help_panel or "Commands", []).append((name, one.help or ""))
    for title, rows in panels.items():
        with formatter.section(title):
            formatter.write_dl(rows)


def explain_call(error: Any) -> None:
    """Say in an error about a wrong call what to write instead; names of other programs are answered with ours."""
    command: Any = getattr(error.ctx, "command", None)
    kind = type(error).__name__
    help_of = f"{error.ctx.command_path} --help lists the" if command else ""
    if kind == "NoSuchOption":
        known = [name for one in command.params for name in (*one.opts, *one.secondary_opts)]
        said = did_you_mean(error.option_name, known) or f" {help_of} options."
        error.message, error.possibilities = f"There is no option {error.option_name}.{said}", None
    elif kind == "MissingParameter":
        one = error.param
        names = "" if one.param_type_name == "argument" else f"{max(one.opts, key=len)} "
        example = vars(command.callback)["examples"][0]
        error.message = f"{names}{one.metavar} is missing: {one.help} For example: {example}"
        error.format_message = lambda: error.message
    elif found := re.fullmatch(r"No such command '(.*)'\.(?s:.*)", error.message):
        name, groups = found[1], command.commands
        use = _COMMANDS.get(name.lower().replace("_", "-")) if error.ctx.parent is None else None
        said = f" Use: {use}" if use else did_you_mean(name, groups) or f" {help_of} commands."
        error.message = f"There is no command {name!r}.{said}"
    # "0 is not in the range x>=1."
    elif found := re.fullmatch(r"(\S+) is not in the range (?:x>=(\S+)|(\S+)<=x<=(\S+))\.", error.message):
        got, least, low, high = found.groups()
        error.message = f"It must be {f'at least {least}' if least else f'from {low} to {high}'}. Got {got} instead."
    # "'x' is not a valid int range."
    elif found := re.fullmatch(r"(.+) is not a valid (?:int|integer|int range|integer range)\.", error.message):
        error.message = f"It must be a whole number. Got {found[1]} instead."


def load_command(name: str) -> Any:
    """A command with its options: the parameters of its function, or the fields of those that are dataclasses."""
    module, function = next(commands[name][0] for commands in COMMANDS.values() if name in commands).split(".")
    run = getattr(import_module(f"qmedoid.cli.{module}"), function)
    own = inspect.signature(run).parameters
    bundles: dict[str, Any] = {name: one.annotation for name, one in own.items() if is_dataclass(one.annotation)}
    every = [
        field.replace(kind=field.KEYWORD_ONLY)
        for name, one in own.items()
        for field in (inspect.signature(bundles[name]).parameters.values() if name in bundles else [one])
    ]

    def call(**given: Any) -> Any:
        arguments = {name: value for name, value in given.items() if name in own}
        for name, kind in bundles.items():
            arguments[name] = kind(**{field.name: given[field.name] for field in fields(kind)})
        try:
            return run(**arguments)
        except ModelError:
            _refuse_swapped(given.get("model"), given.get("table"))
            raise

    call.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    vars(call).update(most_used=run.most_used, examples=run.examples)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    epilog = "\n".join(["\b", "Examples:", *run.examples])
    alone.command(name.split()[-1], cls=Command, help=inspect.getdoc(run), epilog=epilog)(call)
    command: Any = typer.main.get_command(alone)
    for one in command.params:
        if one.name in run.most_used:
            one.rich_help_panel = None  # the first one
    order = {None: -1} | {panel: place for place, panel in enumerate(PANELS)}
    command.params.sort(key=lambda one: order[one.rich_help_panel])
    return command


def _refuse_swapped(model: Any, table: Any) -> None:
    """Say that a table and a model stand in the wrong order, where that is why no model could be loaded."""
    from zipfile import is_zipfile  # slow, and needed after an error only

    if model is not None and isinstance(table, str) and not is_zipfile(model) and is_zipfile(table):
        found = f"{str(model)!r} is no model, and {table!r} may be one"
        raise ModelError(f"The model comes first, then the table: {found}.")


def _print_version() -> NoReturn:
    from qmedoid import __version__
    from qmedoid.kernels.backend import kernels_in_use

    typer.echo(f"qmedoid {__version__}\nkernels: {kernels_in_use()}")
    raise typer.Exit


ABOUT = (
    "A scikit-learn classifier for tables that adds up boosted trees, nearest neighbors and distances to a few dozen "
    "real rows, and shows every decision as an exact sum: which columns, which real rows, how much."
)


def _typer(**more: Any) -> typer.Typer:
    return typer.Typer(
        cls=CommandGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        **more,
    )


def _not_imported(name: str) -> Any:
    def call() -> None:
        """Nothing: `CommandGroup` takes the command itself."""

    vars(call).update(known_as=name)
    return call


def _program() -> Any:
    """The program with all commands, in the order of their groups."""
    codes = [f"  {code}: {text}" for code, text in EXIT_CODES.items()]
    made = _typer(help=ABOUT, epilog="\n".join(["\b", "Exit codes:", *codes]))
    groups: dict[str, typer.Typer] = {}
    for panel, commands in COMMANDS.items():
        for name, (_, short) in commands.items():
            group, _, last = name.rpartition(" ")
            if group and group not in groups:
                groups[group] = _typer(help=_GROUPS[group])
                made.add_typer(groups[group], name=group, rich_help_panel=panel)
            register = (groups[group] if group else made).command
            register(last, help=short, rich_help_panel=None if group else panel)(_not_imported(name))
    whole = typer.main.get_command(made)
    about = "Print the version, and which kernels are in use."
    print_version = lambda _, __, is_given: is_given and _print_version()  # noqa: E731 (a name for what is called)
    version: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": print_version}
    whole.params.insert(0, TyperOption(param_decls=["--version"], help=about, **version))
    return whole


PROGRAM = _program()
