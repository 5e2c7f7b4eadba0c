"""What goes wrong: the exit code says what kind of thing, one message says which, and old output stays."""

import shutil
import sys

import numpy as np
import pyarrow as pa
import pytest
from small_tables import replaced, write

OLD = b"what was here before"


def wrong_calls(two, folder):
    score, fit = ("score", two.model, two.file, "-o"), ("fit", two.file, "--target", "y", "-o")
    out, model = folder / "o.csv", folder / "m"
    return {
        "unknown option": (*score, out, "--nope"),
        "unknown command": ("scroe", two.model),
        "no output": score[:3],
        "a model in place of a table": (*fit, two.file),
        "wrong ending": (*score, folder / "o.xlsx"),
        "no folder for the output": (*score, folder / "no" / "o.csv"),
        "wrong choice": (*score, out, "--on-mismatch", "perhaps"),
        "negative row": ("explain", two.model, two.file, "--row", "-1"),
        "share above one": (*fit, model, "--test", "1.5"),
        "share that is no number": (*fit, model, "--test", "nan"),
        "alert rate": (*fit, model, "--alert-rate", "2"),
        "refine": (*fit, model, "--refine", "sometimes"),
        "operating point": (*fit, model, "--operating-point", "best"),
        "seed": (*fit, model, "--seed", "-3"),
        "data set": ("data", "fetch", "nothing"),
    }


def unwritable_outputs(two, folder):
    (folder / "o.csv").mkdir()
    return {
        "a model in a folder": ("fit", two.file, "--target", "y", "-o", folder),
        "a model below a file": ("fit", two.file, "--target", "y", "-o", two.file / "m"),
        "results in a folder": ("score", two.model, two.file, "-o", folder / "o.csv"),
    }


def unusable_data(two, folder):
    score, fit = ("score", two.model), ("fit", two.file, "--target", "y", "-o", folder / "m")
    out, header, empty = ("-o", folder / "o.csv"), folder / "header.csv", folder / "empty.csv"
    header.write_bytes(two.file.read_bytes().split(b"\n")[0] + b"\n")
    empty.write_bytes(b"")
    one_class = write(replaced(two.table, "y", [["no"] * 90]), folder / "one.csv")
    return {
        "no file": (*score, folder / "none.csv", *out),
        "no match": (*score, folder / "none-*.csv", *out),
        "empty file": (*score, empty, *out),
        "no rows to evaluate": ("evaluate", two.model, header),
        "no column": ("fit", two.file, "--target", "z", "-o", folder / "m"),
        "no time column": (*fit, "--time-column", "z"),
        "no such column to ignore": (*fit, "--ignore", "z"),
        "one class": ("fit", one_class, *fit[2:]),
        "no rows to fit": ("fit", header, *fit[2:]),
    }


def unreadable_models(two, folder):
    broken = folder / "broken"
    content = bytearray(two.model.read_bytes())
    content[len(content) // 2] ^= 1
    broken.write_bytes(content)
    empty = folder / "empty"
    empty.mkdir()
    return {
        "no file": ("score", folder / "none", two.file, "-o", folder / "o.csv"),
        "a folder": ("evaluate", empty, two.file),
        "a table": ("explain", two.file, two.file, "--row", "0"),
        "one bit flipped": ("inspect", broken),
        "one bit flipped, circuit": ("circuit", "export", broken),
    }


@pytest.mark.parametrize(
    ("make", "code"), [(unwritable_outputs, 1), (wrong_calls, 2), (unusable_data, 3), (unreadable_models, 4)]
)
def test_exit_codes_and_messages(cli, two, tmp_path, make, code):
    for what, arguments in make(two, tmp_path).items():
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        outcome = cli(*arguments)
        assert outcome.code == code, (what, outcome)
        assert outcome.out == "", what
        assert "rror: " in outcome.err, what
        assert len(outcome.err.splitlines()) <= 4, (what, outcome.err)
        as_json = cli(*arguments, "--json")
        assert as_json.code == code, what
        assert as_json.json["exit_code"] == code
        assert as_json.json["error"].splitlines()[0] in outcome.err.replace("\n", "")
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before, what


class TestContract:
    """Tables that are not like the one of the fit."""

    @pytest.fixture(params=["missing", "renamed", "kind", "unseen"])
    def table(self, request, two, tmp_path):
        """A line of the difference, and the table as CSV and as Parquet."""
        table, x1 = two.table, two.table["x1"]
        line, made = {
            "missing": ("- missing: 'x1' (number)", table.drop_columns(["x1"])),
            "renamed": ("- missing: 'x1' (number); did you mean 'X_1'?", replaced(table, "x1", x1, "X_1")),
            "kind": (
                "~ kind: 'x1' was a number, 1 of 90 cells is not, such as 'abc'",
                replaced(table, "x1", [[*(str(value) for value in x1.to_pylist()[:-1]), "abc"]]),
            ),
            "unseen": (
                "~ unseen: 'color' has 1 level that the training rows did not, in 1 row: 'violet'",
                replaced(table, "color", [["violet", *table["color"].to_pylist()[1:]]]),
            ),
        }[request.param]
        return line, *(write(made, tmp_path / f"t.{ending}") for ending in ("csv", "parquet"))

    def test_is_refused_with_a_diff_and_old_output_stays(self, cli, two, table, tmp_path):
        line, *files = table
        out = tmp_path / "o.csv"
        for arguments, stdin in ((files[0], None), (files[1], None), ("-", files[0].read_bytes())):
            outcome = cli("score", two.model, arguments, "-o", out, stdin=stdin)
            assert outcome.code == 3
            assert line in outcome.err.splitlines()
            assert "--on-mismatch warn" in outcome.err
            assert not out.exists()
        out.write_bytes(OLD)
        for file in files:
            report = cli("score", two.model, file, "-o", out, "--force", "--json")
            assert report.code == report.json["exit_code"] == 3
            assert report.json["difference"]["breaks"] is True
            for command in (("evaluate", two.model, file), ("explain", two.model, file, "--row", "0")):
                assert "1 " in line or cli(*command).code == 3  # a kind and a level are those of one row
        assert out.read_bytes() == OLD
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]

    def test_is_scored_with_a_note_if_asked(self, cli, two, table, tmp_path):
        line, *files = table
        cli.ok("score", two.model, two.file, "-o", tmp_path / "whole.csv")
        written = []
        for file in files:
            outcome = cli.ok("score", two.model, file, "-o", tmp_path / "o.csv", "--on-mismatch", "warn")
            assert "note: The table is not like" in outcome.err
            assert line in outcome.err.splitlines()
            assert "90 rows scored" in outcome.err
            written.append((tmp_path / "o.csv").read_text().splitlines())
            report = cli.ok("evaluate", two.model, file, "--on-mismatch", "warn", "--json", "--all-rows")
            assert report.json["rows"] == 90
            cli.ok("explain", two.model, file, "--row", "0", "--on-mismatch", "warn", "--json")
        assert written[0] == written[1]
        assert "nan" not in "".join(written[0]).lower()
        whole = (tmp_path / "whole.csv").read_text().splitlines()
        differing = sum(old != new for old, new in zip(whole, written[0], strict=True))
        assert differing <= (1 if "such as" in line else 90)


