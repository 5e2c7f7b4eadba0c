"""``qmedoid schema``: JSON Schemas (2020-12) of what commands print with ``--json``, made from typed documents."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from qmedoid.cli import documents
from qmedoid.cli.options import Json, Names, argument, command
from qmedoid.cli.output import grid, plain_console, print_json
from qmedoid.estimators.documents import RecalibrateDict, StabilityDict
from qmedoid.exceptions import ParameterError, some_of
from qmedoid.explain.documents import EffectDict, ExplainDict
from qmedoid.model.documents import Notes
from qmedoid.quantum.documents import CircuitRunDict
from qmedoid.report.documents import DiffDict, ReportDict
from qmedoid.spelling import printable
from qmedoid.tables.documents import CheckDict

DOCUMENTS: dict[str, Any] = {
    "check": CheckDict,
    "circuit export": documents.CircuitExportDict,
    "circuit plan": documents.CircuitPlanCommandDict,
    "circuit run": CircuitRunDict,
    "data fetch": documents.DataFetchDict,
    "data list": documents.DataListDict,
    "data where": documents.DataWhereDict,
    "demo": documents.DemoDict,
    "diff": DiffDict,
    "effect": EffectDict,
    "error": documents.ErrorDict,
    "evaluate": documents.EvaluateDict,
    "explain": ExplainDict,
    "export": documents.ExportDict,
    "fit": documents.FitDict,
    "importance": documents.ImportanceDict,
    "inspect": documents.InspectDict,
    "recalibrate": RecalibrateDict,
    "report": ReportDict,
    "reproduce": documents.ReproduceDict,
    "schema": dict[str, Any],
    "score": documents.ScoreDict,
    "stability": StabilityDict,
}
"""The document of each command, and that of an error."""
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def names() -> list[str]:
    """Commands that have a schema, such as ``"data list"``, and ``"error"``."""
    return sorted(DOCUMENTS)


@command("qmedoid schema score")
def run(
    command: Annotated[Names, argument("COMMAND", "Command, such as score or data list; or error.")] = None,
    *,
    json: Json = False,
) -> None:
    """Print the JSON Schema of what a command prints with --json.

    Without a command, it lists the schemas.
    """
    if command:
        print_json(schema_of(" ".join(command)), with_notes=False)
    elif json:
        print_json({name: schema_of(name) for name in names()}, with_notes=False)
    else:
        rows = [(name, printable(_about(name))) for name in names()]
        plain_console().print(grid(("schema", "what is printed"), rows, left=(0, 1)))


def schema_of(name: str) -> dict[str, Any]:
    """The schema of one command, complete in itself: documents that occur several times are in ``$defs``."""
    if name not in DOCUMENTS:
        raise ParameterError(f"There is no schema of {name!r}: there are those of {some_of(names(), 99)}.")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, "description": _about(name)}
    kind = DOCUMENTS[name]
    if not is_typeddict(kind):
        return {**head, **_schema(kind, {})}
    parts: dict[str, Any] = {}
    hints = {"notes": Notes, **get_type_hints(kind, include_extras=True)}
    document = {**head, **_object(hints, parts)}
    return document | ({"$defs": dict(sorted(parts.items()))} if parts else {})


def _about(name: str) -> str:
    kind = DOCUMENTS[name]
    return (
        str(kind.__doc__) if is_typeddict(kind) else "The JSON Schemas of all commands by name, or that of one command."
    )


def _object(hints: Mapping[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a typed dictionary by the types of its keys."""
    required = [key for key, hint in hints.items() if get_origin(hint) is not NotRequired]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": {key: _schema(hint, parts) for key, hint in hints.items()},
    }


def _schema(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; typed dictionaries that occur several times go into `parts`."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is NotRequired:
        return _schema(inside[0], parts)
    if origin is Annotated:
        more = [one if isinstance(one, Mapping) else {"description": one} for one in inside[1:]]
        return {key: value for found in (_schema(inside[0], parts), *more) for key, value in found.items()}
    if origin is Literal:
        return {"enum": list(inside)}
    if origin in (Union, UnionType):
        return _any_of([_schema(one, parts) for one in inside])
    if origin is list:
        return {"type": "array", **({} if inside[0] is Any else {"items": _schema(inside[0], parts)})}
    if origin is dict:
        return {"type": "object", **({} if inside[1] is Any else {"additionalProperties": _schema(inside[1], parts)})}
    if kind is Any:
        return {}
    if not is_typeddict(kind):
        return {"type": _PLAIN[kind]}
    if kind not in _shared():
        return _object(get_type_hints(kind, include_extras=True), parts)
    name = _shared()[kind]
    if name not in parts:
        parts[name] = {"description": kind.__doc__, **_object(get_type_hints(kind, include_extras=True), parts)}
    return {"$ref": f"#/$defs/{name}"}


def _any_of(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One of several schemas; where they are no parts, as one with several types."""
    if any("$ref" in one for one in found):
        return {"anyOf": list(found)}
    merged = {key: value for one in found for key, value in one.items()}
    if "enum" in merged:
        return {"enum": [value for one in found for value in one.get("enum", [None])]}
    return {**merged, "type": [one["type"] for one in found]}


@cache
def _shared() -> dict[Any, str]:
    """Names of the typed dictionaries that are met several times, in one document or in several, or beside another."""
    uses: dict[Any, int] = {}

    def look(kind: Any, times: int = 1) -> None:
        inside = get_args(kind)
        for one in inside:
            look(one, sum(map(is_typeddict, inside)))
        if is_typeddict(kind):
            is_new = kind not in uses
            uses[kind] = uses.get(kind, 0) + times
            if is_new:
                for hint in get_type_hints(kind, include_extras=True).values():
                    look(hint)

    for kind in DOCUMENTS.values():
        look(kind)
    # The name of a class in lower case, such as row_contribution.
    names = {kind: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__.removesuffix("Dict")) for kind in uses}
    return {kind: names[kind].lower() for kind, count in uses.items() if count > 1}
