"""``qmedoid export``: a model in another language."""

from pathlib import Path

from qmedoid.cli._output import note, print_json, shown
from qmedoid.cli.documents import ExportDict
from qmedoid.cli.more_options import ExportOptions
from qmedoid.exceptions import ParameterError
from qmedoid.export.writing import export_model
from qmedoid.saved import load

LARGE = 5_000_000
"""Bytes of a file from which on its size is noted."""


def run(options: ExportOptions) -> None:
    """Write the export and say what was written."""
    path = options.output or Path(options.model).with_suffix(f".{options.format}")
    if str(path) == "-":
        raise ParameterError("The output of an export must be a file: give -o FILE.")
    saved = load(options.model)
    written = export_model(
        saved.model, path, format=options.format, dialect=options.dialect, table=options.table, force=options.force,
        sha256=saved.sha256,
    )  # fmt: skip
    if written.bytes > LARGE:
        note(
            f"the file has {written.bytes / 1e6:.0f} MB, as the model has {len(saved.contract.columns):,} columns and "
            "many terms: what reads it will need time and memory for that. A model of fewer columns, or with fewer "
            "medoids (n_medoids), is smaller."
        )
    if options.json:
        document: ExportDict = {
            "output": str(written.path), "format": written.format, "dialect": written.dialect, "bytes": written.bytes,
            "model": saved.sha256,
        }  # fmt: skip
        print_json(document)
        return
    print(f"exported to {shown(str(written.path))} ({written.bytes:,} bytes).")
