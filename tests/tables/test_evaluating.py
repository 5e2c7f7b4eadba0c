"""Reports on records whose class is known, against scikit-learn."""

import json

import numpy as np
import pytest
from fitted_tables import fitted
from sklearn import metrics

from qmedoid.exceptions import ContractError
from qmedoid.metrics.calibration import calibration_error, confidence_outcomes
from qmedoid.tables.encode import Found
from qmedoid.tables.evaluating import decision_report, joined, labelled_report
from qmedoid.tables.labels import MISSING, UNKNOWN, label_codes
from qmedoid.tables.scoring import decide_batch


@pytest.fixture(params=[2, 3])
def case(request):
    table, classifier = fitted(request.param)
    model = classifier.table_model()
    return model, label_codes(table["y"], model.classes), decide_batch(model, table, Found()), table


def test_figures_are_those_of_scikit_learn(case):
    model, codes, decided, _ = case
    report = decision_report(model, codes, decided)
    assert report["accuracy"] == pytest.approx(metrics.accuracy_score(codes, decided.codes))
    assert report["macro_f1"] == pytest.approx(metrics.f1_score(codes, decided.codes, average="macro"))
    assert report["log_loss"] == pytest.approx(metrics.log_loss(codes, model.probabilities(decided.scores)))
    assert report["confusion"] == metrics.confusion_matrix(codes, decided.codes).tolist()
    probabilities = model.probabilities(decided.scores)
    judged = confidence_outcomes(codes, probabilities)
    assert report["calibration"]["error"] == calibration_error(*judged, rng=np.random.default_rng(5)).error
    assert 0 < report["calibration"]["by_chance"] < report["calibration"]["by_chance_high"] < 1
    if len(model.classes) == 2:
        assert report["roc_auc"] == pytest.approx(metrics.roc_auc_score(codes, decided.margins))
        assert report["pr_auc"] == pytest.approx(metrics.average_precision_score(codes, decided.margins))
        assert report["alert_rate"] == decided.codes.mean()
    else:
        assert "positive" not in report
    assert json.loads(json.dumps(report)) == report


def test_parts_joined_are_the_whole(case):
    model, codes, decided, table = case
    parts = [decide_batch(model, table.slice(start, 30), Found()) for start in (0, 30, 60)]
    assert decision_report(model, codes, joined(parts)) == decision_report(model, codes, decided)


def test_rows_without_a_known_class_do_not_count(case):
    model, codes, decided, _ = case
    spoilt = codes.copy()
    spoilt[:5], spoilt[5:8] = MISSING, UNKNOWN
    report = labelled_report(model, spoilt, decided)
    assert report["left_out"] == {"missing": 5, "unknown": 3}
    kept = type(decided)(*(None if part is None else part[8:] for part in decided))
    assert {**report, "left_out": None} == {**decision_report(model, codes[8:], kept), "left_out": None}


def test_no_known_class_at_all(case):
    model, codes, decided, _ = case
    with pytest.raises(ContractError, match=r"None of the 80 rows has a class of the model \(a, b.*80 are other"):
        labelled_report(model, np.full_like(codes, UNKNOWN), decided)


def test_one_class_alone_still_gives_a_report():
    table, classifier = fitted()
    model = classifier.table_model()
    part = table.filter(np.array(table["y"].to_pylist()) == "a")
    report = decision_report(model, label_codes(part["y"], model.classes), decide_batch(model, part, Found()))
    assert report["rows"] == 40
    assert report["classes"]["b"]["rows"] == 0
    assert report["prevalence"] == 0.0
