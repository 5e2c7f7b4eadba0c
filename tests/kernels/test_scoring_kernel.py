"""The scoring kernel against what the model defines, row by row."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.channels import class_channels, fusion_scores
from qmedoid.geometry.scaling import Scaling
from qmedoid.kernels import scoring
from qmedoid.kernels.backend import compiled
from qmedoid.methods.nearest.part import NearestPart

kernel = compiled("scoring")
TILE = 64 if kernel is None else kernel.TILE


pytestmark = pytest.mark.skipif(kernel is None, reason="the compiled kernels were not built: the definition decides")


def scores_of(table: scoring.Table, plan: scoring.ScoringPlan, **threads: int) -> np.ndarray:
    return scoring.measure(table, plan, channels=False, **threads).scores


def make_model(seed: int, **changes: object) -> NearestPart:
    """A random model: subsets of differing length, 2 to 5 classes, one to three medoids each."""
    rng = np.random.default_rng(seed)
    n_columns, n_classes = int(rng.integers(1, 12)), int(rng.integers(2, 6))
    n_anchors = int(rng.integers(1, n_columns + 1))
    configuration = tuple(
        tuple(int(f) for f in rng.permutation(n_columns)[: rng.integers(1, n_columns + 1)]) for _ in range(n_anchors)
    )
    classes = np.repeat(np.arange(n_classes), rng.integers(1, 4, size=n_classes)).astype(np.intp)
    parts: dict[str, object] = {
        "input_scaling": Scaling(rng.normal(size=n_columns), rng.uniform(0.2, 5.0, size=n_columns)),
        "configuration": configuration,
        "weights": tuple(rng.uniform(-1.0, 1.0, size=len(subset)) for subset in configuration),
        "signed": bool(rng.integers(2)),
        "feature_scaling": Scaling(rng.normal(size=n_anchors), rng.uniform(0.2, 3.0, size=n_anchors)),
        "medoids": rng.normal(size=(len(classes), n_anchors)),
        "medoid_classes": classes,
        "medoid_rows": np.arange(len(classes)),
        "multipliers": rng.uniform(0.5, 1.5, size=n_classes),
        "alpha": float(rng.uniform()),
        "use_angular": True,
        "angle": ["true", "printed"][rng.integers(2)],
    }
    return NearestPart(**(parts | changes))  # type: ignore[arg-type]


def make_rows(model: NearestPart, n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, len(model.input_scaling.center))) * 2.0


def defined(model: NearestPart, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Distance, angle, nearest medoid and scores, as the model defines them."""
    measured = model.swap_test(model.features(X))
    channels, nearest = class_channels(measured.distance, measured.angle, model.medoid_classes, model.n_classes)
    scores = fusion_scores(channels, model.alpha, use_angular=model.use_angular, multipliers=model.multipliers)
    return channels.distance, channels.angle, nearest, scores


def assert_as_defined(model: NearestPart, X: np.ndarray, given: scoring.Table | None = None) -> None:
    """Channels, scores and labels of `given` (X in some other layout) are those that the model defines for X."""
    table = X if given is None else given
    distance, angle, nearest, scores = defined(model, X)
    plan = model.scoring_plan
    found = scoring.measure(table, plan)
    np.testing.assert_array_equal(found.nearest, nearest)
    # Rounding of features of size |v| + |mu| is all that may differ.
    sizes = np.linalg.norm(model.features(X), axis=1)[:, None] + np.linalg.norm(model.medoids, axis=1).max() + 1.0
    assert np.all(np.abs(found.distance - distance) <= 1e-12 * distance + 1e-14 * sizes)
    # An angle moves by about the rounding of v over |v|; arccos √s loses half the digits as s comes near 1.
    relative = sizes / np.linalg.norm(model.features(X), axis=1)[:, None]
    slope = 1.0 if model.angle == "true" else 1.0 / np.sqrt(np.maximum(np.sin(angle) ** 2, 1e-16))
    assert np.all(np.abs(found.angle - angle) <= 1e-12 * relative * slope)
    found_scores = scores_of(table, plan)
    if model.use_angular and model.alpha < 1.0:
        tolerance = 1e-12 * (1.0 + (relative * slope / (angle.sum(axis=1, keepdims=True) + 1e-12)).max(axis=1))
    else:
        tolerance = np.full(len(X), 1e-12)
    tolerance += 1e-13 * sizes[:, 0] / (distance.sum(axis=1) + 1e-12)
    for with_channels_or_without in (found.scores, found_scores):
        assert np.all(np.abs(with_channels_or_without - scores).max(axis=1, initial=0.0) <= tolerance)
    np.testing.assert_array_equal(scoring.labels(table, plan), np.argmin(found_scores, axis=1))


