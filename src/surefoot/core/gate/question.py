"""The question that a person reads before a call may run: always the same, wherever it is shown.

What happens on yes is told by our own templates; the odd values are shown in full, each with what the user said, where
it comes from, and why it is unusual. Text of a result is shown as foreign text, on one line, and cannot change the
layout. Source: spec/guard.md, section 4.9.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from surefoot.core.gate.effects import guess
from surefoot.core.gate.forms import host_of
from surefoot.core.gate.late import Late
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.guard import Evidence, Grounds
from surefoot.types.tools import ToolSpec

LONGEST_SENTENCE = 200

_ON_YES: Mapping[str | None, str] = {
    "read": "reads through",
    "write": "changes something through",
    "communicate": "sends something to somebody through",
    "transact": "pays, books or orders through",
    "delete": "deletes something through",
    None: "calls",
}

_WHERE: Mapping[str, str] = {
    "atom": "stands in a field of the result of",
    "prose": "stands in the running text of the result of",
}


@dataclass(frozen=True, slots=True)
class OddValue:
    """One value that a person has to look at: in full, what the user said instead, where it is from, why it is odd."""

    path: str
    value: str
    said: str
    source: str
    why: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one call. `others` are the leaves that are not odd, with where they come from.

    `also_for` are the further values for which a yes holds, with their roles.
    """

    on_yes: str
    reason: str
    odd: tuple[OddValue, ...]
    others: tuple[tuple[str, str, str], ...]
    asked_before: int = 0
    also_for: tuple[tuple[str, str], ...] = ()


def question(
    spec: ToolSpec, reason: str, grounds: Grounds, others: Sequence[Evidence] = (), *, asked_before: int = 0
) -> Question:
    """The question about a call, from what the gate found."""
    effect = guess(spec, "all").effect if not spec.declared else spec.effect
    where = f" (server {in_full(spec.server)})" if spec.server else ""
    parties = [in_full(e.value) for e in (*grounds.evidence, *others) if e.role in ("destination", "amount")]
    to = f": {', '.join(dict.fromkeys(parties))}" if parties else ""
    on_yes = f"On yes, this run {_ON_YES[effect]} the tool {in_full(spec.name)}{where}{to}"
    odd = tuple(_odd(e) for e in grounds.evidence)
    paths = {e.path for e in grounds.evidence}
    rest = tuple((e.path, in_full(e.value), e.origin) for e in others if e.path not in paths)
    also_for = tuple((role, in_full(value)) for role, value, _ in grounds.shown)
    return Question(on_yes, reason, odd, rest, asked_before, also_for)


def refused_before(evidence: Evidence) -> Evidence:
    """A value to which the person has said no in this run: the question says so, before why it is odd."""
    return replace(evidence, note=f"you said no to this before; {evidence.note or _WHY[evidence.origin]}")


def _odd(evidence: Evidence) -> OddValue:
    value = in_full(evidence.value)
    if evidence.kind in ("email", "url"):
        host = evidence.value.rpartition("@")[2] if evidence.kind == "email" else host_of(evidence.value)
        value = f"{value}   [domain: {in_full(host)}]"
    said = f"you named {in_full(evidence.nearest)}" if evidence.nearest else "you named nobody"
    return OddValue(evidence.path, value, said, _source(evidence), evidence.note or _WHY[evidence.origin])


def _source(evidence: Evidence) -> str:
    if not evidence.source_id:
        return "found nowhere: the model made it up"
    if evidence.source_id in ("user", "config"):
        return f"from the {evidence.source_id}"
    told = f"{_WHERE.get(evidence.form, 'stands in the result of')} call {evidence.source_id}"
    if evidence.sentence:
        told += f", as foreign text: «{in_full(evidence.sentence[:LONGEST_SENTENCE])}»"
    return told


_WHY: Mapping[str, str] = {
    "untrusted": "not in your words, and nothing that you named holds it as a field",
    "invented": "not in your words, and in no result",
    "declared": "in a record that you named, and money would go there",
    "user": "yours",
    "config": "from the configuration",
    "derived": "counted from a relative date",
}


def in_full(text: str) -> str:
    """A text on one line with nothing hidden: invisible and control characters are spelled out, so are look-alikes.

    A letter that is not ASCII in a text that is otherwise ASCII is told by its code point. A run of characters that do
    not show is told by its length, so that it pushes nothing out of sight.
    """
    if text.isascii() and text.isprintable() and _GAP not in text:
        return text
    has_ascii_letters = any(c.isascii() and c.isalpha() for c in text)
    parts: list[str] = []
    at = 0
    for run in _RUN.finditer(text):
        character, times = run[1], len(run[0])
        spelled = _spelled(character, in_ascii=has_ascii_letters)
        if spelled != character or character == " ":
            parts += [_spelled(c, in_ascii=has_ascii_letters) for c in text[at : run.start()]]
            parts.append(f"<{times} spaces>" if character == " " else f"<{times} × {spelled[1:-1]}>")
            at = run.end()
    parts += [_spelled(c, in_ascii=has_ascii_letters) for c in text[at:]]
    return "".join(parts)


_GAP = " " * 8
_RUN = Late(r"(.)\1{7,}", re.DOTALL)
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that are drawn as nothing."""


def _spelled(character: str, *, in_ascii: bool) -> str:
    if character.isascii():
        return character if character.isprintable() else f"<{ord(character):02X}>"
    category = unicodedata.category(character)
    if category[0] in "CZ" or category == "Mn" or character in _BLANK:
        return f"<U+{ord(character):04X}>"
    if in_ascii and category[0] == "L" and unicodedata.name(character, "").split(" ")[0] in ("CYRILLIC", "GREEK"):
        return f"{character}<U+{ord(character):04X}>"
    return character
