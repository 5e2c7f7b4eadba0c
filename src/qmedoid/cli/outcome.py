"""What a fit ends with: two sentences, one table of figures, where to cut, and what to do next."""

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmedoid.arrays import Codes
from qmedoid.cli.documents import FitDict, HeldTogetherDict, TimeLimitDict
from qmedoid.cli.output import grid, note, print_json, show
from qmedoid.cli.report import report_fit
from qmedoid.exceptions import some_of
from qmedoid.metrics.intervals import Interval, next_table, pr_auc_interval, roc_auc_interval, share_interval
from qmedoid.metrics.texts import FIGURE_NAMES, UNDEFINED, figure_text, percent_text
from qmedoid.model.model import Decisions, Model
from qmedoid.model.operating_point import OperatingSummary, curve_rows, cut_in_words
from qmedoid.report.verdict import alert_ceiling, verdict
from qmedoid.spelling import printable
from qmedoid.tables.evaluating import report_notes
from qmedoid.tables.kinds import IDENTIFIERS
from qmedoid.tables.novelty import NoveltyReport

if TYPE_CHECKING:
    from qmedoid.cli.fit import FitOptions
    from qmedoid.estimators.comparison import Comparison
    from qmedoid.estimators.recipes import TimeLimit
    from qmedoid.large.fit import InPasses

# Classes whose figures are shown one by one.
_FEW_CLASSES = range(3, 7)
# Signs of a class that is named in a row of figures.
_SHORT = 8
# Columns of one reason that are named one by one.
_MANY = 5
_ORDER = (
    "rows",
    "prevalence",
    "alert_rate",
    "accuracy",
    "macro_f1",
    "recall",
    "precision",
    "roc_auc",
    "pr_auc",
    "log_loss",
    "calibration",
    "by_circuit",
)
_NAMES = {**FIGURE_NAMES, "rows": "rows", "calibration": "calibration error", "by_circuit": "circuit decided"}

Areas = Mapping[str, Interval | None]
Cells = dict[str, str]


def tell_fit(
    model: Model,
    options: "FitOptions",
    output: Path,
    limit: "TimeLimit",
    notes: list[str],
    *,
    seconds: float,
    held_out: Any = None,
    known: tuple[Codes, Decisions] | None = None,
    novelty: NoveltyReport | None = None,
    comparison: "Comparison | None" = None,
    crossed: "Comparison | None" = None,
    confusion: list[list[int]] | None = None,
    passes: "InPasses | None" = None,
    together: HeldTogetherDict | None = None,
) -> None:
    """Write the page that was asked for, and print what came of a fit.

    Held-out rows come with their true classes and the decisions about them; the confusion matrix is that of the folds
    of ``--cv``.
    """
    if novelty is not None:
        novelty.warn()
    page = None if options.report is None else report_fit(options, output, held_out, comparison)
    sentences, notes = (
        _fit_verdict(model, confusion),
        [*notes, *_notes_of(model, options, in_passes=passes is not None)],
    )
    if options.json:
        classes, operating = list(model.decision.classes), model.decision.operating
        document: FitDict = {
            "model": str(output),
            "method": model.method,
            "refinement": model.policy,
            "classes": classes,
            "positive": classes[1] if len(classes) == 2 else None,
            "columns": len(model.contract.columns),
            "left_out": dict(model.contract.left_out),
            "notes": notes,
            "verdict": sentences,
            "operating": None if operating is None else operating.as_dict(options.rows),
            "parameters": dict(model.parameters),
            "seconds": seconds,
            "training_rows": model.metrics["training_rows"],
            "novelty": None if novelty is None else novelty.found,
            "time_limit": _limit_dict(limit, model),
            "comparison": None if comparison is None else comparison.to_dict(),
            "cross_validation": None if crossed is None else crossed.to_dict(),
            "passes": None
            if passes is None
            else {
                "rows": passes.rows,
                "sampled": passes.sampled,
                "passes": [
                    {"name": name, "seconds": round(seconds, 3), "read": read} for name, seconds, read in passes.times
                ],
            },
            "report": None if page is None else {"path": str(page.path), "bytes": page.bytes},
        }
        if "held_out" in model.metrics:
            document["held_out"] = model.metrics["held_out"]
        if together is not None:
            document["held_together"] = together
        print_json(document)
        return
    for one in notes:
        note(one)
    areas = {} if known is None else _areas(*known)
    _print_outcome(model, sentences, areas, options.rows, in_passes=passes is not None)
    n_rows, n_columns = model.metrics["training_rows"], len(model.contract.columns)
    if comparison is not None:
        on = f"on the {comparison.n_rows:,} test rows; all are fitted to the same {n_rows:,} rows."
        _print_comparison(comparison, f"Compared with plain baselines {on}")
    if crossed is not None:
        mean = "mean ± standard error" if crossed.n_folds > 1 else "one fold"
        about = f"{crossed.n_folds} folds of the {n_rows:,} training rows, each fitted anew: {mean}"
        _print_comparison(crossed, about)
    rows = f"{n_rows:,} rows"
    if passes is not None:
        spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds, _ in passes.times)
        print(f"Passes over {passes.rows:,} rows: {spent}.")
        rows = f"{passes.sampled:,} of {passes.training_rows:,} training rows"
    print(
        f"Saved {printable(output)} ({seconds:g} s): method {model.method}, fitted to {rows} and "
        f"{n_columns} column{'s' * (n_columns != 1)}."
    )
    if page is not None:
        print(f"Report: {printable(page.path)} ({page.bytes:,} bytes).")
    print("\n".join(map(printable, _next_commands(options, output))))


