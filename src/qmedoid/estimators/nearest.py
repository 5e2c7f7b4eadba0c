"""The nearest-medoid method: distance and angle over searched column groups (algorithms 7, 8, 10, 12)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes
from qmedoid.estimators import parameters as allowed
from qmedoid.estimators._fitted import FittedClassifier
from qmedoid.estimators._search import PRINTED, SCORE_WEIGHTS, AnchorOrder, search_models
from qmedoid.estimators.folds import TrainingTable, ordered_table, validation_order
from qmedoid.estimators.inputs import (
    check_target,
    class_codes,
    classes_of,
    known_codes,
    one_blas_thread,
    refuse_factors,
    weighted_rows,
)
from qmedoid.estimators.number_columns import fit_numbers, read_numbers
from qmedoid.estimators.recipes import FitReport, Recipe
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.channels import Channels, DeltaKind
from qmedoid.geometry.groups import FeatureKind
from qmedoid.geometry.overlap import AngleKind
from qmedoid.geometry.scaling import ScalingKind
from qmedoid.methods.nearest.fit import Selected
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.methods.part import CLOSED_FORM, Calibration, FittedParts, Scored
from qmedoid.model.decision import Decision
from qmedoid.model.model import Model
from qmedoid.model.refinement import CircuitInputs
from qmedoid.tables.targets import Target


@allowed.with_parameters
class NearestMedoidClassifier(Recipe, FittedClassifier):
    """Classify a record by its distance and angle to the nearest medoid, a real record, of each class.

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
        Maximum number of anchors, those most related to the classes. None keeps all columns as anchors.
    subset_sizes : (int, int) or None, default=None
        First and last number k of columns per group that is searched. None takes 2 to 5, or fewer in smaller groups.
    max_passes : int, default=2
        Passes of the search over all anchors for each k. 0 keeps the first k members of each group.
    candidate_budget : int or None, default=None
        Maximum number of subsets per anchor visit, drawn at random where there are more.
    use_angular : bool, default=True
        Whether the angle is part of the score.
    angle : {"true", "printed"}, default="true"
        The angle between vectors, or arccos √s, which falls as vectors part.
    alpha : float or None, default=None
        Share of the distance channel. None chooses it on held-out rows; `search_alpha` is used while configurations
        are compared.
    search_alpha : float, default=0.75
    score_weight : {"auto", "balanced", "printed"}, dict or None, default="auto"
        Weights of the classes, by label, that divide their scores: a larger one makes a class win more often. They
        are no weights of rows, as `class_weight` of the other classifiers is. ``"auto"`` chooses on held-out rows
        among π^−γ, γ in 0, ¼, ½, which help rare classes; ``"balanced"`` is γ = 1; ``"printed"`` *multiplies* scores
        by 1/√π, which holds rare classes back.
    anchor_order : {"association", "codes", "columns"}, default="association"
        Order of the anchors: by the correlation ratio with the classes, by ``|r|`` with label codes, or as they stand.
    n_medoids : int, default=1
        Medoids per class in the final models. The search itself uses one.
    max_medoid_rows : int, default=1000
        Maximum number of rows of a class, drawn at random, that are searched for its medoid.
    n_models : int, default=2
        Number of models, the best over k, that are kept.
    cv : int, splitter or iterable, default=5
        Folds on which configurations and α are chosen. Ignored when `fit` is given validation rows.
    refit : bool, default=True
        Fit the chosen models on all rows. False keeps to the training rows of the only split of `cv`.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of the medoid samples and of the candidate draws.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    model_ : Model
        Its only part is the best `NearestPart`.
    candidates_ : list of (NearestPart, Selected)
        The best `n_models` with the record of their choice, best first.
    medoids_ : ndarray of shape (P, M)
        The medoids of `model_`, in encoded columns where cells were missing; `medoid_indices_` and `medoid_classes_`
        are their rows and classes.
    configuration_ : tuple of tuple of int
        Columns of each anchor's subset, the anchor first.
    alpha_ : float
    class_multipliers_ : ndarray of shape (C,)
        Factor on each class's score; below 1 draws a class nearer.
    groups_ : Groups
    search_trace_, search_records_ : list
        Every configuration that was scored, and the best of each k with its validation macro-F1.
    alpha_sweep_ : Sweep
        Validation macro-F1 of `model_` along α.
    feature_importances_ : ndarray of shape (M,)
        Mean absolute contribution of each column to the margin, in units of the score.

    See Also
    --------
    MedoidClassifier : takes raw tables, and this classifier as ``method=``, and has probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from qmedoid import NearestMedoidClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> NearestMedoidClassifier(random_state=0).fit(X, y).medoids_.shape
    (3, 4)
    """

    method_name = "nearest"
    default_calibration = "logistic"
    corrects_scores = False
    refines = True

    kind: FeatureKind = "signed"
    input_scaling: ScalingKind = "standard"
    group_size: Annotated[int | None, allowed.NONE | allowed.whole(1)] = None
    n_anchors: Annotated[int | None, allowed.NONE | allowed.whole(1)] = 64
    subset_sizes: Annotated[tuple[int, int] | None, allowed.NONE | allowed.PAIR] = None
    max_passes: Annotated[int, allowed.whole(0)] = 2
    candidate_budget: Annotated[int | None, allowed.NONE | allowed.whole(1)] = None
    use_angular: bool = True
    angle: AngleKind = "true"
    alpha: Annotated[float | None, allowed.NONE | allowed.SHARE] = None
    search_alpha: Annotated[float, allowed.SHARE] = 0.75
    score_weight: Annotated[str | Mapping[Any, float] | None, allowed.class_weights(SCORE_WEIGHTS)] = "auto"
    anchor_order: AnchorOrder = "association"
    n_medoids: Annotated[int, allowed.whole(1)] = 1
    max_medoid_rows: Annotated[int, allowed.whole(1)] = 1000
    n_models: Annotated[int, allowed.whole(1)] = 2
    cv: Annotated[Any, allowed.CV] = 5
    refit: bool = True
    random_state: Annotated[Any, allowed.SEED] = None

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The method as printed: raw inputs, plain norms, the printed angle and class weights, one validation split.

        `changes` override single parameters.

        The page *What we found in the paper* of the documentation lists what is not as printed, such as that everything
        is fitted on training rows only.
        """
        return cls(**({**PRINTED} | changes))

    @with_callbacks
    @one_blas_thread
    def fit(
        self, X: Any, y: Any, *, X_val: Any = None, y_val: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> Self:
        """Find groups, search configurations, calibrate α and keep the best models.

        Parameters
        ----------
        X, y, groups, sample_weight
            As of `EvidenceClassifier.fit`. Weights are whole numbers, in all at most 10 times as many as rows.
        X_val, y_val : array-like, optional
            Rows on which configurations and α are chosen instead of the folds of `cv`. Models are then fitted on X
            alone.
        """
        allowed.check_parameters("NearestMedoidClassifier", self.get_params(deep=False), self._constraints)
        table = fit_numbers(self, X)
        classes, codes = class_codes(y, len(table))
        weighted = weighted_rows(sample_weight, None, codes, classes)
        refuse_factors(weighted.factors, "NearestMedoidClassifier")
        classes, codes = classes_of(classes, codes, weighted.rows)
        if (X_val is None) != (y_val is None):
            raise ParameterError("X_val and y_val go together: pass both, or neither to use the folds of 'cv'.")
        validation = None
        if X_val is not None:
            held_out = read_numbers(self, X_val, name="X_val")
            labels = check_target(y_val, len(held_out), name="y_val", table="X_val")
            held_codes = known_codes(Target(None, *np.unique(labels, return_inverse=True)), classes)
            order = validation_order(held_out, held_codes)
            validation = held_out[order], held_codes[order]
        data = ordered_table(self, table, codes, classes, groups, weighted)
        report = FitReport(self, self._init_callback_context, X=X, y=y)
        fits = self.fit_parts(data, report, validation)
        self.classes_, best = classes, fits[0]
        # Its margin decides, not a probability: the second class where s_0 − s_1 is above 0.
        decision = Decision(tuple(classes.tolist()), 0.0 if len(classes) == 2 else None, probabilistic=False)
        model = self._model_of_numbers(
            data,
            best.parts,
            decision,
            method=self.method_name,
            weights=best.weights,
            biases=best.biases,
            calibration=Calibration.plain(len(classes)),
        )
        self.keep(model, fits)
        report.end()
        return self

    def circuit_inputs(self, kind: DeltaKind, fused: bool) -> tuple[CircuitInputs, int]:
        """What a circuit reads: deltas, with those of the angle if the score has it."""
        return CircuitInputs(kind, fused, bool(self.use_angular)), 0

    def fit_parts(
        self, data: TrainingTable, report: FitReport, validation: tuple[Array, Codes] | None = None
    ) -> list[FittedParts]:
        """The best models, best first, with their channels of held-out rows."""
        found = search_models(self, data, report, validation)
        selected, folds, self.groups_, self.search_trace_, self.search_records_ = found
        rows, fits = np.concatenate(folds), []
        for part, chosen in selected:
            scored = part.score(data.X, channels=True)
            if chosen.out_of_fold is not None and validation is None:
                channels = Channels(scored.channels.distance.copy(), scored.channels.angle.copy())
                channels.distance[rows], channels.angle[rows] = chosen.out_of_fold
                scored = Scored(part.fuse(channels), scored.nearest, *channels)
            details = data.as_given(part), chosen, data.X[part.medoid_rows]
            fits.append(FittedParts((part,), np.ones(1), np.zeros(part.n_classes), scored, folds, details=details))
        return fits

    def keep(self, model: Model, fits: Sequence[FittedParts]) -> None:
        """Set the fitted attributes: the model of the first of the fits, and how it was found."""
        super().keep(model, fits)
        self.candidates_: list[tuple[NearestPart, Selected]] = [fit.details[:2] for fit in fits]
        chosen, self.medoids_ = fits[0].details[1:]
        self.alpha_sweep_ = chosen.sweep
        part = self._part
        self.alpha_, self.class_multipliers_, self.configuration_ = part.alpha, part.multipliers, part.configuration
        self.medoid_indices_ = part.medoid_rows
        self.medoid_classes_ = np.array(model.decision.classes)[part.medoid_classes]

    @property
    def _part(self) -> NearestPart:
        (part,) = self.model_.parts
        assert isinstance(part, NearestPart), "it fits no other"
        return part

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of every row, shape (n,)."""
        check_is_fitted(self)
        table = self._encoded(X)
        # Labels are found without scores, several times as fast.
        is_alone = self.model_.backends == CLOSED_FORM and self.model_.refinement is None
        codes = self._part.labels(table) if is_alone else self.model_.decide(table).codes
        predicted: npt.NDArray[Any] = self.classes_[codes]
        return predicted

    def decision_function(self, X: Any) -> Array:
        """Margins: s_0 − s_1 of shape (n,) for two classes (above 0 means the second), −s of shape (n, C) for more."""
        scores = self._scores(X)
        return self.model_.decision.margins(scores) if len(self.classes_) == 2 else scores

    def channels(self, X: Any) -> Channels:
        """Distance and angle of every row to the nearest medoid of each class, each of shape (n, C)."""
        check_is_fitted(self)
        return self.model_.score(self._encoded(X), channels=True).channels
