"""`qmedoid fit`: every option does what it says, and the saved model is the fitted one."""

import shlex
import zipfile

import numpy as np
import pytest
from small_tables import csv_bytes, replaced, small_table, write

import qmedoid
from qmedoid import VariationalClassifier
from qmedoid.cli.fit import default_output
from qmedoid.cli.fitting import FitBar
from qmedoid.model.storage.model_file import load_model

OF_THE_CALL = ("novelty", "operating", "bad_rows", "source", "notes")
"""What an evaluation says beside the figures of held-out rows."""


def fit(cli, file, model, *options):
    return cli.ok("fit", file, "--target", "y", "-o", model, "--refine", "never", "--json", *options).json


def inspect(cli, model):
    return cli.ok("inspect", model, "--json").json


def without(document, *keys):
    return {key: value for key, value in document.items() if key not in keys}


def arrays(model):
    with zipfile.ZipFile(model) as archive:
        return archive.read("arrays.safetensors")


def test_prints_what_the_saved_model_holds(cli, two):
    shown = inspect(cli, two.model)
    assert shown["classes"] == two.printed["classes"] == ["no", "yes"]
    assert shown["target"] == "y"
    assert [column["kind"] for column in shown["columns"]] == ["number", "number", "category", "boolean", "date"]
    assert list(shown["left_out"]) == ["id"]
    assert shown["metrics"]["held_out"] == two.printed["held_out"]
    assert (two.printed["training_rows"], two.printed["held_out"]["rows"]) == (68, 22)
    text = cli.ok("inspect", two.model).out
    for word in ("Saved model", "no, yes", "color", "category", "accuracy"):
        assert word in text


def test_text_tells_the_same_and_says_once_what_is_left_out(cli, two, tmp_path):
    outcome = cli.ok("fit", two.file, "--target", "y", "-o", tmp_path / "m", "--refine", "never")
    for key in ("accuracy", "recall", "precision", "roc_auc", "log_loss"):
        assert f"{two.printed['held_out'][key]:.4f}" in outcome.out
    assert two.printed["verdict"] == outcome.out.splitlines()[: len(two.printed["verdict"])]
    assert "circuit" not in outcome.out  # there is none
    # The method is named, not its place in the model.
    assert two.printed["method"] == "evidence"
    assert " s): method evidence, fitted to 68 rows and 5 columns.\n" in outcome.out
    assert outcome.err.count("'id'") == 1


@pytest.mark.parametrize("labels", [(0, 1), (False, True), ("=no", "yes, or so"), (7.0, 3.0, 5.0)])
def test_targets_of_any_type_come_back_as_they_were(cli, tmp_path, labels):
    table = small_table(labels)
    for ending in ("csv", "parquet"):
        file = write(table, tmp_path / f"t.{ending}")
        printed = fit(cli, file, tmp_path / ending)
        assert printed["classes"] == sorted(labels)
    assert arrays(tmp_path / "csv") == arrays(tmp_path / "parquet")
    predicted = qmedoid.load(tmp_path / "csv").predict(table.drop_columns(["y"]))
    assert set(predicted.tolist()) <= set(labels)
    assert (predicted == np.array(table["y"].to_pylist())).mean() > 0.6


