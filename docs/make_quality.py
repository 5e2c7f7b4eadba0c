"""Fills the README, ``docs/quality.md``, ``fraud-study.md`` and ``faq.md`` with what the study of quality left.

``python docs/make_quality.py`` writes tables and sentences between the markers of these pages, from the CSV files of
``benchmarks/results/quality``. A section whose files are not there yet stays as it is, and the script says so.
``python docs/make_quality.py --check`` writes nothing and fails when a page differs from what would be written. Both
only read files; nothing is fitted.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

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
    readme_circuit,
    readme_frauds,
)
from quality_results import OURS, NotMeasured, provenance, runs, whole
from quality_tables import (
    MEASURES,
    ablations,
    calibration,
    cost,
    means,
    over_tables,
    questions_cost,
    ranks,
    readme_quality,
    rival_wins,
    verdict,
)

FOLDER = Path(__file__).parent
QUALITY, FRAUDS, README = FOLDER / "quality.md", FOLDER / "fraud-study.md", FOLDER.parent / "README.md"
QUESTIONS = FOLDER / "faq.md"

PICTURE = "../benchmarks/results/quality/ranks.svg"

PAGES: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    QUALITY: {
        "provenance": lambda: provenance("cells"),
        "verdict": verdict,
        "goals": lambda: whole("goals"),
        "ranks": lambda: f"{ranks('all')}\n\n![Average ranks, and methods that are level]({PICTURE})",
        "ranks_of_three": lambda: ranks("three"),
        "over_tables": over_tables,
        "rival_wins": rival_wins,
        "log_loss": lambda: means(MEASURES[0]),
        "roc_auc": lambda: means(MEASURES[1]),
        "macro_f1": lambda: means(MEASURES[2]),
        "calibration": calibration,
        "cost": cost,
        "ablations": ablations,
        "again": lambda: whole("again", 1),
    },
    FRAUDS: {
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
    README: {"quality": readme_quality, "frauds": readme_frauds, "circuit": readme_circuit},
    QUESTIONS: {"cost": questions_cost},
}
"""What is written between the markers of each page."""


class Made(NamedTuple):
    """The sections of a page that can be made, and why others cannot."""

    sections: dict[str, str]
    waiting: dict[str, str]


def sections() -> dict[Path, Made]:
    """The marked sections of all pages."""
    return {page: _made(makers) for page, makers in PAGES.items()}


def _made(makers: Mapping[str, Callable[[], str]]) -> Made:
    made = Made({}, {})
    for name, make in makers.items():
        try:
            made.sections[name] = make()
        except NotMeasured as missing:
            made.waiting[name] = str(missing)
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    for page, made in sections().items():
        for name, why in made.waiting.items():
            print(f"{page.name}: {name} stays as it is. {why}")
        write_or_check(page, made.sections, check=arguments.check, others=made.waiting)
