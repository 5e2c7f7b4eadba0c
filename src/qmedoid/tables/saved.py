"""A saved model in the hands of its user: data frames in, decisions out, without scikit-learn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, row_slices
from qmedoid.clusters.extra import is_collection
from qmedoid.exceptions import DataError, ModelError, ParameterError
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.budgets import budgets_on_curve, budgets_on_rows
from qmedoid.model.contract import Contract
from qmedoid.model.operating_point import Drift, OperatingSummary
from qmedoid.model.table import Decisions, TableModel
from qmedoid.storage.model_file import load_file, save_model
from qmedoid.tables._explained import ExplainingMixin
from qmedoid.tables._measured import MeasuringMixin
from qmedoid.tables._shown import ShowingMixin
from qmedoid.tables.arrow import BATCH_ROWS, as_table
from qmedoid.tables.bad_rows import OnBadRow
from qmedoid.tables.difference import OnMismatch, compare_columns
from qmedoid.tables.issues import Issues
from qmedoid.tables.lazy_scoring import lazy_table, takes_collections
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally, record_novelty
from qmedoid.tables.results import ResultColumns
from qmedoid.tables.scoring import decide_batch, decide_rows
from qmedoid.tables.targets import label_codes

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

    See Also
    --------
    SavedModel : what can be done with it, with an example.
    """
    loaded = load_file(path)
    return SavedModel(loaded.model, sha256=loaded.sha256, versions=loaded.versions)


