"""JSON without NaN, duplicate keys and bottomless nesting, from which every plain value comes back."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_models import same

from qmedoid.model.storage.strict import parsed, plain
from qmedoid.schema import RefusedError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda key: key != "$float"), inner),
    max_leaves=20,
)


@given(VALUES)
@settings(deadline=None)
def test_every_plain_value_comes_back_from_strict_json(value):
    text = json.dumps(plain(value, "value"), allow_nan=False)
    same(parsed(text.encode()), value)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', '{"b": {"a": 1, "a": 1}}', "NaN", "[Infinity]", "[-Infinity]", "", "{", "\xff",
     '"\\ud800"', "[" * 100_000, '{"a":' * 100_000, "9" * 5000, "[1] 2"],
)  # fmt: skip
def test_json_that_is_not_strict_is_refused(text):
    with pytest.raises(RefusedError):
        parsed(text.encode("latin-1"))


def test_too_many_values_are_refused_before_they_are_made():
    start = time.process_time()
    with pytest.raises(RefusedError, match="holds more than"):
        parsed(b"[" + b"[]," * (10 * 2**20) + b"[]]")
    assert time.process_time() - start < 1
