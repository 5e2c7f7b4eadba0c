"""The credit-card data on held-out rows: what the deltas carry, and what each way of training a circuit makes of them.

Writes ``benchmarks/results/fraud_study.csv`` (every model, mean over three splits with standard errors over splits)
and ``benchmarks/results/fraud_selective.csv`` (how much is lost when the circuit decides few records only). The table
``creditcard.parquet`` is looked for in the folder that ``QMEDOID_DATA`` names.

A split holds out 25 % of the rows, stratified; the model never sees them. ``--tune`` chooses the step sizes of the
trainings on other splits (seeds 100 to 102) by PR-AUC, the figure that is reported: all that favours SPSA. Those
splits are of the same table, so a tuned training has an advantage over everything that is left at its defaults.

Log-loss is of the true prior: the log-odds of models with balanced classes are first moved back to it. "predicted /
true" is the mean probability of fraud over the true share. Recall is over the 1.31 % of the rows with the highest
scores; where scores tie there, it is the mean over all orders. Core-seconds are of the training alone, on deltas that
are there already; those of a fusion score include its search.
"""

import argparse
import itertools
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _timing import RESULTS, write_table
from qmedoid import FusionClassifier, GeometricClassifier, VariationalClassifier
from qmedoid.estimators._training import TrainingPlan
from qmedoid.exceptions import QMedoidWarning
from qmedoid.fitting.variational import TrainingData, Watch
from qmedoid.models.geometric import GeometricModel, score_margins

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Classifier = VariationalClassifier

SPLITS, TUNING_SPLITS = (0, 1, 2), (100, 101, 102)
ALERTS = 0.0131
DEPTHS = (1, 2, 3, 4, 5, 6)
REPEATS = 5
"""Trainings per split of the styles that train a single circuit: one SPSA run says little about SPSA."""
SHARES = (0.1, 0.05, 0.01)

# Chosen by `--tune` out of GAINS and RATES below, for each front end and style.
TUNED: dict[tuple[str, str], dict[str, Any]] = {}

GAINS = [
    {"n_steps": steps, "spsa_gains": (a, c, 0.602, 0.101), "clip_norm": clip}
    for steps, a, c, clip in itertools.product((300, 3000), (0.05, 0.2, 0.6, 2.0), (0.05, 0.2), (1.0, None))
]
RATES = [
    {"n_steps": steps, "learning_rate": rate}
    for steps, rate in itertools.product((300, 1000), (0.005, 0.02, 0.05, 0.1, 0.2))
]

OURS: dict[str, Any] = {"sampling": "importance", "average": 0.3, "n_seeds": 3, "clip_norm": None}
EXACT: dict[str, Any] = {"optimizer": "adam", "clip_norm": None}
STYLES: dict[str, dict[str, Any]] = {
    "printed circuit, SPSA as printed": {},
    "printed circuit, SPSA, balanced classes": {"class_weight": "balanced"},
    "printed circuit, SPSA, importance batches, best of 3": OURS,
    "printed circuit, exact gradients": EXACT,
    "printed circuit, exact gradients, balanced classes": EXACT | {"class_weight": "balanced"},
    "printed circuit, exact gradients, importance batches, best of 3": EXACT | OURS,
    "printed circuit, exact gradients, balanced classes, importance batches, best of 3": EXACT
    | OURS
    | {"class_weight": "balanced"},
}


@dataclass(frozen=True)
class Split:
    """Training and held-out rows of the table."""

    seed: int
    X: Array
    y: Codes
    X_out: Array
    y_out: Codes

    @property
    def log_odds(self) -> float:
        """Of fraud among the training rows."""
        return float(np.log(self.y.mean() / (1.0 - self.y.mean())))


@dataclass(frozen=True)
class Deltas:
    """Δ_D and Δ_Θ of both parts of a split, under the best fusion model of a front end."""

    front_end: str
    train: Array
    held_out: Array


