"""The cells of the study: its methods, its data, and which cells are run."""

from collections.abc import Iterable
from functools import cache
from typing import Literal

from benchmarks.datasets import Dataset
from benchmarks.quality import card
from benchmarks.quality.card_ours import RIVALS as CIRCUIT_RIVALS
from benchmarks.quality.card_ours import run_payments
from benchmarks.quality.ours import OURS, recipes, run_ours
from benchmarks.quality.protocol import FIRST_SEED, SIZES, SPLITS, Seeds, takes_part
from benchmarks.quality.rivals import RIVALS, run_rival
from benchmarks.quality.tables import Table, available, load_table
from benchmarks.studies.cells import FULL_FRAUD, Cell, StudyMethod, data_digest, load_data
from benchmarks.studies.runner import Study

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


def _at_size(size: int) -> dict[str, StudyMethod]:
    """The methods of a size: changes of ours are made at 4,000 rows alone."""
    rivals = {name: rival for name, rival in RIVALS.items() if size <= rival.most}
    own = {name: settings for name, settings in recipes("tables").items() if name == OURS or size == 4_000}
    return {
        **{name: _ours(settings, run_ours) for name, settings in own.items()},
        **{name: StudyMethod(run_rival, {"name": name, "release": rival.release}) for name, rival in rivals.items()},
    }


STUDY = Study(
    {
        **{str(size): _at_size(size) for size in SIZES},
        "card": {
            **{name: StudyMethod(card.run_raw, {"name": name}) for name in card.METHODS},
            **{name: _ours(settings, run_payments) for name, settings in recipes("card").items()},
            **{
                name: StudyMethod(run_payments, {"settings": recipes("card")[OURS], "rival": name})
                for name in CIRCUIT_RIVALS
            },
        },
    },
    load,
    digest,
)
"""The parts are the sizes of the tables, and the payments."""
ORDER = (4_000, 20_000, 1_000, 100_000)
"""Sizes in the order in which they are run."""


def planned(
    part: Part,
    seeds: Seeds,
    *,
    sets: Iterable[str] = (),
    methods: Iterable[str] = (),
    splits: int | None = None,
    sizes: Iterable[int] = (),
) -> list[Cell]:
    """Cells in the order in which they are run: seed by seed, so that an unfinished run is one of fewer splits.

    Parameters
    ----------
    part : {"tables", "card"}
    seeds : {"report", "third", "second", "first", "tuning"}
    sets : iterable of str, optional
        Only these tables.
    methods : iterable of str, optional
        Only these; "baselines" and "changes" are all of their kind. Changes of the tables are run where asked for.
    splits : int, optional
        Maximum number of splits of each table.
    sizes : iterable of int, optional
        Only these numbers of fit rows.
    """
    wanted, asked = tuple(methods), tuple(sizes) or SIZES
    if part == "card":
        named = [name for name in STUDY.methods[part] if _is_wanted(name, wanted)]
        return [
            Cell(part, FULL_FRAUD, split, seed, name) for split, seed in card.splits(seeds, splits) for name in named
        ]
    wanted = wanted or (OURS, "baselines")
    names = [name for name in available()[0] if not sets or name in sets]
    return [
        Cell(str(size), name, "random", FIRST_SEED[seeds] + place, method)
        for place in range(min(splits or max(SPLITS.values()), max(SPLITS.values())))
        for size in ORDER
        if size in asked and place < SPLITS[size]
        for name in names
        if takes_part(load_table(name), size)
        for method in STUDY.methods[str(size)]
        if _is_wanted(method, wanted)
    ]


def _is_wanted(name: str, wanted: tuple[str, ...]) -> bool:
    kind = "changes" if name.startswith(f"{OURS}, ") else name if name == OURS else "baselines"
    return not wanted or name in wanted or kind in wanted
