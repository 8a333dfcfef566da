"""The body of a request on the Anthropic Messages wire.

As on the chat wire, a step costs only what is new in it: a message keeps its blocks in their encoded form, and the body
is a join of bytes. Neighbours of one role become one message, with the results of a reply first, since roles must
alternate and each call must be answered in the next message. The end of the tools, of the system text and of the
messages are marked for the provider's prompt cache; what stands before a mark is the same bytes in every later request.
"""

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby

from surefoot.models.forms import Forms, check_extra, kept_fields, stops_of
from surefoot.models.history import arguments_text, with_opaque, without_calls
from surefoot.models.json_edge import Json, text, write
from surefoot.models.step_schemas import closed
from surefoot.types.dataclass import dataclass
from surefoot.types.messages import ModelMessage, ModelRequest, ModelSettings, Traits
from surefoot.types.tools import Catalogue

DEFAULT_MAX_TOKENS = 8_192
_LEAST_BUDGET = 1_024  # the API takes no smaller one
_BUDGETS = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 32_768, "max": 32_768}
_MAX_STOPS = 4  # the wire has no limit of its own
_OURS = frozenset({"messages", "tools", "stream", "system"})
_CACHE_MARK = b',"cache_control":{"type":"ephemeral"}}'
_END = b"]},"
_USER = b']},{"role":"user","content":['
_ASSISTANT = b']},{"role":"assistant","content":['
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class _Form:
    """All of a request that stays the same from step to step.

    `effort` goes to `output_config`, `thinking` is the encoded field; one with a budget (`is_budget`) is only taken
    when the reply that asked for the last calls began with thinking.
    """

    head: bytes
    wire_key: str
    encode: Callable[[ModelMessage], bytes]
    marks: bool
    effort: str
    thinking: bytes
    is_budget: bool


def origin_of(model: str) -> str:
    """What this wire's signed reasoning is kept under."""
    return f"anthropic {model}"


class AnthropicBody:
    """Writes the bodies of requests to one model. Keeps the forms in use, and nothing of any conversation."""

    def __init__(self, model: str) -> None:
        self._origin = origin_of(model)
        self._forms = Forms(partial(_make_form, model))
        self._schema: tuple[Mapping[str, object] | None, object] = (None, None)

    def body(self, request: ModelRequest) -> bytes:
        """The request as bytes. Costs a memory copy and the encoding of messages not sent before.

        Raises `ModelRefused` when `settings.extra` claims a field that is not its own.
        """
        form = self._forms.of(request)
        pieces = [form.head]
        if request.system.strip():
            system = write({"type": "text", "text": request.system})
            pieces += (b',"system":[', _marked(system) if form.marks else system, b"]")
        messages = without_calls(request.messages) if request.bare else request.messages
        said = _said(messages, form)
        if form.marks and request.messages and request.messages[-1].role != "assistant" and said:
            said[-1] = _marked(said[-1])
        pieces += (b',"messages":[', *said, b"]}]" if said else b"]", *self._tail(request, messages, form), b"}")
        return b"".join(pieces)

    def _tail(self, request: ModelRequest, messages: Sequence[ModelMessage], form: _Form) -> list[bytes]:
        tail: list[bytes] = []
        if form.thinking and not (form.is_budget and self._calls_without_thinking(messages)):
            tail.append(form.thinking)
        output: Json = {"effort": form.effort} if form.effort else {}
        if request.mode == "schema" and request.schema is not None and request.traits.get("json_schema") != "no":
            if self._schema[0] is not request.schema:
                self._schema = (request.schema, closed(request.schema))
            output["format"] = {"type": "json_schema", "schema": self._schema[1]}
        if output:
            tail.append(b',"output_config":' + write(output))
        if request.mode == "native" and not request.tools.tools:
            tail += _tools_of_the_past(messages)
        return tail

    def _calls_without_thinking(self, messages: Sequence[ModelMessage]) -> bool:
        last = next((message for message in reversed(messages) if message.role == "assistant"), None)
        if last is None or not last.calls:
            return False
        return not any(kept.get("origin") == self._origin and kept.get("position") == 0 for kept in last.opaque)


def _make_form(model: str, request: ModelRequest) -> _Form:
    settings, traits = request.settings, request.traits
    kind = traits.get("reasoning_effort", "adaptive")
    effort = settings.reasoning_effort if kind != "no" and settings.reasoning_effort != "none" else None
    limit = _limit(settings, traits)
    thinking: Json = {}
    if effort and kind == "budget":
        wanted = _BUDGETS.get(effort, _BUDGETS["medium"])
        limit = limit if settings.max_output_tokens is not None else limit + wanted
        budget = min(wanted, limit - _LEAST_BUDGET)
        thinking = {"type": "enabled", "budget_tokens": budget} if budget >= _LEAST_BUDGET else {}
    elif effort:
        thinking = {"type": "adaptive"}
    fields: Json = {"model": model, "max_tokens": limit, **_settings_fields(request, is_thinking=bool(thinking))}
    if request.stream:
        fields["stream"] = True
    marks = traits.get("prompt_cache") != "no"
    has_tools = request.mode == "native" and bool(request.tools.tools) and traits.get("native_tools") != "no"
    if has_tools and (parallel := traits.get("parallel_calls")) in ("on", "off"):
        fields["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": parallel == "off"}
    head = write(fields)[:-1]
    if has_tools:
        key, make = ("anthropic", _marked_tools) if marks else ("anthropic/unmarked", _plain_tools)
        head += b',"tools":' + request.tools.derived(key, make)
    origin = origin_of(model) if traits.get("reasoning_echo") != "no" else ""
    return _Form(
        head,
        f"anthropic/{origin}",
        partial(_encoded, origin=origin),
        marks,
        ("low" if effort == "minimal" else effort) if effort and kind != "budget" else "",
        b',"thinking":' + write(thinking) if thinking else b"",
        kind == "budget",
    )


