"""A model behind a Python library that takes and gives what the OpenAI chat wire does."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from surefoot.models.endpoint_errors import Complaint, Endpoint, error_of, retry_after_of
from surefoot.models.history import without_calls
from surefoot.models.json_edge import Json, mapping, read, text
from surefoot.models.openai_body import BodyWriter
from surefoot.models.openai_refusals import refused_trait
from surefoot.models.openai_reply import read_reply
from surefoot.models.wire import show_whole
from surefoot.types.errors import ModelError, ModelTimeout, TraitRefused
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, Traits

Complete = Callable[[Json], Awaitable[object]]
"""Takes the fields of a chat completions request, gives the library's reply: an object, or a mapping."""

_UNTOLD_STATUS = 503


class LibraryModel:
    """A `Model` whose requests a library sends. The library finds the key; there is nothing to close.

    Replies come whole: with `stream` asked for, one is shown when it is there. `label` is what the user wrote, `model`
    what the library is asked for.
    """

    def __init__(
        self, label: str, model: str, complete: Complete, *, library: str, now: Callable[[], float] = time.time
    ) -> None:
        self._label = label
        self._now = now
        self._complete = complete
        self._endpoint = Endpoint(model, library, "the library's own key variable", hint=f"provider that {library} has")
        self._writer = BodyWriter(model)

    def __repr__(self) -> str:
        return f"LibraryModel({self._label!r})"

    @property
    def name(self) -> str:
        return self._label

    @property
    def modes(self) -> tuple[CallMode, ...]:
        return ("native", "schema", "text")

    @property
    def traits(self) -> Traits:
        return {}

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply to one request, as `surefoot.types.ports.Model.send` has it."""
        limit_s = request.settings.patience().whole_s
        if request.deadline_s is not None:
            limit_s = min(limit_s, request.deadline_s)
        if limit_s <= 0:
            raise ModelTimeout(f"{self._label} was not asked: none of the run's time is left")
        if request.bare:  # which wire the library takes it to, it alone knows
            request = replace(request, messages=tuple(without_calls(request.messages)))
        body = self._writer.body(request)
        asked = mapping(read(body))
        asked.pop("stream", None)
        asked.pop("stream_options", None)
        reply = await self._reply(asked, limit_s, request.traits)
        message = read_reply(reply, len(body), request.settings)
        if emit is not None:
            show_whole(message, emit)
        return message

    async def aclose(self) -> None:
        """Nothing to give back."""

    async def _reply(self, asked: Json, limit_s: float, traits: Traits) -> Json:
        wait = asyncio.timeout(limit_s)
        try:
            async with wait:
                return mapping(plain(await self._complete(asked)))
        except Exception as error:  # noqa: BLE001 - a library may raise anything, and only ModelError may leave here
            failure = self._failure(error, asked, limit_s if wait.expired() else None, traits)
        raise failure  # out here the library's error, which may hold a key, does not cling to it

    def _failure(self, error: Exception, asked: Json, waited_s: float | None, traits: Traits) -> ModelError:
        if waited_s is not None:
            return ModelTimeout(f"{self._label}: no whole reply within {waited_s:g} s; raise `request_timeout_s`")
        status = getattr(error, "status_code", None)
        words = self._endpoint.without_keys(f"{type(error).__name__}: {' '.join(str(error).split())}")[:400]
        told = Complaint(
            status if isinstance(status, int) and status >= 300 else _UNTOLD_STATUS,  # noqa: PLR2004 - HTTP
            words,
            text(getattr(error, "code", "")),
            text(getattr(error, "param", "")),
            _retry_after(error, self._now()),
        )

        def refused() -> TraitRefused | None:
            return refused_trait(told.message, told.code, told.param, asked, traits)

        return error_of(told, self._endpoint, refused)


def _retry_after(error: Exception, now: float) -> float | None:
    """Seconds, from the headers of the answer where the library keeps them."""
    for holder in (error, getattr(error, "response", None)):
        for field in ("litellm_response_headers", "headers"):
            headers = getattr(holder, field, None)
            if not isinstance(headers, Mapping):
                continue
            told = cast("Mapping[str, object]", headers).get("retry-after")  # the headers of an HTTP answer
            if isinstance(told, str):
                return retry_after_of(None, told, now)
    return None


def plain(value: object) -> object:
    """A library's reply as decoded JSON would be: models, plain objects, mappings and sequences, all the way down."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in cast("Mapping[object, object]", value).items()}  # any will do
    if isinstance(value, Sequence):
        return [plain(inner) for inner in cast("Sequence[object]", value)]  # any will do
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return plain(dump())
    inner = getattr(value, "__dict__", None)
    return plain(inner) if isinstance(inner, dict) else str(value)  # pyright: ignore[reportUnknownArgumentType] - as above
