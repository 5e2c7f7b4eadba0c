"""``fit --compare`` and ``--cv``: the same rows for all methods, folds as the split has them, and the same model."""

import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from small_tables import small_table, write

from qmedoid.cli._fitting import Judged, judged_fold
from qmedoid.cli.fit import FitOptions
from qmedoid.estimators import comparison
from qmedoid.estimators._time_limit import TimeLimit
from qmedoid.exceptions import ParameterError
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.source import open_table

QUICK = ("--target", "y", "--medoids", "6", "--neighbors", "0", "--refine", "never")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(small_table(n=90), tmp_path_factory.mktemp("compare") / "t.csv")


@pytest.fixture
def spy(monkeypatch):
    """Only one baseline, which remembers what it was given and knows nothing."""
    given = []

    def make(_, is_category):
        def predict(new):
            n_classes = given[-1][1].max() + 1
            return np.full((len(new), n_classes), 1.0 / n_classes)

        return SimpleNamespace(fit=lambda X, codes: given.append((X, codes, is_category)), predict_proba=predict)

    monkeypatch.setattr(comparison, "BASELINES", {"nothing": make})
    return given


def test_baselines_get_our_training_rows_and_our_held_out_rows(cli, file, tmp_path, spy):
    printed = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--compare", "--json").json
    (X, codes, is_category), found = spy[0], printed["comparison"]
    assert len(spy) == 1
    assert len(X) == len(codes) == printed["training_rows"]
    assert is_category.sum() == 1
    assert found["rows"] == printed["held_out"]["rows"]
    ours, plain = found["methods"]
    for name in ("log_loss", "roc_auc", "pr_auc", "macro_f1"):
        assert ours[name] == pytest.approx(printed["held_out"][name])
    assert plain["log_loss"] == pytest.approx(np.log(2))
    assert plain["log_loss_difference"]["mean"] == pytest.approx(np.log(2) - ours["log_loss"])
    assert printed["cross_validation"] is None


def test_text_marks_the_best_and_says_who_wins(cli, file, tmp_path, spy, monkeypatch):
    said = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--compare").out
    assert "Compared with plain baselines on the 22 test rows; all are fitted to the same 68 rows." in said
    assert "No plain baseline wins" in said
    row = next(line for line in said.splitlines() if "qmedoid " in line)
    assert row.count("*") == 3  # all but the seconds
    known = small_table(n=90)

    def clairvoyant(*_):
        sure = dict(zip(known["x1"].to_pylist(), known["y"].to_pylist(), strict=True))
        return SimpleNamespace(
            fit=lambda *_: None,
            predict_proba=lambda new: np.array([[0.01, 0.99][:: 1 if sure[x] == "yes" else -1] for x in new[:, 0]]),
        )

    monkeypatch.setattr(comparison, "BASELINES", {"oracle": clairvoyant})
    said = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--compare").out
    assert "A plain baseline wins: the log-loss of oracle is lower than ours" in said
    assert spy


