"""The OpenAI chat completions wire, which most servers speak, said as an endpoint's traits allow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from typing import ClassVar

from surefoot.models import wire
from surefoot.models.errors import denies, finds, learn, named_trait
from surefoot.models.json_edge import Json, first, items, mapping, read, text, whole, write
from surefoot.models.traits import ID_SHAPES, id_in
from surefoot.types import messages
from surefoot.types.attachments import AUDIO, IMAGES, PDF, Attachment
from surefoot.types.errors import ModelRefused, ModelUnreachable, TraitRefused
from surefoot.types.tools import ToolSpec

_SYSTEM_NAMES = {"developer": "developer", "user": "user", "no": "user"}
_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
_NULL_CONTENT: dict[str, str | None] = {"empty": "", "blank": " "}


@dataclass(frozen=True, slots=True)
class _Form(wire.Form):
    system_role: str
    folds_system: bool
    merges: bool
    taken: frozenset[str]


class OpenAIChat(wire.Wire[_Form]):
    """The wire to one model of an OpenAI-compatible server."""

    protocol: ClassVar[str] = "openai_chat"
    base_url_hint: ClassVar[str] = "OpenAI-compatible base URL (most end in /v1)"
    path: ClassVar[str] = "chat/completions"
    ours: ClassVar[frozenset[str]] = frozenset({"messages", "tools", "stream"})
    held_in: ClassVar[str] = "response_format"
    files: ClassVar[tuple[str, ...]] = (IMAGES, PDF, AUDIO)

    def body(self, request: messages.ModelRequest) -> bytes:
        form = self.form(request)
        history: Sequence[messages.ModelMessage] = request.messages
        if form.folds_system and request.system:
            folded, rest, files = request.system, history, tuple[Attachment, ...]()
            if history and history[0].role == "user":
                folded, rest, files = f"{folded}\n\n{history[0].content}", history[1:], history[0].files
            history = (messages.ModelMessage("user", folded, files=files), *rest)
        if request.files:
            history = wire.with_files_after(history, form.taken)
        if form.merges:
            merged: list[messages.ModelMessage] = []
            for one in history:
                last = merged[-1] if merged else None
                if last is not None and last.role == one.role != "tool" and not last.calls:
                    content, both = f"{last.content}\n\n{one.content}", (*last.files, *one.files)
                    merged[-1] = replace(one, content=content, files=both)
                else:
                    merged.append(one)
            history = merged
        said = messages.ModelMessage.encoded(history, form.key, form.encode)
        if request.system and not form.folds_system:
            said.insert(0, write({"role": form.system_role, "content": request.system}))
        pieces = [b","] * (2 * len(said))  # tools and history may be long: each byte is copied once
        pieces[::2] = said
        holder = b""
        if request.schema is not None or request.settings.extra:
            held = self.schema(request, lambda schema: write(wire.held_to(request, schema)))
            holder = self.holder(request, {"type": b'"json_schema"', "json_schema": held} if held else {})
        return b"".join((form.head, *pieces[:-1], b"]", holder, b"}"))

    def make_form(self, request: messages.ModelRequest) -> _Form:
        settings, traits = request.settings, request.traits
        asked: dict[str, tuple[str, object]] = {  # field -> trait, value
            "temperature": ("temperature", settings.temperature),
            "top_p": ("top_p", settings.top_p),
            traits.get("max_tokens_field", "max_tokens"): ("max_tokens_field", settings.max_output_tokens),
            "seed": ("seed", settings.seed),
            "reasoning_effort": ("reasoning_effort", settings.reasoning_effort),
            "stop": ("stop", wire.stops(request) or None),
        }
        fields = self.fields(request, asked)
        if request.stream and traits.get("stream_usage") != "no":
            fields["stream_options"] = {**mapping(fields.get("stream_options")), "include_usage": True}
        if (parallel := wire.allows_parallel(request)) is not None:
            fields["parallel_tool_calls"] = parallel
        echo = traits.get("reasoning_echo", "")
        echo = "reasoning_content" if echo == "yes" else echo
        system_role = _SYSTEM_NAMES.get(traits.get("system_role", ""), "system")
        null, shape = traits.get("null_content", "null"), traits.get("id_shape", "any")
        taken, id_of = self.file_traits(request), partial(id_in, shape) if shape in ID_SHAPES else str
        encode = partial(_encode, role=system_role, model=self.model, id_of=id_of, echo=echo, taken=taken)

        def declare(tool: ToolSpec) -> Json:
            function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            return {"type": "function", "function": function}

        return _Form(
            wire.head(fields, request, "openai_chat", declare) + b',"messages":[',
            f"openai_chat/{system_role}/{null}/{echo}/{shape}/{self.model}/{''.join(sorted(taken))}",
            partial(encode, null=_NULL_CONTENT.get(null)),
            system_role,
            traits.get("system_role") == "no",
            traits.get("alternation") == "yes",
            taken,
        )

    def read(self, reply: Json, sent_bytes: int, settings: messages.ModelSettings) -> messages.ModelMessage:
        """Most whole replies are text and complete calls; what is not so is taken piece by piece."""
        choice = first(reply.get("choices"))
        said, finish = mapping(choice.get("message")), wire.FINISH.get(text(choice.get("finish_reason")))
        calls: list[messages.NativeCall] = []
        for piece in map(mapping, items(said.get("tool_calls"))):
            match piece:
                case {"id": str(id_), "function": {"name": str(name), "arguments": str(args)}} if piece.keys() <= _CALL:
                    calls.append(messages.NativeCall(id_, name, args))
                case _:
                    break
        else:
            is_text = isinstance(content := said.get("content") or "", str)
            if finish and is_text and not any(map(said.get, said.keys() - _USUAL)):
                return wire.reply_message(reply, content, "", calls, finish=finish, sent=sent_bytes, settings=settings)
        return super().read(reply, sent_bytes, settings)

    def error_in(self, reply: Json) -> Json | None:
        return reply if "choices" not in reply and ("error" in reply or reply.get("object") == "error") else None

    def stream(self, emit: messages.Emit | None) -> "ChatReply":
        return ChatReply(emit, self.origin)

    def refused(self, message: str, code: str, param: str, sent: Json, traits: messages.Traits) -> TraitRefused | None:
        if about_messages := _refused_message(message, sent, traits):
            return learn(*about_messages, message, traits)
        trait, value = named_trait("openai_chat", message, code, param, sent), "no"
        if trait == "max_tokens_field":
            other = "max_completion_tokens" if "max_tokens" in sent else "max_tokens"
            value = "no" if "max_tokens_field" in traits and f"'{other}'" not in message else other  # both were tried
        return learn(trait, value, message, traits)


class AzureChat(OpenAIChat):
    """The same wire to one deployment of Azure OpenAI."""

    def headers(self, key: str) -> dict[str, str]:
        """A key goes into a header of Azure's own; a token, which is told by its dots, goes where tokens go."""
        return super().headers(key) if "." in key or not key else {"api-key": key}


