"""Keys of cells: they change with all that a result depends on, and with nothing else. And what a plan has."""

import dataclasses
import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.studies import baselines, code, ours, runner
from benchmarks.studies.cells import FRAUD_SAMPLE, HEART_ORDINAL, Cell, load_data
from benchmarks.studies.code import Project, reached, versions
from benchmarks.studies.paper import FRAUD_VARIANTS, PARTS, SMALL_METHODS, SMALL_VARIANTS, STUDY, Plan

ROOT = Path(__file__).parents[2]
OURS = Cell("small", "wine", "random", 0, "printed")
RIVAL = Cell("small", "wine", "random", 0, "LogReg")
FRAUD_OURS = Cell("fraud", FRAUD_SAMPLE, "random", 0, "default")
FRAUD_RIVAL = Cell("fraud", FRAUD_SAMPLE, "random", 0, "LightGBM, SMOTE")
CELLS = (OURS, RIVAL, FRAUD_OURS, FRAUD_RIVAL)


class TestKey:
    def test_it_is_a_digest(self):
        assert len(STUDY.key(OURS)) == 64
        assert int(STUDY.key(OURS), 16) > 0

    @pytest.mark.parametrize(
        "change",
        [
            {"data": "heart"},
            {"split": "time"},
            {"split": "grouped"},
            {"seed": 1},
            {"method": "default"},
            {"method": "printed, true angle"},
        ],
        ids=str,
    )
    def test_every_field_changes_it(self, change):
        assert STUDY.key(dataclasses.replace(OURS, **change)) != STUDY.key(OURS)

    def test_data_change_it(self):
        other = dataclasses.replace(STUDY, digest=lambda _: "other data")
        assert other.key(OURS) != STUDY.key(OURS)

    def test_settings_change_it(self):
        method = dataclasses.replace(SMALL_METHODS["printed"], settings={"angle": "true"})
        other = dataclasses.replace(STUDY, methods={"small": {"printed": method}})
        assert other.key(OURS) != STUDY.key(OURS)

    @pytest.mark.parametrize("package", ["kernels", "python", "machine", "numpy", "scipy", "scikit-learn", "lightgbm"])
    def test_versions_change_it(self, monkeypatch, package):
        before = {cell: STUDY.key(cell) for cell in CELLS}
        monkeypatch.setattr(runner, "versions", lambda: versions() | {package: "0.0"})
        assert all(STUDY.key(cell) != key for cell, key in before.items())

    def test_the_version_of_the_package_does_not_change_it(self, monkeypatch):
        before = STUDY.key(OURS)
        monkeypatch.setattr(runner, "versions", lambda: versions() | {"qmedoid": "0.0"})
        assert STUDY.key(OURS) == before

    def test_a_package_that_is_not_installed_has_no_version(self, monkeypatch):
        def absent(package):
            raise code.PackageNotFoundError(package)

        monkeypatch.setattr(code, "version", absent)
        assert versions.__wrapped__()["lightgbm"] == "none"

    def test_it_is_the_same_in_another_process(self):
        script = (
            "from benchmarks.studies.cells import Cell\nfrom benchmarks.studies.paper import STUDY\n"
            "print(STUDY.key(Cell('small', 'wine', 'random', 0, 'printed')))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
        assert done.stdout.decode().strip() == STUDY.key(OURS)

    def test_all_cells_of_a_plan_have_keys_of_their_own(self):
        study = dataclasses.replace(STUDY, digest=str)
        cells = Plan(PARTS).cells + Plan(["fraud"]).quick().cells
        assert len({study.key(cell) for cell in cells}) == len(cells)


@pytest.fixture(scope="module")
def makes_old():
    project = Project({"benchmarks": ROOT / "benchmarks", "qmedoid": ROOT / "src" / "qmedoid"})
    found = {}
    for name, module in {"ours": ours.__name__, "plain": baselines.__name__}.items():
        modules, kernels = reached(project, [module])
        found[name] = {project.file(one) for one in modules} | set(kernels)
    return lambda path: {name for name, files in found.items() if ROOT / path in files}


class TestReached:
    """Which files of this package make which cells old; ``test_code.py`` has the tests of the rule itself."""

    @pytest.mark.parametrize(
        "path",
        ["benchmarks/studies/cells.py", "src/qmedoid/metrics/classification.py"],
    )
    def test_splits_and_metrics_make_all_old(self, makes_old, path):
        assert makes_old(path) == {"ours", "plain"}

    @pytest.mark.parametrize(
        "path",
        [
            "benchmarks/studies/ours.py",
            "src/qmedoid/estimators/nearest.py",
            "src/qmedoid/estimators/evidence.py",
            "src/qmedoid/methods/nearest/part.py",
            "src/qmedoid/methods/nearest/fit.py",
            "src/qmedoid/methods/evidence/fit.py",
            "src/qmedoid/methods/rare/part.py",
            "src/qmedoid/geometry/medoids.py",
            "src/qmedoid/optimize/descent.py",
            "src/qmedoid/methods/variational/ansatz.py",
            "src/qmedoid/kernels/_search.pyx",
            "src/qmedoid/kernels/_search_numpy.py",
            "src/qmedoid/kernels/c/medoid.h",
        ],
    )
    def test_ours_leaves_the_plain_classifiers_alone(self, makes_old, path):
        assert makes_old(path) == {"ours"}

    @pytest.mark.parametrize("path", ["benchmarks/studies/baselines.py"])
    def test_plain_classifiers_leave_ours_alone(self, makes_old, path):
        assert makes_old(path) == {"plain"}

    @pytest.mark.parametrize(
        "path",
        [f"benchmarks/studies/{name}.py" for name in ("report", "runner", "paper", "command", "document")],
    )
    def test_what_only_runs_or_shows_makes_nothing_old(self, makes_old, path):
        assert (ROOT / path).is_file()
        assert makes_old(path) == set()


class TestPlan:
    @pytest.mark.parametrize("plan", [Plan(PARTS), Plan(PARTS).quick(), Plan(PARTS, seed=7)], ids=["all", "quick", "7"])
    def test_every_cell_is_there_once_and_can_be_run(self, plan):
        cells = plan.cells
        assert len(set(cells)) == len(cells)
        for cell in cells:
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

    def test_the_heart_data_are_numbered_only_with_the_variants(self):
        assert HEART_ORDINAL in {cell.data for cell in Plan(["heart"]).cells}
        assert HEART_ORDINAL not in {cell.data for cell in Plan(["heart"], variants=False).cells}
        assert HEART_ORDINAL not in {cell.data for cell in Plan(["wine", "breast-cancer"]).cells}

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

    def test_parts_stand_alone(self):
        everything = set(Plan(PARTS).cells)
        alone = [set(Plan([part]).cells) for part in PARTS]
        assert set.union(*alone) == everything
        assert sum(map(len, alone)) == len(everything)

    def test_names_lead_to_the_data(self):
        assert load_data("wine").name == "Wine"
        assert load_data(FRAUD_SAMPLE).X.shape == (14_707, 29)
        numbered, plain = load_data(HEART_ORDINAL), load_data("heart")
        assert (numbered.y == plain.y).all()
        assert numbered.X.shape[1] == 11 < plain.X.shape[1]
