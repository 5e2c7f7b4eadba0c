"""A folder of results, a Parquet file for each input file, whose feet say what each was made of."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid._version import __version__
from qmedoid.exceptions import DataError, OutputError, ParameterError, some_of
from qmedoid.model.storage.atomic import atomic_file, remove_all_leftovers
from qmedoid.tables.detect import SUFFIXES

FORMAT = 2
"""Number of the format of results in a folder; those of another number are not taken for done."""
MANIFEST = "_manifest.json"
"""File that lists inputs and results; readers of a folder of tables leave out names that begin with an underscore."""
BAD_ROWS = "_bad_rows"
"""Folder of the rows that were set aside."""
_FOOT = "qmedoid"
_NAME = re.compile(r".+-[0-9a-f]{16}\.parquet")
# Bytes of the name of an input that are a part of the name of its results.
_LONGEST = 120
_SHOWN = 5
_SAID = {
    "sha256": "the model",
    "qmedoid": "the version of qmedoid",
    "format": "the format of results",
    "types": "the types of carried columns",
    "point": "the cut",
    "log_odds": "--top",
    "prevalence": "the prevalence",
    "n_reasons": "the number of reasons",
}


@dataclass(frozen=True)
class ResultFacts:
    """What a file of results says of itself.

    Attributes
    ----------
    input : str
        Name of the input, from the folder that all inputs lie in.
    digest : str
        Hash of its bytes.
    recipe : mapping
        Model, options and version that the results depend on.
    rows, bad_rows : int
    predicted : mapping of str to int
        Rows by the class that they were called.
    """

    input: str
    digest: str
    recipe: Mapping[str, Any]
    rows: int = 0
    bad_rows: int = 0
    predicted: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file name of results of this input content by this recipe."""
        made_of = json.dumps([self.input, self.digest, self.recipe], sort_keys=True)
        plain = re.sub(r"\.(gz|bz2|zst|xz|lz4)$", "", self.input, flags=re.IGNORECASE)
        plain = next((plain[: -len(one)] for one in SUFFIXES if plain.lower().endswith(one)), plain)
        stem = re.sub(r"[^\w.+=,@ ()-]", "-", plain).strip("._- ")
        while len(stem.encode()) > _LONGEST:
            stem = stem[:-1]
        return f"{stem or 'table'}-{hashlib.blake2b(made_of.encode(), digest_size=8).hexdigest()}.parquet"

    def foot(self) -> dict[str, str]:
        """The facts as they stand in the foot of a Parquet file."""
        return {_FOOT: json.dumps(vars(self), sort_keys=True)}


