"""Which part of a request on the OpenAI chat wire an endpoint refuses: from the words of its error to a trait."""

from surefoot.models.json_edge import Json, items, mapping
from surefoot.models.refusals import Part, finds, learnt, named_part
from surefoot.types.errors import TraitRefused
from surefoot.types.messages import Traits

PARALLEL_CALLS = Part("parallel_calls", "no", ("parallel_tool_calls",), r"parallel[ _-]tool[ _-]?(?:calls?|use)")
NATIVE_TOOLS = Part(
    "native_tools",
    "no",
    ("tools",),
    r"\btools?\b|\btool[ _-]?(?:calls?|calling|choice|use)\b|\bfunctions?[ _-]?call(?:s|ing)?\b",
)
TEMPERATURE = Part("temperature", "no", ("temperature",), r"\btemperature\b")
TOP_P = Part("top_p", "no", ("top_p",), r"\btop_p\b")

_PARTS = (
    PARALLEL_CALLS,
    NATIVE_TOOLS,
    Part(
        "json_schema",
        "no",
        ("response_format",),
        r"response[_ ]format|json[_ ]?schema|structured outputs?",
        is_whole=True,
    ),
    Part("stop", "no", ("stop",), r"['\"`]stop['\"`]|\bstop(?:[ _](?:sequences?|words?|parameter))?\b"),
    TEMPERATURE,
    TOP_P,
    Part("seed", "no", ("seed",), r"\bseed\b"),
    Part("reasoning_effort", "no", ("reasoning_effort",), r"\breasoning[_ ]effort\b"),
    Part("stream_usage", "no", ("stream_options",), r"\bstream_options\b|\binclude_usage\b"),
    Part(
        "max_tokens_field",
        "no",
        ("max_tokens", "max_completion_tokens"),
        r"\bmax_(?:completion_|output_)?tokens\b",
    ),
)

_ALTERNATION = r"roles? must alternate|must alternate|consecutive (?:user|assistant|messages)|alternating"
_NO_SYSTEM = (
    r"\bsystem['\"`]? (?:role|message|prompt|instruction)s?\b.{0,60}?(?:not|n't|unsupported|unavailable)"
    r"|(?:not|n't) support.{0,40}['\"`](?:system|developer)['\"`]|got (?:system|developer)\b"
    r"|only user(?:,| and) assistant.{0,30}roles are supported"
    r"|role ['\"`]?(?:system|developer)['\"`]? (?:is )?(?:not|unsupported)"
    r"|developer (?:role|message|instruction)s?.{0,40}(?:not|n't|unsupported)"
    r"|unknown (?:message )?role.{0,10}(?:system|developer)"
)
_NULL_CONTENT = (
    r"content\b.{0,80}?(?:\bnull\b|\bnone\b|valid string|be a string|expected (?:a )?string|required"
    r"|(?:is|be) empty|non-?empty|at least (?:one|1) character)|missing field ['\"`]?content"
    r"|either content or tool_calls"
)
_ECHO = r"reasoning(?:_content)?\b"
_ECHO_WANTED = r"missing|must be (?:passed|provided|included)|passed back|required"


def refused_trait(message: str, code: str, param: str, sent: Json, traits: Traits) -> TraitRefused | None:
    """The part of `sent` (the body, decoded) that an error complains of; `None` when it is about something else."""
    found = _about_messages(message, sent, traits) or _about_fields(message, code, param, sent, traits)
    return learnt(*found, message, traits) if found else None


def _about_messages(message: str, sent: Json, traits: Traits) -> tuple[str, str] | None:
    roles = [mapping(item).get("role") for item in items(sent.get("messages"))]
    has_system = bool(roles) and roles[0] in ("system", "developer")
    if has_system and finds(_NO_SYSTEM, message):
        return "system_role", "system" if roles[0] == "developer" else "no"
    if finds(_ALTERNATION, message):
        # templates that know no system message say so in the same words
        return ("system_role", "no") if traits.get("alternation") == "yes" and has_system else ("alternation", "yes")
    if finds(_ECHO, message):
        if any(key.startswith("reasoning") for item in items(sent.get("messages")) for key in mapping(item)):
            return "reasoning_echo", "no"
        if "assistant" in roles and finds(_ECHO_WANTED, message):
            return "reasoning_echo", "reasoning_content"
    if (empty := _emptiest_content(sent)) and finds(_NULL_CONTENT, message):
        return "null_content", empty
    return None


def _emptiest_content(sent: Json) -> str:
    """What to try next in place of an assistant's missing content; empty when none was missing, or all was tried."""
    for item in items(sent.get("messages")):
        part = mapping(item)
        if part.get("role") == "assistant" and part.get("content") in (None, ""):
            return "empty" if part.get("content") is None else "blank"
    return ""


def _about_fields(message: str, code: str, param: str, sent: Json, traits: Traits) -> tuple[str, str] | None:
    part = named_part(_PARTS, message, code, param, sent)
    if part is None or part.trait != "max_tokens_field":
        return part and (part.trait, part.value)
    other = "max_completion_tokens" if "max_tokens" in sent else "max_tokens"
    tried_both = "max_tokens_field" in traits and f"'{other}'" not in message
    return part.trait, part.value if tried_both else other
