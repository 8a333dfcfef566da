"""The OpenAI chat completions wire, which most servers speak."""

from typing import ClassVar

from surefoot.models.assemble import Assembler
from surefoot.models.json_edge import Json
from surefoot.models.openai_body import BodyWriter
from surefoot.models.openai_refusals import refused_trait
from surefoot.models.openai_reply import read_reply
from surefoot.types.errors import TraitRefused
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, ModelSettings, Traits


class OpenAIChat:
    """The wire to one model of an OpenAI-compatible server."""

    protocol: ClassVar[str] = "openai_chat"
    modes: ClassVar[tuple[CallMode, ...]] = ("native", "schema", "text")
    base_url_hint: ClassVar[str] = "OpenAI-compatible base URL (most end in /v1)"

    def __init__(self, model: str) -> None:
        self._writer = BodyWriter(model)

    def url(self, base_url: str) -> str:
        """Where requests are posted."""
        return f"{base_url}/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        """The key as a bearer token; nothing for a server that needs none."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest) -> bytes:
        """The request as bytes, as `BodyWriter.body` has it."""
        return self._writer.body(request)

    def error_in(self, reply: Json) -> Json | None:
        """The reply itself where it holds an error in place of choices."""
        is_error = "choices" not in reply and ("error" in reply or reply.get("object") == "error")
        return reply if is_error else None

    def read(self, reply: Json, sent_bytes: int, settings: ModelSettings) -> ModelMessage:
        """A whole reply, as `read_reply` has it."""
        return read_reply(reply, sent_bytes, settings)

    def stream(self, emit: Emit | None) -> Assembler:
        """What takes a streamed reply."""
        return Assembler(emit)

    def refused(self, message: str, code: str, param: str, sent: Json, traits: Traits) -> TraitRefused | None:
        """The part of a request that an error complains of."""
        return refused_trait(message, code, param, sent, traits)
