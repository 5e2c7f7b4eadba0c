"""The backends give what the closed form gives: exactly by statevector, up to binomial noise by sampler."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

pytest.importorskip("qiskit")

from qiskit.primitives import StatevectorSampler
from samplers import CountingSampler
from scipy import stats
from sklearn.datasets import load_iris

from qmedoid import EvidenceClassifier
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.overlap import SwapTestFunction, compact_swap_test, sample_overlap
from qmedoid.methods.evidence.part import DISTANCE, NEAR, SQUARE
from qmedoid.methods.part import measured_squares
from qmedoid.quantum import MeasurementSettings, SamplerSwapTest, StatevectorSwapTest

# Unit vectors with cosine 1/5, so s = 0.4 and p0 = 0.7: four standard deviations from the clip at 100 shots.
X_ONE, Y_ONE, S_ONE = np.array([1.0, 0.0]), np.array([0.2, np.sqrt(0.96)]), 0.4


def aer_sampler(seed):
    return pytest.importorskip("qiskit_aer.primitives").SamplerV2(seed=seed)


def repeated(n):
    return np.repeat(X_ONE[None], n, axis=0)


def with_zero_rows(seed=0):
    X, Y = np.random.default_rng(seed).normal(size=(2, 3, 3))
    X[1] = 0.0
    Y[2] = 0.0
    return X, Y


# --- exact ----------------------------------------------------------------------------------------------------------


def test_statevector_gives_the_closed_form():
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(4, 6)), rng.normal(size=(3, 6))
    circuit, closed = StatevectorSwapTest()(X, Y), compact_swap_test(X, Y)
    # Random vectors in general position: neither s nor the cosine is near an end, so errors stay of the order 1e-15.
    for got, want in zip(circuit, closed, strict=True):
        assert got.shape == (4, 3)
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("kind", ["statevector", "sampler"])
def test_pairs_with_a_zero_vector_take_the_classical_values(kind):
    X, Y = with_zero_rows()
    backend = StatevectorSwapTest() if kind == "statevector" else SamplerSwapTest(shots=50, seed=1)
    closed = compact_swap_test(X, Y)
    zero = ~(X.any(axis=1)[:, None] & Y.any(axis=1)[None, :])
    assert zero.sum() == 5
    for got, want in zip(backend(X, Y), closed, strict=True):
        np.testing.assert_array_equal(got[zero], want[zero])
        assert not np.array_equal(got[~zero], want[~zero])


# --- shots ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("circuit", ["interference", "compact_swap"])
@pytest.mark.parametrize(("shots", "draws"), [(100, 300), (10_000, 40), (100_000, 6)])
def test_error_falls_as_one_over_the_root_of_the_shots(circuit, shots, draws):
    drawn = SamplerSwapTest(shots=shots, seed=shots, circuit=circuit)(repeated(draws), Y_ONE).overlap[:, 0]
    variance = 1 - S_ONE**2 if circuit == "compact_swap" else S_ONE * (1 - S_ONE)
    standard = (drawn - S_ONE) / np.sqrt(variance / shots)
    # A sum of squares of that many standard errors lies outside these bounds once in 10⁵ times.
    low, high = stats.chi2.ppf([0.5e-5, 1 - 0.5e-5], draws)
    assert low < np.sum(standard**2) < high
    assert abs(standard.mean()) < 4.5 / np.sqrt(draws)


def test_backends_and_plans_take_the_same_circuit_unless_they_are_asked():
    assert SamplerSwapTest(seed=0).circuit == StatevectorSwapTest().circuit == MeasurementSettings().form.name


@pytest.mark.parametrize("circuit", ["interference", "compact_swap"])
def test_squares_of_small_distances_are_right_on_average(circuit):
    """Cut off at 0, squared distances by a SWAP test would be almost twice too large here."""
    s, draws = 0.01, 1500
    x, y = np.array([[1.0, 0.0]]), np.array([[1.0 - 2 * s, 2 * np.sqrt(s - s * s)]])
    backend = SamplerSwapTest(shots=1000, seed=1, circuit=circuit, circuits_per_job=draws)
    rows, exact = np.repeat(x, draws, axis=0), compact_swap_test(x, y).distance[0, 0] ** 2
    squares, distances = measured_squares(backend, rows, y)[:, 0], backend(rows, y).distance[:, 0]
    variance = 1 - s**2 if circuit == "compact_swap" else s * (1 - s)
    error = 4.0 * np.sqrt(variance / 1000)  # of one draw: Z = 2
    assert abs(squares.mean() - exact) < 4.0 * error / np.sqrt(draws)
    if circuit == "compact_swap":
        assert 0.3 < np.mean(distances == 0) < 0.45
        assert np.mean(distances**2) > 1.6 * exact
    else:
        assert (distances > 0).all()


def test_terms_of_squared_distances_are_not_cut_off():
    X, y = load_iris(return_X_y=True)
    (part,) = EvidenceClassifier(n_medoids=6, n_neighbors=0, random_state=0).fit(X[::2], y[::2]).model_.parts
    squared, small = part.terms.channel == SQUARE, -0.25
    assert squared.any()
    found = part.evidence(X[:3], lambda rows, medoids: np.full((len(rows), len(medoids)), small))
    np.testing.assert_array_equal(found[:, squared], small)
    assert (found[:, part.terms.channel == DISTANCE] == 0).all()
    assert (found[:, part.terms.channel == NEAR] == 1).all()
    exact = part.evidence(X, partial(measured_squares, compact_swap_test))
    np.testing.assert_allclose(exact, part.evidence(X), rtol=0, atol=1e-10)


def draws_of(kind, n, shots):
    if kind == "overlay":
        return sample_overlap(np.full(n, S_ONE), shots, np.random.default_rng(8))
    chosen = {"sampler": None} if kind == "statevector sampler" else {"sampler": aer_sampler(8)}
    seed = 8 if kind == "statevector sampler" else None
    # One job: Aer starts afresh from its seed in the next.
    backend = SamplerSwapTest(shots=shots, seed=seed, circuits_per_job=n, circuit="compact_swap", **chosen)
    return backend(repeated(n), Y_ONE).overlap[:, 0]


@pytest.mark.parametrize("kind", ["overlay", "statevector sampler", "aer sampler"])
def test_all_ways_to_draw_have_the_binomial_distribution(kind):
    n, shots = 400, 100
    zeros = np.round((draws_of(kind, n, shots) + 1) / 2 * shots).astype(int)
    # Eight bins of about equal chance, each expected to hold some fifty draws.
    edges = np.unique(stats.binom.ppf(np.arange(1, 8) / 8, shots, (1 + S_ONE) / 2)).astype(int)
    chances = np.diff([0.0, *stats.binom.cdf(edges, shots, (1 + S_ONE) / 2), 1.0])
    observed = np.bincount(np.searchsorted(edges, zeros), minlength=len(chances))
    assert len(chances) == 8
    assert stats.chisquare(observed, chances * n).pvalue > 1e-4


def test_generator_goes_on_from_call_to_call():
    """However the pairs are batched."""
    backend = SamplerSwapTest(shots=200, seed=np.random.default_rng(5), circuits_per_job=3)
    first, second = backend(repeated(5), Y_ONE), backend(repeated(5), Y_ONE)
    assert not np.array_equal(first.overlap, second.overlap)
    whole = SamplerSwapTest(shots=200, seed=5)(repeated(10), Y_ONE).overlap
    np.testing.assert_array_equal(np.concatenate([first.overlap, second.overlap]), whole)


def test_jobs_hold_a_number_of_pairs():
    sampler = CountingSampler()
    SamplerSwapTest(sampler=sampler, shots=10, circuits_per_job=3, circuit="compact_swap")(*with_zero_rows(1))
    # Two rows of each side are not zero: four pairs. Three entries take a psi register of three qubits: eight angles.
    assert sampler.jobs == [([(3, 8)], 10), ([(1, 8)], 10)]
    result = SamplerSwapTest(sampler=sampler)(np.zeros((2, 3)), np.ones((4, 3)))  # nothing that can be prepared
    assert len(sampler.jobs) == 2
    np.testing.assert_array_equal(result.overlap, np.full((2, 4), 0.5))


# --- what is refused ------------------------------------------------------------------------------------------------


def test_backends_are_swap_test_functions_and_refuse_what_the_closed_form_refuses():
    backends: list[SwapTestFunction] = [StatevectorSwapTest(), SamplerSwapTest(shots=10, seed=0)]
    for backend in backends:
        with pytest.raises(DataError, match="X has 3 columns and Y has 2"):
            backend(np.ones((1, 3)), np.ones((1, 2)))
        with pytest.raises(DataError, match="X holds nan at position 0, 1"):
            backend([[1.0, np.nan]], [[1.0, 1.0]])


@pytest.mark.parametrize("name", ["shots", "circuits_per_job"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, None])
def test_counts_that_are_no_positive_whole_number(name, value):
    match = rf"'{name}' parameter of SamplerSwapTest must be an int >= 1\. Got {value!r} instead"
    with pytest.raises(ParameterError, match=match):
        SamplerSwapTest(seed=0, **{name: value})


def test_unknown_circuit():
    with pytest.raises(ParameterError, match="'circuit' parameter must be one of"):
        SamplerSwapTest(circuit="swap", seed=1)


def test_one_source_of_randomness_and_no_more():
    with pytest.raises(ParameterError, match="default sampler needs a 'seed'"):
        SamplerSwapTest()
    with pytest.raises(ParameterError, match="give the sampler its own seed"):
        SamplerSwapTest(sampler=StatevectorSampler(), seed=1)


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["SamplerSwapTest", "as_device", "make_plan", "export_circuit", "RunFolder"])
@pytest.mark.parametrize("missing", ["qiskit", "qiskit_aer"])
def test_without_a_package_the_message_names_the_extra(name, missing):
    if missing == "qiskit_aer" and name in ("SamplerSwapTest", "export_circuit"):
        return  # they need Qiskit alone
    done = run_python(f"import sys; sys.modules[{missing!r}] = None\nfrom qmedoid.quantum import {name}")
    assert f"MissingExtraError: qmedoid.quantum.{name} needs Qiskit" in done.stderr
    assert 'pip install "qmedoid[quantum]"' in done.stderr


def test_another_missing_module_is_not_blamed_on_qiskit():
    missing = 'sys.modules["qmedoid.quantum.circuits.compact_swap"] = None'
    done = run_python(f"import sys; {missing}; from qmedoid.quantum import SamplerSwapTest")
    assert "ModuleNotFoundError: import of qmedoid.quantum.circuits.compact_swap" in done.stderr
    assert "qmedoid[quantum]" not in done.stderr


@pytest.mark.parametrize("circuit", ["compact_swap", "interference"])
def test_both_circuits_measure_the_same_overlaps(circuit):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(4, 5)), rng.normal(size=(3, 5))
    exact = compact_swap_test(X, Y)
    by_state = StatevectorSwapTest(circuit=circuit)(X, Y)
    np.testing.assert_allclose(by_state.overlap, exact.overlap, rtol=0, atol=1e-13)
    by_shots = SamplerSwapTest(circuit=circuit, shots=4096, seed=1)(X, Y).overlap
    s = exact.overlap
    errors = np.sqrt((1 - s**2 if circuit == "compact_swap" else s * (1 - s)) / 4096)
    assert np.all(np.abs(by_shots - s) < 4.5 * errors)
