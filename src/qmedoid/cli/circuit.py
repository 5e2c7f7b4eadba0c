"""``qmedoid circuit``: a model's circuit for other tools."""

import base64
import sys
from pathlib import Path
from typing import Literal

from qmedoid.circuits import export
from qmedoid.cli._output import print_json
from qmedoid.exceptions import ParameterError
from qmedoid.model.table import TableModel
from qmedoid.storage.atomic import atomic_file, check_unchanged
from qmedoid.storage.model_file import load_model
from qmedoid.variational.model import VariationalModel

Format = Literal["qpy", "qasm", "text"]
Which = Literal["auto", "variational", "swap-test"]


def run(model: Path, form: Format, which: Which, output: str, *, force: bool, as_json: bool) -> None:
    """Write the circuit to a file or to standard output; in JSON the bytes of QPY are in base 64."""
    content = circuit_bytes(load_model(model), form, which)
    if output != "-":
        if not force:
            check_unchanged(output, content)
        with atomic_file(Path(output)) as file:
            file.write(content)
    if as_json:
        text = base64.b64encode(content).decode() if form == "qpy" else content.decode()
        print_json({"format": form, **({"content": text} if output == "-" else {"output": output})})
    elif output == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def circuit_bytes(model: TableModel, form: Format, which: Which) -> bytes:
    """The trained circuit of the best model, or the compact SWAP test of its features."""
    trained = _trained(model)
    if which == "variational" and trained is None:
        raise ParameterError(
            "This model has no trained circuit, method decides: use --which swap-test, or fit --refine always."
        )
    if which != "swap-test" and trained is not None:
        circuit = export.trained_circuit(trained)
    elif model.method is not None:
        circuit = export.swap_test_circuit(model.method.n_measured)
    else:
        raise ParameterError("This model is a circuit alone, without a SWAP test: use --which variational.")
    if form == "qpy":
        return export.qpy_bytes(circuit)
    text = export.qasm_text(circuit) if form == "qasm" else export.drawing(circuit)
    return (text.rstrip("\n") + "\n").encode()


def _trained(model: TableModel) -> VariationalModel | None:
    best = model.best
    circuit = best if isinstance(best, VariationalModel) else best.variational
    return circuit if isinstance(circuit, VariationalModel) else None
