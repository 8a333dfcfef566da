"""The Anthropic Messages wire.

Neighbours of one role become one message, with results first, since roles must alternate and each call must be answered
in the next message. The ends of tools, system text and messages are marked for the provider's prompt cache.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, starmap
from typing import ClassVar

from surefoot.models import wire
from surefoot.models.errors import denies, finds, learn, named_trait
from surefoot.models.grammar import close
from surefoot.models.json_edge import Json, items, mapping, text, write
from surefoot.types import messages
from surefoot.types.attachments import IMAGES, Attachment
from surefoot.types.errors import ModelUnreachable, TraitRefused
from surefoot.types.tools import ToolSpec

DEFAULT_MAX_TOKENS = 8_192
_VERSION = "2023-06-01"
_LEAST_BUDGET = 1_024  # the API takes no smaller one
_BUDGETS = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 32_768, "max": 32_768}
_CACHE_MARK = b',"cache_control":{"type":"ephemeral"}}'
_END = b"]},"
_USER = b']},{"role":"user","content":['
_ASSISTANT = b']},{"role":"assistant","content":['
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class _Form(wire.Form):
    """`effort` goes to `output_config`, `thinking` is the encoded field.

    One with a budget (`is_budget`) is only taken where the reply that asked for the last calls began with thinking.
    """

    marks: bool
    effort: str
    thinking: bytes
    is_budget: bool


class Anthropic(wire.Wire[_Form]):
    """The wire to one Claude model, at Anthropic or at a server that speaks the same protocol."""

    protocol: ClassVar[str] = "anthropic"
    base_url_hint: ClassVar[str] = "base URL of an Anthropic API (such as https://api.anthropic.com)"
    path: ClassVar[str] = "messages"
    ours: ClassVar[frozenset[str]] = frozenset({"messages", "tools", "stream", "system"})
    held_in: ClassVar[str] = "output_config"

    def url(self, base_url: str) -> str:
        """Where requests are posted. The base URL may end in `/v1` or leave that out, as is the custom here."""
        return super().url(base_url if base_url.endswith("/v1") else f"{base_url}/v1")

    def headers(self, key: str) -> dict[str, str]:
        """The version of the API, and the key in a header of its own."""
        return {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {})

    def body(self, request: messages.ModelRequest) -> bytes:
        form = self.form(request)
        pieces = [form.head]
        if request.system.strip():
            system = write({"type": "text", "text": request.system})
            pieces += (b',"system":[', _mark(system) if form.marks else system, b"]")
        history = wire.without_calls(request.messages) if request.bare else request.messages
        key, encode = form.key, form.encode
        said: list[bytes] = []
        was_assistant: bool | None = None
        ordered = _with_results_first(history)
        for one, blocks in zip(ordered, messages.ModelMessage.encoded(ordered, key, encode), strict=True):
            if not blocks:
                continue
            is_assistant = one.role == "assistant"
            if is_assistant is was_assistant:
                said += (b",", blocks)
            else:
                said += (_ASSISTANT if is_assistant else _USER, blocks)
                was_assistant = is_assistant
        if said:
            said[0] = said[0].removeprefix(_END)
        if form.marks and request.messages and request.messages[-1].role != "assistant" and said:
            said[-1] = _mark(said[-1])
        pieces += (b',"messages":[', *said, b"]}]" if said else b"]")
        last = None
        if form.is_budget:  # it is only taken when the reply that asked for the last calls began with thinking
            last = next((message for message in reversed(history) if message.role == "assistant"), None)
        began = last.opaque if last is not None and last.calls else None
        if began is None or any(kept.get("origin") == self.origin and kept.get("position") == 0 for kept in began):
            pieces.append(form.thinking)
        held = self.schema(request, lambda schema: write({"type": "json_schema", "schema": close(schema)}))
        effort = write(form.effort) if form.effort else b""
        pieces.append(self.holder(request, {"effort": effort, "format": held}))
        if request.mode == "native" and not request.tools.tools:
            # a history with calls is only taken beside declared tools, also where none may be called any more
            names = dict.fromkeys(_wire_name(call.name) for message in history for call in message.calls)
            declared = [{"name": name, "input_schema": {"type": "object"}} for name in names]
            pieces += (b',"tools":', write(declared), b',"tool_choice":{"type":"none"}') if declared else ()
        return b"".join((*pieces, b"}"))

    def make_form(self, request: messages.ModelRequest) -> _Form:
        settings, traits = request.settings, request.traits
        kind = traits.get("reasoning_effort", "adaptive")
        effort = settings.reasoning_effort if kind != "no" and settings.reasoning_effort != "none" else None
        limit = settings.max_output_tokens if settings.max_output_tokens is not None else DEFAULT_MAX_TOKENS
        is_ours = "thinking" not in settings.extra
        wanted = _BUDGETS.get(effort, _BUDGETS["medium"]) if effort and is_ours and kind == "budget" else 0
        limit += wanted if settings.max_output_tokens is None else 0
        if (most := traits.get("max_output_tokens", "")).isdecimal():
            limit = min(limit, int(most))
        thinking: Json = {}
        if wanted:
            budget = min(wanted, limit - _LEAST_BUDGET)
            thinking = {"type": "enabled", "budget_tokens": budget} if budget >= _LEAST_BUDGET else {}
        elif effort and is_ours:
            thinking = {"type": "adaptive"}
        stopping = [stop for stop in wire.stops(request) if stop.strip()]  # blank ones are refused
        asked: dict[str, tuple[str, object]] = {  # field -> trait, value; a thinking model takes no sampling settings
            "max_tokens": ("", limit),  # the wire wants it in every request
            "temperature": ("temperature", None if thinking else settings.temperature),
            "top_p": ("top_p", None if thinking else settings.top_p),
            "stop_sequences": ("stop", stopping or None),
        }
        fields = self.fields(request, asked)
        if (parallel := wire.allows_parallel(request)) is not None:
            fields["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": not parallel}
        marks = traits.get("prompt_cache") != "no"
        key = "anthropic" if marks else "anthropic/unmarked"
        origin = self.origin if traits.get("reasoning_echo") != "no" else ""
        taken = self.file_traits(request)

        def declare(tool: ToolSpec) -> Json:
            return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}

        return _Form(
            wire.head(fields, request, key, declare, _CACHE_MARK if marks else b"}"),
            f"anthropic/{origin}/{''.join(sorted(taken))}",
            partial(_encode, origin=origin, taken=taken),
            marks,
            ("low" if effort == "minimal" else effort) if effort and kind != "budget" else "",
            b',"thinking":' + write(thinking) if thinking else b"",
            kind == "budget",
        )

    def error_in(self, reply: Json) -> Json | None:
        return reply if reply.get("type") == "error" or ("error" in reply and "content" not in reply) else None

    def stream(self, emit: messages.Emit | None) -> "AnthropicReply":
        return AnthropicReply(emit, self.origin)

    def refused(self, message: str, code: str, param: str, sent: Json, traits: messages.Traits) -> TraitRefused | None:
        del code, param
        thinking = mapping(sent.get("thinking"))
        trait, value = "", "no"
        if finds("anthropic.words.cache", message) and denies(message):
            trait = "prompt_cache"
        elif most := finds("anthropic.words.most_tokens", message):
            trait, value = "max_output_tokens", most[1]
        elif finds("anthropic.words.format_field", message):
            trait = "json_schema"
        elif finds("anthropic.words.echo", message):
            trait = "reasoning_echo"
        elif (thinking and finds("anthropic.words.thinking", message)) and (
            denies(message) or finds("anthropic.words.thinking_first", message)
        ):
            # models take a budget of thinking, or an effort, or neither; a refusal of the one often names the other
            other = "adaptive" if finds("anthropic.words.adaptive", message) else "no"
            trait, value = "reasoning_effort", "budget" if thinking.get("type") == "adaptive" else other
        trait = trait or named_trait("anthropic", message, "", "", sent)
        return learn(trait, value, message, traits)


def _with_results_first(history: Sequence[messages.ModelMessage]) -> Sequence[messages.ModelMessage]:
    """Results before what else is said in that turn: the only order that the wire takes. Mostly nothing is copied."""
    before = "assistant"
    for message in history:
        if message.role == "tool" and before not in ("tool", "assistant"):
            break
        before = message.role
    else:
        return history
    sorted_: list[messages.ModelMessage] = []
    for _, turn in groupby(history, lambda message: message.role == "assistant"):
        sorted_ += sorted(turn, key=lambda message: message.role != "tool")
    return sorted_


def _encode(message: messages.ModelMessage, *, origin: str, taken: frozenset[str]) -> bytes:
    """The blocks of one message, without the message around them; nothing where it says nothing."""
    if message.role == "tool":
        result: Json = {"type": "tool_result", "tool_use_id": wire_id(message.call_id)}
        if message.content.strip():  # a blank text is refused, and so is the request with it
            result["content"] = message.content
        if message.files and (files := wire.files_of(message, taken)):
            words = [{"type": "text", "text": message.content}] if message.content.strip() else []
            result["content"] = [*starmap(_block, files), *words]
        return write(result)
    said = [write({"type": "text", "text": message.content})] if message.content.strip() else []
    if message.role != "assistant":
        return b",".join((*(write(_block(*one)) for one in wire.files_of(message, taken)), *said))
    said += (
        b'{"type":"tool_use","id":%b,"name":%b,"input":%b}'
        % (write(wire_id(call.id)), write(_wire_name(call.name)), wire.arguments_text(call).encode())
        for call in message.calls
    )
    return wire.with_opaque(said, message, origin)


def _block(one: Attachment, data: str) -> Json:
    source = {"type": "base64", "media_type": one.media_type, "data": data}
    return {"type": "image" if one.trait == IMAGES else "document", "source": source}


def wire_id(call_id: str) -> str:
    """An id as the wire takes it: letters, digits, `_` and `-`. Another wire's id gets a mark, to stay the only one."""
    plain = _NO_NAME.sub("_", call_id)
    if plain == call_id and call_id:
        return call_id
    return f"{plain}_{zlib.crc32(call_id.encode('utf-8', 'replace')):08x}"


