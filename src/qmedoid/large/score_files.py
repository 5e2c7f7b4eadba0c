"""Files of a table scored one by one into a folder, here or on other machines: tasks that can be sent and repeated.

A folder of results has a Parquet file for each input file, whose foot says what it was made of. A task is done when the
file of its results is in the folder. The name of that file is a hash of all that the results depend on, so that a task
that runs twice, or is killed and runs again, leaves the same bytes at the same place.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid._version import __version__
from qmedoid.exceptions import ContractError, DataError, OutputError, ParameterError, QMedoidError, some_of
from qmedoid.large.base import file_digest
from qmedoid.large.shared import cached_model
from qmedoid.model.contract import Contract
from qmedoid.model.model import Model
from qmedoid.model.storage.atomic import atomic_file, remove_leftovers
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import common_type
from qmedoid.tables.documents import ResultFilesDict
from qmedoid.tables.results import Cut, ScoreSettings, at
from qmedoid.tables.scoring import OnProgress, ScoredFile, score_file
from qmedoid.tables.source import SUFFIXES, find_files, open_table

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


@dataclass(frozen=True)
class ScoreTask:
    """One file to score; it can be pickled, sent to another process and run there."""

    model: str  # path of the file with the hash `sha256`; the path itself changes no result
    sha256: str
    cut: Cut
    settings: ScoreSettings
    types: Mapping[str, pa.DataType] = field(default_factory=dict)  # of carried columns in all files
    input: str = ""  # path of the file
    name: str = ""  # of the file among all inputs, such as a/x.parquet
    folder: str = ""  # path of the folder of results
    present: tuple[str, ...] = ()  # results of this input in the folder; those of another content are removed

    def recipe(self) -> dict[str, Any]:
        """What the results of a file depend on, but for the file itself, as JSON keeps it."""
        types = {name: str(kind) for name, kind in self.types.items()}
        made_by = {"sha256": self.sha256, **self.cut.key(), **self.settings.key(), "types": types}
        made_by |= {"format": FORMAT, "qmedoid": __version__}
        kept: dict[str, Any] = json.loads(json.dumps(made_by, sort_keys=True))
        return kept


@dataclass(frozen=True)
class ResultFacts:
    """What a file of results says of itself."""

    input: str  # name of the input, from the folder that all inputs lie in
    digest: str  # hash of its bytes
    recipe: Mapping[str, Any]  # model, options and version that the results depend on
    rows: int = 0
    bad_rows: int = 0
    predicted: Mapping[str, int] = field(default_factory=dict)  # rows by the class that they were called

    @property
    def name(self) -> str:
        """The file name of results of this input content by this recipe."""
        made_of = json.dumps([self.input, self.digest, self.recipe], sort_keys=True)
        plain = re.sub(r"\.(gz|bz2|zst|lz4)$", "", self.input, flags=re.IGNORECASE)
        plain = next((plain[: -len(one)] for one in SUFFIXES if plain.lower().endswith(one)), plain)
        stem = re.sub(r"[^\w.+=,@ ()-]", "-", plain).strip("._- ")
        while len(stem.encode()) > _LONGEST:
            stem = stem[:-1]
        return f"{stem or 'table'}-{hashlib.blake2b(made_of.encode(), digest_size=8).hexdigest()}.parquet"

    @classmethod
    def of(cls, file: Path) -> "ResultFacts | None":
        """What a file says; None for one that is not there, is damaged, or holds no results of an input."""
        from pyarrow import parquet

        try:
            said = (parquet.read_metadata(file).metadata or {}).get(_FOOT.encode())
            facts = None if said is None else cls(**json.loads(said))
        except (OSError, pa.ArrowException, ValueError, TypeError):
            return None
        return facts if facts is not None and facts.name == file.name else None


PartResult = tuple[ResultFacts, ScoredFile | None, int]
"""What became of a task: the file with its results, what was counted in it, and how many others were removed.

