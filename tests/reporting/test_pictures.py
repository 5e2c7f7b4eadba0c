import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from io import BytesIO

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qmedoid.exceptions import MissingExtraError, ParameterError
from qmedoid.reporting import drawing
from qmedoid.reporting.confusion import Panel, confusion_grid, count_texts, row_shares
from qmedoid.reporting.curves import (
    Curve,
    CurvePanel,
    Marker,
    Trace,
    TracePanel,
    curve_grid,
    median_trace,
    thinned,
    trace_grid,
)
from qmedoid.reporting.document import Picture
from qmedoid.reporting.dots import Dot, DotPanel, dots_against_paper
from qmedoid.reporting.drawing import looks, require_plots

matplotlib = pytest.importorskip("matplotlib", reason="needs the extra 'plots'")
from matplotlib.figure import Figure  # noqa: E402

X = np.linspace(0, 1, 50)
CURVES = [
    Curve("ours", X**0.2, X**0.3, X**0.1, "ours"),
    Curve("as printed", X**0.3, role="printed"),
    Curve("LogReg $x_1$", X**0.4),
    Curve("forest", X**0.5),
]
TRACES = [Trace([1, 4, 9], [0.5, 0.6, 0.7]), Trace([1, 2], [0.4, 0.8])]


def _curves() -> Picture:
    panels = [CurvePanel("Heart", X, CURVES), CurvePanel("Fraud", X, CURVES[:2], Marker(0.0131, 0.8496, "the paper"))]
    return curve_grid("roc", "ROC", panels, x_label="x", y_label="y", diagonal=True, note="N")


def _one() -> Picture:
    panel = CurvePanel("", X, CURVES, Marker(0.1, 0.5, "the paper"))
    return curve_grid("one", "One", [panel], x_label="x", y_label="y", log_x=True)


def _traces() -> Picture:
    return trace_grid("trace", "Search", [TracePanel("Heart", TRACES), TracePanel("Wine", TRACES[:1])])


def _dots() -> Picture:
    dots = [Dot("ours", 0.8, 0.7, 0.9, 0.84, "ours"), Dot("forest", None, paper=0.9), Dot("LightGBM", 0.9)]
    return dots_against_paper(
        "dots", "Accuracy", [DotPanel(name, dots) for name in ("Heart", "Wine", "Fraud")], x_label="accuracy"
    )


def _confusions() -> Picture:
    panels = [Panel("paper", [[85, 18], [17, 110]], ["no", "yes"]), Panel("none", np.eye(3) / 2, ["<a>", "$", "c"])]
    return confusion_grid("confusion", "Confusion", [*panels, *panels], "N")


ALL = pytest.mark.parametrize("make", [_curves, _one, _traces, _dots, _confusions])


