"""The rare-event method as an estimator: prototypes of a rare class, its hardest counterparts, and comparisons."""

import time
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np

from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.parameters import whole, with_parameters
from qmedoid.estimators.recipes import MethodClassifier, Progress, part_in_time
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.channels import DeltaKind
from qmedoid.methods.calibration import fit_sum
from qmedoid.methods.comparisons.fit import fit_comparisons
from qmedoid.methods.comparisons.growing import BoostingSettings
from qmedoid.methods.part import FittedParts, Scored
from qmedoid.methods.rare.fit import FittedRare, RareSettings, fit_rare
from qmedoid.model.refinement import CircuitInputs

# Progress when the prototypes are fitted.
_RARE_SHARE = 0.6


@with_parameters
class RareEventClassifier(MethodClassifier):
    """Separate a rare class from a common one by how much nearer a record lies to prototypes of the rare class.

    Prototypes are real training rows: all rare ones, common ones drawn at random, and the common ones most like rare
    ones. A logistic sum over distances to them decides, together with trees of comparisons where these make out-of-fold
    rows likelier; see `SumClassifier`.

    Parameters
    ----------
    comparisons : bool, default=True
        Whether trees of comparisons are tried.
    n_rare : int, default=2000
        Maximum number of prototypes of the rare class; all of its rows where there are fewer.
    n_common : int, default=3000
        Number of prototypes of the common class, drawn at random.
    n_hard : int, default=1000
        Number of further common prototypes, those most like the rare class; 0 for none.
    n_folds : int, default=3
        Folds of the out-of-fold scores that calibrate and set thresholds: in each, everything is fitted anew.
    cv : int, splitter, iterable or None, default=None
        Other folds in place of `n_folds`.
    class_weight, calibration, operating_point, refit, random_state
        As of `EvidenceClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    model_ : Model
    weights_ : dict of str to float
        Weights of the prototypes (``"rare"``) and of the comparisons by their names.
    threshold_, expected_ : float, OperatingSummary
        The operating point, with precision, recall and alert rate on held-out rows.
    feature_importances_ : ndarray of shape (M,)

    See Also
    --------
    MedoidClassifier : takes raw tables, and this classifier as ``method=``; says more of common parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from qmedoid import RareEventClassifier
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> y = X[:, 0] > 2
    >>> model = RareEventClassifier(operating_point={"alert_rate": 0.05}, random_state=0).fit(X, y)
    >>> model.predict([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).tolist()
    [True, False]
    """

    method_name = "rare"
    carries_factors = True
    separates_rare = True
    circuit_defaults: ClassVar[Mapping[str, Any]] = {"n_qubits": 4, "clip": 3.0, "cv": 3}

    comparisons: bool = True
    n_rare: Annotated[int, whole(2)] = 2000
    n_common: Annotated[int, whole(2)] = 3000
    n_hard: Annotated[int, whole(0)] = 1000
    n_folds: Annotated[int, whole(2)] = 3

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def circuit_inputs(self, kind: DeltaKind, fused: bool) -> tuple[CircuitInputs, int]:  # noqa: ARG002
        """What a circuit reads: features of the prototypes."""
        return CircuitInputs("own"), self._settings().n_circuit_features

    def _settings(self) -> RareSettings:
        """The settings of the fit; a study of further settings overrides this."""
        return RareSettings(
            n_rare=int(self.n_rare), n_common=int(self.n_common), n_hard=int(self.n_hard), n_folds=int(self.n_folds)
        )

    def _fit_rows(self, data: TrainingTable, seed: int, progress: Progress) -> FittedParts:
        if len(data.classes) != 2:
            raise ParameterError(
                "Only binary classification is supported. The type of the target is multiclass: the rare-event method "
                f"separates one rare class from another, and there are {len(data.classes)} classes. Use "
                "method='evidence'."
            )
        began = time.monotonic()
        share = _RARE_SHARE if self.comparisons else 1.0
        fitted = fit_rare(
            data.X, data.codes, self._settings(), seed, lambda done: progress(share * done), data.groups, data.weights
        )
        found = self._with_comparisons(fitted, data, seed, progress, time.monotonic() - began)
        progress(1.0)
        return found

    def _with_comparisons(
        self, fitted: FittedRare, data: TrainingTable, seed: int, progress: Progress, spent: float
    ) -> FittedParts:
        """The prototypes, with trees of comparisons if these make the rows likelier."""
        folds = [np.flatnonzero(fitted.fold == number) for number in range(fitted.fold.max() + 1)]
        out_of_fold = Scored(fitted.out_of_fold, features=fitted.circuit_features)
        alone = FittedParts((fitted.model,), np.ones(1), np.zeros(2), out_of_fold, folds, fitted.model.rare_class)
        # Without folds there is nothing to weigh by.
        if not self.comparisons or not fitted.fold.any():
            return alone
        trees = part_in_time(
            "trees of comparisons",
            spent * (1.0 - _RARE_SHARE) / _RARE_SHARE,
            lambda report: fit_comparisons(
                data.X, data.codes, 2, BoostingSettings(), seed, report, data.groups, data.fold_rows, data.weights
            ),
            lambda done: progress(_RARE_SHARE + (1.0 - _RARE_SHARE) * done),
        )
        if trees is None:
            return alone
        total = fit_sum([fitted.out_of_fold, trees.out_of_fold], data.codes, data.groups, data.weights)
        if total.weights[1] == 0:
            return alone
        return alone._replace(
            parts=(fitted.model, trees.model),
            weights=total.weights,
            biases=total.biases,
            out_of_fold=out_of_fold._replace(scores=total.scores),
        )
