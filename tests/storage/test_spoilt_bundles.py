"""Damaged and forged bundles are refused with one clear line, fast, in little memory, and nothing of them is run."""

import json
import os
import resource
import time
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import spoilt_bundles as spoilt
from sample_models import all_models, random_columns, same

from qmedoid.exceptions import ModelError
from qmedoid.storage._files import MANIFEST
from qmedoid.storage.bundle import save_model
from qmedoid.storage.loading import load_model

MODELS = all_models()
COLUMNS = random_columns(20)
# What tells a reader nothing of decisions may be changed by whoever can sign.
FREE = ("parameters", "metrics")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return spoilt.Bundle(save_model(MODELS["selective"], tmp_path_factory.mktemp("bundle")))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return spoilt.Bundle(save_model(MODELS["several classes"], tmp_path_factory.mktemp("other")))


class Checker:
    """Loads bundles from one folder, in which only what differs is written anew."""

    def __init__(self, path):
        self.path, self.there, self.count, self.loaded = path, {}, 0, []

    def write(self, files):
        # Removed first, because some file systems wait for the disk when a file is written over.
        for name, content in self.there.items():
            if files.get(name) is not content:
                (self.path / name).unlink()
        for name, content in files.items():
            if self.there.get(name) is not content:
                (self.path / name).write_bytes(content)
        self.there = dict(files)

    def load(self, what, files):
        """The model, or None where the bundle is refused as it should be."""
        self.write(files)
        self.count += 1
        start = time.process_time()
        try:
            model = load_model(self.path)
        except ModelError as error:
            message = str(error)
            assert "\n" not in message, what
            assert len(message) < 500 + len(str(self.path)), what
            assert repr(str(self.path)) in message, what
            model = None
        assert time.process_time() - start < 1, what
        return model


