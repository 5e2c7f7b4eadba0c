"""95 % intervals of areas under curves and of means, from rows or from counts by threshold."""

import math

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.metrics.classification import pr_auc, roc_auc
from qmedoid.metrics.intervals import Interval, share_interval

# Standard errors on either side of a 95 % interval.
_WIDTH = 1.959963984540054


def roc_auc_interval(positive: Flags, scores: Array) -> Interval | None:
    r"""ROC-AUC with the interval of DeLong, DeLong and Clarke-Pearson on the logit scale; None with one class only.

    With :math:`V_i` the share of the negative records below positive record i, ties counting half, and :math:`W_j` the
    share of the positive ones above negative record j, the variance is
    :math:`s^2_V / n_+ + s^2_W / n_-`.
    """
    area = roc_auc(positive, scores)
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if math.isnan(area):
        return None
    below = _share_below(scores[positive], scores[~positive])
    above = 1.0 - _share_below(scores[~positive], scores[positive])
    variance = sum(float(shares.var(ddof=1)) / n for shares, n in ((below, n_positive), (above, n_negative)) if n > 1)
    return _on_logits(area, math.sqrt(variance), min(n_positive, n_negative))


def pr_auc_interval(positive: Flags, scores: Array) -> Interval | None:
    r"""Average precision with its logit interval; None without a positive record.

    The error of the logit is :math:`1/\sqrt{n_+ a (1 - a)}` (Boyd, Eng and Page, 2013).
    """
    area, n_positive = pr_auc(positive, scores), int(positive.sum())
    if math.isnan(area):
        return None
    return _on_logits(area, math.sqrt(area * (1.0 - area) / n_positive), n_positive)


def mean_interval(values: Array) -> Interval:
    """A mean with its normal interval; of one value that value."""
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Interval(mean, mean - _WIDTH * error, mean + _WIDTH * error)


def normal_interval(value: float, error: float) -> Interval:
    """A figure from 0 to 1 with its normal interval, held within these bounds."""
    return Interval(value, max(0.0, value - _WIDTH * error), min(1.0, value + _WIDTH * error))


def _share_below(of: Array, among: Array) -> Array:
    """For each of some scores the share of others that lie below it, ties counting half."""
    ranked = np.sort(among)
    low, high = (np.searchsorted(ranked, of, side=side) for side in ("left", "right"))
    shares: Array = (low + high) / (2.0 * len(ranked))
    return shares


def _on_logits(value: float, error: float, n: int) -> Interval:
    """An interval that is symmetric on the logit scale; at 0 or 1 that of a share of n draws without a miss.

    So near to 0 or 1 that less than one draw is a miss, logits say next to nothing: bounds are no wider than those of
    the share there.
    """
    if not 0.0 < value < 1.0:
        return share_interval(n * round(value), n)
    center, width = math.log(value / (1.0 - value)), _WIDTH * error / (value * (1.0 - value))
    low, high = (1.0 / (1.0 + math.exp(-min(max(one, -700.0), 700.0))) for one in (center - width, center + width))
    if n * min(value, 1.0 - value) < 1.0:
        share = share_interval(n * value, n)
        low, high = max(low, share.low), min(high, share.high)
    return Interval(value, low, high)
