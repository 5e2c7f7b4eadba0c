"""One switch chooses between the compiled kernels and their twins."""

import os
import subprocess
import sys

import pytest

from qmedoid.kernels import _backend

CODE = "from qmedoid.kernels._backend import compiled; print(compiled({name!r}))"


@pytest.mark.parametrize("name", ["cross_entropy", "evidence", "medoid", "nearest", "scoring", "search", "statevector"])
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
    assert _backend.kernels_in_use() == "compiled"
    monkeypatch.setattr(_backend, "_is_built", lambda module: module not in ("_trees", "_medoid"))
    assert _backend.kernels_in_use().startswith("compiled, but NumPy for medoid, trees: not built")
    monkeypatch.setattr(_backend, "_is_built", lambda _module: False)
    assert _backend.kernels_in_use().startswith("NumPy: not built")
    monkeypatch.setenv("QMEDOID_KERNELS", "numpy")
    assert _backend.kernels_in_use() == "NumPy, as QMEDOID_KERNELS asks"
