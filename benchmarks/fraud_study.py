"""The credit-card data on held-out rows: what the deltas carry, and what each way of training a circuit makes of them.

Writes ``benchmarks/results/fraud_study.csv`` (every model, mean over three splits with standard errors over splits)
and ``benchmarks/results/fraud_selective.csv`` (how much is lost when the circuit decides few records only). The table
``creditcard.parquet`` is looked for in the folder that ``QMEDOID_DATA`` names.

A split holds out 25 % of the rows, stratified; no fit sees them. ``--tune`` chooses the steps and step sizes of the
trainings on other splits (seeds 100 to 102) by PR-AUC, the figure that is reported, so as to be fair to SPSA. Those
splits are of the same table: what is tuned has an advantage over what is not, the estimators with their defaults.

Log-loss is of the true prior: the log-odds of models with balanced classes are first moved back to it. "predicted /
true" is the mean probability of fraud over the true share. Recall is over the 1.31 % of the rows with the highest
scores; where scores tie there, it is the mean over all orders. Core-seconds are of the training alone, on deltas that
are there already; those of a `MedoidClassifier` are of the complete fit, with the folds of its circuits.
"""

import argparse
import itertools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _timing import RESULTS, write_table
from qmedoid import MedoidClassifier, NearestMedoidClassifier, VariationalClassifier
from qmedoid.estimators._training import TrainingPlan
from qmedoid.exceptions import QMedoidWarning
from qmedoid.methods.variational.ansatz import SPAN
from qmedoid.methods.variational.training import TrainingData, Watch
from qmedoid.model.model import Model
from qmedoid.model.refinement import Refinement, refinement_margins

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Classifier = VariationalClassifier

SPLITS, TUNING_SPLITS = (0, 1, 2), (100, 101, 102)
ALERTS = 0.0131
DEPTHS = (1, 2, 3, 4, 5, 6)
REPEATS = 3
"""Trainings per split of the styles that train a single circuit: one SPSA run says little about SPSA."""
SHARES = (0.1, 0.05, 0.01)


def spsa(steps: int, a: float, clip_norm: float | None) -> dict[str, Any]:
    return {"n_steps": steps, "spsa_gains": (a, 0.1, 0.602, 0.101), "clip_norm": clip_norm}


def adam(steps: int, rate: float) -> dict[str, Any]:
    return {"n_steps": steps, "learning_rate": rate}


GAINS = [spsa(1000, a, clip) for a, clip in itertools.product((0.2, 0.6, 2.0, 6.0, 20.0, 60.0, 200.0), (1.0, None))]
RATES = [adam(steps, rate) for steps, rate in itertools.product((300, 1000), (0.02, 0.05, 0.1, 0.2))]
# Chosen by `--tune` out of these, for each front end and style; ±π/2 at the clip of 3 takes the rates of the one
# without it.
TUNED: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "printed circuit, SPSA": spsa(1000, 20.0, None),
        "printed circuit, SPSA, balanced classes": spsa(1000, 20.0, 1.0),
        "printed circuit, exact gradients": adam(1000, 0.1),
        "printed circuit, exact gradients, balanced classes": adam(300, 0.2),
        "printed circuit, exact gradients, importance batches, best of 3": adam(1000, 0.05),
        "printed circuit but angles to ±π/2, exact gradients, balanced classes": adam(300, 0.05),
        "printed circuit but angles to ±π/2, clip by the data, SPSA, balanced classes": spsa(3000, 2.0, None),
        "printed circuit but angles to ±π/2, clip by the data, exact gradients, balanced classes": adam(300, 0.05),
        "default circuit, SPSA": spsa(1000, 60.0, None),
    },
    "default": {
        "printed circuit, SPSA": spsa(1000, 6.0, None),
        "printed circuit, SPSA, balanced classes": spsa(3000, 6.0, 1.0),
        "printed circuit, exact gradients": adam(1000, 0.2),
        "printed circuit, exact gradients, balanced classes": adam(1000, 0.02),
        "printed circuit, exact gradients, importance batches, best of 3": adam(1000, 0.05),
        "printed circuit but angles to ±π/2, exact gradients, balanced classes": adam(1000, 0.05),
        "printed circuit but angles to ±π/2, clip by the data, SPSA, balanced classes": spsa(1000, 2.0, None),
        "printed circuit but angles to ±π/2, clip by the data, exact gradients, balanced classes": adam(1000, 0.05),
        "default circuit, SPSA": spsa(3000, 60.0, 1.0),
    },
}