def _limit_dict(limit: "TimeLimit", model: Model) -> TimeLimitDict | None:
    """What came of a time limit, fit for JSON; None without one."""
    if math.isinf(limit.seconds):
        return None
    # Of a fit that was taken up again, the model knows what an earlier run had no time for.
    known = model.parameters.get("time_limit", {}).get("left_out", [])
    left_out = list(dict.fromkeys([*known, *limit.left_out]))
    return {"seconds": limit.seconds, "left_out": left_out, "exceeded": limit.is_up}


def _notes_of(model: Model, options: "FitOptions", *, in_passes: bool) -> list[str]:
    """Notes about what a saved model shows, and about the columns that were left out."""
    notes, left_out = list[str](), model.contract.left_out
    for why in dict.fromkeys(left_out.values()):
        # A reason that is a guess can be overruled.
        hint = " (--keep {} keeps it)" if why in IDENTIFIERS else ""
        names = [name for name, reason in left_out.items() if reason == why]
        if len(names) > _MANY:
            some = some_of([repr(name) for name in names], _MANY)
            notes.append(f"{len(names):,} columns were left out ({some}): {why}{hint.format('NAME')}")
            continue
        for name in names:
            quoted = shlex.quote(name) if name.isprintable() else "NAME"
            notes.append(f"column {name!r} was left out: {why}{hint.format(quoted)}")
    if "held_out" in model.metrics:
        # A fit in memory has noted a class that is hardly ever called.
        notes += report_notes(model, model.metrics["held_out"], seldom=in_passes)
        if options.weight_column is not None or options.class_weight is not None:
            notes.append("figures of held-out rows count each row once, without weights; expected ones are weighted")
        if options.group_column in left_out and options.time_column is None:
            name = repr(options.group_column)
            notes.append(
                f"intervals of the test rows count each row, and are too narrow where rows of one {name} are alike; "
                f"those of cross-validation count each {name} once"
            )
    if model.n_neighbors:
        notes.append(
            f"the model keeps {model.n_neighbors:,} training rows as neighbors; with --method {model.method} "
            "--neighbors 0 it keeps none but the medoids"
        )
    return notes


def _areas(codes: Codes, decided: Decisions) -> Areas:
    """The areas under the curves of two classes on rows of these, with their intervals."""
    if decided.scores.shape[1] != 2:
        return {}
    positive, margins = codes[codes >= 0] == 1, decided.margins[codes >= 0]
    return {"roc_auc": roc_auc_interval(positive, margins), "pr_auc": pr_auc_interval(positive, margins)}


