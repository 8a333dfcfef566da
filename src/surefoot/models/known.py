"""What is known of models before the first request; all else is learnt. Source: spec/react.md, section 2."""

import re
from types import MappingProxyType

from surefoot.types.dataclass import dataclass
from surefoot.types.messages import Traits


@dataclass(frozen=True, slots=True)
class _Known:
    """Traits of the models whose host and name match; an empty pattern matches all. Later rows win."""

    host: str
    model: str
    traits: Traits


_OPENAI = {"json_schema": "yes", "max_tokens_field": "max_completion_tokens"}
_OWN_REASONING = {"own_reasoning": "yes"}
_REASONING = {
    "max_tokens_field": "max_completion_tokens",
    "temperature": "no",
    "top_p": "no",
    "stop": "no",
    **_OWN_REASONING,
}
_OLD_CLAUDE = r"claude-(3|(opus|sonnet|haiku)-4(-[0-5](-|$)|-2|$))"  # before the models that set their own budget
_NEW_CLAUDE = r"claude-(opus-4-[789]|[a-z]+-[5-9])"  # they take no sampling settings any more

_TABLE = (
    _Known(r"api\.openai\.com|\.openai\.azure\.com", "", _OPENAI),
    _Known("", r"(^|/)(o[134](-|$)|gpt-5(?!.*chat))", _REASONING),
    _Known(r"api\.openai\.com|\.openai\.azure\.com", r"^(gpt-[34]|chatgpt)|-chat", {"reasoning_echo": "no"}),
    _Known("", r"(^|/)o1-(mini|preview)", {"system_role": "no", "native_tools": "no", "json_schema": "no"}),
    _Known(r"api\.anthropic\.com", "", {"json_schema": "yes"}),
    _Known("", _OLD_CLAUDE, {"reasoning_effort": "budget"}),
    _Known("", r"claude-(3|(opus|sonnet)-4(-0|-2|$))", {"json_schema": "no"}),
    _Known("", r"claude-3(?!-7)", {"reasoning_effort": "no"}),
    _Known("", r"claude-3-(opus|sonnet|haiku)", {"max_output_tokens": "4096"}),
    _Known("", _NEW_CLAUDE, {"temperature": "no", "top_p": "no"}),
    _Known(r"generativelanguage\.googleapis\.com", "", {"json_schema": "yes"}),
    _Known(r"api\.deepseek\.com", "", {"json_schema": "no"}),
    _Known(r"api\.deepseek\.com", r"reasoner", {"reasoning_echo": "reasoning_content"}),
    _Known("", r"reasoner|(^|[/-])r1(-|$)|thinking|qwq|magistral", _OWN_REASONING),
    # context windows as the makers' model pages give them; the least where models of a family differ
    _Known("", r"(^|/)claude-(3|[a-z]+-\d)", {"context_tokens": "200000"}),
    _Known("", r"(^|/)(gpt-4o|gpt-4-turbo|chatgpt-4o)", {"context_tokens": "128000"}),
    _Known("", r"(^|/)gpt-4\.1", {"context_tokens": "1047576"}),
    _Known("", r"(^|/)o[134](-|$)", {"context_tokens": "200000"}),
    _Known("", r"(^|/)o1-(mini|preview)", {"context_tokens": "128000"}),
    _Known("", r"(^|/)gemini-(1\.5-flash|2)", {"context_tokens": "1048576"}),
    _Known(r":11434$", "", {"json_schema": "yes"}),  # Ollama
    _Known("", r"(^|/)gemma-?[12]", {"system_role": "no", "native_tools": "no"}),
)  # fmt: skip


def known_traits(host: str, model: str) -> Traits:
    """What the table knows of a model. `host` is that of its base URL, with the port if one is given."""
    traits: dict[str, str] = {}
    for row in _TABLE:
        if re.search(row.host, host) and re.search(row.model, model.lower()):
            traits |= row.traits
    return MappingProxyType(traits)
