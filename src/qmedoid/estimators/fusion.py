"""The method classifier: nearest medoid by distance and angle over searched column groups (algorithms 7, 8, 10, 12)."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackContext, CallbackSupportMixin, with_callbacks
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._class_weights import ClassWeight, multiplier_options
from qmedoid.estimators._folds import check_counts, check_splits, stratified_splits
from qmedoid.estimators._grouping import GROUPING_CONSTRAINTS, AnchorOrder, make_groups, sizes_within
from qmedoid.estimators._parameters import (
    Choice,
    Constraint,
    Flag,
    Folds,
    Optional,
    Pair,
    Seed,
    Share,
    Whole,
    check_parameters,
)
from qmedoid.estimators._row_groups import groups_of_fit
from qmedoid.estimators._saving import SavingMixin
from qmedoid.estimators._tables import check_size, check_table
from qmedoid.estimators._targets import check_target, class_codes, known_codes
from qmedoid.estimators._threads import one_blas_thread
from qmedoid.exceptions import ParameterError, warn
from qmedoid.geometry.channels import Channels
from qmedoid.geometry.groups import FeatureKind, Groups
from qmedoid.geometry.overlap import ANGLE_KINDS, AngleKind, SwapTestFunction
from qmedoid.geometry.scaling import ScalingKind
from qmedoid.methods.nearest.fit import (
    SELECTIONS,
    Best,
    SearchSettings,
    Selected,
    Selection,
    search_configurations,
    select_models,
)
from qmedoid.methods.nearest.model import MeasuredNearest, NearestModel
from qmedoid.methods.nearest.problem import Fold, FusionSettings, TrainingRows, prepare_folds, prepare_rows
from qmedoid.model.novelty import fit_novelty
from qmedoid.optimize.descent import ALPHA_GRID, Progress


class NearestMedoidClassifier(SavingMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classify a record by its distance and angle to one real record, the medoid, of each class.

    Columns are gathered into correlation groups; a search picks which columns of each group enter its feature; the
    class whose medoid has the smallest fusion score of distance and angle wins.

    Parameters
    ----------
    kind : {"signed", "weighted", "unweighted", "multiplicative"}, default="signed"
        How a group becomes a feature. All but ``"signed"`` lose the sign of the columns.
    input_scaling : {"standard", "minmax", "none"}, default="standard"
        Scaling of the columns, fitted on the training rows.
    group_size : int or None, default=None
        Columns per group, the anchor among them. None takes 8, or all where there are fewer.
    n_anchors : int or None, default=64
        At most so many anchors, those most related to the classes. None keeps all columns as anchors.
    subset_sizes : (int, int) or None, default=None
        First and last number k of columns per group that is searched. None takes 2 to 5, or fewer where groups are
        smaller.
    max_passes : int, default=2
        Passes of the search over all anchors for each k. 0 keeps the first k members of each group.
    candidate_budget : int or None, default=None
        At most so many subsets are tried per anchor visit, drawn at random where there are more.
    use_angular : bool, default=True
        Whether the angle has a share in the score.
    angle : {"true", "printed"}, default="true"
        The angle between vectors, or arccos √s, which falls as vectors part.
    alpha : float or None, default=None
        Share of the distance channel. None chooses it on held-out rows.
    search_alpha : float, default=0.75
        Share of the distance channel while configurations are compared.
    class_weight : {"auto", "balanced", "printed"}, dict or None, default="auto"
        A larger weight makes a class win more often: its score is divided by the weight. ``"auto"`` chooses on
        held-out rows among weights that help rare classes by π^−γ, γ in 0, ¼, ½; ``"balanced"`` is γ = 1;
        ``"printed"`` *multiplies* scores by 1/√π, which holds rare classes back.
    anchor_order : {"association", "codes", "columns"}, default="association"
        Order of the anchors: by the correlation ratio with the classes, by |r| with label codes, or as they stand.
    n_medoids : int, default=1
        Medoids per class in the final models. The search itself uses one.
    max_medoid_rows : int, default=1000
        At most so many rows of a class, drawn at random, are searched for its medoid.
    n_models : int, default=2
        How many models, the best over k, are kept.
    selection : {"best", "one_se"}, default="best"
        ``"best"`` keeps the configurations, and the α, of the best held-out macro-F1. ``"one_se"`` takes the one with
        the fewest columns in its subsets, and of its α the one nearest to `search_alpha`, whose held-out macro-F1 is
        at most one standard error below the best. The error is that over the folds, or over the held-out rows where
        there is one fold.
    cv : int, splitter or iterable, default=5
        Folds on which configurations and α are chosen. Ignored when `fit` is given validation rows.
    refit : bool, default=True
        Fit the chosen models on all rows. False keeps to the training rows of the only split of `cv`.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of the medoid samples and of the candidate draws.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    model_ : NearestModel
        The best model; `models_` holds the best `n_models`, best first.
    medoids_ : ndarray of shape (P, M)
        The medoids of `model_` as records of the training table.
    medoid_indices_, medoid_classes_ : ndarray of shape (P,)
        Their rows in the training table, and their classes.
    configuration_ : tuple of tuple of int
        Columns of each anchor's subset, the anchor first.
    alpha_ : float
    class_multipliers_ : ndarray of shape (C,)
        Factor on each class's score; below 1 draws a class nearer.
    groups_ : Groups
    search_trace_ : list of Step
        Every configuration that was scored.
    search_records_ : list of Record
        The best configuration of each k with its validation macro-F1.
    alpha_sweep_ : Sweep
        Validation macro-F1 of `model_` along α.
    one_se_ : Best or None
        The best held-out macro-F1, its standard error, and whether that is over folds or rows; None unless
        ``selection="one_se"`` chose.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
    """

    def __init__(
        self,
        *,
        kind: FeatureKind = "signed",
        input_scaling: ScalingKind = "standard",
        group_size: int | None = None,
        n_anchors: int | None = 64,
        subset_sizes: tuple[int, int] | None = None,
        max_passes: int = 2,
        candidate_budget: int | None = None,
        use_angular: bool = True,
        angle: AngleKind = "true",
        alpha: float | None = None,
        search_alpha: float = 0.75,
        class_weight: str | Mapping[Any, float] | None = "auto",
        anchor_order: AnchorOrder = "association",
        n_medoids: int = 1,
        max_medoid_rows: int = 1000,
        n_models: int = 2,
        selection: Selection = "best",
        cv: Any = 5,
        refit: bool = True,
        random_state: Any = None,
    ) -> None:
        self.kind = kind
        self.input_scaling = input_scaling
        self.group_size = group_size
        self.n_anchors = n_anchors
        self.subset_sizes = subset_sizes
        self.max_passes = max_passes
        self.candidate_budget = candidate_budget
        self.use_angular = use_angular
        self.angle = angle
        self.alpha = alpha
        self.search_alpha = search_alpha
        self.class_weight = class_weight
        self.anchor_order = anchor_order
        self.n_medoids = n_medoids
        self.max_medoid_rows = max_medoid_rows
        self.n_models = n_models
        self.selection = selection
        self.cv = cv
        self.refit = refit
        self.random_state = random_state

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        **GROUPING_CONSTRAINTS,
        "subset_sizes": Optional(Pair(1)),
        "max_passes": Whole(0),
        "candidate_budget": Optional(Whole(1)),
        "use_angular": Flag(),
        "angle": Choice(ANGLE_KINDS),
        "alpha": Optional(Share()),
        "search_alpha": Share(),
        "class_weight": ClassWeight(),
        "n_medoids": Whole(1),
        "max_medoid_rows": Whole(1),
        "n_models": Whole(1),
        "selection": Choice(SELECTIONS),
        "cv": Folds(),
        "refit": Flag(),
        "random_state": Seed(),
    }

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The method as printed: raw inputs, plain norms, the printed angle and class weights, one validation split.

        Everything is still fitted on training rows only. `changes` override single parameters. The paper does not say
        what α the search runs with; 0.9 is the middle of the α it ends up with.
        """
        printed: dict[str, Any] = {
            "kind": "weighted",
            "input_scaling": "none",
            "n_anchors": None,
            "angle": "printed",
            "search_alpha": 0.9,
            "class_weight": "printed",
            "anchor_order": "codes",
            "cv": StratifiedShuffleSplit(n_splits=1, test_size=0.25, random_state=0),
            "refit": False,
        }
        return cls(**(printed | changes))

    @with_callbacks
    @one_blas_thread
    def fit(self, X: Any, y: Any, *, X_val: Any = None, y_val: Any = None, groups: Any = None) -> Self:
        """Find groups, search configurations, calibrate α and keep the best models.

        Parameters
        ----------
        X : array-like or data frame of shape (n, M)
        y : array-like of shape (n,)
            Class labels, numbers or strings.
        X_val, y_val : array-like, optional
            Rows on which configurations and α are chosen instead of the folds of `cv`. Models are then fitted on X
            alone.
        groups : array-like of shape (n,), optional
            Rows with the same label belong together and are held out together. None takes equal rows as groups.
        """
        self._fit_selected(X, y, X_val, y_val, groups)
        return self

    def _fit_selected(
        self, X: Any, y: Any, X_val: Any = None, y_val: Any = None, groups: Any = None
    ) -> tuple[list[Selected], list[Codes]]:
        """Fit; the models with their channels of held-out rows, and which rows of X these are, fold by fold."""
        check_parameters("NearestMedoidClassifier", self.get_params(deep=False), self._constraints)
        table = check_table(self, X, reset=True, ensure_min_samples=2)
        if self.input_scaling == "none":
            check_size(table, getattr(self, "feature_names_in_", None))
        codes = self._class_codes(table, y)
        check_counts(codes, self.classes_, table.shape[1])
        together = groups_of_fit(groups, table, codes)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
        settings = self._settings()
        train, folds = self._training_data(table, codes, X_val, y_val, settings, rng, together)
        self.groups_ = make_groups(
            train.X,
            train.codes,
            order=self.anchor_order,
            group_size=self.group_size,
            n_anchors=self.n_anchors,
            names=getattr(self, "feature_names_in_", None),
        )
        search = self._search_settings(self.groups_)
        options = multiplier_options(self.class_weight, train.codes, self.classes_)
        visits = len(search.sizes) * search.max_passes * len(self.groups_.anchors)
        context = self._init_callback_context(max_subtasks=visits)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        found = search_configurations(
            folds, self.groups_, settings, search, options[0], rng, progress=self._report_to(context)
        )
        if found.interrupted:
            warn(f"The search was interrupted after {len(found.trace)} evaluations; the best so far is used.")
        self.search_trace_, self.search_records_ = found.trace, found.records
        selected = select_models(train, folds, found, settings, search, options)
        self._keep(selected, table)
        self._warn_few_medoids()
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return selected, [fold.rows_val for fold in folds]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of every row, shape (n,)."""
        check_is_fitted(self)
        predicted: npt.NDArray[Any] = self.classes_[self.model_.predict(check_table(self, X, reset=False))]
        return predicted

    def decision_function(self, X: Any) -> Array:
        """Margins: s_0 − s_1 of shape (n,) for two classes (above 0 means the second), −s of shape (n, C) for more."""
        check_is_fitted(self)
        return self.model_.margins(check_table(self, X, reset=False))

    def channels(self, X: Any) -> Channels:
        """Distance and angle of every row to the nearest medoid of each class, each of shape (n, C)."""
        check_is_fitted(self)
        return self.model_.channels(check_table(self, X, reset=False))

    def measured_by(self, swap_test: SwapTestFunction) -> Self:
        """The same fitted classifier with its overlaps measured by another SWAP test, for example by circuits.

        Parameters
        ----------
        swap_test : callable (X, Y) -> SwapTest
            One of the backends of :mod:`qmedoid.circuits`, or anything with the same call.

        Returns
        -------
        NearestMedoidClassifier
            A copy that predicts through `swap_test`; this one is left as it is.
        """
        check_is_fitted(self)
        measured = copy.copy(self)
        measured.model_ = MeasuredNearest(self.models_[0], swap_test)
        return measured

    def _report_to(self, context: CallbackContext) -> Callable[[Progress], bool]:
        """Tell scikit-learn's callbacks of every anchor visit; a callback may ask to stop with the best so far."""

        def report(progress: Progress) -> bool:
            visit = context.subcontext(task_name=f"k={progress.size}, pass {progress.sweep}")
            return visit.call_on_fit_task_begin(estimator=self).call_on_fit_task_end(estimator=self)

        return report

    def _class_codes(self, table: Array, y: Any) -> Codes:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        self.classes_, codes = class_codes(check_target(y, len(table)))
        return codes

    def _settings(self) -> FusionSettings:
        return FusionSettings(
            kind=self.kind,
            input_scaling=self.input_scaling,
            use_angular=self.use_angular,
            angle=self.angle,
            n_medoids=self.n_medoids,
            max_medoid_rows=self.max_medoid_rows,
        )

    def _search_settings(self, groups: Groups) -> SearchSettings:
        alphas = ALPHA_GRID if self.alpha is None else (float(self.alpha),)
        return SearchSettings(
            sizes=sizes_within(groups, self.subset_sizes),
            max_passes=self.max_passes,
            candidate_budget=self.candidate_budget,
            search_alpha=float(self.search_alpha),
            alphas=alphas if self.use_angular else (1.0,),
            n_models=self.n_models,
            selection=self.selection,
        )

    def _training_data(
        self,
        table: Array,
        codes: Codes,
        X_val: Any,
        y_val: Any,
        settings: FusionSettings,
        rng: np.random.Generator,
        groups: Codes | None,
    ) -> tuple[TrainingRows, list[Fold]]:
        """The rows of the final fit, and the folds that judge configurations."""
        n_classes = len(self.classes_)
        everything = np.arange(len(table))
        if (X_val is None) != (y_val is None):
            raise ParameterError("X_val and y_val go together: pass both, or neither to use the folds of 'cv'.")
        if X_val is not None:
            train = prepare_rows(table, codes, everything, n_classes, settings, rng)
            held_out = check_table(self, X_val, reset=False, name="X_val")
            labels = check_target(y_val, len(held_out), name="y_val", table="X_val")
            nowhere = np.full(len(held_out), -1, dtype=np.intp)
            return train, [Fold(train, train.scaling.apply(held_out), known_codes(labels, self.classes_), nowhere)]
        splits = stratified_splits(self.cv, table, codes, self.classes_, rng, groups)
        check_splits(type(self).__name__, splits, codes, self.classes_)
        folds = prepare_folds(table, codes, splits, n_classes, settings, rng)
        if self.refit:
            return prepare_rows(table, codes, everything, n_classes, settings, rng), folds
        if len(folds) > 1:
            raise ParameterError(
                f"refit=False keeps the training rows of a single split, but cv made {len(folds)}. "
                "Pass refit=True, or a cv with one split."
            )
        return folds[0].train, folds

    def _keep(self, selected: Sequence[Selected], table: Array) -> None:
        best = selected[0]
        self.models_: list[NearestModel] = [choice.model for choice in selected]
        self.model_: NearestModel | MeasuredNearest = best.model
        self.alpha_ = best.model.alpha
        self.alpha_sweep_ = best.sweep
        self.one_se_: Best | None = best.best
        self.class_multipliers_ = best.model.multipliers
        self.configuration_ = best.model.configuration
        self.medoid_indices_ = best.model.medoid_rows
        self.medoid_classes_ = self.classes_[best.model.medoid_classes]
        self._medoid_tables = [table[choice.model.medoid_rows] for choice in selected]
        self.medoids_ = self._medoid_tables[0]
        self._novelty = fit_novelty(table, method=best.model)

    def _warn_few_medoids(self) -> None:
        counts = np.bincount(self.models_[0].medoid_classes)
        if counts.min() < self.n_medoids:
            warn(
                f"n_medoids={self.n_medoids} is more than the {counts.min()} rows of class "
                f"{self.classes_.tolist()[counts.argmin()]!r} that medoids are sought among: all of them were used."
            )
