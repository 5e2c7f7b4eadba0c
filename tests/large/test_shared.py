"""The models that a process keeps: by hash, each loaded once, and not too many of them."""

import pytest

from fitted_tables import fitted
from qmedoid import load
from qmedoid.exceptions import ModelError
from qmedoid.large import shared
from qmedoid.large.shared import cached_model


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return fitted()[1].save(tmp_path_factory.mktemp("models") / "small.qmedoid")


@pytest.fixture
def loads(monkeypatch):
    """A process that has loaded no model yet; the paths of its loads."""
    loads, load_file = [], shared.load_file
    monkeypatch.setattr(shared, "_models", {})
    monkeypatch.setattr(shared, "load_file", lambda path: (loads.append(path), load_file(path))[1])
    return loads


def test_a_model_is_loaded_once(path, loads):
    sha256 = load(path).sha256
    first = cached_model(path, sha256)
    assert cached_model(path, sha256) is first
    assert loads == [path]


def test_another_file_is_refused_and_not_kept(path, loads):
    sha256 = load(path).sha256
    for _ in range(2):
        with pytest.raises(ModelError, match=f"is not the one that was meant: its SHA-256 is {sha256}"):
            cached_model(path, "0" * 64)
    assert loads == [path, path]
