"""The statevector kernel and its NumPy twin: laws of circuits, and each against the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels import statevector
from qmedoid.kernels.backend import compiled

kernel = compiled("statevector")
LANES = 16
PRECISIONS = [np.float64, np.float32]
# Rounding of a number of each precision, with some room.
ROUNDING = {np.float64: 1e-13, np.float32: 1e-5}


class Case:
    """Random angles, weights, observables and a gradient by their expectation values."""

    def __init__(
        self, seed: int, n: int, rows: int, layers: int, n_observables: int = 3, precision: type = np.float64
    ) -> None:
        rng = np.random.default_rng(seed)
        self.angles = rng.uniform(-4.0, 4.0, size=(rows, n)).astype(precision)
        self.weights = rng.uniform(-4.0, 4.0, size=(layers, n)).astype(precision)
        self.observables = rng.normal(size=(n_observables, 2**n)).astype(precision)
        self.upstream = rng.normal(size=(rows, n_observables)).astype(precision)

    def states(self, reupload: bool) -> np.ndarray:
        return statevector.states(self.angles, self.weights, reupload=reupload)

    def expectations(self, reupload: bool) -> np.ndarray:
        return statevector.expectations(self.angles, self.weights, self.observables, reupload=reupload)

    def record(self, reupload: bool) -> statevector.Tape:
        return statevector.Tape(self.angles, self.weights, self.observables, reupload=reupload)

    def gradient(self, reupload: bool) -> tuple[np.ndarray, np.ndarray]:
        return self.record(reupload).gradient(self.upstream)

    def loss(self, angles: np.ndarray, weights: np.ndarray, reupload: bool) -> np.ndarray:
        """What `gradient` is the gradient of, row by row."""
        found = statevector.expectations(angles, weights, self.observables, reupload=reupload)
        return np.einsum("ij,ij->i", found, self.upstream)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 12])
def test_norms_are_one_and_expectations_are_those_of_the_states(n: int, precision: type) -> None:
    case = Case(n, n, 19, 6, precision=precision)
    found = case.states(True)
    assert found.dtype == np.result_type(precision, np.complex64)
    probabilities = np.abs(found) ** 2
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=ROUNDING[precision])
    np.testing.assert_allclose(
        case.expectations(True), probabilities @ case.observables.T, atol=10 * ROUNDING[precision]
    )
    identity = statevector.expectations(case.angles, case.weights, np.ones((1, 2**n)), reupload=False)
    np.testing.assert_allclose(identity, 1.0, atol=ROUNDING[precision])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("n", range(1, 13))
@pytest.mark.parametrize("layers", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("reupload", [False, True])
def test_compiled_is_the_twin(n: int, layers: int, reupload: bool, precision: type) -> None:
    if kernel is None:
        pytest.skip("the compiled kernels were not built")
    case = Case(n, n, 35 if n < 8 else 3, layers, precision=precision)
    wide = [part.astype(np.float64) for part in (case.angles, case.weights, case.observables, case.upstream)]
    final = statevector.numpy_states(wide[0], wide[1], reupload)
    tolerance = ROUNDING[precision]
    np.testing.assert_allclose(case.states(reupload), final.T, atol=tolerance)
    np.testing.assert_allclose(
        case.expectations(reupload), statevector.numpy_expectations(final, wide[2]), atol=tolerance
    )
    tape = case.record(reupload)
    np.testing.assert_array_equal(tape.expectations, case.expectations(reupload))
    by_weights, by_angles = tape.gradient(case.upstream)
    expected_weights, expected_angles = statevector.numpy_gradient(final, *wide, reupload)
    np.testing.assert_allclose(by_weights, expected_weights, atol=tolerance)
    np.testing.assert_allclose(by_angles, expected_angles, atol=tolerance)
    assert by_angles.dtype == precision
    assert by_weights.dtype == np.float64


@given(st.integers(0, 1000), st.integers(1, 6), st.booleans(), st.sampled_from(PRECISIONS), st.data())
@settings(max_examples=30, deadline=None)
def test_a_row_does_not_depend_on_its_batch(
    seed: int, n: int, reupload: bool, precision: type, data: st.DataObject
) -> None:
    case = Case(seed, n, 3 * LANES, 1 + seed % 6, precision=precision)
    whole = case.states(reupload), case.expectations(reupload), case.gradient(reupload)[1]
    rows = data.draw(st.lists(st.integers(0, len(case.angles) - 1), min_size=1, max_size=2 * LANES))
    case.angles, case.upstream = case.angles[rows], case.upstream[rows]
    part = case.states(reupload), case.expectations(reupload), case.gradient(reupload)[1]
    if kernel is None:  # the twin's sums are NumPy's, in an order that depends on the shape
        for of_part, of_whole in zip(part, whole, strict=True):
            np.testing.assert_allclose(of_part, of_whole[rows], atol=10 * ROUNDING[precision])
    else:
        for of_part, of_whole in zip(part, whole, strict=True):
            np.testing.assert_array_equal(of_part, of_whole[rows])


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("n", "rows"), [(4, 40_013), (9, 1_501)])
def test_threads_change_no_bit(n: int, rows: int, precision: type, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(1, n, rows, 5, precision=precision)
    one = statevector.expectations(case.angles, case.weights, case.observables, reupload=True, threads=1)
    states = statevector.states(case.angles, case.weights, reupload=True, threads=1)
    two = statevector.expectations(case.angles, case.weights, case.observables, reupload=True, threads=2)
    np.testing.assert_array_equal(two, one)
    np.testing.assert_array_equal(statevector.states(case.angles, case.weights, reupload=True, threads=2), states)
    monkeypatch.setenv("QMEDOID_THREADS", "3")
    np.testing.assert_array_equal(case.expectations(True), one)
    np.testing.assert_array_equal(case.states(True), states)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_layout_changes_no_bit(precision: type) -> None:
    case = Case(4, 4, 50, 5, precision=precision)
    expected, (by_weights, by_angles) = case.expectations(True), case.gradient(True)
    case.angles = np.repeat(case.angles, 2, axis=0)[::2]
    case.weights, case.observables = np.asfortranarray(case.weights), np.asfortranarray(case.observables)
    case.upstream = case.upstream[::-1].copy()[::-1]
    for array in (case.angles, case.weights, case.observables, case.upstream):
        array.flags.writeable = False
        assert not array.flags.c_contiguous
    np.testing.assert_array_equal(case.expectations(True), expected)
    for found, known in zip(case.gradient(True), (by_weights, by_angles), strict=True):
        np.testing.assert_array_equal(found, known)
    memory = np.frombuffer(b"\0" + case.angles.tobytes(), dtype=np.uint8)[1:]
    case.angles = memory.view(precision).reshape(case.angles.shape)
    assert not case.angles.flags.aligned
    np.testing.assert_array_equal(case.expectations(True), expected)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_no_rows(precision: type) -> None:
    case = Case(5, 3, 0, 4, precision=precision)
    assert case.states(True).shape == (0, 8)
    assert case.expectations(True).shape == (0, 3)
    by_weights, by_angles = case.gradient(True)
    np.testing.assert_array_equal(by_weights, np.zeros((4, 3)))
    assert by_angles.shape == (0, 3)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_angles_of_every_size(precision: type) -> None:
    quarters = np.arange(-9, 10) * np.pi / 2
    sizes = np.geomspace(1e-30, 1e30, 61)
    angles = np.concatenate([quarters, quarters + 1e-3, sizes, -sizes, [2e5, 2.0000001e5]]).astype(np.float32)
    angles = angles[:, None].astype(precision)
    found = statevector.states(angles, np.zeros((1, 1)), reupload=False)
    half = angles[:, 0].astype(np.float64) / 2
    expected = np.column_stack([np.cos(half), np.sin(half)])
    np.testing.assert_allclose(found, expected, rtol=0, atol=4e-16 if precision == np.float64 else 1e-7)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_row_that_is_not_finite_spoils_no_other(precision: type) -> None:
    case = Case(6, 4, 20, 5, precision=precision)
    expected = case.states(True), case.gradient(True)[1]
    case.angles[[3, 7, 11], [0, 2, 3]] = np.nan, np.inf, 1e30
    with np.errstate(invalid="ignore"):
        found = case.states(True), case.gradient(True)[1]
    others = np.setdiff1d(np.arange(20), [3, 7, 11])
    for now, before in zip(found, expected, strict=True):
        assert np.isnan(now[[3, 7]]).all()
        assert np.isfinite(now[11]).all()
        np.testing.assert_array_equal(now[others], before[others])


@pytest.mark.parametrize(
    ("angles", "weights", "message"),
    [
        (np.zeros((2, 13)), np.zeros((3, 13)), r"1 to 12 qubits.*\(2, 13\)"),
        (np.zeros(3), np.zeros((3, 3)), r"shape \(rows, qubits\).*\(3,\)"),
        (np.zeros((2, 3), dtype=int), np.zeros((3, 3)), "float64 or float32. Got int64"),
        (np.zeros((2, 3)), np.zeros((3, 2)), r"Weights must be of shape \(rotation layers, 3\).*\(3, 2\)"),
        (np.zeros((2, 3)), np.zeros((0, 3)), "at least one layer"),
    ],
)
def test_wrong_circuits(angles: np.ndarray, weights: np.ndarray, message: str) -> None:
    observables = np.ones((1, 2 ** angles.shape[-1]))
    for call in (
        lambda: statevector.states(angles, weights, reupload=False),
        lambda: statevector.expectations(angles, weights, observables, reupload=False),
        lambda: statevector.Tape(angles, weights, observables, reupload=False),
    ):
        with pytest.raises(ParameterError, match=message):
            call()


@pytest.mark.usefixtures("backend")
def test_wrong_observables_gradients_and_threads() -> None:
    case = Case(7, 2, 5, 3)
    for observables in (np.ones((1, 8)), np.ones(4), np.ones((4, 1))):
        with pytest.raises(DataError, match=r"Observables must be of shape \(K, 4\)"):
            statevector.expectations(case.angles, case.weights, observables, reupload=True)
        with pytest.raises(DataError, match=r"Observables must be of shape \(K, 4\)"):
            statevector.Tape(case.angles, case.weights, observables, reupload=True)
    with pytest.raises(DataError, match=r"must be of shape \(5, 3\). Got shape \(3, 5\)"):
        case.record(True).gradient(case.upstream.T)
    with pytest.raises(ParameterError, match="threads"):
        statevector.states(case.angles, case.weights, reupload=True, threads=0)
    with pytest.raises(ParameterError, match="threads"):
        statevector.expectations(case.angles, case.weights, case.observables, reupload=True, threads=-1)
