"""One decision as an object: it adds up at every level, says nothing that is not in it, and its flips flip."""

import html
import json
import math
import re

import numpy as np
import pyarrow as pa
import pytest

from model_kinds import MODEL_KINDS, exported
from qmedoid import MedoidClassifier, SavedModel
from qmedoid.exceptions import ParameterError, QMedoidWarning
from qmedoid.explanations.candidates import known_values, sizes
from qmedoid.explanations.digits import rounded_to_sum, signed
from qmedoid.explanations.flips import nearest_flips
from qmedoid.explanations.picture import steps
from qmedoid.explanations.sentences import cell_text, change_texts, two_sentences
from qmedoid.tables.arrow import plain_records

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
        for group in made["groups"]:
            if "records" in group:
                own = math.fsum(one["contribution"] for one in group["records"])
                own += group.get("rest", {"contribution": 0.0})["contribution"]
                assert own == pytest.approx(group["contribution"], abs=1e-9)
        if made["rows"] is not None:
            own = math.fsum(one["contribution"] for one in made["rows"]) + made["rest"]["rows"]["contribution"]
            assert own + terms == pytest.approx(made["margin"], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_printed_digits_add_up(kind):
    for row in range(8):
        made = explained(kind, row).to_dict(top=3)
        printed = [round(1000 * float(step.text.replace("−", "-"))) for step in steps(made)]
        assert sum(printed) == round(1000 * made["margin"])


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_the_sentences_are_in_the_dictionary(kind):
    for row in range(6):
        made = explained(kind, row).to_dict(top=10)
        known = [*_numbers({name: part for name, part in made.items() if name != "sentences"})]
        said = re.sub("|".join(re.escape(name) for name in _names(made)), " ", " ".join(made["sentences"]))
        for text in re.findall(r"(?<![\w.])[−-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*\d)", said):
            value = float(text.replace("−", "-"))
            assert any(value == pytest.approx(one, rel=1e-3, abs=0.00501) for one in known) or value == 0.9999, text


def _names(made):
    cells = [str(cell) for cell in made["record"].values() if isinstance(cell, str)]
    changes = [str(one["to"]) for flip in made["flips"] for one in flip["changes"] if isinstance(one["to"], str)]
    return sorted([*made["record"], *cells, *changes], key=len, reverse=True)


def _numbers(value):
    if isinstance(value, dict):
        for part in value.values():
            yield from _numbers(part)
    elif isinstance(value, list):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


@pytest.mark.parametrize("kind", KINDS)
def test_every_flip_flips(kind):
    saved, table = exported(kind, N)
    found = 0
    for row in range(0, 60, 3):
        record, fixed = table.slice(row, 1), (table.column_names[0],)
        decided = saved.predict(record)[0]
        for flip in nearest_flips(saved.model, record, fixed=fixed):
            changed = plain_records(record)[0]
            for change in flip.changes:
                assert change.column not in fixed
                assert changed[change.column] == change.cell
                changed[change.column] = change.to
            again = pa.Table.from_pylist([{name: _as_given(cell) for name, cell in changed.items()}])
            assert saved.predict(again)[0] == flip.prediction != decided
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
        flips = [one for one in nearest_flips(model, record) if len(one.changes) == 1]
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
            assert flips[0].size <= smallest + 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_are_bounded(kind):
    why = explained(kind)
    assert len(json.dumps(why.to_dict(top=10))) <= 10_240
    assert len(why.to_svg().encode()) <= 30_720
    json.dumps(why.to_dict(), allow_nan=False)


def test_hostile_names_and_cells_are_escaped():
    rng = np.random.default_rng(0)
    names = ["<script>alert(1)</script>", "a\"onload='x'", "javascript:alert(1)"]
    levels = np.array(["<img src=x onerror=alert(1)>", "=1+1", "]]>&amp;"])
    cells = levels[rng.integers(0, 3, 120)]
    table = pa.table({names[0]: rng.normal(size=120), names[1]: cells, names[2]: rng.normal(size=120)})
    from qmedoid import EvidenceClassifier

    y = np.where(table[names[0]].to_numpy() > 0, "</title><script>", "no")
    model = MedoidClassifier(method=EvidenceClassifier(), random_state=0).fit(table, y)
    why = SavedModel(model.table_model()).explain(table, 0)
    for text in (why.to_html(), why.to_svg(), why._repr_html_()):
        assert "<script" not in text
        assert "<img" not in text
        assert "&lt;script&gt;" in text
        tags = set(re.findall(r"<([a-zA-Z][a-zA-Z0-9]*)", text))
        assert tags <= {
            "html", "head", "meta", "title", "style", "body", "main", "div", "p", "svg", "desc", "defs", "pattern",
            "rect", "line", "text", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "h1", "caption",
            "span",
        }  # fmt: skip
        assert not re.findall(r"<[a-z]+[^>]*\son\w+=", text)


def test_page_allows_no_script_and_no_request():
    page = explained("evidence").to_html()
    assert "default-src 'none'" in html.unescape(page)
    assert "script-src 'none'" in html.unescape(page)
    assert not re.findall(r"(?:src|href)=", page)


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


def test_plot_draws_the_same_bars():
    pytest.importorskip("matplotlib")
    why = explained("evidence")
    axes = why.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == [step.label for step in steps(why.to_dict())] + [
        "margin"
    ]


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


def _with_medoids(*distances):
    """The second sentence about medoids at these distances, the winner's first."""
    medoids = [{"class": f"c{k}", "training_row": k, "distance": one} for k, one in enumerate(distances)]
    return two_sentences(
        {"medoids": medoids, "prediction": "c0", "against": "c1", "margin": 1.0, "terms": {}, "columns": []}, []
    )[1]


def test_sentence_calls_no_medoid_nearer_that_is_as_near():
    assert _with_medoids(1.5, 1.5).startswith(
        "Of the medoids it lies as near to training row 0, a known c0 (distance 1.5), as to"
    )
    assert (
        "nearer to training row 1, a known c1 (distance 1.23411), than to row 0, a known c0 (1.23413)"
        in _with_medoids(1.23413, 1.23411)
    )
    assert "nearer to training row 2" in _with_medoids(2.0, 3.0, 1.0)


def _column(name, value):
    return {"name": name, "cell": 1.0, "contribution": value}


def test_sentence_names_no_column_for_nothing():
    medoids = [{"class": k, "training_row": k, "distance": 1.0 + k} for k in range(2)]
    report = {"medoids": medoids, "prediction": 0, "against": 1, "margin": 1.0, "terms": {}}
    said = two_sentences(report | {"columns": [_column("a", 0.003), _column("b", -0.0004), _column("c", 0.0)]}, [])[0]
    assert "because a is 1 (+0.003); against it speaks that b is 1 (−0.0004)." in said
    assert "in log-odds" not in said
    said = two_sentences(report | {"columns": [_column("a", 1e-13), _column("b", -1e-13)]}, [])[0]
    assert said.endswith("and no column speaks for it.")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_and_medoids_of_the_sentences_are_in_the_dictionary(kind):
    for row in range(6):
        made = explained(kind, row).to_dict(top=1)
        named = re.findall(r"row (\d+), a known", made["sentences"][1])
        assert {int(one) for one in named} <= {one["training_row"] for one in made["medoids"]}
        causes = [one for one in made["reasons"] if one["contribution"] > 0]
        assert len(causes) <= 2
        for one in made["reasons"]:
            assert f"{one['name']} is " in made["sentences"][0]


def test_dictionary_has_the_nearest_medoid_of_many_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), np.repeat(np.arange(10), 30)
    saved = SavedModel(
        MedoidClassifier(refine="never", random_state=0)
        .fit(pa.table(dict(zip("abc", X.T, strict=True))), y)
        .table_model()
    )
    table, beyond = pa.table(dict(zip("abc", X.T, strict=True))), 0
    for row in range(0, 300, 10):
        why = saved.explain(table, row)
        nearest = min(why["medoids"], key=lambda one: one["distance"])
        beyond += why["medoids"].index(nearest) >= 5
        assert nearest["training_row"] in {one["training_row"] for one in why.to_dict()["medoids"]}
    assert beyond


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
            for change in (change for flip in nearest_flips(model, record) for change in flip.changes):
                place = table.column_names.index(change.column)
                if model.contract.columns[place].kind == "number" and change.to is not None:
                    known = known_values(model, int(np.searchsorted(model.source, place)))
                    assert known[0] <= change.to <= known[-1]
                    seen += 1
    assert seen > 10 or kind == "shifted priors and a cut"


