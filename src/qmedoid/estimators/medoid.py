"""The front door: raw tables in, a method first, and a variational circuit where it helps (algorithms 16 and 20)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted, validate_data

from qmedoid.arrays import Array, Codes, is_collection
from qmedoid.estimators import parameters as allowed
from qmedoid.estimators._fitted import ProbabilisticClassifier, plain_parameters
from qmedoid.estimators.inputs import check_target, one_blas_thread
from qmedoid.estimators.nearest import NearestMedoidClassifier
from qmedoid.estimators.raw_tables import encoded_rows, read_rows, read_table
from qmedoid.estimators.recipes import RECIPES, Recipe, fit_model, recipe_class, recipe_of
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.explain.effect import N_BINS, Effect
from qmedoid.geometry.channels import DELTA_KINDS, DeltaKind
from qmedoid.large.fit import fit_collection
from qmedoid.large.lazy_scoring import takes_collections
from qmedoid.methods.calibration import CALIBRATION_KINDS, CalibrationKind
from qmedoid.methods.part import LARGEST
from qmedoid.tables.dataset import Dataset
from qmedoid.tables.novelty import record_novelty
from qmedoid.tables.roles import Role
from qmedoid.tables.targets import meant_labels

# A method may be added to the registry later on.
_METHOD = allowed.Constraint(
    allowed.choice(("auto", *RECIPES)).text, lambda value: isinstance(value, str) and value in ("auto", *RECIPES)
) | allowed.instance(Recipe, "the estimator of a method, such as EvidenceClassifier()")


@allowed.with_parameters
class MedoidClassifier(ProbabilisticClassifier):
    """Classify rows of tables by an exact sum of boosted trees, nearest neighbors and distances to real rows.

    Takes data frames, Arrow tables, dicts of columns or arrays: numbers, categories, truth values, dates and missing
    cells. Finds out what the columns are, leaves row numbers and empty columns out, and encodes the others. A method
    then scores each class by statements about training rows, and its out-of-fold scores are calibrated. A variational
    circuit on contrastive deltas refines the scores of all or some records if `refine` says so.

    Parameters
    ----------
    method : {"auto", "evidence", "rare", "sum", "nearest"} or estimator, default="auto"
        ``"evidence"`` learns signed weights on distances, group of columns by group of columns; ``"rare"`` compares
        with many prototypes of a rare class and of its hardest counterparts (two classes); ``"sum"`` adds boosted trees
        of comparisons and neighbors under a learnt metric to the evidence; ``"nearest"`` is the nearest medoid by a
        mean of distance and angle over searched groups, as in the paper. ``"auto"`` is ``"rare"`` for
        tables of at least 10,000 rows where one of two classes has at most 5 %; else ``"sum"`` from 300 rows on, and
        ``"evidence"`` below. Pass `EvidenceClassifier`, `RareEventClassifier`, `SumClassifier` or
        `NearestMedoidClassifier` objects to set their parameters.
    variational : VariationalClassifier or None, default=None
        How circuits are built and trained; None takes the defaults.
    refine : {"auto", "always", "never"} or float, default="auto"
        Which records the circuit decides. A number is the share of the records, those of the smallest margin over the
        training rows. ``"auto"`` is the rule of the paper: ``"always"`` for the nearest medoid on tables of at least
        10,000 rows whose rarest class has at most 5 %, and ``"never"`` otherwise.
    residual : bool or "auto", default="auto"
        Whether the circuit corrects the log-odds of the method instead of replacing them. ``"auto"`` corrects
        evidence, sums and rare events, and replaces the nearest medoid.
    deltas : {"auto", "pairs", "nearest"}, default="auto"
        For more than two classes: deltas of all pairs, or of the two nearest classes by calibrated score, between which
        the circuit then decides. ``"auto"`` is ``"pairs"`` up to 5 classes.
    fused_delta : bool, default=False
        Whether the score of the method is one of the deltas.
    class_weight : mapping, "balanced" or None, default=None
        Weights of the classes, by label, which multiply `sample_weight`; ``"balanced"`` gives every class the same
        total. Probabilities are those of the weighted rows: `class_priors_` says so, and `prior_shift` leads back.
    calibration : {"auto", "curve", "logistic", "temperature"}, default="auto"
        How scores become probabilities, on held-out rows: a slope and a bias for each class, with a piecewise-linear
        correction if it improves held-out likelihood (``"curve"``) or without (``"logistic"``); or a slope alone, which
        keeps the decision of the scores. ``"auto"`` is ``"curve"``, and ``"logistic"`` for the nearest medoid.
    operating_point : float, str, dict or None, default=None
        For two classes, the threshold on the probability of the positive one: the probability itself, a metric to be
        best on held-out rows, or one of ``{"alert_rate": share}``, ``{"min_precision": share}``,
        ``{"min_recall": share}`` and ``{"cost": false alerts per missed record}``. For more classes ``"macro_f1"``,
        ``"balanced_accuracy"`` or ``{"cost": matrix}`` (what it costs to call a record of one class another) choose
        biases of the classes by out-of-fold rows, and probabilities stay as they are. None takes the likeliest class.
    positive : str, int, float, bool or None, default=None
        The class of interest: the one of two that an operating point is about, and the second of the saved model; or
        one of more that is separated from all others together, as ``"not …"`` (scorers of scikit-learn need a target
        with these two classes then). None takes, with an operating point, the one of two that the words mean (yes,
        true, 1, fraud, bad …), else the rarer one, and says so; without one, the last.
    ignore : sequence of str or None, default=None
        Columns to leave out; short for the role ``"ignore"``.
    roles : mapping of str to str or None, default=None
        What columns are, by name, which wins over what their cells look like: ``"category"`` (cells are names, also
        where they look like numbers), ``"number"``, ``"date"``, ``"keep"`` (although it looks like an identifier) or
        ``"ignore"``.
    decimal : {".", ","} or None, default=None
        The decimal sign of texts that do not show it, such as ``1.275`` next to ``935``. None looks at the other
        columns, and refuses the table where they do not show it either.
    date_order : {"day-first", "month-first"} or None, default=None
        The order of dates that do not show it, such as ``01/02/2024``; None as with `decimal`.
    missing : mapping of str to sequence or None, default=None
        Values that stand for a missing cell, by column, such as ``{"Cholesterol": [0]}``: numbers, dates or texts. They
        are kept in the contract, and later rows are read in the same way. `check_table` finds such values. With no
        value, words such as ``"NA"`` are levels of the column in files as well.
    max_one_hot : int, default=10
        Maximum number of levels of a category that has a number for each; larger ones are encoded by the share of each
        class, and the frequency (to the nearest power of two), of a level.
    max_levels : int, default=20000
        Maximum number of levels of a category, the most frequent; the others count as new ones.
    random_state : int, RandomState or None, default=None
        Seed, also of method and circuit where they have none.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    positive_ : str, int, float, bool or None
        The class of interest of two; None for more than two.
    method_ : str
        The name of the method.
    estimator_ : EvidenceClassifier, RareEventClassifier, SumClassifier or NearestMedoidClassifier
        The estimator of the method, fitted on encoded columns; the medoids of its `model_` are those that decide.
    refinement_ : {"none", "selective", "always"}
        Which records the circuit decides: those of a calibrated margin, in log-odds, up to `margin_`.
    variational_ : VariationalClassifier or None
        The circuit of the best model as an estimator fitted on deltas, with its loss curve, the scores of the grid and
        `circuit()`; None where the method decides everything.
    model_ : Model
        Everything that is learned: parts, their weights, calibration, circuit, decision, and the columns with their
        encodings.
    class_priors_ : ndarray of shape (C,)
        Class frequencies that the probabilities are made for, in the order of `classes_`; see `prior_shift`.
    threshold_, expected_ : float, OperatingSummary or None
        For two classes: the threshold, with precision, recall and alert rate on held-out rows and 95 % intervals of
        the model's rate; ``expected_.forecast(rows)`` is what the next table of so many rows will show.
    held_out_scores_ : ndarray
        Quality of each candidate of the method (several only of the nearest medoid) on held-out rows: the metric of
        the operating point (of more than two classes without their biases), or the mean log-likelihood. The same rows
        chose configuration, α and calibration, so on small tables it is more than new rows will show.
    medoid_records_ : list of dict
        The medoids of the best model as rows of the training table.
    notes_ : list of str
        Notes about columns, rows and classes, as ``qmedoid fit`` prints them; a fit warns of them, too.
    feature_importances_ : ndarray of shape (M,)
        Mean absolute contribution of each column to the margin between the decided class and the runner-up, in
        log-odds, over at most 1,000 rows of the fit: out-of-fold scores name the two classes, and the fitted model,
        which has seen the rows, has the contributions. 0 for columns that were left out; see `importances`.

    See Also
    --------
    EvidenceClassifier, RareEventClassifier, SumClassifier, NearestMedoidClassifier : the methods for tables of numbers.
    qmedoid.load : reads a saved classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from qmedoid import MedoidClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MedoidClassifier(random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> why = model.explain(X, row=1)
    >>> len(why["columns"]), why["prediction"]
    (4, 0)
    >>> model.to_saved().predict(X[:2])  # what `save` writes and `qmedoid.load` returns
    array([0, 0])
    """

    method: Annotated[Any, _METHOD] = "auto"
    variational: Annotated[VariationalClassifier | None, allowed.NONE | allowed.instance(VariationalClassifier)] = None
    refine: Annotated[str | float, allowed.choice(("auto", "always", "never")) | allowed.INNER_SHARE] = "auto"
    residual: Annotated[bool | Literal["auto"], allowed.FLAG | allowed.AUTO] = "auto"
    deltas: Annotated[DeltaKind | Literal["auto"], allowed.choice(("auto", *DELTA_KINDS))] = "auto"
    fused_delta: bool = False
    class_weight: Annotated[Mapping[Any, float] | Literal["balanced"] | None, allowed.CLASS_WEIGHT] = None
    calibration: Annotated[CalibrationKind | Literal["auto"], allowed.choice(("auto", *CALIBRATION_KINDS))] = "auto"
    operating_point: Annotated[float | str | Mapping[str, float] | None, allowed.OPERATING_POINT] = None
    positive: Any = None
    ignore: Sequence[str] | None = None
    roles: Mapping[str, Role] | None = None
    decimal: Annotated[str | None, allowed.NONE | allowed.choice((".", ","))] = None
    date_order: Annotated[str | None, allowed.NONE | allowed.choice(("day-first", "month-first"))] = None
    missing: Mapping[str, Sequence[Any]] | None = None
    max_one_hot: Annotated[int, allowed.whole(2)] = 10
    max_levels: Annotated[int, allowed.whole(1)] = 20_000
    random_state: Annotated[Any, allowed.SEED] = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Method and circuit as printed, but for what the notes list. `changes` override single parameters.

        `operating_point` is the threshold of two classes: the paper chooses one, ``"macro_f1"``, and uses 0.3 in its
        fraud tables. The page *What we found in the paper* of the documentation lists what is not as printed.
        """
        printed: dict[str, Any] = {
            "method": NearestMedoidClassifier.paper(),
            "variational": VariationalClassifier.paper(operating_point=None),
            "residual": False,
            "deltas": "nearest",
            "calibration": "temperature",
        }
        return cls(**(printed | changes))

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of method and circuit by two underscores, such as ``method__n_medoids``.

        Raises
        ------
        ParameterError
            The method is given by name, or the circuit not at all: it has no parameters to set.
        """
        for part, example in (("method", "EvidenceClassifier"), ("variational", "VariationalClassifier")):
            inner = next((name for name in params if name.startswith(f"{part}__")), None)
            owner = params.get(part, getattr(self, part))
            if inner is not None and not hasattr(owner, "set_params"):
                raise ParameterError(
                    f"{inner!r} is a parameter of the object that is passed as {part}=, and {part} is {owner!r}. "
                    f"Pass {part}={example}() first."
                )
        return super().set_params(**params)

    @with_callbacks
    @one_blas_thread
    def fit(
        self,
        X: Any,
        y: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        memory: int | str | None = None,
    ) -> Self:
        """Find the kinds of the columns, encode them, fit and calibrate the method, and train circuits if asked for.

        Parameters
        ----------
        X : data frame, Arrow table, dict of columns, array or sparse matrix of shape (n, M)
            A sparse table of at most 2²⁷ cells (1 GiB) is made dense. A Dask data frame or array is fitted as a whole
            if `memory` allows, else in passes over its partitions: a sample of the rows is fitted, and all rows are
            counted, or calibrate it. A `qmedoid.tables.dataset.Dataset` is fitted as it is, and has all but the
            parameters of the classifier; so may validation rows be one.
        y : array-like of shape (n,)
            Class labels, numbers or strings. Of a Dask collection a Dask series or array, or the name of a column.
        X_val, y_val : optional
            Rows on which configuration, α, circuits and operating point are chosen instead of by cross-validation.
            Encodings and medoids come from X alone; a circuit, once chosen, is trained on both.
        groups : array-like of shape (n,), optional
            Rows of X with the same label belong together, such as those of one customer: they are held out together,
            and count as one in the intervals of `expected_`. None takes rows as groups that are equal, or nearly so
            and of one class, in all columns of the contract; a warning names columns of such groups.
        sample_weight : array-like of shape (n,), optional
            How many rows each row stands for. Rows of weight 0 are left out. Whole numbers are copies, if they are at
            most 10 times as many in all as there are rows; other weights are factors in every loss, scaled to mean 1.
            Not together with X_val.
        memory : int or str, optional
            What the fit of a Dask collection may use in this process, in bytes or as ``"4GB"``, the default.
        """
        allowed.check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        if is_collection(X):
            others = {"X_val": X_val, "groups": groups, "sample_weight": sample_weight}
            fit_collection(self, X, y, memory, others)
            return self
        if memory is not None:
            raise ParameterError("memory= is for Dask collections: a table in memory is fitted as it is.")
        if (X_val is None) != (y_val is None) and not isinstance(X_val, Dataset):
            raise ParameterError("X_val and y_val go together: pass both, or neither to use cross-validation.")
        rows = read_rows(self, X, y, X_val, y_val, groups, sample_weight)
        context = self._init_callback_context(max_subtasks=None).call_on_fit_task_begin(estimator=self, X=X, y=y)
        recipe, fits, scores = fit_model(self, rows.data, rows.splits, context)
        best = fits[0]
        decision, curve = self._chosen_decision(rows.data, best.held_out)
        self.model_ = rows.model(
            best,
            decision,
            curve,
            method=recipe.method_name,
            parameters=plain_parameters(self),
            metrics={"held_out_scores": scores.tolist()},
        )
        self.classes_, self.notes_, self.variational_ = rows.classes, rows.notes, best.circuit
        self.estimator_, self.held_out_scores_ = recipe, scores
        recipe.keep(self.model_, [fit.fitted for fit in fits])
        recipe.classes_, recipe.n_features_in_ = rows.data.classes, rows.data.X.shape[1]
        self._number_places = rows.places
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    @property
    def positive_(self) -> Any:
        """The class of interest of two; None for more than two."""
        classes = self.model_.decision.classes
        return classes[1] if len(classes) == 2 else None

    @property
    def method_(self) -> str:
        """The name of the method."""
        return self.model_.method

    @property
    def refinement_(self) -> str:
        """Which records the circuit decides: ``"none"``, ``"selective"`` or ``"always"``."""
        return self.model_.policy

    @property
    def margin_(self) -> float:
        """The largest calibrated margin, in log-odds, of records that the circuit decides; −∞ and ∞: none, all."""
        return -np.inf if self.model_.refinement is None else self.model_.refinement.refine_below

    @property
    def medoid_records_(self) -> list[dict[str, Any]]:
        """The medoids as rows of the training table."""
        return [dict(record) for record in self.model_.records or ()]

    def importances(self, X: Any) -> dict[str, float]:
        """Mean absolute contribution of every column to the decisions about these rows; see `SavedModel.importances`.

        `feature_importances_` are the same of training rows.
        """
        return self.to_saved().importances(read_table(self, X, reset=False), on_mismatch="warn")

    def effect(self, X: Any, column: str, *, toward: Any = None, bins: int = N_BINS) -> Effect:
        """What the values of a column contribute to the decisions about these rows; see `SavedModel.effect`."""
        rows = read_table(self, X, reset=False)
        return self.to_saved().effect(rows, column, toward=toward, bins=bins, on_mismatch="warn")

    def _encoded(self, X: Any) -> Array:
        plain = type(X) is np.ndarray and X.dtype == np.float64 and X.size > 0 and self._number_places is not None
        if plain and X.max() <= LARGEST and X.min() >= -LARGEST:
            # Numbers within bounds are encoded as they are; all else goes the long way, which names what is wrong.
            array = validate_data(self, X, reset=False, ensure_all_finite=False)
            return np.ascontiguousarray(array[:, self._number_places])
        return encoded_rows(read_table(self, X, reset=False), self.model_.contract, self.model_.encodings)

    recipe_class = staticmethod(recipe_class)

    def recipe(self, counts: Codes) -> Any:
        """The estimator of the method, not fitted: of ``method="auto"`` the one for these numbers of rows per class."""
        return recipe_of(self.method, counts)

    @takes_collections
    def decided_by(self, X: Any) -> npt.NDArray[np.str_]:
        """Who decides each row, the name of the method or ``"circuit"``, shape (n,)."""
        check_is_fitted(self)
        return np.where(self.model_.decide(self._encoded(X)).by_circuit, "circuit", self.method_)

    @takes_collections
    def novelty(self, X: Any) -> Array:
        """How far every row lies from the training rows, shape (n,); above 1 for rows unlike them.

        The distance to the nearest medoid, where 1 is what 99 % of the training rows stay below; or, where it is more,
        how far a value lies beyond the limits of its column. See `SavedModel.novelty_report` for a table as a whole.
        """
        check_is_fitted(self)
        return record_novelty(self.model_, list(self._encoded(X).T))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows that are classified rightly."""
        if is_collection(X):
            raise ParameterError(
                "score is for tables in memory, and X is a Dask collection. The share is (model.predict(X) == "
                "y).mean().compute()."
            )
        predicted = self.predict(X)
        if not len(predicted):
            raise DataError("X has no rows: there is no share that is classified rightly. Pass at least one.")
        meant = check_target(y, len(predicted))
        meant = meant if self.positive is None else meant_labels(meant, self.classes_)
        return float(np.average(predicted == meant, weights=sample_weight))
