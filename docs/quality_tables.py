"""The study on tables of all sizes, as ``docs/quality.md`` and the README show it."""

from collections.abc import Mapping

from marked_sections import Row, number, table
from quality_results import OURS, Record, bullets, read, signed

SMALL, LARGE = "≤ 4,000", "≥ 20,000"
SIZES = (SMALL, LARGE)
STRONG = ("CatBoost", "LightGBM")
MEASURES = ("log-loss", "ROC-AUC", "macro-F1, likeliest class")
"""The measures that goals are set for; the files have the others, too."""
LESS = ("log-loss",)
"""Measures of which less is better."""
ABOUT = ("measure", "size", "group", "among", "tables", "critical difference", "Friedman p")


def verdict() -> str:
    """What the tables say, in sentences."""
    of_ranks = [rank_sentence(size, measure) for size in SIZES for measure in MEASURES]
    return bullets(*filter(None, of_ranks), *filter(None, map(strong_sentence, SIZES)), goal_sentence())


def rank_sentence(size: str, measure: str) -> str:
    """Average ranks of all methods at a size, best first; empty where there are none."""
    row = _ranks(size, measure, "all", "all")
    if row is None:
        return ""
    ranks = sorted((float(row[name]), name) for name in methods(row))
    told = ", ".join(f"{name} {rank:.2f}" for rank, name in ranks)
    return f"{size} rows, average rank by {measure} over {row['tables']} tables (1 is best): {told}."


def strong_sentence(size: str) -> str:
    """How often ours has the smaller log-loss than each of the strong rivals; empty where it was not compared."""
    found = {row["rival"]: row for row in _over_tables(size, "log-loss") if row["rival"] in STRONG}
    told = [
        f"than {name}'s on {row['tables we win']} of {row['tables']} tables (Wilcoxon p {float(row['Wilcoxon p']):.2g})"
        for name, row in found.items()
    ]
    return f"{size} rows: the log-loss of ours is smaller {' and '.join(told)}." if told else ""


def goal_sentence() -> str:
    """How many of the goals were met."""
    found = read("goals")
    met = sum(row["met"] == "yes" for row in found)
    return f"Of {len(found)} goals {met} were met and {len(found) - met} not: see the goals."


def methods(row: Record) -> list[str]:
    """Methods that a line of ranks or means has a figure of."""
    return [name for name, text in row.items() if name not in (*ABOUT, *ABOUT_SET) and text]


ABOUT_SET = ("set", "fit rows", "columns", "classes", "splits")


def _ranks(size: str, measure: str, group: str, among: str) -> Record | None:
    wanted = {"size": size, "measure": measure, "group": group, "among": among}
    return next((row for row in read("ranks") if wanted.items() <= row.items()), None)


def _over_tables(size: str, measure: str) -> list[Record]:
    wanted = {"size": size, "measure": measure, "group": "all"}
    return [row for row in read("over_tables") if wanted.items() <= row.items()]


def ranks(among: str) -> str:
    """Average ranks by measure, range of sizes and group of tables; the best of a row in bold."""
    found = [row for row in read("ranks") if row["among"] == among and row["size"] in SIZES]
    named = [name for name in found[0] if name not in ABOUT and any(row[name] for row in found)]
    rows: list[Row] = []
    for row in found:
        best = min(float(row[name]) for name in named if row[name])
        shown = [_bold(row[name], best, 2) for name in named]
        critical = number(float(row["critical difference"]), 2)
        rows.append([row["measure"], row["size"], row["group"], row["tables"], *shown, critical])
    return table(["measure", "rows", "group", "tables", *named, "critical difference"], rows, 3)


def _bold(text: str, best: float, digits: int) -> str:
    if not text:
        return ""
    shown = number(float(text), digits)
    return f"**{shown}**" if float(text) == best else shown


def over_tables() -> str:
    """Ours against every rival over all tables: mean difference with its interval, wins and Wilcoxon's test."""
    rows: list[Row] = []
    for size in SIZES:
        for measure in MEASURES:
            for row in _over_tables(size, measure):
                low, high = (signed(row[name]) for name in ("low", "high"))
                mean = f"{signed(row['ours better by'])} ({low} to {high})"
                wins = f"{row['tables we win']} of {row['tables']}"
                rows.append([size, measure, row["rival"], mean, wins, f"{float(row['Wilcoxon p']):.2g}"])
    return table(
        ["rows", "measure", "rival", "ours better by (95 % of tables)", "tables we win", "Wilcoxon p"], rows, 3
    )


def rival_wins() -> str:
    """Tables on which a rival is better in the mean: the best of them, and how many others are."""
    rows: list[Row] = []
    for row in read("rival_wins"):
        if row["measure"] in MEASURES:
            gap = number(float(row["theirs better by"])) + (f" ± {number(float(row['±']))}" if row["±"] else "")
            ahead = row["rivals ahead"].count(",") + 1
            shown = [number(float(row[name])) for name in ("theirs", "ours")]
            about = [row["measure"], row["set"], f"{int(row['size']):,}", row["group"], row["best rival"]]
            rows.append([*about, *shown, gap, row["more than two errors"], ahead])
    header = ["measure", "table", "rows", "group", "best rival", "theirs", "ours", "better by"]
    return table([*header, "more than two errors", "rivals ahead"], rows, 5)


def means(measure: str) -> str:
    """Means over splits by table and size, the best of a row in bold."""
    found = [row for row in read("means") if row["measure"] == measure]
    named = [name for name in found[0] if name not in (*ABOUT, *ABOUT_SET)]
    rows: list[Row] = []
    for row in found:
        known = [float(row[name]) for name in named if row[name]]
        best = min(known) if measure in LESS else max(known)
        about = [row["set"], row["group"], f"{int(row['fit rows']):,}", row["columns"], row["classes"], row["splits"]]
        rows.append([*about, *(_bold(row[name], best, 4 if measure in LESS else 3) for name in named)])
    return table(["table", "group", "fit rows", "columns", "classes", "splits", *named], rows, 2)


