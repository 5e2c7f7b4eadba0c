"""A loaded model is the saved one, bit for bit, and its file is a plain zip that other tools read."""

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from typing import ClassVar, get_origin, get_type_hints

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_models import all_models, circuit, fusion_model, geometric, one_part, random_columns, same, table_model

from qmedoid.exceptions import MissingExtraError, ModelError
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.geometry.scaling import RankScaling, Scaling, SignedLog
from qmedoid.methods.comparisons.part import ComparisonsPart
from qmedoid.methods.evidence.part import CHANNELS, EvidencePart, Group, Neighbors, Terms
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.methods.neighbors.part import NeighborsPart, RowCells
from qmedoid.methods.part import Backends, Calibration
from qmedoid.methods.rare.geometry import RareGeometry
from qmedoid.methods.rare.part import RarePart
from qmedoid.methods.variational.ansatz import AngleMap, Ansatz
from qmedoid.methods.variational.model import Network, VariationalModel
from qmedoid.methods.variational.readout import READOUTS, StringReadout
from qmedoid.model.contract import Column, Contract, Dates, Levels, Numbers
from qmedoid.model.decision import Decision, PriorShift
from qmedoid.model.model import Model
from qmedoid.model.novelty import Far, Novelty
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.model.refinement import CircuitInputs, Refinement
from qmedoid.model.storage.forms import stored_fields
from qmedoid.model.storage.model_file import load_file, load_model, save_model
from qmedoid.model.storage.strict import ARRAYS, CARD, FORMAT, MANIFEST
from qmedoid.model.training_summary import HeldOutCurve, SeenRows, TrainingSummary
from qmedoid.saved import SavedModel

MODELS = all_models()


def entries_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("name", MODELS)
def test_loaded_model_is_the_saved_one_and_decides_alike(tmp_path, name):
    model = MODELS[name]
    assert save_model(model, tmp_path / "m.qmedoid") == tmp_path / "m.qmedoid"
    loaded = load_model(str(tmp_path / "m.qmedoid"))
    same(loaded, model)
    columns = random_columns()
    for a, b in zip(loaded.decide(columns), model.decide(columns), strict=True):
        same(a, b, "decisions")
    assert (loaded.policy, loaded.layout.names, loaded.layout.used) == (
        model.policy,
        model.layout.names,
        model.layout.used,
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
        geometric(rng, n_classes=n_classes, per_class=per_class, refine_below=below, circuit_settings=trained),
        n_classes=n_classes,
        seed=seed,
    )
    path = tmp_path_factory.mktemp("any") / "any name at all"
    save_model(model, path)
    same(load_model(path), model)


def test_same_model_gives_the_same_bytes_and_a_loaded_one_too(tmp_path):
    files = [save_model(MODELS["selective"], tmp_path / name) for name in ("a", "b")]
    files.append(save_model(load_model(files[0]), tmp_path / "c"))
    assert len({file.read_bytes() for file in files}) == 1


def test_file_is_a_zip_of_stored_entries_with_the_format_in_its_comment(tmp_path):
    path = save_model(MODELS["selective"], tmp_path / "m.qmedoid")
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.namelist() == [MANIFEST, ARRAYS, CARD]
        comment = archive.comment.decode()
        archive.extractall(tmp_path / "extracted")
    assert (tmp_path / "extracted" / CARD).read_text().startswith("# Saved model")
    entries = entries_of(path)
    manifest = json.loads(entries[MANIFEST])
    assert set(manifest["versions"]) == {"qmedoid", "python", "numpy", "pyarrow", "safetensors", "scikit-learn"}
    assert manifest["versions"]["numpy"] == np.__version__
    assert comment == f"qmedoid model, format {FORMAT}"
    assert list(tmp_path.glob("m*")) == [path]


def test_load_file_gives_hash_and_versions(tmp_path):
    path = save_model(MODELS["selective"], tmp_path / "m.qmedoid")
    loaded = load_file(path)
    assert loaded.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert loaded.versions == json.loads(entries_of(path)[MANIFEST])["versions"]


def test_arrays_are_those_that_the_library_reads_and_can_be_written_to(tmp_path):
    path = save_model(MODELS["selective"], tmp_path / "m.qmedoid")
    arrays = safetensors.numpy.load(entries_of(path)[ARRAYS])
    medoids = load_model(path).parts[0].medoids
    same(medoids, arrays["parts.0.medoids"], "medoids")
    assert medoids.flags.writeable
    assert medoids.flags.aligned


