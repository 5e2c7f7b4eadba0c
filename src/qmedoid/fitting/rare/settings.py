"""What a rare-event model is made of; every part can be switched off on its own."""

from dataclasses import dataclass
from typing import Literal

MetricName = Literal["plain", "contrast", "tight"]
METRICS: tuple[MetricName, ...] = ("plain", "contrast", "tight")
"""Metrics by name: all columns alike, by how far each tells the classes apart, by how tightly rare rows lie in it."""


@dataclass(frozen=True)
class RareSettings:
    """Prototypes, evidence and fusion.

    Attributes
    ----------
    n_rare : most rare prototypes; all rare rows where there are no more
    n_common : common prototypes drawn at random
    n_hard : common prototypes chosen for their likeness to rare rows; 0 for none
    metrics : what the deltas are measured in, the main one first
    counts : numbers of nearest prototypes that a delta averages over, at most 16
    signed_log : whether columns are compressed before they are compared
    leave_one_out : whether a training row is not compared with itself
    length, floor : of the nearness on a column, in deviations and as a share
    deltas_strength, nearness_strength, position_strength, middle_strength : variance that the weights of each kind of
        feature have beforehand (C of an L2 logistic regression); 0 leaves the kind out
    n_folds : folds of the cross-fitted scores
    n_circuit_features : features that are handed to a circuit
    """

    n_rare: int = 2000
    n_common: int = 3000
    n_hard: int = 1000
    metrics: tuple[MetricName, ...] = ("plain", "contrast")
    counts: tuple[int, ...] = (1, 3, 8)
    signed_log: bool = True
    leave_one_out: bool = True
    length: float = 0.2
    floor: float = 0.005
    deltas_strength: float = 0.01
    nearness_strength: float = 0.03
    position_strength: float = 0.1
    middle_strength: float = 0.03
    n_folds: int = 3
    n_circuit_features: int = 8
