"""How good a model is, in plain sentences made of counts: fits, evaluations, reports and demos end with them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from qmedoid.metrics.intervals import Interval, share_interval
from qmedoid.metrics.texts import count_text, percent_text

NEW_ROWS = "the model never saw"
"""What makes a row a test row."""
RARE = 0.1
"""Share of the positive class below which accuracy says little, and a model is compared with random alerts."""
# Standard normal quantile of a two-sided test at 5 %.
_WIDTH = 1.959963984540054


def verdict(report: Mapping[str, Any], *, alerts: bool = False, rows: str | None = None) -> list[str]:
    """Two sentences on how good a model is: what it calls and finds, and how much better than guessing that is.

    A third one follows where the model cannot be told from a guess.

    Parameters
    ----------
    report : mapping
        That of `qmedoid.tables.evaluating.labeled_report`. Read are ``"classes"`` (labels in their order, of two the
        positive one second), ``"confusion"`` (true classes in rows) and, if there, ``"roc_auc"`` and ``"seen"``.
    alerts : bool
        Whether an operating point was asked for: records called positive are alerts then.
    rows : str or None
        What the rows are, to follow "rows"; None is `NEW_ROWS`, unless the report says that some were in the fit.

    Examples
    --------
    >>> heart = {"classes": ["0", "1"], "confusion": [[88, 14], [16, 111]], "roc_auc": 0.9336}
    >>> for sentence in verdict(heart):
    ...     print(sentence)
    Of 229 rows the model never saw, it calls 125 '1': 111 rightly; it finds 111 of 127.
    Guessing the commoner class is right for 55 %, this model for 87 % (82 to 91 %).
    """
    labels = _labels(report)
    confusion = [[int(count) for count in row] for row in report["confusion"]]
    n_rows = sum(map(sum, confusion))
    if n_rows == 0:
        return ["No row has a known class: how good the model is cannot be said."]
    # Rows of the fit are left out, unless all were to be counted.
    is_left_out = (report.get("left_out") or {}).get("seen", 0) > 0
    seen = 0 if is_left_out else (report.get("seen") or {}).get("rows", 0)
    rows = rows or (NEW_ROWS if not seen else f"({seen:,} of them were in the fit)")
    about = f"Of {n_rows:,} row{'' if n_rows == 1 else 's'} {rows}"
    if len(labels) == 2:
        said = [_two_classes(about, labels[1], confusion, alerts=alerts)]
    else:
        said = [_many_classes(about, labels, confusion)]
    said.append(_against_guess(labels, confusion, alerts=alerts))
    weak = weakness(report, alerts=alerts)
    return said if weak is None else [*said, weak]


def weakness(report: Mapping[str, Any], *, alerts: bool = False) -> str | None:
    """The sentence on a model that cannot be told from a guess on these rows; None where it is better than one."""
    confusion = [[int(count) for count in row] for row in report["confusion"]]
    true, called = [sum(row) for row in confusion], [sum(column) for column in zip(*confusion, strict=True)]
    n_rows, area = sum(true), report.get("roc_auc")
    if n_rows == 0:
        return None
    if max(true) == n_rows:
        return "Rows of one class alone cannot tell a good model from a guess."
    is_two = len(true) == 2
    is_rare = is_two and (alerts or true[1] < RARE * n_rows)
    guess = true[1] / n_rows if is_rare else max(true) / n_rows
    best = true[1] if is_rare else n_rows
    if share_interval(best, best).low <= guess:
        which = f"{_rows(best)} of {_labels(report)[1]}" if is_rare else _rows(n_rows)
        return f"{which} {'is' if best == 1 else 'are'} too few to tell a good model from a guess."
    if is_two and area is not None and area <= (chance := _highest_by_chance(*true)):
        return (
            "This model is weak: it ranks these rows no better than chance does "
            f"(ROC-AUC {area:.2f}; chance alone reaches {chance:.2f})."
        )
    if is_rare:
        better = called[1] > 0 and share_interval(confusion[1][1], called[1]).low > guess
        which, compared = "its alerts are" if alerts else "the rows it calls so are", "random ones"
    else:
        better = share_interval(_hits(confusion), n_rows).low > guess
        which, compared = "its calls are", "a guess"
    if better:
        return None
    # Ranks may be of use where calls are not.
    if is_two and area is not None:
        return (
            f"At this threshold the model is weak: {which} not surely better than {compared}. It does rank the rows "
            f"(ROC-AUC {area:.2f}): to find more of {_labels(report)[1]}, ask for an alert rate or a recall."
        )
    return f"This model is weak: {which} not surely better than {compared}."


def alert_ceiling(rate: float, prevalence: float, label: Any) -> str | None:
    """What an alert rate below the prevalence cannot reach, and the rate that could; None where it can find all."""
    if not 0 < rate < prevalence:
        return None
    return (
        f"Alerts on at most {percent_text(rate)} of the rows cannot find more than {percent_text(rate / prevalence)} "
        f"of {str(label)!r}, which is {percent_text(prevalence, 3)} of the rows. To be able to find all of them, allow "
        f"alerts on {percent_text(prevalence, 3)} or more."
    )


def _labels(report: Mapping[str, Any]) -> list[str]:
    return [repr(str(label)) for label in report["classes"]]


def _two_classes(about: str, label: str, confusion: Sequence[Sequence[int]], *, alerts: bool) -> str:
    (_, false), (missed, found) = confusion
    called, positive = found + false, found + missed
    if positive == 0:
        ends = f", and none is {label}" if alerts else ", and none is"
    elif called == 0:
        ends = f", and {positive:,} {'is' if positive == 1 else 'are'}" + (f" {label}" if alerts else "")
    else:
        rightly = "all" if false == 0 and called > 1 else "none" if found == 0 else count_text(found)
        rightly = f"{rightly} rightly" if called > 1 else "rightly" if found else "wrongly"
        if alerts:
            are = f"{rightly.removesuffix(' rightly')} {'is' if found == 1 else 'are'} {label}"
            rightly = are if called > 1 else f"it is {label}" if found else f"it is not {label}"
        ends = f": {rightly}; it finds {_of(found, positive)}"
    number = "none" if called == 0 else count_text(called)
    if alerts:
        number = "no" if called == 0 else number
        n_rows, alerts_are = sum(map(sum, confusion)), f"alert{'' if called == 1 else 's'}"
        rate = f" ({percent_text(called / n_rows)})" if called > 1 else ""
        return f"{about}, it raises {number} {alerts_are}{rate}{ends}."
    return f"{about}, it calls {number} {label}{ends}."


def _many_classes(about: str, labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> str:
    hits, n_rows = _hits(confusion), sum(map(sum, confusion))
    first = f"{about}, it calls {'all' if hits == n_rows and n_rows > 1 else count_text(hits)} rightly"
    found = [(confusion[code][code], sum(row)) for code, row in enumerate(confusion)]
    present = [code for code, (_, rows) in enumerate(found) if rows]
    if hits == n_rows or len(present) < 2:
        return f"{first}."
    shares = {code: found[code][0] / found[code][1] for code in present}
    # Of equal shares the one of the most rows says most.
    best = max(present, key=lambda code: (shares[code], found[code][1]))
    worst = min(present, key=lambda code: (shares[code], -found[code][1]))
    if shares[best] == shares[worst]:
        return f"{first}: of every class {percent_text(shares[best])}."
    return f"{first}: best at {labels[best]}, where it finds {_of(*found[best])}, worst at {labels[worst]}, " \
        f"where it finds {_of(*found[worst])}."  # fmt: skip


def _against_guess(labels: Sequence[str], confusion: Sequence[Sequence[int]], *, alerts: bool) -> str:
    true = [sum(row) for row in confusion]
    n_rows = sum(true)
    if len(labels) == 2 and true[1] and (alerts or true[1] < RARE * n_rows):
        (_, false), (_, found) = confusion
        if found + false:
            return _against_random(labels[1], share_interval(found, found + false), true[1] / n_rows, alerts=alerts)
    found = _hits(confusion)
    right, guess = share_interval(found, n_rows), max(true) / n_rows
    if guess == 1.0:
        label = labels[true.index(n_rows)]
        return f"All of them are {label}: this model is right for {_apart(right.value)[0]} ({_bounds(right)})."
    commoner = "commoner" if len(labels) == 2 else "commonest"
    of_guess, of_model = _apart(guess, right.value)
    return f"Guessing the {commoner} class is right for {of_guess}, this model for {of_model} ({_bounds(right)})."


def _against_random(label: str, precision: Interval, prevalence: float, *, alerts: bool) -> str:
    """Of alerts, or of the rows called positive, against as many that are drawn at random."""
    of_random, of_model = _apart(prevalence, precision.value)
    random = "random alerts" if alerts else "rows drawn at random"
    lift = precision.value / prevalence
    times = "" if lift < 1.05 else f": {_times(lift)} times as many"
    return f"Of {random} {of_random} would be {label}, of these {of_model} ({_bounds(precision)}) are{times}."


def _highest_by_chance(n_negative: int, n_positive: int) -> float:
    r"""The ROC-AUC that scores without any relation to the class exceed once in 40 times.

    The area is the Mann-Whitney statistic over :math:`n_+ n_-`, whose variance by chance is
    :math:`(n_+ + n_- + 1) / (12 n_+ n_-)`.
    """
    return 0.5 + _WIDTH * math.sqrt((n_negative + n_positive + 1) / (12 * n_negative * n_positive))


def _hits(confusion: Sequence[Sequence[int]]) -> int:
    return sum(row[code] for code, row in enumerate(confusion))


def _rows(n_rows: int) -> str:
    return f"{n_rows:,} row{'' if n_rows == 1 else 's'}"


def _of(found: int, rows: int) -> str:
    """So many of the rows of a class."""
    return f"{'none' if found == 0 else count_text(found)} of {rows:,}"


def _times(lift: float) -> str:
    """A factor with two digits."""
    return f"{lift:.1f}" if lift < 9.95 else count_text(int(float(f"{lift:.2g}")))


def _apart(*shares: float) -> list[str]:
    """Shares in percent, with a digit more where different ones would be written alike."""
    texts = [percent_text(share) for share in shares]
    return texts if len(set(texts)) == len(set(shares)) else [percent_text(share, 3) for share in shares]


def _bounds(figure: Interval) -> str:
    """The bounds of an interval: ``82 to 91 %``."""
    low, high = percent_text(figure.low), percent_text(figure.high)
    return f"{low} to {high}" if " " in high.removesuffix(" %") else f"{low.removesuffix(' %')} to {high}"
