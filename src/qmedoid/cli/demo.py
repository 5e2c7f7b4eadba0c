"""``qmedoid demo``: a fit of a shipped table, how good it is, one decision explained, and a page to open."""

import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.text import Text

from qmedoid.arrays import Array
from qmedoid.cli._fitting import Fitting, held_out_report, make_classifier, timed
from qmedoid.cli._output import keeps, plain_console, print_json, shown, tell
from qmedoid.cli._training_rows import read_labeled, split_table
from qmedoid.cli.fit import FitOptions
from qmedoid.cli.options import EVALUATION, OUTPUT, Options, option
from qmedoid.exceptions import ParameterError
from qmedoid.metrics.texts import percent_text
from qmedoid.model.storage.atomic import check_target, check_unchanged, write_atomic
from qmedoid.model.storage.model_file import save_model
from qmedoid.report.verdict import verdict
from qmedoid.report.writing import check_output
from qmedoid.saved import SavedModel, load
from qmedoid.studies.catalog import entry
from qmedoid.studies.datasets import read_shipped
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.kinds import infer_columns

NAME, OF_CLASS = "heart", ("has no heart disease", "has heart disease")
"""The table, and what its classes mean."""
FOLDER = "qmedoid-demo"
# Strips of the picture, and signs of a terminal's line.
_STRIPS, _WIDTH = 10, 80
_SQUARES, _LETTERS = "□■", ".#"
# Of either class; both can be read on a light and on a dark ground.
_COLORS = ("#3b8fd6", "#d9602a")


@dataclass(frozen=True, kw_only=True)
class DemoOptions(Options):
    """Fit a shipped table, explain a decision and write a report.

    918 patients, with and without heart disease. With --compare: heart disease, breast cancer, wine and a sample of
    card frauds, by ours, by plain baselines and as the paper has them.
    """

    most_used = ("output", "compare", "splits", "fraud_splits", "seed", "json")
    examples = ("qmedoid demo", "qmedoid demo --compare --splits 2")

    output: Annotated[
        Path | None,
        option(OUTPUT, "Folder of the files. Default: qmedoid-demo.", "--output", "-o", metavar="FOLDER"),
    ] = None
    compare: Annotated[bool, option(EVALUATION, "Compare with plain baselines on four tables.", "--compare")] = False
    splits: Annotated[
        int | None,
        option(EVALUATION, "Repeated splits of each small table (--compare). Default: 5.", min=1, metavar="N"),
    ] = None
    fraud_splits: Annotated[
        int | None,
        option(
            EVALUATION, "Repeated splits of the frauds (--compare); 0 leaves them out. Default: 2.", min=0, metavar="N"
        ),
    ] = None
    seed: Annotated[int, option(EVALUATION, "Seed of the split and of the fit.", min=0, metavar="N")] = 0


class Files(NamedTuple):
    """What the demo leaves: the table, the model and the page."""

    table: Path
    model: Path
    report: Path


class Fitted(NamedTuple):
    """The model as it was saved, the table, and its test rows with their classes and probabilities."""

    model: SavedModel
    table: pa.Table
    seconds: float
    training_rows: int
    rows: npt.NDArray[np.int64]
    is_positive: npt.NDArray[np.bool_]
    probability: Array
    called: npt.NDArray[np.bool_]


def run(options: DemoOptions) -> None:
    """Fit, say how good the model is, draw its test rows, explain one of them, and write the page."""
    if options.compare:
        from qmedoid.cli.studies import compare_methods

        if options.output is not None:
            raise ParameterError("--output is for the files of the demo, and --compare writes none: leave one out.")
        compare_methods(options)
        return
    for name in ("splits", "fraud_splits"):
        if getattr(options, name) is not None:
            raise ParameterError(f"--{name.replace('_', '-')} is of the comparison of methods: add --compare.")
    keep_pandas_away()
    began, files = time.perf_counter(), _write_table(options.output or Path(FOLDER))
    if not options.json:
        tell(f"A model learns from 3 of 4 patients in {shown(files.table)}; the others are its test.")
    fitted = _fit(files, options.seed)
    keeps(f"{files.model} was written before")
    report = fitted.model.model.metrics["held_out"]
    row = _instructive(fitted)
    why = fitted.model.explain(fitted.table, row=row)
    fitted.model.report(files.report, fitted.table)
    said = verdict(report)
    seconds = round(time.perf_counter() - began, 1)
    if options.json:
        print_json(
            {"rows": {"training": fitted.training_rows, "test": len(fitted.rows)}, "verdict": said, "held_out": report,
             "picture": [strip._asdict() for strip in _strips(fitted)],
             "explained": {"row": row, "sentences": str(why).splitlines()},
             "files": {name: str(path) for name, path in files._asdict().items()}, "seconds": seconds}
        )  # fmt: skip
        return
    console = plain_console()
    for line in ("", *said, "", *_picture(fitted, console.encoding), ""):
        console.print(line, soft_wrap=True)
    console.print(f"Why it decides so about one of them, row {row} of the table:")
    for line in str(why).splitlines():
        console.print(f"  {shown(line)}", width=min(console.width, _WIDTH))
    for line in ("", *_next(files, row, fitted, seconds)):
        console.print(line, soft_wrap=True)


