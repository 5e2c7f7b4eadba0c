"""The search kernel: features, medoids and counts against plain formulas."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from qmedoid.kernels.backend import compiled
from qmedoid.kernels.scoring import Candidates, FoldSearch

pytestmark = pytest.mark.skipif(compiled("search") is None, reason="the compiled kernel was not built")
ANGLES = ("none", "true", "printed")
BY_DISTANCE = {"multipliers": np.ones(2), "alpha": 1.0, "angle": "none", "signed": True}


class Table:
    """A table large enough for several blocks of rows, with some training rows outside the medoid samples."""

    def __init__(self, seed=0, n_train=1300, n_val=700, n_classes=3, width=5, n_sample=350):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, n_classes, n_train + n_val)
        X = rng.normal(size=(n_train + n_val, width)) + np.outer(codes, rng.normal(size=width))
        self.train, self.val = X[:n_train], X[n_train:]
        self.codes, self.codes_val = codes[:n_train], codes[n_train:]
        self.samples = [np.flatnonzero(self.codes == c)[:n_sample] for c in range(n_classes)]
        self.multipliers = rng.uniform(0.8, 1.2, n_classes)
        self.weights = rng.uniform(-1, 1, (width, width))

    def search(self, *, alpha=0.4, angle="true", signed=True):
        how = {"multipliers": self.multipliers, "alpha": alpha, "angle": angle, "signed": signed}
        return FoldSearch(self.train, self.samples, self.val, self.codes_val, **how)

    def candidates(self, anchor, picks, factors=None):
        picks = np.array(picks, dtype=np.intp)
        factors = np.ones(len(picks)) if factors is None else np.asarray(factors, dtype=float)
        return Candidates(np.arange(len(self.weights)), self.weights[anchor].copy(), picks, factors)

    def start(self, search, picks):
        search.start([self.candidates(a, [p]) for a, p in enumerate(picks)])

    def feature(self, X, anchor, picks, *, signed):
        terms = X[:, picks] * self.weights[anchor, picks]
        norm = np.sqrt((terms**2).sum(axis=1))
        return np.where(terms.sum(axis=1) < 0, -norm, norm) if signed else norm

    def plain(self, picks, *, alpha, angle, signed):
        """Confusion matrix of a configuration, by plain NumPy and SciPy."""
        train = np.column_stack([self.feature(self.train, a, p, signed=signed) for a, p in enumerate(picks)])
        val = np.column_stack([self.feature(self.val, a, p, signed=signed) for a, p in enumerate(picks)])
        mean, deviation = train.mean(axis=0), train.std(axis=0)
        train, val = (train - mean) / deviation, (val - mean) / deviation
        medoids = [train[s[np.argmin(cdist(train[s], train[s]).sum(axis=1))]] for s in self.samples]
        distance = cdist(val, medoids)
        scores = distance / distance.sum(axis=1, keepdims=True)
        if angle != "none":
            theta = np.arccos(1.0 - cdist(val, medoids, "cosine"))
            if angle == "printed":
                both = (val**2).sum(axis=1)[:, None] + (np.array(medoids) ** 2).sum(axis=1)
                theta = np.arccos(np.sqrt(distance**2 / (2.0 * both)))
            scores = alpha * scores + (1.0 - alpha) * theta / theta.sum(axis=1, keepdims=True)
        codes = np.argmin(scores * self.multipliers, axis=1)
        n_classes = len(self.multipliers)
        return np.bincount(self.codes_val * n_classes + codes, minlength=n_classes**2).reshape(n_classes, n_classes)


def single_columns(search, width):
    """Begin with every column as a feature."""
    columns = [Candidates(np.arange(width), np.ones(width), np.array([[a]]), np.ones(1)) for a in range(width)]
    search.start(columns)
    return columns


START = [[0, 1], [1, 4, 2], [2], [3, 0, 1, 2, 4], [4, 3]]
# More candidates than the kernel takes at a time, more members than it unrolls, and one member twice.
MANY = [[a, b, c] for a in range(5) for b in range(5) for c in range(3)]


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("signed", [True, False])
def test_counts_are_those_of_plain_formulas(angle, signed):
    table = Table()
    search = table.search(angle=angle, signed=signed)
    table.start(search, START)
    counts, unsure = search.evaluate(1, table.candidates(1, MANY))
    assert len(MANY) == 75
    assert not unsure.any()
    for i in (0, 1, 17, 63, 64, 74):
        picks = [START[0], MANY[i], *START[2:]]
        np.testing.assert_array_equal(counts[i], table.plain(picks, alpha=0.4, angle=angle, signed=signed))
    assert len(np.unique(counts, axis=0)) > 20


@pytest.mark.parametrize("size", [1, 2, 4, 5, 6, 9])
def test_subsets_of_every_size(size):
    table = Table(seed=size, width=10)
    picks = [[a, *np.delete(np.arange(10), a)] for a in range(10)]
    search = table.search()
    table.start(search, picks)
    counts, _ = search.evaluate(3, table.candidates(3, [picks[3][:size]]))
    picks[3] = picks[3][:size]
    np.testing.assert_array_equal(counts[0], table.plain(picks, alpha=0.4, angle="true", signed=True))


def test_a_constant_feature_keeps_scale_one():
    table = Table()
    table.train[:, 2] = 0.1
    search = table.search()
    table.start(search, [[2], [1]])
    center = 0.1 * table.weights[0, 2]
    np.testing.assert_array_equal(search.sample_z[0], 0.0)
    np.testing.assert_allclose(
        np.sort(search.val_z[0]),
        np.sort(np.sign(table.weights[0, 2]) * (table.val[:, 2] * abs(table.weights[0, 2])) - center),
        atol=1e-15,
    )
    assert search.condition[0] == pytest.approx(abs(center))


def test_a_feature_on_the_edge_of_constant_is_unsure():
    """Whether such a column has a deviation at all depends on the order of summation: the kernel does not decide it."""
    table = Table()
    table.train[:, 2] = 1e9
    table.train[::7, 2] += 1e-3
    search = table.search()
    table.start(search, [[0], [1]])
    _, unsure = search.evaluate(0, table.candidates(0, [[2], [3]]))
    assert unsure.tolist() == [True, False]
    search.replace(0, table.candidates(0, [[2]]))
    assert np.isinf(search.condition[0])
    _, unsure = search.evaluate(1, table.candidates(1, [[1], [3]]))
    assert unsure.tolist() == [True, True]
    _, unsure = search.evaluate(0, table.candidates(0, [[4], [3]]))
    assert unsure.tolist() == [False, False]


@pytest.mark.parametrize("value", [np.inf, 1e200, np.nan])
def test_numbers_out_of_range_are_unsure_and_crash_nothing(value):
    table = Table(n_train=90, n_val=40)
    table.val[3, 0] = value
    table.train[5, 1] = value
    search = table.search()
    table.start(search, [[3], [4]])
    with np.errstate(all="ignore"):
        _, unsure = search.evaluate(0, table.candidates(0, [[0], [1], [2]]))
    assert unsure.tolist() == [True, True, False]


def test_a_factor_scales_out():
    table = Table()
    search = table.search()
    table.start(search, START)
    picks = MANY[:6]
    plain, _ = search.evaluate(0, table.candidates(0, picks))
    scaled, _ = search.evaluate(0, table.candidates(0, picks, factors=[2.0, 0.1, 3.0, 7.0, 1e-3, 11.0]))
    np.testing.assert_array_equal(plain, scaled)


def test_updated_squares_stay_within_their_slack():
    """A column with an outlier leaves large numbers behind, and their rounding stays when it goes."""
    table = Table(n_sample=60)
    for c, sample in enumerate(table.samples):
        table.train[sample[0], 3:] = 1e3 * (c + 1), 1e6 * (c + 2)
    search = table.search()
    search.start([table.candidates(0, [[1]])])
    for column in [4, 3, 1, 4, 2] * 20:
        search.replace(0, table.candidates(0, [[column]]))
    updated, slack = search.squared.copy(), search.slack.max()
    search.kernel.build_squared(search)
    error = np.abs(updated - search.squared)[:-1].max()  # there is one spare number
    assert search.slack.max() < error <= slack < 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_tied_medoids_go_to_the_first_row(seed):
    """All corners of a box are its medoids. Seen from the middle, only the chosen corner is nearer to its own class."""
    rng = np.random.default_rng(seed)
    sides = rng.uniform(0.1, 3.0, 4)
    corners = rng.permutation(np.array(np.meshgrid(*[[0.0, 1.0]] * 4)).reshape(4, -1).T) * sides
    search = FoldSearch(
        np.vstack((corners, sides / 2.0)),
        [np.arange(16), np.array([16])],
        corners,
        np.array([0] + [1] * 15),
        # Corners are a side or more apart and the middle is a side away: a little help makes it the nearer one.
        **BY_DISTANCE | {"multipliers": np.array([1.0, 0.9])},
    )
    columns = single_columns(search, 4)
    counts, unsure = search.evaluate(2, columns[2])
    assert not unsure.any()
    np.testing.assert_array_equal(counts[0], [[1, 0], [0, 15]])


def test_repeated_rows_are_not_tried():
    table = Table(n_train=120, n_sample=40)
    for c, sample in enumerate(table.samples):
        table.train[sample] = table.train[sample[np.arange(len(sample)) % (c + 2)]]
    search = table.search()
    assert [part.sum() for part in np.split(search.repeated == 0, search.bounds[1:-1])] == [2, 3, 4]
    table.start(search, START)
    counts, _ = search.evaluate(1, table.candidates(1, MANY))
    for i in (0, 30, 74):
        picks = [START[0], MANY[i], *START[2:]]
        np.testing.assert_array_equal(counts[i], table.plain(picks, alpha=0.4, angle="true", signed=True))


def test_ties_are_unsure_unless_the_medoids_are_equal_rows():
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    middle = np.array([[1.0, 0.3], [0.2, 0.1]])
    for shift, expected in ((2.0, True), (0.0, False)):
        search = FoldSearch(
            np.vstack((rows, rows + np.array([shift, 0.0]), [[5.0, 1.0]])),
            [np.arange(3), np.arange(3, 6)],
            middle,
            np.array([0, 1]),
            **BY_DISTANCE,
        )
        column = single_columns(search, 2)
        counts, unsure = search.evaluate(0, column[0])
        assert unsure.tolist() == [expected]
        if not expected:
            np.testing.assert_array_equal(counts[0], [[1, 0], [1, 0]])


@pytest.mark.parametrize("seed", range(12))
def test_small_angles_are_told_apart(seed):
    """A record in the very direction of one medoid, 1e-8 away from the other: an arc cosine alone could not tell."""
    rng = np.random.default_rng(seed)
    medoid = rng.normal(size=3)
    near = medoid + 1e-8 * np.cross(medoid, [1.0, 0.0, 0.0])
    cloud = rng.normal(size=(20, 3))
    search = FoldSearch(
        np.vstack((medoid, near, cloud, -medoid, -near, -cloud)),  # symmetric, so that the mean is 0
        [np.array([0]), np.array([1])],
        np.vstack((3.0 * medoid, 3.0 * near)),
        np.array([0, 1]),
        **BY_DISTANCE | {"alpha": 0.0, "angle": "true"},
    )
    columns = single_columns(search, 3)
    counts, unsure = search.evaluate(0, columns[0])
    assert not unsure.any()
    np.testing.assert_array_equal(counts[0], [[1, 0], [0, 1]])
