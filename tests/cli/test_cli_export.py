"""``qmedoid export``: files in other languages, and one sentence where a language cannot express a model."""

import sys

import pytest

from qmedoid import load


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres"])
def test_export_writes_sql(cli, two, tmp_path, dialect):
    file, sha256 = tmp_path / "model.sql", load(two.model).sha256
    asked = ("--format", "sql", "--dialect", dialect, "--table", "new", "-o", file, "--json")
    printed = cli.ok("export", two.model, *asked).json
    sql = file.read_text(encoding="utf-8")
    assert printed["bytes"] == file.stat().st_size
    assert (printed["output"], printed["dialect"], printed["model"]) == (str(file), dialect, sha256)
    assert sha256 in sql.splitlines()[0]
    assert 'FROM "new" AS' in sql


def test_export_takes_the_name_of_the_model(cli, two, tmp_path):
    model = tmp_path / "small.qmedoid"
    load(two.model).save(model)
    printed = cli.ok("export", model, "--format", "sql")
    assert printed.out == f"exported to {tmp_path / 'small.sql'} ({(tmp_path / 'small.sql').stat().st_size:,} bytes).\n"
    assert "for duckdb" in (tmp_path / "small.sql").read_text(encoding="utf-8")


def test_export_names_the_extra_that_is_missing(cli, two, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    outcome = cli("export", two.model, "--format", "onnx", "-o", tmp_path / "model.onnx")
    assert outcome.code == 1
    assert "qmedoid[onnx]" in outcome.err
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("format", ["js", "sql", "onnx"])
def test_export_replaces_exports_alone(cli, two, tmp_path, format):
    if format == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed: pip install 'qmedoid[onnx]'")
    file = tmp_path / "model"
    for content in (two.model.read_bytes(), b"mine"):
        file.write_bytes(content)
        outcome = cli("export", two.model, "--format", format, "-o", file)
        assert outcome.code == 2
        assert "--force" in outcome.err
        assert file.read_bytes() == content
    cli.ok("export", two.model, "--format", format, "-o", file, "--force")
    cli.ok("export", two.model, "--format", "sql", "-o", file)
    assert file.read_bytes().startswith(b"-- A model of qmedoid")


def test_export_refuses_options_of_another_format(cli, two, tmp_path):
    outcome = cli("export", two.model, "--format", "js", "--dialect", "sqlite", "-o", tmp_path / "model.js")
    assert outcome.code == 2
    assert "'dialect' parameter belongs to the format 'sql'" in outcome.err
    assert not (tmp_path / "model.js").exists()


def test_export_is_written_to_a_file(cli, two):
    assert "must be a file" in cli("export", two.model, "--format", "js", "-o", "-").err


def test_export_checks_itself_on_a_table(cli, two, tmp_path):
    asked = ("--format", "sql", "--dialect", "sqlite", "-o", tmp_path / "model.sql", "--force")
    rows = len(two.table)
    checked = cli.ok("export", two.model, *asked, "--check", two.file, "--json").json
    (found,) = checked["checks"]
    assert (found["engine"], found["rows"], found["agree"], found["first"]) == ("SQLite", rows, rows, None)
    printed = cli.ok("export", two.model, *asked, "--check", two.file)
    assert printed.out.splitlines()[1].startswith(f"SQLite: all {rows} rows agree; the largest difference is ")
    assert "checks" not in cli.ok("export", two.model, *asked, "--json").json


def test_export_exits_with_1_where_the_engine_has_no_result(cli, tmp_path):
    """Percentages are texts to SQLite, which has no way to read them: nothing is decided, and nothing in silence."""
    table, model = tmp_path / "rates.csv", tmp_path / "rates.qmedoid"
    table.write_text("rate,y\n" + "".join(f"{20 + i % 7 + 9 * (i % 2)}.5%,{i % 2}\n" for i in range(80)))
    cli.ok("fit", table, "--target", "y", "-o", model, "--method", "evidence")
    outcome = cli("export", model, "--format", "sql", "--dialect", "sqlite", "-o", tmp_path / "m.sql", "--check", table)
    assert outcome.code == 1
    assert "SQLite: 0 of 80 rows agree, 80 have no result; the first is row 0" in outcome.out
    assert "rate: no number" in outcome.out