def test_same_seed_same_bytes_from_a_file_a_pipe_and_by_default_name(cli, two, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cli.ok("fit", "-", "--target", "y", "-o", "piped", "--refine", "never", stdin=two.file.read_bytes())
    printed = cli.ok("fit", two.file, "--target", "y", "--refine", "never", "--json").json
    assert printed["model"] == "two.qmedoid"
    assert {path.name for path in tmp_path.iterdir()} == {"piped", "two.qmedoid"}
    assert arrays("piped") == arrays("two.qmedoid") == arrays(two.model)
    fit(cli, two.file, "other", "--seed", "7")
    assert arrays("other") != arrays(two.model)


def test_positive_comes_last_however_it_is_written_and_of_three_stands_against_the_others(cli, two, three, tmp_path):
    printed = fit(cli, two.file, tmp_path / "m", "--positive", "no")
    assert (printed["classes"], printed["held_out"]["positive"]) == (["yes", "no"], "no")
    assert fit(cli, three.file, tmp_path / "m", "--positive", "c")["classes"] == ["not c", "c"]
    report = cli.ok("evaluate", tmp_path / "m", three.file, "--json", "--all-rows").json
    assert {label: own["rows"] for label, own in report["classes"].items()} == {"not c": 60, "c": 30}
    assert report["left_out"] == {"missing": 0, "unknown": 0, "seen": 0}
    file = write(small_table((0, 1)), tmp_path / "t.csv")
    assert fit(cli, file, tmp_path / "m", "--positive", "0.0")["classes"] == [1, 0]
    outcome = cli("fit", file, "--target", "y", "-o", tmp_path / "n", "--positive", "2")
    assert outcome.code == 2
    assert "'2' is no class in 'y'. The classes are 0, 1." in outcome.err


def test_alert_rate_bounds_the_positive_calls_and_below_the_prevalence_says_what_it_cannot_find(cli, two, tmp_path):
    printed = fit(cli, two.file, tmp_path / "m", "--alert-rate", "0.1")
    assert inspect(cli, tmp_path / "m")["cut"] is not None
    assert printed["held_out"]["alert_rate"] < 0.3 < two.printed["held_out"]["alert_rate"]
    words = "Alerts on at most 10 % of the rows cannot find more than 20 % of 'yes'"
    assert words in printed["verdict"][-1]
    large = fit(cli, two.file, tmp_path / "m", "--alert-rate", "0.6")
    assert not any("cannot find" in sentence for sentence in large["verdict"])


def test_shares_and_files_hold_rows_out(cli, two, tmp_path):
    for share, rows in (("0.2", (72, 18)), ("0", (90, None))):
        printed = fit(cli, two.file, tmp_path / "m", "--test", share)
        assert (printed["training_rows"], printed.get("held_out", {}).get("rows")) == rows
    test = write(small_table(n=50, seed=2).drop_columns(["id"]), tmp_path / "test.csv")
    printed = fit(cli, two.file, tmp_path / "m", "--test", test, "--ignore", "id")
    assert (printed["training_rows"], printed["held_out"]["rows"]) == (90, 50)
    report = cli.ok("evaluate", tmp_path / "m", test, "--json").json
    assert (report["novelty"]["compared_rows"], report["operating"]["rule"]) == (50, "likeliest")
    assert without(report, *OF_THE_CALL) == printed["held_out"]


def test_time_column_holds_out_the_last_rows(cli, two, tmp_path):
    days = two.table["day"].to_pylist()
    fit(cli, two.file, tmp_path / "m", "--time-column", "day", "--test", "0.4")
    last_kept, shown = sorted(days)[53], inspect(cli, tmp_path / "m")
    assert all(days[medoid["training_row"]] <= last_kept for medoid in shown["medoids"])
    assert "day" in shown["left_out"]
    # In the order of time, as they were held out: means of the same rows in another order round otherwise.
    later = two.table.filter(np.array([day > last_kept for day in days])).sort_by("day")
    report = cli.ok("evaluate", tmp_path / "m", "-", "--json", stdin=csv_bytes(later)).json
    assert report["novelty"]["compared_rows"] == 36
    assert report["operating"] == shown["operating"]
    assert without(report, *OF_THE_CALL) == shown["metrics"]["held_out"]
    outcome = cli("fit", two.file, "--target", "y", "-o", tmp_path / "m", "--time-column", "color")
    assert (outcome.code, "'color' holds texts" in outcome.err) == (3, True)


def test_no_raw_rows_keeps_cells_out_of_the_file(cli, tmp_path):
    table = small_table()
    file = write(replaced(table, "color", [[f"secret-{c}" for c in table["color"].to_pylist()]]), tmp_path / "t.csv")
    fit(cli, file, tmp_path / "m", "--no-raw-rows")
    assert "secret-" not in str(load_model(tmp_path / "m").records)
    explain = ("explain", tmp_path / "m", file, "--row", "1")
    assert all(medoid["record"] is None for medoid in cli.ok(*explain, "--json").json["medoids"])
    cli.ok("score", tmp_path / "m", file, "-o", tmp_path / "o.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_max_rows_draws_a_sample_and_says_so(cli, two, tmp_path, ending):
    file, labels = write(two.table, tmp_path / f"t.{ending}"), two.table["y"].to_pylist()
    command = ("fit", file, "--target", "y", "-o", tmp_path / "m", "--refine", "never", "--max-rows")
    outcome = cli.ok(*command, "50", "--test", "0")
    assert "a random sample of 50" in outcome.err
    assert "fitted to 50 rows" in outcome.out
    for medoid in inspect(cli, tmp_path / "m")["medoids"]:
        assert labels[medoid["training_row"]] == medoid["class"]
    assert "sample" not in cli.ok(*command, "90").err


def test_rows_without_a_class_are_left_out(cli, tmp_path):
    labels = small_table()["y"].to_pylist()
    labels[3], labels[10], labels[11] = None, "", "  "
    file = write(replaced(small_table(), "y", [labels]), tmp_path / "t.parquet")
    outcome = cli.ok("fit", file, "--target", "y", "-o", tmp_path / "m", "--refine", "never", "--test", "0")
    assert "3 of 90 rows have no class" in outcome.err
    shown = inspect(cli, tmp_path / "m")
    assert shown["classes"] == ["no", "yes"]
    assert all(labels[medoid["training_row"]] == medoid["class"] for medoid in shown["medoids"])


@pytest.mark.parametrize(
    ("table", "name"),
    [("heart.csv", "heart"), ("data/heart.csv.gz", "heart"), ("-", "model"), ("part-*.csv", "model"), ("data", "data")],
)
def test_output_is_named_after_the_table_by_default(table, name):
    assert default_output(table).name == f"{name}.qmedoid"


def test_model_keeps_a_summary_of_its_training_rows(cli, two, tmp_path):
    fit(cli, two.file, tmp_path / "m", "--time-column", "day")
    shown, training = inspect(cli, tmp_path / "m"), load_model(tmp_path / "m").training
    assert shown["training_rows"] == training.n_rows
    assert 0 < training.rows_per_day < training.n_rows
    assert load_model(two.model).training.rows_per_day is None
    assert shown["parent"] is None
    assert shown["versions"]["numpy"] == np.__version__


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("x1", "that is a quantity, and a classifier predicts classes (there is no regression)"),
        ("day", "is of type date32"),
    ],
)
def test_what_is_no_class_is_refused(cli, two, tmp_path, column, words):
    outcome = cli("fit", two.file, "--target", column, "-o", tmp_path / "m")
    assert (outcome.code, words in outcome.err) == (3, True)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(("name", "model"), [("my table.csv", "my model"), ("-it's.csv", '-it\'s "one" $x')])
