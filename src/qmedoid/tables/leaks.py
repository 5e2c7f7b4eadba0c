"""Leaks: columns, missing cells and pairs of columns that say the class, as those do that are filled in after it.

All figures are balanced: every class counts the same, however many rows it has.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags, column_slices
from qmedoid.metrics.classification import roc_auc
from qmedoid.model.contract import Column, Kind
from qmedoid.tables import cells
from qmedoid.tables.roles import quoted

LEAKS = ("target_copy", "gives_away", "nearly_target", "missing_by_class", "names_class", "pair")
"""Codes of what is found."""
GIVES_AWAY, STRONG = 0.99, 0.95
"""Figures of a column alone, ROC-AUC or mean recall: too good to be true, and worth a look."""
FEW = 10
"""Rows of a class below which nothing is looked for."""
MOST_ROWS = 10_000
"""Rows that are looked at; of more, the same number of every class is drawn."""
_FEWEST_OF_CLASS = 50
_SURE = 0.999  # figure of a column alone that is too good to be true where a class has few rows
_FOLDS, _BINS, _FEWEST_BINS, _ROWS_PER_BIN = 5, 256, 8, 10
_MOST_LEVELS, _FEWEST_VALUES = 20, 5  # cells of a column that says the class one by one; of those that are compared
_MOST_PAIRED, _PAIRED_CELLS, _FEWEST_PAIRED = 200, 200_000, 500
_QUICK_ROWS, _QUICK_BINS, _QUICK_PAIRED, _QUICK_RECALL, _QUICK_GAP = 512, 16, 60, 0.88, 0.3
_PURE, _CHANCE, _LEAST_ODDS = 0.9, 1e-4, 8.0
_MOST_OF_CLASS = 0.5  # share of a class whose missing cells are worth a problem
_MORE = 0.02  # by which a pair must be better than either of its columns
_WORD = re.compile(r"[^\W\d_]{3,}")
_PLAIN_WORDS = frozenset(("yes", "true", "false", "not", "non", "none", "other", "unknown", "class", "group"))
_ORDERS: dict[str, Any] = {
    "{0} equals {1}": np.equal,
    "{0} is less than {1}": np.less,
    "{0} is more than {1}": np.greater,
}
_ABSENCES: dict[str, Any] = {
    "both {0} and {1} are missing": np.logical_and,
    "one of {0} and {1} is missing": np.logical_xor,
}


class Leak(NamedTuple):
    """What says the class: a code that does not change, a sentence, its columns, and whether it is a problem."""

    code: str
    message: str
    columns: tuple[str, ...]
    is_problem: bool = True


def find_leaks(
    table: pa.Table, columns: Sequence[Column], codes: npt.NDArray[Any], labels: Sequence[Any], **how: Any
) -> list[Leak]:
    """What says the class: single columns, then pairs of the others.

    Parameters
    ----------
    table : pyarrow.Table
    columns : sequence of Column
        Those that are learned from.
    codes : ndarray of shape (n,)
        The class of every row.
    labels : sequence
        The classes by their code.
    groups : ndarray of shape (n,) or None, default=None
        Rows that are held out together.
    is_quick : bool, default=False
        Whether to pass over columns of numbers and dates that do not separate a few hundred rows, and pairs of most.
    """
    return _Search(table, columns, codes, labels, **how).found()


class _Search:
    """Rows of a table with their classes, in which columns are looked at one by one and two by two."""

    def __init__(
        self,
        table: pa.Table,
        columns: Sequence[Column],
        codes: npt.NDArray[Any],
        labels: Sequence[Any],
        *,
        groups: npt.NDArray[Any] | None = None,
        is_quick: bool = False,
    ) -> None:
        self.is_quick, self.most_paired = is_quick, _QUICK_PAIRED if is_quick else _MOST_PAIRED
        self.labels, self.counts = [str(label) for label in labels], np.bincount(codes, minlength=len(labels))
        self.columns = list(columns) if len(labels) > 1 and int(self.counts.min()) >= FEW else []
        rows = balanced_rows(codes, MOST_ROWS)
        self.codes, self.table = codes[rows], table if len(rows) == len(codes) else table.take(pa.array(rows))
        self.groups = None if groups is None else groups[rows]
        self.totals, self.figure = np.bincount(self.codes, minlength=len(labels)), figure_name(labels)
        self.values = read_values(self.table, self.columns)

    def found(self) -> list[Leak]:
        """What says the class: single columns, then pairs of the others."""
        looked_at = self._promising() if self.is_quick else self.columns
        leaks = [leak for column in looked_at for leak in list(self._of_column(column))[:1]]
        named = {name for leak in leaks if leak.is_problem for name in leak.columns}
        others = [column for column in self.columns if column.name not in named]
        for kind in ("number", "date", "category"):
            leaks += self._of_pairs([column.name for column in others if column.kind == kind], kind)
        leaks += self._of_missing([column.name for column in others])
        for place, leak in enumerate(leaks):
            name, is_one = leak.columns[-1], len(leak.columns) == 1
            known, which = ("it is", "it") if is_one else ("both are", "one of them")
            way_out = (
                f"leave {which} out with --ignore {quoted(name)}, or say with --keep {quoted(name)} that {known} known "
                f"before the class is (in Python roles={{{name!r}: 'ignore'}} or 'keep')"
            )
            leaks[place] = leak._replace(message=f"{leak.message}: {way_out}")
        return leaks

    def _promising(self) -> list[Column]:
        """Columns that may be a problem: levels, numbers that separate some rows by a few bins, and gaps in a class."""
        ordered = [column for column in self.columns if column.kind != "category"]
        rows = balanced_rows(self.codes, _QUICK_ROWS)
        codes, shares = self.codes[rows], 1.0 / np.bincount(self.codes[rows], minlength=len(self.labels))
        is_class = (codes == np.arange(len(self.labels))[:, None]) * shares[:, None]
        n_bins, names = max(_QUICK_BINS, 4 * len(self.labels)), {c.name for c in self.columns if c.kind == "category"}
        for block in column_slices(len(rows), len(ordered)):
            X = np.column_stack([self.values[column.name][rows] for column in ordered[block]])
            order = np.argsort(X, axis=0)
            starts = np.unique(np.arange(n_bins) * len(rows) // n_bins)
            best = np.zeros((len(starts), X.shape[1]))
            for one in is_class:
                best = np.maximum(best, np.add.reduceat(one[order], starts, axis=0))
            gaps = is_class @ np.isnan(X)
            is_wanted = (best.sum(axis=0) >= _QUICK_RECALL * len(self.labels)) | (np.ptp(gaps, axis=0) >= _QUICK_GAP)
            names |= {column.name for column, wanted in zip(ordered[block], is_wanted, strict=True) if wanted}
        return [column for column in self.columns if column.name in names]

    def _of_column(self, column: Column) -> Iterator[Leak]:
        """What a column says of the class by its cells, by where they are missing, and by words in them."""
        name, is_level, values = column.name, column.kind == "category", self.values[column.name]
        is_missing, bins = np.isnan(values), bins_of(values, is_level=is_level)
        # In the rows themselves no figure is lower than out-of-fold.
        alone, recall = separation(bins, None if is_level else values, self.codes, 1)
        n_different, is_copy = len(np.unique(values[~is_missing])), recall == 1.0 and not is_missing.any()
        if max(alone, recall) >= STRONG:
            alone, recall = separation(bins, None if is_level else values, self.codes, groups=self.groups)
        if is_copy and n_different == len(self.labels):
            yield Leak("target_copy", f"column {name!r} is the target in other words", (name,))
        if alone >= (GIVES_AWAY if self.totals.min() >= _FEWEST_OF_CLASS else _SURE):
            message = f"column {name!r} alone separates the classes (out-of-fold {self.figure} {alone:.4f})"
            yield Leak("gives_away", message, (name,))
        if recall >= STRONG and n_different <= (_MOST_LEVELS if is_level else len(self.labels) + 2):
            message = f"column {name!r} is nearly the target in other words, right in {_percent(recall)} of each class"
            yield Leak("nearly_target", f"{message}, on average", (name,))
        for where, flags in (("missing", is_missing), ("there", ~is_missing)) if is_missing.any() else ():
            code, purity, share = self._one_sided(flags)
            if purity == 1.0 or (purity >= _PURE and share >= _MOST_OF_CLASS):
                message = f"column {name!r} is {where} in {_percent(share)} of the rows of class {self.labels[code]!r}"
                message += f", and {_percent(purity)} of the rows where it is {where} are of that class"
                yield Leak("missing_by_class", message, (name,), share >= _MOST_OF_CLASS)
        if is_level:
            yield from self._of_words(name)

    def _one_sided(self, flags: Flags) -> tuple[int, float, float]:
        """The class that most of some rows are of, their share of it (0 if chance explains it), and its share of them.

        Shares are those of the whole table, of whose classes as many rows may have been drawn as of each other.
        """
        shares = np.bincount(self.codes[flags], minlength=len(self.labels)) / self.totals
        rows = shares * self.counts
        code = int(rows.argmax())
        purity, usual = float(rows[code] / max(rows.sum(), 1e-9)), float(self.counts[code] / self.counts.sum())
        rest = max(1.0 - purity, 1e-12)
        # The exponent of a binomial tail; and odds, as a large share means little of a class of nearly all rows.
        surprise = flags.sum() * (purity * np.log(max(purity, 1e-12) / usual) + rest * np.log(rest / (1.0 - usual)))
        is_odd = surprise > -np.log(_CHANCE) and purity / rest >= _LEAST_ODDS * usual / (1.0 - usual)
        return code, purity if is_odd else 0.0, float(shares[code])

    def _of_words(self, name: str) -> Iterator[Leak]:
        """Whether cells that hold the words of a class are of that class."""
        levels = cells.texts(self.table.column(name)).dictionary_encode().dictionary.to_pylist()
        held = [{word.casefold() for word in _WORD.findall(level)} for level in levels]
        for code, label in enumerate(self.labels):
            words = {word.casefold() for word in _WORD.findall(label)} - _PLAIN_WORDS
            places = [place for place, own in enumerate(held) if words and words <= own]
            most, purity, share = self._one_sided(np.isin(self.values[name], places)) if places else (-1, 0.0, 0.0)
            if most == code and purity >= _PURE:
                message = f"column {name!r} names the class {label!r} in {_percent(share)} of its rows, and "
                message += f"{_percent(purity)} of the rows where it does are of that class"
                yield Leak("names_class", message, (name,))

    def _of_pairs(self, names: Sequence[str], kind: Kind) -> Iterator[Leak]:
        """Pairs of columns of one kind of which it says the class whether they are equal, or which is larger."""
        names, values = names[: self.most_paired], self.values
        if kind == "category":  # the same number for the same level of all of them
            texts = pa.chunked_array([cells.texts(self.table.column(name)) for name in names], pa.string())
            chunks = texts.dictionary_encode().unify_dictionaries().chunks
            codes = (np.asarray(one.indices.to_numpy(zero_copy_only=False), dtype=np.float64) for one in chunks)
            values = dict(zip(names, codes, strict=True))
        many = {name: values[name] for name in names if len(np.unique(values[name])) > _FEWEST_VALUES}
        yield from self._joined(many, {"{0} equals {1}": np.equal} if kind == "category" else _ORDERS)

    def _of_missing(self, names: Sequence[str]) -> Iterator[Leak]:
        """Pairs of columns of which it says the class whether both are missing, or one of them."""
        gaps = {name: np.isnan(self.values[name]).astype(np.float64) for name in names[: self.most_paired]}
        yield from self._joined({name: own for name, own in gaps.items() if own.any()}, _ABSENCES)

    def _joined(self, columns: Mapping[str, Array], ways: Mapping[str, Any]) -> Iterator[Leak]:
        """Pairs of columns that say the class in one of these ways, better than either does alone; each once."""
        names, n_rows = [*columns], max(_FEWEST_PAIRED, _PAIRED_CELLS // max(len(columns), 1))
        rows = balanced_rows(self.codes, _FEWEST_PAIRED if self.is_quick else n_rows)
        X, codes = [column[rows] for column in columns.values()], self.codes[rows]
        totals = np.bincount(codes)[:, None]
        is_class = (codes == np.arange(len(totals))[:, None]).astype(np.float64)
        for first, name in enumerate(names[:-1]):
            others, found = np.column_stack(X[first + 1 :]), set[int]()
            for way, join in ways.items():
                # For every class and column the share of rows in the class where it is so, minus that in the others.
                hits = is_class @ join(X[first][:, None], others)
                gains = hits / totals - (hits.sum(axis=0) - hits) / (len(codes) - totals)
                where = np.argwhere(np.abs(gains) >= 2.0 * STRONG - 1.0).tolist()
                # First the class that it is a sign of, not the others that it is a sign against.
                for code, place in sorted(where, key=lambda one: -gains[one[0], one[1]]):
                    recall, pair = 0.5 + 0.5 * abs(float(gains[code, place])), (X[first], others[:, place])
                    if place in found or recall <= max(_best_recall(one, codes == code) for one in pair) + _MORE:
                        continue
                    # Two columns that are mostly 0 are equal for no reason.
                    alike = np.unique(pair[0][pair[0] == pair[1]], return_counts=True)[1]
                    if join is np.equal and alike.max(initial=0) > alike.sum() / 2:
                        continue
                    found.add(place)
                    both = name, names[first + 1 + place]
                    message = f"whether {way.format(*map(repr, both))} says whether a row is of class"
                    message += (
                        f" {self.labels[code]!r}, rightly for {_percent(recall)} of these rows and of the others,"
                    )
                    # Which of two numbers is larger may be known for a good reason.
                    is_problem = ways is not _ORDERS or join is np.equal or recall >= GIVES_AWAY
                    yield Leak("pair", f"{message} on average", both, is_problem)


def figure_name(labels: Sequence[Any]) -> Literal["ROC-AUC", "mean recall"]:
    """What says how well a column separates the classes."""
    return "ROC-AUC" if len(labels) == 2 else "mean recall"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _best_recall(values: Array, is_class: Flags) -> float:
    """The mean recall of a class and of all others by one column, its bins or an interval, in the rows themselves."""
    order = np.argsort(values)
    gained = np.where(is_class, 1.0 / is_class.sum(), -1.0 / (~is_class).sum())[order].cumsum()
    ends = np.append(gained[np.flatnonzero(np.diff(values[order]) != 0)], 0.0)
    of_bins = separation(bins_of(values, is_level=False), None, is_class.astype(np.intp), 1)[1]
    return max(of_bins, 0.5 + 0.5 * float(np.ptp(ends)))


def balanced_rows(codes: npt.NDArray[Any], most: int) -> Codes:
    """At most this many rows, in their order: of too many the same number of every class, drawn at random."""
    if len(codes) <= most:
        return np.arange(len(codes))
    rng, each = np.random.default_rng(0), max(most // (int(codes.max()) + 1), FEW)
    of_class = (np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1))
    return np.sort(np.concatenate([rng.permutation(rows)[:each] for rows in of_class]))


def judged_alone(
    table: pa.Table, draft: Column, classes: npt.NDArray[Any], groups: npt.NDArray[Any] | None = None
) -> float:
    """How well one column alone separates the classes, out-of-fold, from 0 to 1: see `separation`."""
    (values,), is_level = read_values(table, [draft]).values(), draft.kind == "category"
    return separation(bins_of(values, is_level=is_level), None if is_level else values, classes, groups=groups)[0]


def read_values(table: pa.Table, columns: Sequence[Column]) -> dict[str, Array]:
    """Columns as numbers: dates in microseconds, levels by their first rows; NaN where a cell is missing."""
    found = dict[str, Array]()
    for places, block in cells.value_blocks(table, columns):
        found |= {columns[place].name: block[:, number] for number, place in enumerate(places.tolist())}
    for name in (column.name for column in columns if column.kind == "category"):
        levels = cells.texts(table.column(name)).dictionary_encode()
        found[name] = np.asarray(levels.indices.to_numpy(zero_copy_only=False), dtype=np.float64)
    return found


def bins_of(values: Array, *, is_level: bool) -> npt.NDArray[np.int64]:
    """The bin of every cell: its level, or one of at most 256 quantiles; missing ones have their own."""
    known = values[~np.isnan(values)]
    if is_level:
        return np.where(np.isnan(values), known.max(initial=-1.0) + 1, values).astype(np.int64)
    edges = np.unique(known)
    most = min(max(len(values) // _ROWS_PER_BIN, _FEWEST_BINS), _BINS)
    if len(edges) > most:
        edges = np.unique(np.quantile(known, np.arange(1, most) / most))
    places = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), len(edges) + 1, places).astype(np.int64)


def separation(
    bins: npt.NDArray[np.int64],
    values: Array | None,
    codes: npt.NDArray[Any],
    n_folds: int = _FOLDS,
    groups: npt.NDArray[Any] | None = None,
) -> tuple[float, float]:
    """How well a column alone separates the classes, from 0 to 1, and the mean recall of the classes by its bins.

    A row is scored by the class frequencies of its bin among the rows of the other folds (with one fold, of all); rows
    of a group are in one fold. For two classes the first is the ROC-AUC of that score, or of the `values` themselves,
    if they are ordered and it is larger; for more the mean recall of the most frequent class of the bin. The second
    counts every class the same.
    """
    n_bins, n_classes = int(bins.max()) + 1, int(codes.max()) + 1
    totals = np.bincount(codes, minlength=n_classes)
    n_draws = len(bins) if groups is None else int(groups.max()) + 1
    folds = np.random.default_rng(0).permutation(n_draws) % n_folds
    folds = folds if groups is None else folds[groups]
    scores = np.empty((len(bins), n_classes))
    for fold in range(n_folds):
        inside = folds == fold
        others = ~inside if n_folds > 1 else inside
        rows = np.bincount(bins[others] * n_classes + codes[others], minlength=n_bins * n_classes)
        counts = rows.reshape(n_bins, n_classes) + totals / len(codes)
        scores[inside] = (counts / counts.sum(axis=1, keepdims=True))[bins[inside]]
    called = (scores / totals).argmax(axis=1)
    recall = float((np.bincount(codes[called == codes], minlength=n_classes) / totals).mean())
    if n_classes > 2:
        hit = np.bincount(codes[scores.argmax(axis=1) == codes], minlength=n_classes)
        return float((hit / totals).mean()), recall
    best = roc_auc(codes == 1, scores[:, 1])
    if values is not None and not np.isnan(values).any():
        ranked = roc_auc(codes == 1, values)
        best = max(best, ranked, 1 - ranked)
    return best, recall
