"""Results of cells that nobody ran: numbers by chance, different for every method, split and figure."""

from functools import cache

import numpy as np
from benchmarks.studies import ours
from benchmarks.studies.cells import BUDGETS, CHOICES, FIXED, RATES, Cell, load_data, paper_split
from benchmarks.studies.paper import NEAREST, STUDY, Plan
from benchmarks.studies.results import StudyResults

ALPHAS = [0.0, 0.25, 0.5, 1.0]


def made_up(plan: Plan, seed: int = 0) -> StudyResults:
    """A result for every cell of a plan."""
    rng = np.random.default_rng(seed)
    return StudyResults({cell: (_small if cell.part == "small" else _fraud)(cell, rng) for cell in plan.cells})


def only(results: StudyResults, *methods: str) -> StudyResults:
    """The results of some methods."""
    return StudyResults({cell: result for cell, result in results.by_cell.items() if cell.method in methods})


def expanded(confusion):
    """True and decided codes of the rows that a confusion matrix counts."""
    matrix = np.array(confusion)
    truth, decided = (codes.ravel() for codes in np.indices(matrix.shape))
    return np.repeat(truth, matrix.ravel()), np.repeat(decided, matrix.ravel())


def _curves(rng):
    grids = {"roc": RATES, "pr": RATES, "recall_by_rate": BUDGETS}
    return {name: np.sort(rng.random(len(grid))).round(6).tolist() for name, grid in grids.items()}


def _judged(codes, rng):
    counts = np.bincount(codes)
    confusion = [rng.multinomial(n, rng.dirichlet(np.ones(len(counts)))).tolist() for n in counts]
    found = {"confusion": confusion, "roc_auc": rng.random(), "pr_auc": rng.random()}
    return found | ({"curves": _curves(rng)} if len(counts) == 2 else {})


def _cost(rng):
    return {"seconds": round(rng.random() * 9, 3), "peak_mb": round(rng.random() * 900, 1)}


def _is_ours(cell: Cell):
    return STUDY.method(cell).run.__module__ == ours.__name__


@cache
def _split(data, seed):
    codes = np.unique(load_data(data).y, return_inverse=True)[1]
    return codes, paper_split(codes, seed)


def _small(cell: Cell, rng):
    codes, split = _split(cell.data, cell.seed)
    found = {"test": _judged(codes[split.test], rng)} | _cost(rng)
    if not _is_ours(cell):
        return found
    found["val"] = _judged(codes[split.val], rng)
    if cell.method == "default":  # evidence has nothing to search
        return found
    return found | {
        "k": int(rng.integers(1, 6)),
        "alpha": rng.random(),
        "sweep": {"alphas": ALPHAS, "macro_f1": rng.random(len(ALPHAS)).tolist()},
        "trace": {"evaluation": [1, 2, 5], "best": np.sort(rng.random(3)).tolist()},
        "evaluations": 5,
    }


def _fraud(cell: Cell, rng):
    names = [FIXED, *CHOICES]
    # Validation rows cannot always reach a precision.
    if rng.random() < 0.1:
        names.remove("precision at least 0.5")
    sizes = {"all": (1_600, 64), "train": (900, 36), "val": (300, 12), "test": (400, 16)}
    found = {"thresholds": {name: rng.normal() for name in names}} | _cost(rng)
    for part, (n, positive) in sizes.items():
        counts = {}
        for name in names:
            tp, fp = int(rng.integers(1, positive)), int(rng.integers(1, n // 20))
            counts[name] = [tp, fp, positive - tp, n - positive - fp]
        found[part] = {"rows": n, "counts": counts, "roc_auc": rng.random(), "pr_auc": rng.random()}
        found[part] |= {"curves": _curves(rng)} if part in ("all", "test") else {}
    search = {"evaluations": 50, "different": int(rng.integers(1, 9)), "best": rng.random()}
    if cell.method in (NEAREST, "default"):
        return found | {"chosen_method": "rare"}
    return found | ({"k": 3, "alpha": rng.random(), "search": search} if _is_ours(cell) else {})
