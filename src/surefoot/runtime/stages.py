"""Ask a model for a stage of the guard. A stage fails closed: what goes wrong is on record, and opens nothing.

Source: spec/guard.md, sections 3.2, 3.3 and 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, assert_never, cast

import orjson

from surefoot.core.budget import seconds_left, spent_limit
from surefoot.core.gate.anchoring import with_constraints, with_sketch
from surefoot.core.gate.commitment import CLOSED, RECOMMENDED, RECOMMENDED_WORDS
from surefoot.core.gate.judgement import LONGEST_REASON
from surefoot.core.gate.perception import masks_in, stripped
from surefoot.core.gate.proposing import COMMIT, HYPOTHESES
from surefoot.core.gate.record import GateRecord
from surefoot.core.gate.stages import (
    CONSTRAINTS,
    JUDGE,
    SANITISE,
    SKETCH,
    StagePrompt,
    constraints_prompt,
    judge_prompt,
    sanitise_prompt,
    sketch_prompt,
)
from surefoot.core.gate.verdict import digest_of
from surefoot.core.guarded import words_of
from surefoot.core.parse.validate import validate
from surefoot.core.roles import guard_role
from surefoot.core.state import State
from surefoot.core.text import clean
from surefoot.prompts.load import template
from surefoot.types.errors import ModelError, TraitRefused
from surefoot.types.events import Event, IntentAnchored
from surefoot.types.guard import GuardConfig
from surefoot.types.guard_events import Asking, JudgementMade, PerceptionSanitised
from surefoot.types.messages import ModelMessage, ModelRequest, Usage
from surefoot.types.moves import JudgeCall, MakeAnchor, Sanitise, StageMove

if TYPE_CHECKING:
    from surefoot.runtime.hands import LiveHands

_LOG = logging.getLogger("surefoot.gate")
_LONGEST_FAILURE = 300
_AGAIN = "This does not fit: {why}. Reply with the JSON object alone."

Reply = Mapping[str, object]


def stage_templates(guard: GuardConfig | None) -> dict[str, str]:
    """The templates of the stages for which a model is asked."""
    if guard is None or guard.mode == "off":
        return {}
    anchor = (CONSTRAINTS, SKETCH) if guard.anchor == "model" else ()
    names = (*anchor, *((SANITISE,) if guard.sanitise == "model" else ()), *((JUDGE,) if guard.judge else ()))
    names += (HYPOTHESES, COMMIT, RECOMMENDED, RECOMMENDED_WORDS, CLOSED) if guard.speculate else ()
    return {name: template(name) for name in names}


async def stage(hands: LiveHands, move: StageMove, state: State) -> Sequence[Event]:
    """What a model says for one stage, checked, as an event; or why it says nothing."""
    gate, words = state.gate, words_of(state)
    assert gate is not None  # noqa: S101  # the move was made from this state
    asker = Asker(hands, state, gate.known.config)
    match move:
        case MakeAnchor():
            return (await _anchored(asker, state, gate, words),)
        case Sanitise(call_id):
            return (await _sanitised(asker, state, gate, call_id),)
        case JudgeCall(call_id):
            return (await _judged(asker, state, gate, words, call_id),)
        case _:
            assert_never(move)


async def _anchored(asker: Asker, state: State, gate: GateRecord, words: str) -> IntentAnchored:
    """The anchor with what a model reads in the words; either half may fail, and the rules' anchor stands."""
    anchor, dropped = gate.known.words.anchor, 0
    reply = await asker.ask(constraints_prompt(words, state.tools, gate))
    if reply is not None:
        read = with_constraints(anchor, words, reply)
        anchor, dropped = read.anchor, read.dropped
    reply = await asker.ask(sketch_prompt(words))
    if reply is not None:
        anchor = with_sketch(anchor, reply)
    return IntentAnchored(anchor, gate.known.today, dropped, asker.asking())


async def _sanitised(asker: Asker, state: State, gate: GateRecord, call_id: str) -> PerceptionSanitised:
    call = state.call(call_id)
    assert call is not None  # noqa: S101  # the move was made from this state
    assert call.result is not None  # noqa: S101  # as above
    reply = await asker.ask(sanitise_prompt(call.name, call.result, gate))
    if reply is None:
        return PerceptionSanitised(call_id, asking=asker.asking())
    given = cast("list[Mapping[str, str]]", reply["mask"])  # as the schema has it
    masks, ignored = masks_in(stripped(call.result.content), [one["quote"] for one in given])
    return PerceptionSanitised(call_id, masks=masks, ignored=ignored, asking=asker.asking())


