"""`qmedoid fit` in passes: bounded memory, the same model after kills, and refusals before work is lost."""

import json
import random
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forked
import qmedoid
from qmedoid.large import split

N_ROWS = 20_000
ROW_BYTES = 50_000
OPTIONS = ("--target", "class", "--memory", "640MB", "--seed", "3", "--refine", "never", "--method", "rare")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of Parquet files with a rare class."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, N_ROWS))
    is_fraud = rng.random(N_ROWS) < 1.0 / (1.0 + np.exp(5.5 - 2.0 * a))
    table = pa.table({"a": a, "b": b, "class": np.where(is_fraud, "fraud", "normal")})
    made = tmp_path_factory.mktemp("passes") / "table"
    made.mkdir()
    for number in range(10):
        pq.write_table(table.slice(number * 2_000, 2_000), made / f"{number}.parquet")
    return made


@pytest.fixture
def few_rows(monkeypatch):
    """The least memory has room for few rows."""
    monkeypatch.setattr(split, "ROW_BYTES", ROW_BYTES)


@pytest.mark.usefixtures("few_rows")
def test_a_table_that_needs_more_memory_is_fitted_in_passes(cli, folder, tmp_path):
    printed = cli.ok("fit", folder, *OPTIONS, "-o", tmp_path / "model", "--alert-rate", "5%", "--json").json
    passes = printed["passes"]
    assert [one["name"] for one in passes["passes"]] == ["count", "sample", "hard rows", "judge"]
    assert passes["rows"] == N_ROWS == printed["training_rows"] + printed["held_out"]["rows"]
    assert passes["sampled"] < 5_000
    assert printed["held_out"]["roc_auc"] > 0.85
    assert 0.03 < printed["held_out"]["alert_rate"] < 0.07
    saved = qmedoid.load(tmp_path / "model")
    table = pq.read_table(folder)
    assert saved.predict(table).shape == (N_ROWS,)
    # Medoids are numbered by their places in the whole table.
    rows = saved.model.medoids.numbers
    records = saved.model.records
    assert rows.max() > 5_000
    assert table["a"].take(pa.array(rows)).to_pylist() == [record["a"] for record in records]
    assert not list(tmp_path.glob("*.parts"))


def test_a_table_that_fits_in_memory_is_fitted_as_it_was(cli, folder, tmp_path):
    some = folder / "0.parquet"
    plain = ("fit", some, "--target", "class", "--seed", "3", "--method", "evidence", "--refine", "never", "--json")
    whole = cli.ok(*plain, "-o", tmp_path / "whole").json
    limited = cli.ok(*plain, "-o", tmp_path / "limited", "--memory", "4GB").json
    assert limited["passes"] is None
    assert limited["held_out"] == whole["held_out"]
    assert qmedoid.load(tmp_path / "whole").predict_proba(pq.read_table(some)).tobytes() == (
        qmedoid.load(tmp_path / "limited").predict_proba(pq.read_table(some)).tobytes()
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--memory", "a lot"), "a size such as 2GB"),
        (("--memory", "10MB"), "at least 640 MB"),
        (("--cv", "3"), "--cv is for tables that fit in memory"),
        (("--compare",), "--compare is for tables that fit in memory"),
        (("--test", "other.csv"), "qmedoid evaluate MODEL other.csv"),
        (("--target", "clas"), "Did you mean 'class'?"),
        (("--time-column", "when"), "There is no column 'when'"),
        (("--dask", "here"), "or the address of a scheduler"),
        (("--dask", "tcp://127.0.0.1:9"), "No Dask scheduler answers"),
    ],
)
@pytest.mark.usefixtures("few_rows")
def test_what_cannot_be_is_refused_before_rows_are_read(cli, folder, tmp_path, monkeypatch, options, words):
    if "--dask" in options:
        pytest.importorskip("distributed", reason="pip install 'qmedoid[dask]'")
        monkeypatch.setattr("qmedoid.large.workers._ANSWER", 0.5)
    outcome = cli("fit", folder, *OPTIONS, "-o", tmp_path / "model", *options)
    assert outcome.code in (1, 2, 3)
    assert words in outcome.err
    assert not (tmp_path / "model").exists()


def test_a_pipe_cannot_be_read_twice(cli, tmp_path):
    outcome = cli("fit", "-", *OPTIONS, "-o", tmp_path / "model", stdin=b"a,class\n1,x\n")
    assert outcome.code == 2
    assert "A pipe can be read once" in outcome.err


@pytest.mark.usefixtures("few_rows")
def test_dask_workers_give_the_same_model(cli, folder, tmp_path):
    pytest.importorskip("distributed", reason="pip install 'qmedoid[dask]'")
    cli.ok("fit", folder, *OPTIONS, "-o", tmp_path / "here", "--json")
    printed = cli.ok("fit", folder, *OPTIONS, "-o", tmp_path / "there", "--json", "--dask", "local").json
    assert [one["read"] for one in printed["passes"]["passes"]] == [10] * 4
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()


def start(folder, model, *options):
    """Begin a fit in a process of its own."""
    arguments = ("fit", folder, *OPTIONS, "-o", model, "--json", *options)
    return forked.start(arguments, model.with_suffix(".json"), ROW_BYTES)


def test_a_killed_fit_goes_on_and_gives_the_same_model(folder, tmp_path):
    began = time.perf_counter()
    start(folder, tmp_path / "plain").join()
    took = time.perf_counter() - began
    assert (tmp_path / "plain").exists(), (tmp_path / "plain.json").read_text()
    chance, model = random.Random(0), tmp_path / "resumed"
    for _ in range(2):
        child = start(folder, model, "--resume")
        child.join(chance.uniform(0.5, 0.9) * took)
        child.kill()
        child.join()
    start(folder, model, "--resume").join()
    printed = json.loads((tmp_path / "resumed.json").read_text())
    assert sum(one["read"] for one in printed["passes"]["passes"]) <= 40
    assert model.read_bytes() == (tmp_path / "plain").read_bytes()
    assert not list(tmp_path.glob("*.parts")), "what is finished is removed"