def _fit_verdict(model: Model, confusion: Sequence[Sequence[int]] | None) -> list[str]:
    """How good a model is, from its test rows, else from cross-validation, and what its alert rate cannot reach.

    The confusion matrix is that of the folds of ``--cv``, if there are some.
    """
    operating, report = model.decision.operating, model.metrics.get("held_out")
    alerts = operating is not None and operating.rule != "likeliest"
    said: list[str]
    if report is not None:
        said = verdict(report, alerts=alerts)
    else:
        rows = "in cross-validation" if confusion is None else "in the folds of --cv"
        if confusion is None and operating is not None and operating.counts is not None:
            tp, fp, fn, tn = operating.counts
            confusion = [[tn, fp], [fn, tp]]
        said = ["No row was held out as a test (--test)."]
        if confusion is None:
            said.append("How good the model is was not measured: fit with --test 0.25, or with --cv 5.")
        else:
            found = {"classes": model.decision.classes, "confusion": confusion, "roc_auc": None}
            said += verdict(found, alerts=alerts, rows=rows)
    if operating is not None and operating.rule == "alert_rate" and operating.counts and operating.asked:
        # Of all rows that are counted: the more there are, the closer their share is to that of the table.
        tested = [0, 0] if report is None else [sum(row) for row in report["confusion"]]
        positive, n_rows = operating.counts.tp + operating.counts.fn + tested[1], operating.n_rows + sum(tested)
        ceiling = alert_ceiling(operating.asked, positive / n_rows, model.decision.classes[1])
        said += [] if ceiling is None else [ceiling]
        alerts_of_test = 0 if report is None else sum(row[1] for row in report["confusion"])
        if alerts_of_test and share_interval(alerts_of_test, sum(tested)).low > operating.asked:
            rates = percent_text(alerts_of_test / sum(tested)), percent_text(operating.asked)
            said.append(
                "The test rows get more alerts ({}) than the {} of the training rows that was set.".format(*rates)
            )
    return said


def _print_outcome(model: Model, sentences: Sequence[str], areas: Areas, rows: int | None, *, in_passes: bool) -> None:
    """Print the verdict, figures of test rows beside those of cross-validation, and the operating point."""
    operating = model.decision.operating
    alerts = operating is not None and operating.rule != "likeliest"
    show(*map(printable, sentences))
    report, classes = model.metrics.get("held_out"), model.decision.classes
    columns = {} if report is None else {"test rows": report_cells(report, areas, rows)}
    if operating is not None and operating.counts is not None:
        calibrating = "training rows that only\ncalibrated the model"
        name = calibrating if in_passes else "cross-validation\nof the training rows"
        columns[name] = _out_of_fold_cells(model, operating, rows)
    if not alerts:
        for cells in columns.values():
            cells.pop("alert_rate", None)
    if columns:
        print_figures(columns, None if len(classes) > 2 else classes[1], rows)
    if operating is not None and alerts:
        show(f"Threshold: {cut_in_words(operating, printable(classes[1]))}.")
    if report is not None:
        print_classes(report)


def print_figures(columns: Mapping[str, Cells], positive: Any = None, rows_to_come: int | None = None) -> None:
    """Print one table: a column for each kind of rows, a row for each figure that one of them has.

    Figures of a positive class name it where its name is short, and a sentence says what their bounds are about.
    """
    keys = [key for key in _ORDER if any(key in cells for cells in columns.values())]
    label = repr(str(positive))
    of = {} if positive is None or len(label) > _SHORT else dict.fromkeys(("recall", "precision"), f" of {label}")
    rows = [(_NAMES[key] + of.get(key, ""), *(cells.get(key, "") for cells in columns.values())) for key in keys]
    left = range(len(columns) + 1)
    show(grid(("", *columns), rows, left=left))
    about = "95 % intervals are of the model: what it would show on very many rows."
    if positive is not None:
        size = "as many" if rows_to_come is None else f"{rows_to_come:,}"
        about = f"19 of 20 new tables with {size} rows will show figures between these bounds."
        if any("(" in cells.get(key, "") for cells in columns.values() for key in ("roc_auc", "pr_auc")):
            about += " Those of ROC-AUC and PR-AUC are 95 % confidence intervals."
    show(about)


