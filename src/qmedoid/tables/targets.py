"""Labels of a target column as class codes of a model, however the file spells them.

Which of two classes an operating point is about, where nobody said: by what the words mean, else the rarer one.

What is odd about a target: a quantity, classes of one row, classes that differ by case, blanks or odd letters only.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.model.contract import Label
from qmedoid.model.operating_point import Counts
from qmedoid.spelling import did_you_mean, look
from qmedoid.tables.arrow import ENOUGH_ROWS, WORDS, shortened, words_among
from qmedoid.tables.arrow import MISSING as MISSING_TEXTS
from qmedoid.tables.cells import in_one_look
from qmedoid.tables.roles import quoted

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:[+-]?nan)", re.ASCII)
# Signs of the longest name of a class.
_LONGEST = 1000
_WORDS = frozenset(MISSING_TEXTS)
_TRUTHS = ("true", "false")
# Share of the rows from which on a word for a missing cell is a class: fewer may well be rows without one.
_SHARE = 0.1
UNKNOWN, MISSING = -1, -2
"""Codes of a label that is no class of the model, and of a missing one."""


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of a type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def rest_label(positive: Label) -> str:
    """The class of all records that are not of the positive one, where that stands against the rest."""
    return f"not {positive}"


def meant_labels(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The class that each label stands for where one of two classes is all others together; else the labels."""
    names = classes.tolist()
    positive = next((name for name in names if len(names) == 2 and rest_label(name) in names), None)
    if positive is None:
        return labels
    found, places = np.unique(labels, return_inverse=True)
    own = np.array([label_spelling(label) == label_spelling(positive) for label in found.tolist()])
    meant: npt.NDArray[Any] = np.where(own[places], positive, rest_label(positive)).astype(object)
    return meant


def label_codes(column: pa.Array | pa.ChunkedArray, classes: tuple[Label, ...]) -> Codes:
    """The class code of every cell; `UNKNOWN` and `MISSING` where there is none.

    Labels are compared as they are meant: 1, 1.0 and ``"1"`` are one label, and so are true and ``"True"``. A text that
    is written just like a class is of that class, whatever else it might mean: other words for missing cells are none.
    """
    if pa.types.is_nested(column.type):
        raise DataError(
            f"A target of type {shortened(str(column.type))} holds no classes. Give a column of names, whole numbers "
            "or truth values."
        )
    spellings = [label_spelling(label) for label in classes]
    # Where "1" and "01" are two classes, 1.0 is neither.
    places = {text: code for code, text in enumerate(spellings) if spellings.count(text) == 1}
    exact = {label: code for code, label in enumerate(classes) if isinstance(label, str)}
    against_rest = len(classes) == 2 and classes[0] == rest_label(classes[1])

    def code(value: Any) -> int:
        if isinstance(value, str) and value in exact:
            return exact[value]
        text = label_spelling(value) if value is not None and value == value else ""
        return places.get(text, MISSING if text in _WORDS else 0 if against_rest else UNKNOWN)

    encoded = column.dictionary_encode()
    codes = [np.zeros(0, dtype=np.intp)]
    for chunk in encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]:
        table = np.array([*map(code, chunk.dictionary.to_pylist()), MISSING], dtype=np.intp)
        codes.append(table[chunk.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)])
    return np.concatenate(codes)


def class_words(counts: Mapping[str, int], missing: Collection[Any] = ()) -> set[str]:
    """The words for a missing cell that are classes, by the rows of every label of a target.

    The only word is one that has as many rows as another class, or a tenth of all, among classes that are names: beside
    numbers it says that the class is not known. What is said to be `missing` decides before: no other word is where
    ``""`` is.
    """
    words = {text: count for text, count in counts.items() if text.strip() in WORDS}
    others = {text: count for text, count in counts.items() if text.strip() not in MISSING_TEXTS}
    if "" in missing:
        return {text for text in words if text.strip() not in missing}
    are_names = not all(_NUMBER.fullmatch(text.strip()) or text.strip().lower() in _TRUTHS for text in others)
    least = max(min(max(min(others.values(), default=0), _FEW_ROWS), _SHARE * sum(counts.values())), _FEW_ROWS / 2)
    found = {text for text, count in words.items() if are_names and count >= least}
    return {text for text in found if text.strip() not in missing} if len(found) == 1 else set()


