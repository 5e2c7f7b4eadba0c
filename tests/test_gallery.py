"""The scripts of the gallery run with the extras that its page names, and each leaves a picture with a title."""

from pathlib import Path

import pytest
from tests.plain_environment import missing

SCRIPTS = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
DRAW = """
import os, runpy
import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot
pyplot.show = lambda: None
runpy.run_path({script!r})
figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
assert figures
assert all(axes.get_title() for figure in figures for axes in figure.axes)
assert not os.listdir()
"""


def test_gallery_has_what_people_look_for():
    assert len(SCRIPTS) >= 8


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_runs_and_draws(script, plain, tmp_path):
    needs = ["qmedoid", "qmedoid[plots]"]
    if "qmedoid.quantum" in script.read_text(encoding="utf-8"):
        needs.append("qmedoid[quantum]")
    if missing(needs):
        pytest.skip(f"needs {', '.join(missing(needs))}: pip install {' '.join(map(repr, needs))}")
    code, printed = plain.run(needs, tmp_path, script.name, code=DRAW.format(script=str(script)))
    assert code == 0, printed[-3000:]
