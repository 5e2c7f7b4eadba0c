"""The help of the commands: groups, panels, widths, examples; and what is said of names that other programs have."""

import re
import shlex

import pytest
from typer.main import get_command

from qmedoid.cli.app import COMMANDS, MOST_USED, app, load_command, meaning, panels, short
from qmedoid.cli.options import PANELS

ALL = {name: short for commands in COMMANDS.values() for name, (_, short) in commands.items()}
PROGRAM = get_command(app)


def context_of(name):
    return load_command(name).make_context(name, [], resilient_parsing=True)


def sections(text):
    """The headings of a help, with the first words of their lines."""
    return {
        title: re.findall(r"^  (\S+)", lines, flags=re.MULTILINE)
        for title, lines in re.findall(r"^(\w[^\n]*):\n((?:  [^\n]*\n)+)", text, flags=re.MULTILINE)
    }


def test_every_command_is_in_one_group_of_the_help(cli):
    shown = sections(cli.ok("--help").out)
    listed = [name for group in COMMANDS for name in shown[group]]
    assert sorted(listed) == sorted(PROGRAM.commands)
    assert shown["Start here"] == ["check", "fit", "score", "explain", "report"]
    assert len(ALL) == sum(map(len, COMMANDS.values()))


def test_short_helps_fit_on_their_lines(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for group in ((), ("circuit",), ("data",)):
        text = cli.ok(*group, "--help").out
        assert "..." not in text
        for title in {*COMMANDS, "Commands"} & {*sections(text)}:
            for name in sections(text)[title]:
                (line,) = re.findall(rf"^  {name} +(.*)$", text, flags=re.MULTILINE)
                assert re.fullmatch(r"[A-Z].*\.", line), f"{name}: {line}"


@pytest.mark.parametrize("name", ALL)
def test_list_of_commands_says_what_the_help_of_each_says_first(name):
    assert short(load_command(name)) == ALL[name]


@pytest.mark.parametrize("name", ALL)
def test_every_option_has_a_panel_and_a_sentence(name):
    command, context = load_command(name), context_of(name)
    for one in command.params:
        text = meaning(one, context)
        assert re.fullmatch(r"[A-Z].*\.", text), f"{name} {one.name}: {text!r}"
        assert not re.search(r"<|>|\[x|Whether", text), text
        if one.param_type_name == "option":
            assert one.rich_help_panel in PANELS, f"{name}: --{one.name} has no panel: qmedoid.cli.options.option."
            assert one.is_flag or one.metavar, f"{name}: say by metavar what --{one.name} takes."
        for choice in getattr(one.type, "choices", ()):
            assert re.search(rf"(?<![\w-]){choice}(?![\w-])", f"{one.metavar} {text}"), f"{name} {one.name}: {choice}"


@pytest.mark.parametrize("name", ALL)
def test_most_used_options_come_first_and_are_few(name):
    command = load_command(name)
    shown = panels(command, context_of(name))
    options = [one.name for one in command.get_params(context_of(name)) if one.param_type_name == "option"]
    assert sorted(one.name for inside in shown.values() for one in inside) == sorted(options)
    if len(options) > 3:
        assert next(iter(shown)) == MOST_USED
        assert len(shown[MOST_USED]) <= 8
        needed = {one.name for one in command.params if one.param_type_name == "option" and one.required}
        assert needed <= {one.name for one in shown[MOST_USED]}


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("name", ["", "circuit", "data", *ALL])
def test_help_is_as_wide_as_the_terminal(cli, monkeypatch, name, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = cli.ok(*name.split(), "--help").out.splitlines()
    examples = next((place for place, line in enumerate(lines) if re.match("Examples?:", line)), len(lines))
    assert max(map(len, lines[:examples])) <= columns
    assert max(map(len, lines)) <= 80  # a call is one line


@pytest.mark.parametrize("name", ALL)
def test_examples_are_calls_of_the_command(name):
    examples = vars(load_command(name).callback)["examples"]
    assert examples
    for line in examples:
        program, *words = shlex.split(line)
        own = name.split()
        assert [program, *words[: len(own)]] == ["qmedoid", *own]
        load_command(name).make_context(name, words[len(own) :])


def test_exit_codes_are_told_in_the_help(cli):
    text = cli.ok("--help").out
    assert sections(text)["Exit codes"] == ["0", "1", "2", "3", "4", "5", "130"]
    assert "the machine failed," not in text.replace("program or the machine failed,", "")


@pytest.mark.parametrize(
    ("name", "answer"),
    {
        "train": "qmedoid fit TABLE --target COLUMN",
        "predict": "qmedoid score MODEL TABLE -o FILE",
        "compare": "qmedoid diff OLD NEW",
        "monitor": "qmedoid score MODEL TABLE -o FILE",
        "deploy": "qmedoid export MODEL",
        "threshold": "qmedoid score MODEL TABLE -o FILE --threshold SHARE",
        "train-test": "qmedoid fit TABLE --target COLUMN --test 0.25",
        "cross_validate": "--cv 5",
        "Shap": "qmedoid explain MODEL TABLE --row N",
        "scroe": "Did you mean 'score'?",
        "nonsense": "qmedoid --help lists the commands.",
    }.items(),
)
def test_commands_of_other_programs_are_answered(cli, name, answer):
    outcome = cli(name, "table.csv", "--anything", "3")
    assert outcome.code == 2
    assert f"There is no command '{name}'. " in outcome.err
    assert answer in outcome.err
    assert outcome.out == ""
    assert len(outcome.err.splitlines()) <= 4
    as_json = cli(name, "--json")
    assert as_json.code == as_json.json["exit_code"] == 2
    assert answer in as_json.json["error"]


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("fit", "t.csv", "--label", "y"), "There is no option --label. Use: --target"),
        (("fit", "t.csv", "--target", "y", "--threshold", "0.3"), "Use: --operating-point"),
        (("fit", "t.csv", "--target", "y", "--output-file", "m"), "Use: --output"),
        (("fit", "t.csv", "--target", "y", "--n_folds", "5"), "Use: --cv"),
        (("fit", "--data", "t.csv"), "tables and models are given without one"),
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


def test_answers_name_commands_and_options_that_exist():
    from qmedoid.cli import app as helped

    for use in helped._COMMANDS.values():
        for call in re.findall(r"qmedoid ([a-z]+)", use):
            assert call in PROGRAM.commands
    assert not set(helped._COMMANDS) & set(PROGRAM.commands)
    names = {spelt for name in ALL for one in load_command(name).params for spelt in one.opts}
    for ours in helped._OPTIONS.values():
        assert set(ours) <= names
