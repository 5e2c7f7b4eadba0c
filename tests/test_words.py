"""Sentences that people had to read twice are gone from messages, help and pages."""

import ast
import re
from pathlib import Path

import pytest

import qmedoid

SOURCE = Path(qmedoid.__file__).parent
ROOT = Path(__file__).parent.parent
OLD = {
    "by chance, once in 20": r"\bonce in 20\b",
    "every row has its own text: it names rows": r"it names rows",
    "the role 'keep' uses it all the same": r"uses it all the same",
    "if rows to come are later ones, hold out the last rows": r"rows to come are later",
    "3 of 1,500 rows are called 'yes', and 75 are.": r"\bcalled '?[^ ]+, and [^ ]+ (is|are)\.",
    "alert rate is about the class 1: so the words say": r"so the words say",
    "on new rows expect figures that are less good": r"figures that are less good",
    "called 1 above a probability of 0.5: the likelier class": r"called [^ ]+ above a probability of",
    "expected, from 689 held-out rows": r"^expected, from .* held-out rows",
    "alert rate 0.0475, as expected: 0.05 from held-out rows": r"as expected: .* from held-out rows",
    "sum model of 689 rows and 11 columns saved in heart.qmedoid": r"model of .* rows and .* columns saved in",
    "1.111 ahead of 0 in log-odds": r"ahead of .* in log-odds",
    "Of the medoids it lies nearer to training row 54, a known 0": r"[Oo]f the medoids it lies nearer",
    "The decision goes against the nearer medoid.": r"goes against the nearer medoid",
    "what the margin is made of, by group of encoded columns": r"what the margin is made of",
    "Make it so, or go on with on_mismatch='warn'": r"Make it so",
    "else the nearest new one is at": r"else the nearest new one",
    "drawn blindly it would be at": r"drawn blindly it would",
    "Weights that give every class the same total.": r"every class the same total",
    "Exit codes: 0 all well, 1 the machine failed": r"\b1 the machine failed",
}
"""Old sentences, and what of them may stand in no text; texts have ``{}`` where something is put in."""


def texts_of(tree):
    """All texts of a module but its docstrings; what is put into them is ``{}``, and parts are joined."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list)]
    docs = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def all_texts():
    for file in sorted(SOURCE.rglob("*.py")):
        for text in texts_of(ast.parse(file.read_text(encoding="utf-8"))):
            yield file.relative_to(SOURCE), text
    for ending in ("html", "j2", "js", "json", "md"):
        for file in sorted(SOURCE.rglob(f"*.{ending}")):
            yield file.relative_to(SOURCE), " ".join(file.read_text(encoding="utf-8").split())
    # But for the page that shows how messages were before.
    for file in sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "first-hour.md"}):
        for paragraph in file.read_text(encoding="utf-8").split("\n\n"):
            yield file.relative_to(ROOT), " ".join(paragraph.split())


@pytest.fixture(scope="module")
def texts():
    return list(all_texts())


@pytest.mark.parametrize("sentence", OLD)
def test_no_text_says_it_as_before(sentence, texts):
    pattern = re.compile(OLD[sentence])
    assert pattern.search(sentence)
    assert [(str(file), text) for file, text in texts if pattern.search(text)] == []


def test_texts_are_found_whole(texts):
    module = ast.parse('"""A docstring."""\nnote(f"called {name} above " "a probability")')
    assert "called {} above a probability" in list(texts_of(module))
    assert "A docstring." not in list(texts_of(module))
    assert len(texts) > 5000
