"""Models that were saved long ago load for ever and decide as they did."""

import json
from pathlib import Path

import numpy as np
import pytest

from qmedoid.artifacts.loading import READERS, load_model
from qmedoid.exceptions import ModelError
from qmedoid.models.encoding import Levels, Numbers

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAVED = sorted(path.parent for path in FIXTURES.glob("format-*/*/manifest.json"))


def test_there_is_a_model_of_every_format():
    assert {int(path.parent.name.removeprefix("format-")) for path in SAVED} == set(READERS)


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_it_decides_as_it_did(path):
    model = load_model(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    decided = model.decide([np.array(column) for column in expected["columns"]])
    assert decided.codes.tolist() == expected["codes"]
    assert decided.by_circuit.tolist() == expected["by_circuit"]
    assert (decided.nearest is None) == (expected["nearest"] is None)
    if decided.nearest is not None:
        assert decided.nearest.tolist() == expected["nearest"]
    # Bit for bit on one machine; another may round sines and roots otherwise, and a circuit may be in single precision.
    np.testing.assert_allclose(decided.scores, expected["scores"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(decided.margins, expected["margins"], rtol=1e-5, atol=1e-5)
    assert len(set(expected["codes"])) > 1


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_its_encodings_are_what_they_were(path):
    model = load_model(path)
    expected = json.loads(path.with_suffix(".json").read_text())["encodings"]
    assert [column.kind for column in model.contract.columns] == ["number"] * 2 + ["boolean", "date"] + ["category"] * 2
    for encoding, entry in zip(model.encodings, expected, strict=True):
        if isinstance(encoding, Levels):
            assert list(encoding.levels) == entry["levels"]
            np.testing.assert_array_equal(encoding.values, np.array(entry["values"], dtype=np.float64))
        elif isinstance(encoding, Numbers):
            np.testing.assert_array_equal(encoding.fill, np.float64(np.nan if entry["fill"] is None else entry["fill"]))
        else:
            assert list(encoding.parts) == entry["parts"]
            np.testing.assert_array_equal(encoding.fills, entry["fills"])


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_is_expected_of_it_is_what_it_was(path):
    model = load_model(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    if path.parent.name == "format-1":
        # Nothing was kept: another prevalence is refused, and no alert rate is expected.
        assert (model.priors, model.prior_shift, model.operating) == (None, None, None)
        with pytest.raises(ModelError, match="saved without the class frequencies"):
            model.shifted(0.1)
        return
    assert model.priors.tolist() == expected["priors"]
    assert model.expected_priors.tolist() == expected["expected_priors"]
    assert (None if model.operating is None else model.operating.as_dict()) == expected["operating"]
