"""The study on small and medium tables, as ``docs/evidence.md`` and the README show it."""

from marked_sections import Row, number, table
from quality_results import OURS, Record, bullets, enumerated, read, signed

BEST = "best by CV"
SHOWN = {"heart": "heart", "breast_cancer": "breast cancer", "wine": "wine"}
"""Sets that have a goal of their own, and are shown in the README."""


def verdict() -> str:
    """What the tables say, in sentences."""
    return bullets(
        rank_sentence("all"), rank_sentence("never seen"), distance_sentence(), lead_sentence(ahead=False),
        lead_sentence(ahead=True), goal_sentence(),
    )  # fmt: skip


def rank_sentence(group: str) -> str:
    """Average ranks over a group of sets, best first."""
    row = next(row for row in read("ranks") if row["set"].startswith(f"average, {group} ("))
    ranks = sorted((float(rank), method) for method, rank in row.items() if method != "set")
    told = ", ".join(f"{method} {rank:.2f}" for rank, method in ranks)
    count = row["set"].split("(")[1].rstrip(")")
    which = f"all {count} sets" if group == "all" else f"the {count} sets that were {group} in tuning"
    return f"Average rank by macro-F1 over {which} (1 is best): {told}."


def distance_sentence() -> str:
    """How near ours is to the best baseline."""
    found = [row for row in read("paired") if row["rival"] == BEST]
    near = sum(row["within 0.01 or better"] == "yes" for row in found)
    far = [row for row in found if row["worse by more than 0.02"] == "yes"]
    worst = min(found, key=lambda row: float(row["ours − theirs"]))
    said = f"on {len(far)} of them" if far else "on none"
    return (
        "Against the baseline that cross-validation would have chosen on each split, ours is within 0.01 macro-F1 or "
        f"better on {near} of {len(found)} sets, and worse by more than 0.02 {said}; the worst is {worst['set']} "
        f"({signed(worst['ours − theirs'])})."
    )


def lead_sentence(*, ahead: bool) -> str:
    """Where ours is ahead of the chosen baseline, or it of ours, by more than two corrected standard errors."""
    sign = 1.0 if ahead else -1.0
    found = [
        f"{row['set']} ({signed(row['ours − theirs'])} ± {number(float(row['±']), 3)})"
        for row in read("paired")
        if row["rival"] == BEST and row["±"] and sign * float(row["ours − theirs"]) > 2.0 * float(row["±"])
    ]
    who = "Ours is ahead of that baseline" if ahead else "That baseline is ahead of ours"
    return f"{who} by more than two corrected standard errors on {enumerated(found)}."


def goal_sentence() -> str:
    """How many of the goals were met."""
    found = read("goals")
    met = sum(row["met"] == "yes" for row in found)
    return (
        f"Of {len(found)} goals that were set before the run {met} were met and {len(found) - met} not: see the goals."
    )


def macro_f1() -> str:
    """Mean macro-F1, the best of the methods of a row in bold."""
    found = read("macro_f1")
    about = ["set", "group", "rows", "columns", "classes", "splits"]
    methods = [name for name in found[0] if name not in (*about, "source")]
    rows: list[Row] = []
    for row in found:
        single = [float(row[method]) for method in methods if row[method] and method != BEST]
        cells = [_bold(row[method], max(single), method != BEST) for method in methods]
        rows.append([*(row[name] for name in about), *cells])
    return table([*about, *methods], rows, 2)


def _bold(text: str, best: float, may_win: bool) -> str:
    if not text:
        return ""
    shown = number(float(text), 3)
    return f"**{shown}**" if may_win and float(text) == best else shown


def ranks() -> str:
    """Average ranks by group of sets."""
    found = [row for row in read("ranks") if row["set"].startswith("average, ")]
    methods = [name for name in found[0] if name != "set"]
    return table(["sets", *methods], [
        [row["set"].removeprefix("average, "), *(number(float(row[name]), 2) for name in methods)] for row in found
    ])  # fmt: skip


