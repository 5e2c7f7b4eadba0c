"""The evidence method as an estimator: signed weights on distances to medoids, group of columns by group of columns."""

from typing import Annotated, Literal

import numpy as np

from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.parameters import AUTO, whole, with_parameters
from qmedoid.estimators.recipes import MethodClassifier, Progress, is_time_for
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.part import FittedParts, Scored


@with_parameters
class EvidenceClassifier(MethodClassifier):
    """Classify by signed weights on distances to medoids, group of columns by group of columns.

    Medoids are real training rows. The weights are a ridge regression, whose leave-one-out scores calibrate the
    probabilities. Of more than 500 columns those have terms that are worth most to rows that do not judge them.

    Parameters
    ----------
    n_medoids : int or "auto", default="auto"
        Maximum number of medoids, but at least one per class. ``"auto"`` is 64, and 128 from 2,000 rows on.
    n_neighbors : int or "auto", default="auto"
        Maximum number of extra training rows kept for the neighbor term, which is used only if it improves the
        leave-one-out likelihood clearly. ``"auto"`` is 5,000. With 0 none are kept, and scoring is several times as
        fast.
    n_pairs, n_triples : int, default=16 and 10
        Groups of two and of three columns in each of the averaged models.
    n_terms : int or "auto", default="auto"
        Number of terms aimed at; the cost of a fit grows with its square. ``"auto"`` is 1,500.
    class_weight : mapping, "balanced" or None, default=None
    calibration : {"auto", "curve", "logistic", "temperature"}, default="auto"
        How scores become probabilities on out-of-fold rows; ``"auto"`` is ``"curve"``.
    operating_point : float, str, dict or None, default=None
    cv : int, splitter, iterable or None, default=None
        Folds whose held-out rows calibrate the scores and set thresholds. None takes leave-one-out scores.
    refit : bool, default=True
        Whether the final model is fitted on all rows; False keeps that of the only split.
    random_state : int, RandomState or None, default=None
        Seed of medoids and groups.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    model_ : Model
        Its only part is an `EvidencePart`.
    regularization_ : float
        The λ that was chosen.
    path_ : RidgePath
        Leave-one-out errors along the λ that were tried.
    threshold_, expected_ : float, OperatingSummary or None
        For two classes: the operating point, with precision, recall and alert rate on held-out rows.
    feature_importances_ : ndarray of shape (M,)

    See Also
    --------
    MedoidClassifier : takes raw tables, and this classifier as ``method=``; says more of common parameters.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from qmedoid import EvidenceClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> EvidenceClassifier(n_medoids=6, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    method_name = "evidence"
    carries_factors = True
    least_rows = 0

    n_medoids: Annotated[int | Literal["auto"], whole(1) | AUTO] = "auto"
    n_neighbors: Annotated[int | Literal["auto"], whole(0) | AUTO] = "auto"
    n_pairs: Annotated[int, whole(0)] = 16
    n_triples: Annotated[int, whole(0)] = 10
    n_terms: Annotated[int | Literal["auto"], whole(1) | AUTO] = "auto"

    def _settings(self) -> EvidenceSettings:
        """The settings of the fit; a study of further settings overrides this."""
        return EvidenceSettings(
            n_medoids=EvidenceSettings.n_medoids if self.n_medoids == "auto" else int(self.n_medoids),
            grows=self.n_medoids == "auto",
            n_neighbors=EvidenceSettings.n_neighbors if self.n_neighbors == "auto" else int(self.n_neighbors),
            n_pairs=int(self.n_pairs),
            n_triples=int(self.n_triples),
            n_terms=EvidenceSettings.n_terms if self.n_terms == "auto" else int(self.n_terms),
        )

    def _fit_rows(self, data: TrainingTable, seed: int, progress: Progress) -> FittedParts:
        fitted = fit_evidence(
            data.X,
            data.codes,
            len(data.classes),
            self._settings(),
            seed,
            progress,
            data.groups,
            is_time_for,
            data.weights,
        )
        self.regularization_, self.path_ = fitted.regularization, fitted.path
        # Rows are left out one by one: one fold stands for all of them.
        folds, notes = [np.arange(len(data.codes))], () if fitted.note is None else (fitted.note,)
        biases, out_of_fold = np.zeros(fitted.out_of_fold.shape[1]), Scored(fitted.out_of_fold)
        return FittedParts((fitted.model,), np.ones(1), biases, out_of_fold, folds, notes=notes)
