"""`qmedoid fit` in passes of odd tables and options: what a fit in memory reads, says or refuses, it does as well."""

import os

import numpy as np
import pandas as pd
import pytest

from qmedoid import load
from qmedoid.cli import fit
from qmedoid.large import split
from qmedoid.large.runner import SummaryFolder

N_ROWS = 9_000
OPTIONS = ("--target", "class", "--memory", "640MB", "--seed", "3", "--refine", "never", "--json")


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """The least memory has room for few rows, and no text is a small one."""
    monkeypatch.setattr(split, "ROW_BYTES", 80_000)
    monkeypatch.setattr(fit, "SMALL_TEXT", 0)


def made(**more):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, N_ROWS)).round(4)
    frame = pd.DataFrame({"a": a, "b": b, "class": np.where(rng.random(N_ROWS) < 1 / (1 + np.exp(-3 * a)), "x", "y")})
    return frame.assign(**more)


def written(frame, folder, ends="parquet", n_files=3):
    """The table in files, the columns of every second one in the other order."""
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        part, path = frame.iloc[rows, :: 1 if number % 2 == 0 else -1], folder / f"{number}.{ends}"
        if ends == "parquet":
            part.to_parquet(path, index=False)
        else:
            part.to_csv(path, index=False, sep=";", decimal=",", encoding="latin-1")
    return folder


@pytest.mark.parametrize("ends", ["parquet", "csv"])
def test_columns_in_any_order_and_notes_of_files(cli, tmp_path, ends):
    frame = made(town=np.where(np.arange(N_ROWS) % 2, "Köln", "Bonn"), number=np.arange(N_ROWS) * 3 + 5)
    frame["class"] = np.where(np.arange(N_ROWS) % 7 == 0, frame["class"] + " ", frame["class"])
    printed = cli.ok("fit", written(frame, tmp_path / "t", ends), *OPTIONS, "-o", tmp_path / "m").json
    assert printed["passes"]["sampled"] < 2_500
    assert printed["classes"] == ["x", "y"]
    assert printed["held_out"]["roc_auc"] > 0.85
    # A sample shows numbers of rows with gaps between them, in the measure of the table.
    assert printed["left_out"] == {"number": "it numbers the rows"}
    said = " ".join(printed["notes"])
    assert "2 of the classes in 'class' differ from another by blanks or odd letters only" in said
    assert "was seen in a sample of the rows" in said
    if ends == "csv":
        assert "read with a decimal comma" in said
        assert "is not in UTF-8; it is read as cp1252" in said
    assert {one.name: one.kind for one in load(tmp_path / "m").model.contract.columns} == {
        "a": "number", "b": "number", "town": "category",
    }  # fmt: skip


@pytest.mark.parametrize("rows", [1, 12])
def test_a_class_of_few_rows_never_vanishes(cli, tmp_path, rows):
    frame = made()
    places = np.random.default_rng(1).choice(N_ROWS, rows, replace=False)
    frame.loc[places, "class"] = "tiny"
    folder, words = written(frame, tmp_path / "t"), set()
    for seed in range(8):
        outcome = cli("fit", folder, *OPTIONS, "--seed", seed, "-o", tmp_path / "m")
        assert outcome.code == 3
        assert "'tiny'" in outcome.json["error"]
        words.add(outcome.json["error"].partition(" ")[0])
    # Where its one row trains, none calibrates it; where it does not train, there is nothing to fit.
    assert words == ({"A", "No"} if rows == 1 else {"A"})


def test_one_class_against_the_rest(cli, tmp_path):
    frame = made()
    frame["class"] = np.where(frame["a"] < -1.5, "low", frame["class"])
    folder = written(frame, tmp_path / "t")
    outcome = cli("fit", folder, *OPTIONS, "--positive", "lo", "-o", tmp_path / "m")
    assert outcome.code == 2
    assert "Did you mean 'low'?" in outcome.json["error"]
    rare = (*OPTIONS, "--method", "rare", "--positive", "low", "--time-limit", "0.01")
    printed = cli.ok("fit", folder, *rare, "-o", tmp_path / "m").json
    assert printed["classes"] == ["not low", "low"]
    assert "hard rows" in [one["name"] for one in printed["passes"]["passes"]]
    # What the pilot says is not said of the model, and what there was no time for is.
    assert not any("are called 1" in note for note in printed["notes"])
    assert printed["time_limit"]["exceeded"]


