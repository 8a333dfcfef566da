import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from conversations import request
from fake_endpoint import Json, completion

from surefoot.models.json_edge import items, mapping
from surefoot.models.library import LibraryModel, aisuite_model, litellm_model, plain
from surefoot.types.errors import ConfigError, ModelError, ModelRefused, ModelTimeout, ModelUnreachable, TraitRefused
from surefoot.types.messages import CallPreview, ModelSettings, ModelSignal, NativeCall, TextDelta
from surefoot.types.ports import Model
from surefoot.types.tools import Catalogue

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret-0123456789"
ASK = request("two_calls")
CALL: Json = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


class LibraryError(Exception):
    def __init__(self, status: object, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status_code = status
        self.response = SimpleNamespace(headers=headers or {})


async def test_litellm_is_asked_for_one_try() -> None:
    asked: list[Json] = []

    async def acompletion(**fields: object) -> Json:
        asked.append(fields)
        return completion("hi", "tool_calls", tool_calls=[CALL])

    model = litellm_model("openai/m", ModelSettings(), acompletion=acompletion)
    shown: list[ModelSignal] = []
    reply = await model.send(replace(ASK, stream=True), shown.append)
    assert (model.name, reply.content, reply.calls) == (
        "litellm-lib:openai/m", "hi", (NativeCall("c1", "f", '{"a":1}'),),
    )  # fmt: skip
    assert shown == [TextDelta("hi"), CallPreview(0, "f")]
    assert {name: asked[0].get(name) for name in ("model", "num_retries", "max_retries", "stream")} == {
        "model": "openai/m", "num_retries": 0, "max_retries": 0, "stream": None,
    }  # fmt: skip
    roles = [mapping(message)["role"] for message in items(asked[0]["messages"])]
    assert roles == ["system", "user", "assistant", "tool", "tool"]


async def test_earlier_calls_are_texts_where_no_tool_may_be_declared() -> None:
    asked: list[Json] = []

    async def acompletion(**fields: object) -> Json:
        asked.append(fields)
        return completion("words")

    bare = replace(ASK, tools=Catalogue(), bare=True)
    await litellm_model("anthropic/m", ModelSettings(), acompletion=acompletion).send(bare)
    said = [mapping(one) for one in items(asked[0]["messages"])]
    assert [message["role"] for message in said] == ["system", "user", "assistant", "user", "user"]
    assert "tools" not in asked[0]
    assert not any("tool_calls" in message for message in said)


async def test_aisuite_runs_in_a_thread() -> None:
    threads: list[str] = []

    def create(**fields: object) -> SimpleNamespace:
        threads.append(threading.current_thread().name)
        message = SimpleNamespace(content=f"hi from {fields['model']}", tool_calls=None, role="assistant")
        return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")])

    reply = await aisuite_model("openai:m", ModelSettings(), create=create).send(ASK)
    assert (reply.content, reply.usage.estimated) == ("hi from openai:m", True)
    assert threads != [threading.main_thread().name]


@pytest.mark.parametrize(
    ("error", "cls", "kind"),
    [
        (LibraryError(401, f"Incorrect API key provided: {KEY}"), ModelRefused, "auth"),
        (LibraryError(400, "maximum context length is 10 tokens"), ModelRefused, "context_overflow"),
        (LibraryError(400, "model does not support parameters: ['seed']"), TraitRefused, "bad_request"),
        (LibraryError(429, "slow", {"retry-after": "7"}), ModelUnreachable, "rate_limited"),
        (LibraryError(None, "gone"), ModelUnreachable, "unavailable"),
        (RuntimeError(f"odd {KEY}"), ModelUnreachable, "unavailable"),
        (RuntimeError("." * 379 + KEY), ModelUnreachable, "unavailable"),  # cut first, its beginning would be let pass
    ],
)
async def test_only_our_errors_leave(error: Exception, cls: type[ModelError], kind: str) -> None:
    async def complete(_: Json) -> object:
        raise error

    with pytest.raises(ModelError) as caught:
        await LibraryModel("x:m", "m", complete, library="the library").send(ASK)
    assert (type(caught.value), caught.value.kind) == (cls, kind)
    assert caught.value.retry_after_s == (7.0 if kind == "rate_limited" else None)
    assert "sk-" not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"


async def test_a_wait_has_a_limit_and_can_be_cancelled() -> None:
    never = asyncio.Event()
    waiting = asyncio.Event()

    async def complete(_: Json) -> object:
        waiting.set()
        return await never.wait()

    model = LibraryModel("x:m", "m", complete, library="the library")
    with pytest.raises(ModelTimeout):
        await model.send(replace(ASK, deadline_s=0.02))
    with pytest.raises(ModelTimeout, match="none of the run's time"):
        await model.send(replace(ASK, deadline_s=0.0))
    waiting.clear()
    task = asyncio.ensure_future(model.send(ASK))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await model.aclose()


@pytest.mark.parametrize(("make", "library"), [(litellm_model, "litellm"), (aisuite_model, "aisuite")])
def test_a_library_that_is_missing_is_named(make: Callable[[str, ModelSettings], Model], library: str) -> None:
    if find_spec(library) is not None:
        pytest.skip(f"{library} is installed")
    with pytest.raises(ConfigError, match=f"pip install {library}"):
        make("m", ModelSettings())


def test_any_reply_becomes_plain() -> None:
    class Dumped:
        def model_dump(self) -> Json:
            return {"a": (1, None)}

    assert plain({"x": Dumped(), "y": SimpleNamespace(z=[True])}) == {"x": {"a": [1, None]}, "y": {"z": [True]}}
