"""``qmedoid score`` and ``qmedoid evaluate``: a table to a file of decisions, or compared with its classes."""

import csv
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qmedoid.cli._output import print_json, print_metrics, reading_bar, shown, tell
from qmedoid.exceptions import ContractError, DataError, ParameterError, some_of, warn
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.operating_point import Drift
from qmedoid.model.table import TableModel
from qmedoid.storage.model_file import load_model
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.novelty import ENOUGH_ROWS
from qmedoid.tables.scoring import ScoredFile, TableReading, decide_batch, estimate_in_file, score_file

# Classes whose counts are printed.
_MANY = 10
# What is said of a drift, by its names in JSON.
_EXPECTED = {"expected_alert_rate": "expected", "expected_low": "low", "expected_high": "high",
             "standard_errors": "standard_errors", "drift": "direction"}  # fmt: skip


def run(
    model: Path,
    table: str,
    output: str,
    *,
    columns: list[str],
    prevalence: str | None,
    safe_csv: bool,
    force: bool,
    novelty: bool,
    on_mismatch: OnMismatch,
    as_json: bool,
    **dialect: Any,
) -> None:
    """Score a table, say how many records were called what, and whether that was to be expected."""
    if as_json and output == "-":
        raise ParameterError("--json prints where the results go with -o -: give a file to write instead.")
    try:
        asked = prevalence if prevalence in (None, "estimate") else float(str(prevalence))
    except ValueError:
        raise ParameterError(f"--prevalence must be 'estimate' or a number. Got {prevalence!r} instead.") from None
    keep_pandas_away()
    loaded = load_model(model)
    found: PrevalenceEstimate | None = None
    if asked is not None and len(loaded.decision.classes) != 2:
        raise ParameterError(
            "--prevalence is the share of the second of two classes, and this model has "
            f"{len(loaded.decision.classes)}: leave it out."
        )
    if asked is not None:
        if asked == "estimate":
            with reading_bar("estimating") as progress:
                found = estimate_in_file(loaded, table, on_mismatch=on_mismatch, on_progress=progress, **dialect)
            # Half a record at least: a class that does not occur has no odds.
            half = 0.5 / found.n_rows
            asked = min(max(found.prevalence, half), 1.0 - half)
        loaded = replace(loaded, decision=loaded.decision.at_priors(asked))
    # Names with commas between them; a name with a comma in it is put in double quotes.
    listed = [name.strip() for part in columns for row in csv.reader([part], skipinitialspace=True) for name in row]
    carried = [name for name in dict.fromkeys(listed) if name]
    with reading_bar("scoring") as progress:
        scored = score_file(
            loaded, table, output, carried=carried, on_mismatch=on_mismatch, safe_csv=safe_csv, force=force,
            # Text shows no estimate, and need not wait for it.
            novelty=novelty, prevalence=as_json and found is None and _can_estimate(loaded), on_progress=progress,
            **dialect,
        )  # fmt: skip
    drift = None
    if loaded.decision.operating is not None:
        drift = loaded.decision.operating.drift(scored.predicted[str(loaded.decision.classes[1])], scored.rows)
    if drift is not None and drift.direction != "none":
        warn(_changed(loaded, drift))
    scored.novelty.warn()
    if as_json:
        print_json(
            {
                "rows": scored.rows,
                "predicted": scored.predicted,
                **_alerts(loaded, scored, drift),
                "prevalence": _prevalence(loaded, found or scored.prevalence),
                "novelty": scored.novelty.as_dict(),
                "output": output,
                "difference": scored.difference.as_dict(),
            }
        )
    elif sys.stderr.isatty() or output != "-":
        _tell(loaded, scored, drift, found)


def _can_estimate(model: TableModel) -> bool:
    """Whether the scores of a model show how frequent its classes are in a table of any length."""
    return len(model.decision.classes) == 2 and model.decision.probabilistic and model.decision.priors is not None


