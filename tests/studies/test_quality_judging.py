"""The study of quality: its measures are those of scikit-learn, and thresholds are tuned for macro-F1."""

import numpy as np
import pytest
from benchmarks.quality.judging import Thresholds, judge, macro_f1
from sklearn.metrics import average_precision_score, brier_score_loss, f1_score, log_loss, roc_auc_score


@pytest.mark.parametrize("n_classes", [2, 4])
def test_measures_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(1)
    y = rng.choice(n_classes, size=500, p=np.arange(n_classes, 0, -1) / (n_classes * (n_classes + 1) / 2))
    probabilities = rng.dirichlet(np.ones(n_classes), size=500)
    found = judge(y, probabilities, y, y)
    rarer = n_classes - 1
    scores = probabilities[:, 1] if n_classes == 2 else probabilities
    by_class = [average_precision_score(y == code, probabilities[:, code]) for code in range(n_classes)]
    assert found["log_loss"] == pytest.approx(log_loss(y, probabilities))
    assert found["roc_auc"] == pytest.approx(roc_auc_score(y, scores, multi_class="ovr"))
    assert found["pr_auc"] == pytest.approx(by_class[rarer] if n_classes == 2 else np.mean(by_class))
    assert found["brier"] == pytest.approx(brier_score_loss(y, probabilities, scale_by_half=False))
    assert found["macro_f1"] == pytest.approx(f1_score(y, probabilities.argmax(axis=1), average="macro"))
    assert found["macro_f1_tuned"] == 1.0
    sure = np.eye(n_classes)[(y + 1) % n_classes]
    assert judge(y, sure, y, y)["log_loss"] == pytest.approx(-np.log(1e-15))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_tuned_thresholds_find_a_class_that_is_never_the_likeliest(n_classes):
    rng = np.random.default_rng(3)
    y = rng.choice(n_classes, size=3000, p=[0.92, *np.full(n_classes - 1, 0.08 / (n_classes - 1))])
    scores = 0.9 * np.eye(n_classes)[y] + rng.normal(scale=0.4, size=(3000, n_classes))
    scores[:, 0] += 2.0
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    tuned = Thresholds(y[:1500], probabilities[:1500])
    likeliest = macro_f1(y[1500:], probabilities[1500:].argmax(axis=1))
    assert macro_f1(y[1500:], tuned.call(probabilities[1500:])) > likeliest + 0.1
