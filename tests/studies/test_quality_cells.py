"""The study of quality: which cells there are, in which order, and what their keys depend on."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.quality.cells import ORDER, STUDY, planned
from benchmarks.quality.figures import METHODS
from benchmarks.quality.ours import OURS, build, recipes
from benchmarks.quality.protocol import SPLITS
from benchmarks.quality.rivals import RIVALS
from benchmarks.quality.tables import Table
from benchmarks.studies.cells import Cell

from qmedoid.exceptions import ParameterError


@pytest.mark.parametrize("part", ["tables", "card"])
def test_every_recipe_names_parameters_that_there_are(part):
    for own in recipes(part).values():
        made = build(own, 0)
        assert made.get_params()["random_state"] == 0
        for one in [made] if isinstance(made.method, str) else [made, made.method]:
            with pytest.raises(ValueError, match=r"0 sample|no row|empty|at least") as refused:
                one.fit(np.empty((0, 3)), [])  # parameters are looked at first
            assert not isinstance(refused.value, ParameterError)
        if not isinstance(made.method, str):
            base = next(kind for kind in type(made.method).__mro__ if kind.__module__.startswith("qmedoid."))
            plain = base()
            assert (made.method._settings(), made.method.get_params()) != (plain._settings(), plain.get_params())


def test_keys_depend_on_the_cell_the_settings_and_the_release_of_a_rival():
    change = next(name for name in STUDY.methods["4000"] if name.startswith(f"{OURS}, "))
    rival, ours, changed = (Cell("4000", "wine", "random", 0, name) for name in ("LogReg", OURS, change))
    others = (replace(rival, seed=1), replace(rival, part="1000"), ours, changed)
    assert len({STUDY.key(cell) for cell in (rival, *others)}) == 5
    methods = {"4000": {OURS: STUDY.method(changed)}}
    assert replace(STUDY, methods=methods).key(ours) != STUDY.key(ours)
    of_another_release = {**STUDY.methods["4000"], "LogReg": replace(STUDY.method(rival), settings={"release": "9"})}
    assert replace(STUDY, methods={"4000": of_another_release}).key(rival) != STUDY.key(rival)


def test_cells_are_run_seed_by_seed_and_size_by_size(monkeypatch):
    import benchmarks.quality.cells as cells

    sizes = {"small": 500, "large": 200_000}
    tables = {name: Table(name, {}, np.zeros(n, dtype=int), ("0",), "nowhere") for name, n in sizes.items()}
    monkeypatch.setattr(cells, "available", lambda: (list(tables), {}))
    monkeypatch.setattr(cells, "load_table", tables.get)
    found = planned("tables", "report")
    order = list(dict.fromkeys((cell.seed, int(cell.part)) for cell in found))
    assert order == [(60 + place, size) for place in range(3) for size in ORDER if place < SPLITS[size]]
    assert {cell.method for cell in found} == set(METHODS)  # changes are run where they are asked for
    assert {cell.part for cell in found if cell.data == "small"} == {"1000"}
    assert {cell.method for cell in found if cell.part == "100000"} == {
        *(OURS, "CatBoost", "LightGBM", "XGBoost", "HistGradientBoosting")
    }
    assert len(planned("tables", "tuning", methods=["baselines"], splits=1, sizes=[1_000], sets=["small"])) == len(
        RIVALS
    )
    changes = planned("tables", "report", methods=["changes"], splits=1)
    assert {cell.part for cell in changes} == {"4000"}
    assert all(cell.method.startswith(f"{OURS}, ") for cell in changes)
