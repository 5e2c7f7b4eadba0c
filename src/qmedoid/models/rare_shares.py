"""How a rare-event model tells its two classes apart: feature by feature, each made of distances to real rows."""

import numpy as np
import numpy.typing as npt

from qmedoid.models.rare import RareEventModel
from qmedoid.models.shares import GroupShare, Shares

Array = npt.NDArray[np.float64]


def rare_shares(model: RareEventModel, row: Array, winner: int) -> Shares:
    """Shares of every feature, column by column together where a feature looks at one; `row` has the shape (1, M)."""
    sign = 1.0 if winner == model.rare_class else -1.0
    added = sign * model.contributions(row[0])
    groups = tuple(
        GroupShare(columns, float(amount), name=name)
        for columns, name, amount in zip(model.feature_columns, model.feature_names, added, strict=True)
    )
    return Shares(groups, {"intercept": sign * float(model.intercept)})
