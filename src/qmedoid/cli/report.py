"""``qmedoid report``: a model, and what it decides about a table, as one page."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from qmedoid.cli.options import (
    OUTPUT,
    POINT,
    RESULTS,
    AllRows,
    Json,
    ModelPath,
    Names,
    Number,
    ReadingOptions,
    TargetName,
    Text,
    argument,
    command,
    flag,
    listed,
    option,
)
from qmedoid.cli.output import note, print_json, reading_bar
from qmedoid.exceptions import ParameterError
from qmedoid.model.storage.model_file import ModelFile, load_file
from qmedoid.report.documents import ReportDict
from qmedoid.report.reading import look_at_data, look_at_file
from qmedoid.report.summary import Report, ReportSettings, check_output, summarize, write_report
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away

if TYPE_CHECKING:
    from qmedoid.cli.fit import FitOptions
    from qmedoid.estimators.comparison import Comparison


@command(
    "qmedoid report patients.qmedoid new.csv -o report.html",
    most_used=("output", "target", "cost", "rows", "live", "json"),
)
def run(
    model: ModelPath,
    table: Annotated[
        Text, argument("TABLE", "Table to decide about; with classes, the figures are of its rows.")
    ] = None,
    *,
    reading: ReadingOptions,
    json: Json = False,
    output: Annotated[
        Path | None, option(OUTPUT, "FILE", "Page to write. Default: the model's name with .html.", "--output", "-o")
    ] = None,
    target: TargetName = None,
    all_rows: AllRows = False,
    cost: Annotated[
        Number, option(POINT, "RATIO", "What a missed positive costs, in false alerts: shows costs too.")
    ] = None,
    ignore: Annotated[Names, option(RESULTS, "CODE", "Code of a check to leave out, such as QM104 (repeatable).")] = (
        None
    ),
    live: Annotated[
        bool, flag(RESULTS, "Put the model into the page, so that it scores records.", "--live/--no-live")
    ] = True,
    rows: Annotated[bool, flag(RESULTS, "Show rows of the table in the page.", "--rows/--no-rows")] = True,
) -> None:
    """Write one page: how good a model is, and what decides.

    Any browser opens it without a network: figures, a slider of the threshold, what columns contribute, checks, and
    the model itself, which scores records in the page.
    """
    keep_pandas_away()
    if cost is not None and not 0 < cost < float("inf"):
        raise ParameterError(f"--cost must be a number above 0. Got {cost:g} instead.")
    settings = ReportSettings(cost=cost, rows=rows, live=live, all_rows=all_rows, ignore=tuple(listed(ignore)))
    output = output or (None if json else Path(model).with_suffix(".html"))
    if output is not None:
        check_output(output)
    loaded, looked = load_file(model), None
    if table is not None:
        with reading_bar("looking") as progress:
            looked = look_at_file(loaded.model, table, target=target, on_progress=progress, **asdict(reading))
    names = _names(loaded, model, None if table is None else Path(table).name)
    summary = summarize(loaded.model, looked, names=names, settings=settings)
    written = None if output is None else write_report(summary, output)
    if json:
        # Of the live model only whether it is in the page.
        absent = (summary if written is None else written.summary)["live"].get("absent")
        page = None if written is None else {"path": str(written.path), "bytes": written.bytes}
        print_json(cast("ReportDict", {**summary, "live": {"absent": absent}, "page": page}))
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


def report_fit(options: "FitOptions", model: Path, held_out: Any, comparison: "Comparison | None") -> Report:
    """The page of a model that was just fitted, on its held-out rows if there are some."""
    assert options.report is not None
    loaded, looked, baselines, table = load_file(model), None, None, None
    if held_out is not None:  # what differs from the training rows was said by the fit
        looked = look_at_data(loaded.model, held_out, target=options.target, on_mismatch="warn")
        table = f"held-out rows of {Path(options.table).name}"
    if comparison is not None:
        from qmedoid.estimators.comparison import comparison_table

        about = f"Fits of the same training rows, on the {comparison.n_rows:,} rows that were held out."
        baselines = comparison_table(comparison, about)
    names = _names(loaded, model, table)
    return write_report(summarize(loaded.model, looked, names=names, baselines=baselines), options.report)


def _names(loaded: ModelFile, model: Path, table: str | None) -> dict[str, str | None]:
    command = shlex.join(["qmedoid", *sys.argv[1:]])
    return {"model": model.name, "sha256": loaded.sha256, "table": table, "command": command}
