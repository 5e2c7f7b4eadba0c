"""A page that runs its own script and nothing else: its Content-Security-Policy by hashes, and JSON within it."""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any


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


def check_raw(tag: str, text: str) -> str:
    """The text of a script or a style, as it is within its element; raise ValueError where it would end it."""
    lower = text.lower()
    if f"</{tag}" in lower or "<!--" in lower or "\r" in text:
        raise ValueError(f"The text of a {tag} must not end it, begin a comment or hold a carriage return.")
    return text


def script_json(value: Any) -> str:
    """JSON that may stand within a script of a page: it is ASCII, and no tag can end it.

    Raises
    ------
    ValueError
        A number is not finite: JSON has no such number.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
