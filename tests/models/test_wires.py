"""What holds for every wire, against a server that speaks it."""

import asyncio
import gzip
import re
from dataclasses import replace

import orjson
import pytest
from conversations import request
from fake_endpoint import STREAM_HEAD, FakeEndpoint, Json, Reply, answer, chunked, endpoint, stream
from wires import WIRES, Spoken, named

from surefoot.models.http_model import HttpModel
from surefoot.models.wrapper import Retried
from surefoot.types import messages
from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable
from surefoot.types.messages import ModelMessage, ModelRequest, ModelSettings, NativeCall

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("spoken", [pytest.param(spoken, id=name) for name, spoken in WIRES.items()]),
]
KEY = "sk-very-secret-0123456789"
ASK = request("question")
STREAM = replace(ASK, stream=True)
SHOWN = [messages.ReasoningDelta("hm"), messages.TextDelta("héllo"), messages.CallPreview(0, "f")]
SHOWN_IN_PIECES = [SHOWN[0], messages.TextDelta("hé"), messages.TextDelta("llo"), SHOWN[-1]]
PACKED = gzip.compress(b" " * (64 * 2**20 + 1), 1)


def model_of(spoken: Spoken, fake: FakeEndpoint) -> HttpModel:
    return HttpModel(spoken.wire, "p:m", "m", fake.base_url, key=KEY, key_variable="THE_KEY", now=lambda: 0.0)


async def send(
    spoken: Spoken, fake: FakeEndpoint, asked: ModelRequest, shown: list[messages.ModelSignal] | None = None
) -> ModelMessage:
    model = model_of(spoken, fake)
    try:
        return await model.send(asked, None if shown is None else shown.append)
    finally:
        await model.aclose()


async def error_from(spoken: Spoken, *script: Reply, asked: ModelRequest = ASK) -> ModelError:
    async with endpoint(*script) as fake:
        with pytest.raises(ModelError) as caught:
            await send(spoken, fake, asked)
    error = caught.value
    chain: BaseException | None = error
    while chain is not None:
        assert KEY not in f"{chain!s} {chain!r}"
        chain = chain.__cause__ or chain.__context__
    return error


def check(reply: ModelMessage) -> None:
    call = reply.calls[0]
    assert (reply.content, reply.reasoning, reply.finish_reason) == ("héllo", "hm", "tool_calls")
    assert (call.id, call.name) == ("c1", "f")
    assert call.arguments in ('{"a":1}', {"a": 1})
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.model) == (10, 5, "m-2026")


@pytest.mark.parametrize("asked", [ASK, STREAM], ids=["whole", "a stream that the server ignores"])
async def test_a_whole_reply(spoken: Spoken, asked: ModelRequest) -> None:
    shown: list[messages.ModelSignal] = []
    async with endpoint(answer(spoken.whole)) as fake:
        check(await send(spoken, fake, asked, shown))
    assert shown == SHOWN
    assert f"POST {spoken.path} " in fake.headers[0]
    assert f"{spoken.key_header}{KEY}\r\n".lower() in fake.headers[0].lower()
    assert KEY not in str(fake.bodies)


async def test_a_stream_that_is_cut_anywhere(spoken: Spoken) -> None:
    """At each seventh byte, and inside of each character that has several; test_http cuts at every one."""
    raw = spoken.stream
    cuts = [at for at in range(1, len(raw)) if at % 7 == 0 or raw[at] & 0xC0 == 0x80]
    async with endpoint(*(stream((raw[:cut], raw[cut:])) for cut in cuts)) as fake:
        model = model_of(spoken, fake)
        replies: list[ModelMessage] = []
        for _ in cuts:
            shown: list[messages.ModelSignal] = []
            replies.append(await model.send(STREAM, shown.append))
            assert shown == SHOWN_IN_PIECES
        await model.aclose()
    assert all(reply == replies[0] for reply in replies)
    check(replies[0])
    assert fake.connections == 1  # every stream was read to its end
    assert fake.bodies[0]["stream"] is True


