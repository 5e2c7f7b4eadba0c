"""Intervals of proportions, areas and means, and of what the next table will show; changes; and jackknife errors.

The interval of a proportion is Clopper and Pearson's. It holds the true proportion with at least the stated confidence
whatever that is, also with 0 hits or none missed, where ±2 standard errors are no interval at all; Wilson's is shorter,
but falls short of its confidence just where rare events are, at a hit or two.
"""

import math
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Flags
from qmedoid.metrics.classification import ClassMetrics, pr_auc, roc_auc


class IntervalDict(TypedDict):
    """A figure with its 95 % interval."""

    value: Annotated[float, "The estimate."]
    low: Annotated[float, "Lower end of the 95 % interval."]
    high: Annotated[float, "Upper end of the 95 % interval."]


class Interval(NamedTuple):
    """An estimate and the bounds of its confidence interval."""

    value: float
    low: float
    high: float

    def as_dict(self) -> IntervalDict:
        """The numbers by name, fit for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


def share_interval(hits: float, n: float) -> Interval:
    """Proportion of hits among n draws with its Clopper-Pearson 95 % interval; without draws 0, between 0 and 1.

    Numbers need not be whole, where rows are less than a draw each.
    """
    if n == 0:
        return Interval(0.0, 0.0, 1.0)
    tail = (1.0 - 0.95) / 2.0
    low = 0.0 if hits == 0 else _beta_quantile(tail, hits, n - hits + 1)
    high = 1.0 if hits == n else _beta_quantile(1.0 - tail, hits + 1, n - hits)
    return Interval(hits / n, low, high)


@lru_cache(maxsize=4096)  # the stops of a curve ask for the same counts again and again
def _beta_quantile(level: float, a: float, b: float) -> float:
    """The x with I_x(a, b) = level, where I is the regularized incomplete beta function; SciPy takes 0.1 s to import.

    Newton's steps, or the middle of the bracket where they leave it.
    """
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(200):
        density = math.exp((a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x) - log_beta)
        if x <= (a + 1.0) / (a + b + 2.0):
            share = density * x * (1.0 - x) / a * _beta_fraction(x, a, b)
        else:
            share = 1.0 - density * x * (1.0 - x) / b * _beta_fraction(1.0 - x, b, a)
        low, high = (low, x) if share > level else (x, high)
        step = x - (share - level) / density if density > 0 else math.nan
        following = step if low < step < high else low + (high - low) / 2
        if abs(following - x) <= 1e-15 * x or following in (low, high):
            return following
        x = following
    return x


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, from its front by Lentz's method; some √n terms."""
    tiny = 1e-300  # what is divided by stays so far from 0
    start = 1.0 - (a + b) * x / (a + 1.0)
    c, d = 1.0, 1.0 / (start if abs(start) >= tiny else tiny)
    value = d
    for m in range(1, 1_000_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) >= tiny else tiny)
            c = 1.0 + numerator / c
            c = c if abs(c) >= tiny else tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return value


# Next tables that are drawn, and what every count is raised by: Jeffreys' prior of a share.
_TABLES, _PRIOR = 4000, 0.5
# A model of all rows is another one than those of the folds, and its cut was chosen on their rows: out-of-fold rows say
# as much about it as this share of them would. And all odds of an alert move together by a standard error of so much,
# and of so much more for each unit of log-odds that the cut lies away from even odds. Tried on 23 tables by
# benchmarks/forecast_coverage.py.
_WORTH, _MOVED, _MOVED_BY_CUT = 0.8, 0.15, 0.07


@lru_cache(maxsize=256)
def next_table(
    counts: tuple[float, float, float, float],
    rows: int,
    cut: float | None = None,
    prevalence: float | None = None,
    cost: float | None = None,
) -> dict[str, Interval]:
    """What the next table of so many rows will show, each figure with an interval that holds it 19 times in 20.

    Parameters
    ----------
    counts : tuple of float
        True and false positives, missed positives and the rest among held-out draws.
    rows : int
        Rows of the next table, from 1 up.
    cut : float, optional
        The cut in log-odds, where the draws chose it and were scored by models of other rows: the farther it lies from
        even odds, the less these agree. None where the model itself has scored rows that it had not seen.
    prevalence : float, optional
        Of the next table, if it is not that of the draws.
    cost : float, optional
        What a missed positive costs, where a false alert costs 1; there is no cost without it.

    Notes
    -----
    Tables are drawn: shares of the four kinds from their Dirichlet posterior, odds of an alert that are a little higher
    or lower for all records alike, and counts from a multinomial distribution. A figure that is not defined in a table,
    such as the precision without an alert, does not count there; it is left out where the held-out draws have none.
    """
    rng = np.random.default_rng(0)
    worth, error = (1.0, 0.0) if cut is None else (_WORTH, _MOVED + _MOVED_BY_CUT * abs(cut))
    tp, fp, fn, tn = (worth * count + _PRIOR for count in counts)
    share = rng.beta(tp + fn, fp + tn, _TABLES) if prevalence is None else np.full(_TABLES, prevalence)
    moved = np.exp(error * rng.standard_normal(_TABLES))
    found, mistaken = (
        moved * rate / (moved * rate + 1.0 - rate) for rate in (rng.beta(tp, fn, _TABLES), rng.beta(fp, tn, _TABLES))
    )
    drawn = _figures(rng.multinomial(rows, _kinds(share, found, mistaken).T.clip(0.0, 1.0)).T, cost)
    expected = np.array(counts, dtype=np.float64)
    if prevalence is not None:
        of_kind = (hits / (hits + misses) if hits else 0.0 for hits, misses in (counts[::2], counts[1::2]))
        expected = _kinds(prevalence, *of_kind)
    figures = {}
    for name, value in _figures(expected, cost).items():
        known = drawn[name][np.isfinite(drawn[name])]
        if np.isfinite(value) and len(known):
            low, high = np.quantile(known, (0.025, 0.975), method="inverted_cdf").tolist()
            figures[name] = Interval(float(value), min(low, float(value)), max(high, float(value)))
    return figures


