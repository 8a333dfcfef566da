"""The OpenAI Responses wire, with nothing stored at the provider: reasoning travels encrypted, out and back."""

from collections.abc import Mapping
from functools import partial
from itertools import starmap
from typing import ClassVar, Final

from surefoot.models import wire
from surefoot.models.errors import finds, learn, named_trait
from surefoot.models.json_edge import Json, items, mapping, text, write
from surefoot.types import messages
from surefoot.types.attachments import IMAGES, Attachment
from surefoot.types.errors import ModelRefused, ModelUnreachable, TraitRefused
from surefoot.types.tools import ToolSpec

_CUT: Final[dict[str, messages.FinishReason]] = {"max_output_tokens": "length", "content_filter": "content_filter"}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.done"})
_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})


class OpenAIResponses(wire.Wire[wire.Form]):
    """The wire to one model of OpenAI, or of a server that speaks the same protocol."""

    protocol: ClassVar[str] = "openai_responses"
    base_url_hint: ClassVar[str] = "base URL of the OpenAI Responses API (most end in /v1)"
    path: ClassVar[str] = "responses"
    ours: ClassVar[frozenset[str]] = frozenset({"input", "instructions", "tools", "stream", "store"})
    held_in: ClassVar[str] = "text"

    def body(self, request: messages.ModelRequest) -> bytes:
        form = self.form(request)
        said = messages.ModelMessage.encoded(request.messages, form.key, form.encode)
        pieces = [form.head]
        if request.system:
            pieces += (b',"instructions":', write(request.system))
        held = self.schema(request, lambda schema: write({"type": "json_schema", **wire.held_to(request, schema)}))
        said = b",".join(items for items in said if items)
        pieces += (b',"input":[', said, b"]", self.holder(request, {"format": held}), b"}")
        return b"".join(pieces)

    def make_form(self, request: messages.ModelRequest) -> wire.Form:
        settings, traits = request.settings, request.traits
        effort = settings.reasoning_effort
        asked: dict[str, tuple[str, object]] = {  # field -> trait, value; the wire knows no stop sequences and no seed
            "store": ("store", False),
            "include": ("reasoning_echo", ["reasoning.encrypted_content"]),
            "temperature": ("temperature", settings.temperature),
            "top_p": ("top_p", settings.top_p),
            "max_output_tokens": ("max_tokens_field", settings.max_output_tokens),
            "reasoning": ("reasoning_effort", None if effort is None else {"effort": effort}),
        }
        fields = self.fields(request, asked)
        if (parallel := wire.allows_parallel(request)) is not None:
            fields["parallel_tool_calls"] = parallel
        origin = self.origin if traits.get("reasoning_echo") != "no" else ""

        def declare(tool: ToolSpec) -> Json:  # left unsaid, `strict` would let this wire rewrite the schema
            shown = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            return {"type": "function", **shown, "strict": False}

        taken = self.file_traits(request)
        return wire.Form(
            wire.head(fields, request, "openai_responses", declare),
            f"openai_responses/{origin}/{''.join(sorted(taken))}",
            partial(_encode, origin=origin, taken=taken),
        )

    def error_in(self, reply: Json) -> Json | None:
        if inner := mapping(reply.get("error")):
            return {"error": inner}
        if reply.get("status") == "failed":
            return {"error": {"message": "the reply failed without a reason", "code": "server_error"}}
        return reply if "error" in reply and "output" not in reply else None

    def stream(self, emit: messages.Emit | None) -> "ResponsesReply":
        return ResponsesReply(emit, self)

    def refused(self, message: str, code: str, param: str, sent: Json, traits: messages.Traits) -> TraitRefused | None:
        if finds("openai_responses.words.echo", f"{code} {message}"):
            return learn("reasoning_echo", "no", message, traits)
        return learn(named_trait("openai_responses", message, code, param, sent), "no", message, traits)


