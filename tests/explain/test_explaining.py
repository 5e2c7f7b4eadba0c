"""One decision as a dictionary: its terms add up, and its medoids are the rows they say."""

import math

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


def test_one_record_at_a_time():
    table, classifier = fitted()
    with pytest.raises(DataError, match="a table of 2 rows"):
        explain_record(classifier.model_, table.slice(0, 2), Issues())
