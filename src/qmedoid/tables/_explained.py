"""Why a saved model decides as it does: explanations, importances and effects of columns."""

from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import replace
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.model.contract import Contract
from qmedoid.model.table import TableModel
from qmedoid.tables.difference import OnMismatch, compare_columns
from qmedoid.tables.effect import N_BINS, Effect, table_effect
from qmedoid.tables.explaining import NearestRows, explain_record
from qmedoid.tables.importance import table_importances
from qmedoid.tables.issues import Issues

if TYPE_CHECKING:
    from qmedoid.explanations.explanation import Explanation

T = TypeVar("T")


class ExplainingMixin:
    """What the columns of tables contribute to the decisions of a saved model."""

    model: TableModel
    sha256: str | None

    @property
    @abstractmethod
    def contract(self) -> Contract:
        """The columns that a table must have."""

    @abstractmethod
    def _checked(self, data: Any, on_mismatch: OnMismatch, use: Callable[[pa.Table, Issues], T]) -> T:
        """What is made of the data as a table under the names of the contract."""

    @property
    def feature_importances_(self) -> Array | None:
        """Mean absolute contribution of every column of the contract to the margins of training rows, in log-odds.

        None for a circuit alone, whose decisions are no sums over columns. `importances` has those of other rows.
        """
        return self.model.importances

    def explain(
        self,
        data: Any,
        row: int = 0,
        *,
        top: int = 10,
        fixed: Collection[str] = (),
        known: Any = None,
        on_mismatch: OnMismatch = "error",
    ) -> "Explanation":
        """Why one record was decided as it was: contributions that add up to the margin, at every level.

        Parameters
        ----------
        data : data frame, Arrow table, dict of columns or array
        row : int
            The row of `data` to explain; negative ones count from the end.
        top : int
            Columns, groups and rows that are shown one by one; 0 shows all.
        fixed : collection of str
            Columns that cannot change, when the nearest flip is looked for.
        known : data frame, Arrow table, dict of columns or None
            Rows to look for the nearest in, such as the training rows, with the target column if their classes are to
            be shown. They come under ``"known"``, by the distance that the model measures to its medoids.
        on_mismatch : {"error", "warn"}
        """
        if not isinstance(row, Integral) or isinstance(row, bool):
            raise ParameterError(f"The 'row' parameter must be the number of a row, counted from 0. Got {row!r}.")
        counted = Issues()

        def explain_row(table: pa.Table, issues: Issues) -> tuple[pa.Table, dict[str, Any]]:
            nonlocal counted
            if not -len(table) <= row < len(table):
                raise DataError(f"There is no row {row}: the table has {len(table)} rows, counted from 0.")
            record, counted = table.slice(row % len(table), 1), issues
            return record, {"row": row % len(table), **explain_record(self.model, record, issues)}

        def nearest_rows(table: pa.Table, issues: Issues) -> dict[str, Any]:
            target = self.contract.target
            contributions = {one["name"]: one["contribution"] for one in report["columns"]}
            nearest = NearestRows(self.model, record, contributions, skip=report["row"] if known is data else None)
            nearest.add(table, table.column(target) if target in table.column_names else None, issues)
            return nearest.report()

        record, report = self._checked(data, on_mismatch, explain_row)
        if known is not None:
            report["known"] = self._checked(known, on_mismatch, nearest_rows)
        difference = replace(compare_columns(self.contract, record.schema), issues=counted).deviations()
        # By name: the object lies in a layer above.
        made: Explanation = import_module("qmedoid.explanations.explanation").Explanation(
            report, self.model, record, top=top, fixed=fixed, sha256=self.sha256, difference=difference
        )
        return made

    def importances(self, data: Any, *, on_mismatch: OnMismatch = "error") -> dict[str, float]:
        """Mean absolute contribution of every column to the decisions about these records, the largest first.

        A contribution is what the column adds to the margin between the decided class and the runner-up, as in
        `explain`, in log-odds. Votes of neighbors and other terms belong to no column.
        """
        return self._checked(data, on_mismatch, lambda table, issues: table_importances(self.model, table, issues))

    def effect(
        self, data: Any, column: str, *, toward: Any = None, bins: int = N_BINS, on_mismatch: OnMismatch = "error"
    ) -> Effect:
        """What the values of a column contribute to the decisions about these records.

        Parameters
        ----------
        data : data frame, Arrow table, dict of columns or array
        column : str
            A column of the contract.
        toward : label, optional
            The class that contributions above 0 are for, against the mean of all others; of two classes the positive
            one by default.
        bins : int
            Bins of numbers and dates, of about equally many rows.
        on_mismatch : {"error", "warn"}
        """
        return self._checked(
            data, on_mismatch, lambda table, issues: table_effect(self.model, table, issues, column, toward, bins)
        )
