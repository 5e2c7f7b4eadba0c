"""Raw tables: what the classifier makes of them, how it holds others against them, and that its model decides alike."""

import datetime as dt
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer

from qmedoid import MedoidClassifier, NearestMedoidClassifier, VariationalClassifier
from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.exceptions import ContractError, DataError, ParameterError, QMedoidWarning
from qmedoid.model.contract import Levels
from qmedoid.tables.encode import encode_batch

N = 240
FAST = MedoidClassifier(method=NearestMedoidClassifier(max_passes=1, subset_sizes=(2, 2)), refine="never")
TINY_CIRCUIT = VariationalClassifier(n_steps=5, n_seeds=1, n_qubits=2)


def make_frame(seed=0, n=N):
    """Columns of every kind of which some say something about the target, and a target of three classes."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "row": np.arange(n),
            "strength": strength + rng.normal(scale=0.3, size=n),
            "color": np.where(strength > 0.3, "red", np.where(rng.random(n) < 0.5, "blue", "green")),
            "town": [f"town {number}" for number in (rng.integers(0, 15, n) + 15 * (strength > 0))],
            "member": rng.random(n) < 0.5,
            "since": [dt.datetime(2024, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 300, n)],
            "amount": [f"{value:.2f}" for value in strength + rng.normal(size=n)],
            "constant": 1,
        }
    )
    frame.loc[frame.index % 11 == 0, "strength"] = np.nan
    frame.loc[frame.index % 13 == 0, "color"] = None
    labels = np.where(strength > 0.4, "high", np.where(strength < -0.4, "low", "mid"))
    return frame, pd.Series(labels, name="level")


@pytest.fixture(scope="module")
def data():
    frame, labels = make_frame()
    two = pd.Series(np.where(labels == "high", "yes", "no"), name="target")
    return frame, two


@pytest.fixture(scope="module")
def fitted(data):
    return clone(FAST).set_params(random_state=0).fit(*data)


def test_contract_says_what_the_columns_are(fitted):
    kinds = {column.name: column.kind for column in fitted.model_.contract.columns}
    assert kinds == {
        "strength": "number",
        "color": "category",
        "town": "category",
        "member": "boolean",
        "since": "date",
        "amount": "number",
    }
    assert dict(fitted.model_.contract.left_out) == {"row": "it numbers the rows", "constant": "every cell is 1"}
    assert fitted.model_.contract.target == "target"
    assert fitted.n_features_in_ == 8
    assert fitted.feature_names_in_.tolist()[:2] == ["row", "strength"]
    assert fitted.model_.layout.names[:2] == ("strength", "strength is missing")
    assert len(fitted.model_.layout.names) == sum(len(encoding.outputs) for encoding in fitted.model_.encodings)
    assert "column 'row' was left out: it numbers the rows; roles={'row': 'keep'} keeps it" in fitted.notes_


def test_table_is_a_table(fitted, data):
    """The same rows from every library, with the columns in any order and others beside them."""
    frame, _ = data
    expected = fitted.decision_function(frame)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    others = [
        arrow,
        arrow.combine_chunks().to_batches()[0],
        pl.from_arrow(arrow),
        {name: arrow.column(name).to_pylist() for name in arrow.column_names},
        frame[frame.columns[::-1]],
        frame.assign(new=1).drop(columns=["row", "constant"]),
        frame.astype({"color": "category", "town": "category"}),
        frame.set_index("row"),
        frame.assign(amount=frame["amount"].astype(float)),
    ]
    for other in others:
        np.testing.assert_array_equal(fitted.decision_function(other), expected)
    refitted = clone(fitted).fit(pl.from_arrow(arrow), data[1])
    np.testing.assert_array_equal(refitted.decision_function(frame), expected)


def test_array_of_numbers_is_passed_on_as_it_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    table = clone(FAST).set_params(random_state=1).fit(X, y)
    plain = clone(FAST.method).set_params(random_state=table.estimator_.random_state).fit(X, y)
    np.testing.assert_array_equal(table.model_.score(X).scores, plain.model_.score(X).scores)
    np.testing.assert_array_equal(table.decision_function(X.tolist()), table.decision_function(X))
    assert table.model_.contract.names == ("x0", "x1", "x2", "x3")
    assert not hasattr(table, "feature_names_in_")
    np.testing.assert_array_equal(table.predict(pd.DataFrame(X, columns=list("abcd"))), table.predict(X))
    with pytest.raises(DataError, match="X has 3 features, but MedoidClassifier is expecting 4"):
        table.predict(pd.DataFrame(X[:, :3], columns=list("abc")))


def test_named_columns_may_come_as_an_array_in_their_order(fitted, data):
    frame, _ = data
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        decided = fitted.decision_function(frame.astype(object).to_numpy())
    np.testing.assert_array_equal(decided, fitted.decision_function(frame))


def test_medoids_are_rows_of_the_table(fitted, data):
    frame, labels = data
    medoids = fitted.medoid_records_
    assert json.loads(json.dumps(medoids)) == medoids
    model = fitted.model_
    assert model.records == tuple(medoids)
    for record, row, code in zip(medoids, model.medoids.numbers, model.medoids.classes, strict=True):
        real = frame.iloc[row]
        assert labels[row] == fitted.classes_[code]
        assert record["town"] == real["town"]
        assert record["amount"] == real["amount"]
        assert record["since"] == real["since"].isoformat()
        assert (record["strength"] is None) == np.isnan(real["strength"])
        assert "row" not in record


INNER = {
    "geometric": FAST,
    "cut": clone(FAST).set_params(operating_point="f1"),
    "budget": clone(FAST).set_params(operating_point={"alert_rate": 0.1}),
    "hybrid": clone(FAST).set_params(refine=0.3, variational=TINY_CIRCUIT),
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("positive", [None, "no"])
def test_model_decides_as_the_classifier_does(inner, positive, data):
    frame, labels = data
    classifier = clone(INNER[inner]).set_params(positive=positive, random_state=0).fit(frame, labels)
    model = classifier.model_
    table = pa.Table.from_pandas(frame, preserve_index=False)
    decided = model.decide(encode_batch(table, model.contract, model.encodings))
    np.testing.assert_array_equal(np.array(model.decision.classes)[decided.codes], classifier.predict(frame))
    # A positive class that is not the last is the second of the model, and stays the first of the classifier.
    sign = -1.0 if positive == "no" else 1.0
    np.testing.assert_allclose(sign * decided.margins, classifier.decision_function(frame), rtol=1e-12, atol=1e-12)
    places = [model.decision.classes.index(label) for label in classifier.classes_]
    probabilities = model.decision.probabilities(decided.scores)[:, places]
    np.testing.assert_allclose(probabilities, classifier.predict_proba(frame), rtol=1e-12)
    np.testing.assert_array_equal(np.where(decided.by_circuit, "circuit", "nearest"), classifier.decided_by(frame))
    assert json.dumps(dict(model.parameters))


def test_positive_class_is_the_second_of_the_model_and_scikit_learn_sees_no_difference(data):
    frame, labels = data
    one, other = (clone(FAST).set_params(positive=p, random_state=0).fit(frame, labels) for p in ("yes", "no"))
    assert one.classes_.tolist() == other.classes_.tolist() == ["no", "yes"]
    assert one.model_.decision.classes == ("no", "yes")
    assert other.model_.decision.classes == ("yes", "no")
    for scoring in ("roc_auc", "neg_log_loss", "accuracy"):
        measure = get_scorer(scoring)
        assert measure(one, frame, labels) == pytest.approx(measure(other, frame, labels), abs=0.05)
    assert (one.predict(frame) == other.predict(frame)).mean() > 0.95
    assert other.score(frame, labels) == np.mean(other.predict(frame) == labels)


def test_one_class_against_the_rest():
    frame, labels = make_frame()
    against = clone(FAST).set_params(positive="high", random_state=0).fit(frame, labels)
    assert against.classes_.tolist() == ["high", "not high"]
    assert against.model_.decision.classes == ("not high", "high")
    two = clone(FAST).set_params(positive="high", random_state=0)
    two.fit(frame, np.where(labels == "high", "high", "not high"))
    np.testing.assert_array_equal(against.decision_function(frame), two.decision_function(frame))
    assert against.score(frame, labels) == two.score(frame, np.where(labels == "high", "high", "not high"))


def test_positive_class_may_be_written_as_text(data):
    frame, labels = data
    numbers = (labels == "yes").astype(int)
    assert clone(FAST).set_params(positive="0", random_state=0).fit(frame, numbers).model_.decision.classes == (
        1,
        0,
    )
    with pytest.raises(ParameterError, match=r"'maybe' is no class in 'target'\. The classes are 'no', 'yes'"):
        MedoidClassifier(positive="maybe").fit(frame, labels)


def test_three_classes():
    frame, labels = make_frame()
    fitted = clone(FAST).set_params(random_state=0).fit(frame, labels)
    new, truth = make_frame(seed=5)
    assert fitted.decision_function(new).shape == (N, 3)
    assert fitted.score(new, truth) > 0.6
    town = next(
        e for e, c in zip(fitted.model_.encodings, fitted.model_.contract.columns, strict=True) if c.name == "town"
    )
    assert isinstance(town, Levels)
    assert town.outputs == (": share of high", ": share of low", ": share of mid", ": frequency")


@pytest.mark.parametrize("inner", ["cut", "hybrid"])
def test_validation_rows_choose_and_training_rows_fit(inner, data):
    frame, labels = data
    new, truth = make_frame(seed=2, n=100)
    new["town"] = "a town of the validation rows"
    truth = np.where(truth == "high", "yes", "no")
    with pytest.warns(QMedoidWarning, match="'town' has 1 level that the training rows did not, in 100 rows"):
        fitted = clone(INNER[inner]).set_params(random_state=0).fit(frame, labels, X_val=new, y_val=truth)
    alone = clone(INNER[inner]).set_params(random_state=0).fit(frame, labels)
    for one, other in zip(fitted.model_.encodings, alone.model_.encodings, strict=True):
        if isinstance(one, Levels):
            assert one.levels == other.levels
            np.testing.assert_array_equal(one.values, other.values)
    model = fitted.model_
    assert model.medoids.numbers.max() < len(frame)
    assert fitted.predict(frame).shape == labels.shape


def test_operating_point_is_that_of_the_validation_rows(data):
    frame, labels = data
    new, _ = make_frame(seed=2, n=100)
    truth = np.where(np.arange(100) % 2, "yes", "no")
    fitted = clone(INNER["budget"]).set_params(random_state=0).fit(frame, labels, X_val=new, y_val=truth)
    assert (fitted.predict(new) == "yes").sum() == 10


@pytest.mark.parametrize(
    "method", ["evidence", EvidenceClassifier(n_medoids=6, n_neighbors=0)], ids=["default", "six medoids"]
)
def test_validation_rows_calibrate_evidence_and_are_not_fitted_on(method, data):
    frame, labels = data
    new, truth = make_frame(seed=2, n=100)
    truth = np.where(truth == "high", "yes", "no")
    table = MedoidClassifier(method=method, random_state=0)
    found = [clone(table).fit(frame, labels, X_val=new, y_val=y) for y in (truth, truth[::-1])]
    alone = clone(table).fit(frame, labels)
    first, second = (one.model_ for one in found)
    for model in (first, second):
        np.testing.assert_array_equal(model.parts[0].terms.weights, alone.model_.parts[0].terms.weights)
        np.testing.assert_array_equal(model.medoids.numbers, alone.model_.medoids.numbers)
    # Labels in another order tell of nothing: the same scores are calibrated to hardly any difference.
    assert abs(second.calibration.slope) < first.calibration.slope / 4
    assert first.calibration.slope != alone.model_.calibration.slope


def test_broken_contract_is_refused_with_a_diff(fitted, data):
    frame, _ = data
    with pytest.raises(ContractError, match=r"- missing: 'color' \(category\)"):
        fitted.predict(frame.drop(columns="color"))
    with pytest.raises(ContractError, match="or fit on tables like this one"):
        fitted.predict(frame.drop(columns="color"))
    with pytest.raises(ContractError, match=r"missing: 'color' .*did you mean 'Color'"):
        fitted.predict(frame.rename(columns={"color": "Color"}))
    with pytest.raises(ContractError, match=r"'strength' was a number, 240 of 240 cells are not, such as 'much'"):
        fitted.predict(frame.assign(strength="much"))
    with pytest.raises(ContractError, match="'since' was a date, and is a number"):
        fitted.predict(frame.assign(since=3.5))


def test_new_levels_are_tolerated_with_a_warning(fitted, data):
    frame, _ = data
    with pytest.warns(QMedoidWarning, match=r"'color' has 1 level .* in 240 rows: 'pink'"):
        assert len(fitted.predict(frame.assign(color="pink"))) == N


def test_ignored_columns_say_nothing(data):
    frame, labels = data
    ignoring = clone(FAST).set_params(ignore=["town", "since"], random_state=0).fit(frame, labels)
    without = clone(FAST).set_params(random_state=0).fit(frame.drop(columns=["town", "since"]), labels)
    np.testing.assert_array_equal(ignoring.decision_function(frame), without.decision_function(frame))
    assert ignoring.model_.contract.left_out["town"] == "it was to be ignored"
    with pytest.raises(ParameterError, match="'ignore' names 'twon', which is not a column"):
        MedoidClassifier(ignore=["twon"]).fit(frame, labels)
    with pytest.raises(ParameterError, match=r"must be a list of names\. Got 'town'"):
        MedoidClassifier(ignore="town").fit(frame, labels)


def test_target_that_stands_among_the_columns_is_not_learnt_from(data):
    frame, labels = data
    fitted = clone(FAST).set_params(random_state=0).fit(frame.assign(target=labels), labels)
    assert "target" not in fitted.model_.contract.names


def test_encoded_column_that_is_the_same_everywhere_is_noted_by_name(data, recwarn):
    frame, labels = data
    fitted = clone(FAST).set_params(random_state=0).fit(frame.assign(flag=[1.0, None] * (N // 2)), labels)
    assert "'flag' is the same in all rows once encoded" in fitted.notes_
    assert "flag is missing" in fitted.model_.layout.names
    (said,) = (str(one.message) for one in recwarn.list if "flag" in str(one.message))
    assert said == "'flag' is the same in all rows once encoded."


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"a": [1.0]}), "1 sample"),
        (pd.DataFrame(index=range(5)), "no columns"),
        (pd.DataFrame({"a": [1] * 5, "b": [None] * 5}), "No column is left to learn from .'a': every cell is 1; 'b'"),
        (pl.LazyFrame({"a": [1.0] * 5}), "collect"),
    ],
)
def test_tables_without_anything_to_learn_from(X, message):
    with pytest.raises(DataError, match=message):
        MedoidClassifier().fit(X, [0, 1, 0, 1, 0])


def test_other_misuse(data):
    frame, labels = data
    with pytest.raises(ParameterError, match="go together"):
        MedoidClassifier().fit(frame, labels, X_val=frame)
    with pytest.raises(DataError, match="y_val holds classes that y does not"):
        clone(FAST).fit(frame, labels, X_val=frame, y_val=["perhaps"] * N)
    with pytest.raises(DataError, match="Input X_val has no rows"):
        clone(FAST).fit(frame, labels, X_val=frame.iloc[:0], y_val=[])
    with pytest.raises(ParameterError, match="'method' parameter of MedoidClassifier must be one of 'auto'"):
        MedoidClassifier(method=TINY_CIRCUIT).fit(frame, labels)
    with pytest.raises(NotFittedError):
        MedoidClassifier().predict(frame)


@pytest.mark.parametrize(
    ("dtype", "plain"), [("Int64", np.int64), ("UInt8", np.uint8), ("boolean", np.bool_), ("int64[pyarrow]", np.int64)]
)
def test_targets_of_pandas_own_types_are_classes_of_numpy(dtype, plain):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    for target in (pd.array(y.astype(plain), dtype=dtype), pd.Series(y.astype(plain), dtype=dtype)):
        classifier = MedoidClassifier(method=NearestMedoidClassifier(random_state=0)).fit(X, target)
        assert classifier.classes_.dtype == plain
        assert classifier.classes_.tolist() == [0, 1]


def test_array_of_floats_is_scored_as_the_same_cells_in_any_other_form():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(120), rng.normal(size=(120, 3))])
    y = (X[:, 1] + 0.3 * rng.normal(size=120) > 0).astype(int)
    fitted = MedoidClassifier(ignore=["x0"], random_state=0).fit(X, y)
    table = {f"x{place}": X[:, place] for place in range(4)}
    for other in (X.tolist(), np.asfortranarray(X), table):
        np.testing.assert_array_equal(fitted.predict_proba(X), fitted.predict_proba(other))
    np.testing.assert_array_equal(fitted.predict_proba(X[:1]), fitted.predict_proba(X)[:1])
    with pytest.raises(ValueError, match="expecting 4 features"):
        fitted.predict(X[:, :3])
    for value in (np.nan, np.inf, 1e200):
        bad = X.copy()
        bad[5, 2] = value
        assert outcome(fitted, bad) == outcome(fitted, bad.tolist())


def outcome(fitted, X):
    """The decisions and the warnings, or the error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            decided = fitted.predict(X).tolist()
        except DataError as error:
            decided = str(error)
    assert told or isinstance(decided, str)
    return decided, [str(one.message) for one in told]


def test_class_priors_are_in_the_order_of_the_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.repeat(["bad", "good"], [40, 160])
    fitted = MedoidClassifier(positive="bad", random_state=0).fit(X, y)
    assert fitted.classes_.tolist() == ["bad", "good"]
    np.testing.assert_allclose(fitted.class_priors_, [0.2, 0.8])
    np.testing.assert_allclose(
        fitted.prior_shift(0.5).prior_shift(fitted.class_priors_).predict_proba(X), fitted.predict_proba(X), atol=1e-12
    )


def test_column_with_the_name_of_the_target_is_left_out_aloud():
    frame, _ = make_frame()
    labels = pd.Series(frame["strength"].to_numpy() > 0, name="strength")
    with pytest.warns(QMedoidWarning, match="'strength' was left out: it has the name of the target"):
        model = clone(FAST).fit(frame, labels)
    assert "strength" not in model.model_.contract.names
    assert "name of the target" in model.model_.contract.left_out["strength"]
