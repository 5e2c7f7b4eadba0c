"""Elements of HTML as text. Every text within them is escaped, unless it is markup made here."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})
"""Elements that have no content and no end tag."""
LONGEST = 300
"""Characters of a text that are shown."""


class Html(str):
    """Text that is markup already and is not escaped again."""

    __slots__ = ()

    def __html__(self) -> "Html":
        return self


Child = str | int | None
"""What an element may hold: markup, text, a whole number, or nothing."""


def escape(text: object) -> Html:
    """A text in which nothing is markup, within an element or within an attribute in quotes."""
    return text if isinstance(text, Html) else Html(html.escape(str(text)))


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


def element(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Html:
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
    start = f"<{' '.join(written)}>"
    if tag in VOID:
        return Html(start)
    return Html(f"{start}{join(children)}</{tag}>")


def join(children: Iterable[Child], between: str = "") -> Html:
    """Children after each other; text is escaped, None is left out."""
    return Html(between.join(escape(child) for child in children if child is not None))


def box(label: str, *children: Child, class_: str = "box") -> Html:
    """A box that scrolls sideways by itself where it is wider than the page, reached and moved by keys as well."""
    return element("div", *children, class_=class_, tabindex=0, role="group", aria_label=label)


def table(
    caption: str, head: Sequence[Child], rows: Iterable[Sequence[Child]], *, numbers: Iterable[int] = (), **cells: Any
) -> Html:
    """A table in a box; the first cell of a row is its heading.

    Parameters
    ----------
    caption : str
        Says what it is, above it and to screen readers.
    head : sequence
        A heading for each column.
    rows : iterable of sequence
    numbers : iterable of int
        Columns that hold numbers, which are aligned to the right.
    cells : Any
        Attributes of the table.
    """
    right = frozenset(numbers)
    kind = ["num" if place in right else None for place in range(len(head))]
    heads = join(element("th", one, scope="col", class_=kind[place]) for place, one in enumerate(head))
    body = (
        element(
            "tr",
            *(
                element("td", one, class_=kind[place]) if place else element("th", one, scope="row", class_=kind[place])
                for place, one in enumerate(row)
            ),
        )
        for row in rows
    )
    inside = [element("caption", caption), element("thead", element("tr", heads)), element("tbody", join(body, "\n"))]
    return box(caption, element("table", *inside, **cells))


def folded(summary: Child, *children: Child, is_open: bool = False, **attributes: Any) -> Html:
    """Content below a line that opens and closes it."""
    return element("details", element("summary", summary), *children, open=is_open, **attributes)