def test_sizes_of_changes_are_bounded_wherever_the_cell_lies():
    model = exported("evidence", N)[0].model
    known = known_values(model, 0)
    found = sizes(model, 0, 1e9, known)
    assert found.max() <= 1.0 + 1e-6
    assert (np.diff(found) < 0).all()


def test_flip_is_spelt_as_its_column():
    rng = np.random.default_rng(3)
    rate, y = rng.uniform(0, 100, 200), np.arange(200) % 2
    rate += 40 * y
    table = pa.table({"rate": [f"{one:.1f} %" for one in rate], "other": rng.normal(size=200)})
    saved = SavedModel(MedoidClassifier(refine="never", random_state=0).fit(table, y).table_model())
    found = [
        (row, change.to, flip.prediction)
        for row in range(0, 40, 4)
        for flip in nearest_flips(saved.model, table.slice(row, 1), fixed=["other"])
        for change in flip.changes
    ]
    assert len(found) > 3
    for row, to, prediction in found:
        assert re.fullmatch(r"[\d.]+ %", to)
        assert saved.predict(table.slice(row, 1).set_column(0, "rate", pa.array([to])))[0] == prediction


def test_picture_of_more_classes_names_both_of_its_scale():
    kind = next(
        kind
        for kind in KINDS
        if len(exported(kind, N).saved.classes_) > 2 and exported(kind, N).saved.model.decision.probabilistic
    )
    why = explained(kind)
    assert f"probability of {why['prediction']}, not {why['against']}<" in why.to_svg()
    assert ", not " not in explained("evidence").to_svg().split("</defs>")[1]


