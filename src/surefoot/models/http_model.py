"""A model behind an HTTP endpoint, whatever wire it speaks: one request, one reply."""

import time
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING

from surefoot.models.endpoint_errors import Complaint, Endpoint, complaint_of, error_of, retry_after_of
from surefoot.models.exchange import Limits, Rejection
from surefoot.models.json_edge import Json, mapping, read, write
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

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply to one request, as `surefoot.types.ports.Model.send` has it."""
        if request.deadline_s is not None and request.deadline_s <= 0:
            raise ModelTimeout(f"{self._name} was not asked: none of the run's time is left")
        body = self._wire.body(request)
        http = self._http or self._open()
        limits = self._limits_for(request)
        if request.stream:
            return await self._stream(http, body, limits, request, emit)
        answer = await http.post(body, limits)
        if not isinstance(answer, bytes):
            raise self._rejected(answer, body, request)
        return self._read(answer, body, request, emit)

    async def aclose(self) -> None:
        """Close all connections; a later `send` opens them again."""
        if self._http is not None:
            await self._http.aclose()

    def _open(self) -> "Http":
        from surefoot.models.http import Http  # noqa: PLC0415 - aiohttp loads with the first request, not with an agent

        headers = {"Content-Type": "application/json", "User-Agent": "surefoot"}
        headers |= self._wire.headers(self._endpoint.key)
        self._http = Http(self._url, f"{self._endpoint.model} at {self._endpoint.base_url}", headers)
        return self._http

    def _limits_for(self, request: ModelRequest) -> Limits:
        settings, deadline_s = request.settings, request.deadline_s
        if deadline_s is None or deadline_s >= settings.request_timeout_s:
            kept = self._limits
            if kept[0] is not settings or kept[1] is None:
                limits = _limits(settings, settings.request_timeout_s, is_deadline=False)
                self._limits = (settings, limits)
                return limits
            return kept[1]
        return _limits(settings, deadline_s, is_deadline=True)

    async def _stream(
        self, http: "Http", body: bytes, limits: Limits, request: ModelRequest, emit: Emit | None
    ) -> ModelMessage:
        events = EventStream()
        reply = self._wire.stream(emit)
        feed = reply.feed

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
        return reply.message(len(body), request.settings)

    def _read(self, answer: bytes, body: bytes, request: ModelRequest, emit: Emit | None) -> ModelMessage:
        reply = mapping(read(answer))
        if not reply:
            # cut only afterwards: half a key would not be found
            start = self._endpoint.without_keys(answer[:4096].decode("utf-8", "replace"))[:120]
            raise ModelUnreachable(f"{self._name} sent no whole JSON reply (it begins {start!r}); retry")
        if (error := self._wire.error_in(reply)) is not None:
            raise self._error_in(error, body, request)
        message = self._wire.read(reply, len(body), request.settings)
        if emit is not None:
            show_whole(message, emit)
        return message

    def _rejected(self, answer: Rejection, body: bytes, request: ModelRequest) -> ModelError:
        wait_s = retry_after_of(answer.retry_after_ms, answer.retry_after, self._now())
        return self._error_of(complaint_of(answer.status, answer.body, wait_s, self._endpoint), body, request)

    def _error_in(self, error: Json, body: bytes, request: ModelRequest) -> ModelError:
        return self._error_of(complaint_of(200, write(error), None, self._endpoint), body, request)

    def _error_of(self, complaint: Complaint, body: bytes, request: ModelRequest) -> ModelError:
        def refused() -> TraitRefused | None:
            sent = mapping(read(body))
            return self._wire.refused(complaint.message, complaint.code, complaint.param, sent, request.traits)

        return error_of(complaint, self._endpoint, refused)


def _limits(settings: ModelSettings, whole_s: float, *, is_deadline: bool) -> Limits:
    return Limits(
        settings.connect_timeout_s,
        settings.first_token_timeout_s,
        settings.between_tokens_timeout_s,
        whole_s,
        is_deadline,
    )


def without_user(url: str) -> str:
    """The URL without user and password, so that it can be shown."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
