"""Words that mean a missing cell, such as NA and None: names of a class or level where they are as frequent as one."""

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid import MedoidClassifier, check_table
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.tables.arrow import WORDS
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.evaluating import evaluate_file
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import score_file
from qmedoid.tables.source import open_table
from qmedoid.tables.targets import MISSING, class_words, label_codes

N = 300


def written(folder, labels, town=("Rome", "Oslo"), name="t.csv", seed=0):
    """A table with a number, a category and the class, whose texts are written as they are."""
    rng = np.random.default_rng(seed)
    labels = np.resize(np.array(labels, dtype=object), N)
    places = np.array([sorted(set(labels), key=str).index(label) for label in labels])
    towns = rng.permutation(np.resize(np.array(town, dtype=object), N))
    numbers = (rng.normal(size=N) + 2 * places).round(3)
    rows = [",".join(map(str, row)) for row in zip(numbers, towns, labels, strict=True)]
    path = folder / name
    path.write_text("\n".join(["size,town,kind", *rows]) + "\n")
    return path


def read(path, **settings):
    with open_table(path) as source:
        return Dataset.read(source, DatasetSettings(target="kind", **settings), 10_000, np.random.default_rng(0))


def fitted(data):
    return MedoidClassifier(method="evidence", random_state=0).fit(data).model_


