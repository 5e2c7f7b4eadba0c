"""People who come back: found in a table before any fit, and not where columns only say much."""

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.group_study import WITH, WITHOUT

import qmedoid
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.kinds import names_things
from qmedoid.tables.targets import Target

KINDS = ("shared_class", "near_rows", "runs")


def found(table, **more):
    findings = qmedoid.check_table(table, "y", **more)["findings"]
    return [(one["code"], *one["columns"]) for one in findings if one["code"] in KINDS]


def dataset(table, **more):
    y = np.asarray(table["y"])
    classes, codes = np.unique(y, return_inverse=True)
    columns = pa.table({name: pa.array(cells) for name, cells in table.items() if name != "y"})
    return Dataset.of(columns, Target("y", classes, codes), DatasetSettings(target="y", **more))


@pytest.mark.parametrize("make", WITH, ids=lambda make: make.__name__)
def test_people_who_come_back_are_found(make):
    table, expected = make(np.random.default_rng(0))
    assert found(table)[0] == ((expected,) if expected in KINDS else ("shared_class", expected))


@pytest.mark.parametrize("make", WITHOUT, ids=lambda make: make.__name__)
def test_nothing_is_found_where_columns_only_say_much(make):
    table, _ = make(np.random.default_rng(0))
    assert found(table) == []


@pytest.mark.parametrize("make", [WITH[0], WITH[4], WITH[5]], ids=lambda make: make.__name__)
def test_what_is_found_does_not_depend_on_the_order_of_rows_and_columns(make):
    table, _ = make(np.random.default_rng(1))
    order = np.random.default_rng(2).permutation(len(table["y"]))
    shuffled = {name: table[name][order] for name in [*table][::-1]}
    (one,), (other,) = dataset(table).repeats, dataset(shuffled).repeats
    groups = one.groups[order]
    assert (one.kind, one.column, one.n_values) == (other.kind, other.column, other.n_values)
    np.testing.assert_array_equal(groups[:, None] == groups, other.groups[:, None] == other.groups)


@pytest.mark.parametrize("role", [{}, {"customer": "ignore"}, {"customer": "category"}, {"customer": "keep"}])
def test_a_column_of_people_is_found_in_every_role_and_is_no_leak_to_ignore(role):
    table, _ = WITH[0](np.random.default_rng(0))
    findings = qmedoid.check_table(table, "y", roles=role)["findings"]
    about = [one for one in findings if one["columns"] == ["customer"]]
    assert [one["code"] for one in about] == ["shared_class"]
    assert about[0]["severity"] == "problem"
    assert "--group-column customer" in about[0]["message"]
    assert "groups=X['customer']" in about[0]["message"]
    assert "ignore" not in about[0]["message"]


def test_a_code_that_nothing_else_speaks_of_may_give_the_class_away():
    """Forty refund codes, each of one class: a leak, or 40 shops. Both are said."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 40, 1000)
    table = {"x": rng.normal(size=1000), "z": rng.normal(size=1000), "refund": [f"R{one}" for one in code]}
    findings = qmedoid.check_table({**table, "y": code % 2}, "y")["findings"]
    assert [one["code"] for one in findings] == ["shared_class", "gives_away", "without"]
    assert "or ignore it if it is not known before the class is" in findings[0]["message"]


def test_a_column_that_is_the_class_in_other_words_is_no_person():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 26, 2000)
    table = {"x": rng.normal(size=2000), "letter": [f"the letter {one}" for one in y], "y": y}
    assert found(table) == []
    assert "target_copy" in {one["code"] for one in qmedoid.check_table(table, "y")["findings"]}


@pytest.mark.parametrize(("changed", "word"), [(0.0, "share"), (0.03, "mostly share")])
def test_the_sentence_says_whether_all_rows_of_a_person_share_the_class(changed, word):
    rng = np.random.default_rng(0)
    table, _ = WITH[0](rng)
    table["y"] = np.where(rng.random(len(table["y"])) < changed, 1 - table["y"], table["y"])
    (one,) = dataset(table).repeats
    names, y = np.asarray(table["customer"]), table["y"]
    pure = sum(len(set(y[names == name].tolist())) == 1 for name in set(names.tolist()))
    found, advice = one.words()
    assert found == (f"rows of one 'customer' {word} their class (all rows of {pure} of the 150 values that repeat)")
    assert advice == "hold them out together with --group-column customer"
    assert one.words(python=True)[1] == "hold them out together with groups=X['customer']"


def test_a_missing_name_is_no_person():
    table, _ = WITH[0](np.random.default_rng(0))
    gone = np.random.default_rng(1).random(len(table["y"])) < 0.2
    table["customer"] = np.where(gone, None, table["customer"].astype(object))
    (one,) = dataset(table).repeats
    assert one.column == "customer"
    assert (np.bincount(one.groups)[one.groups[gone]] == 1).all()


def test_near_rows_of_a_part_are_those_of_the_whole():
    table, _ = WITH[4](np.random.default_rng(0))
    data = dataset(table)
    rows = np.random.default_rng(1).permutation(len(table["y"]))[:300]
    part = data.take(rows)
    groups = data.near[rows]
    np.testing.assert_array_equal(groups[:, None] == groups, part.together()[:, None] == part.together())
    train, held_out = data.split(0.25, 0)
    assert not set(data.near[train.rows]) & set(data.near[held_out.rows])
    for fit, judged in data.folds(4, 0):
        assert not set(data.near[fit]) & set(data.near[judged])


def test_rows_that_are_to_be_alone_are_not_looked_at():
    table, _ = WITH[4](np.random.default_rng(0))
    data = dataset(table, alone=True)
    assert data.repeats == []
    assert data.together() is None


def test_grouped_rows_do_not_learn_from_the_column_that_groups_them():
    table, _ = WITH[0](np.random.default_rng(0))
    data = dataset(table, roles={"customer": "category"})
    grouped = data.grouped(data.repeats[0])
    assert "customer" not in {column.name for column in grouped.kinds.columns}
    assert grouped.kinds.left_out["customer"] == "it says which rows belong together"
    names = np.asarray(table["customer"])
    train, held_out = grouped.split(0.25, 0)
    assert not set(names[train.rows]) & set(names[held_out.rows])


@pytest.mark.parametrize("name", ["customer", "Customer ID", "patient_no", "DriverName", "user hash", "students"])
def test_names_of_people_and_things(name):
    assert names_things(name)


@pytest.mark.parametrize("name", ["city", "product_code", "paid", "age", "customer age", "x7"])
def test_names_of_anything_else(name):
    assert not names_things(name)
