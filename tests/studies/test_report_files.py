import csv
import dataclasses
import errno
import tempfile
from pathlib import Path

import pytest
from benchmarks.studies.document import (
    Heading,
    Table,
    check_folder,
    check_replaceable,
    csv_text,
    html_page,
    write_report,
)
from hypothesis import given
from hypothesis import strategies as st
from small_reports import SVG, report

from qmedoid.exceptions import OutputError, ParameterError
from qmedoid.markup.page import picture_file


def _rows(text: str) -> tuple[str, list[list[str]]]:
    comment, rest = text.split("\n", 1)
    return comment, list(csv.reader(rest.splitlines(keepends=True)))


def test_files_are_those_of_the_parts(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    written = write_report(report(), folder)
    names = ["heart_test.csv", "fraud.csv", "heart_roc.svg", "findings.txt", "index.html"]
    assert written == [folder / name for name in names]
    assert sorted(folder.iterdir()) == sorted(written)
    assert (folder / "heart_roc.svg").read_text() == picture_file(SVG)
    assert (folder / "findings.txt").read_text() == "A plain baseline wins.\nThe search helps.\n"
    page, comment = (folder / "index.html").read_bytes().split(b"<!-- qmedoid report: ")
    assert page == html_page(report()).encode()
    assert comment.endswith(b" -->\n")


def test_table_comes_back_from_its_file(tmp_path: Path) -> None:
    write_report(report(), tmp_path)
    content = (tmp_path / "heart_test.csv").read_bytes().decode()
    assert "\r" not in content
    comment, (header, *rows) = _rows(content)
    assert comment == "# command: qmedoid reproduce heart | seed: 0"
    assert header == ["method", "accuracy: paper", "accuracy: ours", "accuracy: ours ±", "macro-F1: paper", "rows"]
    assert rows == [
        ["fusion", "0.8478", "0.8400", "0.0064", "0.85", "284807"],
        ["forest", "", "0.0000", "", "-0.50", "7"],
    ]


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=2, max_size=2)))
def test_any_text_comes_back_from_a_file(rows: list[list[str]]) -> None:
    table = Table("t", "T", [Heading("a"), Heading("b")], rows)
    assert list(csv.reader(csv_text(table, {}).split("\n")[1:-1])) == [["a", "b"], *rows]


def test_same_document_gives_the_same_bytes_beside_other_files(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in write_report(report(), tmp_path / "a")]
    (tmp_path / "a" / "mine.csv").write_text("mine")
    for folder in ("a", "b"):
        assert [path.read_bytes() for path in write_report(report(), tmp_path / folder)] == first
    assert (tmp_path / "a" / "mine.csv").read_text() == "mine"


@pytest.mark.parametrize("name", ["fraud.csv", "findings.txt", "heart_roc.svg", "index.html"])
def test_file_that_no_report_wrote_or_that_was_changed_since_is_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(ParameterError, match=rf"'{name}'.*--force"):
        write_report(report(), tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]
    if name == "index.html":
        with pytest.raises(ParameterError, match="--force"):
            check_replaceable(tmp_path)
    write_report(report(), tmp_path, force=True)
    check_replaceable(tmp_path)
    (tmp_path / name).write_bytes(b"my note\n" + (tmp_path / name).read_bytes())
    with pytest.raises(ParameterError, match=rf"'{name}'.*--force"):
        write_report(dataclasses.replace(report(), title="Another"), tmp_path)
    assert (tmp_path / name).read_bytes().startswith(b"my note\n")


def test_places_that_cannot_be_written_are_errors_of_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        for use in (check_folder, lambda folder: write_report(report(), folder)):
            with pytest.raises(OutputError, match="Give another path"):
                use(folder)
    (tmp_path / "out" / "fraud.csv").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"fraud\.csv"):
        write_report(report(), tmp_path / "out")
    assert not (tmp_path / "out" / "index.html").exists()

    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(OutputError, match="permissions"):
        check_folder(tmp_path)