def _encode(
    message: messages.ModelMessage,
    *,
    role: str,
    null: str | None,
    echo: str,
    id_of: Callable[[str], str],
    model: str,
    taken: frozenset[str],
) -> bytes:
    """One message on this wire. Tool content is always a string; reasoning goes only to the model that had it."""
    if message.role == "tool":
        return write({"role": "tool", "tool_call_id": id_of(message.call_id), "content": message.content})
    if message.role != "assistant":
        content: object = message.content
        if message.files and (files := wire.files_of(message, taken)):
            words = [{"type": "text", "text": message.content}] if message.content else []
            content = [*words, *starmap(_part, files)]
        return write({"role": role if message.role == "system" else "user", "content": content})
    made: list[Json] = [
        {"id": id_of(one.id), "type": "function", "function": {"name": one.name, "arguments": wire.arguments_text(one)}}
        for one in message.calls
    ]
    # an endpoint that refuses empty content refuses it everywhere
    fields: Json = {"role": "assistant", "content": message.content or (null if made or null else "")}
    if made:
        fields["tool_calls"] = made
    for kept in message.opaque:  # what its model has to get back
        at, item = whole(kept.get("position")), mapping(kept.get("item"))
        if kept.get("origin") != f"openai_chat {model}":
            continue
        if _DETAILS in item:
            fields |= item if echo != "no" else {}
        elif at < len(made):
            made[at]["extra_content"] = item
    if echo not in ("", "no"):  # who wants it wants it of every message
        fields[echo] = message.reasoning if wire.is_same_model(message.model, model) else ""
    return write(fields)


def _part(one: Attachment, data: str) -> Json:
    if one.trait == IMAGES:
        return {"type": "image_url", "image_url": {"url": wire.file_url(one, data)}}
    if one.trait == AUDIO:
        return {"type": "input_audio", "input_audio": {"data": data, "format": _SOUNDS[one.media_type]}}
    return {"type": "file", "file": {"filename": one.name, "file_data": wire.file_url(one, data)}}


