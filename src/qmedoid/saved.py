"""A saved model in the hands of its user: data frames in, decisions out, without scikit-learn."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, is_collection, row_slices
from qmedoid.exceptions import DataError, ModelError, ParameterError
from qmedoid.explain.effect import N_BINS, Effect, table_effect, table_importances
from qmedoid.explain.explaining import NearestRows, explain_record
from qmedoid.explain.explanation import Explanation
from qmedoid.export.sql.dialects import DialectName
from qmedoid.export.writing import Export, Format, export_model
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.large.lazy_scoring import lazy_table, takes_collections
from qmedoid.methods.part import CLOSED_FORM
from qmedoid.methods.variational.model import ExpectationFunction
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.contract import Contract
from qmedoid.model.importance import model_view
from qmedoid.model.model import Decisions, Model
from qmedoid.model.operating_point import Drift, OperatingSummary, budget_dict, budgets_on_rows
from qmedoid.model.storage.model_file import load_file, save_model
from qmedoid.report.diff import DecisionTally, ModelDiff, compare_models
from qmedoid.tables.arrow import BATCH_ROWS, as_table
from qmedoid.tables.difference import Issues, OnMismatch, compare_columns
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally, record_novelty
from qmedoid.tables.results import ResultColumns, ScoreSettings
from qmedoid.tables.scoring import decide_batch, decide_rows
from qmedoid.tables.targets import label_codes
from qmedoid.tables.writing import OnBadRow

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

    from qmedoid.quantum import MeasurementPlan

# Rows that two models decide about at a time, where they are compared.
_AT_ONCE = 2**16


def load(path: str | Path) -> "SavedModel":
    """Load a model from a file that `save` wrote; nothing in it is executed.

    Parameters
    ----------
    path : str or Path
        The file, such as ``"heart.qmedoid"``.

    Returns
    -------
    SavedModel
        What can be done with it, with an example, is said there.

    Raises
    ------
    ModelError
        The file is not a saved model, is damaged, or has a format that this version does not know.
    """
    loaded = load_file(path)
    return SavedModel(loaded.model, sha256=loaded.sha256, versions=loaded.versions)


class SavedModel:
    """A model loaded from a file, that predicts and explains without scikit-learn.

    Its methods take data frames, Arrow tables, arrays, or dictionaries of columns. Those that return an array or a
    table about every record (`predict`, `predict_proba`, `decision_function`, `decided_by`, `novelty`, `score_table`)
    take Dask data frames and arrays as well, and return lazy ones: an array for an array; for a data frame a series or,
    with a column for every class, a data frame with the classes as names. Its index is kept. Data that differ from the
    contract are refused, or with ``on_mismatch="warn"`` read as far as they can be, with a warning.

    Attributes
    ----------
    model : Model
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
        self, model: Model, *, sha256: str | None = None, versions: Mapping[str, str | None] | None = None
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
        return np.where(self.decide(data, on_mismatch=on_mismatch).by_circuit, "circuit", self.model.method)

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
        on_bad_row : {"refuse", "flag", "skip"}
            Rows with cells that cannot be read as their kind or are infinite refuse the data, have empty results and
            a ``flag`` that says why, or are left out.
        """
        settings = ScoreSettings(tuple(columns), tuple(add), n_reasons, on_mismatch, on_bad_row)
        if is_collection(data):
            return lazy_table(self, data, settings)
        with self._read(data, on_mismatch) as (table, issues):
            results = ResultColumns(self.model, settings)
            made, carried = [results.nothing(table.schema)], table.select(results.carried)
            for rows in row_slices(len(table), BATCH_ROWS):
                part, extra = (
                    whole.slice(rows.start, rows.stop - rows.start).combine_chunks() for whole in (table, carried)
                )
                decided = decide_rows(self.model, part, issues, on_bad_row=on_bad_row)
                made.append(results.batch(extra, decided, ("", rows.start)))
        return pa.Table.from_batches(made)

    @takes_collections
    def novelty(self, data: Any, *, on_mismatch: OnMismatch = "error") -> Array:
        """How far every record lies from the training rows, shape (n,); above 1 for records unlike them.

        The distance to the nearest medoid, where 1 is what 99 % of the training rows stay below; or, where it is more,
        how far a value lies beyond the limits of its column.
        """
        return record_novelty(self.model, self._decide(data, on_mismatch)[1])

    def novelty_report(self, data: Any, *, on_mismatch: OnMismatch = "error") -> NoveltyReport:
        """How unlike the training rows a table is: values beyond all limits, other distributions, far records."""
        tally = NoveltyTally()
        self._decide(data, on_mismatch, tally)
        return tally.report(self.model)

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
        return self._derived(self.model.at_priors(new_prevalence))

    def at_operating_point(self, operating_point: Any) -> "SavedModel":
        """A copy that cuts elsewhere, by the curve of held-out rows that the model keeps; two classes only.

        Parameters
        ----------
        operating_point : None, float, str or mapping
            The likelier class, a probability, a metric to maximize such as ``"f1"``, or one of ``{"alert_rate": …}``,
            ``{"min_precision": …}``, ``{"min_recall": …}`` and ``{"cost": …}``.

        Notes
        -----
        `expected_` of the copy has precision, recall and alert rate on the held-out rows, with intervals of the model's
        rate and, from `expected_.forecast(rows)`, of the next table. Without a curve only a probability can be cut at.
        """
        return self._derived(self.model.at_operating_point(operating_point))

    def _derived(self, model: Model) -> "SavedModel":
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

        Returns
        -------
        list of dict
            One for each budget, fit for a data frame.
        """
        decision, training = self.model.decision, self.model.training
        if data is None:
            spent = decision.budgets(budgets, None if training is None else training.curve)
            return [{**budget_dict(*one)} for one in spent]
        decision.check_cuttable()
        table, name = as_table(data), target or self.contract.target
        if name is None or name not in table.column_names:
            raise DataError(f"There is no column {name!r} with the classes. Say which it is by 'target'.")
        codes = label_codes(table.column(name), decision.classes)
        scores = self.decide(table, on_mismatch=on_mismatch).scores[codes >= 0]
        spent = budgets_on_rows(budgets, codes[codes >= 0] == 1, scores[:, 1] - scores[:, 0])
        return [{**budget_dict(*one)} for one in spent]

    def estimate_prevalence(self, data: Any, *, on_mismatch: OnMismatch = "error") -> PrevalenceEstimate:
        """How frequent the classes are among unlabeled records, by EM, with 95 % intervals; for `prior_shift`."""
        return self.model.decision.estimated_priors(self.decide(data, on_mismatch=on_mismatch).scores)

    def save(self, path: str | Path, *, circuits: bool = False, raw_rows: bool = True) -> Path:
        """Write the model to a file, such as ``heart.qmedoid``; see `MedoidClassifier.save` for the parameters."""
        files = None
        if circuits:
            from qmedoid.quantum import circuit_files

            files = circuit_files(self.model)
        return save_model(self.model, path, circuits=files, raw_rows=raw_rows)

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
    ) -> Explanation:
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
            Rows to look for similar ones in, such as the training rows, with the target column if their classes are to
            be shown. The most similar come under ``"known"``, by the columns that decide.
        """
        with self._read(data, on_mismatch) as (table, issues):
            index = _index_of(row, table)
            record = table.slice(index, 1)
            report = {"row": index, **explain_record(self.model, record, issues)}
        if known is not None:
            with self._read(known, on_mismatch) as (rows, issues_of_rows):
                target = self.contract.target
                nearest = NearestRows(self.model, record, report, skip=index if known is data else None)
                nearest.add(rows, rows.column(target) if target in rows.column_names else None, issues_of_rows)
            report |= nearest.found()
        difference = replace(compare_columns(self.contract, record.schema), issues=issues).deviations()
        return Explanation(report, self.model, record, top=top, fixed=fixed, sha256=self.sha256, difference=difference)

    def importances(self, data: Any, *, on_mismatch: OnMismatch = "error") -> dict[str, float]:
        """Mean absolute contribution of every column to the decisions about these records, the largest first.

        A contribution is what the column adds to the margin between the decided class and the runner-up, as in
        `explain`, in log-odds. Votes of neighbors and other terms belong to no column.
        """
        with self._read(data, on_mismatch) as (table, issues):
            return table_importances(self.model, table, issues)

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
        """
        with self._read(data, on_mismatch) as (table, issues):
            return table_effect(self.model, table, issues, column, toward, bins)

    def measured_by(
        self, swap_test: SwapTestFunction | None = None, expectations: ExpectationFunction | None = None
    ) -> "SavedModel":
        """A copy with distances, the circuit, or both run by circuits instead of by closed form and simulator.

        `swap_test` measures the overlaps, for example `qmedoid.quantum.SamplerSwapTest`, and `expectations` runs the
        variational circuit, for example `qmedoid.quantum.SamplerExpectations`.
        """
        return self._derived(self.model.measured_by(swap_test, expectations))

    def measurement_plan(
        self,
        data: Any,
        backend: Any = None,
        *,
        on_mismatch: OnMismatch = "error",
        n_qubits: int | None = None,
        seed: int | None = None,
        **settings: Any,
    ) -> "MeasurementPlan":
        """Plan the measurement of records on a quantum device; no circuit runs before `MeasurementPlan.run`.

        Parameters
        ----------
        data : data frame, Arrow table, dict of columns or array
            The records.
        backend : Device, BackendV2, BaseSamplerV2, str or None
            Where circuits run; names are ``"simulator"``, fake devices such as ``"fake_torino"``, and devices of the
            service. None is the exact simulator.
        n_qubits : int, optional
            Qubits that are used at most; see `qmedoid.quantum.Device`.
        seed : int, optional
            Of transpilation, simulated measurements, known pairs and draws. None is that of a `Device`, or 0.
        **settings
            Of `qmedoid.quantum.MeasurementSettings`, such as `shots`, `circuit`, `register`, `refine` and `calibrate`.
        """
        from qmedoid.quantum import MeasurementSettings, as_device, plan_measurement

        plain = self._derived(replace(self.model, backends=CLOSED_FORM))
        columns = plain._decide(data, on_mismatch)[1]
        device = as_device(backend, n_qubits=n_qubits, seed=seed)
        return plan_measurement(self.model, columns, device, MeasurementSettings(seed=device.seed, **settings))

    def report(self, path: str | Path, data: Any = None, **settings: Any) -> Path:
        """Write a page that shows the model and, if given, what it decides about data; any browser opens it.

        Parameters
        ----------
        path : str or Path
        data : data frame, Arrow table, dict of columns or None
            With the target column, figures are those of these rows; else of the held-out rows of the fit.
        **settings
            `target` and `on_mismatch` as elsewhere; `cost`, what a missed positive costs in false alerts; `rows` and
            `live`, whether the page has real rows and the model itself; `all_rows`, whether rows that the fit has seen
            count as well; `max_bytes`, from which size on the model is left out; `ignore`, codes of findings that are
            not judged.
        """
        from qmedoid.report.summary import report_model  # with the templates, which scoring needs not

        return report_model(self.model, path, data, sha256=self.sha256, **settings)

    def export(
        self,
        path: str | Path,
        *,
        format: Format,
        dialect: DialectName | None = None,
        table: str | None = None,
        force: bool = False,
        check: str | Path | None = None,
    ) -> Export:
        """Write the model in another language, which scores records without Python.

        Parameters
        ----------
        path : str or Path
        format : {"js", "sql", "onnx"}
            JavaScript, one SELECT statement, or an ONNX graph (which needs ``qmedoid[onnx]``).
        dialect : {"duckdb", "sqlite", "postgres"}, optional
            The database that the SQL is for; DuckDB by default.
        table : str, optional
            The table that the SQL selects from; ``records`` by default.
        force : bool
            Whether to overwrite a file that is no export; one that is an export is replaced.
        check : str or Path, optional
            A file with a table that the export is run on, in DuckDB, SQLite, onnxruntime or Node. `checks` of the
            result says of each way to read it how many rows agree with the model.

        Raises
        ------
        ModelError
            The format cannot express the model; the message says why.
        """
        return export_model(
            self.model, path, format=format, dialect=dialect, table=table, force=force, check=check, sha256=self.sha256
        )

    def circuit(
        self,
        data: Any = None,
        row: int = 0,
        *,
        which: str = "auto",
        medoid: int | None = None,
        measure: bool = False,
        on_mismatch: OnMismatch = "error",
    ) -> "QuantumCircuit":
        """A circuit of the model in Qiskit, with what leads from its outcomes to a probability (extra ``quantum``).

        ``metadata["qmedoid"]`` of the circuit describes it in plain values; `qmedoid.quantum.export` writes both.

        Parameters
        ----------
        data : data frame, Arrow table, dict of columns, array or None
            Its `row` has the angles that are put in; None leaves them open.
        which : {"auto", "variational", "swap-test", "interference"}
            The trained circuit, the SWAP test, or the cheaper circuit of the same overlap; ``"auto"`` takes the first
            of the former two that the model has.
        medoid : int, optional
            Training row of the medoid that the SWAP test compares the record with.
        measure : bool
            Whether the qubits of a trained circuit are measured; the ancilla of a SWAP test always is.
        """
        from qmedoid.quantum import circuit_of_record, export_circuit

        settings: dict[str, Any] = {"which": which, "medoid": medoid, "measure": measure, "sha256": self.sha256}
        if data is None:
            return export_circuit(self.model, **settings)
        with self._read(data, on_mismatch) as (table, issues):
            index = _index_of(row, table)
            return circuit_of_record(self.model, table.slice(index, 1), issues, row=index, **settings)

    def _decide(
        self, data: Any, on_mismatch: OnMismatch, tally: NoveltyTally | None = None
    ) -> tuple[Decisions, list[Array]]:
        """Decisions about a table, and its encoded columns."""
        with self._read(data, on_mismatch) as (table, issues):
            return decide_batch(self.model, table, issues, tally)

    @contextmanager
    def _read(self, data: Any, on_mismatch: OnMismatch) -> Iterator[tuple[pa.Table, Issues]]:
        """The data as a table under the names of the contract; differences are refused or a warning.

        What is counted in the issues within the block is a difference, too.
        """
        issues, names = Issues(), self.contract.names
        is_plain = isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == len(names)
        table = as_table(data, names=names if is_plain else None)
        difference = compare_columns(self.contract, table.schema)
        if on_mismatch == "error":
            difference.raise_or_warn(on_mismatch)
        yield table, issues
        replace(difference, issues=issues).raise_or_warn(on_mismatch)

    def __repr__(self) -> str:
        columns, classes = len(self.contract.columns), list(self.model.decision.classes)
        return f"SavedModel({columns} columns, classes {classes!r}, decided by {self.model.method!r})"

    def _repr_html_(self) -> str:
        return model_view(self.model, "Saved model of qmedoid", self.sha256)


