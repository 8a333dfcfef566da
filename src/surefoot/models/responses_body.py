"""The body of a request on the OpenAI Responses wire.

As on the chat wire, a step costs only what is new in it: a message keeps its items in their encoded form, and the body
is a join of bytes. Nothing is stored at the provider: reasoning travels encrypted, in the replies and back.
"""

from collections.abc import Callable, Mapping
from functools import partial

from surefoot.models.forms import Forms, check_extra, kept_fields
from surefoot.models.history import arguments_text, with_opaque
from surefoot.models.json_edge import Json, write
from surefoot.models.step_schemas import is_strict
from surefoot.types.dataclass import dataclass
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.tools import Catalogue

_OURS = frozenset({"input", "instructions", "tools", "stream", "store"})


@dataclass(frozen=True, slots=True)
class _Form:
    """All of a request that stays the same from step to step."""

    head: bytes
    wire_key: str
    encode: Callable[[ModelMessage], bytes]


def origin_of(model: str) -> str:
    """What this wire's encrypted reasoning is kept under."""
    return f"openai_responses {model}"


class ResponsesBody:
    """Writes the bodies of requests to one model. Keeps the forms in use, and nothing of any conversation."""

    def __init__(self, model: str) -> None:
        self._forms = Forms(partial(_make_form, model))
        self._schema: tuple[Mapping[str, object] | None, bytes] = (None, b"")

    def body(self, request: ModelRequest) -> bytes:
        """The request as bytes. Costs a memory copy and the encoding of messages not sent before.

        Raises `ModelRefused` when `settings.extra` claims a field that is not its own.
        """
        form = self._forms.of(request)
        key, encode = form.wire_key, form.encode
        said = (message.encoded(key, encode) for message in request.messages)
        pieces = [form.head]
        if request.system:
            pieces += (b',"instructions":', write(request.system))
        pieces += (b',"input":[', b",".join(items for items in said if items), b"]", self._text(request), b"}")
        return b"".join(pieces)

    def _text(self, request: ModelRequest) -> bytes:
        schema = request.schema
        if request.mode != "schema" or schema is None or request.traits.get("json_schema") == "no":
            return b""
        if self._schema[0] is not schema:
            held = {"type": "json_schema", "name": "step", "schema": schema, "strict": is_strict(schema)}
            self._schema = (schema, b',"text":' + write({"format": held}))
        return self._schema[1]


def _make_form(model: str, request: ModelRequest) -> _Form:
    settings, traits = request.settings, request.traits
    check_extra(settings, _OURS)
    effort = settings.reasoning_effort
    echoes = traits.get("reasoning_echo") != "no"
    asked: dict[str, tuple[str, object]] = {  # field -> trait, value; this wire knows neither stop sequences nor a seed
        "store": ("store", False),
        "include": ("reasoning_echo", ["reasoning.encrypted_content"]),
        "temperature": ("temperature", settings.temperature),
        "top_p": ("top_p", settings.top_p),
        "max_output_tokens": ("max_tokens_field", settings.max_output_tokens),
        "reasoning": ("reasoning_effort", None if effort is None else {"effort": effort}),
    }
    fields: Json = {"model": model, **kept_fields(asked, traits), **settings.extra}
    if request.stream:
        fields["stream"] = True
    has_tools = request.mode == "native" and bool(request.tools.tools) and traits.get("native_tools") != "no"
    if has_tools and (parallel := traits.get("parallel_calls")) in ("on", "off"):
        fields["parallel_tool_calls"] = parallel == "on"
    head = write(fields)[:-1]
    if has_tools:
        head += b',"tools":' + request.tools.derived("openai_responses", _tools_bytes)
    origin = origin_of(model) if echoes else ""
    return _Form(head, f"openai_responses/{origin}", partial(_encoded, origin=origin))


def _tools_bytes(catalogue: Catalogue) -> bytes:
    """Each declaration says that it is not strict: left unsaid, this wire would rewrite the schema."""
    return write([
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }
        for tool in catalogue.tools
    ])  # fmt: skip


def _encoded(message: ModelMessage, *, origin: str) -> bytes:
    """The items that one message amounts to, joined by commas; nothing where it says nothing."""
    if message.role == "tool":
        return write({"type": "function_call_output", "call_id": message.call_id, "output": message.content})
    if message.role != "assistant":
        return write({"role": message.role, "content": message.content})
    said = [write({"role": "assistant", "content": message.content})] if message.content else []
    said += (
        write({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments_text(call)})
        for call in message.calls
    )
    return b",".join(with_opaque(said, message, origin))