def unlabeled_note(column: pa.ChunkedArray, rows: Codes, name: str) -> str:
    """Which rows of a target have no class, as `rows` are those that have one, and what they hold."""
    is_other = np.ones(len(column), dtype=bool)
    is_other[rows] = False
    held = column.filter(pa.array(is_other)).drop_null().value_counts()
    counts = {str(cell["values"]).strip(): cell["counts"] for cell in held.to_pylist()}
    counts = {text: count for text, count in counts.items() if text != "nan" or is_text(column.type)}
    holds = some_of([f"{count:,} hold {text!r}" for text, count in counts.items() if text], _NAMED)
    words = any(text in WORDS for text in counts)
    way_out = f" (--missing {quoted(f'{name}=')} takes such words as classes)" if words else ""
    of_sum = ", the sum or the number of all others" if _is_sum(column.drop_null()) else ""
    which = f": {holds}{of_sum}{way_out}" if holds else ""
    return f"{is_other.sum():,} of {len(column):,} rows have no class in {name!r} and are left out{which}"


def sum_labels(counts: Mapping[str, int]) -> list[str]:
    """The label of one row that is the sum of all others, or their number, by the rows of every label: a total."""
    numbers = {text: int(text) for text in counts if text.strip().isdecimal()}
    if len(numbers) < len(counts) or sum(counts.values()) <= ENOUGH_ROWS:
        return []
    total, rows = sum(number * counts[text] for text, number in numbers.items()), sum(counts.values()) - 1
    ones = [text for text, number in numbers.items() if counts[text] == 1 and number > 1]
    return [text for text in ones if numbers[text] in (total - numbers[text], rows)]


def _is_sum(labels: pa.ChunkedArray) -> bool:
    """Whether the last of many labels is a total."""
    if not (len(labels) and pa.types.is_integer(labels.type)):
        return False
    counts = {str(cell["values"]): cell["counts"] for cell in labels.value_counts().to_pylist()}
    return str(labels[-1].as_py()) in sum_labels(counts)


def class_labels(column: pa.ChunkedArray, name: str, missing: Collection[Any] = ()) -> tuple[Codes, pa.ChunkedArray]:
    """Rows of a target column that hold a label, and their labels: trimmed texts, whole numbers or truth values.

    Other cells are refused. Values that a user says are `missing` are no labels.
    """
    words: tuple[str, ...] = ()
    if is_text(column.type):
        cells = column.value_counts()
        counts = dict(zip(cells.field("values").to_pylist(), cells.field("counts").to_pylist(), strict=True))
        words = tuple(class_words({text: count for text, count in counts.items() if text is not None}, missing))
    rows = np.flatnonzero(label_codes(column, words) != MISSING)
    if missing:
        said = tuple(str(value) for value in missing if value != "")
        rows = rows[label_codes(column, said)[rows] < 0]
    found = column if len(rows) == len(column) else column.take(pa.array(rows))
    if len(found) < len(column) and is_text(column.type) and words_among(column) and not words:
        from qmedoid.tables.text_kinds import infer_types

        # What is left may be numbers, as where "NA" stood among them.
        found = infer_types(pa.table({"": found.cast(pa.string())}), ".").column(0)
    column = found
    if "" not in missing and _is_sum(column):  # of a sample the last row is any
        rows, column = rows[:-1], column.slice(0, len(column) - 1)
    if len(column) == 0:
        return rows, column
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if is_text(kind):
        import pyarrow.compute as pc

        longest = pc.max(pc.utf8_length(column.cast(kind))).as_py() or 0
        if longest > _LONGEST:
            raise DataError(
                f"The target {name!r} holds a text of {longest:,} signs: that names no class. Give a column of names."
            )
        # Nobody means two classes by "yes" and "yes ", or by what looks the same.
        return rows, pc.utf8_trim_whitespace(in_one_look(pa.table({name: column.cast(kind)}))[0].column(0))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return rows, column
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = column.cast(pa.float64())
        found = values.unique().to_pylist()
        fractions = [value for value in found if not (value.is_integer() and abs(value) < 2**53)]
        if not fractions:
            # 1 became 1.0 where a missing cell made a column of floats.
            return rows, values.cast(pa.int64())
        raise DataError(
            f"The target {name!r} holds numbers such as {fractions[0]!r}: that is a quantity, and a classifier "
            f"predicts classes (there is no regression). {_RANGES}."
        )
    raise DataError(
        f"The target {name!r} is of type {shortened(str(kind))}. Give a column of names, whole numbers or truth values."
    )


