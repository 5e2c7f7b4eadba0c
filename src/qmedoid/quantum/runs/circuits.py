"""The packed circuits of a run, kept so that it runs the same ones on another day.

Error rates of a device change from day to day, and with them the choice of its qubits. Circuits that were made anew
would be other circuits, and what was run before would be lost.
"""

import hashlib
import json
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from qmedoid.exceptions import OutputError, warn
from qmedoid.model.storage.atomic import atomic_file, cannot_write
from qmedoid.quantum.devices.device import Device, PackKey
from qmedoid.quantum.devices.packs import Pack, pack_from_bytes, pack_to_bytes

SUFFIX = ".circuit"
_DIGEST_BYTES = 32


class KeptCircuits(MutableMapping[PackKey, Pack]):
    """The circuits of a device, in memory and in a folder.

    A circuit that is in the folder is taken from there. New ones are written by `save`. A file is named by the device
    and its settings as well as by the circuit.

    Parameters
    ----------
    folder : Path
    device : Device
    """

    def __init__(self, folder: Path, device: Device) -> None:
        self.folder = folder
        self._made: dict[PackKey, Pack] = {}
        self._place = [
            device.name,
            device.n_qubits,
            device.seed,
            device.optimization_level,
            device.n_attempts,
            None if device.quality is None else vars(device.quality.limits),
        ]

    def __getitem__(self, key: PackKey) -> Pack:
        if key not in self._made:
            found = self._read(key)
            if found is None:
                raise KeyError(key)
            self._made[key] = found
        return self._made[key]

    def __setitem__(self, key: PackKey, pack: Pack) -> None:
        self._made[key] = pack

    def __delitem__(self, key: PackKey) -> None:
        del self._made[key]

    def __iter__(self) -> Iterator[PackKey]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def save(self) -> None:
        """Write the circuits that are not in the folder yet."""
        for key, pack in self._made.items():
            file = self._file(key)
            if not file.exists():
                try:
                    self.folder.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise cannot_write(self.folder, error) from error
                content = pack_to_bytes(pack)
                with atomic_file(file) as out:
                    out.write(_digest(file, content) + content)

    def _read(self, key: PackKey) -> Pack | None:
        file = self._file(key)
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OutputError(f"{str(file)!r} cannot be read: {error.strerror}.") from error
        digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        try:
            if _digest(file, body) != digest:
                raise ValueError("its contents do not match its hash, which is of its name as well")
            return pack_from_bytes(body)
        except (ValueError, KeyError, TypeError) as error:
            moved = file.with_suffix(".damaged")
            try:
                file.replace(moved)
            except OSError as problem:
                raise cannot_write(file, problem) from problem
            warn(
                f"The circuit in {file.name} cannot be used ({error}): the file was moved to {moved.name}, and the "
                "circuit is made again."
            )
            return None

    def _file(self, key: PackKey) -> Path:
        form, n_features, n_copies = key
        digest = hashlib.sha256(json.dumps([self._place, key], sort_keys=True).encode()).hexdigest()
        return self.folder / f"{form}-{n_features}x{n_copies}-{digest[:16]}{SUFFIX}"


def _digest(file: Path, content: bytes) -> bytes:
    """Hash of a circuit and of the name of its file: one in the place of another is noticed."""
    return hashlib.sha256(file.name.encode() + b"\n" + content).digest()
