"""Bad input ends in a message that says what was given, what is allowed and what to do; odd input in a warning."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from qmedoid import DeltaFeatures, NearestMedoidClassifier, VariationalClassifier
from qmedoid.exceptions import DataError, ParameterError, QMedoidWarning

NAMES = ["age", "pulse", "sugar", "weight"]
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=NAMES)


def quick(**changes):
    return NearestMedoidClassifier(**({"max_passes": 0, "cv": 2, "random_state": 0, "n_models": 1} | changes))


BOTH = pytest.mark.parametrize("make", [quick, DeltaFeatures], ids=["fusion", "deltas"])


def spoilt(value, row, column):
    table = X.copy()
    table[row, column] = value
    return table


def one_warning(caught):
    """The only warning, which must point at this file and not at some wrapper."""
    assert len(caught) == 1, [str(w.message) for w in caught]
    assert issubclass(caught[0].category, QMedoidWarning)
    assert caught[0].filename == __file__
    return str(caught[0].message)


@pytest.fixture
def caught():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen


# --- values of X ------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("value", "what", "remedy"),
    [
        (np.inf, "infinity", "Replace infinite values"),
        (-np.inf, "infinity", "Replace infinite values"),
        (1e200, "1e+200, beyond ±1e+150", "Scale the column"),
        (-3e180, "-3e+180, beyond ±1e+150", "Scale the column"),
    ],
)
def test_value_that_is_no_usable_number_is_named_with_its_place(make, value, what, remedy):
    table = spoilt(value, 7, 2)
    table[[9, 11], 2] = value
    with pytest.raises(DataError) as error:
        make().fit(table, Y)
    assert f"Input X contains {what} in column 2, first at row 7 (3 of 60 rows" in str(error.value)
    assert remedy in str(error.value)
    with pytest.raises(DataError, match=r"in column 'sugar' \(number 2\), first at row 7"):
        make().fit(pd.DataFrame(table, columns=NAMES), Y)


@pytest.mark.parametrize("method", ["predict", "decision_function", "channels"])
def test_bad_values_are_refused_at_prediction_too(method):
    fitted = quick().fit(FRAME, Y)
    with pytest.raises(DataError, match=r"contains infinity in column 'pulse' \(number 1\), first at row 3"):
        getattr(fitted, method)(pd.DataFrame(spoilt(np.inf, 3, 1), columns=NAMES))


def test_largest_values_that_are_taken_give_finite_decisions():
    for scaling in ("standard", "minmax", "none"):
        table = X / np.abs(X).max() * 1e150
        assert np.isfinite(quick(input_scaling=scaling).fit(table, Y).decision_function(table)).all()


@pytest.mark.parametrize(
    "missing",
    [
        FRAME.assign(pulse=pd.array([1, None] * 30, dtype="Int64")),
        FRAME.assign(pulse=pd.Series([1.0, None] * 30, dtype=object)),
        pl.DataFrame({"age": X[:, 0], "pulse": [1.0, None] * 30}),
        pa.table({"age": X[:, 0], "pulse": pa.array([1, None] * 30)}),
    ],
    ids=["pandas-nullable", "pandas-object", "polars", "pyarrow"],
)
def test_missing_values_of_every_make_are_found(missing):
    pulse = quick().fit(missing, Y).model_.contract.columns[1]
    assert (pulse.name, pulse.missing) == ("pulse", True)


@BOTH
@pytest.mark.parametrize(
    ("table", "value", "where"),
    [
        (FRAME.assign(pulse=["fast"] * 60), "'fast'", "column 'pulse' (number 1), first at row 0"),
        (FRAME.astype(object).replace({"sugar": {X[5, 2]: "hi"}}), "'hi'", "column 'sugar' (number 2), first at row 5"),
        (FRAME.assign(pulse=pd.Categorical(["a", "b"] * 30)), "'a'", "column 'pulse' (number 1), first at row 0"),
        (FRAME.assign(pulse=pd.Series(["a"] * 60, dtype="string")), "'a'", "column 'pulse' (number 1), first at row 0"),
        (pl.DataFrame({"age": X[:, 0], "pulse": ["u"] * 60}), "'u'", "column 'pulse' (number 1), first at row 0"),
        (pa.table({"age": X[:, 0], "pulse": ["u"] * 60}), "'u'", "column 'pulse' (number 1), first at row 0"),
        ([[1.0, "x"]] * 60, "'x'", "column 1, first at row 0"),
        (FRAME.assign(pulse=pd.Timestamp("2020-01-01")), "Timestamp", "column 'pulse' (number 1), first at row 0"),
    ],
    ids=["text", "one-cell", "category", "string-dtype", "polars", "pyarrow", "lists", "date"],
)  # fmt: skip
def test_text_is_named_with_its_place_and_the_way_out(make, table, value, where):
    with pytest.raises(DataError) as error:
        make().fit(table, Y)
    assert f"Input X holds {value}" in str(error.value)
    assert where in str(error.value)
    assert "OneHotEncoder" in str(error.value)


# --- shape of X -------------------------------------------------------------------------------------------------


@BOTH
def test_tables_of_no_use_are_refused(make):
    for nothing in (pd.DataFrame(), pl.DataFrame(), pa.table({})):
        with pytest.raises(DataError, match="Input X has no columns: pass at least one column of numbers"):
            make().fit(nothing, [])
    with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 2 is required"):
        make().fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match=r"0 feature\(s\).*minimum of 1 is required"):
        make().fit(X[:, :0], Y)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        make().fit(X[:, 0], Y)
    with pytest.raises(DataError, match=r"sparse, with 20,000 rows x 50,000 columns.*7\.5 GiB, and at most 1 GiB"):
        make().fit(scipy.sparse.csr_matrix((20_000, 50_000)), np.zeros(20_000))
    with pytest.raises(DataError, match=r"LazyFrame, whose rows are not there yet: collect\(\) it first"):
        make().fit(pl.DataFrame(X).lazy(), Y)
    with pytest.raises(ValueError, match=r"Input X could not be converted to numbers\. Pass a table of numbers"):
        make().fit("table.csv", Y)


def test_other_columns_than_at_fit_are_refused():
    fitted = quick().fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"(?s)unseen at fit time:\n- height.*yet now missing:\n- weight"):
        fitted.predict(FRAME.rename(columns={"weight": "height"}))
    with pytest.raises(ValueError, match=r"(?s)yet now missing:\n- age"):
        fitted.predict(FRAME.drop(columns="age"))
    with pytest.raises(ValueError, match=r"(?s)in the same order.*Put them in that order: X\[model"):
        fitted.predict(FRAME[NAMES[::-1]])
    with pytest.raises(ValueError, match="X has 3 features, but NearestMedoidClassifier is expecting 4"):
        quick().fit(X, Y).predict(X[:, :3])
    with pytest.raises(ValueError, match=r"(?s)yet now missing:\n- age"):
        quick().fit(FRAME, Y, X_val=FRAME.drop(columns="age"), y_val=Y)


def test_failed_fit_does_not_keep_the_names_of_the_last_one():
    fitted = quick().fit(FRAME, Y)
    with pytest.raises(DataError, match=r"infinity in column 1, first"):
        fitted.fit(spoilt(np.inf, 0, 1), Y)


# --- columns and rows that say little ---------------------------------------------------------------------------


def test_constant_column_is_dropped_with_a_warning_that_names_it(caught):
    table = FRAME.assign(pulse=1.5)
    fitted = quick().fit(table, Y)
    assert one_warning(caught) == (
        "column 'pulse' (number 1) held one value only and was dropped: it correlates with nothing."
    )
    assert 1 not in fitted.groups_.anchors
    assert all(1 not in members for members in fitted.groups_.members)


def test_warning_points_at_the_user_through_a_pipeline(caught):
    make_pipeline(FunctionTransformer(), quick()).fit(FRAME.assign(pulse=1.5), Y)
    assert "'pulse'" in one_warning(caught)


def test_many_constant_columns_are_counted(caught):
    quick().fit(np.hstack([X, np.ones((60, 14))]), Y)
    message = one_warning(caught)
    assert message.startswith("column 4, column 5, ")
    assert "column 13 and 4 more held one value only and were dropped: they correlate with nothing" in message


def test_dropped_column_may_hold_anything_later(caught):
    table = FRAME.assign(pulse=1.5)
    fitted = quick().fit(table, Y)
    np.testing.assert_array_equal(fitted.predict(table), fitted.predict(table.assign(pulse=-9.0)))
    one_warning(caught)


@BOTH
def test_columns_that_are_all_constant_are_refused(make):
    with pytest.raises(DataError, match=r"All 4 columns of X are constant: .*Pass at least one column that varies"):
        make().fit(np.ones((60, 4)), Y)


def test_fewer_rows_than_columns_warn(caught):
    wide = np.random.default_rng(1).normal(size=(8, 11))
    quick().fit(wide, [0, 1] * 4)
    assert one_warning(caught).startswith("8 rows for 11 columns: correlations between columns are unsure")


def test_group_larger_than_the_table_says_what_was_used(caught):
    fitted = quick(group_size=9).fit(X, Y)
    assert one_warning(caught) == "group_size=9 is more than the 4 columns that vary: 4 was used."
    assert {len(members) for members in fitted.groups_.members} == {4}


@pytest.mark.parametrize(("asked", "used"), [((2, 9), (2, 4)), ((6, 7), (4, 4))])
def test_sizes_beyond_the_groups_say_what_was_used(asked, used, caught):
    fitted = quick(subset_sizes=asked).fit(X, Y)
    assert one_warning(caught) == f"subset_sizes={asked} goes beyond the groups of 4 columns: {used} was used."
    sizes = [record.size for record in fitted.search_records_]
    assert sizes == list(range(used[0], used[1] + 1))


def test_more_medoids_than_rows_say_what_was_used(caught):
    y = np.where(np.arange(60) < 57, 0, 1)
    fitted = quick(n_medoids=5).fit(X, y)
    assert "n_medoids=5 is more than the 3 rows of class 1" in one_warning(caught)
    assert np.bincount(fitted.medoid_classes_).tolist() == [5, 3]


# --- classes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [0, "well", 2.0, True])
def test_one_class_is_not_enough(label):
    with pytest.raises(DataError, match=rf"one class only, {label!r}: a classifier needs records of at least 2"):
        quick().fit(X, [label] * 60)


def test_class_of_one_row_warns_and_is_never_held_out(caught):
    y = np.array(["a", "b"])[Y].astype(object)
    y[13] = "c"
    fitted = quick().fit(X, y)
    assert one_warning(caught).startswith("Class 'c' has one row: that row is its medoid, and it is never held out")
    assert dict(zip(fitted.medoid_classes_, fitted.medoid_indices_, strict=True))["c"] == 13
    assert fitted.predict(X[13:14]) == ["c"]


def test_classes_of_one_row_each_still_fit(caught):
    fitted = quick().fit(X[:5], list("abcde"))
    assert [str(w.message)[:27] for w in caught] == ["Every class has one row: th"]
    np.testing.assert_array_equal(fitted.predict(X[:5]), list("abcde"))


def test_small_class_gets_fewer_folds_and_a_warning_that_says_so(caught):
    quick(cv=10).fit(X, np.where(np.arange(60) < 57, 0, 1))
    (warning,) = caught
    assert "cv=10 folds need 10 rows of every class, and class 1 has 3: 3 were used." in str(warning.message)


def test_splitter_that_cannot_split_says_what_to_do(caught):
    with pytest.raises(ValueError, match=r"(?s)'cv' splitter could not split the rows.*Pass an int as 'cv'"):
        NearestMedoidClassifier.paper().fit(X, np.where(np.arange(60) < 59, 0, 1))
    assert "Class 1 has one row" in str(caught[0].message)


def test_column_whose_squares_vanish_is_named_unless_it_is_scaled():
    tiny = FRAME.assign(age=FRAME["age"] * 1e-200)
    with pytest.raises(ValueError, match=r"The values in column 'age'.*their squares vanish.*input_scaling='standard'"):
        NearestMedoidClassifier(input_scaling="none").fit(tiny, Y)
    plain, scaled = NearestMedoidClassifier().fit(FRAME, Y), NearestMedoidClassifier().fit(tiny, Y)
    assert plain.groups_.members == scaled.groups_.members


@BOTH
@pytest.mark.parametrize(
    "values",
    [
        np.where(np.arange(60) == 4, np.nan, Y),
        np.where(np.arange(60) == 4, None, np.array(["a", "b"])[Y]),
        np.where(np.arange(60) == 4, np.nan, np.array(["a", "b"])[Y].astype(object)),
        pd.Series(np.where(np.arange(60) == 4, None, Y), dtype="Int64"),
        pd.Series(np.where(np.arange(60) == 4, None, np.array(["a", "b"])[Y]), dtype="string"),
        pl.Series([None if i == 4 else "ab"[c] for i, c in enumerate(Y)]),
    ],
    ids=["float", "none", "nan-among-words", "Int64", "string", "polars"],
)
def test_missing_label_is_named_with_its_row(make, values):
    with pytest.raises(DataError, match=r"y contains NaN or None, first at row 4 \(1 of 60 rows\)\. Drop the rows"):
        make().fit(X, values)


@BOTH
def test_labels_of_mixed_types_are_refused(make):
    y = np.array(["a", "b"])[Y].astype(object)
    y[9] = 7
    with pytest.raises(DataError, match=r"y mixes values of the types int, str, .*Make all of them strings"):
        make().fit(X, y)


# --- validation rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"X_val": X}, {"y_val": Y}])
def test_validation_rows_and_labels_go_together(given):
    with pytest.raises(ParameterError, match="X_val and y_val go together: pass both, or neither"):
        quick().fit(X, Y, **given)


def test_bad_validation_rows_are_named_as_such():
    with pytest.raises(DataError, match=r"y_val holds classes that y does not: \[2\]\..*classes \[0, 1\]"):
        quick().fit(X, Y, X_val=X, y_val=Y + 1)
    with pytest.raises(DataError, match="X_val has 60 rows and y_val has 59"):
        quick().fit(X, Y, X_val=X, y_val=Y[1:])
    with pytest.raises(DataError, match="Input X_val contains infinity in column 3, first at row 2"):
        quick().fit(X, Y, X_val=spoilt(np.inf, 2, 3), y_val=Y)
    with pytest.raises(DataError, match="Input X_val holds 'x' in column 'age'"):
        quick().fit(FRAME, Y, X_val=FRAME.assign(age="x"), y_val=Y)
    with pytest.raises(DataError, match="y_val contains NaN or None, first at row 0"):
        quick().fit(X, Y, X_val=X, y_val=np.full(60, np.nan))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        quick().fit(X, Y, X_val=X[:0], y_val=Y[:0])


# --- folds ------------------------------------------------------------------------------------------------------


def test_fold_that_misses_a_class_is_refused():
    order = np.argsort(Y)
    with pytest.raises(DataError, match=r"Split 1 of 'cv' has no training row of class 1\. Use stratified splits"):
        quick(cv=KFold(2)).fit(X[order], Y[order])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([], "'cv' parameter of NearestMedoidClassifier holds no split"),
        ([(range(60), [])], "Split 0 of 'cv' has no validation rows"),
        ([(range(40), [99])], "Split 0 of 'cv' does not fit the 60 rows of X: index 99"),
        ([(range(60), range(60)), ([0.5], [1])], "Split 1 of 'cv' does not fit the 60 rows"),
    ],
)
def test_folds_that_do_not_fit_the_table_are_refused(cv, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        quick(cv=cv).fit(X, Y)


def test_folds_may_be_masks_or_count_from_the_end():
    train, val = np.arange(40), np.arange(40, 60)
    fitted = [
        quick(cv=cv, refit=False).fit(X, Y)
        for cv in ([(train, val)], [(np.arange(60) < 40, np.arange(60) >= 40)], [(train - 60, val - 60)])
    ]
    for other in fitted:
        np.testing.assert_array_equal(other.medoid_indices_, fitted[0].medoid_indices_)
        assert other.medoid_indices_.min() >= 0
        assert other.medoid_indices_.max() < 40


def test_without_refit_there_is_one_split():
    with pytest.raises(ParameterError, match=r"a single split, but cv made 3\. Pass refit=True, or a cv with one"):
        quick(refit=False, cv=3).fit(X, Y)


# --- parameters -------------------------------------------------------------------------------------------------

WRONG = {
    NearestMedoidClassifier: {
        "kind": ["norm", None, 3],
        "input_scaling": ["robust", None],
        "group_size": [0, -1, 2.5, "8", True],
        "n_anchors": [0, 1.0, "all"],
        "subset_sizes": [(3, 2), (0, 2), 3, (2,), (2, 3, 4), (1.5, 2), "23"],
        "max_passes": [-1, 1.5, None, True],
        "candidate_budget": [0, -5, 1.5],
        "use_angular": [1, "yes", None],
        "angle": ["cosine", None],
        "alpha": [-0.1, 1.1, "auto", float("nan"), True],
        "search_alpha": [None, 2, "x", float("nan")],
        "score_weight": ["uniform", 3, [1, 2]],
        "anchor_order": ["random", None],
        "n_medoids": [0, 1.5, None],
        "max_medoid_rows": [0, None, 10.0],
        "n_models": [0, "2"],
        "cv": [1, 0, -2, True, None, 2.5, "5"],
        "refit": [1, None, "yes"],
        "random_state": [-1, 2**32, 1.5, "seed", np.random.default_rng(0)],
    },
    VariationalClassifier: {
        "n_qubits": [0, 13, -1, 2.0, True, "4"],
        "n_reps": [0, 1.5, None],
        "reupload": [1, None, "yes"],
        "readout": ["Z", None, 3],
        "input_scales": [
            "auto",
            0.0,
            -1,
            None,
            [],
            [1.0, -1.0],
            [1.0, "x"],
            float("nan"),
            np.ones((2, 2)),
            np.array(1.0),
        ],
        "clip": [0, -1.0, "3", float("inf")],
        "span": [0.0, -1, float("nan"), None],
        "final_rz": [0, None],
        "optimizer": ["sgd", None],
        "n_steps": [0, -5, 10.0, None],
        "batch_size": [0, 2.5, "all"],
        "sampling": ["balanced", None],
        "learning_rate": [0, -0.1, None, float("inf")],
        "spsa_gains": [(0.2, 0.1), (0, 0.1, 0.6, 0.1), (0.2, -0.1, 0.6, 0.1), (0.2, 0.1, -0.6, 0.1), None, 0.2],
        "clip_norm": [0, -1.0, "1"],
        "patience": [0, 1.5, "no"],
        "tolerance": [-1e-9, None, float("nan")],
        "average": [-0.1, 1.1, None],
        "class_weight": ["auto", 3, [1, 2]],
        "n_seeds": [0, 1.5, None],
        "grid": [{"n_layers": [1, 2]}, {"n_reps": 3}, {"n_reps": []}, {"n_reps": [0, 1]}, {"n_seeds": [1]}, [1, 2]],
        "cv": [1, 0, True, None, 2.5, "5"],
        "operating_point": ["f3", "auc", 0, 1, 0.0, 1.0, -0.2, True, [0.3]],
        "precision": ["float16", None, 64],
        "random_state": [-1, 2**32, 1.5, "seed", np.random.default_rng(0)],
    },
    DeltaFeatures: {"method": [3, KFold(2)], "kind": ["all"], "fused": [1], "standardize": [1], "random_state": [-1]},
}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(kind, name, value) for kind, of_kind in WRONG.items() for name, values in of_kind.items() for value in values],
)
def test_wrong_parameter_is_named_with_what_is_allowed_and_what_was_given(kind, name, value):
    with pytest.raises(ParameterError) as error:
        kind(**{name: value}).fit(X, Y)
    message = str(error.value)
    assert re.match(rf"The '{name}' parameter of {kind.__name__} must be .+\. Got ", message)
    assert message.endswith(f"Got {value!r} instead.")


@pytest.mark.parametrize("kind", WRONG)
def test_every_parameter_is_tried(kind):
    assert set(WRONG[kind]) == set(kind().get_params())


def test_numbers_of_numpy_are_numbers():
    fitted = quick(
        group_size=np.int64(3), n_models=np.int32(1), use_angular=np.True_, alpha=np.float32(0.5), cv=np.int64(2)
    ).fit(X, Y)
    assert fitted.alpha_ == 0.5


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({7: 1.0}, "'score_weight' names 7, which is not a class. The classes are [0, 1]."),
        ({0: -1}, "must be a number between 1e-300 and 1e300. Got -1 for class 0 instead."),
        ({1: 0}, "Got 0 for class 1 instead."),
        ({0: "much"}, "Got 'much' for class 0 instead."),
        ({0: float("inf")}, "Got inf for class 0 instead."),
        ({0: float("nan")}, "Got nan for class 0 instead."),
    ],
)
def test_wrong_score_weights_name_the_class(weights, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        quick(score_weight=weights).fit(X, Y)


@BOTH
def test_more_columns_than_can_be_correlated_are_refused(make):
    wide = np.random.default_rng(1).normal(size=(8, 5001))
    with pytest.raises(DataError, match=r"5,000 of them\. X has 5,001 columns: leave some out"):
        make().fit(wide, np.arange(8) % 2)