def report_cells(report: Mapping[str, Any], areas: Areas | None = None, rows: int | None = None) -> Cells:
    """The figures of a report of `qmedoid.tables.evaluating`, with the intervals that are known, by their keys.

    Of two classes, shares at a cut have the interval of what so many next rows will show.
    """
    confusion, is_two = report["confusion"], "recall" in report
    hits = sum(row[code] for code, row in enumerate(confusion))
    cells = {"rows": f"{report['rows']:,}"}
    if is_two and report["rows"]:
        (right, false), (missed, found) = confusion
        cells |= _forecast_cells(next_table((found, false, missed, right), rows or report["rows"]))
    elif not is_two:
        cells["accuracy"] = _cell(share_interval(hits, report["rows"]))
        cells["macro_f1"] = figure_text(report["macro_f1"])
    for key in ("roc_auc", "pr_auc", "log_loss"):
        if key in report:
            interval = (areas or {}).get(key)
            cells[key] = figure_text(report[key]) if interval is None else _cell(interval)
    if "calibration" in report:
        found = report["calibration"]
        # Once in 20 tables of this size chance alone makes a larger error.
        is_chance = found["error"] <= found["by_chance_high"]
        cells["calibration"] = f"{figure_text(found['error'])}, {'as chance allows' if is_chance else 'beyond chance'}"
    if report["by_circuit"]:
        cells["by_circuit"] = figure_text(report["by_circuit"])
    return cells


def _forecast_cells(forecast: Mapping[str, Interval]) -> Cells:
    """Figures of two classes, each with what the next rows will show."""
    cells = {
        key: _cell(forecast[key]) if key in forecast else UNDEFINED
        for key in ("accuracy", "alert_rate", "recall", "precision")
    }
    return cells | {"prevalence": figure_text(forecast["prevalence"].value)}


def _out_of_fold_cells(model: Model, operating: OperatingSummary, rows: int | None) -> Cells:
    """Figures of two classes on the rows by which the fit chose its threshold."""
    per_row, cells = operating.draws_per_row, {"rows": f"{operating.n_rows:,}"}
    cells |= _forecast_cells(operating.forecast(rows))
    curve = None if model.training is None else model.training.curve
    if curve is not None:
        positive, log_odds = curve_rows(curve)
        for key, interval in (("roc_auc", roc_auc_interval), ("pr_auc", pr_auc_interval)):
            found = interval(positive, log_odds)
            if found is not None:
                # Of rows that are not each a draw the interval would be too narrow.
                cells[key] = _cell(found) if per_row == 1.0 else figure_text(found.value)
    return cells


def print_classes(report: Mapping[str, Any]) -> None:
    """Print what is found of each of a few classes, and what its rows are called."""
    if len(report["classes"]) not in _FEW_CLASSES:
        return
    names = ["class", "rows", "recall", "precision", *(f"→ {printable(label)}" for label in report["classes"])]
    rows = [
        [printable(label), f"{one['rows']:,}", figure_text(one["recall"]), figure_text(one["precision"])]
        + [f"{count:,}" for count in counts]
        for (label, one), counts in zip(report["classes"].items(), report["confusion"], strict=True)
    ]
    show("By class (→: what its rows are called):", grid(names, rows))


def _next_commands(options: "FitOptions", output: Path) -> list[str]:
    """Commands that come after a fit, with the names of its files."""
    table = "TABLE" if options.table == "-" else _file(options.table)
    model, base = _file(str(output)), output.name.removesuffix(".qmedoid")
    dialect = [("delimiter", options.delimiter), ("decimal", options.decimal)]
    files = " ".join([model, table, *(f"--{name} {shlex.quote(value)}" for name, value in dialect if value)])
    report = [f"  qmedoid report {files}"] if options.report is None else []
    score = f"  qmedoid score {files} -o {_file(base + '-scores.csv')}"
    return ["Next:", f"  qmedoid explain {files} --row 0", *report, score]


def _file(name: str) -> str:
    """A file as an argument of a shell: quoted where that is needed, and no option."""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def _cell(figure: Interval) -> str:
    return f"{figure_text(figure.value)} ({figure_text(figure.low)} to {figure_text(figure.high)})"


def _print_comparison(comparison: "Comparison", title: str) -> None:
    """Print the figures of each method, with standard errors over folds, and whether a baseline wins."""
    from qmedoid.estimators.comparison import FIGURES, figure_with_error

    figures = [name for name in FIGURES if comparison.best(name) is not None]
    rows = [[one["name"], *(figure_with_error(one, name) for name in figures)] for one in comparison.methods]
    show(title, grid(["", *(FIGURES[name] for name in figures)], rows))
    if len(comparison.methods) > 1:
        show("Baselines have the default settings of their libraries.", comparison.verdict())
