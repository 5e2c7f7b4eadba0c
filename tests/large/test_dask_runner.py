"""Passes on Dask: summaries are those of the same rows in files, whatever the partitions."""

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from qmedoid.exceptions import DataError
from qmedoid.large.base import RawReading, merge
from qmedoid.large.passes import count_labels, sample_rows
from qmedoid.large.runner import file_runner, file_table

dask = pytest.importorskip("dask", reason="pip install 'qmedoid[dask]'")
da = pytest.importorskip("dask.array", reason="pip install 'qmedoid[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="pip install 'qmedoid[dask]'")
pytest.importorskip("distributed", reason="pip install 'qmedoid[dask]'")

from qmedoid.large.collections import collection_runner  # noqa: E402 (it imports Dask)

N_ROWS = 3000
COUNT = "count", partial(count_labels, reading=RawReading(False), target="label")
RATES = {"0": 0.1, "1": 0.5}
SAMPLE = "sample", partial(sample_rows, reading=RawReading(False), target="label", rates=RATES, seed=3)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    shop = rng.choice(["north", "south", "west"], N_ROWS)
    return pd.DataFrame(
        {
            "a": rng.normal(size=N_ROWS),
            "shop": pd.Categorical(shop),
            "note": np.where(rng.random(N_ROWS) < 0.1, None, shop),
            "label": rng.integers(0, 2, N_ROWS),
        }
    )


@pytest.fixture(scope="module")
def in_file(frame, tmp_path_factory):
    """The passes over the same rows in one file."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    frame.to_parquet(path, row_group_size=700)
    runner = file_runner(file_table(path))
    lengths = [one.total("rows") for one in runner.each(*COUNT)]
    return runner, merge(runner.each(*COUNT)), runner.run(*SAMPLE, lengths)


def same(one, other):
    return one.counts == other.counts and {name: table.to_pydict() for name, table in one.rows.items()} == {
        name: table.to_pydict() for name, table in other.rows.items()
    }


@pytest.mark.parametrize("n_parts", [1, 2, 8, 64])
def test_summaries_are_those_of_a_file(frame, in_file, n_parts):
    runner = collection_runner(dd.from_pandas(frame, npartitions=n_parts), "label")
    each = runner.each(*COUNT)
    lengths = [one.total("rows") for one in each]
    assert len(each) == n_parts
    assert sum(lengths) == N_ROWS
    assert same(merge(each), in_file[1])
    assert same(merge(each[::-1]), in_file[1])
    assert same(runner.run(*SAMPLE, lengths), in_file[2])
    assert runner.facts.categories == in_file[0].facts.categories == {"shop"}
    assert [name for name, _, _ in runner.times] == ["count", "sample"]


def test_targets_may_be_apart(frame, in_file):
    x, y = dd.from_pandas(frame.drop(columns="label"), npartitions=3), dd.from_pandas(frame["label"], npartitions=3)
    runner = collection_runner(x, y)
    assert runner.target == "label"
    assert same(merge(runner.each(*COUNT)), in_file[1])
    nameless = collection_runner(x, y.rename("a"))
    assert nameless.target == "target"  # as a column is called "a"


def test_arrays_in_other_chunks(frame, in_file):
    X = da.from_array(frame[["a", "label"]].to_numpy(), chunks=(700, 1))
    y = da.from_array(frame["label"].to_numpy(), chunks=1000)
    runner = collection_runner(X, y)
    assert runner.facts.schema.names == ["x0", "x1", "target"]
    found = merge(runner.each("count", partial(COUNT[1], target="target")))
    assert same(found, in_file[1])


def test_empty_partitions(frame, in_file):
    x = dd.from_pandas(frame, npartitions=4)
    runner = collection_runner(dd.concat([x[x.a > 1e9], x, x[x.a > 1e9]]), "label")
    each = runner.each(*COUNT)
    lengths = [one.total("rows") for one in each]
    assert 0 in lengths
    assert same(merge(each), in_file[1])
    assert same(runner.run(*SAMPLE, lengths), in_file[2])


def test_objects_are_texts_or_refused(frame, in_file):
    with dask.config.set({"dataframe.convert-string": False}):
        texts = collection_runner(dd.from_pandas(frame.astype({"note": object}), npartitions=4), "label")
        assert texts.facts.schema.field("note").type == pa.string()
        assert same(merge(texts.each(*COUNT)), in_file[1])
        objects = frame.assign(note=frame["a"].astype(object))
        numbers = collection_runner(dd.from_pandas(objects, npartitions=4), "label")
        with pytest.raises(DataError, match="'note' holds Python objects of type double in partition"):
            numbers.each(*COUNT)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (lambda x: dd.from_pandas(x["label"].iloc[:-1], npartitions=2), r"Partition 1 \(from 0\) of X has 1500 rows"),
        (lambda x: dd.from_pandas(x["label"], npartitions=3), "X has 2 partitions and y has 3"),
        (lambda x: x["label"], "must be a Dask series"),
        (lambda _: "lable", "no column 'lable'. Did you mean 'label'"),
    ],
)
def test_targets_that_do_not_fit_are_refused(frame, y, message):
    with pytest.raises(DataError, match=message):
        collection_runner(dd.from_pandas(frame, npartitions=2), y(frame)).each(
            "count", partial(COUNT[1], target="target")
        )


class Reordered:
    """Gives the rows of a partition in another order every other time, as shuffles by way of a disk do."""

    times = 0

    def __call__(self, part):
        type(self).times += 1
        return part.iloc[::-1] if type(self).times % 2 else part


def test_targets_in_another_order_are_refused(frame):
    """Lengths agree, and every label would be that of another row."""
    parts = dd.from_pandas(frame, npartitions=1)
    x, y = parts[["a", "shop"]], parts["label"].map_partitions(lambda part: part.iloc[::-1], meta=("label", int))
    with pytest.raises(DataError, match=r"Partition 0 \(from 0\) of X has another index than that of y"):
        collection_runner(x, y).each(*COUNT)
    by_place = collection_runner(x, y.to_dask_array())  # asked for in so many words
    assert merge(by_place.each("count", partial(COUNT[1], target="target"))).total("rows") == N_ROWS


def test_rows_that_come_in_another_order_are_refused(frame):
    parts = dd.from_pandas(frame, npartitions=1).map_partitions(Reordered(), meta=frame.iloc[:0])
    runner = collection_runner(parts, "label")
    lengths = [one.total("rows") for one in runner.each(*COUNT)]
    with pytest.raises(DataError, match=r"sample: partition 0 \(from 0\) .* in another order, than in an earlier pass"):
        runner.run(*SAMPLE, lengths)