def _limit(settings: ModelSettings, traits: Traits) -> int:
    """The wire wants a limit in every request; what a model takes at most may have been learnt."""
    limit = settings.max_output_tokens if settings.max_output_tokens is not None else DEFAULT_MAX_TOKENS
    most = traits.get("max_output_tokens", "")
    return min(limit, int(most)) if most.isdecimal() else limit


def _settings_fields(request: ModelRequest, *, is_thinking: bool) -> Json:
    settings = request.settings
    check_extra(settings, _OURS)
    stops = [stop for stop in stops_of(request.stop, settings, _MAX_STOPS) if stop.strip()]  # blank ones are refused
    asked: dict[str, tuple[str, object]] = {  # field -> trait, value; a model that thinks takes no sampling settings
        "temperature": ("temperature", None if is_thinking else settings.temperature),
        "top_p": ("top_p", None if is_thinking else settings.top_p),
        "stop_sequences": ("stop", stops or None),
    }
    return {**kept_fields(asked, request.traits), **settings.extra}


def _marked_tools(catalogue: Catalogue) -> bytes:
    return _plain_tools(catalogue)[:-2] + _CACHE_MARK + b"]"


def _plain_tools(catalogue: Catalogue) -> bytes:
    return write([
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in catalogue.tools
    ])  # fmt: skip


def _tools_of_the_past(messages: Sequence[ModelMessage]) -> list[bytes]:
    """A history with calls is only taken beside declared tools, also where none may be called any more."""
    names = dict.fromkeys(_wire_name(call.name) for message in messages for call in message.calls)
    if not names:
        return []
    declared = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    return [b',"tools":', write(declared), b',"tool_choice":{"type":"none"}']


def _said(messages: Sequence[ModelMessage], form: _Form) -> list[bytes]:
    """The messages as pieces to join, without the end of the last. The last piece is a block."""
    key, encode = form.wire_key, form.encode
    said: list[bytes] = []
    was_assistant: bool | None = None
    for message in _results_first(messages):
        blocks = message.encoded(key, encode)
        if not blocks:
            continue
        is_assistant = message.role == "assistant"
        if is_assistant is was_assistant:
            said += (b",", blocks)
        else:
            said += (_ASSISTANT if is_assistant else _USER, blocks)
            was_assistant = is_assistant
    if said:
        said[0] = said[0].removeprefix(_END)
    return said


def _results_first(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    """Results before what else is said to the model in that turn, since the wire takes them in no other order.

    So they come from the view already; then nothing is copied.
    """
    before = "assistant"
    for message in messages:
        if message.role == "tool" and before not in ("tool", "assistant"):
            break
        before = message.role
    else:
        return messages
    sorted_: list[ModelMessage] = []
    for _, turn in groupby(messages, lambda message: message.role == "assistant"):
        sorted_ += sorted(turn, key=lambda message: message.role != "tool")
    return sorted_


def _encoded(message: ModelMessage, *, origin: str) -> bytes:
    """The blocks of one message, without the message around them; nothing where it says nothing."""
    if message.role == "tool":
        result: Json = {"type": "tool_result", "tool_use_id": wire_id(message.call_id)}
        if message.content.strip():  # a blank text is refused, and so is the request with it
            result["content"] = message.content
        return write(result)
    said = [write({"type": "text", "text": message.content})] if message.content.strip() else []
    if message.role != "assistant":
        return b"".join(said)
    said += (
        b'{"type":"tool_use","id":%b,"name":%b,"input":%b}'
        % (write(wire_id(call.id)), write(_wire_name(call.name)), arguments_text(call).encode())
        for call in message.calls
    )
    return b",".join(with_opaque(said, message, origin))


def wire_id(call_id: str) -> str:
    """An id as the wire takes it: letters, digits, `_` and `-`. Another wire's id gets a mark, to stay the only one."""
    plain = _NO_NAME.sub("_", call_id)
    if plain == call_id and call_id:
        return call_id
    return f"{plain}_{zlib.crc32(call_id.encode('utf-8', 'replace')):08x}"


def _wire_name(name: str) -> str:
    """The name of a call as the wire takes it; a model may have invented one."""
    return _NO_NAME.sub("_", name) or "_"


def _marked(block: bytes) -> bytes:
    """The encoded block with a mark: the prompt up to here is worth keeping."""
    return block[:-1] + _CACHE_MARK


def is_thinking_block(block: Json) -> bool:
    """Whether a block is reasoning that can be sent back: signed, or encrypted."""
    kind = block.get("type")
    return (kind == "thinking" and bool(text(block.get("signature")))) or kind == "redacted_thinking"
