"""What differs from wire to wire: how a request is written and how a reply is read."""

from typing import ClassVar, Protocol

from surefoot.models.json_edge import Json
from surefoot.types.errors import TraitRefused
from surefoot.types.messages import (
    CallMode,
    CallPreview,
    Emit,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    ReasoningDelta,
    TextDelta,
    Traits,
)


class ReplyStream(Protocol):
    """One reply that arrives in events. Shows its pieces as they come.

    `error` is the body of an error that the server sent in the middle; `is_over` tells that no more is to come, and is
    also set from outside, at `[DONE]`.
    """

    error: Json | None
    is_over: bool

    def feed(self, event: Json) -> None:
        """One event; empty where its data was no JSON object."""
        ...

    def message(self, sent_bytes: int, settings: ModelSettings) -> ModelMessage:
        """The whole reply. Raises `ModelUnreachable` when it was cut off, `ModelRefused` when the model declined."""
        ...


class Wire(Protocol):
    """One protocol, spoken to one model. Pure: bytes in, values out; keeps nothing of any conversation.

    `protocol` names it in identities and in the encoded forms of messages, `modes` are the call modes it carries, best
    first, `base_url_hint` says what a base URL of this wire looks like.
    """

    protocol: ClassVar[str]
    modes: ClassVar[tuple[CallMode, ...]]
    base_url_hint: ClassVar[str]

    def url(self, base_url: str) -> str:
        """Where requests are posted."""
        ...

    def headers(self, key: str) -> dict[str, str]:
        """The headers that the protocol asks for; `key` may be empty."""
        ...

    def body(self, request: ModelRequest) -> bytes:
        """The request as bytes. Raises `ModelRefused` when `settings.extra` claims a field that is not its own."""
        ...

    def error_in(self, reply: Json) -> Json | None:
        """The error that an answer of status 200 holds, as an error body; `None` when it holds a reply."""
        ...

    def read(self, reply: Json, sent_bytes: int, settings: ModelSettings) -> ModelMessage:
        """A whole reply. Raises `ModelUnreachable` when there is none in it, `ModelRefused` when it was declined."""
        ...

    def stream(self, emit: Emit | None) -> ReplyStream:
        """What takes a streamed reply."""
        ...

    def refused(self, message: str, code: str, param: str, sent: Json, traits: Traits) -> TraitRefused | None:
        """The part of the body `sent` that an error complains of; `None` when it is about something else."""
        ...


def show_whole(message: ModelMessage, emit: Emit) -> None:
    """Show a reply that came in one piece."""
    if message.reasoning:
        emit(ReasoningDelta(message.reasoning))
    if message.content:
        emit(TextDelta(message.content))
    for index, call in enumerate(message.calls):
        emit(CallPreview(index, call.name))
