"""Keys of cells: they change with all that a result depends on, and with nothing else. And what a plan has."""

import dataclasses
import importlib.resources
import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import qmedoid
from qmedoid.studies.reproduction import cells as cells_module
from qmedoid.studies.reproduction import fraud, small
from qmedoid.studies.reproduction.cells import Cell, cell_key, source_digest, versions
from qmedoid.studies.reproduction.plan import (
    FRAUD_SAMPLE,
    FULL_FRAUD,
    HEART_ORDINAL,
    PARTS,
    Plan,
    expected_seconds,
    load_data,
)

OURS = Cell("small", "wine", "random", 0, "printed", True)
RIVAL = Cell("small", "wine", "random", 0, "LogReg", False)
FRAUD_OURS = Cell("fraud", FULL_FRAUD, "random", 0, "default", True)
FRAUD_RIVAL = Cell("fraud", FULL_FRAUD, "random", 0, "LightGBM, SMOTE", False)
CELLS = (OURS, RIVAL, FRAUD_OURS, FRAUD_RIVAL)


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the package's sources that keys are made of; ``sources(path)`` changes a byte of a file."""
    root = Path(qmedoid.__file__).parent
    copy = shutil.copytree(root, tmp_path / "qmedoid", ignore=shutil.ignore_patterns("__pycache__", "*.so", "data"))
    monkeypatch.setattr(cells_module, "files", lambda _: copy)
    source_digest.cache_clear()

    def change(path):
        file = copy / path
        file.write_bytes(file.read_bytes() + b"\n")
        source_digest.cache_clear()

    yield change
    source_digest.cache_clear()


def keys():
    return {cell: cell_key(cell, "data") for cell in CELLS}


def changed(before):
    return {cell for cell, key in keys().items() if key != before[cell]}