The second is None where the results were there already."""


def score_part(task: ScoreTask, on_progress: OnProgress | None = None) -> PartResult:
    """Score one file into a folder, unless that is done; the results appear whole or not at all.

    Errors name the file.
    """
    path, folder, settings = Path(task.input), Path(task.folder), task.settings
    try:
        before = _state(path)
        # Hashed every time: that size and time of a file are the old ones does not prove that its bytes are.
        facts = ResultFacts(task.name, file_digest(path), task.recipe())
        output = facts.name
        aside = _bad_rows_file(folder, output) if settings.on_bad_row == "skip" else None
        stale = [name for name in task.present if name != output]
        for name in stale:
            # Now, not when the new ones are there: nobody may read both.
            _remove_result(folder, name)
        done = ResultFacts.of(folder / output)
        if done is not None and (aside is None or aside.is_file()):
            return done, None, len(stale)
        if aside is not None:
            aside.parent.mkdir(exist_ok=True)

        def made(scored: ScoredFile) -> ResultFacts:
            return replace(facts, rows=scored.rows, bad_rows=scored.bad_rows, predicted=scored.predicted)

        def foot(scored: ScoredFile) -> dict[str, str]:
            if _state(path) != before:
                raise DataError("the file changed while it was scored. Score it again when it is complete.")
            return {_FOOT: json.dumps(vars(made(scored)), sort_keys=True)}

        model = at(cached_model(task.model, task.sha256).model, task.cut)
        settings = replace(settings, bad_rows=None if aside is None else str(aside))
        scored = score_file(
            model, str(path), str(folder / output), settings, on_progress=on_progress, types=task.types, foot=foot
        )
    except QMedoidError as error:
        error.args = (f"{task.name}: {error}", *error.args[1:])
        raise
    except OSError as error:
        raise DataError(f"{task.name}: {error.strerror or error}.") from error
    # Without the contract, which everybody who has the model has, too.
    scored.difference = replace(scored.difference, contract=Contract(()))
    return made(scored), scored, len(stale)


def _state(path: Path) -> tuple[int, int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def _bad_rows_file(folder: Path, name: str) -> Path:
    """The file of the rows that were set aside, next to the results of this name."""
    return folder / BAD_ROWS / f"{name.removesuffix('.parquet')}.csv"


def _remove_result(folder: Path, name: str) -> None:
    """Remove a file of results and its bad rows, whether they are there or not."""
    try:
        _bad_rows_file(folder, name).unlink(missing_ok=True)
        (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{str(folder / name)!r} cannot be removed: {error.strerror}. Remove it and try again."
        ) from error


@dataclass
class PartTotals:
    """What became of tasks, added up one by one, in memory that does not grow with their number."""

    predicted: dict[str, int]  # over all results, those that were there already among them
    now: ScoredFile  # what was counted in the files that were scored now, as if they were one table
    rows: int = 0
    bad_rows: int = 0
    scored: int = 0  # files scored now
    skipped: int = 0  # files whose results were there
    removed: int = 0  # results of another content

    @classmethod
    def none(cls, model: Model) -> "PartTotals":
        """Nothing so far."""
        return cls(dict.fromkeys(map(str, model.decision.classes), 0), ScoredFile.none(model))

    def add(self, part: PartResult) -> None:
        """Add what became of one more task."""
        facts, scored, removed = part
        self.rows, self.bad_rows = self.rows + facts.rows, self.bad_rows + facts.bad_rows
        self.predicted = {label: n + facts.predicted.get(label, 0) for label, n in self.predicted.items()}
        self.removed += removed
        if scored is None:
            self.skipped += 1
        else:
            self.scored += 1
            self.now.add(scored, facts.input)


def plan_scoring(
    task: ScoreTask,
    where: str,
    out: str | Path,
    *,
    shard: tuple[int, int] = (1, 1),
    resume: bool = False,
    force: bool = False,
) -> tuple[tuple[ScoreTask, ...], Callable[[PartTotals], ResultFilesDict]]:
    """Look at the inputs and at the folder of results, refuse what does not fit, and list what is to be done.

    Returns the tasks of the shard, of which those whose results are there do nothing, and what is called when all are
    done: it writes the manifest, and returns what was done, for JSON. `task` has the model, the cut and the settings of
    all tasks. The shard (K, N) has every N-th of the sorted names from the K-th on. Several processes may work on one
    folder at the same time. Results of other inputs, of another recipe or, without `resume`, of these inputs are
    refused, or removed with `force`.
    """
    folder = Path(out)
    files, names = _inputs(where, folder)
    task = replace(task, types=_carried_types(files, names, task.settings), folder=str(folder.absolute()))
    part = slice(shard[0] - 1, None, shard[1])
    recipe = task.recipe()
    there, removed = _to_remove(folder, recipe, names, names[part], resume=resume, force=force)
    for name in removed:
        _remove_result(folder, name)
        there.pop(name, None)
    # A list that is there is one of the results that are there.
    (folder / MANIFEST).unlink(missing_ok=True)
    present = {name: tuple(file for file, facts in there.items() if facts.input == name) for name in names[part]}
    tasks = tuple(
        replace(task, input=str(file.absolute()), name=name, present=present[name])
        for file, name in zip(files[part], names[part], strict=True)
    )

    def finish(totals: PartTotals) -> ResultFilesDict:
        return {
            "inputs": len(names),
            "scored": totals.scored,
            "skipped": totals.skipped,
            "removed": len(removed) + totals.removed,
            "missing": _write_manifest(folder, recipe, names),
            "rows_scored": totals.now.rows,
            "manifest": str(folder / MANIFEST),
        }

    return tasks, finish


def _inputs(where: str, folder: Path) -> tuple[list[Path], list[str]]:
    """The input files, with their names; raise where they cannot be scored one by one into this folder."""
    if where == "-":
        raise ParameterError("A folder as output has a file for every input file, and - is a pipe: give files.")
    files = find_files(where)
    strange = [str(file) for file in files if not file.is_file()]
    if strange:
        raise ParameterError(f"{strange[0]!r} is no regular file, and results in a folder are of files: give -o FILE.")
    path, out = Path(where), folder.resolve()
    is_within = path.is_dir() and out.is_relative_to(path.resolve())
    if is_within or any(file.resolve().is_relative_to(out) for file in files):
        raise ParameterError(
            f"The output folder {str(folder)!r} is among the inputs {where!r}: a later run would take results for "
            "inputs. Give a folder outside of them."
        )
    # Names begin at a folder that does not depend on which files there are.
    if path.exists():
        root = path if path.is_dir() else path.parent
    else:
        root = Path(*path.parts[: next(n for n, part in enumerate(path.parts) if re.search(r"[*?\[]", part))])
    return files, [file.relative_to(root).as_posix() for file in files]


def _carried_types(files: Sequence[Path], names: Sequence[str], settings: ScoreSettings) -> Mapping[str, pa.DataType]:
    """The types that carried columns have in the results of all files; text, if a file is a text."""
    found: dict[str, list[pa.DataType]] = {name: [] for name in settings.columns}
    for file, called in zip(files, names, strict=True) if found else ():
        with open_table(file, delimiter=settings.delimiter, decimal=settings.decimal, tolerant=True) as source:
            for name, kinds in found.items():
                if name not in source.names:
                    hint, has = did_you_mean(name, source.names), some_of([*map(repr, source.names)])
                    raise ContractError(f"{called}: there is no column {name!r} to carry through.{hint} It has: {has}.")
                kind = pa.string() if source.is_text else source.schema.field(name).type
                if kind not in kinds:
                    kinds.append(kind)
    common = {name: common_type(kinds) for name, kinds in found.items()}
    return {name: pa.string() if pa.types.is_null(kind) else kind for name, kind in common.items()}


def _results(folder: Path) -> tuple[dict[str, ResultFacts], list[str]]:
    """Results in a folder by their name, and damaged ones; the folder is made if need be.

    What killed processes left is removed, and a folder with other tables is refused.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for place in (folder, folder / BAD_ROWS):
            if place.is_dir():
                remove_leftovers(place)
        names = sorted(
            file.name for file in folder.iterdir() if file.suffix in (".parquet", ".pq") and file.name[0] not in "._"
        )
    except OSError as error:
        raise OutputError(f"The output folder {str(folder)!r} cannot be used: {error.strerror}.") from error
    there, damaged, others = dict[str, ResultFacts](), list[str](), list[str]()
    for name in names:
        facts = ResultFacts.of(folder / name)
        if facts is not None:
            there[name] = facts
        elif (folder / name).exists():
            (damaged if _NAME.fullmatch(name) else others).append(name)
    if others:
        raise ParameterError(
            f"The output folder {str(folder)!r} holds tables that are not results of inputs and would be read "
            f"together with them: {some_of(others, _SHOWN)}. Give another folder."
        )
    return there, damaged


