"""The files of data that ship with the package, checked each time they are read."""

from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from qmedoid.exceptions import DataError

SHIPPED: dict[str, str] = {
    "heart.csv": "948420b084d8a3a0ca42b8419fce9aee175879e43f8aedf712377899a67aa49b",
    "creditcard_sample.parquet": "00a08a96b117e89c5050e7bbd44eb2c0a2670bb5e2d0bd7736f40f2b1085fda5",
}
"""SHA-256 of every file, by its name."""


def shipped_path(file: str) -> Path:
    """Where a file of the package lies."""
    return Path(str(files("qmedoid.studies") / "data" / file))


def read_shipped(file: str) -> bytes:
    """What a file of the package holds; one that is not as it was shipped is refused."""
    path = shipped_path(file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"The file {path} ships with qmedoid and cannot be read ({error.strerror}). Install qmedoid again."
        ) from error
    found = sha256(content).hexdigest()
    if found != SHIPPED[file]:
        raise DataError(
            f"The file {path} is not the one that ships with qmedoid: its SHA-256 is {found[:16]}…, and "
            f"{SHIPPED[file][:16]}… was shipped. Install qmedoid again."
        )
    return content
