"""Files of a table scored one by one into a folder, here or on other machines: tasks that can be sent and repeated.

A task is done when the file of its results is in the folder. The name of that file is a hash of all that the results
depend on, so that a task that runs twice, or is killed and runs again, leaves the same bytes at the same place.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from qmedoid.exceptions import ContractError, DataError, ParameterError, QMedoidError, some_of
from qmedoid.large.base import file_digest
from qmedoid.large.result_folder import (
    MANIFEST,
    ResultFacts,
    ResultFolder,
    bad_rows_file,
    full_recipe,
    remove_result,
    result_facts,
)
from qmedoid.large.shared import cached_model
from qmedoid.model.contract import Contract
from qmedoid.model.model import Model
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import common_type
from qmedoid.tables.documents import ResultFilesDict
from qmedoid.tables.score_settings import Cut, ScoreSettings, at
from qmedoid.tables.scoring import OnProgress, ScoredFile, score_file
from qmedoid.tables.source import find_files, open_table


@dataclass(frozen=True)
class ScoreTask:
    """One file to score; it can be pickled, sent to another process and run there.

    Attributes
    ----------
    model : str
        Path of the model file, which must have the hash `sha256`; the path itself changes no result.
    cut : Cut
    settings : ScoreSettings
    types : mapping of str to DataType
        Types of carried columns in all files.
    input : str
        Path of the file.
    name : str
        Name of the file among all inputs, such as ``a/x.parquet``.
    folder : str
        Path of the folder of results.
    present : tuple of str
        Results of this input that are in the folder now; those of another content are removed.
    """

    model: str
    sha256: str
    cut: Cut
    settings: ScoreSettings
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    input: str = ""
    name: str = ""
    folder: str = ""
    present: tuple[str, ...] = ()

    def recipe(self) -> dict[str, Any]:
        """What the results of a file depend on, but for the file itself, for JSON; equal results have equal ones."""
        types = {name: str(kind) for name, kind in self.types.items()}
        return {"sha256": self.sha256, **self.cut.key(), **self.settings.key(), "types": types}


class PartResult(NamedTuple):
    """What became of a task: the file with its results, what was counted in it, and how many others were removed.

    `scored` is None where the results were there already.
    """

    facts: ResultFacts
    scored: ScoredFile | None = None
    removed: int = 0


def score_part(task: ScoreTask, on_progress: OnProgress | None = None) -> PartResult:
    """Score one file into a folder, unless that is done; the results appear whole or not at all.

    Raises
    ------
    QMedoidError
        The file cannot be scored; the message names it.
    """
    path, folder, settings = Path(task.input), Path(task.folder), task.settings
    try:
        before = _state(path)
        # Hashed every time: that size and time of a file are the old ones does not prove that its bytes are.
        facts = ResultFacts(task.name, file_digest(path), full_recipe(task.recipe()))
        output = facts.name
        aside = bad_rows_file(folder, output) if settings.on_bad_row == "skip" else None
        stale = [name for name in task.present if name != output]
        for name in stale:
            # Now, not when the new ones are there: nobody may read both.
            remove_result(folder, name)
        done = result_facts(folder / output)
        if done is not None and (aside is None or aside.is_file()):
            return PartResult(done, None, len(stale))
        if aside is not None:
            aside.parent.mkdir(exist_ok=True)

        def made(scored: ScoredFile) -> ResultFacts:
            return replace(facts, rows=scored.rows, bad_rows=scored.bad_rows, predicted=scored.predicted)

        def foot(scored: ScoredFile) -> dict[str, str]:
            if _state(path) != before:
                raise DataError("the file changed while it was scored. Score it again when it is complete.")
            return made(scored).foot()

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
    return PartResult(made(scored), scored, len(stale))


def _state(path: Path) -> tuple[int, int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


@dataclass
class PartTotals:
    """What became of tasks, added up one by one, in memory that does not grow with their number.

    Attributes
    ----------
    rows, bad_rows, predicted
        Over all results, those that were there already among them.
    now : ScoredFile
        What was counted in the files that were scored now, as if they were one table.
    scored, skipped, removed : int
        Files scored now, files whose results were there, and results of another content that were removed.
    """

    rows: int
    bad_rows: int
    predicted: dict[str, int]
    now: ScoredFile
    scored: int = 0
    skipped: int = 0
    removed: int = 0

    @classmethod
    def none(cls, model: Model) -> "PartTotals":
        """Nothing so far."""
        return cls(0, 0, dict.fromkeys(map(str, model.decision.classes), 0), ScoredFile.none(model))

    def add(self, part: PartResult) -> None:
        """Add what became of one more task."""
        facts = part.facts
        self.rows, self.bad_rows = self.rows + facts.rows, self.bad_rows + facts.bad_rows
        self.predicted = {label: n + facts.predicted.get(label, 0) for label, n in self.predicted.items()}
        self.removed += part.removed
        if part.scored is None:
            self.skipped += 1
        else:
            self.scored += 1
            self.now.add(part.scored, facts.input)


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
    done: it writes the manifest, and returns what was done, for JSON.

    The task has the model, the cut and the settings of all tasks. The shard (K, N) has the inputs at the places K - 1,
    K - 1 + N, … of the sorted names: N of them have each input once. Several processes may work on one folder at the
    same time.

    Raises
    ------
    ParameterError
        The folder holds results of other inputs, of another recipe or, without `resume`, of these inputs; with `force`
        they are removed. Or the folder is one of inputs.
    """
    folder = Path(out)
    files = _inputs(where, folder)
    names = [file.relative_to(_root(where)).as_posix() for file in files]
    task = replace(task, types=_carried_types(files, names, task.settings), folder=str(folder.absolute()))
    part = slice(shard[0] - 1, None, shard[1])
    results = ResultFolder.open(folder)
    removed = results.prepare(task.recipe(), names, names[part], resume=resume, force=force)
    # A list that is there is one of the results that are there.
    (folder / MANIFEST).unlink(missing_ok=True)
    tasks = tuple(
        replace(task, input=str(file.absolute()), name=name, present=results.of_input(name))
        for file, name in zip(files[part], names[part], strict=True)
    )

    def finish(totals: PartTotals) -> ResultFilesDict:
        manifest = results.write_manifest(task.recipe(), names)
        return {
            "inputs": len(names),
            "scored": totals.scored,
            "skipped": totals.skipped,
            "removed": len(removed) + totals.removed,
            "missing": len(manifest["missing"]),
            "rows_scored": totals.now.rows,
            "manifest": str(folder / MANIFEST),
        }

    return tasks, finish


def _inputs(where: str, folder: Path) -> list[Path]:
    """The input files; raise where they cannot be scored one by one into this folder."""
    if where == "-":
        raise ParameterError("A folder as output has a file for every input file, and - is a pipe: give files.")
    files = find_files(where)
    strange = [str(file) for file in files if not file.is_file()]
    if strange:
        raise ParameterError(f"{strange[0]!r} is no regular file, and results in a folder are of files: give -o FILE.")
    place = folder.resolve()
    is_within = Path(where).is_dir() and place.is_relative_to(Path(where).resolve())
    if is_within or any(file.resolve().is_relative_to(place) for file in files):
        raise ParameterError(
            f"The output folder {str(folder)!r} is among the inputs {where!r}: a later run would take results for "
            "inputs. Give a folder outside of them."
        )
    return files


def _root(where: str) -> Path:
    """The folder that names of inputs begin at: it does not depend on which files there are."""
    path = Path(where)
    if path.is_dir():
        return path
    if path.exists():
        return path.parent
    parts = path.parts
    first = next(place for place, part in enumerate(parts) if re.search(r"[*?\[]", part))
    return Path(*parts[:first])


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
