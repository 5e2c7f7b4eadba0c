r"""Circuits of a model for other tools, each with a description of what leads from its outcomes to a probability.

They are written as QPY, as OpenQASM 3, or drawn as text, and never read back: a saved model rebuilds its circuits
from their settings. In QPY the description is ``circuit.metadata["qmedoid"]``; in OpenQASM it is the JSON object in the
only line that begins with ``// qmedoid: ``. Every number is written so that it is read back as the same double: neither
format rounds an angle to a multiple of π.

The description has plain values only: texts, numbers, lists and dictionaries. For a trained circuit they lead from the
probabilities of the basis states to those of the classes, in the steps that the page "The circuits in Qiskit" lists.
For a SWAP test s = `at_zero` + `slope` · P(outcome = 1), and the distance is :math:`\sqrt{2 s (\lVert x\rVert^2 +
\lVert y\rVert^2)}` from the two `norms`.
"""

import io
import json
from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
from qiskit import QuantumCircuit, qasm3, qpy, transpile

from qmedoid._version import __version__
from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError, some_of, warn
from qmedoid.geometry.overlap import compact_swap_test, row_norms
from qmedoid.methods.part import LARGEST, Calibration, Part
from qmedoid.methods.variational.model import VariationalModel
from qmedoid.model.documents import TrainingRowDict
from qmedoid.model.model import Model
from qmedoid.model.refinement import two_nearest, two_nearest_scores
from qmedoid.quantum.circuits.compact_swap import form_named
from qmedoid.quantum.circuits.variational import variational_circuit
from qmedoid.quantum.documents import (
    CalibrationCurveDict,
    PairStepsDict,
    TrainedCircuitInputsDict,
    TrainedCircuitReadoutDict,
    TrainedStepsDict,
)
from qmedoid.tables.difference import Issues
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.scoring import refused_by_column

FORMAT = 1
"""Number of the format of descriptions."""
METADATA = "qmedoid"
"""Key of the description in the metadata of a circuit."""
COMMENT = f"// {METADATA}: "
"""Beginning of the line with the description in OpenQASM."""
PLAIN = "h", "ry", "rz", "cz"
"""Gates of circuits for other tools."""
Which = Literal["auto", "variational", "swap-test", "interference"]
WHICH: tuple[Which, ...] = ("auto", "variational", "swap-test", "interference")
"""The trained circuit, the SWAP test, or the first of them that the model has."""


def circuit_of_record(
    model: Model, record: pa.Table, issues: Issues, *, row: int | None = None, **asked: Any
) -> QuantumCircuit:
    """The circuit of the only row of a table, under the names of the contract; `asked` is for `export_circuit`."""
    columns = encode_batch(record, model.contract, model.encodings, issues=issues)
    with refused_by_column(model, record, issues):
        return export_circuit(model, record=columns, row=row, **asked)


def export_circuit(
    model: Model,
    which: Which = "auto",
    record: Sequence[Array] | None = None,
    *,
    row: int | None = None,
    medoid: int | None = None,
    measure: bool = False,
    sha256: str | None = None,
) -> QuantumCircuit:
    """A circuit of the best model, with its description in ``metadata["qmedoid"]`` (extra ``quantum``).

    Parameters
    ----------
    model : Model
    which : {"auto", "variational", "swap-test", "interference"}
    record : sequence of ndarray of shape (1,), or None
        Encoded columns of the record whose angles are put in; None leaves the inputs of a trained circuit, or the
        angles of a SWAP test, open.
    row : int or None
        Where the record stands in its table, for the reader.
    medoid : int or None
        Training row of the medoid that a SWAP test compares the record with.
    measure : bool
        Whether the qubits of a trained circuit are measured; the ancilla of a SWAP test always is.
    sha256 : str or None
        Of the model's file, for the reader.

    Raises
    ------
    ParameterError
        The model has no such circuit or medoid, or there is a record without a medoid or the other way round.
    DataError
        The record, or the medoid, is the zero vector, which no circuit prepares.
    """
    about: dict[str, Any] = {"format": FORMAT, "qmedoid": __version__, "model": sha256, "row": row}
    trained = _trained(model, which, medoid)
    if trained is not None:
        about = {"kind": "variational", **about, **_trained_description(model, trained, record)}
        ansatz, rotations = trained.network.ansatz, trained.parameters.rotations
        circuit = variational_circuit(ansatz, weights=rotations, inputs=about["inputs"]["angles"], measure=measure)
    else:
        kind = "interference" if which == "interference" else "swap-test"
        circuit, values = _pair_circuit(model, kind, record, medoid)
        about = {"kind": kind, **about, **values}
    circuit.metadata = {METADATA: about}
    return circuit