def label_spelling(value: Any) -> str:
    """One text for all ways to write a label."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in ("true", "false"):
            return text.lower()
        # Not all that Python takes for a number is meant as one: 1_2 is a name.
        if not _NUMBER.fullmatch(text):
            return look(text)
        value = int(text) if text.lstrip("+-").isdecimal() else float(text)
    if isinstance(value, int):
        return str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


class Target(NamedTuple):
    """The classes of the rows of a fit: labels in rising order, and the index of the class of every row."""

    name: str | None
    classes: npt.NDArray[Any]
    codes: Codes
    totals: Codes | None = None  # rows of every class in the whole table, where these rows are a sample of it

    @classmethod
    def of_column(
        cls,
        column: pa.ChunkedArray,
        name: str,
        totals: Mapping[str, int] | None = None,
        missing: Collection[Any] = (),
    ) -> "tuple[Codes, Target]":
        """The rows of a column that hold a label, and their classes; totals are by the texts of labels.

        Of a sample, for which there are totals, all words for missing cells are labels.
        """
        rows, labels = class_labels(column, name, missing if totals is None else ("",))
        encoded = labels.combine_chunks().dictionary_encode()
        classes, places = np.unique(np.array(encoded.dictionary.to_pylist()), return_inverse=True)
        found = cls(name, classes, places[encoded.indices.to_numpy(zero_copy_only=False)].astype(np.intp))
        if totals is not None:
            codes, of_text = label_codes(pa.array(list(totals)), tuple(classes.tolist())), np.array([*totals.values()])
            counts = np.bincount(codes[codes >= 0], of_text[codes >= 0], len(classes)).astype(np.intp)
            found = found._replace(totals=counts)
        return rows, found

    @property
    def counts(self) -> Codes:
        """Rows of every class, in the whole table where these are a sample of it."""
        return np.bincount(self.codes, minlength=len(self.classes)) if self.totals is None else self.totals

    def codes_in(self, classes: Sequence[Any]) -> Codes:
        """The place of the class of every row among other classes, however they are spelled; negative for others."""
        return label_codes(pa.array(self.classes.tolist()), tuple(classes))[self.codes]

    def place_of(self, positive: Any) -> int:
        """The place of the positive class, given by its label or by how that is written."""
        labels = self.classes.tolist()
        equal = np.flatnonzero(self.classes == positive)
        place = int(equal[0]) if len(equal) else int(label_codes(pa.array([str(positive)]), tuple(labels))[0])
        if place < 0:
            target = "y" if self.name is None else repr(self.name)
            raise ParameterError(
                f"The positive class {positive!r} is no class in {target}.{did_you_mean(positive, labels)} The classes "
                f"are {some_of([*map(repr, labels)], 10)}."
            )
        return place

    def against_rest(self, place: int) -> "Target":
        """Two classes: the one at a place, and all others together. Both are texts, so that one array holds them."""
        positive = str(self.classes[place])
        classes = np.array(sorted((positive, rest_label(positive))), dtype=object)
        own, other = (classes.tolist().index(label) for label in (positive, rest_label(positive)))
        side = np.where(np.arange(len(self.classes)) == place, own, other)
        totals = None if self.totals is None else np.bincount(side, self.totals, 2).astype(np.intp)
        return Target(self.name, classes, side[self.codes], totals)

    def reversed(self) -> "Target":
        """The same with the order of two classes the other way around."""
        totals = None if self.totals is None else self.totals[::-1]
        return Target(self.name, self.classes[::-1], 1 - self.codes, totals)

    def take(self, rows: Codes) -> "Target":
        """The classes of some rows; those that none of them has are left out."""
        found, codes = np.unique(self.codes[rows], return_inverse=True)
        totals = None if self.totals is None else self.totals[found]
        return self._replace(classes=self.classes[found], codes=codes.astype(np.intp), totals=totals)


# What is looked for, and what is not; a word of one list against one that is in neither says enough.
_EVENT_WORDS = """
yes true positive pos present presence case cases event hit alarm alert fraud fraudulent scam spam phishing malware
attack intrusion malicious anomaly anomalous abnormal outlier bad default defaulted delinquent overdue unpaid
bankrupt bankruptcy charged_off churn churned leave leaver exited cancelled canceled sick ill diseased disease
infected malignant cancer dead died death deceased fail failed failure faulty fault defect defective broken error
risky high_risk relapse recurrence recurrence_events readmitted clicked bought converted subscribed
"""
_EVENTS = frozenset(_EVENT_WORDS.split())
_OTHER_WORDS = """
no false negative neg absent absence none control controls non_event legit legitimate genuine ham benign normal
inlier good paid repaid solvent fully_paid stay stayed stayer retained loyal healthy alive survived survivor pass
passed ok okay intact safe low_risk no_recurrence_events not_readmitted
"""
_OTHERS = frozenset(_OTHER_WORDS.split())
# Signs too short to mean anything but as a pair: the first is looked for.
_PAIRS = frozenset((("1", "0"), ("1", "-1"), ("y", "n"), ("t", "f"), ("+", "-"), ("p", "n"), ("j", "n")))
# Beginnings that turn a word into its opposite.
_NEGATIONS = ("not_", "non_", "no_", "non")


def choose_positive(labels: Sequence[Any], counts: Sequence[int], about: str) -> tuple[int, str, bool]:
    """Which of two classes (in rising order, with their rows) a parameter such as ``"alert_rate"`` is about.

    Returns its index, why, and whether nobody is surprised: it is the second label, and neither words nor frequencies
    speak against it.
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
    why = frequency if meant is None else f"its name says so, {'and ' if place == rarer else ''}{frequency}"
    note = (
        f"{about} is about the class {labels[place]!r}: {why}. If {labels[1 - place]!r} is meant, name it "
        "as the positive class (positive=, --positive)."
    )
    return place, note, place == 1 and rarer in (1, None)


