"""Damaged and forged model files are refused with one clear line, fast, in little memory, and nothing is run."""

import os
import resource
import time
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import spoilt_files as spoilt
from sample_models import all_models, random_columns, same

from qmedoid.exceptions import ModelError
from qmedoid.storage.archive import CARD
from qmedoid.storage.model_file import load_model, save_model

MODELS = all_models()
COLUMNS = random_columns(20)
# What a reader may change without changing decisions.
FREE = ("parameters", "metrics", "versions", "training", "parent")


def spoilt_file(factory, name):
    return spoilt.Spoilt(save_model(MODELS[name], factory.mktemp("model") / "m.qmedoid"))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return spoilt_file(tmp_path_factory, "selective")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return spoilt_file(tmp_path_factory, "several classes")


class Checker:
    """Loads files from one path."""

    def __init__(self, path):
        self.path, self.count = path, 0

    def load(self, what, content):
        """The model, or None where the file is refused as it should be."""
        # Removed first, because some file systems wait for the disk when a file is written over.
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(content)
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
    yield Checker(tmp_path / "m.qmedoid")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kilobytes


def test_damage_is_always_noticed(file, other, checker):
    """Flips, truncations, bytes lost or added, entries swapped: a hash or a header is wrong, whatever it was."""
    damaged = chain(spoilt.flipped(file, 600), spoilt.cut(file, 200), spoilt.swapped(file, other))
    for what, content in damaged:
        assert checker.load(what, content) is None, what
    assert checker.count > 1800
    same(checker.load("nothing", file.content), MODELS["selective"])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_that_are_packed_otherwise_are_always_refused(file, checker):
    """Compressed, encrypted, zip64, doubled, renamed and hidden entries, and directories that lie."""
    for what, content in spoilt.forged_archives(file):
        assert checker.load(what, content) is None, what
    assert checker.count > 400


def test_forged_headers_and_manifests_are_always_refused(file, checker, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    for what, content in chain(spoilt.forged_headers(file), spoilt.forged_manifests(file)):
        assert checker.load(what, content) is None, what
    assert checker.count > 120
    assert not Path("exploded").exists()  # what a pickle would have made
    same(checker.load("nothing", file.content), MODELS["selective"])


def test_forged_values_are_refused_or_make_a_model_that_decides(file, checker):
    """With right hashes, what is loaded is at least complete: it decides, and free texts change no decision."""
    expected = MODELS["selective"].decide(COLUMNS)
    refused = 0
    for what, content in chain(spoilt.forged_json(file), spoilt.forged_arrays(file)):
        model = checker.load(what, content)
        if model is None:
            refused += 1
            continue
        with np.errstate(all="ignore"):
            decided = model.decide(COLUMNS)
        assert decided.codes.min() >= 0, what
        assert decided.codes.max() < len(model.classes), what
        assert len(model.layout.names) == len(COLUMNS), what
        if what.startswith(tuple(f"manifest['{name}'" for name in FREE)):
            same(decided, expected, what)
    assert refused > 1200


def load_bytes(path, content):
    file = path / "m.qmedoid"
    file.write_bytes(content)
    return load_model(file)


def test_entry_that_is_damaged_is_named(file, tmp_path):
    with pytest.raises(ModelError, match=r"cannot be read: card\.md: its contents do not match its size and SHA-256"):
        load_bytes(tmp_path, file.with_entries({CARD: b"another card"}))
    flipped = file.content.replace(b"# Saved model", b"# saved model")
    with pytest.raises(ModelError, match=r"cannot be read: card\.md: its header is not the one of these contents"):
        load_bytes(tmp_path, flipped)
    with pytest.raises(ModelError, match=r"its end is missing or damaged\. Save it again, or restore the file"):
        load_bytes(tmp_path, file.content[:-1])
    with pytest.raises(ModelError, match="it is not a file that save wrote"):
        load_bytes(tmp_path, b"id,age\n1,2\n")
    with pytest.raises(ModelError, match="it is not a file that save wrote"):
        load_bytes(tmp_path, b"")


def test_file_of_another_format_says_what_to_do(file, tmp_path):
    for number in (2, 17):
        later = file.content.replace(b"model, format 1,", f"model, format {number},".encode())
        with pytest.raises(ModelError, match=rf"has format {number}, and this version .* reads format 1\. .*pip"):
            load_bytes(tmp_path, later)


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
        ("training.missing", 0, -1, "'training.missing' must hold numbers from 0 to 300"),
        ("training.levels", 0, 181, "'training.levels' counts more than the 300 rows in a column"),
        ("training.thresholds", 0, -1e9, "'training.thresholds' must hold from 1 to 2048 numbers that descend"),
        ("training.thresholds", 0, np.inf, "'training.thresholds' holds numbers that are not finite"),
        ("training.true_positives", -1, 0, "'training.true_positives' must not descend, and must end with"),
        ("training.false_positives", 1, 10**6, "'training.false_positives' must hold numbers from 0 to"),
        ("encoding.offsets", 1, 5, "levels that do not ascend|'encoding.offsets' must ascend|not UTF-8"),
        ("encoding.texts", 0, 255, "not UTF-8"),
        ("encoding.texts", 0, ord("M"), "levels that do not ascend"),
        ("encoding.fills", 1, np.inf, "'encoding.fills' holds numbers that are not finite"),
    ],
)
def test_array_error_names_the_array(file, tmp_path, name, position, value, reason):
    arrays = file.arrays()
    arrays[name] = arrays[name].copy()
    arrays[name].flat[position] = value
    with pytest.raises(ModelError, match=reason):
        load_bytes(tmp_path, file.with_arrays(arrays))


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    return spoilt_file(tmp_path_factory, "evidence and circuit")


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    return spoilt_file(tmp_path_factory, "rare and circuit")


