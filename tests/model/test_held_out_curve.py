"""The held-out curve counts rows exactly, and what it leaves out lies close to what it keeps."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.model.training_summary import MOST_CUTS, HeldOutCurve

ROWS = st.lists(st.tuples(st.booleans(), st.integers(-20, 20)), max_size=200)


def curve_of(rows, most=MOST_CUTS):
    positive = np.array([is_positive for is_positive, _ in rows], dtype=bool)
    log_odds = np.array([score / 4 for _, score in rows])
    return positive, log_odds, HeldOutCurve.of(positive, log_odds, most=most)


@given(ROWS)
@settings(deadline=None)
def test_curve_counts_the_rows_at_every_threshold(rows):
    positive, log_odds, curve = curve_of(rows)
    assert curve.thresholds.tolist() == sorted(set(log_odds.tolist()), reverse=True)
    for threshold, true, false in zip(curve.thresholds, curve.true_positives, curve.false_positives, strict=True):
        assert true == (positive & (log_odds >= threshold)).sum()
        assert false == (~positive & (log_odds >= threshold)).sum()
    assert (curve.n_positive, curve.n_negative) == (positive.sum(), (~positive).sum())


@given(ROWS, st.integers(2, 12), st.randoms())
@settings(deadline=None)
def test_curve_with_fewer_cuts_is_close_to_the_full_one(rows, most, shuffler):
    full = curve_of(rows)[2]
    shuffler.shuffle(rows)
    short = curve_of(rows, most)[2]
    assert len(short.thresholds) <= most
    at = {t: (p, n) for t, p, n in zip(full.thresholds, full.true_positives, full.false_positives, strict=True)}
    kept = [at[t] for t in short.thresholds]
    assert kept == list(zip(short.true_positives, short.false_positives, strict=True))
    step = 2 / (most - 1) + 1e-12
    for true, false in at.values():
        near = [
            abs(true - p) <= step * max(full.n_positive, 1) and abs(false - n) <= step * max(full.n_negative, 1)
            for p, n in kept
        ]
        assert any(near)
    if rows:
        assert kept[-1] == (full.n_positive, full.n_negative)
