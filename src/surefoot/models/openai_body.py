"""The body of a request on the OpenAI chat wire.

A step costs only what is new in it: settings and tools are encoded once and kept (`BodyWriter`), each message keeps its
own encoded form, and the body is a join of bytes. What an endpoint is known not to take (its traits, spec/react.md,
section 2) is left out or said differently here, and nowhere else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import orjson

from surefoot.models.json_edge import Json, mapping, write
from surefoot.types.errors import ModelRefused
from surefoot.types.messages import ModelMessage, ModelRequest, ModelSettings, NativeCall, Traits
from surefoot.types.tools import Catalogue

_MAX_STOPS = 4  # what the wire allows
_OURS = frozenset({"messages", "tools", "stream"})
_KEPT_FORMS = 8
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
        self._model = model
        self._forms: list[tuple[tuple[object, ...], _Form]] = []
        self._schema: tuple[Mapping[str, object] | None, bytes] = (None, b"]}")

    def body(self, request: ModelRequest) -> bytes:
        """The request as bytes. Costs a memory copy and the encoding of messages not sent before.

        Raises `ModelRefused` when `settings.extra` claims a field that is not its own.
        """
        form = self._form(request)
        messages: Sequence[ModelMessage] = request.messages
        if form.folds_system and request.system:
            messages = _with_system_folded(request.system, messages)
        if form.merges:
            messages = _with_neighbours_merged(messages)
        key, encode = form.wire_key, form.encode
        pieces = [message.encoded(key, encode) for message in messages]
        if request.system and not form.folds_system:
            pieces.insert(0, write({"role": form.system_role, "content": request.system}))
        return b"".join((form.head, b",".join(pieces), self._tail(request)))

    def _form(self, request: ModelRequest) -> _Form:
        key = (request.settings, request.traits, request.tools, request.mode, request.stop, request.stream)
        for kept, form in self._forms:  # identical values compare at once, equal ones are soon found
            if kept == key:
                return form
        form = _make_form(self._model, request)
        self._forms = [(key, form), *self._forms[: _KEPT_FORMS - 1]]
        return form

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
    extra = settings.extra
    if claimed := _OURS & extra.keys():
        raise ModelRefused(f"settings.extra must not set {sorted(claimed)}: surefoot writes these fields itself")
    limit_field = traits.get("max_tokens_field", "max_tokens")
    stops = list(dict.fromkeys((*stop, *settings.stop)))[:_MAX_STOPS]
    asked: dict[str, tuple[str, object]] = {  # field -> trait, value
        "temperature": ("temperature", settings.temperature),
        "top_p": ("top_p", settings.top_p),
        limit_field: ("max_tokens_field", settings.max_output_tokens),
        "seed": ("seed", settings.seed),
        "reasoning_effort": ("reasoning_effort", settings.reasoning_effort),
        "stop": ("stop", stops or None),
    }
    sent: Json = {
        name: value for name, (trait, value) in asked.items() if value is not None and traits.get(trait) != "no"
    }
    return {**sent, **extra}


def is_strict(schema: object) -> bool:
    """Whether a schema meets the wire's strict form: its root an object, every object closed, every key required."""
    return mapping(schema).get("type") == "object" and _is_closed(schema)


def _is_closed(schema: object) -> bool:
    if isinstance(schema, list | tuple):
        return all(_is_closed(item) for item in cast("Sequence[object]", schema))  # any item will do
    if not isinstance(schema, dict):
        return True
    node = mapping(schema)  # pyright: ignore[reportUnknownArgumentType] - a JSON schema
    properties = mapping(node.get("properties"))
    if node.get("type") == "object" or properties:
        required = node.get("required", ())
        if node.get("additionalProperties") is not False or set(cast("Sequence[str]", required)) != set(properties):
            return False  # `required` is a list of names in every JSON schema
    return all(_is_closed(value) for value in node.values())


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
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments_text(call)}}
            for call in message.calls
        ]
    elif null:  # an endpoint that refuses empty content refuses it everywhere
        fields["content"] = message.content or null
    if echo and message.reasoning and _is_same_model(message.model, model):
        fields[echo] = message.reasoning
    return write(fields)


def _arguments_text(call: NativeCall) -> str:
    """Arguments as the wire has them: the text of a JSON object.

    Many servers decode the arguments of old calls and refuse the whole request when one of them is broken, so what
    the model wrote is then sent inside an object.
    """
    arguments = call.arguments
    if not isinstance(arguments, str):
        return write(arguments).decode()
    if not arguments.strip():
        return "{}"
    try:
        decoded: object = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        decoded = None
    return arguments if isinstance(decoded, dict) else write({"unreadable_arguments": arguments}).decode()


def _is_same_model(reported: str, asked: str) -> bool:
    """Servers report a dated name, or leave out the vendor before the slash."""
    reported, asked = reported.rpartition("/")[2].lower(), asked.rpartition("/")[2].lower()
    return bool(reported) and reported.startswith(asked)


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
