"""What the command line says of a table, a classifier says too: as warnings of its fit; and no row is no error."""

import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import qmedoid
from qmedoid import (
    DeltaFeatures,
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    RareEventClassifier,
    SumClassifier,
    VariationalClassifier,
)
from qmedoid.exceptions import DataError, QMedoidWarning
from qmedoid.model.contract import Column
from qmedoid.tables import cells

pytestmark = pytest.mark.usefixtures("few_trees")
N = 240
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
Y = (X[:, 0] + 0.5 * rng.normal(size=N) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
QUICK = EvidenceClassifier(n_medoids=6, n_neighbors=0)


def quick(**settings):
    return MedoidClassifier(method=QUICK, random_state=0, **settings)


def fitted(X, y=Y, **settings):
    """A fit and its warnings; one of another library is an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("error", category=RuntimeWarning)
        model = quick(**settings).fit(X, y)
    assert all(issubclass(one.category, QMedoidWarning) for one in caught)
    return model, [str(one.message) for one in caught]


def test_levels_that_differ_by_case_or_blanks_are_named_by_a_fit_as_by_check():
    town = np.array(["Yes", "yes", "no", "not  known", "not known"])[np.arange(N) % 5]
    model, said = fitted(FRAME.assign(town=town))
    sentence = "levels differ by case or blanks only: 'Yes' and 'yes', 'not  known' and 'not known'"
    assert sum(sentence in one for one in said) == 1
    found = qmedoid.check_table(FRAME.assign(town=town))["findings"]
    assert [one["message"] for one in found if one["code"] == "spellings"] == [
        one for one in model.notes_ if sentence in one
    ]


# --- infinite cells ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [np.asarray, lambda X: pd.DataFrame(X, columns=["a", "b", "c"])], ids=["array", "frame"]
)
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200])
def test_infinite_cells_are_missing_with_a_warning_and_no_other(make, value):
    odd, missing = X.copy(), X.copy()
    odd[:50, 0], missing[:50, 0] = value, np.nan
    odd[50, 0] = missing[50, 0] = np.nan
    model, said = fitted(make(odd))
    (about,) = (one for one in said if "infinite" in one)
    assert re.fullmatch(r"Column '(a|x0)': 50 of 240 cells are infinite or beyond 1e150: taken as missing\.", about)
    assert about[0].lower() + about[1:-1] in model.notes_
    plain, _ = fitted(make(missing))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict_proba(make(odd)), plain.predict_proba(make(missing)))


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200])
def test_infinite_cells_after_the_fit_are_warned_of(value):
    model, said = fitted(FRAME)
    assert said == []
    odd = FRAME.assign(a=np.where(np.arange(N) < 50, value, FRAME["a"]))
    for one in (model, model.to_saved()):
        with pytest.warns(QMedoidWarning, match="huge: 'a' has 50 of 240 cells beyond 1e150: taken as missing"):
            probabilities = one.predict_proba(odd) if one is model else one.predict_proba(odd, on_mismatch="warn")
        assert np.isfinite(probabilities).all()


def test_infinite_cells_are_equal_to_missing_ones_and_to_no_number():
    values = [1.0, 3.0, np.inf, -np.inf, None, 3.0, 1e200, float("nan")]
    for n_columns in (1, 40):  # by itself, and many at a time
        table = pa.table({f"x{place}": values for place in range(n_columns)})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            places, _ = cells.cell_ranks(table, [Column(name, "number", missing=True) for name in table.column_names])
        assert (places == places[:, :1]).all()
        assert places[:, 0].tolist() == [0, 1, 2, 2, 2, 1, 2, 2]


# --- no rows ----------------------------------------------------------------------------------------------------

KINDS = {
    "evidence": QUICK,
    "sum": SumClassifier(n_medoids=6, n_neighbors=0),
    "rare": RareEventClassifier(n_common=50, n_hard=0),
    "nearest": NearestMedoidClassifier(max_passes=0),
    "circuit": VariationalClassifier(n_steps=3, n_seeds=1),
    "front": quick(),
    "refined": MedoidClassifier(
        method=NearestMedoidClassifier(max_passes=0),
        variational=VariationalClassifier(n_steps=3, n_seeds=1),
        refine=0.5,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.filterwarnings("ignore::qmedoid.exceptions.QMedoidWarning")
def test_of_no_rows_nothing_is_predicted(kind, has_missing):
    given = np.where(rng.random(X.shape) < 0.05, np.nan, X) if has_missing else X
    for table in (given, pd.DataFrame(given, columns=["a", "b", "c"])):
        model = KINDS[kind].set_params(random_state=0).fit(table, Y)
        one = model.to_saved()
        for answer in (model, one):
            assert answer.predict(table[:0]).shape == (0,)
            assert answer.predict(table[:0]).dtype == answer.predict(table[:2]).dtype
            assert answer.decision_function(table[:0]).shape == (0,)
            if hasattr(model, "predict_proba"):
                assert answer.predict_proba(table[:0]).shape == (0, 2)
        with pytest.raises(ValueError, match=r"no rows|empty input array"):
            model.score(table[:0], Y[:0])
        with pytest.raises(ValueError, match=r"while a minimum|no rows"):
            model.fit(table[:0], Y[:0])


def test_of_no_rows_of_three_classes_and_of_every_kind_of_column_nothing_is_predicted():
    frame = FRAME.assign(
        day=pd.date_range("2024-01-01", periods=N), kind=np.where(X[:, 1] > 0, "u", "v"), flag=X[:, 2] > 0
    )
    model = quick().fit(frame, np.arange(N) % 3)
    assert model.predict_proba(frame[:0]).shape == model.decision_function(frame[:0]).shape == (0, 3)
    assert model.decided_by(frame[:0]).shape == model.novelty(frame[:0]).shape == (0,)
    assert DeltaFeatures(NearestMedoidClassifier(max_passes=0)).fit(X, Y).transform(X[:0]).shape == (0, 2)


@pytest.mark.parametrize("call", ["importances", "effect", "estimate_prevalence", "score"])
def test_what_needs_a_row_says_so(call):
    model = quick().fit(FRAME, Y)
    more = {"effect": ("a",), "score": (Y[:0],)}.get(call, ())
    for one in (model, model.to_saved()):
        if hasattr(one, call):
            with pytest.raises(DataError, match="no rows"):
                getattr(one, call)(FRAME[:0], *more)


# --- notes ------------------------------------------------------------------------------------------------------

TABLES = {
    "infinite": FRAME.assign(a=np.where(np.arange(N) < 9, np.inf, FRAME["a"])),
    "sentinel": FRAME.assign(a=np.where(np.arange(N) % 5 == 0, 0.0, 100.0 + np.arange(N) % 37)),
    "days as numbers": FRAME.assign(day=[int(f"2024{1 + n % 12:02d}{1 + n % 28:02d}") for n in range(N)]),
    "numbers as texts": FRAME.assign(a=[f"{value:.3f}" if n > 4 else "unknown" for n, value in enumerate(FRAME["a"])]),
    "thousands": FRAME.assign(a=[f"${1000 + 7 * n:,}.50" for n in range(N)]),
    "constant": FRAME.assign(a=1.5),
    "empty": FRAME.assign(a=np.nan),
    "identifier": FRAME.assign(customer_id=rng.permutation(10 * N)[:N]),
    "free text": FRAME.assign(text=[f"words of the record {n} here" for n in range(N)]),
    "nearly an identifier": FRAME.assign(code=[f"C-{max(n, 1):05d}" for n in range(N)]),
    "equal rows": pd.DataFrame(np.repeat(X[:120], 2, axis=0), columns=["a", "b", "c"]),
}


@pytest.mark.parametrize("name", TABLES)
def test_what_fit_prints_the_classifier_warns_of(cli, tmp_path, name):
    """Of the same table, in the same words but for how a column is kept."""
    frame, y = TABLES[name], np.repeat(Y[:120], 2) if name == "equal rows" else Y
    pa.parquet.write_table(pa.Table.from_pandas(frame.assign(y=y), preserve_index=False), tmp_path / "t.parquet")
    how = ("--target", "y", "--test", "0", "--method", "evidence", "--medoids", "6", "--neighbors", "0", "--seed", "0")
    printed = cli.ok("fit", tmp_path / "t.parquet", "-o", tmp_path / "m", *how, "--json").json["notes"]
    printed = [re.sub(r" \(--keep \S+ keeps it\)", "", note) for note in printed]
    _, said = fitted(frame, y)
    said = [re.sub(r"; roles=\{.*?\} keeps it", "", one[0].lower() + one[1:]) for one in said]
    assert printed
    for note in printed:
        start = note[0].lower() + note[1:].removesuffix(".")
        assert any(start in one for one in said), (note, said)


def test_many_notes_are_one_warning():
    frame = FRAME.assign(**{f"inf{place}": np.where(np.arange(N) < 9, np.inf, X[:, 0] + place) for place in range(8)})
    model, said = fitted(frame)
    (about,) = (one for one in said if "infinite" in one)
    assert about.count("taken as missing") == 5
    assert about.endswith("; and 3 more: see notes_.")
    assert sum("infinite" in note for note in model.notes_) == 8


def test_notes_of_a_method_alone_are_warned_of():
    wide = rng.normal(size=(60, 520))
    with pytest.warns(QMedoidWarning) as caught:
        EvidenceClassifier(n_medoids=4, n_neighbors=0, random_state=0).fit(wide, np.arange(60) % 2)
    front = MedoidClassifier(method="evidence", random_state=0)
    with pytest.warns(QMedoidWarning) as also:
        front.fit(wide, np.arange(60) % 2)
    for one in (caught, also):
        assert sum("520" in str(found.message) for found in one) == 1
