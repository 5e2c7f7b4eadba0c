"""Training rows of a model as rows of a larger table."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from qmedoid.arrays import Codes
from qmedoid.models.evidence import EvidenceModel
from qmedoid.models.stage import PlainStage

Stage = TypeVar("Stage", bound=PlainStage)


def renumbered(stage: Stage, rows: Codes) -> Stage:
    """The same stage, where training row i is row ``rows[i]``."""
    numbered: Stage = replace(stage, medoid_rows=rows[stage.medoid_rows].astype(np.intp))  # type: ignore[type-var]
    if isinstance(numbered, EvidenceModel) and numbered.neighbours is not None:
        return replace(numbered, neighbours=numbered.neighbours.renumbered(rows))
    return numbered
