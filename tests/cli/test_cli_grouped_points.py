"""A column of 1.275 and 20.628 alone on the command line: every command that reads it says how."""

import numpy as np
import pytest

DOUBT = "may part thousands"


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


def test_score_says_that_the_training_numbers_were_larger(cli, files, tmp_path):
    whole, parted = files
    cli.ok("fit", whole, "--target", "y", "-o", tmp_path / "model")
    for file, told in ((whole, False), (parted, True)):
        assert (
            "'income' is below" in cli.ok("score", tmp_path / "model", file, "-o", tmp_path / "out.csv").err
        ) == told
