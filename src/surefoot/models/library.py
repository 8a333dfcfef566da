"""Models of providers that surefoot has no wire for, through LiteLLM or aisuite, which speak the OpenAI chat wire."""

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, cast

from surefoot.models.errors import Complaint, Endpoint, error_of, retry_after_of
from surefoot.models.json_edge import Json, mapping, read, text
from surefoot.models.openai_chat import OpenAIChat
from surefoot.models.wire import show_whole, without_calls
from surefoot.types.errors import ConfigError, ModelTimeout
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, ModelSettings, Traits
from surefoot.types.ports import Model

Complete = Callable[[Json], Awaitable[object]]  # from the fields of a request to the library's reply of whatever kind
Library = Callable[..., Any]  # the library's function takes any field and types its reply by itself


class LibraryModel:
    """A `Model` whose requests a library sends; replies come whole. `model` is what the library is asked for."""

    modes: tuple[CallMode, ...] = OpenAIChat.modes

    def __init__(self, name: str, model: str, complete: Complete, *, library: str) -> None:
        self.name = name
        self.traits: Traits = {}
        self._complete = complete
        self._endpoint = Endpoint(model, library, "the library's own key variable", hint=f"provider that {library} has")
        self._wire = OpenAIChat(model)

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        whole_s, left_s = request.settings.patience().whole_s, request.deadline_s
        limit_s = whole_s if left_s is None else min(whole_s, left_s)
        if limit_s <= 0:
            raise ModelTimeout(f"{self.name} was not asked: none of the run's time is left")
        if request.bare:  # which wire the library takes it to, it alone knows
            request = replace(request, messages=tuple(without_calls(request.messages)))
        body = self._wire.body(replace(request, stream=False))
        asked = mapping(read(body))
        wait = asyncio.timeout(limit_s)
        try:
            async with wait:
                reply = mapping(plain(await self._complete(asked)))
        except Exception as error:  # noqa: BLE001 - a library may raise anything, and only ModelError may leave here
            status, wait_s = getattr(error, "status_code", None), None
            for holder in (error, getattr(error, "response", None)):  # wherever the library keeps the answer's headers
                for field in ("litellm_response_headers", "headers"):
                    if isinstance(headers := getattr(holder, field, None), Mapping) and wait_s is None:
                        told = cast("Mapping[str, object]", headers).get("retry-after")  # the headers of an HTTP answer
                        wait_s = retry_after_of(None, text(told), time.time())
            words = self._endpoint.without_keys(f"{type(error).__name__}: {' '.join(str(error).split())}")[:400]
            status = status if isinstance(status, int) and status >= 300 else 503  # noqa: PLR2004 - HTTP
            code, param = (text(getattr(error, name, "")) for name in ("code", "param"))
            refused = partial(self._wire.refused, words, code, param, asked, request.traits)
            failure = error_of(Complaint(status, words, code, param, wait_s), self._endpoint, refused)
            if wait.expired():
                failure = ModelTimeout(f"{self.name}: no whole reply within {limit_s:g} s; raise `request_timeout_s`")
        else:
            show_whole(message := self._wire.read(reply, len(body), request.settings), emit or (lambda _: None))
            return message
        raise failure  # out here the library's error, which may hold a key, does not cling to it

    async def aclose(self) -> None: ...


def litellm_model(name: str, settings: ModelSettings, *, acompletion: Library | None = None) -> Model:
    """The model that LiteLLM calls `name`; a LiteLLM *proxy* is the provider `litellm`. The library finds the key.

    Raises `ConfigError` without the library, which is imported with the first request. `acompletion` stands in for its
    own.
    """
    if acompletion is None and find_spec("litellm") is None:
        raise ConfigError("model", f"litellm-lib:{name}", "the library is missing: pip install litellm")

    async def complete(fields: Json) -> object:
        # its import takes seconds, in which other runs go on; surefoot retries by itself, and counts what it does
        ask = acompletion or (await asyncio.to_thread(importlib.import_module, "litellm")).acompletion
        return await ask(**fields, num_retries=0, max_retries=0, timeout=settings.patience().whole_s)

    return LibraryModel(f"litellm-lib:{name}", name, complete, library="the LiteLLM library")


def aisuite_model(name: str, settings: ModelSettings, *, create: Library | None = None) -> Model:  # noqa: ARG001
    """The model that aisuite calls `name`. `create` stands in for its `client.chat.completions.create`.

    The library blocks, so it runs in a thread; a request that is cancelled or times out goes on there until the library
    gives up. Its clients may retry by themselves, before surefoot does. Raises and imports as `litellm_model` does.
    """
    if create is None and find_spec("aisuite") is None:
        raise ConfigError("model", f"aisuite:{name}", "the library is missing: pip install aisuite")

    @cache
    def library() -> Library:
        return create or importlib.import_module("aisuite").Client().chat.completions.create

    async def complete(fields: Json) -> object:
        return await asyncio.to_thread(lambda: library()(**fields))

    return LibraryModel(f"aisuite:{name}", name, complete, library="the aisuite library")


def plain(value: object) -> object:
    """A library's reply as decoded JSON would be: models, plain objects, mappings and sequences, all the way down."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in cast("Mapping[object, object]", value).items()}  # any will do
    if isinstance(value, Sequence):
        return [plain(inner) for inner in cast("Sequence[object]", value)]  # any will do
    dump = getattr(value, "model_dump", None)
    inner: object = dump() if callable(dump) else getattr(value, "__dict__", None)
    return plain(cast("object", inner)) if isinstance(inner, dict) else str(value)
