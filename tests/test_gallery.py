"""The scripts of the gallery run, and each leaves a picture with a title."""

import runpy
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


def test_gallery_has_what_people_look_for():
    assert len(SCRIPTS) >= 8


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_runs_and_draws(script, monkeypatch, tmp_path):
    matplotlib = pytest.importorskip("matplotlib", reason="needs the extra 'plots'")
    if "qmedoid.circuits" in script.read_text(encoding="utf-8"):
        pytest.importorskip("qiskit_aer", reason="needs the extra 'quantum'")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pyplot, "show", lambda: None)
    pyplot.close("all")
    runpy.run_path(str(script))
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    assert figures
    assert all(axes.get_title() for figure in figures for axes in figure.axes)
    assert not list(tmp_path.iterdir())
