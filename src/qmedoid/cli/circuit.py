"""``qmedoid circuit``: the circuits of a saved model."""

import base64
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from qmedoid.cli._output import print_json
from qmedoid.cli.documents import CircuitExportDict
from qmedoid.cli.options import DEVICE, OUTPUT, Force, Model, ReadingOptions, Text, argument, option
from qmedoid.exceptions import ParameterError
from qmedoid.model.storage.atomic import atomic_file, check_unchanged
from qmedoid.model.storage.model_file import load_file
from qmedoid.quantum.circuit_export import circuit_of_record, export_circuit
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.scoring import TableReading

if TYPE_CHECKING:
    from qiskit import QuantumCircuit


@dataclass(frozen=True, kw_only=True)
class CircuitExportOptions(ReadingOptions):
    """Draw a circuit, or write it for other tools.

    What is written says how its outcomes become a probability or a distance.
    """

    most_used = ("format", "output", "row", "which", "medoid", "measure", "json")
    examples = (
        "qmedoid circuit export patients.qmedoid",
        "qmedoid circuit export patients.qmedoid new.csv --row 3 --format qasm",
    )

    model: Model
    table: Annotated[
        Text, argument("TABLE", "Table with the record whose angles are put in. Default: they stay open.")
    ] = None
    row: Annotated[int | None, option(DEVICE, "Row of the table, counted from 0.", min=0, metavar="N")] = None
    format: Annotated[
        Literal["qpy", "qasm", "qasm2", "text"],
        option(
            OUTPUT,
            "What to write: qpy, qasm (OpenQASM 3), qasm2 (of a record) or text (a drawing).",
            metavar="FORMAT",
        ),
    ] = "text"
    which: Annotated[
        Literal["auto", "variational", "swap-test", "interference"],
        option(DEVICE, "Circuit: variational (the trained one), swap-test, interference (a cheaper test) or auto.",
               metavar="CIRCUIT"),
    ] = "auto"  # fmt: skip
    medoid: Annotated[
        int | None, option(DEVICE, "Medoid for the SWAP test: its training row, as explain shows it.", min=0,
                           metavar="ROW"),
    ] = None  # fmt: skip
    measure: Annotated[bool, option(DEVICE, "Measure the qubits of the trained circuit.", "--measure")] = False
    output: Annotated[
        str, option(OUTPUT, "File to write, or - for standard output.", "--output", "-o", metavar="FILE")
    ] = "-"
    force: Force = False


def export(options: CircuitExportOptions) -> None:
    """Write a circuit to a file or to standard output; in JSON the bytes of QPY are in base 64."""
    from qmedoid.quantum.circuits.export import METADATA, drawing, qasm2_text, qasm_text, qpy_bytes

    if (options.table is None) != (options.row is None):
        raise ParameterError("The angles of a record need both a table and its row, such as: records.csv --row 3.")
    circuit = _circuit(options)
    if options.format == "qpy":
        content = qpy_bytes(circuit)
    else:
        text = {"qasm": qasm_text, "qasm2": qasm2_text, "text": drawing}[options.format](circuit)
        content = (text.rstrip("\n") + "\n").encode()
    if options.output != "-":
        if not options.force:
            check_unchanged(options.output, content)
        with atomic_file(Path(options.output)) as file:
            file.write(content)
    if options.json:
        text = base64.b64encode(content).decode() if options.format == "qpy" else content.decode()
        document: CircuitExportDict = {"format": options.format, "description": circuit.metadata[METADATA]}
        document |= {"content": text} if options.output == "-" else {"output": options.output}
        print_json(document)
    elif options.output == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def _circuit(options: CircuitExportOptions) -> "QuantumCircuit":
    keep_pandas_away()
    loaded = load_file(options.model)
    asked: dict[str, Any] = {
        "which": options.which, "medoid": options.medoid, "measure": options.measure, "sha256": loaded.sha256,
    }  # fmt: skip
    if options.table is None or options.row is None:
        return export_circuit(loaded.model, **asked)
    dialect: dict[str, Any] = {"delimiter": options.delimiter, "decimal": options.decimal}
    with TableReading(loaded.model, options.table, options.on_mismatch, all_columns=True, **dialect) as reading:
        record = reading.row(options.row)
        circuit = circuit_of_record(loaded.model, record, reading.issues, row=options.row, **asked)
        reading.check()
    return circuit
