"""A model behind an HTTP endpoint, whatever wire it speaks: one request, one reply."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cache
from inspect import isawaitable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from surefoot.models.errors import LEAST_SECRET, Endpoint, complaint_of, error_of, retry_after_of
from surefoot.models.json_edge import decoded, mapping, read, without_halves, write
from surefoot.models.wire import Form, ReplyStream, Wire, refused_file, show_whole
from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable, TraitRefused
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, Traits
from surefoot.types.usage import Usage

if TYPE_CHECKING:
    from types import ModuleType

    from surefoot.models.http import Http


Key = str | Callable[[], str | Awaitable[str]]
"""A key, or what gives one for each request: a function, which runs in a thread, or a coroutine function."""

_NONE: Mapping[str, str] = {}
_SECRET_NAME = re.compile(r"auth(?!or$)|key|token|secret|cookie|passw|signature|^sig$", re.IGNORECASE)


class HttpModel:
    """A `Model` that speaks a wire to a base URL.

    `wire` makes the wire for a model, `name` is what the user wrote, `model` what the server is asked for, `traits`
    what is known of it beforehand; `key_variable` is what error messages name. Holds no conversation: one object serves
    any number of runs and event loops at once. The first request imports aiohttp. `headers` and `query` go with each
    request; a header given here replaces one that surefoot would send. `near`: the endpoint is on this machine, so that
    it is given longer.
    """

    def __init__(
        self,
        wire: Callable[[str], Wire[Form]],
        name: str,
        model: str,
        base_url: str,
        *,
        key: Key = "",
        key_variable: str = "",
        headers: Mapping[str, str] = _NONE,
        query: Mapping[str, str] = _NONE,
        traits: Traits = _NONE,
        near: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._wire = wire(model)
        self.name = without_user(name)
        shown_url = without_user(base_url.rstrip("/"))
        self._give_key = None if isinstance(key, str) else key
        known, hint = key if isinstance(key, str) else "", self._wire.base_url_hint
        self._endpoint = Endpoint(model, shown_url, key_variable, known, hint, secrets_in(headers, query))
        # a user in the URL stands for itself: aiohttp takes it or the key, not both
        self._url = self._wire.url(shown_url if key else base_url.rstrip("/"))
        self._url += f"?{urlencode(query)}" if query else ""
        self._headers = headers
        self.traits: Traits = {**dict.fromkeys(self._wire.files, "yes"), **traits}
        self.modes: tuple[CallMode, ...] = self._wire.modes
        self.is_near = near
        self._now = now
        self._http: Http | None = None

    def __repr__(self) -> str:
        return f"HttpModel({self.name!r}, {self._endpoint.base_url!r})"

    @property
    def identity(self) -> str:
        """Wire, base URL and model in one text: what learnt traits are kept under."""
        return f"{self._wire.protocol} {self._endpoint.base_url} {self._endpoint.model}"

    @property
    def is_priced(self) -> bool:
        """Whether it is known what a reply costs; a server on this machine costs nothing."""
        return self.is_near or price_of(Usage(1, 1), self._endpoint.base_url, self._endpoint.model) is not None

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        if request.deadline_s is not None and request.deadline_s <= 0:
            raise ModelTimeout(f"{self.name} was not asked: none of the run's time is left")
        body = self._wire.body(request)
        size = len(body)
        if files := request.files:  # what tokens are estimated from: a file counts as it does in a model's window
            size = max(0, size - sum(one.size * 4 // 3 - one.tokens * 4 for one in files))
        endpoint, deadline_s, own_headers = self._endpoint, request.deadline_s, None
        if self._give_key is not None:
            started = time.monotonic()
            endpoint = replace(endpoint, key=await self._given_key(self._give_key, request))
            own_headers = self._beside_given(self._wire.headers(endpoint.key))
            deadline_s = None if deadline_s is None else max(0.001, deadline_s - (time.monotonic() - started))
        if self._http is None:
            from surefoot.models.http import Http  # noqa: PLC0415 - aiohttp loads with the first request

            headers = {"Content-Type": "application/json", "User-Agent": "surefoot"}
            headers = self._beside_given(headers | self._wire.headers(self._endpoint.key)) | dict(self._headers)
            self._http = Http(self._url, self._endpoint.where, headers, near=self.is_near)
        events = _Events(self._wire.stream(emit)) if request.stream else None
        try:
            answer = await self._http.post(body, request.settings, deadline_s, events, own_headers)
            if isinstance(answer, bytes):
                try:
                    value, is_mended = decoded(answer)
                except ValueError:
                    value, is_mended = None, False
                reply = mapping(value)
                if not reply:
                    # cut only afterwards: half a key would not be found
                    start = endpoint.without_keys(answer[:4096].decode("utf-8", "replace"))[:120]
                    raise ModelUnreachable(f"{self.name} sent no whole JSON reply (it begins {start!r}); retry")
                if (said := self._wire.error_in(reply)) is not None:
                    raise self._error(200, write(said), None, body, request, endpoint=endpoint)
                whole = self._finished(self._wire.read(reply, size, request.settings), is_mended=is_mended)
                if emit is not None:
                    show_whole(whole, emit)
                return whole
            if answer is not None:
                wait_s = retry_after_of(answer.retry_after_ms, answer.retry_after, self._now())
                raise self._error(answer.status, answer.body, wait_s, body, request, endpoint=endpoint)
            assert events is not None  # noqa: S101  # only a stream brings no answer
            if events.reply.error is not None:
                raise self._error(200, write(events.reply.error), None, body, request, endpoint=endpoint)
            return self._finished(events.reply.message(size, request.settings), is_mended=events.is_mended)
        except ModelError as error:
            error.endpoint = self._endpoint.where
            error.status = 200 if error.status is None else error.status  # what is left is wrong in the reply itself
            raise

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    def _finished(self, message: ModelMessage, *, is_mended: bool) -> ModelMessage:
        """The reply, marked if it was mended, and with its price where nobody tells one.

        Arguments are JSON inside of JSON, so they are looked at once more.
        """
        calls = message.calls
        for at, call in enumerate(calls):
            if isinstance(call.arguments, str) and "\\u" in call.arguments:
                arguments = without_halves(call.arguments)
                is_mended = is_mended or arguments != call.arguments
                calls = (*calls[:at], replace(call, arguments=arguments), *calls[at + 1 :])
        message = replace(message, calls=calls, mended=True) if is_mended else message
        if message.usage.cost_usd is not None or self.is_near:
            return message
        cost = price_of(message.usage, self._endpoint.base_url, message.model or "", self._endpoint.model)
        return message if cost is None else replace(message, usage=replace(message.usage, cost_usd=cost))

    def _beside_given(self, headers: Mapping[str, str]) -> dict[str, str]:
        given = {name.lower() for name in self._headers}
        return {name: value for name, value in headers.items() if name.lower() not in given}

    async def _given_key(self, give: Callable[[], str | Awaitable[str]], request: ModelRequest) -> str:
        """The key for one request. What goes wrong is told without the words of its error, which may hold a key."""
        whole_s = request.settings.patience(near=self.is_near).whole_s
        limit_s = whole_s if request.deadline_s is None else min(whole_s, request.deadline_s)
        try:
            async with asyncio.timeout(limit_s):
                given = await asyncio.to_thread(give)  # one that asks a server for a token must not hold up the loop
                key = await given if isawaitable(given) else given
            if isinstance(key, str) and is_key(key):  # pyright: ignore[reportUnnecessaryIsInstance]  # anybody's code
                return key
            failure: ModelError = ModelRefused(f"{self.name} was not asked: `api_key` gave no key", kind="auth")
        except TimeoutError:
            failure = ModelTimeout(f"{self.name} was not asked: `api_key` gave no key within {limit_s:.3g} s")
        except Exception as error:  # noqa: BLE001 - anybody's code
            failed = f"{self.name} was not asked: `api_key` failed with {type(error).__name__}; call it to see why"
            failure = ModelRefused(failed, kind="auth")
        raise failure

    def _error(
        self, status: int, raw: bytes, wait_s: float | None, body: bytes, request: ModelRequest, *, endpoint: Endpoint
    ) -> ModelError:
        complaint = complaint_of(status, raw, wait_s, endpoint)

        def refused() -> TraitRefused | None:
            sent = mapping(read(body))
            if (learnt := refused_file(complaint.message, sent, request.traits)) is not None:
                return learnt
            return self._wire.refused(complaint.message, complaint.code, complaint.param, sent, request.traits)

        error = error_of(complaint, endpoint, refused)
        error.status = status
        return error


class _Events:
    """Takes the events of a stream into a reply; true once no more are wanted."""

    def __init__(self, reply: ReplyStream) -> None:
        self.reply = reply
        self.is_mended = False

    def __call__(self, events: list[bytes]) -> bool:
        reply = self.reply
        for data in events:
            if data == b"[DONE]":
                reply.is_over = True
                continue
            try:
                event, was_mended = decoded(data)
            except ValueError as error:
                broken = f"the stream broke off inside a piece of the reply ({error}); retry"
                raise ModelUnreachable(broken) from error
            self.is_mended = self.is_mended or was_mended
            reply.feed(mapping(event))
        return reply.is_over or reply.error is not None


def opens(name: str) -> bool:
    """Whether the name of a header or of a part of a query says that its value opens something."""
    return _SECRET_NAME.search(name) is not None


def secrets_in(*given: Mapping[str, str]) -> tuple[str, ...]:
    """What must not be shown of headers and queries: the values whose names say that they open something."""
    values = [value for fields in given for name, value in fields.items() if opens(name)]
    parts = dict.fromkeys(part for value in values for part in (value, *value.split()))
    return tuple(part for part in parts if len(part) >= LEAST_SECRET)


def is_key(text: str) -> bool:
    """Whether a text can be a key: one goes into a header."""
    return bool(text) and text.isascii() and text.isprintable()


def without_user(url: str) -> str:
    """The URL without user and password, so that it can be shown."""
    return re.sub(r"(?<=://)[^/]*@", "", url, count=1)


def price_of(usage: Usage, base_url: str, *models: str) -> float | None:
    """US dollars for a request, by the prices that the package brings; the first of the names that has one counts."""
    if (prices := price_table()) is None:
        return None
    read = min(usage.cached_tokens, usage.input_tokens)
    written = min(usage.cache_write_tokens, usage.input_tokens - read)
    cached = {"cache_read_tokens": read, "cache_write_tokens": written}
    used = prices.Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, **cached)
    for model in models:
        try:
            return float(prices.calc_price(used, model_ref=model, provider_api_url=base_url).total_price)
        except (LookupError, ValueError):  # a model or server that it does not know, a usage that cannot be
            continue
    return None


@cache
def price_table() -> "ModuleType | None":
    """The package `genai-prices`; None where it is not installed."""
    try:
        import genai_prices  # noqa: PLC0415  # an extra, which takes 0.15 s to load
    except ImportError:
        return None
    return genai_prices