@pytest.mark.parametrize("method", ["evidence", "rare"])
def test_forged_arrays_of_a_method_are_refused_or_make_a_model_that_decides(method, request, checker):
    refused = 0
    for what, content in spoilt.forged_arrays(request.getfixturevalue(method)):
        model = checker.load(what, content)
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
def test_array_error_of_a_rare_event_model_names_the_array(rare, tmp_path, name, position, value, reason):
    arrays = rare.arrays()
    arrays[name] = arrays[name].copy()
    arrays[name].reshape(-1)[position] = value
    with pytest.raises(ModelError, match=reason):
        load_bytes(tmp_path, rare.with_arrays(arrays))


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [("counts", [], "counts must hold"), ("counts", [3, 1], "that ascend"), ("counts", [1, 17], "from 1 to 16"),
     ("counts", [True], "counts must hold"), ("length", 0, "length must be above 0"), ("floor", -1.0, "floor must be"),
     ("rare_class", 2, "rare_class must be a whole number from 0 to 1"), ("metric_names", ["a"], "'0.metrics' must be"),
     ("compressed", False, "unknown array"), ("intercept", None, "intercept must be a finite number")],
)  # fmt: skip
def test_field_error_of_a_rare_event_model_names_the_field(rare, tmp_path, field, value, reason):
    manifest = spoilt.replaced(rare.manifest, ("models", 0, "method", field), value)
    with pytest.raises(ModelError, match=reason):
        load_bytes(tmp_path, rare.with_manifest(manifest))


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
        ("0.heights", -1, -1e9, "'0.heights' turns the order of the scores"),
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
def test_array_error_of_an_evidence_model_names_the_array(evidence, tmp_path, name, position, value, reason):
    arrays = evidence.arrays()
    arrays[name] = arrays[name].copy()
    arrays[name].reshape(-1)[position] = value
    with pytest.raises(ModelError, match=reason):
        load_bytes(tmp_path, evidence.with_arrays(arrays))


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("format",), 2, r"manifest\.json: it\.format must be a whole number from 1 to 1, and is 2"),
        (("versions", "numpy"), 2, r"versions\.numpy must be a text"),
        (("versions", "numpy "), "2", "versions has the unknown field"),
        (("models", 0, "method", "alpha"), 1.5, "alpha must be from 0 to 1, and is 1.5"),
        (("models", 0, "slope"), 0, "slope must be above 0"),
        (("models", 0, "slope"), -1.0, "slope must be above 0"),
        (("models", 0, "deltas", "kind"), "nearest ", "kind must be one of"),
        (("models", 1, "refine_below"), {"$float": "inf"}, "leaves all records to a circuit, and there is none"),
        (("models", 0, "refine_below"), {"$float": "nan"}, "refine_below must be a number, and is nan"),
        (("models", 0, "method", "name"), "nearest ", r"method.name must be one of \['evidence', 'nearest', 'rare'\]"),
        (("models", 0, "method"), None, "method.name must be one of"),
        (("models", 0, "method", "name"), "evidence", "has the unknown field 'signed'"),
        (("models",), [], "models is empty"),
        (("novelty", "rows"), 0, "novelty.rows must be a whole number from 1"),
        (("novelty", "far", "distance"), 0.0, "novelty.far.distance must be from 1e-100"),
        (("novelty", "far", "distance"), {"$float": "nan"}, "novelty.far.distance must be a finite number"),
        (("novelty", "far", "beyond"), 281, "novelty.far.beyond must be a whole number from 0 to 280"),
        (("novelty",), None, "unknown array 'novelty"),
        (("priors",), [0.5], "priors must hold a number above 0 and below 1 for each of the 2 classes"),
        (("priors",), [0.5, {"$float": "nan"}], "priors must hold a number above 0"),
        (("priors",), [0.5, 0.6], "priors must add up to 1, and adds up to 1.1"),
        (("priors",), None, "expected_priors needs priors"),
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
        (("entries", "rows.json", "bytes"), 2**28, r"rows\.json: its contents do not match its size and SHA-256"),
        (("entries", "rows.json", "bytes"), 2**28 + 1, "must be a whole number from 0 to 268435456"),
        (("entries", "other"), {}, "has the unknown field 'other'"),
        (("training", "rows"), 0, "training.rows must be a whole number from 1"),
        (("training", "rows"), 299, "'training.missing' must hold numbers from 0 to 299"),
        (("training", "curve"), None, "unknown array 'training"),
        (("training", "curve", "positive"), 10**6, "'training.true_positives' must not descend, and must end with"),
        (("training", "by_day"), True, "lacks the array 'training.days'"),
        (("training", "by_day"), None, "training.by_day must be true or false"),
        (("training",), None, "unknown array 'training"),
        (("parent",), "0" * 63, "parent must be a SHA-256 in 64 hexadecimal digits"),
        (("parent",), 5, "parent must be a text"),
    ],
)
def test_manifest_error_names_the_field(file, tmp_path, path, value, reason):
    with pytest.raises(ModelError, match=reason):
        load_bytes(tmp_path, file.with_manifest(spoilt.replaced(file.manifest, path, value)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("contract", "columns", 0, "is_open"), True),
        (("contract", "columns", 3, "is_open"), True),
        (("contract", "columns", 4, "levels"), ["L", "M", "S\x00", "no encoding knows", "ü", "日本"]),
    ],
)
def test_columns_may_be_open_and_know_more_levels_than_their_encoding(file, tmp_path, path, value):
    loaded = load_bytes(tmp_path, file.with_manifest(spoilt.replaced(file.manifest, path, value)))
    column = loaded.contract.columns[path[2]]
    assert (list(column.levels) if path[3] == "levels" else column.is_open) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [("n_qubits", 0), ("n_qubits", 13), ("n_inputs", 2), ("n_reps", 0), ("n_reps", 3), ("n_reps", 2**30), ("clip", 0),
     ("n_classes", 3), ("readout", "parity "), ("readout", "direct"), ("precision", "float16"), ("span", 0),
     ("clip", -1), ("learn_scales", False), ("final_rz", True), ("reupload", 1)],
)  # fmt: skip
def test_circuits_that_do_not_fit_their_weights_are_refused(file, tmp_path, field, value):
    manifest = spoilt.replaced(file.manifest, ("models", 0, "circuit", field), value)
    with pytest.raises(ModelError, match=r"models\[0\]\.circuit|array '0\."):
        load_bytes(tmp_path, file.with_manifest(manifest))


