"""Which of two classes an operating point is about, where nobody said: by what the words mean, else the rarer one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

# What is looked for, and what is not; a word of one list against one that is in neither says enough.
_EVENTS = frozenset((
    "yes", "true", "positive", "pos", "present", "presence", "case", "cases", "event", "hit", "alarm", "alert",
    "fraud", "fraudulent", "scam", "spam", "phishing", "malware", "attack", "intrusion", "malicious", "anomaly",
    "anomalous", "abnormal", "outlier", "bad", "default", "defaulted", "delinquent", "overdue", "unpaid",
    "bankrupt", "bankruptcy", "charged_off", "churn", "churned", "leave", "leaver", "exited", "cancelled",
    "canceled", "sick", "ill", "diseased", "disease", "infected", "malignant", "cancer", "dead", "died",
    "death", "deceased", "fail", "failed", "failure", "faulty", "fault", "defect", "defective", "broken",
    "error", "risky", "high_risk", "relapse", "recurrence", "recurrence_events", "readmitted", "clicked",
    "bought", "converted", "subscribed",
))  # fmt: skip
_OTHERS = frozenset((
    "no", "false", "negative", "neg", "absent", "absence", "none", "control", "controls", "non_event", "legit",
    "legitimate", "genuine", "ham", "benign", "normal", "inlier", "good", "paid", "repaid", "solvent",
    "fully_paid", "stay", "stayed", "stayer", "retained", "loyal", "healthy", "alive", "survived", "survivor",
    "pass", "passed", "ok", "okay", "intact", "safe", "low_risk", "no_recurrence_events", "not_readmitted",
))  # fmt: skip
# Signs too short to mean anything but beside each other: the first is looked for.
_PAIRS = frozenset((("1", "0"), ("1", "-1"), ("y", "n"), ("t", "f"), ("+", "-"), ("p", "n"), ("j", "n")))
# Beginnings that turn a word into its opposite.
_NEGATIONS = ("not_", "non_", "no_", "non")


class Choice(NamedTuple):
    """The class that an operating point is about.

    Attributes
    ----------
    place : int
        0 or 1: which of the two labels.
    note : str
        Which it is, and why.
    is_plain : bool
        Whether nobody is surprised: it is the second label, and neither words nor frequencies speak against it.
    """

    place: int
    note: str
    is_plain: bool


def choose_positive(labels: Sequence[Any], counts: Sequence[int], about: str) -> Choice:
    """The class of two that an operating point is about.

    Parameters
    ----------
    labels : sequence of two
        The classes in rising order.
    counts : sequence of two int
        Rows of each.
    about : str
        The parameter that needs to know, such as ``"alert_rate"``, for the note.
    """
    meant = meant_positive(labels)
    rarer = None if counts[0] == counts[1] else int(counts[1] < counts[0])
    place = 1 if meant is None and rarer is None else rarer if meant is None else meant
    assert place is not None, "one of three ways has said which"
    share = f"{100 * counts[place] / sum(counts):.3g} % of the rows"
    if rarer is None:
        frequency = "both are equally frequent"
    elif place == rarer:
        frequency = f"it is the rarer of the two, {share}"
    else:
        frequency = f"although it is the more frequent of the two, {share}"
    why = frequency if meant is None else f"so the words say, {'and ' if place == rarer else ''}{frequency}"
    note = (
        f"{about} is about the class {labels[place]!r}: {why}. If {labels[1 - place]!r} is meant, say so by the "
        "positive class (positive=, --positive)."
    )
    return Choice(place, note, is_plain=place == 1 and rarer in (1, None))


def meant_positive(labels: Sequence[Any]) -> int | None:
    """Which of two labels is the one looked for by what they mean, 0 or 1; None where that is not known."""
    first, second = map(_word, labels)
    for place, (one, other) in enumerate(((first, second), (second, first))):
        if (one, other) in _PAIRS or _negates(other, one):
            return place
    # A plain word against one that is not known says enough; two of one kind say nothing.
    kinds = [(word in _EVENTS) - (word in _OTHERS) for word in (first, second)]
    return None if kinds[0] == kinds[1] else int(kinds[1] > kinds[0])


def _negates(word: str, plain: str) -> bool:
    """Whether a word is the opposite of another, such as "not fraud", "no fraud" or "non-fraud"."""
    return bool(plain) and any(word == f"{beginning}{plain}" for beginning in _NEGATIONS)


def _word(label: Any) -> str:
    """A label in lower case, with one sign for all that stands between words; whole numbers without a fraction."""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    text = str(label).strip().casefold()
    if text in ("+", "-", "-1"):
        return text
    text = text.removesuffix(".").removesuffix(".0")
    return "_".join("".join(sign if sign.isalnum() else " " for sign in text).split())
