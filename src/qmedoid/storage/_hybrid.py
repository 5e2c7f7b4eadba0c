"""Hybrid models read back: the nearest-medoid rule, the circuit and the policy between them, each bound checked."""

from typing import Any

import numpy as np

from qmedoid.calibration.curve import Calibration
from qmedoid.exceptions import ParameterError
from qmedoid.fields import Fields, RefusedError, Shelf, inside
from qmedoid.geometry.deltas import DELTA_KINDS
from qmedoid.kernels.statevector import MAX_QUBITS
from qmedoid.methods.base import Method
from qmedoid.model.hybrid import DeltaSettings, HybridModel
from qmedoid.variational.angles import AngleMap
from qmedoid.variational.ansatz import Ansatz
from qmedoid.variational.model import VariationalModel
from qmedoid.variational.network import PRECISIONS, Network
from qmedoid.variational.readout import READOUT_KINDS, make_readout

_MOST = 2**31
_CIRCUIT = (
    "n_qubits", "n_inputs", "n_reps", "reupload", "final_rz", "readout", "n_classes", "learn_scales", "precision",
    "clip", "span",
)  # fmt: skip


def read_geometric(
    fields: Fields, first: Method, calibration: Calibration, circuit: Any, number: int, shelf: Shelf
) -> HybridModel:
    """A hybrid model from its first stage, its calibration, and the fields of its policy."""
    n_classes = first.n_classes
    chosen = Fields(fields.raw("deltas"), f"{fields.where}.deltas", ("kind", "fused"))
    deltas = DeltaSettings(chosen.choice("kind", DELTA_KINDS), chosen.flag("fused"))
    refine_below = fields.real("refine_below", infinite=True)
    if circuit is None and refine_below == np.inf:
        raise RefusedError(f"{fields.where}.refine_below leaves all records to a circuit, and there is none")
    variational = None
    if circuit is not None:
        between_two = deltas.decides_between_two(n_classes)
        # Counted, not listed: a manifest may name very many classes.
        n_pairs = 1 if between_two else n_classes * (n_classes - 1) // 2
        own = first.n_deltas
        n_inputs = n_pairs * (1 + first.use_angular + deltas.fused) if own is None else own
        variational = read_circuit(circuit, number, n_inputs, 2 if between_two else n_classes, shelf)
    return HybridModel(
        first,
        calibration,
        deltas,
        variational,
        refine_below,
        fields.flag("residual"),
    )


def read_slope(fields: Fields) -> float:
    """The slope of a calibration."""
    slope = fields.real("slope")
    if slope <= 0:
        raise RefusedError(f"{fields.where}.slope must be above 0, and is {slope}")
    return slope


def read_circuit(entry: Any, number: int, n_inputs: int, n_classes: int, shelf: Shelf) -> VariationalModel:
    """A trained circuit of so many inputs and classes."""
    with inside("circuits"):
        fields = Fields(entry, f"[{number}]", _CIRCUIT)
        n_qubits, n_reps = fields.whole("n_qubits", 1, MAX_QUBITS), fields.whole("n_reps", 1, _MOST)
        fields.whole("n_inputs", n_inputs, n_inputs)
        fields.whole("n_classes", n_classes, n_classes)
        clip, span = fields.real("clip"), fields.real("span")
        try:
            ansatz = Ansatz(n_qubits, n_inputs, n_reps, fields.flag("reupload"), fields.flag("final_rz"))
            readout = make_readout(fields.choice("readout", READOUT_KINDS), n_qubits, n_classes)
            network = Network(
                ansatz,
                readout,
                np.zeros(0),
                fields.flag("learn_scales"),
                fields.choice("precision", PRECISIONS),
            )
            AngleMap(np.zeros(0), np.ones(0), clip, span)
        except ParameterError as error:
            raise RefusedError(str(error).rstrip(".")) from None
    angle_map = AngleMap(
        shelf.floats(f"{number}.angle_center", n_inputs), shelf.scales(f"{number}.angle_scale", n_inputs), clip, span
    )
    scales = shelf.floats(f"{number}.input_scales", n_inputs)
    theta = shelf.floats(f"{number}.theta", network.n_parameters)
    return VariationalModel(angle_map, Network(ansatz, readout, scales, network.learn_scales, network.precision), theta)
