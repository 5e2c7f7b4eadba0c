"""Exported circuits alone: QPY and OpenQASM 3 give the model's probabilities and distances without it.

What reads them here knows Qiskit and NumPy and nothing of the package: it follows the steps that the documentation
lists (docs/circuits.md).
"""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("qiskit", reason="needs the extra quantum")

from qiskit import qasm3, qpy
from qiskit.quantum_info import Operator, Pauli, Statevector
from tests.model.storage.sample_models import all_models

from qmedoid import (
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    RareEventClassifier,
    SavedModel,
    VariationalClassifier,
)
from qmedoid.exceptions import DataError, ParameterError, QMedoidWarning
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.quantum import drawing, export_circuit, qasm_text, qpy_bytes

pytestmark = pytest.mark.filterwarnings("ignore::qiskit.exceptions.ExperimentalWarning")

FORMS = ("qpy", "qasm", "plain")
MODELS = all_models()
# 2·p1 of some 64 amplitudes, each the product of up to five rotations.
S_ERROR = 1e-14
PLAIN_LINE = re.compile(
    r"(input float\[64\] \w+|qubit\[\d+\] \w+|(h|(ry|rz)\([^()]+\)) \w+\[\d+\]|cz \w+\[\d+\], \w+\[\d+\]);\n"
)
QUICK = {"n_steps": 6, "n_seeds": 1, "n_reps": 2, "cv": 2, "random_state": 0}


# --- a reader that does not know the package ------------------------------------------------------------------------


def written(circuit, form):
    return qpy_bytes(circuit) if form == "qpy" else qasm_text(circuit, plain=form == "plain")


def read(content, form):
    """A circuit and its description from a file."""
    if form == "qpy":
        (circuit,) = qpy.load(io.BytesIO(content))
        return circuit, circuit.metadata["qmedoid"]
    (line,) = [line for line in content.splitlines() if line.startswith("// qmedoid: ")]
    if form == "plain":  # what other tools have built in, Qiskit includes
        head, *rest = content.splitlines(keepends=True)
        assert all(PLAIN_LINE.fullmatch(one) for one in rest if one != f"{line}\n"), content
        content = "".join([head, 'include "stdgates.inc";\n', *rest])
    return qasm3.loads_experimental(content), json.loads(line.removeprefix("// qmedoid: "))


def state_of(circuit):
    return Statevector(circuit.remove_final_measurements(inplace=False))


