"""Hybrid models and circuits as they are written and read; arrays of model i have names that begin with ``i.``."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from qmedoid.calibration.curve import Calibration
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.fields import Arrays, Fields, RefusedError, Shelf, floats, plain
from qmedoid.geometry.channels import DELTA_KINDS
from qmedoid.kernels.statevector import MAX_QUBITS
from qmedoid.methods.base import Method
from qmedoid.methods.registry import read_method, write_method
from qmedoid.model.hybrid import DeltaSettings, HybridModel
from qmedoid.variational.ansatz import AngleMap, Ansatz
from qmedoid.variational.model import PRECISIONS, Network, VariationalModel
from qmedoid.variational.readout import (
    READOUT_KINDS,
    DirectReadout,
    ParityReadout,
    Readout,
    StringReadout,
    make_readout,
)

Decider = HybridModel | VariationalModel

_READOUTS: Mapping[type[Readout], str] = {StringReadout: "strings", ParityReadout: "parity", DirectReadout: "direct"}
_HYBRID = ("type", "method", "slope", "deltas", "refine_below", "residual", "circuit")
_CIRCUIT = (
    "n_qubits", "n_inputs", "n_reps", "reupload", "final_rz", "readout", "n_classes", "learn_scales", "precision",
    "clip", "span",
)  # fmt: skip
_MOST = 2**31


def write_decider(model: Decider, number: str, arrays: Arrays) -> dict[str, Any]:
    """A hybrid model or a circuit for the manifest; its arrays are added."""
    circuit = _written_circuit(exact_circuit(model), number, arrays)
    if isinstance(model, VariationalModel):
        return {"type": "circuit", "circuit": circuit}
    if model.method is not model.method.plain:
        raise _measured("SWAP test")
    arrays[f"{number}.biases"] = floats(model.calibration.biases)
    arrays[f"{number}.knots"] = floats(model.calibration.knots)
    arrays[f"{number}.heights"] = floats(model.calibration.heights)
    return {
        "type": "hybrid",
        "method": write_method(model.method.plain, number, arrays),
        "slope": plain(float(model.calibration.slope), "slope"),
        "deltas": {"kind": model.deltas.kind, "fused": bool(model.deltas.fused)},
        "refine_below": plain(float(model.refine_below), "refine_below"),
        "residual": bool(model.residual),
        "circuit": circuit,
    }


def read_decider(entry: Any, number: int, width: int, n_classes: int, shelf: Shelf) -> Decider:
    """A hybrid model or a circuit over `width` encoded columns."""
    where = f"models[{number}]"
    is_hybrid = isinstance(entry, dict) and entry.get("type") == "hybrid"
    fields = Fields(entry, where, _HYBRID if is_hybrid else ("type", "circuit"))
    if fields.choice("type", ("hybrid", "circuit")) == "circuit":
        return _read_circuit(fields, number, width, n_classes, shelf)
    method = read_method(fields.raw("method"), f"{where}.method", number, width, n_classes, shelf)
    calibration = _read_calibration(fields, number, n_classes, shelf)
    given = Fields(fields.raw("deltas"), f"{where}.deltas", ("kind", "fused"))
    deltas = DeltaSettings(given.choice("kind", DELTA_KINDS), given.flag("fused"))
    refine_below, circuit = fields.real("refine_below", infinite=True), None
    if fields.raw("circuit") is not None:
        n_outputs = 2 if deltas.decides_between_two(n_classes) else n_classes
        circuit = _read_circuit(fields, number, _n_inputs(method, deltas), n_outputs, shelf)
    elif refine_below == np.inf:
        raise RefusedError(f"{where}.refine_below leaves all records to a circuit, and there is none")
    return HybridModel(method, calibration, deltas, circuit, refine_below, fields.flag("residual"))


def exact_circuit(model: Decider) -> VariationalModel | None:
    """The circuit of a model, if it has one; circuits that a backend runs are refused."""
    circuit = model.variational if isinstance(model, HybridModel) else model
    if circuit is not None and not isinstance(circuit, VariationalModel):
        raise _measured("circuit")
    return circuit


def _n_inputs(method: Method, deltas: DeltaSettings) -> int:
    """The number of deltas that a circuit is fed; counted, not listed, as a manifest may name very many classes."""
    if method.n_deltas is not None:
        return method.n_deltas
    n_classes = method.n_classes
    n_pairs = 1 if deltas.decides_between_two(n_classes) else n_classes * (n_classes - 1) // 2
    return n_pairs * (1 + method.use_angular + deltas.fused)


def _read_calibration(fields: Fields, number: int, n_classes: int, shelf: Shelf) -> Calibration:
    slope = fields.real("slope")
    if slope <= 0:
        raise RefusedError(f"{fields.where}.slope must be above 0, and is {slope}")
    knots = shelf.moderate(f"{number}.knots", None)
    heights = shelf.moderate(f"{number}.heights", len(knots))
    if not (np.diff(knots) > 0).all():
        raise RefusedError(f"array '{number}.knots' must ascend, and does not")
    if not (np.diff(heights) > -np.diff(knots)).all():
        raise RefusedError(f"array '{number}.heights' turns the order of the scores")
    return Calibration(slope, shelf.moderate(f"{number}.biases", n_classes), knots, heights)


def _written_circuit(circuit: VariationalModel | None, number: str, arrays: Arrays) -> dict[str, Any] | None:
    if circuit is None:
        return None
    network, ansatz, angles = circuit.network, circuit.network.ansatz, circuit.angle_map
    kind = _READOUTS.get(type(network.readout))
    if kind is None:
        raise ModelError(
            f"The read-out {type(network.readout).__name__} cannot be stored: a model file knows "
            f"{sorted(_READOUTS.values())}."
        )
    arrays[f"{number}.angle_center"] = floats(angles.center)
    arrays[f"{number}.angle_scale"] = floats(angles.scale)
    arrays[f"{number}.input_scales"] = floats(network.scales)
    arrays[f"{number}.theta"] = floats(circuit.theta)
    return {
        "n_qubits": int(ansatz.n_qubits),
        "n_inputs": int(ansatz.n_inputs),
        "n_reps": int(ansatz.n_reps),
        "reupload": bool(ansatz.reupload),
        "final_rz": bool(ansatz.final_rz),
        "readout": kind,
        "n_classes": int(network.readout.n_classes),
        "learn_scales": bool(network.learn_scales),
        "precision": network.precision,
        "clip": float(angles.clip),
        "span": float(angles.span),
    }


def _read_circuit(model: Fields, number: int, n_inputs: int, n_classes: int, shelf: Shelf) -> VariationalModel:
    fields = Fields(model.raw("circuit"), f"{model.where}.circuit", _CIRCUIT)
    n_qubits, n_reps = fields.whole("n_qubits", 1, MAX_QUBITS), fields.whole("n_reps", 1, _MOST)
    fields.whole("n_inputs", n_inputs, n_inputs)
    fields.whole("n_classes", n_classes, n_classes)
    clip, span = fields.real("clip"), fields.real("span")
    learn_scales, precision = fields.flag("learn_scales"), fields.choice("precision", PRECISIONS)
    try:
        ansatz = Ansatz(n_qubits, n_inputs, n_reps, fields.flag("reupload"), fields.flag("final_rz"))
        readout = make_readout(fields.choice("readout", READOUT_KINDS), n_qubits, n_classes)
        # How many parameters there are is known before their array is looked at.
        n_parameters = Network(ansatz, readout, np.zeros(0), learn_scales, precision).n_parameters
        AngleMap(np.zeros(0), np.ones(0), clip, span)
    except ParameterError as error:
        raise RefusedError(f"{fields.where}: {str(error).rstrip('.')}") from None
    center, scale = (shelf.floats(f"{number}.angle_center", n_inputs), shelf.scales(f"{number}.angle_scale", n_inputs))
    scales = shelf.floats(f"{number}.input_scales", n_inputs)
    return VariationalModel(
        AngleMap(center, scale, clip, span),
        Network(ansatz, readout, scales, learn_scales, precision),
        shelf.floats(f"{number}.theta", n_parameters),
    )


def _measured(what: str) -> ModelError:
    return ModelError(
        f"The {what} of this model is run by a backend, which is not saved: save the fitted classifier itself, and "
        "call measured_by again after loading."
    )
