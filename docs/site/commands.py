"""The reference of the commands as Markdown, read from the app that runs them: it cannot fall behind."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from qmedoid.cli._help import EXIT_CODES, meaning, panels, short, spelled, usage
from qmedoid.cli.app import app, load_command


def markdown() -> str:
    """A section for each command: how it is called, what it does, its arguments and options, and examples."""
    program = get_command(app)
    own = _table("option", ((spelled(one), one.help) for one in program.params))
    codes = _table("exit code", ((str(code), text) for code, text in EXIT_CODES.items()))
    lines = [program.help or "", "", *_overview(program), *own, "## Exit codes", "", *codes]
    return "\n".join([*lines, *(line for name, command in _commands(program) for line in _section(name, command))])


def _overview(program: Any) -> Iterator[str]:
    """The commands in their groups."""
    shown: dict[str, list[str]] = {}
    for name, command in program.commands.items():
        line = f"[{name}](#{name.replace(' ', '-')})" if not hasattr(command, "commands") else f"`{name}`"
        shown.setdefault(command.rich_help_panel, []).append(f"- {line}: {short(command)}")
    for group, lines in shown.items():
        yield from [f"**{group}**", "", *lines, ""]


def _commands(group: Any, before: str = "qmedoid") -> Iterator[tuple[str, Any]]:
    """All commands by their full names, those of a group in its place."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before} {name}")
        else:
            full = f"{before} {name}"
            yield full, load_command(full.removeprefix("qmedoid "))


def _section(name: str, command: Any) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    yield from [f"## {name.removeprefix('qmedoid ')}", "", command.help, ""]
    examples = vars(command.callback)["examples"]
    yield from ["```text", " ".join([name, *usage(command)]), "```", "", "```bash", *examples, "```", ""]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    yield from _table("argument", ((one.metavar, meaning(one, context)) for one in arguments))
    for title, options in panels(command, context).items():
        yield from _table(title, ((spelled(one), meaning(one, context)) for one in options))


def _table(title: str, rows: Any) -> list[str]:
    lines = [f"| `{_cell(first)}` | {_cell(text)} |" for first, text in rows]
    return [f"| {title} | meaning |", "|---|---|", *lines, ""] if lines else []


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
