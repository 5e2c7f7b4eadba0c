import re
from html.parser import HTMLParser

import pytest
from benchmarks.studies.document import Document, Heading, Section, Table, html_page
from small_reports import HOSTILE, SVG, hostile_report, report

VOID = {"meta", "img"}


class _Reader(HTMLParser):
    """All of a page: that its tags close in order, its tags with their attributes, and its text by tag."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.append((self.open[-1], data))
            if "tr" in self.open:
                self.rows[-1][-1] += data

    def of(self, tag: str) -> list[str]:
        return [text for inside, text in self.texts if inside == tag]

    def values(self, attribute: str) -> list[str]:
        return [attrs[attribute] or "" for _, attrs in self.tags if attribute in attrs]


def test_every_part_appears_findings_first() -> None:
    text, document = html_page(report()), report()
    page = _Reader(text)
    assert page.of("title") == page.of("h1") == [document.title]
    assert page.of("h2") == ["Findings", "Heart", "Fraud", "How this was made"]
    assert page.of("figcaption") == ["Heart: test rows", "ROC curves", "Fraud"]
    assert page.of("li") == list(document.findings)
    for words in (*document.introduction, "Some words.", "Means of 20 splits.", "Bands."):
        assert words in page.of("p")
    assert list(zip(page.of("dt"), page.of("dd"), strict=True)) == list(document.provenance.items())
    places = [text.index(f'id="{name}"') for name in ("findings", "section-1", "section-2", "provenance")]
    assert places == sorted(places)
    (picture,) = (attrs for tag, attrs in page.tags if tag == "svg")
    assert (picture["role"], picture["aria-label"]) == ("img", "ROC curves")
    assert SVG in text


def test_links_lead_to_places_of_the_page() -> None:
    page = _Reader(html_page(report()))
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    assert {f"#{name}" for name in ids if not name.endswith("-title")} == set(page.values("href"))


@pytest.mark.parametrize("document", [report(), hostile_report()])
def test_nothing_is_loaded_from_elsewhere(document: Document) -> None:
    text = html_page(document)
    page = _Reader(text)
    assert page.values("src") == []
    assert all(target.startswith("#") for target in page.values("href"))
    assert not {"script", "link", "iframe", "object", "base", "form"} & {tag for tag, _ in page.tags}
    assert not re.search(r"https?://|@import|url\(", text)


def test_hostile_text_is_inert_and_unchanged() -> None:
    text = html_page(hostile_report())
    page = _Reader(text)
    assert "script" not in {tag for tag, _ in page.tags}
    for tag in ("title", "h1", "h2", "figcaption", "li", "p", "th", "td", "a", "dt", "dd"):
        assert "".join(page.of(tag)).count(HOSTILE) == page.of(tag).count(HOSTILE) > 0, tag
    assert HOSTILE in page.values("aria-label")
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert "script-src &#39;none&#39;" in text
    assert not re.search(r"<[^>]*\sstyle=", text)


def test_groups_span_their_columns_and_errors_have_no_heading() -> None:
    page = _Reader(html_page(report()))
    assert page.rows[0] == ["method", "accuracy", "macro-F1", "rows"]
    assert page.rows[1] == ["paper", "ours", "paper"]
    heads = [(attrs.get("rowspan"), attrs.get("colspan")) for tag, attrs in page.tags if tag == "th"]
    assert heads[:7] == [("2", None), (None, "2"), (None, "1"), ("2", None), *[(None, None)] * 3]


def test_cells_are_written_for_the_eye() -> None:
    rows = _Reader(html_page(report())).rows
    assert rows[2:4] == [["fusion", "0.8478", "0.8400 ± 0.0064", "0.85", "284,807"],
                         ["forest", "–", "0.0000", "−0.50", "7"]]  # fmt: skip


def page_of(*tables: Table) -> _Reader:
    return _Reader(html_page(Document("D", [], [], [Section("S", [], list(tables))] if tables else [])))


def test_numbers_are_aligned_to_the_right_and_words_to_the_left() -> None:
    columns = [Heading(name) for name in ("word", "mixed", "none", "num")]
    page = page_of(Table("t", "T", columns, [["a", "b", None, 1], ["a", 1, None, 2]]))
    classes = [attrs.get("class") for tag, attrs in page.tags if tag in ("th", "td")]
    assert classes == [None, "num", "num", "num"] * 2 + ["again", "num", "num", "num"]


def test_headings_of_groups_are_repeated_and_absent_where_there_are_none() -> None:
    assert page_of(Table("t", "T", [Heading("a", "g"), Heading("b"), Heading("c", "g")], [])).rows == [
        ["g", "b", "g"], ["a", "c"],
    ]  # fmt: skip
    assert page_of(Table("t", "T", [Heading("a"), Heading("b")], [["x", 1]])).rows == [["a", "b"], ["x", "1"]]
    assert page_of().of("h1") == ["D"]
