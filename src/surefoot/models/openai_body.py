"""The body of a request on the OpenAI chat wire.

A step costs only what is new in it: settings and tools are encoded once and kept (`BodyWriter`), each message keeps its
own encoded form, and the body is a join of bytes. What an endpoint is known not to take (its traits, spec/react.md,
section 2) is left out or said differently here, and nowhere else.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from surefoot.models.forms import Forms, check_extra, kept_fields, stops_of
from surefoot.models.history import arguments_text, is_same_model
from surefoot.models.json_edge import Json, write
from surefoot.models.step_schemas import is_strict
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.messages import ModelMessage, ModelRequest, ModelSettings, Traits
from surefoot.types.tools import Catalogue

_MAX_STOPS = 4  # what the wire allows
_OURS = frozenset({"messages", "tools", "stream"})
_SYSTEM_NAMES = {"developer": "developer", "user": "user", "no": "user"}
_NULL_CONTENT: dict[str, str | None] = {"empty": "", "blank": " "}


@dataclass(frozen=True, slots=True)
class _Form:
    """All of a request that stays the same from step to step: what stands before its messages, and how they look."""

    head: bytes
    wire_key: str
    encode: Callable[[ModelMessage], bytes]
    system_role: str
    folds_system: bool
    merges: bool


class BodyWriter:
    """Writes the bodies of requests to one model. Keeps the forms in use, and nothing of any conversation."""

    def __init__(self, model: str) -> None:
        self._forms = Forms(partial(_make_form, model))
        self._schema: tuple[Mapping[str, object] | None, bytes] = (None, b"]}")

    def body(self, request: ModelRequest) -> bytes:
        """The request as bytes. Costs a memory copy and the encoding of messages not sent before.

        Raises `ModelRefused` when `settings.extra` claims a field that is not its own.
        """
        form = self._forms.of(request)
        messages: Sequence[ModelMessage] = request.messages
        if form.folds_system and request.system:
            messages = _with_system_folded(request.system, messages)
        if form.merges:
            messages = _with_neighbours_merged(messages)
        key, encode = form.wire_key, form.encode
        pieces = [message.encoded(key, encode) for message in messages]
        if request.system and not form.folds_system:
            pieces.insert(0, write({"role": form.system_role, "content": request.system}))
        if not pieces:
            return form.head + self._tail(request)
        pieces[0] = form.head + pieces[0]  # so that a long history is copied once
        pieces[-1] += self._tail(request)
        return b",".join(pieces)

    def _tail(self, request: ModelRequest) -> bytes:
        schema = request.schema
        if request.mode != "schema" or schema is None or request.traits.get("json_schema") == "no":
            return b"]}"
        if self._schema[0] is not schema:
            held = {"name": "step", "schema": schema, "strict": is_strict(schema)}
            response_format = write({"type": "json_schema", "json_schema": held})
            self._schema = (schema, b'],"response_format":' + response_format + b"}")
        return self._schema[1]


def _make_form(model: str, request: ModelRequest) -> _Form:
    traits = request.traits
    fields: Json = {"model": model, **settings_fields(request.settings, request.stop, traits)}
    if request.stream:
        fields["stream"] = True
        if traits.get("stream_usage") != "no":
            fields["stream_options"] = {"include_usage": True}
    has_tools = request.mode == "native" and bool(request.tools.tools) and traits.get("native_tools") != "no"
    if has_tools and (parallel := traits.get("parallel_calls")) in ("on", "off"):
        fields["parallel_tool_calls"] = parallel == "on"
    head = write(fields)[:-1]
    if has_tools:
        head += b',"tools":' + request.tools.derived("openai_chat", _tools_bytes)
    echo = _echo_field(traits)
    system_role = _SYSTEM_NAMES.get(traits.get("system_role", ""), "system")
    null_content = traits.get("null_content", "null")
    return _Form(
        head + b',"messages":[',
        f"openai_chat/{system_role}/{null_content}/{echo and f'{echo}/{model}'}",
        partial(_encoded, system_role=system_role, null=_NULL_CONTENT.get(null_content), echo=echo, model=model),
        system_role,
        traits.get("system_role") == "no",
        traits.get("alternation") == "yes",
    )


def settings_fields(settings: ModelSettings, stop: Sequence[str], traits: Traits) -> Json:
    """The settings as body fields: `None` is not sent, `0` is, and what the traits forbid is dropped."""
    check_extra(settings, _OURS)
    limit_field = traits.get("max_tokens_field", "max_tokens")
    stops = stops_of(stop, settings, _MAX_STOPS)
    asked: dict[str, tuple[str, object]] = {  # field -> trait, value
        "temperature": ("temperature", settings.temperature),
        "top_p": ("top_p", settings.top_p),
        limit_field: ("max_tokens_field", settings.max_output_tokens),
        "seed": ("seed", settings.seed),
        "reasoning_effort": ("reasoning_effort", settings.reasoning_effort),
        "stop": ("stop", stops or None),
    }
    return {**kept_fields(asked, traits), **settings.extra}


def _tools_bytes(catalogue: Catalogue) -> bytes:
    return write([
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in catalogue.tools
    ])  # fmt: skip


def _echo_field(traits: Traits) -> str:
    echo = traits.get("reasoning_echo", "no")
    return {"no": "", "yes": "reasoning_content"}.get(echo, echo)


def _encoded(message: ModelMessage, *, system_role: str, null: str | None, echo: str, model: str) -> bytes:
    """One message on this wire. Tool content is always a string; reasoning goes only to the model that had it."""
    if message.role == "tool":
        return write({"role": "tool", "tool_call_id": message.call_id, "content": message.content})
    if message.role != "assistant":
        return write({"role": system_role if message.role == "system" else "user", "content": message.content})
    fields: Json = {"role": "assistant", "content": message.content}
    if message.calls:
        fields["content"] = message.content or null
        fields["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}
            for call in message.calls
        ]
    elif null:  # an endpoint that refuses empty content refuses it everywhere
        fields["content"] = message.content or null
    if echo and message.reasoning and is_same_model(message.model, model):
        fields[echo] = message.reasoning
    return write(fields)


def _with_system_folded(system: str, messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    if messages and messages[0].role == "user":
        return (replace(messages[0], content=f"{system}\n\n{messages[0].content}"), *messages[1:])
    return (ModelMessage("user", system), *messages)


def _with_neighbours_merged(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    merged: list[ModelMessage] = []
    for message in messages:
        last = merged[-1] if merged else None
        if last is not None and last.role == message.role != "tool" and not last.calls:
            merged[-1] = replace(message, content=f"{last.content}\n\n{message.content}")
        else:
            merged.append(message)
    return merged
