"""Plots for reports: arrays in, pictures out; Matplotlib is imported only when one is drawn."""

from qmedoid.reporting.pictures.confusion import Panel, confusion_grid
from qmedoid.reporting.pictures.curves import Curve, CurvePanel, Marker, curve_grid, curve_picture
from qmedoid.reporting.pictures.dots import Dot, DotPanel, dots_against_paper
from qmedoid.reporting.pictures.drawing import require_plots
from qmedoid.reporting.pictures.palette import Role
from qmedoid.reporting.pictures.traces import Trace, TracePanel, trace_grid

__all__ = [
    "Curve",
    "CurvePanel",
    "Dot",
    "DotPanel",
    "Marker",
    "Panel",
    "Role",
    "Trace",
    "TracePanel",
    "confusion_grid",
    "curve_grid",
    "curve_picture",
    "dots_against_paper",
    "require_plots",
    "trace_grid",
]
