"""The incremental objective: the same trace and the same winner as rebuilding everything, on every kind of data."""

import threading
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import StratifiedKFold

from qmedoid.geometry.groups import FEATURE_KINDS, build_groups, correlation_matrix
from qmedoid.kernels.backend import compiled
from qmedoid.methods.nearest import problem as incremental
from qmedoid.methods.nearest.problem import (
    IncrementalObjective,
    NearestSettings,
    RebuildObjective,
    macro_f1,
    prepare_folds,
)
from qmedoid.metrics.classification import ClassMetrics
from qmedoid.optimize.descent import coordinate_descent

pytestmark = pytest.mark.skipif(compiled("search") is None, reason="the compiled kernel was not built")


class Problem:
    """A random table with everything that an objective and a descent need."""

    def __init__(self, seed, flavour, settings=None, width=None):
        rng = np.random.default_rng(seed)
        self.n_classes = int(rng.integers(2, 5))
        n, group_size = int(rng.integers(5 * self.n_classes, 50)), width or int(rng.integers(1, 4))
        width = width or int(rng.integers(group_size + 1, 6))
        # Two rows of every class to begin with: one of them always stays in training.
        codes = np.concatenate((np.tile(np.arange(self.n_classes), 2), rng.integers(0, self.n_classes, n)))
        X = rng.normal(size=(len(codes), width)) + np.outer(codes, 0.7 * rng.normal(size=width))
        self.X, self.codes = TABLES[flavour](X, rng), codes
        self.settings = settings or NearestSettings(
            kind=str(rng.choice(FEATURE_KINDS)),
            input_scaling=str(rng.choice(["standard", "minmax", "none"])),
            use_angular=bool(rng.random() < 0.8),
            angle=str(rng.choice(["true", "printed"])),
            max_medoid_rows=int(rng.choice([3, 10, 1000])),
        )
        splits = [self._split(rng, tiny=rng.random() < 0.3) for _ in range(rng.choice([1, 2, 5], p=[0.5, 0.3, 0.2]))]
        self.folds = prepare_folds(self.X, codes, splits, self.n_classes, self.settings, rng)
        self.groups = build_groups(correlation_matrix(self.X), group_size=group_size)
        self.alpha = float(rng.choice([0.0, 0.3, 0.5, 1.0]))
        self.multipliers = np.ones(self.n_classes) if rng.random() < 0.5 else rng.uniform(0.5, 2.0, self.n_classes)

    def _split(self, rng, *, tiny):
        train = rng.random(len(self.codes)) < 0.7
        if tiny:  # a class of one training row
            train[self.codes == 0] = False
        train[: self.n_classes] = True
        return np.flatnonzero(train), np.flatnonzero(~train)

    def rebuild(self):
        return RebuildObjective(self.folds, self.settings, alpha=self.alpha, multipliers=self.multipliers)

    def incremental(self):
        return IncrementalObjective(self.folds, self.settings, alpha=self.alpha, multipliers=self.multipliers)

    def descend(self, objective, *, sizes=None, **options):
        sizes = sizes or range(1, min(len(self.groups.members[0]), 3) + 1)
        options = {"candidate_budget": 3, "rng": np.random.default_rng(0)} | options
        return coordinate_descent(objective, self.groups.members, sizes, **options)


def with_constants(X, rng):
    X[:, ::2] = np.round(X[:, ::2])
    X[:, 0] = rng.choice([0.0, 3.0, 1e6])
    return X


