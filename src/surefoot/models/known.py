"""What is known of models before the first request; all else is learnt. Source: spec/react.md, section 2."""

import re
from dataclasses import dataclass
from types import MappingProxyType

from surefoot.types.messages import Traits


@dataclass(frozen=True, slots=True)
class _Known:
    """Traits of the models whose host and name match; an empty pattern matches all. Later rows win."""

    host: str
    model: str
    traits: Traits


_OPENAI = {"json_schema": "yes", "max_tokens_field": "max_completion_tokens"}
_REASONING = {"max_tokens_field": "max_completion_tokens", "temperature": "no", "top_p": "no", "stop": "no"}

_TABLE = (
    _Known(r"api\.openai\.com|\.openai\.azure\.com", "", _OPENAI),
    _Known("", r"(^|/)(o[134](-|$)|gpt-5(?!.*chat))", _REASONING),
    _Known("", r"(^|/)o1-(mini|preview)", {"system_role": "no", "native_tools": "no", "json_schema": "no"}),
    _Known(r"generativelanguage\.googleapis\.com", "", {"json_schema": "yes"}),
    _Known(r"api\.deepseek\.com", "", {"json_schema": "no"}),
    _Known(r"api\.deepseek\.com", r"reasoner", {"reasoning_echo": "reasoning_content"}),
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
