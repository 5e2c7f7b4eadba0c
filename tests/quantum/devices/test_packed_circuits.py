"""Copies of a circuit on a device: what they read, where they are, and how often anything is transpiled."""

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
pytest.importorskip("qiskit_ibm_runtime", reason='needs: pip install "qmedoid[ibm]"')

from qiskit.circuit import Measure, Parameter
from qiskit.circuit.library import CZGate, RZGate, SXdgGate, SXGate, XGate
from qiskit.transpiler import InstructionProperties, Target
from qiskit_ibm_runtime import fake_provider as fakes
from tests.quantum.counts import chances_of

from qmedoid.exceptions import ParameterError
from qmedoid.geometry.overlap import pair_overlaps
from qmedoid.quantum import Device
from qmedoid.quantum.circuits.compact_swap import FORMS, form_named
from qmedoid.quantum.devices import packs as packing
from qmedoid.quantum.devices.packs import LIMITS, Quality
from qmedoid.quantum.devices.sampling import CircuitBatch

INTERFERENCE = form_named("interference")


@pytest.fixture(scope="module")
def guadalupe():
    return Device(fakes.FakeGuadalupeV2())


def vectors(rng, n, d, width):
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
    rows[0, 0] = 0.0 if d > 1 else 1.0
    return np.pad(rows, ((0, 0), (0, width - d)))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("d", [1, 2, 3, 8])
