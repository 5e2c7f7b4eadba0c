"""Texts that look the same: one level, one class and one column, at fit and at scoring."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid import MedoidClassifier, check_table
from qmedoid.exceptions import ContractError
from qmedoid.spelling import look
from qmedoid.tables.cells import in_one_look, level_codes
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.dialect import clean_names
from qmedoid.tables.evaluating import evaluate_file
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import score_file
from qmedoid.tables.source import open_table
from qmedoid.tables.targets import label_codes

ALIKE = {
    "Roma": ["Ro\u200bma", "\ufeffRoma", "Ro\u00adma", "R\u043ema", "Roma.", "Roma\u00a0", "Ｒｏｍａ", "\u200eRoma"],
    "New York": ["New\u00a0York", "New\u2009York", "New\tYork", "\u039dew York", "New York ."],
    "Caf\u00e9": ["Cafe\u0301", "Caf\u00e9\u2060."],
    "it's": ["it\u2019s", "it`s", "it\u00b4s", "it\u02bcs"],
    'the "best"': ["the \u201cbest\u201d", "the \u201ebest\u201c"],
    "post-war": ["post\u2013war", "post\u2011war"],
}
N = 240


@pytest.mark.parametrize("text", ALIKE)
def test_texts_that_look_the_same_have_one_look(text):
    assert {look(one) for one in ALIKE[text]} == {look(text)}


def test_texts_that_do_not_look_the_same_have_two():
    for one, other in [
        ("Roma", "roma"),
        ("Roma", "Rome"),
        ("a b", "ab"),
        ("a  b", "a b"),
        ("1.5", "15"),
        ("a.b", "ab"),
    ]:
        assert look(one) != look(other)


def test_words_of_one_script_are_not_touched():
    for text in ("Москва", "нос", "СОР", "ΑΒΓ", "東京", "АВС-12"):
        assert look(text) == text
    assert look("АВС") != look("ABC")
    assert look("Мoscow") == "Moscow"
    assert look("Ж\u0430k") == "Ж\u0430k"  # one of its letters looks like no Latin one


@given(st.text(st.characters(codec="utf-8"), max_size=12))
def test_the_look_of_a_look_is_itself(text):
    assert look(look(text)) == look(text)
    (name,), _ = clean_names([text], "t.csv")
    assert clean_names([name], "t.csv")[0] == (name,)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12).filter(lambda text: "`" not in text))
def test_plain_texts_look_as_they_are_but_for_dots_at_the_end(text):
    assert look(text) in (text, text.rstrip(". "), text.strip())


@pytest.mark.parametrize("text", ALIKE)
def test_levels_are_found_however_they_are_written(text):
    codes, unseen = level_codes(pa.array([*ALIKE[text], text, "Oslo", "\u200b", None]), ("Lima", text))
    assert codes.tolist() == [1] * (len(ALIKE[text]) + 1) + [3, 2, 2]
    assert unseen.to_pylist() == ["Oslo"]


def test_two_levels_that_look_the_same_stay_what_they_are():
    codes, _ = level_codes(pa.array(["Roma", "Roma.", "Roma\u200b"]), ("Roma", "Roma."))
    assert codes.tolist() == [0, 1, 3]


def made(seed=0):
    rng = np.random.default_rng(seed)
    town = rng.choice(np.array(["Roma", "Oslo", "Caf\u00e9"], dtype=object), N)
    label = np.where((town == "Roma") ^ (rng.random(N) < 0.1), "yes", "no").astype(object)
    return pd.DataFrame({"x": rng.normal(size=N).round(3), "town": town, "kind": label})


def disguised(frame, share=0.2, seed=1):
    rng = np.random.default_rng(seed)
    ways = {**ALIKE, "yes": ["yes.", "y\u0435s", "yes\u200b"], "no": ["n\u043e", "no\u00a0"]}
    return frame.assign(**{
        name: [rng.choice(ways[cell]) if cell in ways and rng.random() < share else cell for cell in frame[name]]
        for name in ("town", "kind")
    })  # fmt: skip


def fitted_on(path):
    with open_table(path) as source:
        data = Dataset.read(source, DatasetSettings(target="kind"), 10_000, np.random.default_rng(0))
    return data, MedoidClassifier(method="evidence", random_state=0).fit(data)


def test_a_file_in_disguise_gives_the_model_of_the_plain_one(tmp_path):
    plain, odd = tmp_path / "plain.csv", tmp_path / "odd.csv"
    made().to_csv(plain, index=False)
    disguised(made()).to_csv(odd, index=False)
    (one, expected), (other, found) = fitted_on(plain), fitted_on(odd)
    assert [cell.strip() for cell in other.table["town"].to_pylist()] == one.table["town"].to_pylist()
    np.testing.assert_array_equal(
        expected.predict_proba(made()[["x", "town"]]), found.predict_proba(made()[["x", "town"]])
    )
    assert found.classes_.tolist() == ["no", "yes"]
    (note,) = [note for note in found.notes_ if "look like others and are read as that" in note]
    assert "column 'town'" in note
    assert any("differ from another by blanks or odd letters only" in note for note in other.notes)
    # The plain model scores the table in disguise as the plain table, and finds its classes.
    for name, model in (("a.csv", expected.model_), ("b.csv", found.model_)):
        score_file(model, str(odd), str(tmp_path / name), ScoreSettings())
        score_file(model, str(plain), str(tmp_path / "c.csv"), ScoreSettings())
        assert (tmp_path / name).read_bytes() == (tmp_path / "c.csv").read_bytes()
        codes = [evaluate_file(model, str(path), "kind", ScoreSettings())[0] for path in (plain, odd)]
        np.testing.assert_array_equal(*codes)
        assert codes[0].min() == 0


def test_a_frame_in_disguise_gives_the_model_of_the_plain_one():
    plain, odd = made(), disguised(made())[["x", "town"]]
    for kind in ("object", "category"):
        models = [
            MedoidClassifier(method="evidence", random_state=0).fit(X.astype({"town": kind}), plain["kind"])
            for X in (plain[["x", "town"]], odd)
        ]
        np.testing.assert_array_equal(*(model.predict_proba(odd) for model in models))
    with pytest.warns(UserWarning, match="differ by case, blanks or odd letters only"):
        MedoidClassifier(method="evidence", random_state=0).fit(plain[["x", "town"]], disguised(plain)["kind"])


def test_the_most_frequent_spelling_is_kept_and_invisible_cells_are_empty():
    table, notes = in_one_look(
        pa.table({"t": ["a\u200b", "a\u200b", "a", "\u200b", None, "b"], "n": [1, 2, 3, 4, 5, 6]})
    )
    assert table["t"].to_pylist() == ["a\u200b", "a\u200b", "a\u200b", "", None, "b"]
    assert "2 texts look like others and are read as that, such as 'a' in 1 rows as 'a\\u200b'" in notes["t"]
    unchanged = pa.table({"t": ["Köln", "Bonn", "Москва", "1.", "a"]})
    assert in_one_look(unchanged) == (unchanged, {})


def test_check_says_what_looks_the_same():
    report = check_table(disguised(made()), "kind")
    assert [one["class"] for one in report["classes"]] == ["no", "yes"] or len(report["classes"]) == 2
    (column,) = [one for one in report["columns"] if one["name"] == "town"]
    assert column["levels"] == 3
    assert "texts look like others" in column["note"]
    (note,) = [one for one in report["findings"] if one["code"] == "class_spellings"]
    assert note["severity"] == "note"
    assert "differ from another by blanks or odd letters only, and are read as that" in note["message"]


def test_labels_are_found_however_they_are_written():
    assert label_codes(pa.array(["yes.", "y\u0435s", "\u200bno", ">50K.", "\u200b"]), ("no", "yes")).tolist() == [
        1, 1, 0, -1, -2,
    ]  # fmt: skip


def test_names_of_columns_lose_what_does_not_show(tmp_path):
    names, notes = clean_names(["\ufeffid", "a\u00a0b", "x\u200b", "Caf\u0065\u0301"], "t")
    assert names == ("id", "a b", "x", "Caf\u00e9")
    assert notes == ["Letters that do not show were dropped from the names of 4 columns, as in 'id'."]
    made().to_csv(tmp_path / "plain.csv", index=False)
    text = (tmp_path / "plain.csv").read_text()
    (tmp_path / "odd.csv").write_text(text.replace("x,town", "x\u200b,to\u00adwn", 1))
    (tmp_path / "other.csv").write_text(text.replace("x,town", "x,t\u043ewn", 1))
    _, model = fitted_on(tmp_path / "plain.csv")
    for name in ("plain", "odd"):
        score_file(model.model_, str(tmp_path / f"{name}.csv"), str(tmp_path / f"{name}.out.csv"), ScoreSettings())
    assert (tmp_path / "plain.out.csv").read_bytes() == (tmp_path / "odd.out.csv").read_bytes()
    with pytest.raises(ContractError, match="which looks the same and has other letters"):
        score_file(model.model_, str(tmp_path / "other.csv"), str(tmp_path / "out.csv"), ScoreSettings())
