"""Findings by code: a title, and a function of the facts that says whether there is a problem, why, and what to do."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from qmedoid.exceptions import ParameterError
from qmedoid.model_report.findings.facts import Facts
from qmedoid.spelling import did_you_mean

Status = Literal["problem", "tip", "passed", "not applicable", "ignored"]
STATUSES: tuple[Status, ...] = ("problem", "tip", "passed", "not applicable", "ignored")
"""In the order of the page."""


class Verdict(NamedTuple):
    """What a finding comes to: status, why in a sentence, and what to do; nothing where there is nothing to do."""

    status: Status
    why: str
    do: str = ""


def passed(why: str) -> Verdict:
    """Nothing was found."""
    return Verdict("passed", why)


def not_applicable(why: str) -> Verdict:
    """It cannot be judged."""
    return Verdict("not applicable", why)


@dataclass(frozen=True)
class Finding:
    """A coded finding."""

    code: str
    title: str
    judge: Callable[[Facts], Verdict]


FINDINGS: dict[str, Finding] = {}


def finding(code: str, title: str) -> Callable[[Callable[[Facts], Verdict]], Callable[[Facts], Verdict]]:
    """Register a function of the facts under a code."""

    def register(judge: Callable[[Facts], Verdict]) -> Callable[[Facts], Verdict]:
        assert code not in FINDINGS, code
        FINDINGS[code] = Finding(code, title, judge)
        return judge

    return register


def check_codes(codes: Iterable[str]) -> None:
    """Refuse codes that no finding has."""
    for code in codes:
        if code not in FINDINGS:
            raise ParameterError(
                f"There is no finding {code!r}.{did_you_mean(code, FINDINGS)} There are {', '.join(sorted(FINDINGS))}."
            )


def judged(facts: Facts, ignore: Collection[str] = ()) -> list[dict[str, Any]]:
    """All findings, problems first; those of equal status by their code."""
    check_codes(ignore)
    found = []
    for code in sorted(FINDINGS):
        one = FINDINGS[code]
        verdict = Verdict("ignored", "It was not judged, as asked for.") if code in ignore else one.judge(facts)
        found.append({"code": code, "status": verdict.status, "title": one.title, "why": verdict.why, "do": verdict.do})
    return sorted(found, key=lambda one: (STATUSES.index(one["status"]), one["code"]))