class TestPlaces:
    """Places that cannot be written."""

    @pytest.mark.skipif(sys.platform != "linux", reason="there is no folder that nobody can write")
    def test_folder_that_nobody_can_write(self, cli, two):
        fit = ("fit", two.file, "--target", "y", "-o", "/sys/kernel/m", "--refine", "never")
        for arguments in (("score", two.model, two.file, "-o", "/sys/kernel/o.csv"), fit):
            outcome = cli(*arguments)
            assert outcome.code == 1
            assert "cannot be written" in outcome.err
            assert "What was there is unchanged. Change the permissions" in outcome.err


def test_table_itself_is_not_overwritten(cli, two, tmp_path):
    file = shutil.copy(two.file, tmp_path / "t.csv")
    (tmp_path / "link.csv").symlink_to(file)
    (tmp_path / "hard.csv").hardlink_to(file)
    for table, out in ((file, file), (file, tmp_path / "link.csv"), (tmp_path, tmp_path / "hard.csv")):
        outcome = cli("score", two.model, table, "-o", out)
        assert outcome.code == 2
        assert "is the table itself" in outcome.err
    assert file.read_bytes() == two.file.read_bytes()


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("a,y\n1,no\n2,no\n", "y", "The target 'y' holds one class only, 'no'"),
        ("y\nno\nyes\n", "y", "the table has no column besides the target"),
    ],
)
def test_first_mistakes_are_answered_with_a_way_out(cli, tmp_path, text, target, words):
    (tmp_path / "t.csv").write_text(text)
    outcome = cli("fit", tmp_path / "t.csv", "--target", target, "-o", tmp_path / "m")
    assert outcome.code == 3
    assert words in outcome.err


def test_files_that_are_not_there(cli, tmp_path):
    (tmp_path / "heart.csv").write_text("a,y\n")
    assert "Did you mean 'heart.csv'?" in cli("check", tmp_path / "hart.csv").err
    assert "is a web address" in cli("check", "https://example.org/t.csv").err


@pytest.mark.parametrize("call", [("explain", "--row", 0), ("evaluate",), ("report",)])
def test_table_before_the_model_is_answered_with_the_order(cli, two, call):
    command, *more = call
    outcome = cli(command, two.file, two.model, *more)
    assert outcome.code == 4
    assert "The model comes first, then the table:" in outcome.err
    # A model that is damaged is not said to be a table.
    assert "comes first" not in cli(command, two.file, two.file, *more).err


@pytest.mark.parametrize(
    ("n_columns", "remedy"), [(3, "Fit on fewer rows with --max-rows."), (40, "Leave out columns with --ignore NAME.")]
)
def test_lack_of_memory_names_what_there_is_too_much_of(cli, tmp_path, monkeypatch, n_columns, remedy):
    def too_much(*_, **__):
        raise MemoryError

    monkeypatch.setattr("qmedoid.estimators.medoid.MedoidClassifier.fit", too_much)
    values = np.random.default_rng(0).normal(size=(30, n_columns))
    table = pa.table({f"c{number}": column for number, column in enumerate(values.T)} | {"y": ["a", "b"] * 15})
    found = cli("fit", write(table, tmp_path / "t.csv"), "--target", "y", "-o", tmp_path / "m.qmedoid", "--test", "0")
    assert found.code != 0
    assert f"30 rows of {n_columns} columns. {remedy}" in found.err
