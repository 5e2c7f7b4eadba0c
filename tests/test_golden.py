"""Golden values: what small fits decide, choose and explain does not change unless a wrong thing is put right.

Decisions, groups, medoids and names are compared exactly, numbers to 1e-6, so that the values hold on every processor.
``tests/golden/cases.py`` makes the tables, ``adapter.py`` knows the package, ``values/`` holds the values, and
``cd tests && python -m golden.make`` writes them anew.
"""

import copy

import pytest

from golden import adapter, files
from golden.cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_golden_values_of_a_fit_and_of_its_saved_model(name, tmp_path):
    kept = files.read(name)
    case = adapter.prepared(CASES[name]())
    fitted = adapter.build(case)
    loaded = adapter.saved(fitted, tmp_path / "first" / "model")
    again = adapter.saved(loaded, tmp_path / "second" / "model")
    models = {"the classifier": fitted, "its saved model": loaded, "that one saved again": again}
    found = {who: adapter.observe(model, case.new) for who, model in models.items()}
    for who, values in found.items():
        assert not files.differences(files.rounded(values), {key: kept[key] for key in values}), who
    described = adapter.describe(again, tmp_path / "second" / "model", case.new, case.explained)
    described["configuration"] = adapter.configuration(fitted)
    assert not files.differences(files.rounded(described), kept)


def test_golden_files_belong_to_cases():
    assert {path.stem for path in files.FOLDER.glob("*.json")} == set(CASES)


@pytest.mark.parametrize("name", ["nearest_medoid", "raw_table"])
def test_golden_comparison_notices_every_changed_value(name):
    kept = files.read(name)
    for path in leaves(kept):
        changed = copy.deepcopy(kept)
        *way, last = path
        part = changed
        for step in way:
            part = part[step]
        part[last] = other(part[last])
        assert len(files.differences(changed, kept)) == 1, path


def leaves(value, path=()):
    """Where the plain values are."""
    if not isinstance(value, dict | list):
        return [path]
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    return [leaf for key, part in parts for leaf in leaves(part, (*path, key))]


def other(value):
    """Something else of the same kind; a number that is a little further off than is allowed."""
    if isinstance(value, float):
        return value + 2.0 * files.CLOSE * max(1.0, abs(value))
    if isinstance(value, bool) or value is None:
        return not value
    return value + 1 if isinstance(value, int) else value + "."
