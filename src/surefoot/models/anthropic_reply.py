"""A reply on the Anthropic Messages wire, whole or in pieces, read into a `ModelMessage`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from surefoot.models.anthropic_body import is_thinking_block
from surefoot.models.history import opaque_item
from surefoot.models.json_edge import Json, items, mapping, text, whole
from surefoot.models.usage import estimated, price_of
from surefoot.types.errors import ModelUnreachable
from surefoot.types.messages import (
    CallPreview,
    Emit,
    FinishReason,
    ModelMessage,
    ModelSettings,
    NativeCall,
    ReasoningDelta,
    TextDelta,
    Usage,
)

FINISH: Final[dict[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",  # it would go on if it were asked to
    "refusal": "content_filter",
}


def read_reply(reply: Json, sent_bytes: int, settings: ModelSettings, origin: str) -> ModelMessage:
    """A whole reply. `sent_bytes`: the size of the request, from which missing usage is estimated.

    Raises `ModelUnreachable` when there is no reply in it.
    """
    if "content" not in reply:
        raise ModelUnreachable(f"{text(reply.get('model')) or 'the model'} sent a reply without content; retry")
    blocks = [mapping(item) for item in items(reply.get("content"))]
    return _message_of(blocks, reply, sent_bytes, settings, origin)


def _message_of(
    blocks: Sequence[Json], reply: Json, sent_bytes: int, settings: ModelSettings, origin: str
) -> ModelMessage:
    said: list[str] = []
    thought: list[str] = []
    calls: list[NativeCall] = []
    opaque: list[Mapping[str, object]] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            said.append(text(block.get("text")))
        elif kind == "tool_use":
            given = block.get("input")
            arguments = given if isinstance(given, str) else mapping(given)
            calls.append(NativeCall(text(block.get("id")), text(block.get("name")), arguments))
        elif kind == "thinking":
            thought.append(text(block.get("thinking")))
        if is_thinking_block(block):
            opaque.append(opaque_item(origin, len(calls) + any(said), block))
    content, reasoning = "".join(said), "\n\n".join(part for part in thought if part)
    usage = usage_of(mapping(reply.get("usage")), settings)
    return ModelMessage(
        "assistant",
        content,
        tuple(calls),
        reasoning=reasoning,
        finish_reason=FINISH.get(text(reply.get("stop_reason")), "unknown"),
        usage=usage or estimated(sent_bytes, content + reasoning, tuple(calls), settings),
        model=text(reply.get("model")),
        id=text(reply.get("id")),
        opaque=tuple(opaque),
    )


def usage_of(told: Json, settings: ModelSettings) -> Usage | None:
    """What a request used, as told; `None` when nothing was told. What went to or came from the cache is input too."""
    if not told:
        return None
    read_again = whole(told.get("cache_read_input_tokens"))
    used_in = whole(told.get("input_tokens")) + read_again + whole(told.get("cache_creation_input_tokens"))
    used_out = whole(told.get("output_tokens"))
    details = mapping(told.get("output_tokens_details"))
    price = price_of(used_in, used_out, settings)
    return Usage(used_in, used_out, read_again, whole(details.get("thinking_tokens")), price)


@dataclass(slots=True)
class _GrowingBlock:
    """A block whose pieces are still arriving."""

    block: Json
    pieces: list[str] = field(default_factory=list[str])

    def finished(self) -> Json:
        """The block as a whole reply has it; the arguments of a call stay the text that they came as."""
        grown = "".join(self.pieces)
        match self.block.get("type"):
            case "text":
                return {**self.block, "text": text(self.block.get("text")) + grown}
            case "thinking":
                return {**self.block, "thinking": text(self.block.get("thinking")) + grown}
            case "tool_use":
                return {**self.block, "input": grown or mapping(self.block.get("input"))}
            case _:
                return self.block


class AnthropicStream:
    """A `ReplyStream` of this wire."""

    __slots__ = ("_blocks", "_calls", "_emit", "_origin", "_reply", "error", "is_over")

    def __init__(self, emit: Emit | None, origin: str) -> None:
        self._emit = emit
        self._origin = origin
        self._blocks: dict[object, _GrowingBlock] = {}
        self._calls = 0
        self._reply: Json = {}
        self.error: Json | None = None
        self.is_over = False

    def feed(self, event: Json) -> None:
        """One event."""
        match event.get("type"):
            case "content_block_delta":
                self._grow(event.get("index"), mapping(event.get("delta")))
            case "content_block_start":
                self._begin(event.get("index"), mapping(event.get("content_block")))
            case "message_start":
                self._reply = dict(mapping(event.get("message")))
            case "message_delta":
                usage = {**mapping(self._reply.get("usage")), **_known(mapping(event.get("usage")))}
                self._reply |= _known(mapping(event.get("delta"))) | {"usage": usage}
            case "message_stop":
                self.is_over = True
            case "error":
                self.error = event
            case _:
                pass  # pings, ends of blocks, and what later versions may add

    def message(self, sent_bytes: int, settings: ModelSettings) -> ModelMessage:
        """The whole reply. Raises `ModelUnreachable` when it was cut off."""
        if not self._reply.get("stop_reason"):
            raise ModelUnreachable("the stream ended before the reply was complete; retry")
        blocks = [growing.finished() for growing in self._blocks.values()]
        return _message_of(blocks, self._reply, sent_bytes, settings, self._origin)

    def _begin(self, index: object, block: Json) -> None:
        self._blocks[index] = _GrowingBlock(block)
        if self._emit is None:
            return
        match block.get("type"):
            case "tool_use":
                self._emit(CallPreview(self._calls, text(block.get("name"))))
                self._calls += 1
            case "text" if started := text(block.get("text")):
                self._emit(TextDelta(started))
            case "thinking" if started := text(block.get("thinking")):
                self._emit(ReasoningDelta(started))
            case _:
                pass

    def _grow(self, index: object, delta: Json) -> None:
        growing = self._blocks.get(index)
        if growing is None:
            return
        match delta.get("type"):
            case "text_delta":
                piece = text(delta.get("text"))
                growing.pieces.append(piece)
                if self._emit and piece:
                    self._emit(TextDelta(piece))
            case "input_json_delta":
                growing.pieces.append(text(delta.get("partial_json")))
            case "thinking_delta":
                piece = text(delta.get("thinking"))
                growing.pieces.append(piece)
                if self._emit and piece:
                    self._emit(ReasoningDelta(piece))
            case "signature_delta":
                signed = text(growing.block.get("signature")) + text(delta.get("signature"))
                growing.block = {**growing.block, "signature": signed}
            case _:
                pass  # citations are no part of the text


def _known(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}
