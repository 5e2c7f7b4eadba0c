import re
from html.parser import HTMLParser

import pytest
from benchmarks.studies.document import Document, html_page
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


def test_cells_are_written_for_the_eye() -> None:
    rows = _Reader(html_page(report())).rows
    assert rows[2:4] == [["fusion", "0.8478", "0.8400 ± 0.0064", "0.85", "284,807"],
                         ["forest", "–", "0.0000", "−0.50", "7"]]  # fmt: skip
