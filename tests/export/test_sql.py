"""A model as SQL decides as the model itself, in DuckDB and in SQLite."""

import sqlite3
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from agreement import assert_sql_agrees
from engines import DATABASES, ROW, as_sql, in_duckdb, in_sqlite, numbered

from model_kinds import MODEL_KINDS, exported
from qmedoid import EvidenceClassifier, MedoidClassifier, SavedModel
from qmedoid.datasets import table_of
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.export.sql.dialects import DIALECTS, Stages, dialect_of

N_SCORED = 300
REFUSED = {"neighbor term", "sum", "sum of more classes", "rare events", "nearest medoid"}
"""Kinds that look for the nearest of many rows, and the paper's rule."""
MIXED = "categories, dates and missing cells"


def without_neighbors(saved):
    """A sum of evidence and trees, without its neighbors."""
    model = saved.model
    return SavedModel(replace(model, parts=model.parts[:2], weights=model.weights[:2]))


def expressible():
    for kind in MODEL_KINDS:
        if kind.startswith("sum"):
            yield kind + " without neighbors"
        elif kind not in REFUSED:
            yield kind


def model_and_table(kind, n=N_SCORED):
    saved, table = exported(kind.removesuffix(" without neighbors"), n)
    return (without_neighbors(saved) if kind.endswith("without neighbors") else saved), table


@pytest.mark.parametrize("dialect", DATABASES)
@pytest.mark.parametrize("kind", list(expressible()))
def test_sql_decides_as_the_model(kind, dialect):
    saved, table = model_and_table(kind)
    found = DATABASES[dialect](as_sql(saved.model, dialect=dialect), table)
    assert_sql_agrees(found, saved, table)
    assert not any(found["issues"])
    for name in table.column_names:
        assert len(found[name]) == len(table)
    assert found["first"] == table.column("first").to_pylist()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_sql_refuses_what_it_cannot_express_in_a_sentence(kind, dialect):
    saved, _ = exported(kind, N_SCORED)
    with pytest.raises(ModelError, match=r"^SQL cannot express .* js[^.]*\.$"):
        as_sql(saved.model, dialect=dialect)


def odd_cells():
    """Records of the mixed kind with cells that are missing, not numbers, too large, or unknown; and their issues."""
    saved, table = exported(MIXED, N_SCORED)
    row = table.slice(0, 1).to_pylist()[0]
    changes = [
        ({"third": None}, None),
        ({"first": None}, "first: missing"),
        ({"first": float("nan")}, "first: missing"),
        ({"second": float("inf")}, "second: too large"),
        ({"second": -1e200, "first": None}, "first: missing; second: too large"),
        ({"kind of": None}, None),
        ({"kind of": ""}, None),
        ({"kind of": "  "}, None),
        ({"kind of": "green"}, "kind of: new level"),
        ({"kind of": "RED"}, "kind of: new level"),
        ({"kind of": " red\t"}, None),
        ({"kind of": "1.500"}, None),
        ({"kind of": "1.5"}, None),
        ({"kind of": "01.5"}, "kind of: new level"),
        ({"city": "nowhere"}, None),
        ({"city": None}, "city: missing"),
        ({"city": "town 007 "}, None),
        ({"flag": None}, None),
        ({"day": None}, "day: missing"),
        ({"moment": None}, None),
        ({"moment": "1969-12-31T23:59:59.999999"}, None),
        ({"moment": "2000-02-29T00:00:00"}, None),
        ({"moment": "1900-03-01T12:30:15"}, None),
    ]  # fmt: skip
    records = [row | change for change, _ in changes]
    for record in records:
        if isinstance(record["moment"], str):
            record["moment"] = np.datetime64(record["moment"], "us").item()
    return saved, pa.Table.from_pylist(records, table.schema), [issue for _, issue in changes]


@pytest.mark.parametrize("dialect", DATABASES)
def test_sql_reads_odd_cells_as_the_model(dialect):
    saved, table, issues = odd_cells()
    found = DATABASES[dialect](as_sql(saved.model, dialect=dialect), table)
    with pytest.warns(UserWarning, match="first"):
        assert_sql_agrees(found, saved, table)
    assert found["issues"] == issues


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_sql_reads_texts_as_the_model(dialect):
    """Numbers, truth values and dates that stand in columns of texts, with zones and without."""
    saved, table = exported(MIXED, N_SCORED)
    row = {name: None if cell is None else str(cell) for name, cell in table.slice(0, 1).to_pylist()[0].items()}
    changes = [
        {"first": "1.5", "flag": "Yes"}, {"first": " -2.5e-1 ", "flag": "0"}, {"third": "", "flag": " FALSE "},
        {"moment": "2024-03-01T00:30:00+02:00"}, {"moment": "2024-02-29 23:59:59.5"}, {"moment": "2024-02-29T22:30Z"},
        {"moment": "2024-02-29T22:30:01.25-05:30"}, {"moment": "2024-02-29"}, {"moment": ""}, {"day": "1999-12-31"},
        {"first": "much"}, {"flag": "maybe"}, {"day": "2023-02-29"}, {"moment": "soon"},
    ]  # fmt: skip
    records = [row | change for change in changes]
    texts = pa.table({name: pa.array([one[name] for one in records], pa.string()) for name in table.column_names})
    found = DATABASES[dialect](as_sql(saved.model, dialect=dialect), texts)
    with pytest.warns(UserWarning, match="much"):
        assert_sql_agrees(found, saved, texts)
    assert found["issues"][:10] == [None] * 10
    assert found["issues"][10:] == ["first: no number", "flag: no boolean", "day: no date", "moment: no date"]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_sql_takes_numbers_for_units_and_durations_and_no_texts(dialect):
    """A database holds kilograms and seconds; a text with another unit or of another kind is never read."""
    numbers = np.arange(120) % 40 + 50
    texts = {"weight": [f"{one} kg" for one in numbers], "run": [f"{one % 3}:{one - 45:02d}:00" for one in numbers]}
    classifier = MedoidClassifier(method=EvidenceClassifier(random_state=0), refine="never", random_state=0)
    saved = classifier.fit(pa.table(texts), numbers > 70).to_saved()
    assert [one.spelling for one in saved.model.contract.columns] == ["1234 kg", "h:mm:ss"]
    seconds = [3600 * (one % 3) + 60 * (one - 45) for one in numbers.tolist()]
    sql = as_sql(saved.model, dialect=dialect)
    found = DATABASES[dialect](sql, pa.table({"weight": numbers, "run": seconds}))
    assert_sql_agrees(found, saved, pa.table(texts))
    assert not any(found["issues"])
    written = DATABASES[dialect](sql, pa.table(texts).slice(0, 3))
    assert written["issues"] == ["weight: no number; run: no number"] * 3


