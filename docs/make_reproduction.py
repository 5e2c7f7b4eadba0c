"""Makes the tables of ``docs/reproduction.md`` from what ``qmedoid reproduce all`` left in ``benchmarks/results``.

``python docs/make_reproduction.py`` writes them between the markers of the page.
``python docs/make_reproduction.py --check`` writes nothing and fails when the page differs from what would be written.
Both only read files; nothing is fitted.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the studies lie beside the documentation

from benchmarks.studies.baselines import SMOTE_SHARE
from benchmarks.studies.cells import PAPER_ALERT_RATE
from benchmarks.studies.paper import PARTS, Plan
from marked_sections import Row, table, write_or_check

Record = dict[str, str]

FOLDER = Path(__file__).parent
PAGE = FOLDER / "reproduction.md"
RESULTS = FOLDER.parent / "benchmarks" / "results" / "reproduce"
COMMAND = "qmedoid reproduce all -o reproduction"
PLAIN = ("LogReg", "LinearSVM", "RBF-SVM", "RandomForest", "LightGBM")
PARTS_OF_FRAUD = ("all rows", "test rows")


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    return {
        "settings": settings(),
        "provenance": provenance(),
        "findings": findings(),
        "counts": counts(),
        "small": small(),
        "plain": plain(),
        "paired_small": paired("macro-F1", is_fraud=False),
        "matched": fraud("fraud_matched", ("PR-AUC", "recall")),
        "fixed": fraud("fraud_fixed", ("precision", "recall")),
        "leak": leak(),
        "kinds": kinds("PR-AUC"),
        "kinds_recall": kinds("recall"),
        "paired_fraud": paired("PR-AUC", is_fraud=True),
        "within": within(),
        "outside": outside(),
        "variants": variants(),
        "readings": readings(),
        "cost": cost(),
    }


def lines(name: str) -> list[str]:
    """The lines of a file of the run; ends the program where it is not there."""
    path = RESULTS / name
    if not path.exists():
        sys.exit(
            f"There is no benchmarks/results/reproduce/{name}. Run '{COMMAND}' and copy findings.txt and the CSV files "
            "of its folder there."
        )
    return path.read_text(encoding="utf-8").splitlines()


def read(name: str) -> list[Record]:
    """The rows of a table of the run; its first line says how it was made."""
    return list(csv.DictReader(lines(f"{name}.csv")[1:]))


def settings() -> str:
    """How much is run, from the plan itself."""
    plans = (Plan(PARTS), Plan(PARTS).quick())
    rows: list[Row] = [
        ["splits of each small data set", *(plan.splits for plan in plans)],
        ["splits of the frauds, by chance", *(plan.fraud_splits for plan in plans)],
        ["splits of the frauds, with equal rows on one side", *(plan.fraud_splits for plan in plans)],
        ["splits of the frauds, in the order of time", 1, 1],
        ["payments", *(f"`{plan.fraud_data}`" for plan in plans)],
        ["open points of the paper read otherwise, too", *("yes" if plan.variants else "no" for plan in plans)],
        ["alert rate that is matched", *2 * [f"{100 * PAPER_ALERT_RATE:.2f} %"]],
        ["frauds per normal row after SMOTE", SMOTE_SHARE, SMOTE_SHARE],
    ]
    return table(["", "`reproduce all`", "`reproduce all --quick`"], rows)


def provenance() -> str:
    """Command, seed and versions, which every file begins with."""
    comments = {lines(path.name)[0] for path in RESULTS.glob("*.csv")} or {lines("test_comparison.csv")[0]}
    if len(comments) > 1:
        sys.exit("The files of benchmarks/results/reproduce are of several runs:\n" + "\n".join(sorted(comments)))
    said = dict(part.split(": ", 1) for part in comments.pop().removeprefix("# ").split(" | "))
    return f"`{said.pop('command')}`, {', '.join(f'{name} {value}' for name, value in said.items())}."


def findings() -> str:
    """The sentences of the run."""
    return "\n".join(f"- {line}" for line in lines("findings.txt"))


def counts() -> str:
    """What is counted, with nothing fitted."""
    found = [row for row in read("summary") if row["counted here"]]
    found += [{"data": fraud_title()} | row for row in read("fraud_counts")]
    names = ["data", "figure", "paper", "counted here"]
    return table(names, [[row[name] for name in names] for row in found], 2)


def small() -> str:
    """Every figure of the small data sets: the paper's, those of our methods, and the best plain classifier."""
    found = read("test_comparison")
    own_titles = [label.removeprefix("ours: ") for label in found[0] if label.startswith("ours: ")]
    own_titles = [title for title in own_titles if title != "paper" and not title.endswith(" ±")]
    rows: list[Row] = []
    for row in found:
        best = max(PLAIN, key=lambda name: float(row[f"{name}: here"]))
        own = [mean(row, f"ours: {title}") for title in own_titles]
        rows.append([row["data"], row["figure"], row["ours: paper"], *own, f"{mean(row, f'{best}: here')}, {best}"])
    return table(["data", "figure", "paper", *own_titles, "best plain classifier"], rows, 2)


