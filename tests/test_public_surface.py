"""What the package offers by name, and what importing it costs."""

import statistics
import subprocess
import sys
from importlib.resources import files

import pytest

import qmedoid

PUBLIC = [
    "ArrowScorer",
    "Comparison",
    "Contract",
    "DeltaFeatures",
    "Effect",
    "EvidenceClassifier",
    "Explanation",
    "MedoidClassifier",
    "ModelDiff",
    "NearestMedoidClassifier",
    "OperatingSummary",
    "RareEventClassifier",
    "Recalibration",
    "SavedModel",
    "StabilityReport",
    "SumClassifier",
    "SwapTest",
    "VariationalClassifier",
    "__version__",
    "arrow_scorer",
    "check_table",
    "compact_swap_test",
    "compare",
    "diff",
    "exceptions",
    "load",
    "medoid_index",
    "recalibrate",
    "stability",
]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_public_names_are_these():
    assert sorted(qmedoid.__all__) == PUBLIC
    assert dir(qmedoid) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name):
    value = getattr(qmedoid, name)
    assert getattr(value, "__name__", name).removeprefix("qmedoid.") == name


def test_a_star_import_brings_the_public_names_and_others_are_attribute_errors():
    code = "from qmedoid import *; print(sorted(n for n in dir() if n[0] != '_' or n == '__version__'))"
    assert python(code).strip() == repr(PUBLIC)
    with pytest.raises(AttributeError, match="module 'qmedoid' has no attribute 'Fusion'"):
        qmedoid.Fusion  # noqa: B018


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("__version__", []), *((name, ["scipy", "pyarrow"]) for name in ("OperatingSummary", "medoid_index"))],
)
def test_names_import_nothing_heavy(name, allowed):
    code = f"import sys, qmedoid; qmedoid.{name}; print(*{{n.partition('.')[0] for n in sys.modules}})"
    heavy = {"sklearn", "scipy", "qiskit", "pandas", "polars", "pyarrow", "rich", "typer"} - set(allowed)
    assert not heavy & set(python(code).split())


def test_importing_the_package_takes_no_more_than_twice_as_long_as_numpy():
    clock = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    times = {"numpy": [], "qmedoid": []}
    for _ in range(7):  # in turn, so that a busy machine slows both
        for name, seen in times.items():
            seen.append(float(python(clock.format(name))))
    assert statistics.median(times["qmedoid"]) <= 2 * statistics.median(times["numpy"])


def test_types_are_shipped():
    assert (files("qmedoid") / "py.typed").is_file()
