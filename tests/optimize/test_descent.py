"""Coordinate descent: the same trace as algorithm 7 read aloud, and nothing lost when it is cut short."""

import itertools
import time
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import ParameterError
from qmedoid.optimize.descent import (
    DescentResult,
    Record,
    candidate_subsets,
    coordinate_descent,
)

MEMBERS = ((0, 3, 1, 4), (1, 2, 0, 3), (4, 0, 2, 1))


def toy_score(configuration, salt=0, levels=64):
    """A number that depends on nothing but the sets chosen; few levels make many ties."""
    sets = tuple(tuple(sorted(subset)) for subset in configuration)
    return zlib.crc32(repr((salt, sets)).encode()) % levels / levels


class ToyObjective:
    """A plain objective that can be interrupted: `interrupt_at` numbers the calls of any kind."""

    def __init__(self, salt=0, levels=64, interrupt_at=None):
        self.salt, self.levels, self.interrupt_at = salt, levels, interrupt_at
        self.calls, self.current = 0, None

    def _count(self):
        self.calls += 1
        if self.calls == self.interrupt_at:
            raise KeyboardInterrupt

    def start(self, configuration):
        self._count()
        self.current = list(configuration)
        return toy_score(self.current, self.salt, self.levels)

    def scores(self, anchor, subsets):
        self._count()
        return np.array([
            toy_score([*self.current[:anchor], subset, *self.current[anchor + 1 :]], self.salt, self.levels)
            for subset in subsets
        ])  # fmt: skip

    def commit(self, anchor, subset):
        self._count()
        self.current[anchor] = subset


def algorithm_7(score, members, sizes, max_passes, draw=None):
    """Coordinate descent with progressive initialization, line by line as printed.

    `draw` lists the candidates of a group and a size; all of them by default.
    """
    trace, records, previous = [], [], None
    for k in sizes:
        if previous is None:
            kappa = [tuple(group[:k]) for group in members]
        else:
            kappa = []
            for subset, group in zip(previous, members, strict=True):
                padded = list(subset)
                for f in group:
                    if len(padded) < k and f not in padded:
                        padded.append(f)
                kappa.append(tuple(padded))
        best = score(kappa)
        trace.append((k, 0, None, None, best, True))
        for p in range(1, max_passes + 1):
            improved = False
            for a, group in enumerate(members):
                candidates = (
                    [(group[0], *rest) for rest in itertools.combinations(group[1:], min(k, len(group)) - 1)]
                    if draw is None
                    else draw(group, k)
                )
                chosen, chosen_score, seen = kappa[a], best, []
                for subset in candidates:
                    if set(subset) == set(kappa[a]):
                        continue
                    value = score([*kappa[:a], subset, *kappa[a + 1 :]])
                    seen.append([k, p, a, subset, value, False])
                    if value > chosen_score:
                        chosen, chosen_score = subset, value
                for step in seen:
                    step[5] = step[3] == chosen
                trace.extend(map(tuple, seen))
                if chosen != kappa[a]:
                    kappa[a], best, improved = chosen, chosen_score, True
            if not improved:
                break
        records.append(Record(k, tuple(kappa), best))
        previous = kappa
    return trace, records


def descend(objective, members=MEMBERS, sizes=(2, 3, 4), max_passes=3, seed=0, **options):
    return coordinate_descent(
        objective, members, sizes, max_passes=max_passes, rng=np.random.default_rng(seed), **options
    )  # fmt: skip


def plain(trace):
    return [(s.size, s.sweep, s.anchor, s.subset, s.score, s.accepted) for s in trace]


# --- the algorithm ----------------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    columns = draw(st.integers(1, 6))
    n_anchors = draw(st.integers(1, columns))
    anchors = draw(st.permutations(range(columns)))[:n_anchors]
    group_size = draw(st.integers(1, columns))
    members = []
    for anchor in anchors:
        others = draw(st.permutations([f for f in range(columns) if f != anchor]))
        members.append((anchor, *others[: group_size - 1]))
    first = draw(st.integers(1, group_size))
    return tuple(members), range(first, draw(st.integers(first, group_size)) + 1)


@given(problems(), st.integers(0, 4), st.integers(0, 10**6), st.sampled_from([2, 8, 10**6]))
@settings(max_examples=120, deadline=None)
def test_trace_and_records_are_those_of_the_printed_algorithm(problem, max_passes, salt, levels):
    members, sizes = problem
    found = descend(ToyObjective(salt, levels), members, sizes, max_passes)
    trace, records = algorithm_7(lambda kappa: toy_score(kappa, salt, levels), members, sizes, max_passes)
    assert plain(found.trace) == trace
    assert found.records == records
    assert not found.interrupted