def meant_positive(labels: Sequence[Any]) -> int | None:
    """Which of two labels is the one looked for by what they mean, 0 or 1; None where that is not known."""
    first, second = map(_word, labels)
    for place, (one, other) in enumerate(((first, second), (second, first))):
        if (one, other) in _PAIRS or (one and any(other == f"{beginning}{one}" for beginning in _NEGATIONS)):
            return place
    # A plain word against one that is not known says enough; two of one kind say nothing.
    kinds = [(word in _EVENTS) - (word in _OTHERS) for word in (first, second)]
    return None if kinds[0] == kinds[1] else int(kinds[1] > kinds[0])


def _word(label: Any) -> str:
    """A label in lower case, with one sign for all that stands between words; whole numbers without a fraction."""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    text = str(label).strip().casefold()
    if text in ("+", "-", "-1"):
        return text
    text = text.removesuffix(".").removesuffix(".0")
    return "_".join("".join(sign if sign.isalnum() else " " for sign in text).split())


# More different numbers than this are a quantity or codes of classes, of which there are not that many; fewer are a
# quantity where each has only a few rows.
_MANY_NUMBERS, _MOST_CODES, _SOME_NUMBERS, _FEW_ROWS = 20, 100, 10, 10
# Records called rare per record that is, below which nobody wants to decide for the likelier class; and the share of
# the rows up to which a class is rare.
_SELDOM, _RARE = 0.2, 1 / 3
_AS_CODES = "count up from 0 or 1 or leave gaps"
_RANGES = "Make a column of a few ranges of it, such as low and high, and fit that"
# Names in a note.
_NAMED = 5


def quantity(labels: Sequence[Any], counts: Sequence[int]) -> str | None:
    """What a target holds where it is a quantity, such as "50 different numbers, from 28 to 77"; None of classes.

    It is one from 21 different numbers on, unless these look like codes of classes, and from 11 on where each has fewer
    than 10 rows on average. Codes are at most 100 numbers with at least 10 rows each that count up from 0 or 1, or
    leave gaps of different widths: a quantity lies in a range, in even steps, and its ends are rare.
    """
    numbers = [label for label in labels if isinstance(label, int | float) and not isinstance(label, bool)]
    few = len(numbers) > _SOME_NUMBERS and sum(counts) < _FEW_ROWS * len(numbers)
    if len(numbers) < len(labels) or not (len(numbers) > _MANY_NUMBERS or few) or _are_codes(labels, counts):
        return None
    return f"{len(numbers):,} different numbers, from {min(numbers)} to {max(numbers)}"


