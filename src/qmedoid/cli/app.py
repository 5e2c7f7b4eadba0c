"""The commands of ``qmedoid`` and their help; only the module of the one that is called is imported.

``--help`` prints commands in groups and options in panels; names of other programs are answered with ours.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from qmedoid.cli.options import OUTPUT, PANELS
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
MOST_USED = "Most used"
# Columns of a terminal for names; of longer ones the meaning is on the next line.
_WIDEST = 26

_FIT, _SCORE = "qmedoid fit TABLE --target COLUMN", "qmedoid score MODEL TABLE -o FILE"
_EVALUATE, _EXPLAIN = "qmedoid evaluate MODEL TABLE", "qmedoid explain MODEL TABLE --row N"
_ELSEWHERE = {
    "train learn build model create retrain update": _FIT,
    "predict predict-proba classify infer apply run batch": _SCORE,
    "compare benchmark baseline baselines": f"{_FIT} --compare (plain baselines) or qmedoid diff OLD NEW (two models)",
    "monitor drift watch": f"{_SCORE} (alert rate and values against the training rows) or {_EVALUATE} (new labels)",
    "deploy serve convert onnx sql": "qmedoid export MODEL --format sql (or js, onnx) or " + _SCORE,
    "threshold cutoff operating-point budget": f"{_FIT} --alert-rate SHARE or {_SCORE} --threshold SHARE",
    "train-test split holdout test": f"{_FIT} --test 0.25",
    "cv cross-validate cross-validation crossval": f"{_FIT} --cv 5",
    "validate eval metrics accuracy confusion": _EVALUATE,
    "why shap lime interpret reason reasons": _EXPLAIN,
    "importances feature-importance feature-importances features": "qmedoid importance MODEL",
    "pdp partial-dependence ice plot": "qmedoid effect MODEL TABLE --column COLUMN",
    "show info describe card view cat": "qmedoid inspect MODEL",
    "calibrate calibration": "qmedoid recalibrate MODEL TABLE -o FILE",
    "profile eda summary analyze lint": "qmedoid check TABLE --target COLUMN",
    "html dashboard page": "qmedoid report MODEL TABLE",
    "bootstrap robustness": "qmedoid stability TABLE --target COLUMN",
    "datasets dataset download fetch": "qmedoid data list",
    "quantum qasm qiskit": "qmedoid circuit --help",
    "example try tutorial": "qmedoid demo",
    "help": "qmedoid --help, or qmedoid COMMAND --help",
    "version": "qmedoid --version",
}
_COMMANDS = {name: use for names, use in _ELSEWHERE.items() for name in names.split()}
"""What other programs call a command, and what does it here."""

_OPTIONS = {
    name: theirs.split()
    for names, theirs in {
        "label labels y target-column label-column class-column response outcome": "--target",
        "out output-file outfile save model-file model-out output-dir": "--output",
        "threshold cutoff": "--threshold --operating-point",
        "fpr alerts alert-budget contamination": "--alert-rate",
        "top-k topk k": "--top",
        "sep separator delim": "--delimiter",
        "random-state random-seed": "--seed",
        "test-size test-split holdout": "--test",
        "validation validation-split": "--valid",
        "folds n-folds kfold k-fold n-splits": "--cv",
        "weights weight sample-weight sample-weights": "--weight-column",
        "balanced class-weights scale-pos-weight": "--class-weight",
        "group groups": "--group-column",
        "time date-column timestamp": "--time-column",
        "n-medoids prototypes": "--medoids",
        "n-neighbors": "--neighbors",
        "drop exclude skip-columns": "--ignore",
        "categorical cat-features": "--category",
        "pos-label positive-class": "--positive",
        "id ids id-column keep-columns": "--columns",
        "proba probabilities predict-proba": "--add",
        "index record": "--row",
        "n-bootstraps samples": "--bootstraps",
        "overwrite": "--force",
        "n-jobs workers": "--jobs --dask",
        "nrows sample n-rows": "--max-rows --limit",
        "timeout max-time": "--time-limit",
    }.items()
    for name in names.split()
}
"""What other programs call an option, and what it may be called here."""
_ARGUMENTS = {"data", "input", "csv", "train", "file", "table", "input-file", "model", "x"}
"""Options of other programs for what is an argument here."""


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def spelled(option: Any) -> str:
    """How an option is written: its names and what it takes."""
    if option.secondary_opts:
        return ", ".join(name.replace("--", "--[no-]", 1) for name in option.opts)
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag else f"{names} {option.metavar}"


def meaning(parameter: Any, context: Any) -> str:
    """What an option or argument means, with its default."""
    default = parameter.get_default(context, call=False)
    text = parameter.help or ""
    if parameter.required and not _is_argument(parameter):
        return f"{text} Required."
    if isinstance(default, bool):
        return f"{text} Default: yes." if default else text
    return text if default in (None, ()) else f"{text} Default: {default}."


def short(command: Any) -> str:
    """The first sentence of a command's help."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def panels(command: Any, context: Any) -> dict[str, list[Any]]:
    """Options of a command by their panels, those that it is used with most first."""
    first = getattr(command.callback, "most_used", ())
    found: dict[str, list[Any]] = {name: [] for name in (MOST_USED, *PANELS)}
    options = [one for one in command.get_params(context) if not _is_argument(one) and not one.hidden]
    for one in options:
        if one.name not in first:
            # The option of help has none in older versions of Typer.
            found.setdefault(getattr(one, "rich_help_panel", None) or PANELS[-1], []).append(one)
    by_name = {one.name: one for one in options}
    found[MOST_USED] = [by_name[name] for name in first]
    if not first:
        return {"Options": [one for inside in found.values() for one in inside]}
    return {name: inside for name, inside in found.items() if inside}


