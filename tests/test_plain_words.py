"""Sentences that nobody understood at first reading do not come back into what the package says."""

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "src" / "qmedoid"
TEXTS = {
    path: " ".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8")).split())
    for ending in ("py", "html", "js", "json")
    for path in sorted(SOURCES.rglob(f"*.{ending}"))
}


@pytest.mark.parametrize(
    "words",
    [
        "by chance, once in 20",
        "it names rows",
        "uses it all the same",
        "if rows to come are later ones",
        r"are called '?\{[^}]*\}'?, and \{[^}]*\} are",
        "so the words say",
        "figures that are less good",
        "above a probability of [^.]*: the likelier class",
        "expected, from",
        r"model of \{[^}]*\} rows and \{[^}]*\} columns saved in",
        r"alert rate .*, as expected: ",
        "ahead of [^.]* in log-odds",
        "Of the medoids it lies nearer to",
        "The decision goes against the nearer medoid",
        "what the margin is made of",
        "Make it so, or",
        "the nearest new one is at",
        "drawn blindly",
        "Weights that give every class the same total",
        "1 the machine failed",
    ],
)
def test_hard_sentence_is_gone(words):
    assert TEXTS
    found = [str(path.relative_to(SOURCES)) for path, text in TEXTS.items() if re.search(words, text)]
    assert not found


def test_sentences_are_found_across_lines():
    """What the law looks at: a sentence in two strings is one."""
    code = 'message = (\n    f"column {name} is left out: it "\n    f"names rows"\n)'
    assert "it names rows" in re.sub(r'"\s*\n\s*f?"', "", code)
