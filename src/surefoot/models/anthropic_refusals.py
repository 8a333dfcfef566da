"""Which part of a request on the Anthropic wire an endpoint refuses: from the words of its error to a trait."""

import re

from surefoot.models.json_edge import Json, mapping, text
from surefoot.models.openai_refusals import NATIVE_TOOLS, TEMPERATURE, TOP_P
from surefoot.models.refusals import Part, finds, is_denial, learnt, named_part
from surefoot.types.errors import TraitRefused
from surefoot.types.messages import Traits

_PARTS = (
    Part("parallel_calls", "no", ("tool_choice",), r"disable_parallel_tool_use|\btool_choice\b"),
    NATIVE_TOOLS,
    Part(
        "json_schema",
        "no",
        ("output_config.format",),
        r"output_(?:config\.)?format|output format|structured outputs?|json_schema|output_config",
        is_whole=True,
    ),
    Part("stop", "no", ("stop_sequences",), r"\bstop[_ ]sequences?\b"),
    TEMPERATURE,
    TOP_P,
)
_THINKING = r"\bthinking\b|\beffort\b|\bbudget_tokens\b|\boutput_config\b"
_ECHO = r"\bsignature\b|thinking['`\"]? blocks?\b.{0,80}cannot be modified|\bredacted_thinking\b.{0,60}\bdata\b"
_TOO_MANY = re.compile(r"max_tokens: \d+ > (\d+)")


def refused_trait(message: str, sent: Json, traits: Traits) -> TraitRefused | None:
    """The part of `sent` (the body, decoded) that an error complains of; `None` when it is about something else."""
    found = _found(message, sent)
    return learnt(*found, message, traits) if found else None


def _found(message: str, sent: Json) -> tuple[str, str] | None:
    if finds(r"\bcache_control\b", message) and is_denial(message):
        return "prompt_cache", "no"
    if most := _TOO_MANY.search(message):
        return "max_output_tokens", most[1]
    if finds(r"^output_(?:config\.)?format", message):
        return "json_schema", "no"
    if finds(_ECHO, message):
        return "reasoning_echo", "no"
    thinking = mapping(sent.get("thinking"))
    if thinking and finds(_THINKING, message) and (is_denial(message) or finds(r"found `tool_use`", message)):
        return "reasoning_effort", _other_effort(message, text(thinking.get("type")))
    part = named_part(_PARTS, message, "", "", sent)
    return part and (part.trait, part.value)


def _other_effort(message: str, tried: str) -> str:
    """Models take a budget of thinking, or an effort, or neither. A refusal of the one often names the other."""
    if tried == "adaptive":
        return "budget"
    return "adaptive" if finds(r"\badaptive\b", message) else "no"