async def test_whole_and_streamed_are_the_same_reply(spoken: Spoken) -> None:
    async with endpoint(answer(spoken.whole), stream((spoken.stream,))) as fake:
        whole, streamed = await send(spoken, fake, ASK), await send(spoken, fake, STREAM)
    calls = (NativeCall("c1", "f", '{"a":1}'),)
    assert replace(whole, calls=calls, id="") == replace(streamed, calls=calls, id="")


@pytest.mark.parametrize("how", ["no end", "torn off", "torn inside", "empty", "error"])
async def test_a_stream_that_breaks_is_asked_for_again(spoken: Spoken, how: str) -> None:
    broken = {
        "no end": stream((spoken.start,)), "torn off": stream((spoken.start,), end=False, then="close"),
        "torn inside": stream((spoken.start, spoken.rest[:31])), "empty": stream(()),
        "error": stream((spoken.start, spoken.error_event)),
    }[how]  # fmt: skip
    assert isinstance(await error_from(spoken, broken, asked=STREAM), ModelUnreachable)
    shown: list[messages.ModelSignal] = []

    async def no_wait(seconds: float) -> None:
        assert seconds < 1

    async with endpoint(broken, stream((spoken.stream,))) as fake:
        model = Retried(model_of(spoken, fake), sleep=no_wait)
        message = await model.send(STREAM, shown.append)
        await model.aclose()
    assert (message.content, message.attempts) == ("héllo", 2)
    last = max((at for at, signal in enumerate(shown) if isinstance(signal, messages.Reset)), default=-1)
    assert shown[last + 1 :] == SHOWN_IN_PIECES


def complaint(kind: str, message: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (answer(complaint("authentication_error", f"invalid x-api-key {KEY}"), 401), "auth"),
        (answer(complaint("not_found_error", "model: m"), 404), "bad_request"),
        (answer(complaint("invalid_request_error", "prompt is too long: 8 > 2"), 400), "context_overflow"),
        (answer(complaint("overloaded_error", "Overloaded"), 529), "unavailable"),
        (answer(complaint("overloaded_error", "Overloaded")), "unavailable"),
        (answer(complaint("rate_limit_error", "slow down")), "rate_limited"),
        (answer(b"<html><h1>Bad Gateway</h1>", 502, kind="text/html"), "unavailable"),
        (answer(b'{"content": ['), "unavailable"),
        (answer(b"hello"), "unavailable"),
        (answer(b"{}"), "unavailable"),
        (answer({"id": "x"}), "unavailable"),
        (answer(b"", 302, "Location: http://elsewhere/\r\n"), "bad_request"),
        (Reply((), "close"), "unavailable"),
        (Reply((b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",), "close"), "unavailable"),
        (Reply((b"nonsense\r\n\r\n",), "close"), "unavailable"),
    ],
)
async def test_errors(spoken: Spoken, reply: Reply, kind: str) -> None:
    again = (reply,) if reply.pieces else (reply, reply)  # a connection closed before an answer may be tried again
    for asked in (ASK, STREAM):
        error = await error_from(spoken, *again, asked=asked)
        passes = kind in ("unavailable", "rate_limited")
        assert (type(error), error.kind) == (ModelUnreachable if passes else ModelRefused, kind), error


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("Retry-After: 7", 7.0), ("Retry-After: Thu, 01 Jan 1970 00:00:42 GMT", 42.0), ("retry-after-ms: 250", 0.25)],
    ids=["seconds", "date", "ms"],
)
async def test_retry_after_reaches_the_error(spoken: Spoken, header: str, seconds: float) -> None:
    busy = answer(complaint("rate_limit_error", "slow down"), 429, f"{header}\r\n")
    error = await error_from(spoken, busy)
    assert (error.kind, error.retry_after_s) == ("rate_limited", seconds)


