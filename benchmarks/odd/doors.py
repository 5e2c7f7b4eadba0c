"""An odd table through every door: `check`, `fit`, `score` and the estimator."""

import contextlib
import csv
import io
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.odd.base import Odd, plain_file
from benchmarks.odd.judge import Seen, is_read, is_said, look, verdict, write
from benchmarks.odd.scored import Scored, plain
from few_trees import few_trees
from qmedoid import MedoidClassifier
from qmedoid.cli import main
from qmedoid.exceptions import QMedoidError
from qmedoid.tables.source import open_table

READ, SAID, SILENT = "read", "said", "silent"
"""As it is meant; not so, or not surely so, with a sentence; otherwise and without one."""


def command(*arguments: Any) -> tuple[int, str]:
    """A command in this process: its exit code, and its notes and errors."""
    kept, streams = sys.argv, (io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO())
    sys.argv, code = ["qmedoid", *map(str, arguments)], 0
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]), few_trees():
            main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = kept
    return code, streams[1].getvalue()


class Doors(NamedTuple):
    """What each door makes of a table; empty where a door has nothing to do with it."""

    check: str
    fit: str
    score: str
    estimator: str

    @property
    def is_right(self) -> bool:
        """Whether no door is silent."""
        return SILENT not in self


def through(odd: Odd, folder: Path) -> Doors:
    """An odd table through all doors, and beside it the table that it means, in types."""
    seen = look(odd, folder)
    at_check = SILENT if verdict(odd, seen) else READ if is_read(seen, odd.means) else SAID
    if not isinstance(odd.data, bytes):
        return Doors(at_check, "", "", _estimator(odd, seen, odd.data))
    path = write(odd, folder)
    model, twin = folder / "odd.qmedoid", folder / "twin.parquet"
    code, said = command("fit", path, "--target", odd.target, "-o", model, "--method", "evidence")
    estimator = ""
    with contextlib.suppress(QMedoidError), open_table(path) as source:
        estimator = _estimator(odd, seen, source.read()[0])
    if code:
        return Doors(at_check, _named(odd, said), "", estimator)
    pa.parquet.write_table(_twin(seen), twin)
    plain_model = folder / "plain.qmedoid"
    if command("fit", twin, "--target", odd.target, "-o", plain_model, "--method", "evidence")[0]:
        return Doors(at_check, _named(odd, said), "", estimator)
    of_twin = _scores(plain_model, twin, folder)[1]
    code, found = _scores(model, path, folder)
    is_same = code == 0 and _alike(found, of_twin)
    at_fit = READ if is_same and at_check == READ else _named(odd, said)
    code, found = _scores(plain_model, path, folder)
    at_score = READ if code == 0 and _alike(found, of_twin) else SAID if code else _named(odd, str(found))
    return Doors(at_check, at_fit, at_score, estimator)


def _named(odd: Odd, said: str) -> str:
    return SAID if is_said([*said.splitlines(), said], odd.says) else SILENT


def _twin(seen: Seen) -> pa.Table:
    """The cells as they are read, in types; texts are said to be levels, so that 7 stays one."""
    arrays = {name: pa.array(cells) for name, cells in seen.columns.items()}
    return pa.table({name: one.dictionary_encode() if one.type == pa.string() else one for name, one in arrays.items()})


def _scores(model: Path, table: Path, folder: Path) -> tuple[int, Any]:
    out = folder / "scores.csv"
    code, said = command("score", model, table, "-o", out, "--force")
    if code:
        return code, said
    return 0, _read_scores(out)


def _alike(found: Any, other: Any) -> bool:
    return not isinstance(found, str) and np.shape(found) == np.shape(other) and np.allclose(found, other, atol=1e-9)


def _estimator(odd: Odd, seen: Seen, data: Any) -> str:
    """A fit in Python to the data, beside one to the table in types."""
    from qmedoid.tables.arrow import as_table

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            table = as_table(data)
            if odd.target not in table.column_names:
                return ""
            y = table[odd.target].to_pylist()
            rows = [place for place, one in enumerate(seen.columns.get(odd.target, y)) if one is not None]
            X = table.drop_columns([odd.target]).take(pa.array(rows, pa.int64()))
            classes = [seen.columns.get(odd.target, y)[row] for row in rows]
            fitted = _classifier().fit(X, classes)
        except (QMedoidError, ValueError) as error:
            is_ours = isinstance(error, QMedoidError) or str(error).startswith("Unknown label type")  # scikit-learn's
            return SAID if is_ours and is_said([str(error), *seen.said], odd.says) else SILENT
    said = [
        *(str(one.message) for one in caught),
        *getattr(fitted, "notes_", ()),
        *fitted.model_.contract.left_out.values(),
    ]
    if not is_read(seen, odd.means):
        return SAID if is_said([*said, *seen.said], odd.says) else SILENT
    twin = _twin(seen).drop_columns([odd.target]).take(pa.array(rows, pa.int64()))
    same = np.allclose(fitted.predict_proba(X), _classifier().fit(twin, classes).predict_proba(twin), atol=1e-9)
    return READ if same else SILENT


def _classifier() -> MedoidClassifier:
    return MedoidClassifier(method="evidence", refine="never", random_state=0)


def fit_plain(folder: Path) -> tuple[Path, Any]:
    """The model of the plain table that odd ones are scored by, and its scores of that table."""
    path, model = folder / "plain.csv", folder / "scored.qmedoid"
    path.write_bytes(plain_file(plain()))
    code, said = command("fit", path, "--target", "y", "-o", model, "--method", "evidence", "--test", "0")
    assert code == 0, said
    return model, _scores(model, path, folder)[1]


def score_odd(one: Scored, model: Path, expected: Any, folder: Path) -> str:
    """What `score` makes of an odd table: the same decisions, a sentence, or others in silence."""
    path = folder / "scored.csv"
    path.write_bytes(one.data)
    out = folder / "scores.csv"
    out.unlink(missing_ok=True)
    code, said = command("score", model, path, "-o", out, "--force")
    if code == 0 and one.is_same:
        found = _read_scores(out)
        if found.shape == expected.shape and np.allclose(found, expected, atol=1e-9):
            return READ
    return SAID if is_said([said], one.says) else SILENT


def _read_scores(out: Path) -> Any:
    with out.open(encoding="utf-8", newline="") as file:
        return np.array([[float(row[name]) for name in row if name == "margin"] for row in csv.DictReader(file)])
