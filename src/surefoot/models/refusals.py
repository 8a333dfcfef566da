"""Which part of a request an error names: the words that servers use, for every wire.

Servers say the same thing in many ways, so this is a table of words, matched without regard to case. Only a part that
the request really carried can be refused; a trait that is known already explains nothing. Source: spec/react.md,
section 2.
"""

import re
from collections.abc import Sequence
from functools import cache

from surefoot.models.json_edge import Json, mapping
from surefoot.types.dataclass import dataclass
from surefoot.types.errors import TraitRefused
from surefoot.types.messages import Traits

EVIDENCE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a body that may be refused.

    `fields` are the body fields that carry it, with dots into inner ones; `names` is how errors call it, beside these.
    `is_whole`: any complaint about the field means that it is not taken, since it holds nothing of the user's.
    """

    trait: str
    value: str
    fields: tuple[str, ...]
    names: str
    is_whole: bool = False


_DENIAL = (
    r"not (?:currently )?support|n[o']t (?:yet )?support|unsupported|not supported|unrecogni[sz]ed"
    r"|unknown (?:name|field|parameter|argument|key|property)|unexpected (?:field|parameter|keyword|property)"
    r"|not (?:permitted|allowed|available|enabled|implemented|accepted|compatible|valid for)|unavailable|incompatible"
    r"|extra_forbidden|extra (?:inputs|fields)|additional properties|cannot (?:both )?(?:be )?(?:used?|set|specified)"
    r"|requires --\w|no endpoints found that|only the default|deprecated for this model|may only be set"
    r"|does not match any of the expected|不支持"
)
_DENIAL_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden"})


def named_part(parts: Sequence[Part], message: str, code: str, param: str, sent: Json) -> Part | None:
    """The part of `sent` (the body, decoded) that is refused; `None` when the error is about something else.

    `param` is the field that the error points to, if it does.
    """
    denies = code in _DENIAL_CODES or is_denial(message)
    carried = [part for part in parts if any(_has(sent, field) for field in part.fields)]
    root = re.split(r"[.\[]", param, maxsplit=1)[0]
    if root:
        named = [part for part in carried if any(_points_to(param, root, field) for field in part.fields)]
        # an error inside the tools is about one declaration, not about tools
        if named and (named[0].is_whole or (denies and (param == root or root != "tools"))):
            return named[0]
        if root in sent or root == "messages":
            return None
    if not denies:
        return None
    hits = [(hit.start(), part) for part in carried if (hit := _compiled(part.names).search(message))]
    return min(hits, key=lambda hit: hit[0])[1] if hits else None


def learnt(trait: str, value: str, message: str, traits: Traits) -> TraitRefused | None:
    """What an error teaches; `None` when that was known, and so explains nothing."""
    return None if traits.get(trait) == value else TraitRefused(trait, value, message[:EVIDENCE_CHARS])


def is_denial(message: str) -> bool:
    """Whether the words say that something is not taken at all."""
    return finds(_DENIAL, message)


def finds(pattern: str, words: str) -> bool:
    """Whether the pattern occurs, without regard to case."""
    return _compiled(pattern).search(words) is not None


def _points_to(param: str, root: str, field: str) -> bool:
    return root == field or param.startswith(field) or field.startswith(f"{param}.")


def _has(sent: Json, field: str) -> bool:
    name, dot, rest = field.partition(".")
    return name in sent and (not dot or _has(mapping(sent[name]), rest))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled at the first error, since most runs see none."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)
