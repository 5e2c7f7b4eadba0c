"""``qmedoid evaluate``: decisions about a table compared with its classes."""

from pathlib import Path
from typing import Any

import numpy as np

from qmedoid.cli._cut import asked_cut, listed, print_budgets, tell_cut
from qmedoid.cli._output import note, print_json, print_metrics, reading_bar
from qmedoid.cli.options import EvaluateOptions
from qmedoid.exceptions import ContractError, DataError, ParameterError, some_of
from qmedoid.model.budgets import Budget, budgets_on_rows
from qmedoid.spelling import did_you_mean
from qmedoid.storage.model_file import load_model
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.evaluating import joined, labeled_report, report_notes
from qmedoid.tables.row_hashes import row_hashes
from qmedoid.tables.scoring import TableReading, decide_batch
from qmedoid.tables.targets import label_codes


def run(options: EvaluateOptions) -> None:
    """Decide about every record and print metrics."""
    point = asked_cut(options)
    for one in listed(options.budgets):  # wrong ones are refused before anything is read
        Budget.of(one)
    keep_pandas_away()
    loaded = load_model(options.model)
    if point is not None:
        loaded = loaded.at_operating_point(point)
    if options.budgets is not None:
        loaded.decision.check_cuttable()
    name = options.target or loaded.contract.target
    if name is None:
        raise ParameterError("The model does not know the name of the target column: pass --target.")
    with TableReading(
        loaded, options.table, options.on_mismatch, delimiter=options.delimiter, decimal=options.decimal
    ) as reading:
        if name not in reading.source.names:
            raise ContractError(
                f"There is no column {name!r} with the classes.{did_you_mean(name, reading.source.names)} The table "
                f"has: {some_of([*map(repr, reading.source.names)])}. Pass --target."
            )

        def decide(lenient: bool) -> list[Any]:
            return [
                (label_codes(extra.column(name), loaded.decision.classes),
                 decide_batch(loaded, batch, reading.issues, reading.novelty)[0]._replace(nearest=None),
                 row_hashes(loaded, batch))
                for batch, extra in reading.batches(lenient, [name], as_text=True, on_progress=progress)
            ]  # fmt: skip

        with reading_bar("evaluating") as progress:
            parts = reading.in_kind(decide)
        reading.check()
        novelty = reading.novelty.report()
    if not parts:
        raise DataError("The table has no rows: there is nothing to evaluate.")
    codes, decided, hashes = zip(*parts, strict=True)
    report = labeled_report(
        loaded, np.concatenate(codes), joined(decided), None if loaded.seen is None else np.concatenate(hashes)
    )
    spent = None
    if options.budgets is not None:
        all_codes, scores = np.concatenate(codes), joined(decided).scores
        known = all_codes >= 0
        spent = budgets_on_rows(listed(options.budgets), all_codes[known] == 1, (scores[:, 1] - scores[:, 0])[known])
    left_out = report["left_out"]
    said = report_notes(loaded, report)
    if any(left_out.values()):
        said.insert(
            0, f"left out: {left_out['missing']:,} rows without a class, {left_out['unknown']:,} of other classes."
        )
    for one in said:
        note(one)
    novelty.warn()
    if options.json:
        operating = loaded.decision.operating
        cut: dict[str, Any] = {"operating": None if operating is None else operating.as_dict()}
        cut |= {} if spent is None else {"budgets": [one.as_dict() for one in spent]}
        print_json({**report, **cut, "novelty": novelty.as_dict()})
        return
    print_metrics(report, f"{Path(options.table).name}: {report['rows']:,} rows")
    if spent is not None:
        print_budgets(spent, "labeled rows")
    if point is not None:
        tell_cut(loaded)
