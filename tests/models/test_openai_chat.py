import asyncio
import gzip
import socket
from dataclasses import replace

import orjson
import pytest
from conversations import request
from fake_endpoint import (
    DONE,
    STREAM_HEAD,
    FakeEndpoint,
    Json,
    Reply,
    answer,
    chunked,
    completion,
    endpoint,
    event,
    refusal,
    said,
    stream,
)

from surefoot.models.http_model import HttpModel
from surefoot.models.openai_chat import OpenAIChat
from surefoot.models.retry import Retried
from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable, TraitRefused
from surefoot.types.messages import (
    ModelMessage,
    ModelRequest,
    ModelSettings,
    ModelSignal,
    NativeCall,
    Reset,
    TextDelta,
    Usage,
)

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret-0123456789"
ASK = request("question")
STREAM = replace(ASK, stream=True)
HELLO = (event({"role": "assistant", "content": ""}), event({"content": "hé"}), event({"content": "llo"}))
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}
WHOLE = b"".join((*HELLO, event({}, "stop"), event(usage=USAGE), DONE))


async def send(fake: FakeEndpoint, asked: ModelRequest = ASK, shown: list[ModelSignal] | None = None) -> ModelMessage:
    model = HttpModel(
        OpenAIChat, "openai:m", "m", fake.base_url, key=KEY, key_variable="OPENAI_API_KEY", now=lambda: 0.0
    )
    try:
        return await model.send(asked, None if shown is None else shown.append)
    finally:
        await model.aclose()


async def error_from(*script: Reply, asked: ModelRequest = ASK) -> ModelError:
    async with endpoint(*script) as fake:
        with pytest.raises(ModelError) as caught:
            await send(fake, asked)
    error = caught.value
    chain: BaseException | None = error
    while chain is not None:
        assert KEY not in f"{chain!s} {chain!r}"
        chain = chain.__cause__ or chain.__context__
    return error


async def test_a_reply_whole() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    shown: list[ModelSignal] = []
    async with endpoint(said("hi", "tool_calls", tool_calls=[call], reasoning_content="hm")) as fake:
        reply = await send(fake, shown=shown)
    assert reply == ModelMessage(
        "assistant",
        "hi",
        (NativeCall("c1", "f", '{"a":1}'),),
        reasoning="hm",
        finish_reason="tool_calls",
        usage=Usage(10, 5),
        model="m-2026",
        id="chatcmpl-1",
    )
    assert TextDelta("hi") in shown
    assert "POST /v1/chat/completions" in fake.headers[0]
    assert f"Authorization: Bearer {KEY}" in fake.headers[0]
    assert fake.bodies[0]["temperature"] == 0


@pytest.mark.parametrize(
    ("content", "finish", "message", "expected"),
    [
        (None, "stop", {}, ("", "stop", ())),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "length", {}, ("ab", "length", ())),
        ("", "function_call", {"function_call": {"name": "f", "arguments": "{}"}},
         ("", "tool_calls", (NativeCall("", "f", "{}"),))),
        ("", "stop", {"tool_calls": [{"id": 3, "function": {"name": "f", "arguments": {"a": 1}}}]},
         ("", "stop", (NativeCall("", "f", {"a": 1}),))),
        ("", "tool_calls", {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": ""}}]},
         ("", "tool_calls", (NativeCall("c", "f", ""),))),
        ("x", "content_filter", {}, ("x", "content_filter", ())),
        ("x", "whatever", {}, ("x", "unknown", ())),
    ],
)  # fmt: skip
async def test_the_forms_that_servers_use(
    content: object, finish: str, message: Json, expected: tuple[object, ...]
) -> None:
    async with endpoint(said(content, finish, **message)) as fake:
        reply = await send(fake)
    assert (reply.content, reply.finish_reason, reply.calls) == expected


