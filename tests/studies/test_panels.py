"""Pictures of studies: every value is at its place, and nothing is loaded."""

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
    confusion_grid,
    curve_grid,
    dots_against_paper,
    looks,
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


@given(hnp.arrays(np.float64, (3, 3), elements=st.integers(0, 1000).map(float)))
def test_shares_are_those_of_their_row(matrix: npt.NDArray[np.float64]) -> None:
    shares = row_shares(matrix)
    assert np.allclose(shares * matrix.sum(axis=1, keepdims=True), matrix)
    assert np.allclose(shares.sum(axis=1), matrix.sum(axis=1) > 0)


def test_ours_look_the_same_whatever_the_others() -> None:
    alone = looks([("a", "ours"), ("b", "printed")])
    among = looks([("x", "baseline"), ("b", "printed"), ("y", "baseline"), ("a", "ours"), ("x", "baseline")])
    assert among["a"] == alone["a"]
    assert among["b"] == alone["b"]
    many = looks([(str(number), "baseline") for number in range(40)])
    assert len(set(many.values())) == 40
