"""Selection by the one-standard-error rule: the simpler of two that cannot be told apart, and never one beyond."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedShuffleSplit

from qmedoid import MedoidClassifier, NearestMedoidClassifier
from qmedoid.exceptions import ParameterError, QMedoidWarning
from qmedoid.geometry.channels import Channels
from qmedoid.methods.nearest import fit as select
from qmedoid.methods.nearest.fit import select_models
from qmedoid.methods.nearest.problem import NearestSettings, TrainingRows, prepare_folds
from qmedoid.optimize.descent import DescentResult, Record

WINE = load_wine()
X, Y = WINE.data[:, :6], WINE.target
SIMPLE, LARGE = ((0, 1), (2, 3)), ((0, 1, 4), (2, 3, 5))


def made_up(monkeypatch, mistakes, *, n_folds=2, selection="one_se", n=200):
    """Models chosen where a configuration makes as many mistakes on held-out rows as is said, whatever α is."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(n, 6)), np.arange(n) % 2
    rows = np.arange(n)
    settings = NearestSettings(alphas=(0.0, 0.5, 0.7, 0.9, 1.0), n_models=2, selection=selection)
    splits = [(np.delete(rows, np.s_[first::5]), rows[first::5]) for first in range(n_folds)]
    folds = prepare_folds(X, codes, splits, 2, settings, rng)
    held_out_codes = np.concatenate([fold.codes_val for fold in folds])

    def out_of_fold_channels(_folds, configuration, *_):
        said = held_out_codes.copy()
        wrong = np.linspace(0, len(said) - 1, mistakes[configuration]).astype(int)
        said[wrong] = 1 - said[wrong]
        distance = np.where(np.arange(2) == said[:, None], 0.1, 1.0)
        return Channels(distance, distance), held_out_codes

    monkeypatch.setattr(select, "out_of_fold_channels", out_of_fold_channels)
    found = DescentResult([Record(2, SIMPLE, 0.7), Record(3, LARGE, 0.9)])
    train = TrainingRows(X, codes, rows, 2, settings, rng)
    return select_models(train, folds, found, settings, [np.ones(2)])


@pytest.mark.parametrize(("n_folds", "over"), [(1, "rows"), (2, "folds"), (3, "folds")])
def test_the_simpler_of_two_that_cannot_be_told_apart_is_taken(monkeypatch, n_folds, over):
    same, larger = {SIMPLE: 6, LARGE: 6}, {SIMPLE: 30, LARGE: 6}
    chosen = made_up(monkeypatch, same, n_folds=n_folds)
    assert [model.configuration for model, _ in chosen] == [SIMPLE, LARGE]
    assert chosen[0][1].best.over == over
    assert chosen[0][0].alpha == 0.7  # all are equally good here, and this one is nearest to that of the search
    chosen = made_up(monkeypatch, larger, n_folds=n_folds)
    assert [model.configuration for model, _ in chosen] == [LARGE, SIMPLE]


def test_a_little_worse_is_within_the_error_of_few_rows_and_not_of_many(monkeypatch):
    for n, first in ((200, SIMPLE), (20_000, LARGE)):
        mistakes = {SIMPLE: n // 50, LARGE: n // 50 - n // 200}
        (best, *_) = made_up(monkeypatch, mistakes, n_folds=1, n=n)
        assert best[0].configuration == first


def test_the_best_is_chosen_as_ever_where_nothing_else_is_asked_for(monkeypatch):
    chosen = made_up(monkeypatch, {SIMPLE: 6, LARGE: 6}, selection="best")
    assert [model.configuration for model, _ in chosen] == [LARGE, SIMPLE]
    assert [choice.best for _, choice in chosen] == [None, None]


@pytest.fixture(scope="module")
def chosen():
    """The same search under both rules, on folds and on one split."""
    one_split = StratifiedShuffleSplit(1, test_size=0.3, random_state=1)
    return {
        (rule, name): NearestMedoidClassifier(selection=rule, cv=cv, n_models=4, random_state=1).fit(X, Y)
        for rule in ("best", "one_se")
        for name, cv in (("folds", 5), ("rows", one_split))
    }


@pytest.mark.parametrize("over", ["folds", "rows"])
def test_never_beyond_one_error_of_the_best_and_nothing_simpler_within(chosen, over):
    best, simple = chosen["best", over], chosen["one_se", over]
    bar = simple.one_se_
    assert bar.over == over
    assert bar.error > 0
    assert bar.score >= best.alpha_sweep_.score
    assert simple.alpha_sweep_.score >= bar.score - bar.error
    assert simple.alpha_sweep_.value == simple.alpha_
    columns = [sum(map(len, part.configuration)) for part, _ in simple.candidates_]
    assert columns[0] < sum(map(len, best.configuration_))  # so the case is one in which the rule does something
    # Within a configuration no α is nearer to that of the search and within the error, too.
    sweep = simple.alpha_sweep_
    nearer = np.abs(sweep.grid - 0.75) < abs(simple.alpha_ - 0.75) - 1e-12
    assert (sweep.scores[nearer] < bar.score - bar.error).all()
    # Both rules choose among the same configurations.
    assert {part.configuration for part, _ in simple.candidates_} == {
        part.configuration for part, _ in best.candidates_
    }
    assert best.one_se_ is None


def test_the_rule_goes_through_the_front_door_and_wrong_words_are_refused():
    hybrid = MedoidClassifier(method=NearestMedoidClassifier(selection="one_se", max_passes=0), random_state=0).fit(
        X, Y
    )
    assert hybrid.estimator_.one_se_.over == "folds"
    with pytest.raises(
        ParameterError, match=r"'selection' parameter of NearestMedoidClassifier must be one of 'best', 'one"
    ):
        NearestMedoidClassifier(selection="simple").fit(X, Y)


@pytest.mark.parametrize("calls_before", [0, 1])
def test_an_interrupted_choice_is_among_those_that_are_ready(monkeypatch, calls_before):
    made, calls = select.out_of_fold_channels, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) > calls_before:
            raise KeyboardInterrupt
        return made(*arguments)

    monkeypatch.setattr(select, "out_of_fold_channels", interrupted)
    with pytest.warns(QMedoidWarning, match="calibration was interrupted: the choice is among 1 of 4"):
        cut = NearestMedoidClassifier(max_passes=0, selection="one_se", random_state=0).fit(X, Y)
    assert cut.configuration_ == max(cut.search_records_, key=lambda record: record.score).configuration
    assert (cut.one_se_ is None) == (calls_before == 0)