def _kinds(share: Array | float, found: Array | float, mistaken: Array | float) -> Array:
    """Shares of true and false positives, of missed positives and of the rest."""
    return np.array([share * found, (1.0 - share) * mistaken, share * (1.0 - found), (1.0 - share) * (1.0 - mistaken)])


def _figures(kinds: npt.NDArray[Any], cost: float | None) -> dict[str, Array]:
    """Figures of the counts of `_kinds`; NaN where one is not defined."""
    tp, fp, fn, tn = kinds.astype(np.float64)
    n = tp + fp + fn + tn
    with np.errstate(divide="ignore", invalid="ignore"):
        figures = {
            "alert_rate": (tp + fp) / n,
            "precision": tp / (tp + fp),
            "recall": tp / (tp + fn),
            "f1": 2.0 * tp / (2.0 * tp + fp + fn),
            "accuracy": (tp + tn) / n,
            "prevalence": (tp + fn) / n,
        }
        return figures if cost is None else figures | {"cost": (cost * fn + fp) / n}


class Change(NamedTuple):
    """A proportion compared with the one expected.

    Attributes
    ----------
    standard_errors : float
        By how many standard errors it is above (or, below 0, under) what was expected.
    low, high : float
        Shares that a sample of this size shows unless something has changed.
    """

    standard_errors: float
    low: float
    high: float


def share_change(hits: float, n: float, expected_hits: float, expected_n: float, *, width: float) -> Change:
    r"""Compare the share of hits among n draws with another sample's, the errors of both counted.

    Shares are compared as :math:`\varphi = 2\arcsin\sqrt{(h + 3/8)/(n + 3/4)}` (Anscombe), whose variance is about
    1/n whatever the share, so that a handful of draws does not seem to be many standard errors off.

    Parameters
    ----------
    hits, n, expected_hits, expected_n : float
        Not necessarily whole: a share that is as sure as that of n draws may be given.
    width : float
        Standard errors up to which a share counts as expected.
    """
    expected = _angle(expected_hits, expected_n)
    error = math.sqrt(1.0 / (n + 0.5) + 1.0 / (expected_n + 0.5))
    angles = (min(max(expected + side * width * error, 0.0), math.pi) for side in (-1.0, 1.0))
    shares = [(math.sin(angle / 2.0) ** 2 * (n + 0.75) - 0.375) / n if n else 0.0 for angle in angles]
    low, high = (min(max(share, 0.0), 1.0) for share in shares)
    return Change((_angle(hits, n) - expected) / error, low, high)


def _angle(hits: float, n: float) -> float:
    return 2.0 * math.asin(math.sqrt(min(1.0, (hits + 0.375) / (n + 0.75))))


def macro_f1_error(confusion: Array) -> float:
    r"""Jackknife standard error of the macro-F1 of a confusion matrix (C, C) of whole counts; of one row it is 0.

    .. math:: \sqrt{\frac{n-1}{n} \sum_i (\theta_{(i)} - \bar\theta)^2}

    Rows of one true and one predicted class are alike, so there are at most C² kinds of them.
    """
    figures, counts = [], confusion[confusion > 0]
    for true, said in np.argwhere(confusion > 0):
        fewer = confusion.copy()
        fewer[true, said] -= 1  # one row of the cell is left out
        figures.append(ClassMetrics(fewer).macro_f1)
    n, values = counts.sum(), np.array(figures)
    return float(np.sqrt((n - 1) / n * (counts @ (values - counts @ values / n) ** 2)))


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


def macro_f1_interval(confusion: npt.ArrayLike) -> Interval:
    """The macro-F1 over the classes that occur with its normal interval, held between 0 and 1."""
    counts = np.asarray(confusion, dtype=np.float64)
    value, error = float(ClassMetrics(counts).f1[counts.sum(axis=1) > 0].mean()), macro_f1_error(counts)
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
