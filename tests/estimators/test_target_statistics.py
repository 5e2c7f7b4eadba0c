"""Training rows of a large category look as new rows will: new levels occur in both at the same rate."""

import warnings
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler, TargetEncoder

from qmedoid import MedoidClassifier
from qmedoid.estimators import encoding
from qmedoid.estimators.encoding import (
    CROSS_FITS,
    FEW_ROWS,
    ROWS_OF_A_LEVEL,
    Category,
    class_counts,
    fit_encodings,
    prior_strength,
    spread_folds,
    target_statistics,
)
from qmedoid.estimators.folds import TrainingTable
from qmedoid.methods.comparisons.fit import fit_comparisons
from qmedoid.methods.comparisons.growing import BoostingSettings
from qmedoid.model.contract import Column
from qmedoid.tables.encode import encode_column


def fit(values, codes, *, n_classes=2, seed=0, max_levels=20_000):
    draft = Column("c", "category", missing=None in values)
    table = pa.table({"c": pa.array(values, pa.string())})
    rng, classes = np.random.default_rng(seed), "abcd"[:n_classes]
    return fit_encodings(table, [draft], np.asarray(codes), classes, rng, max_one_hot=2, max_levels=max_levels)


def apply(encoded, values):
    return np.column_stack(encode_column(pa.array(values, pa.string()), encoded.columns[0], encoded.encodings[0]))


@st.composite
def categories(draw):
    """Cells of three levels or more, some missing, with class codes."""
    n_classes = draw(st.integers(2, 4))
    names = st.one_of(st.none(), st.integers(0, 25).map(lambda number: f"level {number}"))
    values = draw(st.lists(names, min_size=n_classes, max_size=60))
    values += ["one", "two", "three"]
    codes = [*range(n_classes), *draw(st.lists(st.integers(0, n_classes - 1), min_size=len(values), max_size=99))]
    return values, codes[: len(values)], n_classes


@pytest.fixture(params=["few rows", "many rows"])
def either_size(request, monkeypatch):
    """Small tables are encoded as small ones, and as large ones."""
    if request.param == "many rows":
        monkeypatch.setattr(encoding, "FEW_ROWS", 0)


laws = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(categories(), st.integers(0, 5))
@laws
@pytest.mark.usefixtures("either_size")
def test_level_that_occurs_nowhere_else_looks_like_a_new_one(table, seed):
    values, codes, n_classes = table
    encoded = fit(values, codes, n_classes=n_classes, seed=seed)
    new = apply(encoded, ["never seen"])[0]
    counts = np.array([values.count(value) for value in values])
    alone = encoded.matrix[counts == 1]
    np.testing.assert_array_equal(alone, np.broadcast_to(new, alone.shape))
    # Others do not, so that new levels occur as often as Good and Turing estimate: singletons / n.
    assert (encoded.matrix[:, -1] == new[-1]).mean() == (counts == 1).mean()
    ratios = encoded.matrix[counts > 1, -1] / ((counts[counts > 1] - 1) / len(values))
    assert (np.abs(np.log2(ratios)) <= 0.5).all()


@given(categories(), st.integers(1, 6))
@laws
@pytest.mark.usefixtures("either_size")
def test_training_row_knows_its_level_if_the_rows_without_it_keep_that_level(table, max_levels):
    values, codes, n_classes = table
    encoded = fit(values, codes, n_classes=n_classes, max_levels=max_levels)
    for row, value in enumerate(values):
        # The first row of a level also says which of two equally frequent levels is kept.
        if values.index(value) == row and values.count(value) > 1:
            continue
        without = Counter(values[:row] + values[row + 1 :])
        missing = without.pop(None, 0)
        kept = dict(without.most_common(max_levels))  # of equally frequent ones the first to occur
        in_rest = missing > 0 if value is None else value in kept
        assert (encoded.matrix[row, -1] > 0) == in_rest


