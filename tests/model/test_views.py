"""Views for notebooks: every figure is the model's, nothing runs, and nothing foreign is markup."""

import re

import numpy as np
import pandas as pd
import pytest

from qmedoid import (
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    SavedModel,
    VariationalClassifier,
    stability,
)
from qmedoid.markup.charts import label


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"<script>alert(1)</script>": rng.normal(size=150), "b": rng.normal(size=150)})
    y = pd.Series(np.where(X.iloc[:, 0] > 0, "<img src=x onerror=alert(1)>", "no"), name="</style><script>")
    method = EvidenceClassifier()
    return MedoidClassifier(method=method, operating_point={"alert_rate": 0.3}, positive="no", random_state=0).fit(X, y)


def views(fitted):
    saved = SavedModel(fitted.model_)
    X, y = np.random.default_rng(1).normal(size=(60, 2)), np.arange(60) % 2
    report = stability(NearestMedoidClassifier(max_passes=1, random_state=0), X, y, n_bootstraps=2, random_state=0)
    records = pd.DataFrame({name: X[:, place] for place, name in enumerate(saved.contract.names)})
    found = [fitted, saved, report]
    found += [saved.effect(records, name, bins=bins) for name in records for bins in (1, 5)]
    found += [saved.explain(records, 0)]
    return [getattr(one, "_html_repr", getattr(one, "_repr_html_", None))() for one in found]


def test_views_have_no_script_and_escape_what_is_foreign(fitted):
    for text in views(fitted):
        assert "<script" not in text.lower()
        assert "<img" not in text
        assert not re.findall(r"<[a-z]+[^>]*\s(?:on\w+|style|src|href)=", re.sub(r'"[^"]*"', '""', text))
        assert text.count("</style>") == 1
    assert "&lt;script&gt;alert(1)" in views(fitted)[0]


def test_views_of_contributions_have_their_figures(fitted):
    saved = SavedModel(fitted.model_)
    rows = np.random.default_rng(2).normal(size=(40, 2))
    table = pd.DataFrame({name: rows[:, place] for place, name in enumerate(saved.contract.names)})
    effect = saved.effect(table, "b", bins=3)
    text = effect._repr_html_()
    for one in effect.bins:
        assert f"{one['mean']:+.3f}".replace("-", "−") in text
        assert one["value"] in text


def test_view_of_a_model_has_its_figures(fitted):
    saved = SavedModel(fitted.model_)
    text, expected = saved._repr_html_(), saved.expected_
    for name in ("precision", "recall", "alert_rate"):
        figure = expected.forecast()[name]
        assert f"{label(figure.value)} ({label(figure.low)} to {label(figure.high)} in as many next rows)" in text
    assert label(float(saved.feature_importances_.max())) in text


def test_view_of_an_estimator_shows_what_was_set():
    text = MedoidClassifier(max_levels=7)._repr_mimebundle_()["text/html"]
    assert "MedoidClassifier, not fitted" in text
    assert "max_levels" in text
    assert "random_state" not in text


def test_view_of_a_circuit_has_no_medoids():
    X, y = np.random.default_rng(1).normal(size=(40, 2)), np.arange(40) % 2
    text = VariationalClassifier(n_steps=2, n_qubits=2, random_state=0).fit(X, y)._html_repr()
    assert "circuit" in text
    assert "medoids" not in text
