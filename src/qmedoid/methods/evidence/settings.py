"""Settings of the evidence method, and the result of its fit."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.methods.evidence.model import EvidenceModel

Block = Literal["linear", "single", "group", "full"]
Selection = Literal["best", "one_se"]
BLOCKS: tuple[Block, ...] = ("linear", "single", "group", "full")
"""Kinds of evidence: columns as they are, single columns, chosen pairs and triples, all columns at once."""


@dataclass(frozen=True)
class EvidenceSettings:
    """Settings of an evidence model.

    Attributes
    ----------
    n_medoids : int
        Medoids at most, but at least one per class.
    n_pairs, n_triples : int
        Groups of two and of three columns in each bag.
    n_bags : int
        Models that are averaged, each with its part of the medoids and its groups. Fewer where a class would have less
        than four medoids in a bag.
    n_terms : int
        Terms aimed at, all bags together: the more columns, the fewer medoids each group is given.
    blocks : tuple of str
        Which of `BLOCKS` there are.
    scaling : {"rank", "standard"}
        What distances are measured on; the linear block is always on standardized columns.
    targeted : bool
        Whether groups are chosen by what they explain of the classes; else they are drawn.
    logistic : bool
        Whether weights of two classes are refitted by logistic regression; else they remain those of the ridge.
    selection : {"best", "one_se"}
        λ of the smallest leave-one-out error, or the largest λ within a standard error of it.
    max_rows : int
        Maximum number of rows that weights are fitted on, a stratified sample of a longer table.
    n_neighbors : int
        Maximum number of extra training rows kept for the neighbor term; it is used where it helps.
    """

    n_medoids: int = 64
    n_pairs: int = 16
    n_triples: int = 10
    n_bags: int = 2
    n_terms: int = 1500
    blocks: tuple[Block, ...] = BLOCKS
    scaling: Literal["rank", "standard"] = "rank"
    targeted: bool = True
    logistic: bool = True
    selection: Selection = "best"
    max_rows: int = 20_000
    n_neighbors: int = 5000

    def __post_init__(self) -> None:
        """Refuse blocks that do not exist."""
        if not self.blocks or not set(self.blocks) <= set(BLOCKS):
            raise ParameterError(f"The blocks must be some of {list(BLOCKS)}, at least one. Got {self.blocks} instead.")


class RidgePath(NamedTuple):
    """Leave-one-out errors along a path of λ, rising; each array of the shape (L,).

    Attributes
    ----------
    penalties : the λ, in units of the number of rows
    errors : mean squared leave-one-out error of the outputs, mean of the bags
    standard_errors : standard error of each over the rows
    """

    penalties: Array
    errors: Array
    standard_errors: Array


@dataclass(frozen=True, eq=False)
class FittedEvidence:
    """An evidence model with its out-of-fold scores.

    Attributes
    ----------
    model : EvidenceModel
    out_of_fold : ndarray of shape (n, C)
        Out-of-fold dissimilarities of every training row, its group left out: in closed form, with the intercept of
        all rows.
    regularization : float
        The λ that was chosen, geometric mean of the bags.
    loo_error : float
        Mean squared leave-one-out error of the ridge at the chosen λ, mean of the bags.
    path : RidgePath
    """

    model: EvidenceModel
    out_of_fold: Array
    regularization: float
    loo_error: float
    path: RidgePath
