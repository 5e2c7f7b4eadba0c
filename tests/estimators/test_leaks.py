"""A leak detector for every method: labels that are noise must look like noise to all that is called out-of-fold."""

import warnings

import numpy as np
import pytest
from scipy.stats import rankdata

from qmedoid import FusionClassifier, GeometricClassifier, VariationalClassifier
from qmedoid.estimators._probabilistic import ProbabilisticClassifier
from qmedoid.estimators.evidence import EvidenceFusion
from qmedoid.estimators.rare import RareEventFusion
from qmedoid.fitting.variational_selection import two_class_margin

SEEDS = range(3)
ROWS, COLUMNS, PREVALENCE = 300, 6, 0.4
CIRCUIT = VariationalClassifier(n_steps=20, n_reps=1, n_seeds=1, cv=3)
QUICK = {"n_anchors": 3, "subset_sizes": (2, 2), "max_passes": 1, "n_models": 1}
METHODS = {
    "evidence": {"fusion": EvidenceFusion()},
    "evidence, no neighbours": {"fusion": EvidenceFusion(neighbours=0)},
    "evidence, drawn groups": {"fusion": EvidenceFusion(targeted=False)},
    "evidence, ridge": {"fusion": EvidenceFusion(logistic=False, selection="one_se")},
    "evidence, standard scaling": {"fusion": EvidenceFusion(scaling="standard", medoids=16)},
    "evidence, folds": {"fusion": EvidenceFusion(cv=3)},
    "evidence, circuit": {"fusion": EvidenceFusion(medoids=16), "refine": "always", "variational": CIRCUIT},
    "evidence, replaced by a circuit": {
        "fusion": EvidenceFusion(medoids=16), "refine": 0.5, "residual": False, "variational": CIRCUIT,
    },
    "rare": {"fusion": RareEventFusion(), "refine": "never"},
    "rare, no hard rows": {"fusion": RareEventFusion(n_hard=0, n_folds=5), "refine": "never"},
    "rare, folds": {"fusion": RareEventFusion(cv=3), "refine": "never"},
    "rare, circuit": {"fusion": RareEventFusion(), "refine": "always", "variational": CIRCUIT},
    "convex": {"fusion": FusionClassifier(**QUICK), "refine": "never"},
    "convex, one split": {"fusion": FusionClassifier.paper(**QUICK), "refine": "never"},
    "convex, circuit": {"fusion": FusionClassifier(**QUICK), "refine": "always", "variational": CIRCUIT},
}  # fmt: skip


def noise(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(ROWS, COLUMNS)), (rng.random(ROWS) < PREVALENCE).astype(int)


def out_of_fold(monkeypatch, method, X, y, seed=0, groups=None, **changes):
    """The fitted classifier, and the log-odds and classes of the rows that it held out."""
    kept = {}
    set_cut = ProbabilisticClassifier._set_cut

    def spy(self, codes, held_out, groups=None):
        kept[type(self).__name__] = held_out
        set_cut(self, codes, held_out, groups)

    monkeypatch.setattr(ProbabilisticClassifier, "_set_cut", spy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = GeometricClassifier(**METHODS[method], random_state=seed, **changes).fit(X, y, groups=groups)
    held_out = kept["GeometricClassifier"]
    return fitted, two_class_margin(held_out.scores), held_out.judged


def auc(margins, y):
    ranks, n_positive = rankdata(margins), y.sum()
    return (ranks[y == 1].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * (len(y) - n_positive))


@pytest.mark.parametrize("method", METHODS)
def test_labels_that_are_noise_look_like_noise(monkeypatch, method):
    found = []
    for seed in SEEDS:
        X, y = noise(seed)
        fitted, margins, rows = out_of_fold(monkeypatch, method, X, y, seed, alert_rate=0.25)
        found.append([auc(margins[rows], y[rows]), margins[rows].std(), fitted.expected_.precision.value, len(rows)])
    print(method, np.round(np.mean(found, axis=0), 3), np.round(np.array(found)[:, 0], 3))
