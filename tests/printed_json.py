"""What commands print with ``--json`` is what their schemas say; tests that run commands check it here."""

import json
from functools import cache

from jsonschema import Draft202012Validator

from qmedoid.cli.documents import names, schema_of


@cache
def validator(name):
    """The validator of a command's document, or of ``"error"``."""
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def command_of(arguments):
    """The command among the arguments, such as ``"data list"``; None where it has no schema."""
    words = [str(word) for word in arguments]
    return next((name for name in (" ".join(words[:2]), words[0] if words else "") if name in names()), None)


def check_printed(arguments, printed):
    """Validate what a command printed, if it was asked for JSON; the document of an error by its own schema."""
    if "--json" not in map(str, arguments):
        return
    document, name = json.loads(printed), command_of(arguments)
    if name is None or "exit_code" in document:
        name = "error"
    problems = [f"{name}: {problem.json_path}: {problem.message}" for problem in validator(name).iter_errors(document)]
    assert not problems, "\n".join(problems) + "\nCONTRIBUTING.md says where the schema comes from."
