"""Model files whose numbers are finite and far out: refused, or scored with finite numbers, never NaN in silence."""

import json

import numpy as np
import pyarrow as pa
import pytest
from sample_models import all_models, random_columns
from spoilt_files import Spoilt

import qmedoid
from qmedoid import MedoidClassifier
from qmedoid.exceptions import QMedoidError
from qmedoid.explain.explaining import explain
from qmedoid.model.storage.model_file import load_model, save_model

# One of every method, calibration, read-out and policy.
MODELS = (
    "nearest", "selective", "variational", "several classes", "direct", "evidence", "evidence and circuit",
    "evidence of classes", "rare", "rare and circuit", "shifted",
)  # fmt: skip
COLUMNS = random_columns(6)


def _far_out(array):
    """The array with all its numbers far out, of one sign and of both."""
    for value in (1e308, 5e-324):
        yield np.full_like(array, value)
    signs = np.where(np.arange(array.size) % 2, -1.0, 1.0).reshape(array.shape)
    yield 1e308 * signs


def _floats(value, path=()):
    """Where a manifest holds a number that is no whole one."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, float):
            yield (*path, key)
        yield from _floats(item, (*path, key))


def _with(value, path, number):
    if not path:
        return number
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = _with(value[path[0]], path[1:], number)
    return changed


def _outcome(path):
    """Whether a file was refused; else all that it says must be finite."""
    try:
        model = load_model(path)
        decided = model.decide(COLUMNS)
    except QMedoidError:
        return "refused"
    for numbers in (decided.scores, decided.margins, model.decision.probabilities(decided.scores)):
        assert np.isfinite(numbers).all()
    try:
        why = explain(model, [column[:1] for column in COLUMNS])
    except QMedoidError:
        return "scored"
    contributions = [share.contribution for share in why.groups]
    assert np.isfinite([why.margin, *contributions, *why.terms.values()]).all()
    return "scored"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("error")
def test_numbers_that_are_far_out_give_no_nan(name, tmp_path):
    save_model(all_models()[name], tmp_path / "m")
    file = Spoilt(tmp_path / "m")
    arrays = file.arrays()
    outcomes = set()
    for key, array in arrays.items():
        if array.dtype != np.float64 or array.size == 0:
            continue
        for spoilt in _far_out(array):
            (tmp_path / "q").write_bytes(file.with_arrays(arrays | {key: spoilt}))
            outcomes.add(_outcome(tmp_path / "q"))
    for path in _floats(file.manifest):
        for value in (1e308, -1e308, 5e-324):
            manifest = json.loads(json.dumps(file.manifest))
            (tmp_path / "q").write_bytes(file.with_manifest(_with(manifest, path, value)))
            outcomes.add(_outcome(tmp_path / "q"))
    assert outcomes == {"refused", "scored"}


@pytest.mark.parametrize("method", ["evidence", "nearest"])
def test_encodings_that_are_far_out_give_no_nan(method, tmp_path):
    rng = np.random.default_rng(0)
    n = 60
    codes = np.arange(n) % 2
    columns = {
        "x": pa.array(np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n) + codes), from_pandas=True),
        "color": pa.array(np.where(rng.random(n) < 0.8, codes, 1 - codes).astype(str)).cast(pa.string()),
        "shop": pa.array([f"shop {k}" for k in rng.integers(0, 15, n)]),
    }
    table = pa.table(columns)
    fitted = MedoidClassifier(method=method, refine="never", random_state=0).fit(table, codes)
    fitted.save(tmp_path / "m")
    file = Spoilt(tmp_path / "m")
    arrays = file.arrays()
    for key in [name for name in arrays if name.startswith("encodings.") and name.endswith(".values")]:
        for spoilt in _far_out(arrays[key]):
            (tmp_path / "q").write_bytes(file.with_arrays(arrays | {key: spoilt}))
            try:
                scores = qmedoid.load(tmp_path / "q").predict_proba(table)
            except QMedoidError:
                continue
            assert np.isfinite(scores).all(), key
