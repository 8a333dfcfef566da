"""The Anthropic Messages wire."""

from typing import ClassVar

from surefoot.models.anthropic_body import AnthropicBody, origin_of
from surefoot.models.anthropic_refusals import refused_trait
from surefoot.models.anthropic_reply import AnthropicStream, read_reply
from surefoot.models.json_edge import Json
from surefoot.types.errors import TraitRefused
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, ModelSettings, Traits

_VERSION = "2023-06-01"


class Anthropic:
    """The wire to one Claude model, at Anthropic or at a server that speaks the same protocol."""

    protocol: ClassVar[str] = "anthropic"
    modes: ClassVar[tuple[CallMode, ...]] = ("native", "schema", "text")
    base_url_hint: ClassVar[str] = "base URL of an Anthropic API (such as https://api.anthropic.com)"

    def __init__(self, model: str) -> None:
        self._writer = AnthropicBody(model)
        self._origin = origin_of(model)

    def url(self, base_url: str) -> str:
        """Where requests are posted. The base URL may end in `/v1` or leave that out, as is the custom here."""
        return f"{base_url}/messages" if base_url.endswith("/v1") else f"{base_url}/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        """The version of the API, and the key in a header of its own."""
        return {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {})

    def body(self, request: ModelRequest) -> bytes:
        """The request as bytes, as `AnthropicBody.body` has it."""
        return self._writer.body(request)

    def error_in(self, reply: Json) -> Json | None:
        """The reply itself where it is an error."""
        return reply if reply.get("type") == "error" or ("error" in reply and "content" not in reply) else None

    def read(self, reply: Json, sent_bytes: int, settings: ModelSettings) -> ModelMessage:
        """A whole reply, as `read_reply` has it."""
        return read_reply(reply, sent_bytes, settings, self._origin)

    def stream(self, emit: Emit | None) -> AnthropicStream:
        """What takes a streamed reply."""
        return AnthropicStream(emit, self._origin)

    def refused(self, message: str, code: str, param: str, sent: Json, traits: Traits) -> TraitRefused | None:
        """The part of a request that an error complains of; errors of this wire name it in their words alone."""
        del code, param
        return refused_trait(message, sent, traits)
