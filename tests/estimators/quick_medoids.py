"""MedoidClassifiers that search nothing and train little, and tables for them."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine

from qmedoid import MedoidClassifier, NearestMedoidClassifier, VariationalClassifier

CANCER, WINE = load_breast_cancer(), load_wine()
X2, Y2 = CANCER.data[:, :6], CANCER.target
X3, Y3 = WINE.data, WINE.target
FUSION = {"max_passes": 0, "subset_sizes": (2, 2), "n_models": 1}
CIRCUIT = {"n_steps": 40, "n_reps": 1, "n_seeds": 1, "cv": 2, "learning_rate": 0.2}


def quick(*, method=None, variational=None, **changes):
    """A classifier that searches nothing and trains little."""
    return MedoidClassifier(
        method=NearestMedoidClassifier(**(FUSION | (method or {}))),
        variational=VariationalClassifier(**(CIRCUIT | (variational or {}))),
        **({"random_state": 0} | changes),
    )


def drawn(n, share=0.5, seed=0):
    """Two classes that overlap, and the share of the second."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < share * n).astype(int)
    return rng.normal(size=(n, 3)) + 1.2 * y[:, None], y
