"""Reports on records whose class is known, against scikit-learn."""

import json

import numpy as np
import pytest
from sklearn import metrics

from fitted_tables import fitted
from qmedoid.exceptions import ContractError
from qmedoid.metrics.classification import calibration_error, confidence_outcomes
from qmedoid.tables.difference import Issues
from qmedoid.tables.evaluating import decision_report, joined, labeled_report, report_notes
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.targets import MISSING, UNKNOWN, label_codes


@pytest.fixture(params=[2, 3])
def case(request):
    table, classifier = fitted(request.param)
    model = classifier.model_
    return model, label_codes(table["y"], model.decision.classes), decide_batch(model, table, Issues())[0], table


def test_figures_are_those_of_scikit_learn(case):
    model, codes, decided, _ = case
    report = decision_report(model, codes, decided)
    assert report["accuracy"] == pytest.approx(metrics.accuracy_score(codes, decided.codes))
    assert report["macro_f1"] == pytest.approx(metrics.f1_score(codes, decided.codes, average="macro"))
    assert report["log_loss"] == pytest.approx(metrics.log_loss(codes, model.decision.probabilities(decided.scores)))
    assert report["confusion"] == metrics.confusion_matrix(codes, decided.codes).tolist()
    probabilities = model.decision.probabilities(decided.scores)
    judged = confidence_outcomes(codes, probabilities)
    assert report["calibration"]["error"] == calibration_error(*judged, rng=np.random.default_rng(5))["error"]
    assert 0 < report["calibration"]["by_chance"] < report["calibration"]["by_chance_high"] < 1
    if len(model.decision.classes) == 2:
        assert report["roc_auc"] == pytest.approx(metrics.roc_auc_score(codes, decided.margins))
        assert report["pr_auc"] == pytest.approx(metrics.average_precision_score(codes, decided.margins))
        assert report["alert_rate"] == decided.codes.mean()
    else:
        assert "positive" not in report
    assert json.loads(json.dumps(report)) == report


def test_parts_joined_are_the_whole(case):
    model, codes, decided, table = case
    parts = [decide_batch(model, table.slice(start, 30), Issues())[0] for start in (0, 30, 60)]
    assert decision_report(model, codes, joined(parts)) == decision_report(model, codes, decided)


def test_rows_without_a_known_class_do_not_count(case):
    model, codes, decided, _ = case
    spoilt = codes.copy()
    spoilt[:5], spoilt[5:8] = MISSING, UNKNOWN
    report = labeled_report(model, spoilt, decided)
    assert report["left_out"] == {"missing": 5, "unknown": 3, "seen": 0}
    kept = type(decided)(*(None if part is None else part[8:] for part in decided))
    expected = decision_report(model, codes[8:], kept)
    assert report == {**expected, "left_out": report["left_out"], "seen": None}  # without hashes nothing is known


def test_no_known_class_at_all(case):
    model, codes, decided, _ = case
    with pytest.raises(ContractError, match=r"None of the 80 rows has a class of the model \('a', 'b'.*80 are other"):
        labeled_report(model, np.full_like(codes, UNKNOWN), decided)


def test_one_class_alone_still_gives_a_report():
    table, classifier = fitted()
    model = classifier.model_
    part = table.filter(np.array(table["y"].to_pylist()) == "a")
    report = decision_report(
        model, label_codes(part["y"], model.decision.classes), decide_batch(model, part, Issues())[0]
    )
    assert report["rows"] == 40
    assert report["classes"]["b"]["rows"] == 0
    assert report["prevalence"] == 0.0


def test_macro_f1_is_over_the_classes_that_occur(case):
    model, codes, decided, _ = case
    there = codes != 0
    kept = type(decided)(*(None if part is None else part[there] for part in decided))
    report = decision_report(model, codes[there], kept)
    expected = metrics.f1_score(
        codes[there], kept.codes, labels=np.arange(1, len(model.decision.classes)), average="macro", zero_division=0
    )
    assert report["macro_f1"] == pytest.approx(expected)
    assert report["absent"] == [str(model.decision.classes[0])]
    assert report["classes"][str(model.decision.classes[0])]["recall"] is None
    (note,) = report_notes(model, report)
    assert repr(str(model.decision.classes[0])) in note
    assert "macro-F1" in note
    assert json.loads(json.dumps(report)) == report


def test_what_is_not_defined_is_none_and_not_zero(case):
    model, codes, decided, _ = case
    # All records are called the first class: nothing is known of the precision of the others.
    report = decision_report(model, codes, decided._replace(codes=np.zeros_like(decided.codes)))
    for label in map(str, model.decision.classes[1:]):
        own = report["classes"][label]
        assert (own["precision"], own["recall"], own["f1"]) == (None, 0.0, 0.0)
    first = report["classes"][str(model.decision.classes[0])]
    assert (first["precision"], first["recall"]) == (pytest.approx((codes == 0).mean()), 1.0)
    if len(model.decision.classes) == 2:
        assert report["precision"] is None
        assert report_notes(model, report) == []  # the verdict says so; of a rare class it is a matter of the threshold
        (note,) = report_notes(model, {**report, "confusion": [[95, 0], [5, 0]]})
        assert "set an operating point" in note
        assert "--alert-rate" in note
    alone = decision_report(model, np.ones_like(codes), decided._replace(codes=np.ones_like(codes)))
    assert alone["classes"][str(model.decision.classes[0])] == {
        "rows": 0,
        "precision": None,
        "recall": None,
        "f1": None,
    }
    assert alone["macro_f1"] == 1.0
    assert alone.get("roc_auc") is None
    assert report_notes(model, decision_report(model, codes, decided)) == []
