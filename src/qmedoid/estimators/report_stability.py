"""The stability of a saved model's kind of fit, on the rows of a table, for its report."""

from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.stability import stability
from qmedoid.model.table import TableModel
from qmedoid.tables.roles import Role

_ROLES: dict[str, Role] = {"number": "number", "category": "category", "date": "date"}


def stability_beside(model: TableModel, table: pa.Table, codes: Codes, n_bootstraps: int) -> dict[str, Any]:
    """The stability part of a summary: fits of the rows that have a class, with the method and roles of the model.

    Parameters
    ----------
    model : TableModel
    table : pyarrow.Table
        The columns that the model reads.
    codes : ndarray of shape (n,)
        Class codes; rows below 0 are left out.
    n_bootstraps : int
    """
    labeled = np.flatnonzero(codes >= 0)
    rows = table.take(pa.array(labeled))
    roles = {column.name: _ROLES[column.kind] for column in model.contract.columns
             if column.kind in _ROLES and column.name in rows.column_names}  # fmt: skip
    missing = {
        column.name: [*column.missing_numbers] if column.kind == "number" else [*column.missing_values]
        for column in model.contract.columns if column.missing_values and column.name in rows.column_names
    }  # fmt: skip
    asked = model.parameters.get("method", "auto")
    classifier = MedoidClassifier(
        method=asked if isinstance(asked, str) else "auto", roles=roles, missing=missing, random_state=0
    )
    labels = np.array(model.decision.classes)[codes[labeled]]
    found = stability(classifier, rows, labels, n_bootstraps=n_bootstraps, random_state=0)
    about = (
        f"{found.n_rows:,} rows of the table were fitted anew, all of them and {found.n_bootstraps} bootstrap samples, "
        "with the method of this model. It is about such fits, not about this model file."
    )
    return {**found.as_dict(), "about": about, "text": f"{about}\n\n{found}"}
