"""Which files of a folder are those of an earlier report, unchanged: these alone may be replaced."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from qmedoid.exceptions import ParameterError, some_of

# The last line of a page: the SHA-256 of every file of its report, and of the page without this line.
_BEFORE, _AFTER = b"<!-- qmedoid report: ", b" -->\n"


def signed_page(page: bytes, name: str, others: Mapping[str, bytes]) -> bytes:
    """The page with a last line, a comment, that names the files of its report with their SHA-256."""
    listing = {other: _digest(content) for other, content in others.items()} | {name: _digest(page)}
    return page + _BEFORE + json.dumps(listing, sort_keys=True).encode() + _AFTER


def check_replaceable(folder: Path, page: str, contents: Mapping[str, bytes] | None = None) -> None:
    """Raise where a file that is not ours, or that was changed since, would be lost.

    Parameters
    ----------
    folder : Path
    page : str
        Name of the page, which lists the files of an earlier report.
    contents : mapping of str to bytes, optional
        What is to be written, by name; without it, known before long work, the page alone is looked at.

    Raises
    ------
    ParameterError
        There is such a file.
    """
    listed = _listed(folder, page)
    names = [page] if contents is None else list(contents)
    foreign = [name for name in names if _would_be_lost(folder / name, page, listed, (contents or {}).get(name))]
    if foreign:
        raise ParameterError(
            f"The folder {str(folder)!r} holds files that no report of this command wrote, or that were changed since: "
            f"{some_of([repr(name) for name in foreign], 5)}. Give another folder, or --force to overwrite them."
        )


def _listed(folder: Path, page: str) -> dict[str, str]:
    """The SHA-256 of the files of the report that lies in a folder; nothing where there is none."""
    try:
        content = (folder / page).read_bytes()
    except OSError:
        return {}
    body, mark, listing = content.rpartition(_BEFORE)
    try:
        found = json.loads(listing.removesuffix(_AFTER)) if mark else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.get(page) == _digest(body) else {}


def _would_be_lost(file: Path, page: str, listed: Mapping[str, str], new: bytes | None) -> bool:
    if not file.is_file():  # a folder, say, is refused by whoever writes
        return False
    content = file.read_bytes()
    # A run that was stopped left files of a report whose page was not written yet; the same run writes the same again.
    if content == new:
        return False
    return file.name not in listed if file.name == page else listed.get(file.name) != _digest(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