@cache
def drawn_once(make: Callable[[], Picture]) -> Picture:
    return make()


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved, for tests to look at."""
    figures: list[Figure] = []
    save = drawing._saved

    def keep(figure: Figure, *details: object) -> bytes:
        figures.append(figure)
        return save(figure, *details)  # type: ignore[arg-type]

    monkeypatch.setattr(drawing, "_saved", keep)
    return figures


def _legend(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@ALL
def test_both_formats_are_what_they_say(make: Callable[[], Picture]) -> None:
    picture = drawn_once(make)
    root = ET.fromstring(picture.svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.findtext("{http://www.w3.org/2000/svg}title") == picture.title
    assert len(picture.svg) < 200_000
    assert picture.png.startswith(b"\x89PNG\r\n\x1a\n")
    image = matplotlib.image.imread(BytesIO(picture.png))
    assert image.shape[1] == pytest.approx(float(root.attrib["width"].removesuffix("pt")) / 72 * 150, abs=1)


@ALL
def test_picture_is_the_same_again_and_whatever_the_settings_of_the_user(make: Callable[[], Picture]) -> None:
    expected = drawn_once(make)
    settings = {"font.size": 20, "svg.hashsalt": "other", "axes.facecolor": "red", "xtick.color": "red"}
    with matplotlib.rc_context(settings):
        before = dict(matplotlib.rcParams)
        assert make() == expected
        assert dict(matplotlib.rcParams) == before


@ALL
def test_nothing_outside_is_named_but_by_its_name_space(make: Callable[[], Picture]) -> None:
    svg = drawn_once(make).svg.decode()
    assert not re.search(r'href="(?!#)', svg)
    assert "matplotlib.org" not in svg


@ALL
def test_legends_cover_no_panel(make: Callable[[], Picture], drawn: list[Figure]) -> None:
    make()
    figure = drawn[0]
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes)
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1


def test_curves_are_drawn_at_their_points(drawn: list[Figure]) -> None:
    _curves()
    heart, fraud = drawn[0].axes
    assert [axes.get_title("left") for axes in drawn[0].axes] == ["Heart", "Fraud"]
    diagonal, *lines = heart.lines
    assert np.array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    for line, curve in zip(lines, CURVES, strict=True):
        assert np.array_equal(line.get_xydata(), np.column_stack([X, curve.mean]))
    assert len(heart.collections) == 1
    assert np.array_equal(fraud.lines[-1].get_xydata(), [[0.0131, 0.8496]])
    assert fraud.lines[-1].get_marker() == "D"
    assert [line.get_color() for line in fraud.lines[1:3]] == [line.get_color() for line in lines[:2]]
    assert _legend(drawn[0]) == [*(curve.label for curve in CURVES), "the paper"]


def test_logarithmic_axis_has_plain_labels_and_no_zero(drawn: list[Figure]) -> None:
    _one()
    (axes,) = drawn[0].axes
    assert axes.get_xscale() == "log"
    assert np.array_equal(axes.lines[0].get_xdata(), X[1:])
    assert {"0.1", "1"} <= {label.get_text() for label in axes.get_xticklabels()}


def test_dots_bars_and_diamonds_are_where_they_belong(drawn: list[Figure]) -> None:
    _dots()
    axes = drawn[0].axes[0]
    found = {(line.get_marker(), tuple(line.get_xdata()), tuple(line.get_ydata())) for line in axes.lines}
    assert found == {
        ("None", (0.7, 0.9), (0, 0)),
        ("o", (0.8,), (0,)),
        ("D", (0.84,), (0,)),
        ("D", (0.9,), (1,)),
        ("o", (0.9,), (2,)),
    }
    low, high = axes.get_ylim()
    assert low > 2 > 0 > high
    assert [text.get_text() for text in axes.get_yticklabels()] == ["ours", "forest", "LightGBM"]
    assert _legend(drawn[0]) == ["ours", "others", "the paper", "least to most over splits"]


def test_counts_stand_in_the_cells_of_their_row_and_column(drawn: list[Figure]) -> None:
    _confusions()
    axes = drawn[0].axes[0]
    found = {text.get_position(): text.get_text() for text in axes.texts}
    assert found == {(0.5, 0.5): "85", (1.5, 0.5): "18", (0.5, 1.5): "17", (1.5, 1.5): "110"}
    assert axes.yaxis_inverted()


def test_searches_are_drawn_with_their_median(drawn: list[Figure]) -> None:
    _traces()
    *splits, median = drawn[0].axes[0].lines
    assert [line.get_xydata().tolist() for line in splits] == [[[1, 0.5], [4, 0.6], [9, 0.7]], [[1, 0.4], [2, 0.8]]]
    assert median.get_xdata()[-1] == 9
    assert median.get_linewidth() > splits[0].get_linewidth()


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
    return Trace(evaluations, sorted(best))


@given(st.lists(_trace(), min_size=1, max_size=5))
def test_median_is_that_of_every_single_evaluation(traces: list[Trace]) -> None:
    median = median_trace(traces)
    begun = max(np.asarray(trace.evaluations)[0] for trace in traces)
    for evaluation in range(begun, 32):
        now = []
        for trace in traces:
            done = [best for at, best in zip(trace.evaluations, trace.best, strict=True) if at <= evaluation]  # type: ignore[call-overload]
            now.append(done[-1])
        assert median.at(np.array([float(evaluation)])) == np.median(now)
    assert np.isnan(median.at(np.array([begun - 1.0]))[0])


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


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"'short' must have a value per point .* \(50,\)\. Got shape \(3,\)"):
        curve_grid("a", "A", [CurvePanel("", X, [Curve("short", [1, 2, 3])])], x_label="x", y_label="y")
    with pytest.raises(ParameterError, match="both edges"):
        Curve("a", X, low=X)
    with pytest.raises(ParameterError, match="both ends"):
        Dot("a", 0.5, high=0.6)
    with pytest.raises(ParameterError, match="ours, printed, baseline"):
        Curve("a", X, role="theirs")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"a row and a column per class.* Got shape \(2, 2\)"):
        Panel("a", [[1, 2], [3, 4]], ["one"])
    with pytest.raises(ParameterError, match="must rise"):
        Trace([1, 1], [0.5, 0.6])
    with pytest.raises(ParameterError, match="at least one evaluation"):
        Trace([], [])
    with pytest.raises(ParameterError, match="at least one panel"):
        confusion_grid("a", "A", [])
    with pytest.raises(ParameterError, match="at least one"):
        trace_grid("a", "A", [TracePanel("Heart", [])])


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    require_plots()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for attempt in (require_plots, _dots):
        with pytest.raises(MissingExtraError, match=r"pip install 'qmedoid\[plots\]'"):
            attempt()


def test_matplotlib_is_loaded_when_drawing_and_its_global_interface_never() -> None:
    code = """
import sys
from qmedoid.reporting.dots import Dot, DotPanel, dots_against_paper
import qmedoid.reporting.files
assert "matplotlib" not in sys.modules
dots_against_paper("a", "A", [DotPanel("", [Dot("a", 0.5)])], x_label="x")
assert "matplotlib" in sys.modules
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