TABLES = {
    "continuous": lambda X, _: X,
    "whole numbers": lambda X, _: np.round(X),
    "binary": lambda X, _: (X > 0).astype(float),
    "duplicates": lambda X, rng: X[rng.integers(0, len(X) // 4, len(X))],
    "constants": with_constants,
    "offset": lambda X, rng: X * 1e-3 + rng.choice([1.0, 1e3, 1e6]),
    "outliers": lambda X, rng: X * np.exp(3.0 * rng.normal(size=X.shape)),
}


def assert_same_descent(got, expected):
    assert got.trace == expected.trace
    assert got.records == expected.records


@given(seed=st.integers(0, 2**32 - 1), flavour=st.sampled_from(sorted(TABLES)))
@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_same_trace_as_rebuild(seed, flavour):
    problem = Problem(seed, flavour)
    expected = problem.descend(problem.rebuild())
    assert_same_descent(problem.descend(problem.incremental()), expected)


DATA = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
}


@pytest.mark.parametrize(
    ("kind", "angle", "alpha", "n_folds"),
    [("weighted", "printed", 0.5, 1), ("signed", "true", 0.5, 3), ("unweighted", "true", 1.0, 2)],
)
@pytest.mark.parametrize("name", sorted(DATA))
def test_same_trace_on_real_data(name, kind, angle, alpha, n_folds):
    X, codes = DATA[name]()
    settings = NearestSettings(kind=kind, angle=angle, max_medoid_rows=100)
    splits = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, codes))[:n_folds]
    folds = prepare_folds(X, codes, splits, codes.max() + 1, settings, np.random.default_rng(0))
    groups = build_groups(folds[0].train.correlation, group_size=6, n_anchors=8)
    found = []
    for objective in (RebuildObjective, IncrementalObjective):
        judge = objective(folds, settings, alpha=alpha, multipliers=np.ones(codes.max() + 1))
        found.append(
            coordinate_descent(
                judge, groups.members, [2, 4], max_passes=1, candidate_budget=3, rng=np.random.default_rng(0)
            )
        )
        # The definition is asked in doubtful cases only, and measured data have next to none.
        assert getattr(judge, "n_rebuilt", 0) <= 1
    assert_same_descent(found[1], found[0])
    assert any(step.accepted and step.anchor is not None for step in found[0].trace), "nothing was ever committed"


def one_hot(rng, n_rows, n_columns):
    return np.concatenate([np.eye(4)[rng.integers(0, 4, n_rows)] for _ in range(n_columns)], axis=1)


TIED = {
    "binary": lambda rng: rng.integers(0, 2, (360, 9)).astype(float),
    "sparse": lambda rng: (rng.random((360, 9)) < 0.1).astype(float),
    "one-hot": lambda rng: one_hot(rng, 360, 3),
    "all corners": lambda _: np.array(np.meshgrid(*[[0.0, 1.0]] * 8)).reshape(8, -1).T,
    "repeated rows": lambda rng: np.tile(rng.normal(size=(12, 8)), (30, 1)),
    "repeated but for one column": lambda rng: np.column_stack((one_hot(rng, 360, 2), rng.normal(size=360))),
}


@pytest.mark.parametrize(("target", "kind"), [("of a column", "weighted"), ("random", "signed")])
@pytest.mark.parametrize("flavour", sorted(TIED))
def test_same_trace_where_many_rows_could_be_the_medoid(flavour, target, kind):
    rng = np.random.default_rng(0)
    X = TIED[flavour](rng)
    codes = (X[:, 0] > 0).astype(np.intp) if target == "of a column" else rng.integers(0, 2, len(X))
    settings = NearestSettings(kind=kind)
    split = np.arange(len(X)) % 4 == 0
    splits = [(np.arange(len(X)), np.arange(0, len(X), 3)), (np.flatnonzero(~split), np.flatnonzero(split))]
    folds = prepare_folds(X, codes, splits, 2, settings, np.random.default_rng(0))
    groups = build_groups(folds[0].train.correlation, group_size=4)
    expected, found = (
        coordinate_descent(
            objective(folds, settings, alpha=0.5, multipliers=np.ones(2)), groups.members, [2, 3], max_passes=1,
            rng=np.random.default_rng(0),
        )
        for objective in (RebuildObjective, IncrementalObjective)
    )  # fmt: skip
    assert_same_descent(found, expected)


@pytest.mark.parametrize("flavour", ["continuous", "whole numbers"])
def test_commits_add_up(flavour):
    """After many commits the scores are those of an objective that starts from where it arrived."""
    problem = Problem(7, flavour, NearestSettings(), width=5)
    rng = np.random.default_rng(0)
    width = problem.X.shape[1]
    walking = problem.incremental()
    walking.start(tuple((a,) for a in range(width)))
    for _ in range(40):
        anchor = int(rng.integers(width))
        others = [int(f) for f in rng.permutation(width) if f != anchor]
        walking.commit(anchor, (anchor, *others[: rng.integers(width)]))
    fresh, rebuilt = problem.incremental(), problem.rebuild()
    fresh.start(walking.configuration)
    rebuilt.start(walking.configuration)
    for anchor in range(width):
        subsets = [(anchor, f) for f in range(width) if f != anchor]
        expected = rebuilt.scores(anchor, subsets)
        np.testing.assert_array_equal(walking.scores(anchor, subsets), expected)
        np.testing.assert_array_equal(fresh.scores(anchor, subsets), expected)


