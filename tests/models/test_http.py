"""Server-sent events, and a model behind HTTP where its wire does not matter."""

import asyncio
import socket
import time
from dataclasses import replace
from itertools import pairwise

import pytest
from conversations import request
from fake_endpoint import DONE, Json, Reply, endpoint, event, refusal, said, stream
from hypothesis import given
from hypothesis import strategies as st

from surefoot.models.http import EventStream
from surefoot.models.http_model import HttpModel
from surefoot.models.openai_chat import OpenAIChat
from surefoot.types.errors import ModelUnreachable, TraitRefused
from surefoot.types.messages import ModelSettings

ASK = replace(request("question"), stream=True)

RAW = (
    '\ufeff: a comment\n\ndata: {"a": "é分"}\n\ndata:no blank\r\n\r\nevent: x\nid: 1\ndata: two\ndata: lines\n\n'
    "data: cr\r\rretry: 3\n\n\n\ndata: [DONE]\n\n"
).encode()
EVENTS = [b'{"a": "\xc3\xa9\xe5\x88\x86"}', b"no blank", b"two\nlines", b"cr", b"[DONE]"]


def read(chunks: list[bytes]) -> list[bytes]:
    stream = EventStream()
    return [data for chunk in chunks for data in stream.feed(chunk)] + stream.close()


def test_reads_every_form() -> None:
    assert read([RAW]) == EVENTS


def test_a_cut_at_any_byte_changes_nothing() -> None:
    for at in range(len(RAW) + 1):
        assert read([RAW[:at], RAW[at:]]) == EVENTS
    assert read([RAW[at : at + 1] for at in range(len(RAW))]) == EVENTS


@given(st.text("d:at \n\r{}xé", max_size=60), st.lists(st.integers(0, 80), max_size=8))
def test_any_chunking_gives_the_same_events(text: str, cuts: list[int]) -> None:
    raw = text.encode()
    edges = [0, *sorted(cut for cut in cuts if cut < len(raw)), len(raw)]
    assert read([raw[start:end] for start, end in pairwise(edges)]) == read([raw])


def test_a_last_event_without_its_empty_line_counts() -> None:
    assert read([b"data: x\n\ndata: y"]) == [b"x", b"y"]
    assert read([b"data: \n\ndata: x\n\n: bye\n"]) == [b"x"]


def test_a_line_without_an_end_takes_time_in_proportion_to_its_length() -> None:
    piece = b"x" * 1024
    stream = EventStream()
    started = time.process_time()
    for _ in range(24_000):
        assert not stream.feed(piece)
    assert stream.feed(b"\n\ndata: y\n\n") == [b"y"]
    assert time.process_time() - started < 3  # it took minutes when each piece was put behind all that came before


PARTS = ("tools", "temperature", "max_tokens", "max_completion_tokens", "seed", "stream_options")


@pytest.mark.anyio
async def test_an_endpoint_that_refuses_each_part_in_turn() -> None:
    def decide(body: Json) -> Reply:
        for part in PARTS:
            if part in body:
                return refusal(400, f"Unsupported parameter: '{part}'", code="unsupported_parameter", param=part)
        return stream((event({"content": "hi"}, "stop"),))

    async with endpoint() as fake:
        fake.decide = decide
        model = HttpModel(OpenAIChat, "m", "m", fake.base_url)
        asked, learnt = ASK, list[tuple[str, str]]()
        while True:
            try:
                reply = await model.send(asked)
                break
            except TraitRefused as error:
                learnt.append((error.trait, error.value))
                asked = replace(asked, traits={**asked.traits, error.trait: error.value})
        await model.aclose()
    assert reply.content == "hi"
    assert learnt == [
        ("native_tools", "no"), ("temperature", "no"), ("max_tokens_field", "max_completion_tokens"),
        ("max_tokens_field", "no"), ("seed", "no"), ("stream_usage", "no"),
    ]  # fmt: skip


@pytest.mark.anyio
async def test_an_error_beside_a_choice() -> None:
    broken = stream((event({"content": ""}, "error", error={"message": "x", "code": 502}),))
    async with endpoint(broken) as fake:
        model = HttpModel(OpenAIChat, "m", "m", fake.base_url)
        with pytest.raises(ModelUnreachable):
            await model.send(ASK)
        await model.aclose()


@pytest.mark.anyio
async def test_a_reply_that_is_whole_is_not_lost_to_a_connection_that_stays_open() -> None:
    """The limits are for the reply, and what comes after its end is waited for a little longer than these allow."""
    dawdling = stream((event({"content": "a"}, "stop") + DONE,), then="hold", end=False)
    async with endpoint(dawdling) as fake:
        model = HttpModel(OpenAIChat, "m", "m", fake.base_url)
        reply = await model.send(replace(ASK, settings=ModelSettings(between_tokens_timeout_s=0.05)))
        await asyncio.wait_for(fake.hung_up.wait(), 5)
        await model.aclose()
    assert reply.content == "a"


def test_a_model_outlives_its_event_loop() -> None:
    """The session of the first loop is never closed by its owner; the second loop gets one of its own."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    model = HttpModel(OpenAIChat, "m", "m", f"http://127.0.0.1:{port}/v1")

    async def once(closes: bool) -> str:
        async with endpoint(replace(said("a"), then="close"), port=port):
            reply = await model.send(replace(ASK, stream=False))
            if closes:
                await model.aclose()
            return reply.content

    assert [asyncio.run(once(closes)) for closes in (False, True)] == ["a", "a"]