@given(st.integers(0, 10_000), st.integers(0, 3 * TILE))
@settings(max_examples=30, deadline=None)
def test_kernel_is_what_the_model_defines(seed: int, n: int) -> None:
    model = make_model(seed)
    assert_as_defined(model, make_rows(model, n, seed))


@given(st.integers(0, 10_000), st.floats(0.4, 0.999))
@settings(max_examples=30, deadline=None)
def test_labels_are_those_of_the_scores_also_where_distances_alone_decide(seed: int, alpha: float) -> None:
    """Labels leave the angle out where it cannot matter; a batch of one row does so for that row alone."""
    model = make_model(seed, alpha=alpha)
    X = make_rows(model, 2 * TILE, seed)
    expected = scores_of(X, model.scoring_plan).argmin(axis=1)
    np.testing.assert_array_equal(scoring.labels(X, model.scoring_plan), expected)
    alone = [scoring.labels(X[i : i + 1], model.scoring_plan)[0] for i in range(len(X))]
    np.testing.assert_array_equal(alone, expected)


@pytest.mark.parametrize("n", [0, 1, 2, TILE - 1, TILE, TILE + 1])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("angle", ["true", "printed"])
@pytest.mark.parametrize(("use_angular", "alpha"), [(True, 0.9), (True, 1.0), (True, 0.0), (False, 0.5)])
def test_every_kind_at_the_edges_of_a_tile(n: int, signed: bool, angle: str, use_angular: bool, alpha: float) -> None:
    model = make_model(n, signed=signed, angle=angle, use_angular=use_angular, alpha=alpha)
    assert_as_defined(model, make_rows(model, n))


def layouts(X: np.ndarray) -> Iterator[tuple[str, scoring.Table]]:
    yield "F order", np.asfortranarray(X)
    yield "columns", [column.copy() for column in X.T]
    yield "strided columns", list(X.T)
    yield "every other row of a longer table", np.repeat(X, 2, axis=0)[::2]
    yield "reversed twice", X[::-1].copy()[::-1]
    yield "read only", np.frombuffer(X.tobytes()).reshape(X.shape)
    yield "big endian", X.astype(">f8")
    yield "not aligned", np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)


def test_layout_changes_no_bit() -> None:
    model = make_model(3)
    X = make_rows(model, 5 * TILE + 7)
    expected = scores_of(X, model.scoring_plan)
    for name, table in layouts(X):
        np.testing.assert_array_equal(scores_of(table, model.scoring_plan), expected, err_msg=name)


@pytest.mark.parametrize("order", ["C", "F"])
def test_float32_is_scored_in_double_precision(order: str) -> None:
    model = make_model(3)
    X = make_rows(model, 5 * TILE + 7)
    narrow = np.asarray(X, dtype=np.float32, order=order)
    found = scores_of(narrow, model.scoring_plan)
    np.testing.assert_array_equal(found, scores_of(narrow.astype(np.float64), model.scoring_plan))
    np.testing.assert_array_equal(found, scores_of(list(narrow.T), model.scoring_plan))
    np.testing.assert_allclose(found, scores_of(X, model.scoring_plan), atol=1e-5)


@given(st.integers(0, 1000), st.data())
@settings(max_examples=40, deadline=None)
def test_a_row_does_not_depend_on_its_batch(seed: int, data: st.DataObject) -> None:
    model = make_model(seed)
    X = make_rows(model, 3 * TILE, seed)
    rows = data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=2 * TILE))
    whole, part = scoring.measure(X, model.scoring_plan), scoring.measure(X[rows], model.scoring_plan)
    for of_whole, of_part in zip(whole, part, strict=True):
        np.testing.assert_array_equal(of_part, of_whole[rows])
    np.testing.assert_array_equal(scores_of(X[rows], model.scoring_plan), scores_of(X, model.scoring_plan)[rows])