async def test_usage_and_price() -> None:
    told = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}, "cost": 0.5}
    async with endpoint(
        answer({**completion("x"), "usage": told}), answer({**completion("12345678"), "usage": None})
    ) as fake:
        assert (await send(fake)).usage == Usage(9, 4, 8, 0, 0.5)
        priced = replace(ASK, settings=ModelSettings(price_in=1.0, price_out=1.0))
        usage = (await send(fake, priced)).usage
    assert (usage.estimated, usage.output_tokens, usage.input_tokens > 20) == (True, 2, True)
    assert usage.cost_usd == usage.total_tokens / 1e6


async def test_a_refusal_by_the_model() -> None:
    assert (await error_from(said(None, refusal="I cannot help with that."))).kind == "refused"


@pytest.mark.parametrize(
    ("reply", "cls", "kind"),
    [
        (refusal(401, f"Incorrect API key provided: {KEY}"), ModelRefused, "auth"),
        (refusal(404, "no such model"), ModelRefused, "bad_request"),
        (refusal(400, "too long", code="context_length_exceeded"), ModelRefused, "context_overflow"),
        (refusal(400, "flagged", code="content_filter"), ModelRefused, "refused"),
        (refusal(500, "oops"), ModelUnreachable, "unavailable"),
        (answer(b"<html><h1>Bad Gateway</h1>", 502, kind="text/html"), ModelUnreachable, "unavailable"),
        (answer(b'{"choices": [', 200), ModelUnreachable, "unavailable"),
        (answer(b"hello", 200), ModelUnreachable, "unavailable"),
        (answer({"choices": []}), ModelUnreachable, "unavailable"),
        (answer({"error": {"message": "busy", "code": 503}}), ModelUnreachable, "unavailable"),
        (answer(b"", 302, "Location: http://elsewhere/\r\n"), ModelRefused, "bad_request"),
        (Reply((), "close"), ModelUnreachable, "unavailable"),
        (Reply((b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",), "close"), ModelUnreachable, "unavailable"),
        (Reply((b"nonsense\r\n\r\n",), "close"), ModelUnreachable, "unavailable"),
    ],
)
async def test_errors(reply: Reply, cls: type[ModelError], kind: str) -> None:
    again = (reply,) if reply.pieces else (reply, reply)  # a connection closed before an answer may be tried again
    for asked in (ASK, STREAM):
        error = await error_from(*again, asked=asked)
        assert (type(error), error.kind) == (cls, kind), error


async def test_retry_after_reaches_the_error() -> None:
    date = "Thu, 01 Jan 1970 00:00:42 GMT"
    for header, expected in (("Retry-After: 7", 7.0), (f"Retry-After: {date}", 42.0), ("retry-after-ms: 250", 0.25)):
        error = await error_from(refusal(429, "slow down", headers=f"{header}\r\n"))
        assert (error.kind, error.retry_after_s) == ("rate_limited", expected)


async def test_a_server_that_is_not_there() -> None:
    fake = FakeEndpoint(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelUnreachable, match="is the server running"):
        await send(fake)


# streams


@pytest.mark.parametrize("crlf", [False, True])
async def test_a_stream_cut_at_every_byte(crlf: bool) -> None:
    raw = WHOLE.replace(b"\n", b"\r\n") if crlf else WHOLE
    cuts = range(1, len(raw))
    async with endpoint(*(stream((raw[:cut], raw[cut:])) for cut in cuts)) as fake:
        model = HttpModel(OpenAIChat, "m", "m", fake.base_url)
        for _ in cuts:
            shown: list[ModelSignal] = []
            reply = await model.send(STREAM, shown.append)
            assert (reply.content, reply.usage, reply.finish_reason) == ("héllo", Usage(3, 2), "stop")
            assert shown == [TextDelta("hé"), TextDelta("llo")]
        await model.aclose()
    assert fake.connections == 1  # every stream was read to its end


async def test_a_server_that_ignores_stream() -> None:
    shown: list[ModelSignal] = []
    async with endpoint(said("hi")) as fake:
        assert (await send(fake, STREAM, shown)).content == "hi"
    assert shown == [TextDelta("hi")]


async def test_a_server_that_holds_the_connection_after_the_end() -> None:
    async with endpoint(stream((WHOLE,), end=False, then="hold")) as fake:
        assert (await send(fake, STREAM)).content == "héllo"


@pytest.mark.parametrize(
    "reply",
    [
        stream(HELLO),
        stream(HELLO, end=False, then="close"),
        stream((*HELLO, b'data: {"choices": [{"del'), end=True),
        stream(()),
        stream((*HELLO, b'data: {"error": {"message": "overloaded", "code": 529}}\n\n')),
        stream((*HELLO, event({"content": ""}, "error", error={"message": "x", "code": 502}))),
    ],
    ids=["no finish", "torn off", "torn inside", "empty", "error", "error beside a choice"],
)
async def test_a_stream_that_breaks_is_asked_for_again(reply: Reply) -> None:
    assert isinstance(await error_from(reply, asked=STREAM), ModelUnreachable)
    shown: list[ModelSignal] = []

    async def no_wait(seconds: float) -> None:
        assert seconds < 1

    async with endpoint(reply, stream((WHOLE,))) as fake:
        model = Retried(HttpModel(OpenAIChat, "m", "m", fake.base_url), sleep=no_wait)
        message = await model.send(STREAM, shown.append)
        await model.aclose()
    assert (message.content, message.attempts) == ("héllo", 2)
    last = max((at for at, signal in enumerate(shown) if isinstance(signal, Reset)), default=-1)
    assert shown[last + 1 :] == [TextDelta("hé"), TextDelta("llo")]


# time limits, cancellation, connections


@pytest.mark.parametrize(
    ("reply", "asked", "words"),
    [
        (Reply((), "hold"), replace(STREAM, settings=ModelSettings(first_token_timeout_s=0.03)), "first token"),
        (
            Reply((STREAM_HEAD, chunked(HELLO[1])), "hold"),
            replace(STREAM, settings=ModelSettings(between_tokens_timeout_s=0.03)),
            "no further token",
        ),
        (Reply((), "hold"), replace(ASK, settings=ModelSettings(request_timeout_s=0.03)), "no whole reply"),
        (Reply((STREAM_HEAD,), "hold"), replace(STREAM, settings=ModelSettings(request_timeout_s=0.03)), "whole reply"),
        (Reply((), "hold"), replace(ASK, deadline_s=0.03), "run's time"),
        (Reply((), "hold"), replace(STREAM, deadline_s=0.03), "run's time"),
    ],
    ids=["first token", "between tokens", "whole", "whole stream", "deadline", "deadline of a stream"],
)
async def test_every_wait_has_a_limit(reply: Reply, asked: ModelRequest, words: str) -> None:
    error = await error_from(reply, asked=asked)
    assert isinstance(error, ModelTimeout)
    assert words in str(error)


async def test_connecting_has_a_limit() -> None:
    async with endpoint() as fake:  # it accepts, and never answers the TLS greeting
        fake.base_url = fake.base_url.replace("http:", "https:")
        with pytest.raises(ModelTimeout, match="no connection"):
            await send(fake, replace(ASK, settings=ModelSettings(connect_timeout_s=0.03)))


async def test_no_time_left_no_request() -> None:
    async with endpoint() as fake:
        with pytest.raises(ModelTimeout):
            await send(fake, replace(ASK, deadline_s=0.0))
    assert fake.connections == 0


@pytest.mark.parametrize("asked", [ASK, STREAM], ids=["whole", "stream"])
async def test_cancelling_closes_the_connection(asked: ModelRequest) -> None:
    async with endpoint(Reply((STREAM_HEAD, chunked(HELLO[1])), "hold")) as fake:
        model = HttpModel(OpenAIChat, "m", "m", fake.base_url)
        task = asyncio.ensure_future(model.send(asked))
        await asyncio.wait_for(fake.asked.wait(), 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(fake.hung_up.wait(), 1)
        await model.aclose()


async def test_connections_are_kept_and_one_that_was_reset_is_replaced() -> None:
    closing = replace(said("b"), then="close")
    async with endpoint(said("a"), closing, said("c"), said("d")) as fake:
        model = Retried(HttpModel(OpenAIChat, "m", "m", fake.base_url), random01=lambda: 0.0)
        replies = [(await model.send(ASK)).content for _ in range(4)]
        await model.aclose()
    assert replies == ["a", "b", "c", "d"]
    assert fake.connections == 2


async def test_usable_again_after_closing() -> None:
    async with endpoint(said("a"), said("b")) as fake:
        model = HttpModel(OpenAIChat, "m", "m", fake.base_url)
        await model.send(ASK)
        await model.aclose()
        assert (await model.send(ASK)).content == "b"
        await model.aclose()


async def test_large_bodies_go_out_whole() -> None:
    async with endpoint(said("a")) as fake:
        await send(fake, ModelRequest("s" * 2_000_000, ASK.messages))
    assert len(orjson.dumps(fake.bodies[0])) > 2_000_000


# traits: an endpoint that refuses each part in turn ends in a working request

PARTS = ("tools", "temperature", "max_tokens", "max_completion_tokens", "seed", "stream_options")


async def test_an_endpoint_that_refuses_each_part_in_turn() -> None:
    def decide(body: Json) -> Reply:
        for part in PARTS:
            if part in body:
                return refusal(400, f"Unsupported parameter: '{part}'", code="unsupported_parameter", param=part)
        return stream((WHOLE,))

    async with endpoint() as fake:
        fake.decide = decide
        asked, learnt = STREAM, list[tuple[str, str]]()
        while True:
            try:
                reply = await send(fake, asked)
                break
            except TraitRefused as error:
                learnt.append((error.trait, error.value))
                asked = replace(asked, traits={**asked.traits, error.trait: error.value})
    assert reply.content == "héllo"
    assert learnt == [
        ("native_tools", "no"),
        ("temperature", "no"),
        ("max_tokens_field", "max_completion_tokens"),
        ("max_tokens_field", "no"),
        ("seed", "no"),
        ("stream_usage", "no"),
    ]


# keys, and loops


def test_the_key_is_not_in_the_representation() -> None:
    assert KEY not in repr(HttpModel(OpenAIChat, "m", "m", "http://h/v1", key=KEY))


def test_a_model_outlives_its_event_loop() -> None:
    """The session of the first loop is never closed by its owner; the second loop gets one of its own."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    model = HttpModel(OpenAIChat, "m", "m", f"http://127.0.0.1:{port}/v1")

    async def once(closes: bool) -> str:
        async with endpoint(replace(said("a"), then="close"), port=port):
            reply = await model.send(ASK)
            if closes:
                await model.aclose()
            return reply.content

    assert [asyncio.run(once(closes)) for closes in (False, True)] == ["a", "a"]


@pytest.mark.parametrize("asked", [ASK, STREAM], ids=["whole", "stream"])
async def test_a_reply_without_measure_is_not_read_to_its_end(asked: ModelRequest) -> None:
    packed = gzip.compress(b" " * (64 * 2**20 + 1), 1)
    error = await error_from(answer(packed, headers="Content-Encoding: gzip\r\n"), asked=asked)
    assert isinstance(error, ModelRefused)
    assert "more than 64 MiB" in str(error)


async def test_an_answer_that_is_no_json_shows_no_part_of_a_key() -> None:
    error = await error_from(answer(b"." * 112 + KEY.encode()))
    assert "no whole JSON reply" in str(error)
    assert "sk-" not in str(error)