EXACT: dict[str, Any] = {"optimizer": "adam", "clip_norm": None}
BALANCED: dict[str, Any] = {"class_weight": "balanced"}
UNFOLDED: dict[str, Any] = {"span": SPAN, "clip": None}
STYLES: dict[str, dict[str, Any]] = {
    "VariationalClassifier.paper() with its own gains": {},
    "printed circuit, SPSA": {},
    "printed circuit, SPSA, balanced classes": BALANCED,
    "printed circuit, exact gradients": EXACT,
    "printed circuit, exact gradients, balanced classes": EXACT | BALANCED,
    "printed circuit, exact gradients, importance batches, best of 3": EXACT
    | {"sampling": "importance", "average": 0.3, "n_seeds": 3},
    "printed circuit but angles to ±π/2, exact gradients, balanced classes": {"span": SPAN} | EXACT | BALANCED,
    "printed circuit but angles to ±π/2, clip by the data, SPSA, balanced classes": UNFOLDED | BALANCED,
    "printed circuit but angles to ±π/2, clip by the data, exact gradients, balanced classes": UNFOLDED
    | EXACT
    | BALANCED,
    "default circuit, SPSA": UNFOLDED | {"readout": "strings", "input_scales": "learned", "final_rz": False},
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
    """Δ_D and Δ_Θ of both parts of a split, under the best nearest-medoid model of a front end."""

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


def make_deltas(front_end: str, method: NearestMedoidClassifier, split: Split) -> Deltas:
    model = method

    def of(X: Array) -> Array:
        normalized = [c / (c.sum(axis=1, keepdims=True) + 1e-12) for c in model.channels(X)]
        return np.column_stack([c[:, 1] - c[:, 0] for c in normalized])

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


class Entry(NamedTuple):
    """One training: front end, model, depth and what was measured."""

    front_end: str
    model: str
    depth: int | str
    found: dict[str, float]


class Refined(NamedTuple):
    """A hybrid of one split: residual or not, share asked for, share of the held-out rows it got, PR-AUC."""

    residual: bool
    share: float
    decided: float
    pr_auc: float


DIGITS = {"PR-AUC": 3, "ROC-AUC": 3, "recall at 1.31 % alerts": 3, "log-loss": 5, "predicted / true": 2, "core-s": 2}
WITH_ERROR = ("PR-AUC", "ROC-AUC", "recall at 1.31 % alerts", "log-loss")


def summary(splits: list[list[Entry]]) -> list[dict[str, object]]:
    """Means over the splits and their standard errors, model by model; trainings of a split are averaged first."""
    rows = []
    for key in dict.fromkeys(entry[:3] for entry in splits[0]):
        same = [[entry.found for entry in entries if entry[:3] == key] for entries in splits]
        row: dict[str, object] = dict(zip(("front end", "model", "L"), key, strict=True))
        for name, digits in DIGITS.items():
            known = name in same[0][0]
            values = [np.mean([found[name] for found in group]) for group in same] if known else []
            row[name] = f"{np.mean(values):.{digits}f}" if known else ""
            if name in WITH_ERROR:
                row[f"± {name}"] = f"{standard_error(values):.{digits}f}" if known else ""
        pr_auc = [found["PR-AUC"] for group in same for found in group]
        row |= {"lowest PR-AUC": f"{min(pr_auc):.3f}", "highest PR-AUC": f"{max(pr_auc):.3f}", "trainings": len(pr_auc)}
        rows.append(row)
    return rows


def standard_error(values: Sequence[Any]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def printed(style: str, front_end: str, depth: int, seed: int) -> Classifier:
    """The circuit of the paper, trained in one of the styles; a threshold does not matter here."""
    settings = STYLES[style] | TUNED.get(front_end, {}).get(style, {})
    return Classifier.paper(operating_point=None, n_reps=depth, random_state=seed, **settings)


def train(classifier: Classifier, deltas: Deltas, split: Split) -> dict[str, float]:
    """Measures on the held-out rows, and core-seconds."""
    _, core = timed(lambda: classifier.fit(deltas.train, split.y))
    margin = classifier.decision_function(deltas.held_out)
    shift = split.log_odds if classifier.class_weight == "balanced" else 0.0
    return measures(split.y_out, margin, expit(margin + shift)) | {"core-s": core}


def expit(margin: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * margin)))