def _are_codes(labels: Sequence[Any], counts: Sequence[int]) -> bool:
    """Whether more than a few numbers are codes of classes."""
    if not _MANY_NUMBERS < len(labels) <= _MOST_CODES or min(counts) < _FEW_ROWS:
        return False
    if any(isinstance(label, bool) or not isinstance(label, int | float) for label in labels):
        return False
    steps = set(np.diff(np.sort(labels)).tolist())
    return len(steps) > 1 or (steps == {1} and min(labels) in (0, 1))


def refuse_quantity(name: str, labels: Sequence[Any], counts: Sequence[int]) -> list[str]:
    """Refuse a target that is a quantity: each of its numbers would be a class. Of codes of classes there is a note."""
    found = quantity(labels, counts)
    if found is not None:
        raise DataError(
            f"The target {name!r} holds {found}: that is a quantity, and a classifier predicts classes (there is no "
            f"regression). {_RANGES}, or insist on a class for each number with --classes. Codes of classes need no "
            f"option: at most {_MOST_CODES} numbers with {_FEW_ROWS} rows each that {_AS_CODES}."
        )
    return [message for code, message in target_notes(labels, counts) if code == "target_codes"]


def target_notes(labels: Sequence[Any], counts: Sequence[int]) -> list[tuple[str, str]]:
    """Problems with the classes of a target, by their rows: codes that do not change, and what to do."""
    found = quantity(labels, counts)
    if found is not None:
        message = (
            f"the target holds {found}: that looks like a quantity, and each number is a class. {_RANGES}, or insist "
            "on a class for each number: --classes (in Python y.astype(str))."
        )
        return [("target_quantity", message)]
    notes = []
    for label, count in zip(labels, counts, strict=True):
        if isinstance(label, str) and label in WORDS:
            message = (
                f"{label!r} in {count:,} rows is read as a class, although it is a word for a missing cell: --missing "
                f"TARGET={label} leaves these rows out (in Python leave them out of X and y)."
            )
            notes.append(("missing_word", message))
    if _are_codes(labels, counts):
        message = (
            f"the {len(labels):,} different numbers of the target, from {min(labels)} to {max(labels)}, are taken as "
            f"codes of classes: each has {min(counts):,} rows or more, and they {_AS_CODES}. If they are a quantity: "
            f"{_RANGES[0].lower()}{_RANGES[1:]}."
        )
        notes.append(("target_codes", message))
    single = [repr(label) for label, count in zip(labels, counts, strict=True) if count == 1]
    if single:
        which = f"the class {single[0]} has"
        if len(single) > 1:
            which = f"{len(single):,} classes ({some_of(single, _NAMED)}) have"
        message = f"{which} one row only, so that none can be held out. Add rows, join classes, or leave such rows out."
        notes.append(("single_row", message))
    spellings: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            spellings.setdefault("".join(look(label).casefold().split()), []).append(label)
    for alike in spellings.values():
        if len(alike) > 1:
            message = (
                f"the classes {' and '.join(map(repr, alike[:_NAMED]))} differ by case, blanks or odd letters only, "
                f"and are fitted as {len(alike)} classes. Write them alike if one class is meant."
            )
            notes.append(("class_spellings", message))
    return notes


def seldom_note(labels: Sequence[Any], counts: Counts) -> str | None:
    """A note on a rare class that is hardly ever called so where the likelier class decides; None where it is.

    The second of the two labels is the one that the counts call positive.
    """
    tp, fp, fn, tn = counts
    rows, called = (tp + fn, fp + tn), (tp + fp, fn + tn)
    rare = 0 if rows[0] <= rows[1] else 1
    if called[rare] >= _SELDOM * rows[rare] or rows[rare] > _RARE * sum(counts):
        return None
    are, rate = "is" if rows[rare] == 1 else "are", f"{max(rows[rare] / sum(counts), 1e-4):.2g}"
    label, found = repr(labels[1 - rare]), f"{called[rare]:,} row{'' if called[rare] == 1 else 's'}"
    return (
        f"{rows[rare]:,} of {sum(counts):,} rows {are} {label}, and the model predicts {label} for {found}: "
        f"it predicts the more probable class. To find more, set an operating point: "
        f"--alert-rate {rate}, --min-recall or --cost (in Python operating_point={{'alert_rate': {rate}}})."
    )
