"""The reference of the commands as Markdown, read from the app that runs them: it cannot fall behind."""

from collections.abc import Iterator
from typing import Any

from qmedoid.cli.app import COMMANDS, EXIT_CODES, PROGRAM, load_command


def markdown() -> str:
    """A section for each command: how it is called, what it does, its arguments and options, and examples."""
    program = PROGRAM
    lines = [program.help or "", ""]
    for group, commands in COMMANDS.items():
        listed = [f"- [{name}](#{name.replace(' ', '-')}): {about}" for name, (_, about) in commands.items()]
        lines += [f"**{group}**", "", *listed, ""]
    lines += _table("option", ((_spelled(one), one.help) for one in program.params))
    lines += ["## Exit codes", "", *_table("exit code", ((str(code), text) for code, text in EXIT_CODES.items()))]
    return "\n".join([*lines, *(line for group in COMMANDS.values() for name in group for line in _section(name))])


def _section(name: str) -> Iterator[str]:
    command = load_command(name)
    context = command.make_context(f"qmedoid {name}", [], resilient_parsing=True)
    usage = command.get_usage(context).removeprefix("Usage: ")
    examples = vars(command.callback)["examples"]
    yield from [f"## {name}", "", command.help, "", "```text", usage, "```", "", "```bash", *examples, "```", ""]
    panels: dict[str, list[tuple[str, str]]] = {}
    for one in command.get_params(context):
        is_argument = one.param_type_name == "argument"
        panel = "argument" if is_argument else getattr(one, "rich_help_panel", None) or "option"
        panels.setdefault(panel, []).append((one.metavar if is_argument else _spelled(one), _meaning(one, context)))
    for title, rows in panels.items():
        yield from _table(title, rows)


def _spelled(option: Any) -> str:
    """How an option is written: its names and what it takes."""
    names = ", ".join(sorted([*option.opts, *option.secondary_opts], key=len))
    return names if option.is_flag else f"{names} {option.metavar}"


def _meaning(parameter: Any, context: Any) -> str:
    """What an option or argument means, with its default."""
    default, text = parameter.get_default(context, call=False), parameter.help or ""
    if parameter.required and parameter.param_type_name == "option":
        return f"{text} Required."
    if isinstance(default, bool):
        return f"{text} Default: yes." if default else text
    return text if default in (None, ()) else f"{text} Default: {default}."


def _table(title: str, rows: Any) -> list[str]:
    lines = [f"| `{_cell(first)}` | {_cell(text)} |" for first, text in rows]
    return [f"| {title} | meaning |", "|---|---|", *lines, ""] if lines else []


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
