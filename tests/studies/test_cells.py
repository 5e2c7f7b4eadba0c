"""Keys of cells: they change with all that a result depends on, and with nothing else. And what a plan has."""

import dataclasses
import itertools
import subprocess
import sys

import pytest
from benchmarks.studies import baselines, cells, ours, runner
from benchmarks.studies.cells import FRAUD_SAMPLE, Cell
from benchmarks.studies.paper import FRAUD_VARIANTS, PARTS, SMALL_METHODS, SMALL_VARIANTS, STUDY, Plan
from benchmarks.studies.runner import versions

OURS = Cell("small", "wine", "random", 0, "printed")
RIVAL = Cell("small", "wine", "random", 0, "LogReg")
FRAUD_OURS = Cell("fraud", FRAUD_SAMPLE, "random", 0, "default")
FRAUD_RIVAL = Cell("fraud", FRAUD_SAMPLE, "random", 0, "LightGBM, SMOTE")
CELLS = (OURS, RIVAL, FRAUD_OURS, FRAUD_RIVAL)


class TestKey:
    @pytest.mark.parametrize(
        "change",
        [{"data": "heart"}, {"split": "time"}, {"seed": 1}, {"method": "default"}, {"method": "printed, true angle"}],
        ids=str,
    )
    def test_every_field_changes_it(self, change):
        assert STUDY.key(dataclasses.replace(OURS, **change)) != STUDY.key(OURS)

    def test_data_and_settings_change_it(self):
        method = dataclasses.replace(SMALL_METHODS["printed"], settings={"angle": "true"})
        for changed in ({"digest": lambda _: "other data"}, {"methods": {"small": {"printed": method}}}):
            assert dataclasses.replace(STUDY, **changed).key(OURS) != STUDY.key(OURS)

    def test_a_number_of_the_code_changes_it(self, monkeypatch):
        before = {cell: STUDY.key(cell) for cell in CELLS}
        for module, changed in ((ours, {OURS, FRAUD_OURS}), (baselines, {RIVAL, FRAUD_RIVAL}), (cells, {*CELLS})):
            with monkeypatch.context() as patched:
                patched.setattr(module, "CODE", module.CODE + 1)
                assert {cell for cell in CELLS if STUDY.key(cell) != before[cell]} == changed

    def test_versions_change_it_but_for_that_of_the_package(self, monkeypatch):
        before = {cell: STUDY.key(cell) for cell in CELLS}
        for package in ("kernels", "python", "machine", "numpy", "scipy", "scikit-learn", "lightgbm", "qmedoid"):
            monkeypatch.setattr(runner, "versions", lambda package=package: versions() | {package: "0.0"})
            assert all((STUDY.key(cell) == key) == (package == "qmedoid") for cell, key in before.items())
        assert runner.version_of("no such package") == "none"

    def test_it_is_the_same_in_another_process(self):
        script = (
            "from benchmarks.studies.cells import Cell\nfrom benchmarks.studies.paper import STUDY\n"
            "print(STUDY.key(Cell('small', 'wine', 'random', 0, 'printed')))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
        assert done.stdout.decode().strip() == STUDY.key(OURS)

    def test_all_cells_of_a_plan_have_keys_of_their_own(self):
        study = dataclasses.replace(STUDY, digest=str)
        planned = Plan(PARTS).cells + Plan(["fraud"]).quick().cells
        assert len({study.key(cell) for cell in planned}) == len(planned)


class TestPlan:
    @pytest.mark.parametrize("plan", [Plan(PARTS), Plan(PARTS).quick(), Plan(PARTS, seed=7)], ids=["all", "quick", "7"])
    def test_every_cell_is_there_once_and_can_be_run(self, plan):
        assert len(set(plan.cells)) == len(plan.cells)
        for cell in plan.cells:
            assert cell.split in STUDY.method(cell).splits
            assert STUDY.seconds(cell) > 0

    def test_counts(self):
        n_small, n_variants = len(SMALL_METHODS), len(SMALL_VARIANTS)
        assert (n_small - n_variants, n_variants) == (8, 7)
        assert len(Plan(["wine"]).cells) == 20 * 15
        assert len(Plan(["heart"]).cells) == 20 * (15 + 8)
        # 13 methods on 5 splits by chance; 8 without SMOTE on 5 splits with equal rows apart and on that by time.
        assert len(Plan(["fraud"], variants=False).cells) == 13 * 5 + 8 * (5 + 1)
        assert len(Plan(["fraud"]).cells) == 13 * 5 + 8 * (5 + 1) + 5 * len(FRAUD_VARIANTS)
        assert len(Plan(PARTS).cells) == 20 * (15 + 8 + 15 + 15) + len(Plan(["fraud"]).cells)

    def test_quick_is_smaller_and_a_sample(self):
        quick = Plan(PARTS).quick()
        assert len(Plan(["wine"]).quick().cells) == 2 * 8
        assert len(Plan(["heart"]).quick().cells) == 2 * 8
        assert len(Plan(["fraud"]).quick().cells) == 13 + 8 * (1 + 1)
        assert {cell.data for cell in quick.cells} == {"heart", "breast-cancer", "wine", FRAUD_SAMPLE}
        assert {cell.method for cell in quick.cells}.isdisjoint({*SMALL_VARIANTS, *FRAUD_VARIANTS})

    @pytest.mark.parametrize("seed", [0, 40])
    @pytest.mark.parametrize("quick", [False, True])
    def test_all_methods_share_the_splits_of_a_data_set(self, seed, quick):
        plan = Plan(PARTS, seed=seed)
        cells = sorted((plan.quick() if quick else plan).cells, key=lambda cell: (cell.data, cell.split, cell.method))
        for (_, split), group in itertools.groupby(cells, key=lambda cell: (cell.data, cell.split)):
            members = list(group)
            seeds = {
                method: [cell.seed for cell in own]
                for method, own in itertools.groupby(members, key=lambda cell: cell.method)
            }
            assert len({tuple(own) for own in seeds.values()}) == 1
            assert members[0].seed == seed
            assert split != "time" or {tuple(own) for own in seeds.values()} == {(seed,)}