@pytest.mark.parametrize("word", ["None", "NA", "null", "nan", "N/A", "-", "?"])
def test_words_with_the_rows_of_a_class_are_classes_at_fit_and_at_evaluation(tmp_path, word):
    path = written(tmp_path, ["Attack", "Scan", word])
    data = read(path)
    assert data.target.classes.tolist() == sorted(["Attack", "Scan", word])
    assert data.target.counts.tolist() == [N // 3] * 3
    with pytest.warns(UserWarning, match=f"{word!r} in 100 rows is read as a class".replace("?", r"\?")):
        model = fitted(data)
    codes, *_ = evaluate_file(model, str(path), "kind", ScoreSettings())
    assert np.bincount(codes).tolist() == [N // 3] * 3


def test_two_classes_of_which_one_is_a_word(tmp_path):
    data = read(written(tmp_path, ["Attack", "None"]))
    assert data.target.classes.tolist() == ["Attack", "None"]


@pytest.mark.parametrize(
    ("labels", "classes", "said"),
    [
        (["a", "b", "a", "b", "a", "b", "a", "b", "a", "b", "a", "b", "NA"], ["a", "b"], "23 hold 'NA'"),
        ([0, 1, "NA"], [0, 1], "100 hold 'NA'"),
        (["true", "false", "None"], [False, True], "100 hold 'None'"),
        (["a", "b", "NA", "None"], ["a", "b"], "75 hold"),
        (["a", "b", "None", ""], ["None", "a", "b"], ""),
    ],
)
def test_rows_without_a_class_are_said_to_hold_what_they_hold(tmp_path, labels, classes, said):
    data = read(written(tmp_path, labels))
    assert data.target.classes.tolist() == classes
    (note,) = [one for one in data.notes if "have no class in 'kind'" in one]
    assert said in note
    assert ("--missing kind=" in note) == bool(said)


def test_the_one_option_decides_in_both_directions(tmp_path):
    path = written(tmp_path, ["a", "b", "NA", "None"])
    assert read(path, missing={"kind": [""]}).target.classes.tolist() == ["NA", "None", "a", "b"]
    assert read(path, missing={"kind": ["", "NA"]}).target.classes.tolist() == ["None", "a", "b"]
    path = written(tmp_path, ["a", "b", "None"])
    assert read(path, missing={"kind": ["None"]}).target.classes.tolist() == ["a", "b"]
    assert read(path, missing={"kind": ["b"]}).target.classes.tolist() == ["None", "a"]
    numbers = written(tmp_path, [0, 1, "NA"])
    assert read(numbers, missing={"kind": [""]}).target.classes.tolist() == ["0", "1", "NA"]
    assert read(numbers, missing={"kind": [1, ""]}).target.classes.tolist() == ["0", "NA"]


def test_one_class_beside_a_rare_word_is_refused_with_the_word(tmp_path):
    path = written(tmp_path, ["Attack"] * 19 + ["None"])
    with pytest.raises(DataError, match=r"one class only, 'Attack' \(15 of 300 rows .* 15 hold 'None'"):
        read(path)


@given(st.dictionaries(st.sampled_from(["a", "b", "7", *WORDS]), st.integers(1, 500)), st.booleans())
def test_class_words_are_words_that_occur_and_at_most_one(counts, everything):
    found = class_words(counts, [""] if everything else [])
    assert found <= {*counts} & {*WORDS}
    assert found == {*counts} & {*WORDS} if everything else len(found) <= 1
    assert not class_words(counts, [*WORDS, ""])


def test_a_word_is_no_class_where_another_is_as_frequent_or_classes_are_numbers():
    assert class_words({"a": 90, "b": 60, "NA": 60}) == {"NA"}
    assert class_words({"a": 190, "b": 180, "NA": 30}) == set()
    assert class_words({"a": 190, "b": 180, "NA": 41 + 1}) == {"NA"}
    assert class_words({"a": 90, "b": 60, "NA": 60, "-": 60}) == set()
    assert class_words({"1": 90, "2": 60, "NA": 60}) == set()
    assert class_words({"a": 2, "b": 2, "NA": 2}) == set()


def test_labels_that_are_no_class_are_missing_where_they_are_words():
    column = pa.array(["None", "NA", "a", "x", None, "nan"])
    assert label_codes(column, ("None", "a")).tolist() == [0, MISSING, 1, -1, MISSING, MISSING]
    assert label_codes(pa.array([float("nan"), 1.0]), ("nan", "1")).tolist() == [MISSING, 1]


def test_a_word_with_the_rows_of_a_level_is_a_level_and_the_note_says_the_option(tmp_path):
    path = written(tmp_path, ["x", "y"], ["None"] * 5 + ["Brick", "Stone", "", "?"])
    data = read(path)
    (note,) = data.kinds.notes.values()
    rows = data.table["town"].to_pylist().count("None")
    assert f"'None' in {rows} of 300 rows: read as a level, not as a missing cell (--missing town=None" in note
    assert Counter(data.table["town"].to_pylist())[None] > 60  # empty cells and question marks
    assert read(path, missing={"town": ["None"]}).table["town"].null_count > 200
    assert {"?", "None"} < {*read(path, missing={"town": [""]}).table["town"].to_pylist()}


@pytest.mark.parametrize(
    "town",
    [
        ["Rome"] * 9 + ["Oslo"] * 9 + ["NA"],  # fewer rows than a level has
        ["Rome", "Oslo", "?", "?"],  # a sign that nobody takes for a name
        ["Rome", "Oslo", "NA", "None"],  # two spellings of one thing
        ["12.5", "13", "NA", "NA"],  # among numbers
        ["2024-01-31", "2024-02-01", "NA", "NA"],
        [*map("row {}".format, range(150)), *["NA"] * 50],  # cells that do not recur
    ],
)
def test_words_are_missing_where_they_are_no_levels(tmp_path, town):
    column = read(written(tmp_path, ["x", "y"], town)).table["town"]
    assert column.null_count == sum(map(np.resize(np.array(town, dtype=object), N).tolist().count, ("NA", "None", "?")))


@pytest.mark.parametrize("word", ["#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!", "#N/A"])
def test_errors_of_spreadsheets_are_missing(tmp_path, word):
    column = read(written(tmp_path, ["x", "y"], ["12.5", word, "13"])).table["town"]
    assert (column.type, column.null_count) == (pa.float64(), N // 3)


@pytest.mark.parametrize("output", ["scored.csv", "scored.parquet"])
def test_levels_are_read_as_at_fit_in_files_frames_and_carried_columns(tmp_path, output):
    path = written(tmp_path, ["x", "y"], ["None", "None", "Brick", "Stone", "?", ""])
    data = read(path)
    model = fitted(data)
    later = written(tmp_path, ["x", "y"], ["None", "NA", "Brick", "?", "", " None "], name="later.csv", seed=1)
    score_file(model, str(later), str(tmp_path / output), ScoreSettings(columns=("town",)))
    scored = pd.read_csv if output.endswith("csv") else pd.read_parquet
    found = scored(tmp_path / output)["score"].to_numpy()
    frame = pd.read_csv(later, keep_default_na=False)
    frame["town"] = [None if cell in ("", "NA", "?") else cell for cell in frame["town"]]
    from qmedoid.saved import SavedModel

    expected = SavedModel(model).predict_proba(frame[["size", "town"]])[:, 1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert len(np.unique(found)) > 4


def test_a_table_to_test_on_is_read_as_the_training_table(tmp_path):
    data = read(written(tmp_path, ["x", "y"], ["None", "None", "Brick", "Stone"]))
    other = written(tmp_path, ["x", "y"], ["None"] + ["Brick"] * 99 + ["NA"] * 200, name="other.csv")
    with open_table(other) as source:
        found = Dataset.read(source, data.settings, 10_000, np.random.default_rng(0), data)
    assert {*found.table["town"].to_pylist()} == {"None", "Brick", None}


def test_texts_of_a_frame_are_names_and_say_so(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=N), "town": np.resize(["Rome", "Oslo", "Rome", "NA"], N)})
    labels = np.where(rng.random(N) < 0.5, "None", "Attack")
    with pytest.warns(UserWarning, match="'None' in .* rows is read as a class"):
        model = MedoidClassifier(method="evidence", random_state=0).fit(frame, labels)
    assert model.classes_.tolist() == ["Attack", "None"]
    assert any("'NA' in 75 of 300 rows: read as a level" in note for note in model.notes_)
    # The same model reads the same cells in a file.
    frame.assign(kind=labels).to_csv(tmp_path / "t.csv", index=False)
    codes, decided, *_ = evaluate_file(model.model_, str(tmp_path / "t.csv"), "kind", ScoreSettings())
    np.testing.assert_array_equal(codes, (labels == "None").astype(int))
    np.testing.assert_array_equal(decided.codes, (model.predict(frame) == "None").astype(int))


def test_the_target_of_a_checked_table_has_the_option_as_well():
    table = {"size": list(range(40)), "kind": ["a", "b", "NA", "c"] * 10}
    report = check_table(table, "kind")
    assert [one["class"] for one in report["classes"]] == ["NA", "a", "b", "c"]
    assert "missing_word" in [one["code"] for one in report["findings"] if one["severity"] == "note"]
    report = check_table(table, "kind", missing={"kind": ["NA"]})
    assert [one["class"] for one in report["classes"]] == ["a", "b", "c"]
    with pytest.raises(ParameterError, match="that are not missing anyway"):
        check_table(table, "kind", missing={"kind": [None]})


def test_a_total_at_the_end_of_the_target_is_no_class(tmp_path):
    for total, place in (("450", "sum"), ("300", "number")):
        path = written(tmp_path, [1, 2])
        path.write_text(path.read_text() + f",,{total}\n")
        data = read(path)
        assert data.target.classes.tolist() == [1, 2]
        assert f"1 hold {total!r}, the sum or the number of all others" in data.notes[0], place
    path.write_text(path.read_text().replace(",,300\n", ",,301\n"))
    assert read(path).target.classes.tolist() == [1, 2, 301]
