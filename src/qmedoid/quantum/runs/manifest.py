"""``run.json``: what a run was asked for, what it runs, and what became of it."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from qmedoid._version import __version__
from qmedoid.exceptions import ModelError, OutputError, ParameterError
from qmedoid.model.storage.atomic import atomic_file
from qmedoid.quantum.measurement.plan import MeasurementPlan
from qmedoid.quantum.measurement.settings import MeasurementSettings

FORMAT = 1
"""Number of the format of runs; a run of another number does not go on."""
NAME = "run.json"
_PACKAGES = ("numpy", "qiskit", "qiskit-aer", "qiskit-ibm-runtime")
_SAID = {
    "model": "the model",
    "records": "the records",
    "rows": "the number of records (--limit)",
    "backend": "--backend",
    "n_qubits": "--n-qubits",
    "seed": "--seed",
    "shots": "--shots",
    "budget": "--budget",
    "circuit": "--circuit",
    "register": "--register",
    "calibrate": "--calibrate",
    "refine": "--refine",
    "circuits_per_job": "--circuits-per-job",
    "calibration_circuits": "calibration_circuits",
    "draws": "draws",
    "format": "the format of runs",
    "noise": "the noise of the simulated device",
    "decisions": "the decisions in closed form",
}
_HASHES = ("model", "records", "noise", "decisions")
# Characters of a hash that are shown.
_SHOWN = 12
# Decimals of margins that tell decisions of one model from those of another.
_DECIMALS = 6


def asked_for(
    settings: MeasurementSettings, backend: str, n_qubits: int, n_records: int, **facts: str | None
) -> dict[str, Any]:
    """What a run depends on, in plain values: a run with other ones is another run.

    Parameters
    ----------
    settings : MeasurementSettings
    backend : str
        Name of the device.
    n_qubits : int
        Qubits that are used at most.
    n_records : int
    **facts
        Hashes of the model, of the records, of what it decides about them in closed form, and of a simulated device's
        noise, where they are known.
    """
    plain: dict[str, Any] = json.loads(json.dumps(asdict(settings)))
    return {"format": FORMAT, **facts, "rows": n_records, "backend": backend, "n_qubits": n_qubits, **plain}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In words, what two runs were asked for differently; a fact that one of them does not know is no difference."""
    found = []
    for key in {**before, **now}:
        there, here = before.get(key), now.get(key)
        if there is None or here is None or there == here:
            continue
        shown = [str(one)[:_SHOWN] + "…" if key in _HASHES else str(one) for one in (there, here)]
        found.append(f"{_SAID.get(key, key)} ({shown[0]} there, {shown[1]} now)")
    return found


def refuse_other(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse a folder in which something else runs.

    Raises
    ------
    ParameterError
        It was asked for something else; the message says what differs.
    """
    differs = differences(before, now)
    if differs:
        raise ParameterError(
            f"The folder {str(folder)!r} holds another run, which differs in {'; '.join(differs)}. Give another "
            "folder, or the same model, table and options to go on with that run."
        )


def digest_of(texts: Sequence[str]) -> str:
    """One hash of several."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def records_digest(columns: Sequence[Any]) -> str:
    """Hash of encoded columns: of what the model reads of its records."""
    digest = hashlib.sha256()
    for column in columns:
        values = np.ascontiguousarray(column, dtype="<f8")
        digest.update(f"{values.shape}\n".encode() + values.tobytes())
    return digest.hexdigest()


def decisions_digest(plan: MeasurementPlan) -> str:
    """Hash of what a model decides in closed form: one with another cut or other classes runs the same circuits."""
    margins = np.round(plan.exact.margins, _DECIMALS) + 0.0  # one zero, not two
    return digest_of([*map(repr, plan.classes), *map(repr, margins.tolist()), *map(str, plan.exact.codes.tolist())])


def versions() -> dict[str, str | None]:
    """Versions of what runs depend on; None for a package that is not installed."""

    def installed(name: str) -> str | None:
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    return {
        "qmedoid": __version__,
        "python": platform.python_version(),
        **{name: installed(name) for name in _PACKAGES},
    }


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder; None where there is none.

    Raises
    ------
    ModelError
        It cannot be read.
    """
    file = folder / NAME
    try:
        found: Any = json.loads(file.read_bytes())
        if found.pop("sha256", None) != _digest(found):
            raise ValueError("its contents do not match its hash")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"{str(file)!r} cannot be read: {error.strerror}.") from error
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ModelError(
            f"{str(file)!r} is no manifest of a run, or is damaged ({error}). Give another folder; or remove the file, "
            "and the same command takes over the counts that are there."
        ) from error
    manifest: dict[str, Any] = found
    return manifest


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest by one atomic replace, with a hash of it: results that were edited are not printed."""
    with atomic_file(folder / NAME) as file:
        file.write(as_json({**manifest, "sha256": _digest(manifest)}))


def _digest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(_finite(manifest), sort_keys=True).encode()).hexdigest()


def as_json(value: Any) -> bytes:
    """Plain values as JSON; numbers that it lacks become null."""
    return (json.dumps(_finite(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