@given(problems(), st.integers(0, 10**6), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_with_a_budget_it_is_the_printed_algorithm_over_the_drawn_candidates(problem, seed, budget):
    members, sizes = problem
    rng = np.random.default_rng(seed)
    found = descend(ToyObjective(seed), members, sizes, 2, seed=seed, candidate_budget=budget)
    trace, records = algorithm_7(
        lambda kappa: toy_score(kappa, seed),
        members,
        sizes,
        2,
        draw=lambda group, k: candidate_subsets(group, k, budget=budget, rng=rng),
    )
    assert plain(found.trace) == trace
    assert found.records == records


def test_next_size_keeps_a_subset_and_pads_it_with_the_next_members():
    """Fact 10."""

    class Wants(ToyObjective):
        """Likes column 4, the last of its group."""

        def start(self, configuration):
            self.current = list(configuration)
            return self._value(configuration)

        def scores(self, _anchor, subsets):
            return np.array([self._value([subset]) for subset in subsets])

        def _value(self, configuration):
            return float(4 in configuration[0])

    found = descend(Wants(), members=((0, 3, 1, 2, 4),), sizes=(2, 3, 4))
    assert [record.configuration for record in found.records] == [((0, 4),), ((0, 4, 3),), ((0, 4, 3, 1),)]


def test_of_equal_scores_the_smaller_size_ranks_first():
    """Fact 12."""
    records = [Record(k, (), score) for k, score in ((2, 0.5), (3, 0.9), (4, 0.9), (5, 0.7))]
    assert [r.size for r in DescentResult(records).ranked()] == [3, 4, 5, 2]
    assert [r.size for r in DescentResult(records[::-1]).ranked()] == [3, 4, 5, 2]


def test_empty_range_of_sizes_is_refused():
    with pytest.raises(ParameterError, match="range of subset sizes is empty: give at least one size k >= 1"):
        descend(ToyObjective(), sizes=())


# --- cut short --------------------------------------------------------------------------------------------------


def consistent(found: DescentResult, full: DescentResult, salt: int) -> None:
    """What a search that was cut short must still hold to."""
    assert found.interrupted
    assert found.trace == full.trace[: len(found.trace)]
    assert found.records[:-1] == full.records[: len(found.records) - 1]
    for record in found.records:
        assert record.score == toy_score(record.configuration, salt)
        assert record.score == max(step.score for step in found.trace if step.size == record.size and step.accepted)


@pytest.mark.parametrize("salt", range(4))
def test_keyboard_interrupt_anywhere_keeps_the_best_so_far(salt):
    complete = ToyObjective(salt)
    full = descend(complete)
    assert sum(step.accepted for step in full.trace) > 3  # the starts, and subsets that were taken
    with pytest.raises(KeyboardInterrupt):  # nothing has been scored
        descend(ToyObjective(salt, interrupt_at=1))
    for call in range(2, complete.calls + 1):
        consistent(descend(ToyObjective(salt, interrupt_at=call)), full, salt)


@pytest.mark.parametrize("salt", range(3))
def test_callback_that_asks_to_stop_ends_after_its_visit(salt):
    visits = []
    full = descend(ToyObjective(salt), progress=lambda *visit: visits.append(visit))
    for number in range(1, len(visits) + 1):
        seen = []

        def stop(*visit, seen=seen, number=number):
            seen.append(visit)
            return len(seen) == number

        found = descend(ToyObjective(salt), progress=stop)
        consistent(found, full, salt)
        assert seen == visits[:number]
        assert (found.records[-1].size, found.records[-1].score) == seen[-1][::2]


# --- candidates -------------------------------------------------------------------------------------------------


@given(st.integers(2, 9), st.integers(2, 6), st.integers(1, 40), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_budget_draws_distinct_subsets_that_depend_on_the_seed_alone(n, size, budget, seed):
    members = tuple(range(n))

    def drawn():
        return candidate_subsets(members, size, budget=budget, rng=np.random.default_rng(seed))

    everything = candidate_subsets(members, size, budget=None, rng=np.random.default_rng(0))
    assert drawn() == drawn()
    assert len(drawn()) == len({frozenset(c) for c in drawn()}) == min(budget, len(everything))
    assert set(drawn()) <= set(everything)
    assert drawn() == sorted(drawn(), key=everything.index)  # in lexicographic order


def test_draws_are_uniform():
    members, rng = tuple(range(6)), np.random.default_rng(0)
    counts = dict.fromkeys(candidate_subsets(members, 3, budget=None, rng=rng), 0)
    for _ in range(2000):
        for subset in candidate_subsets(members, 3, budget=3, rng=rng):
            counts[subset] += 1
    observed = np.array(list(counts.values()))
    assert ((observed - 600) ** 2 / 600).sum() < 30  # 10 cells; chi-square above 30 has a chance below 1e-3


@pytest.mark.parametrize(("n", "size"), [(200, 10), (200, 100), (400, 200)])
def test_many_that_are_not_drawn_are_never_listed(n, size):
    started = time.perf_counter()
    drawn = candidate_subsets(range(n), size, budget=50, rng=np.random.default_rng(0))
    assert time.perf_counter() - started < 5
    assert len(set(drawn)) == 50
    assert all(c[0] == 0 and len(set(c)) == size and list(c) == sorted(c) for c in drawn)
    # Ranks beyond machine integers are drawn over their whole range, not from its beginning.
    assert len({c[1:4] for c in drawn}) > 3


def test_members_named_twice_are_one_member():
    assert candidate_subsets((0, 2, 2, 1, 0), 2, budget=None, rng=np.random.default_rng(0)) == [(0, 2), (0, 1)]
