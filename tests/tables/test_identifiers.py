"""Names that say identifier are whole words, and codes among numbers are categories in full."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.tables.kinds import IDENTIFIERS, infer_columns, is_identifier_name

NUMBERS = [7 * number for number in range(25)]
ENGLISH = [
    "paid", "bid", "valid", "humid", "grid", "liquid", "solid", "fluid", "rapid", "android", "hybrid", "covid", "aid",
]  # fmt: skip
NAMED = [
    "id", "ID", "Id", "customer_id", "customerId", "CustomerID", "customer-id", "customer id", "id_customer",
    "idCustomer", "PassengerId", "uuid", "UUID", "rowGuid", "row number", "RowNumber", "invoice no", "userid", "rowid",
    "index", "row index", "key", "Unnamed: 0", "column 1",
]  # fmt: skip
OTHERS = [*ENGLISH, "Paid", "amountPaid", "amount_paid", "PAID", "bodyMassIndex", "price index", "idée", "identity"]


@pytest.mark.parametrize("name", NAMED)
def test_names_of_identifiers(name):
    assert is_identifier_name(name)
    assert infer_columns(pa.table({name: NUMBERS})).left_out[name] in IDENTIFIERS


@pytest.mark.parametrize("name", OTHERS)
def test_words_that_only_end_like_one_drop_no_column(name):
    assert not is_identifier_name(name)
    assert [column.name for column in infer_columns(pa.table({name: NUMBERS})).columns] == [name]


@given(st.sampled_from(ENGLISH), st.sampled_from(["", "total_", "total ", "is"]), st.sampled_from([str, str.title]))
@settings(max_examples=30, deadline=None)
def test_no_spelling_of_such_a_word_is_an_identifier(word, before, change):
    assert not is_identifier_name(before + change(word))


def test_what_nearly_names_rows_is_kept_with_a_note():
    for cells in ([*NUMBERS, None], [*NUMBERS, 0]):
        inferred = infer_columns(pa.table({"customer_id": cells, "amount": cells}))
        assert len(inferred.columns) == 2
        assert len(inferred.notes) == 1
        assert "column 'customer_id': 25 different numbers" in next(iter(inferred.notes.values()))
    texts = [f"person {number}" for number in range(40)]
    (note,) = infer_columns(pa.table({"who": [*texts, texts[0]]})).notes.values()
    assert "if it is an identifier, it is better ignored" in note
    assert not infer_columns(pa.table({"who": texts[:20] * 2})).notes


def icd(n, share, seed=0):
    """Codes of diagnoses: numbers such as 250.83, and a share of V and E codes."""
    rng = np.random.default_rng(seed)
    numbers = rng.choice(["250", "250.83", "428", "414.01", "786", "8", "401.9"], n)
    letters = rng.choice(["V45", "E909", "V57.1"], n)
    return np.where(np.arange(n) < share * n, letters, numbers).tolist()


@given(st.integers(40, 400), st.floats(0.03, 0.6), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_codes_are_one_category_however_few_have_letters(n, share, seed):
    cells = icd(n, share, seed)
    inferred = infer_columns(pa.table({"diagnosis": cells}))
    (column,) = inferred.columns
    assert (column.kind, column.missing) == ("category", False)
    if sum(cell[0].isalpha() for cell in cells) < 0.1 * len(cells):
        assert "look like codes" in next(iter(inferred.notes.values()))


def test_two_codes_in_a_small_table_are_enough():
    cells = [f"{250 + k}.{k}" for k in range(25)] + ["V45", "E909"]
    assert infer_columns(pa.table({"c": cells})).left_out  # every row has its own code
    assert infer_columns(pa.table({"c": [*cells, "V45"]})).columns[0].kind == "category"


@pytest.mark.parametrize("wrong", ["n/m", "unknown", "12 kg", "<5", "O5", "l2", "I0", "12a", "--"])
def test_other_cells_among_numbers_are_missing_as_before(wrong):
    inferred = infer_columns(pa.table({"c": [str(k % 9) for k in range(60)] + [wrong]}))
    assert (inferred.columns[0].kind, inferred.columns[0].missing) == ("number", True)
    assert repr(wrong) in next(iter(inferred.notes.values()))


def test_error_code_of_a_meter_makes_no_category_of_what_it_measures():
    measured = [f"{value:.4f}" for value in np.random.default_rng(0).normal(100, 1, 300)]
    assert infer_columns(pa.table({"c": [*measured, "E1", "E2"]})).columns[0].kind == "number"
    signed = [str(k % 9 - 4) for k in range(60)]
    assert infer_columns(pa.table({"c": [*signed, "E1", "E2"]})).columns[0].kind == "number"


PHRASES = ("server is down", "please restart the server", "cannot log in", "printer jam in room", "slow network today")


def tickets(n, n_numbers, seed=0):
    """Sentences of a few phrases with a number in between."""
    rng = np.random.default_rng(seed)
    parts = [rng.choice(PHRASES, n), rng.permutation(n) % n_numbers, rng.choice(PHRASES, n)]
    return [f"{first} {number} {last}" for first, number, last in zip(*parts, strict=True)]


def test_free_text_is_not_said_to_be_an_identifier():
    (why,) = infer_columns(pa.table({"notes": tickets(200, 200), "x": np.arange(200) / 7})).left_out.values()
    assert why == "every row has a different text of several words, and words are not read"
    assert why in IDENTIFIERS  # a guess that a user can overrule
    kept = infer_columns(pa.table({"notes": [*tickets(200, 200), *tickets(200, 200)[:3]]}))
    assert "free text is a level as a whole" in kept.notes["notes"]
    assert "identifier" not in kept.notes["notes"]


@pytest.mark.parametrize(
    "text", ["C-{:05d}", "user{}@mail.example", "{:08x}-cafe-beef-face-{:012x}", "INV 2024 {:04d}", "{} kg"]
)
def test_texts_of_few_words_are_no_free_text(text):
    cells = [text.format(number, 7 * number) for number in range(60)]
    found = infer_columns(pa.table({"code": cells, "x": np.arange(60) / 7}))
    assert "several words" not in found.left_out.get("code", "")
