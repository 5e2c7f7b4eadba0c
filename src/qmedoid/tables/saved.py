"""A saved model in the hands of its user: data frames in, decisions out, without scikit-learn."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ModelError
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.contract import Contract
from qmedoid.model.operating_point import Drift, OperatingSummary
from qmedoid.model.table import Decisions, TableModel
from qmedoid.storage.model_file import load_file, save_model
from qmedoid.tables.arrow import as_table
from qmedoid.tables.difference import OnMismatch, compare_columns
from qmedoid.tables.effect import N_BINS, Effect, table_effect
from qmedoid.tables.explaining import NearestRows, explain_record
from qmedoid.tables.importance import table_importances
from qmedoid.tables.issues import Issues
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally, record_novelty
from qmedoid.tables.scoring import decide_batch

T = TypeVar("T")


def load(path: str | Path) -> "SavedModel":
    """Load a model from a file that `save` wrote; nothing in it is executed.

    Parameters
    ----------
    path : str or Path
        The file, such as ``"heart.qmedoid"``.

    Returns
    -------
    SavedModel

    Raises
    ------
    ModelError
        The file is not a saved model, is damaged, or has a format that this version does not know.

    Examples
    --------
    ::

        model = qmedoid.load("heart.qmedoid")
        model.predict(frame), model.explain(frame, row=3)

    See Also
    --------
    save : Save a fitted classifier.
    """
    loaded = load_file(path)
    return SavedModel(loaded.model, sha256=loaded.sha256, versions=loaded.versions)


class SavedModel:
    """A model loaded from a file, that predicts and explains without scikit-learn.

    Its methods take data frames, Arrow tables, arrays, or dictionaries of columns.

    Attributes
    ----------
    model : TableModel
        Contract, encodings, classes and models as plain arrays.
    contract : Contract
        The columns that a table must have.
    classes_ : ndarray of shape (C,)
    sha256 : str or None
        Of the file that the model was loaded from; None for a model that was derived since.
    versions : mapping of str to str or None
        Versions of qmedoid, Python and libraries that the file was saved with.
    """

    def __init__(
        self, model: TableModel, *, sha256: str | None = None, versions: Mapping[str, str | None] | None = None
    ) -> None:
        self.model = model
        self.sha256 = sha256
        self.versions = dict(versions or {})

    @property
    def contract(self) -> Contract:
        """The columns that a table must have."""
        return self.model.contract

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes in the order of their codes; of two, the second is the positive one."""
        return np.array(self.model.decision.classes)

    @property
    def expected_(self) -> OperatingSummary | None:
        """The operating point of two classes, with precision, recall and alert rate on held-out rows, if known."""
        return self.model.decision.operating

    @property
    def feature_importances_(self) -> Array | None:
        """Mean absolute contribution of every column of the contract to the margins of training rows, in log-odds.

        None for a circuit alone, whose decisions are no sums over columns. `importances` has those of other rows.
        """
        return self.model.importances

    def predict(self, data: Any, *, on_mismatch: OnMismatch = "error") -> npt.NDArray[Any]:
        """Class of every record, shape (n,)."""
        predicted: npt.NDArray[Any] = self.classes_[self.decide(data, on_mismatch=on_mismatch).codes]
        return predicted

    def predict_proba(self, data: Any, *, on_mismatch: OnMismatch = "error") -> Array:
        """Class probabilities, shape (n, C)."""
        if not self.model.decision.probabilistic:
            raise ModelError(
                "This model has no probabilities, only margins: use decision_function(), or save a "
                "MedoidClassifier instead of a NearestMedoidClassifier."
            )
        return self.model.decision.probabilities(self.decide(data, on_mismatch=on_mismatch).scores)

    def decision_function(self, data: Any, *, on_mismatch: OnMismatch = "error") -> Array:
        """Margin of shape (n,) for two classes, above 0 for the second; scores of shape (n, C) for more."""
        decided = self.decide(data, on_mismatch=on_mismatch)
        return decided.margins if len(self.classes_) == 2 else decided.scores

    def decided_by(self, data: Any, *, on_mismatch: OnMismatch = "error") -> npt.NDArray[np.str_]:
        """Who decides each record, shape (n,): the name of the method, such as ``"evidence"``, or ``"circuit"``."""
        method, circuit = self.model.deciders
        return np.where(self.decide(data, on_mismatch=on_mismatch).by_circuit, circuit, method)

    def decide(self, data: Any, *, on_mismatch: OnMismatch = "error") -> Decisions:
        """Everything about every record: class codes, scores, margins, who decided, the nearest medoids."""
        return self._decide(data, on_mismatch)[0]

    def novelty(self, data: Any, *, on_mismatch: OnMismatch = "error") -> Array:
        """How far every record lies from the training rows, shape (n,); above 1 for records unlike them.

        The distance to the nearest medoid, where 1 is what 99 % of the training rows stay below; or, where it is more,
        how far a value lies beyond the limits of its column.
        """
        return record_novelty(self.model, self._decide(data, on_mismatch)[1])

    def novelty_report(self, data: Any, *, on_mismatch: OnMismatch = "error") -> NoveltyReport:
        """How unlike the training rows a table is: values beyond all limits, other distributions, far records."""
        tally = NoveltyTally(self.model)
        self._decide(data, on_mismatch, tally)
        return tally.report()

    def alert_rate_drift(self, decided: Decisions) -> Drift | None:
        """The share of alerts among decisions (from `decide`) compared with what is expected, if that is known."""
        operating = self.model.decision.operating
        return None if operating is None else operating.drift(int((decided.codes == 1).sum()), len(decided.codes))

    def prior_shift(self, new_prevalence: Any) -> "SavedModel":
        """A copy adjusted to new class priors (label shift).

        Parameters
        ----------
        new_prevalence : float, mapping or array-like of shape (C,)
            How frequent the second of two classes is, or every class, by label or in the order of `classes_`.

        Notes
        -----
        Where the likelier class, a given probability or a cost decides, the threshold stays the same probability. One
        that was chosen on held-out rows moves along: the same records are called positive.
        """
        shifted = replace(self.model, decision=self.model.decision.at_priors(new_prevalence))
        return SavedModel(replace(shifted, parent=self.sha256 or self.model.parent), versions=self.versions)

    def estimate_prevalence(self, data: Any, *, on_mismatch: OnMismatch = "error") -> PrevalenceEstimate:
        """How frequent the classes are among unlabeled records, by EM, with 95 % intervals; for `prior_shift`."""
        return self.model.decision.estimated_priors(self.decide(data, on_mismatch=on_mismatch).scores)

    def explain(
        self, data: Any, row: int = 0, *, known: Any = None, on_mismatch: OnMismatch = "error"
    ) -> dict[str, Any]:
        """Why one record was decided as it was, as a plain dictionary whose contributions add up to the margin.

        Parameters
        ----------
        data : data frame, Arrow table, dict of columns or array
        row : int
            The row of `data` to explain; negative ones count from the end.
        known : data frame, Arrow table, dict of columns or None
            Rows to look for the nearest in, such as the training rows, with the target column if their classes are to
            be shown. They come under ``"known"``, by the distance that the model measures to its medoids.
        on_mismatch : {"error", "warn"}
        """

        def explain_row(table: pa.Table, issues: Issues) -> tuple[pa.Table, dict[str, Any]]:
            if not -len(table) <= row < len(table):
                raise DataError(f"There is no row {row}: the table has {len(table)} rows, counted from 0.")
            record = table.slice(row % len(table), 1)
            return record, explain_record(self.model, record, issues)

        def nearest_rows(table: pa.Table, issues: Issues) -> dict[str, Any]:
            target = self.contract.target
            nearest = NearestRows(self.model, record)
            nearest.add(table, table.column(target) if target in table.column_names else None, issues)
            return nearest.report()

        record, report = self._checked(data, on_mismatch, explain_row)
        if known is not None:
            report["known"] = self._checked(known, on_mismatch, nearest_rows)
        return report

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

    def save(self, path: str | Path, *, circuits: bool = False, raw_rows: bool = True) -> Path:
        """Write the model to a file, such as ``heart.qmedoid``; see `qmedoid.save` for the parameters."""
        return save_model(self.model, path, circuits=circuits, raw_rows=raw_rows)

    def _decide(
        self, data: Any, on_mismatch: OnMismatch, tally: NoveltyTally | None = None
    ) -> tuple[Decisions, list[Array]]:
        """Decisions about a table, and its encoded columns."""
        return self._checked(data, on_mismatch, lambda table, issues: decide_batch(self.model, table, issues, tally))

    def _checked(self, data: Any, on_mismatch: OnMismatch, use: Callable[[pa.Table, Issues], T]) -> T:
        """What is made of the data as a table under the names of the contract; differences are refused or a warning."""
        names, issues = self.contract.names, Issues()
        is_plain = isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == len(names)
        table = as_table(data, names=names if is_plain else None)
        difference = compare_columns(self.contract, table.schema)
        if on_mismatch == "error":
            difference.raise_or_warn(on_mismatch)
        made = use(difference.renamed(table), issues)
        replace(difference, issues=issues).raise_or_warn(on_mismatch)
        return made

    def __repr__(self) -> str:
        model = self.model
        return (
            f"SavedModel({len(model.contract.columns)} columns, classes {list(model.decision.classes)!r}, "
            f"decided by {model.deciders[0]!r})"
        )
