"""The pass that draws a sample: each row by chance, at the rate of its class."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.large.base import Summary, kept_rows
from qmedoid.large.keys import chances, key_of
from qmedoid.large.reading import RawReading, label_texts
from qmedoid.tables.source import TableSource

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

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a summary depends on."""
        return {
            "target": self.target,
            "reading": list(self.reading),
            "rates": {label: rate.hex() for label, rate in self.rates.items()},
            "seed": self.seed,
        }

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
