"""One switch chooses between the compiled kernels and their twins."""

import os
import subprocess
import sys

import pytest

CODE = "from qmedoid.kernels._backend import compiled; print(compiled({name!r}))"


@pytest.mark.parametrize("name", ["cross_entropy", "evidence", "medoid", "nearest", "scoring", "search", "statevector"])
def test_the_twin_can_be_asked_for(name):
    pytest.importorskip(f"qmedoid.kernels._{name}", reason="the compiled kernel was not built")
    for value, expected in (("numpy", "None"), ("", f"<module 'qmedoid.kernels._{name}'")):
        env = {**os.environ, "QMEDOID_KERNELS": value, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", CODE.format(name=name)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(expected)