@pytest.mark.parametrize("layout", ["rows", "columns", "integers"])
def test_threads_change_no_bit(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(5)
    X = make_rows(model, 50_001)
    table: scoring.Table = {"rows": X, "columns": list(np.asfortranarray(X).T), "integers": np.round(X).astype(int)}[
        layout
    ]
    one = scores_of(table, model.scoring_plan, threads=1)
    np.testing.assert_array_equal(scores_of(table, model.scoring_plan, threads=2), one)
    monkeypatch.setenv("QMEDOID_THREADS", "3")
    np.testing.assert_array_equal(scores_of(table, model.scoring_plan), one)
    np.testing.assert_array_equal(scoring.labels(table, model.scoring_plan, threads=2), np.argmin(one, axis=1))


@pytest.mark.parametrize("seed", range(5))
def test_without_the_kernel_the_definition_decides(seed: int, use_twins: Callable[[], None]) -> None:
    model = make_model(seed)
    X = make_rows(model, 100, seed)
    expected, labels = model.score(X, channels=True), model.labels(X)
    use_twins()
    found = model.score(list(X.T), channels=True)
    np.testing.assert_array_equal(found.nearest, expected.nearest)
    np.testing.assert_array_equal(model.labels(X), labels)
    np.testing.assert_allclose(found.distance, expected.distance, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.angle, expected.angle, atol=1e-8 if model.angle == "printed" else 1e-11)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-8)
    X[3] = np.nan
    with pytest.raises(DataError, match="Row 3 holds nan"):
        model.score(X)


def plain_model(medoids: list[list[float]], **changes: object) -> NearestPart:
    """A model whose features are the columns themselves, up to sign."""
    n_columns = len(medoids[0])
    parts: dict[str, object] = {
        "input_scaling": Scaling(np.zeros(n_columns), np.ones(n_columns)),
        "configuration": tuple((f,) for f in range(n_columns)),
        "weights": (np.ones(1),) * n_columns,
        "signed": True,
        "feature_scaling": Scaling(np.zeros(n_columns), np.ones(n_columns)),
        "medoids": np.array(medoids),
        "medoid_classes": np.arange(len(medoids)),
        "multipliers": np.ones(len(medoids)),
        "angle": "true",
    }
    return make_model(0, **(parts | changes))


def test_angles_are_exact_where_a_cosine_is_not() -> None:
    # On a line every vector is parallel to every other: an arccos of a cosine would be off by 1e-8.
    model = plain_model([[1.0, 2.0, 3.0], [-0.3, 0.1, 0.2]])
    mu = model.medoids[0]
    tiny = 1e-9 * np.array([3.0, 0.0, -1.0])  # at right angles to mu
    rows = np.array([mu, 1e3 * mu, mu / 3.0, -mu, -7.0 * mu, mu + tiny, -mu + tiny])
    angle = scoring.measure(rows, model.scoring_plan).angle[:, 0]
    turned = np.sqrt(10.0 / 14.0) * 1e-9
    expected = [0.0, 0.0, 0.0, np.pi, np.pi, turned, np.pi - turned]
    np.testing.assert_allclose(angle, expected, atol=4e-16)
    assert angle[0] == 0.0


def test_angles_are_right_to_the_last_digits() -> None:
    # Around the unit circle, where s = sin²(θ/2) and so the printed angle is (π − θ)/2.
    theta = np.linspace(0.01, np.pi - 0.01, 2001)
    circle = np.column_stack([np.cos(theta), np.sin(theta)])
    tolerance = 4e-16 * (1.0 + 1.0 / np.sin(theta))
    true = scoring.measure(circle, plain_model([[1.0, 0.0]]).scoring_plan).angle[:, 0]
    printed = scoring.measure(circle, plain_model([[1.0, 0.0]], angle="printed").scoring_plan).angle[:, 0]
    assert np.all(np.abs(true - theta) <= tolerance)
    assert np.all(np.abs(printed - (np.pi - theta) / 2.0) <= tolerance)


@pytest.mark.parametrize("angle", ["true", "printed"])
def test_zero_medoid(angle: str) -> None:
    model = plain_model([[0.0, 0.0], [1.0, 1.0]], angle=angle)
    rows = np.array([[3.0, 4.0], [-1.0, 0.0], [1.0, 1.0]])
    assert_as_defined(model, rows)
    assert np.all(scoring.measure(rows, model.scoring_plan).angle[:, 0] == (np.pi / 2 if angle == "true" else 0.0))


