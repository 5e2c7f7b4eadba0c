"""A leak detector for every method: labels that are noise must look like noise to all that is called out-of-fold."""

import warnings
from unittest.mock import MagicMock

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.base import clone

from qmedoid import MedoidClassifier, NearestMedoidClassifier, VariationalClassifier
from qmedoid.estimators._fitted import ProbabilisticClassifier
from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.rare import RareEventClassifier
from qmedoid.estimators.recipes import FitReport
from qmedoid.estimators.refining import held_out_scored
from qmedoid.estimators.sum import SumClassifier
from qmedoid.geometry.row_groups import ranks, row_order
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.evidence.ridge import fit_ridge
from qmedoid.methods.rare.fit import RareSettings, fit_rare
from qmedoid.model.refinement import CircuitInputs

SEEDS = range(3)
ROWS, COLUMNS, PREVALENCE = 300, 6, 0.4
CIRCUIT = VariationalClassifier(n_steps=20, n_reps=1, n_seeds=1, cv=3)
QUICK = {"n_anchors": 3, "subset_sizes": (2, 2), "max_passes": 1, "n_models": 1}
METHODS = {
    "evidence": {"method": EvidenceClassifier()},
    "evidence, no neighbors": {"method": EvidenceClassifier(n_neighbors=0)},
    "evidence, folds": {"method": EvidenceClassifier(cv=3, n_medoids=16)},
    "evidence, circuit": {"method": EvidenceClassifier(n_medoids=16), "refine": "always", "variational": CIRCUIT},
    "evidence, replaced by a circuit": {
        "method": EvidenceClassifier(n_medoids=16), "refine": 0.5, "residual": False, "variational": CIRCUIT,
    },
    "sum": {"method": SumClassifier()},
    "sum, folds": {"method": SumClassifier(cv=3, n_medoids=16)},
    "rare": {"method": RareEventClassifier(), "refine": "never"},
    "rare, no hard rows": {"method": RareEventClassifier(n_hard=0, n_folds=5), "refine": "never"},
    "rare, folds": {"method": RareEventClassifier(cv=3), "refine": "never"},
    "rare, circuit": {"method": RareEventClassifier(), "refine": "always", "variational": CIRCUIT},
    "nearest": {"method": NearestMedoidClassifier(**QUICK), "refine": "never"},
    "convex, one split": {"method": NearestMedoidClassifier.paper(**QUICK), "refine": "never"},
    "convex, circuit": {"method": NearestMedoidClassifier(**QUICK), "refine": "always", "variational": CIRCUIT},
}  # fmt: skip


def noise(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(ROWS, COLUMNS)), (rng.random(ROWS) < PREVALENCE).astype(int)


def out_of_fold(monkeypatch, method, X, y, seed=0, groups=None, **changes):
    """The fitted classifier, the log-odds of its rows out of fold, and which rows it held out."""
    kept = {}
    chosen = ProbabilisticClassifier._chosen_decision

    def spy(self, data, held_out, *others):
        kept[type(self).__name__] = data.codes, held_out
        return chosen(self, data, held_out, *others)

    monkeypatch.setattr(ProbabilisticClassifier, "_chosen_decision", spy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MedoidClassifier(**METHODS[method], random_state=seed, **changes).fit(X, y, groups=groups)
    codes, held_out = kept["MedoidClassifier"]
    # Back to the order of the table.
    order = row_order(ranks(X), y, groups)
    np.testing.assert_array_equal(codes, y[order])
    margins = np.empty(len(y))
    margins[order] = held_out.scores[:, 1] - held_out.scores[:, 0]
    return fitted, margins, order[held_out.fold >= 0]


def auc(margins, y):
    placed, n_positive = rankdata(margins), y.sum()
    return (placed[y == 1].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * (len(y) - n_positive))


@pytest.mark.parametrize("method", METHODS)
def test_labels_that_are_noise_look_like_noise(monkeypatch, method):
    """Within 4 standard errors of chance, over three tables: order, precision, and how sure probabilities are."""
    aucs, precisions, alerts, spreads, rows = [], [], [], [], []
    for seed in SEEDS:
        X, y = noise(seed)
        fitted, margins, judged = out_of_fold(monkeypatch, method, X, y, seed, operating_point={"alert_rate": 0.25})
        aucs.append(auc(margins[judged], y[judged]))
        spreads.append(margins[judged].std())
        precisions.append(fitted.expected_.precision.value)
        alerts.append(fitted.expected_.counts.tp + fitted.expected_.counts.fp)
        rows.append(len(judged))
    n = sum(rows)
    error = np.sqrt(1.0 / (12.0 * n * PREVALENCE * (1.0 - PREVALENCE)))
    assert abs(np.average(aucs, weights=rows) - 0.5) < 4.0 * error
    n_alerts = max(sum(alerts), 1)
    share = np.average(precisions, weights=np.maximum(alerts, 1))
    assert abs(share - PREVALENCE) < 4.0 * np.sqrt(PREVALENCE * (1.0 - PREVALENCE) / n_alerts)
    # A slope of 1 on scores that say nothing would spread log-odds by 1 and more.
    assert np.mean(spreads) < 0.5


@pytest.mark.parametrize("method", ["evidence", "sum", "rare", "nearest"])
def test_likelier_rows_are_not_called_so_by_noise(monkeypatch, method):
    """Without an operating point, the share of rows that are called rightly is that of the larger class at most."""
    right = []
    for seed in SEEDS:
        X, y = noise(seed)
        counts = out_of_fold(monkeypatch, method, X, y, seed)[0].expected_.counts
        right.append((counts.tp + counts.tn) / ROWS - max(y.mean(), 1.0 - y.mean()))
    assert np.mean(right) < 4.0 * np.sqrt(PREVALENCE * (1.0 - PREVALENCE) / (ROWS * len(right)))


def test_penalty_of_noise_leaves_next_to_nothing():
    """λ is judged by rows that no group was chosen by: the ridge is then as good as the mean, and hardly moves."""
    for seed in SEEDS:
        X, y = noise(seed)
        fitted = fit_evidence(X, y, 2, EvidenceSettings(n_neighbors=0), seed)
        variance = 4.0 * y.mean() * (1.0 - y.mean())
        assert fitted.path.errors.min() > 0.97 * variance
        assert fitted.model.neighbors is None


def signal(seed, n=200):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=n) > 0).astype(int)