@pytest.mark.parametrize("on_device", [False, True])
def test_packed_copies_read_what_the_template_reads(guadalupe, form, d, on_device):
    device = guadalupe if on_device else Device(n_qubits=20)
    pack = device.pack(form, d, 5)
    assert pack.n_copies >= (1 if form.name == "compact_swap" and d == 8 else 2)
    width, rng = 2 ** (d - 1).bit_length(), np.random.default_rng(d)
    left, right = (vectors(rng, 4 * pack.n_copies, d, width) for _ in range(2))
    batch = CircuitBatch(pack, form.angles(left, right).reshape(4, -1), 1)
    chances = form.chance(pair_overlaps(left, right)).reshape(4, -1)
    np.testing.assert_allclose(chances_of(Device(), batch), chances, rtol=0, atol=1e-12)
    # Each copy reads what it reads alone: others do not reach it.
    alone = batch.angles.copy()
    alone[:, pack.n_angles :] = 0.3
    np.testing.assert_allclose(
        chances_of(Device(), CircuitBatch(pack, alone, 1))[:, 0], chances[:, 0], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("d", [1, 2, 4])
def test_copies_are_apart_on_usable_qubits_and_couplers(guadalupe, form, d):
    pack, quality = guadalupe.pack(form, d, 100), guadalupe.quality
    taken = [qubit for place in pack.qubits for qubit in place]
    assert len(taken) == len(set(taken)) == pack.n_copies * form.template(d).num_qubits
    assert set(taken) <= set(quality.qubits)
    place_of = {qubit: number for number, place in enumerate(pack.qubits) for qubit in place}
    measured = {}
    for one in pack.circuit.data:
        qubits = [pack.circuit.find_bit(qubit).index for qubit in one.qubits]
        if one.operation.name == "barrier":
            continue
        assert {place_of.get(qubit) for qubit in qubits} == {place_of[qubits[0]]}  # within one copy
        assert quality.target.instruction_supported(one.operation.name, tuple(qubits))
        if len(qubits) == 2:
            assert (min(qubits), max(qubits)) in quality.couplers
        if one.operation.name == "measure":
            measured[pack.circuit.find_bit(one.clbits[0]).index] = place_of[qubits[0]]
    assert measured == {number: number for number in range(pack.n_copies)}


def test_the_best_places_come_first(guadalupe):
    quality = guadalupe.quality
    for form, d in ((INTERFERENCE, 1), (INTERFERENCE, 4), (form_named("compact_swap"), 1)):
        pack = guadalupe.pack(form, d, 3)
        assert np.argmax(pack.shrink) == 0
        assert (pack.shrink > 0.5).all()
        assert (pack.shrink < 1.0).all()
    readings = [quality.readout[qubit] + 2.0 * quality.gate[qubit] for qubit in quality.qubits]
    assert readings == sorted(readings)
    assert guadalupe.pack(INTERFERENCE, 1, 3).qubits == tuple((qubit,) for qubit in quality.qubits[:3])


@pytest.mark.parametrize("d", [1, 2])
def test_reported_errors_tell_about_how_much_noise_leaves(guadalupe, d):
    pack = guadalupe.pack(INTERFERENCE, d, 2)
    rows = vectors(np.random.default_rng(0), 2 * 20, d, d)
    batches = [CircuitBatch(pack, INTERFERENCE.angles(rows, sign * rows).reshape(20, -1), 1) for sign in (1.0, -1.0)]
    equal, opposite = (chances_of(guadalupe, batch).mean(axis=0) for batch in batches)
    np.testing.assert_allclose(opposite - equal, pack.shrink, atol=0.03)


def line_target(readout, couplers, gate=1e-4):
    """A device of qubits in a row with given errors."""
    n = len(readout)
    target = Target(num_qubits=n)
    one = {(q,): InstructionProperties(error=gate) for q in range(n)}
    for operation in (SXGate(), XGate()):
        target.add_instruction(operation, dict(one))
    target.add_instruction(RZGate(Parameter("angle")), {(q,): InstructionProperties(error=0.0) for q in range(n)})
    target.add_instruction(Measure(), {(q,): InstructionProperties(error=e) for q, e in enumerate(readout)})
    pairs = {(q, q + 1): InstructionProperties(error=e) for q, e in enumerate(couplers)}
    target.add_instruction(CZGate(), pairs)
    return target


class RowOfQubits:
    """A backend with a target of its own, which nothing runs on."""

    name, num_qubits = "row", 6

    def __init__(self, target):
        self.target = target


def test_bad_qubits_and_couplers_are_left_out():
    target = line_target([0.01, 0.5, 0.01, 0.02, 0.03, 0.01], [0.01, 0.01, 1.0, 0.01, 0.01])
    quality = Quality(target, LIMITS)
    assert quality.qubits == (0, 2, 5, 3, 4)
    assert set(quality.couplers) == {(3, 4), (4, 5)}  # 1 is bad to read, and 2 with 3 is broken
    device = Device(RowOfQubits(target))
    assert device.pack(INTERFERENCE, 1, 9).qubits == ((0,), (2,), (5,), (3,), (4,))
    assert [set(place) for place in device.pack(INTERFERENCE, 2, 9).qubits] == [{4, 5}]
    assert {*device.pack(INTERFERENCE, 4, 9).qubits[0]} == {3, 4, 5}
    with pytest.raises(
        ParameterError, match=r"no place for a circuit of 8 columns, which takes 4 coupled qubits: 5 of its 6 are"
    ):
        device.pack(INTERFERENCE, 8, 1)
    strict = Device(RowOfQubits(target), limits={"readout": 0.015})
    assert strict.pack(INTERFERENCE, 1, 9).qubits == ((0,), (2,), (5,))
    with pytest.raises(ParameterError, match="no place for a circuit"):
        strict.pack(INTERFERENCE, 2, 1)


@pytest.mark.parametrize("error", [float("nan"), float("inf"), 1.0])
def test_errors_that_are_no_numbers_count_as_broken(error):
    quality = Quality(line_target([0.01, error, 0.01], [0.01, 0.01]), LIMITS)
    assert quality.qubits == (0, 2)
    assert quality.couplers == {}
    assert Quality(line_target([0.01] * 3, [error, 0.01]), LIMITS).couplers == {(1, 2): 0.01}


def test_errors_that_are_not_reported_are_taken_as_small():
    target = line_target([None, 0.01], [None])
    assert Quality(target, LIMITS).qubits == (0, 1)
    assert set(Quality(target, LIMITS).couplers) == {(0, 1)}


def test_rotations_count_whatever_a_device_calls_them():
    target = Target(num_qubits=3)
    for operation, errors in ((SXdgGate(), (1e-4, 0.02, 2e-4)), (RZGate(Parameter("angle")), (0.0, 0.0, 0.5))):
        target.add_instruction(operation, {(q,): InstructionProperties(error=e) for q, e in enumerate(errors)})
    target.add_instruction(Measure(), {(q,): InstructionProperties(error=0.01) for q in range(3)})
    assert Quality(target, LIMITS).qubits == (0, 2)
    pack = Device(RowOfQubits(target)).pack(INTERFERENCE, 1, 9)
    assert pack.qubits == ((0,), (2,))
    assert {*pack.circuit.count_ops()} == {"rz", "sxdg", "measure"}


def test_device_without_a_usable_qubit_says_so():
    device = Device(RowOfQubits(line_target([0.3, 0.2], [0.01])))
    with pytest.raises(ParameterError, match=r"0 of its 2 are within the limits .*\(readout 0\.1, .*limits="):
        device.pack(INTERFERENCE, 1, 1)


class CountedManagers:
    """Counts circuits that pass managers transpile."""

    def __init__(self, monkeypatch):
        self.names, make = [], packing.generate_preset_pass_manager

        def counted(**settings):
            manager = make(**settings)
            run = manager.run
            monkeypatch.setattr(manager, "run", lambda circuit: self.names.append(circuit.name) or run(circuit))
            return manager

        monkeypatch.setattr(packing, "generate_preset_pass_manager", counted)


def test_a_shape_is_transpiled_once(monkeypatch):
    counted = CountedManagers(monkeypatch)
    device = Device(fakes.FakeNairobiV2())
    device.pack(INTERFERENCE, 3, 1)
    assert counted.names == ["interference"] * 20 + ["1 x interference"]
    for n_features, n_copies in ((3, 1), (4, 1), (4, 1)):
        device.pack(INTERFERENCE, n_features, n_copies)
    assert len(counted.names) == 21
    device.pack(INTERFERENCE, 4, 2)  # the same routes, put together anew
    assert counted.names[21:] == ["2 x interference"]
    device.pack(INTERFERENCE, 1, 100)  # one qubit needs no route
    assert counted.names[22:] == ["7 x interference"]


def test_no_more_qubits_than_allowed():
    for backend in (None, fakes.FakeNairobiV2()):
        device = Device(backend, n_qubits=5)
        assert device.pack(INTERFERENCE, 1, 100).n_copies == 5
        assert device.pack(INTERFERENCE, 2, 100).n_copies == 2
        with pytest.raises(ParameterError, match=r"takes 6 qubits, and n_qubits=5 are allowed"):
            device.pack(form_named("compact_swap"), 8, 1)


def test_two_qubit_gates_on_a_large_device():
    device = Device(fakes.FakeTorino())
    gates = [device.pack(INTERFERENCE, d, 1).two_qubit_gates for d in (1, 2, 4, 8, 13, 30)]
    assert all(found <= most for found, most in zip(gates, (0, 1, 7, 17, 44, 99), strict=True))
    assert len(device.quality.qubits) < 133  # some are bad
    packed = device.pack(INTERFERENCE, 4, 1000)
    assert packed.n_copies > 20
    assert packed.two_qubit_gates == 7 * packed.n_copies


def test_the_same_seed_chooses_the_same_circuits():
    found = [Device(fakes.FakeNairobiV2(), seed=seed).pack(INTERFERENCE, 4, 2) for seed in (5, 5)]
    assert found[0].sha256 == found[1].sha256
    assert found[0].qubits == found[1].qubits