def test_a_package_that_is_not_here_is_named_with_its_extra(cli, file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.setattr(comparison, "BASELINES", {"LightGBM": comparison.BASELINES["LightGBM"]})
    printed = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--compare", "--json").json
    assert [one["name"] for one in printed["comparison"]["methods"]] == ["qmedoid"]
    assert any("pip install 'qmedoid[baselines]'" in note for note in printed["notes"])


def test_folds_change_no_model(cli, file, tmp_path, spy):
    plain = cli.ok("fit", file, *QUICK, "-o", tmp_path / "a", "--json").json
    printed = cli.ok("fit", file, *QUICK, "-o", tmp_path / "b", "--cv", 3, "--compare", "--json").json
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert printed["held_out"] == plain["held_out"]
    found = printed["cross_validation"]
    assert (found["folds"], found["rows"]) == (3, printed["training_rows"])
    assert [one["name"] for one in found["methods"]] == ["qmedoid", "nothing"]
    assert found["methods"][0]["errors"]["log_loss"] > 0
    assert sum(len(codes) for _, codes, _ in spy[1:]) == 2 * printed["training_rows"]


def test_folds_alone_need_no_held_out_rows(cli, file, tmp_path):
    printed = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--test", 0, "--cv", 2, "--json").json
    assert printed["training_rows"] == printed["cross_validation"]["rows"] == 90
    said = cli.ok("fit", file, *QUICK, "-o", tmp_path / "m", "--test", 0, "--cv", 2).out
    assert "2 folds of the 90 training rows, each fitted anew: mean ± standard error" in said
    assert "minus ours" not in said
    refused = cli("fit", file, *QUICK, "-o", tmp_path / "m", "--test", 0, "--compare")
    assert refused.code == 2
    assert "add --cv 5" in refused.err


def loaded(file, **columns):
    with open_table(file) as source:
        return Dataset.read(source, DatasetSettings(target="y", **columns), 1000, np.random.default_rng(0))


@pytest.mark.parametrize("columns", [{}, {"groups": "color"}])
def test_folds_hold_every_row_out_once_and_keep_groups_together(file, columns):
    data = loaded(file, **columns)
    folds = data.folds(3, 0)
    assert sorted(np.concatenate([judged for _, judged in folds])) == list(range(90))
    color = np.array(data.table["color"].to_pylist())
    for fit, judged in folds:
        assert not set(fit) & set(judged)
        assert len(fit) + len(judged) == 90
        assert not columns or not set(color[fit]) & set(color[judged])


def test_folds_in_time_judge_what_is_later(file):
    data = loaded(file, times="day")
    folds, days = data.folds(4, 0), np.array(data.table["day"].to_pylist())
    for fit, judged in folds:
        assert days[fit].max() <= days[judged].min()
    assert [len(fit) for fit, _ in folds] == sorted(len(fit) for fit, _ in folds)


def test_folds_without_rows_are_refused_before_the_fit(file):
    with pytest.raises(ParameterError, match=r"--cv 4: fold . has no row to judge by"):
        loaded(file, groups="color").folds(4, 0)


def test_a_time_limit_leaves_out_what_it_names(cli, file, tmp_path, spy):
    limited = ("fit", file, *QUICK, "-o", tmp_path / "m", "--compare", "--cv", 2, "--json", "--time-limit")
    printed = cli.ok(*limited, "0.001").json
    assert printed["time_limit"] == {
        "seconds": 0.001,
        "left_out": ["nothing", "folds 1 to 2 of --cv"],
        "exceeded": True,
    }
    assert printed["cross_validation"] is None
    assert [one["name"] for one in printed["comparison"]["methods"]] == ["qmedoid"]
    assert spy == []
    unlimited = cli.ok(*limited, "1000").json
    assert unlimited["time_limit"] == {"seconds": 1000.0, "left_out": [], "exceeded": False}
    assert unlimited["held_out"] == printed["held_out"]
    assert cli(*limited, "0").code == cli(*limited, "nan").code == 2


def test_a_time_limit_that_does_not_bite_changes_no_byte_of_the_model(cli, file, tmp_path):
    for name, options in (("a", ()), ("b", ("--time-limit", "1000"))):
        cli.ok("fit", file, *QUICK, "-o", tmp_path / name, *options)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_rows_of_a_group_are_one_draw_of_a_difference():
    """However few groups there are, and whatever their sizes."""
    table = pa.table({"customer": [0, 0, 0, 1, 1, 2, 3, 3], "x": np.arange(8.0)})
    judged = Judged(table, np.array([0, 1, -1, 0, 1, 0, 1, 0]), np.full((8, 2), 0.5), np.zeros(8))
    model = SimpleNamespace(contract=SimpleNamespace(columns=[SimpleNamespace(name="x")]))
    grouped, plain = (FitOptions(table="t", target="y", group_column=name) for name in ("customer", None))
    fold, _ = judged_fold(model, None, 1.0, judged, grouped, TimeLimit())
    assert fold.groups.tolist() == [0, 0, 1, 1, 2, 3, 3]  # without the row of an unknown class
    assert judged_fold(model, None, 1.0, judged, plain, TimeLimit())[0].groups is None
