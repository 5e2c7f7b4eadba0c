"""A classifier for tables as they are: text, categories, truth values, dates and missing cells."""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._classes import ClassOrder
from qmedoid.estimators._encoding import Encoded, EncodingSettings, fit_encodings
from qmedoid.estimators._inner import Inner, choose_on, inner_classifier, weigh_codes
from qmedoid.estimators._operating_point import OPERATING_CONSTRAINTS
from qmedoid.estimators._parameters import (
    Choice,
    Constraint,
    Either,
    Estimator,
    Optional,
    Seed,
    Whole,
    check_parameters,
)
from qmedoid.estimators._raw_tables import read_table, records_of
from qmedoid.estimators._row_groups import Together
from qmedoid.estimators._saving import SavingMixin, table_model
from qmedoid.estimators._targets import check_target, class_codes
from qmedoid.estimators._unset_parts import with_parts
from qmedoid.estimators.fusion import NearestMedoidClassifier
from qmedoid.estimators.geometric import GeometricClassifier
from qmedoid.estimators.variational import VariationalClassifier
from qmedoid.exceptions import ConstantColumnWarning, MajorityAlertWarning, ParameterError, warn
from qmedoid.geometry.row_groups import equal_rows, equal_rows_note, given_groups, part_of, row_groups
from qmedoid.methods.base import Method
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.contract import Contract
from qmedoid.model.decision import asked_priors
from qmedoid.model.novelty import encoded_readings, fit_novelty
from qmedoid.model.operating_point import OperatingSummary
from qmedoid.model.table import Record, TableModel
from qmedoid.tables.difference import compare_columns
from qmedoid.tables.encode import Issues, encode_batch
from qmedoid.tables.kinds import DateOrder, Inferred, infer_alike, infer_columns
from qmedoid.tables.novelty import record_novelty
from qmedoid.tables.roles import IDENTIFIERS, OWN_NUMBER, Role, check_role_names, check_roles, in_roles, merged_roles
from qmedoid.tables.rows import cell_codes, remember_rows, training_summary
from qmedoid.tables.targets import choose_positive, seldom_note, target_notes

_WAY_OUT = "Make it so, or fit on tables like this one."


def _left_out_note(name: str, why: str) -> str:
    hint = f"; roles={{{name!r}: 'keep'}} keeps it" if why in IDENTIFIERS else ""
    return f"column {name!r} was left out: {why}{hint}"


def _inner_has(method: str) -> Callable[["TableClassifier"], bool]:
    return lambda self: hasattr(GeometricClassifier if self.classifier is None else self.classifier, method)


