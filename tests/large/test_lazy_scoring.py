"""Decisions about Dask collections: lazy, with right types, and the same bits as about rows in memory."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest

from fitted_tables import fitted
from qmedoid import MedoidClassifier
from qmedoid.exceptions import ContractError, DataError, MissingExtraError, ParameterError
from qmedoid.saved import SavedModel

dask = pytest.importorskip("dask", reason="pip install 'qmedoid[dask]'")
da = pytest.importorskip("dask.array", reason="pip install 'qmedoid[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="pip install 'qmedoid[dask]'")
pytest.importorskip("distributed", reason="pip install 'qmedoid[dask]'")

METHODS = ("predict", "predict_proba", "decision_function", "decided_by", "novelty")


@pytest.fixture(params=[2, 3])
def owners(request):
    """A frame with an index of its own, and those who decide about it."""
    table, classifier = fitted(request.param)
    frame = table.drop_columns(["y"]).to_pandas()
    frame.index = pd.Index(np.arange(len(frame))[::-1] * 10, name="id")
    return frame, (classifier, SavedModel(classifier.model_))


def with_empty(frame, n_parts=5):
    """The frame in partitions, with empty ones around."""
    parts = dd.from_pandas(frame, npartitions=n_parts, sort=False)
    none = parts[parts["x1"] > 1e9]
    return dd.concat([none, parts, none])


def forbidden(*_, **__):
    raise AssertionError("something was computed")


@pytest.mark.parametrize("method", METHODS)
def test_a_frame_gives_a_series_or_a_frame_with_its_index(owners, method):
    frame, deciders = owners
    for owner in deciders:
        with dask.config.set(scheduler=forbidden):
            lazy = getattr(owner, method)(with_empty(frame))
        values, found = getattr(owner, method)(frame), lazy.compute()
        assert np.asarray(found).tolist() == values.tolist()
        pd.testing.assert_index_equal(found.index, frame.index)
        if values.ndim == 1:
            assert (found.dtype, found.name) == (lazy.dtype, lazy.name)
        else:
            assert list(found.columns) == list(lazy.columns) == owner.classes_.tolist()
            assert (found.dtypes == lazy.dtypes).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_array_gives_an_array(method, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1) * (n_classes - 2)
    classifier = MedoidClassifier(method="nearest", random_state=0).fit(X, y)
    known = da.from_array(X, chunks=(25, 1))
    unknown = known[known[:, 0] < 9.0]
    for owner in (classifier, SavedModel(classifier.model_)):
        values = getattr(owner, method)(X)
        for data in (known, unknown):
            with dask.config.set(scheduler=forbidden):
                lazy = getattr(owner, method)(data)
            found = lazy.compute()
            assert lazy.dtype == found.dtype == values.dtype
            assert lazy.ndim == values.ndim
            assert found.tobytes() == values.tobytes()
        assert getattr(owner, method)(known).shape == values.shape


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"columns": ["color", "member"], "add": ["probabilities", "reasons", "novelty"]},
        {"on_bad_row": "flag", "columns": ["x1"]},
        {"on_bad_row": "skip"},
    ],
)
def test_results_are_those_of_score_table(owners, how):
    frame, (_, saved) = owners
    with dask.config.set(scheduler=forbidden):
        lazy = saved.score_table(with_empty(frame), **how)
    found = lazy.compute()
    pd.testing.assert_index_equal(found.index, frame.index)
    pd.testing.assert_series_equal(found.dtypes, lazy.dtypes)
    whole = saved.score_table(frame, **how).to_pandas()
    pd.testing.assert_frame_equal(found.reset_index(drop=True), whole, check_dtype=False, check_exact=True)


def test_bad_rows_are_flagged_or_left_out(owners):
    frame, (_, saved) = owners
    bad = frame.astype({"x1": object})
    bad.iloc[[3, 50], 0] = "three"
    with dask.config.set({"dataframe.convert-string": False}):
        parts = dd.from_pandas(bad, npartitions=4, sort=False)
        flagged, kept = (saved.score_table(parts, on_bad_row=how) for how in ("flag", "skip"))
        pd.testing.assert_series_equal(flagged.compute().dtypes, flagged.dtypes)
        assert flagged.compute()["flag"].notna().to_numpy().nonzero()[0].tolist() == [3, 50]
        assert kept.compute().index.tolist() == frame.index.delete([3, 50]).tolist()
        assert "flag" not in kept.columns
        with pytest.raises(DataError, match="x1"):
            saved.predict(parts).compute()


def test_an_array_is_scored_into_a_frame():
    X = np.random.default_rng(0).normal(size=(60, 2))
    saved = SavedModel(MedoidClassifier(method="nearest", random_state=0).fit(X, X[:, 0] > 0).model_)
    found = saved.score_table(da.from_array(X, chunks=(25, 1)))
    pd.testing.assert_frame_equal(found.compute(), saved.score_table(X).to_pandas())
    assert found.divisions == (0, 25, 50, 59)


def test_columns_that_differ_are_refused_before_anything_is_computed(owners):
    frame, (_, saved) = owners
    parts = dd.from_pandas(frame.drop(columns="x2"), npartitions=2)
    for method in (*METHODS, "score_table"):
        with pytest.raises(ContractError, match="missing: 'x2'"):
            getattr(saved, method)(parts)
    with pytest.raises(ParameterError, match="'row' cannot be added"):
        saved.score_table(parts, add=["row"])
    with pytest.raises(DataError, match=r"compute\(\) it first"):
        saved.decide(parts)


def test_a_graph_has_the_model_once(owners):
    frame, (_, saved) = owners
    saved.versions = {"noise": "".join(map(chr, np.random.default_rng(0).integers(97, 122, 1_000_000)))}
    sizes = []
    for data in (dd.from_pandas(pd.concat([frame] * 10), npartitions=100), da.zeros((1000, 4), chunks=(10, 4))):
        values = saved.score_table(data) if hasattr(data, "columns") else saved.predict_proba(data, on_mismatch="warn")
        sizes.append(len(pickle.dumps(dict(dask.optimize(values)[0].__dask_graph__()))))
        assert 1_000_000 < sizes[-1] < 1_600_000


def test_score_names_the_lazy_way(owners):
    frame, (classifier, _) = owners
    labels = pd.Series(fitted(len(classifier.classes_))[0]["y"].to_pylist(), index=frame.index)
    parts, y = (dd.from_pandas(data, npartitions=3, sort=False) for data in (frame, labels))
    with pytest.raises(ParameterError, match=r"\(model.predict\(X\) == y\).mean\(\).compute\(\)"):
        classifier.score(parts, y)
    assert (classifier.predict(parts) == y).mean().compute() == classifier.score(frame, labels)


def test_a_missing_dask_is_named(owners, monkeypatch):
    frame, (_, saved) = owners
    parts = dd.from_pandas(frame, npartitions=2)
    monkeypatch.setattr("qmedoid.exceptions.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'qmedoid\[dask\]'"):
        saved.predict(parts)
    assert "dask" in sys.modules  # by this test, not by the package