def calibration() -> str:
    """Mean calibration error in units of chance, by size and method."""
    found = read("calibration")
    named = list(dict.fromkeys(row["method"] for row in found))
    rows: list[Row] = []
    for size in sorted({int(row["size"]) for row in found}):
        at_size = [row for row in found if int(row["size"]) == size]
        ratios = {name: [float(row["ratio"]) for row in at_size if row["method"] == name] for name in named}
        shown = [number(sum(own) / len(own), 2) if own else "" for own in ratios.values()]
        rows.append([f"{size:,}", max(map(len, ratios.values())), *shown])
    return table(["rows", "tables", *named], rows, 0)


def cost() -> str:
    """Core-seconds of the methods by size, and of tuning and fit together in units of LightGBM's."""
    names = ("tuning, core-s", "fit, core-s", "prediction, core-s", "slowest, core-s")
    ratios = ("times LightGBM, median", "times LightGBM, worst")
    rows: list[Row] = []
    for row in read("cost"):
        if row["size"] not in SIZES:
            times = [number(float(row[name]), 2) for name in names]
            times += [number(float(row[name]), 2) if row[name] else "" for name in ratios]
            rows.append([row["size"], row["method"], row["tables"], *times])
    return table(["rows", "method", "tables", *names, *ratios], rows, 2)


def ablations() -> str:
    """What one change does to ours."""
    found = read("ablations")
    columns = [name for name in found[0] if name.endswith((": ours better by", ": tables it makes worse"))]
    rows: list[Row] = [
        [
            row["change"], row["tables"],
            *(signed(row[name]) if name.endswith("by") else row[name] for name in columns),
            number(float(row["times the fit"]), 2),
        ]
        for row in found
    ]  # fmt: skip
    return table(["change", "tables", *columns, "times the fit"], rows)


README_METHODS = (OURS, "CatBoost", "LightGBM", "XGBoost", "EBM")
"""The rows of the small table; the page has all methods."""


def readme_quality() -> str:
    """The study in one small table: ranks and the cost of a fit, then who wins how often."""
    wanted = [*((SMALL, measure) for measure in MEASURES), (LARGE, MEASURES[0])]
    lines = [(size, measure, row) for size, measure in wanted if (row := _ranks(size, measure, "all", "all"))]
    spent = _cost("fit")
    header = ["average rank (tables)"]
    header += [f"{measure.split(',')[0]}, {size} rows ({row['tables']})" for size, measure, row in lines]
    header += [f"core-s of a fit, {size} rows" for size in SIZES]
    rows: list[Row] = [
        [
            name,
            *(number(float(row[name]), 2) if row[name] else "" for _, _, row in lines),
            *(core_seconds(spent[size, name]) if (size, name) in spent else "" for size in SIZES),
        ]
        for name in README_METHODS
    ]
    told = [sentence for size in SIZES if (sentence := winner_sentence(size))]
    return "\n\n".join([table(header, rows), " ".join([*told, cost_sentence(spent)])])


def core_seconds(text: str) -> str:
    """Core-seconds with two digits that count, or whole ones."""
    value = float(text)
    return f"{value:,.0f}" if value >= 10 else f"{value:#.2g}"


def winner_sentence(size: str) -> str:
    """How often each method has the smallest log-loss of all; empty where there are no tables."""
    found = {}
    for row in read("means"):
        rows = int(row["size"])
        if row["measure"] != MEASURES[0] or (size == SMALL) != (rows <= 4000):
            continue
        key = row["set"] if size == SMALL else (row["set"], rows)  # small tables count once, at their larger size
        if key not in found or rows > int(found[key]["size"]):
            found[key] = row
    if not found:
        return ""
    best = [min(methods(row), key=lambda name: float(row[name])) for row in found.values()]
    wins = sorted(((best.count(name), name) for name in set(best) - {OURS}), key=lambda one: (-one[0], one[1]))
    others = ", ".join(f"{name} on {count}" for count, name in wins)
    return f"{size} rows: ours has the smallest log-loss of all on {best.count(OURS)} of {len(best)} tables; {others}."


def cost_sentence(spent: Mapping[tuple[str, str], str]) -> str:
    """What a fit of ours costs beside one fit of each of the strong rivals."""
    said = []
    for size, where in ((SMALL, "up to 4,000 rows"), (LARGE, "from 20,000 rows on")):
        light, cat = (float(spent[size, OURS]) / float(spent[size, name]) for name in ("LightGBM", "CatBoost"))
        said.append(f"{light:.0f} times one LightGBM and {cat:.1f} times one CatBoost {where}")
    return f"In core time a fit of ours is {'; '.join(said)}."


def questions_cost() -> str:
    """What fits and predictions of ours cost beside the strong rivals, for those who ask."""
    scored = _cost("prediction")
    rows: list[Row] = []
    for size in SIZES:
        for name in (OURS, *STRONG):
            rows.append([size, name, core_seconds(_cost("fit")[size, name]), core_seconds(scored[size, name])])
    shown = table(["rows", "method", "one fit, core-s", "scoring up to 10,000 rows, core-s"], rows, 2)
    return f"{cost_sentence(_cost('fit'))} Means over the tables of [the study](quality.md#time):\n\n{shown}"


def _cost(what: str) -> dict[tuple[str, str], str]:
    """Mean core-seconds of a fit or a prediction, by size and method; tuning is not counted."""
    return {(row["size"], row["method"]): row[f"{what}, core-s"] for row in read("cost")}
