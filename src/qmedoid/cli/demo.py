"""``qmedoid demo``: a fit of a shipped table, how good it is, one decision explained, and a page to open."""

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np

from qmedoid.cli.documents import DemoDict
from qmedoid.cli.fit import FitOptions
from qmedoid.cli.fitting import fit_dataset, held_out_report, make_classifier, read_dataset
from qmedoid.cli.options import EVALUATION, OUTPUT, Json, command, option
from qmedoid.cli.output import Said, print_json, show, tell
from qmedoid.datasets import entry, read_shipped
from qmedoid.exceptions import ParameterError
from qmedoid.model.storage.atomic import check_target, check_unchanged, write_atomic
from qmedoid.model.storage.model_file import save_model
from qmedoid.report.summary import check_output
from qmedoid.report.verdict import verdict
from qmedoid.saved import load
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.source import open_table

NAME = "heart"
"""The table."""
FOLDER = "qmedoid-demo"


@command("qmedoid demo", most_used=("output", "seed", "json"))
def run(
    *,
    json: Json = False,
    output: Annotated[
        Path | None, option(OUTPUT, "FOLDER", "Folder of the files. Default: qmedoid-demo.", "--output", "-o")
    ] = None,
    seed: Annotated[int, option(EVALUATION, "N", "Seed of the split and of the fit.", min=0)] = 0,
) -> None:
    """Fit a shipped table, explain a decision and write a report.

    918 patients, with and without heart disease.
    """
    keep_pandas_away()
    began, files = time.perf_counter(), _write_table(output or Path(FOLDER))
    if not json:
        tell(f"A model learns from 3 of 4 patients in {printable(files['table'])}; the others are its test.")
    # What ``qmedoid fit heart.csv --target HeartDisease`` fits.
    fit = FitOptions(table=str(files["table"]), target=entry(NAME).target, seed=seed)
    with open_table(fit.table, delimiter=fit.delimiter, decimal=fit.decimal) as source:
        data = read_dataset(fit, source)
    train, test = data.split(float(fit.test), fit.seed)
    assert test is not None
    fit_began = time.perf_counter()
    _, model = fit_dataset(fit, make_classifier(fit), train)
    fit_seconds = time.perf_counter() - fit_began
    report, _, decided = held_out_report(model, test)
    save_model(replace(model, metrics={"training_rows": len(train.table), "held_out": report}), files["model"])
    Said.kept = f"{files['model']} was written before"
    saved, probability = load(files["model"]), model.decision.probabilities(decided.scores)[:, 1]
    is_positive = test.target.codes_in(model.decision.classes) == 1
    called = saved.predict(test.table.drop_columns([fit.target])) == saved.classes_[1]
    # Explained is, of the test rows that the model finds, the one in the middle by probability.
    found = np.flatnonzero(is_positive & called)
    row = int(test.rows[found[np.argsort(probability[found], kind="stable")[len(found) // 2]]])
    why = str(saved.explain(data.table, row=row)).splitlines()
    saved.report(files["report"], data.table)
    seconds = round(time.perf_counter() - began, 1)
    if json:
        table_file, model_file, report_file = (str(files[name]) for name in ("table", "model", "report"))
        document: DemoDict = {
            "rows": {"training": len(train.table), "test": len(test.rows)},
            "verdict": verdict(report),
            "held_out": report,
            "explained": {"row": row, "sentences": why},
            "files": {"table": table_file, "model": model_file, "report": report_file},
            "seconds": seconds,
        }
        print_json(document)
        return
    model_file, table_file = (shlex.quote(str(files[name])) for name in ("model", "table"))
    following = [
        f"Open {printable(files['report'])} in a browser: there a cell that you change moves the decision.",
        "Next:",
        f"  qmedoid explain {model_file} {table_file} --row {row}",
        "  qmedoid check YOUR.csv --target COLUMN",
        f"  qmedoid fit {table_file} --target {fit.target} --cv 5 --compare",
    ]
    show("", *verdict(report), "", f"Why it decides so about one of them, row {row} of the table:")
    show(*(f"  {printable(line)}" for line in why))
    show("", f"The fit took {fit_seconds:.1f} s, all of the demo {seconds} s.", *following)


def _write_table(folder: Path) -> dict[str, Path]:
    """The paths of the table, the model and the page, each of which can be written, and the table, which is."""
    files = {"table": folder / f"{NAME}.csv", "model": folder / f"{NAME}.qmedoid", "report": folder / "report.html"}
    content = read_shipped(files["table"].name)
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{str(folder)!r} is a file: give another folder with --output.")
    folder.mkdir(parents=True, exist_ok=True)
    check_unchanged(files["table"], content)
    check_target(files["model"])
    check_output(files["report"])
    write_atomic(files["table"], content)
    return files
