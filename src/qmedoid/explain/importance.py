"""Importances of the columns of a model, by the decisions about the rows of a table."""

import pyarrow as pa

from qmedoid.model.importance import ImportanceTally, by_importance
from qmedoid.model.table import TableModel
from qmedoid.tables.arrow import BATCH_ROWS
from qmedoid.tables.issues import Issues
from qmedoid.tables.scoring import decide_batch


def table_importances(model: TableModel, table: pa.Table, issues: Issues) -> dict[str, float]:
    """Mean absolute contribution of every column to the margins of the rows of a table, the largest first."""
    tally = ImportanceTally(model)
    for start in range(0, len(table), BATCH_ROWS):
        decided, columns = decide_batch(model, table.slice(start, BATCH_ROWS), issues)
        tally.add(columns, decided)
    return by_importance(model.contract.names, tally.importances)