def _alerts(model: TableModel, scored: ScoredFile, drift: Drift | None) -> dict[str, Any]:
    """The alert rate of two classes and what was expected, by name."""
    if len(model.decision.classes) != 2:
        return {}
    alerts = scored.predicted[str(model.decision.classes[1])]
    expected = {name: getattr(drift, key, None) for name, key in _EXPECTED.items()}
    return {"alerts": alerts, "alert_rate": alerts / scored.rows, **expected}


def _prevalence(model: TableModel, found: PrevalenceEstimate | None) -> dict[str, Any] | None:
    """How frequent the second class was taken to be, and seems to be."""
    if not _can_estimate(model) or model.decision.priors is None or model.decision.expected_priors is None:
        return None
    known = {"trained": float(model.decision.priors[1]), "used": float(model.decision.expected_priors[1])}
    if found is None:
        return known | {"estimate": None, "low": None, "high": None}
    return known | {"estimate": found.prevalence, "low": float(found.low[1]), "high": float(found.high[1])}


def _tell(model: TableModel, scored: ScoredFile, drift: Drift | None, found: PrevalenceEstimate | None) -> None:
    most = sorted(scored.predicted.items(), key=lambda item: -item[1]) if len(scored.predicted) > _MANY else None
    parts = some_of([f"{count:,} {label}" for label, count in most or scored.predicted.items()], _MANY)
    tell(f"{scored.rows:,} {'row' if scored.rows == 1 else 'rows'} scored: {parts}.")
    if drift is not None and drift.direction == "none":
        tell(
            f"alert rate {drift.alert_rate:.4g}, as expected: {drift.expected:.4g} from held-out rows, "
            f"{drift.low:.4g} to {drift.high:.4g} for {scored.rows:,} rows."
        )
    if scored.novelty.status == "too few":
        tell(f"too few rows to compare with those the model was fitted on: {ENOUGH_ROWS} are enough.")
    if found is not None and (priors := model.decision.expected_priors) is not None:
        # What probabilities are for is within half a record of what was estimated.
        used, estimate = f"{priors[1]:.4g}", f"{found.prevalence:.4g}"
        tell(
            f"prevalence of {shown(model.decision.classes[1])} estimated as {estimate} (95 %: {found.low[1]:.4g} to "
            f"{found.high[1]:.4g}); probabilities are for "
            f"{'that' if used == estimate else f'{used}, which is half a record'}."
        )


def _changed(model: TableModel, drift: Drift) -> str:
    """What is said of an alert rate that was not to be expected."""
    hint = ""
    if _can_estimate(model) and model.decision.shift is None:
        positive = shown(model.decision.classes[1])
        hint = f" If {positive} has only become more or less frequent, score with --prevalence estimate."
    return (
        f"The alert rate is {drift.alert_rate:.4g}, and {drift.low:.4g} to {drift.high:.4g} was expected for "
        f"{drift.rows:,} rows ({drift.standard_errors:+.1f} standard errors): these are not new records like those "
        f"the model was fitted on.{hint}"
    )


def evaluate(
    model: Path, table: str, *, target: str | None, on_mismatch: OnMismatch, as_json: bool, **dialect: Any
) -> None:
    """Decide about every record and print metrics."""
    from qmedoid.tables.evaluating import joined, labeled_report, report_notes
    from qmedoid.tables.row_hashes import row_hashes
    from qmedoid.tables.targets import label_codes

    keep_pandas_away()
    loaded = load_model(model)
    name = target or loaded.contract.target
    if name is None:
        raise ParameterError("The model does not know the name of the target column: pass --target.")
    with TableReading(loaded, table, on_mismatch, **dialect) as reading:
        if name not in reading.source.names:
            raise ContractError(
                f"There is no column {name!r} with the classes. The table has: {some_of(reading.source.names)}. "
                "Pass --target."
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
    left_out = report["left_out"]
    if any(left_out.values()):
        tell(f"note: left out: {left_out['missing']:,} rows without a class, {left_out['unknown']:,} of other classes.")
    notes = report_notes(loaded, report)
    for note in notes:
        tell(f"note: {note}")
    novelty.warn()
    if as_json:
        print_json({**report, "notes": notes, "novelty": novelty.as_dict()})
    else:
        print_metrics(report, f"{Path(table).name}: {report['rows']:,} rows")
