"""Which part of a request an endpoint refuses: from the words of its error to a trait.

Servers say the same thing in many ways, so this is a table of words, matched without regard to case. Only a part that
the request really carried can be refused; a trait that is known already explains nothing. Source: spec/react.md,
section 2.
"""

import re
from dataclasses import dataclass
from functools import cache

from surefoot.models.json_edge import Json, items, mapping
from surefoot.types.errors import TraitRefused
from surefoot.types.messages import Traits

EVIDENCE_CHARS = 200


@dataclass(frozen=True, slots=True)
class _Part:
    """A body field that may be refused; `names` is how errors call it, beside its own name."""

    trait: str
    value: str
    fields: tuple[str, ...]
    names: str


_PARTS = (
    _Part("parallel_calls", "no", ("parallel_tool_calls",), r"parallel[ _-]tool[ _-]?(?:calls?|use)"),
    _Part(
        "native_tools",
        "no",
        ("tools",),
        r"\btools?\b|\btool[ _-]?(?:calls?|calling|choice|use)\b|\bfunctions?[ _-]?call(?:s|ing)?\b",
    ),
    _Part("json_schema", "no", ("response_format",), r"response[_ ]format|json[_ ]?schema|structured outputs?"),
    _Part("stop", "no", ("stop",), r"['\"`]stop['\"`]|\bstop(?:[ _](?:sequences?|words?|parameter))?\b"),
    _Part("temperature", "no", ("temperature",), r"\btemperature\b"),
    _Part("top_p", "no", ("top_p",), r"\btop_p\b"),
    _Part("seed", "no", ("seed",), r"\bseed\b"),
    _Part("reasoning_effort", "no", ("reasoning_effort",), r"\breasoning[_ ]effort\b"),
    _Part("stream_usage", "no", ("stream_options",), r"\bstream_options\b|\binclude_usage\b"),
    _Part(
        "max_tokens_field",
        "no",
        ("max_tokens", "max_completion_tokens"),
        r"\bmax_(?:completion_|output_)?tokens\b",
    ),
)

_DENIAL = (
    r"not (?:currently )?support|n[o']t (?:yet )?support|unsupported|not supported|unrecogni[sz]ed"
    r"|unknown (?:name|field|parameter|argument|key|property)|unexpected (?:field|parameter|keyword|property)"
    r"|not (?:permitted|allowed|available|enabled|implemented|accepted|compatible|valid for)|unavailable|incompatible"
    r"|extra_forbidden|extra (?:inputs|fields)|additional properties|cannot (?:be )?(?:used?|set)|requires --\w"
    r"|no endpoints found that|only the default|不支持"
)
_DENIAL_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden"})

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
    if found is None or traits.get(found[0]) == found[1]:
        return None
    return TraitRefused(found[0], found[1], message[:EVIDENCE_CHARS])


def _about_messages(message: str, sent: Json, traits: Traits) -> tuple[str, str] | None:
    roles = [mapping(item).get("role") for item in items(sent.get("messages"))]
    has_system = bool(roles) and roles[0] in ("system", "developer")
    if has_system and _finds(_NO_SYSTEM, message):
        return "system_role", "system" if roles[0] == "developer" else "no"
    if _finds(_ALTERNATION, message):
        # templates that know no system message say so in the same words
        return ("system_role", "no") if traits.get("alternation") == "yes" and has_system else ("alternation", "yes")
    if _finds(_ECHO, message):
        if any(key.startswith("reasoning") for item in items(sent.get("messages")) for key in mapping(item)):
            return "reasoning_echo", "no"
        if "assistant" in roles and _finds(_ECHO_WANTED, message):
            return "reasoning_echo", "reasoning_content"
    if (empty := _emptiest_content(sent)) and _finds(_NULL_CONTENT, message):
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
    is_denial = code in _DENIAL_CODES or _finds(_DENIAL, message)
    carried = [part for part in _PARTS if any(name in sent for name in part.fields)]
    root = re.split(r"[.\[]", param, maxsplit=1)[0]
    if root:
        named = [part for part in carried if root in part.fields]
        # an error inside the tools is about one declaration, not about tools; a schema is one thing
        if named and (root == "response_format" or (is_denial and (param == root or root != "tools"))):
            return _value_for(named[0], message, sent, traits)
        if root in sent or root == "messages":
            return None
    if not is_denial:
        return None
    hits = [(hit.start(), part) for part in carried if (hit := _compiled(part.names).search(message))]
    return _value_for(min(hits, key=lambda hit: hit[0])[1], message, sent, traits) if hits else None


def _value_for(part: _Part, message: str, sent: Json, traits: Traits) -> tuple[str, str]:
    if part.trait != "max_tokens_field":
        return part.trait, part.value
    other = "max_completion_tokens" if "max_tokens" in sent else "max_tokens"
    tried_both = "max_tokens_field" in traits and f"'{other}'" not in message
    return part.trait, part.value if tried_both else other


def _finds(pattern: str, words: str) -> bool:
    return _compiled(pattern).search(words) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled at the first error, since most runs see none."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)