def load_table() -> tuple[Array, Codes]:
    folder = os.environ.get("QMEDOID_DATA")
    if folder is None or not (Path(folder) / "creditcard.parquet").exists():
        sys.exit(
            "This study needs the credit-card data (Kaggle mlg-ulb/creditcardfraud, 284,807 rows): save it as "
            "creditcard.parquet and set QMEDOID_DATA to its folder."
        )
    import pyarrow.parquet as pq

    table = pq.read_table(Path(folder) / "creditcard.parquet")
    columns = [table[name].to_numpy() for name in table.column_names if name not in ("Class", "Time")]
    return np.column_stack(columns).astype(np.float64), table["Class"].to_numpy().astype(np.intp)


def make_split(X: Array, y: Codes, seed: int) -> Split:
    X_in, X_out, y_in, y_out = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    return Split(seed, X_in, y_in, X_out, y_out)


def make_deltas(front_end: str, fusion: FusionClassifier, split: Split) -> Deltas:
    model = fusion.models_[0]

    def of(X: Array) -> Array:
        normalised = [c / (c.sum(axis=1, keepdims=True) + 1e-12) for c in model.channels(X)]
        return np.column_stack([c[:, 1] - c[:, 0] for c in normalised])

    return Deltas(front_end, of(split.X), of(split.X_out))


def recall_at(y: Codes, score: Array, share: float) -> float:
    """Share of the frauds among the highest scores; rows that tie at the cut count in proportion."""
    alerts = round(share * len(y))
    cut = np.partition(score, -alerts)[-alerts]
    above, at = score > cut, score == cut
    return float((y[above].sum() + (alerts - above.sum()) * y[at].mean()) / y.sum())


def measures(y: Codes, score: Array, probability: Array | None = None) -> dict[str, float]:
    """What is reported of one model on held-out rows."""
    found = {
        "PR-AUC": float(average_precision_score(y, score)),
        "ROC-AUC": float(roc_auc_score(y, score)),
        "recall at 1.31 % alerts": recall_at(y, score, ALERTS),
    }
    if probability is not None:
        found["log-loss"] = float(log_loss(y, probability))
        found["predicted / true"] = float(probability.mean() / y.mean())
    return found


