"""A table model taken apart: what the manifest says, the arrays, the circuits and the rows of format 1.

Arrays of a model have its number before their names, as in ``0.medoids``. Of all encodings together there are
``encoding.fills`` (of numbers and parts of dates, in the order of the columns), ``encoding.values`` (of the levels,
row by row) and the levels themselves as UTF-8 in ``encoding.texts``, level i from ``encoding.offsets[i]`` on.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.artifacts._json import plain
from qmedoid.exceptions import ModelError
from qmedoid.models.contract import Contract
from qmedoid.models.encoding import Dates, Encoding, Levels, Numbers
from qmedoid.models.fusion import FusionModel
from qmedoid.models.geometric import GeometricModel
from qmedoid.models.table import Record, TableModel
from qmedoid.models.variational import VariationalModel
from qmedoid.variational.readout import DirectReadout, ParityReadout, Readout, StringReadout

Arrays = dict[str, npt.NDArray[Any]]
_READOUTS: Mapping[type[Readout], str] = {StringReadout: "strings", ParityReadout: "parity", DirectReadout: "direct"}


class Packed(NamedTuple):
    """A model as plain values and arrays.

    Attributes
    ----------
    manifest : dict
        What the manifest says of it.
    arrays : dict of str to ndarray
    circuits : list
        For each model its circuit, or None.
    rows : list or None
        For each model its medoids as rows.
    """

    manifest: dict[str, Any]
    arrays: Arrays
    circuits: list[Any]
    rows: list[Any] | None


def packed(model: TableModel, *, raw_rows: bool) -> Packed:
    """Take a model apart; anything that cannot be stored raises a `ModelError`."""
    arrays: Arrays = {}
    manifest = {
        "contract": _contract(model.contract),
        "encodings": _encodings(model.encodings, arrays),
        "classes": plain(list(model.classes), "classes"),
        "cut": None if model.cut is None else plain(float(model.cut), "cut"),
        "probabilistic": bool(model.probabilistic),
        "models": [_model(one, str(number), arrays) for number, one in enumerate(model.models)],
        "best": 0,
        "parameters": plain(model.parameters, "parameters"),
        "metrics": plain(model.metrics, "metrics"),
    }
    rows = None
    if raw_rows and model.records is not None:
        rows = [_rows(records) for records in model.records]
    return Packed(manifest, arrays, [_circuit_of(one) for one in model.models], rows)


def plain_circuit(model: GeometricModel | VariationalModel) -> VariationalModel | None:
    """The circuit of a model, if it has one; circuits that a backend runs are refused."""
    circuit = model.variational if isinstance(model, GeometricModel) else model
    if circuit is not None and not isinstance(circuit, VariationalModel):
        raise _measured("circuit")
    return circuit


def _measured(what: str) -> ModelError:
    return ModelError(
        f"The {what} of this model is run by a backend, which is not saved: save the fitted classifier itself, and "
        "call measured_by again after loading."
    )


def _contract(contract: Contract) -> dict[str, Any]:
    columns = [
        {
            "name": plain(column.name, "the name of a column"),
            "kind": column.kind,
            "missing": bool(column.missing),
            "levels": plain(column.levels, f"levels of column {column.name!r}"),
            "is_open": bool(column.is_open),
        }
        for column in contract.columns
    ]
    return {
        "columns": columns,
        "target": plain(contract.target, "target"),
        "left_out": plain(contract.left_out, "left_out"),
    }


def _encodings(encodings: Sequence[Encoding], arrays: Arrays) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    fills, values, levels = [], [], []
    for encoding in encodings:
        match encoding:
            case Numbers():
                fills.append(np.array([encoding.fill], dtype=np.float64))
                entries.append({"type": "numbers", "indicator": bool(encoding.indicator)})
            case Dates():
                fills.append(_float(encoding.fills))
                entries.append({"type": "dates", "parts": list(encoding.parts), "indicator": bool(encoding.indicator)})
            case Levels():
                levels += [plain(level, "a level").encode() for level in encoding.levels]
                values.append(_float(encoding.values).ravel())
                outputs = plain(encoding.outputs, "outputs of a category")
                entries.append({"type": "levels", "count": len(encoding.levels), "outputs": outputs})
    arrays["encoding.fills"] = np.concatenate([np.zeros(0), *fills])
    arrays["encoding.values"] = np.concatenate([np.zeros(0), *values])
    arrays["encoding.texts"] = np.frombuffer(b"".join(levels), dtype=np.uint8)
    arrays["encoding.offsets"] = _whole([0, *accumulate(map(len, levels))])
    return entries


def _model(model: GeometricModel | VariationalModel, number: str, arrays: Arrays) -> dict[str, Any]:
    circuit = plain_circuit(model)
    if circuit is not None:
        arrays[f"{number}.angle_center"] = _float(circuit.angle_map.center)
        arrays[f"{number}.angle_scale"] = _float(circuit.angle_map.scale)
        arrays[f"{number}.input_scales"] = _float(circuit.network.scales)
        arrays[f"{number}.theta"] = _float(circuit.theta)
    if isinstance(model, VariationalModel):
        return {"type": "variational"}
    if not isinstance(model.fusion, FusionModel):
        raise _measured("SWAP test")
    _fusion_arrays(model.fusion, number, arrays)
    arrays[f"{number}.biases"] = _float(model.calibration.biases)
    return {
        "type": "geometric",
        "signed": bool(model.fusion.signed),
        "alpha": float(model.fusion.alpha),
        "use_angular": bool(model.fusion.use_angular),
        "angle": model.fusion.angle,
        "slope": plain(float(model.calibration.slope), "slope"),
        "deltas": {"kind": model.deltas.kind, "fused": bool(model.deltas.fused)},
        "refine_below": plain(float(model.refine_below), "refine_below"),
        "residual": bool(model.residual),
    }


def _fusion_arrays(fusion: FusionModel, number: str, arrays: Arrays) -> None:
    arrays[f"{number}.center"] = _float(fusion.input_scaling.center)
    arrays[f"{number}.scale"] = _float(fusion.input_scaling.scale)
    arrays[f"{number}.members"] = _whole([column for subset in fusion.configuration for column in subset])
    arrays[f"{number}.offsets"] = _whole([0, *accumulate(map(len, fusion.configuration))])
    arrays[f"{number}.weights"] = np.concatenate([_float(weights) for weights in fusion.weights])
    arrays[f"{number}.feature_center"] = _float(fusion.feature_scaling.center)
    arrays[f"{number}.feature_scale"] = _float(fusion.feature_scaling.scale)
    arrays[f"{number}.medoids"] = _float(fusion.medoids)
    arrays[f"{number}.medoid_classes"] = _whole(fusion.medoid_classes)
    arrays[f"{number}.medoid_rows"] = _whole(fusion.medoid_rows)
    arrays[f"{number}.multipliers"] = _float(fusion.multipliers)


def _circuit_of(model: GeometricModel | VariationalModel) -> dict[str, Any] | None:
    circuit = plain_circuit(model)
    if circuit is None:
        return None
    network, ansatz, angles = circuit.network, circuit.network.ansatz, circuit.angle_map
    kind = _READOUTS.get(type(network.readout))
    if kind is None:
        raise ModelError(
            f"The read-out {type(network.readout).__name__} cannot be stored: a bundle knows "
            f"{sorted(_READOUTS.values())}."
        )
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


def _rows(records: Sequence[Record]) -> dict[str, Any]:
    columns = list(records[0]) if records else []
    for record in records:
        if list(record) != columns:
            raise ModelError("The medoids kept as rows must all have the same columns in the same order.")
    cells = [plain(list(record.values()), "a medoid's row") for record in records]
    return {"columns": plain(columns, "columns of the medoids"), "rows": cells}


def _float(values: Any) -> npt.NDArray[np.float64]:
    return np.ascontiguousarray(values, dtype=np.float64)


def _whole(values: Any) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(values, dtype=np.int64)
