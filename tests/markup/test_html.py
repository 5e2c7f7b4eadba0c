"""Elements as text: everything that is not markup made here is escaped."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid.markup.charts import element, plain, shortened


class Reader(HTMLParser):
    """What a browser would find in a text: elements, attributes and characters."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


TEXTS = st.text() | st.text("<>&\"'/=!-;ab# \n")
"""Any text, and texts that look like markup."""


@given(TEXTS, TEXTS)
def test_element_shows_any_text_as_it_is(content, attribute):
    found = read(element("p", content, title=attribute))
    assert found.tags == ["p"]
    assert found.text == content
    assert found.attributes == [("title", attribute)]


def test_element_writes_attributes_as_html_names_them():
    made = element("input", class_="a", aria_label="b", data_x=1.5, checked=True, disabled=False, value=None)
    assert made == '<input class="a" aria-label="b" data-x="1.5" checked></input>'


@pytest.mark.parametrize("name", ["style", "onclick", "onerror"])
def test_element_refuses_what_the_policy_would_ignore(name):
    with pytest.raises(ValueError, match="Use a class"):
        element("p", "x", **{name: "y"})


def test_markup_is_not_escaped_again():
    assert element("p", element("b", "<"), "<") == "<p><b>&lt;</b>&lt;</p>"


@given(st.text(), st.integers(1, 20))
def test_shortened_keeps_short_texts_and_the_start_of_long_ones(text, most):
    short = shortened(text, most)
    assert len(short) <= most
    if len(text) <= most:
        assert short == text
    else:
        assert text.startswith(short[:-1])
        assert short[-1] == "…"


@given(st.text(max_size=50))
def test_plain_has_no_character_that_steers_what_follows(text):
    assert plain(text).isprintable()
    assert plain(text).encode().decode() == plain(text)  # no lone surrogate
    assert len(plain(text)) == len(text)


def test_plain_keeps_line_breaks_that_are_asked_for():
    assert plain("a\nb\u202e", keep="\n") == "a\nb "
    assert plain("x" * 400) == "x" * 299 + "…"