@pytest.fixture(scope="module")
def by_day(tmp_path_factory):
    return spoilt_file(tmp_path_factory, "several classes")


@pytest.mark.parametrize(
    ("name", "position", "value", "reason"),
    [
        ("training.days", 1, 0, "'training.days' must hold from 1 to 65536 ascending numbers"),
        ("training.days", -1, 2**41, "'training.days' must hold numbers from 0 to"),
        ("training.day_rows", 0, 0, "'training.day_rows' must hold numbers above 0 that add up to 300 at most"),
        ("training.day_rows", 0, 300, "'training.day_rows' must hold numbers above 0 that add up to 300 at most"),
    ],
)
def test_array_error_of_rows_per_day_names_the_array(by_day, tmp_path, name, position, value, reason):
    arrays = by_day.arrays()
    arrays[name] = arrays[name].copy()
    arrays[name][position] = value
    with pytest.raises(ModelError, match=reason):
        load_bytes(tmp_path, by_day.with_arrays(arrays))


def test_curve_of_more_than_two_classes_is_refused(by_day, tmp_path):
    arrays = by_day.arrays() | {"training.thresholds": np.zeros(1)}
    arrays |= {f"training.{name}_positives": np.ones(1, dtype=np.int64) for name in ("true", "false")}
    forged = spoilt.Spoilt(write(tmp_path / "m.qmedoid", by_day.with_arrays(arrays)))
    manifest = spoilt.replaced(forged.manifest, ("training", "curve"), {"positive": 1, "negative": 1})
    with pytest.raises(ModelError, match=r"training\.curve belongs to two classes"):
        load_bytes(tmp_path, forged.with_manifest(manifest))


