"""A column of 1.275 and 20.628 alone on the command line: every command that reads it says how."""

import numpy as np
import pytest

DOUBT = "may part thousands"
OTHERWISE = "if the point parts thousands"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same table with whole numbers, and with points between their thousands."""
    folder = tmp_path_factory.mktemp("grouped")
    rng = np.random.default_rng(0)
    code = rng.permutation(np.arange(120) % 2)
    counts, ages = rng.integers(1000, 30_000, 120) + 9000 * code, rng.integers(20, 80, 120)
    rows = list(zip(counts.tolist(), ages.tolist(), np.array(["no", "yes"])[code].tolist(), strict=True))
    for name, spelt in (("whole", "{}".format), ("parted", lambda count: f"{count:,}".replace(",", "."))):
        lines = ["income,age,y", *(f"{spelt(count)},{age},{label}" for count, age, label in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return folder / "whole.csv", folder / "parted.csv"


@pytest.fixture(scope="module")
def models(cli, files, tmp_path_factory):
    """Models of both files as they are read without a word, and of the second one as it is meant."""
    folder, (whole, parted) = tmp_path_factory.mktemp("models"), files
    cli.ok("fit", whole, "--target", "y", "-o", folder / "whole")
    cli.ok("fit", parted, "--target", "y", "-o", folder / "decimals")
    cli.ok("fit", parted, "--target", "y", "-o", folder / "thousands", "--decimal", ",")
    return folder / "whole", folder / "decimals", folder / "thousands"


def test_fit_and_check_say_it_once(cli, files, tmp_path):
    whole, parted = files
    fit = ("fit", "{}", "--target", "y", "-o", tmp_path / "model")
    for file, options, told in ((whole, (), 0), (parted, (), 1), (parted, ("--decimal", "."), 0),
                                (parted, ("--decimal", ","), 0)):  # fmt: skip
        command = [file if part == "{}" else part for part in fit]
        assert cli.ok(*command, *options).err.count(DOUBT) == told
        assert sum(DOUBT in note for note in cli.ok(*command, *options, "--json").json["notes"]) == told
        report = cli.ok("check", file, "--target", "y", "--json", *options).json
        assert [one["columns"] for one in report["findings"] if DOUBT in one["message"]] == [["income"]] * told
        assert cli.ok("check", file, "--target", "y", *options).out.replace("\n", " ").count(DOUBT) == told


def test_score_and_evaluate_say_it_where_the_training_numbers_were_larger(cli, files, models, tmp_path):
    whole, parted = files
    for model, file, options, told in (
        (models[0], parted, (), True),
        (models[0], parted, ("--decimal", "."), False),
        (models[0], whole, (), False),
        (models[1], parted, (), False),
        (models[2], parted, (), False),
    ):
        for command in (("score", model, file, "-o", tmp_path / "out.csv"), ("evaluate", model, file)):
            assert cli.ok(*command, *options).err.count(OTHERWISE) == told
    difference = cli.ok("score", models[0], parted, "-o", tmp_path / "out.csv", "--json").json["difference"]
    assert difference["cells"]["income"]["grouped"] == parted.read_text().split()[1].partition(",")[0]
    assert not difference["breaks"]


def test_test_table_of_a_fit_is_looked_at_too(cli, files, tmp_path):
    whole, parted = files
    assert OTHERWISE in cli.ok("fit", whole, "--target", "y", "-o", tmp_path / "m", "--test", parted).err
    assert OTHERWISE not in cli.ok("fit", parted, "--target", "y", "-o", tmp_path / "m", "--test", parted).err
