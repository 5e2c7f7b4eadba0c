"""The first pass: how many rows there are, and how many of each class."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmedoid.exceptions import DataError
from qmedoid.large.base import Summary
from qmedoid.large.reading import RawReading, label_texts
from qmedoid.tables.source import TableSource

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

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a summary depends on."""
        return {"target": self.target, "as_text": self.reading.as_text}

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
