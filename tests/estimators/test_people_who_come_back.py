"""People who come back, in Python: warned of, and rows that are nearly equal held out together by every method."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import qmedoid
from qmedoid import EvidenceClassifier, MedoidClassifier
from qmedoid.exceptions import QMedoidWarning

IDS = {
    "text": lambda person: [f"c{one:04d}" for one in person],
    "number": lambda person: 100_000 + 7_919 * person % 90_001,
    "hash": lambda person: [f"{(int(one) + 1) * 0x9E3779B97F4A7C15 % 2**64:016x}" for one in person],
}


def people(ids="text", seed=0, n=150, noise=0.05):
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n), 10)
    y = rng.integers(0, 2, n)[person]
    cells = rng.normal(size=(n, 6))[person] + noise * rng.normal(size=(10 * n, 6))
    order = rng.permutation(10 * n)
    table = pd.DataFrame(cells[order], columns=[f"x{place}" for place in range(6)])
    table.insert(0, "customer", np.asarray(IDS[ids](person))[order])
    return table, pd.Series(y[order], name="churn")


def fitted(X, y, *, groups=None, method="auto", **settings):
    """A fit, and what it warned of."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", QMedoidWarning)
        model = MedoidClassifier(method=method, refine="never", random_state=0, **settings).fit(X, y, groups=groups)
    return model, [str(one.message) for one in given if issubclass(one.category, QMedoidWarning)]


def expected(model):
    counts = model.expected_.counts
    return (counts.tp + counts.tn) / sum(counts)


@pytest.mark.parametrize("ids", IDS)
def test_following_the_advice_gives_what_new_customers_show(ids):
    X, y = people(ids)
    (finding,) = qmedoid.check_table(X.assign(churn=y), "churn")["findings"]
    assert finding["code"] == "shared_class"
    assert "groups=X['customer']" in finding["message"]
    evidence = EvidenceClassifier(n_medoids=8, n_neighbors=0)
    plain, said = fitted(X, y, ignore=["customer"], method=evidence)
    (about,) = [one for one in said if "share their class" in one]
    assert "hold them out together with groups=X['customer']" in about
    assert any("share their class" in note for note in plain.notes_)
    model, said = fitted(X, y, ignore=["customer"], method=evidence, groups=X["customer"])
    assert not [one for one in said if "share their class" in one]
    new, truth = people(ids, seed=1)
    assert abs(expected(model) - model.score(new, truth)) < 0.12
    assert expected(plain) > model.score(new, truth) + 0.2


@pytest.mark.parametrize("made", [MedoidClassifier(method=EvidenceClassifier(), refine="never"), EvidenceClassifier()])
def test_rows_that_are_nearly_equal_are_held_out_together(made):
    """Classes are noise to all who do not know the other rows of a person."""
    X, y = people(noise=1e-6)
    with pytest.warns(QMedoidWarning, match="1,350 of 1,500 rows are equal to another but for one cell"):
        model = clone(made).set_params(random_state=0).fit(X.drop(columns="customer").to_numpy(), y)
    assert expected(model) < 0.5 + 4.0 * np.sqrt(0.25 / 150)
    assert model.expected_.draws_per_row == pytest.approx(0.1)


def test_a_model_of_nearly_equal_rows_does_not_depend_on_the_order_of_the_rows():
    X, y = people(noise=1e-6, n=60)
    cells, order = X.drop(columns="customer"), np.random.default_rng(0).permutation(len(y))
    evidence = EvidenceClassifier(n_medoids=8, n_neighbors=0)
    one, _ = fitted(cells, y, method=evidence)
    other, _ = fitted(cells.iloc[order], y.iloc[order], method=evidence)
    np.testing.assert_array_equal(one.predict_proba(cells), other.predict_proba(cells))
    assert one.expected_.counts == other.expected_.counts


def test_groups_of_single_rows_insist_on_plain_rows():
    X, y = people(noise=1e-6)
    model, said = fitted(X, y, ignore=["customer"], method=EvidenceClassifier(), groups=np.arange(len(y)))
    assert not [one for one in said if "share" in one]
    assert expected(model) > 0.9


class Seen(EvidenceClassifier):
    """Keeps the rows of every fit."""

    rows = []  # noqa: RUF012 (clones share it)

    def fit(self, X, y, **more):
        Seen.rows.append(X)
        return super().fit(X, y, **more)


def test_bootstrap_samples_have_all_rows_of_a_person_or_none():
    X, y = people(noise=1e-6, n=60)
    cells, person = X.drop(columns="customer").to_numpy(), pd.factorize(X["customer"])[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        qmedoid.stability(Seen(n_medoids=4, n_neighbors=0, random_state=0), cells, y, n_bootstraps=3)
    place = {row.tobytes(): number for number, row in enumerate(cells)}
    for sample in Seen.rows[1:]:
        times = np.bincount([place[row.tobytes()] for row in sample], minlength=len(cells))
        assert len(set(times.tolist())) > 1
        assert all(len(set(times[person == one].tolist())) == 1 for one in range(60))
