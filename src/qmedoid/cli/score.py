"""``qmedoid score``: a table of any size to a file of decisions."""

import sys
from pathlib import Path
from typing import Any

from qmedoid.artifacts.loading import load_model
from qmedoid.cli._output import print_json, reading_bar, tell
from qmedoid.exceptions import ParameterError, some_of
from qmedoid.tables.arrow_alone import keep_pandas_away
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.files import score_file

# Classes whose counts are told.
_MANY = 10


def run(
    model: Path,
    table: str,
    output: str,
    *,
    columns: list[str],
    safe_csv: bool,
    on_mismatch: OnMismatch,
    as_json: bool,
    **dialect: Any,
) -> None:
    """Score a table and say how many records were called what."""
    if as_json and output == "-":
        raise ParameterError("--json prints where the results go with -o -: give a file to write instead.")
    keep_pandas_away()
    loaded = load_model(model)
    carried = list(dict.fromkeys(name for part in columns for name in _split(part)))
    with reading_bar("scoring") as advance:
        scored = score_file(
            loaded, table, output, carried=carried, on_mismatch=on_mismatch, safe_csv=safe_csv, on_progress=advance,
            **dialect,
        )  # fmt: skip
    if as_json:
        print_json(
            {
                "rows": scored.rows,
                "predicted": scored.predicted,
                "output": output,
                "difference": scored.difference.as_dict(),
            }
        )
    elif sys.stderr.isatty() or output != "-":
        most = sorted(scored.predicted.items(), key=lambda item: -item[1]) if len(scored.predicted) > _MANY else None
        parts = some_of([f"{count:,} {label}" for label, count in most or scored.predicted.items()], _MANY)
        tell(f"{scored.rows:,} {'row' if scored.rows == 1 else 'rows'} scored: {parts}.")


def _split(part: str) -> list[str]:
    """Names with commas between them; a name with a comma in it is put in double quotes."""
    import csv

    return [name.strip() for name in next(csv.reader([part], skipinitialspace=True), []) if name.strip()]