def simple(deltas: Deltas, method: NearestMedoidClassifier, split: Split) -> list[Entry]:
    """Models without a circuit: one delta, the margin of the fusion score, logistic regression on both deltas."""
    logistic = make_pipeline(StandardScaler(), LogisticRegression())
    _, seconds = timed(lambda: logistic.fit(deltas.train, split.y))
    probability = logistic.predict_proba(deltas.held_out)[:, 1]
    models = {
        "Δ_D alone": measures(split.y_out, -deltas.held_out[:, 0]),
        "fusion margin": measures(split.y_out, method.decision_function(split.X_out)),
        "logistic regression on both deltas": measures(split.y_out, probability, probability) | {"core-s": seconds},
    }
    return [Entry(deltas.front_end, name, "", found) for name, found in models.items()]


def circuits(deltas: Deltas, split: Split) -> Iterator[Entry]:
    """The printed circuit in every style, and the default one."""
    for style, depth in itertools.product(STYLES, DEPTHS):
        if depth not in (1, 3, 6) and not style.startswith(("printed circuit, ", "VariationalClassifier")):
            continue
        for repeat in range(1 if "best of 3" in style else REPEATS):
            classifier = printed(style, deltas.front_end, depth, REPEATS * split.seed + repeat)
            yield Entry(deltas.front_end, style, depth, train(classifier, deltas, split))
    for depth in DEPTHS:
        classifier = Classifier(n_reps=depth, random_state=split.seed)
        yield Entry(deltas.front_end, "VariationalClassifier()", depth, train(classifier, deltas, split))


def refined(model: Model, X: Array, share: float) -> Model:
    """The model with its circuit deciding only this share of the training rows, those of the smallest margins."""
    assert model.refinement is not None, "it has a circuit"
    margins = refinement_margins(model.calibration.apply(model.score(X).scores))
    return replace(model, refinement=replace(model.refinement, refine_below=float(np.quantile(margins, share))))


def with_residual(model: Model, split: Split) -> Model:
    """The same calibrated nearest-medoid model with a circuit that corrects it, as ``residual=True`` trains it."""
    assert model.refinement is not None, "it has a circuit"
    measured, inputs = model.score(split.X, channels=True), model.refinement.inputs
    features = inputs.features(measured)
    data = TrainingData(features, split.y, np.ones(2), model.calibration.apply(measured.scores))
    plan = TrainingPlan.of(Classifier(), data, np.array([0, 1]), [split.seed], out_of_fold=False)
    return replace(model, refinement=Refinement(plan.run(Watch())[0].model, inputs, residual=True))


def hybrids(hybrid: MedoidClassifier, core: float, split: Split) -> tuple[list[Entry], list[Refined]]:
    """The hybrid as it is fitted, without its circuit, with few records for its circuit, and as a correction."""
    correcting, more = timed(lambda: with_residual(hybrid.model_, split))
    entries, some = [], []

    def judge(arguments: list[str], model: Model, seconds: float) -> tuple[float, float]:
        decided = model.decide(split.X_out)
        margin, picked = decided.scores[:, 1] - decided.scores[:, 0], decided.by_circuit
        found = measures(split.y_out, margin, expit(margin)) | {"core-s": seconds}
        words = ", ".join(['method="nearest"', *arguments])
        name, depth = f"MedoidClassifier({words})", "" if model.refinement is None else 3
        entries.append(Entry("default", name, depth, found))
        return float(picked.mean()), found["PR-AUC"]

    judge(['refine="never"'], replace(hybrid.model_, refinement=None), core)
    for model, seconds in ((hybrid.model_, core), (correcting, core + more)):
        residual = model.refinement is not None and model.refinement.residual
        words = ["residual=True"] if residual else []
        some.append(Refined(residual, 1.0, *judge(words, model, seconds)))
        for share in SHARES:
            found = judge([f"refine={share}", *words], refined(model, split.X, share), seconds)
            some.append(Refined(residual, share, *found))
    return entries, some