def _encode(message: messages.ModelMessage, *, origin: str, taken: frozenset[str]) -> bytes:
    """The items that one message amounts to, joined by commas; nothing where it says nothing."""
    content: object = message.content
    if message.files and (files := wire.files_of(message, taken)):
        words = [{"type": "input_text", "text": message.content}] if message.content else []
        content = [*words, *starmap(_part, files)]
    if message.role == "tool":
        return write({"type": "function_call_output", "call_id": message.call_id, "output": content})
    if message.role != "assistant":
        return write({"role": message.role, "content": content})
    said = [write({"role": "assistant", "content": message.content})] if message.content else []
    said += (
        write({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": wire.arguments_text(call)})
        for call in message.calls
    )
    return wire.with_opaque(said, message, origin)


def _part(one: Attachment, data: str) -> Json:
    if one.trait == IMAGES:
        return {"type": "input_image", "image_url": wire.file_url(one, data)}
    return {"type": "input_file", "filename": one.name, "file_data": wire.file_url(one, data)}


class ResponsesReply(wire.ReplyStream):
    """A reply: the event that ends the stream holds all of it, or the finished items before stand in for its output."""

    def __init__(self, emit: messages.Emit | None, spoken: OpenAIResponses) -> None:
        super().__init__(emit)
        self._wire = spoken
        self._items: list[object] = []
        self._calls = 0
        self._reply: Json | None = None

    def feed(self, event: Json) -> None:
        kind = text(event.get("type"))
        if kind == "response.output_text.delta" or kind in _THOUGHTS:
            if piece := text(event.get("delta")):
                self.emit(messages.ReasoningDelta(piece) if kind in _THOUGHTS else messages.TextDelta(piece))
        elif kind == "response.output_item.added":
            item = mapping(event.get("item"))
            if item.get("type") == "function_call":
                self.emit(messages.CallPreview(self._calls, text(item.get("name"))))
                self._calls += 1
        elif kind == "response.output_item.done":
            self._items.append(event.get("item"))
        elif kind in _ENDS:
            reply = mapping(event.get("response"))
            self._reply = reply if reply.get("output") else {**reply, "output": self._items}
            self.is_over = True
        elif kind == "response.failed":
            self.error = self._wire.error_in({"status": "failed", **mapping(event.get("response"))})
        elif kind == "error" or (not kind and event.get("error")):
            details = mapping(event.get("error")) or event
            self.error = {"error": {name: details.get(name) for name in ("message", "code", "param")}}

    def feed_whole(self, reply: Json) -> None:
        if "output" in reply:
            self._reply = reply

    def message(self, sent_bytes: int, settings: messages.ModelSettings) -> messages.ModelMessage:
        reply = self._reply
        if reply is None or reply.get("status") in ("in_progress", "queued", "cancelled"):
            raise ModelUnreachable("the model sent no finished reply; retry")
        said: list[str] = []
        thought: list[str] = []
        calls: list[messages.NativeCall] = []
        opaque: list[Mapping[str, object]] = []
        for entry in items(reply.get("output")):
            item = mapping(entry)
            match item.get("type"):
                case "message":
                    content = item.get("content")
                    # some servers shorten it to a text
                    parts = [{"text": content}] if isinstance(content, str) else [*map(mapping, items(content))]
                    for part in parts:
                        if part.get("type") == "refusal":
                            declined = f"the model declined to answer: {text(part.get('refusal'))}"
                            raise ModelRefused(declined, kind="refused")
                    said.append("".join(text(part.get("text")) for part in parts))
                case "function_call":
                    call_id = text(item.get("call_id")) or text(item.get("id"))
                    arguments = wire.arguments_of(item.get("arguments"))
                    calls.append(messages.NativeCall(call_id, text(item.get("name")), arguments))
                case "reasoning":
                    parts = (*items(item.get("summary")), *items(item.get("content")))
                    thought += [words for part in parts if (words := text(mapping(part).get("text")))]
                    if item.get("encrypted_content"):
                        opaque.append(wire.opaque_item(self._wire.origin, len(calls) + any(said), item))
                case _:
                    pass  # the provider's own tools, which nobody asked for
        finish: messages.FinishReason = "tool_calls" if calls else "stop"
        cut = text(mapping(reply.get("incomplete_details")).get("reason"))
        if cut or reply.get("status") == "incomplete":
            finish = _CUT.get(cut, "unknown")
        shown, reasoning = "".join(said), "\n\n".join(thought)
        return wire.reply_message(
            reply, shown, reasoning, calls, finish=finish, sent=sent_bytes, settings=settings, opaque=opaque
        )
