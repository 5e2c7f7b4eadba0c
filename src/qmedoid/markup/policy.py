"""A page that runs its own script and nothing else: its Content-Security-Policy by hashes, and data blocks."""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from qmedoid.markup.html import Html, element


def source_hash(text: str) -> str:
    """What a policy calls a script or a style of exactly this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def content_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """The policy of a page that holds these scripts and styles, and loads, runs and sends nothing else.

    A text that becomes markup or script by mistake has no effect: it has no hash here, and the trusted types leave no
    way to make elements of texts.
    """

    def allowed(texts: Sequence[str]) -> str:
        return " ".join(source_hash(text) for text in texts) or "'none'"

    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {allowed(scripts)}",
            f"style-src {allowed(styles)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def policy_element(scripts: Sequence[str], styles: Sequence[str]) -> Html:
    """The policy as the first element of a head: it rules what comes after it."""
    return element("meta", http_equiv="Content-Security-Policy", content=content_policy(scripts, styles))


def style_element(css: str) -> Html:
    """A style sheet within the page, exactly as its hash was made.

    Raises
    ------
    ValueError
        The text would end the element.
    """
    return _raw("style", css)


def script_element(javascript: str) -> Html:
    """A script within the page, exactly as its hash was made.

    Raises
    ------
    ValueError
        The text would end the element.
    """
    return _raw("script", javascript)


def _raw(tag: str, text: str) -> Html:
    return Html(f"<{tag}>{check_raw(tag, text)}</{tag}>")


def check_raw(tag: str, text: str) -> str:
    """The text of a script or a style, as it is within its element; raise ValueError where it would end it."""
    lower = text.lower()
    if f"</{tag}" in lower or "<!--" in lower or "\r" in text:
        raise ValueError(f"The text of a {tag} must not end it, begin a comment or hold a carriage return.")
    return text


def data_block(name: str, value: Any) -> Html:
    """Plain values as JSON in an element of this id, which the page's script reads; no text in it can be markup.

    Raises
    ------
    ValueError
        A number is not finite: JSON has no such number.
    """
    start = element("script", id=name, type="application/json")[: -len("</script>")]
    return Html(f"{start}{script_json(value)}</script>")


def script_json(value: Any) -> str:
    """JSON that may stand within a script of a page: it is ASCII, and no tag can end it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
