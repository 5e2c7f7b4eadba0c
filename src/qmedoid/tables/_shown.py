"""A saved model to look at and to take along: its report, its exports, its circuits, and its view in a notebook."""

from abc import abstractmethod
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.exports.sql.dialects import DialectName
from qmedoid.exports.writing import Export, Format, export_model
from qmedoid.model.circuit_export import Which, export_circuit
from qmedoid.model.table import TableModel
from qmedoid.model.view import model_view
from qmedoid.tables.circuits import circuit_of_record
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.issues import Issues

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

T = TypeVar("T")


class ShowingMixin:
    """What a saved model shows of itself, and the languages that it can be written in."""

    model: TableModel
    sha256: str | None

    @abstractmethod
    def _checked(self, data: Any, on_mismatch: OnMismatch, use: Callable[[pa.Table, Issues], T]) -> T:
        """What is made of the data as a table under the names of the contract."""

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
            `live`, whether the page has real rows and the model itself; `all_rows`, whether rows that the fit has seen
            count as well; `max_bytes`, from which size on the model is left out; `ignore`, codes of findings that are
            not judged.
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

    def circuit(
        self,
        data: Any = None,
        row: int = 0,
        *,
        which: Which = "auto",
        medoid: int | None = None,
        measure: bool = False,
        on_mismatch: OnMismatch = "error",
    ) -> "QuantumCircuit":
        """A circuit of the model in Qiskit, with what leads from its outcomes to a probability (extra ``quantum``).

        ``metadata["qmedoid"]`` of the circuit describes it in plain values (``qmedoid.model.circuit_export``), and
        ``qmedoid.circuits.export`` writes both.

        Parameters
        ----------
        data : data frame, Arrow table, dict of columns, array or None
            Holds the record whose angles are put in; None leaves them open.
        row : int
            The row of `data`; negative ones count from the end.
        which : {"auto", "variational", "swap-test", "interference"}
            The trained circuit, the SWAP test, or the cheaper circuit of the same overlap; ``"auto"`` takes the first
            of the former two that the model has.
        medoid : int, optional
            Training row of the medoid that the SWAP test compares the record with.
        measure : bool
            Whether the qubits of a trained circuit are measured; the ancilla of a SWAP test always is.
        on_mismatch : {"error", "warn"}
        """
        asked: dict[str, Any] = {"which": which, "medoid": medoid, "measure": measure, "sha256": self.sha256}
        if data is None:
            return export_circuit(self.model, **asked)

        def of_row(table: pa.Table, issues: Issues) -> "QuantumCircuit":
            if not -len(table) <= row < len(table):
                raise DataError(f"There is no row {row}: the table has {len(table)} rows, counted from 0.")
            place = row % len(table)
            return circuit_of_record(self.model, table.slice(place, 1), issues, row=place, **asked)

        return self._checked(data, on_mismatch, of_row)

    def _repr_html_(self) -> str:
        return model_view(self.model, "Saved model of qmedoid", self.sha256)
