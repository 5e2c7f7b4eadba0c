"""``fit --compare`` and ``--cv``: the same rows for all methods, folds as the split has them, and the same model."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from small_tables import small_table, write

from qmedoid.estimators import comparison

QUICK = ("--target", "y", "--medoids", "6", "--neighbors", "0", "--refine", "never")
TABLE = small_table(n=90)
PLACE = {x: place for place, x in enumerate(TABLE["x1"].to_pylist())}
DAY, CUSTOMER = np.array(TABLE["day"].to_pylist()), np.arange(90) // 5


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(TABLE, tmp_path_factory.mktemp("compare") / "t.csv")


@pytest.fixture(scope="module")
def customers(file):
    """The same table with customers, who have rows of both classes."""
    return write(TABLE.append_column("customer", [CUSTOMER]), file.with_name("customers.csv"))


@pytest.fixture
def spy(monkeypatch):
    """Only one baseline, which knows nothing; rows that it was fitted on and asked about, and the compared folds."""
    seen, compared = SimpleNamespace(fits=[], asked=[], folds=[], categories=None), comparison.compared

    def rows(X):
        return [PLACE[x] for x in X[:, 0]]

    def make(_, is_category):
        def fit(X, codes):
            seen.fits.append(rows(X))
            seen.categories, seen.n_classes = is_category, codes.max() + 1

        def predict(new):
            seen.asked.append(rows(new))
            return np.full((len(new), seen.n_classes), 1.0 / seen.n_classes)

        return SimpleNamespace(fit=fit, predict_proba=predict)

    monkeypatch.setattr(comparison, "BASELINES", {"nothing": make})
    monkeypatch.setattr(comparison, "compared", lambda folds: (seen.folds.extend(folds), compared(folds))[1])
    return seen


def test_baselines_get_our_training_rows_and_our_held_out_rows(cli, file, tmp_path, spy):
    printed = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--compare", "--json").json
    (fitted,), (asked,), found = spy.fits, spy.asked, printed["comparison"]
    assert (len(fitted), len(asked)) == (printed["training_rows"], printed["held_out"]["rows"])
    assert sorted(fitted + asked) == list(range(90))
    assert spy.categories.sum() == 1
    assert found["rows"] == printed["held_out"]["rows"]
    ours, plain = found["methods"]
    for name in ("log_loss", "roc_auc", "pr_auc", "macro_f1"):
        assert ours[name] == pytest.approx(printed["held_out"][name])
    assert plain["log_loss"] == pytest.approx(np.log(2))
    assert plain["log_loss_difference"]["mean"] == pytest.approx(np.log(2) - ours["log_loss"])
    assert printed["cross_validation"] is None


@pytest.mark.usefixtures("spy")
def test_text_says_who_wins(cli, file, tmp_path, monkeypatch):
    said = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--compare").out
    assert "Compared with plain baselines on the 22 test rows; all are fitted to the same 68 rows." in said
    assert "No plain baseline wins" in said
    sure = dict(zip(TABLE["x1"].to_pylist(), TABLE["y"].to_pylist(), strict=True))
    clairvoyant = SimpleNamespace(
        fit=lambda *_: None,
        predict_proba=lambda new: np.array([[0.01, 0.99][:: 1 if sure[x] == "yes" else -1] for x in new[:, 0]]),
    )
    monkeypatch.setattr(comparison, "BASELINES", {"oracle": lambda *_: clairvoyant})
    said = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--compare").out
    assert "A plain baseline wins: the log-loss of oracle is lower than ours" in said


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_hold_every_row_out_once_keep_groups_together_and_change_no_model(
    cli, file, customers, tmp_path, spy, grouped
):
    asked = (customers, *QUICK, "--group-column", "customer") if grouped else (file, *QUICK)
    plain = cli.ok("fit", *asked, "-o", tmp_path / "a", "--json").json
    printed = cli.ok("fit", *asked, "-o", tmp_path / "b", "--cv", 2, "--compare", "--json").json
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert printed["held_out"] == plain["held_out"]
    found = printed["cross_validation"]
    assert (found["folds"], found["rows"]) == (2, printed["training_rows"])
    assert [one["name"] for one in found["methods"]] == ["qmedoid", "nothing"]
    assert found["methods"][0]["errors"]["log_loss"] > 0
    whole, *fits = spy.fits
    assert sorted(itertools.chain(*spy.asked[1:])) == sorted(whole)
    for fit, judged in zip(fits, spy.asked[1:], strict=True):
        assert sorted(fit + judged) == sorted(whole)
        assert not grouped or set(CUSTOMER[fit]).isdisjoint(CUSTOMER[judged])


@pytest.mark.usefixtures("spy")
def test_folds_alone_need_no_held_out_rows(cli, file, tmp_path):
    fit = ("fit", file, *QUICK, "-o", tmp_path / "m", "--test", 0)
    printed = cli.ok(*fit, "--cv", 2, "--json").json
    assert printed["training_rows"] == printed["cross_validation"]["rows"] == 90
    said = cli.ok(*fit, "--cv", 2).out
    assert "2 folds of the 90 training rows, each fitted anew: mean ± standard error" in said
    for more, words in (
        (("--compare",), "add --cv 5"),
        (("--cv", 4, "--group-column", "color"), "has no row to judge by. Give fewer folds"),
    ):
        refused = cli(*fit, *more)
        assert (refused.code, words in refused.err) == (2, True), refused.err


def test_folds_in_time_judge_what_is_later(cli, file, tmp_path, spy):
    asked = ("--time-column", "day", "--test", 0, "--cv", 4, "--compare")
    cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", *asked)
    assert len(spy.fits) == 4
    for fit, judged in zip(spy.fits, spy.asked, strict=True):
        assert DAY[fit].max() <= DAY[judged].min()
    assert [len(fit) for fit in spy.fits] == sorted({len(fit) for fit in spy.fits})


def test_a_time_limit_leaves_out_what_it_names_and_else_changes_no_byte(cli, file, tmp_path, spy):
    limited = ("fit", file, *QUICK, "-o", tmp_path / "m", "--compare", "--cv", 2, "--json", "--time-limit")
    printed = cli.ok(*limited, "0.001").json
    left_out = ["nothing", "folds 1 to 2 of --cv"]
    assert printed["time_limit"] == {"seconds": 0.001, "left_out": left_out, "exceeded": True}
    assert printed["cross_validation"] is None
    assert [one["name"] for one in printed["comparison"]["methods"]] == ["qmedoid"]
    assert spy.fits == []
    unlimited = cli.ok(*limited, "1000").json
    assert unlimited["time_limit"] == {"seconds": 1000.0, "left_out": [], "exceeded": False}
    assert unlimited["held_out"] == printed["held_out"]
    assert cli(*limited, "0").code == cli(*limited, "nan").code == 2
    cli.ok("fit", file, *QUICK, "-o", tmp_path / "plain")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "plain").read_bytes()


def test_rows_of_a_group_are_one_draw_of_a_difference(cli, file, customers, tmp_path, spy):
    """Whatever their classes; without a group column every row is, if none are equal."""
    fit = (*QUICK, "-o", tmp_path / "m", "--compare")
    cli.ok("fit", customers, *fit, "--group-column", "customer")
    judged = CUSTOMER[spy.asked[0]]
    assert 1 < len(set(judged)) < len(judged)
    np.testing.assert_array_equal(spy.folds[0][2][:, None] == spy.folds[0][2], judged[:, None] == judged)
    cli.ok("fit", file, *fit)
    assert spy.folds[1][2] is None
