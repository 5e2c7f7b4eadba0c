"""The study on the credit-card payments, as ``docs/fraud-study.md`` and the README show it."""

from collections.abc import Callable, Sequence

from marked_sections import Row, number, table
from quality_results import OURS, Record, bullets, read, signed

CIRCUIT = "its circuit"
"""What the names of rivals of the circuit have in common."""
COLUMNS, FIGURES = ("pr_auc", "recall"), ("PR-AUC", "recall at 1.31 % alerts")
"""What is compared: columns of the cells, and what they are called."""


def means() -> list[Record]:
    """Methods by kind of split, those that were run on any."""
    return [row for row in read("card") if row["splits"] != "0"]


def card() -> str:
    """Ours and the baselines on the payments."""
    found = [row for row in means() if not row["method"].startswith(f"{OURS}, ")]
    rows: list[Row] = []
    for row in found:
        speed = f"{float(row['rows_per_s']):,.0f}" if row["rows_per_s"] else ""
        figures = [number(float(row[name]), 3) for name in ("pr_auc", "recall", "roc_auc")]
        rows.append([row["split"], row["method"], row["splits"], *figures, number(float(row["fit_s"]), 0), speed])
    header = ["split", "method", "splits", *FIGURES, "ROC-AUC", "fit, core-s", "rows per core-s"]
    return table(header, rows, 2)


def card_differences(wanted: Callable[[str], bool]) -> str:
    """Ours minus some of the others, with intervals, for both figures and both kinds of split."""
    whole = whole_pairs()
    kinds = list(dict.fromkeys(row["split"] for row in whole))
    cells = {(row["rival"], row["split"], row["figure"]): row for row in whole}
    rivals = [name for name in dict.fromkeys(row["rival"] for row in whole) if wanted(name)]
    rows: list[Row] = [
        [
            rival.removeprefix(f"{OURS}, "),
            *(interval(cells.get((rival, kind, figure))) for kind in kinds for figure in FIGURES),
        ]
        for rival in rivals
    ]
    return table(["ours minus", *(f"{kind}: {figure}" for kind in kinds for figure in FIGURES)], rows)


def card_changes() -> str:
    """Ours minus ours with one thing changed, on the splits that both were run on, with their number."""
    cells = {(row["method"], row["split"], row["seed"]): row for row in read("card_cells")}
    kinds = list(dict.fromkeys(kind for _, kind, _ in cells))
    rows: list[Row] = []
    for change in dict.fromkeys(method for method, _, _ in cells if is_change(method)):
        line: Row = [change.removeprefix(f"{OURS}, ")]
        for kind in kinds:
            pairs = [
                (cells[OURS, kind, seed], row)
                for (method, split, seed), row in cells.items()
                if (method, split) == (change, kind) and (OURS, kind, seed) in cells
            ]
            line.append(len(pairs))
            for name in COLUMNS:
                gaps = [float(own[name]) - float(other[name]) for own, other in pairs]
                line.append(signed(str(sum(gaps) / len(gaps))) if gaps else "")
        rows.append(line)
    if not rows:
        return "Not measured with this version yet: `python -m benchmarks.quality run --part card --methods changes`."
    return table(["change", *(title for kind in kinds for title in (f"{kind}: splits", *FIGURES))], rows)


def whole_pairs() -> list[Record]:
    """Paired lines of the payments: of several splits of a kind their mean, else the only one."""
    found = read("card_paired")
    averaged = {row["split"] for row in found if row["seed"] == "mean"}
    return [row for row in found if row["seed"] == "mean" or row["split"] not in averaged]


def interval(row: Record | None) -> str:
    """A difference with its interval; in bold where that leaves out 0."""
    if row is None:
        return ""
    text = f"{signed(row['ours − theirs'])} ({signed(row['low'])} to {signed(row['high'])})"
    return text if row["verdict"] == "level" else f"**{text}**"


def is_plain(rival: str) -> bool:
    """Whether a method is a baseline on raw columns."""
    return rival != OURS and not rival.startswith(f"{OURS}, ")


def is_of_circuit(rival: str) -> bool:
    """Whether a rival differs from ours in the circuit alone."""
    return rival.startswith(f"{OURS}, ") and CIRCUIT in rival


def is_change(rival: str) -> bool:
    """Whether a rival is ours with something else changed."""
    return rival.startswith(f"{OURS}, ") and not is_of_circuit(rival)


def card_sentences(rivals: Sequence[str]) -> str:
    """Paired comparisons with some rivals in sentences."""
    said = []
    for row in whole_pairs():
        if row["rival"] in rivals:
            name = row["rival"].removeprefix(f"{OURS}, ")
            name = f"ours {name}" if row["rival"] != name else name
            verdicts = {"level": "level", "ours better": "ours is better", "ours worse": "ours is worse"}
            said.append(
                f"{row['split'].capitalize()} split{'s' if row['seed'] == 'mean' else ''}, {row['figure']}: ours minus "
                f"{name} is {signed(row['ours − theirs'])} (95 %: {signed(row['low'])} to {signed(row['high'])}), "
                f"{verdicts[row['verdict']]}."
            )
    return bullets(*said)


def card_probabilities() -> str:
    """Calibration, and predicted over true frauds before and after there are 50 times as many."""
    rows: list[Row] = []
    for row in means():
        if row["method"].startswith(f"{OURS}, "):
            continue
        ratio = float(row["ece"]) / float(row["chance_ece"])
        shifted = ("predicted_over_true", "shifted_unaware", "shifted_told", "shifted_estimated")
        rows.append([row["split"], row["method"], f"{float(row['ece']):.2g}", number(ratio, 2),
                     *(number(float(row[name]), 3) for name in shifted)])  # fmt: skip
    header = ["split", "method", "ECE", "ECE / chance", "as it is", "50 ×, unaware", "50 ×, given", "50 ×, estimated"]
    return table(header, rows, 2)


def card_alerts() -> str:
    """What the alert rate that was asked for came to on test rows."""
    said = []
    for row in means():
        if row["method"] == OURS:
            kind = f"{row['split'].capitalize()} split{'s' if row['splits'] != '1' else ''}"
            alerts, found = (100 * float(row[name]) for name in ("own_alerts", "own_recall"))
            said.append(
                f"{kind}: `alert_rate=0.0131` alerts on {alerts:.2f} % of the test rows and finds {found:.1f} % of the "
                "frauds."
            )
    return bullets(*said)


def readme_frauds() -> str:
    """Ours against LightGBM on the payments, a line for each kind of split."""
    return bullets(*_against("LightGBM, raw columns"))


def readme_circuit() -> str:
    """Ours against ours without its circuit, a line for each kind of split."""
    return bullets(*_against(f"{OURS}, without {CIRCUIT}"))


def _against(rival: str) -> list[str]:
    cells = {(row["method"], row["split"]): row for row in means()}
    pairs = {(row["rival"], row["split"], row["figure"]): row for row in whole_pairs()}
    said = []
    for kind in dict.fromkeys(split for _, split in cells):
        both = cells[OURS, kind], cells[rival, kind]
        figures = [
            f"{figure} {' against '.join(number(float(row[name]), 3) for row in both)}, "
            f"{interval(pairs.get((rival, kind, figure)))}"
            for name, figure in zip(COLUMNS, FIGURES, strict=True)
        ]
        many = "s" if both[0]["splits"] != "1" else ""
        said.append(f"{kind.capitalize()} split{many}: {'; '.join(figures)}.")
    return said
