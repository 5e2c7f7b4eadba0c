"""Newton's method ends where the gradient vanishes, or points out of the range, and not before."""

import numpy as np
import pytest
from scipy.special import expit

from qmedoid.optimize.newton import logistic_weights, newton


def logistic(X, y, pull):
    def local(w):
        t = X @ w
        p = expit(t)
        value = float((np.logaddexp(0.0, t) - y * t).sum() + 0.5 * pull * w @ w)
        hessian = (X * (p * (1.0 - p))[:, None]).T @ X + pull * np.eye(len(w))
        return value, lambda: (X.T @ (p - y) + pull * w, hessian)

    return local


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("far", [0.0, 30.0])
def test_gradient_vanishes_or_points_out_of_the_range(seed, far):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 4)) * [1.0, 10.0, 0.1, 3.0]
    y = (X[:, 0] + rng.normal(size=80) > 0).astype(float)
    lowest = np.array([0.3, -np.inf, 0.0, -np.inf])
    function = logistic(X, y, 0.01)
    found = newton(function, np.full(4, far), lowest)
    gradient, _ = function(found)[1]()
    free = found > lowest
    assert (found >= lowest).all()
    np.testing.assert_allclose(gradient[free], 0.0, atol=1e-9)
    assert (gradient[~free] >= 0.0).all()


def test_parameter_that_changes_nothing_stays_where_it_is():
    local = logistic(np.column_stack([np.ones(9), np.zeros(9)]), np.array([0.0, 1.0, 1.0] * 3), 0.0)
    found = newton(local, np.array([0.0, 7.0]))
    np.testing.assert_allclose(found, [np.log(2.0), 7.0])


def test_logistic_weights_are_the_same_from_any_start_even_where_classes_are_separated():
    Z = np.concatenate([np.linspace(-2, -1, 50), np.linspace(1, 2, 50)])[:, None]
    targets = (Z[:, 0] > 0).astype(float)
    far, near = (logistic_weights(Z, targets, np.array([0.0, 1e-6]), start) for start in np.array([[-40, -30], [0, 0]]))
    assert np.isfinite(near).all()
    np.testing.assert_array_equal((far[0] + far[1] * Z) > 0, (near[0] + near[1] * Z) > 0)
    assert far[1] == pytest.approx(near[1], rel=1e-2)
