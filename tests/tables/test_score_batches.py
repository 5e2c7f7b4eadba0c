"""Batches of a table to batches of decisions: how a table is cut makes no difference."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitted_tables import fitted
from qmedoid.exceptions import ContractError, ParameterError
from qmedoid.tables.difference import Issues
from qmedoid.tables.results import ResultColumns, ScoreSettings
from qmedoid.tables.scoring import decide_rows


def columns(model, carried=()):
    return ResultColumns(model, ScoreSettings(tuple(carried)))


def results(model, table, carried=()):
    (batch,) = table.combine_chunks().to_batches()
    return columns(model, carried).batch(batch, decide_rows(model, batch, Issues()))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_results_are_what_the_classifier_says(n_classes):
    table, classifier = fitted(n_classes)
    model = classifier.model_
    out = results(model, table)
    assert out.schema.names == list(columns(model).names)
    assert out["prediction"].to_pylist() == classifier.predict(table.drop_columns(["y"])).tolist()
    probabilities = classifier.predict_proba(table.drop_columns(["y"]))
    expected = probabilities[:, 1] if n_classes == 2 else probabilities.max(axis=1)
    np.testing.assert_allclose(out["score"].to_numpy(), expected, rtol=1e-12)
    assert set(out["decided_by"].to_pylist()) == {model.method}


@pytest.mark.parametrize("n_classes", [2, 3])
@settings(max_examples=15, deadline=None)
@given(st.integers(1, 79))
def test_parts_are_decided_as_the_whole(n_classes, cut):
    table, classifier = fitted(n_classes)
    model = classifier.model_
    parts = [results(model, part) for part in (table.slice(0, cut), table.slice(cut))]
    assert pa.Table.from_batches(parts).equals(pa.Table.from_batches([results(model, table)]))


def test_nearest_medoids_are_training_rows_of_their_class():
    table, classifier = fitted(3)
    out, labels = results(classifier.model_, table), table["y"].to_pylist()
    for label in "abc":
        assert {labels[row] for row in out[f"nearest_medoid_{label}"].to_pylist()} == {label}


def test_carried_columns_are_checked():
    model = fitted()[1].model_
    given = pa.schema([("b", pa.int64()), ("a", pa.string())])
    assert columns(model, ["a", "b"]).nothing(given).schema.names[:2] == ["a", "b"]
    with pytest.raises(ContractError, match=r"no column 'c' to carry through\. The table has: 'b', 'a'"):
        columns(model, ["a", "c"]).nothing(given)
    for name in columns(model).names:
        with pytest.raises(ParameterError, match=f"'{name}' cannot be carried through"):
            columns(model, [name]).nothing(pa.schema([(name, pa.string())]))


def test_operating_point_moves_margins_and_not_scores():
    table, plain = fitted()
    _, strict = fitted(operating_point=0.9)
    before, after = results(plain.model_, table), results(strict.model_, table)
    np.testing.assert_allclose(before["score"].to_numpy(), after["score"].to_numpy())
    moved = before["margin"].to_numpy() - after["margin"].to_numpy()
    np.testing.assert_allclose(moved, np.log(0.9 / 0.1))
    assert [label == "b" for label in after["prediction"].to_pylist()] == (after["margin"].to_numpy() > 0).tolist()
