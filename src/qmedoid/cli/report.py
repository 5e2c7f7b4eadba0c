"""``qmedoid report``: a model, and what it decides about a table, as one page."""

import shlex
import sys
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
from qmedoid.cli.output import note, print_json, reading_bar
from qmedoid.exceptions import ParameterError
from qmedoid.model.model import Model
from qmedoid.model.storage.model_file import load_file
from qmedoid.report.documents import ReportDict
from qmedoid.report.findings import check_codes
from qmedoid.report.reading import MOST_SAMPLED, Looked, look_at_data, look_at_file
from qmedoid.report.summary import Report, ReportSettings, check_output, summarize, write_report
from qmedoid.spelling import printable
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
    loaded, looked, more = load_file(options.model), None, dict[str, Any]()
    if options.table is not None:
        with reading_bar("looking") as progress:
            most = _COMPARED_ROWS if options.baselines else MOST_SAMPLED
            how: dict[str, Any] = {"target": options.target, "on_mismatch": options.on_mismatch, **options.dialect}
            looked = look_at_file(loaded.model, options.table, on_progress=progress, most=most, **how)
        more = _fits(loaded.model, looked, options)
    names = {
        "model": Path(options.model).name,
        "sha256": loaded.sha256,
        "command": shlex.join(["qmedoid", *sys.argv[1:]]),
        "table": None if options.table is None else Path(options.table).name,
    }
    summary = summarize(loaded.model, looked, names=names, settings=settings, **more)
    written = None if output is None else write_report(summary, output, max_bytes=settings.max_bytes)
    if options.json:
        # Of the live model only whether it is in the page.
        live = (summary if written is None else written.summary)["live"].get("absent")
        page = None if written is None else {"path": str(written.path), "bytes": written.bytes}
        print_json(cast("ReportDict", {**summary, "live": {"absent": live}, "page": page}))
    elif written is not None:
        _tell(written)


def _tell(written: Report) -> None:
    """Say what was written, and what the findings are."""
    summary = written.summary
    print(printable(summary["opening"]["headline"]))
    if summary["figures"] is not None:
        print(printable(summary["figures"]["about"]))
    absent = summary["live"].get("absent")
    if absent is not None:
        note(absent[0].lower() + absent[1:])
    counts = []
    for status in ("problem", "tip"):
        found = [one for one in summary["findings"] if one["status"] == status]
        counts.append(f"{len(found)} {status}{'' if len(found) == 1 else 's'}")
        for one in found if status == "problem" else ():
            print(f"{one['code']} {printable(one['title'])}: {printable(one['why'])}")
    print(f"report of {' and '.join(counts)} written to {printable(written.path)} ({written.bytes:,} bytes).")


def _settings(options: ReportOptions) -> ReportSettings:
    if options.cost is not None and not 0 < options.cost < float("inf"):
        raise ParameterError(f"--cost must be a number above 0. Got {options.cost:g} instead.")
    if not 0 < options.max_size < float("inf"):
        raise ParameterError(f"--max-size must be a number of megabytes above 0. Got {options.max_size:g} instead.")
    asked, ignore = _asked(options), tuple(listed(options.ignore))
    check_codes(ignore)
    if options.table is None and asked is not None:
        raise ParameterError(f"{asked} needs a table with classes: qmedoid report MODEL TABLE {asked} …")
    return ReportSettings(
        cost=options.cost,
        rows=options.rows,
        live=options.live,
        max_bytes=int(options.max_size * 1e6),
        ignore=ignore,
        all_rows=options.all_rows,
    )


def _asked(options: ReportOptions) -> str | None:
    """The option that needs a table with classes."""
    return "--baselines" if options.baselines else None if options.stability is None else "--stability"


def _fits(model: Model, looked: Looked, options: ReportOptions) -> dict[str, Any]:
    """Baselines and stability: what fits of the table show."""
    asked, found = _asked(options), dict[str, Any]()
    if asked is not None and not (looked.codes >= 0).any():
        raise ParameterError(f"{asked} needs a table with classes: this one has none that the model knows.")
    if options.baselines:
        from qmedoid.estimators.report_fits import baselines_beside

        found["baselines"], notes = baselines_beside(model, looked.sample, looked.rows)
        for one in notes:
            note(one)
    if options.stability is not None:
        from qmedoid.estimators.report_fits import stability_beside

        found["stability"] = stability_beside(model, looked.sample.table, looked.sample.codes, options.stability)
    return found


def report_fit(options: "FitOptions", model: Path, held_out: Any, comparison: "Comparison | None") -> Report:
    """The page of a model that was just fitted, on its held-out rows if there are some."""
    assert options.report is not None
    loaded, looked, baselines, table = load_file(model), None, None, None
    if held_out is not None:  # what differs from the training rows was said by the fit
        looked = look_at_data(loaded.model, held_out, target=options.target, on_mismatch="warn")
        table = f"held-out rows of {Path(options.table).name}"
    if comparison is not None:
        from qmedoid.estimators.report_fits import comparison_table

        about = f"Fits of the same training rows, on the {comparison.n_rows:,} rows that were held out."
        baselines = comparison_table(comparison, about)
    command = shlex.join(["qmedoid", *sys.argv[1:]])
    names = {"model": model.name, "sha256": loaded.sha256, "table": table, "command": command}
    return write_report(summarize(loaded.model, looked, names=names, baselines=baselines), options.report)
