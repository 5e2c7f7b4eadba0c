"""The full credit-card table: every row scored as defined, in little memory."""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from qmedoid import NearestMedoidClassifier
from qmedoid.kernels.ties import first_smallest_of_rows


@pytest.fixture(scope="module")
def credit_card():
    path = Path(os.environ.get("QMEDOID_DATA", "")) / "creditcard.parquet"
    if not path.is_file():
        pytest.skip(
            "needs creditcard.parquet (the Kaggle set mlg-ulb/creditcardfraud as Parquet): "
            "set QMEDOID_DATA to the folder that holds it"
        )
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    names = [name for name in table.column_names if name not in ("Class", "Time")]
    return np.column_stack([table[name].to_numpy() for name in names]), table["Class"].to_numpy()


@pytest.fixture(
    scope="module", params=[NearestMedoidClassifier, NearestMedoidClassifier.paper], ids=["default", "paper"]
)
def fitted(request, credit_card):
    X, y = credit_card
    # All rows are decided; a fifth of them is enough to fit.
    return request.param(max_passes=0, subset_sizes=(3, 3), random_state=0).fit(X[::5], y[::5]), X


def test_every_row_is_decided_as_defined(fitted):
    model, X = fitted
    method = model.model_.parts[0]
    defined = first_smallest_of_rows(method.fuse(method.feature_channels(method.features(X))))
    np.testing.assert_array_equal(method.labels(X), defined)


def test_scoring_takes_little_memory_beside_the_table(fitted):
    model, X = fitted
    model.predict(X[:10])
    tracemalloc.start()
    model.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6
