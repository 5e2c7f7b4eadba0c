"""The model itself within a page, for the what-if panel; or a sentence why it is not there."""

from collections.abc import Mapping
from typing import Any

from qmedoid.exceptions import ModelError
from qmedoid.exports.flat import flattened
from qmedoid.exports.javascript import as_document
from qmedoid.markup.policy import script_json
from qmedoid.model.table import TableModel
from qmedoid.model_report.rows import MOST_MEDOIDS, plain_cells

PAGE_BYTES = 100_000
"""What the page takes besides its summary at least: styles and scripts."""


def live(
    model: TableModel,
    sha256: str | None,
    *,
    is_wanted: bool,
    with_rows: bool,
    max_bytes: int,
    summary: Mapping[str, Any],
) -> dict[str, Any]:
    """The document of the model, or why there is none; the size of the page is that of the summary and of both."""
    if not is_wanted:
        return {"absent": "The live model was left out, as asked for (--no-live)."}
    if not with_rows:
        return {"absent": "The live model was left out, as it holds rows of the training table (--no-rows)."}
    try:
        document = as_document(flattened(model, sha256))
    except ModelError as error:
        return {"absent": str(error)}
    if len(document["medoids"]["records"] or ()) > MOST_MEDOIDS:
        # Scoring needs their numbers alone, and the list of medoids has some of them as they were.
        document["medoids"]["records"] = None
    elif document["medoids"]["records"]:
        document["medoids"]["records"] = plain_cells(model, document["medoids"]["records"])
    size = len(script_json(document)) + len(script_json(dict(summary))) + PAGE_BYTES
    return left_out_for_size(size, max_bytes) if size > max_bytes else {"document": document}


def left_out_for_size(size: int, most: int) -> dict[str, Any]:
    """That there is no live model, as the page would be too large with it."""
    return {
        "absent": f"The live model was left out: with it the page would have {size / 1e6:.1f} MB, and "
        f"{most / 1e6:.1f} MB are allowed (--max-size). 'qmedoid export' writes it to a file."
    }
