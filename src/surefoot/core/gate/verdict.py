"""The verdict on one call: every policy is asked, and the strictest word wins.

Refusals first, then what two faults together forbid, then one question that names all that is odd (spec/guard.md, 4.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from surefoot.core.gate.effects import guess
from surefoot.core.gate.origins import GOOD, evidence_of, is_of_user, traced
from surefoot.core.gate.record import DOING, Started, amounts_of, moved_by, sums_in
from surefoot.core.gate.roles import Leaf, as_meant, leaves_of
from surefoot.core.gate.rules import Asked, Policy, Word, cedar, limits, standing_for, user_rules
from surefoot.core.gate.sinks import aimed, quotes
from surefoot.core.gate.sources import Known
from surefoot.core.text.json import json_text, pin_of
from surefoot.core.text.look import holds, in_full, normal_text
from surefoot.core.text.values import hard_tokens
from surefoot.types.guard import EFFECT_OF, Evidence, Grounds, GuardConfig
from surefoot.types.outcomes import Allow, Ask, Decision, Deny
from surefoot.types.tools import ToolSpec

_LONGEST_KEPT = 2_000  # characters of each value kept with a verdict, where no person is asked about the call


def digest_of(spec: ToolSpec, arguments: Mapping[str, object]) -> str:
    """What an approval binds to: exactly this tool, as it is pinned, with exactly these arguments (section 4.2).

    Arguments that mean the same are the same. Digests stand in journals, so no more defaults may count than ever did.
    """
    told = json_text([pin_of(spec), as_meant(arguments, (), spec, follows=False)], sort_keys=True)
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def tool(call: Asked) -> Sequence[Word]:
    """A tool that looks like one of another server; of every call of it a person is asked, a read or not."""
    said = "another tool has almost the same name; say which one is meant, or use a tool that cannot be mistaken"
    why = call.known.doubted.get(call.spec.name)
    return () if why is None else (Word("tool", "ask", said, why),)


def conformance(call: Asked) -> Sequence[Word]:
    """An effect that no step of the sketch has; one that a step rules out, and none has, is refused."""
    sketch = call.known.words.anchor.sketch
    if sketch is None or not call.aim.is_effectful:
        return ()
    allowed = {EFFECT_OF[each] for step in sketch.steps for each in step.allowed_capabilities}
    if not call.aim.classes.isdisjoint(allowed):
        return ()
    ruled_out = {EFFECT_OF[each] for step in sketch.steps for each in step.forbidden_capabilities}
    if call.aim.effect.effect in ruled_out and not call.may_only_read:
        told = "refused: the task as it was read rules this out; do what was asked"
        return (Word("conformance", "deny", told, "the task as it was read rules this out"),)
    told = "the task as it was read has no such step; finish what was asked, or ask the user"
    return (Word("conformance", "ask", told, "no step of the task, as it was read, does this"),)


def intent(call: Asked) -> Sequence[Word]:
    """An effect that the words do not ask for, or a limit that they set."""
    found = limits(call)
    if _is_asked_for(call):
        return found
    doing, _ = DOING[call.aim.effect.effect]
    said = f"the user did not ask to {doing}; finish what was asked, or ask the user"
    return (*found, Word("intent", "ask", said, f"you did not ask to {doing}"))


def _is_asked_for(call: Asked) -> bool:
    """Whether the words ask for what the call does. A read always is; of an unknown effect nobody can tell."""
    asked = call.known.words.anchor.effects_asked
    return call.aim.effect.effect in ("read", None) or not call.aim.classes.isdisjoint(asked)


def provenance(call: Asked) -> Sequence[Word]:
    """A leaf that its sink does not take from where it comes."""
    said = "refused: a value only looks like the one that the user gave"
    found = [Word("provenance", "deny", said, twin.note, (twin,)) for twin in call.aim.twins]
    if call.aim.odd:
        named = ", ".join(dict.fromkeys(e.path for e in call.aim.odd))
        said = f"the value of {named} is not the user's own: look it up in what the user named, or ask the user"
        found.append(Word("provenance", "ask", said, "a value is not from your words", call.aim.odd))
    if unlisted := _unlisted(call):
        said = "a person has agreed to where this goes, not to this; send what was asked, or ask the user"
        found.append(Word("provenance", "ask", said, "you said yes to something else that goes there", unlisted))
    return found


def _unlisted(call: Asked) -> tuple[Evidence, ...]:
    """What goes where only a person's yes lets it, and was not shown with that: a text that says more, another sum.

    Where money moves, a place and a sum that a yes has opened belong together as they were asked about.
    """
    known, spec = call.known, call.spec
    yes = {(role, norm) for tool, role, norm in known.endorsed if tool == spec.name}
    values = leaves_of(call.arguments, spec) if yes and call.aim.is_effectful else ()
    without = replace(known, endorsed=frozenset())
    moved = {(leaf.role, leaf.norm): leaf for leaf in values if leaf.role in ("destination", "object", "amount")}
    opened = [leaf for leaf in moved.values() if evidence_of(without, spec, leaf).origin not in GOOD]
    if yes.isdisjoint((leaf.role, leaf.norm) for leaf in opened):
        return ()
    texts = [norm for role, norm in yes if role == "content"]
    alike = (one for one in call.started if one.name == spec.name)
    is_new = "transact" in call.aim.classes and not any(moved.keys() <= one.moved for one in alike)
    found: list[Evidence] = []
    listed = {e.path for e in call.aim.odd}
    for leaf, e in zip(values, call.aim.evidence, strict=True):
        if e.path in listed:
            continue
        if is_new and leaf.role == "amount":
            found.append(replace(e, note="your yes was not for this sum there"))
        elif leaf.role == "content" and e.origin not in GOOD and _says_more(known, leaf, texts):
            found.append(replace(e, note="it says more than the text that you said yes to"))
    return tuple(found)


def _says_more(known: Known, leaf: Leaf, texts: Sequence[str]) -> bool:
    """Whether a text holds an address, a number or the like, or quotes a passage of a result, in none of some texts."""
    text = str(leaf.value)
    tokens = [Leaf(leaf.path, t.text, "content", t.kind, t.norm) for t in hard_tokens(text, is_content=True)]
    said = [one for one in tokens if not is_of_user(known, one)]
    if any(not any(holds(other, normal_text(str(one.value))) for other in texts) for one in said):
        return True
    parts = re.split(r"[^\w\s]+", normal_text(text))
    rest = " ".join(part for part in parts if not any(holds(other, part.strip()) for other in texts))
    return any(quotes(rest, source) for source in known.sources)


def perception(call: Asked) -> Sequence[Word]:
    """A value from a result in which a model should have looked for orders, and has not, or a text that quotes one."""
    degraded = call.known.degraded
    unread: list[Evidence] = []
    for one in call.aim.evidence if degraded else ():
        if one.source_id in degraded:
            unread.append(one)
        elif one.role == "content" and one.origin not in GOOD:
            sources = (source for source in reversed(call.known.sources) if source.call_id in degraded)
            if source := next((source for source in sources if quotes(one.value, source)), None):
                note = f"it quotes what {source.name} gave, which was not checked"
                unread.append(replace(one, source_id=source.call_id, note=note))
    if not unread:
        return ()
    told = "a value comes from a result that could not be checked; look it up elsewhere, or ask the user"
    return (Word("perception", "ask", told, "a value is from a result that could not be checked", tuple(unread)),)


def touch(call: Asked) -> Sequence[Word]:
    """A call with an effect that has nothing to do with the words."""
    if not call.aim.is_effectful or call.aim.is_touching:
        return ()
    said = "the call has nothing of what the user said; do what was asked"
    what = "no more than a time or option" if any(one.origin == "user" for one in call.aim.evidence) else "nothing"
    return (Word("touch", "ask", said, f"{what} of this call is in your words"),)


def foreign(call: Asked) -> Sequence[Word]:
    """A call of a foreign tool that nobody has declared and that may change something, until one was approved.

    Even if all values are the user's own: what the server does with them nobody knows. A person's yes to a call accepts
    that very tool, by its pin, for the run; a yes to delete something accepts nothing.
    """
    spec = call.spec
    if not spec.is_foreign or spec.declared or not call.aim.is_effectful or pin_of(spec) in call.known.accepted:
        return ()
    said = "nobody has declared what this foreign tool does; use a tool of the house, or ask the user"
    where = f"server {in_full(spec.server)}" if spec.server else "a foreign server"
    return (Word("foreign", "ask", said, f"nobody has declared what the tool {in_full(spec.name)} of {where} does"),)


def accepted_by(config: GuardConfig, spec: ToolSpec) -> str:
    """The pin of the foreign tool that a person accepts with a yes to a call of it; "" where there is none."""
    is_accepted = spec.is_foreign and not spec.declared and guess(spec, config.guess).effect != "delete"
    return pin_of(spec) if is_accepted else ""


def repetition(call: Asked) -> Sequence[Word]:
    """The very same call once more, with no other effect in between; of a model that repeats itself, whatever was.

    Where sums go somewhere it is the same to pay by another tool: effect, place and sum are compared.
    """
    if call.spec.may_repeat or not call.aim.is_effectful:
        return ()
    if any(one.is_open and one.digest == call.digest for one in call.started):
        verdict = "ask" if call.may_only_read else "deny"
        return (Word("repetition", verdict, "refused: the same call is not settled yet", "the same call is open"),)
    last = max((one.ended for one in call.started if one.ended and one.effects - {"read"}), default=0)
    since = [one for one in call.started if not one.ended or one.ended == last or call.known.repeats]
    if any(one.digest == call.digest for one in since):
        said = "this very call was made already"
    elif any(_is_as_much(one, call) for one in since):
        said = "as much was already paid to the same place, or booked there"
    else:
        return ()
    return (Word("repetition", "ask", said, said),)


def _is_as_much(one: Started, call: Asked) -> bool:
    """Whether a call has paid as much to the same place as another would, or has booked the same with the same tool."""
    ours, theirs = call.aim.classes - {"read"}, one.effects - {"read"}
    moved, paid = moved_by(call.spec, call.arguments), sums_in(call.spec, call.arguments)
    if not one.amounts or not paid:
        return "transact" in ours & theirs and one.name == call.spec.name and one.moved == moved != frozenset()
    sums = [amounts_of(sums) for sums in (one.amounts, paid)]
    places = [{v for r, v in m if r == "destination"} or {v for r, v in m if r == "object"} for m in (one.moved, moved)]
    may_be = bool(theirs) and (bool(ours & theirs) or None in ours | theirs)
    return may_be and all(places) and all(a <= b or b <= a for a, b in (sums, places))


POLICIES: tuple[Policy, ...] = (
    *(tool, conformance, intent, provenance, perception),
    *(touch, foreign, repetition, user_rules, cedar),
)


def asked_about(
    known: Known, spec: ToolSpec, arguments: Mapping[str, object], started: Sequence[Started] = ()
) -> Asked:
    """A call as the policies see it."""
    return Asked(known, spec, arguments, aimed(known, spec, arguments), digest_of(spec, arguments), started)


def verdict_on(
    known: Known,
    spec: ToolSpec,
    arguments: Mapping[str, object],
    started: Sequence[Started] = (),
    policies: tuple[Policy, ...] = POLICIES,
) -> tuple[Decision, str, Grounds]:
    """The decision about an offered and well-formed call, the rule that made it, and what it rests on."""
    try:
        call = asked_about(known, spec, arguments, started)
        decision, rule, grounds = _strictest(call, [word for policy in policies for word in policy(call)])
        if not isinstance(decision, Allow):
            grounds = replace(grounds, evidence=tuple(traced(known, e) for e in grounds.evidence))
    except Exception as error:  # noqa: BLE001  # a check that fails fails closed
        return Deny("refused: the call could not be checked"), "policy_error", Grounds(reason_person=repr(error))
    return decision, rule, grounds


def _strictest(call: Asked, words: Sequence[Word]) -> tuple[Decision, str, Grounds]:
    rules = list(dict.fromkeys(word.rule for word in words))
    evidence = tuple(e for word in words for e in word.evidence)

    def grounds(rule: str, reason: str) -> Grounds:
        return Grounds(tuple(r for r in rules if r != rule), call.digest, "", reason, evidence)

    for word in words:
        if word.verdict == "deny":
            return Deny(word.for_model), word.rule, grounds(word.rule, word.for_person)
    cues, sources = call.known.words.anchor.cues, call.known.sources
    is_adopted = "adoption" in cues and any(source.is_named for source in sources)
    if (fault := _fault(call)) is not None and call.may_only_read:
        fault = None
    if fault is not None and not is_adopted:
        evidence = evidence or fault.evidence
        return Deny(fault.for_model), fault.rule, grounds("", fault.for_person)
    if not words:  # nobody is asked, so the call holds all that there is of its values
        brief = tuple(
            e if len(e.value) <= _LONGEST_KEPT else replace(e, value=e.value[:_LONGEST_KEPT]) for e in call.aim.evidence
        )
        return Allow(), "", Grounds(digest=call.digest, evidence=brief)
    if fault is None and (standing := standing_for(call, words)):
        return Allow(), "standing", grounds("", f"{standing.by} always allows this: {standing.id}")
    if call.known.config.strict:
        refusal = Deny(f"refused, and nobody is there to ask: {words[0].for_model}")
        return refusal, rules[0], grounds(rules[0], words[0].for_person)
    first = "adoption" if fault is not None else rules[0]
    return Ask("; ".join(dict.fromkeys(word.for_person for word in words))), first, grounds(first, "")


def _fault(call: Asked) -> Word | None:
    """What forbids a call although each sign alone would only ask (section 4.8)."""
    if call.aim.bad and not _is_asked_for(call) and call.known.config.two_faults == "deny":
        said = "refused: the user did not ask for this, and its values are not the user's; do what was asked"
        why = "an effect that you did not ask for, with values that are not yours"
        return Word("two_faults", "deny", said, why, call.aim.bad)
    places = tuple(  # where it goes stands only in running text, or nowhere
        e
        for e in call.aim.evidence
        if e.role == "destination" and (e.origin == "invented" or (e.origin == "untrusted" and e.form == "prose"))
    )
    if not call.aim.is_effectful or not places:
        return None
    if not call.aim.is_touching and call.known.words.anchor.cues.isdisjoint(("delegation", "adoption", "set")):
        said = "refused: nothing of this call is in what the user said; do what was asked"
        why = "nothing of this call is in your words, and where it goes to stands in no field"
        return Word("untouched", "deny", said, why, places)
    if call.known.config.strict:
        said = "refused: look up where this has to go in what the user named; it must stand there as a field"
        return Word("strict", "deny", said, "nobody is there to say where this may go", places)
    return None
