"""The first passes: how many rows there are of each class, and a sample of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.large.base import RawReading, Summary, chances, kept_rows, key_of, label_texts, merge
from qmedoid.large.runner import Runner
from qmedoid.tables.source import TableSource
from qmedoid.tables.targets import label_spelling

MOST_LABELS = 10_000
"""Different cells of a target from which on it is a quantity, or a name of its own for every row."""


@dataclass(frozen=True)
class CountPass:
    """Rows (``"rows"``), rows without a class (``"unlabeled"``), and rows of every label (``"labels"``).

    What was adjusted while a file was read is in ``"notes"``.
    """

    reading: RawReading
    target: str
    name: str = "count"

    def summarize(self, source: TableSource, first_row: int) -> Summary:
        """Count the labels of a partition."""
        labels: dict[str, int] = {}
        n_rows = n_unlabeled = 0
        for batch, _ in self.reading.batches(source, first_row, [self.target]):
            codes, texts = label_texts(batch.column(0))
            n_rows += len(codes)
            n_unlabeled += int((codes < 0).sum())
            counts = np.bincount(codes[codes >= 0], minlength=len(texts))
            for place in np.flatnonzero(counts).tolist():
                labels[texts[place]] = labels.get(texts[place], 0) + int(counts[place])
            if len(labels) > MOST_LABELS:
                raise DataError(
                    f"The target {self.target!r} holds more than {MOST_LABELS:,} different cells: a quantity or a "
                    "name, not classes. Give a column of classes."
                )
        notes = dict.fromkeys(source.notes, 1)
        return Summary({"rows": {"": n_rows}, "unlabeled": {"": n_unlabeled}, "labels": labels, "notes": notes})


class Counted(NamedTuple):
    """What the first pass shows: rows of every partition, of every label by its text, and of no label.

    `classes` are those that the texts mean; notes say how files were read.
    """

    lengths: list[int]
    counts: Mapping[str, int]
    unlabeled: int
    classes: Mapping[str, str]
    notes: list[str]

    @property
    def n_rows(self) -> int:
        """Rows with a label."""
        return sum(self.counts.values())

    def side_of(self, positive: Any) -> dict[str, str]:
        """The side of every text: its class; of more than two, where one is positive, that one, or ``""``."""
        if positive is None or len(set(self.classes.values())) <= 2:
            return dict(self.classes)
        wanted = label_spelling(positive)
        return {text: wanted if meant == wanted else "" for text, meant in self.classes.items()}

    def sides(self, positive: Any) -> dict[str, int]:
        """Rows of every side; of more than two classes those of the positive one come first, if there is one."""
        side_of = self.side_of(positive)
        first = [label_spelling(positive)] if "" in side_of.values() else []
        found = dict.fromkeys([*first, *side_of.values()], 0)
        for text, count in self.counts.items():
            found[side_of[text]] += count
        return found


def count_rows(runner: Runner, target: str) -> Counted:
    """Count rows and labels; a target that holds no classes is refused."""
    found = runner.each(CountPass(runner.facts.reading, target))
    together = merge(found)
    counts = {text: n for text, n in together.counts.get("labels", {}).items() if n}
    classes = {text: label_spelling(text) for text in counts}
    if not counts:
        raise DataError(f"No row of {runner.facts.description} has a class in {target!r}: there is nothing to fit.")
    if len(set(classes.values())) == 1:
        raise DataError(
            f"The target {target!r} holds one class only, {next(iter(counts))!r}: a fit needs at least 2. Give another "
            "column as target, or a table with other rows as well."
        )
    lengths, notes = [one.total("rows") for one in found], [*together.counts.get("notes", {})]
    return Counted(lengths, counts, together.total("unlabeled"), classes, notes)


SAMPLE = "sample"


@dataclass(frozen=True)
class SamplePass:
    """Rows with a class, each kept if its chance is below the rate of its label.

    The chance is a hash of the seed and of the place of the row: a row is kept or not, whatever else is.
    """

    reading: RawReading
    target: str
    rates: Mapping[str, float]
    seed: int
    name: str = "sample"

    def summarize(self, source: TableSource, first_row: int) -> Summary:
        """Draw rows of a partition."""
        key, found, places = key_of(SAMPLE, self.seed), list[pa.RecordBatch](), []
        for batch, row in self.reading.batches(source, first_row):
            codes, texts = label_texts(batch.column(self.target))
            # Rows without a label have the last rate.
            rates = np.array([*(self.rates.get(text, 0.0) for text in texts), 0.0])
            taken = np.flatnonzero(chances(key, row, batch.num_rows) < rates[codes])
            if len(taken):
                found.append(batch.take(pa.array(taken)))
                places.append(taken + row)
        return Summary({}, {SAMPLE: kept_rows(found, self.reading.schema(source), places)})
