"""HTML as text, in linear time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.tools.page import text_of_page


def test_what_a_reader_sees() -> None:
    page = """<!DOCTYPE html><html><head><title>Town &amp; bridge</title><style>p{color:red}</style>
    <script>if (a < b) { document.write("<p>no</p>") }</script></head><body><!-- <p>hidden</p> -->
    <h1>The bridge</h1><p>It opened in <a href="/1932">1932</a>,<br>in May.</p>
    <table><tr><td>length</td><td>310&nbsp;m</td></tr></table><svg><text>no</text></svg><p>1 &lt; 2 < 3</p>"""
    assert text_of_page(page).split("\n") == [
        "Town & bridge",
        "",
        "The bridge",
        "",
        "It opened in 1932,",
        "in May.",
        "",
        "length | 310 m",
        "",
        "1 < 2 < 3",
    ]


@pytest.mark.parametrize(("html", "text"), [
    ("plain", "plain"), ("a <b>bold</b> word", "a bold word"), ("<script>never closed", ""),
    ("<SCRIPT>x</SCRIPT >after", "after"), ("<script>x</scripty></script>after", "after"), ("<!-- never closed", ""),
    ("<a never closed", ""), ("&#" + "9" * 5000 + ";x", "\ufffdx"), ("&#x41;&copy;", "A©"), ("<p>é 中</p>", "é 中"),
    ("", ""),
])  # fmt: skip
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