@pytest.mark.parametrize("subsets", [[(0, 1)], [(1, 0, 2), (1, 2, 0)], [(2,)], [(3, 2, 1, 0)]])
def test_subsets_may_be_longer_or_shorter_than_the_one_they_replace(subsets):
    problem = Problem(5, "continuous", NearestSettings(kind="multiplicative"), width=4)
    incremental, rebuilt = problem.incremental(), problem.rebuild()
    for objective in (incremental, rebuilt):
        objective.start(((0,), (1,), (2,), (3,)))
    np.testing.assert_array_equal(incremental.scores(1, subsets), rebuilt.scores(1, subsets))


def test_threads_change_nothing(monkeypatch):
    problem = Problem(3, "continuous", NearestSettings(), width=5)
    assert len(problem.folds) > 1
    monkeypatch.setenv("QMEDOID_THREADS", "2")
    one = problem.descend(problem.incremental())
    monkeypatch.setattr(incremental, "_LARGE_FOLD", 1)
    assert_same_descent(problem.descend(problem.incremental()), one)


@pytest.mark.parametrize(("wanted", "expected"), [("1", 0), ("2", 2), ("64", 5)])
def test_large_folds_take_as_many_threads_as_the_environment_allows(wanted, expected, monkeypatch):
    monkeypatch.setenv("QMEDOID_THREADS", wanted)
    monkeypatch.setattr(incremental, "_LARGE_FOLD", 1)
    problem = Problem(3, "continuous", NearestSettings(), width=5)
    folds = (problem.folds * 5)[:5]
    objective = IncrementalObjective(folds, problem.settings, alpha=0.5, multipliers=problem.multipliers)
    before, together, started = set(threading.enumerate()), threading.Barrier(max(expected, 1), timeout=10), set()
    for state in objective._states[:expected]:  # each waits for the others, so that no thread does the work of two
        monkeypatch.setattr(
            state, "confusions",
            lambda *a, f=state.confusions: (together.wait(), started.add(threading.current_thread()), f(*a))[2],
        )  # fmt: skip
    objective.start(problem.groups.first(1))
    assert len(started - before) == expected
    assert set(threading.enumerate()) == before, "none is left behind"


def test_an_interrupted_visit_waits_for_its_threads(monkeypatch):
    """No thread may still be reading when the next call writes; and the objective goes on as if nothing happened."""
    monkeypatch.setenv("QMEDOID_THREADS", "2")
    monkeypatch.setattr(incremental, "_LARGE_FOLD", 1)
    problem = Problem(3, "continuous", NearestSettings(), width=5)
    objective = problem.incremental()
    score = objective.start(problem.groups.first(1))
    first, second = objective._states[:2]
    begun, done = threading.Event(), threading.Event()

    def slow(*_):
        begun.set()
        time.sleep(0.2)
        done.set()

    def interrupted(*_):
        begun.wait(10)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(first, "confusions", interrupted)
        patch.setattr(second, "confusions", slow)
        with pytest.raises(KeyboardInterrupt):
            objective.start(problem.groups.first(1))
    assert done.is_set()
    assert objective.start(problem.groups.first(1)) == score