@pytest.fixture
def checker(tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield Checker(tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kilobytes


def test_damage_is_always_found(bundle, other, checker):
    """1,400 flips and more than 150 truncations and swaps: a hash is wrong, whatever it was."""
    damaged = chain(spoilt.flipped(bundle, 250), spoilt.cut(bundle, 30), spoilt.swapped(bundle, other))
    for what, files in damaged:
        assert checker.load(what, files) is None, what
    assert checker.count > 1400
    same(checker.load("nothing", bundle.files), MODELS["selective"])


def test_forged_headers_and_manifests_are_always_refused(bundle, checker, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    for what, files in chain(spoilt.forged_headers(bundle), spoilt.forged_manifests(bundle)):
        assert checker.load(what, files) is None, what
    assert checker.count > 120
    assert not Path("exploded").exists()  # what a pickle would have made
    same(checker.load("nothing", bundle.files), MODELS["selective"])


def test_forged_values_are_refused_or_make_a_model_that_decides(bundle, checker):
    """With right hashes, what is loaded is at least whole: it decides, and free texts change no decision."""
    expected = MODELS["selective"].decide(COLUMNS)
    refused = 0
    for what, files in chain(spoilt.forged_json(bundle), spoilt.forged_arrays(bundle)):
        model = checker.load(what, files)
        if model is None:
            refused += 1
            continue
        with np.errstate(all="ignore"):
            decided = model.decide(COLUMNS)
        assert decided.codes.min() >= 0, what
        assert decided.codes.max() < len(model.classes), what
        assert len(model.output_names) == len(COLUMNS), what
        if what.startswith(tuple(f"manifest['{name}'" for name in FREE)):
            same(decided, expected, what)
    assert refused > 1200


@pytest.mark.parametrize(
    ("name", "position", "value", "reason"),
    [
        ("0.members", 0, 12, "'0.members' must hold numbers from 0 to 11"),
        ("0.members", 0, -1, "'0.members' must hold numbers from 0 to 11"),
        ("0.offsets", 1, 0, "'0.offsets' must ascend from 0"),
        ("0.offsets", 0, 1, "'0.offsets' must ascend from 0"),
        ("0.scale", 3, 0.0, "'0.scale' holds a 0"),
        ("0.feature_scale", 0, 0.0, "'0.feature_scale' holds a 0"),
        ("0.angle_scale", 0, 0.0, "'0.angle_scale' holds a 0"),
        ("0.medoid_classes", 0, 2, "'0.medoid_classes' must hold numbers from 0 to 1"),
        ("0.medoid_classes", 0, 1, "'0.medoid_classes' lacks a class"),
        ("0.medoid_rows", 0, -1, "'0.medoid_rows' must hold numbers from 0"),
        ("0.medoids", 0, np.nan, "'0.medoids' holds numbers that are not finite"),
        ("0.theta", 0, np.inf, "'0.theta' holds numbers that are not finite"),
        ("0.multipliers", 0, 0.0, "'0.multipliers' must be above 0"),
        ("novelty.limited", 0, 12, "'novelty.limited' must hold numbers from 0 to 11"),
        ("novelty.limited", 0, 1, "'novelty.limited' must ascend"),
        ("novelty.binned", 1, 0, "'novelty.binned' must ascend"),
        ("novelty.low", 0, 1e9, "must ascend in every column"),
        ("novelty.high", 0, 1e308, r"'novelty.high' holds numbers beyond ±1e\+152"),
        ("novelty.highest", 0, np.nan, "'novelty.highest' holds numbers that are not finite"),
        ("novelty.edges", 1, -1e9, "'novelty.edges' must ascend within each column"),
        ("novelty.offsets", 1, 0, "'novelty.offsets' must ascend from 0"),
        ("novelty.counts", 0, 0, "'novelty.counts' must add up to the 300 rows in every column"),
        ("novelty.counts", 0, 301, "'novelty.counts' must hold numbers from 0 to 300"),
        ("encoding.offsets", 1, 5, "levels that do not ascend|'encoding.offsets' must ascend|not UTF-8"),
        ("encoding.texts", 0, 255, "not UTF-8"),
        ("encoding.texts", 0, ord("M"), "levels that do not ascend"),
        ("encoding.fills", 1, np.inf, "'encoding.fills' holds numbers that are not finite"),
    ],
)
def test_what_is_wrong_with_an_array_is_named(bundle, tmp_path, name, position, value, reason):
    arrays = bundle.arrays()
    arrays[name] = arrays[name].copy()
    arrays[name].flat[position] = value
    with pytest.raises(ModelError, match=rf"arrays-[0-9a-f]{{16}}\.safetensors: .*({reason})"):
        load_written(tmp_path, bundle.with_arrays(arrays))


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    return spoilt.Bundle(save_model(MODELS["evidence and circuit"], tmp_path_factory.mktemp("evidence")))


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    return spoilt.Bundle(save_model(MODELS["rare and circuit"], tmp_path_factory.mktemp("rare")))


@pytest.mark.parametrize("stage", ["evidence", "rare"])
def test_forged_arrays_of_a_stage_are_refused_or_make_a_model_that_decides(stage, request, checker):
    refused = 0
    for what, files in spoilt.forged_arrays(request.getfixturevalue(stage)):
        model = checker.load(what, files)
        if model is None:
            refused += 1
            continue
        with np.errstate(all="ignore"):
            assert set(model.decide(COLUMNS).codes.tolist()) <= {0, 1}, what
    assert refused > 150


@pytest.mark.parametrize(
    ("name", "position", "value", "reason"),
    [
        ("0.hard", slice(None), 1, "must have two rows or more, not all hard"),
        ("0.hard", 0, 2, "'0.hard' must hold numbers from 0 to 1"),
        ("0.metrics", 0, -1.0, "'0.metrics' must hold numbers from 0 up"),
        ("0.metrics", slice(0, 12), 0.0, "'0.metrics' must hold numbers from 0 up, not all of them 0"),
        ("0.inner_scale", 0, 0.0, "'0.inner_scale' holds a 0"),
        ("0.feature_scale", 0, 0.0, "'0.feature_scale' holds a 0"),
        ("0.circuit_features", 0, 52, "'0.circuit_features' must hold numbers from 0 to 51"),
        ("0.rare", 0, np.inf, "'0.rare' holds numbers that are not finite"),
        ("0.common", 0, 1e300, r"'0.common' holds numbers beyond ±1e\+150"),
        ("0.metrics", 0, 1e300, "'0.metrics' holds numbers beyond ±1000"),
        ("0.feature_weights", 0, -1e300, r"'0.feature_weights' holds numbers beyond ±1e\+100"),
    ],
)
def test_what_is_wrong_with_an_array_of_a_rare_event_model_is_named(rare, tmp_path, name, position, value, reason):
    arrays = rare.arrays()
    arrays[name] = arrays[name].copy()
    arrays[name].reshape(-1)[position] = value
    with pytest.raises(ModelError, match=rf"arrays-[0-9a-f]{{16}}\.safetensors: .*{reason}"):
        load_written(tmp_path, rare.with_arrays(arrays))


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [("counts", [], "counts must hold"), ("counts", [3, 1], "that ascend"), ("counts", [1, 17], "from 1 to 16"),
     ("counts", [True], "counts must hold"), ("length", 0, "length must be above 0"), ("floor", -1.0, "floor must be"),
     ("rare_class", 2, "rare_class must be a whole number from 0 to 1"), ("metric_names", ["a"], "'0.metrics' must be"),
     ("compressed", False, "unknown array"), ("intercept", None, "intercept must be a finite number")],
)  # fmt: skip
def test_what_is_wrong_with_the_fields_of_a_rare_event_model_is_named(rare, tmp_path, field, value, reason):
    manifest = spoilt.replaced(rare.manifest, ("models", 0, "first", field), value)
    with pytest.raises(ModelError, match=reason):
        load_written(tmp_path, rare.with_manifest(manifest))


@pytest.mark.parametrize(
    ("name", "position", "value", "reason"),
    [
        ("0.rank_offsets", 1, 0, "'0.rank_offsets' must ascend from 0"),
        ("0.rank_values", -1, -1e9, "'0.rank_values' must ascend within each column"),
        ("0.rank_scores", -1, -1e9, "'0.rank_scores' must ascend within each column"),
        ("0.scale", 3, 0.0, "'0.scale' holds a 0"),
        ("0.members", 0, 12, "'0.members' must hold numbers from 0 to 11"),
        ("0.offsets", 1, 0, "'0.offsets' must ascend from 0"),
        ("0.weights", 0, 0.0, "'0.weights' must hold numbers above 0"),
        ("0.knots", 0, 1e9, "'0.knots' must ascend"),
        ("0.bends", -1, -1e9, "'0.bends' turns the order of the scores"),
        ("0.by_rank", 0, 2, "'0.by_rank' must hold numbers from 0 to 1"),
        ("0.column_weights", 0, -1.0, "'0.column_weights' holds numbers below 0"),
        ("0.medoid_classes", slice(2, 4), 0, "'0.medoid_classes' lacks a class"),
        ("0.term_group", 0, 4, "'0.term_group' must hold numbers from 0 to 3"),
        ("0.term_medoid", 0, 4, "'0.term_medoid' must hold numbers from 0 to 3"),
        ("0.term_channel", 0, 3, "'0.term_channel' must hold numbers from 0 to 2"),
        ("0.term_length", 0, 0.0, "'0.term_length' must hold numbers above 0"),
        ("0.term_length", 0, 1e-310, "'0.term_length' must hold numbers above 0"),
        ("0.term_center", 0, 1e300, r"'0.term_center' holds numbers beyond ±1e\+100"),
        ("0.column_weights", 0, 1e308, r"'0.column_weights' holds numbers beyond ±1e\+100"),
        ("0.term_weights", 0, np.nan, "'0.term_weights' holds numbers that are not finite"),
    ],
)
def test_what_is_wrong_with_an_array_of_evidence_is_named(evidence, tmp_path, name, position, value, reason):
    arrays = evidence.arrays()
    arrays[name] = arrays[name].copy()
    arrays[name].reshape(-1)[position] = value
    with pytest.raises(ModelError, match=rf"arrays-[0-9a-f]{{16}}\.safetensors: .*{reason}"):
        load_written(tmp_path, evidence.with_arrays(arrays))


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("format",), 6, r"has format 6, and this version of qmedoid reads format 5. .* update with: pip install"),
        (("models", 0, "first", "alpha"), 1.5, "manifest.json|alpha must be from 0 to 1, and is 1.5"),
        (("models", 0, "slope"), 0, "slope must be above 0"),
        (("models", 0, "slope"), -1.0, "slope must be above 0"),
        (("models", 0, "deltas", "kind"), "nearest ", "kind must be one of"),
        (("models", 1, "refine_below"), {"$float": "inf"}, "leaves all records to a circuit, and there is none"),
        (("models", 0, "refine_below"), {"$float": "nan"}, "refine_below must be a number, and is nan"),
        (("models", 0, "first", "name"), "nearest", r"first.name must be one of \['evidence', 'nearest', 'rare'\]"),
        (("models", 0, "first"), None, "first.name must be one of"),
        (("models", 0, "first", "name"), "evidence", "has the unknown field 'signed'"),
        (("models",), [], "models is empty"),
        (("novelty", "rows"), 0, "novelty.rows must be a whole number from 1"),
        (("novelty", "far", "distance"), 0.0, "novelty.far.distance must be from 1e-100"),
        (("novelty", "far", "distance"), {"$float": "nan"}, "novelty.far.distance must be a finite number"),
        (("novelty", "far", "beyond"), 281, "novelty.far.beyond must be a whole number from 0 to 280"),
        (("novelty",), None, "unknown array 'novelty"),
        (("priors",), [0.5], "priors must hold a number above 0 and below 1 for each of the 2 classes"),
        (("priors",), [0.5, {"$float": "nan"}], "priors must hold a number above 0"),
        (("priors",), [0.5, 0.6], "priors must add up to 1, and adds up to 1.1"),
        (("priors",), None, "expected_priors must stand beside priors"),
        (("expected_priors",), [1.0, 0.0], "expected_priors must hold a number above 0 and below 1"),
        (("expected_priors",), [0.5, 0.5], "operating.prevalence and the last of expected_priors are not the same"),
        (("expected_priors",), None, "operating.prevalence and the last of expected_priors are not the same"),
        (("operating", "rule"), "f3", "operating.rule must be one of"),
        (("operating", "rule"), "likeliest", "rule is 'likeliest', and cut is"),
        (("operating", "rule"), "cost", "operating.asked must be a finite number"),
        (("operating", "asked"), 0.5, "operating.asked is 0.5, and 'macro_f1' asks for no number"),
        (("operating", "log_odds"), 0.5, "operating.log_odds is 0.5, and cut is"),
        (("operating", "counts"), [1, 2, 3], "operating.counts must be four whole numbers"),
        (("operating", "counts"), [1, 2, 3, -1], "operating.counts must be four whole numbers"),
        (("operating", "counts"), [0, 0, 0, 0], "operating.counts must be four whole numbers"),
        (("operating", "counts"), [2**53, 0, 0, 0], "operating.counts must be four whole numbers"),
        (("operating", "prevalence"), 0.2, "operating.prevalence and the last"),
        (("probabilistic",), False, "priors belong to probabilities"),
        (("cut",), {"$float": "inf"}, "cut must be a finite number"),
        (("classes",), ["a"], "at least 2 labels"),
        (("classes",), ["a", "a"], "has a label twice"),
        (("classes",), ["a", None], "must be texts, numbers or truth values"),
        (("contract", "columns", 0, "name"), "paid", "has a name twice"),
        (("contract", "columns", 0, "kind"), "text", "kind must be one of"),
        (("contract", "columns", 0, "kind"), "date", "is of type 'numbers', and the column is a date"),
        (("contract", "columns", 0, "levels"), ["a"], "has levels, and is a number"),
        (("contract", "columns", 2, "is_open"), True, "is open, and is a boolean"),
        (("contract", "left_out"), {"a": 1}, "must give a text"),
        (("encodings",), [], "one entry for each of the 6 columns"),
        (("encodings", 3, "parts"), ["days", "days"], "each once"),
        (("encodings", 3, "parts"), ["year"], "must be some of"),
        (("encodings", 4, "count"), 2**40, "must be a whole number"),
        (("encodings", 4, "outputs"), [], "outputs is empty"),
        (("files", "rows", "bytes"), 2**28, "more than 268435456 bytes"),
        (("files", "arrays", "name"), "../arrays-0123456789abcdef.safetensors", "not the name of its contents"),
        (("files", "other"), {}, "lacks 'name'"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_named(bundle, tmp_path, path, value, reason):
    with pytest.raises(ModelError, match=reason):
        load_written(tmp_path, bundle.with_manifest(spoilt.replaced(bundle.manifest, path, value)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("contract", "columns", 0, "is_open"), True),
        (("contract", "columns", 3, "is_open"), True),
        (("contract", "columns", 4, "levels"), ["L", "M", "S\x00", "no encoding knows", "ü", "日本"]),
    ],
)
def test_columns_may_be_open_and_know_more_levels_than_their_encoding(bundle, tmp_path, path, value):
    loaded = load_written(tmp_path, bundle.with_manifest(spoilt.replaced(bundle.manifest, path, value)))
    column = loaded.contract.columns[path[2]]
    assert (list(column.levels) if path[3] == "levels" else column.is_open) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [("n_qubits", 0), ("n_qubits", 13), ("n_inputs", 2), ("n_reps", 0), ("n_reps", 3), ("n_reps", 2**30), ("clip", 0),
     ("n_classes", 3), ("readout", "parity "), ("readout", "direct"), ("precision", "float16"), ("span", 0),
     ("clip", -1), ("learn_scales", False), ("final_rz", True), ("reupload", 1)],
)  # fmt: skip
def test_circuits_that_do_not_fit_their_weights_are_refused(bundle, tmp_path, field, value):
    circuits = json.loads(bundle.content("circuits"))
    circuits[0][field] = value
    with pytest.raises(ModelError, match=r"(circuits|arrays)-[0-9a-f]{16}\.(json|safetensors): "):
        load_written(tmp_path, bundle.with_content("circuits", json.dumps(circuits).encode()))


