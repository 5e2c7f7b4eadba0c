"""What parts of a default fit cost and give: the same fits without each of them, on the same splits.

Writes ``benchmarks/results/what_earns_its_place.csv``. Every row compares the default `MedoidClassifier` with one that
a change takes a part from: core-seconds of both fits, and differences of log-loss and ROC-AUC on test rows (above 0:
the part helps), means over splits of the tuning seeds with standard errors. Tables are those of the study of quality
(``QMEDOID_DATA`` names their folder); the row of all tables is over their means. ``python
benchmarks/what_earns_its_place.py CHANGE`` measures one change and replaces its rows; ``--threads`` limits all threads.
Core-seconds hardly depend on what else is running, but the machine did other work, too. Rows of "no circuit" are of
the fits that decided by held-out rows whether to keep one, with ``method="rare"`` and ``method="nearest"``; the
commit that wrote them has their change.
"""

import argparse
import csv
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

FILE = Path(__file__).parent / "results" / "what_earns_its_place.csv"
FIRST_SEED = 100
SMALL = ("pima", "heart", "german_credit", "car", "stroke", "phoneme", "mammography", "waveform_40", "magic", "adult")
MIDDLE = (
    *("phoneme", "spambase", "churn_mlc", "page_blocks0", "mammography", "stroke", "magic", "adult", "electricity"),
    *("waveform_40", "ann_thyroid"),
)
MANY_CLASSES = ("waveform_40", "ann_thyroid", "optdigits", "sleep", "covertype")
LARGE = ("magic", "adult", "electricity", "sleep", "letter", "covertype")


class Change(NamedTuple):
    """What is replaced, by its place and by what, and the tables, rows and splits that it is measured on."""

    replaced: tuple[tuple[str, Any], ...]
    tables: tuple[str, ...]
    n_rows: int
    n_splits: int


def _unless(name: str) -> Any:
    """A part of the evidence may begin unless it has this name."""
    from qmedoid.estimators.recipes import is_time_for

    return lambda what, expected=0.0: what != name and is_time_for(what, expected)


def changes() -> dict[str, Change]:
    """The changes by name."""
    from qmedoid.estimators.evidence import EvidenceClassifier
    from qmedoid.methods.comparisons.growing import BoostingSettings

    histogram = (("qmedoid.methods.comparisons.growing.compiled", lambda _: None),)
    settings = BoostingSettings.for_table
    one_kind = (
        (
            "qmedoid.methods.comparisons.growing.BoostingSettings.for_table",
            lambda self, *size: replace(settings(self, *size), symmetric=False),
        ),
    )
    no_term = tuple(
        (f"qmedoid.estimators.{name}.is_time_for", _unless("neighbors of the evidence")) for name in ("sum", "evidence")
    )
    no_part = (("qmedoid.estimators.sum.fit_neighbors", lambda *_: None),)
    neither = (*no_term, *no_part)
    no_multinomial = (("qmedoid.estimators.sum.SumClassifier._settings", EvidenceClassifier._settings),)
    return {
        "trees by scikit-learn": Change(histogram, (*MIDDLE[:8], "heart", "waveform_40", "optdigits"), 4_000, 1),
        "trees by scikit-learn, 15,000 rows": Change(histogram, ("magic", "adult", "electricity", "letter"), 15_000, 1),
        "no symmetric trees": Change(one_kind, LARGE, 14_000, 2),
        "no neighbor term of the evidence, 250 rows": Change(no_term, SMALL, 250, 5),
        "no neighbor term of the evidence, 800 rows": Change(no_term, SMALL, 800, 5),
        "no neighbor term of the evidence": Change(no_term, MIDDLE, 4_000, 5),
        "no neighbors part": Change(no_part, MIDDLE, 4_000, 5),
        "no neighbors part, 14,000 rows": Change(no_part, LARGE, 14_000, 2),
        "no neighbors": Change(neither, MIDDLE, 4_000, 5),
        # The logistic refit, and weights of more than 20,000 rows, were measured the same way and then deleted.
        "no multinomial refit": Change(no_multinomial, ("car", *MANY_CLASSES), 4_000, 3),
    }


@contextmanager
def changed(change: Change) -> Iterator[None]:
    """The package with a part replaced."""
    with ExitStack() as stack:
        for place, value in change.replaced:
            stack.enter_context(mock.patch(place, value))
        yield