@pytest.mark.parametrize("stage", ["fill_column", "update_squared"])
def test_an_interrupted_commit_is_caught_up_with(stage, monkeypatch):
    """Wherever Ctrl-C falls, the next call answers for the configuration that was committed."""
    problem = Problem(3, "continuous", NearestSettings(), width=5)
    width = problem.X.shape[1]
    objective = problem.incremental()
    objective.start(problem.groups.first(1))
    search = objective._states[1].search
    kernel = search.kernel

    class Interrupting:
        def __getattr__(self, name):
            if name == stage:
                raise KeyboardInterrupt
            return getattr(kernel, name)

    monkeypatch.setattr(search, "kernel", Interrupting())
    anchor = problem.groups.anchors[0]
    subset = (anchor, *(f for f in range(width) if f != anchor))
    subsets = [(problem.groups.anchors[1], f) for f in range(width)]
    objective.commit(0, subset)
    with pytest.raises(KeyboardInterrupt):
        objective.scores(1, subsets)
    monkeypatch.undo()
    expected = problem.rebuild()
    expected.start((subset, *problem.groups.first(1)[1:]))
    assert objective.configuration == expected.configuration
    np.testing.assert_array_equal(objective.scores(1, subsets), expected.scores(1, subsets))
    kept = search.squared.copy()
    kernel.build_squared(search)
    np.testing.assert_allclose(kept[:-1], search.squared[:-1], atol=1e-12)  # there is one spare number


def test_an_interrupted_descent_returns_what_it_found(monkeypatch):
    problem = Problem(3, "continuous", NearestSettings(), width=5)
    objective = problem.incremental()
    whole = problem.descend(objective)
    scores, calls = objective.scores, []

    def interrupted(anchor, subsets):
        calls.append(anchor)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return scores(anchor, subsets)

    monkeypatch.setattr(objective, "scores", interrupted)
    cut = problem.descend(objective)
    assert cut.interrupted
    assert cut.trace == whole.trace[: len(cut.trace)]
    monkeypatch.undo()
    assert_same_descent(problem.descend(objective), whole)


def test_ties_by_rounding_are_left_to_the_definition():
    """A record half way between the medoids: which way it falls is the rounding of whoever computes it."""
    rng = np.random.default_rng(0)
    thirds = np.array([[0.0, 1.0], [1 / 3, 1.0], [2 / 3, 1.0], [1.0, 1.0]])
    X = np.vstack((thirds, thirds[::-1] + np.array([2.0, 0.0]), [[1.5, 1.0]] * 3, rng.normal(size=(4, 2))))
    codes = np.array([0] * 4 + [1] * 4 + [0, 1, 0] + [0, 1, 0, 1])
    settings = NearestSettings(kind="unweighted", use_angular=False)
    folds = prepare_folds(X, codes, [(np.arange(8), np.arange(8, 15))], 2, settings, rng)
    options = {"alpha": 1.0, "multipliers": np.ones(2)}
    objective, expected = (
        IncrementalObjective(folds, settings, **options),
        RebuildObjective(folds, settings, **options),
    )
    assert objective.start(((0,), (1,))) == expected.start(((0,), (1,)))
    for subset in ((0,), (0, 1)):
        np.testing.assert_array_equal(objective.scores(0, [subset]), expected.scores(0, [subset]))
    assert objective.n_rebuilt > 0


def test_equal_medoids_tie_exactly():
    """Classes with the same rows tie everywhere; that is no doubt, and the first class wins."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(9, 3))
    X, codes = np.vstack((rows, rows, rng.normal(size=(10, 3)))), np.repeat([0, 1, 0, 1], [9, 9, 5, 5])
    settings = NearestSettings()
    folds = prepare_folds(X, codes, [(np.arange(18), np.arange(18, 28))], 2, settings, rng)
    objective = IncrementalObjective(folds, settings, alpha=0.5, multipliers=np.ones(2))
    score = objective.start(((0, 1), (1, 2), (2, 0)))
    assert score == ClassMetrics(np.array([[5.0, 0.0], [5.0, 0.0]])).macro_f1
    assert objective.n_rebuilt == 0


@pytest.mark.parametrize("n_classes", [2, 3, 7, 8, 9, 17])
def test_macro_f1_equals_the_metric_to_the_last_bit(n_classes):
    rng = np.random.default_rng(n_classes)
    stack = rng.integers(0, 50, size=(40, n_classes, n_classes))
    stack[0] = 0
    stack[1, :, 0] = stack[1, 0] = 0
    expected = [ClassMetrics(matrix.astype(float)).macro_f1 for matrix in stack]
    np.testing.assert_array_equal(macro_f1(stack), expected)
    np.testing.assert_array_equal(macro_f1(stack[:1]), expected[:1])
