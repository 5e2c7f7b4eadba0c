"""`qmedoid stability`: what it prints is what the function finds."""

import json

import numpy as np
import pytest
from small_tables import small_table, write

from qmedoid import MedoidClassifier
from qmedoid.cli.stability import StabilityOptions, run
from qmedoid.estimators.stability import stability
from qmedoid.exceptions import ParameterError


def options(file, **changes):
    return StabilityOptions(table=str(file), target="y", **({"bootstraps": 3, "max_rows": 1000} | changes))


def document(capsys, file, **changes):
    run(options(file, json=True, **changes))
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(small_table(), tmp_path_factory.mktemp("stability") / "t.csv")


def test_json_is_what_the_function_finds(capsys, file):
    found = document(capsys, file)
    table = small_table()
    classifier = MedoidClassifier(ignore=[], random_state=0)
    labels = np.array(table["y"].to_pylist())
    report = stability(classifier, table.drop_columns(["y"]), labels, n_bootstraps=3, random_state=0)
    assert found == json.loads(json.dumps(report.as_dict()))
    assert found["rows"] == 90


def test_text_tells_the_same_on_standard_output_alone(capsys, file):
    found = document(capsys, file)
    run(options(file))
    printed = capsys.readouterr()
    assert printed.err == ""
    decisions = found["decisions"]
    assert "90 rows, fitted again on 3 bootstrap samples" in printed.out
    assert f"{decisions['flip_rate']:.3f} ± {decisions['flip_error']:.3f}" in printed.out
    assert f"{found['medoids']['kept']:.3f}" in printed.out
    assert all(note in printed.out for note in found["notes"])


def test_options_are_heard(capsys, file):
    plain = document(capsys, file)
    assert document(capsys, file, seed=1) != plain
    assert document(capsys, file, bootstraps=2)["bootstraps"] == 2
    assert document(capsys, file, max_rows=60)["rows"] == 60
    assert document(capsys, file, medoids=6, neighbors="0")["medoids"]["medoids"] == 6
    assert document(capsys, file, method="nearest", bootstraps=2)["medoids"]["medoids"] == 2
    with pytest.raises(ParameterError, match="--medoids is of --method evidence"):
        run(options(file, method="rare", medoids=8))
    assert document(capsys, file, ignore=["x1"])["decisions"]["flip_rate"] != plain["decisions"]["flip_rate"]
