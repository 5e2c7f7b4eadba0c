"""Models saved to one file each, and loaded from it; nothing in a file is executed.

::

    heart.qmedoid             a zip of stored entries, see `qmedoid.model.storage.strict`
      manifest.json           versions, contract, parameters, metrics, medoids as rows where they are kept
      arrays.safetensors      all numbers
      card.md                 the model card
      circuit.qpy, .qasm      the trained circuit for other tools, on request; never read
      swap_test.qpy, .qasm    the compact SWAP test of the features, likewise
"""

import hashlib
import os
import platform
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, pairwise
from operator import lt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qmedoid._version import __version__
from qmedoid.exceptions import ModelError
from qmedoid.methods.part import CLOSED_FORM
from qmedoid.model.contract import Dates, Levels, Numbers, is_spelling
from qmedoid.model.decision import Decision, PriorShift
from qmedoid.model.model import ENCODING_OF, Model
from qmedoid.model.operating_point import ASKED
from qmedoid.model.storage.atomic import atomic_file, cannot_write, check_target
from qmedoid.model.storage.card import model_card
from qmedoid.model.storage.forms import Arrays, read, write
from qmedoid.model.storage.strict import CARD, DEEPEST, FORMAT, MANIFEST, FormatError, packed_file, unpacked_file
from qmedoid.schema import MOST_ROWS, RefusedError

LARGEST_FILE = 2**28
"""Bytes of the largest file that is read."""
SUFFIX = ".qmedoid"
"""How the names of model files end by convention; any name can be saved and loaded."""
_LIBRARIES = ("numpy", "pyarrow", "safetensors", "scikit-learn")


class ModelFile(NamedTuple):
    """What a model file holds.

    Attributes
    ----------
    model : Model
    sha256 : str
        Of the file.
    versions : mapping of str to str or None
        Versions of qmedoid, Python and libraries that the model was saved with; None for one that was not installed.
    """

    model: Model
    sha256: str
    versions: Mapping[str, str | None]


