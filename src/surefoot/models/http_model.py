"""A model behind an HTTP endpoint, whatever wire it speaks: one request, one reply."""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from surefoot.models.errors import Endpoint, complaint_of, error_of, retry_after_of
from surefoot.models.json_edge import decoded, mapping, read, without_halves, write
from surefoot.models.wire import Form, ReplyStream, Wire, show_whole
from surefoot.types.errors import ModelError, ModelTimeout, ModelUnreachable, TraitRefused
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, Traits

if TYPE_CHECKING:
    from surefoot.models.http import Http


class HttpModel:
    """A `Model` that speaks a wire to a base URL.

    `wire` makes the wire for a model, `name` is what the user wrote, `model` what the server is asked for, `traits`
    what is known of it beforehand; `key_variable` is the environment variable that error messages name. Holds no
    conversation: one object serves any number of runs at once, in any number of event loops. The first request imports
    aiohttp and opens a session. `near`: the endpoint is on this machine, so that it is given longer.
    """

    def __init__(
        self,
        wire: Callable[[str], Wire[Form]],
        name: str,
        model: str,
        base_url: str,
        *,
        key: str = "",
        key_variable: str = "",
        traits: Traits = MappingProxyType({}),
        near: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._wire = wire(model)
        self.name = without_user(name)
        shown_url = without_user(base_url.rstrip("/"))
        self._endpoint = Endpoint(model, shown_url, key_variable, key, self._wire.base_url_hint)
        # a user in the URL stands for itself: aiohttp takes it or the key, not both
        self._url = self._wire.url(shown_url if key else base_url.rstrip("/"))
        self.traits = traits
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

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        if request.deadline_s is not None and request.deadline_s <= 0:
            raise ModelTimeout(f"{self.name} was not asked: none of the run's time is left")
        body = self._wire.body(request)
        if self._http is None:
            from surefoot.models.http import Http  # noqa: PLC0415 - aiohttp loads with the first request

            headers = {"Content-Type": "application/json", "User-Agent": "surefoot"}
            headers |= self._wire.headers(self._endpoint.key)
            self._http = Http(self._url, self._endpoint.where, headers, near=self.is_near)
        events = _Events(self._wire.stream(emit)) if request.stream else None
        try:
            answer = await self._http.post(body, request.settings, request.deadline_s, events)
            if isinstance(answer, bytes):
                return self._read(answer, body, request, emit)
            if answer is not None:
                wait_s = retry_after_of(answer.retry_after_ms, answer.retry_after, self._now())
                raise self._error(answer.status, answer.body, wait_s, body, request)
            assert events is not None  # noqa: S101  # only a stream brings no answer
            if events.reply.error is not None:
                raise self._error(200, write(events.reply.error), None, body, request)
            return _mend(events.reply.message(len(body), request.settings), is_mended=events.is_mended)
        except ModelError as error:
            error.endpoint = self._endpoint.where
            error.status = 200 if error.status is None else error.status  # what is left is wrong in the reply itself
            raise

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    def _read(self, answer: bytes, body: bytes, request: ModelRequest, emit: Emit | None) -> ModelMessage:
        try:
            value, is_mended = decoded(answer)
        except ValueError:
            value, is_mended = None, False
        reply = mapping(value)
        if not reply:
            # cut only afterwards: half a key would not be found
            start = self._endpoint.without_keys(answer[:4096].decode("utf-8", "replace"))[:120]
            raise ModelUnreachable(f"{self.name} sent no whole JSON reply (it begins {start!r}); retry")
        if (error := self._wire.error_in(reply)) is not None:
            raise self._error(200, write(error), None, body, request)
        message = _mend(self._wire.read(reply, len(body), request.settings), is_mended=is_mended)
        if emit is not None:
            show_whole(message, emit)
        return message

    def _error(self, status: int, raw: bytes, wait_s: float | None, body: bytes, request: ModelRequest) -> ModelError:
        complaint = complaint_of(status, raw, wait_s, self._endpoint)

        def refused() -> TraitRefused | None:
            sent = mapping(read(body))
            return self._wire.refused(complaint.message, complaint.code, complaint.param, sent, request.traits)

        error = error_of(complaint, self._endpoint, refused)
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


def _mend(message: ModelMessage, *, is_mended: bool) -> ModelMessage:
    """The message, marked if it was mended. Arguments are JSON inside of JSON, so they are looked at once more."""
    calls = message.calls
    for at, call in enumerate(calls):
        if isinstance(call.arguments, str) and "\\u" in call.arguments:
            arguments = without_halves(call.arguments)
            is_mended = is_mended or arguments != call.arguments
            calls = (*calls[:at], replace(call, arguments=arguments), *calls[at + 1 :])
    return replace(message, calls=calls, mended=True) if is_mended else message


def without_user(url: str) -> str:
    """The URL without user and password, so that it can be shown."""
    return re.sub(r"(?<=://)[^/]*@", "", url, count=1)
