"""The body of a web answer as text, and HTML without its tags."""

import gzip
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases, each
from surefoot.tools.call import ToolFailed
from surefoot.tools.page import MAX_BYTES, MAX_WIRE_BYTES, Body, read_body, text_of_body, text_of_page

pytestmark = pytest.mark.anyio


class Pieces:
    """A stream that gives `data` in pieces of `size` bytes."""

    def __init__(self, data: bytes, size: int = 7) -> None:
        self.data, self.size, self.given = data, size, 0

    async def read(self, n: int = -1, /) -> bytes:
        piece = self.data[self.given : self.given + min(self.size, n)]
        self.given += len(piece)
        return piece


def raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


TEXT = b"some text, some more text. " * 20


@pytest.mark.parametrize(("encoding", "data"), [
    ("", TEXT), ("identity", TEXT), ("gzip", gzip.compress(TEXT, mtime=0)), ("GZIP", gzip.compress(TEXT, mtime=0)),
    ("gzip", gzip.compress(TEXT[:50], mtime=0) + gzip.compress(TEXT[50:], mtime=0)),
    ("gzip", gzip.compress(TEXT, mtime=0) + b"\0\0garbage"), ("deflate", zlib.compress(TEXT)),
    ("deflate", raw_deflate(TEXT)),
])  # fmt: skip
@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_each_encoding(encoding: str, data: bytes, size: int) -> None:
    assert await read_body(Pieces(data, size), encoding) == Body(TEXT, is_cut=False)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
async def test_other_encodings_are_refused(encoding: str) -> None:
    with pytest.raises(ToolFailed, match="compressed in a way"):
        await read_body(Pieces(b""), encoding)


async def test_damage_is_told() -> None:
    for data in (b"not gzip at all", gzip.compress(TEXT, mtime=0)[:-30]):
        with pytest.raises(ToolFailed, match="damaged"):
            await read_body(Pieces(data), "gzip")


async def test_a_bomb_is_stopped_early() -> None:
    bomb = Pieces(gzip.compress(bytes(16 * MAX_BYTES), compresslevel=1), 65536)
    with pytest.raises(ToolFailed, match="larger than"):
        await read_body(bomb, "gzip")
    assert bomb.given <= 2 * 65536


async def test_a_long_answer_is_cut() -> None:
    body = await read_body(Pieces(b"x" * (MAX_WIRE_BYTES + 10), 65536), "")
    assert (len(body.data), body.is_cut) == (MAX_WIRE_BYTES, True)
    assert text_of_body(body, "text/plain").endswith(f"(only the first {MAX_WIRE_BYTES} bytes were read)")
    whole = await read_body(Pieces(b"x" * MAX_WIRE_BYTES, 65536), "")
    assert not whole.is_cut


@each(("kind", "data", "text"), [
    ("text/plain", "é中".encode(), "é中"), ("", "é中".encode(), "é中"),
    ("text/plain; charset=latin-1", "é“".encode("cp1252"), "é“"),
    ("text/plain; charset=GB2312", "朱镕基".encode("gbk"), "朱镕基"),
    ("text/plain; charset=utf-16", "é".encode("utf-16"), "é"),
    ("text/html; charset=big5", "房間裏有恒溫器".encode("big5hkscs"), "房間裏有恒溫器"),
    ("text/html; charset=Shift_JIS", "①番の㈱".encode("cp932"), "①番の㈱"),
    ("text/html; charset=euc-kr", "똠방각하".encode("cp949"), "똠방각하"),
    ("text/xml", '<?xml version="1.0" encoding="gb2312"?><a>中</a>'.encode("gbk"),
     '<?xml version="1.0" encoding="gb2312"?><a>中</a>'),
    ("text/plain; charset=ascii", b"\xef\xbb\xbfmark", "mark"),
    ("text/html", '<meta charset="gbk"><p>中'.encode("gbk"), "中"),
    ("text/html; charset=utf-8", b"<p>a</p><p>b", "a\n\nb"), ("application/json", b'{"a": "<p>"}', '{"a": "<p>"}'),
    ("application/ld+json; charset=utf-8", b"{}", "{}"), ("", b"<!doctype html><p>x", "x"),
])  # fmt: skip
def test_text_in_its_charset(kind: str, data: bytes, text: str) -> None:
    assert text_of_body(Body(data, is_cut=False), kind) == text


@each(("kind", "data"), [
    ("image/png", b"x"), ("application/octet-stream", b"x"), ("application/pdf", b"x"), ("text/plain", b"a\0b"),
    ("text/plain", b"\xff\xfa"), ("text/plain; charset=klingon", b"x"), ("text/plain; charset=punycode", b"x"),
    ("text/plain; charset=unicode_escape", b"x"), ("text/plain; charset=hex", b"61"),
])  # fmt: skip
def test_what_is_no_text_is_refused(kind: str, data: bytes) -> None:
    with pytest.raises(ToolFailed, match="not text"):
        text_of_body(Body(data, is_cut=False), kind)


def test_a_cut_inside_a_character_is_no_fault() -> None:
    assert text_of_body(Body("é".encode()[:1], is_cut=True), "text/plain").startswith("\n(only")


def test_what_a_reader_sees() -> None:
    page = """<!DOCTYPE html><html><head><title>Town &amp; bridge</title><style>p{color:red}</style>
    <script>if (a < b) { document.write("<p>no</p>") }</script></head><body><!-- <p>hidden</p> -->
    <h1>The bridge</h1><p>It opened in <a href="/1932">1932</a>,<br>in May.</p>
    <table><tr><td>length</td><td>310&nbsp;m</td></tr></table><svg><text>no</text></svg><p>1 &lt; 2 < 3</p>"""
    seen = "Town & bridge\n\nThe bridge\n\nIt opened in 1932,\nin May.\n\nlength | 310 m\n\n1 < 2 < 3"
    assert text_of_page(page) == seen


@cases("tools/page")
def test_odd_pages(html: str, text: str) -> None:
    assert text_of_page(html) == text


@pytest.mark.parametrize("piece", [
    "<a ", "<!--", "<!", "<![", "</", "<a b='", "&#", "&", "<", "<script>", "<script></", "<?", "<td", "\n\n ",
    "<td>|",
])  # fmt: skip
def test_hostile_pages_take_linear_time(piece: str) -> None:
    page = piece * (400_000 // len(piece))
    before = time.process_time()
    text_of_page(page)
    assert time.process_time() - before < 1


@given(st.text(alphabet="<>/!-&#;apscrit \n'\"", max_size=80))
def test_it_never_raises(html: str) -> None:
    assert isinstance(text_of_page(html), str)
