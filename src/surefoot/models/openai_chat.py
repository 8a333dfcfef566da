"""The OpenAI chat completions wire, which most servers speak: one request, one reply."""

import time
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from surefoot.models.assemble import Assembler, as_pieces
from surefoot.models.exchange import Limits, Rejection
from surefoot.models.json_edge import Json, mapping, read, write
from surefoot.models.openai_body import BodyWriter
from surefoot.models.openai_errors import Endpoint, complaint_of, error_of, retry_after_of
from surefoot.models.openai_reply import read_reply
from surefoot.models.sse import EventStream
from surefoot.types.errors import ModelError, ModelTimeout, ModelUnreachable
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, ModelSettings, Traits

if TYPE_CHECKING:
    from surefoot.models.http import Http

MODES: Final[tuple[CallMode, ...]] = ("native", "schema", "text")


class OpenAIChat:
    """A `Model` behind an OpenAI-compatible base URL.

    `name` is what the user wrote, `model` what the server is asked for, `traits` what is known of it beforehand;
    `key_variable` is the environment variable that error messages name. Holds no conversation: one object serves any
    number of runs at once, in any number of event loops. The first request imports aiohttp and opens a session.
    """

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str,
        *,
        key: str = "",
        key_variable: str = "",
        traits: Traits = MappingProxyType({}),
        now: Callable[[], float] = time.time,
    ) -> None:
        self._name = without_user(name)
        self._endpoint = Endpoint(model, without_user(base_url.rstrip("/")), key_variable, key)
        # a user in the URL stands for itself: aiohttp takes it or the key, not both
        self._url = (self._endpoint.base_url if key else base_url.rstrip("/")) + "/chat/completions"
        self._traits = traits
        self._now = now
        self._writer = BodyWriter(model)
        self._limits: tuple[ModelSettings | None, Limits | None] = (None, None)
        self._http: Http | None = None

    def __repr__(self) -> str:
        return f"OpenAIChat({self._name!r}, {self._endpoint.base_url!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def modes(self) -> tuple[CallMode, ...]:
        return MODES

    @property
    def traits(self) -> Traits:
        return self._traits

    @property
    def identity(self) -> str:
        """Wire, base URL and model in one text: what learnt traits are kept under."""
        return f"openai_chat {self._endpoint.base_url} {self._endpoint.model}"

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply to one request, as `surefoot.types.ports.Model.send` has it."""
        if request.deadline_s is not None and request.deadline_s <= 0:
            raise ModelTimeout(f"{self._name} was not asked: none of the run's time is left")
        body = self._writer.body(request)
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
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
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
        assembler = Assembler(emit)
        feed = assembler.feed

        def on_chunk(chunk: bytes) -> bool:
            for data in events.feed(chunk):
                feed(data)
            return assembler.is_over or assembler.error is not None

        answer = await http.stream(body, limits, on_chunk)
        if isinstance(answer, bytes):
            return self._read(answer, body, request, emit)
        if answer is not None:
            raise self._rejected(answer, body, request)
        for data in events.close():
            feed(data)
        if assembler.error is not None:
            raise self._error_in(assembler.error, body, request)
        return assembler.message(len(body), request.settings)

    def _read(self, answer: bytes, body: bytes, request: ModelRequest, emit: Emit | None) -> ModelMessage:
        reply = mapping(read(answer))
        if not reply:
            start = self._endpoint.without_keys(answer[:120].decode("utf-8", "replace"))
            raise ModelUnreachable(f"{self._name} sent no whole JSON reply (it begins {start!r}); retry")
        if "choices" not in reply and ("error" in reply or reply.get("object") == "error"):
            raise self._error_in(reply, body, request)
        message = read_reply(reply, len(body), request.settings)
        if emit is not None:
            as_pieces(message, emit)
        return message

    def _rejected(self, answer: Rejection, body: bytes, request: ModelRequest) -> ModelError:
        wait_s = retry_after_of(answer.retry_after_ms, answer.retry_after, self._now())
        complaint = complaint_of(answer.status, answer.body, wait_s, self._endpoint)
        return error_of(complaint, self._endpoint, mapping(read(body)), request.traits)

    def _error_in(self, reply: Json, body: bytes, request: ModelRequest) -> ModelError:
        complaint = complaint_of(200, write(reply), None, self._endpoint)
        return error_of(complaint, self._endpoint, mapping(read(body)), request.traits)


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
