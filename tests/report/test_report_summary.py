"""The summary of a model: every key is there, figures have intervals, rows are held only where they may be."""

import json
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from small_models import fitted, mixed_table, model_of, replaced, write_csv

from qmedoid import SavedModel
from qmedoid.exceptions import ContractError, DataError
from qmedoid.explain.effect import table_effect, table_importances
from qmedoid.metrics.intervals import share_interval
from qmedoid.metrics.texts import figure_text, percent_text
from qmedoid.report.reading import LookTally, look_at_data, look_at_file
from qmedoid.report.summary import MOST_BYTES, ReportSettings, summarize, write_report
from qmedoid.tables.difference import Issues
from qmedoid.tables.evaluating import labeled_report
from qmedoid.tables.novelty import NoveltyTally


@pytest.fixture(scope="module")
def model():
    return model_of(mixed_table(300, 0))


@pytest.fixture(scope="module")
def three():
    return model_of(mixed_table(240, 0, ("a", "b", "c")))


def of_table(model, table, **settings):
    return summarize(model, look_at_data(model, table), settings=ReportSettings(**settings))


def test_figures_of_a_table_are_those_of_evaluate(model):
    table = mixed_table(120, 3)
    looked = look_at_data(model, table)
    report = labeled_report(model, looked.codes, looked.decided, looked.hashes)
    figures = {one["key"]: one for one in summarize(model, looked)["figures"]["figures"]}
    for key, one in figures.items():
        assert one["value"] == report[key]
        assert one["text"].startswith(figure_text(one["value"]))
    right = round(report["accuracy"] * 120)
    assert figures["accuracy"]["low"] < share_interval(right, 120).low, "a table is further apart than the model's rate"
    for key in ("roc_auc", "pr_auc", "macro_f1", "log_loss", "precision", "recall", "alert_rate"):
        assert figures[key]["low"] < figures[key]["value"] < figures[key]["high"], key


def test_figures_without_a_table_are_those_of_held_out_rows(model):
    summary = summarize(model)
    operating = model.decision.operating
    figures = {one["key"]: one for one in summary["figures"]["figures"]}
    assert summary["figures"]["source"] == "held-out"
    assert figures["recall"]["value"] == operating.recall.value
    assert (figures["precision"]["low"], figures["precision"]["high"]) == operating.forecast()["precision"][1:]
    point = summary["operating"]
    tp, fp, fn, tn = operating.counts
    place = point["start"]
    assert [point["stops"][name][place] for name in ("tp", "fp", "fn", "tn")] == [tp, fp, fn, tn]
    assert summary["confusion"]["counts"] == [[tn, fp], [fn, tp]]


def test_a_shifted_model_speaks_of_the_expected_prevalence(model):
    shifted = replace(model, decision=model.decision.at_priors(0.1))
    point = summarize(shifted)["operating"]
    plain = summarize(model)["operating"]
    place = plain["stops"]["alerts"].index(200)
    again = point["stops"]["alerts"].index(200)
    assert point["stops"]["texts"]["recall"][again] == plain["stops"]["texts"]["recall"][place]
    assert float(point["stops"]["texts"]["precision"][again]) < float(plain["stops"]["texts"]["precision"][place])
    assert point["stops"]["threshold"][again] < plain["stops"]["threshold"][place]
    # Counts are of rows as they were: what they would give has no meaning here.
    assert point["stops"]["texts"]["f1"][again] == "–"
    assert point["curves"]["pr"] == []


