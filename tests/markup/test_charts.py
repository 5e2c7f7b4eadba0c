"""Pictures of the chart module say what they mean: texts of a scale stand clear of its label."""

import re

from qmedoid.markup import charts


def test_marks_of_a_decision_stand_clear_of_their_label():
    bars = [("every record starts at", 0.245, 0.245, "56 %"), ("Sex F", 0.245, -1.06, "÷3.7")]
    marks = [(-1.0986, "25 %"), (0.0, "50 %"), (1.0986, "75 %")]
    drawn = str(charts.waterfall("why", "why", bars, ("this record", 1.11, "75 %"), "log-odds", "probability", marks))
    (label, *_), *others = re.findall(r'<text x="([\d.]+)" y="22"[^>]*>([^<]*)<', drawn)
    assert [said for _, said in others] == ["50 %", "75 %"]  # 25 % would stand in the label
    assert all(float(at) > float(label) + 24 for at, _ in others)
