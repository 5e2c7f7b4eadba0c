"""Saved and loaded is the same, bit for bit; whatever happens while saving, a model is there whole."""

import dataclasses
import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_models import all_models, circuit, contents, fusion_model, geometric, random_columns, same, table_model

from qmedoid.calibration.curve import Calibration
from qmedoid.exceptions import MissingExtraError, ModelError
from qmedoid.fields import tensors_parsed
from qmedoid.geometry.scaling import RankScaling, Scaling, SignedLog
from qmedoid.methods.evidence.model import CHANNELS, EvidenceModel, Group, Terms
from qmedoid.methods.evidence.neighbors import Neighbors
from qmedoid.methods.nearest.model import MeasuredNearest, NearestModel
from qmedoid.methods.rare.geometry import RareGeometry
from qmedoid.methods.rare.model import RareEventModel
from qmedoid.model.contract import Column, Contract, Dates, Levels, Numbers
from qmedoid.model.decision import PriorShift
from qmedoid.model.hybrid import DeltaSettings, HybridModel
from qmedoid.model.novelty import Far, Novelty
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.model.seen import SeenRows
from qmedoid.model.table import TableModel
from qmedoid.storage._files import MANIFEST
from qmedoid.storage.bundle import save_model
from qmedoid.storage.loading import FORMAT, load_model
from qmedoid.variational.angles import AngleMap
from qmedoid.variational.ansatz import Ansatz
from qmedoid.variational.model import MeasuredVariational, VariationalModel
from qmedoid.variational.network import Network
from qmedoid.variational.readout import READOUT_KINDS, StringReadout