def _trained(model: Model, which: Which, medoid: int | None) -> VariationalModel | None:
    """The trained circuit, if that is asked for; None for one of a record and a medoid."""
    if which not in WHICH:
        raise ParameterError(f"The circuit must be one of {', '.join(map(repr, WHICH))}. Got {which!r} instead.")
    trained = model.circuit
    if which == "variational" and medoid is not None:
        raise ParameterError("A medoid is for the SWAP test: leave it out, or ask for 'swap-test' or 'interference'.")
    if which == "variational" and trained is None:
        raise ParameterError(
            f"This model has no trained circuit, {model.method} decides: use --which swap-test "
            "(which='swap-test'), or fit with --refine always (refine='always')."
        )
    if which in ("swap-test", "interference") or medoid is not None:
        return None
    return trained


# --- the trained circuit --------------------------------------------------------------------------------------------


def _trained_description(model: Model, trained: VariationalModel, record: Sequence[Array] | None) -> TrainedStepsDict:
    """Angle map, rotations, read-out and decision of a trained circuit; with a record, what they give for it."""
    refinement, decision, parts, angle_map = model.refinement, model.decision, trained.parameters, trained.angle_map
    part, names = model.medoid_part, list(model.layout.names)
    if refinement is not None and part is not None:
        names = refinement.inputs.names([str(label) for label in decision.classes], part.n_features)
    inputs: TrainedCircuitInputsDict = {
        "names": names,
        "center": angle_map.center.tolist(),
        "scale": angle_map.scale.tolist(),
        "clip": angle_map.clip,
        "span": angle_map.span,
        "scales": parts.scales.tolist(),
        "features": None,
        "angles": None,
    }
    description: TrainedStepsDict = {
        "classes": list(decision.classes),
        "inputs": inputs,
        "rotations": parts.rotations.tolist(),
        "readout": cast("TrainedCircuitReadoutDict", trained.network.readout.as_dict(parts.readout)),
        "precision": trained.network.precision,
        "method": None,
        "offset": None,
        "between": None,
        "recalibration": None,
        "decision": {
            "priors": _plain(decision.priors),
            "log_ratios": None if decision.shift is None else decision.shift.log_ratios.tolist(),
            "cut": decision.cut,
            "biases": _plain(decision.biases),
        },
        "expected": None,
    }
    if refinement is not None:
        again, most = refinement.recalibration, refinement.refine_below
        description["recalibration"] = None if again is None else _curve(again)
        description["method"] = {
            "name": model.method,
            "residual": refinement.residual,
            "between_two": refinement.inputs.decides_between_two(len(decision.classes)),
            "refine_below": None if most == np.inf else max(float(most), -LARGEST),
            "calibration": _curve(model.calibration),
            "scores": None,
            "decides": None,
        }
    if record is not None:
        model.decide(record)  # it refuses what leaves the range of a double
        features, scores = _record_values(model, trained, record, description)
        inputs["features"], inputs["angles"] = features[0].tolist(), trained.encoded(features)[0].tolist()
        codes, shifted, _ = decision.decide(scores)
        description["expected"] = {
            "probabilities": decision.probabilities(shifted)[0].tolist(),
            "class": decision.classes[int(codes[0])],
        }
        if trained.network.precision != "float64":
            warn(
                f"This model computes its circuit in {trained.network.precision}, to about 7 digits; the angles and "
                "weights that are written are exact, so that their probabilities differ from its own by that much."
            )
    return description