def save_model(
    model: Model, path: str | Path, *, circuits: Mapping[str, bytes] | None = None, raw_rows: bool = True
) -> Path:
    """Save a model to a file.

    The file is written atomically: whatever happens, it is the old one or the new one, complete.

    Parameters
    ----------
    model : Model
    path : str or Path
        A new file, or a model file that is replaced. Folders that are missing are made.
    circuits : mapping of str to bytes, optional
        Files to store too, by name, for other tools: `qmedoid.quantum.export.circuit_files` makes them.
    raw_rows : bool
        Whether medoids are kept as rows of the training table. Without, only their coordinates and row numbers are.

    Raises
    ------
    ModelError
        The model cannot be stored; for the path see `check_target`.
    """
    path = Path(path)
    content = model_bytes(model, circuits=circuits, raw_rows=raw_rows)
    check_target(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
    with atomic_file(path) as file:
        file.write(content)
    return path


def load_model(path: str | Path) -> Model:
    """Load a model that `save_model` wrote; it decides as the saved one did, bit for bit.

    Raises
    ------
    ModelError
        The file is not a saved model, is damaged, or has a format that this version does not know.
    """
    return load_file(path).model


def load_file(path: str | Path) -> ModelFile:
    """Load a model with the hash of its file and its versions; see `load_model`."""
    path = Path(path)
    if path.is_dir():
        raise ModelError(f"{str(path)!r} is a folder, and a saved model is a file, such as heart{SUFFIX}: pass that.")
    subject = f"The saved model {str(path)!r}"
    try:
        return read_model(_file_bytes(path))
    except FormatError as error:
        raise ModelError(
            f"{subject} has format {error}, and this version of qmedoid reads format {FORMAT}. Fit and save it again, "
            "or update with: pip install --upgrade qmedoid"
        ) from None
    except RefusedError as refused:
        raise ModelError(
            f"{subject} cannot be read: {_with_role(refused)}. Save it again, or restore the file from a copy."
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise ModelError(f"There is no saved model at {str(path)!r}: nothing is there. Check the path.") from None
    except OSError as error:
        raise ModelError(f"{subject} cannot be opened: {error.strerror}. Check the path and its permissions.") from None


def model_bytes(model: Model, *, circuits: Mapping[str, bytes] | None = None, raw_rows: bool = True) -> bytes:
    """The file of a model; what could not be loaded again is refused."""
    if model.backends != CLOSED_FORM:
        what = "SWAP test" if model.backends.swap_test is not None else "circuit"
        raise ModelError(
            f"The {what} of this model is run by a backend, which is not saved: save the fitted classifier itself, and "
            "call measured_by again after loading."
        )
    from importlib import metadata  # slow, and needed to save only

    versions = {name: next((one.version for one in metadata.distributions(name=name)), None) for name in _LIBRARIES}
    arrays: Arrays = {}
    # A hash shows whether a row that somebody has was a training row: they are left out with the rows.
    description = write(model if raw_rows else replace(model, seen=None, records=None), arrays)
    versions |= {"qmedoid": __version__, "python": platform.python_version()}
    card = model_card(model, raw_rows=raw_rows and model.records is not None).encode()
    content = packed_file({"versions": versions, "model": description}, arrays, {CARD: card, **(circuits or {})})
    try:
        if len(content) > LARGEST_FILE:
            raise RefusedError(f"it has {len(content)} bytes, and at most {LARGEST_FILE} are read")
        read_model(content)
    except RefusedError as refused:
        raise ModelError(f"The model cannot be stored: {_with_role(refused)}.") from None
    return content


def read_model(content: bytes) -> ModelFile:
    """What a file holds whose bytes may be anything; everything is checked."""
    manifest, arrays = unpacked_file(content)
    names = {"qmedoid", "python", *_LIBRARIES}
    if not isinstance(manifest, dict) or manifest.keys() != {"versions", "model"}:
        raise RefusedError("it must be an object with the fields versions and model", MANIFEST)
    versions = manifest["versions"]
    if (
        not isinstance(versions, dict)
        or versions.keys() != names
        or not all(isinstance(one, str | None) for one in versions.values())
    ):
        raise RefusedError(f"versions must give a text or null for each of {sorted(names)}", MANIFEST)
    model = read(Model, manifest["model"], arrays)
    misfits = chain(_of_columns(model), _of_decision(model.decision), _of_parts(model), _of_rows(model))
    for reason in (reason for is_wrong, reason in misfits if is_wrong):
        raise RefusedError(reason)
    return ModelFile(model, hashlib.sha256(content).hexdigest(), versions)


def _with_role(refused: RefusedError) -> str:
    """A reason with the entry that it is about."""
    return f"{refused.role}: {refused}" if refused.role else str(refused)


def _file_bytes(path: Path) -> bytes:
    """The bytes of a regular file of bounded size. Links are followed; a pipe does not keep the reader waiting."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise RefusedError("it is not a regular file")
        if found.st_size > LARGEST_FILE:
            raise RefusedError(f"it has {found.st_size} bytes, and at most {LARGEST_FILE} are read")
        content = file.read(found.st_size + 1)
    if len(content) != found.st_size:
        raise RefusedError("it changed while it was read")
    return content


# What parts of a stored model must have in common, beyond what their declarations say.
Misfits = Iterator[tuple[bool, str]]
"""Whether something is wrong, and what: each is looked at if nothing before it is wrong."""


def _of_columns(model: Model) -> Misfits:
    columns, encodings = model.contract.columns, model.encodings
    is_named = 0 < len(columns) == len({column.name for column in columns})
    yield not is_named, "contract.columns must not be empty, and must not have a name twice"
    for column in columns:
        if not (column.levels or column.missing_values or column.spelling or column.is_open):
            continue
        name, values = f"{column.name!r:.80}", column.missing_values
        is_wrong = len(set(column.levels)) != len(column.levels) or bool(column.levels and column.kind != "category")
        yield is_wrong, f"levels of column {name} must be those of a category, each once"
        yield column.is_open and column.kind == "boolean", f"is_open of column {name} must be false, as it is a boolean"
        is_wrong = "" in values or len(set(values)) != len(values) or not set(values).isdisjoint(column.levels)
        yield is_wrong, f"missing_values of {name} must be texts, each once, and no levels"
        try:
            _ = column.missing_numbers if values else ()
        except ValueError:
            yield True, f"missing_values of {name} hold a date that is none"
        is_wrong = column.spelling != "" and not is_spelling(column.kind, column.spelling)
        yield is_wrong, f"spelling {column.spelling!r:.80} of {name} is none of a {column.kind}"
    kinds = [ENCODING_OF[column.kind] for column in columns]
    yield [type(one) for one in encodings] != kinds, "encodings must be one for each column, as its kind asks for"
    for number, encoding in enumerate(encodings):
        if isinstance(encoding, Numbers):
            continue
        parts = encoding.parts if isinstance(encoding, Dates) else ()
        levels = encoding.levels if isinstance(encoding, Levels) else ()
        is_wrong = not encoding.outputs or len(set(parts)) != len(parts) or not all(map(lt, levels, levels[1:]))
        yield is_wrong, f"encodings.{number} must have outputs, or parts, each once; levels must ascend"
    importances = model.importances
    is_wrong = importances is not None and len(importances) != len(columns)
    yield is_wrong, f"importances must be {len(columns)} numbers, one for each column"


def _of_decision(decision: Decision) -> Misfits:
    labels, cut, shift, operating = decision.classes, decision.cut, decision.shift, decision.operating
    kinds = {str if isinstance(one, str) else bool if isinstance(one, bool) else float for one in labels}
    is_wrong = len(labels) < 2 or len(kinds) > 1
    yield is_wrong, "decision: classes must be at least 2 labels, all texts, all numbers or all truth values"
    # Numbers are sorted, because different ones can be made to collide in a set.
    ranked = sorted(labels, key=str if str in kinds else None)
    yield any(a == b for a, b in pairwise(ranked)), "decision: classes has a label twice"
    yield cut is not None and len(labels) != 2, f"decision: cut belongs to two classes, and there are {len(labels)}"
    is_wrong = decision.priors is not None and not decision.probabilistic
    yield is_wrong, "decision: priors belong to probabilities, and there are none"
    for name, priors in (("priors", decision.priors), ("shift.priors", None if shift is None else shift.priors)):
        if priors is not None:
            is_wrong = abs(priors.sum() - 1.0) > 1e-9 * len(priors)
            yield is_wrong, f"decision: {name} must add up to 1, and adds up to {priors.sum():g}"
    if shift is not None:
        is_wrong = decision.priors is None or not np.allclose(
            shift.log_ratios, PriorShift.to(decision.priors, shift.priors).log_ratios, rtol=1e-12
        )
        yield is_wrong, "decision: shift.log_ratios must be those from priors to shift.priors"
    is_wrong = decision.biases is not None and (len(labels) == 2 or not decision.probabilistic)
    yield is_wrong, "decision: biases belong to probabilities of three or more classes"
    if operating is not None:
        rule, asked, counts, log_odds = operating.rule, operating.asked, operating.counts, operating.log_odds
        is_wrong = len(labels) != 2 or not decision.probabilistic
        yield is_wrong, "decision: operating belongs to probabilities of two classes"
        is_wrong = (rule == "likeliest") != (cut is None) or log_odds != (cut or 0.0)
        yield is_wrong, f"decision: operating has rule {rule!r} and log_odds {log_odds}, and cut is {cut}"
        is_wrong = operating.prevalence != (None if shift is None else shift.prevalence)
        yield is_wrong, "decision: operating.prevalence and the last of shift.priors are not the same"
        is_wrong = (asked is not None) != (rule in ASKED) or not 0 < (asked or 1) <= (np.inf if rule == "cost" else 1)
        yield is_wrong, f"decision: operating.asked is {asked}, which is no number that {rule!r} asks for"
        is_wrong = counts is not None and not 0 < sum(counts) < MOST_ROWS
        yield is_wrong, "decision: operating.counts must not all be 0, nor too large"


def _of_parts(model: Model) -> Misfits:
    n_classes, circuit, refinement, part = model.n_classes, model.circuit, model.refinement, model.medoid_part
    lengths = len(model.parts), n_classes, n_classes
    is_wrong = (len(model.weights), len(model.biases), len(model.calibration.biases)) != lengths
    yield is_wrong, f"weights must be one for each of {lengths[0]} parts, and biases one for each class"
    for curve in (model.calibration, None if refinement is None else refinement.recalibration):
        is_wrong = curve is not None and not (np.diff(curve.heights) > -np.diff(curve.knots)).all()
        yield is_wrong, "calibration: heights turns the order of the scores"
    is_wrong = part is None and (circuit is None or refinement is not None)
    yield is_wrong, "parts must have one with medoids, or be a circuit"
    is_wrong = part is not None and len(np.unique(part.rows.classes)) != n_classes
    yield is_wrong, f"parts must have medoids of the {n_classes} classes"
    if circuit is not None:
        expected = len(model.source), n_classes
        if refinement is not None and part is not None:
            inputs = refinement.inputs
            n_outputs = 2 if inputs.decides_between_two(n_classes) else n_classes
            expected = inputs.n_features(n_classes, part.n_features), n_outputs
        found = circuit.network.ansatz.n_inputs, circuit.network.readout.n_classes
        yield found != expected, f"the circuit must have (inputs, classes) {expected}"


def _of_rows(model: Model) -> Misfits:
    novelty, training, records = model.novelty, model.training, model.records
    if novelty is not None and len(novelty.binned):
        starts = novelty.offsets[:-1] + np.arange(len(novelty.binned))
        is_wrong = not (np.add.reduceat(novelty.counts, starts) == novelty.n_rows).all()
        yield is_wrong, f"novelty: counts must add up to the {novelty.n_rows} rows in every column"
    if training is not None:
        is_wrong = len(training.missing) != len(model.encodings)
        yield is_wrong, f"training.missing must be {len(model.encodings)} numbers, one for each column"
        yield training.curve is not None and model.n_classes != 2, "training.curve belongs to two classes"
    for name, value in (("parameters", model.parameters), ("metrics", model.metrics)):
        yield _is_deep(value, DEEPEST + 1), f"{name} must not be nested deeper than {DEEPEST} levels"
    if records is not None:
        count = 0 if model.medoids is None else len(model.medoids.numbers)
        is_wrong = [list(one) for one in records] != [list(one) for one in records[:1]] * count
        yield is_wrong, f"records must be {count} rows of the same columns, one for each medoid"
        is_wrong = not {type(cell) for one in records for cell in one.values()} <= {type(None), bool, int, float, str}
        yield is_wrong, "records must hold texts, numbers, truth values and null"


def _is_deep(value: Any, left: int) -> bool:
    """Whether lists and mappings are nested deeper than the levels that are left."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return left < 0 or any(_is_deep(one, left - 1) for one in inner)