@pytest.mark.parametrize("asked", [ASK, STREAM], ids=["whole", "stream"])
async def test_cancelling_closes_the_connection(spoken: Spoken, asked: ModelRequest) -> None:
    async with endpoint(Reply((STREAM_HEAD, chunked(spoken.start)), "hold")) as fake:
        model = model_of(spoken, fake)
        task = asyncio.ensure_future(model.send(asked))
        await asyncio.wait_for(fake.asked.wait(), 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(fake.hung_up.wait(), 1)
        await model.aclose()


async def test_connections_are_kept_and_one_that_was_reset_is_replaced(spoken: Spoken) -> None:
    closing = replace(answer(spoken.whole), then="close")
    async with endpoint(answer(spoken.whole), closing, answer(spoken.whole)) as fake:
        model = Retried(model_of(spoken, fake), random01=lambda: 0.0)
        for _ in range(3):
            check(await model.send(ASK))
        await model.aclose()
    assert fake.connections == 2


@pytest.mark.parametrize(
    ("begins", "asked", "words"),
    [
        (None, replace(STREAM, settings=ModelSettings(first_token_timeout_s=0.03)), "first token"),
        (True, replace(STREAM, settings=ModelSettings(between_tokens_timeout_s=0.03)), "no further token"),
        (None, replace(ASK, settings=ModelSettings(request_timeout_s=0.03)), "no whole reply"),
        (False, replace(STREAM, settings=ModelSettings(request_timeout_s=0.03)), "whole reply"),
        (None, replace(ASK, deadline_s=0.03), "run's time"),
        (None, replace(STREAM, deadline_s=0.03), "run's time"),
    ],
    ids=["first token", "between tokens", "whole", "whole stream", "deadline", "deadline of a stream"],
)
async def test_every_wait_has_a_limit(spoken: Spoken, begins: bool | None, asked: ModelRequest, words: str) -> None:
    """`begins`: the answer does, with a piece of the reply or none."""
    pieces = {None: (), False: (STREAM_HEAD,), True: (STREAM_HEAD, chunked(spoken.start))}[begins]
    error = await error_from(spoken, Reply(pieces, "hold"), asked=asked)
    assert isinstance(error, ModelTimeout)
    assert words in str(error)
    assert error.stalled is bool(begins)


async def test_connecting_has_a_limit(spoken: Spoken) -> None:
    async with endpoint() as fake:  # it accepts, and never answers the TLS greeting
        fake.base_url = fake.base_url.replace("http:", "https:")
        with pytest.raises(ModelTimeout, match="no connection"):
            await send(spoken, fake, replace(ASK, settings=ModelSettings(connect_timeout_s=0.03)))


async def test_no_time_left_no_request_and_a_server_that_is_not_there(spoken: Spoken) -> None:
    absent = FakeEndpoint(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelTimeout):
        await send(spoken, absent, replace(ASK, deadline_s=0.0))
    with pytest.raises(ModelUnreachable, match="is the server running"):
        await send(spoken, absent, ASK)


async def test_a_server_that_holds_the_connection_after_the_end_and_a_model_that_was_closed(spoken: Spoken) -> None:
    async with endpoint(stream((spoken.stream,), end=False, then="hold"), answer(spoken.whole)) as fake:
        model = model_of(spoken, fake)
        for asked in (STREAM, ASK):
            check(await model.send(asked))
            await model.aclose()


async def test_large_bodies_go_out_whole(spoken: Spoken) -> None:
    async with endpoint(answer(spoken.whole)) as fake:
        await send(spoken, fake, ModelRequest("s" * 2_000_000, ASK.messages))
    assert len(orjson.dumps(fake.bodies[0])) > 2_000_000


async def test_a_reply_without_measure_is_not_read_to_its_end(spoken: Spoken) -> None:
    packed = answer(PACKED, headers="Content-Encoding: gzip\r\n")
    endless = Reply((STREAM_HEAD, chunked(spoken.start), *[chunked(b"x" * 2**20)] * 65), "hold")
    for reply, asked in ((packed, ASK), (packed, STREAM), (endless, STREAM)):
        error = await error_from(spoken, reply, asked=asked)
        assert isinstance(error, ModelRefused)
        assert "more than 64 MiB" in str(error)


async def test_an_answer_that_is_no_json_shows_no_part_of_a_key(spoken: Spoken) -> None:
    error = await error_from(spoken, answer(b"." * 112 + KEY.encode()))
    assert "no whole JSON reply" in str(error)
    assert "sk-" not in str(error)


@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        ("héllo".encode(), "héllo"), (b"h\xe9llo", "h\ufffdllo"), (b"h\\ud83dllo", "h\ufffdllo"),
        (b"h\\udc00\\ud83d\\ude00llo", "h\ufffd😀llo"), (b"h\\\\ud83dllo", "h\\ud83dllo"),
        (b"h\xff\\ud800llo", "h\ufffd\ufffdllo"),
    ],
    ids=["valid", "bytes", "half", "half and pair", "escaped escape", "both"],
)  # fmt: skip
async def test_text_that_is_no_unicode_is_mended_and_marked(spoken: Spoken, broken: bytes, mended: str) -> None:
    whole = orjson.dumps(spoken.whole).replace("héllo".encode(), broken)
    joined = spoken.stream.replace(b'"h\xc3\xa9"', b'"%b"' % broken.removesuffix(b"llo"))
    joined = joined.replace("héllo".encode(), broken)
    async with endpoint(answer(whole), stream((joined,))) as fake:
        for asked in (ASK, STREAM):
            reply = await send(spoken, fake, asked)
            assert (reply.content, reply.mended) == (mended, "\ufffd" in mended)
            assert (reply.calls[0].name, reply.finish_reason) == ("f", "tool_calls")