def test_what_comes_next_names_the_files_and_runs(cli, two, tmp_path, monkeypatch, name, model):
    (tmp_path / name).write_bytes(two.file.read_bytes())
    monkeypatch.chdir(tmp_path)
    outcome = cli.ok("fit", f"./{name}", "--target", "y", "-o", f"./{model}.qmedoid", "--refine", "never")
    commands = [shlex.split(line, comments=True) for line in outcome.out.partition("Next:\n")[2].splitlines()]
    assert [command[:2] for command in commands] == [["qmedoid", name] for name in ("explain", "report", "score")]
    for _, *arguments in commands:
        cli.ok(*arguments)
    assert (tmp_path / f"{model}-scores.csv").is_file()


def test_bar_counts_the_steps_of_a_task_and_is_gone_at_the_end():
    class Sees:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, metadata=None):  # noqa: ARG002
            if metadata and metadata["step"] == 6:
                seen.append([(task.description, task.completed, task.total) for task in bar._bar.tasks])

    bar, seen = FitBar(), []
    X, y = np.arange(40.0)[:, None] % 7, np.arange(40) % 2
    circuit = VariationalClassifier(n_steps=10, n_seeds=1, random_state=0)
    circuit.set_callbacks(bar, Sees()).fit(X, y)
    assert seen == [[("fit", 6, 10)]]
    assert bar._bar.tasks == []
    assert not bar._bar.live.is_started