@pytest.mark.usefixtures("either_size")
def test_names_of_levels_play_no_part():
    rng = np.random.default_rng(0)
    places = rng.zipf(1.5, 300) % 90
    codes = rng.integers(0, 2, 300)
    names = np.array([f"level {number:02d}" for number in range(90)])
    one = fit(names[places].tolist(), codes, max_levels=30)
    other = fit(names[rng.permutation(90)][places].tolist(), codes, max_levels=30)
    np.testing.assert_array_equal(one.matrix, other.matrix)


@given(st.integers(1, 80), st.integers(1, 30), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_rows_of_a_level_lie_in_different_folds(n_rows, n_levels, seed):
    rng = np.random.default_rng(seed)
    places, codes = rng.integers(0, n_levels, n_rows), rng.integers(0, 2, n_rows)
    folds = spread_folds(places, codes, np.arange(n_rows), rng)
    assert np.ptp(np.bincount(folds)) <= 1
    for level in np.unique(places):
        assert np.bincount(folds[places == level]).max() <= -(-(places == level).sum() // min(CROSS_FITS, n_rows))


@pytest.mark.usefixtures("either_size")
def test_copies_of_a_record_do_not_describe_each_other():
    rng = np.random.default_rng(0)
    places, codes = rng.integers(0, 120, 200), rng.integers(0, 2, 200)
    names = tuple(f"{number:03d}" for number in range(120))

    def numbers(copies):
        found = np.tile(places, copies)
        category = Category(names, found, np.bincount(found, minlength=120), np.arange(120), 1000)
        groups = np.tile(np.arange(200), copies)
        return np.column_stack(target_statistics(category, np.tile(codes, copies), "ab", rng, groups)[1])

    once, twice = numbers(1), numbers(2)
    np.testing.assert_array_equal(twice[:200], twice[200:])
    np.testing.assert_allclose(once[:, -1], twice[:200, -1], rtol=1e-13)
    alone = once[:, -1] == 0
    assert alone.any()
    np.testing.assert_array_equal(once[alone], twice[:200][alone])


def many(seed, n_rows=FEW_ROWS, n_levels=25, n_classes=2, chance=0.06):
    """Places and codes of a category of many rows, which says nothing of the classes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n_rows) if n_classes > 2 else (rng.random(n_rows) < chance).astype(int)
    return rng.integers(0, n_levels, n_rows), codes


def statistics(places, codes, n_classes=2, seed=0):
    names = tuple(f"{number:03d}" for number in range(places.max() + 1))
    category = Category(names, places, np.bincount(places), np.arange(len(names)), 1000)
    return target_statistics(category, codes, "abcd"[:n_classes], np.random.default_rng(seed))


@pytest.mark.usefixtures("either_size")
def test_share_of_a_level_of_two_rows_is_that_of_the_other_row():
    codes = np.random.default_rng(0).integers(0, 2, 400)
    own = statistics(np.arange(400) % 200, codes)[1][0]
    assert own.std() > 0 or encoding.FEW_ROWS == 0  # the likelihood may say that levels differ in nothing
    for label in (0, 1):
        assert abs(own[codes == label].mean() - codes.mean()) < 0.1


def test_class_of_a_training_row_cannot_be_read_from_its_shares():
    # Twenty categories of noise, an event in sixteen rows: dealt by class, their shares rank the events at 0.9.
    codes = many(0, 1500)[1]
    columns = [np.column_stack(statistics(many(seed, 1500)[0], codes, seed=seed)[1]) for seed in range(1, 21)]
    X = StandardScaler().fit_transform(np.hstack(columns))
    scores = cross_val_predict(LogisticRegression(C=0.1), X, codes, cv=5, method="decision_function")
    assert roc_auc_score(codes, scores) < 0.65


@pytest.mark.parametrize("n_classes", [2, 4])
def test_shares_of_many_rows_are_those_of_an_encoder_with_as_many_imagined_rows(n_classes):
    places, codes = many(3, n_classes=n_classes, chance=0.4)
    codes = np.where(places < 5, 1, codes)
    mean = np.bincount(codes) / len(codes)
    strength = prior_strength(class_counts(places, codes, places.max() + 1, n_classes), mean)
    target_type = "binary" if n_classes == 2 else "multiclass"
    encoder = TargetEncoder(smooth=strength, target_type=target_type).fit(places[:, None], codes)
    levels, own = statistics(places, codes, n_classes)
    known = np.arange(places.max() + 1)[:, None]
    np.testing.assert_allclose(levels.values[:-2, :-1], encoder.transform(known), rtol=1e-12)
    # A training row is described by the other folds: it has other numbers than a new row of its level.
    assert (np.column_stack(own)[:, :-1] != levels.values[places, :-1]).any(axis=1).mean() > 0.9


def test_strength_of_the_prior_is_the_likeliest():
    rng = np.random.default_rng(0)
    for strength in (2.0, 16.0, 128.0):
        n_rows = rng.integers(20, 400, 300)
        events = rng.binomial(n_rows, rng.beta(0.2 * strength, 0.8 * strength, 300))
        mean = events.sum() / n_rows.sum()
        found = prior_strength(np.column_stack([n_rows - events, events]).astype(float), np.array([1 - mean, mean]))
        assert strength / 2 <= found <= 2 * strength
        powers = 2.0 ** np.arange(11)
        likelihoods = [betabinom.logpmf(events, n_rows, mean * a, (1 - mean) * a).sum() for a in powers]
        assert found == powers[np.argmax(likelihoods)]


def folded(codes, groups=None, n_classes=2, max_levels=20_000):
    """A number and two categories, encoded, and the function that encodes folds of them."""
    rng = np.random.default_rng(1)
    cells = {f"c{size}": [f"level {level}" for level in rng.zipf(1.5, len(codes)) % size] for size in (15, 90)}
    cells["c15"][3] = None
    table = pa.table({"c15": cells["c15"], "x": rng.normal(size=len(codes)), "c90": cells["c90"]})
    drafts = [Column("c15", "category", missing=True), Column("x", "number"), Column("c90", "category")]

    def encode(rows):
        part = None if groups is None else groups[rows]
        fresh, classes = np.random.default_rng(0), "abcd"[:n_classes]
        return fit_encodings(
            table.take(rows), drafts, codes[rows], classes, fresh, part, max_one_hot=2, max_levels=max_levels
        )

    return table, encode


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.usefixtures("either_size")
def test_fold_is_encoded_as_if_its_held_out_rows_were_new(n_classes, grouped):
    rng = np.random.default_rng(0)
    codes, groups = rng.integers(0, n_classes, 300), np.arange(300) // 2 if grouped else None
    table, encode = folded(codes, groups, n_classes)
    train, held = np.sort(rng.permutation(300)[:200]), np.arange(250)
    held = np.setdiff1d(held, train)
    everything, alone = encode(np.arange(300)), encode(train)
    trained, judged = everything.statistics.fold(everything.matrix, train, held)
    np.testing.assert_array_equal(trained, alone.matrix)
    pairs = zip(alone.columns, alone.encodings, strict=True)
    new = [encode_column(table.column(column.name).take(held), column, encoding) for column, encoding in pairs]
    # A fill of numbers is no statistic of the classes, and no number is missing here.
    np.testing.assert_array_equal(judged, np.column_stack([output for outputs in new for output in outputs]))
    assert (trained != everything.matrix[train]).any()


@pytest.mark.parametrize("max_levels", [5, 20_000])
@pytest.mark.usefixtures("either_size")
def test_labels_of_held_out_rows_change_nothing_in_a_fold(max_levels):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 600)
    train, held = np.arange(400), np.arange(400, 600)
    turned = np.append(codes[train], 1 - codes[held])
    every = [folded(labels, max_levels=max_levels)[1](np.arange(600)) for labels in (codes, turned)]
    assert not np.array_equal(every[0].matrix[train], every[1].matrix[train])
    one, other = (encoded.statistics.fold(encoded.matrix, train, held) for encoded in every)
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_category_with_many_rows_a_level_is_the_same_in_every_fold():
    codes = np.random.default_rng(0).integers(0, 2, 15 * ROWS_OF_A_LEVEL)
    encoded = folded(codes)[1](np.arange(len(codes)))
    names = [column.name for column in encoded.columns]
    assert [names[0], encoded.statistics.columns] == ["c15", (3,)]
    train, held = np.arange(500), np.arange(500, len(codes))
    trained, judged = encoded.statistics.fold(encoded.matrix, train, held)
    np.testing.assert_array_equal(trained[:, :3], encoded.matrix[train, :3])
    np.testing.assert_array_equal(judged[:, :3], encoded.matrix[held, :3])


def test_part_of_a_table_has_the_folds_of_its_rows():
    codes = np.random.default_rng(0).integers(0, 2, 200)
    encoded = folded(codes)[1](np.arange(200))

    def fold_rows(train, held):
        return encoded.statistics.fold(encoded.matrix, train, held)

    data = TrainingTable(encoded.matrix, codes, np.arange(2), fold_rows=fold_rows)
    rows, train, held = np.arange(20, 180), np.arange(100), np.arange(100, 160)
    for found, wanted in zip(data.part(rows).fold_rows(train, held), fold_rows(rows[train], rows[held]), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert TrainingTable(encoded.matrix, codes, np.arange(2)).part(rows).fold_rows is None


def test_trees_learn_nothing_from_categories_that_say_nothing():
    # Twelve categories of noise: trees that are judged by columns made with the labels of the judges seem to learn.
    codes = many(0, 1200, chance=0.1)[1]
    rng = np.random.default_rng(3)
    drafts = [Column(f"c{place}", "category") for place in range(12)]
    levels = {draft.name: [f"level {level}" for level in rng.zipf(1.3, 1200) % 300] for draft in drafts}
    encoded = fit_encodings(pa.table(levels), drafts, codes, "ab", np.random.default_rng(0))

    def fold_rows(train, held):
        return encoded.statistics.fold(encoded.matrix, train, held)

    settings_ = BoostingSettings(n_iterations=40, n_seeds=1)
    losses = []
    for one in (fold_rows, None):
        found = fit_comparisons(encoded.matrix, codes, 2, settings_, 0, lambda _: None, fold_rows=one)
        margins = found.out_of_fold[:, 0] - found.out_of_fold[:, 1]
        losses.append(log_loss(codes, 1.0 / (1.0 + np.exp(-margins))))
    chance = log_loss(codes, np.full(len(codes), codes.mean()))
    assert losses[0] > 0.99 * chance
    assert losses[1] < losses[0]


def customers(seed, n_rows=4000):
    """x says the class; of the names, which do not, 60 occur twice among the positives, as in a table of orders."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    y = x + rng.normal(size=n_rows) > 0.8
    names = rng.permutation(10**6)[:n_rows]
    twice = rng.permutation(np.flatnonzero(y))[:120]
    names[twice[60:]] = names[twice[:60]]
    return {"x": x, "customer": [f"c{name:06d}" for name in names]}, np.where(y, "yes", "no")


def judged(table, y, new, new_y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of new levels
        model = MedoidClassifier(random_state=0, **parameters).fit(table, y)
        predicted = model.predict(new)
    return model.expected_.alert_rate, (predicted == "yes").mean(), (predicted == new_y).mean()


@pytest.mark.parametrize("max_levels", [20_000, 30])
def test_new_customers_are_not_called_positive_because_they_are_new(max_levels):
    table, y = customers(0)
    new, new_y = customers(1)
    expected, alert_rate, accuracy = judged(table, y, new, new_y, max_levels=max_levels)
    without = judged({"x": table["x"]}, y, {"x": new["x"]}, new_y)
    # Two standard errors of the difference of two shares of 4,000 rows.
    assert abs(alert_rate - expected.value) < 2 * np.sqrt(2 * 0.22 * 0.78 / 4000)
    assert accuracy > without[2] - 0.01