def test_without_raw_rows_no_cell_of_a_row_is_written(tmp_path):
    kept = save_model(MODELS["nearest"], tmp_path / "a")
    bare = save_model(MODELS["nearest"], tmp_path / "b", raw_rows=False)
    assert b"2026-02-03T04:05:06" in entries_of(kept)[MANIFEST]
    assert b"2026-02-03" not in bare.read_bytes()
    loaded = load_model(bare)
    assert loaded.records is None
    # Nor a hash, by which a row could be tested.
    same(loaded, dataclasses.replace(MODELS["nearest"], records=None, seen=None))


def test_loading_takes_milliseconds_and_needs_neither_qiskit_nor_scikit_learn(tmp_path):
    path = save_model(MODELS["selective"], tmp_path / "m.qmedoid")
    code = (
        "import sys, time\n"
        "from qmedoid.model.storage.model_file import load_model\n"
        "start = time.process_time()\n"
        "load_model(sys.argv[1])\n"
        "print(time.process_time() - start)\n"
        "slow = ('qiskit', 'sklearn', 'pyarrow', 'pandas', 'scipy', 'importlib.metadata')\n"
        "print([name for name in slow if name in sys.modules])\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, path], env=env, capture_output=True, text=True, check=True)
    seconds, imported = done.stdout.splitlines()
    assert float(seconds) < 0.25
    assert imported == "[]"


def test_circuits_without_qiskit_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    import qmedoid.quantum

    monkeypatch.setattr(qmedoid, "quantum", qmedoid.quantum)  # an import below would leave another there
    for name in [name for name in sys.modules if name.startswith(("qiskit", "qmedoid.quantum"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "qiskit", None)
    with pytest.raises(MissingExtraError, match="needs Qiskit and Aer, which are not both installed"):
        SavedModel(MODELS["selective"]).save(tmp_path / "model", circuits=True)
    assert not (tmp_path / "model").exists()
    save_model(MODELS["selective"], tmp_path / "model")


def test_circuits_for_other_tools_are_never_read_but_their_hashes_are(tmp_path):
    qiskit = pytest.importorskip("qiskit", reason="needs the extra quantum")
    path = SavedModel(MODELS["selective"]).save(tmp_path / "m.qmedoid", circuits=True)
    same(load_model(path), MODELS["selective"])
    with zipfile.ZipFile(path) as archive, archive.open("circuit.qpy") as file:
        assert qiskit.qpy.load(file)[0].num_qubits == 2
    content = bytearray(path.read_bytes())
    content[content.index(entries_of(path)["circuit.qpy"]) + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match="an entry, a header or the directory is damaged"):
        load_model(path)


# --- what cannot be stored ----------------------------------------------------------------------------------------


class OtherReadout(StringReadout):
    pass


def unstorable():
    rng = np.random.default_rng(0)
    plain_model = geometric(rng, refine_below=1.0)
    trained = circuit(rng, n_inputs=12)
    other = dataclasses.replace(trained, network=dataclasses.replace(trained.network, readout=OtherReadout(2, 2)))
    short = plain_model | {"parts": (fusion_model(rng, n_columns=3),)}
    broken = fusion_model(rng, multipliers=np.array([1.0, np.nan]))
    return [
        (
            "swap test",
            table_model(plain_model, backends=Backends(swap_test=compact_swap_test)),
            "SWAP test of this model is run by a backend",
        ),
        (
            "backend",
            table_model(plain_model, backends=Backends(expectations=lambda *_: None)),
            "circuit of this model is run by a backend",
        ),
        ("read-out", table_model(one_part(other)), "The OtherReadout at .* cannot be stored"),
        ("width", table_model(short), "must hold numbers below|must hold float64 of shape"),
        (
            "nan",
            table_model(plain_model | {"parts": (broken,)}),
            "'parts.0.multipliers' must hold finite numbers, not nan",
        ),
        (
            "object",
            table_model(plain_model, parameters={"a": object()}),
            "is a object, which a model file cannot hold",
        ),
        ("key", table_model(plain_model, parameters={1: 2}), "keys that are not texts"),
        ("reserved", table_model(plain_model, metrics={"a": {"$float": 1}}), "reserved"),
        ("surrogate", table_model(plain_model, classes=("a", "\ud800")), "not Unicode"),
        ("twice", table_model(plain_model, classes=(1, 1.0)), "classes has a label twice"),
        ("mixture", table_model(plain_model, classes=(0, True)), "all texts, all numbers or all truth values"),
        ("one class", table_model(plain_model, classes=("a",)), "must hold numbers below 1"),
        ("cut", table_model(plain_model, cut=np.inf), "decision.cut must be a finite number"),
        ("classes", table_model(plain_model, n_classes=3), "must hold every number below 3, and lacks one"),
        ("rows", table_model(plain_model, records=({"a": 1},)), "records must be 2 rows"),
        (
            "uneven",
            table_model(plain_model, records=({"a": 1}, {"b": 1})),
            "rows of the same columns",
        ),
        ("deep", table_model(plain_model, parameters={"a": nested(40)}), "nested deeper"),
    ]


def nested(depth):
    return [] if depth == 0 else [nested(depth - 1)]


@pytest.mark.parametrize(("model", "reason"), [pytest.param(*case[1:], id=case[0]) for case in unstorable()])
def test_model_that_could_not_be_loaded_is_not_saved(tmp_path, model, reason):
    path = save_model(MODELS["nearest"], tmp_path / "m.qmedoid")
    before = path.read_bytes()
    with pytest.raises(ModelError, match=reason) as caught:
        save_model(model, path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_model_that_is_too_large_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr("qmedoid.model.storage.model_file.LARGEST_FILE", 1000)
    with pytest.raises(ModelError, match=r"cannot be stored: it has \d+ bytes, and at most 1000 are read"):
        save_model(MODELS["nearest"], tmp_path / "m.qmedoid")
    assert not list(tmp_path.iterdir())


def test_path_without_a_model_is_refused_in_one_line(tmp_path):
    path = save_model(MODELS["nearest"], tmp_path / "m.qmedoid")
    for wrong, reason in {
        path / "m": "nothing is there",
        tmp_path / "nothing": "nothing is there",
        tmp_path: "is a folder, and a saved model is a file, such as heart.qmedoid: pass that",
    }.items():
        with pytest.raises(ModelError, match=reason) as caught:
            load_model(wrong)
        assert "\n" not in str(caught.value)


DERIVED = {
    "backends", "n_classes", "medoid_part", "medoids", "n_neighbors", "circuit", "policy", "source", "columns",
    "layout", "slope",
}  # fmt: skip


def test_format_5_stores_these_fields():
    """Another field of a model would be lost by it, and takes the next format."""
    stored = {
        Model: "contract encodings decision method parts weights biases calibration refinement records "
        "parameters metrics seen novelty training importances parent",
        Decision: "classes cut probabilistic priors shift operating biases",
        TrainingSummary: "n_rows missing curve rows_per_day",
        HeldOutCurve: "thresholds true_positives false_positives n_positive n_negative",
        SeenRows: "key hashes is_sample",
        Novelty: "n_rows limited lowest highest low high binned offsets edges counts far",
        PriorShift: "priors log_ratios",
        OperatingSummary: "rule asked log_odds counts prevalence draws_per_row",
        Contract: "columns target left_out",
        Column: "name kind missing levels is_open spelling missing_values",
        Numbers: "fill indicator",
        Dates: "parts fills indicator",
        Levels: "levels values outputs",
        Refinement: "circuit inputs refine_below residual margin_of recalibration",
        NearestPart: "input_scaling configuration weights signed feature_scaling medoids medoid_classes medoid_rows "
        "multipliers alpha use_angular angle",
        EvidencePart: "rank_scaling linear_scaling medoids medoid_classes medoid_rows column_weights groups terms "
        "intercepts n_classes neighbors",
        Neighbors: "records classes rows amounts n_nearest length by_rank",
        ComparisonsPart: "node_columns row_numbers row_classes near far near_values far_values values outputs "
        "intercepts scaling n_classes",
        NeighborsPart: "records row_numbers row_classes votes rank_scaling column_weights length n_nearest cells",
        RowCells: "centers members",
        Terms: "group medoid channel length center weights",
        RankScaling: "offsets values scores",
        RarePart: "geometry medoid_rows center scale weights intercept circuit_features rare_class",
        RareGeometry: "scaling rare common hard metrics metric_names counts length floor",
        SignedLog: "outer inner",
        Scaling: "center scale",
        Calibration: "slope biases knots heights",
        CircuitInputs: "kind fused angular",
        VariationalModel: "angle_map network theta",
        AngleMap: "center scale clip span",
        Network: "ansatz readout scales learn_scales precision",
        Ansatz: "n_qubits n_inputs n_reps reupload final_rz",
        StringReadout: "n_qubits n_classes",
        Group: "columns weights by_rank",
        Far: "distance beyond n_rows",
        Counts: "tp fp fn tn",
    }
    for kind, names in stored.items():
        found = {name for name, hint in get_type_hints(kind).items() if get_origin(hint) is not ClassVar}
        assert found - (DERIVED if kind is Model else set()) == set(names.split()), kind
        assert set(stored_fields(kind)) == found - (DERIVED if kind is Model else set()), kind
    assert CHANNELS == ("square", "distance", "near")
    assert tuple(READOUTS) == ("strings", "parity", "direct")
    assert FORMAT == 6
