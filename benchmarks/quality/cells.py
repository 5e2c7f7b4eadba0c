"""A cell: one method on one split of one set. What its result depends on is its key in the store."""

import ast
import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from benchmarks.quality import card
from benchmarks.quality.baselines import FAMILIES, run_baseline
from benchmarks.quality.card_ours import RIVALS, run_payments
from benchmarks.quality.ours import OURS, recipes, run_ours
from benchmarks.quality.protocol import Encoded, Seeds, encode_split, seeds_of
from benchmarks.quality.tables import available, load_table

import qmedoid

Part = Literal["tables", "card"]
PARTS: tuple[Part, ...] = ("tables", "card")
_HERE, _PACKAGE = Path(__file__).parent, Path(qmedoid.__file__).parent
# Nothing of the package but how LightGBM is made: baselines stay as they are while the package changes.
_OF_BASELINES = (
    *(_HERE / f"{name}.py" for name in ("tables", "protocol", "judging", "baselines")),
    _PACKAGE / "studies" / "baselines.py",
)
_OF_CARD = (_HERE / "card.py",)
_OF_OURS = (
    _HERE / "ours.py",
    _HERE / "card_ours.py",
    *(_PACKAGE / stage for stage in ("kernels", "geometry", "metrics", "optimize", "variational", "methods", "model")),
    *(_PACKAGE / stage for stage in ("calibration", "estimators")),
)


@dataclass(frozen=True, order=True)
class Cell:
    """One fit and what it shows.

    Attributes
    ----------
    part : {"tables", "card"}
    data : str
        A set of the tables, or "creditcard".
    split : str
        "random", or for the payments also "time".
    seed : int
    method : str
    """

    part: Part
    data: str
    split: str
    seed: int
    method: str

    def __str__(self) -> str:
        return f"{self.data}, {self.method}, {self.split} split {self.seed}"

    @property
    def is_ours(self) -> bool:
        """Whether the result depends on our package."""
        return self.method.startswith(OURS)


def planned(
    part: Part, seeds: Seeds, *, sets: Iterable[str] = (), methods: Iterable[str] = (), splits: int | None = None
) -> list[Cell]:
    """Cells in the order in which they are run: small sets first, and within a set split by split.

    Parameters
    ----------
    part : {"tables", "card"}
    seeds : {"report", "second", "first", "tuning"}
    sets : iterable of str, optional
        Only these of the tables.
    methods : iterable of str, optional
        Only these; "baselines" and "changes" stand for all of their kind.
    splits : int, optional
        At most so many of each set.
    """
    wanted = tuple(methods)
    if part == "card":
        named = [name for name in (*card.METHODS, *recipes("card"), *RIVALS) if _is_wanted(name, wanted)]
        return [
            Cell(part, "creditcard", split, seed, name) for split, seed in card.splits(seeds, splits) for name in named
        ]
    named = [name for name in (*FAMILIES, *recipes()) if _is_wanted(name, wanted)]
    names = [name for name in available()[0] if not sets or name in sets]
    return [
        Cell(part, name, "random", seed, method)
        for name in names
        for seed in seeds_of(load_table(name), seeds, splits)
        for method in named
    ]


def _is_wanted(name: str, wanted: tuple[str, ...]) -> bool:
    kind = "changes" if name.startswith(f"{OURS}, ") else name if name == OURS else "baselines"
    return not wanted or name in wanted or kind in wanted


def run_cell(cell: Cell) -> dict[str, Any]:
    """The result of a cell: plain numbers and words."""
    if cell.part == "card":
        payments = card.make_payments(cell.split, cell.seed)
        run_on = run_payments if cell.is_ours else card.run_raw
        return run_on(cell.method, payments, cell.seed)
    run = run_ours if cell.is_ours else run_baseline
    return run(cell.method, _encoded(cell.data, cell.seed), cell.seed)


@lru_cache(1)  # the methods of a split run one after another
def _encoded(name: str, seed: int) -> Encoded:
    return encode_split(load_table(name), seed)


def cell_key(cell: Cell) -> str:
    """SHA-256 of all that a cell's result depends on: itself, the data, the code that makes it, and versions."""
    sources = _OF_BASELINES + (_OF_CARD if cell.part == "card" else ()) + (_OF_OURS if cell.is_ours else ())
    depends_on = {
        "cell": asdict(cell),
        "data": card.data_digest() if cell.part == "card" else load_table(cell.data).digest,
        "settings": recipes(cell.part).get(cell.method),
        "sources": code_digest(sources),
        "versions": _versions(),
    }
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()


@cache
def code_digest(places: tuple[Path, ...]) -> str:
    """SHA-256 of what files and folders do: of Python the syntax tree without docstrings, of the rest every byte."""
    whole = hashlib.sha256()
    for place in places:
        for file in [place] if place.is_file() else sorted(place.rglob("*")):
            if file.suffix == ".py":
                whole.update(without_words(file.read_text()).encode())
            elif file.suffix in (".pyx", ".c", ".h"):
                whole.update(file.read_bytes())
    return whole.hexdigest()


def without_words(source: str) -> str:
    """The syntax tree of some Python, without comments, layout and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [line for line in node.body if not _is_text(line)] or [ast.Pass()]
    return ast.dump(tree)


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


@cache
def _versions() -> dict[str, str]:
    packages = ("numpy", "scipy", "scikit-learn", "lightgbm")
    found = {package: version(package) for package in packages}
    return found | {"python": platform.python_version(), "machine": platform.machine()}
