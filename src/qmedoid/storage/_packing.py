"""A table model taken apart: what the manifest says, the arrays, the circuits and the rows of format 4.

Arrays of a model have its number before their names, as in ``0.medoids``. Of all encodings together there are
``encoding.fills`` (of numbers and parts of dates, in the order of the columns), ``encoding.values`` (of the levels,
row by row) and the levels themselves as UTF-8 in ``encoding.texts``, level i from ``encoding.offsets[i]`` on.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from qmedoid.exceptions import ModelError
from qmedoid.fields import Arrays, floats, plain, whole
from qmedoid.methods.registry import write_method
from qmedoid.model.contract import Contract, Dates, Encoding, Levels, Numbers
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.operating_point import OperatingSummary
from qmedoid.model.table import Record, TableModel
from qmedoid.storage._novelty import packed_novelty
from qmedoid.storage._seen import packed as packed_seen
from qmedoid.variational.model import VariationalModel
from qmedoid.variational.readout import DirectReadout, ParityReadout, Readout, StringReadout

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
        "cut": None if model.decision.cut is None else plain(float(model.decision.cut), "cut"),
        "probabilistic": bool(model.decision.probabilistic),
        "models": [_model(one, str(number), arrays) for number, one in enumerate(model.models)],
        "best": 0,
        "parameters": plain(model.parameters, "parameters"),
        "metrics": plain(model.metrics, "metrics"),
        "priors": None if model.decision.priors is None else plain(model.decision.priors, "priors"),
        "expected_priors": None
        if model.decision.shift is None
        else plain(model.decision.shift.priors, "expected_priors"),
        "operating": plain(_operating(model.operating), "operating"),
        # Hashes say of a row that somebody has whether it was there: they go where rows are left out.
        "seen": packed_seen(model.seen, arrays) if raw_rows else None,
        "novelty": plain(packed_novelty(model.novelty, arrays), "novelty"),
    }
    rows = None
    if raw_rows and model.records is not None:
        rows = [_rows(records) for records in model.records]
    return Packed(manifest, arrays, [_circuit_of(one) for one in model.models], rows)


def plain_circuit(model: HybridModel | VariationalModel) -> VariationalModel | None:
    """The circuit of a model, if it has one; circuits that a backend runs are refused."""
    circuit = model.variational if isinstance(model, HybridModel) else model
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
            "spelling": column.spelling,
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
                fills.append(floats(encoding.fills))
                entries.append({"type": "dates", "parts": list(encoding.parts), "indicator": bool(encoding.indicator)})
            case Levels():
                levels += [plain(level, "a level").encode() for level in encoding.levels]
                values.append(floats(encoding.values).ravel())
                outputs = plain(encoding.outputs, "outputs of a category")
                entries.append({"type": "levels", "count": len(encoding.levels), "outputs": outputs})
    arrays["encoding.fills"] = np.concatenate([np.zeros(0), *fills])
    arrays["encoding.values"] = np.concatenate([np.zeros(0), *values])
    arrays["encoding.texts"] = np.frombuffer(b"".join(levels), dtype=np.uint8)
    arrays["encoding.offsets"] = whole([0, *accumulate(map(len, levels))])
    return entries


def _model(model: HybridModel | VariationalModel, number: str, arrays: Arrays) -> dict[str, Any]:
    circuit = plain_circuit(model)
    if circuit is not None:
        arrays[f"{number}.angle_center"] = floats(circuit.angle_map.center)
        arrays[f"{number}.angle_scale"] = floats(circuit.angle_map.scale)
        arrays[f"{number}.input_scales"] = floats(circuit.network.scales)
        arrays[f"{number}.theta"] = floats(circuit.theta)
    if isinstance(model, VariationalModel):
        return {"type": "variational"}
    if model.method is not model.method.plain:
        raise _measured("SWAP test")
    arrays[f"{number}.biases"] = floats(model.calibration.biases)
    arrays[f"{number}.knots"] = floats(model.calibration.knots)
    arrays[f"{number}.bends"] = floats(model.calibration.bends)
    return {
        "type": "geometric",
        "first": write_method(model.method.plain, number, arrays),
        "slope": plain(float(model.calibration.slope), "slope"),
        "deltas": {"kind": model.deltas.kind, "fused": bool(model.deltas.fused)},
        "refine_below": plain(float(model.refine_below), "refine_below"),
        "residual": bool(model.residual),
    }


def _operating(summary: OperatingSummary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "rule": summary.rule,
        "asked": None if summary.asked is None else float(summary.asked),
        "log_odds": float(summary.log_odds),
        "counts": None if summary.counts is None else [int(count) for count in summary.counts],
        "prevalence": None if summary.prevalence is None else float(summary.prevalence),
        "draws_per_row": float(summary.draws_per_row),
    }


def _circuit_of(model: HybridModel | VariationalModel) -> dict[str, Any] | None:
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