def _record_values(
    model: Model,
    trained: VariationalModel,
    record: Sequence[Array],
    description: TrainedStepsDict,
) -> tuple[Array, Array]:
    """Features of the circuit, (1, m), and class scores after it, (1, C); what the method adds goes into `description`.

    The scores are by the circuit, whether or not the policy leaves the record to it.
    """
    refinement = model.refinement
    if refinement is None:
        features = np.column_stack(list(record)).astype(np.float64)
        return features, trained.scores(features)
    found = model.score(record, channels=True)
    calibrated = model.calibration.apply(found.scores)
    features = refinement.inputs.features(found, calibrated)
    between_two = refinement.inputs.decides_between_two(calibrated.shape[1])
    if refinement.residual:
        corrected = two_nearest_scores(calibrated) if between_two else calibrated
        description["offset"] = corrected[0].tolist()
    if between_two:
        (nearest,), (second,) = two_nearest(calibrated)
        description["between"] = {"second": int(second), "best": int(nearest), "scores": calibrated[0].tolist()}
    decides = bool(refinement.picks(calibrated)[0])
    about = description["method"]
    assert about is not None, "a hybrid has a method"
    about |= {"scores": found.scores[0].tolist(), "decides": decides}
    if not decides:
        name = about["name"]
        warn(
            f"The circuit does not decide this record, {name} does: its margin is above {refinement.refine_below:.4g}. "
            "What is written is what the circuit would say."
        )
    again, refined = refinement.recalibration, refinement.refined(calibrated, features)
    return features, refined if again is None else again.apply(-refined)


def _curve(calibration: Calibration) -> CalibrationCurveDict:
    return {
        "slope": float(calibration.slope),
        "biases": calibration.biases.tolist(),
        "knots": calibration.knots.tolist(),
        "heights": calibration.heights.tolist(),
    }


def _plain(values: Array | None) -> list[float] | None:
    return None if values is None else list(map(float, values))


# --- the SWAP test --------------------------------------------------------------------------------------------------


def _pair_circuit(
    model: Model, kind: str, record: Sequence[Array] | None, medoid: int | None
) -> tuple[QuantumCircuit, PairStepsDict]:
    """The circuit of a record and a medoid, or of any two vectors, and its description."""
    part, form = model.medoid_part, form_named("interference" if kind == "interference" else "compact_swap")
    if part is None:
        raise ParameterError("This model is a circuit alone, without a SWAP test: ask for the circuit 'variational'.")
    description: PairStepsDict = {
        "n_features": model.facts["vector_length"],
        "overlap": {"at_zero": form.at_zero, "slope": form.slope},
        "space": None,
        "angles": None,
        "norms": None,
        "medoid": None,
        "expected": None,
    }
    if record is None:
        if medoid is not None:
            raise ParameterError("A medoid is compared with a record: give a table and a row as well.")
        return form.template(description["n_features"]), description
    x, y, compared = _compared(model, part, record, medoid)
    angles: list[float] = form.angles(x, y).tolist()
    of_record, of_medoid = row_norms(np.stack([x, y])).tolist()
    found = compact_swap_test(x, y)
    description |= {"n_features": len(x), "space": part.rows.space, "angles": angles, "medoid": compared}
    description["norms"] = {"record": of_record, "medoid": of_medoid}
    description["expected"] = {"overlap": found.overlap.item(), "distance": found.distance.item()}
    return form.template(len(x)).assign_parameters(angles), description


