"""One decision as an object: it adds up at every level, says nothing that is not in it, and its flips flip."""

import math
import re

import numpy as np
import pyarrow as pa
import pytest

from model_kinds import MODEL_KINDS, exported
from qmedoid import MedoidClassifier, SavedModel
from qmedoid.exceptions import ParameterError, QMedoidWarning
from qmedoid.explain.explanation import rounded_to_sum, signed, steps
from qmedoid.explain.flips import known_values, nearest_flips, sizes
from qmedoid.explain.sentences import sentences
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import with_missing_values_out
from qmedoid.tables.encode import encode_column

KINDS = [kind for kind in MODEL_KINDS if kind != "sum of more classes"]
N = 200


def explained(kind, row=0, **options):
    saved, table = exported(kind, N)
    return saved.explain(table, row, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("top", [0, 2])
def test_every_level_adds_up_to_the_margin(kind, top):
    for row in range(0, 12, 4):
        made = explained(kind, row).to_dict(top=top)
        terms = sum(made["terms"].values())
        for level in ("columns", "groups"):
            listed = [part["contribution"] for part in made[level]]
            assert len(listed) <= top or not top
            total = math.fsum([*listed, made["rest"][level]["contribution"]])
            assert total + terms == pytest.approx(made["margin"], abs=1e-9)
        for group in explained(kind, row)["groups"] if top == 0 else ():
            if "records" in group:
                own = math.fsum(one["contribution"] for one in group["records"])
                assert own == pytest.approx(group["contribution"], abs=1e-9)
        if made["rows"] is not None:
            own = math.fsum(one["contribution"] for one in made["rows"]) + made["rest"]["rows"]["contribution"]
            assert own + terms == pytest.approx(made["margin"], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_printed_digits_add_up(kind):
    for row in range(8):
        made = explained(kind, row).to_dict(top=3)
        printed = [round(1000 * float(step["text"].replace("−", "-"))) for step in steps(made)]
        assert sum(printed) == round(1000 * made["margin"])


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_say_what_the_dictionary_holds(kind):
    saved, _ = exported(kind, N)
    for row in range(6):
        made = explained(kind, row).to_dict(top=10)
        decided, start, *others = made["sentences"]
        names = [one["text"] for one in made["reasons"]]
        for one in made["reasons"]:
            named = next(part for part in others if one["text"].removesuffix(")") in part)
            assert named.startswith("Raises it: " if one["contribution"] > 0 else "Lowers it: ")
        assert len(names) <= 6
        assert re.search(r"starts? ", start)
        if made["is_alert"] is not None:
            assert decided.startswith("An alert: " if made["is_alert"] else "Not an alert: ")
        if saved.model.decision.probabilistic:
            assert " %" in decided
            assert not re.search(r"\b(100|0) %", decided)
        else:
            assert "%" not in " ".join(made["sentences"])
            assert "×" not in " ".join(names)


@pytest.mark.parametrize("kind", KINDS)
def test_every_flip_flips(kind):
    saved, table = exported(kind, N)
    found = 0
    for row in range(0, 60, 3):
        record, fixed = table.slice(row, 1), (table.column_names[0],)
        decided = saved.predict(record)[0]
        for flip in nearest_flips(saved.model, record, fixed=fixed):
            changed = plain_records(with_missing_values_out(record, saved.model.contract.columns))[0]
            assert flip["column"] not in fixed
            assert changed[flip["column"]] == flip["cell"]
            changed[flip["column"]] = flip["to"]
            again = pa.Table.from_pylist([{name: _as_given(cell) for name, cell in changed.items()}])
            assert saved.predict(again)[0] == flip["prediction"] != decided
            found += 1
    assert found >= (0 if kind == "shifted priors and a cut" else 5)


def _as_given(cell):
    import datetime

    if isinstance(cell, str) and re.fullmatch(r"\d{4}-\d\d-\d\d(T.*)?", cell):
        return datetime.datetime.fromisoformat(cell)
    return cell


def test_flip_of_one_number_is_the_nearest_on_a_grid():
    """No change of one column that a fine grid finds is smaller by a hundredth of the training rows."""
    saved, table = exported("evidence", N)
    model = saved.model
    for row in range(0, 40, 5):
        record = table.slice(row, 1)
        flips = nearest_flips(model, record)
        decided, smallest = saved.predict(record)[0], math.inf
        for place, name in enumerate(table.column_names):
            known = known_values(model, place)
            values = np.linspace(known[0], known[-1], 2001)
            copies = pa.table({other: [record[other][0].as_py()] * 2001 for other in table.column_names})
            tried = copies.set_column(place, name, pa.array(values))
            turned = values[saved.predict(tried) != decided]
            if len(turned):
                smallest = min(smallest, sizes(model, place, record[name][0].as_py(), turned).min())
        if math.isfinite(smallest):
            assert flips, row
            assert flips[0]["size"] <= smallest + 0.01


def test_flip_of_a_record_just_before_it_is_as_small():
    """From a cell that is moved nearly to its flip the change is at most a tenth larger than the rest of the way."""
    saved, table = exported("evidence", N)
    n_tried = 0
    for row in range(40):
        record = table.slice(row, 1)
        for flip in nearest_flips(saved.model, record):
            way = flip["to"] - flip["cell"]
            nearly = flip["cell"] + 0.98 * way
            place = table.column_names.index(flip["column"])
            moved = record.set_column(place, flip["column"], pa.array([nearly]))
            if saved.predict(moved)[0] != saved.predict(record)[0]:
                continue  # the flip is rounded to few digits: the decision turns before it
            n_tried += 1
            left = [one for one in nearest_flips(saved.model, moved) if one["column"] == flip["column"]]
            assert left, (row, flip)
            assert abs(left[0]["to"] - nearly) <= 1.1 * abs(flip["to"] - nearly)
    assert n_tried > 5


def test_hostile_names_and_cells_are_escaped():
    rng = np.random.default_rng(0)
    names = ["<script>alert(1)</script>", "a\"onload='x'", "javascript:alert(1)"]
    levels = np.array(["<img src=x onerror=alert(1)>", "=1+1", "]]>&amp;"])
    cells = levels[rng.integers(0, 3, 120)]
    table = pa.table({names[0]: rng.normal(size=120), names[1]: cells, names[2]: rng.normal(size=120)})
    from qmedoid import EvidenceClassifier

    y = np.where(table[names[0]].to_numpy() > 0, "</title><script>", "no")
    model = MedoidClassifier(method=EvidenceClassifier(), random_state=0).fit(table, y)
    why = SavedModel(model.model_).explain(table, 0)
    for text in (why.to_html(), why.to_svg(), why._repr_html_()):
        assert "<script" not in text
        assert "<img" not in text
        assert "&lt;script&gt;" in text
        tags = set(re.findall(r"<([a-zA-Z][a-zA-Z0-9]*)", text))
        assert not tags & {"script", "img", "iframe", "object", "embed", "link", "form", "base"}
        assert not re.findall(r"<[a-z]+[^>]*\son\w+=", re.sub(r'"[^"]*"', '""', text))


def test_fixed_columns_must_be_columns():
    with pytest.raises(ParameterError, match="There is no column 'furst' that could be fixed"):
        explained("evidence", fixed=["furst"])


def test_difference_of_the_table_is_stamped():
    saved, table = exported("categories, dates and missing cells", N)
    changed = table.set_column(4, "kind of", pa.array(["green"] * len(table)))
    with pytest.warns(QMedoidWarning, match="green"):
        made = saved.explain(changed, 0, on_mismatch="warn").to_dict()
    assert any("green" in line for line in made["difference"])
    assert explained("evidence").to_dict()["difference"] == []


def test_explanation_is_a_mapping_of_everything():
    why = explained("evidence")
    assert len(why["columns"]) == 4
    assert dict(why)["margin"] == why["margin"]
    assert repr(why) == "\n".join(why.sentences)


@pytest.mark.parametrize("digits", [0, 2, 3])
def test_rounded_values_add_up(digits):
    rng = np.random.default_rng(0)
    for count in (1, 2, 7, 40):
        values = (rng.normal(size=count) * 3).tolist()
        rounded = rounded_to_sum(values, digits)
        unit = 10.0**digits
        assert round(sum(rounded) * unit) == round(math.fsum(values) * unit)
        assert max(abs(a - b) for a, b in zip(values, rounded, strict=True)) < 1 / unit
    assert rounded_to_sum([], digits) == []


def test_signed_has_no_sign_of_zero():
    assert [signed(value, 2) for value in (0.001, -0.001, 1.0, -1.0)] == ["0.00", "0.00", "+1.00", "−1.00"]


def report(columns, **changes):
    """A report of two classes, at the likelier class."""
    made = {
        "prediction": 1, "against": 0, "toward": 1, "target": "sick", "margin": 1.0, "start": 0.25, "threshold": 0.5,
        "is_alert": None, "decided_by": "evidence", "varying": {}, "terms": {}, "probabilities": {"0": 0.2, "1": 0.8},
    }  # fmt: skip
    return made | {"columns": [_column(name, value) for name, value in columns.items()]} | changes


def _column(name, value):
    return {"name": name, "cell": 1.0, "contribution": value}


FLIP = {"column": "age", "cell": 61, "to": 40, "prediction": 0}


def test_reasons_come_by_size_and_small_ones_are_not_named():
    said = sentences(report({"age": 0.7, "V14": -0.4, "c": 0.3, "d": 0.2, "e": 0.1, "f": -0.06}), [FLIP])
    assert said == (
        "Called sick = 1: its probability is 80 %, the threshold 50 %.",
        "Every record starts at 56 %.",
        "Raises it: age 1 (×2.0 odds), c 1 (×1.3), d 1 (×1.2).",
        "Lowers it: V14 = 1 (÷1.5).",
        "It would be called sick = 0 with age 40 instead of 61.",
    )


def test_rounding_is_no_reason():
    said = sentences(report({"a": 1e-13, "b": -1e-13}), [])
    assert said[2:] == (
        "No column changes the odds noticeably.",
        "No change of one column that was tried turns the decision.",
    )
    assert "a 1 (×1.003 odds)" in " ".join(sentences(report({"a": 0.003, "b": -0.0001}), []))
    assert sentences(report({"a": -1e-4, "b": 1e-5}), [])[2:] == (
        "No column changes the odds noticeably.",
        "No change of one column that was tried turns the decision.",
    )


def test_alert_is_said_with_its_risk_and_its_threshold():
    rare = {"start": -3.5, "threshold": 0.16, "terms": {"operating point": 1.66}, "margin": -0.5, "prediction": 0}
    changes = {"against": 1, "is_alert": False, "probabilities": {"no": 0.9, "fraud": 0.1}}
    names = {"toward": "fraud", "prediction": "no", "against": "fraud"}
    said = sentences(report({"age": 0.7}, **rare | changes | names), [{**FLIP, "prediction": "fraud"}])
    assert said == (
        "Not an alert: the risk of fraud is 10 %, alerts start at 16 %.",
        "Risk starts at 2.9 %, which weighs more than any reason.",
        "Raises it: age 1 (×2.0 odds).",
        "It would be an alert with age 40 instead of 61.",
    )


def test_largest_term_that_is_no_column_comes_first_and_is_named():
    said = sentences(report({"age": 0.7, "sex": -0.2}, varying={"neighbors": 1.5, "circuit": -0.3}), [])
    assert said[2] == "Raises it: its nearest training rows (×4.5 odds), age 1 (×2.0)."
    assert said[3] == "Lowers it: the circuit (÷1.3), sex 1 (÷1.2)."


def test_certainty_is_never_claimed_and_a_threshold_is_told_from_a_probability():
    for chance, said_as in ((1.0, "above 99.9 %"), (1 - 1e-12, "above 99.9 %"), (0.5004, "50.04 %"), (0.996, "99.6 %")):
        said = sentences(report({}, probabilities={"0": 1 - chance, "1": chance}), [])[0]
        assert said == f"Called sick = 1: its probability is {said_as}, the threshold 50 %."
    said = sentences(report({}, probabilities={"0": 1.0, "1": 0.0}, prediction=0, against=1), [])[0]
    assert said == "Called sick = 0: the probability of sick = 1 is below 0.01 %, the threshold 50 %."


def test_scores_without_probabilities_have_no_odds():
    plain = report({"age": 0.7, "sex": -0.003}, threshold=0.0, start=-0.5)
    del plain["probabilities"]
    said = sentences(plain, [])
    assert said[:3] == (
        "Called sick = 1: its score is 1 above the threshold.",
        "Every record starts 0.5 below the threshold.",
        "Raises it: age 1 (+0.70).",
    )


def test_more_classes_are_compared_with_the_next_one():
    three = {"threshold": None, "probabilities": {"a": 0.2, "bb": 0.5, "cc": 0.3}, "toward": "bb", "prediction": "bb"}
    said = sentences(report({"age": 0.7}, against="cc", **three), [])
    assert said[:2] == (
        "Called sick = bb: probability 50 %, rather than sick = cc (30 %).",
        "Between these two, sick = bb starts at 56 %.",
    )
    behind = three | {"probabilities": {"a": 0.2, "bb": 0.3, "cc": 0.5}, "terms": {"operating point": 1.4}}
    said = sentences(report({"age": 0.7}, against="cc", **behind), [])
    assert said[0] == "Called sick = bb: probability 30 %, rather than sick = cc (50 %)."
    assert said[2] == "Raises it: the operating point (×4.1 odds), age 1 (×2.0)."


@pytest.mark.parametrize("kind", KINDS)
def test_similar_rows_are_the_medoids_that_differ_least_by_what_decides(kind):
    """The definition, with shares of training rows between numbers counted by a plain loop."""
    saved, _ = exported(kind, N)
    model, checked = saved.model, 0
    for row in range(0, 8, 2):
        why = explained(kind, row)
        for one in why.similar:
            assert one["class"] in (why["prediction"], why["against"])
            if model.records is None:
                assert one["difference"] is None
                assert "keeps no cells of training rows" in one["sentence"]
                continue
            place = model.medoids.numbers.tolist().index(one["training_row"])
            cells = model.records[place]
            named = [*one["same"], *one["close"], *one["differs"]]
            assert [column["name"] for column in why["columns"][:5] if column["contribution"]] == sorted(
                (column["name"] for column in named), key=[column["name"] for column in why["columns"]].index
            )
            for column in named:
                assert column["cell"] == cells[column["name"]]
                assert column["own"] == why["record"].get(column["name"])
                assert (column["cell"] == column["own"]) == (column in one["same"])
            of_class = [
                _difference(saved, why, model.records[other])
                for other, code in enumerate(model.medoids.classes.tolist())
                if model.decision.classes[code] == one["class"]
            ]
            assert one["difference"] == pytest.approx(min(of_class), abs=1e-9)
            checked += 1
    assert checked or model.records is None


def _difference(saved, why, cells):
    """The mean difference of a medoid from the record, weighted by contributions."""
    model, total, added = saved.model, 0.0, 0.0
    for column in why["columns"]:
        name, weight = column["name"], abs(column["contribution"])
        own, other = why["record"].get(name), cells[name]
        place = model.contract.names.index(name)
        kind, first = model.contract.columns[place].kind, int(np.searchsorted(model.source, place))
        if own == other:
            differs = 0.0
        elif kind == "category":  # levels that the model does not tell apart are alike
            columns = encode_column(pa.array([own, other]), model.contract.columns[place], model.encodings[place])
            differs = float(any(column[0] != column[1] for column in columns))
        elif own is None or other is None or kind == "boolean":
            differs = 1.0
        elif kind == "date":
            days = [np.datetime64(one, "us").astype(float) / 86_400_000_000 for one in (own, other)]
            differs = sizes(model, first, days[0], np.array(days[1:]))[0]
        else:
            differs = sizes(model, first, float(own), np.array([float(other)]))[0]
        total += weight
        added += weight * min(differs, 1.0)
    return added / total


@pytest.mark.parametrize("kind", KINDS)
def test_flips_stay_within_the_training_rows(kind):
    """Also where the cell itself is far outside, and where digits are rounded away from it."""
    saved, table = exported(kind, N)
    model, seen = saved.model, 0
    for row in range(0, 60, 4):
        for far in (None, -1e9, 1e9):
            record = table.slice(row, 1)
            if far is not None:
                record = record.set_column(0, table.column_names[0], pa.array([far]))
            for change in nearest_flips(model, record):
                place = table.column_names.index(change["column"])
                if model.contract.columns[place].kind == "number" and change["to"] is not None:
                    known = known_values(model, int(np.searchsorted(model.source, place)))
                    assert known[0] <= change["to"] <= known[-1]
                    seen += 1
    assert seen > 10 or kind == "shifted priors and a cut"


def test_flip_is_spelt_as_its_column():
    rng = np.random.default_rng(3)
    rate, y = rng.uniform(0, 100, 200), np.arange(200) % 2
    rate += 40 * y
    table = pa.table({"rate": [f"{one:.1f} %" for one in rate], "other": rng.normal(size=200)})
    saved = SavedModel(MedoidClassifier(refine="never", random_state=0).fit(table, y).model_)
    found = [
        (row, flip["to"], flip["prediction"])
        for row in range(0, 40, 4)
        for flip in nearest_flips(saved.model, table.slice(row, 1), fixed=["other"])
    ]
    assert len(found) > 3
    for row, to, prediction in found:
        assert re.fullmatch(r"[\d.]+ %", to)
        assert saved.predict(table.slice(row, 1).set_column(0, "rate", pa.array([to])))[0] == prediction


def test_flip_of_a_date_is_spelled_as_its_column():
    days = np.random.default_rng(0).permutation(400)
    since = [f"{1 + n % 28:02d}.{1 + n // 28 % 12:02d}.{2020 + n // 336}" for n in days]
    table = pa.table({"since": since, "other": np.random.default_rng(1).normal(size=400)})
    saved = SavedModel(MedoidClassifier(refine="never", random_state=0).fit(table, (days > 200).astype(int)).model_)
    assert saved.contract.columns[0].spelling == "d.m.y"
    for row in range(4):
        record = table.slice(row, 1)
        (flip,) = nearest_flips(saved.model, record, fixed=["other"])
        assert re.fullmatch(r"\d\d\.\d\d\.20\d\d", flip["to"])
        assert saved.predict(record.set_column(0, "since", pa.array([flip["to"]])))[0] == flip["prediction"]


def test_picture_without_probabilities_has_no_log_odds():
    found = [kind for kind in KINDS if not exported(kind, N).saved.model.decision.probabilistic]
    for kind in found:
        assert "log-odds" not in explained(kind).to_svg() + explained(kind).to_html()
    assert found


def test_flips_of_numbers_that_lie_close_together_are_found_and_printed_with_their_digits():
    rng = np.random.default_rng(0)
    values, other = 1234567.0 + rng.uniform(0, 3, 400), rng.normal(size=400)
    table = pa.table({"v": values, "x": other})
    y = (values - 1234567.0 + other / 3 > 1.5) * 1
    saved = SavedModel(MedoidClassifier(refine="never", random_state=0).fit(table, y).model_)
    found = 0
    for row in range(12):
        record = table.slice(row, 1)
        for flip in saved.explain(record, fixed=["x"]).flips:
            before, after = flip["text"].removeprefix("v: ").split(" → ")
            assert before != after
            assert saved.predict(record.set_column(0, "v", pa.array([float(after)])))[0] == flip["prediction"]
            found += 1
    assert found > 6