def timed(fn: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = fn()
    return result, time.process_time() - start


class Table:
    """Measures by model and split; repeats within a split are averaged first."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, Any], dict[int, list[dict[str, float]]]] = defaultdict(
            lambda: defaultdict(list)
        )

    def add(self, front_end: str, model: str, depth: Any, split: int, found: dict[str, float], core: float) -> None:
        """Note one training."""
        self.found[front_end, model, depth][split].append(found | {"core-s": core})

    def rows(self) -> Iterable[dict[str, object]]:
        """Means over the splits and their standard errors, model by model."""
        for (front_end, model, depth), by_split in self.found.items():
            row: dict[str, object] = {"front end": front_end, "model": model, "L": depth}
            names = next(iter(by_split.values()))[0]
            for name in ("PR-AUC", "ROC-AUC", "recall at 1.31 % alerts", "log-loss", "predicted / true", "core-s"):
                values = [np.mean([one[name] for one in group]) for group in by_split.values()] if name in names else []
                row[name] = f"{np.mean(values):.{5 if name == 'log-loss' else 3}f}" if values else ""
                if name in ("PR-AUC", "ROC-AUC", "recall at 1.31 % alerts", "log-loss"):
                    digits = 5 if name == "log-loss" else 3
                    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
                    row[f"± {name}"] = f"{error:.{digits}f}" if values else ""
            yield row


def printed(style: str, front_end: str, depth: int, seed: int) -> Classifier:
    """The circuit of the paper, trained in one of the styles; a threshold does not matter here."""
    settings = STYLES[style] | TUNED.get((front_end, style), {})
    return Classifier.paper(operating_point=None, n_reps=depth, random_state=seed, **settings)


def train(classifier: Classifier, deltas: Deltas, split: Split) -> tuple[dict[str, float], float]:
    """Measures on the held-out rows, and core-seconds."""
    _, core = timed(lambda: classifier.fit(deltas.train, split.y))
    margin = classifier.decision_function(deltas.held_out)
    shift = split.log_odds if classifier.class_weight == "balanced" else 0.0
    return measures(split.y_out, margin, expit(margin + shift)), core


def expit(margin: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * margin)))


def add_simple(table: Table, deltas: Deltas, fusion: FusionClassifier, core: float, split: Split) -> None:
    """What needs no circuit: one delta, the fusion margin, logistic regression on both deltas."""
    name, y = deltas.front_end, split.y_out
    table.add(name, "Δ_D alone", "", split.seed, measures(y, -deltas.held_out[:, 0]), core)
    table.add(name, "fusion margin", "", split.seed, measures(y, fusion.decision_function(split.X_out)), core)
    logistic = make_pipeline(StandardScaler(), LogisticRegression())
    _, core = timed(lambda: logistic.fit(deltas.train, split.y))
    probability = logistic.predict_proba(deltas.held_out)[:, 1]
    table.add(name, "logistic regression on both deltas", "", split.seed, measures(y, probability, probability), core)


def add_circuits(table: Table, deltas: Deltas, split: Split) -> None:
    name = deltas.front_end
    for style, depth in itertools.product(STYLES, DEPTHS):
        for repeat in range(1 if "best of 3" in style else REPEATS):
            found, core = train(printed(style, name, depth, REPEATS * split.seed + repeat), deltas, split)
            table.add(name, style, depth, split.seed, found, core)
    for depth in DEPTHS:
        found, core = train(Classifier(n_reps=depth, random_state=split.seed), deltas, split)
        table.add(name, "VariationalClassifier()", depth, split.seed, found, core)


def refined(model: GeometricModel, X: Array, share: float) -> GeometricModel:
    """The model with its circuit deciding only so many of the training rows, those of the smallest margins."""
    margins = score_margins(model.calibration.apply(model.fusion.fuse(model.fusion.channels(X))))
    return replace(model, refine_below=float(np.quantile(margins, share)))


def with_residual(model: GeometricModel, split: Split) -> GeometricModel:
    """The same calibrated fusion model with a circuit that corrects it, as ``residual=True`` trains it."""
    channels = model.fusion.channels(split.X)
    fused = model.fusion.fuse(channels)
    features = model.deltas.features(model.fusion, channels, fused)
    data = TrainingData(features, split.y, np.ones(2), model.calibration.apply(fused))
    plan = TrainingPlan.of(Classifier(), data, np.array([0, 1]), [split.seed], out_of_fold=False)
    return replace(model, variational=plan.run(Watch()).trained.model, residual=True)


def add_hybrids(
    table: Table, selective: dict[tuple[bool, float], list[tuple[float, float]]], hybrid: GeometricClassifier,
    core: float, split: Split,
) -> None:  # fmt: skip
    """The hybrid as it is fitted, without its circuit, with few records for its circuit, and as a correction."""
    plain = hybrid.model_
    correcting, more = timed(lambda: with_residual(plain, split))

    def add(label: str, model: GeometricModel, seconds: float) -> tuple[float, float]:
        scores, picked = model.decide(split.X_out)
        margin = scores[:, 1] - scores[:, 0]
        found = measures(split.y_out, margin, expit(margin))
        table.add("default", label, "" if model.variational is None else 3, split.seed, found, seconds)
        return found["PR-AUC"], float(picked.mean())

    add('GeometricClassifier(refine="never")', replace(plain, variational=None), core)
    for model, seconds, residual in ((plain, core, False), (correcting, core + more, True)):
        for share in (1.0, *SHARES):
            limited = model if share == 1.0 else refined(model, split.X, share)
            arguments = ", ".join(
                ([] if share == 1.0 else [f"refine={share}"]) + (["residual=True"] if residual else [])
            )
            found = add(f"GeometricClassifier({arguments})", limited, seconds)
            selective[residual, share].append(found)


def selective_rows(selective: dict[tuple[bool, float], list[tuple[float, float]]]) -> Iterable[dict[str, object]]:
    for (residual, share), found in selective.items():
        lost = [one[0] - every[0] for one, every in zip(found, selective[residual, 1.0], strict=True)]
        yield {
            "circuit": "corrects the fusion score" if residual else "replaces the fusion score",
            "refine": "always" if share == 1.0 else share,
            "held-out rows it decides": f"{np.mean([picked for _, picked in found]):.4f}",
            "PR-AUC": f"{np.mean([value for value, _ in found]):.4f}",
            "PR-AUC minus always": f"{np.mean(lost):+.4f}",
            "± of the difference": f"{np.std(lost, ddof=1) / np.sqrt(len(lost)):.4f}",
            "largest difference": f"{max(map(abs, lost)):.4f}",
        }


def run(X: Array, y: Codes) -> None:
    table, selective = Table(), defaultdict(list)
    for seed in SPLITS:
        split = make_split(X, y, seed)
        paper, core = timed(lambda split=split: FusionClassifier.paper(random_state=split.seed).fit(split.X, split.y))
        deltas = make_deltas("paper", paper, split)
        add_simple(table, deltas, paper, core, split)
        add_circuits(table, deltas, split)
        hybrid, core = timed(lambda split=split: GeometricClassifier(random_state=split.seed).fit(split.X, split.y))
        deltas = make_deltas("default", hybrid.fusion_, split)
        add_simple(table, deltas, hybrid.fusion_, core, split)
        add_circuits(table, deltas, split)
        add_hybrids(table, selective, hybrid, core, split)
        print(f"split {seed} done", flush=True)
    write_table(RESULTS / "fraud_study.csv", COMMAND, list(table.rows()), PACKAGES)
    write_table(RESULTS / "fraud_selective.csv", COMMAND, list(selective_rows(selective)), PACKAGES)


COMMAND, PACKAGES = "python benchmarks/fraud_study.py", ("numpy", "scipy", "scikit-learn")


def tune(X: Array, y: Codes) -> None:
    """Print the best gains and learning rates of every front end and style, by mean PR-AUC over splits and depths."""
    splits = [make_split(X, y, seed) for seed in TUNING_SPLITS]
    for front_end, make in (("paper", FusionClassifier.paper), ("default", FusionClassifier)):
        deltas = [make_deltas(front_end, make(random_state=s.seed).fit(s.X, s.y), s) for s in splits]
        for style, fixed in STYLES.items():

            def quality(settings: dict[str, Any], deltas: list[Deltas] = deltas, style: str = style) -> float:
                values = []
                for (part, split), depth in itertools.product(zip(deltas, splits, strict=True), (1, 3, 6)):
                    classifier = printed(style, "", depth, split.seed).set_params(**settings)
                    values.append(train(classifier, part, split)[0]["PR-AUC"])
                return float(np.mean(values))

            grid = RATES if fixed.get("optimizer") == "adam" else GAINS
            with ThreadPoolExecutor(2) as pool:
                found = list(pool.map(quality, grid))
            order = np.argsort(found)[::-1]
            print(f"    ({front_end!r}, {style!r}): {grid[order[0]]},  # {found[order[0]]:.3f}", flush=True)
            for i in order[1:]:
                print(f"        # {found[i]:.3f} {grid[i]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune", action="store_true", help="choose the step sizes instead, on other splits")
    options = parser.parse_args()
    warnings.simplefilter("ignore", QMedoidWarning)
    (tune if options.tune else run)(*load_table())


if __name__ == "__main__":
    main()