def test_rows_seen_in_fitting_are_not_counted(model):
    new = mixed_table(100, 5)
    mixed = pa.concat_tables([mixed_table(300, 0), new])
    alone, found, every = of_table(model, new), of_table(model, mixed), of_table(model, mixed, all_rows=True)
    for key in ("confusion", "operating", "calibration"):
        assert found[key] | {"about": ""} == alone[key] | {"about": ""}
    assert found["figures"]["figures"] == alone["figures"]["figures"]
    assert "100 rows the model has never seen" in found["opening"]["about"][1]
    assert "Left out: 300 rows seen in fitting" in found["figures"]["about"]
    assert found["table"]["called"] == alone["table"]["called"]
    assert found["table"]["drift"] == alone["table"]["drift"]
    assert every["table"]["drift"]["rows"] == 400
    assert (found["figures"]["rows"], every["figures"]["rows"]) == (100, 400)
    assert "300 of which were seen in fitting" in every["opening"]["about"][1]
    # Squares and errors are of the same rows, under their numbers in the table.
    assert sorted(found["squares"]["row"]) == [*range(300, 400)]
    assert [row - 300 for row in found["squares"]["row"]] == alone["squares"]["row"]
    assert found["squares"]["counts"] == alone["squares"]["counts"]
    assert found["slices"] == alone["slices"]


def test_a_table_of_which_every_row_was_seen_shows_held_out_rows(model):
    found, plain = of_table(model, mixed_table(300, 0)), summarize(model)
    assert found["figures"]["figures"] == plain["figures"]["figures"]
    assert found["figures"]["source"] == "held-out"
    assert "All 300 rows of the table that have a class were seen in fitting" in found["figures"]["about"]


def test_without_hashes_nothing_is_called_new(model):
    found = of_table(replace(model, seen=None), mixed_table(100, 5))
    assert found["figures"]["is_new"] is None
    assert "whether the model has seen them is not known" in found["opening"]["about"][1]


def test_cards_and_headline_are_the_counts_of_the_confusion_matrix(model, three):
    found = of_table(model, mixed_table(120, 3))
    (tn, fp), (fn, tp) = found["confusion"]["counts"]
    cards = {one["name"]: one for one in found["opening"]["cards"]}
    assert cards["Found (recall)"]["value"] == f"{tp} of {tp + fn}"
    assert cards["False alerts"]["value"] == f"{fp} of {tp + fp}"
    assert cards["Right"]["value"] == percent_text((tn + tp) / 120)
    assert f"It finds {tp} of {tp + fn} rows" in found["opening"]["headline"]  # of fewer than 100, as they are
    larger = of_table(model, mixed_table(400, 3))
    (_, _), (missed, hit) = larger["confusion"]["counts"]
    assert f"It finds {round(100 * hit / (hit + missed))} of 100 rows" in larger["opening"]["headline"]
    assert found["squares"]["counts"] == [tp, fn, fp, tn]
    many = of_table(three, mixed_table(120, 3, ("a", "b", "c")))
    right = sum(row[code] for code, row in enumerate(many["confusion"]["counts"]))
    assert many["squares"]["counts"] == [0, 120 - right, 0, right]
    assert many["opening"]["headline"].startswith(f"It is right for {round(100 * right / 120)} of 100 rows")


def test_squares_are_sorted_and_their_reasons_are_those_of_explanations(model):
    table = mixed_table(120, 3)
    found = of_table(model, table)["squares"]
    assert found["rank"] == sorted(found["rank"])
    alerts = found["counts"][0] + found["counts"][2]
    assert [rank < alerts for rank in found["rank"]] == [code == 1 for code in found["called"]]
    names, saved = found["columns"], SavedModel(model)
    for place in (0, 40, 119):
        why = {names[one[0]]: one[2] for one in found["why"][place]}
        told = saved.explain(table, row=found["row"][place])
        expected = {one["name"]: one["contribution"] for one in told["columns"]}
        assert why == pytest.approx({name: expected[name] for name in why}, abs=1e-4)
        sizes = sorted(map(abs, expected.values()), reverse=True)
        assert min(map(abs, why.values())) >= sizes[len(why) - 1] - 1e-4


def test_squares_of_rare_rows_show_them(model):
    """Of a rare class an even sample of squares would show next to no row."""
    table = pa.concat_tables([mixed_table(3000, seed) for seed in range(20, 24)])
    labels = np.array(table.column("y").to_pylist())
    kept = np.concatenate([np.flatnonzero(labels == "no"), np.flatnonzero(labels == "yes")[:60]])
    found = of_table(model, table.take(pa.array(np.sort(kept))))["squares"]
    assert len(found["rank"]) <= 400
    # Rows that are called so are kept next to those that are: of both together there are more than 400.
    assert sum(found["class"]) > 10
    assert "60 rows of 'yes' and an even sample of" in found["about"]
    # A square is an alert at a stop where it has fewer rows before it than there are alerts.
    alerts = found["counts"][0] + found["counts"][2]
    assert [rank < alerts for rank in found["rank"]] == [code == 1 for code in found["called"]]


