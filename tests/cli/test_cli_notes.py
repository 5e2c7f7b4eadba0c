"""Notes of a command: on standard error once, and all of them in its JSON; and what a stopped command has kept."""

import pytest
from small_tables import replaced, small_table, write

from qmedoid import MedoidClassifier

QUICK = ("--target", "y", "--medoids", "6", "--neighbors", "0", "--refine", "never")


def told(outcome):
    """The notes on standard error."""
    return [line.removeprefix("note: ") for line in outcome.err.splitlines() if line.startswith("note: ")]


@pytest.fixture(scope="module")
def untidy(tmp_path_factory):
    """A table with rows without a class, a constant column, an id and classes that differ by blanks."""
    table = small_table(n=120)
    labels = [
        None if place % 20 == 0 else label + " " * (place % 3) for place, label in enumerate(table["y"].to_pylist())
    ]
    table = replaced(table, "y", [labels]).append_column("same", [["a"] * 120])
    return write(table, tmp_path_factory.mktemp("untidy") / "t.csv")


def test_json_of_a_fit_has_every_note_of_its_text(cli, untidy, tmp_path):
    arguments = ("fit", untidy, *QUICK, "-o", tmp_path / "m", "--alert-rate", "20%", "--max-rows", 110)
    text, document = cli.ok(*arguments), cli.ok(*arguments, "--json").json
    assert sorted(map(str.casefold, told(text))) == sorted(map(str.casefold, document["notes"]))
    for words in (
        "have no class in 'y'",
        "random sample of 110",
        "'same' was left out",
        "differ from another by blanks",
    ):
        assert sum(words in note for note in document["notes"]) == 1


def test_json_of_other_commands_has_their_warnings(cli, two, tmp_path):
    changed = replaced(two.table, "color", [["violet"] * 90])
    file = write(replaced(changed, "x2", changed["x2"], "X 2"), tmp_path / "t.csv")
    for arguments in (("score", two.model, file, "-o", tmp_path / "o.csv"), ("evaluate", two.model, file),
                      ("explain", two.model, file, "--row", 3)):  # fmt: skip
        notes = cli.ok(*arguments, "--on-mismatch", "warn", "--json").json["notes"]
        assert any("missing: 'x2' (number); did you mean 'X 2'?" in note for note in notes), arguments
        assert len(notes) == len(set(notes))
    assert cli.ok("inspect", two.model, "--json").json["notes"] == []
    assert cli.ok("data", "list", "--json").json["notes"] is not None
    assert cli("score", two.model, file, "-o", tmp_path / "o.csv", "--json").json["notes"] == []


def test_held_out_rows_are_not_called_another_table(cli, tmp_path):
    table = small_table(n=200)
    # Some levels are in a single row, and a quarter of these rows are held out.
    colors = [f"only {place}" if place % 25 == 0 else color for place, color in enumerate(table["color"].to_pylist())]
    file = write(replaced(table, "color", [colors]), tmp_path / "t.csv")
    outcome = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m")
    assert "The held-out rows are not like the training rows:" in outcome.err
    assert "The table is not like" not in outcome.err
    other = write(replaced(table, "color", [["violet"] * 200]), tmp_path / "other.csv")
    outcome = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--test", other)
    assert "The table of --test is not like the training rows:" in outcome.err


@pytest.mark.parametrize("n_fits", [0, 1])
def test_a_stop_says_what_is_there_and_the_next_command_forgets_it(cli, two, tmp_path, monkeypatch, n_fits):
    """In the first fit nothing is written; in the fits of the folds the model is there."""
    fit, done = MedoidClassifier.fit, []

    def stop(self, *given, **more):
        if len(done) == n_fits:
            raise KeyboardInterrupt
        done.append(fit(self, *given, **more))
        return self

    arguments = ("fit", two.file, *QUICK, "-o", tmp_path / "m", "--cv", 2, "--json")
    with monkeypatch.context() as patch:
        patch.setattr(MedoidClassifier, "fit", stop)
        outcome = cli(*arguments)
    kept = f"{tmp_path / 'm'} was written before" if n_fits else "nothing was written"
    assert (outcome.code, outcome.json["error"]) == (130, f"Interrupted: {kept}.")
    assert (tmp_path / "m").exists() == bool(n_fits)
    monkeypatch.setattr("qmedoid.cli.data.status", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    assert cli("data", "list").err == "error: Interrupted: nothing was written.\n"
