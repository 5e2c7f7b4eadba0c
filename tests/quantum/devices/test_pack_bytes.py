"""Packed circuits as bytes: what comes back runs the same, and bytes that are none are refused."""

import numpy as np
import pytest

pytest.importorskip("qiskit_aer")

from qiskit import qpy
from qiskit.providers.fake_provider import GenericBackendV2

from qmedoid.quantum import Device
from qmedoid.quantum.circuits.compact_swap import form_named
from qmedoid.quantum.devices.packs import pack_from_bytes, pack_to_bytes

BACKENDS = {"simulator": None, "device": GenericBackendV2(6, seed=3)}


@pytest.fixture(scope="module")
def devices():
    return {name: Device(backend) for name, backend in BACKENDS.items()}


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(("form", "n_features", "n_copies"), [("interference", 1, 5), ("compact_swap", 2, 1)])
def test_pack_comes_back_as_it_was(devices, name, form, n_features, n_copies):
    pack = devices[name].pack(form_named(form), n_features, n_copies)
    found = pack_from_bytes(pack_to_bytes(pack))
    assert found.circuit == pack.circuit
    assert found.sha256 == pack.sha256
    assert (found.n_copies, found.n_angles, found.qubits) == (pack.n_copies, pack.n_angles, pack.qubits)
    np.testing.assert_array_equal(found.order, pack.order)
    np.testing.assert_array_equal(found.shrink, pack.shrink)
    assert [str(one) for one in found.circuit.parameters] == [str(one) for one in pack.circuit.parameters]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"PICKLE" + content[6:],
        lambda content: content[:-30],
        lambda _: b"",
    ],
)
def test_bytes_that_are_no_pack_are_refused(devices, damage):
    content = pack_to_bytes(devices["simulator"].pack(form_named("interference"), 1, 5))
    with pytest.raises(ValueError):  # noqa: PT011 (each has its own message)
        pack_from_bytes(damage(content))


def test_circuits_of_versions_that_evaluate_texts_are_not_even_tried(devices, monkeypatch):
    content = pack_to_bytes(devices["simulator"].pack(form_named("interference"), 1, 5))
    tried = []
    monkeypatch.setattr(qpy, "load", tried.append)
    with pytest.raises(ValueError, match="no circuit in QPY of a version that can be read"):
        pack_from_bytes(content[:6] + bytes([12]) + content[7:])
    assert tried == []