def test_picture_without_probabilities_has_no_log_odds():
    found = [kind for kind in KINDS if not exported(kind, N).saved.model.decision.probabilistic]
    for kind in found:
        assert "log-odds" not in explained(kind).to_svg() + explained(kind).to_html()
    assert found


def test_sentence_of_a_tie_puts_no_class_ahead():
    medoids = [{"class": k, "training_row": k, "distance": 1.0 + k} for k in range(2)]
    report = {"medoids": medoids, "prediction": 0, "against": 1, "terms": {}, "columns": [], "probability": 0.5}
    for margin in (-4e-15, 0.0, 1e-12):
        assert ", level with 1 in log-odds, and no column" in two_sentences(report | {"margin": margin}, [])[0]


def test_long_texts_are_told_apart_by_their_ends():
    first, second = (cell_text("long " * 1000 + end) for end in ("one", "two"))
    assert first != second
    assert len(first) == 40


def test_flips_of_numbers_that_lie_close_together_are_found_and_printed_with_their_digits():
    rng = np.random.default_rng(0)
    values, other = 1234567.0 + rng.uniform(0, 3, 400), rng.normal(size=400)
    table = pa.table({"v": values, "x": other})
    y = (values - 1234567.0 + other / 3 > 1.5) * 1
    saved = SavedModel(MedoidClassifier(refine="never", random_state=0).fit(table, y).table_model())
    found = 0
    for row in range(12):
        record = table.slice(row, 1)
        for flip in saved.explain(record, fixed=["x"]).flips:
            before, after = change_texts(flip["changes"][0])
            assert before != after
            assert saved.predict(record.set_column(0, "v", pa.array([float(after)])))[0] == flip["prediction"]
            found += 1
    assert found > 6
