"""A model behind an HTTP endpoint, whatever wire it speaks: one request, one reply."""

import time
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from surefoot.models.base_url import is_this_machine
from surefoot.models.endpoint_errors import Complaint, Endpoint, complaint_of, error_of, retry_after_of
from surefoot.models.exchange import Limits, Rejection
from surefoot.models.json_edge import Json, decoded, mapping, read, without_halves, write
from surefoot.models.sse import EventStream
from surefoot.models.wire import Wire, show_whole
from surefoot.types.errors import ModelError, ModelTimeout, ModelUnreachable, TraitRefused
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, ModelSettings, Traits

if TYPE_CHECKING:
    from surefoot.models.http import Http


class HttpModel:
    """A `Model` that speaks a wire to a base URL.

    `wire` makes the wire for a model, `name` is what the user wrote, `model` what the server is asked for, `traits`
    what is known of it beforehand; `key_variable` is the environment variable that error messages name. Holds no
    conversation: one object serves any number of runs at once, in any number of event loops. The first request imports
    aiohttp and opens a session.
    """

    def __init__(
        self,
        wire: Callable[[str], Wire],
        name: str,
        model: str,
        base_url: str,
        *,
        key: str = "",
        key_variable: str = "",
        traits: Traits = MappingProxyType({}),
        now: Callable[[], float] = time.time,
    ) -> None:
        self._wire = wire(model)
        self._name = without_user(name)
        shown_url = without_user(base_url.rstrip("/"))
        self._endpoint = Endpoint(model, shown_url, key_variable, key, self._wire.base_url_hint)
        # a user in the URL stands for itself: aiohttp takes it or the key, not both
        self._url = self._wire.url(shown_url if key else base_url.rstrip("/"))
        self._traits = traits
        self._now = now
        self._is_near = is_this_machine(base_url)
        self._limits: tuple[ModelSettings | None, Limits | None] = (None, None)
        self._http: Http | None = None

    def __repr__(self) -> str:
        return f"HttpModel({self._name!r}, {self._endpoint.base_url!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def modes(self) -> tuple[CallMode, ...]:
        return self._wire.modes

    @property
    def traits(self) -> Traits:
        return self._traits

    @property
    def identity(self) -> str:
        """Wire, base URL and model in one text: what learnt traits are kept under."""
        return f"{self._wire.protocol} {self._endpoint.base_url} {self._endpoint.model}"

    @property
    def is_near(self) -> bool:
        """Whether the endpoint is on this machine, so that it is given longer."""
        return self._is_near

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply to one request, as `surefoot.types.ports.Model.send` has it."""
        if request.deadline_s is not None and request.deadline_s <= 0:
            raise ModelTimeout(f"{self._name} was not asked: none of the run's time is left")
        body = self._wire.body(request)
        http = self._http or self._open()
        limits = self._limits_for(request)
        try:
            if request.stream:
                return await self._stream(http, body, limits, request, emit)
            answer = await http.post(body, limits)
            if not isinstance(answer, bytes):
                raise self._rejected(answer, body, request)
            return self._read(answer, body, request, emit)
        except ModelError as error:
            error.endpoint = self._endpoint.where
            error.status = 200 if error.status is None else error.status  # what is left is wrong in the reply itself
            raise

    async def aclose(self) -> None:
        """Close all connections; a later `send` opens them again."""
        if self._http is not None:
            await self._http.aclose()

    def _open(self) -> "Http":
        from surefoot.models.http import Http  # noqa: PLC0415 - aiohttp loads with the first request, not with an agent

        headers = {"Content-Type": "application/json", "User-Agent": "surefoot"}
        headers |= self._wire.headers(self._endpoint.key)
        self._http = Http(self._url, self._endpoint.where, headers)
        return self._http

    def _limits_for(self, request: ModelRequest) -> Limits:
        settings, deadline_s = request.settings, request.deadline_s
        known, limits = self._limits
        if known is not settings or limits is None:
            patience = settings.patience(near=self._is_near)
            connect_s, between_s = settings.connect_timeout_s, settings.between_tokens_timeout_s
            limits = Limits(connect_s, patience.first_token_s, between_s, patience.whole_s)
            self._limits = (settings, limits)
        if deadline_s is None or deadline_s >= limits.whole_s:
            return limits
        return replace(limits, whole_s=deadline_s, is_deadline=True)

    async def _stream(
        self, http: "Http", body: bytes, limits: Limits, request: ModelRequest, emit: Emit | None
    ) -> ModelMessage:
        events = EventStream()
        reply = self._wire.stream(emit)
        mended = False

        def feed(data: bytes) -> None:
            nonlocal mended
            if data == b"[DONE]":
                reply.is_over = True
                return
            try:
                event, was_mended = decoded(data)
            except ValueError as error:
                raise ModelUnreachable(f"the stream broke off inside a piece of the reply ({error}); retry") from error
            mended = mended or was_mended
            reply.feed(mapping(event))

        def on_chunk(chunk: bytes) -> bool:
            for data in events.feed(chunk):
                feed(data)
            return reply.is_over or reply.error is not None

        answer = await http.stream(body, limits, on_chunk)
        if isinstance(answer, bytes):
            return self._read(answer, body, request, emit)
        if answer is not None:
            raise self._rejected(answer, body, request)
        for data in events.close():
            feed(data)
        if reply.error is not None:
            raise self._error_in(reply.error, body, request)
        return _told(reply.message(len(body), request.settings), mended=mended)

    def _read(self, answer: bytes, body: bytes, request: ModelRequest, emit: Emit | None) -> ModelMessage:
        try:
            value, mended = decoded(answer)
        except ValueError:
            value, mended = None, False
        reply = mapping(value)
        if not reply:
            # cut only afterwards: half a key would not be found
            start = self._endpoint.without_keys(answer[:4096].decode("utf-8", "replace"))[:120]
            raise ModelUnreachable(f"{self._name} sent no whole JSON reply (it begins {start!r}); retry")
        if (error := self._wire.error_in(reply)) is not None:
            raise self._error_in(error, body, request)
        message = _told(self._wire.read(reply, len(body), request.settings), mended=mended)
        if emit is not None:
            show_whole(message, emit)
        return message

    def _rejected(self, answer: Rejection, body: bytes, request: ModelRequest) -> ModelError:
        wait_s = retry_after_of(answer.retry_after_ms, answer.retry_after, self._now())
        error = self._error_of(complaint_of(answer.status, answer.body, wait_s, self._endpoint), body, request)
        error.status = answer.status
        return error

    def _error_in(self, error: Json, body: bytes, request: ModelRequest) -> ModelError:
        return self._error_of(complaint_of(200, write(error), None, self._endpoint), body, request)

    def _error_of(self, complaint: Complaint, body: bytes, request: ModelRequest) -> ModelError:
        def refused() -> TraitRefused | None:
            sent = mapping(read(body))
            return self._wire.refused(complaint.message, complaint.code, complaint.param, sent, request.traits)

        return error_of(complaint, self._endpoint, refused)


def _told(message: ModelMessage, *, mended: bool) -> ModelMessage:
    """The message, marked if it was mended. Arguments are JSON inside of JSON, so they are looked at once more."""
    calls = tuple(
        replace(call, arguments=without_halves(call.arguments))
        if isinstance(call.arguments, str) and "\\u" in call.arguments
        else call
        for call in message.calls
    )
    return replace(message, calls=calls, mended=True) if mended or calls != message.calls else message


def without_user(url: str) -> str:
    """The URL without user and password, so that it can be shown."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