def _refused_message(message: str, sent: Json, traits: messages.Traits) -> tuple[str, str] | None:
    """The trait and value that an error about the messages themselves teaches."""
    said = [mapping(item) for item in items(sent.get("messages"))]
    roles = [one.get("role") for one in said]
    has_system = bool(roles) and roles[0] in ("system", "developer")
    if shape := next((one for one in ID_SHAPES if finds(f"openai_chat.words.id_{one}", message)), ""):
        return "id_shape", shape
    if has_system and finds("openai_chat.words.no_system", message):
        return "system_role", "system" if roles[0] == "developer" else "no"
    if finds("openai_chat.words.alternation", message):
        # templates that know no system message say so in the same words
        return ("system_role", "no") if traits.get("alternation") == "yes" and has_system else ("alternation", "yes")
    if finds("openai_chat.words.echo", message):
        is_wanted = finds("openai_chat.words.echo_wanted", message) and not denies(message)
        if "assistant" in roles and is_wanted:
            return "reasoning_echo", "reasoning_content"
        is_of_details = _DETAILS in message
        if any(key.startswith("reasoning") and (key == _DETAILS) is is_of_details for one in said for key in one):
            return "reasoning_echo", "no"
    for one in said:
        if one.get("role") == "assistant" and one.get("content") in (None, ""):  # the next to try in its place
            value = "empty" if one.get("content") is None else "blank"
            return ("null_content", value) if finds("openai_chat.words.null_content", message) else None
    return None


def _content_parts(content: object) -> tuple[str, str]:
    """Content that is no text as (visible text, reasoning): a list of parts of either kind, or nothing."""
    shown: list[str] = []
    thought: list[str] = []
    for item in items(content):
        part = mapping(item)
        if "thinking" in part:
            inner = part["thinking"]
            thought.append(inner if isinstance(inner, str) else "".join(_content_parts(inner)))
        else:
            shown.append(text(item) or text(part.get("text")))
    return "".join(shown), "".join(thought)


@dataclass(slots=True)
class _GrowingCall:
    """A call whose pieces are still arriving. `key` is the index the server gave, if it gave one."""

    key: object
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    whole: Json | None = None
    extra: Json | None = None
    is_shown: bool = False

    def is_other(self, call_id: str, name: str) -> bool:
        """Whether a piece that carries a name belongs to another call than this one."""
        if call_id and self.id:
            return call_id != self.id
        if self.whole is not None:
            return True
        arguments = "".join(self.arguments)  # once they have begun the name is whole
        return bool(arguments) and (name != self.name or read(arguments) is not None)


_DETAILS = "reasoning_details"
"""What OpenRouter gives of a model's reasoning, in any vendor's form; Gemini 3 refuses its calls without it."""

_IN_PIECES = {"reasoning.text": "text", "reasoning.summary": "summary"}  # what a stream cuts, and where

_USUAL = frozenset({"role", "content", "tool_calls"})  # what most messages hold, and nothing else
_CALL = frozenset({"id", "type", "index", "function"})  # and most calls in them

_BROKEN_OFF = ("error", "insufficient_system_resource")
"""Finish reasons, of OpenRouter and of DeepSeek, after which what was said is no whole reply."""


