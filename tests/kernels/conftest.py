"""Both ways that kernels run: compiled, and as their NumPy twins."""

import pytest

from qmedoid.kernels import backend as kernels
from qmedoid.kernels import cross_entropy, medoid, statevector, trees


@pytest.fixture
def use_twins(monkeypatch):
    """Called, it has NumPy twins run from then on."""

    def use():
        for module in (kernels, cross_entropy, medoid, statevector, trees):
            monkeypatch.setattr(module, "compiled", lambda _: None)

    return use


@pytest.fixture(params=["compiled", "numpy"])
def backend(request, use_twins):
    """Compiled kernels, then twins; a test without the first is skipped."""
    if request.param == "numpy":
        use_twins()
    elif kernels.compiled("nearest") is None:
        pytest.skip("the compiled kernels were not built")