async def test_arguments_that_are_no_unicode_are_mended_and_marked(spoken: Spoken) -> None:
    whole = (
        orjson.dumps(spoken.whole)
        .replace(rb"{\"a\":1}", rb"{\"a\":\"\\ud83d\"}")
        .replace(b'"input":{"a":1}', rb'"input":{"a":"\ud83d"}')
    )
    async with endpoint(answer(whole)) as fake:
        reply = await send(spoken, fake, ASK)
    assert reply.mended
    assert reply.calls[0].arguments in ({"a": "\ufffd"}, r'{"a":"\ufffd"}')


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (answer({"error": {"message": "busy"}}, 503), "HTTP 503"), (answer(b"no such page", 404), "HTTP 404"),
        (answer(b"hello"), "HTTP 200"), (stream((b"data: {}\n\n",)), "HTTP 200"),
        (stream((b"data: {\n\n",)), "HTTP 200"), (Reply((STREAM_HEAD, chunked(b": hi\n\n")), "close"), "HTTP 200"),
        (Reply((b"nonsense\r\n\r\n",), "close"), "no answer"),
    ],
)  # fmt: skip
async def test_an_error_names_endpoint_status_attempts_and_time(spoken: Spoken, reply: Reply, told: str) -> None:
    async with endpoint(reply) as fake:
        model = Retried(model_of(spoken, fake))
        with pytest.raises(ModelError) as caught:
            await model.send(replace(STREAM, settings=ModelSettings(attempts=1)))
        await model.aclose()
    error = caught.value
    assert f"m at {fake.base_url}" in str(error) or f"{fake.base_url} does not know 'm'" in str(error)
    assert told in str(error)
    assert re.search(r"1 attempt in \d\.\d s\)$", str(error))
    assert error.endpoint == f"m at {fake.base_url}"
    assert str(error).count(fake.base_url) == 1


async def test_nothing_of_a_key_is_shown(spoken: Spoken) -> None:
    model = HttpModel(spoken.wire, "p:m", "m", "http://h/v1", key=KEY)
    assert KEY not in f"{model!r} {model.identity} {vars(model)!r}"


async def test_unknown_events_are_passed_over(spoken: Spoken) -> None:
    strange = named("response.sparkle", delta="x") + b": comment\n\n" + b"data: []\n\n"
    async with endpoint(stream((strange, spoken.stream, strange))) as fake:
        check(await send(spoken, fake, STREAM))
