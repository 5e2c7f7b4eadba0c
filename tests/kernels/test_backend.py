"""One switch chooses between the compiled kernels and their twins."""

import os
import subprocess
import sys
import warnings

import pytest

from qmedoid.exceptions import QMedoidWarning
from qmedoid.kernels import backend

CODE = "from qmedoid.kernels.backend import compiled; print(compiled({name!r}))"


@pytest.mark.parametrize("name", ["cross_entropy", "evidence", "medoid", "nearest", "scoring"])
def test_the_twin_can_be_asked_for(name):
    pytest.importorskip(f"qmedoid.kernels._{name}", reason="the compiled kernel was not built")
    for value, expected in (("numpy", "None"), ("", f"<module 'qmedoid.kernels._{name}'")):
        env = {**os.environ, "QMEDOID_KERNELS": value, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", CODE.format(name=name)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(expected)


def test_version_says_which_kernels_run(monkeypatch):
    pytest.importorskip("qmedoid.kernels._trees", reason="the compiled kernels were not built")
    monkeypatch.delenv("QMEDOID_KERNELS", raising=False)
    assert backend.kernels_in_use() == "compiled"
    monkeypatch.setattr(backend, "find_spec", lambda name: None if name.endswith(("_trees", "_medoid")) else name)
    assert backend.kernels_in_use().startswith("compiled, but NumPy for medoid, trees: not built")
    monkeypatch.setattr(backend, "find_spec", lambda _name: None)
    assert backend.kernels_in_use().startswith("NumPy: not built")
    monkeypatch.setenv("QMEDOID_KERNELS", "numpy")
    assert backend.kernels_in_use() == "NumPy, as QMEDOID_KERNELS asks"


def test_missing_kernels_warn_once(monkeypatch):
    monkeypatch.delenv("QMEDOID_KERNELS", raising=False)
    backend.compiled.cache_clear()
    backend._warn_not_built.cache_clear()
    try:
        with pytest.warns(QMedoidWarning, match="install a C compiler and reinstall"):
            assert backend.compiled("nothing_by_this_name") is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert backend.compiled("nothing_either") is None
        monkeypatch.setenv("QMEDOID_KERNELS", "numpy")
        backend.compiled.cache_clear()
        assert backend.compiled("scoring") is None
    finally:
        backend.compiled.cache_clear()
