"""What a docstring says of a tool and of its parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

_FIELD = re.compile(r"^\s*[:@](param|parameter|arg|argument|keyword|type|return|returns|rtype|raises?)\b", re.MULTILINE)
_UNDERLINED = re.compile(r"^\s*[A-Z][A-Za-z ]+\n\s*-{3,}\s*$", re.MULTILINE)
_HEADED = re.compile(
    r"^\s*(Args|Arguments|Parameters|Params|Attributes|Returns?|Yields?|Raises|Examples?):\s*$", re.MULTILINE
)


def read_docstring(text: str | None) -> tuple[str, Mapping[str, str]]:
    """The description, and the text for each parameter (Google, NumPy, reST and Epydoc styles); ("", {}) for none.

    The parser is loaded only for docstrings that have sections.
    """
    if not text or not (text := inspect.cleandoc(text)):
        return "", {}
    style = _style(text)
    if style is None:
        return text, {}
    from docstring_parser import DocstringStyle, ParseError, parse  # noqa: PLC0415  # half of all tools need it not

    try:
        parsed = parse(text, style=DocstringStyle[style])
    except ParseError:
        return text, {}
    parts = [part for part in (parsed.short_description, parsed.long_description) if part]
    return "\n\n".join(parts), {
        each.arg_name: _one_line(each.description) for each in parsed.params if each.description
    }


def _style(text: str) -> str | None:
    if field := _FIELD.search(text):
        return "EPYDOC" if "@" in field.group() else "REST"
    if _UNDERLINED.search(text):
        return "NUMPYDOC"
    return "GOOGLE" if _HEADED.search(text) else None


def _one_line(text: str) -> str:
    return " ".join(text.split())
