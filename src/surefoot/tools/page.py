"""The text of a web page: HTML without its tags.

Our own scanner, because the standard library's `html.parser` takes time quadratic in the size of hostile input (48 KiB
of unclosed tags cost it 14 s on Python 3.11.7). This one looks at each character a fixed number of times.
"""

from __future__ import annotations

import re
from html import unescape

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
_BLANKS = re.compile(r"[ \t\r\f\v\u00a0]+")
_LINES = re.compile(r"\n{3,}")
_HUGE = re.compile(r"&#\d{8,};?")
"""No character has such a number, and `unescape` fails on thousands of digits."""
_SILENT = frozenset({"script", "style", "template", "svg", "iframe", "textarea", "select"})
"""Elements whose content is not for readers."""
_BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("head", "header", "hr", "html", "legend", "li", "main", "nav", "ol", "option", "p", "pre", "section"),
        *("summary", "table", "tbody", "tfoot", "thead", "title", "tr", "ul"),
    }
)


def text_of_page(html: str) -> str:
    """What a reader sees: one line for each block, cells apart by a tab mark, links as their text. Never raises.

    Costs time linear in the length. An attribute value that holds `>` leaves its rest in the text.
    """
    parts: list[str] = []
    at = 0
    while (start := html.find("<", at)) >= 0:
        parts.append(html[at:start])
        at = _after_tag(html, start, parts)
    parts.append(html[at:])
    return _tidied(unescape(_HUGE.sub("\ufffd", "".join(parts))))


def _after_tag(html: str, start: int, parts: list[str]) -> int:
    """Where the text goes on after the tag or comment at `start`; adds to `parts` the break that it makes."""
    if html.startswith("<!--", start):
        return _end(html, "-->", start + 4)
    if html.startswith(("<!", "<?"), start):
        return _end(html, ">", start)
    if (tag := _TAG.match(html, start)) is None:
        parts.append("<")
        return start + 1
    name = tag[2].lower()
    after = _end(html, ">", tag.end())
    if name in _BLOCKS:
        parts.append("\n")
    elif name in ("td", "th"):
        parts.append(" | " if tag[1] else " ")
    if name in _SILENT and not tag[1] and not html.endswith("/>", start, after):
        return _end(html, ">", _after_silence(html, name, after))
    return after


def _end(html: str, mark: str, start: int) -> int:
    """Behind the next mark; the end of the page when it never comes, so that it is looked for only once."""
    found = html.find(mark, start)
    return len(html) if found < 0 else found + len(mark)


def _after_silence(html: str, name: str, start: int) -> int:
    """At the end tag of an element that is left out."""
    found = re.compile(f"</{name}(?![a-z0-9:-])", re.IGNORECASE).search(html, start)
    return len(html) if found is None else found.start()


def _tidied(text: str) -> str:
    lines = (_BLANKS.sub(" ", line).strip(" |") for line in text.split("\n"))
    return _LINES.sub("\n\n", "\n".join(lines)).strip()
