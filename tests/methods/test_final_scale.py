"""Out-of-fold logits on the scale of the final model: order is kept, quantiles are those of the final model."""

import numpy as np

from qmedoid.methods.rare.fit import on_final_scale


def _logits(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    out_of_fold = rng.normal(size=n) * 2.0 - 5.0
    final = 1.3 * out_of_fold - 0.4 + 0.3 * rng.normal(size=n)
    shared = rng.random(n) < 0.9
    return out_of_fold, final, shared


def test_rates_are_those_of_the_final_model():
    out_of_fold, final, shared = _logits()
    moved = on_final_scale(out_of_fold, final, shared)
    for rate in (0.5, 0.1, 0.0131):
        cut = np.quantile(moved[shared], 1.0 - rate)
        assert abs(np.mean(final[shared] > cut) - rate) < 0.002
        plain = np.quantile(out_of_fold[shared], 1.0 - rate)
        assert abs(np.mean(final[shared] > plain) - rate) > 0.005


def test_the_order_is_kept():
    out_of_fold, final, shared = _logits(seed=1)
    moved = on_final_scale(out_of_fold, final, shared)
    order = np.argsort(out_of_fold)
    assert (np.diff(moved[order]) >= 0).all()
    beyond = np.array([-1e3, 1e3])
    ends = on_final_scale(
        np.concatenate([out_of_fold, beyond]), np.append(final, beyond), np.append(shared, [False] * 2)
    )
    assert ends[-2] < moved.min()
    assert ends[-1] > moved.max()


def test_rows_that_are_not_shared_change_nothing_for_others():
    out_of_fold, final, shared = _logits(seed=2)
    other = np.where(shared, final, 99.0)
    np.testing.assert_array_equal(
        on_final_scale(out_of_fold, final, shared), on_final_scale(out_of_fold, other, shared)
    )


def test_few_rows_leave_logits_as_they_are():
    out_of_fold, final, shared = _logits(n=500)
    np.testing.assert_array_equal(on_final_scale(out_of_fold, final, shared), out_of_fold)
