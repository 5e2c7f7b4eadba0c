"""The reader of format 1: from bytes whose hashes are right to a table model.

A hash says that the bytes are those that were written, not that they make sense: every shape, bound and index is
checked against the others before a model is built.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from qmedoid.artifacts._files import MANIFEST
from qmedoid.artifacts._format_1_columns import read_classes, read_contract, read_encodings, read_rows
from qmedoid.artifacts._json import Fields, RefusedError, inside, parsed
from qmedoid.artifacts._tensors import Shelf, tensors_parsed
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.deltas import DELTA_KINDS
from qmedoid.geometry.overlap import ANGLE_KINDS
from qmedoid.geometry.scaling import Scaling
from qmedoid.kernels.statevector import MAX_QUBITS
from qmedoid.models.calibration import Calibration
from qmedoid.models.fusion import FusionModel
from qmedoid.models.geometric import DeltaSettings, GeometricModel
from qmedoid.models.stage import PlainStage
from qmedoid.models.table import TableModel
from qmedoid.models.variational import VariationalModel
from qmedoid.variational.angles import AngleMap
from qmedoid.variational.ansatz import Ansatz
from qmedoid.variational.network import PRECISIONS, Network
from qmedoid.variational.readout import READOUT_KINDS, make_readout

DESCRIPTION = ("contract", "encodings", "classes", "cut", "probabilistic", "models", "best", "parameters", "metrics")
"""Fields of the manifest that describe the model."""
VERSIONS = ("qmedoid", "numpy", "python")
"""What a model was saved with, for the reader."""
ROLES = ("arrays", "circuits", "card")
"""Files that every bundle has."""
OPTIONAL_ROLES = ("rows", "circuit.qpy", "circuit.qasm", "swap_test.qpy", "swap_test.qasm")
"""Files that a bundle may have; the circuits for other tools are never parsed."""
_MOST = 2**31
_GEOMETRIC = ("type", "signed", "alpha", "use_angular", "angle", "slope", "deltas", "refine_below", "residual")
_CIRCUIT = (
    "n_qubits", "n_inputs", "n_reps", "reupload", "final_rz", "readout", "n_classes", "learn_scales", "precision",
    "clip", "span",
)  # fmt: skip


# Scores times such a factor are still far from infinite.
_LARGEST_FACTOR = 1e100


class ModelReader(Protocol):
    """Reads one model of a manifest."""

    def __call__(
        self, entry: Any, circuit: Any, number: int, width: int, n_classes: int, shelf: Shelf
    ) -> GeometricModel | VariationalModel:
        """The model number `number` over `width` encoded columns, from its entry, its circuit and its arrays."""
        ...


def read(manifest: Mapping[str, Any], contents: Mapping[str, bytes]) -> TableModel:
    """The model of a manifest and of the files it names, by their roles."""
    return read_described(manifest, contents, DESCRIPTION, _model)[0]


def read_described(
    manifest: Mapping[str, Any], contents: Mapping[str, bytes], description: Sequence[str], read_model: ModelReader
) -> tuple[TableModel, Fields]:
    """What this format and later ones have in common, and the fields of the manifest for what they have not."""
    with inside(MANIFEST):
        fields = Fields(manifest, "it", ("format", "sha256", "versions", "files", *description))
        _check_roles(contents)
        versions = Fields(fields.raw("versions"), "versions", VERSIONS)
        for name in VERSIONS:
            versions.text(name)
        contract, classes = read_contract(fields.raw("contract")), read_classes(fields.raw("classes"))
        cut = None if fields.raw("cut") is None else fields.real("cut")
        if cut is not None and len(classes) != 2:
            raise RefusedError(f"cut belongs to two classes, and there are {len(classes)}")
        entries = fields.list("models")
        if not entries:
            raise RefusedError("models is empty")
        fields.whole("best", 0, 0)
        probabilistic, parameters = fields.flag("probabilistic"), fields.mapping("parameters")
        metrics = fields.mapping("metrics")
    with inside("arrays"):
        shelf = Shelf(tensors_parsed(contents["arrays"]))
        encodings = read_encodings(fields.raw("encodings"), contract, shelf)
    with inside("circuits"):
        circuits = parsed(contents["circuits"])
        if not isinstance(circuits, list) or len(circuits) != len(entries):
            raise RefusedError(f"it must be a list with one entry for each of the {len(entries)} models")
    width = sum(encoding.width for encoding in encodings)
    with inside("arrays"):
        models = tuple(
            read_model(entry, circuit, number, width, len(classes), shelf)
            for number, (entry, circuit) in enumerate(zip(entries, circuits, strict=True))
        )
        shelf.done()
    records = None
    if "rows" in contents:
        with inside("rows"):
            records = read_rows(parsed(contents["rows"]), [_n_medoids(model) for model in models])
    model = TableModel(contract, encodings, classes, models, cut, probabilistic, records, parameters, metrics)
    return model, fields


def _check_roles(contents: Mapping[str, bytes]) -> None:
    for role in ROLES:
        if role not in contents:
            raise RefusedError(f"files lacks {role!r}")
    for role in contents:
        if role not in (*ROLES, *OPTIONAL_ROLES):
            raise RefusedError(f"files has the unknown entry {role!r}")


def _model(
    entry: Any, circuit: Any, number: int, width: int, n_classes: int, shelf: Shelf
) -> GeometricModel | VariationalModel:
    where = f"models[{number}]"
    type_ = entry.get("type") if isinstance(entry, dict) else None
    fields = Fields(entry, where, _GEOMETRIC if type_ == "geometric" else ("type",))
    if fields.choice("type", ("geometric", "variational")) == "variational":
        if circuit is None:
            raise RefusedError(f"{where} is a circuit, and there is none")
        return read_circuit(circuit, number, width, n_classes, shelf)
    first = read_convex(fields, number, width, n_classes, shelf)
    calibration = Calibration(read_slope(fields), shelf.floats(f"{number}.biases", n_classes))
    return read_geometric(fields, first, calibration, circuit, number, shelf)


def read_geometric(
    fields: Fields, first: PlainStage, calibration: Calibration, circuit: Any, number: int, shelf: Shelf
) -> GeometricModel:
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
    return GeometricModel(
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


def read_convex(fields: Fields, number: int, width: int, n_classes: int, shelf: Shelf) -> FusionModel:
    """A fusion model of the nearest medoids over `width` encoded columns."""
    alpha = fields.real("alpha")
    if not 0 <= alpha <= 1:
        raise RefusedError(f"{fields.where}.alpha must be from 0 to 1, and is {alpha}")
    members = shelf.whole(f"{number}.members", None, below=width)
    offsets = shelf.offsets(f"{number}.offsets", None, len(members), step=1)
    weights = shelf.floats(f"{number}.weights", len(members))
    n_anchors = len(offsets) - 1
    if n_anchors < 1:
        raise RefusedError(f"array '{number}.offsets' must have at least 2 entries")
    parts = [slice(a, b) for a, b in zip(offsets.tolist(), offsets.tolist()[1:], strict=False)]
    medoids = shelf.floats(f"{number}.medoids", None, n_anchors)
    medoid_classes = shelf.whole(f"{number}.medoid_classes", len(medoids), below=n_classes)
    if len(np.unique(medoid_classes)) != n_classes:
        raise RefusedError(f"array '{number}.medoid_classes' lacks a class")
    multipliers = shelf.floats(f"{number}.multipliers", n_classes)
    if not ((multipliers > 0) & (multipliers < _LARGEST_FACTOR)).all():
        raise RefusedError(f"array '{number}.multipliers' must be above 0 and below {_LARGEST_FACTOR:g}")
    return FusionModel(
        input_scaling=Scaling(shelf.floats(f"{number}.center", width), shelf.scales(f"{number}.scale", width)),
        configuration=tuple(tuple(members[part].tolist()) for part in parts),
        weights=tuple(weights[part].copy() for part in parts),
        signed=fields.flag("signed"),
        feature_scaling=Scaling(
            shelf.floats(f"{number}.feature_center", n_anchors), shelf.scales(f"{number}.feature_scale", n_anchors)
        ),
        medoids=medoids,
        medoid_classes=medoid_classes,
        medoid_rows=shelf.whole(f"{number}.medoid_rows", len(medoids), below=2**62),
        multipliers=multipliers,
        alpha=alpha,
        use_angular=fields.flag("use_angular"),
        angle=fields.choice("angle", ANGLE_KINDS),
    )


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


def _n_medoids(model: GeometricModel | VariationalModel) -> int:
    return len(model.fusion.plain.medoid_rows) if isinstance(model, GeometricModel) else 0
