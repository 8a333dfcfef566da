"""A web answer as text: bounded, decompressed while it streams, text types only, HTML without its tags.

The scanner of HTML is our own: `html.parser` takes quadratic time on hostile input (14 s for 48 KiB of unclosed tags on
Python 3.11.7), and this one looks at each character a fixed number of times.
"""

from __future__ import annotations

import codecs
import re
import zlib
from dataclasses import dataclass
from html import unescape
from typing import Protocol

from surefoot.tools.call import ToolFailed

MAX_WIRE_BYTES = 2 * 1024 * 1024  # what is read of an answer, as sent
MAX_BYTES = 8 * 1024 * 1024  # what an answer may be after decompression
ENCODINGS = "gzip, deflate"  # what is asked for; other compressions are refused

_CHUNK = 64 * 1024
_GZIP_MARK = 0x1F
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(
    r"text/|application/(json|xml|javascript|ecmascript|yaml|x-yaml|toml|x-ndjson|jsonl|sql|x-sh|x-www-form-urlencoded"
    r"|[^;]*\+(json|xml|yaml))|$"
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_OF_XML = re.compile(r"\s*<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)")
_CHARSETS = re.compile(r"utf-(8|16|32)|ascii$|iso8859-|cp\d|gb|big5|shift_jis|euc_|koi8-|mac-|tis-620|hz$|iso2022")
"""Codecs for text on the web; Python has others, some of which run in quadratic time."""
_WIDER = {
    "iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs",
    "shift_jis": "cp932", "euc_kr": "cp949",
}  # fmt: skip
"""What is meant on the web by these names."""
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
_BLANKS = re.compile(r"[ \t\r\f\v\u00a0]+")
_KEPT, _SHOWN = {0x20: "\ue000", 0x09: "\ue001"}, {0xE000: " ", 0xE001: "\t"}  # blanks of `<pre>`, and back again
_LINES = re.compile(r"\n{3,}")
_HUGE = re.compile(r"&#\d{8,};?")  # no character has such a number, and `unescape` fails on thousands of digits
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


class Stream(Protocol):
    """Where the bytes come from; `read` gives b"" at the end."""

    async def read(self, n: int = -1, /) -> bytes:
        """At most `n` bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes after decompression; `is_cut`: there was more on the wire than is read."""

    data: bytes
    is_cut: bool


async def read_body(stream: Stream, encoding: str) -> Body:
    """Read up to `MAX_WIRE_BYTES`. Raises `ToolFailed` when more than `MAX_BYTES` come out, or nothing can."""
    inflate = _Inflate(encoding.strip().lower())
    wire = 0
    while chunk := await stream.read(_CHUNK):
        room = MAX_WIRE_BYTES - wire
        wire += len(chunk)
        inflate.feed(chunk[:room])
        if len(chunk) > room:
            return Body(bytes(inflate.out), is_cut=True)
    inflate.finish()
    return Body(bytes(inflate.out), is_cut=False)


class _Inflate:
    """Decompresses piece by piece, so that a small answer cannot become a huge one in memory."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ToolFailed(f"The answer is compressed in a way that is not accepted ({encoding[:40]}).")
        self.out = bytearray()
        self._is_deflate = encoding == "deflate"
        self._engine = None if encoding in ("", "identity") else zlib.decompressobj(zlib.MAX_WBITS | 32)

    def feed(self, data: bytes) -> None:
        """Add what a piece gives. What follows the end and is no further gzip member is ignored."""
        if self._engine is None:
            self._add(data)
            return
        if self._is_deflate and data:
            self._is_deflate = False  # the first byte decides: many servers send deflate without its header
            if data[0] & 0x0F != zlib.DEFLATED:
                self._engine = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            while data:
                if self._engine.eof:
                    if data[0] != _GZIP_MARK:
                        return
                    self._engine = zlib.decompressobj(zlib.MAX_WBITS | 32)
                self._add(self._engine.decompress(data, MAX_BYTES + 1 - len(self.out)))
                data = self._engine.unconsumed_tail or self._engine.unused_data
        except zlib.error as error:
            raise ToolFailed("The answer is damaged: it cannot be decompressed.") from error

    def finish(self) -> None:
        """Raises `ToolFailed` when the end is missing."""
        if self._engine is not None and self.out and not self._engine.eof:
            raise ToolFailed("The answer is damaged: its end is missing.")

    def _add(self, data: bytes) -> None:
        self.out += data
        if len(self.out) > MAX_BYTES:
            raise ToolFailed(f"The answer is larger than {MAX_BYTES} bytes after decompression.")


def text_of_body(body: Body, content_type: str) -> str:
    """The text, HTML without its tags. Raises `ToolFailed` when it is not text in its declared charset."""
    kind = content_type.split(";", 1)[0].strip().lower()
    if not _TEXT.match(kind):
        raise ToolFailed(f"The answer is {kind[:80]}, not text. Only text, such as HTML, JSON or XML, can be fetched.")
    declared = _CHARSET.search(content_type)
    if declared is None and kind in _HTML:
        declared = _CHARSET.search(body.data[:1024].decode("latin-1"))
    elif declared is None:
        declared = _OF_XML.match(body.data[:1024].decode("latin-1"))
    name = next((codec for mark, codec in _MARKS if body.data.startswith(mark)), declared[1] if declared else "utf-8")
    try:
        codec = codecs.lookup(name).name
        if not _CHARSETS.match(codec):
            raise ToolFailed(f"The answer is not text: its charset {name[:40]} is not known.")
        decoder = codecs.getincrementaldecoder(_WIDER.get(codec, codec))()
        text = decoder.decode(body.data, final=not body.is_cut)
    except LookupError as error:
        raise ToolFailed(f"The answer is not text: its charset {name[:40]} is not known.") from error
    except UnicodeError as error:
        raise ToolFailed(f"The answer is not text: it does not fit its charset {name[:40]}.") from error
    if "\0" in text:
        raise ToolFailed("The answer is not text: it holds NUL bytes.")
    if kind in _HTML or (not kind and text.lstrip()[:9].lower().startswith(("<!doctype", "<html"))):
        text = text_of_page(text)
    return f"{text}\n(only the first {MAX_WIRE_BYTES} bytes were read)" if body.is_cut else text


def text_of_page(html: str) -> str:
    """What a reader sees: one line for each block, cells apart by a tab mark, links as their text. Never raises.

    Costs time linear in the length. An attribute value that holds `>` leaves its rest in the text.
    """
    parts: list[str] = []
    at, is_as_written = 0, False
    while (start := html.find("<", at)) >= 0:
        parts.append(html[at:start].translate(_KEPT) if is_as_written else html[at:start])
        # Where the text goes on after the tag or comment at `start`; adds to `parts` the break that it makes.
        if html.startswith("<!--", start):
            at = _end(html, "-->", start + 4)
        elif html.startswith(("<!", "<?"), start):
            at = _end(html, ">", start)
        elif (tag := _TAG.match(html, start)) is None:
            parts.append("<")
            at = start + 1
        else:
            name = tag[2].lower()
            after = _end(html, ">", tag.end())
            if name in _BLOCKS:
                parts.append("\n")
                is_as_written = not tag[1] if name == "pre" else is_as_written
            elif name in ("td", "th"):
                parts.append(" | " if tag[1] else " ")
            if name in _SILENT and not tag[1] and not html.endswith("/>", start, after):
                end_tag = re.compile(f"</{name}(?![a-z0-9:-])", re.IGNORECASE).search(html, after)
                at = len(html) if end_tag is None else _end(html, ">", end_tag.start())
            else:
                at = after
    parts.append(html[at:])
    text = unescape(_HUGE.sub("\ufffd", "".join(parts)))
    lines = (_BLANKS.sub(" ", line).strip(" |") for line in text.split("\n"))
    return _LINES.sub("\n\n", "\n".join(lines)).strip().translate(_SHOWN)


def _end(html: str, mark: str, start: int) -> int:
    """Behind the next mark; the end of the page when it never comes, so that it is looked for only once."""
    found = html.find(mark, start)
    return len(html) if found < 0 else found + len(mark)
