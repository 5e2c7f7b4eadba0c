"""How good a model is, in plain sentences made of counts, and the first screen of a report that is made of them."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from qmedoid.metrics.intervals import Interval, share_interval
from qmedoid.metrics.texts import SMALLEST_FACTOR, effect_text, percent_text

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
    labels = [repr(str(label)) for label in report["classes"]]
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
        which = f"{best:,} row{'' if best == 1 else 's'}" + (f" of {[*report['classes']][1]!r}" if is_rare else "")
        return f"{which} {'is' if best == 1 else 'are'} too few to tell a good model from a guess."
    # The ROC-AUC that scores without any relation to the class exceed once in 40 times: the area is the Mann-Whitney
    # statistic over their product, whose variance by chance is (n + 1) / (12 n₊ n₋).
    chance = 0.5 + _WIDTH * math.sqrt((n_rows + 1) / (12 * math.prod(true))) if is_two else 0.0
    if is_two and area is not None and area <= chance:
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
            f"(ROC-AUC {area:.2f}): to find more of {[*report['classes']][1]!r}, ask for an alert rate or a recall."
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


def _two_classes(about: str, label: str, confusion: Sequence[Sequence[int]], *, alerts: bool) -> str:
    (_, false), (missed, found) = confusion
    called, number = found + false, [f"{n:,}" if n else "none" for n in (found + false, found)]
    calls = f"calls {number[0]} {label}"
    if alerts:
        share = f" ({percent_text(called / sum(map(sum, confusion)))})" if called else ""
        calls = f"raises {called:,} alert{'' if called == 1 else 's'}{share}"
    return f"{about}, it {calls}: {number[1]} rightly; it finds {_of(found, found + missed)}."


def _many_classes(about: str, labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> str:
    hits, n_rows = _hits(confusion), sum(map(sum, confusion))
    first = f"{about}, it calls {f'{hits:,}' if hits < n_rows else 'all'} rightly"
    found = {label: (row[code], sum(row)) for code, (label, row) in enumerate(zip(labels, confusion, strict=True))}
    shares = {label: own / rows for label, (own, rows) in found.items() if rows}
    # Of equal shares the one of the most rows says most.
    best = max(shares, key=lambda label: (shares[label], found[label][1]))
    worst = min(shares, key=lambda label: (shares[label], -found[label][1]))
    if shares[best] == shares[worst]:
        return f"{first}."
    ends = [f"at {label}, where it finds {_of(*found[label])}" for label in (best, worst)]
    return f"{first}: best {ends[0]}, worst {ends[1]}."


def _against_guess(labels: Sequence[str], confusion: Sequence[Sequence[int]], *, alerts: bool) -> str:
    """Next to the commonest class, or of alerts next to as many that are drawn at random."""
    true, hits = [sum(row) for row in confusion], _hits(confusion)
    n_rows, is_two = sum(true), len(labels) == 2
    called = sum(row[1] for row in confusion)
    if is_two and true[1] and called and (alerts or true[1] < RARE * n_rows):
        precision, prevalence = share_interval(confusion[1][1], called), true[1] / n_rows
        of_random, of_model = _apart(prevalence, precision.value)
        lift = precision.value / prevalence
        times = f"{lift:.1f}" if lift < 9.95 else f"{lift:,.0f}"
        return (
            f"Of {'random alerts' if alerts else 'rows drawn at random'} {of_random} would be {labels[1]}, of these "
            f"{of_model} ({bounds_text(precision)}) are{'' if lift < 1.05 else f': {times} times as many'}."
        )
    right, guess = share_interval(hits, n_rows), max(true) / n_rows
    commoner = "commoner" if is_two else "commonest"
    of_guess, of_model = _apart(guess, right.value)
    return f"Guessing the {commoner} class is right for {of_guess}, this model for {of_model} ({bounds_text(right)})."


def _hits(confusion: Sequence[Sequence[int]]) -> int:
    return sum(row[code] for code, row in enumerate(confusion))


def _of(found: int, rows: int) -> str:
    """So many of the rows of a class."""
    return f"{f'{found:,}' if found else 'none'} of {rows:,}"


def _apart(*shares: float) -> list[str]:
    """Shares in percent, with a digit more where different ones would be written alike."""
    texts = [percent_text(share) for share in shares]
    return texts if len(set(texts)) == len(set(shares)) else [percent_text(share, 3) for share in shares]


def bounds_text(figure: Interval) -> str:
    """The bounds of an interval: ``82 to 91 %``."""
    low, high = percent_text(figure.low), percent_text(figure.high)
    return f"{low} to {high}" if " " in high.removesuffix(" %") else f"{low.removesuffix(' %')} to {high}"


MOST_DIRECTIONS, MOST_LOOKED_AT = 8, 3
"""Columns whose directions are shown, and findings to look at first."""
# Rows below which shares are not written as a count of 100, and those that a value needs to be named.
_FEW, _LEAST_ROWS = 100, 5
Summary = Mapping[str, Any]


def opening(summary: Summary) -> dict[str, Any]:
    """What a report opens with, from the other parts of its summary."""
    confusion, model, made, figures = (summary[part] for part in ("confusion", "model", "made", "figures"))
    counts = None if confusion is None else confusion["counts"]
    known = {one["key"]: one for one in (figures or {}).get("figures", ()) if one["value"] is not None}
    found = [one for one in summary["findings"] if one["status"] in ("problem", "tip")]
    on = "not evaluated: there are no rows with a known class" if figures is None else f"evaluated on {figures['on']}"
    day = datetime.fromisoformat(made["time"])
    return {
        "about": ["Model report", *([made["model"]] if made["model"] else []), on, f"{day.day} {day:%b %Y}"],
        "headline": _headline(model, counts),
        "sentences": [] if counts is None else _sentences(summary, counts, known),
        "cards": [] if counts is None else _cards(counts, known),
        "directions": directions(summary["effects"]),
        "look": [one["code"] for one in found[:MOST_LOOKED_AT]],
        "more": max(len(found) - MOST_LOOKED_AT, 0),
        "passed": sum(one["status"] == "passed" for one in summary["findings"]),
    }


def _of_100(hits: int, n: int) -> str:
    """A share as a count of 100, or of the rows themselves where they are few, or where it would read as 0 or 100."""
    per = round(100 * hits / n)
    if n < _FEW or (per == 0 and hits) or (per == 100 and hits < n):
        return f"{hits:,} of {n:,}"
    return f"{per} of 100"


def _headline(model: Mapping[str, Any], counts: Sequence[Sequence[int]] | None) -> str:
    """One sentence on what the model finds and how often it is wrong."""
    target = model["target"]
    if counts is None:
        return f"A model of {target or 'the class'}, not yet evaluated on rows with a known class."
    if len(counts) == 2:
        (_, false), (missed, found) = counts
        # In the words of the table, such as: rows where Sick is 1.
        rows = (
            f"rows of {str(model['positive'])!r}" if target is None else f"rows where {target} is {model['positive']}"
        )
        if found + missed == 0:
            return f"There are no {rows} to find; {false:,} of {sum(counts[0]):,} are called so."
        if found + false == 0:
            return f"It finds none of {missed:,} {rows}: it raises no alert."
        finds = "It finds all" if not missed else f"It finds {_of_100(found, found + missed)}"
        share = _of_100(false, found + false)
        wrong = f"{share} alerts {'is' if share.startswith('1 ') else 'are'} false" if false else "no alert is false"
        return f"{finds} {rows}; {wrong}."
    total, right = sum(map(sum, counts)), _hits(counts)
    said = f"It is right for {_of_100(right, total)} rows"
    weakest = _weakest(counts)
    if weakest is None or right == total:
        return f"{said}."
    name = model["classes"][weakest]
    return f"{said}; of those of {str(name)!r} it finds {_of_100(counts[weakest][weakest], sum(counts[weakest]))}."


def _weakest(counts: Sequence[Sequence[int]]) -> int | None:
    """The class of which the smallest share is found; None where there is but one."""
    present = [code for code, row in enumerate(counts) if sum(row)]
    return min(present, key=lambda code: counts[code][code] / sum(counts[code])) if len(present) > 1 else None


def _sentences(summary: Summary, counts: Sequence[Sequence[int]], known: Mapping[str, Any]) -> list[str]:
    """Next to a guess, next to plain baselines, and whether probabilities are to be trusted."""
    area, bins = known.get("roc_auc"), summary["calibration"]
    report = {"classes": summary["confusion"]["labels"], "confusion": counts, "roc_auc": area and area["value"]}
    said = verdict(report, alerts=summary["model"]["rule"] not in (None, "likeliest"))[1:]
    said += [] if summary["baselines"] is None else [str(summary["baselines"]["verdict"])]
    if bins is not None and bins["error"] <= bins["by_chance_high"]:
        said.append(
            "Its probabilities are as good as chance allows "
            f"(calibration error {bins['error']:.2g}; {bins['by_chance']:.2g} by chance)."
        )
    elif bins is not None:
        said.append(
            f"Its probabilities are off by {bins['error']:.2g} on average, "
            f"more than chance explains ({bins['by_chance']:.2g})."
        )
    return said


def _card(name: str, value: str, *notes: str | None) -> dict[str, Any]:
    return {"name": name, "value": value, "note": " · ".join(filter(None, notes))}


def _number_card(name: str, found: Mapping[str, Any], against: str | None = None) -> dict[str, Any]:
    digits = 3 if found["value"] >= 0.995 else 2
    bounds = None if found["low"] is None else f"{found['low']:.{digits}f} to {found['high']:.{digits}f}"
    return _card(name, f"{found['value']:.{digits}f}", bounds, against)


def _share_card(name: str, shown: int, hits: int, n: int, words: str, nothing: str) -> dict[str, Any]:
    if not n:
        return _card(name, "none", nothing)
    share = share_interval(hits, n)
    return _card(name, f"{shown:,} of {n:,}", f"{words}{percent_text(share.value)}, {bounds_text(share)}")


def _cards(counts: Sequence[Sequence[int]], known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A few figures, each with its interval and what guessing or a baseline reaches."""
    total, right, rows = sum(map(sum, counts)), _hits(counts), [sum(row) for row in counts]
    share, guess = share_interval(right, total), max(rows) / max(total, 1)
    accuracy = _card("Right", percent_text(share.value), bounds_text(share), f"guessing: {percent_text(guess)}")
    if len(counts) == 2:
        (_, false), (_, found) = counts
        if "pr_auc" in known and rows[1] < RARE * total:
            chance = f"by chance {percent_text(rows[1] / total)}"
            accuracy = _number_card("Precision over all cuts (PR-AUC)", known["pr_auc"], chance)
        cards = [
            accuracy,
            _share_card("Found (recall)", found, found, rows[1], "", "there are none to find"),
            _share_card("False alerts", false, found, found + false, "precision ", "there is no alert"),
        ]
        if "roc_auc" in known:
            cards.append(_number_card("Ranking (ROC-AUC)", known["roc_auc"], "by chance 0.5"))
        return cards
    cards = [accuracy]
    if "macro_f1" in known:
        cards.append(_number_card("All classes alike (macro-F1)", known["macro_f1"]))
    if "log_loss" in known:
        guess = -sum(n / total * math.log(n / total) for n in rows if n)
        cards.append(_number_card("Probabilities (log-loss)", known["log_loss"], f"class shares: {guess:.2f}"))
    return cards