def paired() -> str:
    """Differences on the same splits: a row for each set, a column for each rival."""
    found = read("paired")
    rivals = list(dict.fromkeys(row["rival"] for row in found))
    cells = {(row["set"], row["rival"]): row for row in found}
    rows: list[Row] = [
        [name, *(difference(cells.get((name, rival))) for rival in rivals)]
        for name in dict.fromkeys(row["set"] for row in found)
    ]
    return table(["ours minus", *rivals], rows)


def difference(row: Record | None) -> str:
    """A difference with its corrected error."""
    if row is None:
        return ""
    return signed(row["ours − theirs"], 3) + (f" ± {number(float(row['±']), 3)}" if row["±"] else "")


def ablations() -> str:
    """What one change does to ours."""
    rows: list[Row] = [
        [
            row["change"], row["sets"], row["splits"],
            f"{signed(row['mean change of macro-F1'])} ± {number(float(row['±']))}",
            row["sets it makes worse"], number(float(row["times the fit"]), 2),
        ]
        for row in read("ablations")
    ]  # fmt: skip
    header = ["change", "sets", "splits", "mean change of macro-F1", "sets it makes worse", "times the fit"]
    return table(header, rows)


def calibration() -> str:
    """Calibration errors of ours beside chance, and in units of chance those of others and of perfect scores."""
    found, floor = read("calibration"), {row["set"]: float(row["learnt"]) for row in read("floor")}
    methods = [name for name in dict.fromkeys(row["method"] for row in found) if name != OURS]
    cells = {(row["set"], row["method"]): row for row in found}
    rows: list[Row] = []
    for name in dict.fromkeys(row["set"] for row in found):
        own = cells[name, OURS]
        others = [cells.get((name, method)) for method in methods]
        shown = [number(float(row["ratio"]), 2) if row else "" for row in others]
        figures = (number(float(own[column])) for column in ("ECE", "by chance"))
        rows.append([name, *figures, number(float(own["ratio"]), 2), number(floor[name], 2), *shown])
    own, *ratios = ([float(row["ratio"]) for row in found if row["method"] == method] for method in (OURS, *methods))
    means = (number(sum(values) / len(values), 2) for values in (own, list(floor.values()), *ratios))
    rows.append(["mean", "", "", *means])
    header = ["set", "ECE of ours", "by chance", "ratio", "perfect scores"]
    return table([*header, *(f"ratio, {method}" for method in methods)], rows)


def cost() -> str:
    """Core-seconds of ours and of the tuned baselines, summed over the splits' means of all sets."""
    found = read("cost")
    rows: list[Row] = []
    for method in dict.fromkeys(row["method"] for row in found):
        own = [row for row in found if row["method"] == method]
        tuned = sum(float(row["tuning, core-s"] or 0.0) for row in own) / len(own)
        fits = [float(row["fit, core-s"]) for row in own]
        slowest = max(own, key=lambda row: float(row["fit, core-s"]))
        shown = number(tuned, 1) if tuned else "none"
        rows.append([method, shown, number(sum(fits) / len(fits), 2), f"{number(max(fits), 2)}, {slowest['set']}"])
    return table(["method", "tuning, mean", "fit, mean", "slowest fit"], rows)


def readme_quality() -> str:
    """The study in one small table and two sentences."""
    macro = {row["set"]: row for row in read("macro_f1")}
    averages = {row["set"].removeprefix("average, ").split(" (")[0]: row for row in read("ranks")}
    methods = [name for name in averages["all"] if name != "set"]
    shown = {name: title for name, title in SHOWN.items() if name in macro}
    rows: list[Row] = []
    for method in sorted(methods, key=lambda name: float(averages["all"][name])):
        of_ranks = (number(float(averages[group][method]), 2) for group in ("all", "never seen"))
        rows.append([method, *of_ranks, *(number(float(macro[name][method]), 3) for name in shown)])
    counts = {group: averages[group]["set"].split("(")[1].rstrip(")") for group in ("all", "never seen")}
    header = ["", f"rank, all {counts['all']} sets", f"rank, {counts['never seen']} never seen", *shown.values()]
    return f"{table(header, rows)}\n\n{distance_sentence()}"