class SavedModel(ExplainingMixin, ShowingMixin, MeasuringMixin):
    """A model loaded from a file, that predicts and explains without scikit-learn.

    Its methods take data frames, Arrow tables, arrays, or dictionaries of columns. Those that return an array or a
    table about every record (`predict`, `predict_proba`, `decision_function`, `decided_by`, `novelty`, `score_table`)
    take Dask data frames and arrays as well, and return lazy ones: an array for an array; for a data frame a series or,
    with a column for every class, a data frame with the classes as names. Its index is kept.

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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> import tempfile
    >>> from pathlib import Path
    >>> from qmedoid import EvidenceClassifier, load
    >>> model = EvidenceClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = load(model.save(Path(folder) / "iris.qmedoid"))
    >>> bool((saved.predict(X) == model.predict(X)).all())
    True
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

    @takes_collections
    def predict(self, data: Any, *, on_mismatch: OnMismatch = "error") -> npt.NDArray[Any]:
        """Class of every record, shape (n,)."""
        predicted: npt.NDArray[Any] = self.classes_[self.decide(data, on_mismatch=on_mismatch).codes]
        return predicted

    @takes_collections
    def predict_proba(self, data: Any, *, on_mismatch: OnMismatch = "error") -> Array:
        """Class probabilities, shape (n, C)."""
        if not self.model.decision.probabilistic:
            raise ModelError(
                "This model has no probabilities, only margins: use decision_function(), or save a "
                "MedoidClassifier instead of a NearestMedoidClassifier."
            )
        return self.model.decision.probabilities(self.decide(data, on_mismatch=on_mismatch).scores)

    @takes_collections
    def decision_function(self, data: Any, *, on_mismatch: OnMismatch = "error") -> Array:
        """Margin of shape (n,) for two classes, above 0 for the second; scores of shape (n, C) for more."""
        decided = self.decide(data, on_mismatch=on_mismatch)
        return decided.margins if len(self.classes_) == 2 else decided.scores

    @takes_collections
    def decided_by(self, data: Any, *, on_mismatch: OnMismatch = "error") -> npt.NDArray[np.str_]:
        """Who decides each record, shape (n,): the name of the method, such as ``"evidence"``, or ``"circuit"``."""
        method, circuit = self.model.deciders
        return np.where(self.decide(data, on_mismatch=on_mismatch).by_circuit, circuit, method)

    def decide(self, data: Any, *, on_mismatch: OnMismatch = "error") -> Decisions:
        """Everything about every record: class codes, scores, margins, who decided, the nearest medoids."""
        return self._decide(data, on_mismatch)[0]

    def score_table(
        self,
        data: Any,
        *,
        columns: Sequence[str] = (),
        add: Sequence[str] = (),
        n_reasons: int = 3,
        on_mismatch: OnMismatch = "error",
        on_bad_row: OnBadRow = "refuse",
    ) -> pa.Table:
        """The results that ``qmedoid score`` writes about every record, as an Arrow table.

        Parameters
        ----------
        data : data frame, Arrow table, dict of columns or array
            Of a Dask data frame or array, the results are a lazy data frame.
        columns : sequence of str
            Columns of the data to carry through, before the results.
        add : sequence of str
            Further results: ``"probabilities"`` of all classes, ``"row"``, ``"reasons"``, ``"novelty"``; see
            `qmedoid.tables.results.ADDED`.
        n_reasons : int
            Columns that are named at most as reasons for a decision.
        on_mismatch : {"error", "warn"}
        on_bad_row : {"refuse", "flag", "skip"}
            Rows with cells that cannot be read as their kind or are infinite refuse the data, have empty results and
            a ``flag`` that says why, or are left out.
        """
        if is_collection(data):
            how = {"n_reasons": n_reasons, "on_mismatch": on_mismatch, "on_bad_row": on_bad_row}
            return lazy_table(self, data, columns, add, **how)
        wanted = ResultColumns.of(self.model, [*add, *(["flags"] if on_bad_row == "flag" else [])], n_reasons)
        given = as_table(data, names=self._plain_names(data))
        wanted.check_carried(columns, given.column_names)
        carried = given.select(list(columns))

        def results(table: pa.Table, issues: Issues) -> pa.Table:
            made = [wanted.nothing(carried.schema)]
            for rows in row_slices(len(table), BATCH_ROWS):
                part = table.slice(rows.start, rows.stop - rows.start).combine_chunks()
                decided = decide_rows(self.model, part, issues, on_bad_row=on_bad_row)
                extra = carried.slice(rows.start, len(part)).combine_chunks()
                made.append(wanted.batch(extra, decided, ("", rows.start), keep_bad=on_bad_row == "flag"))
            return pa.Table.from_batches(made)

        table: pa.Table = self._checked(given, on_mismatch, results)
        return table

    @takes_collections
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
        return self._derived(replace(self.model, decision=self.model.decision.at_priors(new_prevalence)))

    def at_operating_point(self, operating_point: Any) -> "SavedModel":
        """A copy that cuts elsewhere, by the curve of held-out rows that the model keeps; two classes only.

        Parameters
        ----------
        operating_point : None, float, str or mapping
            The likelier class, a probability, a metric to maximize such as ``"f1"``, or one of ``{"alert_rate": …}``,
            ``{"min_precision": …}``, ``{"min_recall": …}`` and ``{"cost": …}``.

        Notes
        -----
        `expected_` of the copy has precision, recall and alert rate on the held-out rows with 95 % intervals. Figures
        in ``model.metrics`` are about the cut of the fit, and the copy has none of them.

        Raises
        ------
        DataError
            The model keeps no curve; a probability can be cut at all the same.
        ModelError
            There are more than two classes, or no probabilities.
        """
        return self._derived(self.model.at_operating_point(operating_point))

    def _derived(self, model: TableModel) -> "SavedModel":
        return SavedModel(replace(model, parent=self.sha256 or self.model.parent), versions=self.versions)

    def budgets(
        self, budgets: Sequence[Any], data: Any = None, *, target: str | None = None, on_mismatch: OnMismatch = "error"
    ) -> list[dict[str, Any]]:
        """What budgets of alerts mean: threshold, alerts, precision and recall with 95 % intervals; two classes only.

        Parameters
        ----------
        budgets : sequence of int, float or str
            Numbers of alerts such as 100, or shares of the records such as 0.05 or ``"5%"``.
        data : data frame, Arrow table, dict of columns or None
            Rows with their classes. None takes the held-out rows of the fit, from the curve that the model keeps.
        target : str or None
            Column of the classes, if it is not called as in the fit.
        on_mismatch : {"error", "warn"}

        Returns
        -------
        list of dict
            One for each budget, fit for a data frame.
        """
        decision, training = self.model.decision, self.model.training
        if data is None:
            curve = None if training is None else training.curve
            return [one.as_dict() for one in budgets_on_curve(budgets, decision, curve)]
        decision.check_cuttable()
        table, name = as_table(data), target or self.contract.target
        if name is None or name not in table.column_names:
            raise DataError(f"There is no column {name!r} with the classes. Say which it is by 'target'.")
        codes = label_codes(table.column(name), decision.classes)
        scores = self.decide(table, on_mismatch=on_mismatch).scores[codes >= 0]
        spent = budgets_on_rows(budgets, codes[codes >= 0] == 1, scores[:, 1] - scores[:, 0])
        return [one.as_dict() for one in spent]

    def estimate_prevalence(self, data: Any, *, on_mismatch: OnMismatch = "error") -> PrevalenceEstimate:
        """How frequent the classes are among unlabeled records, by EM, with 95 % intervals; for `prior_shift`."""
        return self.model.decision.estimated_priors(self.decide(data, on_mismatch=on_mismatch).scores)

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
        issues = Issues()
        table = as_table(data, names=self._plain_names(data))
        difference = compare_columns(self.contract, table.schema)
        if on_mismatch == "error":
            difference.raise_or_warn(on_mismatch)
        made = use(difference.renamed(table), issues)
        replace(difference, issues=issues).raise_or_warn(on_mismatch)
        return made

    def _plain_names(self, data: Any) -> tuple[str, ...] | None:
        """The names of the columns of an array, which has none; None for other data."""
        names = self.contract.names
        return names if isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == len(names) else None

    def __repr__(self) -> str:
        model = self.model
        return (
            f"SavedModel({len(model.contract.columns)} columns, classes {list(model.decision.classes)!r}, "
            f"decided by {model.deciders[0]!r})"
        )


def check_saved(**models: Any) -> None:
    """Refuse parameters that are no saved models."""
    for name, model in models.items():
        if not isinstance(model, SavedModel):
            raise ParameterError(
                f"The {name!r} parameter must be a SavedModel, such as qmedoid.load(path). Got {type(model).__name__} "
                "instead."
            )