class TestKey:
    def test_it_is_a_digest(self):
        assert len(cell_key(OURS, "data")) == 64
        assert int(cell_key(OURS, "data"), 16) > 0

    @pytest.mark.parametrize(
        "change",
        [
            {"study": "fraud"},
            {"data": "heart"},
            {"split": "time"},
            {"split": "apart"},
            {"seed": 1},
            {"method": "default"},
            {"is_ours": False},
        ],
        ids=str,
    )
    def test_every_field_changes_it(self, change):
        assert cell_key(dataclasses.replace(OURS, **change), "data") != cell_key(OURS, "data")

    def test_data_change_it(self):
        assert cell_key(OURS, "data") != cell_key(OURS, "other data")

    @pytest.mark.parametrize(
        "package", ["qmedoid", "kernels", "python", "machine", "numpy", "scipy", "scikit-learn", "lightgbm"]
    )
    def test_versions_change_it(self, monkeypatch, package):
        before = keys()
        monkeypatch.setattr(cells_module, "versions", lambda: versions() | {package: "0.0"})
        assert changed(before) == set(CELLS)

    def test_a_package_that_is_not_installed_has_no_version(self, monkeypatch):
        def absent(package):
            raise cells_module.PackageNotFoundError(package)

        monkeypatch.setattr(cells_module, "version", absent)
        assert versions.__wrapped__()["lightgbm"] == "none"

    def test_it_is_the_same_in_another_process(self):
        code = (
            "from qmedoid.studies.reproduction.cells import Cell, cell_key\n"
            "print(cell_key(Cell('small', 'wine', 'random', 0, 'printed', True), 'data'))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
        assert done.stdout.decode().strip() == cell_key(OURS, "data")

    def test_all_cells_of_a_plan_have_keys_of_their_own(self):
        cells = Plan(PARTS).cells + Plan(["fraud"]).quick().cells
        assert len({cell_key(cell, "data") for cell in cells}) == len(cells)


class TestSources:
    """Which cells a changed byte makes old."""

    @pytest.mark.parametrize(
        "path",
        [
            "studies/splits.py",
            "studies/datasets.py",
            "studies/reproduction/judging.py",
            "metrics/ranking.py",
            "metrics/classification.py",
        ],
    )
    def test_splits_and_judging_make_all_old(self, sources, path):
        before = keys()
        sources(path)
        assert changed(before) == set(CELLS)

    @pytest.mark.parametrize(
        "path",
        [
            "estimators/fusion.py",
            "methods/nearest/model.py",
            "methods/nearest/fit.py",
            "methods/evidence/fit.py",
            "methods/evidence/model.py",
            "estimators/evidence.py",
            "metrics/calibration.py",
            "geometry/medoids.py",
            "optimize/descent.py",
            "variational/ansatz.py",
            "kernels/_backend.py",
            "studies/reproduction/fraud_printed.py",
            "studies/reproduction/own.py",
        ],
    )
    def test_what_is_ours_leaves_the_plain_classifiers_alone(self, sources, path):
        before = keys()
        sources(path)
        assert changed(before) == {OURS, FRAUD_OURS}

    @pytest.mark.parametrize(
        ("path", "old"),
        [
            ("studies/baselines.py", set(CELLS)),  # LightGBM, which both studies have, is made there
            ("studies/reproduction/small.py", {OURS, RIVAL}),
            ("studies/reproduction/fraud.py", {FRAUD_OURS, FRAUD_RIVAL}),
            ("studies/rare_baselines.py", {FRAUD_OURS, FRAUD_RIVAL}),
            ("metrics/operating_points.py", {OURS, FRAUD_OURS, FRAUD_RIVAL}),
            ("metrics/thresholds.py", {OURS, FRAUD_OURS, FRAUD_RIVAL}),
        ],
    )
    def test_a_study_makes_its_own_cells_old(self, sources, path, old):
        before = keys()
        sources(path)
        assert changed(before) == old

    @pytest.mark.parametrize("path", ["studies/reproduction/report.py", "cli/reproduce.py", "reporting/page.py"])
    def test_what_only_shows_results_changes_nothing(self, sources, path):
        before = keys()
        sources(path)
        assert changed(before) == set()

    @pytest.mark.parametrize("study", ["small", "fraud"])
    def test_all_metrics_that_a_study_imports_make_its_cells_old(self, study):
        root = Path(qmedoid.__file__).parent
        listed = cells_module._COMMON + cells_module._OF_STUDY[study]
        text = "\n".join((root / path).read_text(encoding="utf-8") for path in listed)
        assert {f"metrics/{name}.py" for name in re.findall(r"from qmedoid\.metrics\.(\w+) import", text)} <= {*listed}

    def test_compiled_kernels_count_by_their_sources(self, sources):
        root = importlib.resources.files("qmedoid") / "kernels"
        before = keys()
        sources(f"kernels/{next(one.name for one in root.iterdir() if one.name.endswith('.pyx'))}")
        assert changed(before) == {OURS, FRAUD_OURS}


class TestPlan:
    @pytest.mark.parametrize("plan", [Plan(PARTS), Plan(PARTS).quick(), Plan(PARTS, seed=7)], ids=["all", "quick", "7"])
    def test_every_cell_is_there_once_and_can_be_run(self, plan):
        cells = plan.cells
        assert len(set(cells)) == len(cells)
        for cell in cells:
            methods = small.METHODS if cell.study == "small" else fraud.METHODS
            assert methods[cell.method].is_ours == cell.is_ours
            assert expected_seconds(cell) > 0

    def test_counts(self):
        n_small, n_variants = len(small.METHODS), len(small.VARIANTS)
        assert (n_small - n_variants, n_variants) == (8, 7)
        assert len(Plan(["wine"]).cells) == 20 * 15
        assert len(Plan(["heart"]).cells) == 20 * (15 + 8)
        # 13 methods on 5 splits by chance; 8 without SMOTE on 5 splits with equal rows apart and on that by time.
        assert len(Plan(["fraud"], variants=False).cells) == 13 * 5 + 8 * (5 + 1)
        assert len(Plan(["fraud"]).cells) == 13 * 5 + 8 * (5 + 1) + 5 * len(fraud.VARIANTS)
        assert len(Plan(PARTS).cells) == 20 * (15 + 8 + 15 + 15) + len(Plan(["fraud"]).cells)

    def test_quick_is_smaller_and_a_sample(self):
        quick = Plan(PARTS).quick()
        assert len(Plan(["wine"]).quick().cells) == 3 * 8
        assert len(Plan(["heart"]).quick().cells) == 3 * 8
        assert len(Plan(["fraud"]).quick().cells) == 13 * 2 + 8 * (2 + 1)
        assert {cell.data for cell in quick.cells} == {"heart", "breast-cancer", "wine", FRAUD_SAMPLE}
        assert {cell.method for cell in quick.cells}.isdisjoint({*small.VARIANTS, *fraud.VARIANTS})

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