def test_ties_go_to_the_first() -> None:
    model = plain_model([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], angle="true")
    assert scoring.labels(np.array([[0.0, 1.0], [1.0, 0.0], [-5.0, 0.0]]), model.scoring_plan).tolist() == [0, 0, 1]
    several = plain_model([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    same_class = NearestPart(
        **{**vars(several), "medoid_classes": np.array([0, 1, 0, 1]), "multipliers": np.array([1.0, 1.0])}
    )
    assert scoring.measure(np.array([[0.4, 0.4]]), same_class.scoring_plan).nearest.tolist() == [[0, 1]]


def test_large_offsets_lose_nothing() -> None:
    model = make_model(11)
    shift = 1e9 * np.arange(1.0, 1.0 + len(model.input_scaling.center))
    rng = np.random.default_rng(0)
    X = rng.integers(-1000, 1000, size=(100, len(shift))) / 128.0  # so that adding and taking away is exact
    center = np.round(model.input_scaling.center * 128.0) / 128.0
    near = make_model(11, input_scaling=Scaling(center, model.input_scaling.scale))
    far = make_model(11, input_scaling=Scaling(center + shift, model.input_scaling.scale))
    np.testing.assert_array_equal(scores_of(X + shift, far.scoring_plan), scores_of(X, near.scoring_plan))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200, 1e-200, 0.0])
def test_rows_out_of_range_are_left_undecided(bad: float) -> None:
    model = plain_model([[1.0, 2.0], [3.0, 1.0]])
    X = np.random.default_rng(0).normal(size=(2 * TILE, 2))
    clean = scoring.measure(X, model.scoring_plan)
    X[5] = X[TILE + 1] = bad
    found, labels = scoring.measure(X, model.scoring_plan), scoring.labels(X, model.scoring_plan)
    scores = scores_of(X, model.scoring_plan)
    undecided = np.zeros(len(X), dtype=bool)
    undecided[[5, TILE + 1]] = True
    np.testing.assert_array_equal(labels < 0, undecided)
    np.testing.assert_array_equal(np.isnan(scores), np.repeat(undecided[:, None], 2, axis=1))
    np.testing.assert_array_equal(found.nearest < 0, np.repeat(undecided[:, None], 2, axis=1))
    for kept, before in zip(found, clean, strict=True):
        np.testing.assert_array_equal(kept[~undecided], before[~undecided])


def test_columns_that_are_not_used_may_hold_anything() -> None:
    model = make_model(
        0,
        input_scaling=Scaling(np.zeros(3), np.ones(3)),
        configuration=((2,), (2, 0)),
        weights=(np.ones(1), np.ones(2)),
        feature_scaling=Scaling(np.zeros(2), np.ones(2)),
        medoids=np.eye(2),
        medoid_classes=np.arange(2),
        multipliers=np.ones(2),
    )
    X = np.array([[1.0, np.nan, 2.0], [0.5, np.inf, -1.0]])
    assert (scoring.labels(X, model.scoring_plan) >= 0).all()


def test_a_medoid_out_of_range_leaves_all_undecided() -> None:
    model = plain_model([[1e200, 0.0], [1.0, 1.0]])
    assert scoring.labels(np.ones((3, 2)), model.scoring_plan).tolist() == [-1, -1, -1]
    assert np.isnan(scores_of(np.ones((3, 2)), model.scoring_plan)).all()


def test_wrong_tables_are_named() -> None:
    plan = plain_model([[1.0, 2.0], [3.0, 1.0]]).scoring_plan
    with pytest.raises(DataError, match=r"has 3 columns; the model was fitted on 2"):
        scoring.labels(np.ones((4, 3)), plan)
    with pytest.raises(DataError, match=r"has 1 columns; the model was fitted on 2"):
        scores_of([np.ones(4)], plan)
    with pytest.raises(DataError, match=r"between 3 and 4 rows"):
        scores_of([np.ones(4), np.ones(3)], plan)
    with pytest.raises(DataError, match=r"shape \(2,\).*\(n, 2\)"):
        scores_of(np.ones(2), plan)


def test_threads_must_be_positive(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plain_model([[1.0, 2.0], [3.0, 1.0]]).scoring_plan
    with pytest.raises(ParameterError, match=r"'threads' parameter must be None or an int >= 1\. Got 0"):
        scoring.labels(np.ones((30_000, 2)), plan, threads=0)
    monkeypatch.setenv("QMEDOID_THREADS", "many")
    with pytest.raises(ParameterError, match=r"QMEDOID_THREADS must be an int >= 1\. Got 'many'"):
        scoring.labels(np.ones((30_000, 2)), plan)
