"""Which part of a request on the OpenAI Responses wire an endpoint refuses: from the words of its error to a trait."""

from surefoot.models.json_edge import Json
from surefoot.models.openai_refusals import NATIVE_TOOLS, PARALLEL_CALLS, TEMPERATURE, TOP_P
from surefoot.models.refusals import Part, finds, learnt, named_part
from surefoot.types.errors import TraitRefused
from surefoot.types.messages import Traits

_PARTS = (
    Part("reasoning_echo", "no", ("include",), r"encrypted[_ ]content|\binclude\b"),
    PARALLEL_CALLS,
    NATIVE_TOOLS,
    Part(
        "json_schema",
        "no",
        ("text.format",),
        r"text\.format|response[_ ]format|json[_ ]?schema|structured outputs?|['\"`]text['\"`]",
        is_whole=True,
    ),
    TEMPERATURE,
    TOP_P,
    Part("reasoning_effort", "no", ("reasoning",), r"\breasoning(?:[._ ]effort)?\b"),
    Part("max_tokens_field", "no", ("max_output_tokens",), r"\bmax_output_tokens\b"),
    Part("store", "no", ("store",), r"\bstore\b"),
)
_ECHO = (
    r"encrypted content.{0,200}could not be (?:verified|decrypted|parsed)|invalid_encrypted_content"
    r"|without its required|items are not persisted"
)


def refused_trait(message: str, code: str, param: str, sent: Json, traits: Traits) -> TraitRefused | None:
    """The part of `sent` (the body, decoded) that an error complains of; `None` when it is about something else."""
    if finds(_ECHO, f"{code} {message}"):
        return learnt("reasoning_echo", "no", message, traits)
    part = named_part(_PARTS, message, code, param, sent)
    return part and learnt(part.trait, part.value, message, traits)