def _compared(
    model: Model, part: Part, record: Sequence[Array], medoid: int | None
) -> tuple[Array, Array, TrainingRowDict]:
    """The vectors of the record and of a medoid, and what the medoid is."""
    medoids, classes = part.rows, model.decision.classes
    rows = medoids.numbers
    nearest = model.decide(record).nearest
    if medoid is None:
        assert nearest is not None, "a method has medoids"
        named = [f"{int(rows[place])} ({label})" for place, label in zip(nearest[0], classes, strict=True)]
        raise ParameterError(
            f"A SWAP test compares the record with one of the {len(rows)} medoids: say which by its training row "
            f"(medoid=, --medoid). The nearest of each class: {some_of(named, 9)}."
        )
    places = np.flatnonzero(rows == medoid)
    if not len(places):
        raise ParameterError(
            f"Training row {medoid} is no medoid of this model: there are {some_of([str(row) for row in rows], 9)}."
        )
    place = int(places[0])
    x = medoids.usable_points(np.column_stack(list(record)).astype(np.float64), part.columns)[0]
    assert medoids.points is not None, "medoids are points"
    y = np.asarray(medoids.points[place], dtype=np.float64)
    for vector, name in ((x, "The record"), (y, f"The medoid of training row {medoid}")):
        if not vector.any():
            raise DataError(
                f"{name} is the zero vector in the space of the distances, which no circuit prepares: their distance "
                "is the norm of the other. Choose another row or medoid."
            )
    return x, y, {"training_row": int(rows[place]), "class": classes[int(medoids.classes[place])]}


def circuit_files(model: Model) -> dict[str, bytes]:
    """The circuits of a model for other tools, with open angles: files of QPY and OpenQASM 3 by name."""
    made: dict[str, QuantumCircuit] = {}
    if model.circuit is not None:
        made["circuit"] = export_circuit(model, "variational")
    if model.medoids is not None:
        made["swap_test"] = export_circuit(model, "swap-test")
    qpys = {f"{name}.qpy": qpy_bytes(circuit) for name, circuit in made.items()}
    return qpys | {f"{name}.qasm": qasm_text(circuit).encode() for name, circuit in made.items()}


# --- writers --------------------------------------------------------------------------------------------------------


def qpy_bytes(circuit: QuantumCircuit) -> bytes:
    """The circuit in Qiskit's own format."""
    out = io.BytesIO()
    qpy.dump(circuit, out)
    return out.getvalue()


def qasm_text(circuit: QuantumCircuit, *, plain: bool = False) -> str:
    """The circuit in OpenQASM 3; what is left open is an ``input`` with an underscore for each bracket.

    Parameters
    ----------
    circuit : QuantumCircuit
    plain : bool
        Whether the text is one that Amazon Braket and PennyLane read: it includes no other file, has no gates but h,
        ry, rz and cz, which both have built in, and measures nothing.
    """
    # As constants, angles within 1e-9 of a multiple of π would be written as that multiple.
    if plain:
        # Both read definitions of gates as well, but Braket's simulator misapplies some of those with a control.
        bare = transpile(circuit.remove_final_measurements(inplace=False), basis_gates=[*PLAIN], optimization_level=0)
        bare.global_phase = 0.0
        text = qasm3.dumps(bare, includes=(), basis_gates=PLAIN, disable_constants=True)
    else:
        text = qasm3.dumps(circuit, disable_constants=True)
    description = (circuit.metadata or {}).get(METADATA)
    if description is None:
        return text
    # In the second line: the version of the language must stay in the first. Without characters beyond ASCII there is
    # no sign that another reader could take for the end of the line.
    version, _, rest = text.partition("\n")
    return f"{version}\n{COMMENT}{json.dumps(description, ensure_ascii=True, allow_nan=False)}\n{rest}"


def drawing(circuit: QuantumCircuit) -> str:
    """The circuit drawn as text, folded at 120 characters."""
    return str(circuit.draw(output="text", fold=120))
