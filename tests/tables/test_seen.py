"""Which rows a model has seen: told by their cells, in any order and from any file, and never by chance."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import qmedoid
from fitted_tables import raw_table, with_column
from qmedoid import MedoidClassifier
from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.exceptions import ModelError
from qmedoid.model.storage.model_file import load_model, save_model
from qmedoid.model.training_summary import SeenRows, seen_in_words
from qmedoid.tables.encode import remember_rows, row_hashes


def _table(n=80, seed=0):
    table = raw_table(2, n=n, seed=seed)
    rng = np.random.default_rng(seed + 100)
    shops = pa.array([f"shop {k}" for k in rng.integers(0, 30, n)])
    gaps = pa.array(np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)), from_pandas=True)
    days = pa.array(rng.integers(18_000, 19_000, n).astype(np.int32), pa.date32())
    return table.append_column("shop", shops).append_column("gaps", gaps).append_column("day", days)


def _fit(table, **more):
    fitted = MedoidClassifier(method=EvidenceClassifier(n_medoids=6, n_neighbors=0), refine="never", random_state=0)
    return fitted.fit(table.drop_columns(["y"]), table["y"].to_pylist(), **more).model_


@pytest.fixture(scope="module")
def case():
    table = _table()
    return table, _fit(table)


def _seen(model, table):
    return model.seen.among(row_hashes(model, table))


def test_training_rows_are_known_in_any_order_and_type(case):
    table, model = case
    assert _seen(model, table) == (80, 80)
    shuffled = table.take(pa.array(np.random.default_rng(1).permutation(80)))
    assert _seen(model, shuffled.select(table.column_names[::-1])) == (80, 80)
    texts = pa.table({name: table[name].cast(pa.string()) for name in table.column_names if name != "x1"})
    assert _seen(model, texts.append_column("x1", table["x1"])) == (80, 80)
    assert _seen(model, table.slice(3, 5)) == (5, 5)
    assert _seen(model, table.slice(0, 0)) == (0, 0)
    assert _seen(model, pa.concat_tables([table.slice(0, 4)] * 3)) == (12, 12)


def test_row_with_any_other_cell_is_new(case):
    table, model = case
    assert _seen(model, _table(seed=9)) == (0, 80)
    read = [model.contract.columns[place].name for place in model.layout.used]
    assert len(read) > 3
    for name in read:
        changed = with_column(table, name, table[name].take(pa.array([1, 0, *range(2, 80)])))
        same = sum(a == b for a, b in zip(changed[name].to_pylist(), table[name].to_pylist(), strict=True))
        assert _seen(model, changed) == (same, 80), name
    absent = table.drop_columns([read[0]])
    assert _seen(model, absent) == (0, 80)


def test_rows_to_choose_on_were_seen_too():
    table, valid = _table(), _table(seed=3).slice(0, 30)
    model = _fit(table, X_val=valid.drop_columns(["y"]), y_val=valid["y"].to_pylist())
    assert _seen(model, table) == (80, 80)
    assert _seen(model, valid) == (30, 30)


def test_key_is_that_of_the_rows_and_of_no_other_table(case):
    table, model = case
    again = remember_rows(model, [table.take(pa.array(np.arange(80)[::-1]))])
    assert again.key == model.seen.key
    assert again.hashes.tobytes() == model.seen.hashes.tobytes()
    other = remember_rows(model, [table.slice(1)])
    assert other.key != model.seen.key
    assert not set(other.hashes) & set(model.seen.hashes)


def test_sample_of_hashes_tells_the_share():
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 2**63, 20_000)
    known = SeenRows(bytes(16), np.unique(hashes)[:1_000], True)
    assert known.is_sample
    assert len(known.hashes) == 1_000
    new = rng.integers(0, 2**63, 20_000)
    assert known.among(hashes) == (1_000, 1_000)
    rows, checked = known.among(new)
    assert (rows, checked) == (0, pytest.approx(1_000, abs=150))
    rows, checked = known.among(np.concatenate([hashes[:5_000], new[:15_000]]))
    assert rows / checked == pytest.approx(0.25, abs=0.06)
    assert "that could be checked" in seen_in_words({"rows": rows, "checked": checked}, 20_000)
    assert seen_in_words({"rows": 0, "checked": 5}, 5) is None
    assert seen_in_words(None, 5) is None


def test_hashes_are_saved_with_the_rows_and_left_out_without(case, tmp_path):
    table, model = case
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert _seen(loaded, table) == (80, 80)
    save_model(model, tmp_path / "m", raw_rows=False)
    assert load_model(tmp_path / "m").seen is None
    assert b"seen.hashes" not in (tmp_path / "m").read_bytes()


@pytest.mark.parametrize(
    "changes",
    [{"key": b"short"}, {"hashes": np.array([5, 5])}, {"hashes": np.array([5, 3])}, {"hashes": np.array([-1, 3])},
     {"hashes": np.zeros(0, dtype=np.int64)}],
)  # fmt: skip
def test_hashes_that_make_no_sense_are_refused(case, tmp_path, changes):
    _, model = case
    with pytest.raises(ModelError, match=r"seen"):
        save_model(dataclasses.replace(model, seen=dataclasses.replace(model.seen, **changes)), tmp_path / "m")
    with pytest.raises(ModelError):
        qmedoid.load(tmp_path / "m")


def test_zero_has_one_sign():
    table = _table()
    with_zero = with_column(table, "x1", pa.array([0.0, *table["x1"].to_pylist()[1:]]))
    model = _fit(with_zero)
    assert _seen(model, with_column(table, "x1", pa.array([-0.0, *table["x1"].to_pylist()[1:]]))) == (80, 80)
