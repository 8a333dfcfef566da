"""The verdict on one call: every policy is asked, and the strictest word wins.

The order is that of spec/guard.md, section 4.1: refusals first, then what two faults together forbid, then one question
that names all that is odd. A policy is a function of what is known and the call; it has no state and reads no clock.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import cast

from surefoot.core.gate.asked import Asked, Policy, Word, classes_of
from surefoot.core.gate.cedar import cedar
from surefoot.core.gate.conformance import conformance, perception
from surefoot.core.gate.foreign import foreign, tool
from surefoot.core.gate.known import Known
from surefoot.core.gate.limits import Started, limits, moved_by
from surefoot.core.gate.origins import traced
from surefoot.core.gate.roles import Path, schema_at
from surefoot.core.gate.rules import standing_for, user_rules
from surefoot.core.gate.sinks import aimed
from surefoot.core.pins import pin_of
from surefoot.core.text import json_text
from surefoot.types.decisions import Allow, Ask, Decision, Deny
from surefoot.types.guard import Evidence, Grounds
from surefoot.types.tools import Effect, ToolSpec

_LONGEST_KEPT = 2_000
"""Characters of a value that stand beside the verdict on a call of which nobody is asked."""


def digest_of(spec: ToolSpec, arguments: Mapping[str, object]) -> str:
    """What an approval binds to: exactly this tool, as it is pinned, with exactly these arguments (section 4.2).

    Arguments that mean the same are the same: texts in NFC, 900.0 as 900, and what is left out as the schema's default.
    """
    told = json_text([pin_of(spec), _canonical(arguments, (), spec)], sort_keys=True)
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(value: object, path: Path, spec: ToolSpec) -> object:
    match value:
        case str():
            return unicodedata.normalize("NFC", value)
        case float() if value.is_integer():
            return int(value)
        case Mapping():
            held = cast("Mapping[str, object]", value)  # JSON: text keys
            properties = schema_at(path, spec.parameters).get("properties")
            named = cast("Mapping[str, object]", properties if isinstance(properties, Mapping) else {})
            left_out = {
                key: cast("Mapping[str, object]", one)["default"]
                for key, one in named.items()
                if key not in held and isinstance(one, Mapping) and "default" in one
            }
            return {key: _canonical(one, (*path, key), spec) for key, one in {**left_out, **held}.items()}
        case list() | tuple():
            parts = cast("Sequence[object]", value)
            return [_canonical(one, (*path, at), spec) for at, one in enumerate(parts)]
        case _:
            return value


def intent(call: Asked) -> Sequence[Word]:
    """An effect that the words do not ask for, or a limit that they set."""
    effects = classes_of(call.aim)
    found = [
        Word("intent", broken.verdict, f"refused: {broken.why}", broken.why, is_firm=True)
        for broken in limits(
            (*call.known.words.anchor.constraints.constraints, *call.known.config.constraints),
            call.spec.name,
            effects,
            call.aim.evidence,
            call.started,
        )
    ]
    if not is_asked_for(call):
        effect = call.aim.effect.effect
        found.append(
            Word(
                "intent",
                "ask",
                f"the user did not ask to {_DOING[effect]}; finish what was asked, or ask the user",
                f"you did not ask to {_DOING[effect]}",
            )
        )
    return found


def is_asked_for(call: Asked) -> bool:
    """Whether the words ask for what the call does. A read always is; of an unknown effect nobody can tell."""
    if call.aim.effect.effect in ("read", None):
        return True
    return not classes_of(call.aim).isdisjoint(call.known.words.anchor.effects_asked)


def provenance(call: Asked) -> Sequence[Word]:
    """A leaf that its sink does not take from where it comes."""
    found = [
        Word("provenance", "deny", "refused: a value only looks like the one that the user gave", twin.note, (twin,))
        for twin in call.aim.twins
    ]
    if call.aim.odd:
        named = ", ".join(dict.fromkeys(e.path for e in call.aim.odd))
        found.append(
            Word(
                "provenance",
                "ask",
                f"the value of {named} is not the user's own: look it up in what the user named, or ask the user",
                "a value is not from your words",
                call.aim.odd,
            )
        )
    return found


def touch(call: Asked) -> Sequence[Word]:
    """A call with an effect that has nothing to do with the words."""
    if not call.aim.is_effectful or call.aim.is_touching:
        return ()
    said = "the call has nothing of what the user said; do what was asked"
    return (Word("touch", "ask", said, "nothing of this call is in your words"),)


def repetition(call: Asked) -> Sequence[Word]:
    """The very same call once more, where that is not the same as once: no other effect has come in between."""
    if call.spec.may_repeat or not call.aim.is_effectful:
        return ()
    if any(one.is_open and one.digest == call.digest for one in call.started):
        return (Word("repetition", "deny", "refused: the same call is not settled yet", "the same call is open"),)
    ended = [one for one in call.started if one.ended and one.effects - {"read"}]
    last = max((one.ended for one in ended), default=0)
    since = [one for one in call.started if not one.ended or one.ended == last]
    if any(one.digest == call.digest for one in since):
        return (Word("repetition", "ask", "this very call was made already", "this very call was made already"),)
    moved = moved_by(call.spec, call.arguments) if "transact" in classes_of(call.aim) else frozenset[object]()
    if moved and any(one.name == call.spec.name and one.moved == moved for one in since):
        said = "as much was already paid to the same place, or booked there"
        return (Word("repetition", "ask", said, said),)
    return ()


POLICIES: tuple[Policy, ...] = (
    tool,
    conformance,
    intent,
    provenance,
    perception,
    touch,
    foreign,
    repetition,
    user_rules,
    cedar,
)


def asked_about(
    known: Known, spec: ToolSpec, arguments: Mapping[str, object], started: Sequence[Started] = ()
) -> Asked:
    """A call as the policies see it."""
    return Asked(known, spec, arguments, aimed(known, spec, arguments), digest_of(spec, arguments), started)


def judged(
    known: Known,
    spec: ToolSpec,
    arguments: Mapping[str, object],
    started: Sequence[Started] = (),
    policies: tuple[Policy, ...] = POLICIES,
) -> tuple[Decision, str, Grounds]:
    """The decision about an offered and well-formed call, the rule that made it, and what it rests on.

    All policies are asked; an exception in one is a refusal.
    """
    try:
        call = asked_about(known, spec, arguments, started)
        words = [word for policy in policies for word in policy(call)]
        decision, rule, grounds = _verdict(call, words)
        if isinstance(decision, Allow):
            return decision, rule, grounds
        return decision, rule, replace(grounds, evidence=tuple(traced(known, e) for e in grounds.evidence))
    except Exception as error:  # noqa: BLE001  # a check that fails fails closed
        return Deny("refused: the call could not be checked"), "policy_error", Grounds(reason_person=repr(error))


def _verdict(call: Asked, words: Sequence[Word]) -> tuple[Decision, str, Grounds]:
    rules = list(dict.fromkeys(word.rule for word in words))
    evidence = tuple(e for word in words for e in word.evidence)
    for word in words:
        if word.verdict == "deny":
            grounds = Grounds(tuple(r for r in rules if r != word.rule), call.digest, "", word.for_person, evidence)
            return Deny(word.for_model), word.rule, grounds
    is_adopted = "adoption" in call.known.words.anchor.cues and call.known.has_read_what_is_named
    fault = _fault(call)
    if fault is not None and not is_adopted:
        grounds = Grounds(tuple(rules), call.digest, "", fault.for_person, evidence or fault.evidence)
        return Deny(fault.for_model), fault.rule, grounds
    if not words:
        return Allow(), "", Grounds((), call.digest, "", "", tuple(_brief(e) for e in call.aim.evidence))
    if fault is None and (standing := standing_for(call, words)):
        said = f"{standing.by} always allows this: {standing.id}"
        return Allow(), "standing", Grounds(tuple(rules), call.digest, "", said, evidence)
    if call.known.config.strict:
        grounds = Grounds(tuple(rules[1:]), call.digest, "", words[0].for_person, evidence)
        return Deny(f"refused, and nobody is there to ask: {words[0].for_model}"), rules[0], grounds
    first = "adoption" if fault is not None else rules[0]
    grounds = Grounds(tuple(r for r in rules if r != first), call.digest, "", "", evidence)
    return Ask("; ".join(dict.fromkeys(word.for_person for word in words))), first, grounds


def _brief(evidence: Evidence) -> Evidence:
    """A value that nobody is asked about, as the journal keeps it: the call holds all of it."""
    return evidence if len(evidence.value) <= _LONGEST_KEPT else replace(evidence, value=evidence.value[:_LONGEST_KEPT])


def _fault(call: Asked) -> Word | None:
    """What forbids a call although each sign alone would only ask (section 4.8)."""
    if call.aim.bad and not is_asked_for(call) and call.known.config.two_faults == "deny":
        return Word(
            "two_faults",
            "deny",
            "refused: the user did not ask for this, and its values are not the user's; do what was asked",
            "an effect that you did not ask for, with values that are not yours",
            call.aim.bad,
        )
    places = tuple(e for e in call.aim.evidence if e.role == "destination" and _is_loose(e))
    if not call.aim.is_effectful or not places:
        return None
    is_untouched = not call.aim.is_touching
    if is_untouched and call.known.words.anchor.cues.isdisjoint(("delegation", "adoption", "set")):
        return Word(
            "untouched",
            "deny",
            "refused: nothing of this call is in what the user said; do what was asked",
            "nothing of this call is in your words, and where it goes to stands in no field",
            places,
        )
    if call.known.config.strict:
        said = "refused: look up where this has to go in what the user named; it must stand there as a field"
        return Word("strict", "deny", said, "nobody is there to say where this may go", places)
    return None


def _is_loose(evidence: Evidence) -> bool:
    """Whether a value stands only in running text, or nowhere."""
    return evidence.origin == "invented" or (evidence.origin == "untrusted" and evidence.form == "prose")


_DOING: Mapping[Effect | None, str] = {
    "read": "read anything",
    "write": "change anything",
    "communicate": "send anything to anybody",
    "transact": "pay, book or order anything",
    "delete": "delete anything",
    None: "do this",
}
