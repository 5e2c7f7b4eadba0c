"""Effects of columns are made of the exact contributions of rows."""

import itertools

import numpy as np
import pandas as pd
import pytest

import qmedoid
from qmedoid import EvidenceClassifier, MedoidClassifier, NearestMedoidClassifier
from qmedoid.exceptions import ParameterError

METHOD = EvidenceClassifier(n_medoids=6, n_pairs=2, n_triples=0, n_neighbors=0, random_state=0)


def made(n=240, n_classes=2):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["Rom", "Oslo", "a|b"], n, p=[0.6, 0.3, 0.1]),
            "paid €": rng.lognormal(size=n),
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "vip": rng.random(n) < 0.3,
            "same": 1.0,
        }
    )
    signal = 1.5 * (frame["town"] == "Oslo") + np.log(frame["paid €"]) + frame["vip"] + 0.5 * rng.normal(size=n)
    frame.loc[rng.random(n) < 0.1, "paid €"] = np.nan
    frame.loc[rng.random(n) < 0.1, "town"] = None
    return frame, np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes)).astype(str)


@pytest.fixture(scope="module")
def two():
    frame, y = made()
    return MedoidClassifier(method=METHOD, random_state=0).fit(frame, y), frame


@pytest.fixture(scope="module")
def three():
    frame, y = made(n_classes=3)
    return MedoidClassifier(method=METHOD, random_state=0).fit(frame, y), frame


def contributions_of(model, frame, column):
    """By explanations, one by one, toward the second of two classes."""
    return np.array([
        next(one["contribution"] for one in model.explain(frame, row)["columns"] if one["name"] == column)
        for row in range(len(frame))
    ])  # fmt: skip


def test_effects_are_means_of_explanations(two, tmp_path):
    classifier, frame = two[0], two[1][:60]
    saved = qmedoid.load(classifier.save(tmp_path / "m"))
    added = contributions_of(saved, frame, "paid €")
    values = frame["paid €"].to_numpy()
    effect = saved.effect(frame, "paid €", bins=4)
    assert effect == classifier.effect(frame, "paid €", bins=4)
    assert (effect.toward, effect.against, effect.unit, effect.kind) == ("1", "0", "log-odds", "number")
    assert effect.rows == effect.kept == 60
    for one in effect.bins:
        inside = added[(values >= one["low"]) & (values <= one["high"])]
        assert one["rows"] == len(inside)
        assert (one["mean"], one["p10"], one["p90"]) == pytest.approx((inside.mean(), *np.quantile(inside, [0.1, 0.9])))
    missing = added[np.isnan(values)]
    assert (effect.missing["rows"], effect.missing["mean"]) == (len(missing), pytest.approx(missing.mean()))
    assert sum(one["rows"] for one in effect.bins) + effect.missing["rows"] == 60
    opposite = saved.effect(frame, "paid €", bins=4, toward="0")
    assert [one["mean"] for one in opposite.bins] == pytest.approx([-one["mean"] for one in effect.bins])


def test_bins_have_equally_many_rows_and_equal_values_are_in_one(two):
    classifier, frame = two
    bins = classifier.effect(frame, "paid €", bins=7).bins
    assert len(bins) == 7
    assert max(one["rows"] for one in bins) - min(one["rows"] for one in bins) <= 1
    assert all(before["high"] < after["low"] for before, after in itertools.pairwise(bins))
    often = frame.assign(**{"paid €": np.concatenate([np.zeros(110), 1.0 + np.arange(129), [-5.0]])})
    # The rows of a frequent value do not leave a single one behind.
    assert [one["rows"] for one in classifier.effect(often, "paid €", bins=4).bins] == [111, 43, 43, 43]
    few = frame.assign(**{"paid €": np.repeat([1.0, 2.0, 5.0], len(frame) // 3)})
    assert [(one["low"], one["high"], one["value"]) for one in classifier.effect(few, "paid €").bins] == [
        (1.0, 1.0, "1"), (2.0, 2.0, "2"), (5.0, 5.0, "5"),
    ]  # fmt: skip


def test_levels_come_by_frequency_with_new_ones_behind(two):
    classifier, frame = two
    effect = classifier.effect(frame, "town")
    assert [one["value"] for one in effect.bins] == ["Rom", "Oslo", "a|b"]
    assert effect.bins[1]["mean"] > 0 > effect.bins[0]["mean"]
    assert effect.missing["rows"] == frame["town"].isna().sum()
    new = frame.assign(town=frame["town"].where(frame["town"] != "a|b", "Paris"))
    with pytest.warns(qmedoid.exceptions.QMedoidWarning, match="unseen"):
        assert [one["value"] for one in classifier.effect(new, "town").bins] == ["Rom", "Oslo", "other levels"]
    assert [one["value"] for one in classifier.effect(frame, "vip").bins] == ["false", "true"]


def test_dates_are_shown_as_days(two):
    classifier, frame = two
    bins = classifier.effect(frame, "since", bins=3).bins
    assert bins[0]["low"] == "2024-01-01"
    assert bins[1]["value"] == " to ".join([bins[1]["low"], bins[1]["high"]])


def test_effects_of_several_classes_are_against_the_mean_of_the_others(three):
    classifier, frame = three
    effects = [classifier.effect(frame, "vip", toward=label) for label in "012"]
    assert effects[0].against is None
    # What speaks for one class speaks against the others: margins against the mean of the others add up to 0.
    for bins in zip(*(effect.bins for effect in effects), strict=True):
        assert sum(one["mean"] for one in bins) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(ParameterError, match=r"'toward' .* one of the classes, '0', '1', '2'\. Got None instead"):
        classifier.effect(frame, "vip")


def test_long_tables_are_sampled_in_bounded_memory(two, monkeypatch):
    classifier, frame = two
    monkeypatch.setattr("qmedoid.explain.effect.MOST_ROWS", 50)
    effect = classifier.effect(frame, "paid €")
    assert (effect.rows, effect.kept) == (240, 50)
    counts = [one["rows"] for one in (*effect.bins, effect.missing)]
    assert sum(counts) == 50


def test_wrong_words_are_refused(two):
    classifier, frame = two
    with pytest.raises(ParameterError, match=r"no column 'paid'\. Did you mean 'paid €'"):
        classifier.effect(frame, "paid")
    with pytest.raises(ParameterError, match="'same' was left out of the fit: every cell is 1"):
        classifier.effect(frame, "same")
    with pytest.raises(ParameterError, match=r"'bins' parameter must be an int >= 1\. Got 0"):
        classifier.effect(frame, "vip", bins=0)


def test_scores_that_are_no_probabilities_have_their_own_unit(two, tmp_path):
    frame = two[1][["paid €", "vip"]].astype(float)
    fitted = NearestMedoidClassifier(max_passes=0, cv=2, random_state=0).fit(frame, frame["vip"] > 0)
    saved = qmedoid.load(fitted.save(tmp_path / "m"))
    assert saved.effect(frame, "vip").unit == "score"
