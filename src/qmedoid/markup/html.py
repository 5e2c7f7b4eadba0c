"""Elements of SVG and HTML as text; every text within one is escaped, unless it is markup made here."""

from markupsafe import Markup, escape

Child = str | int | None
"""What an element may hold: markup, text, a whole number, or nothing."""
LONGEST = 300
"""Characters of a text that are shown."""


def shortened(text: str, most: int = LONGEST) -> str:
    """At most this many characters, the last of which says that there were more."""
    return text if len(text) <= most else text[: most - 1] + "…"


def plain(text: str, most: int = LONGEST, keep: str = "") -> str:
    """A text of foreign origin fit to be shown: short, and without characters that steer or turn what follows.

    Parameters
    ----------
    text : str
    most : int
        Characters that are kept.
    keep : str
        Characters that stay although they are not printable, such as the line break of a longer text.
    """
    short = shortened(text, most)
    if short.isprintable():
        return short
    return "".join(one if one.isprintable() or one in keep else " " for one in short)


def element(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An element; text children are escaped.

    Attributes are named as in Python: ``class_`` is ``class``, ``aria_label`` is ``aria-label``. One that is None or
    False is left out, one that is True has no value.

    Raises
    ------
    ValueError
        An attribute is a style or a handler of events, which the policy of our pages would ignore.
    """
    written = [tag]
    for name, value in attributes.items():
        if name.startswith("on") or name == "style":
            raise ValueError(f"The attribute {name!r} has no effect under the policy of our pages. Use a class.")
        if value is not None and value is not False:
            key = name.rstrip("_").replace("_", "-")
            written.append(key if value is True else f'{key}="{escape(value)}"')
    inside = Markup().join(str(child) if isinstance(child, int) else child for child in children if child is not None)
    return Markup(f"<{' '.join(written)}>{inside}</{tag}>")
