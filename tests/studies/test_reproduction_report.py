"""A report: what stands in it, and what it does not depend on."""

import pytest
from benchmarks.studies import fraud_tables, report
from benchmarks.studies.cells import FRAUD_SAMPLE, FULL_FRAUD, load_data
from benchmarks.studies.paper import PARTS, Plan
from benchmarks.studies.report import PAPER_TABLES, make_report
from benchmarks.studies.results import StudyResults
from made_up_cells import made_up

NAMES = ("heart", "breast-cancer", "wine")


@pytest.fixture(scope="module")
def small():
    return made_up(Plan(NAMES, splits=4))


@pytest.fixture(scope="module")
def fraud():
    return made_up(Plan(["fraud"], fraud_splits=3))


@pytest.fixture
def without_pictures(monkeypatch):
    """Reports of tables and sentences alone; pictures take longer than all else and have tests of their own."""
    for name in ("small_pictures", "small_detail_pictures", "fraud_pictures"):
        monkeypatch.setattr(report, name, lambda *_, **__: [])


@pytest.fixture
def sample_for_all(monkeypatch):
    """The sample of the payments in place of all of them, which are not on every machine."""
    for module in (report, fraud_tables):
        monkeypatch.setattr(module, "load_data", lambda name: load_data(FRAUD_SAMPLE if name == FULL_FRAUD else name))


class TestReport:
    def test_it_does_not_depend_on_the_order_in_which_cells_were_done(self):
        plan = Plan(["wine"]).quick()
        results = made_up(plan)
        backwards = StudyResults(dict(reversed(results.by_cell.items())))
        first, second = (make_report(plan, one, "command") for one in (results, backwards))
        assert first.pictures
        assert first == second

    @pytest.mark.usefixtures("without_pictures", "sample_for_all")
    def test_a_full_run_has_every_table_of_the_paper_and_what_stands_behind_it(self, small, fraud):
        plan = Plan(PARTS, splits=4, fraud_splits=3)
        document = make_report(plan, StudyResults({**small.by_cell, **fraud.by_cell}), "qmedoid reproduce")
        names = [table.name for table in document.tables]
        assert set(PAPER_TABLES) <= set(names)
        assert {"variants", "fraud_readings", "paired_differences", "within_the_spread"} <= set(names)
        # So few splits say nothing about a spread.
        assert not [finding for finding in document.findings if "within the spread" in finding]
        for data in map(load_data, (*NAMES, FRAUD_SAMPLE)):
            assert [finding for finding in document.findings if finding.startswith(data.name)]

    @pytest.mark.usefixtures("without_pictures")
    def test_a_sample_is_not_held_against_the_paper(self):
        plan = Plan(["fraud"]).quick()
        document = make_report(plan, made_up(plan), "command")
        assert "one payment in 30" in " ".join(document.introduction)
        for table in document.tables:
            at = [place for place, column in enumerate(table.columns) if column.name.startswith("paper")]
            assert {row[place] for row in table.rows for place in at} <= {None}
        assert not [finding for finding in document.findings if "paper" in finding]

    def test_pictures_of_the_frauds_are_drawn(self):
        plan = Plan(["fraud"]).quick()
        names = {picture.name for picture in make_report(plan, made_up(plan), "command").pictures}
        assert names == {"fraud_pr_auc", "fraud_pr", "fraud_roc", "fraud_recall_by_alert_rate"}
