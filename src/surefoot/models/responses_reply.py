"""A reply on the OpenAI Responses wire, whole or in pieces, read into a `ModelMessage`."""

from collections.abc import Mapping
from typing import Final

from surefoot.models.history import opaque_item
from surefoot.models.json_edge import Json, items, mapping, text, whole
from surefoot.models.openai_reply import arguments_of
from surefoot.models.usage import estimated, price_of
from surefoot.types.errors import ModelRefused, ModelUnreachable
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

_CUT: Final[dict[str, FinishReason]] = {"max_output_tokens": "length", "content_filter": "content_filter"}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.done"})
_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})


def read_reply(reply: Json, sent_bytes: int, settings: ModelSettings, origin: str) -> ModelMessage:
    """A whole reply. `sent_bytes`: the size of the request, from which missing usage is estimated.

    Raises `ModelUnreachable` when it is not finished, `ModelRefused` when the model declined to answer.
    """
    status = text(reply.get("status"))
    if "output" not in reply or status in ("in_progress", "queued", "cancelled"):
        raise ModelUnreachable(f"{text(reply.get('model')) or 'the model'} sent no finished reply; retry")
    said: list[str] = []
    thought: list[str] = []
    calls: list[NativeCall] = []
    opaque: list[Mapping[str, object]] = []
    for entry in items(reply.get("output")):
        item = mapping(entry)
        match item.get("type"):
            case "message":
                said.append(_said(item))
            case "function_call":
                call_id = text(item.get("call_id")) or text(item.get("id"))
                calls.append(NativeCall(call_id, text(item.get("name")), arguments_of(item.get("arguments"))))
            case "reasoning":
                thought += _texts(item.get("summary")) + _texts(item.get("content"))
                if item.get("encrypted_content"):
                    opaque.append(opaque_item(origin, len(calls) + any(said), item))
            case _:
                pass  # the provider's own tools, which nobody asked for
    content, reasoning = "".join(said), "\n\n".join(thought)
    usage = usage_of(mapping(reply.get("usage")), settings)
    return ModelMessage(
        "assistant",
        content,
        tuple(calls),
        reasoning=reasoning,
        finish_reason=_finish(reply, has_calls=bool(calls)),
        usage=usage or estimated(sent_bytes, content + reasoning, tuple(calls), settings),
        model=text(reply.get("model")),
        id=text(reply.get("id")),
        opaque=tuple(opaque),
    )


def _finish(reply: Json, *, has_calls: bool) -> FinishReason:
    if cut := text(mapping(reply.get("incomplete_details")).get("reason")):
        return _CUT.get(cut, "unknown")
    if reply.get("status") == "incomplete":
        return "unknown"
    return "tool_calls" if has_calls else "stop"


def _said(item: Json) -> str:
    content = item.get("content")
    if isinstance(content, str):  # some servers shorten it
        return content
    said: list[str] = []
    for entry in items(content):
        part = mapping(entry)
        if part.get("type") == "refusal":
            raise ModelRefused(f"the model declined to answer: {text(part.get('refusal'))}", kind="refused")
        said.append(text(part.get("text")))
    return "".join(said)


def _texts(parts: object) -> list[str]:
    return [found for entry in items(parts) if (found := text(mapping(entry).get("text")))]


def usage_of(told: Json, settings: ModelSettings) -> Usage | None:
    """What a request used, as told; `None` when nothing was told."""
    if not told:
        return None
    used_in, used_out = whole(told.get("input_tokens")), whole(told.get("output_tokens"))
    cached = whole(mapping(told.get("input_tokens_details")).get("cached_tokens"))
    thinking = whole(mapping(told.get("output_tokens_details")).get("reasoning_tokens"))
    cost = told.get("cost")
    price = float(cost) if isinstance(cost, int | float) else price_of(used_in, used_out, settings)
    return Usage(used_in, used_out, cached, thinking, price)


def error_in(reply: Json) -> Json | None:
    """The error that a response, or an event of a stream, holds; `None` when it holds none."""
    inner = mapping(reply.get("error"))
    if inner:
        return {"error": inner}
    if reply.get("status") == "failed":
        return {"error": {"message": "the reply failed without a reason", "code": "server_error"}}
    return reply if "error" in reply and "output" not in reply else None


class ResponsesStream:
    """A `ReplyStream` of this wire. The pieces are for display: the event that ends the stream holds the whole reply.

    Where a server leaves the output out of that event, the finished items that came before stand in for it.
    """

    __slots__ = ("_calls", "_emit", "_items", "_origin", "_reply", "error", "is_over")

    def __init__(self, emit: Emit | None, origin: str) -> None:
        self._emit = emit
        self._origin = origin
        self._items: list[object] = []
        self._calls = 0
        self._reply: Json | None = None
        self.error: Json | None = None
        self.is_over = False

    def feed(self, event: Json) -> None:
        """One event."""
        kind = text(event.get("type"))
        if kind == "response.output_text.delta":
            if self._emit and (piece := text(event.get("delta"))):
                self._emit(TextDelta(piece))
        elif kind in _THOUGHTS:
            if self._emit and (piece := text(event.get("delta"))):
                self._emit(ReasoningDelta(piece))
        elif kind == "response.output_item.added":
            self._preview(mapping(event.get("item")))
        elif kind == "response.output_item.done":
            self._items.append(event.get("item"))
        elif kind in _ENDS:
            self._end(mapping(event.get("response")))
        elif kind == "response.failed":
            self.error = error_in({"status": "failed", **mapping(event.get("response"))})
        elif kind == "error" or (not kind and event.get("error")):
            details = mapping(event.get("error")) or event
            self.error = {"error": {name: details.get(name) for name in ("message", "code", "param")}}

    def message(self, sent_bytes: int, settings: ModelSettings) -> ModelMessage:
        """The whole reply. Raises `ModelUnreachable` when it was cut off, `ModelRefused` when the model declined."""
        if self._reply is None:
            raise ModelUnreachable("the stream ended before the reply was complete; retry")
        return read_reply(self._reply, sent_bytes, settings, self._origin)

    def _preview(self, item: Json) -> None:
        if self._emit and item.get("type") == "function_call":
            self._emit(CallPreview(self._calls, text(item.get("name"))))
            self._calls += 1

    def _end(self, reply: Json) -> None:
        self._reply = reply if reply.get("output") else {**reply, "output": self._items}
        self.is_over = True