async def _judged(asker: Asker, state: State, gate: GateRecord, words: str, call_id: str) -> JudgementMade:
    call = state.call(call_id)
    assert call is not None  # noqa: S101  # the move was made from this state
    assert call.spec is not None  # noqa: S101  # as above
    digest = digest_of(call.spec, call.arguments)
    reply = await asker.ask(judge_prompt(words, call, call.spec, gate))
    if reply is None:
        return JudgementMade(call_id, digest, asker.asking())
    verdict = cast("Literal['allow', 'ask', 'deny']", reply["verdict"])  # as the schema has it
    reason, limit = clean(str(reply["reason"]))[:LONGEST_REASON], clean(str(reply["constraint_id"] or ""))
    return JudgementMade(call_id, digest, asker.asking(), verdict, reason, limit[:LONGEST_REASON])


class Asker:
    """Asks the model that plays the guard, and counts what that takes. One repair for each request."""

    def __init__(self, hands: LiveHands, state: State, config: GuardConfig) -> None:
        self._hands = hands
        self._state = state
        self._role = guard_role(state)
        self._model = hands.cast.parts[self._role].model
        self._limit_s = config.stage_timeout_s
        self._usage = Usage()
        self._requests = 0
        self._failures: list[str] = []
        self._has_schema = "schema" in self._model.modes

    def asking(self) -> Asking:
        """What it took so far."""
        failure = "; ".join(dict.fromkeys(self._failures))
        return Asking(self._model.name, self._role, failure, self._usage, self._hands.elapsed_s, self._requests)

    async def ask(self, prompt: StagePrompt) -> Reply | None:
        """A reply that fits; None where there is none, for a reason that is kept."""
        failure = ""
        left_s = seconds_left(self._state)
        limit_s = self._limit_s if left_s is None else min(left_s, self._limit_s)
        if (spent := spent_limit(self._state)) is not None:
            failure = f"not asked: the {spent} of the run are spent"
        else:
            until_s = self._hands.clock() + limit_s
            try:
                async with asyncio.timeout(limit_s):
                    reply = await self._tried(prompt, limit_s)
                if self._hands.clock() < until_s:
                    return reply
                failure = f"no reply within {limit_s:g} s"  # it blocked the loop, so it could not be cut off
            except TimeoutError:
                failure = f"no reply within {limit_s:g} s"
            except ModelError as error:
                self._usage += error.usage
                failure = str(error)
            except _UnusableError as unusable:
                failure = str(unusable)
            except Exception as broken:  # noqa: BLE001  # an adapter may be anybody's code: its stage has failed
                failure = f"the adapter broke: {type(broken).__name__}: {broken}"
        failure = f"{prompt.template}: {clean(failure)}"[:_LONGEST_FAILURE]
        self._failures.append(failure)
        _LOG.warning("a stage of the guard failed: %r", failure)
        return None

    async def _tried(self, prompt: StagePrompt, limit_s: float) -> Reply:
        messages = [ModelMessage("user", prompt.text)]
        why = ""
        for _ in range(2):
            message = await self._sent(prompt, messages, limit_s)
            reply, why = _read(message.content, prompt.schema)
            if reply is not None:
                return reply
            messages += [ModelMessage("assistant", message.content), ModelMessage("user", _AGAIN.format(why=why))]
        raise _UnusableError(f"the reply does not fit: {why}")

    async def _sent(self, prompt: StagePrompt, messages: Sequence[ModelMessage], limit_s: float) -> ModelMessage:
        part, speaker = self._hands.cast.parts[self._role], self._state.speakers[self._role]
        held = self._has_schema and speaker.traits.get("json_schema") != "no"
        request = ModelRequest(
            self._state.prompts[prompt.template],
            tuple(messages),
            "schema" if held else "text",
            schema=(prompt.held or prompt.schema) if held else None,
            settings=part.settings,
            traits=speaker.traits,
            deadline_s=limit_s,
        )
        self._requests += 1
        try:
            message = await self._model.send(request)
        except TraitRefused as refused:
            if not held or refused.trait != "json_schema":
                raise
            self._usage += refused.usage
            self._has_schema = False  # the prompt says what the reply has to be
            return await self._sent(prompt, messages, limit_s)
        self._usage += message.usage
        return message


class _UnusableError(Exception):
    """A model has replied, and not with what it was asked for."""


def _read(text: str, schema: Mapping[str, object]) -> tuple[Reply | None, str]:
    """The JSON object of a reply; or what is wrong with it, in our own words alone."""
    start, end = text.find("{"), text.rfind("}")
    try:
        value: object = orjson.loads(text[start : end + 1]) if start >= 0 else None
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        return None, "it is not a JSON object"
    checked = validate(cast("dict[str, object]", value), schema)
    if checked.errors:
        return None, "; ".join(str(error) for error in checked.errors)[:_LONGEST_FAILURE]
    return checked.value, ""
