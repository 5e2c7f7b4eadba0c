"""Our methods against plain classifiers and against the paper's figures: tables, cost, and findings in sentences."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from qmedoid.reporting.document import Heading, Table, Value
from qmedoid.studies.catalog import HEART_ORDINAL
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.fraud_tables import ORDER, PRINTED_TABLES, SPLITS, measure_of
from qmedoid.studies.metrics import FIXED, MATCHED
from qmedoid.studies.paper import FRAUD, printed_figure
from qmedoid.studies.plan import NUMBERED
from qmedoid.studies.results import Measure, Paired, Spread, StudyResults
from qmedoid.studies.small_tables import BASELINES, MEASURES
from qmedoid.studies.splits import SplitKind

FRAUD_BASELINES = ("LogReg", "LinearSVM", "LinearSVM, calibrated", "RandomForest", "LightGBM")
FRAUD_MEASURES: dict[str, Measure] = {
    "PR-AUC": measure_of("PR-AUC", "test", FIXED),
    "ROC-AUC": measure_of("ROC-AUC", "test", FIXED),
    "recall at 1.31 % alerts": measure_of("recall", "test", MATCHED),
}
"""Held-out figures of the frauds. Recall is at the threshold that validation rows chose."""
# Test rows for every row that was fitted on.
_SMALL_SHARE, _FRAUD_SHARE = 0.25 / 0.75, 0.25 / 0.5625


def small_pairs(results: StudyResults, name: str) -> Iterator[Paired]:
    """Our default against every plain classifier on a small data set."""
    for figure, measure in MEASURES.items():
        yield from _pairs(results, name, "random", figure, measure, BASELINES, _SMALL_SHARE)


def fraud_pairs(results: StudyResults, name: str) -> Iterator[Paired]:
    """Our default against every plain classifier on the frauds, for every kind of split."""
    for split in SPLITS:
        for figure, measure in FRAUD_MEASURES.items():
            yield from _pairs(results, name, split, figure, measure, FRAUD_BASELINES, _FRAUD_SHARE)


def _pairs(
    results: StudyResults,
    name: str,
    split: SplitKind,
    figure: str,
    measure: Measure,
    rivals: tuple[str, ...],
    test_share: float,
) -> Iterator[Paired]:
    for rival in rivals:
        ours, theirs = (results.spread(name, method, measure, split) for method in ("default", rival))
        if ours is not None and theirs is not None:
            yield Paired(name, split, figure, rival, ours, theirs, test_share)


def paired_table(pairs: list[Paired], titles: Mapping[str, str]) -> Table:
    """Differences on the same splits."""
    rows: list[list[Value]] = []
    for pair in pairs:
        means = (pair.theirs.mean, pair.ours.mean, pair.difference.mean, pair.error)
        won = f"{pair.wins} of {len(pair.difference.values)}"
        rows.append([titles[pair.data], SPLITS[pair.split], pair.figure, pair.rival, *means, won])
    names = ("data", "split", "figure", "plain classifier", "theirs", "ours by default", "theirs − ours")
    return Table(
        "paired_differences",
        "Plain classifiers against our default, split by split",
        [*map(Heading, names), Heading("±", is_error=True), Heading("splits they win")],
        rows,
        "Test rows. Standard errors are corrected for splits that share rows (Nadeau and Bengio).",
    )


def spread_table(results: StudyResults, sets: Mapping[str, Dataset], fraud: str | None) -> Table:
    """Every figure that the paper prints beside the spread of ours."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        rows += _small_spreads(results, name, name, data.name)
        if name == "heart":
            rows += _small_spreads(results, HEART_ORDINAL, name, f"{data.name}, {NUMBERED}")
    if fraud is not None:
        rows += _fraud_spreads(results, fraud)
    names = ("data", "method", "figure", "paper", "mean", "sd", "low", "high", "within the spread")
    return Table(
        "within_the_spread",
        "Every printed figure against the spread of repeated splits",
        list(map(Heading, names)),
        rows,
        "Within the spread: in the range of the splits, or within two standard deviations of their mean. Frauds: all "
        "rows scored, as in the paper.",
    )


def _small_spreads(results: StudyResults, source: str, name: str, title: str) -> list[list[Value]]:
    """Figures of a small data set, perhaps encoded otherwise, beside those that are printed for it."""
    rows: list[list[Value]] = []
    for model, method in {"Fusion": "printed", **{own: own for own in BASELINES}}.items():
        for figure, measure in MEASURES.items():
            printed = printed_figure(name, model, figure)
            rows += _spread_row(title, method, figure, printed, results.spread(source, method, measure))
    return rows


def _fraud_spreads(results: StudyResults, fraud: str) -> list[list[Value]]:
    rows: list[list[Value]] = []
    for table, (_, models) in PRINTED_TABLES.items():
        for model in models:
            if model.printed is None or (model.printed == "ours" and table != "fraud_matched"):
                continue  # ours stands in all four tables with the same figures
            for figure in ORDER[2:]:
                spread = results.spread(fraud, model.method, measure_of(figure, "all", model.cut))
                title = f"{model.method}, {model.cut}"
                rows += _spread_row("Credit-card fraud", title, figure, FRAUD[table][model.printed][figure], spread)
    return rows


def _spread_row(data: str, method: str, figure: str, printed: float | None, spread: Spread | None) -> list[list[Value]]:
    if printed is None or spread is None:
        return []
    within = "yes" if spread.contains(printed) else "no"
    return [[data, method, figure, printed, spread.mean, spread.deviation, spread.low, spread.high, within]]