def plain() -> str:
    """Accuracy of plain classifiers, the paper's and ours."""
    found = [row for row in read("test_comparison") if row["figure"] == "accuracy"]
    header = [""] + [title for row in found for title in (f"{row['data']}: paper", "here")]
    rows: list[Row] = []
    for name in PLAIN:
        pairs = [(row.get(f"{name}: paper", ""), mean(row, f"{name}: here")) for row in found]
        rows.append([name, *(cell for pair in pairs for cell in pair)])
    return table(header, rows)


def paired(figure: str, *, is_fraud: bool) -> str:
    """A figure of plain classifiers minus that of our default on the same splits, and how many splits they win.

    For the small data sets a column for each of them, for the frauds one for each kind of split.
    """
    own = [row for row in read("paired_differences") if row["figure"] == figure]
    own = [row for row in own if (row["data"] == fraud_title()) == is_fraud]
    return crossed(own, "plain classifier", "split" if is_fraud else "data", difference)


def difference(row: Record) -> str:
    """A paired difference with its corrected error and the splits that the plain classifier wins."""
    return f"{mean(row, 'theirs − ours')} ({row['splits they win']})"


def fraud(name: str, figures: Sequence[str]) -> str:
    """A fraud table and the one after SMOTE: a row for each model, and for each figure the paper's, and ours twice."""
    rows: list[Row] = []
    for found in (read(name), read(f"{name}_smote")):
        by_figure = {row["figure"]: row for row in found}
        titles = dict.fromkeys(label.rsplit(": ", 1)[0] for label in found[0] if ": " in label)
        for title in titles:
            cells = [by_figure["alert rate"][f"{title}: test rows"]]
            for row in (by_figure[figure] for figure in figures):
                cells += [row.get(f"{title}: paper", ""), *(mean(row, f"{title}: {part}") for part in PARTS_OF_FRAUD)]
            if [title, *cells] not in rows:  # ours stands in both tables
                rows.append([title, *cells])
    header = ["", "alert rate, test rows"]
    for figure in figures:
        header += [f"{figure}: paper", *PARTS_OF_FRAUD]
    return table(header, rows)


def leak() -> str:
    """PR-AUC on training, all and test rows."""
    rows: list[Row] = []
    for row in read("fraud_leak"):
        areas = [mean(row, f"PR-AUC: {part}") for part in ("training rows", *PARTS_OF_FRAUD, "all rows − test rows")]
        rows.append([ours(row["method"]), row["share of training rows"], row["PR-AUC: paper, all rows"], *areas])
    header = ["", "share of training rows", "paper, all rows", "training rows", *PARTS_OF_FRAUD, "all − test rows"]
    return table(header, rows)


def kinds(figure: str) -> str:
    """A figure on the test rows of each kind of split, of the methods that were run on all kinds."""
    found = read("fraud_splits")
    kinds_of = {row["method"]: {other["split"] for other in found if other["method"] == row["method"]} for row in found}
    every = set.union(*kinds_of.values())
    on_all = [row | {"method": ours(row["method"])} for row in found if kinds_of[row["method"]] == every]
    return crossed(on_all, "method", "split", lambda row: mean(row, figure))


