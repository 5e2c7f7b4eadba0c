"""The sum as an estimator: evidence and trees of comparisons, weighted by the likelihood of out-of-fold rows."""

import time
from dataclasses import replace

import numpy as np

from qmedoid.arrays import Array
from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.parameters import with_parameters
from qmedoid.estimators.recipes import Progress, is_time_for, part_in_time
from qmedoid.geometry.groups import MOST_COLUMNS
from qmedoid.kernels.ties import order_by_content
from qmedoid.methods.calibration import fit_sum
from qmedoid.methods.comparisons.fit import fit_comparisons
from qmedoid.methods.comparisons.growing import BoostingSettings
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.neighbors.fit import MOST_ROWS, fit_neighbors
from qmedoid.methods.part import FittedParts, Part, Scored

# Progress when the evidence and the comparisons are fitted.
_EVIDENCE_SHARE, _LEARNT_SHARE = 0.3, 0.7
# Of a wide table, more than evidence is limited.
_WIDE = f"; trees compare the {MOST_COLUMNS} columns that are worth most, and no metric of neighbors is learned"


@with_parameters
class SumClassifier(EvidenceClassifier):
    r"""Classify by a weighted sum of three kinds of statements about real rows.

    *Evidence* is signed weights on distances to medoids, as in `EvidenceClassifier`. *Comparisons* are boosted trees
    of scikit-learn, at most four levels deep, whose thresholds lie halfway between two real rows: every split asks
    which of them the record is nearer to in one column. *Neighbors* are the nearest training rows under a learned
    metric, and correct what the other two missed of them out of fold. The log-odds are

    .. math:: b + w_1 \cdot \text{evidence} + w_2 \cdot \text{comparisons} + w_3 \cdot \text{neighbors},
              \qquad w \ge 0,

    with weights of the highest likelihood on out-of-fold rows; a part that adds nothing to it is dropped. Of more than
    500 columns trees compare those that are worth most to the rows that they are grown on, and no metric is learned.

    Parameters
    ----------
    comparisons : bool, default=True
        Whether trees of comparisons are tried.
    n_medoids, n_pairs, n_triples, n_terms
        As of `EvidenceClassifier`.
    n_neighbors : int or "auto", default="auto"
        Maximum number of extra training rows kept as neighbors under a learned metric, or for the neighbor term of the
        evidence. ``"auto"`` is 200,000 and 5,000; with 0 neither is tried.
    class_weight, calibration, operating_point, cv, refit, random_state
        As of `EvidenceClassifier`; with ``cv=None`` comparisons and the metric of the neighbors have folds.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    model_ : Model
    regularization_, path_ : float, RidgePath
        λ of the evidence and its leave-one-out errors; see `EvidenceClassifier`.
    weights_ : dict of str to float
        Weights by the name of what they weigh.
    threshold_, expected_, feature_importances_
        As of `EvidenceClassifier`.

    See Also
    --------
    EvidenceClassifier : the first part alone.
    MedoidClassifier : takes raw tables, and this classifier as ``method=``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from qmedoid import SumClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> SumClassifier(random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    method_name = "sum"
    least_rows = 300  # with fewer, trees have little to learn from

    comparisons: bool = True

    def _settings(self) -> EvidenceSettings:
        """The settings of the evidence."""
        return replace(super()._settings(), multinomial=True)

    def _fit_rows(self, data: TrainingTable, seed: int, progress: Progress) -> FittedParts:
        n_classes, X, codes = len(data.classes), data.X, data.codes
        began = time.monotonic()
        most_rows = MOST_ROWS if self.n_neighbors == "auto" else int(self.n_neighbors)
        evidence = fit_evidence(
            X, codes, n_classes, self._settings(), seed, lambda done: progress(_EVIDENCE_SHARE * done), data.groups,
            is_time_for, data.weights,
        )  # fmt: skip
        spent = time.monotonic() - began
        self.regularization_, self.path_ = evidence.regularization, evidence.path
        model, scores, parts = evidence.model, evidence.out_of_fold, list[Part]()
        added = list[Array]()
        if self.comparisons:
            trees = part_in_time(
                "trees of comparisons",
                spent * (_LEARNT_SHARE - _EVIDENCE_SHARE) / _EVIDENCE_SHARE,
                lambda report: fit_comparisons(
                    X, codes, n_classes, BoostingSettings(), seed, report, data.groups, data.fold_rows, data.weights
                ),
                lambda done: progress(_EVIDENCE_SHARE + (_LEARNT_SHARE - _EVIDENCE_SHARE) * done),
            )
            if trees is not None:
                parts.append(trees.model)
                added.append(trees.out_of_fold)
        fitted = fit_sum([scores, *added], codes, data.groups, data.weights)
        if most_rows and data.weights is None:
            # What is learnt does not depend on the order of the columns.
            order = order_by_content(X)
            ordered, scaling = np.ascontiguousarray(X[:, order]), model.rank_scaling.take(order)
            # The neighbors of the evidence have spoken to the same rows, by another metric: one of both is enough.
            alone = fit_sum([evidence.without_neighbors, *added], codes, data.groups)
            rng = np.random.default_rng(seed)
            rows = part_in_time(
                "neighbors under a learnt metric",
                spent * (1.0 - _LEARNT_SHARE) / _EVIDENCE_SHARE,
                lambda report: fit_neighbors(
                    ordered, codes, -alone.scores, scaling, rng, data.groups, most_rows, report
                ),
                lambda done: progress(_LEARNT_SHARE + (1.0 - _LEARNT_SHARE) * done),
            )
            if rows is not None:
                learnt = fit_sum([evidence.without_neighbors, *added, rows[1]], codes, data.groups)
                if learnt.loss < fitted.loss:
                    fitted, model = learnt, replace(model, neighbors=None)
                    parts.append(rows[0].with_columns(order))
        kept = [place for place in range(len(parts)) if fitted.weights[1 + place] > 0]
        progress(1.0)
        return FittedParts(
            (model, *(parts[place] for place in kept)),
            fitted.weights[[0, *(1 + place for place in kept)]],
            fitted.biases,
            Scored(fitted.scores),
            [np.arange(len(codes))],
            notes=() if evidence.note is None else (f"{evidence.note}{_WIDE}",),
        )
