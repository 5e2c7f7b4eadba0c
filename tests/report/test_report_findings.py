"""Findings: each is found in a table that has what it is about, and not in one that does not."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from small_models import mixed_table, model_of, replaced

from qmedoid.exceptions import ParameterError
from qmedoid.report.findings import FINDINGS, TEXTS
from qmedoid.report.reading import look_at_data
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
    """A table with an identifier and a rare class."""
    table, rng = mixed_table(n, seed), np.random.default_rng(seed)
    label = np.where(np.arange(n) < 8, "yes", "no")
    label = label[rng.permutation(n)]
    table = replaced(table, "y", pa.array(label.tolist()))
    table = replaced(table, "x1", pa.array(rng.normal(size=n) + 2.0 * (label == "yes")))
    return table.append_column("customer_id", pa.array([f"c{one:05d}" for one in rng.permutation(n)]))


def found(model, table=None, *, baselines=None, ignore=()):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        looked = None if table is None else look_at_data(model, table, on_mismatch="warn")
    summary = summarize(model, looked, baselines=baselines, settings=ReportSettings(live=False, ignore=ignore))
    return {one["code"]: one for one in summary["findings"]}


def with_labels(table, labels):
    return replaced(table, "y", pa.array(list(labels)))


def flipped():
    table = clean()
    rng = np.random.default_rng(0)
    other = {"yes": "no", "no": "yes"}
    return with_labels(table, [other[one] if rng.random() < 0.35 else one for one in table.column("y").to_pylist()])


def only(label):
    table = pa.concat_tables([clean(seed) for seed in (1, 2, 3)])
    rare = np.flatnonzero([one != label for one in table.column("y").to_pylist()])
    kept = np.flatnonzero([one == label for one in table.column("y").to_pylist()])
    return table.take(pa.array(np.sort(np.concatenate([kept, rare[:20]]))))


def missing_x3():
    table = clean()
    is_missing = np.random.default_rng(0).random(len(table)) < 0.7
    return replaced(table, "x3", pa.array(table.column("x3").to_numpy(), mask=is_missing))


def moved_x1(by):
    table = clean()
    return replaced(table, "x1", pa.array(table.column("x1").to_numpy() + by))


TRIGGERS = {
    "QM101": lambda: found(model_of(poor())),
    "QM102": lambda: found(model_of(poor())),
    "QM201": lambda: found(model_of(leaking(0)), leaking(1)),
    "QM204": lambda: found(plain_model(), moved_x1(-40.0)),
    "QM301": lambda: found(plain_model(), flipped()),
    "QM302": lambda: found(plain_model(), flipped()),
    "QM303": lambda: found(plain_model(), clean(), baselines=BASELINES | {"better": True}),
    "QM401": lambda: found(plain_model(), replaced(clean(), "color", pa.array(["pink"] * 300))),
    "QM402": lambda: found(plain_model(), moved_x1(50.0)),
    "QM403": lambda: found(plain_model(), only("yes")),
    "QM404": lambda: found(plain_model(), moved_x1(3.0)),
    "QM408": lambda: found(plain_model(), missing_x3()),
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


def test_without_a_table_nothing_is_said_of_one():
    statuses = {code: one["status"] for code, one in found(plain_model()).items()}
    assert {status for code, status in statuses.items() if code.startswith("QM4")} == {"not applicable"}
    assert "problem" not in statuses.values()


def test_a_finding_can_be_ignored():
    assert found(plain_model(), flipped(), ignore=("QM302",))["QM302"]["status"] == "ignored"
    with pytest.raises(ParameterError, match=r"no finding 'QM3022'\. Did you mean 'QM302'"):
        ReportSettings(ignore=("QM3022",))


def test_problems_come_first():
    statuses = [one["status"] for one in found(model_of(poor()), poor(1), ignore=["QM403"]).values()]
    order = ["problem", "tip", "passed", "not applicable", "ignored"]
    assert statuses == sorted(statuses, key=order.index)
    assert {*statuses} == {*order}


def test_alert_rate_of_other_units_is_not_passed():
    """A column in another unit leaves about as many alerts, and says nothing of the decisions."""
    table = clean()
    scaled = replaced(table, "x3", pa.array(100.0 * table.column("x3").to_numpy()))
    assert found(plain_model(), table)["QM404"]["status"] == "passed"
    once = replaced(table, "x3", pa.array([1e6, *table.column("x3").to_pylist()[1:]]))
    assert found(plain_model(), once)["QM402"]["status"] != "passed"
    assert found(plain_model(), once)["QM404"]["status"] == "passed"  # one row moves no rate
    finding = found(plain_model(), scaled)["QM404"]
    assert finding["status"] == "tip"
    assert finding["why"].endswith("of records like the training rows, which these are not.")