def within() -> str:
    """How many of the printed figures lie within the spread of ours."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for row in read("within_the_spread"):
        whose = "the paper's method" if is_printed(row) else "plain classifiers"
        groups.setdefault((row["data"], whose), []).append(row)
    rows: list[Row] = []
    for (data, whose), own in groups.items():
        rows.append([data, whose, len(own), sum(row["within the spread"] == "yes" for row in own)])
    return table(["data", "figures of", "printed", "within the spread"], rows, 2)


def outside() -> str:
    """Every printed figure that does not lie within the spread of ours."""
    rows: list[Row] = [
        [row["data"], ours(row["method"]), row["figure"], row["paper"], row["mean"], f"{row['low']} to {row['high']}"]
        for row in read("within_the_spread")
        if row["within the spread"] == "no"
    ]
    return table(["data", "method", "figure", "paper", "mean here", "range here"], rows, 3) if rows else "None."


def variants() -> str:
    """The paper preset with its open points read otherwise."""
    rows: list[Row] = []
    for row in read("variants"):
        cells: Row = [row["data"], row["reading"].removeprefix("printed, ")]
        for figure in ("accuracy", "macro-F1"):
            cells += [row[f"{figure}: paper"], mean(row, f"{figure}: here"), row[f"{figure}: within the spread"]]
        rows.append(cells)
    header = ["data", "reading"]
    for figure in ("accuracy", "macro-F1"):
        header += [f"{figure}: paper", "here", "within"]
    return table(header, rows, 2)


def readings() -> str:
    """The paper's own method on the frauds, read in several ways: mean, range, and whether the paper's fits."""
    found = read("fraud_readings")
    figures = list(dict.fromkeys(label.rsplit(": ", 1)[0] for label in found[0] if label.endswith(": fits")))
    rows: list[Row] = []
    for row in found:
        cells = []
        for figure in figures:
            low, high, fits = (row[f"{figure}: {part}"] for part in ("low", "high", "fits"))
            cells.append(row[f"{figure}: mean"] + (f" ({low} to {high}) {fits}" if low else ""))
        rows.append([row["reading"].removeprefix("printed, "), *cells])
    return table(["reading", *figures], rows)


def cost() -> str:
    """Seconds and memory of the cells, by data set."""
    by_data: dict[str, list[Record]] = {}
    for row in read("cost"):
        by_data.setdefault(row["data"], []).append(row)
    rows: list[Row] = []
    for data, own in by_data.items():
        longest = max(own, key=lambda row: float(row["seconds of a cell: most"]))
        peaks = [float(row["peak of its process, MB"]) for row in own if row["peak of its process, MB"]]
        rows.append([
            data,
            f"{sum(int(row['cells']) for row in own):,}",
            f"{sum(float(row['seconds in all']) for row in own) / 60:.1f}",
            f"{longest['seconds of a cell: most']} s, {longest['method']}",
            f"{max(peaks):,.0f}" if peaks else "",
        ])  # fmt: skip
    return table(["data", "cells", "minutes in all", "longest cell", "peak of a process, MB"], rows)


def fraud_title() -> str:
    """What the run calls the frauds: the data set that has no place among the small ones."""
    of_small = {row["data"] for row in read("test_comparison")}
    return next(row["data"] for row in read("paired_differences") if row["data"] not in of_small)


def ours(method: str) -> str:
    """What a page calls a method."""
    first, *rest = method.split(", ")
    titles = {"printed": "ours as printed", "convex": "ours, convex", "default": "ours by default"}
    return ", ".join([titles.get(first, first), *rest])


def is_printed(row: Record) -> bool:
    """Whether a row is about the paper's own method."""
    return row["method"].split(", ")[0] == "printed"


def mean(row: Mapping[str, str], column: str) -> str:
    """A mean with its error, where there is one, and a true minus sign."""
    error = row.get(f"{column} ±", "")
    return row[column].replace("-", "−") + (f" ± {error}" if error else "")


def crossed(found: Sequence[Record], down: str, across: str, cell: Callable[[Record], str]) -> str:
    """A table with a row for each value of one column and a column for each of another."""
    cells = {(row[down], row[across]): cell(row) for row in found}
    columns = dict.fromkeys(row[across] for row in found)
    names = dict.fromkeys(row[down] for row in found)
    return table(["", *columns], [[name, *(cells.get((name, column), "") for column in columns)] for name in names])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    write_or_check(PAGE, sections(), check=arguments.check)
