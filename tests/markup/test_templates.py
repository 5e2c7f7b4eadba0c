"""Templates with plain values become pages: texts are texts, and nothing is loaded."""

import html
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from qmedoid.markup import page

PAGE = """{% extends "base.html" %}{% import "macros.html" as m with context %}
{% set main %}
{% call m.section("one", title) %}{{ m.table(title, ["a", title], [[title, 1.23456789]], [1]) }}{% endcall %}
{% call m.section("two", "Two") %}{{ m.facts([("name", title), ("none", none)]) }}
{{ m.figure(title, title, markup, title, [title], [[title]]) }}{% endcall %}
{% endset %}
"""


@pytest.fixture
def made(tmp_path):
    """Renders the template above."""
    return lambda **context: rendered(tmp_path, PAGE, **{"markup": Markup("<svg></svg>"), **context})


def rendered(folder, source, **context):
    """What becomes of the text of a template."""
    template = folder / "test.html"
    template.write_text(source, encoding="utf-8")
    return page.render(template, **context)


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", '" onclick="x', "'><img src=x>", "{{ 7 * 7 }}", "</style>", "&amp;", "]]>"]
)
def test_texts_are_never_markup(made, text):
    found = made(title=text)
    inert = made(title="harmless")
    assert found.count("<") == inert.count("<")
    assert found.count('"') == inert.count('"')
    assert text in html.unescape(found)


@given(text=st.text(min_size=1, max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_texts_have_no_character_that_steers_what_follows(tmp_path, text):
    shown = html.unescape(rendered(tmp_path, "{{ text }}", text=text))
    assert len(shown) == len(text)
    assert all(one.isprintable() or one == "\n" for one in shown)
    shown.encode()


def test_long_texts_are_cut_unless_all_of_them_is_asked_for(tmp_path):
    shown = rendered(tmp_path, "{{ text }}|{{ text|cut(10) }}|{{ text|whole }}", text="x" * 5000)
    assert [len(part) for part in shown.split("|")] == [page.LONGEST, 10, 5000]


def test_floats_have_four_digits_and_none_is_nothing(tmp_path):
    shown = rendered(tmp_path, "{{ a }}{{ b }} {{ c }} {{ d }}", a=0.123456789, b=None, c=-0.5, d=3)
    assert shown == "0.1235 −0.5 3"


def test_contents_lead_to_the_sections(made):
    found = made(title="First")
    assert '<li><a href="#one">First</a></li>' in found
    assert found.index('href="#one"') < found.index('href="#two"') < found.index('<section id="one"')
    assert "<dt>none" not in found


def test_policy_names_the_script_and_the_style(made):
    plain, scripted = made(title="a"), made(title="a", script="go();", data={"x": {"b": "</script>"}})
    assert "script-src &#39;none&#39;" in plain
    assert f"script-src {page.source_hash('go();')}; style-src {page.source_hash(page.style())}" in html.unescape(
        scripted
    )
    assert '<script id="x" type="application/json">{"b":"\\u003c/script\\u003e"}</script>' in scripted
    assert "<script>go();</script>" in scripted
    with pytest.raises(ValueError, match="must not end it"):
        made(title="a", script="</script>")


def test_value_that_is_not_given_is_an_error(made):
    with pytest.raises(Exception, match="'title' is undefined"):
        made()


def test_views_have_the_shared_part_of_the_style_alone():
    assert page.style().startswith(page.style(is_page=False))
    assert "body.qmedoid" in page.style()
    assert "body.qmedoid" not in page.style(is_page=False)


def test_templates_are_read_only_to_show_something():
    code = "import sys, qmedoid, qmedoid.cli.app, qmedoid.markup.page; print('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
