"""``qmedoid report``: a model, and what it decides about a table, as one page."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from qmedoid.cli.options import (
    OUTPUT,
    POINT,
    RESULTS,
    AllRows,
    ModelPath,
    Names,
    Number,
    ReadingOptions,
    TargetName,
    Text,
    argument,
    flag,
    listed,
    option,
)
from qmedoid.cli.output import note, print_json, reading_bar, shown
from qmedoid.exceptions import ParameterError
from qmedoid.model.model import Model
from qmedoid.model.storage.model_file import load_file
from qmedoid.report.documents import ReportBaselinesDict, ReportDict
from qmedoid.report.findings import check_codes
from qmedoid.report.reading import Looked, look_at_data, look_at_file
from qmedoid.report.summary import Report, ReportSettings, check_output, summarize, write_report
from qmedoid.tables.arrow import keep_pandas_away

if TYPE_CHECKING:
    from qmedoid.cli.fit import FitOptions
    from qmedoid.estimators.comparison import Comparison

# Rows of a table that baselines are fitted to at most.
_COMPARED_ROWS = 100_000


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ReadingOptions):
    """Write one page: how good a model is, and what decides.

    Any browser opens it without a network: figures, a slider of the threshold, what columns contribute, checks, and
    the model itself, which scores records in the page.
    """

    most_used = ("output", "target", "cost", "baselines", "stability", "rows", "live", "json")
    examples = ("qmedoid report patients.qmedoid new.csv -o report.html",)

    model: ModelPath
    table: Annotated[Text, argument("TABLE", "Table to decide about; with classes, the figures are of its rows.")] = (
        None
    )
    output: Annotated[
        Path | None, option(OUTPUT, "FILE", "Page to write. Default: the model's name with .html.", "--output", "-o")
    ] = None
    target: TargetName = None
    all_rows: AllRows = False
    cost: Annotated[
        Number, option(POINT, "RATIO", "What a missed positive costs, in false alerts: shows costs too.")
    ] = None
    baselines: Annotated[
        bool, flag(RESULTS, "Fit plain baselines to folds of the table, and compare.", "--baselines")
    ] = False
    stability: Annotated[
        int | None,
        option(RESULTS, "N", "Fit this many bootstrap samples of the table, 2 or more, and show what changes.", min=2),
    ] = None
    ignore: Annotated[Names, option(RESULTS, "CODE", "Code of a check to leave out, such as QM104 (repeatable).")] = (
        None
    )
    max_size: Annotated[
        float, option(RESULTS, "MB", "Size from which on the page leaves the live model out, in megabytes.")
    ] = 3.0
    live: Annotated[
        bool, flag(RESULTS, "Put the model into the page, so that it scores records.", "--live/--no-live")
    ] = True
    rows: Annotated[bool, flag(RESULTS, "Show rows of the table in the page.", "--rows/--no-rows")] = True


def run(options: ReportOptions) -> None:
    """Summarize, write the page, and say where it is; or print the summary."""
    keep_pandas_away()
    settings = _settings(options)
    output = options.output or (None if options.json else Path(options.model).with_suffix(".html"))
    if output is not None:
        check_output(output)
    loaded = load_file(options.model)
    looked = _looked(loaded.model, options)
    names = {
        "model": Path(options.model).name,
        "sha256": loaded.sha256,
        "command": _command(options, output),
        "table": None if options.table is None else Path(options.table).name,
    }
    baselines = _baselines(loaded.model, looked) if options.baselines else None
    stability = _stability(loaded.model, looked, options.stability) if options.stability is not None else None
    summary = summarize(loaded.model, looked, names=names, settings=settings, baselines=baselines, stability=stability)
    written = None if output is None else write_report(summary, output, max_bytes=settings.max_bytes)
    if options.json:
        print_json(without_document(summary, written))
    elif written is not None:
        tell_written(written)


def tell_written(written: Report) -> None:
    """Say what was written, and what the findings are."""
    found = [one["status"] for one in written.summary["findings"]]
    problems, tips = found.count("problem"), found.count("tip")
    opening, figures = written.summary["opening"], written.summary["figures"]
    print(shown(opening["headline"]))
    if figures is not None:
        print(shown(figures["about"]))
    absent = written.summary["live"].get("absent")
    if absent is not None:
        note(absent[0].lower() + absent[1:])
    for one in written.summary["findings"]:
        if one["status"] == "problem":
            print(f"{one['code']} {shown(one['title'])}: {shown(one['why'])}")
    print(
        f"report of {problems} problem{'' if problems == 1 else 's'} and {tips} tip{'' if tips == 1 else 's'} written "
        f"to {shown(written.path)} ({written.bytes:,} bytes)."
    )


def without_document(summary: dict[str, Any], written: Report | None) -> ReportDict:
    """A summary for JSON: of the live model only whether it is in the page."""
    live = (summary if written is None else written.summary)["live"]
    page = None if written is None else {"path": str(written.path), "bytes": written.bytes}
    return cast("ReportDict", {**summary, "live": {"absent": live.get("absent")}, "page": page})


def _settings(options: ReportOptions) -> ReportSettings:
    if options.cost is not None and not 0 < options.cost < float("inf"):
        raise ParameterError(f"--cost must be a number above 0. Got {options.cost:g} instead.")
    if not 0 < options.max_size < float("inf"):
        raise ParameterError(f"--max-size must be a number of megabytes above 0. Got {options.max_size:g} instead.")
    ignore = tuple(listed(options.ignore))
    check_codes(ignore)
    if options.table is None and (options.baselines or options.stability is not None):
        asked = "--baselines" if options.baselines else "--stability"
        raise ParameterError(f"{asked} needs a table with classes: qmedoid report MODEL TABLE {asked} …")
    return ReportSettings(
        cost=options.cost,
        rows=options.rows,
        live=options.live,
        max_bytes=int(options.max_size * 1e6),
        ignore=ignore,
        all_rows=options.all_rows,
    )


def _looked(model: Model, options: ReportOptions) -> Looked | None:
    if options.table is None:
        return None
    most = {"most": _COMPARED_ROWS} if options.baselines else {}
    with reading_bar("looking") as progress:
        return look_at_file(
            model,
            options.table,
            target=options.target,
            on_mismatch=options.on_mismatch,
            on_progress=progress,
            **options.dialect,
            **most,
        )


def _command(options: ReportOptions, output: Path | None) -> str:
    more: list[str] = []
    for name in ("target", "cost", "stability", "delimiter", "decimal"):
        value = getattr(options, name)
        more += [] if value is None else [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    more += ["--baselines"] if options.baselines else []
    more += ["--all-rows"] if options.all_rows else []
    more += [f"--no-{name}" for name in ("rows", "live") if not getattr(options, name)]
    more += [part for code in listed(options.ignore) for part in ("--ignore", code)]
    more += [] if options.on_mismatch == "error" else ["--on-mismatch", options.on_mismatch]
    more += [] if options.max_size == 3.0 else ["--max-size", f"{options.max_size:g}"]
    table = [] if options.table is None else [options.table]
    return shlex.join(["qmedoid", "report", str(options.model), *table, "-o", str(output or "report.html"), *more])


def _baselines(model: Model, looked: Looked | None) -> ReportBaselinesDict | None:
    from qmedoid.estimators.report_fits import baselines_beside

    if looked is None or not (looked.codes >= 0).any():
        raise ParameterError("--baselines needs a table with classes: this one has none that the model knows.")
    found, notes = baselines_beside(model, looked.sample, looked.rows)
    for one in notes:
        note(one)
    return found


def _stability(model: Model, looked: Looked | None, n_bootstraps: int) -> dict[str, Any]:
    from qmedoid.estimators.report_fits import stability_beside

    if looked is None or not (looked.codes >= 0).any():
        raise ParameterError("--stability needs a table with classes: this one has none that the model knows.")
    return stability_beside(model, looked.sample.table, looked.sample.codes, n_bootstraps)


def report_fit(options: "FitOptions", model: Path, held_out: Any, comparison: "Comparison | None") -> Report:
    """The page of a model that was just fitted, on its held-out rows if there are some."""
    assert options.report is not None
    loaded, looked, baselines = load_file(model), None, None
    if held_out is not None:  # what differs from the training rows was said by the fit
        looked = look_at_data(loaded.model, held_out, target=options.target, on_mismatch="warn")
    if comparison is not None:
        from qmedoid.estimators.report_fits import comparison_table

        about = f"Fits of the same training rows, on the {comparison.n_rows:,} rows that were held out."
        baselines = comparison_table(comparison, about)
    names = {
        "model": model.name,
        "sha256": loaded.sha256,
        "table": None if looked is None else f"held-out rows of {Path(options.table).name}",
        "command": f"qmedoid fit {options.table} --target {options.target} -o {model} --report {options.report}",
    }
    return write_report(summarize(loaded.model, looked, names=names, baselines=baselines), options.report)
