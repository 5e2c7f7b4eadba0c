"""Pictures of studies: every value is at its place, and nothing is loaded."""

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.studies.document import Picture
from benchmarks.studies.panels import (
    Curve,
    CurvePanel,
    Dot,
    Trace,
    best_at,
    confusion_grid,
    count_texts,
    curve_grid,
    dots_against_paper,
    looks,
    median_trace,
    row_shares,
    thinned,
    trace_grid,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qmedoid.markup.page import picture_file

NS = "{http://www.w3.org/2000/svg}"
X = np.linspace(0, 1, 50)
CURVES = [
    Curve("ours", X**0.2, X**0.3, X**0.1, "ours"),
    Curve("as printed", X**0.3, role="printed"),
    Curve("LogReg $x_1$", X**0.4),
    Curve("forest", X**0.5),
]
TRACES: list[Trace] = [([1, 4, 9], [0.5, 0.6, 0.7]), ([1, 2], [0.4, 0.8])]


def _curves() -> Picture:
    panels = [CurvePanel("Heart", X, CURVES), CurvePanel("Fraud", X, CURVES[:2], (0.0131, 0.8496, "the paper"))]
    return curve_grid("roc", "ROC", panels, x_label="x", y_label="y", diagonal=True, note="N")


def _one() -> Picture:
    panel = CurvePanel("", X, CURVES, (0.1, 0.5, "the paper"))
    return curve_grid("one", "One", [panel], x_label="x", y_label="y", log_x=True)


def _traces() -> Picture:
    return trace_grid("trace", "Search", {"Heart": TRACES, "Wine": TRACES[:1]})


def _dots() -> Picture:
    dots = [Dot("ours", 0.8, 0.7, 0.9, 0.84, "ours"), Dot("forest", None, paper=0.9), Dot("LightGBM", 0.9)]
    return dots_against_paper("dots", "Accuracy", dict.fromkeys(("Heart", "Wine", "Fraud"), dots), x_label="accuracy")


def _confusions() -> Picture:
    panels = [("paper", [[85, 18], [17, 110]], ["no", "yes"]), ("none", np.eye(3) / 2, ["<a>", "$", "c"])]
    return confusion_grid("confusion", "Confusion", [*panels, *panels], "N")


def _root(picture: Picture) -> ET.Element:
    return ET.fromstring(picture_file(picture.svg))


def _texts(picture: Picture) -> list[str]:
    return ["".join(text.itertext()) for text in _root(picture).iter(f"{NS}text")]


def _points(path: ET.Element) -> npt.NDArray[np.float64]:
    return np.array(
        [[float(one) for one in pair.split()] for pair in re.findall(r"[ML]([\d.]+ [\d.]+)", path.attrib["d"])]
    )


@pytest.mark.parametrize("make", [_curves, _one, _traces, _dots, _confusions])
def test_picture_is_a_file_of_svg_that_stands_alone_and_says_what_it_shows(make: Callable[[], Picture]) -> None:
    picture = make()
    root, file = _root(picture), picture_file(picture.svg)
    assert root.tag == f"{NS}svg"
    assert root.attrib["aria-label"] == picture.title
    assert len(picture.svg) < 200_000
    assert make() == picture
    assert not re.search(r"href=|url\(|@import|<script|var\(", file)
    assert re.findall(r"https?://[^\"]+", file) == ["http://www.w3.org/2000/svg"]
    width, height = (float(one) for one in root.attrib["viewBox"].split()[2:])
    for panel in [root, *root.iter(f"{NS}g")]:
        dx, dy = (float(one) for one in re.findall(r"[\d.]+", panel.attrib.get("transform", "0 0")))
        for one in panel.findall(f"{NS}text"):
            assert 0 <= float(one.attrib["x"]) + dx <= width
            assert 0 <= float(one.attrib["y"]) + dy <= height


def test_curves_are_drawn_at_their_points() -> None:
    root = _root(_curves())
    heart, fraud = root.findall(f"{NS}g")
    lines = [one for one in heart.findall(f"{NS}path") if one.attrib.get("fill") == "none"]
    assert len(lines) == len(CURVES)
    for line, curve in zip(lines, CURVES, strict=True):
        x, y = _points(line).T
        # Places are a straight line of values, and higher is further up.
        for places, values in ((x, X), (-y, np.asarray(curve.mean))):
            assert np.corrcoef(places, values)[0, 1] == pytest.approx(1.0, abs=1e-4)
    bands = [one for one in heart.findall(f"{NS}path") if one.attrib.get("fill-opacity") == "0.12"]
    assert len(bands) == 1
    assert [one.attrib["stroke"] for one in lines][:2] == [
        one.attrib["stroke"] for one in fraud.findall(f"{NS}path") if one.attrib.get("fill") == "none"
    ]
    assert _texts(_curves())[-5:] == [*(curve.label for curve in CURVES), "the paper"]


def test_gaps_are_left_and_points_of_the_paper_are_marked() -> None:
    mean = np.where((X > 0.4) & (X < 0.6), math.nan, X)
    picture = curve_grid("a", "A", [CurvePanel("", X, [Curve("a", mean)])], x_label="x", y_label="y")
    lines = [one for one in _root(picture).iter(f"{NS}path") if one.attrib.get("fill") == "none"]
    assert len(lines) == 3  # both parts, and the sample of the legend
    assert len([one for one in _root(_one()).iter(f"{NS}path") if one.attrib.get("class") == "printed"]) == 2


def test_logarithmic_axis_has_plain_labels_and_no_zero() -> None:
    texts = _texts(_one())
    assert {"0.1", "1"} <= set(texts)
    line = next(one for one in _root(_one()).iter(f"{NS}path") if one.attrib.get("stroke-width") == "2.5")
    assert len(_points(line)) == len(X) - 1


def test_dots_bars_and_diamonds_are_where_they_belong() -> None:
    picture = _dots()
    panel = _root(picture).find(f"{NS}g")
    assert panel is not None
    (bar,) = (one for one in panel.findall(f"{NS}line") if one.attrib.get("stroke-width") == "2.6")
    dots = panel.findall(f"{NS}circle")
    marks = [_points(one)[0] for one in panel.findall(f"{NS}path") if one.attrib.get("class") == "printed"]
    low, high, ours, light = (
        *(float(bar.attrib[one]) for one in ("x1", "x2")),
        *(float(one.attrib["cx"]) for one in dots),
    )
    scale = (high - low) / 0.2
    assert ours == pytest.approx(low + 0.1 * scale, abs=0.1)
    assert light == pytest.approx(low + 0.2 * scale, abs=0.1)
    assert [one[0] for one in marks] == pytest.approx([low + 0.14 * scale, low + 0.2 * scale], abs=0.1)
    assert float(dots[0].attrib["cy"]) < marks[1][1] < float(dots[1].attrib["cy"])
    assert _texts(picture)[-4:] == ["ours", "others", "the paper", "least to most over splits"]


def test_counts_stand_in_the_cells_of_their_row_and_column() -> None:
    panel = _root(_confusions()).find(f"{NS}g")
    assert panel is not None
    cells = {
        (one.attrib["x"], one.attrib["y"]): one.text for one in panel.findall(f"{NS}text")
        if one.text in {"85", "18", "17", "110"}
    }  # fmt: skip
    ordered = sorted(cells, key=lambda place: (float(place[1]), float(place[0])))
    assert [cells[place] for place in ordered] == ["85", "18", "17", "110"]


def test_searches_are_drawn_with_their_median() -> None:
    panel = _root(_traces()).find(f"{NS}g")
    assert panel is not None
    *splits, median = (one for one in panel.findall(f"{NS}path") if one.attrib.get("fill") == "none")
    assert len(splits) == 2
    ends = [float(re.findall(r"H([\d.]+)", one.attrib["d"])[-1]) for one in (*splits, median)]
    assert ends[0] == ends[2] > ends[1]
    assert float(median.attrib["stroke-width"]) > float(splits[0].attrib["stroke-width"])


def test_many_points_still_make_a_small_file() -> None:
    x = np.sort(np.random.default_rng(0).random(60_000))
    noise = np.random.default_rng(1).normal(0, 0.01, x.size)
    curves = [Curve(f"m{power}", x**power + noise, x**power - 0.1, x**power + 0.1) for power in range(7)]
    assert len(curve_grid("many", "Many", [CurvePanel("", x, curves)], x_label="x", y_label="y").svg) < 200_000


@given(hnp.arrays(np.float64, st.integers(0, 200), elements=st.floats(-1, 1)), st.booleans())
def test_points_are_left_out_only_between_neighbors_on_the_same_place(x: npt.NDArray[np.float64], log_x: bool) -> None:
    kept = thinned(x, 10, log_x=log_x)
    usable = np.flatnonzero(x > 0) if log_x else np.arange(x.size)
    assert np.all(np.diff(kept) > 0)
    assert set(kept) <= set(usable)
    assert set(usable[[0, -1]] if usable.size else []) <= set(kept)
    scaled = np.log(x[usable]) if log_x else x[usable]
    width = (np.ptp(scaled) if scaled.size else 0) / 10
    for point in set(usable) - set(kept):
        around = kept[kept < point][-1], kept[kept > point][0]
        for other in around:
            apart = np.log(x[other] / x[point]) if log_x else x[other] - x[point]
            assert abs(apart) <= width * (1 + 1e-9) + 1e-12


def test_sorted_axis_keeps_at_most_two_points_a_place() -> None:
    assert thinned(np.linspace(0, 1, 10_000), 50, log_x=False).size <= 2 * 51


@st.composite
def _trace(draw: st.DrawFn) -> Trace:
    evaluations = sorted(draw(st.sets(st.integers(1, 30), min_size=1, max_size=8)))
    best = draw(st.lists(st.floats(0, 1), min_size=len(evaluations), max_size=len(evaluations)))
    return evaluations, sorted(best)


@given(st.lists(_trace(), min_size=1, max_size=5))
def test_median_is_that_of_every_single_evaluation(traces: list[Trace]) -> None:
    median = median_trace(traces)
    begun = max(at[0] for at, _ in traces)
    for evaluation in range(int(begun), 32):
        now = []
        for trace in traces:
            done = [best for at, best in zip(*trace, strict=True) if at <= evaluation]
            now.append(done[-1])
        assert best_at(median, np.array([float(evaluation)])) == np.median(now)
    assert np.isnan(best_at(median, np.array([begun - 1.0]))[0])


@given(hnp.arrays(np.float64, (3, 3), elements=st.integers(0, 1000).map(float)))
def test_shares_are_those_of_their_row(matrix: npt.NDArray[np.float64]) -> None:
    shares = row_shares(matrix)
    assert np.allclose(shares * matrix.sum(axis=1, keepdims=True), matrix)
    assert np.allclose(shares.sum(axis=1), matrix.sum(axis=1) > 0)


def test_counts_have_a_decimal_where_one_of_them_is_a_mean() -> None:
    assert count_texts(np.array([[280601.0, 3.0]])) == [["280,601", "3"]]
    assert count_texts(np.array([[280601.0, 3.25]])) == [["280,601.0", "3.2"]]


def test_ours_look_the_same_whatever_the_others() -> None:
    alone = looks([("a", "ours"), ("b", "printed")])
    among = looks([("x", "baseline"), ("b", "printed"), ("y", "baseline"), ("a", "ours"), ("x", "baseline")])
    assert among["a"] == alone["a"]
    assert among["b"] == alone["b"]
    many = looks([(str(number), "baseline") for number in range(40)])
    assert len(set(many.values())) == 40
