"""One decision as a dictionary: its terms add up, and its medoids are the rows they say."""

import datetime
import json
import math

import pyarrow as pa
import pytest

from fitted_tables import fitted
from qmedoid.exceptions import DataError
from qmedoid.explain.explaining import explain_record
from qmedoid.tables.difference import Issues
from qmedoid.tables.scoring import decide_batch


@pytest.mark.parametrize("n_classes", [2, 3])
def test_terms_add_up_to_the_margin_of_every_row(n_classes):
    table, classifier = fitted(n_classes)
    model = classifier.model_
    margins = decide_batch(model, table, Issues())[0].margins
    for row in range(len(table)):
        report = explain_record(model, table.slice(row, 1), Issues())
        parts = [group["contribution"] for group in report["groups"]] + list(report["terms"].values())
        assert math.fsum(parts) == pytest.approx(report["margin"], abs=1e-9)
        assert report["margin"] == pytest.approx(margins[row], abs=1e-9)
        sizes = [abs(group["contribution"]) for group in report["groups"]]
        assert sizes == sorted(sizes, reverse=True)


def test_medoids_are_rows_of_the_training_table():
    table, classifier = fitted(3)
    report = explain_record(classifier.model_, table.slice(5, 1), Issues())
    assert [medoid["class"] for medoid in report["medoids"]][:2] == [report["prediction"], report["against"]]
    for medoid in report["medoids"]:
        row = table.slice(medoid["training_row"], 1).to_pylist()[0]
        assert row.pop("y") == medoid["class"]
        assert medoid["record"] == row


def test_medoid_is_nearest_to_itself():
    table, classifier = fitted()
    model = classifier.model_
    for row in model.medoids.numbers.tolist():
        report = explain_record(model, table.slice(row, 1), Issues())
        own = next(medoid for medoid in report["medoids"] if medoid["training_row"] == row)
        assert own["distance"] == pytest.approx(0.0, abs=1e-9)


def test_report_is_fit_for_json():
    table, classifier = fitted()
    record = table.slice(0, 1).append_column("day", pa.array([datetime.date(2024, 1, 31)]))
    report = explain_record(classifier.model_, record, Issues())
    assert json.loads(json.dumps(report)) == report


def test_one_record_at_a_time():
    table, classifier = fitted()
    with pytest.raises(DataError, match="a table of 2 rows"):
        explain_record(classifier.model_, table.slice(0, 2), Issues())
