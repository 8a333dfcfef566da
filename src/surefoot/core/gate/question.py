"""The question that a person reads before a call may run: what a yes does, which values are odd, and why.

Source: spec/guard.md, section 4.9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surefoot.core.gate.effects import guess
from surefoot.core.text.look import in_full
from surefoot.core.text.records import LONGEST_SENTENCE
from surefoot.core.text.values import host_of
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.guard import Evidence, Grounds
from surefoot.types.tools import ToolSpec

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
_WHY: Mapping[str, str] = {
    "untrusted": "not in your words, and nothing that you named holds it as a field",
    "relayed": "a model has written it into the task",
    "invented": "not in your words, and in no result",
    "declared": "in a record that you named, and money would go there",
    "user": "yours",
    "config": "from the configuration",
    "derived": "counted from a relative date",
}


_FROM: Mapping[str, str] = {"user": "from your words", "config": "from the configuration"}
_NOT_GIVEN: Mapping[str, str] = {
    "destination": "your words name no recipient",
    "amount": "your words give no amount",
    "time": "your words give no time",
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
    if evidence.nearest:
        said = f"you named {in_full(evidence.nearest)}"
    elif evidence.source_id == "user":
        said = ""  # they do name this
    else:
        said = _NOT_GIVEN.get(evidence.role, "your words name nothing like it")
    if not evidence.source_id:
        source = "the model made it up"
    elif evidence.source_id in _FROM:
        source = _FROM[evidence.source_id]
    else:
        source = f"{_WHERE.get(evidence.form, 'stands in the result of')} call {evidence.source_id}"
        if evidence.sentence:
            source += f": «{in_full(evidence.sentence[:LONGEST_SENTENCE])}»"
    return OddValue(evidence.path, value, said, source, evidence.note or _WHY[evidence.origin])