def selective(splits: list[list[Refined]]) -> list[dict[str, object]]:
    """How much PR-AUC is lost against a circuit that decides every record."""
    rows = []
    for same in zip(*splits, strict=True):
        every = [next(o for o in split if o.residual == same[0].residual and o.share == 1.0) for split in splits]
        gained = [one.pr_auc - full.pr_auc for one, full in zip(same, every, strict=True)]
        rows.append(
            {
                "circuit": "corrects the fusion score" if same[0].residual else "replaces the fusion score",
                "refine": "always" if same[0].share == 1.0 else same[0].share,
                "held-out rows it decides": f"{np.mean([one.decided for one in same]):.4f}",
                "PR-AUC": f"{np.mean([one.pr_auc for one in same]):.4f}",
                "PR-AUC minus always": f"{np.mean(gained):+.4f}",
                "± of the difference": f"{standard_error(gained):.4f}",
                "largest difference": f"{max(map(abs, gained)):.4f}",
            }
        )
    return rows


def study(seed: int, X: Array, y: Codes) -> tuple[list[Entry], list[Refined]]:
    """Everything on one split."""
    warnings.simplefilter("ignore", QMedoidWarning)
    split = make_split(X, y, seed)
    paper = NearestMedoidClassifier.paper(random_state=seed).fit(split.X, split.y)
    deltas = make_deltas("paper", paper, split)
    entries = [*simple(deltas, paper, split), *circuits(deltas, split)]
    hybrid, core = timed(lambda: MedoidClassifier(method="nearest", random_state=seed).fit(split.X, split.y))
    deltas = make_deltas("default", hybrid.estimator_, split)
    entries += [*simple(deltas, hybrid.estimator_, split), *circuits(deltas, split)]
    few, some = hybrids(hybrid, core, split)
    return entries + few, some


def run(X: Array, y: Codes) -> None:
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(study, SPLITS, *([part] * len(SPLITS) for part in (X, y))))
    write_table(RESULTS / "fraud_study.csv", COMMAND, summary([entries for entries, _ in found]), PACKAGES)
    write_table(RESULTS / "fraud_selective.csv", COMMAND, selective([some for _, some in found]), PACKAGES)


COMMAND, PACKAGES = "python benchmarks/fraud_study.py", ("numpy", "scipy", "scikit-learn")


def tune(X: Array, y: Codes) -> None:
    """Print the best gains and learning rates of every front end and style."""
    with ProcessPoolExecutor(2) as pool:
        for found in pool.map(tuned, ("paper", "default"), (X, X), (y, y)):
            print(found, flush=True)


def tuned(front_end: str, X: Array, y: Codes) -> str:
    """Settings of the best mean PR-AUC over the tuning splits and two depths, style by style.

    Gains of SPSA are compared at 1,000 steps, the two best of them once more at 300 and at 3,000.
    """
    warnings.simplefilter("ignore", QMedoidWarning)
    splits = [make_split(X, y, seed) for seed in TUNING_SPLITS]
    make = NearestMedoidClassifier.paper if front_end == "paper" else NearestMedoidClassifier
    deltas = [make_deltas(front_end, make(random_state=s.seed).fit(s.X, s.y), s) for s in splits]
    lines = []
    for style, fixed in list(STYLES.items())[1:]:

        def quality(settings: dict[str, Any], style: str = style) -> float:
            values = []
            for (part, split), depth in itertools.product(zip(deltas, splits, strict=True), (1, 3)):
                classifier = printed(style, "", depth, split.seed).set_params(n_seeds=1, **settings)
                values.append(train(classifier, part, split)["PR-AUC"])
            return float(np.mean(values))

        grid = list(RATES if fixed.get("optimizer") == "adam" else GAINS)
        found = [quality(settings) for settings in grid]
        if "optimizer" not in fixed:
            others = [grid[i] | {"n_steps": steps} for i in np.argsort(found)[-2:] for steps in (300, 3000)]
            found += [quality(settings) for settings in others]
            grid += others
        order = np.argsort(found)[::-1]
        lines.append(f"    ({front_end!r}, {style!r}): {grid[order[0]]},")
        lines += [f"    # {found[i]:.3f} {grid[i]}" for i in order]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune", action="store_true", help="choose the step sizes instead, on other splits")
    options = parser.parse_args()
    warnings.simplefilter("ignore", QMedoidWarning)
    (tune if options.tune else run)(*load_table())


if __name__ == "__main__":
    main()