def write(path, content):
    path.write_bytes(content)
    return path


def test_links_are_followed_and_pipes_devices_and_folders_are_not_read(file, tmp_path):
    path, elsewhere = tmp_path / "m.qmedoid", write(tmp_path / "elsewhere", file.content)
    path.symlink_to(elsewhere)
    same(load_model(path), MODELS["selective"])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for make, reason in {
        (lambda: path.symlink_to(path.name)): "cannot be opened: .*symbolic links",
        (lambda: path.symlink_to("nowhere")): "nothing is there",
        (lambda: path.symlink_to(pipe)): "it is not a regular file",
        (lambda: path.symlink_to("/dev/zero")): "it is not a regular file",
        (lambda: path.symlink_to(tmp_path)): "is a folder, and a saved model is a file, such as heart.qmedoid: pass",
        (lambda: os.mkfifo(path)): "it is not a regular file",
        (lambda: path.mkdir()): "is a folder, and a saved model is a file",
    }.items():
        path.unlink()
        make()
        start = time.perf_counter()
        with pytest.raises(ModelError, match=reason) as caught:
            load_model(path)
        assert "\n" not in str(caught.value)
        assert time.perf_counter() - start < 5  # a pipe would keep a reader waiting for ever


def test_huge_file_is_not_read(file, tmp_path):
    path = write(tmp_path / "m.qmedoid", file.content)
    with path.open("r+b") as sparse:
        sparse.truncate(2**40)
    start = time.process_time()
    with pytest.raises(ModelError, match="it has 1099511627776 bytes, and at most 268435456 are read"):
        load_model(path)
    assert time.process_time() - start < 0.5


def test_file_that_changes_while_it_is_read_is_refused(file, tmp_path, monkeypatch):
    path = write(tmp_path / "m.qmedoid", file.content)
    real = os.fstat

    def shrunk(handle):
        found = real(handle)
        os.truncate(path, len(file.content) - 1)
        return found

    monkeypatch.setattr(os, "fstat", shrunk)
    with pytest.raises(ModelError, match="it changed while it was read"):
        load_model(path)
