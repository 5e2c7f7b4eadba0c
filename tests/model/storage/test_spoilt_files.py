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
from qmedoid.model.storage.model_file import load_model, save_model

MODELS = all_models()
COLUMNS = random_columns(20)
# What a reader may change without changing decisions.
FREE = (("versions",), *(("model", name) for name in ("parameters", "metrics", "training", "parent")))


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
        assert time.process_time() - start < 3, what
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
    assert checker.count > 50


def test_forged_headers_and_manifests_are_always_refused(file, checker, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    for what, content in chain(spoilt.forged_headers(file), spoilt.forged_manifests(file)):
        assert checker.load(what, content) is None, what
    assert checker.count > 100
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
        assert decided.codes.max() < len(model.decision.classes), what
        assert len(model.layout.names) == len(COLUMNS), what
        if what.startswith(tuple(f"manifest{list(path)}"[:-1] for path in FREE)):
            same(decided, expected, what)
    assert refused > 1200


def load_bytes(path, content):
    file = path / "m.qmedoid"
    file.write_bytes(content)
    return load_model(file)


def test_entry_that_is_damaged_is_named(file, tmp_path):
    with pytest.raises(ModelError, match="an entry, a header or the directory is damaged"):
        load_bytes(tmp_path, file.content.replace(b"# Saved model", b"# saved model"))
    with pytest.raises(ModelError, match=r"its end is missing or damaged\. Save it again, or restore the file"):
        load_bytes(tmp_path, file.content[:-1])
    with pytest.raises(ModelError, match="it is not a file that save wrote"):
        load_bytes(tmp_path, b"id,age\n1,2\n")
    with pytest.raises(ModelError, match="it is not a file that save wrote"):
        load_bytes(tmp_path, b"")


def test_file_of_another_format_says_what_to_do(file, tmp_path):
    for number in (1, 3, 17):
        later = file.content.replace(b"model, format 6", f"model, format {number}".encode())
        with pytest.raises(ModelError, match=rf"has format {number}, and this version .* reads format 6\. .*pip"):
            load_bytes(tmp_path, later)


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
    ("model", "name", "position", "value", "reason"),
    [
        ("file", "parts.0.configuration", 0, 12, "configuration' must hold numbers below 12, not 12"),
        (
            "file",
            "parts.0.configuration.offsets",
            1,
            0,
            "configuration.offsets' must hold numbers of which each rises",
        ),
        ("file", "parts.0.medoid_classes", 0, 1, "medoid_classes' must hold every number below 2, and lacks"),
        ("file", "parts.0.medoids", 0, np.nan, "'parts.0.medoids' must hold finite numbers, not nan"),
        ("file", "parts.0.input_scaling.scale", 3, 0.0, "scale' must hold numbers other than 0"),
        ("file", "novelty.edges", 1, -1e9, "'novelty.edges' must hold numbers of which each rises within its part"),
        ("file", "novelty.low", 0, 1e9, "'novelty.low' must hold numbers at most those of 'lowest', not 1000000000.0"),
        ("file", "novelty.counts", 0, 0, "novelty: counts must add up to the 300 rows in every column"),
        ("file", "training.missing", 0, 301, "'training.missing' must hold numbers at most 300, not 301"),
        ("file", "encodings.4.levels", 0, 255, "'encodings.4.levels' holds a text that is not UTF-8"),
        ("file", "encodings.4.levels", 0, ord("M"), "encodings.4 .*levels must ascend"),
        ("file", "decision.priors", 0, 0.9, "decision: priors must add up to 1, and adds up to 1.1"),
        ("file", "decision.shift.priors", 0, 0.5, r"decision: shift\.priors must add up to 1"),
        ("file", "decision.shift.log_ratios", 0, 0.5, r"decision: shift\.log_ratios must be those from priors"),
        ("rare", "parts.0.geometry.hard", slice(None), 1, "hard must not be true of all common"),
        ("rare", "parts.0.geometry.metrics", slice(0, 12), 0.0, "metrics must hold a number above 0 for each"),
        ("evidence", "calibration.heights", -1, -1e9, "heights turns the order of the scores"),
        ("evidence", "parts.0.rank_scaling.values", -1, -1e9, "values' .* each never falls within its part"),
    ],
)
def test_array_error_names_the_array(request, tmp_path, model, name, position, value, reason):
    model = request.getfixturevalue(model)
    arrays = model.arrays()
    arrays[name] = arrays[name].copy()
    arrays[name].reshape(-1)[position] = value
    with pytest.raises(ModelError, match=reason):
        load_bytes(tmp_path, model.with_arrays(arrays))


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("versions", "numpy"), 2, "versions must give a text or null for each of"),
        (("versions", "numpy "), "2", "versions must give a text or null for each of"),
        (("records",), [{"a": 1}], "records must be 2 rows of the same columns, one for each medoid"),
        (("records", 0), {"a": 1}, "records must be 2 rows of the same columns, one for each medoid"),
        (("records", 1, "amount"), [1], "records must hold texts, numbers, truth values and null"),
        (("parts",), [], "it holds the unknown array 'parts"),
        (("parts", 0, "type"), "nearest ", r"type must be one of \['circuit', 'comparisons', 'evidence', 'nearest', "),
        (("parts", 0, "type"), "evidence", "lacks 'n_classes'|has the unknown field 'signed'"),
        (("refinement",), None, "unknown array 'refinement"),
        (("refinement", "inputs", "kind"), "own", r"circuit must have \(inputs, classes\) \(0, 2\)"),
        (("refinement", "inputs", "angular"), False, r"circuit must have \(inputs, classes\) \(2, 2\)"),
        (("novelty",), None, "unknown array 'novelty"),
        (("training",), None, "unknown array 'training"),
        (("training", "curve"), None, "unknown array 'training"),
        (("decision", "priors"), None, "it holds the unknown array 'decision.priors'"),
        (("decision", "probabilistic"), False, "priors belong to probabilities"),
        (("decision", "classes"), ["a"], r"'decision\.priors' must hold float64 of shape \(1\), not"),
        (("decision", "classes"), ["a", "a"], "has a label twice"),
        (("decision", "classes"), ["a", 1], "all texts, all numbers or all truth values"),
        (("decision", "operating", "rule"), "likeliest", "operating has rule 'likeliest' and log_odds"),
        (("decision", "operating", "rule"), "cost", "operating.asked is None, which is no number that 'cost'"),
        (("decision", "operating", "asked"), 0.5, "operating.asked is 0.5, which is no number that 'macro_f1'"),
        (("decision", "operating", "log_odds"), 0.5, "operating has rule 'macro_f1' and log_odds 0.5"),
        (("decision", "operating", "prevalence"), 0.2, "operating.prevalence and the last of shift.priors"),
        (("decision", "operating", "counts"), dict.fromkeys(("tp", "fp", "fn", "tn"), 0), "must not all be 0"),
        (("contract", "columns", 0, "name"), "paid", "must not have a name twice"),
        (("contract", "columns"), [], "columns must not be empty"),
        (("contract", "columns", 0, "kind"), "date", "encodings must be one for each column"),
        (("contract", "columns", 0, "levels"), ["a"], "levels of column 'amount' must be those of a category"),
        (("contract", "columns", 4, "levels"), ["a", "a"], "must be those of a category, each once"),
        (("contract", "columns", 0, "spelling"), "1.234.5", r"spelling '1\.234\.5' of 'amount' is none of a number"),
        (("training", "rows_per_day"), 300.5, "training.rows_per_day must be a number at most"),
        (("contract", "columns", 2, "is_open"), True, "is_open of column 'paid' must be false"),
        (("encodings",), [], "parts.0.configuration' must hold numbers below 0"),
        (("encodings", 3, "parts"), ["days", "days"], "each once"),
        (("parent",), "0" * 63, r"parent must match \[0-9a-f\]\{64\}, and is"),
    ],
)
def test_manifest_error_names_the_field(file, tmp_path, path, value, reason):
    path = path if path[0] in file.manifest else ("model", *path)
    with pytest.raises(ModelError, match=reason):
        load_bytes(tmp_path, file.with_manifest(spoilt.replaced(file.manifest, path, value)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("model", "contract", "columns", 0, "is_open"), True),
        (("model", "contract", "columns", 3, "is_open"), True),
        (("model", "contract", "columns", 4, "levels"), ["L", "M", "S\x00", "no encoding knows", "ü", "日本"]),
    ],
)
def test_columns_may_be_open_and_know_more_levels_than_their_encoding(file, tmp_path, path, value):
    loaded = load_bytes(tmp_path, file.with_manifest(spoilt.replaced(file.manifest, path, value)))
    column = loaded.contract.columns[path[3]]
    assert (list(column.levels) if path[4] == "levels" else column.is_open) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [("ansatz.n_qubits", 0), ("ansatz.n_qubits", 13), ("ansatz.n_qubits", 3), ("ansatz.n_inputs", 2),
     ("ansatz.n_reps", 0), ("ansatz.n_reps", 3), ("ansatz.n_reps", 2**30), ("readout.n_classes", 3),
     ("readout.n_qubits", 1), ("readout.n_qubits", 2**40), ("readout.type", "parity "), ("readout.type", "direct"),
     ("precision", "float16"), ("learn_scales", False), ("ansatz.final_rz", True), ("ansatz.reupload", 1)],
)  # fmt: skip
def test_circuits_that_do_not_fit_their_weights_are_refused(file, tmp_path, field, value):
    path = ("model", "refinement", "circuit", "network", *field.split("."))
    with pytest.raises(ModelError, match=r"circuit"):
        load_bytes(tmp_path, file.with_manifest(spoilt.replaced(file.manifest, path, value)))


@pytest.fixture(scope="module")
def by_day(tmp_path_factory):
    return spoilt_file(tmp_path_factory, "several classes")


def test_curve_of_more_than_two_classes_is_refused(by_day, tmp_path):
    arrays = by_day.arrays() | {"training.curve.thresholds": np.zeros(1)}
    arrays |= {f"training.curve.{name}_positives": np.ones(1, dtype=np.int64) for name in ("true", "false")}
    forged = spoilt.Spoilt(write(tmp_path / "m.qmedoid", by_day.with_arrays(arrays)))
    curve = {"n_positive": 1, "n_negative": 1}
    manifest = spoilt.replaced(forged.manifest, ("model", "training", "curve"), curve)
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
