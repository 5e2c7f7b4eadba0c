"""JSON Schemas of what commands print: every command has one, every key is described, and no other key is printed.

Whatever a test of the command line runs with ``--json`` is validated, too (`tests/printed_json.py`).
"""

import pytest
from small_tables import small_table, write
from tests.printed_json import validator

from qmedoid.cli.app import COMMANDS
from qmedoid.cli.documents import names, schema_of

# Those of `demo` and `reproduce` are validated in their own tests, which run them quickly.
ELSEWHERE = {"demo", "reproduce"}


def parts_of(schema):
    """Every schema within a schema."""
    yield schema
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from parts_of(schema[key])
    for one in (*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", [])):
        yield from parts_of(one)


@pytest.fixture(scope="module")
def printed(cli, two, three, tmp_path_factory):
    """What every command prints, by command, for two classes and for three."""
    pytest.importorskip("qiskit_aer")
    folder = tmp_path_factory.mktemp("printed")
    few = ["--limit", 1, "--shots", 8, "--n-qubits", 20]
    calls = {
        "check": ["check", two.file, "--target", "y"],
        "inspect": ["inspect", two.model],
        "score": ["score", two.model, two.file, "-o", folder / "out.csv"],
        "evaluate": ["evaluate", two.model, two.file],
        "report": ["report", two.model, two.file, "-o", folder / "two.html", "--cost", 5],
        "explain": ["explain", two.model, two.file, "--row", 3, "--known", two.file],
        "importance": ["importance", two.model, two.file],
        "effect": ["effect", two.model, two.file, "--column", "x1"],
        "circuit export": ["circuit", "export", two.model, "--format", "qasm"],
        "circuit plan": ["circuit", "plan", two.model, two.file, *few],
        "circuit run": ["circuit", "run", two.model, two.file, "-o", folder / "run", *few],
        "recalibrate": ["recalibrate", two.model, write(small_table(seed=5), folder / "new.csv"), "-o", folder / "new"],
        "diff": ["diff", two.model, folder / "new", two.file],
        "stability": ["stability", two.file, "--target", "y", "--bootstraps", 2, "--medoids", 4],
        "data list": ["data", "list"],
        "data fetch": ["data", "fetch", "wine", "-o", folder / "wine.csv"],
        "export": ["export", two.model, "--format", "sql", "-o", folder / "model.sql"],
        "schema": ["schema"],
    }
    found = {name: cli.ok(*call, "--json").json for name, call in calls.items()}
    in_three = {two.model: three.model, two.file: three.file, folder / "out.csv": folder / "three.csv",
                folder / "two.html": folder / "three.html"}  # fmt: skip
    for name in ("score", "evaluate", "explain", "inspect", "report"):
        cli.ok(*(in_three.get(argument, argument) for argument in calls[name]), "--json")
    wrong = cli("score", two.model, three.file, "-o", "", "--json")
    return found | {"fit": two.printed, "error": wrong.json}


def test_every_command_has_a_schema():
    assert {*names()} == {name for commands in COMMANDS.values() for name in commands} | {"error"}


def test_every_command_prints_what_its_schema_says(printed):
    assert {*printed} | ELSEWHERE == {*names()}
    for name, document in printed.items():
        validator(name).validate(document)


@pytest.mark.parametrize("name", names())
def test_every_key_is_described_in_a_line(name):
    schema = schema_of(name)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == name
    for part in parts_of(schema):
        for key, value in part.get("properties", {}).items():
            assert 1 < len(value["description"].split("\n")[0]) <= 120, key
            assert "\n" not in value["description"]
        assert {*part.get("required", ())} <= {*part.get("properties", ())}


def test_keys_that_are_not_described_are_refused(printed):
    for name, document in printed.items():
        if name in ("data list", "schema"):  # their keys are names
            continue
        assert validator(name).is_valid(document)
        assert not validator(name).is_valid(document | {"news": 1}), name
        for key in schema_of(name)["required"]:
            assert not validator(name).is_valid({other: value for other, value in document.items() if other != key})
    for name, key in (("fit", "held_out"), ("score", "novelty"), ("inspect", "operating")):
        assert not validator(name).is_valid(printed[name] | {key: printed[name][key] | {"news": 1}})


def test_schema_prints_what_is_in_the_package(cli, printed):
    assert {*printed["schema"]} == {*names()}
    for words in (["score"], ["data", "list"], ["data list"]):
        assert cli.ok("schema", *words).json == printed["schema"][" ".join(words)]
    listed = cli.ok("schema").out
    assert all(f"{name} " in listed for name in names())
    wrong = cli("schema", "scores")
    assert wrong.code == 2
    assert "There is no schema of 'scores': there are those of check, circuit export," in wrong.err
