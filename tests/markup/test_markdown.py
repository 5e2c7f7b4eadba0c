"""The Markdown of model cards as HTML."""

import html

from hypothesis import given
from hypothesis import strategies as st

from qmedoid.markup.page import html_of_markdown, inline
from qmedoid.model.storage.card import cell


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=60))
def test_any_cell_of_a_card_is_shown_as_it_is(text):
    assert html.unescape(inline(cell(text))) == text


def test_headings_lists_tables_and_code_are_found():
    text = "# A\n\nWords **bold** and `x<y`\nmore.\n\n## B\n- one\n  more\n- two\n"
    text += "\n| a | b |\n|---|--:|\n| 1 \\| 2 | < |\n\n```\nif a < b:\n```"
    made = html_of_markdown(text)
    assert "<h3>A</h3>" in made
    assert "<p>Words <strong>bold</strong> and <code>x&lt;y</code> more.</p>" in made
    assert "<ul><li>one more</li><li>two</li></ul>" in made
    assert '<th scope="row">1 | 2</th><td>&lt;</td>' in made
    assert "<caption>B</caption>" in made
    assert '<pre tabindex="0"><code>if a &lt; b:</code></pre>' in made


def test_markup_in_a_card_is_text():
    assert "<script" not in html_of_markdown(
        "# <script>\n\n- <script>\n\n<script>\n\n| <script> |\n|---|\n| <script> |"
    )
