"""What a fit ends with: two sentences, one table of figures, where to cut, and what to do next."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from qmedoid.arrays import Codes
from qmedoid.cli.output import grid, plain_console, print_metrics, print_operating
from qmedoid.metrics.intervals import Interval, pr_auc_interval, roc_auc_interval, share_interval
from qmedoid.metrics.texts import FIGURE_NAMES, UNDEFINED, count_text, figure_text, percent_text
from qmedoid.model.model import Decisions, Model
from qmedoid.model.operating_point import OperatingSummary, curve_rows, cut_in_words
from qmedoid.report.verdict import alert_ceiling, verdict
from qmedoid.spelling import printable

if TYPE_CHECKING:
    from qmedoid.cli.fit import FitOptions
    from qmedoid.estimators.comparison import Comparison
    from qmedoid.estimators.documents import ComparedMethodDict

# Classes whose figures are shown one by one without --verbose.
_FEW_CLASSES = range(3, 11)
# Columns of a terminal.
_WIDTH = 80
# Signs of a class that is named in a row of figures.
_SHORT = 8
_TEST = "test rows"
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

_TITLES = {
    "log_loss": "log-loss",
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "macro_f1": "macro-F1",
    "fit_seconds": "fit s",
}

Areas = Mapping[str, Interval | None]
Cells = dict[str, str]


def areas_of(codes: Codes, decided: Decisions) -> Areas:
    """The areas under the curves of two classes on rows of these, with their intervals."""
    if decided.scores.shape[1] != 2:
        return {}
    positive, margins = codes[codes >= 0] == 1, decided.margins[codes >= 0]
    return {"roc_auc": roc_auc_interval(positive, margins), "pr_auc": pr_auc_interval(positive, margins)}


def fit_verdict(model: Model, options: "FitOptions", confusion: Sequence[Sequence[int]] | None) -> list[str]:
    """How good a model is, from its test rows, else from cross-validation, and what its alert rate cannot reach.

    The confusion matrix is that of the folds of ``--cv``, if there are some.
    """
    operating, report = model.decision.operating, model.metrics.get("held_out")
    alerts = operating is not None and operating.rule != "likeliest"
    said: list[str]
    if report is not None:
        said = verdict(report, alerts=alerts)
    else:
        found = _out_of_fold(model, operating)
        rows = "in cross-validation" if options.valid is None else "that chose its settings"
        if confusion is not None:
            found, rows = {"confusion": confusion, "roc_auc": None}, "in the folds of --cv"
        said = ["No row was held out as a test (--test)."]
        if found is None:
            said.append("How good the model is was not measured: fit with --test 0.25, or with --cv 5.")
        else:
            said += verdict({**found, "classes": model.decision.classes}, alerts=alerts, rows=rows)
    if operating is not None and operating.rule == "alert_rate" and operating.counts and operating.asked:
        # Of all rows that are counted: the more there are, the closer their share is to that of the table.
        tested = [0, 0] if report is None else [sum(row) for row in report["confusion"]]
        positive, n_rows = operating.counts.tp + operating.counts.fn + tested[1], operating.n_rows + sum(tested)
        ceiling = alert_ceiling(operating.asked, positive / n_rows, model.decision.classes[1])
        said += [] if ceiling is None else [ceiling]
        said += [] if report is None else _more_alerts(report["confusion"], operating.asked)
    return said


def _more_alerts(confusion: Sequence[Sequence[int]], asked: float) -> list[str]:
    """What is said of test rows that get surely more alerts than the share that was set."""
    alerts, n_rows = sum(row[1] for row in confusion), sum(map(sum, confusion))
    if share_interval(alerts, n_rows).low <= asked:
        return []
    rate = percent_text(alerts / n_rows)
    return [f"The test rows get more alerts ({rate}) than the {percent_text(asked)} of the training rows that was set."]


def print_outcome(
    model: Model, options: "FitOptions", sentences: Sequence[str], areas: Areas, *, in_passes: bool = False
) -> None:
    """Print the verdict, figures of test rows beside those of cross-validation, and the operating point."""
    console, operating = plain_console(), model.decision.operating
    alerts = operating is not None and operating.rule != "likeliest"
    for sentence in sentences:
        console.print(printable(sentence), soft_wrap=True)
    report = model.metrics.get("held_out")
    columns = {} if report is None else {_TEST: report_cells(report, areas)}
    if operating is not None and operating.counts is not None:
        columns[_second_name(options, in_passes)] = _out_of_fold_cells(model, operating)
    if not alerts:
        columns = {
            name: {key: cell for key, cell in cells.items() if key != "alert_rate"} for name, cells in columns.items()
        }
    if columns:
        print_figures(columns, None if len(model.decision.classes) > 2 else model.decision.classes[1])
    if operating is not None and alerts:
        positive = printable(model.decision.classes[1])
        console.print(f"Threshold: {cut_in_words(operating, positive)}.", soft_wrap=True)
    if options.verbose:
        if report is not None:
            print_metrics(report, f"All figures of the {report['rows']:,} test rows")
        if operating is not None:
            print_operating(operating, model.decision.classes[1])
    elif report is not None and len(report["classes"]) in _FEW_CLASSES:
        _print_classes(report)


def print_figures(columns: Mapping[str, Cells], positive: Any = None) -> None:
    """Print one table: a column for each kind of rows, a row for each figure that one of them has.

    Figures of a positive class name it where its name is short.
    """
    keys = [key for key in _ORDER if any(key in cells for cells in columns.values())]
    label = repr(str(positive))
    of = {} if positive is None or len(label) > _SHORT else dict.fromkeys(("recall", "precision"), f" of {label}")
    rows = [(_NAMES[key] + of.get(key, ""), *(cells.get(key, "") for cells in columns.values())) for key in keys]
    left = range(len(columns) + 1)
    plain_console().print(grid(("", *columns), rows, left=left))


def report_cells(report: Mapping[str, Any], areas: Areas | None = None) -> Cells:
    """The figures of a report of `qmedoid.tables.evaluating`, with the intervals that are known, by their keys."""
    confusion, is_two = report["confusion"], "recall" in report
    hits = sum(row[code] for code, row in enumerate(confusion))
    cells = {"rows": count_text(report["rows"]), "accuracy": _cell(share_interval(hits, report["rows"]))}
    if is_two:
        (_, false), (missed, found) = confusion
        cells |= _share_cells(found, false, missed, report["rows"])
    else:
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


def _share_cells(found: float, false: float, missed: float, rows: float, per_row: float = 1.0) -> Cells:
    """Figures of two classes that are shares of counted rows."""
    shares = {
        "alert_rate": (found + false, rows),
        "recall": (found, found + missed),
        "precision": (found, found + false),
    }
    return {"prevalence": figure_text((found + missed) / rows)} | {
        key: UNDEFINED if n == 0 else _cell(share_interval(per_row * hits, per_row * n))
        for key, (hits, n) in shares.items()
    }


def _out_of_fold_cells(model: Model, operating: OperatingSummary) -> Cells:
    """Figures of two classes on the rows by which the fit chose its threshold."""
    assert operating.counts is not None
    (tp, fp, fn, tn), per_row = operating.counts, operating.draws_per_row
    n_rows = operating.n_rows
    cells = {"rows": count_text(n_rows), "accuracy": _cell(share_interval(per_row * (tp + tn), per_row * n_rows))}
    cells |= _share_cells(tp, fp, fn, n_rows, per_row)
    curve = None if model.training is None else model.training.curve
    if curve is not None:
        positive, log_odds = curve_rows(curve)
        for key, interval in (("roc_auc", roc_auc_interval), ("pr_auc", pr_auc_interval)):
            found = interval(positive, log_odds)
            if found is not None:
                # Of rows that are not each a draw the interval would be too narrow.
                cells[key] = _cell(found) if per_row == 1.0 else figure_text(found.value)
    return cells


def _out_of_fold(model: Model, operating: OperatingSummary | None) -> dict[str, Any] | None:
    """What a verdict reads of the rows by which the fit chose its threshold; None where there are none."""
    if operating is None or operating.counts is None:
        return None
    tp, fp, fn, tn = operating.counts
    curve = None if model.training is None else model.training.curve
    area = None if curve is None else roc_auc_interval(*curve_rows(curve))
    return {"confusion": [[tn, fp], [fn, tp]], "roc_auc": None if area is None else area.value}


def _second_name(options: "FitOptions", in_passes: bool) -> str:
    if in_passes:
        return "training rows that only\ncalibrated the model"
    return "cross-validation\nof the training rows" if options.valid is None else "validation rows"


def _print_classes(report: Mapping[str, Any]) -> None:
    """Print what is found of every class; what each is called instead is added where that fits a terminal."""
    names = ["class", "rows", "recall", "precision"]
    rows = [
        [
            printable(label),
            count_text(of_class["rows"]),
            figure_text(of_class["recall"]),
            figure_text(of_class["precision"]),
        ]
        for label, of_class in report["classes"].items()
    ]
    called = [f"→ {printable(label)}" for label in report["classes"]]
    wide = [[*row, *map(count_text, counts)] for row, counts in zip(rows, report["confusion"], strict=True)]
    table = grid([*names, *called], wide)
    console = plain_console()
    fits = console.measure(table, options=console.options.update(max_width=2 * _WIDTH)).maximum <= _WIDTH
    console.print("By class (→: what the test rows of a class are called):" if fits else "By class of the test rows:")
    console.print(table if fits else grid(names, rows))


def next_commands(options: "FitOptions", output: Path) -> list[str]:
    """Commands that come after a fit, with the names of its files and a comment each."""
    table = "TABLE" if options.table == "-" else _file(options.table)
    model, base = _file(str(output)), output.name.removesuffix(".qmedoid")
    dialect = [("delimiter", options.delimiter), ("decimal", options.decimal)]
    files = " ".join([model, table, *(f"--{name} {shlex.quote(value)}" for name, value in dialect if value)])
    commands = {f"qmedoid explain {files} --row 0": "why row 0 is decided so"}
    if options.report is None:
        commands[f"qmedoid report {files}"] = "one page to share"
    commands[f"qmedoid score {files} -o {_file(base + '-scores.csv')}"] = "decide about rows"
    wide = max(map(len, commands))
    lines = [f"  {command:<{wide}}  # {why}" for command, why in commands.items()]
    return ["Next:", *(lines if max(map(len, lines)) <= _WIDTH else [f"  {command}" for command in commands])]


def _file(name: str) -> str:
    """A file as an argument of a shell: quoted where that is needed, and no option."""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def _cell(figure: Interval) -> str:
    return f"{figure_text(figure.value)} ({figure_text(figure.low)} to {figure_text(figure.high)})"


def print_comparison(comparison: "Comparison", title: str, *, verbose: bool) -> None:
    """Print the figures of each method, the best of every column marked; macro-F1 of two classes with `verbose`."""
    console = plain_console()
    console.print(title, soft_wrap=True)
    is_two = comparison.best("roc_auc") is not None
    shown = [name for name in _TITLES if verbose or not is_two or name != "macro_f1"]
    figures = [name for name in shown if comparison.best(name) is not None]
    versus = any(one["log_loss_difference"] is not None for one in comparison.methods)
    names = ["", _TITLES["log_loss"], *(["minus ours"] if versus else []), *(_TITLES[name] for name in figures[1:])]
    console.print(grid(names, list(_table_rows(comparison, figures, versus))))
    if versus:
        console.print(
            "* is the best of its column. Minus ours: mean difference ± its standard error.\n"
            "Baselines have the default settings of their libraries.",
            soft_wrap=True,
        )
        console.print(comparison.verdict(), soft_wrap=True)


def _table_rows(comparison: "Comparison", figures: Sequence[str], versus: bool) -> Iterator[list[str]]:
    for one in comparison.methods:
        cells = [_marked(comparison, one, name) for name in figures]
        found = one["log_loss_difference"]
        if versus:
            cells.insert(1, "" if found is None else f"{found['mean']:+.4f} ± {found['error']:.4f}")
        yield [one["name"], *cells]


def _marked(comparison: "Comparison", method: "ComparedMethodDict", name: str) -> str:
    mean, error = cast("float | None", method[name]), method["errors"][name]  # type: ignore[literal-required]
    if mean is None:
        return "– "
    text = f"{mean:.4f}" + ("" if error is None else f" ± {error:.4f}")
    if name == "fit_seconds":
        text = f"{mean:.{2 if mean < 10 else 0}f}"
    # Alone, ours is the best of every column, and that says nothing.
    return text + ("*" if len(comparison.methods) > 1 and mean == comparison.best(name) else " ")
