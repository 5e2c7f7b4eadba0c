"""``qmedoid evaluate``: decisions about a table compared with its classes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, cast

from qmedoid.cli.documents import EvaluateDict
from qmedoid.cli.options import READING, AllRows, Budgets, CutOptions, TargetName, command, cut_of, listed, option
from qmedoid.cli.outcome import print_classes, print_figures, report_cells
from qmedoid.cli.output import note, print_budgets, print_json, reading_bar, show, tell_cut
from qmedoid.cli.score import settings_of
from qmedoid.model.operating_point import budget_dict, budget_of, budgets_on_rows
from qmedoid.model.storage.model_file import load_model
from qmedoid.report.verdict import verdict
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.documents import EvaluationDict
from qmedoid.tables.evaluating import SEEN, evaluate_file, labeled_report, report_notes, without_seen


@command(
    "qmedoid evaluate patients.qmedoid labeled.csv",
    "qmedoid evaluate patients.qmedoid labeled.csv --budgets 100,1%",
    most_used=("target", "budgets", "threshold", "alert_rate", "min_precision", "min_recall", "cost", "json"),
)
def run(
    options: CutOptions,
    *,
    target: TargetName = None,
    all_rows: AllRows = False,
    budgets: Budgets = None,
    on_bad_row: Annotated[
        Literal["refuse", "skip"],
        option(READING, "WHAT", "If a row cannot be read: refuse the table, or skip the row."),
    ] = "refuse",
) -> None:
    """Compare a model's decisions with the true classes.

    Counts rows that the fit has not seen. A table of labels that came later shows whether a model in use is still as
    good as it was.
    """
    point = cut_of(options)
    for one in listed(budgets):  # wrong ones are refused before anything is read
        budget_of(one, 1)
    keep_pandas_away()
    loaded = load_model(options.model)
    if point is not None:
        loaded = loaded.at_operating_point(point)
    if budgets is not None:
        loaded.decision.check_cuttable()
    with reading_bar("evaluating") as progress:
        codes, decided, hashes, novelty, (n_bad, first_bad) = evaluate_file(
            loaded, options.table, target, settings_of(options, on_bad_row=on_bad_row), on_progress=progress
        )
    if not all_rows:
        codes = without_seen(loaded, codes, hashes)
    is_own = not (codes >= 0).any() and (codes == SEEN).any() and point is None and budgets is None
    stored = loaded.metrics.get("held_out") if is_own else None
    if isinstance(stored, Mapping):
        report = cast("EvaluationDict", stored)
        said = [
            f"all {(codes == SEEN).sum():,} rows with a class were seen in fitting, so they do not show how good the "
            f"model is on new rows: these figures are of the {stored['rows']:,} rows that the fit held out (--all-rows "
            "counts the table)"
        ]
    else:
        report = labeled_report(loaded, codes, decided, hashes)
        said = report_notes(loaded, report)
    spent = None
    if budgets is not None:
        known, scores = codes >= 0, decided.scores
        spent = budgets_on_rows(listed(budgets), codes[known] == 1, (scores[:, 1] - scores[:, 0])[known])
    left_out = report["left_out"]
    if left_out["missing"] or left_out["unknown"]:
        said.insert(
            0, f"left out: {left_out['missing']:,} rows without a class, {left_out['unknown']:,} of other classes."
        )
    if loaded.seen is None:
        said.append("whether these rows are new is not known: the model file has no hashes of its training rows")
    if n_bad:
        such = "row that" if n_bad == 1 else "rows that"
        said.insert(0, f"left out: {n_bad:,} {such} could not be read, the first {first_bad}.")
    for one in said:
        note(one)
    novelty.warn()
    operating = loaded.decision.operating
    if options.json:
        document: EvaluateDict = {
            **report,
            "source": "table" if stored is None else "held-out",
            "bad_rows": n_bad,
            "operating": None if operating is None else operating.as_dict(),
            "budgets": [budget_dict(*one) for one in spent or ()],
            "novelty": novelty.found,
        }
        if spent is None:
            del document["budgets"]
        print_json(document)
        return
    rows = None if report["seen"] is not None else f"of {Path(options.table).name}"
    for sentence in verdict(report, alerts=operating is not None and operating.rule != "likeliest", rows=rows):
        show(printable(sentence))
    of = "rows held out by the fit" if stored is not None else printable(Path(options.table).name)
    print_figures({of: report_cells(report)}, report.get("positive"))
    print_classes(report)
    if spent is not None:
        print_budgets(spent, "labeled rows")
    if point is not None:
        tell_cut(loaded)