def full_recipe(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with the versions that results depend on as well, in types that JSON keeps."""
    complete = {**recipe, "format": FORMAT, "qmedoid": __version__}
    kept: dict[str, Any] = json.loads(json.dumps(complete, sort_keys=True))
    return kept


def result_facts(file: Path) -> ResultFacts | None:
    """What a file says of itself; None for one that is not there, is damaged, or holds no results of an input."""
    from pyarrow import parquet

    try:
        said = (parquet.read_metadata(file).metadata or {}).get(_FOOT.encode())
        facts = None if said is None else ResultFacts(**json.loads(said))
    except (OSError, pa.ArrowException, ValueError, TypeError):
        return None
    return facts if facts is not None and facts.name == file.name else None


@dataclass
class ResultFolder:
    """Results that are in a folder now.

    Attributes
    ----------
    path : Path
    facts : dict of str to ResultFacts
        By the name of the file.
    damaged : list of str
        Files that are called like results, and are none.
    """

    path: Path
    facts: dict[str, ResultFacts] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path) -> "ResultFolder":
        """Make or read a folder, remove what killed processes left in it, and refuse one with other tables."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            for place in (path, path / BAD_ROWS):
                if place.is_dir():
                    remove_all_leftovers(place)
            folder, others = cls(path), list[str]()
            names = sorted(
                file.name for file in path.iterdir() if file.suffix in (".parquet", ".pq") and file.name[0] not in "._"
            )
        except OSError as error:
            raise OutputError(f"The output folder {str(path)!r} cannot be used: {error.strerror}.") from error
        for name in names:
            facts = result_facts(path / name)
            if facts is not None:
                folder.facts[name] = facts
            elif (path / name).exists():
                (folder.damaged if _NAME.fullmatch(name) else others).append(name)
        if others:
            raise ParameterError(
                f"The output folder {str(path)!r} holds tables that are not results of inputs and would be read "
                f"together with them: {some_of(others, _SHOWN)}. Give another folder."
            )
        return folder

    def of_input(self, name: str) -> tuple[str, ...]:
        """The files of results of an input."""
        return tuple(file for file, facts in self.facts.items() if facts.input == name)

    def prepare(
        self, recipe: Mapping[str, Any], inputs: Collection[str], mine: Collection[str], *, resume: bool, force: bool
    ) -> list[str]:
        """Refuse results that do not belong here, or remove them with `force`; return the names of those removed.

        Results belong to a folder if they are of one of its inputs, and made by the same recipe. Without `resume` those
        of the inputs that are to be scored now (`mine`) are refused as well, or made anew.
        """
        odd = self._of_others(recipe, inputs)
        if odd and not force:
            said = [f"{some_of(names, _SHOWN)} ({why})" for why, names in odd.items()]
            raise ParameterError(
                f"The output folder {str(self.path)!r} holds results that do not belong to these inputs, this model "
                f"and these options: {'; '.join(said)}. Give another folder, or --force to remove these results."
            )
        gone = [name for names in odd.values() for name in names]
        again = [name for name, facts in self.facts.items() if name not in gone and facts.input in mine]
        if again and not resume:
            if not force:
                raise ParameterError(
                    f"The output folder {str(self.path)!r} holds results of {len(again):,} of these inputs already. "
                    "Give --resume to do what is missing or changed, --force to score all again, or another folder."
                )
            gone += again
        for name in gone:
            remove_result(self.path, name)
            self.facts.pop(name, None)
        return gone

    def _of_others(self, recipe: Mapping[str, Any], inputs: Collection[str]) -> dict[str, list[str]]:
        """Results that do not belong here, by what is wrong with them."""
        odd: dict[str, list[str]] = {"they cannot be read": self.damaged} if self.damaged else {}
        wanted, known = full_recipe(recipe), set(inputs)
        for name, facts in self.facts.items():
            differs = [key for key in {**wanted, **facts.recipe} if wanted.get(key) != facts.recipe.get(key)]
            if differs:
                words = [_SAID.get(key, f"--{key.replace('_', '-')}") for key in differs]
                odd.setdefault(f"made with another value of {some_of(words)}", []).append(name)
            elif facts.input not in known:
                odd.setdefault("their input is not among those given", []).append(name)
        return odd

    def write_manifest(self, recipe: Mapping[str, Any], inputs: Sequence[str]) -> dict[str, Any]:
        """Write what the folder holds now, and return it; others may write to the folder at the same time.

        The list is read and written again until nothing was added meanwhile, so that the last of several processes
        leaves a list of everything.
        """
        now = ResultFolder.open(self.path)
        while True:
            document = now._document(recipe, inputs)
            with atomic_file(self.path / MANIFEST) as file:
                file.write(json.dumps(document, indent=1, ensure_ascii=False).encode())
            before, now = now, ResultFolder.open(self.path)
            if now.facts == before.facts:
                return document

    def _document(self, recipe: Mapping[str, Any], inputs: Sequence[str]) -> dict[str, Any]:
        results = [
            {"output": name, **{key: value for key, value in vars(facts).items() if key != "recipe"}}
            for name, facts in sorted(self.facts.items(), key=lambda item: item[1].input)
        ]
        there = {facts.input for facts in self.facts.values()}
        return {
            "recipe": full_recipe(recipe),
            "rows": sum(facts.rows for facts in self.facts.values()),
            "missing": [name for name in inputs if name not in there],
            "results": results,
        }


def remove_result(folder: Path, name: str) -> None:
    """Remove a file of results and its bad rows, whether they are there or not."""
    try:
        bad_rows_file(folder, name).unlink(missing_ok=True)
        (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{str(folder / name)!r} cannot be removed: {error.strerror}. Remove it and try again."
        ) from error


def bad_rows_file(folder: Path, name: str) -> Path:
    """The file of the rows that were set aside, next to the results of this name."""
    return folder / BAD_ROWS / f"{name.removesuffix('.parquet')}.csv"