def test_sql_compares_levels_exactly_whatever_the_collation():
    saved, table, issues = odd_cells()
    found = in_sqlite(as_sql(saved.model, dialect="sqlite"), table, collation="NOCASE")
    assert found["issues"] == issues
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install duckdb")
    with duckdb.connect() as connection:
        connection.register("given", numbered(table))
        connection.execute("CREATE TABLE records AS SELECT * FROM given")
        connection.execute('ALTER TABLE records ALTER "kind of" TYPE VARCHAR COLLATE NOCASE')
        rows = connection.execute(f'SELECT issues FROM ({as_sql(saved.model).strip().rstrip(";")}) ORDER BY "{ROW}"')
        assert [one for (one,) in rows.fetchall()] == issues


@pytest.mark.parametrize("dialect", DATABASES)
def test_sql_refuses_a_record_that_the_model_refuses(dialect):
    """A number whose missing cells have no fill: the results are NULL, and the issues say why."""
    found = exported("evidence", N_SCORED)
    model = found.saved.model
    strict = replace(model, encodings=(replace(model.encodings[0], fill=np.nan), *model.encodings[1:]))
    table = found.table.slice(0, 3)
    table = table.set_column(0, "first", pa.array([None, 0.5, float("inf")]))
    got = DATABASES[dialect](as_sql(strict, dialect=dialect), table)
    assert got["issues"] == ["first: missing", None, "first: too large"]
    for name in ("prediction", "probability", "margin", "nearest_0", "nearest_1"):
        assert [value is None for value in got[name]] == [True, False, True]
    assert_sql_agrees({name: values[1:2] for name, values in got.items()}, found.saved, table.slice(1, 1))


def test_sql_of_the_heart_model_is_small():
    table = table_of("heart")
    X, y = table.drop_columns(["HeartDisease"]), table["HeartDisease"].to_pylist()
    tiny = EvidenceClassifier(n_medoids=6, n_neighbors=0, n_pairs=2, n_triples=1, random_state=0)
    full = EvidenceClassifier(n_medoids=64, n_neighbors=0, random_state=0)
    for method, most in ((tiny, 100_000), (full, 300_000)):
        saved = SavedModel(MedoidClassifier(method=method, refine="never", random_state=0).fit(X, y).model_)
        for dialect in DIALECTS:
            assert len(as_sql(saved.model, dialect=dialect).encode()) <= most
        assert_sql_agrees(in_duckdb(as_sql(saved.model), X), saved, X)


def test_sql_names_the_model_and_the_table():
    saved, table = exported("evidence", N_SCORED)
    sql = as_sql(saved.model, "ab12", dialect="sqlite", table="main.new records")
    assert "SHA-256 ab12" in sql.splitlines()[0]
    assert_sql_agrees(in_sqlite(sql, table, "new records"), saved, table)
    for wrong in ("", "a..b", "a\0b", "QMEDOID_stage1"):
        with pytest.raises(ParameterError, match="'table' parameter"):
            as_sql(saved.model, table=wrong)
    with pytest.raises(ParameterError, match="'dialect' parameter must be one of"):
        as_sql(saved.model, dialect="oracle")


@pytest.mark.parametrize(
    "given", [{"format": "pmml"}, {"format": "js", "table": "t"}, {"format": "sql", "dialect": "x"}]
)
def test_saved_models_refuse_other_formats(tmp_path, given):
    with pytest.raises(ParameterError, match="parameter"):
        exported("evidence", N_SCORED).saved.export(tmp_path / "model", **given)
    assert not list(tmp_path.iterdir())


def test_sql_refuses_a_model_that_is_too_wide():
    stages = Stages(dialect_of("sqlite"))
    for number in range(2000):
        stages.add("e", str(number))
    stages.next()
    everything = {'"sum"': "+".join(f"e{number}" for number in range(2000))}
    with pytest.raises(ModelError, match="would have 2,001, and sqlite allows 2,000: export it as js or onnx"):
        stages.query("records", everything)


def test_numbers_come_back_exactly():
    values = [0.1, -1 / 3, 1e-300, 1.7976931348623157e308, 5e-324, -0.0, 123456789.0, 1e22]
    texts = [dialect_of("duckdb").number(value) for value in values]
    assert all("e" in text for text in texts)
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install duckdb")
    assert list(duckdb.execute(f"SELECT {','.join(texts)}").fetchone()) == values
    assert list(sqlite3.connect(":memory:").execute(f"SELECT {','.join(texts[:1])}").fetchone()) == values[:1]
    assert dialect_of("postgres").number(-0.5) == "float8'-0.5e0'"
