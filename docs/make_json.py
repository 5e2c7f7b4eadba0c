"""Makes the page of the JSON documents that commands print, from their schemas (`qmedoid.cli.documents`).

``python docs/make_json.py`` writes the tables into ``json.md``; with ``--check`` it writes nothing and fails when the
page differs from what would be written.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from marked_sections import table, write_or_check

from qmedoid.cli.documents import names, schema_of

PAGE = Path(__file__).parent / "json.md"
_DEFS = "#/$defs/"


def sections() -> dict[str, str]:
    """The tables of all commands, then those of the parts that several documents have."""
    schemas = [schema_of(name) for name in names()]
    parts = {name: part for schema in schemas for name, part in schema.pop("$defs", {}).items()}
    text = json.dumps([schemas, parts])
    uses = Counter(re.findall(r'"#/\$defs/(\w+)"', text))
    for alternatives in re.findall(r'/(\w+)"}, {"\$ref": "#/\$defs/(\w+)', text):
        uses.update(alternatives)
    once = {name: part for name, part in parts.items() if uses[name] == 1}
    schemas = [_inlined(schema, once) for schema in schemas]
    shared = [f"### {_heading(name)}\n\n{_told(_inlined(parts[name], once))}" for name in sorted(parts.keys() - once)]
    return {
        "commands": "\n\n".join(f"### `{schema['title']}`\n\n{_told(schema)}" for schema in schemas),
        "parts": "\n\n".join(shared),
    }


def _inlined(value: Any, parts: dict[str, Any]) -> Any:
    """A schema with these parts of it where they are used."""
    if isinstance(value, list):
        return [_inlined(one, parts) for one in value]
    if not isinstance(value, dict):
        return value
    part = parts.get(str(value.get("$ref")).removeprefix(_DEFS))
    if part is not None:
        return _inlined({**part, **{key: one for key, one in value.items() if key != "$ref"}}, parts)
    return {key: _inlined(one, parts) for key, one in value.items()}


def _told(schema: dict[str, Any]) -> str:
    """The description of a schema, and a table of its keys and of those within."""
    rows = [[f"`{key}`", kind, told] for key, kind, told in _keys(schema)]
    return "\n\n".join([schema["description"], *([table(["key", "type", "meaning"], rows, 3)] if rows else [])])


def _keys(schema: dict[str, Any], before: str = "") -> Iterator[tuple[str, str, str]]:
    """Every key with its type and meaning; `[]` stands for each item of a list, `*` for any key."""
    for key, value in schema.get("properties", {}).items():
        optional = "" if key in schema.get("required", ()) else ", may be absent"
        yield before + key, _kind(value) + optional, value["description"]
        yield from _within(value, before + key)
    if not before and isinstance(schema.get("additionalProperties"), dict):
        yield from _within(schema, "")


def _within(value: dict[str, Any], name: str) -> Iterator[tuple[str, str, str]]:
    for one in (value, *value.get("anyOf", ())) if name else ():
        yield from _keys(one, f"{name}.")
    for key, sign in (("items", "[]."), ("additionalProperties", ".*.")):
        if isinstance(value.get(key), dict):
            yield from _keys(value[key], f"{name}{sign}".lstrip("."))


def _kind(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return _link(value["$ref"])
    if "anyOf" in value:
        return " or ".join(_kind(one) for one in value["anyOf"])
    if "enum" in value:
        return ", ".join("null" if one is None else f"`{one}`" for one in value["enum"])
    if "type" not in value:
        return "any"
    kinds = [value["type"]] if isinstance(value["type"], str) else value["type"]
    of = {"array": value.get("items"), "object": value.get("additionalProperties")}
    shown = []
    for kind in kinds:
        inner = of.get(kind)
        told = "" if not isinstance(inner, dict) or "properties" in inner else f" of {_kind(inner)}"
        shown.append(kind + told)
    return " or ".join(shown)


def _link(target: str) -> str:
    name = target.removeprefix(_DEFS)
    return f"[{_heading(name)}](#{_heading(name).replace(' ', '-')})"


def _heading(name: str) -> str:
    return f"part {name.replace('_', ' ')}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    write_or_check(PAGE, sections(), check=parser.parse_args().check)
