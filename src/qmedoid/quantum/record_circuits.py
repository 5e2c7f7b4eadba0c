"""Circuits of a model with the angles of one record of a table."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from qmedoid.model.table import TableModel
from qmedoid.quantum.circuit_export import Record, export_circuit
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.issues import Issues
from qmedoid.tables.scoring import refused_by_column

if TYPE_CHECKING:
    from qiskit import QuantumCircuit


def circuit_of_record(
    model: TableModel, record: pa.Table, issues: Issues, *, row: int | None = None, **asked: Any
) -> "QuantumCircuit":
    """The circuit of the only row of a table, under the names of the contract; `asked` is for `export_circuit`."""
    columns = encode_batch(record, model.contract, model.encodings, issues=issues)
    with refused_by_column(model, record, issues):
        return export_circuit(model, record=Record(columns, row), **asked)