def test_output_of_a_ridge_does_not_know_the_target_of_its_row():
    X, y = signal(0)
    X -= X.mean(axis=0)
    targets = 2.0 * y[:, None] - 1.0
    for row in range(5):
        flipped = targets.copy()
        flipped[row] *= -1.0
        before, after = (fit_ridge(X, one, None, np.array([0.01])).out_of_fold[row] for one in (targets, flipped))
        np.testing.assert_allclose(after, before, atol=1e-10)
        # The intercept of all rows has seen it, and moves all rows alike.
        before, after = (
            fit_ridge(X, one, None, np.array([0.01]), same_intercept=True).out_of_fold[row]
            for one in (targets, flipped)
        )
        np.testing.assert_allclose(after - before, (flipped - targets)[row] / len(y), rtol=0.1)


@pytest.mark.parametrize(
    "stage",
    [EvidenceClassifier(), RareEventClassifier(), SumClassifier()],
    ids=["evidence", "rare", "sum"],
)
def test_scores_of_folds_do_not_know_the_labels_of_their_rows(stage):
    """Exactly: all labels of a fold may be turned round, and its scores stay the same to the last bit."""
    X, y = signal(1)
    fold = np.random.default_rng(0).integers(0, 3, len(y))
    splits = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(3)]
    flipped = np.where(fold == 0, 1 - y, y)
    before, after = (
        clone(stage)
        .set_params(cv=splits, random_state=0)
        .fit_parts(TrainingTable(X, one, np.arange(2)), FitReport(None, MagicMock()))[0]
        .out_of_fold.scores
        for one in (y, flipped)
    )
    np.testing.assert_array_equal(after[fold == 0], before[fold == 0])
    assert not np.array_equal(after[fold == 1], before[fold == 1])


def test_left_out_score_hardly_knows_the_label_of_its_row():
    """Medoids and groups of columns have seen it; weights have not. So it moves far less than the fitted score does."""
    X, y = signal(2)
    settings = EvidenceSettings()
    fitted = fit_evidence(X, y, 2, settings, 0)
    out_of_fold, seen = [], []
    for row in range(0, 40, 4):
        flipped = y.copy()
        flipped[row] = 1 - y[row]
        again, towards = fit_evidence(X, flipped, 2, settings, 0), 2 * flipped[row] - 1
        pairs = (
            (out_of_fold, fitted.out_of_fold, again.out_of_fold),
            (seen, fitted.model.score(X).scores, again.model.score(X).scores),
        )
        for kept, *scores in pairs:
            before, after = (one[row, 0] - one[row, 1] for one in scores)
            kept.append(towards * (after - before))
    assert abs(np.mean(out_of_fold)) < 0.2 * np.mean(seen)


def test_rare_events_that_are_noise_look_like_noise():
    aucs = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, codes = rng.normal(size=(2000, 8)), (np.arange(2000) < 100).astype(np.intp)
        held_out = fit_rare(X, codes, RareSettings(), seed).out_of_fold
        aucs.append(auc(held_out[:, 0] - held_out[:, 1], codes))
    assert abs(np.mean(aucs) - 0.5) < 4.0 / np.sqrt(12.0 * 8000 * 0.05 * 0.95)


def test_a_medoid_is_compared_with_the_medoids_of_other_rows():
    """What a circuit is fed of a training row that is a medoid, or equal to one, is what a new row would show."""
    X, y = signal(0)
    X, y = np.concatenate([X, X[:20]]), np.concatenate([y, y[:20]])
    groups = np.append(np.arange(len(X) - 20), np.arange(20))
    method = EvidenceClassifier(n_medoids=12, random_state=0)
    data = TrainingTable(X, y, np.unique(y), groups)
    (fit,) = method.fit_parts(data, FitReport(method, method._init_callback_context))
    (model,), in_sample = fit.parts, fit.score(X, channels=True)
    own, found = np.isin(groups, groups[model.medoid_rows]), held_out_scored(fit, in_sample, CircuitInputs(), data)
    assert (in_sample.distance[own].min(axis=1) < 1e-9).all()
    assert (found.distance[own].min(axis=1) > 1e-3).all()
    np.testing.assert_array_equal(found.distance[~own], in_sample.distance[~own])
    points, medoids = model.rows.to_points(X), model.rows.points
    for row in np.flatnonzero(own)[::3]:
        others = groups[model.medoid_rows] != groups[row]
        for code in range(2):
            away = np.linalg.norm(points[row] - medoids[others & (model.medoid_classes == code)], axis=1)
            assert found.distance[row, code] == pytest.approx(away.min())
