"""The OpenAI Responses wire, without anything being stored at the provider."""

from typing import ClassVar

from surefoot.models.json_edge import Json
from surefoot.models.responses_body import ResponsesBody, origin_of
from surefoot.models.responses_refusals import refused_trait
from surefoot.models.responses_reply import ResponsesStream, error_in, read_reply
from surefoot.types.errors import TraitRefused
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, ModelSettings, Traits


class OpenAIResponses:
    """The wire to one model of OpenAI, or of a server that speaks the same protocol."""

    protocol: ClassVar[str] = "openai_responses"
    modes: ClassVar[tuple[CallMode, ...]] = ("native", "schema", "text")
    base_url_hint: ClassVar[str] = "base URL of the OpenAI Responses API (most end in /v1)"

    def __init__(self, model: str) -> None:
        self._writer = ResponsesBody(model)
        self._origin = origin_of(model)

    def url(self, base_url: str) -> str:
        """Where requests are posted."""
        return f"{base_url}/responses"

    def headers(self, key: str) -> dict[str, str]:
        """The key as a bearer token; nothing for a server that needs none."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest) -> bytes:
        """The request as bytes, as `ResponsesBody.body` has it."""
        return self._writer.body(request)

    def error_in(self, reply: Json) -> Json | None:
        """The error in a response that failed."""
        return error_in(reply)

    def read(self, reply: Json, sent_bytes: int, settings: ModelSettings) -> ModelMessage:
        """A whole reply, as `read_reply` has it."""
        return read_reply(reply, sent_bytes, settings, self._origin)

    def stream(self, emit: Emit | None) -> ResponsesStream:
        """What takes a streamed reply."""
        return ResponsesStream(emit, self._origin)

    def refused(self, message: str, code: str, param: str, sent: Json, traits: Traits) -> TraitRefused | None:
        """The part of a request that an error complains of."""
        return refused_trait(message, code, param, sent, traits)
