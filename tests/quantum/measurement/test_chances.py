"""Chances in closed form against SciPy's."""

import numpy as np
import pytest
from scipy.special import chdtrc, fdtrc, ndtr

from qmedoid.quantum.measurement.chances import chance_below, chi_square_chance, f_chance


@pytest.mark.parametrize("freedom", [2, 4, 10, 40, 200])
def test_chi_square(freedom):
    for square in [-1.0, 0.0, 1e-9, 0.5, *np.linspace(1, 3 * freedom + 40, 25), 1e4, 1e6]:
        expected = chdtrc(freedom, max(square, 0.0))
        assert chi_square_chance(freedom, square) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("more", [2, 6, 198])
@pytest.mark.parametrize("freedom", [1, 5, 50, 3000])
def test_f(more, freedom):
    for ratio in [-1.0, 0.0, 1e-9, *np.linspace(0.1, 5, 25), 100.0]:
        expected = fdtrc(more, freedom, max(ratio, 0.0))
        assert f_chance(more, freedom, ratio) == pytest.approx(expected, rel=1e-8, abs=1e-300)


def test_normal():
    values = np.linspace(-8, 8, 33).reshape(3, 11)
    np.testing.assert_allclose(chance_below(values), ndtr(values), rtol=1e-12)
