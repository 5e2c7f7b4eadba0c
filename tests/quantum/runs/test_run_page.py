"""The page of a run: it says what was run where, marks what is undecided, and runs nothing itself."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("qiskit_aer")

from tests.quantum.devices.runtime_standin import StandinService, standin_device
from tests.quantum.runs.toy_run import toy_plan

from qmedoid.quantum import Device, RunFolder
from qmedoid.quantum.runs.page import MOST_MARGINS, MOST_POINTS, page_values, render, summary_of, where

VOID = {"meta", "br"}
HOSTILE = "<script>alert('1')</script>\u202e\x00"


class Balanced(HTMLParser):
    """Every element is closed, in the order in which it was opened; keeps texts and names of elements."""

    def __init__(self, page):
        super().__init__()
        self.open, self.names, self.texts = [], set(), []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, _):
        self.names.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


def page_of(path, device=None, *, names=None, **settings):
    """Run a toy plan; its result and its page."""
    with RunFolder(path) as folder:
        result = folder.run(toy_plan(folder.device(device or Device(n_qubits=4)), **settings), names=names)
    return result, (path / "report.html").read_text(encoding="utf-8")


def words(page):
    return re.sub(r"\s+", " ", " ".join(Balanced(page).texts))


def test_page_runs_and_loads_nothing(tmp_path):
    _, page = page_of(tmp_path / "run")
    found = Balanced(page)
    assert not found.names & {"script", "link", "img", "iframe", "object", "form"}
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "script-src &#39;none&#39;" in policy
    assert " style=" not in page
    assert not re.search(r"(href|src)=\"(?!#)", page)


def test_names_and_classes_are_never_markup(tmp_path):
    names = {"model": HOSTILE, "table": f"{HOSTILE}.csv"}
    _, page = page_of(tmp_path / "run", names=names, classes=("no", HOSTILE), shots=1)
    assert "<script" not in page
    assert "\u202e" not in page
    assert "\x00" not in page
    assert "&lt;script&gt;" in page


def test_page_says_how_many_decisions_were_kept(tmp_path):
    result, page = page_of(tmp_path / "run", shots=1, n_records=12)
    said, found = words(page), result.summary()
    assert f"{int(result.kept.sum())} of 12 records are decided as the closed form decides" in said
    assert 0 < found["undecided"] < 12
    assert f"The margins of {found['undecided']} are not settled within two errors." in said
    table = page[page.index("Records that are not settled") :]
    rows = [int(row) for row in re.findall(r'<th scope="row" class="num">(\d+)</th>', table)]
    assert rows[: found["undecided"]] == np.flatnonzero(result.undecided).tolist()
    assert page.count('class="toward"') == found["undecided"]


def test_page_of_settled_records_says_so(tmp_path):
    result, page = page_of(tmp_path / "run", shots=4096, n_records=2)
    assert not result.undecided.any()
    assert "Every record is settled" in words(page)
    assert 'class="toward"' not in page


def test_page_says_what_a_simulator_is_not(tmp_path):
    _, page = page_of(tmp_path / "run")
    said = words(page)
    assert "exact simulator" in said
    assert said.count("No device was used.") == 2  # where it was run, and what it means
    assert "independent coins of the same bias would give the same counts" in said
    assert "not entangled" in said
    assert "Wider registers" in said


def test_page_of_groups_says_where_a_device_does_something_else(tmp_path):
    _, page = page_of(tmp_path / "run", standin_device(StandinService(tmp_path / "service")), register="group")
    said = words(page)
    assert "something that coins side by side do not" in said
    assert "independent coins" not in said
    assert "A service ran these circuits on a device." in said
    assert "No device was used" not in said


def test_calibration_that_was_left_out_is_named_so(tmp_path):
    _, page = page_of(tmp_path / "one")
    assert "left out" in words(page)
    _, page = page_of(tmp_path / "two", calibrate=False)
    assert "not measured" in words(page)
    assert "left out" not in words(page)


def test_where_circuits_run():
    from qiskit.primitives import StatevectorSampler
    from qiskit_aer import AerSimulator

    assert where(Device()) == "exact simulator"
    assert where(Device(AerSimulator())) == "simulated device"
    assert where(Device(sampler=StatevectorSampler())) == "sampler"


def test_long_runs_are_drawn_by_a_sample():
    plan = toy_plan(Device(n_qubits=50), n_records=300, n_columns=2, shots=4, circuits_per_job=100)
    result = plan.run()
    values = page_values(result)
    assert values["overlaps"]["all"] == plan.n_tests > MOST_POINTS
    assert len(values["overlaps"]["points"]) == MOST_POINTS
    assert sum(one["count"] for one in values["overlaps"]["errors"]) == plan.n_tests
    assert len(values["margins"]) == MOST_MARGINS
    assert sum(one["undecided"] for one in values["margins"]) == MOST_MARGINS // 2 < result.undecided.sum()
    margins = [one["margin"] for one in values["margins"]]
    assert margins == sorted(margins)


def test_same_counts_make_the_same_page(tmp_path):
    with RunFolder(tmp_path / "run") as folder:
        result = folder.run(toy_plan(folder.device(Device(n_qubits=4))))
        manifest = folder.manifest
    times = {name: manifest[name] for name in ("started", "finished")}
    again = render({**summary_of(manifest), **page_values(result), **times})
    assert again == (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