def fit_and_judge(rows: Any) -> tuple[float, float, float]:
    """Core-seconds of a fit, and log-loss and ROC-AUC of the test rows (one class against the others)."""
    import numpy as np
    from sklearn.metrics import log_loss, roc_auc_score

    from benchmarks.quality.ours import as_table
    from qmedoid import MedoidClassifier

    fit, test = as_table(rows.fit), as_table(rows.test)
    begun = time.process_time()
    classifier = MedoidClassifier(random_state=0).fit(fit, rows.y)
    spent = time.process_time() - begun
    found = np.clip(np.asarray(classifier.predict_proba(test)), 1e-12, 1.0)
    judged = found[:, 1] if found.shape[1] == 2 else found
    area = roc_auc_score(rows.y_test, judged, multi_class="ovr", labels=np.arange(rows.n_classes))
    return spent, float(log_loss(rows.y_test, found, labels=np.arange(rows.n_classes))), float(area)


def measure(name: str, change: Change, n_threads: int) -> list[dict[str, object]]:
    """A row for each table, and one for all of them."""
    import numpy as np

    from benchmarks.quality.protocol import known_rows
    from benchmarks.quality.tables import load_table

    found, gains = [], []
    for table in change.tables:
        pairs = []
        for seed in range(FIRST_SEED, FIRST_SEED + change.n_splits):
            rows = known_rows(load_table(table), change.n_rows, seed)
            own = known.get((table, change.n_rows, seed)) or fit_and_judge(rows)
            known[table, change.n_rows, seed] = own
            with changed(change):
                pairs.append((own, fit_and_judge(rows)))
        values = np.array(pairs)
        gain = (values[:, 1] - values[:, 0])[:, 1:] * [1.0, -1.0]
        gains.append(gain.mean(axis=0))
        found.append(_row(name, table, change, n_threads, values[:, :, 0].mean(axis=0), gain))
        print(found[-1], flush=True)
    seconds = np.mean([[row["default, core s"], row["changed, core s"]] for row in found], axis=0)
    found.append(_row(name, "all", change, n_threads, seconds, np.array(gains)))
    print(found[-1], flush=True)
    return found


known: dict[tuple[str, int, int], tuple[float, float, float]] = {}
"""What the default fit gave, for changes that share it."""


def _row(name: str, table: str, change: Change, n_threads: int, seconds: Any, gain: Any) -> dict[str, object]:
    errors = gain.std(axis=0, ddof=1) / len(gain) ** 0.5 if len(gain) > 1 else (float("nan"), float("nan"))
    means = gain.mean(axis=0)
    return {
        "change": name, "table": table, "rows": change.n_rows, "splits": change.n_splits, "threads": n_threads,
        "default, core s": round(float(seconds[0]), 2), "changed, core s": round(float(seconds[1]), 2),
        "changed / default": round(float(seconds[1] / seconds[0]), 2),
        "log-loss gained": f"{means[0]:.5f}", "its error": f"{errors[0]:.5f}",
        "ROC-AUC gained": f"{means[1]:.5f}", "its standard error": f"{errors[1]:.5f}",
    }  # fmt: skip


def main() -> None:
    """Measure the changes and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("changes", nargs="*", metavar="CHANGE")
    asked = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "QMEDOID_THREADS"):
        os.environ[variable] = str(asked.threads)
    warnings.simplefilter("ignore")
    every, kept = changes(), list[dict[str, Any]]()
    from benchmarks.quality.protocol import known_rows
    from benchmarks.quality.tables import load_table

    fit_and_judge(known_rows(load_table("heart"), 500, FIRST_SEED))  # what the first fit imports is no part of any
    names = asked.changes or list(every)
    if FILE.is_file():
        with FILE.open(newline="") as lines:
            next(lines)  # the command
            kept = list(csv.DictReader(lines))
    for name in names:
        kept = [row for row in kept if (row["change"], int(row["threads"])) != (name, asked.threads)]
        kept += measure(name, every[name], asked.threads)
        with FILE.open("w", newline="") as file:
            file.write("# python benchmarks/what_earns_its_place.py [--threads 2] CHANGE, change by change\n")
            writer = csv.DictWriter(file, list(kept[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept)


if __name__ == "__main__":
    main()
