"""A saved model to look at and to take along: its report, its exports, and its view in a notebook."""

from importlib import import_module
from pathlib import Path
from typing import Any

from qmedoid.exports.sql.dialects import DialectName
from qmedoid.exports.writing import Export, Format, export_model
from qmedoid.model.table import TableModel
from qmedoid.model.view import model_view


class ShowingMixin:
    """What a saved model shows of itself, and the languages that it can be written in."""

    model: TableModel
    sha256: str | None

    def report(self, path: str | Path, data: Any = None, **settings: Any) -> Path:
        """Write a page that shows the model and, if given, what it decides about data; any browser opens it.

        Parameters
        ----------
        path : str or Path
            Such as ``"report.html"``.
        data : data frame, Arrow table, dict of columns or None
            With the target column, figures are those of these rows; else of the held-out rows of the fit.
        **settings
            `target` and `on_mismatch` as elsewhere; `cost`, what a missed positive costs in false alerts; `rows` and
            `live`, whether the page has real rows and the model itself; `max_bytes`, from which size on the model is
            left out; `ignore`, codes of findings that are not judged.
        """
        # By name: reports lie in a layer above.
        write = import_module("qmedoid.model_report.writing").report_model
        written: Path = write(self.model, path, data, sha256=self.sha256, **settings)
        return written

    def export(
        self,
        path: str | Path,
        *,
        format: Format,
        dialect: DialectName | None = None,
        table: str | None = None,
        force: bool = False,
    ) -> Export:
        """Write the model in another language, which scores records without Python.

        Parameters
        ----------
        path : str or Path
        format : {"js", "sql", "onnx"}
            JavaScript, one SELECT statement, or an ONNX graph (which needs ``qmedoid[onnx]``).
        dialect : {"duckdb", "sqlite", "postgres"}, optional
            The database that the SQL is for; DuckDB by default.
        table : str, optional
            The table that the SQL selects from; ``records`` by default.
        force : bool
            Whether to overwrite a file that is no export; one that is an export is replaced.

        Raises
        ------
        ModelError
            The format cannot express the model; the message says why.
        """
        return export_model(
            self.model, path, format=format, dialect=dialect, table=table, force=force, sha256=self.sha256
        )

    def _repr_html_(self) -> str:
        return model_view(self.model, "Saved model of qmedoid", self.sha256)