def test_without_rows_squares_have_no_cells(model):
    found = of_table(model, mixed_table(50, 5), rows=False)["squares"]
    assert found["cells"] is None
    assert all(cell is None for row in found["why"] for _, cell, *_ in row)


def test_slices_mark_a_level_that_is_worse(model):
    table, rng = mixed_table(600, 1), np.random.default_rng(0)
    labels, colors = table.column("y").to_pylist(), table.column("color").to_pylist()
    other = {"yes": "no", "no": "yes"}
    spoilt = [other[y] if color == "red" and rng.random() < 0.6 else y for y, color in zip(labels, colors, strict=True)]
    clean = of_table(model, table)["slices"]
    found = of_table(model, replaced(table, "y", pa.array(spoilt)))["slices"]
    (colored,) = (one["levels"] for one in found if one["column"] == "color")
    assert {one["level"]: one["differs"] for one in colored}["red"] == "worse"
    assert all(one["differs"] is None for part in clean for one in part["levels"])
    for part in clean:
        assert sum(one["rows"] for one in part["levels"]) <= 600
        assert all(sum(one["counts"]) == one["rows"] for one in part["levels"])


def test_a_table_without_classes_says_what_it_can(model):
    table = mixed_table(100, 4).drop_columns(["y"])
    summary = of_table(model, table)
    assert summary["figures"]["source"] == "held-out"
    assert summary["calibration"] is None
    assert summary["table"]["labeled"] == 0
    assert sum(one["rows"] for one in summary["table"]["called"]) == 100
    assert summary["table"]["drift"]["rows"] == 100


@pytest.mark.parametrize(
    ("rows", "target", "error", "said"),
    [
        (10, "z", ContractError, "no column 'z' with the classes"),
        (10, "color", ContractError, "No cell of the column 'color' is a class of the model"),
        (0, None, DataError, "no rows"),
    ],
)
def test_tables_without_rows_or_classes_are_refused(model, rows, target, error, said):
    with pytest.raises(error, match=said):
        look_at_data(model, mixed_table(10, 0).slice(0, rows), target=target)


@pytest.mark.parametrize("with_table", [False, True])
def test_summaries_of_three_classes_are_plain_json(three, with_table):
    summary = of_table(three, mixed_table(200, 9, ("a", "b", "c"))) if with_table else summarize(three)
    assert json.loads(json.dumps(summary, allow_nan=False)) is not None
    assert summary["operating"] is None
    assert len({one["toward"] for one in summary["effects"]}) == 1
    assert all(one["against"] is None for one in summary["effects"])


def test_a_file_and_the_same_data_give_the_same_summary(model, tmp_path):
    table = mixed_table(150, 6)
    by_file = summarize(model, look_at_file(model, str(write_csv(table, tmp_path / "new.csv"))))
    by_data = summarize(model, look_at_data(model, table))
    for one in (by_file, by_data):
        one["made"]["time"] = ""
        for key in ("novelty", "difference"):
            one["table"].pop(key)
    assert by_file["operating"] == by_data["operating"]
    assert by_file["effects"] == by_data["effects"]
    assert by_file["findings"] == by_data["findings"]


def test_the_sample_is_bounded_and_takes_every_row_alike(model):
    table = mixed_table(3000, 7)
    tally = LookTally(model, None, most=400)
    for start in range(0, 3000, 250):
        tally.add(table.slice(start, 250), None, Issues(), NoveltyTally())
    from qmedoid.tables.difference import compare_columns

    sample = tally.found(NoveltyTally().report(model), compare_columns(model.contract, table.schema)).sample
    assert len(sample.codes) == 400
    assert (np.diff(sample.rows) > 0).all()
    # As many of the first third as of the last, but for chance.
    assert abs((sample.rows < 1000).mean() - 1 / 3) < 0.08
    x1 = table.column("x1").to_numpy()[sample.rows]
    assert (sample.table.column("x1").to_numpy() == x1).all()
    assert (sample.encoded[0] == x1).all()


