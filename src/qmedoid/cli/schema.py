"""``qmedoid schema``: JSON Schemas (2020-12) of what commands print with ``--json``, one file each in ``schemas``."""

import json
from importlib.resources import files
from typing import Any

from qmedoid.cli._output import grid, plain_console, print_json, shown
from qmedoid.cli.more_options import SchemaOptions
from qmedoid.exceptions import ParameterError, some_of

_FOLDER = files("qmedoid.cli") / "schemas"
_SHARED = "shared"
# A file refers to the parts that it shares with others so; in what is printed they are its own.
_ELSEWHERE, _HERE = f"{_SHARED}.json#/$defs/", "#/$defs/"


def names() -> list[str]:
    """Commands that have a schema, such as ``"data list"``, and ``"error"``."""
    stems = (file.name.removesuffix(".json") for file in _FOLDER.iterdir())
    return sorted(stem.replace("-", " ") for stem in stems if stem != _SHARED)


def schema_of(name: str) -> dict[str, Any]:
    """The schema of one command, complete in itself: the shared parts that it needs are in ``$defs``."""
    if name not in names():
        raise ParameterError(f"There is no schema of {name!r}: there are those of {some_of(names(), 99)}.")
    found = _read(name)
    parts: dict[str, Any] = {}
    document: dict[str, Any] = _moved_here(found, _read(_SHARED)["$defs"], parts)
    return document | ({"$defs": dict(sorted(parts.items()))} if parts else {})


def run(options: SchemaOptions) -> None:
    """Print the schema of a command; without one what schemas there are, or in JSON all of them."""
    if options.command:
        print_json(schema_of(" ".join(options.command)), with_notes=False)
    elif options.json:
        print_json({name: schema_of(name) for name in names()}, with_notes=False)
    else:
        rows = [(name, shown(_read(name)["description"])) for name in names()]
        plain_console().print(grid(("schema", "what is printed"), rows, left=(0, 1)))


def _read(name: str) -> dict[str, Any]:
    text = (_FOLDER / f"{name.replace(' ', '-')}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _moved_here(value: Any, shared: dict[str, Any], parts: dict[str, Any]) -> Any:
    """The value with every reference to a shared part turned into one to ``$defs``; `parts` collects these."""
    if isinstance(value, list):
        return [_moved_here(one, shared, parts) for one in value]
    if not isinstance(value, dict):
        return value
    target = value.get("$ref")
    if isinstance(target, str) and target.startswith(_ELSEWHERE):
        name = target.removeprefix(_ELSEWHERE)
        if name not in parts:
            parts[name] = {}  # one that refers to itself is not followed twice
            parts[name] = _moved_here(shared[name], shared, parts)
        value = value | {"$ref": _HERE + name}
    return {key: one if key == "$ref" else _moved_here(one, shared, parts) for key, one in value.items()}
