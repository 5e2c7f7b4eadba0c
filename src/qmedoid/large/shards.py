"""Files of a table scored one by one into a folder, here or on other machines: tasks that can be sent and repeated.

A task is done when the file of its results is in the folder. The name of that file is a hash of all that the results
depend on, so that a task that runs twice, or is killed and runs again, leaves the same bytes at the same place.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid.exceptions import DataError, ModelError, QMedoidError
from qmedoid.large.result_folder import ResultFacts, bad_rows_file, full_recipe, remove_result, result_facts
from qmedoid.model.contract import Contract
from qmedoid.model.storage.model_file import load_file
from qmedoid.model.table import TableModel
from qmedoid.tables.bad_rows import OnBadRow
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.score_file import FileTally, tally_file
from qmedoid.tables.scoring import OnProgress


@dataclass(frozen=True)
class Recipe:
    """What the results of a file depend on, but for the file itself.

    Attributes
    ----------
    model : str
        Path of the model file, which must have the hash `sha256`; the path itself changes no result.
    prior : float or None
        Prevalence that probabilities are for; that of the model by default.
    point : float, str, mapping or None
        Operating point, as in `TableModel.at_operating_point`.
    log_odds : float or None
        Log-odds to cut at instead, where the highest scores of the whole table begin.
    carried, add, n_reasons, on_mismatch, on_bad_row, safe_csv, delimiter, decimal
        As in `qmedoid.tables.score_file.tally_file`.
    types : mapping of str to DataType
        Types of carried columns in all files.
    """

    model: str
    sha256: str
    prior: float | None = None
    point: Any = None
    log_odds: float | None = None
    carried: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    n_reasons: int = 3
    on_mismatch: OnMismatch = "error"
    on_bad_row: OnBadRow = "refuse"
    safe_csv: bool = True
    delimiter: str | None = None
    decimal: str | None = None
    types: Mapping[str, pa.DataType] | None = None

    @classmethod
    def of(cls, model: str | Path, **options: Any) -> "Recipe":
        """A recipe with the model that is at this path now."""
        path = str(Path(model).absolute())
        return cls(path, load_file(model).sha256, **options)

    def as_dict(self) -> dict[str, Any]:
        """The recipe for JSON; equal results have equal ones."""
        kinds = {name: str(kind) for name, kind in (self.types or {}).items()}
        log_odds = None if self.log_odds is None else repr(self.log_odds)  # which may be infinite
        others = {name: value for name, value in vars(self).items() if name not in ("model", "safe_csv")}
        safe_csv = self.safe_csv if self.on_bad_row == "skip" else True
        return others | {"types": kinds, "log_odds": log_odds, "safe_csv": safe_csv}

    def table_model(self) -> TableModel:
        """The model with its cut; loaded once in a process."""
        return _loaded(self.model, self.sha256, self.prior, json.dumps(self.point), self.log_odds)


@lru_cache(maxsize=2)
def _loaded(path: str, sha256: str, prior: float | None, point: str, log_odds: float | None) -> TableModel:
    file = load_file(path)
    if file.sha256 != sha256:
        raise ModelError(
            f"The saved model {path!r} is not the one that scoring began with: its SHA-256 begins with "
            f"{file.sha256[:16]} instead of {sha256[:16]}. Put that file back, or begin anew."
        )
    return at_cut(file.model, prior, json.loads(point), log_odds)


def at_cut(model: TableModel, prior: float | None, point: Any, log_odds: float | None) -> TableModel:
    """A copy of a model for another prevalence, with another cut: an operating point, or log-odds."""
    if prior is not None:
        model = replace(model, decision=model.decision.at_priors(prior))
    if log_odds is not None:
        curve = None if model.training is None else model.training.curve
        return replace(model, decision=model.decision.at_log_odds(log_odds, curve))
    return model if point is None else model.at_operating_point(point)


@dataclass(frozen=True)
class ScoreTask:
    """One file to score; it can be pickled, sent to another process and run there.

    Attributes
    ----------
    recipe : Recipe
    input : str
        Path of the file.
    name : str
        Name of the file among all inputs, such as ``a/x.parquet``.
    folder : str
        Path of the folder of results.
    present : tuple of str
        Results of this input that are in the folder now; those of another content are removed.
    prevalence : bool
        Whether log-odds are counted, to estimate the prevalence.
    """

    recipe: Recipe
    input: str
    name: str
    folder: str
    present: tuple[str, ...] = ()
    prevalence: bool = False


@dataclass(frozen=True)
class PartResult:
    """What became of a task: the file with its results, and what was counted in it.

    `tally` is None where the results were there already.
    """

    output: str
    facts: ResultFacts
    tally: FileTally | None = None
    removed: int = 0


def score_part(task: ScoreTask, on_progress: OnProgress | None = None) -> PartResult:
    """Score one file into a folder, unless that is done; the results appear whole or not at all.

    Raises
    ------
    QMedoidError
        The file cannot be scored; the message names it.
    """
    path, folder, recipe = Path(task.input), Path(task.folder), task.recipe
    try:
        before = _state(path)
        facts = ResultFacts(task.name, _digest(path), full_recipe(recipe.as_dict()))
        output = facts.name
        aside = bad_rows_file(folder, output) if recipe.on_bad_row == "skip" else None
        stale = [name for name in task.present if name != output]
        for name in stale:
            # Now, not when the new ones are there: nobody may read both.
            remove_result(folder, name)
        done = result_facts(folder / output)
        if done is not None and (aside is None or aside.is_file()):
            return PartResult(output, done, removed=len(stale))
        if aside is not None:
            aside.parent.mkdir(exist_ok=True)

        def foot(rows: int, bad_rows: int, predicted: dict[str, int]) -> dict[str, str]:
            if _state(path) != before:
                raise DataError("the file changed while it was scored. Score it again when it is complete.")
            return replace(facts, rows=rows, bad_rows=bad_rows, predicted=predicted).foot()

        tally = tally_file(
            recipe.table_model(), str(path), str(folder / output), carried=recipe.carried, add=recipe.add,
            n_reasons=recipe.n_reasons, on_mismatch=recipe.on_mismatch, on_bad_row=recipe.on_bad_row,
            bad_rows=None if aside is None else str(aside), safe_csv=recipe.safe_csv, force=True,
            prevalence=task.prevalence, on_progress=on_progress, types=recipe.types or {}, facts=foot, warns=False,
            delimiter=recipe.delimiter, decimal=recipe.decimal,
        )  # fmt: skip
    except QMedoidError as error:
        error.args = (f"{task.name}: {error}", *error.args[1:])
        raise
    except OSError as error:
        raise DataError(f"{task.name}: {error.strerror or error}.") from error
    made = replace(facts, rows=tally.rows, bad_rows=tally.bad_rows, predicted=tally.predicted)
    return PartResult(output, made, _sendable(tally), len(stale))


def _digest(path: Path) -> str:
    # Hashed every time: that size and time of a file are the old ones does not prove that its bytes are.
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _state(path: Path) -> tuple[int, int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def _sendable(tally: FileTally) -> FileTally:
    """The counts without the contract, which everybody who has the model has, too."""
    return tally._replace(difference=replace(tally.difference, contract=Contract(())))