def softmax(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def scores_of(readout, state):
    if readout["kind"] == "strings":
        measured = [state.expectation_value(Pauli(label)).real for label in readout["observables"]]
        return np.array(readout["biases"]) + np.array(readout["weights"]) @ np.array(measured)
    chances = state.probabilities()
    return np.log([max(chances[states].sum(), readout["floor"]) for states in readout["states"]])


def calibrated(curve, scores):
    scores = np.array(curve["biases"]) + curve["slope"] * scores
    if not curve["knots"]:
        return scores
    if len(scores) != 2:
        return scores + np.interp(scores, curve["knots"], curve["heights"])
    half = np.interp(scores[1] - scores[0], curve["knots"], curve["heights"]) / 2
    return scores + np.array([-half, half])


def probabilities_alone(circuit, description):
    scores = scores_of(description["readout"], state_of(circuit))
    if description["offset"] is not None:
        scores = scores + np.array(description["offset"])
    if description["between"] is not None:
        between, chances = description["between"], softmax(np.array(description["between"]["scores"]))
        two = [between["second"], between["best"]]
        chances[two] = chances[two].sum() * softmax(scores)
        scores = np.log(chances)
    if description["recalibration"] is not None:
        scores = calibrated(description["recalibration"], scores)
    if description["decision"]["log_ratios"] is not None:
        scores = scores + np.array(description["decision"]["log_ratios"])
    return softmax(scores)


def angles_alone(inputs, features):
    """Angles of a record from its features, where the inputs are open."""
    standardized = (features - np.array(inputs["center"])) / np.array(inputs["scale"])
    clipped = np.clip(standardized, -inputs["clip"], inputs["clip"])
    return clipped * (inputs["span"] / inputs["clip"]) * np.array(inputs["scales"])


def distance_alone(circuit, description):
    """Overlap and distance."""
    rule, norms = description["overlap"], description["norms"]
    chance = state_of(circuit).probabilities([0])[1]
    s = rule["at_zero"] + rule["slope"] * chance
    return s, np.sqrt(2 * max(s, 0.0)) * np.hypot(norms["record"], norms["medoid"])


# --- fitted classifiers ---------------------------------------------------------------------------------------------


def table_of(n_classes, n=90, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    return rng.normal(size=(n, n_columns)) + codes[:, None] * [1.5, -1.0, 0.5], np.array(["no", "yes", "maybe"])[codes]


def hybrid(method, **settings):
    return MedoidClassifier(
        method=method, variational=VariationalClassifier(**QUICK), refine="always", random_state=0, **settings
    )


EVIDENCE = EvidenceClassifier(n_medoids=6, n_neighbors=0, cv=3)
NEAREST = NearestMedoidClassifier(n_anchors=3, cv=3)
CASES = {
    **{
        f"circuit alone, {readout}, {n} classes": (VariationalClassifier(readout=readout, **QUICK), n)
        for readout, n in (("strings", 2), ("parity", 2), ("direct", 2), ("strings", 3), ("direct", 3))
    },
    "circuit as printed": (VariationalClassifier.paper(**QUICK | {"n_reps": 1}), 2),
    "evidence, corrected": (hybrid(EVIDENCE, residual=True), 2),
    "evidence, replaced": (hybrid(EVIDENCE, residual=False), 2),
    "evidence of three, corrected": (hybrid(EVIDENCE, residual=True), 3),
    "evidence of three, between the nearest two": (hybrid(EVIDENCE, residual=True, deltas="nearest"), 3),
    "nearest medoid of three, between the nearest two": (hybrid(NEAREST, residual=False, deltas="nearest"), 3),
    "nearest medoid, with an operating point": (hybrid(NEAREST, operating_point={"min_recall": 0.9}, positive="no"), 2),
    "rare events": (hybrid(RareEventClassifier(n_rare=12, n_common=14, n_hard=6, cv=3), positive="yes"), 2),
}


@pytest.fixture(scope="module", params=CASES)
def fitted(request):
    """An estimator, the same as a saved model, and its table."""
    estimator, n_classes = CASES[request.param]
    X, y = table_of(n_classes)
    estimator.fit(X, y)
    return estimator, SavedModel(estimator.model_), X


@pytest.mark.parametrize("form", FORMS)
def test_file_alone_gives_the_probabilities_of_a_fitted_classifier(fitted, form):
    estimator, saved, X = fitted
    for row in (0, 1, 47):
        circuit, description = read(written(saved.circuit(X, row, which="variational"), form), form)
        found = dict(zip(description["classes"], probabilities_alone(circuit, description), strict=True))
        expected = dict(zip(estimator.classes_.tolist(), estimator.predict_proba(X[[row]])[0], strict=True))
        assert found.keys() == expected.keys()
        for label, value in expected.items():
            assert found[label] == pytest.approx(value, rel=0, abs=1e-12)
        assert description["expected"]["class"] == estimator.predict(X[[row]])[0]
        np.testing.assert_allclose(description["expected"]["probabilities"], list(found.values()), rtol=0, atol=1e-12)


def test_open_inputs_are_computed_from_features_by_what_the_file_says(fitted):
    _, saved, X = fitted
    (opened, open_one), (bound, of_record) = (
        read(qpy_bytes(saved.circuit(*which, which="variational")), "qpy") for which in ((), (X, 5))
    )
    angles = angles_alone(open_one["inputs"], np.array(of_record["inputs"]["features"]))
    np.testing.assert_array_equal(angles, of_record["inputs"]["angles"])
    assert opened.num_parameters == len(open_one["inputs"]["names"]) == len(angles)
    assert opened.assign_parameters(angles) == bound
    for key in ("offset", "between", "expected"):
        assert open_one[key] is None
    assert {**open_one["inputs"], "features": 0, "angles": 0} == {**of_record["inputs"], "features": 0, "angles": 0}
    assert open_one["readout"] == of_record["readout"]


def test_openqasm_has_an_input_for_each_feature(fitted):
    circuit = fitted[1].circuit(which="variational")
    text = qasm_text(circuit)
    assert text.startswith("OPENQASM 3.0;")
    assert text.count("input float[64] _x_") == circuit.num_parameters
    # The reader that comes with Qiskit knows no inputs: they are bound in the text, as a user would.
    values = np.linspace(-1, 1, circuit.num_parameters)
    for parameter, value in zip(circuit.parameters, values, strict=True):
        name = parameter.name.replace("[", "_").replace("]", "_")
        text = text.replace(f"input float[64] _{name};\n", "").replace(f"_{name}", repr(float(value)))
    assert Operator(qasm3.loads_experimental(text)) == Operator(circuit.assign_parameters(values))
    assert max(map(len, drawing(circuit).splitlines())) <= 120


# --- models of every kind -------------------------------------------------------------------------------------------


def with_circuit():
    for name, model in MODELS.items():
        if model.refinement is not None:
            # So that every record is the circuit's.
            yield name, replace(model, refinement=replace(model.refinement, refine_below=np.inf))
        elif model.circuit is not None:
            yield name, model


def random_records(model, n=3, seed=0):
    rng = np.random.default_rng(seed)
    width = sum(len(encoding.outputs) for encoding in model.encodings)
    return [[np.array([value]) for value in row] for row in rng.normal(size=(n, width))]


@pytest.mark.parametrize("name", dict(with_circuit()))
@pytest.mark.filterwarnings("ignore:This model computes its circuit in float32")
def test_file_alone_gives_the_probabilities_of_models_of_any_kind(name):
    model = dict(with_circuit())[name]
    trained = model.circuit
    for columns in random_records(model):
        decided = model.decide(columns)
        assert decided.by_circuit.all()
        expected = model.decision.probabilities(decided.scores)[0]
        for form in FORMS:
            circuit, description = read(written(export_circuit(model, "variational", columns), form), form)
            # A model in single precision is itself known to some 1e-6 only; its file is exact.
            error = 1e-12 if trained.network.precision == "float64" else 1e-4
            np.testing.assert_allclose(probabilities_alone(circuit, description), expected, rtol=0, atol=error)


def test_record_that_the_method_decides_is_noted():
    model = MODELS["selective"]
    below = replace(model, refinement=replace(model.refinement, refine_below=-1e9))
    with pytest.warns(QMedoidWarning, match="The circuit does not decide this record, nearest does"):
        circuit = export_circuit(below, "variational", random_records(below, 1)[0])
    assert circuit.metadata["qmedoid"]["method"]["decides"] is False
    with pytest.warns(QMedoidWarning, match="computes its circuit in float32"):
        export_circuit(MODELS["float32"], record=random_records(MODELS["float32"], 1)[0])


def test_angles_near_multiples_of_pi_keep_their_digits():
    model = MODELS["circuit"]
    network = model.circuit.network
    near = np.pi / np.resize([1, 2, 3, 4, -2, 8], network.sizes[0]) + np.resize(
        [3e-13, -1e-10, 1e-15], network.sizes[0]
    )
    theta = model.circuit.theta.copy()
    theta[: network.sizes[0]] = near
    turned = replace(model, parts=(replace(model.circuit, theta=theta),))
    circuit = export_circuit(turned, record=random_records(turned, 1)[0])
    for form in FORMS:
        again, description = read(written(circuit, form), form)
        angles = [float(one.operation.params[0]) for one in again.data if one.operation.params]
        assert {*near.tolist()} <= {*angles}, form
        assert np.ravel(description["rotations"]).tolist() == near.tolist()


@pytest.mark.parametrize("label", ["new\nline", "U+2028 \u2028", 'quote " and // comment */', "日本", "\x00"])
def test_class_of_any_name_stays_in_its_line(label):
    model = replace(MODELS["circuit"], decision=replace(MODELS["circuit"].decision, classes=("no", label)))
    circuit = export_circuit(model, record=random_records(model, 1)[0])
    for form in FORMS:
        again, description = read(written(circuit, form), form)
        assert description["classes"] == ["no", label]
        assert again.num_qubits == circuit.num_qubits


# --- the SWAP test --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nearest", "several medoids", "evidence", "evidence of classes", "rare", "sum"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("which", ["swap-test", "interference"])
def test_file_alone_gives_the_distance_to_a_medoid(name, form, which):
    model = MODELS[name]
    method, (columns,) = model.parts[0], random_records(model, 1)
    x = method.rows.to_points(np.column_stack(columns))
    for place in (0, len(method.rows.numbers) - 1):
        row = int(method.rows.numbers[place])
        circuit, description = read(written(export_circuit(model, which, columns, medoid=row), form), form)
        assert description["kind"] == which
        s, distance = distance_alone(circuit, description)
        closed = compact_swap_test(x, method.rows.points[place])
        # The overlap is a difference of probabilities: exact to some 1e-15, whatever its size.
        more = 3.0 if form == "plain" else 1.0  # for each of its gates there are others
        assert s == pytest.approx(closed.overlap.item(), rel=0, abs=more * S_ERROR)
        assert closed.overlap.item() > 0.01  # so that this is less than 1e-12 of the distance
        assert distance == pytest.approx(closed.distance.item(), rel=more * 1e-12)
        assert description["expected"]["distance"] == closed.distance.item()
        assert description["medoid"]["class"] == model.decision.classes[method.rows.classes[place]]
        assert description["medoid"]["training_row"] == row


def test_small_overlaps_are_known_to_an_absolute_error():
    model = MODELS["several medoids"]
    method = model.parts[0]
    (columns,) = random_records(model, 1)
    x = method.rows.to_points(np.column_stack(columns))[0]
    scale = np.hypot(*[np.linalg.norm(x)] * 2)
    for step in (1e-3, 1e-6, 1e-9):
        moved = replace(method, medoids=np.vstack([x + step, method.medoids[1:]]))
        near = replace(model, parts=(moved,))
        circuit = export_circuit(near, "swap-test", columns, medoid=int(method.rows.numbers[0]))
        s, distance = distance_alone(circuit, circuit.metadata["qmedoid"])
        expected = circuit.metadata["qmedoid"]["expected"]
        assert s == pytest.approx(expected["overlap"], rel=0, abs=S_ERROR)
        error = min(S_ERROR / np.sqrt(2 * expected["overlap"]), np.sqrt(2 * S_ERROR)) * scale
        assert abs(distance - expected["distance"]) <= error


def test_open_swap_test_is_a_template_of_the_longest_vectors():
    model = MODELS["evidence"]
    circuit = export_circuit(model, "swap-test")
    description = circuit.metadata["qmedoid"]
    assert circuit.num_parameters == 2 ** (circuit.num_qubits - 2)
    assert description["n_features"] == model.facts["vector_length"]
    assert [description[key] for key in ("angles", "norms", "medoid", "expected")] == [None] * 4


# --- what is refused ------------------------------------------------------------------------------------------------


def test_wrong_requests_say_what_to_ask_for():
    record = random_records(MODELS["nearest"], 1)[0]
    rows = MODELS["nearest"].medoids.numbers
    asked = [
        (MODELS["nearest"], ("variational",), {}, "no trained circuit, nearest decides: use --which swap-test"),
        (MODELS["circuit"], ("swap-test",), {}, "a circuit alone, without a SWAP test"),
        (MODELS["circuit"], ("auto",), {"medoid": 3}, "a circuit alone, without a SWAP test"),
        (MODELS["variational"], ("variational", record), {"medoid": 3}, "A medoid is for the SWAP test"),
        (MODELS["nearest"], ("swap-test",), {"medoid": int(rows[0])}, "compared with a record: give a table and a row"),
        (MODELS["nearest"], ("auto", record), {}, rf"one of the 2 medoids: say which .*{rows[0]} \(no\)"),
        (MODELS["nearest"], ("auto", record), {"medoid": 10**6}, f"1000000 is no medoid of this model: .*{rows[0]}"),
        (
            MODELS["nearest"],
            ("swap",),
            {},
            "must be one of 'auto', 'variational', 'swap-test', 'interference'. Got 'swap' instead",
        ),
    ]
    for model, arguments, named, message in asked:
        with pytest.raises(ParameterError, match=message):
            export_circuit(model, *arguments, **named)


def test_zero_vector_has_no_circuit():
    model = MODELS["several medoids"]
    zero = replace(model.parts[0], medoids=np.zeros_like(model.parts[0].medoids))
    model = replace(model, parts=(zero,))
    with pytest.raises(DataError, match=r"zero vector in the space of the distances.*the norm of the other"):
        export_circuit(model, "swap-test", random_records(model, 1)[0], medoid=int(zero.rows.numbers[0]))


def test_row_of_a_table_may_count_from_the_end():
    X, y = table_of(2)
    saved = SavedModel(VariationalClassifier(**QUICK).fit(X, y).model_)
    assert saved.circuit(X, -1) == saved.circuit(X, len(X) - 1)
    assert saved.circuit(X, -1).metadata["qmedoid"]["row"] == len(X) - 1
    with pytest.raises(DataError, match="There is no row 90: the table has 90 rows"):
        saved.circuit(X, 90)
