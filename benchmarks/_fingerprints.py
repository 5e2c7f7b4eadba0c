"""What a fitted model chose and says, in a form that fits on other processors can be compared with."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.nearest import NearestMedoidClassifier
from qmedoid.estimators.variational import VariationalClassifier

Array = npt.NDArray[np.float64]

CLOSE = 1e-6
"""Probabilities of the same model differ by no more than this."""


class Fingerprint(NamedTuple):
    """What must be equal, by name, and probabilities of new rows (n, C), which must be close."""

    choices: dict[str, Any]
    probabilities: Array


class Difference(NamedTuple):
    """What two fingerprints do not share.

    Attributes
    ----------
    decisions : int
        New rows that are called otherwise.
    choices : tuple of str
        Other choices that differ: groups, medoids, λ and so on.
    probability : float
        The largest difference of two probabilities.
    """

    decisions: int
    choices: tuple[str, ...]
    probability: float

    @property
    def is_same(self) -> bool:
        """Whether both are the same model."""
        return not self.decisions and not self.choices and self.probability <= CLOSE


def _threshold(n_classes: int) -> dict[str, Any]:
    return {"operating_point": "macro_f1"} if n_classes == 2 else {}


_CIRCUIT: dict[str, Any] = {"n_steps": 40, "n_seeds": 1, "n_reps": 1, "cv": 2}

METHODS: dict[str, Callable[[int], Any]] = {
    "evidence": lambda n: MedoidClassifier(method="evidence", random_state=0, **_threshold(n)),
    "sum": lambda n: MedoidClassifier(method="sum", random_state=0, **_threshold(n)),
    "tiny": lambda _: MedoidClassifier(method=EvidenceClassifier(n_medoids=6, n_neighbors=0), random_state=0),
    "rare": lambda n: MedoidClassifier(method="rare", refine="never", random_state=0, **_threshold(n)),
    "nearest": lambda _: MedoidClassifier(
        method=NearestMedoidClassifier(n_anchors=8, group_size=6, cv=3), refine="never", random_state=0
    ),
    "paper": lambda _: MedoidClassifier.paper(
        method=NearestMedoidClassifier.paper(n_anchors=8, group_size=6), refine="never", random_state=0
    ),
    "circuit": lambda n: MedoidClassifier(
        method="rare" if n == 2 else "evidence",
        variational=VariationalClassifier(**_CIRCUIT),
        refine=0.2,
        random_state=0,
    ),
}
"""How each method is built for a number of classes, with searches short enough to be run often."""


def methods_for(n_classes: int) -> list[str]:
    """The methods that can separate this number of classes."""
    return [name for name in METHODS if n_classes == 2 or name != "rare"]


def fingerprint(method: str, X: Array, y: npt.NDArray[Any], new: Array) -> Fingerprint:
    """Fit a method and ask it about new rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = METHODS[method](len(np.unique(y))).fit(X, y)
        return Fingerprint(_choices(model) | {"decisions": model.predict(new).tolist()}, model.predict_proba(new))


def _choices(model: Any) -> dict[str, Any]:
    """Groups, medoids, λ and the other choices of a fitted classifier."""
    first = model.model_.parts[0]
    found: dict[str, Any] = {"refinement": model.refinement_, "bend": len(model.model_.calibration.knots)}
    if model.method_ in ("evidence", "sum"):
        if model.method_ == "sum":
            found["parts"] = [[part.name, part.columns.tolist()] for part in model.model_.parts[1:]]
        near = first.neighbors
        found |= {
            "groups": [[list(group.columns), bool(group.by_rank)] for group in first.groups],
            "medoids": first.medoid_rows.tolist(),
            "λ": float(model.estimator_.regularization_),
            "neighbors": None if near is None else [near.n_nearest, bool(near.by_rank), near.rows.tolist()],
        }
    elif model.method_ == "rare":
        found |= {"medoids": first.medoid_rows.tolist(), "features": first.circuit_features.tolist()}
    else:
        found |= {
            "groups": [list(subset) for subset in model.estimator_.configuration_],
            "medoids": model.estimator_.medoid_indices_.tolist(),
            "λ": float(model.estimator_.alpha_),
        }
    return found


def difference(one: Fingerprint, other: Fingerprint) -> Difference:
    """What two fingerprints do not share."""
    decisions = sum(a != b for a, b in zip(one.choices["decisions"], other.choices["decisions"], strict=True))
    names = [name for name in one.choices if name != "decisions" and not _equal(one.choices[name], other.choices[name])]
    return Difference(decisions, tuple(names), float(np.abs(one.probabilities - other.probabilities).max()))


def _equal(one: Any, other: Any) -> bool:
    # λ is a mean of logarithms of a grid.
    return bool(np.isclose(one, other, rtol=1e-12)) if isinstance(one, float) else bool(one == other)


def nudged(X: Array, rng: np.random.Generator, most: int = 4) -> Array:
    """A copy in which every cell has moved independently, by up to this number of units in the last place."""
    moved = X + rng.integers(-most, most + 1, size=X.shape) * np.spacing(np.abs(X))
    return np.where(X == 0.0, X, moved)