class TableClassifier(SavingMixin, ClassifierMixin, BaseEstimator):
    """Classify records of raw tables by distance to real records.

    Finds out what the columns are, leaves row numbers and empty columns out, turns the others into numbers, and fits a
    classifier on those. What it found is its contract: tables it predicts are held against it.

    Parameters
    ----------
    classifier : GeometricClassifier, NearestMedoidClassifier, VariationalClassifier or None, default=None
        What decides. None is `GeometricClassifier()`.
    positive : str, int, float, bool or None, default=None
        The class of interest: the one of two that an alert rate or an operating point is about, and the second of the
        saved model; or one of more that is then told from all others together, as ``"not …"`` (scorers of scikit-learn
        need a target with these two classes then). None takes, where the classifier has an operating point, the one of
        two that the words mean (yes, true, 1, fraud, bad …), else the rarer one, and says so; without one, the last.
    ignore : sequence of str or None, default=None
        Columns that are not to be learnt from; short for the role ``"ignore"``.
    roles : mapping of str to str or None, default=None
        What columns are, by name, which wins over what their cells look like: ``"category"`` (cells are names, also
        where they look like numbers), ``"number"``, ``"date"``, ``"keep"`` (learnt from although it looks like an
        identifier) or ``"ignore"``. Other columns are read as their cells suggest.
    decimal : {".", ","} or None, default=None
        The decimal sign of texts that do not show it, such as ``1.275`` beside ``935``. None looks at the other
        columns, and refuses the table where they do not show it either.
    date_order : {"day-first", "month-first"} or None, default=None
        The order of dates that do not show it, such as ``01/02/2024``; None as with `decimal`.
    max_one_hot : int, default=10
        Categories of at most so many levels have a number for each; larger ones are encoded by the share of each
        class, and the frequency, of a level.
    max_levels : int, default=20000
        At most so many levels of a category, the most frequent, are told apart.
    random_state : int, RandomState or None, default=None
        Seed, also of the classifier where it has none of its own.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    positive_ : str, int, float, bool or None
        The class of interest of two, by the parameter or as it was chosen; None for more than two.
    classifier_ : the fitted classifier, on encoded columns
    contract_ : Contract
        The columns with their kinds, and those that were left out.
    encodings_ : tuple of Encoding
        How each column becomes numbers; `encoded_names_` are the names of these.
    medoid_records_ : list of dict
        The medoids of the best model as rows of the training table.
    notes_ : list of str
        What was noticed about columns and classes.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
    """

    def __init__(
        self,
        classifier: Inner | None = None,
        *,
        positive: Any = None,
        ignore: Sequence[str] | None = None,
        roles: Mapping[str, Role] | None = None,
        decimal: str | None = None,
        date_order: str | None = None,
        max_one_hot: int = 10,
        max_levels: int = 20_000,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.positive = positive
        self.ignore = ignore
        self.roles = roles
        self.decimal = decimal
        self.date_order = date_order
        self.max_one_hot = max_one_hot
        self.max_levels = max_levels
        self.random_state = random_state

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "classifier": Optional(
            Either(
                Estimator(GeometricClassifier),
                Either(Estimator(NearestMedoidClassifier), Estimator(VariationalClassifier)),
            )
        ),
        "decimal": Optional(Choice((".", ","))),
        "date_order": Optional(Choice(("day-first", "month-first"))),
        "max_one_hot": Whole(2),
        "max_levels": Whole(1),
        "random_state": Seed(),
    }

    # How columns are read, where that was settled on more rows than those of the fit.
    _settled: Inferred | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the classifier by two underscores, such as ``classifier__alert_rate``."""
        return super().set_params(**with_parts(self, params, {"classifier": GeometricClassifier}))

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None, *, groups: Any = None) -> Self:
        """Find the kinds of the columns, fit their encodings, and fit the classifier.

        Parameters
        ----------
        X : data frame, Arrow table, dict of columns or array of shape (n, M)
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        X_val, y_val : optional
            Rows on which configuration, α, circuits and operating point are chosen instead of by cross-validation.
            Encodings and medoids come from X alone; a circuit, once chosen, is trained on both.
        groups : array-like of shape (n,), optional
            Rows of X with the same label belong together, such as those of one customer: they are left out together,
            and count as one in the intervals of `expected_`. None takes rows as groups that are equal in all columns
            which are learnt from.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        if (X_val is None) != (y_val is None):
            raise ParameterError("X_val and y_val go together: pass both, or neither to use cross-validation.")
        self._names, table = read_table(self, X, None)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        self.notes_, self._warned = list[str](), list[str]()
        self._order, codes = self._class_order(check_target(y, table.num_rows))
        self.classes_ = np.sort(self._order.classes)
        self.positive_ = self._order.classes.tolist()[1] if len(self._order.classes) == 2 else None
        rng = check_random_state(self.random_state)
        labels = None if groups is None else Together(given_groups(groups, table.num_rows))
        val_table = table.slice(0, 0)
        target = getattr(y, "name", None)
        roles = self._asked_roles(table, target)
        table = in_roles(table, roles)
        encoded, together = self._encode_training(table, codes, target, roles, rng, labels)
        if X_val is None:
            self._fit_inner(encoded.matrix, codes, None, rng, together)
        else:
            val_table = read_table(self, X_val, self._names, "X_val")[1]
            val_labels = check_target(y_val, val_table.num_rows, name="y_val", table="X_val")
            val_matrix = np.column_stack(self._encode(val_table))
            everything = np.concatenate([codes, self._order.codes(val_labels)])
            # Validation rows are held out as they are, but equal ones are one draw.
            before = np.arange(len(codes)) if together is None else together
            together = part_of(np.append(before, len(codes) + equal_rows(val_matrix)), np.arange(len(everything)))
            self._fit_inner(np.concatenate([encoded.matrix, val_matrix]), everything, len(codes), rng, together)
        expected = self.expected_
        if expected is not None and expected.rule == "likeliest" and expected.counts is not None:
            self._note(seldom_note(self._order.classes.tolist(), expected.counts))
        self._novelty = fit_novelty(encoded.matrix, encoded_readings(self.encodings_), self._stage())
        self._records = self._medoid_records(table)
        self.medoid_records_ = [] if self._records is None else list(self._records[0])
        curve = getattr(getattr(self.classifier_, "_training", None), "curve", None)
        self._training = training_summary(table, self.contract_, self.encodings_, curve)
        self._seen = None
        if getattr(self.classifier_, "shots", None) is None:  # else there is no model that decides exactly, to be saved
            self._seen = remember_rows(self.table_model(), [table, val_table])
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of every row, shape (n,)."""
        matrix = self._matrix(X)
        codes = np.searchsorted(self.classifier_.classes_, self.classifier_.predict(matrix))
        predicted: npt.NDArray[Any] = self._order.classes[codes]
        return predicted

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n, C)."""
        matrix = self._matrix(X)
        probabilities: Array = self.classifier_.predict_proba(matrix)  # type: ignore[union-attr]
        return probabilities[:, self._order.codes_of_sorted]

    def decision_function(self, X: Any) -> Array:
        """Margin of shape (n,) for two classes, above 0 for the second; scores of shape (n, C) for more."""
        matrix = self._matrix(X)
        values = self.classifier_.decision_function(matrix)
        # Of two classes one is taken from the other; of more, `positive` leaves the order as it is.
        return -values if self._order.codes_of_sorted[0] != 0 else values

    @available_if(_inner_has("decided_by"))
    def decided_by(self, X: Any) -> npt.NDArray[np.str_]:
        """Who decides each row, shape (n,): the name of the method, such as ``"evidence"``, or ``"circuit"``."""
        matrix = self._matrix(X)
        decided: npt.NDArray[np.str_] = self.classifier_.decided_by(matrix)  # type: ignore[union-attr]
        return decided

    @property
    def expected_(self) -> OperatingSummary | None:
        """Where two classes are told apart, with precision, recall and alert rate on held-out rows."""
        check_is_fitted(self)
        return getattr(self.classifier_, "expected_", None)

    @available_if(_inner_has("prior_shift"))
    def prior_shift(self, new_prevalence: Any) -> Self:
        """The same classifier where the classes are as frequent as said, and look the same otherwise.

        Parameters
        ----------
        new_prevalence : float, mapping or array-like of shape (C,)
            How frequent the class of interest of two is (`positive`, or the second), or every class, by label or in
            the order of `classes_`.

        Returns
        -------
        A copy; this one is left as it is. See `GeometricClassifier.prior_shift` for what becomes of the threshold.
        """
        check_is_fitted(self)
        classes = self._order.classes.tolist()
        if not isinstance(new_prevalence, Mapping | float | int):
            by_label = asked_priors(new_prevalence, self.classes_.tolist())
            new_prevalence = dict(zip(self.classes_.tolist(), by_label.tolist(), strict=True))
        shifted = copy.copy(self)
        shifted.classifier_ = self.classifier_.prior_shift(  # type: ignore[union-attr]
            asked_priors(new_prevalence, classes)
        )
        return shifted

    @available_if(_inner_has("estimate_prevalence"))
    def estimate_prevalence(self, X: Any) -> PrevalenceEstimate:
        """How frequent the classes are among unlabeled rows by EM, with 95 % intervals, in the order of `classes_`."""
        matrix = self._matrix(X)
        found: PrevalenceEstimate = self.classifier_.estimate_prevalence(matrix)  # type: ignore[union-attr]
        order = self._order.codes_of_sorted
        return replace(found, priors=found.priors[order], low=found.low[order], high=found.high[order])

    def novelty(self, X: Any) -> Array:
        """How far every row lies from the training rows, shape (n,); above 1 for rows unlike them.

        The distance to the nearest medoid, where 1 is what 99 % of the training rows stay below; or, where it is more,
        how far a value lies beyond the limits of its column. See `SavedModel.novelty_report` for a table as a whole.
        """
        matrix = self._matrix(X)
        return record_novelty(self.table_model(), list(matrix.T))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows that are classified rightly."""
        predicted = self.predict(X)
        meant = self._order.meant(check_target(y, len(predicted)))
        return float(np.average(predicted == meant, weights=sample_weight))

    def table_model(self) -> TableModel:
        """The fitted model with its contract, as it is saved and scored without scikit-learn."""
        check_is_fitted(self)
        inner = table_model(self.classifier_)
        seed = self.random_state
        return replace(
            inner,
            contract=self.contract_,
            encodings=self.encodings_,
            decision=replace(inner.decision, classes=tuple(self._order.classes.tolist())),
            records=self._records,
            seen=self._seen,
            novelty=self._novelty,
            training=self._training,
            parameters={
                "estimator": type(self).__name__,
                "positive": None if self.positive is None else str(self.positive),
                "ignore": list(self.ignore or ()),
                "roles": dict(self.roles or {}),
                "decimal": self.decimal,
                "date_order": self.date_order,
                "max_one_hot": int(self.max_one_hot),
                "max_levels": int(self.max_levels),
                "random_state": seed if seed is None or isinstance(seed, int) else str(seed),
                "classifier": dict(inner.parameters),
            },
        )

    def _class_order(self, target: npt.NDArray[Any]) -> tuple[ClassOrder, Codes]:
        """The order of the classes and the code of every row; the class of interest is chosen where nobody said."""
        labels, places = class_codes(target)
        counts = np.bincount(places).tolist()
        for note in target_notes(labels.tolist(), counts):
            self._note(note.message)
        asked = [name for name in OPERATING_CONSTRAINTS if getattr(self.classifier, name, None) is not None]
        if self.positive is not None or not asked or len(labels) != 2:
            return ClassOrder.of(target, self.positive)
        choice = choose_positive(labels.tolist(), counts, asked[0].replace("_", " "))
        self._note(choice.note, warned=not choice.is_plain)
        return ClassOrder.of(target, None if choice.place == 1 else labels[choice.place])

    def _note(self, note: str | None, *, warned: bool = True) -> None:
        """Keep a note and, where it may change what is done, warn."""
        if note is None:
            return
        self.notes_.append(note)
        if warned:
            self._warned.append(note)
            warn(note[0].upper() + note[1:])

    def _encode_training(
        self,
        table: pa.Table,
        codes: Codes,
        target: Any,
        roles: Mapping[str, Role],
        rng: np.random.RandomState,
        given: Together | None,
    ) -> tuple[Encoded, Codes | None]:
        """Fit contract and encodings; the training rows as numbers, and their groups."""
        target = target if isinstance(target, str) else None
        if self._settled is None:
            inferred = infer_columns(
                table, skip={target}, roles=roles, decimal=self.decimal,
                date_order=cast("DateOrder | None", self.date_order),
            )  # fmt: skip
        else:
            inferred = infer_alike(table, self._settled)
        left_out = inferred.left_out
        inferred.check_any()
        settings = EncodingSettings(self.max_one_hot, self.max_levels)
        generator = np.random.default_rng(rng.randint(2**31, size=4))
        names = [column.name for column in inferred.columns]
        groups = row_groups(cell_codes(table, names), codes) if given is None else given.groups
        classes = self._order.classes.tolist()
        encoded = fit_encodings(table, inferred.columns, codes, classes, settings, generator, groups)
        self.contract_ = Contract(encoded.columns, target, left_out)
        self.encodings_ = encoded.encodings
        pairs = zip(self.encodings_, self.contract_.names, strict=True)
        self.encoded_names_ = [output for encoding, name in pairs for output in encoding.output_names(name)]
        self._left_out_notes = [_left_out_note(name, why) for name, why in left_out.items()]
        self.notes_ += inferred.notes + self._left_out_notes
        if self._settled is None:
            # The name of the column is half of this reason, and names mislead.
            for name in (name for name, why in left_out.items() if why == OWN_NUMBER):
                warn(_left_out_note(name, OWN_NUMBER))
        self._inferred = inferred
        note = equal_rows_note(groups) if given is None else None
        self.notes_ += [] if note is None else [note]
        same = np.flatnonzero(np.ptp(encoded.matrix, axis=0) == 0)
        self.notes_ += [f"{self.encoded_names_[place]!r} is the same in all rows once encoded" for place in same]
        return encoded, groups

    def _asked_roles(self, table: pa.Table, target: Any) -> dict[str, Role]:
        """The roles of columns, those to be ignored among them; names and contradictions are checked."""
        if isinstance(self.ignore, str):
            raise ParameterError(f"The 'ignore' parameter must be a list of names. Got {self.ignore!r}: wrap it in [].")
        ignored = list(self.ignore or ())
        unknown = [name for name in ignored if name not in table.column_names]
        if unknown:
            raise ParameterError(
                f"'ignore' names {unknown[0]!r}, which is not a column. The columns are {table.column_names[:20]}."
            )
        asked = merged_roles([("'roles'", check_roles(self.roles)), ("'ignore'", dict.fromkeys(ignored, "ignore"))])
        others = {name: role for name, role in asked.items() if role != "ignore" or name not in ignored}
        check_role_names(others, table.column_names, target if isinstance(target, str) else None)
        return asked

    def _fit_inner(
        self,
        matrix: Array,
        codes: Codes,
        n_train: int | None,
        rng: np.random.RandomState,
        groups: Codes | None,
    ) -> None:
        """Fit the classifier; rows from `n_train` on, where given, are those on which it is chosen."""
        inner = inner_classifier(self.classifier)
        if inner.random_state is None:
            inner.set_params(random_state=int(rng.randint(2**31)))
        if n_train is not None:
            choose_on(inner, [(np.arange(n_train), np.arange(n_train, len(codes)))], codes)
        # Labels in their own order are passed on as they are, so that warnings and class weights can name them.
        in_order = self._order.classes is self._order.labels
        if not in_order:
            weigh_codes(inner, self._order.classes.tolist())
        with warnings.catch_warnings():
            # These name columns by numbers that nobody knows outside; the notes have said it already.
            warnings.simplefilter("ignore", ConstantColumnWarning)
            # The class of interest was said, or chosen with a note.
            warnings.simplefilter("ignore", MajorityAlertWarning)
            labels = self._order.classes[codes] if in_order else codes
            self.classifier_ = inner.fit(matrix, labels, groups=Together(groups))

    def _stage(self) -> Method | None:
        """The first stage of the classifier, if it has one."""
        inner = self.classifier_
        if isinstance(inner, VariationalClassifier):
            return None
        return (inner.model_.method if isinstance(inner, GeometricClassifier) else inner.model_).plain

    def _medoid_records(self, table: pa.Table) -> tuple[tuple[Record, ...], ...] | None:
        inner = self.classifier_
        if isinstance(inner, VariationalClassifier):
            return None
        method = inner.estimator_ if isinstance(inner, GeometricClassifier) else inner
        known = table.select(list(self.contract_.names))
        return tuple(records_of(known, model.medoid_rows) for model in method.models_)

    def _matrix(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.column_stack(self._encode(read_table(self, X, self._names)[1]))

    def _encode(self, table: pa.Table) -> list[Array]:
        """The columns as numbers; a table that breaks the contract is refused, new levels are warned of."""
        difference = compare_columns(self.contract_, table.schema)
        if difference.breaks:
            difference.raise_or_warn("error", way_out=_WAY_OUT)
        issues = Issues()
        columns = encode_batch(table, self.contract_, self.encodings_, issues=issues)
        replace(difference, issues=issues, tolerate_unseen=True).raise_or_warn("error", way_out=_WAY_OUT)
        return columns