def test_importances_and_effects_are_those_of_their_commands(model):
    table = mixed_table(200, 8)
    summary = of_table(model, table)
    found = {one["name"]: one["importance"] for one in summary["columns"]}
    assert found == pytest.approx(table_importances(model, table, Issues()))
    for one in summary["effects"]:
        expected = table_effect(model, table, Issues(), one["column"], n_bins=20).to_dict()
        assert one["toward"] == "yes"
        for mine, other in zip(one.pop("bins"), expected.pop("bins"), strict=True):
            assert (mine["value"], mine["mean"]) == (other["value"], pytest.approx(other["mean"]))
        assert (one.pop("missing") is None) == (expected.pop("missing") is None)
        assert one == expected


def test_medoids_are_real_rows(model):
    shown = summarize(model)["medoids"]
    table = mixed_table(300, 0)
    for row in shown["rows"][:10]:
        real = table.slice(row["training_row"], 1).to_pylist()[0]
        assert row["class"] == real["y"]
        assert row["cells"][shown["columns"].index("color")] == real["color"]
        assert float(row["cells"][shown["columns"].index("x1")]) == pytest.approx(real["x1"], rel=1e-5)


def test_without_rows_no_row_is_in_the_summary(model):
    summary = of_table(model, mixed_table(100, 5), rows=False)
    assert summary["medoids"] is None
    assert "holds no rows" in summary["model"]["holds"]
    assert "--no-rows" in summary["live"]["absent"]
    text = json.dumps(summary)
    for record in model.records:
        assert repr(record["x1"]) not in text


def test_the_live_model_is_left_out_where_it_is_too_large(model, tmp_path):
    assert "document" in summarize(model)["live"]
    assert "--no-live" in summarize(model, settings=ReportSettings(live=False))["live"]["absent"]
    written = write_report(summarize(model), tmp_path / "r.html", max_bytes=150_000)
    assert "0.1 MB are allowed" in written.summary["live"]["absent"]
    assert written.bytes == (tmp_path / "r.html").stat().st_size
    assert MOST_BYTES == 3_000_000


def test_the_start_record_is_a_medoid_of_the_positive_class_or_empty(model):
    real = summarize(model)["start_record"]
    code = model.medoids.classes.tolist().index(1)
    assert real == {name: model.records[code].get(name) for name in real}
    assert summarize(model, settings=ReportSettings(rows=False))["start_record"] == dict.fromkeys(real)


def test_alerts_per_day_need_days(model):
    assert summarize(model)["operating"]["per_day"] is None
    dated = replace(model, training=replace(model.training, rows_per_day=30.0))
    point = summarize(dated)["operating"]
    assert point["per_day"] == 30.0
    assert "30 rows per day" in point["about"]
    assert point["stops"]["texts"]["per_day"][-1] == "30"


def test_kept_rows_of_spelt_columns_are_read_by_their_spelling():
    rng = np.random.default_rng(0)
    amounts = np.round(rng.normal(5000, 1500, 120), 2)
    spelt = [f"{one:,.2f}".translate(str.maketrans(",.", ".,")) for one in amounts]
    days = [f"{1 + row % 28:02d}.{1 + row % 12:02d}.2019" for row in range(120)]
    table = pa.table({"amount": spelt, "when": days, "y": np.where(amounts > 5000, "yes", "no")})
    spelt_model = fitted(table)
    assert [column.spelling for column in spelt_model.contract.columns] == ["1.234,5", "d.m.y"]
    made = summarize(spelt_model)
    amount, when = (made["start_record"][name] for name in ("amount", "when"))
    assert amount in amounts[amounts > 5000]
    assert re.fullmatch(r"2019-\d\d-\d\d.*", when)
    for record in made["live"]["document"]["medoids"]["records"]:
        assert record["amount"] in amounts
    (effect,) = (one for one in made["effects"] if one["column"] == "amount")
    assert min(one["low"] for one in effect["bins"]) > 500