def directions(effects: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The values of each column that lower and raise the odds most, beyond a printed 1.000; None without columns."""
    rows, is_known = list[dict[str, Any]](), False
    for effect in effects[:MOST_DIRECTIONS]:
        named, is_odds = _named_bins(effect), effect["unit"] == "log-odds"
        is_known |= bool(named)
        row: dict[str, Any] = {"column": effect["column"], "down": None, "up": None}
        # Of equal values the first one.
        for side, sign, pick in (("down", -1, min), ("up", 1, max)):
            label, value = pick(named, key=lambda one: one[1], default=("", 0.0))
            if sign * value > (math.log(SMALLEST_FACTOR) if is_odds else 0.0):
                row[side] = {"label": label, "value": value, "text": effect_text(value, odds=is_odds)}
        rows += [row] if row["down"] or row["up"] else []
    ends: list[dict[str, Any]] = [row[side] for row in rows for side in ("down", "up") if row[side]]
    for end in ends:
        end["share"] = abs(end["value"]) / max(abs(one["value"]) for one in ends)
    if not is_known:
        return None
    return {"toward": effects[0]["toward"], "unit": effects[0]["unit"], "rows": rows}


def _named_bins(effect: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Values with their mean contributions; those at the ends of a column of numbers are open."""
    bins, found = effect["bins"], []
    for place, one in enumerate(bins):
        label = one["value"]
        if effect["kind"] == "number" and len(bins) > 1:
            low, high = _number(one["low"]), _number(one["high"])
            label = f"{low} or more" if place == len(bins) - 1 else f"{low} to {high}" if place else f"up to {high}"
            label = low if one["low"] == one["high"] else label
        found.append((label, one))
    found += [("missing", effect["missing"])] if effect["missing"] else []
    return [(label, one["mean"]) for label, one in found if one["rows"] >= _LEAST_ROWS]


def _number(value: float) -> str:
    """A number in four digits, more of a large whole one."""
    return (f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}").replace("-", "−")
