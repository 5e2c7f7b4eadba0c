"""Findings: each is found in a table that has what it is about, and not in one that does not."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from small_models import mixed_table, model_of, replaced

from qmedoid.exceptions import ParameterError
from qmedoid.report.findings import FINDINGS, TEXTS, check_codes
from qmedoid.report.reading import look_at_data
from qmedoid.report.rows import moved, told_alone
from qmedoid.report.summary import ReportSettings, summarize

BASELINES = {"about": "", "figures": [], "rows": [], "verdict": "No plain baseline wins.", "better": False}


def clean(seed=1, n=300):
    return mixed_table(n, seed)


def plain_model():
    return model_of(mixed_table(300, 0))


def leaking(seed, n=300):
    """A table with a column that holds the class."""
    table = mixed_table(n, seed)
    rng = np.random.default_rng(seed)
    code = np.array([one == "yes" for one in table.column("y").to_pylist()])
    return table.add_column(0, "leak", pa.array(10.0 * code + rng.normal(size=n)))


def poor(seed=0, n=400):
    """A table with an identifier, a constant, a category of many levels, most of them once, and a rare class."""
    table, rng = mixed_table(n, seed), np.random.default_rng(seed)
    label = np.where(np.arange(n) < 8, "yes", "no")
    label = label[rng.permutation(n)]
    cities = [f"city {one}" if one < 60 else "city 0" for one in rng.permutation(n)]
    table = replaced(table, "y", pa.array(label.tolist()))
    table = replaced(table, "x1", pa.array(rng.normal(size=n) + 2.0 * (label == "yes")))
    return (
        table.append_column("customer_id", pa.array([f"c{one:05d}" for one in rng.permutation(n)]))
        .append_column("fixed", pa.array(np.ones(n)))
        .append_column("city", pa.array(cities))
    )


def found(model, table=None, *, baselines=None, ignore=(), all_rows=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        looked = None if table is None else look_at_data(model, table, on_mismatch="warn")
    summary = summarize(
        model, looked, baselines=baselines, settings=ReportSettings(live=False, ignore=ignore, all_rows=all_rows)
    )
    return {one["code"]: one for one in summary["findings"]}


def with_labels(table, labels):
    return replaced(table, "y", pa.array(list(labels)))


def flipped():
    table = clean()
    rng = np.random.default_rng(0)
    other = {"yes": "no", "no": "yes"}
    return with_labels(table, [other[one] if rng.random() < 0.35 else one for one in table.column("y").to_pylist()])


def conflicting():
    table = clean(n=100)
    other = with_labels(table, [{"yes": "no", "no": "yes"}[one] for one in table.column("y").to_pylist()])
    return pa.concat_tables([table, other])


def only(label):
    table = pa.concat_tables([clean(seed) for seed in (1, 2, 3)])
    rare = np.flatnonzero([one != label for one in table.column("y").to_pylist()])
    kept = np.flatnonzero([one == label for one in table.column("y").to_pylist()])
    return table.take(pa.array(np.sort(np.concatenate([kept, rare[:20]]))))


def sorted_by_x1():
    table = clean()
    return table.take(pa.array(np.argsort(table.column("x1").to_numpy())))


def missing_x3(where):
    table = clean()
    labels = table.column("y").to_pylist()
    values = table.column("x3").to_pylist()
    rng = np.random.default_rng(0)
    return replaced(
        table, "x3", pa.array([None if where(label, rng) else v for label, v in zip(labels, values, strict=True)])
    )


def moved_x1(by):
    table = clean()
    return replaced(table, "x1", pa.array(table.column("x1").to_numpy() + by))


def with_nines():
    values = clean().column("x1").to_numpy()
    return pa.array(np.where(np.arange(len(values)) % 9 == 0, 999.0, values))


TRIGGERS = {
    "QM101": lambda: found(model_of(poor())),
    "QM102": lambda: found(model_of(poor())),
    "QM104": lambda: found(model_of(poor())),
    "QM105": lambda: found(plain_model(), replaced(clean(), "x2", pa.array(np.ones(300)))),
    "QM201": lambda: found(model_of(leaking(0)), leaking(1)),
    "QM202": lambda: found(model_of(leaking(0)), leaking(1)),
    "QM204": lambda: found(plain_model(), moved_x1(-40.0)),
    "QM205": lambda: found(plain_model(), clean(n=12)),
    "QM301": lambda: found(plain_model(), flipped()),
    "QM302": lambda: found(plain_model(), flipped()),
    "QM303": lambda: found(plain_model(), clean(), baselines=BASELINES | {"better": True}),
    "QM304": lambda: found(plain_model(), mixed_table(300, 0), all_rows=True),
    "QM305": lambda: found(plain_model(), conflicting()),
    "QM401": lambda: found(plain_model(), replaced(clean(), "color", pa.array(["pink"] * 300))),
    "QM402": lambda: found(plain_model(), moved_x1(50.0)),
    "QM403": lambda: found(plain_model(), only("yes")),
    "QM404": lambda: found(plain_model(), moved_x1(3.0)),
    "QM405": lambda: found(plain_model(), sorted_by_x1()),
    "QM406": lambda: found(plain_model(), missing_x3(lambda label, _: label == "yes")),
    "QM407": lambda: found(plain_model(), clean().drop_columns(["y"])),
    "QM408": lambda: found(plain_model(), missing_x3(lambda _, rng: rng.random() < 0.7)),
    "QM410": lambda: found(plain_model(), replaced(clean(), "x1", with_nines())),
}


@pytest.fixture(scope="module")
def on_clean():
    return found(plain_model(), clean(), baselines=BASELINES)


def test_every_finding_is_tried():
    assert [*TEXTS] == [*FINDINGS] == sorted(TRIGGERS)


@pytest.mark.parametrize("code", sorted(TRIGGERS))
def test_a_finding_is_found_where_it_is(code):
    one = TRIGGERS[code]()[code]
    assert one["status"] in ("problem", "tip"), one
    assert one["why"].endswith(".")
    assert one["do"].endswith((".", "…"))


@pytest.mark.parametrize("code", sorted(TRIGGERS))
def test_a_finding_is_not_found_in_a_clean_table(code, on_clean):
    assert on_clean[code]["status"] == "passed", on_clean[code]


def test_a_constant_column_of_the_fit_is_found():
    one = found(model_of(poor()))["QM105"]
    assert one["status"] == "tip"
    assert "'fixed'" in one["why"]


def test_without_a_table_nothing_is_said_of_one():
    statuses = {code: one["status"] for code, one in found(plain_model()).items()}
    assert {status for code, status in statuses.items() if code.startswith("QM4")} == {"not applicable"}
    assert "problem" not in statuses.values()


def test_a_finding_can_be_ignored():
    one = found(plain_model(), mixed_table(300, 0), ignore=("QM304",), all_rows=True)["QM304"]
    assert one["status"] == "ignored"
    with pytest.raises(ParameterError, match=r"no finding 'QM3044'\. Did you mean 'QM304'"):
        check_codes(["QM3044"])


def test_problems_come_first():
    statuses = [one["status"] for one in found(model_of(leaking(0)), leaking(1), ignore=["QM101"]).values()]
    order = ["problem", "tip", "passed", "not applicable", "ignored"]
    assert statuses == sorted(statuses, key=order.index)
    assert {*statuses} == {*order}


def test_changes_in_the_order_of_a_date_are_a_problem():
    table = clean()
    labels = np.array(table.column("y").to_pylist())
    day = np.argsort(np.argsort(labels, kind="stable"))
    dated = table.append_column("day", pa.array((18_000 + day).astype(np.int32), pa.date32()))
    first = mixed_table(300, 0)
    days = np.random.default_rng(0).integers(18_000, 18_300, 300).astype(np.int32)
    model = model_of(first.append_column("day", pa.array(days, pa.date32())))
    one = found(model, dated)["QM405"]
    assert one["status"] == "problem"
    assert "'day'" in one["why"]


def test_told_alone_is_one_half_for_noise_and_one_for_the_class():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 2000)
    assert told_alone(rng.normal(size=2000), codes, 2) == pytest.approx(0.5, abs=0.06)
    assert told_alone(codes + 0.0, codes, 2) == pytest.approx(1.0)
    # One row for each level tells nothing about another row.
    assert told_alone(np.arange(2000.0), codes, 2) == pytest.approx(0.5, abs=0.06)
    assert told_alone(codes + 0.0, np.zeros(2000, dtype=int), 2) is None


def test_moved_is_the_largest_difference_of_cumulative_shares():
    assert moved(np.array([0.0] * 30 + [5.0] * 30 + [1.0] * 30)) == 1.0
    assert moved(np.array([0.0, 1.0] * 45)) == 0.0
    # Missing cells count as the lowest.
    assert moved(np.array([np.nan] * 30 + [0.0] * 30 + [1.0] * 30)) == 1.0