class ChatReply(wire.ReplyStream):
    """A reply of this wire. Some servers send the whole message where others send its next piece."""

    def __init__(self, emit: messages.Emit | None, origin: str = "") -> None:
        super().__init__(emit)
        self._origin = origin
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_GrowingCall] = []
        self._details: list[Json] = []
        self._finish = ""
        self._told: Json = {}  # model, id and usage

    def feed(self, event: Json) -> None:
        if event.get("error") or event.get("object") == "error":
            self.error = event
            return
        choice = first(event.get("choices"))
        if choice and not choice.get("index"):  # no alternative reply that nobody asked for
            self._finish = text(choice.get("finish_reason")) or self._finish
            delta = mapping(choice.get("delta"))
            self._take(delta or mapping(choice.get("message")), is_whole=not delta)
        if not self._told.get("model"):
            self._told |= {"model": event.get("model"), "id": event.get("id")}
        if usage := event.get("usage"):
            self._told["usage"] = usage

    def feed_whole(self, reply: Json) -> None:
        choice = first(reply.get("choices"))
        if not choice:
            raise ModelUnreachable(f"{text(reply.get('model')) or 'the model'} sent a reply without any choice; retry")
        self._take(mapping(choice.get("message")), is_whole=True)
        self._finish = text(choice.get("finish_reason")) or "unknown"
        self._told = reply

    def message(self, sent_bytes: int, settings: messages.ModelSettings) -> messages.ModelMessage:
        if not self._finish and not (self.is_over and (self._text or self._calls or self._refusal)):
            raise ModelUnreachable("the stream ended before the reply was complete; retry")
        if self._finish in _BROKEN_OFF:
            raise ModelUnreachable(f"the server broke the reply off ({self._finish}); retry")
        if self._refusal:
            raise ModelRefused(f"the model declined to answer: {''.join(self._refusal)}", kind="refused")
        calls: list[messages.NativeCall] = []
        opaque: list[Mapping[str, object]] = []
        for at, call in enumerate(self._calls):
            self._show(call)
            arguments = "".join(call.arguments) if call.whole is None else call.whole
            calls.append(messages.NativeCall(call.id, call.name, arguments))
            if call.extra:
                opaque.append(wire.opaque_item(self._origin, at, call.extra))
        if self._details:
            opaque.append(wire.opaque_item(self._origin, 0, {_DETAILS: self._details}))
        said, thought, finish = "".join(self._text), "".join(self._reasoning), wire.FINISH.get(self._finish, "unknown")
        return wire.reply_message(
            self._told, said, thought, calls, finish=finish, sent=sent_bytes, settings=settings, opaque=opaque
        )

    def _take(self, delta: Json, *, is_whole: bool) -> None:
        content, pieces = delta.get("content"), items(delta.get("tool_calls"))
        shown, thought = text(content), ""
        if content and not shown:
            shown, thought = _content_parts(content)
        if not delta.keys() <= _USUAL:
            thought = thought or text(delta.get("reasoning_content")) or text(delta.get("reasoning"))
            if refusal := text(delta.get("refusal")):
                self._refusal.append(refusal)
            for one in items(delta.get(_DETAILS)):
                self._detail(mapping(one), is_whole=is_whole)
            if not pieces and delta.get("function_call"):  # the form before `tool_calls`
                pieces = [{"index": 0, "function": delta["function_call"]}]
        if thought:
            self._reasoning.append(thought)
            self.emit(messages.ReasoningDelta(thought))
        if shown:
            self._text.append(shown)
            if self.is_watched:
                self.emit(messages.TextDelta(shown))
        for one in pieces:
            piece = mapping(one)
            call_id, function = text(piece.get("id")), mapping(piece.get("function"))
            name = text(function.get("name"))
            call = None if is_whole else self._call_for(piece.get("index"), call_id, name)
            if call is None:
                call = _GrowingCall(piece.get("index"))
                self._calls.append(call)
            call.id = call.id or call_id
            if extra := piece.get("extra_content"):
                call.extra = mapping(extra) or call.extra
            if name and name != call.name:  # a name may come in pieces, and some servers repeat it with each
                call.name += name
            if "arguments" not in function:
                continue
            self._show(call)
            arguments = wire.arguments_of(function["arguments"])
            if isinstance(arguments, str):
                call.arguments.append(arguments)
            else:
                call.whole = arguments

    def _detail(self, piece: Json, *, is_whole: bool) -> None:
        last = self._details[-1] if self._details and not is_whole else {}
        name = _IN_PIECES.get(text(piece.get("type")))
        if name and all(piece.get(one) == last.get(one) for one in ("type", "index")):
            told = {one: value for one, value in piece.items() if value is not None}
            self._details[-1] = last | told | {name: text(last.get(name)) + text(piece.get(name))}
        else:
            self._details.append(piece)

    def _call_for(self, key: object, call_id: str, name: str) -> _GrowingCall | None:
        """The call that a piece belongs to; `None` when it begins another.

        Some servers give no index, and some give 0 to each of several calls: then a name begins another call if it
        comes with another id, or without one after the call that was found is whole.
        """
        calls = self._calls
        if key is not None:
            found = next((call for call in reversed(calls) if call.key == key), None)
        elif call_id:
            found = next((call for call in calls if call.id == call_id), None)
        else:
            found = calls[-1] if calls and not (name and calls[-1].arguments) else None
        return None if found is not None and name and found.is_other(call_id, name) else found

    def _show(self, call: _GrowingCall) -> None:
        if self.is_watched and call.name and not call.is_shown:
            self.emit(messages.CallPreview(self._calls.index(call), call.name))
            call.is_shown = True