def _index_of(row: int, table: pa.Table) -> int:
    """The index of a row from 0; negative ones count from the end."""
    if not isinstance(row, Integral) or isinstance(row, bool):
        raise ParameterError(f"The 'row' parameter must be the number of a row, counted from 0. Got {row!r}.")
    if not -len(table) <= row < len(table):
        raise DataError(f"There is no row {row}: the table has {len(table)} rows, counted from 0.")
    return int(row) % len(table)


def check_saved(**models: Any) -> None:
    """Refuse parameters that are no saved models."""
    for name, model in models.items():
        if not isinstance(model, SavedModel):
            such = f"a SavedModel, such as qmedoid.load(path). Got {type(model).__name__} instead."
            raise ParameterError(f"The {name!r} parameter must be {such}")


def diff(old: SavedModel, new: SavedModel, data: Any = None, *, on_mismatch: OnMismatch = "error") -> ModelDiff:
    """What changed between two saved models and, with a table, in their decisions about its records.

    Parameters
    ----------
    old, new : SavedModel
    data : data frame, Arrow table, dict of columns, array or None, default=None
        Records that both models decide about; each must be able to read them.

    Returns
    -------
    ModelDiff

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from qmedoid import EvidenceClassifier, diff
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> old, new = (
    ...     EvidenceClassifier(n_medoids=n, random_state=0).fit(X[::4], y[::4]).to_saved()
    ...     for n in (4, 8)
    ... )
    >>> found = diff(old, new, X)
    >>> found.decisions["rows"], found.decisions["changed"] < 60
    (569, True)
    """
    check_saved(old=old, new=new)
    decisions = None
    if data is not None:
        tally = DecisionTally(old.model, new.model)
        with old._read(data, on_mismatch) as (of_old, old_issues), new._read(data, on_mismatch) as (of_new, new_issues):
            for start in range(0, len(of_old), _AT_ONCE):
                tally.add([table.slice(start, _AT_ONCE) for table in (of_old, of_new)], [old_issues, new_issues])
        decisions = tally.report()
    return compare_models(old.model, new.model, decisions, sha256=old.sha256)
