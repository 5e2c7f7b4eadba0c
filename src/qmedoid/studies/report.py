"""All results as one document: the paper's tables first, then what stands behind them."""

from collections.abc import Mapping
from importlib.util import find_spec

from qmedoid.exceptions import MissingExtraError
from qmedoid.reporting.document import Document, Section
from qmedoid.studies import against, fraud_tables, small_tables
from qmedoid.studies.catalog import FULL_FRAUD, HEART_ORDINAL, load_data
from qmedoid.studies.code import versions
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.pictures import fraud_pictures, small_detail_pictures, small_pictures
from qmedoid.studies.plan import NUMBERED, Plan
from qmedoid.studies.results import StudyResults

PAPER_TABLES = ("test_comparison", *fraud_tables.PRINTED_TABLES, "summary", "test_fusion", "confusion_matrices")
"""Names of the tables that the paper has, in its order; the others are ours."""

ENOUGH_SPLITS = 5
"""From so many splits on, whether a figure lies within their spread says something."""


def make_report(plan: Plan, results: StudyResults, command: str) -> Document:
    """The document of a run.

    Parameters
    ----------
    plan : Plan
        What was run.
    results : StudyResults
        Of all its cells.
    command : str
        That makes it again.
    """
    # In the order of the plan, not in that in which the cells were done: the same results give the same tables.
    results = StudyResults({cell: results.by_cell[cell] for cell in plan.cells})
    sets: dict[str, Dataset] = {part: load_data(part) for part in plan.parts if part != "fraud"}
    fraud = plan.fraud_data if "fraud" in plan.parts else None
    titles = {name: data.name for name, data in sets.items()}
    pairs = [pair for name in sets for pair in against.small_pairs(results, name)]
    spreads = against.spread_table(results, sets, fraud if fraud == FULL_FRAUD else None)
    found = [*against.rival_findings(pairs, titles, ("macro-F1",))]
    sections: list[Section] = []
    if sets:
        sections += _small_sections(results, sets, plan)
    if fraud is not None:
        titles[fraud] = load_data(fraud).name
        fights = list(against.fraud_pairs(results, fraud))
        found += against.rival_findings(fights, titles, ("PR-AUC", "recall at 1.31 % alerts"))
        if plan.variants:
            found += fraud_tables.readings_findings(results, fraud)
        found += against.leak_finding(results, fraud, comparable=fraud == FULL_FRAUD)
        pairs += fights
        sections += _fraud_sections(results, fraud, plan)
    if min(plan.splits, plan.fraud_splits) >= ENOUGH_SPLITS:
        found += against.spread_findings(spreads)
        found += against.encoding_finding(spreads)
    both = Section(
        "Side by side",
        ("Every method saw the same splits. A plain classifier that wins is named as such.",),
        (against.paired_table(pairs, titles), spreads, against.cost_table(results, _all_titles(titles))),
    )
    return Document(
        "The paper's experiments, run again",
        _introduction(plan),
        found,
        [*sections, both],
        {"command": command, "seed": str(plan.seed), **versions()},
    )


def _all_titles(titles: Mapping[str, str]) -> dict[str, str]:
    """Names of data sets, with that of the heart data encoded otherwise where they are among them."""
    return {**titles, **({HEART_ORDINAL: f"{titles['heart']}, {NUMBERED}"} if "heart" in titles else {})}


def require_extras(plan: Plan) -> None:
    """Raise where optional packages are missing that the plan needs, before any work; the error names them all."""
    needed = {"matplotlib": ("Matplotlib", "plots"), "lightgbm": ("LightGBM", "baselines")}
    if "fraud" in plan.parts:
        needed["imblearn"] = ("imbalanced-learn", "baselines")
    missing = [named for module, named in needed.items() if find_spec(module) is None]
    if missing:
        packages, extras = (sorted(set(names)) for names in zip(*missing, strict=True))
        are, them = ("is", "it") if len(packages) == 1 else ("are", "them")
        raise MissingExtraError(
            f"{', '.join(packages)} {are} not installed. Get {them} with: pip install 'qmedoid[{','.join(extras)}]'"
        )


def _introduction(plan: Plan) -> list[str]:
    words = [
        "Every table of the paper on quantum-inspired geometric classification, computed again. “Paper” is what is "
        "printed there, of one split. “As printed” is the method as the paper prints it, “convex” the same fusion with "
        "settings of our own, “default” what the package does by default; all are means over repeated splits."
    ]
    if "fraud" in plan.parts and plan.fraud_data != FULL_FRAUD:
        words.append(
            "The frauds are those of the sample that ships with the package, in which one payment in 30 is a fraud, "
            "not one in 579: the paper's figures are left out."
        )
    return words


def _small_sections(results: StudyResults, sets: Mapping[str, Dataset], plan: Plan) -> list[Section]:
    tables = [
        small_tables.comparison_table(results, sets),
        small_tables.summary_table(results, sets),
        small_tables.own_table(results, sets),
        small_tables.confusion_table(results, sets),
    ]
    details = [
        small_tables.class_table(results, sets),
        small_tables.alpha_table(results, sets),
        small_tables.f_beta_table(results, sets),
    ]
    if plan.variants:
        details.append(small_tables.variants_table(results, sets))
    text = (
        f"{plan.splits} stratified splits in the paper's proportions: 25 % test rows, then 25 % of the rest for "
        "validation. Plain classifiers are fitted on training and validation rows together.",
    )
    return [
        Section("Small data sets", text, [*tables, *small_pictures(results, sets)]),
        Section("Behind the small data sets", (), [*details, *small_detail_pictures(results, sets)]),
    ]


def _fraud_sections(results: StudyResults, fraud: str, plan: Plan) -> list[Section]:
    comparable = fraud == FULL_FRAUD
    names = fraud_tables.PRINTED_TABLES
    tables = [fraud_tables.fraud_table(results, fraud, name, comparable=comparable) for name in names]
    details = [
        fraud_tables.counts_table(load_data(fraud), comparable=comparable),
        fraud_tables.leak_table(results, fraud, comparable=comparable),
        *([fraud_tables.readings_table(results, fraud)] if comparable and plan.variants else []),
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
        Section("Behind the frauds", (), [*details, *fraud_pictures(results, fraud, comparable=comparable)]),
    ]
