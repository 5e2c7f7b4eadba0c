"""Read-outs (algorithm 17): observables, scores, their gradients, and shots."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import ParameterError
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.variational.readout import (
    FLOOR,
    READOUT_KINDS,
    DirectReadout,
    ParityReadout,
    StringReadout,
    make_readout,
)

SEEDS = st.integers(0, 2**32 - 1)


def random_distributions(n_qubits, seed, rows=4):
    return np.random.default_rng(seed).dirichlet(np.ones(2**n_qubits), size=rows)


def class_probabilities(readout, distributions, parameters=None):
    parameters = np.zeros(readout.n_parameters) if parameters is None else parameters
    return np.exp(log_softmax(readout.scores(distributions @ readout.observables.T, parameters)))


# --- the printed read-outs ------------------------------------------------------------------------------------------


@given(st.integers(1, 7), SEEDS)
@settings(max_examples=40, deadline=None)
def test_parity_adds_up_even_and_odd_basis_states(n_qubits, seed):
    p = random_distributions(n_qubits, seed)
    odd = np.array([bin(s).count("1") % 2 for s in range(2**n_qubits)], dtype=bool)
    want = np.stack([p[:, ~odd].sum(axis=1), p[:, odd].sum(axis=1)], axis=1)
    np.testing.assert_allclose(class_probabilities(ParityReadout(n_qubits, 2), p), want, rtol=0, atol=1e-12)


@given(st.integers(1, 5), st.integers(2, 32), SEEDS)
@settings(max_examples=40, deadline=None)
def test_direct_renormalizes_the_first_basis_states(n_qubits, n_classes, seed):
    n_classes = min(n_classes, 2**n_qubits)
    p = random_distributions(n_qubits, seed)
    want = p[:, :n_classes] / p[:, :n_classes].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(class_probabilities(DirectReadout(n_qubits, n_classes), p), want, rtol=0, atol=1e-12)


def test_direct_gives_equal_probabilities_where_no_class_state_is_ever_measured():
    """Fact 17: the printed division would be 0/0. Scores are flat there, so no gradient is infinite either."""
    readout = DirectReadout(2, 3)
    never = np.array([[0.0, 0.0, 0.0, 1.0], [FLOOR / 2, 0.0, FLOOR / 4, 1.0]])
    np.testing.assert_allclose(class_probabilities(readout, never), np.full((2, 3), 1 / 3), rtol=1e-15)
    by_expectations, by_parameters = readout.gradient(never[:, :3], np.zeros(0), np.ones((2, 3)))
    np.testing.assert_array_equal(by_expectations, 0.0)
    assert by_parameters.shape == (0,)


# --- strings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_qubits", range(1, 7))
def test_strings_are_singles_pairs_and_all(n_qubits):
    readout = StringReadout(n_qubits, 2)
    pairs = list(combinations(range(n_qubits), 2))
    want = [(q,) for q in range(n_qubits)] + pairs + ([tuple(range(n_qubits))] if n_qubits > 2 else [])
    assert list(readout.strings) == want
    assert len(set(readout.strings)) == len(want)
    z = 1.0 - 2.0 * (np.arange(2**n_qubits)[:, None] >> np.arange(n_qubits) & 1)
    np.testing.assert_array_equal(readout.observables, [z[:, list(string)].prod(axis=1) for string in want])


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_scores_are_a_bias_and_weighted_strings(n_classes):
    readout = StringReadout(3, n_classes)
    rng = np.random.default_rng(0)
    expectations = rng.uniform(-1, 1, (6, len(readout.strings)))
    outputs = 1 if n_classes == 2 else n_classes
    table = rng.normal(size=(outputs, 1 + len(readout.strings)))
    assert readout.n_parameters == table.size
    want = np.array([[row[0] + row[1:] @ e for row in table] for e in expectations])
    if n_classes == 2:
        want = np.column_stack([np.zeros(6), want])
    np.testing.assert_allclose(readout.scores(expectations, table.ravel()), want, rtol=1e-13)


# --- gradients ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "n_classes"), [("parity", 2), ("direct", 2), ("direct", 3), ("strings", 2), ("strings", 3)]
)
def test_gradients_are_central_differences(kind, n_classes):
    readout = make_readout(kind, 3, n_classes)
    rng = np.random.default_rng(1)
    expectations = random_distributions(3, 1) @ readout.observables.T
    parameters, upstream = rng.normal(size=readout.n_parameters), rng.normal(size=(4, n_classes))
    got = readout.gradient(expectations, parameters, upstream)

    def loss(e, p):
        return np.sum(upstream * readout.scores(e, p))

    for values, gradient, at in (
        (expectations, got[0], lambda e: loss(e, parameters)),
        (parameters, got[1], lambda p: loss(expectations, p)),
    ):
        assert gradient.shape == values.shape
        for index in np.ndindex(values.shape):
            step = np.zeros_like(values)
            step[index] = 1e-6
            assert gradient[index] == pytest.approx((at(values + step) - at(values - step)) / 2e-6, rel=1e-7, abs=1e-7)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [3, 4])
def test_parity_is_for_two_classes(n_classes):
    with pytest.raises(ParameterError, match=f"for 2 classes, and there are {n_classes}: use readout='strings' or"):
        make_readout("parity", 3, n_classes)


@pytest.mark.parametrize(("n_classes", "kind"), [(2, ParityReadout), (3, DirectReadout), (8, DirectReadout)])
def test_printed_is_parity_for_two_classes_and_direct_for_more(n_classes, kind):
    """Algorithm 17: parity where there are two classes, else direct."""
    assert type(make_readout("printed", 3, n_classes)) is kind


@pytest.mark.parametrize(("n_classes", "needed"), [(5, 3), (8, 3), (9, 4)])
def test_direct_needs_a_basis_state_per_class(n_classes, needed):
    match = f"2 qubits have 4, and there are {n_classes} classes. Use at least {needed} qubits, or readout='strings'"
    with pytest.raises(ParameterError, match=match):
        make_readout("direct", 2, n_classes)
    assert make_readout("direct", needed, n_classes).observables.shape == (n_classes, 2**needed)


def test_unknown_read_out():
    match = r"must be one of \['strings', 'parity', 'direct', 'printed'\]\. Got 'both' instead"
    with pytest.raises(ParameterError, match=match):
        make_readout("both", 2, 2)


@pytest.mark.parametrize("kind", READOUT_KINDS)
def test_one_class_is_refused(kind):
    with pytest.raises(ParameterError, match="at least 2 classes"):
        make_readout(kind, 2, 1)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_training_begins_at_the_shares_of_the_classes(n_classes):
    """Where the circuit says nothing yet, the likeliest class is the most frequent, by just its share."""
    readout = make_readout("strings", 2, n_classes)
    shares = np.random.default_rng(n_classes).dirichlet(np.ones(n_classes))
    begun = readout.start(np.ones(readout.n_parameters), shares)
    silent = np.zeros((1, len(readout.observables)))
    np.testing.assert_allclose(np.exp(log_softmax(readout.scores(silent, begun)))[0], shares)