def _wire_name(name: str) -> str:
    """The name of a call as the wire takes it; a model may have invented one."""
    return _NO_NAME.sub("_", name) or "_"


def _mark(block: bytes) -> bytes:
    """The encoded block with a mark: the prompt up to here is worth keeping."""
    return block[:-1] + _CACHE_MARK


@dataclass(slots=True)
class _GrowingBlock:
    block: Json
    pieces: list[str] = field(default_factory=list[str])

    def whole(self) -> Json:
        """The block as a whole reply has it; the arguments of a call stay the text that they came as."""
        if not self.pieces:
            return self.block
        grown = "".join(self.pieces)
        match self.block.get("type"):
            case "text" | "thinking" as kind:
                return {**self.block, str(kind): text(self.block.get(str(kind))) + grown}
            case "tool_use":
                return {**self.block, "input": grown or self.block.get("input")}
            case _:
                return self.block


class AnthropicReply(wire.ReplyStream):
    """A reply of this wire."""

    def __init__(self, emit: messages.Emit | None, origin: str) -> None:
        super().__init__(emit)
        self._origin = origin
        self._blocks: dict[object, _GrowingBlock] = {}
        self._calls = 0
        self._reply: Json = {}

    def feed(self, event: Json) -> None:
        match event.get("type"):
            case "content_block_delta":
                if growing := self._blocks.get(event.get("index")):
                    delta = mapping(event.get("delta"))
                    match delta.get("type"):
                        case "text_delta":
                            growing.pieces.append(piece := text(delta.get("text")))
                            if piece and self.is_watched:
                                self.emit(messages.TextDelta(piece))
                        case "thinking_delta":
                            growing.pieces.append(piece := text(delta.get("thinking")))
                            if piece:
                                self.emit(messages.ReasoningDelta(piece))
                        case "input_json_delta":
                            growing.pieces.append(text(delta.get("partial_json")))
                        case "signature_delta":
                            signed = text(growing.block.get("signature")) + text(delta.get("signature"))
                            growing.block = {**growing.block, "signature": signed}
                        case _:
                            pass  # citations are no part of the text
            case "content_block_start":
                block = mapping(event.get("content_block"))
                self._blocks[event.get("index")] = _GrowingBlock(block)
                if block.get("type") == "tool_use":
                    self.emit(messages.CallPreview(self._calls, text(block.get("name"))))
                    self._calls += 1
                elif started := text(block.get("text")):
                    self.emit(messages.TextDelta(started))
                elif started := text(block.get("thinking")):
                    self.emit(messages.ReasoningDelta(started))
            case "message_start":
                self._reply = dict(mapping(event.get("message")))
            case "message_delta":
                usage = {**mapping(self._reply.get("usage")), **_without_none(mapping(event.get("usage")))}
                self._reply |= _without_none(mapping(event.get("delta"))) | {"usage": usage}
            case "message_stop":
                self.is_over = True
            case "error":
                self.error = event
            case _:
                pass  # pings, ends of blocks, and what later versions may add

    def feed_whole(self, reply: Json) -> None:
        if "content" not in reply:
            raise ModelUnreachable(f"{text(reply.get('model')) or 'the model'} sent a reply without content; retry")
        blocks = map(mapping, items(reply.get("content")))
        self._blocks = {at: _GrowingBlock(block) for at, block in enumerate(blocks)}
        self._reply = {**reply, "stop_reason": reply.get("stop_reason") or "unknown"}

    def message(self, sent_bytes: int, settings: messages.ModelSettings) -> messages.ModelMessage:
        if not self._reply.get("stop_reason"):
            raise ModelUnreachable("the stream ended before the reply was complete; retry")
        said: list[str] = []
        thought: list[str] = []
        calls: list[messages.NativeCall] = []
        opaque: list[Mapping[str, object]] = []
        for block in (growing.whole() for growing in self._blocks.values()):
            kind = block.get("type")
            if kind == "text":
                said.append(text(block.get("text")))
            elif kind == "tool_use":
                given = block.get("input")
                arguments = given if isinstance(given, str) else mapping(given)
                calls.append(messages.NativeCall(text(block.get("id")), text(block.get("name")), arguments))
            elif kind == "thinking":
                thought.append(text(block.get("thinking")))
            if kind == "redacted_thinking" or (kind == "thinking" and text(block.get("signature"))):
                opaque.append(wire.opaque_item(self._origin, len(calls) + any(said), block))  # it can be sent back
        shown, reasoning = "".join(said), "\n\n".join(filter(None, thought))
        finish = wire.FINISH.get(text(self._reply["stop_reason"]), "unknown")
        return wire.reply_message(
            self._reply, shown, reasoning, calls, finish=finish, sent=sent_bytes, settings=settings, opaque=opaque
        )


def _without_none(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}
