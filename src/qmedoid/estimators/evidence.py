"""How a `GeometricClassifier` gathers evidence: the settings of its evidence model."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._first_stage import Apart, FirstStageSettings, Told
from qmedoid.estimators._parameters import Choice, Constraint, Either, Flag, Some, Whole
from qmedoid.methods.base import Method
from qmedoid.methods.column_order import evidence_in_order, order_by_content
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.evidence.settings import BLOCKS, EvidenceSettings, Selection

TINY = 6
"""Medoids of the setting ``"tiny"``."""
AUTO_NEIGHBORS = EvidenceSettings.n_neighbors
"""Rows that the setting ``"auto"`` keeps at most."""


class EvidenceClassifier(FirstStageSettings):
    """Settings of the evidence model: ``GeometricClassifier(method=EvidenceClassifier(medoids="tiny"))``.

    Parameters
    ----------
    medoids : int or "tiny", default=64
        How many training rows the model may compare with at most, but at least one per class; ``"tiny"`` is 6.
    neighbors : int or "auto", default="auto"
        Training rows that are kept at most beside the medoids, so that the nearest of them have a say; it is done only
        where rows that are left out are told apart clearly better. ``"auto"`` is 5,000, and 0 with ``"tiny"`` medoids.
        With 0, nothing of the other rows is kept, and scoring is several times as fast.
    n_pairs, n_triples : int, default=16 and 10
        Groups of two and of three columns whose distances are looked at, in each bag.
    n_bags : int, default=2
        Models that are averaged, each with its share of the medoids and its own groups: still one sum over medoids and
        groups. Fewer where a class would have less than four medoids in a bag.
    blocks : list of str, default=("linear", "single", "group", "full")
        Kinds of evidence: columns as they are, single columns, chosen pairs and triples, all columns at once.
    scaling : {"rank", "standard"}, default="rank"
        What distances are measured on: columns bent to a normal shape by their ranks, or standardized.
    targeted : bool, default=True
        Whether groups are chosen by what they tell of the classes; else they are drawn.
    logistic : bool, default=True
        Whether weights of two classes are refitted by logistic regression; else they remain those of the ridge.
    selection : {"best", "one_se"}, default="best"
        The shrinkage λ of the smallest leave-one-out error, or the largest within a standard error of it.
    cv : int, splitter, iterable or None, default=None
        Folds whose held-out rows calibrate the scores and set thresholds. None takes leave-one-out scores.
    refit : bool, default=True
        Whether the final model is fitted on all rows; False keeps that of the only split.

    Attributes
    ----------
    model_ : EvidenceModel
    regularization_ : float
        The λ that was chosen.
    path_ : RidgePath
        Leave-one-out errors along the λ that were tried, with standard errors.
    """

    def __init__(
        self,
        *,
        medoids: int | str = 64,
        neighbors: int | str = "auto",
        n_pairs: int = 16,
        n_triples: int = 10,
        n_bags: int = 2,
        blocks: Sequence[str] = BLOCKS,
        scaling: Literal["rank", "standard"] = "rank",
        targeted: bool = True,
        logistic: bool = True,
        selection: Selection = "best",
        cv: Any = None,
        refit: bool = True,
    ) -> None:
        self.medoids = medoids
        self.neighbors = neighbors
        self.n_pairs = n_pairs
        self.n_triples = n_triples
        self.n_bags = n_bags
        self.blocks = blocks
        self.scaling = scaling
        self.targeted = targeted
        self.logistic = logistic
        self.selection = selection
        self.cv = cv
        self.refit = refit

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        **FirstStageSettings._constraints,
        "medoids": Either(Whole(1), Choice(("tiny",))),
        "neighbors": Either(Whole(0), Choice(("auto",))),
        "n_pairs": Whole(0),
        "n_triples": Whole(0),
        "n_bags": Whole(1),
        "blocks": Some(BLOCKS),
        "scaling": Choice(("rank", "standard")),
        "targeted": Flag(),
        "logistic": Flag(),
        "selection": Choice(("best", "one_se")),
    }

    def _settings(self) -> EvidenceSettings:
        return EvidenceSettings(
            n_medoids=TINY if isinstance(self.medoids, str) else int(self.medoids),
            n_neighbors=self._n_neighbors(),
            n_pairs=int(self.n_pairs),
            n_triples=int(self.n_triples),
            n_bags=int(self.n_bags),
            blocks=tuple(block for block in BLOCKS if block in self.blocks),
            scaling=self.scaling,
            targeted=bool(self.targeted),
            logistic=bool(self.logistic),
            selection=self.selection,
        )

    def _n_neighbors(self) -> int:
        if isinstance(self.neighbors, str):
            return 0 if isinstance(self.medoids, str) else AUTO_NEIGHBORS
        return int(self.neighbors)

    def _fit_rows(
        self,
        table: Array,
        codes: Codes,
        classes: npt.NDArray[Any],
        seed: int,
        told: Told,
        groups: Codes | None,
    ) -> tuple[Method, Apart]:
        order = order_by_content(table)
        ordered = np.ascontiguousarray(table[:, order])
        fitted = fit_evidence(ordered, codes, len(classes), self._settings(), seed, told, groups)
        self.regularization_, self.path_ = fitted.regularization, fitted.path
        return evidence_in_order(fitted.model, order), Apart(fitted.out_of_fold)
