"""All results as one document: the paper's tables first, what stands behind them, and ours against the others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import product

from benchmarks.datasets import LOADERS, Dataset
from benchmarks.studies import fraud_tables, small_tables
from benchmarks.studies.cells import FIXED, FULL_FRAUD, HEART_ORDINAL, MATCHED, load_data
from benchmarks.studies.document import Document, Heading, Section, Table, Value
from benchmarks.studies.fraud_tables import PRINTED_TABLES, SPLITS, measure_of
from benchmarks.studies.paper import FRAUD, FRAUD_FIGURES, NUMBERED, Plan, printed_figure
from benchmarks.studies.pictures import fraud_pictures, small_detail_pictures, small_pictures
from benchmarks.studies.results import Measure, Paired, Spread, StudyResults, headings
from benchmarks.studies.runner import versions
from benchmarks.studies.small_tables import BASELINES, MEASURES, Sets
from qmedoid.exceptions import MissingExtraError

PAPER_TABLES = ("test_comparison", *PRINTED_TABLES, "summary", "test_fusion", "confusion_matrices")
"""Names of the tables that the paper has, in its order; the others are ours."""
ENOUGH_SPLITS = 5
"""Number of splits from which on it says something whether a figure lies within their spread."""
FRAUD_BASELINES = ("LogReg", "LinearSVM", "LinearSVM, calibrated", "RandomForest", "LightGBM")
FRAUD_MEASURES: dict[str, Measure] = {
    "PR-AUC": measure_of("PR-AUC", "test", FIXED),
    "ROC-AUC": measure_of("ROC-AUC", "test", FIXED),
    "recall at 1.31 % alerts": measure_of("recall", "test", MATCHED),
}
"""Held-out figures of the frauds. Recall is at the threshold that validation rows chose."""


def require_extras(plan: Plan) -> None:
    """Raise where optional packages are missing that the plan needs, before any work; the error names them all."""
    needed = {"lightgbm": "LightGBM"} | ({"imblearn": "imbalanced-learn"} if "fraud" in plan.parts else {})
    missing = sorted(name for module, name in needed.items() if find_spec(module) is None)
    if missing:
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise MissingExtraError(
            f"{', '.join(missing)} {are} not installed. Get {them} with: pip install 'qmedoid[baselines]'"
        )


def make_report(plan: Plan, results: StudyResults, command: str) -> Document:
    """The document of a run of all cells of a plan; the command is the one that makes it again."""
    # In the order of the plan, not in that in which the cells were done: the same results give the same tables.
    results = StudyResults({cell: results.by_cell[cell] for cell in plan.cells})
    sets: dict[str, Dataset] = {part: load_data(part) for part in plan.parts if part != "fraud"}
    fraud = plan.fraud_data if "fraud" in plan.parts else None
    titles = {name: data.name for name, data in sets.items()}
    pairs = [pair for name in sets for pair in rival_pairs(results, name)]
    spreads = spread_table(results, sets, fraud if fraud == FULL_FRAUD else None)
    found = [*rival_findings(pairs, titles, ("macro-F1",))]
    sections = _small_sections(results, sets, plan) if sets else []
    if fraud is not None:
        titles[fraud] = load_data(fraud).name
        fights = list(rival_pairs(results, fraud))
        found += rival_findings(fights, titles, ("PR-AUC", "recall at 1.31 % alerts"))
        if plan.variants:
            found += fraud_tables.readings_findings(results, fraud)
        found += fraud_tables.leak_finding(results, fraud)
        pairs += fights
        sections += _fraud_sections(results, fraud, plan)
    if min(plan.splits, plan.fraud_splits) >= ENOUGH_SPLITS:
        found += [*spread_findings(spreads), *encoding_finding(spreads)]
    both = Section(
        "Side by side",
        ("Every method saw the same splits. A plain classifier that wins is named as such.",),
        (paired_table(pairs, titles), spreads, cost_table(results, titles)),
    )
    introduction = [
        "Every table of the paper on quantum-inspired geometric classification, computed again. “Paper” is what is "
        "printed there, of one split. “As printed” is the preset “paper” of our estimators, the method as printed but "
        "for the places that its documentation lists, “convex” the same fusion with settings of our own, “default” "
        "what the package does by default; all are means over repeated splits."
    ]
    if fraud is not None and fraud != FULL_FRAUD:
        introduction.append(
            "The frauds are those of the sample that ships with the package, in which one payment in 30 is a fraud, "
            "not one in 579: the paper's figures are left out."
        )
    made_by = {"command": command, "seed": str(plan.seed), **versions()}
    return Document("The paper's experiments, run again", introduction, found, [*sections, both], made_by)


def _small_sections(results: StudyResults, sets: Sets, plan: Plan) -> list[Section]:
    tables = [small_tables.comparison_table, small_tables.summary_table]
    tables += [small_tables.own_table, small_tables.confusion_table]
    details = [small_tables.class_table, small_tables.alpha_table, small_tables.f_beta_table]
    details += [small_tables.variants_table] if plan.variants else []
    first, behind = ([make(results, sets) for make in makers] for makers in (tables, details))
    text = (
        f"{plan.splits} stratified splits in the paper's proportions: 25 % test rows, then 25 % of the rest for "
        "validation. Plain classifiers are fitted on training and validation rows together.",
    )
    return [
        Section("Small data sets", text, [*first, *small_pictures(results, sets)]),
        Section("Behind the small data sets", (), [*behind, *small_detail_pictures(results, sets)]),
    ]


def _fraud_sections(results: StudyResults, fraud: str, plan: Plan) -> list[Section]:
    tables = [fraud_tables.fraud_table(results, fraud, name) for name in PRINTED_TABLES]
    details = [
        fraud_tables.counts_table(fraud),
        fraud_tables.leak_table(results, fraud),
        *([fraud_tables.readings_table(results, fraud)] if fraud == FULL_FRAUD and plan.variants else []),
        fraud_tables.honest_table(results, fraud),
        fraud_tables.points_table(results, fraud),
    ]
    text = (
        f"{plan.fraud_splits} stratified splits. All models are fitted on the training rows (56.25 %); thresholds are "
        "chosen on the validation rows (18.75 %). The paper scores all rows, training rows among them; the columns of "
        "the test rows say what is left on rows that nothing has seen.",
    )
    return [
        Section("Frauds", text, tables),
        Section("Behind the frauds", (), [*details, *fraud_pictures(results, fraud)]),
    ]


def rival_pairs(results: StudyResults, data: str) -> Iterator[Paired]:
    """Our default against every plain classifier on a data set, by kind of split and figure."""
    is_small = data in LOADERS
    measures, rivals = (MEASURES, BASELINES) if is_small else (FRAUD_MEASURES, FRAUD_BASELINES)
    for split, (figure, measure), rival in product(SPLITS, measures.items(), rivals):
        ours, theirs = (results.spread(data, method, measure, split) for method in ("default", rival))
        if ours and theirs:
            # Test rows for every row that was fitted on.
            test_share = 0.25 / (0.75 if is_small else 0.5625)
            yield Paired(data, split, figure, rival, ours, theirs, test_share)


def paired_table(pairs: list[Paired], titles: Mapping[str, str]) -> Table:
    """Differences on the same splits."""
    rows: list[list[Value]] = []
    for pair in pairs:
        means = (pair.theirs.mean, pair.ours.mean, pair.difference.mean, pair.error)
        won = f"{pair.wins} of {len(pair.difference.values)}"
        rows.append([titles[pair.data], SPLITS[pair.split], pair.figure, pair.rival, *means, won])
    names = ("plain classifier", "theirs", "ours by default", "theirs − ours ±", "splits they win")
    return Table(
        "paired_differences",
        "Plain classifiers against our default, split by split",
        headings("data", "split", "figure", *names),
        rows,
        "Test rows. Standard errors are corrected for splits that share rows (Nadeau and Bengio).",
    )


def spread_table(results: StudyResults, sets: Sets, fraud: str | None) -> Table:
    """Every figure that the paper prints beside the spread of ours."""
    rows: list[list[Value]] = []

    def add(data: str, method: str, figure: str, printed: float | None, spread: Spread) -> None:
        if printed is not None and spread:
            cells = (spread.mean, spread.deviation, spread.low, spread.high, spread.holds(printed))
            rows.append([data, method, figure, printed, *cells])

    for name, data in sets.items():
        sources = {name: data.name} | ({HEART_ORDINAL: f"{data.name}, {NUMBERED}"} if name == "heart" else {})
        for source, title in sources.items():
            for model, method in {"Fusion": "printed", **{own: own for own in BASELINES}}.items():
                for figure, measure in MEASURES.items():
                    spread = results.spread(source, method, measure)
                    add(title, method, figure, printed_figure(name, model, figure), spread)
    for table, (_, models) in PRINTED_TABLES.items() if fraud is not None else ():
        for own in models:
            if own.printed is None or (own.printed == "ours" and table != "fraud_matched"):
                continue  # ours stands in all four tables with the same figures
            for figure in FRAUD_FIGURES[2:-4]:
                spread = results.spread(fraud or "", own.method, measure_of(figure, "all", own.cut))
                title = f"{own.method}, {own.cut}"
                add("Credit-card fraud", title, figure, FRAUD[table][own.printed][figure], spread)
    names = ("data", "method", "figure", "paper", "mean", "sd", "low", "high", "within the spread")
    return Table(
        "within_the_spread",
        "Every printed figure against the spread of repeated splits",
        headings(*names),
        rows,
        "Within the spread: in the range of the splits, or within two standard deviations of their mean. Frauds: all "
        "rows scored, as in the paper.",
    )


def cost_table(results: StudyResults, titles: Mapping[str, str]) -> Table:
    """Cells, seconds and peak memory of every method on every data set."""
    titles = {**titles, **({HEART_ORDINAL: f"{titles['heart']}, {NUMBERED}"} if "heart" in titles else {})}
    rows: list[list[Value]] = []
    for data, title in titles.items():
        for method in results.methods(data):
            own = [result for cell, result in results.by_cell.items() if (cell.data, cell.method) == (data, method)]
            seconds = [float(result["seconds"]) for result in own]
            peaks = [float(result["peak_mb"]) for result in own if result.get("peak_mb") is not None]
            mean = sum(seconds) / len(seconds)
            rows.append([title, method, len(own), mean, max(seconds), sum(seconds), max(peaks, default=None)])
    columns = headings("data", "method", "cells")
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
        ahead, n = best.difference.mean, len(best.difference.values)
        by = f"{abs(ahead):.3f}" + ("" if best.error is None else f" ± {best.error:.3f}")
        figures = f"{best.theirs.mean:.3f} against {best.ours.mean:.3f} in {figure}"
        if ahead > 0:
            sure = n == 1 or (best.error is not None and ahead > 2 * best.error)
            yield (
                f"{where}: the plain classifier {best.rival} beats our default by {by} ({figures}), "
                f"on {f'{best.wins} of {n} splits' if n > 1 else 'the only split'}"
                f"{'' if sure else '; that is within two standard errors'}."
            )
        else:
            place = f"behind by {by}" if ahead < 0 else "level with it"
            yield f"{where}: no plain classifier beats our default; the best, {best.rival}, is {place} ({figures})."


def spread_findings(table: Table) -> Iterator[str]:
    """How many of the printed figures are within the spread of ours, and which are not."""
    for ours in (True, False):
        # One encoding of the heart data is enough here, lest its figures count twice.
        rows = [row for row in table.rows if _is_ours(row) == ours and not _is_numbered(row)]
        outside = [row for row in rows if row[-1] == "no"]
        if rows:
            whose = "The paper's figures of its own method" if ours else "The paper's figures of plain classifiers"
            yield f"{whose}: {len(rows) - len(outside)} of {len(rows)} are within the spread of repeated splits."
        for row in outside if ours else ():
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
