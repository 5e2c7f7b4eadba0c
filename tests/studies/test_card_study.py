"""The part of the study on the frauds: what is judged are the log-odds of the model."""

import numpy as np
from benchmarks.quality.card_ours import log_odds_of
from sklearn.datasets import load_breast_cancer

from qmedoid import MedoidClassifier


def test_judged_log_odds_are_those_of_the_probabilities_whatever_the_threshold():
    X, y = load_breast_cancer(return_X_y=True)
    fitted = MedoidClassifier(operating_point={"alert_rate": 0.1}, positive=1, random_state=0).fit(X[::3], y[::3])
    found = fitted.predict_proba(X)
    np.testing.assert_allclose(log_odds_of(fitted, X), np.log(found[:, 1] / found[:, 0]), atol=1e-6)
