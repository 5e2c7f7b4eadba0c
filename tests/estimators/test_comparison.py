"""Ours next to baselines: figures as scikit-learn has them, paired differences, and rows as baselines take them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

import qmedoid
from qmedoid.estimators import comparison
from qmedoid.estimators.comparison import (
    OURS,
    compared,
    paired_difference,
    plain_rows,
    row_losses,
    run_baselines,
)
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.tables.kinds import infer_columns

TINY = qmedoid.EvidenceClassifier(n_medoids=6, n_neighbors=0)


def probabilities(n, n_classes, seed):
    drawn = np.random.default_rng(seed).gamma(1.0, size=(n, n_classes))
    return drawn / drawn.sum(axis=1, keepdims=True)


def fold(n=60, n_classes=2, seed=0, **others):
    codes = np.random.default_rng(seed).permutation(np.arange(n) % n_classes)
    outcomes = {OURS: (probabilities(n, n_classes, seed + 1), 1.0)}
    outcomes |= {name: (probabilities(n, n_classes, own), 2.0) for name, own in others.items()}
    return outcomes, codes, None


@pytest.mark.parametrize("n_classes", [2, 4])
def test_figures_are_those_of_scikit_learn(n_classes):
    outcomes, codes, _ = one = fold(n_classes=n_classes)
    found, said = compared([one]).methods[0], outcomes[OURS][0]
    assert found["log_loss"] == pytest.approx(metrics.log_loss(codes, said))
    of_two = said[:, 1] if n_classes == 2 else said
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(codes, of_two, multi_class="ovr"))
    assert found["macro_f1"] == pytest.approx(metrics.f1_score(codes, said.argmax(axis=1), average="macro"))
    if n_classes == 2:
        assert found["pr_auc"] == pytest.approx(metrics.average_precision_score(codes, of_two))
    else:
        assert found["pr_auc"] is None


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5)), min_size=2, max_size=30), st.integers(2, 4))
def test_copies_of_all_rows_are_no_more_sure(pairs, n_copies):
    theirs, ours = np.array(pairs).T
    alone = paired_difference(theirs, ours)
    assert alone["error"] == pytest.approx((theirs - ours).std(ddof=1) / np.sqrt(len(pairs)))
    groups = np.repeat(np.arange(len(pairs)), n_copies)
    copied = paired_difference(np.repeat(theirs, n_copies), np.repeat(ours, n_copies), groups)
    assert copied == pytest.approx(alone, abs=1e-9)


def test_the_verdict_names_a_baseline_that_wins_and_does_not_take_luck_for_a_difference():
    codes = np.arange(400) % 2
    sure, unsure = (np.where(np.eye(2)[codes] == 1, p, 1 - p) for p in (0.9, 0.6))
    for ours, theirs, words in (
        (unsure, sure, "A plain baseline wins: the log-loss of LightGBM is lower"),
        (sure, unsure, "No plain baseline wins"),
        (sure, np.where(np.arange(400)[:, None] % 20 < 10, sure + 0.001, sure - 0.001), "may be luck"),
    ):
        found = compared([({OURS: (ours, 1.0), "LightGBM": (theirs, 1.0)}, codes, None)])
        assert words in found.verdict() == found.to_dict()["verdict"]


def test_folds_are_means_with_errors_and_rows_of_all_of_them():
    folds = [fold(seed=seed, other=seed + 50) for seed in (1, 2, 3)]
    together, alone = compared(folds), [compared([one]) for one in folds]
    losses = [one.methods[1]["log_loss"] for one in alone]
    found = together.methods[1]
    assert found["log_loss"] == pytest.approx(np.mean(losses))
    assert found["errors"]["log_loss"] == pytest.approx(np.std(losses, ddof=1) / np.sqrt(3))
    losses = [np.concatenate([row_losses(one[name], codes) for one, codes, _ in folds]) for name in ("other", OURS)]
    assert found["log_loss_difference"] == paired_difference(*losses)
    assert (together.n_rows, together.n_folds) == (180, 3)


def test_a_method_that_lacks_in_a_fold_is_not_compared():
    assert [one["name"] for one in compared([fold(a=5, b=6), fold(a=7)]).methods] == [OURS, "a"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 120
    codes = np.arange(n) % 2
    table = pa.table({
        "x": [None if place % 11 == 0 else float(value) for place, value in enumerate(rng.normal(size=n) + 2 * codes)],
        "town": [f" t{place % 3}" if place % 7 else None for place in range(n)],
        "member": codes == rng.integers(0, 2, n),
        "day": pa.array(rng.integers(18_000, 19_000, n).astype(np.int32), pa.date32()),
    })  # fmt: skip
    columns = infer_columns(table).columns
    judged = table.slice(80).drop_columns(["day"]).set_column(1, "town", pa.array(["new", "t1"] * 20))
    return (columns, table.slice(0, 80), judged), codes


def test_rows_are_numbers_with_codes_of_levels_by_frequency(rows):
    fit, judged = plain_rows(*rows[0])
    towns = fit[:, 1]
    counts = np.bincount(towns[~np.isnan(towns)].astype(int))
    assert (np.diff(counts) <= 0).all()
    assert np.isnan(judged[::2, 1]).all()  # a level that no row to fit has
    assert len(np.unique(judged[1::2, 1])) == 1
    assert np.isnan(judged[:, 3]).all()  # a column that is not there
    assert np.isnan(fit[::11, 0]).all()
    assert np.isfinite(fit[:, 3]).all()


def test_baselines_learn_from_such_rows(rows):
    tables, codes = rows
    found, notes = run_baselines(*tables, codes[:80], 0)
    assert list(found)[:2] == ["logistic regression", "scikit-learn boosted trees"]
    if len(found) == 2:
        assert "LightGBM is not compared" in notes[0]
        assert "pip install 'qmedoid[baselines]'" in notes[0]
    for outcome in found.values():
        np.testing.assert_allclose(outcome[0].sum(axis=1), 1.0, rtol=1e-6)
        assert metrics.roc_auc_score(codes[80:], outcome[0][:, 1]) > 0.8


def test_a_baseline_that_fails_or_may_not_begin_takes_nothing_with_it(rows, monkeypatch):
    def broken(*_):
        raise RuntimeError("out of trees")

    monkeypatch.setitem(comparison.BASELINES, "LightGBM", broken)
    tables, codes = rows
    found, notes = run_baselines(*tables, codes[:80], 0, lambda name: name != "logistic regression")
    assert list(found) == ["scikit-learn boosted trees"]
    assert notes == ["LightGBM is not compared: it failed with RuntimeError: out of trees"]


def test_many_levels_are_merged_for_trees_that_have_no_bin_for_each():
    table = pa.table({"code": [f"c{place % 300}" for place in range(900)], "x": np.arange(900.0)})
    columns = infer_columns(table, roles={"code": "category", "x": "number"}).columns
    found, _ = run_baselines(columns, table, table, np.arange(900) % 2, 0, lambda name: "boosted" in name)
    assert found["scikit-learn boosted trees"][0].shape == (900, 2)


@pytest.fixture(scope="module")
def frames():
    rng = np.random.default_rng(3)
    code = np.arange(160) % 2
    frame = pd.DataFrame({
        "x": rng.normal(size=160) + code,
        "town": pd.Categorical(rng.choice(["a", "b", "c"], 160)),
        "y": np.where(code == 1, "no", "yes"),
    })  # fmt: skip
    return frame[:100], frame[100:]


def test_compare_takes_data_frames_and_judges_by_the_positive_class(frames, monkeypatch):
    monkeypatch.setattr(comparison, "BASELINES", {"logistic regression": comparison.BASELINES["logistic regression"]})
    fit, test = frames
    classifier = qmedoid.MedoidClassifier(method=TINY, positive="no", random_state=0)
    found = qmedoid.compare(classifier, fit[["x", "town"]], fit["y"], test[["x", "town"]], test["y"])
    assert not hasattr(classifier, "classes_")
    fitted = classifier.fit(fit[["x", "town"]], fit["y"])
    said = fitted.predict_proba(test[["x", "town"]])
    ours, plain = found.methods
    assert ours["log_loss"] == pytest.approx(metrics.log_loss(test["y"], said))
    assert ours["pr_auc"] == pytest.approx(
        metrics.average_precision_score(test["y"] == "no", said[:, fitted.classes_.tolist().index("no")])
    )
    assert plain["roc_auc"] > 0.6
    assert found.to_dict()["methods"][1]["log_loss_difference"]["mean"] == pytest.approx(
        plain["log_loss"] - ours["log_loss"]
    )


def test_compare_refuses_what_it_cannot_judge(frames):
    fit, test = frames
    with pytest.raises(ParameterError, match=r"must be a MedoidClassifier\. Got EvidenceClassifier"):
        qmedoid.compare(TINY, fit[["x"]], fit["y"], test[["x"]], test["y"])
    with pytest.raises(DataError, match=r"y_test has labels that are no class of the fit: 'maybe'"):
        qmedoid.compare(qmedoid.MedoidClassifier(method=TINY), fit[["x"]], fit["y"], test[["x"]], ["maybe"] * len(test))
