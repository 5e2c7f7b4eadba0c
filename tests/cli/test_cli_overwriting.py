"""No command overwrites what it did not write, unless ``--force`` says so."""

import pyarrow.parquet as pq
import pytest
from small_tables import small_table, write


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_fetch_leaves_other_files_alone(cli, tmp_path, ending):
    out = tmp_path / f"heart.{ending}"
    write(small_table(), out)
    before = out.read_bytes()
    outcome = cli("data", "fetch", "heart", "-o", out)
    assert outcome.code == 2
    assert "--force" in outcome.err
    assert out.read_bytes() == before
    cli.ok("data", "fetch", "heart", "-o", out, "--force")
    fetched = out.read_bytes()
    assert fetched != before
    # What it wrote itself it writes again.
    cli.ok("data", "fetch", "heart", "-o", out)
    assert out.read_bytes() == fetched


def test_score_leaves_other_tables_alone_and_replaces_its_results(cli, two, tmp_path):
    for ending in ("csv", "parquet"):
        out = write(small_table(seed=5), tmp_path / f"mine.{ending}")
        before = out.read_bytes()
        outcome = cli("score", two.model, two.file, "-o", out)
        assert outcome.code == 2
        assert "--force" in outcome.err
        assert out.read_bytes() == before
        cli.ok("score", two.model, two.file, "-o", out, "--force")
        cli.ok("score", two.model, two.file, "-o", out, "--columns", "id")
    assert pq.read_schema(tmp_path / "mine.parquet").names[0] == "id"


@pytest.mark.parametrize("content", [b"not a table at all \x00\x01", b"a note\n", b'{"prediction": 1}', b""])
def test_score_leaves_files_alone_that_are_no_tables_and_fills_an_empty_one(cli, two, tmp_path, content):
    out = tmp_path / "o.csv"
    out.write_bytes(content)
    assert cli("score", two.model, two.file, "-o", out).code == (2 if content else 0)
    assert (out.read_bytes() == content) == bool(content)


def test_circuit_leaves_other_files_alone(cli, two, tmp_path):
    pytest.importorskip("qiskit")
    out = tmp_path / "c.txt"
    out.write_text("mine")
    outcome = cli("circuit", "export", two.model, "-o", out)
    assert outcome.code == 2
    assert "--force" in outcome.err
    assert out.read_text() == "mine"
    cli.ok("circuit", "export", two.model, "-o", out, "--force")
    assert out.read_text() != "mine"
    cli.ok("circuit", "export", two.model, "-o", out)


def test_reproduce_is_refused_before_any_work(cli, tmp_path):
    (tmp_path / "index.html").write_text("mine")
    outcome = cli("reproduce", "wine", "--quick", "-o", tmp_path, "--cache", tmp_path / "cells")
    assert outcome.code == 2
    assert "--force" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
