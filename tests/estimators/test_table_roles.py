"""Roles of columns in `MedoidClassifier`: scikit-learn's conventions hold, and scoring reads as the fit did."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from qmedoid import EvidenceClassifier, MedoidClassifier, stability
from qmedoid.exceptions import DataError, ParameterError, QMedoidWarning

FAST = MedoidClassifier(method=EvidenceClassifier(n_medoids=6, n_neighbors=0), refine="never", random_state=0)


def parity(n=160, seed=0):
    """The class is whether a code is even: codes are names, and their order says nothing."""
    rng = np.random.default_rng(seed)
    code = rng.integers(100, 108, n)
    label = np.where(rng.random(n) < 0.95, code % 2, 1 - code % 2)
    return pd.DataFrame({"code": code, "paid": rng.permutation(n) * 50 + 7, "noise": rng.normal(size=n)}), label


def fitted(frame, label, **settings):
    return clone(FAST).set_params(random_state=0, **settings).fit(frame, label)


def test_code_that_is_a_category_is_learnt_as_names():
    frame, label = parity()
    plain, by_role = fitted(frame, label), fitted(frame, label, roles={"code": "category"})
    assert {column.name: column.kind for column in plain.model_.contract.columns}["code"] == "number"
    assert by_role.model_.contract.columns[0].levels == tuple(str(code) for code in range(100, 108))
    new, truth = parity(400, seed=1)
    assert by_role.score(new, truth) > plain.score(new, truth) + 0.1


@pytest.mark.parametrize("change", [float, str, "category", lambda codes: codes.map("{}.0".format)])
def test_levels_are_found_however_a_table_spells_them(change):
    frame, label = parity()
    by_role = fitted(frame, label, roles={"code": "category"})
    codes = change(frame["code"]) if callable(change) and change not in (float, str) else frame["code"].astype(change)
    other = frame.assign(code=codes)
    with warnings.catch_warnings():
        warnings.simplefilter("error", QMedoidWarning)
        assert (by_role.predict_proba(other) == by_role.predict_proba(frame)).all()
    # And a fit on such a table is the same model.
    again = fitted(other, label, roles={"code": "category"})
    assert again.model_.contract.columns == by_role.model_.contract.columns
    assert (again.predict_proba(frame) == by_role.predict_proba(frame)).all()


def test_conventions_of_scikit_learn_hold():
    roles = {"code": "category", "noise": "ignore"}
    classifier = clone(FAST).set_params(roles=roles, random_state=0)
    assert classifier.get_params()["roles"] is roles
    copy = clone(classifier)
    assert copy.roles == roles
    assert clone(copy).set_params(roles=None).roles is None
    frame, label = parity()
    copy.fit(frame, label)
    assert copy.roles == roles
    assert copy.model_.parameters["roles"] == roles
    search = GridSearchCV(clone(FAST).set_params(random_state=0), {"roles": [None, {"code": "category"}]}, cv=2)
    assert search.fit(frame, label).best_params_ == {"roles": {"code": "category"}}


def test_arrays_have_roles_by_the_names_that_their_columns_get():
    frame, label = parity()
    array = frame[["code", "noise"]].to_numpy()
    assert fitted(array, label, roles={"x0": "category"}).model_.contract.columns[0].kind == "category"


def test_identifiers_by_name_are_told_of_and_can_be_kept():
    frame, label = parity()
    frame = frame.rename(columns={"paid": "paid_id"})
    with pytest.warns(QMedoidWarning, match=r"'paid_id' was left out: .*; roles=\{'paid_id': 'keep'\} keeps it"):
        left = fitted(frame, label)
    assert "paid_id" in left.model_.contract.left_out
    with warnings.catch_warnings():
        warnings.simplefilter("error", QMedoidWarning)
        kept = fitted(frame, label, roles={"paid_id": "keep"})
        assert "paid" in fitted(frame.rename(columns={"paid_id": "paid"}), label).model_.contract.names
    assert "paid_id" in kept.model_.contract.names


def test_columns_left_out_by_a_guess_are_told_of_once_and_those_ignored_are_not():
    frame, label = parity()
    few = frame.assign(same=3, empty=np.nan)
    with pytest.warns(QMedoidWarning, match="left out") as caught:
        found = fitted(few, label, ignore=["noise"])
    (message,) = [str(one.message) for one in caught if "left out" in str(one.message)]
    assert message == "Column 'same' was left out: every cell is 3; column 'empty' was left out: every cell is missing."
    assert set(found.model_.contract.left_out) == {"same", "empty", "noise"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", QMedoidWarning)
        fitted(few, label, ignore=["noise", "same"], roles={"empty": "ignore"})
    many = frame.assign(**{f"same{number}": number for number in range(8)})
    with pytest.warns(QMedoidWarning, match="column 'same4' was left out: every cell is 4; and 3 more"):
        fitted(many, label)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"roles": {"cod": "category"}}, "'cod' has the role 'category', but is not a column. Did you mean 'code'"),
        ({"roles": {"code": "text"}}, "gives column 'code' the role 'text'"),
        ({"roles": ["code"]}, "must map column names to roles"),
        ({"roles": {"code": "number"}, "ignore": ["code"]}, "'code' has two roles"),
        ({"roles": {"code": "date"}}, "none of its cells is a date"),
    ],
)
def test_roles_that_cannot_be_are_refused_in_one_sentence(settings, words):
    frame, label = parity(40)
    with pytest.raises((ParameterError, DataError), match=words):
        fitted(frame, label, **settings)


def test_refits_read_columns_as_the_first_fit_did():
    """A column that numbers the rows has numbers twice in a bootstrap sample; a constant by role stays left out."""
    frame, label = parity(60)
    frame = frame.assign(number=np.arange(60), same=1)
    classifier = clone(FAST).set_params(roles={"code": "category", "same": "category"}, random_state=0)
    report = stability(classifier, frame, label, n_bootstraps=2, random_state=0)
    assert report.n_bootstraps == 2
