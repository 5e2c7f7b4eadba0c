"""Fills ``docs/evidence.md``, ``docs/rare-events.md`` and the README with what the study of quality left.

``python docs/make_quality.py`` writes tables and sentences between the markers of these pages, from the CSV files of
``benchmarks/results/quality``. ``python docs/make_quality.py --check`` writes nothing and fails when a page differs
from what would be written. Both only read files; nothing is fitted.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from marked_sections import write_or_check
from quality_frauds import (
    CIRCUIT,
    card,
    card_alerts,
    card_changes,
    card_differences,
    card_probabilities,
    card_sentences,
    is_of_circuit,
    is_plain,
    readme_frauds,
)
from quality_results import OURS, provenance, runs, whole
from quality_tables import (
    ablations,
    calibration,
    cost,
    macro_f1,
    paired,
    ranks,
    readme_quality,
    verdict,
)

FOLDER = Path(__file__).parent
EVIDENCE, RARE, README = FOLDER / "evidence.md", FOLDER / "rare-events.md", FOLDER.parent / "README.md"

PAGES: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    EVIDENCE: {
        "provenance": lambda: provenance("cells"),
        "verdict": verdict,
        "ranks": ranks,
        "macro_f1": macro_f1,
        "paired": paired,
        "goals": lambda: whole("goals"),
        "runs": lambda: runs("goals"),
        "again": lambda: whole("again", 1),
        "ablations": ablations,
        "calibration": calibration,
        "cost": cost,
    },
    RARE: {
        "card_provenance": lambda: provenance("card"),
        "card": card,
        "card_raw": lambda: card_differences(is_plain),
        "card_alerts": card_alerts,
        "circuit": lambda: card_differences(is_of_circuit),
        "circuit_said": lambda: card_sentences([f"{OURS}, without {CIRCUIT}"]),
        "card_changes": card_changes,
        "card_probabilities": card_probabilities,
        "card_goals": lambda: whole("card_goals"),
        "card_runs": lambda: runs("card_goals"),
    },
    README: {"quality": readme_quality, "frauds": readme_frauds},
}
"""What is written between the markers of each page."""


OTHERS: Mapping[Path, tuple[str, ...]] = {
    EVIDENCE: ("tiny",),
    RARE: ("budget", "why", "shifted"),
    README: (),
}
"""Sections that ``make_command_line.py`` fills."""


def sections() -> dict[Path, dict[str, str]]:
    """The marked sections of all pages."""
    return {page: {name: make() for name, make in made.items()} for page, made in PAGES.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    for page, made in sections().items():
        write_or_check(page, made, check=arguments.check, others=OTHERS[page])
