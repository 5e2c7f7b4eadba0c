"""Names, levels and classes that would break out of a statement stay what they are: names, levels and classes."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from agreement import assert_onnx_agrees, assert_sql_agrees
from engines import DATABASES, as_sql, in_onnxruntime

from few_trees import few_trees
from qmedoid import EvidenceClassifier, MedoidClassifier, SavedModel
from qmedoid.exceptions import ModelError
from qmedoid.export.onnx.model import onnx_file
from qmedoid.export.sql.dialects import DIALECTS

COLUMNS = (
    'a"b', "x'; DROP TABLE records; --", "new\nline", "ünï — 數 🐘", "select", "probability", "margin", "e0", "r0",
    "stage1", "y0", "y3", "f1", "p1", "n0", "i1", "/* */", "{last}", "a" * 300, "nearest_it's",
)  # fmt: skip
LEVELS = (
    "'; DROP TABLE records; --", '"', "a\nb", "ünï — 數", "NULL", "\\'", "-- x", "b" * 5000, "E'\\x'", "$$", "%s {x}",
)  # fmt: skip
CLASSES = ("it's", '"; SELECT 1; --')


def hostile(classes=CLASSES, columns=COLUMNS):
    """A model with such names, and its table; the classes are called as asked."""
    saved, table = fitted(columns)
    return SavedModel(replace(saved.model, decision=replace(saved.model.decision, classes=classes))), table


@cache
def fitted(columns):
    rng = np.random.default_rng(2)
    n = 240
    X = rng.normal(size=(n, len(columns)))
    codes = (X[:, 0] + X[:, -1] > 0).astype(int)
    table = pa.table(
        {name: X[:, place] for place, name in enumerate(columns)}
        | {"level'\"": [LEVELS[(i + 3 * c) % len(LEVELS)] for i, c in enumerate(codes)]}
    )
    estimator = MedoidClassifier(method=EvidenceClassifier(n_medoids=3, random_state=0), random_state=0)
    with few_trees():
        model = estimator.fit(table, np.array(CLASSES)[codes]).model_
    # So many levels make an open category; this one takes no others.
    closed = replace(model.contract.columns[-1], is_open=False, levels=model.encodings[-1].levels)
    contract = replace(model.contract, columns=(*model.contract.columns[:-1], closed))
    return SavedModel(replace(model, contract=contract)), table


@pytest.mark.parametrize("dialect", DATABASES)
def test_sql_keeps_hostile_names(dialect):
    saved, table = hostile()
    found = DATABASES[dialect](as_sql(saved.model, dialect=dialect), table)
    # Names of outputs that a column of the table has are others, and so are those of classes with lines of their own.
    outputs = {"probability": "qmedoid_probability", "margin": "qmedoid_margin"}
    assert found["probability"] == table.column("probability").to_pylist()
    near = [name for name in found if "nearest_" in name and name not in table.column_names]
    assert near == ["qmedoid_nearest_it's", 'nearest_"; SELECT 1; --']
    renamed = {name: found[name] for name in found if name not in table.column_names}
    renamed["nearest_0"], renamed["nearest_1"] = (renamed.pop(name) for name in near)
    assert_sql_agrees(renamed, saved, table, outputs)
    assert not any(found["issues"])
    unknown = table.slice(0, 2).set_column(len(COLUMNS), "level'\"", pa.array(["'", "drop"]))
    found = DATABASES[dialect](as_sql(saved.model, dialect=dialect), unknown)
    assert found["issues"] == ["level'\": new level"] * 2


@pytest.mark.parametrize("dialect", DATABASES)
@pytest.mark.parametrize("classes", [("line\nbreak", ""), ("A", "a"), (True, False), (-1, 10**6), (-0.5, 1.5)])
def test_sql_keeps_classes_of_any_kind(dialect, classes):
    # The fewer columns, the shorter the statement: these have names that outputs want.
    saved, table = hostile(classes, ("probability", "margin", "nearest_it's"))
    found = DATABASES[dialect](as_sql(saved.model, dialect=dialect), table)
    expected = saved.classes_[saved.decide(table).codes].tolist()
    assert found["prediction"] == expected
    assert len({name for name in found if "nearest_" in name} - {*table.column_names}) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_comments_end_where_they_should(dialect):
    saved, _ = hostile(("line\nbreak", "x\r\n; SELECT"))
    lines = as_sql(saved.model, dialect=dialect, table="a\nb").splitlines()
    start = next(place for place, line in enumerate(lines) if not line.startswith("--"))
    assert lines[start].startswith("WITH qmedoid_stage0 AS ")


@pytest.mark.parametrize("classes", [CLASSES, ("line\nbreak", ""), (-1, 10**6), (-0.5, 1.5)])
def test_onnx_keeps_hostile_names(classes):
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'qmedoid[onnx]'")
    saved, table = hostile(classes)
    found = in_onnxruntime(onnx_file(saved.model), table)
    assert {"qmedoid_margin", "probabilities"} < {*found}
    assert_onnx_agrees(found | {"margin": found["qmedoid_margin"]}, saved, table)
    assert not found["issues"].any()


def with_names(model, *names):
    columns = tuple(replace(column, name=name) for column, name in zip(model.contract.columns, names, strict=False))
    columns += model.contract.columns[len(columns) :]
    return replace(model, contract=replace(model.contract, columns=columns))


@pytest.mark.parametrize(
    ("names", "dialect", "message"),
    [
        (("Age", "aGE"), "duckdb", "'Age' and 'aGE' are one to duckdb"),
        (("Age", "aGE"), "sqlite", "'Age' and 'aGE' are one to sqlite"),
        (("x" * 64, "x" * 63 + "y"), "postgres", "are one to postgres"),
        (("",), "sqlite", "which no name in SQL can be"),
        (("a\0b",), "duckdb", "which no name in SQL can be"),
        (("_rowid_",), "sqlite", "has a name that the statement needs"),
        (("QMEDOID_record",), "duckdb", "has a name that the statement needs"),
    ],
)
def test_sql_refuses_names_that_the_database_cannot_tell_apart(names, dialect, message):
    with pytest.raises(ModelError, match=message):
        as_sql(with_names(hostile()[0].model, *names), dialect=dialect)


def test_sql_keeps_names_apart_where_the_database_does():
    assert '"Age"' in as_sql(with_names(hostile()[0].model, "Age", "aGE"), dialect="postgres")


def test_sql_refuses_a_level_that_no_text_can_hold():
    model = hostile()[0].model
    levels = replace(model.encodings[-1], levels=("a\0b", *model.encodings[-1].levels[1:]))
    with pytest.raises(ModelError, match="NUL character"):
        as_sql(replace(model, encodings=(*model.encodings[:-1], levels)))
