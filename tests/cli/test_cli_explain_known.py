"""`explain` in words: reasons by column, medoids that are called medoids, and the nearest rows of a known table."""

import re

from small_tables import csv_bytes, replaced, write

import qmedoid


def flat(text):
    return " ".join(text.split())


def test_nearest_rows_of_a_known_table_are_shown(cli, two):
    report = cli.ok("explain", two.model, two.file, "--row", "7", "--known", two.file, "--json").json
    labels = two.table["y"].to_pylist()
    nearest = report["known"]["nearest"]
    assert report["known"]["rows"] == 90
    assert 7 not in [one["row"] for one in nearest]  # the record itself
    assert [one["class"] for one in nearest] == [labels[one["row"]] for one in nearest]
    assert [one["distance"] for one in nearest] == sorted(one["distance"] for one in nearest)
    text = flat(cli.ok("explain", two.model, two.file, "--row", "7", "--known", two.file).out)
    of_class = [one["class"] for one in nearest].count(report["prediction"])
    assert f"Of the 5 nearest of 90 known rows {of_class} are y = {report['prediction']}." in text
    similar = report["known"]["similar"]
    assert {one["class"]: one["row"] for one in similar} == {one["class"]: one["row"] for one in report["similar"]}
    for one in report["similar"]:
        assert f"Most similar known y = {one['class']}: row {one['row']} — " in text
    verbose = flat(cli.ok("explain", two.model, two.file, "--row", "7", "--known", two.file, "--verbose").out)
    shown = verbose[verbose.index("The nearest of 90 known rows") :]
    assert [int(row) for row in re.findall(r"row (\d+)", shown)[:5]] == [one["row"] for one in nearest]
    # As a table, or where that is too wide, as a line.
    classes = shown[shown.index("class") : shown.index("distance", shown.index("class"))]
    assert re.findall(r"\b(?:yes|no)\b", classes) == [one["class"] for one in nearest]
    assert shown.startswith("The nearest of 90 known rows, by the distance over all columns")


def test_known_rows_without_classes_are_shown_with_a_note(cli, two, tmp_path):
    file = write(two.table.drop_columns(["y"]), tmp_path / "t.parquet")
    outcome = cli.ok("explain", two.model, two.file, "--row", "7", "--known", file)
    assert "no column with the classes" in outcome.err
    assert "Of the 5 nearest of 90 known rows the classes are not known." in flat(outcome.out)
    assert "Most similar row of no known class: row " in flat(outcome.out)


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
    assert all("x1 = missing (" in text for text in texts)


def test_model_without_rows_names_the_nearest_medoids_and_says_so(cli, two, tmp_path):
    saved = qmedoid.load(two.model)
    saved.save(tmp_path / "m", raw_rows=False)
    text = flat(cli.ok("explain", tmp_path / "m", two.file, "--row", "4").out)
    for medoid in saved.explain(two.table, 4)["medoids"]:
        row = f"training row {medoid['training_row']}, by distance: the model keeps no cells of training rows."
        assert f"Most similar known y = {medoid['class']}: {row}" in text


def test_cells_of_a_file_that_are_read_as_texts_are_the_same_as_numbers(cli, two, tmp_path):
    file, row = write(two.table, tmp_path / "t.csv"), 7
    copy = write(two.table, tmp_path / "copy.csv")
    outcome = cli.ok("explain", two.model, file, "--row", row, "--known", copy)
    label = two.table["y"][row].as_py()
    assert f"Most similar known y = {label}: row {row} — the same in every column." in flat(outcome.out)
    piped = cli.ok("explain", two.model, "-", "--row", row, stdin=csv_bytes(two.table)).out
    assert piped.startswith(f"Row {row} of standard input\n")
