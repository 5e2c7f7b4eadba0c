"""The evidence kernel: term by term in plain loops, compiled, and its NumPy twin, all give the same numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

from qmedoid.kernels import evidence

pytest.importorskip("qmedoid.kernels._evidence", reason="the compiled kernel was not built")

BOTH = pytest.mark.usefixtures("backend")
CLIP, LARGEST = 8.0, 1e150
SQUARE, DISTANCE, NEAR = 0, 1, 2


def make_model(seed, *, n_columns=9, n_classes=2, n_medoids=11, n_terms=60):
    """Parts of a model with groups of all sizes, terms that look at the same distance, and terms without weight."""
    rng = np.random.default_rng(seed)
    knots = [np.sort(rng.choice(np.linspace(-3, 3, 400), rng.integers(1, 60), replace=False)) for _ in range(n_columns)]
    marks = [np.sort(rng.normal(size=len(values))) for values in knots]
    groups = [(range(n_columns), np.ones(n_columns), True)]
    for size in [1, 1, 1, 2, 2, 3, 4, 5, 7]:
        columns = rng.choice(n_columns - 1, min(size, n_columns - 1), replace=False)
        groups.append((columns.tolist(), rng.uniform(0.5, 2.0, size=len(columns)), bool(rng.integers(2))))
    n_outputs = 1 if n_classes == 2 else n_classes
    weights = rng.normal(size=(n_terms, n_outputs)) * (rng.random((n_terms, 1)) < 0.9)
    return SimpleNamespace(
        rank_offsets=np.concatenate([[0], np.cumsum([len(values) for values in knots])]),
        rank_values=np.concatenate(knots),
        rank_scores=np.concatenate(marks),
        center=rng.normal(size=n_columns),
        scale=rng.uniform(0.2, 2.0, size=n_columns),
        clip=CLIP,
        largest=LARGEST,
        medoids=np.round(rng.normal(size=(n_medoids, n_columns)), 1),
        medoid_classes=rng.permutation(np.arange(n_medoids) % n_classes),
        n_classes=n_classes,
        column_weights=np.append(np.ones(n_columns - 2), [0.3, 0.0]),
        groups=groups[1:] if seed % 2 else groups,
        term_group=rng.integers(len(groups) - seed % 2, size=n_terms),
        term_medoid=rng.integers(n_medoids, size=n_terms),
        term_channel=rng.integers(3, size=n_terms),
        term_length=rng.choice([0.3, 1.0, 4.0], size=n_terms),
        term_center=rng.normal(size=n_terms),
        weights=weights,
        intercepts=rng.normal(size=n_outputs),
    )


def plan_of(model):
    groups = [evidence.Group(tuple(columns), weights, by_rank) for columns, weights, by_rank in model.groups]
    return evidence.make_plan(**vars(model) | {"groups": groups})


def outputs_of(table, plan):
    return evidence.measure(table, plan, channels=False).scores


def scaled(model, X, column, by_rank):
    if not by_rank:
        return np.clip((X[:, column] - model.center[column]) / model.scale[column], -CLIP, CLIP)
    knots = slice(model.rank_offsets[column], model.rank_offsets[column + 1])
    return np.interp(X[:, column], model.rank_values[knots], model.rank_scores[knots])


def distances(model, X, medoid, columns, weights, by_rank):
    """Distance of every row to one medoid."""
    own = model.medoids[[medoid]]
    squares = [
        w * (scaled(model, X, column, by_rank) - scaled(model, own, column, by_rank)) ** 2
        for column, w in zip(columns, weights, strict=True)
    ]
    return np.sqrt(np.sum(squares, axis=0))


def by_definition(model, X):
    """Outputs term by term, and the sum of the sizes of what is added."""
    total, sizes = np.tile(model.intercepts, (len(X), 1)), np.zeros((len(X), len(model.intercepts)))
    for term, weight in enumerate(model.weights):
        distance = distances(model, X, model.term_medoid[term], *model.groups[model.term_group[term]])
        values = [distance**2, distance, np.exp(-distance / model.term_length[term])][model.term_channel[term]]
        added = (values - model.term_center[term])[:, None] * weight
        total += added
        sizes += np.abs(added)
    return total, sizes


def rows_for(model, n=150, seed=5):
    X = np.random.default_rng(seed).normal(scale=2.0, size=(n, model.medoids.shape[1]))
    X[: len(model.medoids)] = model.medoids
    X[40:50] *= 1e6
    return X


@BOTH
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_outputs_are_the_sum_of_their_terms(seed, n_classes):
    model = make_model(seed, n_classes=n_classes)
    X = rows_for(model)
    expected, sizes = by_definition(model, X)
    assert np.all(np.abs(outputs_of(X, plan_of(model)) - expected) <= 1e-12 * sizes)


@BOTH
def test_nearest_medoids_distances_and_angles():
    for seed, n_classes in ((0, 2), (1, 3)):
        model = make_model(seed, n_classes=n_classes)
        X = rows_for(model)
        plan = plan_of(model)
        found = evidence.measure(X, plan)
        columns = np.flatnonzero(model.column_weights)
        group = (columns, model.column_weights[columns], True)
        every = np.column_stack([distances(model, X, m, *group) for m in range(len(model.medoids))])
        roots = np.sqrt(group[1])
        vectors, own = (
            np.column_stack([scaled(model, x, c, True) for c in columns]) * roots for x in (X, model.medoids)
        )
        for c in range(n_classes):
            members = np.flatnonzero(model.medoid_classes == c)
            np.testing.assert_array_equal(found.nearest[:, c], members[np.argmin(every[:, members], axis=1)])
            np.testing.assert_allclose(found.distance[:, c], every[:, members].min(axis=1), rtol=1e-13, atol=1e-15)
            partner = own[found.nearest[:, c]]
            lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(partner, axis=1)
            cosine = np.einsum("ij,ij->i", vectors, partner) / lengths
            np.testing.assert_allclose(np.cos(found.angle[:, c]), cosine, atol=1e-13)
        at_itself = np.arange(len(model.medoids)), model.medoid_classes
        assert not found.distance[at_itself].any()
        assert not found.angle[at_itself].any()
        again = evidence.measure(X, plan, channels=False)
        np.testing.assert_array_equal(again.scores, found.scores)
        np.testing.assert_array_equal(again.nearest, found.nearest)


@BOTH
def test_a_zero_vector_is_at_a_right_angle_to_all_but_another():
    model = one_column(NEAR, 1.0)
    model.medoids, model.rank_scores = np.array([[-5.0], [5.0]]), np.array([0.0, 1.0, 1.0])
    found = evidence.measure(np.array([[-7.0], [4.0]]), plan_of(model))
    np.testing.assert_array_equal(found.angle, [[0.0, np.pi / 2], [np.pi / 2, 0.0]])


def one_column(channel, length):
    """A model of one term of weight 1 on one column, which is left as it is between −5 and 5."""
    return SimpleNamespace(
        rank_offsets=np.array([0, 3]),
        rank_values=np.array([-5.0, 0.0, 5.0]),
        rank_scores=np.array([-5.0, 0.0, 5.0]),
        center=np.zeros(1),
        scale=np.full(1, 1e-6),
        clip=1e9,
        largest=LARGEST,
        medoids=np.zeros((2, 1)),
        medoid_classes=np.array([0, 1]),
        n_classes=2,
        column_weights=np.ones(1),
        groups=[((0,), np.ones(1), channel != NEAR)],
        term_group=np.array([0]),
        term_medoid=np.array([0]),
        term_channel=np.array([channel]),
        term_length=np.array([length]),
        term_center=np.zeros(1),
        weights=np.ones((1, 1)),
        intercepts=np.zeros(1),
    )


@BOTH
def test_nearness_is_as_exact_as_the_distance():
    plan = plan_of(one_column(NEAR, 1e6))
    x = np.concatenate([np.linspace(0.0, 690.0, 20_001), np.geomspace(1e-12, 1.0, 500)])
    near = outputs_of(x[:, None], plan)[:, 0]
    # The rounding of D / length counts as often as D has lengths.
    assert np.all(np.abs(near - np.exp(-x)) <= 3e-16 * (2.0 + x) * np.exp(-x))
    assert near[0] == 1.0
    np.testing.assert_array_equal(near[np.argsort(x)], np.sort(near)[::-1])
    assert outputs_of(np.array([[5000.0]]), plan)[0, 0] == 0.0


@BOTH
def test_interpolation_meets_its_knots_and_stays_beyond_them():
    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 64, 257):
        model = one_column(DISTANCE, 1.0)
        model.rank_values = np.sort(rng.normal(size=count)).round(3)
        model.rank_values = np.unique(model.rank_values)
        model.rank_scores = 10.0 + np.sort(rng.normal(size=len(model.rank_values)))
        model.rank_offsets = np.array([0, len(model.rank_values)])
        model.medoids = np.full((2, 1), -100.0)
        x = np.concatenate([model.rank_values, rng.normal(size=200), [-1e149, 1e149, -100.0]])
        expected = np.interp(x, model.rank_values, model.rank_scores) - model.rank_scores[0]
        np.testing.assert_allclose(outputs_of(x[:, None], plan_of(model))[:, 0], expected, atol=1e-13)


@BOTH
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e151, -2e150])
def test_bad_values_leave_their_row_undecided(bad):
    model = make_model(1)
    model.groups = [([0, 2], np.ones(2), False) if 8 in group[0] else group for group in model.groups]
    X, plan = rows_for(model), plan_of(model)
    assert plan.columns.used.tolist() == list(range(8))
    expected = evidence.measure(X, plan)
    for column in range(9):
        broken = X.copy()
        broken[[3, 77], column] = bad
        found = evidence.measure(broken, plan)
        touched = np.isin(np.arange(len(X)), [3, 77]) & (column < 8)
        for result, whole in zip(found, expected, strict=True):
            np.testing.assert_array_equal(result[~touched], whole[~touched])
        assert np.isnan(found.scores[touched]).all()
        assert np.isnan(found.distance[touched]).all()
        assert np.isnan(found.angle[touched]).all()
        assert (found.nearest[touched] == -1).all()


@BOTH
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_is_judged_alone(monkeypatch, n_classes):
    model = make_model(4, n_classes=n_classes, n_medoids=23, n_terms=400)
    X, plan = rows_for(model, n=700), plan_of(model)
    expected = evidence.measure(X, plan, threads=1)
    order = np.random.default_rng(0).permutation(700)
    np.testing.assert_array_equal(outputs_of(X[order], plan), expected.scores[order])
    for rows in (slice(37, 38), slice(120, 122), slice(600, 613)):
        for result, whole in zip(evidence.measure(X[rows], plan), expected, strict=True):
            np.testing.assert_array_equal(result, whole[rows])
    monkeypatch.setattr(evidence, "_ROWS_PER_THREAD", 1)
    monkeypatch.setattr(evidence, "_CHUNK_ROWS", 50)
    for result, whole in zip(evidence.measure(X, plan, threads=3), expected, strict=True):
        np.testing.assert_array_equal(result, whole)


def test_terms_of_the_same_distance_are_gathered():
    model = make_model(4)
    twice = SimpleNamespace(**vars(model))
    for name in ("term_group", "term_medoid", "term_channel", "term_length", "term_center"):
        setattr(twice, name, np.tile(getattr(model, name), 2))
    twice.weights = np.concatenate([model.weights, 2.0 * model.weights]) / 3.0
    once, both = plan_of(model), plan_of(twice)
    assert [len(both.values), len(both.folds), len(both.near_rates)] == [
        len(once.values), len(once.folds), len(once.near_rates)
    ]  # fmt: skip
    X = rows_for(model)
    np.testing.assert_allclose(outputs_of(X, both), outputs_of(X, once), rtol=1e-11)
    assert len(once.folds) <= len(model.weights) + 3 * len(once.line_root)


@BOTH
def test_medoids_that_are_equal_on_a_group_are_one_there():
    model = make_model(5)
    model.medoids = np.sign(model.medoids)
    model.medoids[4] = model.medoids[7]
    plan, X = plan_of(model), rows_for(model)
    expected, sizes = by_definition(model, X)
    assert np.all(np.abs(outputs_of(X, plan) - expected) <= 1e-12 * sizes)
    for group in range(1, len(plan.pair_offsets) - 1):
        count = plan.pair_offsets[group + 1] - plan.pair_offsets[group]
        values = plan.values[plan.value_offsets[group] : plan.value_offsets[group + 1]].reshape(count, -1)
        assert len(np.unique(values, axis=0)) == count
