"""The study of quality: how rivals are tuned and judged, and ours as they are."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.quality.judging import Thresholds
from benchmarks.quality.protocol import split_rows
from benchmarks.quality.rivals import FOLDS, RIVALS, rival_metrics, tune
from quality_tables import make_table
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# Rivals whose package is installed.
HERE = [name for name, rival in RIVALS.items() if not rival.release.startswith("no ")]
FEW = {
    "CatBoost": {"settings": ({"iterations": 5},)},
    "EBM": {"settings": ({"outer_bags": 1, "max_rounds": 5, "interactions": 0},)},
    "RandomForest": {"settings": ({"n_estimators": 10},), "trials": {"n_estimators": 5}},
    "ExtraTrees": {"settings": ({"n_estimators": 10},), "trials": {"n_estimators": 5}},
}


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_rival_takes_categories_and_missing_cells(name, n_classes):
    rng = np.random.default_rng(5)
    table = make_table(rng, 300, n_classes)
    table.columns["signal"] = table.y + 0.5 * rng.normal(size=300)
    rival = RIVALS[name]
    few = FEW.get(name, {"settings": rival.settings[:2], "trees": (3, 5) if rival.trees else ()})
    found = rival_metrics(replace(rival, **few), split_rows(table, 1_000, 0), 0, margins=name == "RBF-SVM")
    assert all(np.isfinite(value) for value in found.values() if isinstance(value, float))
    assert found["roc_auc"] > 0.75
    assert found["fit_rows"] == 225


def test_first_trees_of_a_boosted_fit_are_the_smaller_fit(two_classes):
    X, X_test = two_classes.coded
    for name in set(HERE) & {"LightGBM", "XGBoost", "HistGradientBoosting"}:
        rival = RIVALS[name]
        large, small = (
            rival.fit(X, two_classes.y, two_classes.is_category, 5, {**rival.settings[0], "n_estimators": trees})
            for trees in (12, 4)
        )
        np.testing.assert_allclose(large(X_test, 4), small(X_test, None), rtol=1e-6)
        assert not np.allclose(large(X_test, 12), small(X_test, None))


def test_a_setting_is_chosen_by_the_log_loss_of_rows_held_out_of_the_fit_rows(two_classes):
    rival, y = RIVALS["LogReg"], two_classes.y
    X = two_classes.one_hot.fit
    tuned = tune(rival, X, two_classes, 7)
    by_hand, shares = [], []
    for setting in rival.settings:
        said = np.empty((len(y), 2))
        for inner, outer in StratifiedKFold(FOLDS, shuffle=True, random_state=7).split(X, y):
            model = make_pipeline(StandardScaler(), LogisticRegression(**setting)).fit(X[inner], y[inner])
            said[outer] = model.predict_proba(X[outer])
        by_hand.append(log_loss(y, said))
        shares.append(said)
    best = int(np.argmin(by_hand))
    assert tuned.score == pytest.approx(by_hand[best])
    assert tuned.setting == rival.settings[best]
    expected = Thresholds(y, shares[best]).call(shares[best])
    np.testing.assert_array_equal(tuned.thresholds.call(shares[best]), expected)


def test_test_labels_have_no_part_in_what_a_rival_decides(two_classes):
    first = rival_metrics(RIVALS["LogReg"], two_classes, 0)
    second = rival_metrics(RIVALS["LogReg"], replace(two_classes, y_test=1 - two_classes.y_test), 0)
    assert first["setting"] == second["setting"]
    assert first["roc_auc"] == pytest.approx(1 - second["roc_auc"])
    assert first["macro_f1_tuned"] > 0.8 > 0.3 > second["macro_f1_tuned"]