def load_written(path, files):
    checker = Checker(path)
    checker.write(files)
    return load_model(path)


@pytest.mark.parametrize("role", ["manifest", "arrays", "card"])
def test_links_pipes_and_folders_are_not_read(bundle, tmp_path, role):
    name = MANIFEST if role == "manifest" else bundle.name(role)
    path, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    path.mkdir()
    Checker(path).write(bundle.files)
    elsewhere.write_bytes(bundle.files[name])
    file = path / name
    for make, reason in {
        (lambda: file.symlink_to(elsewhere)): "it is a link, and links are not followed",
        (lambda: file.symlink_to(name)): "it is a link, and links are not followed",
        (lambda: os.mkfifo(file)): "it is not a regular file",
        (lambda: file.mkdir()): "it is not a regular file|Is a directory",
    }.items():
        file.unlink()
        make()
        start = time.perf_counter()
        with pytest.raises(ModelError, match=rf"{name}: .*({reason})"):
            load_model(path)
        assert time.perf_counter() - start < 5  # a pipe would keep a reader waiting for ever


@pytest.mark.parametrize("role", ["manifest", "arrays"])
def test_a_huge_file_is_not_read(bundle, tmp_path, role):
    Checker(tmp_path).write(bundle.files)
    with (tmp_path / (MANIFEST if role == "manifest" else bundle.name(role))).open("r+b") as sparse:
        sparse.truncate(2**40)
    start = time.process_time()
    with pytest.raises(ModelError, match="it has 1099511627776 bytes, and "):
        load_model(tmp_path)
    assert time.process_time() - start < 0.5
