"""What is drawn of a table: which labels mean which class, which class is rare, and at which rate each is drawn."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qmedoid.exceptions import DataError
from qmedoid.large.base import Summary
from qmedoid.tables.targets import label_spelling


class Labels(NamedTuple):
    """Rows of every label, by its text, of rows that have none, and the class that each text means."""

    counts: Mapping[str, int]
    unlabeled: int
    classes: Mapping[str, str]

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
        """Rows of every class; of more than two those of the positive one, where there is one, and of the rest."""
        found: dict[str, int] = {}
        for text, count in self.counts.items():
            found[self.classes[text]] = found.get(self.classes[text], 0) + count
        if positive is None or len(found) <= 2:
            return found
        wanted = label_spelling(positive)
        return {wanted: found.get(wanted, 0), "": sum(found.values()) - found.get(wanted, 0)}

    def texts_of(self, side: str, positive: Any) -> frozenset[str]:
        """The texts of a side."""
        sides = self.sides(positive)
        others = {self.classes[text] for text in self.counts} - set(sides)
        named = {side} if side else others
        return frozenset(text for text, meant in self.classes.items() if meant in named)


def labels_of(counted: Summary, target: str, description: str) -> Labels:
    """The labels that the first pass has counted; a target that holds no classes is refused."""
    counts = {text: n for text, n in counted.counts.get("labels", {}).items() if n}
    labels = Labels(counts, counted.total("unlabeled"), {text: label_spelling(text) for text in counts})
    if not counts:
        raise DataError(f"No row of {description} has a class in {target!r}: there is nothing to fit.")
    if len(set(labels.classes.values())) == 1:
        raise DataError(
            f"The target {target!r} holds one class only, {next(iter(counts))!r}: a fit needs at least 2. Give another "
            "column as target, or a table with other rows as well."
        )
    return labels
