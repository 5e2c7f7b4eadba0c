"""The policy of a page names its own script and style by their hashes, and data blocks hold no markup."""

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid.markup.page import check_raw, content_policy, script_json, source_hash

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_hash_is_that_of_the_bytes_in_base64():
    text = " const a = 'ü';\n"
    expected = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert source_hash(text) == f"'sha256-{expected}'"


def test_policy_allows_nothing_but_what_it_names():
    rules = dict(rule.split(" ", 1) for rule in content_policy(["a", "b"], ["c"]).split("; "))
    assert rules == {
        "default-src": "'none'",
        "script-src": f"{source_hash('a')} {source_hash('b')}",
        "style-src": source_hash("c"),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_policy_without_scripts_allows_none():
    assert "script-src 'none'; style-src 'none'" in content_policy([], [])


@given(VALUES)
def test_data_block_holds_no_markup_and_comes_back(value):
    inside = script_json(value)
    assert not set("<>&") & set(inside)
    assert inside.isascii()
    assert json.loads(inside) == value


def test_data_block_refuses_numbers_that_json_has_not():
    with pytest.raises(ValueError, match="Out of range"):
        script_json(float("nan"))


@pytest.mark.parametrize("text", ["a</SCRIPT>", "<!-- a", "a\r\nb"])
def test_scripts_that_would_end_are_refused(text):
    with pytest.raises(ValueError, match="must not end it"):
        check_raw("script", text)


def test_scripts_and_styles_are_written_exactly():
    assert check_raw("script", "a < b && c") == "a < b && c"
    assert check_raw("style", "a > b {}") == "a > b {}"
    with pytest.raises(ValueError, match="must not end it"):
        check_raw("style", "</style>")
