"""Which α the search should run with: the choice behind the two presets.

Writes ``benchmarks/results/search_alpha.csv``: mean test accuracy and macro-F1 over splits with seeds 100 to 119, which
no reported figure uses (``paper_splits.py`` reports seeds 0 to 19).
"""

from _timing import RESULTS, write_table
from benchmarks.studies.cells import StudyMethod
from benchmarks.studies.ours import run_printed
from paper_splits import mean_rows, run_default

SEEDS = range(100, 120)
METHODS: dict[str, StudyMethod] = {
    **{f"as printed, search at {a}": StudyMethod(run_printed, {"search_alpha": a}) for a in (0.5, 0.7, 0.8, 0.9, 1.0)},
    **{f"default, search at {a}": StudyMethod(run_default, {"search_alpha": a}) for a in (0.5, 0.75, 1.0)},
}


def main() -> None:
    write_table(RESULTS / "search_alpha.csv", "python benchmarks/search_alpha.py", list(mean_rows(METHODS, SEEDS)))


if __name__ == "__main__":
    main()
