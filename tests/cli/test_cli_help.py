"""The help of the commands, and what is said of a wrong call: what is missing, what names of other programs mean."""

import re
import shlex

import pytest

from qmedoid.cli.app import COMMANDS, PROGRAM, load_command
from qmedoid.cli.options import PANELS

ALL = {name: about for commands in COMMANDS.values() for name, (_, about) in commands.items()}


def test_help_lists_every_command_in_its_group_and_the_exit_codes(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for group, names in {"": PROGRAM.commands, "circuit": ("export", "plan", "run"), "data": ("list",)}.items():
        text = cli.ok(*group.split(), "--help").out
        assert max(map(len, text.splitlines())) <= 80
        for name in names:
            assert re.search(rf"^  {name} +[A-Z].*\.$", text, flags=re.MULTILINE), name
    text = cli.ok("--help").out
    places = [text.index(f"{group}:") for group in COMMANDS]
    assert places == sorted(places)
    for code in (0, 1, 2, 3, 4, 5, 130):
        assert re.search(rf"\b{code}: [A-Z]", text)


@pytest.mark.parametrize("name", ALL)
def test_help_of_a_command_has_a_sentence_for_every_option_and_examples_that_can_be_called(cli, monkeypatch, name):
    command, callback = load_command(name), vars(load_command(name).callback)
    assert command.help.partition("\n\n")[0] == ALL[name]
    for one in command.params:
        assert re.fullmatch(r"[A-Z].*[.]", one.help), one.name
        assert not re.search(r"<|>|\[|Whether", one.help), one.help
        if one.param_type_name == "option":
            assert one.rich_help_panel in (None, *PANELS)
            assert one.is_flag or one.metavar, f"{name}: say by metavar what --{one.name} takes."
        for choice in getattr(one.type, "choices", ()):
            assert re.search(rf"(?<![\w-]){choice}(?![\w-])", f"{one.metavar} {one.help}"), (
                f"{name} {one.name}: {choice}"
            )
    options = [one for one in command.params if one.param_type_name == "option"]
    assert set(callback["most_used"]) <= {one.name for one in options}
    assert len(callback["most_used"]) <= 8
    if len(options) > 3:
        assert {one.name for one in options if one.required} <= set(callback["most_used"])
    for line in callback["examples"]:
        words = shlex.split(line)
        assert words[: 1 + len(name.split())] == ["qmedoid", *name.split()]
        command.make_context(name, words[1 + len(name.split()) :])
        assert len(line) <= 80
    monkeypatch.setenv("COLUMNS", "80")
    text = cli.ok(*name.split(), "--help").out
    assert max(map(len, text.splitlines())) <= 80
    assert callback["examples"][0] in text


@pytest.mark.parametrize(
    ("name", "answer"),
    {
        "train": "qmedoid fit TABLE --target COLUMN",
        "predict": "qmedoid score MODEL TABLE -o FILE",
        "cross_validate": "--cv 5",
        "Shap": "qmedoid explain MODEL TABLE --row N",
        "scroe": "Did you mean 'score'?",
        "nonsense": "qmedoid --help lists the commands.",
    }.items(),
)
def test_commands_of_other_programs_are_answered(cli, name, answer):
    outcome = cli(name, "table.csv", "--anything", "3")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"There is no command '{name}'. " in outcome.err
    assert answer in outcome.err
    as_json = cli(name, "--json")
    assert as_json.code == as_json.json["exit_code"] == 2
    assert answer in as_json.json["error"]


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("fit", "t.csv"), "--target COLUMN is missing: Column that holds the classes. For example: qmedoid fit "),
        (("score", "m", "-o", "out.csv"), "TABLE is missing: "),
        (("score", "m", "t.csv", "-o", "out.csv", "--top", "0"), "'--top': It must be at least 1. Got 0 instead."),
        (("explain", "m", "t.csv", "--row", "x"), "'--row': It must be a whole number. Got 'x' instead."),
        (("fit", "t.csv", "--target", "y", "--seed", "-3"), "It must be from 0 to 2147483647. Got -3 instead."),
        (("fit", "t.csv", "--targt", "y"), "Did you mean '--target'?"),
        (("explain", "m", "t.csv", "--label", "3"), "qmedoid explain --help lists the options."),
    ],
)
def test_wrong_options_are_answered_with_what_to_write(cli, arguments, answer):
    outcome = cli(*arguments)
    assert outcome.code == 2
    assert answer in outcome.err
    assert cli(*arguments, "--json").json["exit_code"] == 2