def cost_table(results: StudyResults, titles: Mapping[str, str]) -> Table:
    """Cells, seconds and peak memory of every method on every data set."""
    rows: list[list[Value]] = []
    for data, title in titles.items():
        for method in results.methods(data):
            own = [result for cell, result in results.by_cell.items() if (cell.data, cell.method) == (data, method)]
            seconds = [float(result["seconds"]) for result in own]
            peaks = [float(result["peak_mb"]) for result in own if result.get("peak_mb") is not None]
            mean = sum(seconds) / len(seconds)
            rows.append([title, method, len(own), mean, max(seconds), sum(seconds), max(peaks, default=None)])
    columns = [Heading("data"), Heading("method"), Heading("cells")]
    columns += [Heading(name, "seconds of a cell", digits=2) for name in ("mean", "most")]
    columns += [Heading("seconds in all", digits=1), Heading("peak of its process, MB", digits=0)]
    return Table(
        "cost",
        "What it took",
        columns,
        rows,
        "Wall time of fitting, scoring and judging, one thread each, with as many cells side by side as there were "
        "processes. A process runs many cells: its peak is that of the largest so far.",
    )


def rival_findings(pairs: Iterable[Paired], titles: Mapping[str, str], ranked_by: Sequence[str]) -> Iterator[str]:
    """For every data set and kind of split, who is best by each figure, and by how much it beats our default or not."""
    by_place: dict[tuple[str, str, str], list[Paired]] = {}
    for pair in pairs:
        if pair.figure in ranked_by:
            by_place.setdefault((pair.data, pair.split, pair.figure), []).append(pair)
    for (data, split, figure), rivals in by_place.items():
        best = max(rivals, key=lambda pair: pair.theirs.mean)
        where = titles[data] + ("" if split == "random" else f", split {SPLITS[best.split]}")
        yield f"{where}: {_verdict(best, figure)}"


def _verdict(best: Paired, figure: str) -> str:
    ahead, n = best.difference.mean, len(best.difference.values)
    sure = best.error is not None and abs(ahead) > 2 * best.error
    by = f"{abs(ahead):.3f}" + ("" if best.error is None else f" ± {best.error:.3f}")
    figures = f"{best.theirs.mean:.3f} against {best.ours.mean:.3f} in {figure}"
    if ahead > 0:
        doubt = "" if sure or n == 1 else "; that is within two standard errors"
        return (
            f"the plain classifier {best.rival} beats our default by {by} ({figures}), "
            f"on {f'{best.wins} of {n} splits' if n > 1 else 'the only split'}{doubt}."
        )
    place = f"behind by {by}" if ahead < 0 else "level with it"
    return f"no plain classifier beats our default; the best, {best.rival}, is {place} ({figures})."


def leak_finding(results: StudyResults, data: str, *, comparable: bool) -> Iterator[str]:
    """How far a random forest is flattered by the rows that it was fitted on."""
    measured = [results.spread(data, "RandomForest", measure_of("PR-AUC", part, FIXED)) for part in ("all", "test")]
    share = results.spread(data, "RandomForest", lambda result: result["train"]["rows"] / result["all"]["rows"])
    everything, held_out = measured
    if everything is None or held_out is None or share is None:
        return
    printed = FRAUD["fraud_matched"]["RandomForest"]["PR-AUC"]
    yield (
        f"A random forest has a PR-AUC of {everything.mean:.3f} on all rows, {100 * share.mean:.0f} % of which it was "
        f"fitted on, and {held_out.mean:.3f} on test rows."
        + (f" The paper prints {printed:.3f}, for all rows." if comparable else "")
    )


def spread_findings(table: Table) -> Iterator[str]:
    """How many of the printed figures are within the spread of ours, and which are not."""
    for ours in (True, False):
        # One encoding of the heart data is enough here, lest its figures count twice.
        rows = [row for row in table.rows if _is_ours(row) == ours and not _is_numbered(row)]
        if not rows:
            continue
        outside = [row for row in rows if row[-1] == "no"]
        whose = "The paper's figures of its own method" if ours else "The paper's figures of plain classifiers"
        yield f"{whose}: {len(rows) - len(outside)} of {len(rows)} are within the spread of repeated splits."
        if ours:
            for row in outside:
                yield (
                    f"{row[0]}, as printed: the paper has {row[2]} {row[3]:.4f}; ours is {row[4]:.4f}, "
                    f"{row[6]:.4f} to {row[7]:.4f} over the splits."
                )


def encoding_finding(table: Table) -> Iterator[str]:
    """Which encoding of categories fits the printed figures of plain classifiers better."""
    numbered = [row for row in table.rows if _is_numbered(row) and not _is_ours(row)]
    names = {str(row[0]).removesuffix(f", {NUMBERED}") for row in numbered}
    one_hot = [row for row in table.rows if row[0] in names and not _is_ours(row)]
    if not numbered:
        return
    fits = [sum(row[-1] == "yes" for row in rows) for rows in (one_hot, numbered)]
    yield (
        f"{', '.join(sorted(names))}: of the paper's {len(numbered)} figures of plain classifiers {fits[0]} are within "
        f"the spread where categories are columns of 0 and 1, and {fits[1]} where they are numbered. "
        + ("The paper may have numbered them." if fits[1] > fits[0] else "That does not tell how the paper did it.")
    )


def _is_ours(row: Sequence[Value]) -> bool:
    return str(row[1]).startswith("printed")


def _is_numbered(row: Sequence[Value]) -> bool:
    return str(row[0]).endswith(NUMBERED)
