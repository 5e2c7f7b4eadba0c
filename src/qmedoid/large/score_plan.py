"""The files of a table as tasks of scoring: all of them, or the K-th of N shards, into one folder; and their totals."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid.exceptions import ContractError, ParameterError, some_of
from qmedoid.large.result_folder import MANIFEST, ResultFolder
from qmedoid.large.shards import PartResult, Recipe, ScoreTask
from qmedoid.model.table import TableModel
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import common_type
from qmedoid.tables.difference import Difference
from qmedoid.tables.novelty import NoveltyCounts
from qmedoid.tables.score_file import FileTally
from qmedoid.tables.source import find_files, open_table


@dataclass
class PartTotals:
    """What became of tasks, added up one by one, in memory that does not grow with their number.

    Attributes
    ----------
    rows, bad_rows, predicted
        Over all results, those that were there already among them.
    now : FileTally
        What was counted in the files that were scored now, as if they were one table.
    scored, skipped, removed : int
        Files scored now, files whose results were there, and results of another content that were removed.
    """

    rows: int
    bad_rows: int
    predicted: dict[str, int]
    now: FileTally
    scored: int = 0
    skipped: int = 0
    removed: int = 0

    @classmethod
    def none(cls, model: TableModel) -> "PartTotals":
        """Nothing so far."""
        counts = dict.fromkeys(map(str, model.decision.classes), 0)
        return cls(0, 0, counts, FileTally(0, 0, counts, Difference(model.contract), NoveltyCounts(), None))

    def add(self, part: PartResult) -> None:
        """Add what became of one more task."""
        facts = part.facts
        self.rows, self.bad_rows = self.rows + facts.rows, self.bad_rows + facts.bad_rows
        self.predicted = _sums(self.predicted, facts.predicted)
        self.removed += part.removed
        if part.tally is None:
            self.skipped += 1
            return
        self.scored += 1
        now, new = self.now, part.tally
        now.novelty.merge(new.novelty, facts.input)
        log_odds = now.log_odds or new.log_odds
        if log_odds is not None and now.log_odds is not None and new.log_odds is not None:
            log_odds.merge(new.log_odds)
        self.now = FileTally(now.rows + new.rows, now.bad_rows + new.bad_rows, _sums(now.predicted, new.predicted),
                             now.difference.merged(new.difference), now.novelty, log_odds)  # fmt: skip


def _sums(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {label: count + more.get(label, 0) for label, count in counts.items()}


@dataclass(frozen=True)
class ScorePlan:
    """What is to be done for a folder of results.

    Attributes
    ----------
    recipe : Recipe
    folder : Path
    inputs : tuple of str
        Names of all inputs, those of other shards among them.
    tasks : tuple of ScoreTask
        Those of this shard; a task whose results are there does nothing.
    removed : int
        Results that did not belong to the folder, and were removed.
    """

    recipe: Recipe
    folder: Path
    inputs: tuple[str, ...]
    tasks: tuple[ScoreTask, ...]
    removed: int

    def finish(self, totals: PartTotals) -> dict[str, Any]:
        """Write the manifest when all tasks are done; returned is what was done, for JSON."""
        manifest = ResultFolder(self.folder).write_manifest(self.recipe.as_dict(), self.inputs)
        return {
            "inputs": len(self.inputs),
            "scored": totals.scored,
            "skipped": totals.skipped,
            "removed": self.removed + totals.removed,
            "missing": len(manifest["missing"]),
            "rows_scored": totals.now.rows,
            "manifest": str(self.folder / MANIFEST),
        }


def plan_scoring(
    recipe: Recipe,
    where: str,
    out: str | Path,
    *,
    shard: tuple[int, int] = (1, 1),
    resume: bool = False,
    force: bool = False,
    prevalence: bool = False,
) -> ScorePlan:
    """Look at the inputs and at the folder of results, refuse what does not fit, and list what is to be done.

    The shard (K, N) has the inputs at the places K - 1, K - 1 + N, … of the sorted names: N of them have each input
    once. Several processes may work on one folder at the same time.

    Raises
    ------
    ParameterError
        The folder holds results of other inputs, of another recipe or, without `resume`, of these inputs; with `force`
        they are removed. Or the folder is one of inputs.
    """
    folder = Path(out)
    files = _inputs(where, folder)
    names = [file.relative_to(_root(where)).as_posix() for file in files]
    if recipe.carried:
        recipe = replace(recipe, types=carried_types(files, names, recipe))
    part = slice(shard[0] - 1, None, shard[1])
    results = ResultFolder.open(folder)
    removed = results.prepare(recipe.as_dict(), names, names[part], resume=resume, force=force)
    # A list that is there is one of the results that are there.
    (folder / MANIFEST).unlink(missing_ok=True)
    tasks = tuple(
        ScoreTask(recipe, str(file.absolute()), name, str(folder.absolute()), results.of_input(name), prevalence)
        for file, name in zip(files[part], names[part], strict=True)
    )
    return ScorePlan(recipe, folder, tuple(names), tasks, len(removed))


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


def carried_types(files: Sequence[Path], names: Sequence[str], recipe: Recipe) -> Mapping[str, pa.DataType]:
    """The types that carried columns have in the results of all files; text, if a file is a text."""
    found: dict[str, list[pa.DataType]] = {name: [] for name in recipe.carried}
    for file, called in zip(files, names, strict=True):
        with open_table(file, delimiter=recipe.delimiter, decimal=recipe.decimal, tolerant=True) as source:
            for name, kinds in found.items():
                if name not in source.names:
                    hint, has = did_you_mean(name, source.names), some_of([*map(repr, source.names)])
                    raise ContractError(f"{called}: there is no column {name!r} to carry through.{hint} It has: {has}.")
                kind = pa.string() if source.is_text else source.schema.field(name).type
                if kind not in kinds:
                    kinds.append(kind)
    common = {name: common_type(kinds) for name, kinds in found.items()}
    return {name: pa.string() if pa.types.is_null(kind) else kind for name, kind in common.items()}
