"""The reference of the commands as Markdown, read from the app that runs them: it cannot fall behind."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from qmedoid.cli.app import app


def markdown() -> str:
    """A section for each command: how it is called, what it does, its arguments and options with their defaults."""
    return "\n".join(line for name, command in _commands(get_command(app)) for line in _section(name, command))


def _commands(group: Any, before: str = "qmedoid") -> Iterator[tuple[str, Any]]:
    """All commands by their full names, those of a group after it."""
    yield before, group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before} {name}")
        elif not command.hidden:
            yield f"{before} {name}", command


def _section(name: str, command: Any) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    pieces = " ".join(command.collect_usage_pieces(context))
    yield from [f"## {name.removeprefix('qmedoid ')}", "", command.help or "", ""]
    yield from ["```text", f"{name} {pieces}", "```", ""]
    for kind in ("argument", "option"):
        records = [one.get_help_record(context) for one in command.params if one.param_type_name == kind]
        rows = [f"| {_code(spelled)} | {_cell(meaning)} |" for spelled, meaning in filter(None, records)]
        if rows:
            yield from [f"| {kind} | meaning |", "|---|---|", *rows, ""]


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
