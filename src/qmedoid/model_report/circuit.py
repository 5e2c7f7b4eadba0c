"""The trained circuit of a model as a report shows it: a drawing, and the loss of its training where it is kept."""

from typing import Any

from qmedoid.exceptions import MissingExtraError
from qmedoid.model.table import TableModel
from qmedoid.variational.model import VariationalModel

MOST_STEPS = 500
"""Steps of the loss that are shown at most, evenly spread."""


def trained_circuit(model: TableModel) -> dict[str, Any] | None:
    """The circuit of the best model; None where it has none."""
    best = model.best
    circuit = best if isinstance(best, VariationalModel) else best.variational
    if not isinstance(circuit, VariationalModel):
        return None
    ansatz = circuit.network.ansatz
    about = [
        f"{ansatz.n_qubits} qubits, {ansatz.n_inputs} inputs, {ansatz.n_reps} repetitions; it is simulated exactly.",
        {"always": "It decides every record.", "selective": "It decides records with a narrow margin."}.get(
            model.refinement, "It takes part in decisions."
        ),
    ]
    drawn = _drawing(circuit)
    if drawn is None:
        about.append("To see it drawn, install the extra 'quantum'.")
    loss = _loss(model)
    about.append("The loss is that of the batches." if loss is not None else "The file keeps no loss of its training.")
    return {"drawing": drawn, "loss": loss, "about": " ".join(about)}


def _drawing(circuit: VariationalModel) -> str | None:
    try:
        from qmedoid.circuits import export
    except (ImportError, MissingExtraError):
        return None
    return export.drawing(export.trained_circuit(circuit))


def _loss(model: TableModel) -> list[float] | None:
    kept = model.metrics.get("loss_curve")
    if not isinstance(kept, list | tuple) or not kept:
        return None
    step = -(-len(kept) // MOST_STEPS)
    return [float(value) for value in kept[::step]]