def test_held_out_by_time(cli, tmp_path):
    frame = made(when=np.arange(N_ROWS), who=np.arange(N_ROWS) % 300, lists=[[1]] * N_ROWS)
    folder = written(frame, tmp_path / "t")
    shared = ("fit", folder, *OPTIONS, "--ignore", "lists", "-o", tmp_path / "m")
    printed = cli.ok(*shared, "--time-column", "when", "--group-column", "who").json
    said = f"{printed['held_out']['rows']:,} of the rows that are held out by time have the 'who' of one"
    assert any(said in note for note in printed["notes"])
    outcome = cli("fit", folder, *OPTIONS, "--group-column", "lists", "-o", tmp_path / "m")
    assert outcome.code == 3
    assert "The group column 'lists' is of type list" in outcome.json["error"]
    frame["when"] = 7
    constant = written(frame.drop(columns=["who", "lists"]), tmp_path / "constant")
    printed = cli.ok("fit", constant, *OPTIONS, "--time-column", "when", "-o", tmp_path / "m").json
    assert "no row is held out: none is later in 'when' than the training rows" in printed["notes"]


def test_a_resumed_fit_takes_nothing_of_another(cli, tmp_path, monkeypatch):
    frame = made(code=np.arange(N_ROWS) % 4)
    folder, roles, removed = written(frame, tmp_path / "t"), tmp_path / "roles.toml", SummaryFolder.remove
    monkeypatch.setattr(SummaryFolder, "remove", lambda _: None)

    def fitted():
        printed = cli.ok("fit", folder, *OPTIONS, "--resume", "--roles", roles, "-o", tmp_path / "m").json
        names = [one.name for one in load(tmp_path / "m").model.contract.columns]
        return names, [one["read"] for one in printed["passes"]["passes"]]

    roles.write_text('a = "keep"')
    assert fitted() == (["a", "b", "code"], [3, 3, 3])
    assert fitted() == (["a", "b", "code"], [0, 0, 0])
    # The same file name of roles, and other roles in it.
    roles.write_text('b = "ignore"')
    assert fitted() == (["a", "code"], [0, 0, 3])
    # One file with another type: the common one changes how all are read.
    frame.iloc[6000:].assign(code=frame["code"].iloc[6000:].astype(str)).to_parquet(folder / "2.parquet", index=False)
    assert fitted() == (["a", "code"], [3, 3, 3])
    monkeypatch.setattr(SummaryFolder, "remove", removed)
    fitted()
    assert not (tmp_path / "m.parts").exists()


def test_a_file_that_changes_between_passes_is_refused(cli, tmp_path, monkeypatch):
    folder, put = written(made(), tmp_path / "t"), SummaryFolder.put

    def change(*given):
        put(*given)
        os.utime(folder / "1.parquet", (0, 0))

    monkeypatch.setattr(SummaryFolder, "put", change)
    outcome = cli("fit", folder, *OPTIONS, "--resume", "-o", tmp_path / "m")
    assert outcome.code == 3
    assert "1.parquet was changed while the table was fitted" in outcome.json["error"]


def test_words_that_are_classes_or_levels_are_so_in_every_pass(cli, tmp_path):
    rng = np.random.default_rng(5)
    town = rng.choice(np.array(["None", "Köln", "Bonn", "?"], dtype=object), N_ROWS, p=[0.5, 0.25, 0.2, 0.05])
    frame = made(town=town)
    frame["class"] = np.where(frame["class"] == "x", "NA", np.where(rng.random(N_ROWS) < 0.03, "-", "y"))
    (tmp_path / "t").mkdir()
    frame.to_csv(tmp_path / "t" / "one.csv", index=False)
    printed = cli.ok("fit", tmp_path / "t", *OPTIONS, "-o", tmp_path / "m").json
    assert printed["passes"]["sampled"] < 2_500
    assert printed["classes"] == ["NA", "y"]
    notes, n_left = " ".join(printed["notes"]), int((frame["class"] == "-").sum())
    assert f"{n_left:,} hold '-'" in notes
    assert "'None' in" in notes
    assert "read as a level" in notes
    model = load(tmp_path / "m")
    # Every row that has a class is counted, and none of the levels is a new one.
    assert model.model.training.n_rows + printed["held_out"]["rows"] == N_ROWS - n_left
    assert not any("did not" in note for note in printed["notes"])
    encoding = model.model.encodings[model.model.contract.names.index("town")]
    assert encoding.levels == ("Bonn", "Köln", "None")
    missing = model.model.training.missing[model.model.contract.names.index("town")]
    assert missing / model.model.training.n_rows == pytest.approx(0.05, abs=0.02)
    evaluated = cli.ok("evaluate", tmp_path / "m", tmp_path / "t" / "one.csv", "--all-rows", "--json").json
    assert evaluated["rows"] == N_ROWS - n_left
    assert evaluated["left_out"]["missing"] == n_left