MODELS = all_models()


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_the_saved_one_and_decides_alike(tmp_path, name):
    model = MODELS[name]
    assert save_model(model, tmp_path / "model") == tmp_path / "model"
    loaded = load_model(tmp_path / "model")
    same(loaded, model)
    columns = random_columns()
    for a, b in zip(loaded.decide(columns), model.decide(columns), strict=True):
        same(a, b, "decisions")
    assert (loaded.refinement, loaded.output_names, loaded.used_columns) == (
        model.refinement,
        model.output_names,
        model.used_columns,
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), n_classes=st.integers(2, 5), per_class=st.integers(1, 3), data=st.data())
def test_any_model_comes_back(tmp_path_factory, seed, n_classes, per_class, data):
    rng = np.random.default_rng(seed)
    qubits = data.draw(st.integers(1, 5))
    readout = data.draw(st.sampled_from(["strings", *(["direct"] if 2**qubits >= n_classes else [])]))
    trained = {"n_qubits": qubits, "n_reps": data.draw(st.integers(1, 4)), "readout": readout}
    below = data.draw(st.sampled_from([None, -np.inf, 0.7, np.inf]))
    model = table_model(
        (geometric(rng, n_classes=n_classes, per_class=per_class, refine_below=below, circuit_settings=trained),),
        n_classes=n_classes,
        seed=seed,
    )
    path = tmp_path_factory.mktemp("any")
    save_model(model, path)
    same(load_model(path), model)


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        save_model(MODELS["selective"], tmp_path / name)
    files = [{file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("a", "b")]
    assert files[0] == files[1]


def test_the_manifest_names_every_file_with_its_size_and_hash(tmp_path):
    path = save_model(MODELS["selective"], tmp_path / "model")
    manifest = json.loads((path / MANIFEST).read_text())
    assert manifest["format"] == FORMAT
    assert set(manifest["versions"]) == {"qmedoid", "numpy", "python"}
    named = {entry["name"]: entry for entry in manifest["files"].values()}
    assert set(named) | {MANIFEST} == {file.name for file in path.iterdir()}
    for name, entry in named.items():
        content = (path / name).read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        assert entry["sha256"][:16] in name
    own = manifest.pop("sha256")
    assert own == hashlib.sha256(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_the_library_reads_the_same_arrays(tmp_path):
    path = save_model(MODELS["selective"], tmp_path)
    (file,) = path.glob("arrays-*")
    ours, theirs = tensors_parsed(file.read_bytes()), safetensors.numpy.load_file(file)
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        same(ours[name], array, name)


def test_without_raw_rows_no_cell_of_a_row_is_written(tmp_path):
    kept, bare = (
        save_model(MODELS["method"], tmp_path / "a"),
        save_model(MODELS["method"], tmp_path / "b", raw_rows=False),
    )
    assert b"2026-02-03T04:05:06" in next(kept.glob("rows-*")).read_bytes()
    assert not list(bare.glob("rows-*"))
    for file in bare.iterdir():
        assert b"2026-02-03" not in file.read_bytes()
    loaded = load_model(bare)
    assert loaded.records is None
    # Nor a hash, by which a row could be tested.
    same(loaded, dataclasses.replace(MODELS["method"], records=None, seen=None))


def test_loading_takes_milliseconds_and_needs_neither_qiskit_nor_scikit_learn(tmp_path):
    path = save_model(MODELS["selective"], tmp_path)
    code = (
        "import sys, time\n"
        "from qmedoid.storage.loading import load_model\n"
        "start = time.process_time()\n"
        "load_model(sys.argv[1])\n"
        "print(time.process_time() - start)\n"
        "print([name for name in ('qiskit', 'sklearn', 'pyarrow', 'pandas', 'scipy') if name in sys.modules])\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, path], env=env, capture_output=True, text=True, check=True)
    seconds, imported = done.stdout.splitlines()
    assert float(seconds) < 0.25
    assert imported == "[]"


def test_without_qiskit_circuits_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("qiskit", "qmedoid.circuits"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "qiskit", None)
    with pytest.raises(MissingExtraError, match="needs Qiskit, which is not installed"):
        save_model(MODELS["selective"], tmp_path / "model", circuits=True)
    assert not (tmp_path / "model").exists()
    save_model(MODELS["selective"], tmp_path / "model")


def test_circuits_for_other_tools_are_never_read_but_their_hashes_are(tmp_path):
    pytest.importorskip("qiskit", reason="needs the extra quantum")
    path = save_model(MODELS["selective"], tmp_path, circuits=True)
    same(load_model(path), MODELS["selective"])
    (file,) = path.glob("circuit-*.qpy")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(ModelError, match=rf"{file.name}: its contents do not match"):
        load_model(path)


# --- what cannot be stored ----------------------------------------------------------------------------------------


class OtherReadout(StringReadout):
    pass


def unstorable():
    rng = np.random.default_rng(0)
    plain_model = geometric(rng, refine_below=1.0)
    measured = dataclasses.replace(plain_model, method=MeasuredNearest(plain_model.method, None))
    run = dataclasses.replace(plain_model, variational=MeasuredVariational(plain_model.variational, None))
    trained = circuit(rng, n_inputs=12)
    other = dataclasses.replace(trained, network=dataclasses.replace(trained.network, readout=OtherReadout(2, 2)))
    short = dataclasses.replace(plain_model, method=fusion_model(rng, n_columns=3))
    broken = fusion_model(rng, multipliers=np.array([1.0, np.nan]))
    return [
        ("swap test", table_model((measured,)), "SWAP test of this model is run by a backend"),
        ("backend", table_model((run,)), "circuit of this model is run by a backend"),
        ("read-out", table_model((other,)), "OtherReadout cannot be stored"),
        ("width", table_model((short,)), "'0.center' must be float64 of shape"),
        (
            "nan",
            table_model((dataclasses.replace(plain_model, method=broken),)),
            "'0.multipliers' holds numbers that are",
        ),
        ("object", table_model((plain_model,), parameters={"a": object()}), "is a object, which a bundle cannot hold"),
        ("key", table_model((plain_model,), parameters={1: 2}), "keys that are not texts"),
        ("reserved", table_model((plain_model,), metrics={"a": {"$float": 1}}), "reserved"),
        ("surrogate", table_model((plain_model,), classes=("a", "\ud800")), "not Unicode"),
        ("twice", table_model((plain_model,), classes=(1, 1.0)), "classes has a label twice"),
        ("mixture", table_model((plain_model,), classes=(0, True)), "are a mixture"),
        ("cut", table_model((plain_model,), cut=np.inf), "cut must be a finite number"),
        ("classes", table_model((plain_model,), n_classes=3), "lacks a class"),
        ("rows", table_model((plain_model,), records=(({"a": 1},),)), "must hold 2 rows"),
        ("uneven", table_model((plain_model,), records=(({"a": 1}, {"b": 1}),)), "same columns"),
        ("deep", table_model((plain_model,), parameters={"a": nested(40)}), "nested deeper"),
    ]


def nested(depth):
    return [] if depth == 0 else [nested(depth - 1)]


@pytest.mark.parametrize(("model", "reason"), [pytest.param(*case[1:], id=case[0]) for case in unstorable()])
def test_what_could_not_be_loaded_is_not_saved(tmp_path, model, reason):
    save_model(MODELS["method"], tmp_path)
    before = contents(tmp_path)
    with pytest.raises(ModelError, match=reason) as caught:
        save_model(model, tmp_path)
    assert "\n" not in str(caught.value)
    assert contents(tmp_path) == before


def test_a_model_of_a_file_is_not_a_folder(tmp_path):
    path = save_model(MODELS["method"], tmp_path / "model")
    for wrong, reason in {
        path / MANIFEST: "is not a folder: pass the folder that holds",
        path / "nothing": "nothing is there",
        tmp_path: f"holds no {MANIFEST}, so it is not a saved model",
    }.items():
        with pytest.raises(ModelError, match=reason):
            load_model(wrong)


def test_a_new_field_takes_a_new_format():
    """Fields that format 4 stores; another one is lost by it, so it takes format 5 and a reader for all."""
    stored = {
        TableModel: "contract encodings classes models cut probabilistic records parameters metrics priors prior_shift "
        "operating seen novelty",
        SeenRows: "key hashes is_sample",
        Novelty: "n_rows limited lowest highest low high binned offsets edges counts far",
        PriorShift: "priors log_ratios",
        OperatingSummary: "rule asked log_odds counts prevalence draws_per_row",
        Contract: "columns target left_out",
        Column: "name kind missing levels is_open spelling",
        Numbers: "fill indicator",
        Dates: "parts fills indicator",
        Levels: "levels values outputs",
        HybridModel: "fusion calibration deltas variational refine_below residual",
        NearestModel: "input_scaling configuration weights signed feature_scaling medoids medoid_classes medoid_rows "
        "multipliers alpha use_angular angle",
        EvidenceModel: "rank_scaling linear_scaling medoids medoid_classes medoid_rows column_weights groups terms "
        "intercepts n_classes neighbors",
        Neighbors: "records classes rows amounts n_nearest length by_rank",
        Terms: "group medoid channel length center weights",
        RankScaling: "offsets values scores",
        RareEventModel: "geometry medoid_rows center scale weights intercept circuit_features rare_class",
        RareGeometry: "scaling rare common hard metrics metric_names counts length floor",
        SignedLog: "outer inner",
        Scaling: "center scale",
        Calibration: "slope biases knots bends",
        DeltaSettings: "kind fused",
        VariationalModel: "angle_map network theta",
        AngleMap: "center scale clip span",
        Network: "ansatz readout scales learn_scales precision",
        Ansatz: "n_qubits n_inputs n_reps reupload final_rz",
    }
    for kind, names in stored.items():
        assert " ".join(field.name for field in dataclasses.fields(kind)) == names, kind
    assert Group._fields == ("columns", "weights", "by_rank")
    assert Far._fields == ("distance", "beyond", "n_rows")
    assert Counts._fields == ("tp", "fp", "fn", "tn")
    assert CHANNELS == ("square", "distance", "near")
    assert READOUT_KINDS == ("strings", "parity", "direct")
    assert FORMAT == 5
