"""`explain` in words: reasons by column, medoids that are called medoids, and the nearest rows of a known table."""

import re

import pytest
from small_tables import csv_bytes, replaced, write

from qmedoid.cli.explain import sentences
from qmedoid.explanations.sentences import reasons, two_sentences


def flat(text):
    return " ".join(text.split())


def test_nearest_rows_of_a_known_table_are_shown(cli, two):
    report = cli.ok("explain", two.model, two.file, "--row", "7", "--known", two.file, "--json").json
    labels = two.table["y"].to_pylist()
    nearest = report["known"]["nearest"]
    assert report["known"]["rows"] == 90
    assert (nearest[0]["row"], nearest[0]["distance"]) == (7, 0)
    assert [one["class"] for one in nearest] == [labels[one["row"]] for one in nearest]
    assert [one["distance"] for one in nearest] == sorted(one["distance"] for one in nearest)
    text = flat(cli.ok("explain", two.model, two.file, "--row", "7", "--known", two.file).out)
    of_class = [one["class"] for one in nearest].count(report["prediction"])
    assert f"Of the 90 known rows the nearest 5 lie at 0 to {nearest[-1]['distance']:.4g}" in text
    assert f"; {of_class} are {report['prediction']}." in text
    shown = text[text.index("the nearest of 90 known rows") :]
    assert [int(row) for row in re.findall(r"row (\d+)", shown)[:5]] == [one["row"] for one in nearest]
    assert re.findall(r"\w+", shown[shown.index("class") :])[1:6] == [one["class"] for one in nearest]


def test_known_rows_without_classes_are_shown_with_a_note(cli, two, tmp_path):
    file = write(two.table.drop_columns(["y"]), tmp_path / "t.parquet")
    outcome = cli.ok("explain", two.model, two.file, "--row", "7", "--known", file)
    assert "no column with the classes" in outcome.err
    assert "their classes are not known" in flat(outcome.out)
    assert re.search(r"class\W+\?\W+\?", outcome.out)


def test_standard_input_is_read_once(cli, two):
    outcome = cli("explain", two.model, "-", "--row", "0", "--known", "-", stdin=csv_bytes(two.table))
    assert outcome.code == 2
    assert "Standard input can be read once" in outcome.err


def test_missing_cell_is_named_as_missing(cli, two, tmp_path):
    pairs = zip(two.table["x1"].to_pylist(), two.table["y"].to_pylist(), strict=True)
    # That a cell is missing says which class it is.
    cells = [None if label == "yes" and row % 4 else cell for row, (cell, label) in enumerate(pairs)]
    rows = [row for row, cell in enumerate(cells) if cell is None][:2]
    file = write(replaced(two.table, "x1", [cells]), tmp_path / "t.parquet")
    cli.ok("fit", file, "--target", "y", "-o", tmp_path / "m", "--refine", "never", "--ignore", "id")
    texts = [flat(cli.ok("explain", tmp_path / "m", file, "--row", row).out) for row in rows]
    assert all("x1 is missing (" in text for text in texts)


def test_no_words_call_a_medoid_anything_else(cli, three):
    text = cli.ok("explain", three.model, three.file, "--row", "4").out
    assert "the record and the nearest medoid of each class" in text
    assert "known record" not in text
    assert "Of the medoids it lies nearer to training row" in flat(text)


@pytest.fixture
def report():
    def medoid(label, row, distance):
        return {"class": label, "training_row": row, "distance": distance}

    return {
        "row": 4, "prediction": "b", "against": "a", "margin": 0.5, "decided_by": "evidence",
        "columns": [
            {"name": "sex", "cell": "F", "contribution": -0.9},
            {"name": "age", "cell": 61, "contribution": 0.8},
            {"name": "dose", "cell": None, "contribution": 0.4},
            {"name": "rate", "cell": 1.5, "contribution": 0.3},
            {"name": "unit", "cell": "x", "contribution": 0.2},
            {"name": "zone", "cell": "x", "contribution": 0.0},
        ],
        "medoids": [medoid("b", 7, 1.5), medoid("a", 9, 2.5), medoid("c", 11, 3.0)],
        "terms": {"intercept": -0.3, "operating point": 0.0},
    }  # fmt: skip


def said(report, flips=()):
    """What the command line says of a decision."""
    named = [column for part in reasons(report["columns"]) for column in part]
    return sentences({**report, "sentences": two_sentences(report, flips), "reasons": named})


def test_reasons_for_and_against_are_the_largest_of_each(report):
    assert said(report) == [
        "Row 4 is called b, 0.5 ahead of a, most of all because age is 61 (+0.80) and dose is missing (+0.40); against "
        "it speaks that sex is F (−0.90).",
        "Of the medoids it lies nearer to training row 7, a known b (distance 1.5), than to row 9, a known a (2.5); no "
        "change of one or two columns that was tried leads to another class.",
    ]


def test_nearest_flip_is_said(report):
    flip = {"changes": [{"column": "age", "cell": 61, "to": 40}, {"column": "sex", "cell": "F", "to": "M"}]}
    assert said(report, [{**flip, "prediction": "c"}])[1].endswith(
        "; it would be called c if age were 40 and sex were M."
    )


def test_probability_that_is_rounded_to_1_is_no_certainty(report):
    assert "with a probability of 0.9999," in said({**report, "probability": 0.99994})[0]
    assert "with a probability above 0.9999," in said({**report, "probability": 0.99996})[0]


def test_decision_against_the_nearer_medoid_says_so_and_what_decides(report):
    report["medoids"][2]["distance"] = 1.0
    assert "nearer to training row 11, a known c (distance 1), than to row 7, a known b (1.5)" in said(report)[1]
    against = "The decision goes against the nearer medoid. Most of all decides: "
    assert said(report)[2] == f"{against}age is 61 (+0.8)."
    report["terms"]["operating point"] = 2.0
    assert said(report)[2] == f"{against}the term 'operating point' (+2)."
    assert said(report)[3] == "Without the term 'operating point' it would be called a."


def test_where_no_column_speaks_it_is_said(report):
    report["columns"] = report["columns"][:1]
    assert said(report)[0].endswith(", and no column speaks for it; against it speaks that sex is F (−0.90).")
