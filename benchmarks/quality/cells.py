"""The cells of the study: its methods, its data, and which cells are run."""

from collections.abc import Iterable
from functools import cache
from typing import Literal

from benchmarks.quality import card
from benchmarks.quality.baselines import FAMILIES, run_baseline
from benchmarks.quality.card_ours import RIVALS, run_payments
from benchmarks.quality.ours import OURS, recipes, run_ours
from benchmarks.quality.protocol import Seeds, seeds_of
from benchmarks.quality.tables import Table, available, load_table

from qmedoid.studies.catalog import FULL_FRAUD, data_digest, load_data
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.runner import Study
from qmedoid.studies.splits import Cell, StudyMethod

Part = Literal["tables", "card"]
PARTS: tuple[Part, ...] = ("tables", "card")


def load(name: str) -> Table | Dataset:
    """A table of the study, or the payments."""
    return load_data(name) if name == FULL_FRAUD else load_table(name)


@cache
def digest(name: str) -> str:
    """SHA-256 of a table, or of the payments."""
    return data_digest(name) if name == FULL_FRAUD else load_table(name).digest


def _ours(settings: dict[str, object], run: object) -> StudyMethod:
    return StudyMethod(run, {"settings": settings})  # type: ignore[arg-type]


STUDY = Study(
    {
        "tables": {
            **{name: StudyMethod(run_baseline, {"name": name}) for name in FAMILIES},
            **{name: _ours(settings, run_ours) for name, settings in recipes("tables").items()},
        },
        "card": {
            **{name: StudyMethod(card.run_raw, {"name": name}) for name in card.METHODS},
            **{name: _ours(settings, run_payments) for name, settings in recipes("card").items()},
            **{name: StudyMethod(run_payments, {"settings": recipes("card")[OURS], "rival": name}) for name in RIVALS},
        },
    },
    load,
    digest,
)


def planned(
    part: Part, seeds: Seeds, *, sets: Iterable[str] = (), methods: Iterable[str] = (), splits: int | None = None
) -> list[Cell]:
    """Cells in the order in which they are run: small sets first, and within a set split by split.

    Parameters
    ----------
    part : {"tables", "card"}
    seeds : {"report", "second", "first", "tuning"}
    sets : iterable of str, optional
        Only these tables.
    methods : iterable of str, optional
        Only these; "baselines" and "changes" are all of their kind.
    splits : int, optional
        Maximum number of splits of each set.
    """
    wanted = tuple(methods)
    named = [name for name in STUDY.methods[part] if _is_wanted(name, wanted)]
    if part == "card":
        return [
            Cell(part, FULL_FRAUD, split, seed, name) for split, seed in card.splits(seeds, splits) for name in named
        ]
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