def _to_remove(
    folder: Path, recipe: Mapping[str, Any], inputs: Sequence[str], mine: Collection[str], *, resume: bool, force: bool
) -> tuple[dict[str, ResultFacts], list[str]]:
    """Results in the folder, and the names of those that have to go; these are refused without `force`.

    They are those that are not of these inputs and this recipe and, without `resume`, those of inputs that are to be
    scored now.
    """
    there, damaged = _results(folder)
    odd: dict[str, list[str]] = {"they cannot be read": damaged} if damaged else {}
    known = set(inputs)
    for name, facts in there.items():
        if facts.recipe != recipe:
            odd.setdefault("made with another model, other options or another version of qmedoid", []).append(name)
        elif facts.input not in known:
            odd.setdefault("their input is not among those given", []).append(name)
    if odd and not force:
        said = [f"{some_of(names, _SHOWN)} ({why})" for why, names in odd.items()]
        raise ParameterError(
            f"The output folder {str(folder)!r} holds results that do not belong to these inputs, this model "
            f"and these options: {'; '.join(said)}. Give another folder, or --force to remove these results."
        )
    gone = [name for names in odd.values() for name in names]
    again = [name for name, facts in there.items() if name not in gone and facts.input in mine]
    if again and not (resume or force):
        raise ParameterError(
            f"The output folder {str(folder)!r} holds results of {len(again):,} of these inputs already. "
            "Give --resume to do what is missing or changed, --force to score all again, or another folder."
        )
    return there, gone if resume else gone + again


def _write_manifest(folder: Path, recipe: Mapping[str, Any], inputs: Sequence[str]) -> int:
    """Write what the folder holds now, and return how many inputs have no results.

    Others may write to the folder at the same time: the list is read and written again until nothing was added
    meanwhile, so that the last of several processes leaves a list of everything.
    """
    now, _ = _results(folder)
    while True:
        results = [
            {"output": name, **{key: value for key, value in vars(facts).items() if key != "recipe"}}
            for name, facts in sorted(now.items(), key=lambda item: item[1].input)
        ]
        there = {facts.input for facts in now.values()}
        document = {
            "recipe": recipe,
            "rows": sum(facts.rows for facts in now.values()),
            "missing": [name for name in inputs if name not in there],
            "results": results,
        }
        with atomic_file(folder / MANIFEST) as file:
            file.write(json.dumps(document, indent=1, ensure_ascii=False).encode())
        before, (now, _) = now, _results(folder)
        if now == before:
            return len(inputs) - len(there.intersection(inputs))