def usage(command: Any) -> list[str]:
    """The pieces of a call: arguments, options that it needs, and others."""
    arguments = [one for one in command.params if _is_argument(one)]
    needed = [one for one in command.params if not _is_argument(one) and one.required]
    pieces = [one.metavar if one.required else f"[{one.metavar}]" for one in arguments]
    return [*pieces, *(f"{max(one.opts, key=len)} {one.metavar}" for one in needed), "[OPTIONS]"]


class Command(TyperCommand):
    """A command whose help has its options in panels, and examples."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The pieces of the usage line."""
        return usage(self)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        arguments = [(one.metavar or "", meaning(one, ctx)) for one in self.params if _is_argument(one)]
        parts = {"Arguments": arguments} if arguments else {}
        for title, inside in panels(self, ctx).items():
            parts[title] = [(spelled(one), meaning(one, ctx)) for one in inside]
        _write(formatter, parts)
        examples: tuple[str, ...] = vars(self.callback)["examples"]
        with formatter.section(_heading("Examples" if len(examples) > 1 else "Example")):
            for line in examples:
                formatter.write(f"  {line}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a call; what is wrong in it is answered with what to write."""
        try:
            return super().parse_args(ctx, args)
        except WRONG_CALL as error:
            kind = type(error).__name__
            if kind == "NoSuchOption":
                known = [name for one in self.params for name in (*one.opts, *one.secondary_opts)]
                ctx.fail(no_such_option(error.option_name, known, ctx))
            if kind == "MissingParameter":
                what = error.param.metavar if _is_argument(error.param) else spelled(error.param)
                example = vars(self.callback)["examples"][0]
                ctx.fail(f"{what} is missing: {error.param.help} For example: {example}")
            # "0 is not in the range x>=1."
            if found := re.fullmatch(r"(\S+) is not in the range (?:x>=(\S+)|(\S+)<=x<=(\S+))\.", error.message):
                got, least, low, high = found.groups()
                error.message = (
                    f"It must be {f'at least {least}' if least else f'from {low} to {high}'}. Got {got} instead."
                )
            # "'x' is not a valid int range."
            if found := re.fullmatch(r"(.+) is not a valid (?:int|integer|int range|integer range)\.", error.message):
                error.message = f"It must be a whole number. Got {found[1]} instead."
            raise


class CommandGroup(TyperGroup):
    """Commands whose help has them in groups; each is known by name and by a sentence until it is called."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write groups of commands, options, and for the whole program its exit codes."""
        parts: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            group = getattr(command, "rich_help_panel", None) or "Commands"
            parts.setdefault(group, []).append((name, short(command)))
        _write(formatter, parts)
        _write(formatter, {"Options": [(spelled(one), meaning(one, ctx)) for one in self.get_params(ctx)]})
        if ctx.parent is None:
            _write(formatter, {"Exit codes": [(str(code), text) for code, text in EXIT_CODES.items()]})

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The pieces of the usage line."""
        return ["COMMAND", "[OPTIONS]"]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, and import it; one of another program is answered with ours."""
        if args and args[0] not in self.commands and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(no_such_command(args[0], self.commands, ctx))
        name, command, rest = super().resolve_command(ctx, args)
        known_as = getattr(getattr(command, "callback", None), "known_as", None)
        return name, command if known_as is None else load_command(known_as), rest


def no_such_command(name: str, known: Iterable[str], context: Any) -> str:
    """What is said of a command that does not exist."""
    use = _COMMANDS.get(name.lower().replace("_", "-")) if context.parent is None else None
    if use is not None:
        return f"There is no command {name!r}. Use: {use}"
    close = did_you_mean(name, known)
    return f"There is no command {name!r}.{close or f' {context.command_path} --help lists the commands.'}"


def no_such_option(name: str, known: Iterable[str], context: Any) -> str:
    """What is said of an option that does not exist."""
    known, plain = list(known), name.lstrip("-").lower().replace("_", "-")
    use = next((one for one in _OPTIONS.get(plain, ()) if one in known), None)
    if use is not None:
        return f"There is no option {name}. Use: {use}"
    if plain in _ARGUMENTS:
        return f"There is no option {name}: tables and models are given without one."
    close = did_you_mean(name, known)
    return f"There is no option {name}.{close or f' {context.command_path} --help lists the options.'}"


def _heading(name: str) -> str:
    return typer.style(name, bold=True)


def _write(formatter: Any, parts: dict[str, list[tuple[str, str]]]) -> None:
    """Write sections whose second columns begin at one place; lines end at blanks, and not within ``held-out``."""
    wide = min(max(len(first) for rows in parts.values() for first, _ in rows), _WIDEST)
    indent = " " * (wide + 4)
    for title, rows in parts.items():
        with formatter.section(_heading(title)):
            for first, text in rows:
                lines = textwrap.wrap(
                    text, formatter.width - len(indent), break_on_hyphens=False, break_long_words=False
                )
                head = f"  {first.ljust(wide)}  " if len(first) <= wide else f"  {first}\n{indent}"
                formatter.write(head + f"\n{indent}".join(lines) + "\n")


def load_command(name: str) -> Any:
    """A command with its options: parameters of its function, or fields of the class that it takes, with their help."""
    runs = next(commands[name][0] for commands in COMMANDS.values() if name in commands)
    module, function = runs.split(".")
    run = getattr(import_module(f"qmedoid.cli.{module}"), function)
    takes_class = [*inspect.signature(run).parameters] == ["options"]
    kind = get_type_hints(run)["options"] if takes_class else run

    def call(**given: Any) -> Any:
        try:
            return run(kind(**given)) if takes_class else run(**given)
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
    from qmedoid.kernels.backend import kernels_in_use

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
