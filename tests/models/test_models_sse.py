import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.models.sse import EventStream

STREAM = (
    '\ufeff: a comment\n\ndata: {"a": "é分"}\n\ndata:no blank\r\n\r\nevent: x\nid: 1\ndata: two\ndata: lines\n\n'
    "data: cr\r\rretry: 3\n\n\n\ndata: [DONE]\n\n"
).encode()
EVENTS = [b'{"a": "\xc3\xa9\xe5\x88\x86"}', b"no blank", b"two\nlines", b"cr", b"[DONE]"]


def read(chunks: list[bytes]) -> list[bytes]:
    stream = EventStream()
    return [data for chunk in chunks for data in stream.feed(chunk)] + stream.close()


def test_reads_every_form() -> None:
    assert read([STREAM]) == EVENTS


@pytest.mark.parametrize("at", range(len(STREAM) + 1))
def test_a_cut_at_any_byte_changes_nothing(at: int) -> None:
    assert read([STREAM[:at], STREAM[at:]]) == EVENTS


def test_byte_by_byte() -> None:
    assert read([STREAM[at : at + 1] for at in range(len(STREAM))]) == EVENTS


@given(st.text("d:at \n\r{}xé", max_size=60), st.lists(st.integers(0, 80), max_size=8))
def test_any_chunking_gives_the_same_events(text: str, cuts: list[int]) -> None:
    raw = text.encode()
    edges = [0, *sorted(cut for cut in cuts if cut < len(raw)), len(raw)]
    assert read([raw[start:end] for start, end in pairwise(edges)]) == read([raw])


def test_a_last_event_without_its_empty_line_counts() -> None:
    assert read([b"data: x\n\ndata: y"]) == [b"x", b"y"]
    assert read([b"data: x\n\n: bye\n"]) == [b"x"]


def test_a_line_without_an_end_takes_time_in_proportion_to_its_length() -> None:
    piece = b"x" * 1024
    stream = EventStream()
    started = time.process_time()
    for _ in range(24_000):
        assert not stream.feed(piece)
    assert stream.feed(b"\n\ndata: y\n\n") == [b"y"]
    assert time.process_time() - started < 3  # it took minutes when each piece was put behind all that came before