def _write_table(folder: Path) -> Files:
    """The paths of all files, each of which can be written, and the table, which is."""
    files = Files(folder / f"{NAME}.csv", folder / f"{NAME}.qmedoid", folder / "report.html")
    content = read_shipped(files.table.name)
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{str(folder)!r} is a file: give another folder with --output.")
    folder.mkdir(parents=True, exist_ok=True)
    check_unchanged(files.table, content)
    check_target(files.model)
    check_output(files.report)
    write_atomic(files.table, content)
    return files


def _fit(files: Files, seed: int) -> Fitted:
    """What ``qmedoid fit heart.csv --target HeartDisease`` fits, saved."""
    options = FitOptions(table=str(files.table), target=entry(NAME).target, seed=seed)
    data = read_labeled(options, {})
    inferred = infer_columns(data.table, skip={options.target}, roles=data.roles)
    learnt = [column.name for column in inferred.columns]
    train, _, test, groups = split_table(data, options, learnt, 0.0, float(options.test))
    assert test is not None
    fitting = Fitting(options, data.roles, inferred, None)
    (_, model), seconds = timed(lambda: fitting.fit(make_classifier(options), train, groups))
    report, _, judged = held_out_report(model, test)
    save_model(replace(model, metrics={"training_rows": len(train.table), "held_out": report}), files.model)
    saved, probability = load(files.model), judged.probabilities[:, 1]
    called = saved.predict(test.table.drop_columns([options.target])) == saved.classes_[1]
    return Fitted(saved, data.table, seconds, len(train.table), test.rows, judged.codes == 1, probability, called)


def _instructive(fitted: Fitted) -> int:
    """The row that is explained: of the test rows that the model finds, the one in the middle by probability."""
    found = np.flatnonzero(fitted.is_positive & fitted.called)
    return int(fitted.rows[found[np.argsort(fitted.probability[found], kind="stable")[len(found) // 2]]])


class Strip(NamedTuple):
    """Test rows with a probability in a tenth: how many are of either class."""

    low: float
    high: float
    negative: int
    positive: int


def _strips(fitted: Fitted) -> list[Strip]:
    """The test rows by tenths of their probability."""
    tenths = np.minimum((fitted.probability * _STRIPS).astype(int), _STRIPS - 1)
    counts = [np.bincount(tenths[fitted.is_positive == known], minlength=_STRIPS) for known in (False, True)]
    return [
        Strip(place / _STRIPS, (place + 1) / _STRIPS, int(negative), int(positive))
        for place, (negative, positive) in enumerate(zip(*counts, strict=True))
    ]


def _picture(fitted: Fitted, encoding: str) -> Iterator[Text | str]:
    """A square for every test row, in the strip of its probability, in the color of what it has."""
    signs = _SQUARES if encoding.lower().startswith("utf") else _LETTERS
    known = fitted.model.classes_
    yield f"Each sign is one of these {len(fitted.rows)} patients, in the line of the probability that the model gives:"
    legend = Text("  ")
    for code in (1, 0):
        legend.append(signs[code], _COLORS[code]).append(f" {OF_CLASS[code]} ('{known[code]}')   ")
    yield legend
    for strip in reversed(_strips(fitted)):
        if strip.high == 0.5:
            missed, false = (int((fitted.is_positive != fitted.called)[fitted.called == up].sum()) for up in (0, 1))
            yield (
                f"  --------- called '{known[1]}' above this line ({false} wrongly), "
                f"'{known[0]}' below it ({missed} wrongly)"
            )
        label, room = f"{100 * strip.low:3.0f} to {percent_text(strip.high):>5}  ", _WIDTH - 16
        row = signs[1] * strip.positive + signs[0] * strip.negative
        for start in range(0, max(len(row), 1), room):
            part = row[start : start + room]
            positive = part.count(signs[1])
            line = Text(f"  {label if start == 0 else ' ' * len(label)}")
            yield line.append(part[:positive], _COLORS[1]).append(part[positive:], _COLORS[0])


def _next(files: Files, row: int, fitted: Fitted, seconds: float) -> Sequence[str]:
    """Where to look, and what to call next."""
    model, table = shlex.quote(str(files.model)), shlex.quote(str(files.table))
    program = _program()
    calls = {
        f"{program} explain {model} {table} --row {row}": "all about it",
        f"{program} check YOUR.csv --target COLUMN": "the first step with your own table",
        f"{program} demo --compare": "beside plain baselines, in minutes",
    }
    lines = [f"  {call}  # {what}" for call, what in calls.items()]
    return [
        f"The fit took {fitted.seconds:.1f} s, all of the demo {seconds} s.",
        f"Open {shown(files.report)} in a browser:",
        "there every square says why, and a cell that you change moves the decision.",
        "Next:",
        *(line if len(line) <= _WIDTH else f"  {call}" for line, call in zip(lines, calls, strict=True)),
    ]


def _program() -> str:
    """How this program is called: by its name where the shell finds it, else by the path that was called."""
    called = Path(sys.argv[0])
    by_path = called.name == "qmedoid" and called.is_file() and shutil.which("qmedoid") is None
    return shlex.quote(str(called)) if by_path else "qmedoid"
