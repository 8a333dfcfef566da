"""Ask a model for an object: a stage of the guard, ways to go on, or a proposal for a plan.

A stage fails closed: what goes wrong is on record, and opens nothing. A proposal that fails is a reply that failed.
Source: spec/guard.md, sections 3.2 to 3.9; spec/planning.md, section 3.
"""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeVar, cast

import orjson

from surefoot.core.gate.intent import with_constraints, with_sketch
from surefoot.core.gate.record import GateRecord
from surefoot.core.gate.verdict import digest_of
from surefoot.core.guard.branches import (
    COMMIT,
    HYPOTHESES,
    MOST_BRANCHES,
    accepted,
    commit_prompt,
    hypotheses_prompt,
    is_direct,
    step_now,
    survivors,
)
from surefoot.core.guard.ledger import words_of
from surefoot.core.loop.trajectory import recalled
from surefoot.core.parse.frames import masks_in, stripped
from surefoot.core.parse.scan import MOST_NESTED, nested_deeper_than
from surefoot.core.parse.validate import validate
from surefoot.core.state.roles import GUARD, PLANNER, ROLES, SOLO, seconds_left, spent_limit
from surefoot.core.state.state import State
from surefoot.core.text import clean
from surefoot.core.view.request import REQUIRED_ONLY
from surefoot.core.view.stages import (
    CLOSED,
    CONSTRAINTS,
    JUDGE,
    LONGEST_REASON,
    RECOMMENDED,
    RECOMMENDED_THOUGHT,
    RECOMMENDED_WORDS,
    SANITISE,
    SKETCH,
    StagePrompt,
    constraints_prompt,
    judge_prompt,
    sanitise_prompt,
    sketch_prompt,
)
from surefoot.core.view.step import ISOLATED, choosing_now
from surefoot.prompts.load import template
from surefoot.runtime.act import within
from surefoot.tools.call import is_stopping
from surefoot.types.errors import ModelError, ModelTimeout, TraitRefused
from surefoot.types.events import Event, IntentAnchored, ModelFailed, ModelTraitLearnt, Want
from surefoot.types.guard import CommitmentDecision, GuardConfig, HypothesisBranch, HypothesisTree
from surefoot.types.guard_events import Asking, BranchCommitted, HypothesesMade, JudgementMade, PerceptionSanitised
from surefoot.types.messages import ModelMessage, ModelRequest, Usage
from surefoot.types.moves import Ask
from surefoot.types.outcomes import Deny
from surefoot.types.plan import RESERVED, ProposalKind
from surefoot.types.plan_events import ProposalMade
from surefoot.types.tools import Catalogue

if TYPE_CHECKING:
    from surefoot.runtime.world import World


_LOG = logging.getLogger("surefoot.gate")
_LONGEST_FAILURE = 300
_AGAIN = "This does not fit: {why}. Reply with the JSON object alone."
_TIDY_S = 1.0

SMALL_MODEL_TOKENS = 1_600
"""Tokens of a proposal by a model that writes a step in far fewer."""

Reply = Mapping[str, object]
T = TypeVar("T")


def stage_templates(guard: GuardConfig | None) -> dict[str, str]:
    """The templates of the stages for which a model is asked."""
    if guard is None or guard.mode == "off":
        return {}
    anchor = (CONSTRAINTS, SKETCH) if guard.anchor == "model" else ()
    names = (*anchor, *((SANITISE,) if guard.sanitise == "model" else ()), *((JUDGE,) if guard.judge else ()))
    if guard.speculate:
        names += (HYPOTHESES, COMMIT, RECOMMENDED, RECOMMENDED_WORDS, RECOMMENDED_THOUGHT, CLOSED, ISOLATED)
    return {name: template(name) for name in names}


async def ask(world: World, move: Ask, state: State) -> Sequence[Event]:
    """What a model says, checked, as an event; or why it says nothing."""
    if (kind := move.proposal) is not None:
        return (await _proposed(world, kind, move.about, state),)
    gate = state.gate
    assert gate is not None  # noqa: S101  # the move was made from this state
    asker = Asker(world, state, gate.known.config)
    made = await _PURPOSES[move.purpose](asker, state, gate, move.about)
    return (asker.learnt or made,)  # once something was learnt of the endpoint it is asked anew


async def reply_of(reply: Awaitable[T], model: str, limit_s: float | None) -> T | ModelError:
    """What comes of a request within its time, in seconds; or why none comes, whatever it is.

    An adapter that goes on when it is cancelled is left behind a second later, and what it gives by then is too late.
    """
    try:
        if limit_s is None:
            return await reply
        ends_s = time.monotonic() + limit_s
        told = await within(lambda: reply, limit_s, _TIDY_S, model)
        if time.monotonic() < ends_s:
            return cast("T", told)
        return ModelTimeout(f"{model} gave no reply within {limit_s:g} s")
    except TimeoutError:
        return ModelTimeout(f"{model} gave no reply " + ("in time" if limit_s is None else f"within {limit_s:g} s"))
    except ModelError as error:
        return error
    except (Exception, CancelledError) as broken:  # an adapter may be anybody's code: what it raises is told by name
        if is_stopping(broken):
            raise
        failure = ModelError(f"the adapter of {model} broke: {type(broken).__name__}: {broken}")
        failure.__cause__ = broken
        return failure


NOT_FOR_ANOTHER = frozenset({"refused", "context_overflow"})
"""Failures after which no other model is asked: what a model refuses to say, and what the view is cut for."""


def failed(world: World, state: State, role: str, error: ModelError, want: Want = "any") -> ModelFailed:
    """Why a model gave no reply, and which one goes on where another was named behind it."""
    part = world.cast.part(state, role)
    behind = None if error.kind in NOT_FOR_ANOTHER else part.instead
    told, now_s = clean(str(error)), world.elapsed_s
    used, then = part.settings.priced(error.usage), behind.known_speaker() if behind else None
    return ModelFailed(error.kind, told, error.attempts, role, used, want, now_s, then)


async def _proposed(world: World, kind: ProposalKind, about: str, state: State) -> Event:
    """A proposal as the model gives it; what follows from it is decided elsewhere."""
    from surefoot.core.plan.requests import prompt_for  # noqa: PLC0415  # only a run that plans pays for it

    planning = state.planning
    assert planning is not None  # noqa: S101  # the move was made from this state
    role = PLANNER if PLANNER in state.speakers else SOLO
    speaker, part = state.speakers[role], world.cast.part(state, role)
    prompt = prompt_for(state, planning, kind, about)
    deadline_s = planning.loops.words.budget.max_seconds
    limit_s = None if deadline_s is None else max(0.0, deadline_s - world.elapsed_s)
    settings = part.settings
    if settings.max_output_tokens is None and speaker.traits.get(REQUIRED_ONLY) == "no":
        settings = replace(settings, max_output_tokens=SMALL_MODEL_TOKENS)  # its own default is for a step, not a plan
    held = "schema" in part.model.modes and speaker.traits.get("json_schema") != "no"
    request = ModelRequest(
        state.prompts[prompt.template],
        (ModelMessage("user", prompt.text),),
        "schema" if held else "text",
        schema=prompt.schema if held else None,
        settings=settings,
        traits=speaker.traits,
        deadline_s=limit_s,
    )
    match await reply_of(part.model.send(request), speaker.model, limit_s):
        case TraitRefused(trait=trait) as refused if not speaker.knows(trait, refused.value):
            return ModelTraitLearnt(speaker.model, trait, refused.value, refused.evidence)
        case ModelError() as error:
            return failed(world, state, role, error)
        case message:
            used = part.settings.priced(message.usage)
            message = replace(message, content=clean(message.content), calls=(), opaque=(), usage=used)
            return ProposalMade(kind, message, about, elapsed_s=world.elapsed_s)


async def _anchored(asker: Asker, state: State, gate: GateRecord, _: str) -> IntentAnchored:
    """The anchor with what a model reads in the words; either half may fail, and the rules' anchor stands."""
    words = words_of(state, of_run=True)
    anchor, dropped = gate.known.words.anchor, 0
    reply = await asker.ask(constraints_prompt(words, state.tools, gate))
    if reply is not None:
        anchor, dropped = with_constraints(anchor, words, reply)
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


async def _judged(asker: Asker, state: State, gate: GateRecord, call_id: str) -> JudgementMade:
    call = state.call(call_id)
    assert call is not None  # noqa: S101  # the move was made from this state
    assert call.spec is not None  # noqa: S101  # as above
    digest = digest_of(call.spec, call.arguments)
    reply = await asker.ask(judge_prompt(words_of(state), call.spec, call.arguments, gate))
    if reply is None:
        return JudgementMade(call_id, digest, asker.asking())
    verdict = cast("Literal['allow', 'ask', 'deny']", reply["verdict"])  # as the schema has it
    reason, limit = clean(str(reply["reason"]))[:LONGEST_REASON], clean(str(reply["constraint_id"] or ""))
    return JudgementMade(call_id, digest, asker.asking(), verdict, reason, limit[:LONGEST_REASON])


class Asker:
    """Asks the model that plays the guard, and counts what that takes. One repair for each request."""

    def __init__(self, world: World, state: State, config: GuardConfig) -> None:
        self.world = world
        self._state = state
        self._role = GUARD if GUARD in state.speakers else ROLES[state.reasoner][0]
        self._part = world.cast.part(state, self._role)
        self._limit_s = config.stage_timeout_s
        self._usage = Usage()
        self._requests = 0
        self._failures: list[str] = []
        self._has_schema = "schema" in self._part.model.modes
        self.learnt: ModelTraitLearnt | None = None

    def asking(self) -> Asking:
        """What it took so far."""
        failure = "; ".join(dict.fromkeys(self._failures))
        used = self._part.settings.priced(self._usage)
        return Asking(self._part.model.name, self._role, failure, used, self.world.elapsed_s, self._requests)

    async def ask(self, prompt: StagePrompt) -> Reply | None:
        """A reply that fits; None where there is none, for a reason that is kept."""
        failure = ""
        left_s = seconds_left(self._state)
        limit_s = self._limit_s if left_s is None else min(left_s, self._limit_s)
        if (spent := spent_limit(self._state)) is not None:
            failure = f"not asked: the {spent} of the run are spent"
        else:
            until_s = time.monotonic() + limit_s
            reply = await reply_of(self._tried(prompt, limit_s), self._part.model.name, limit_s)
            speaker = self._state.speakers[self._role]
            if isinstance(reply, TraitRefused) and not speaker.knows(reply.trait, reply.value):
                self.learnt = ModelTraitLearnt(speaker.model, reply.trait, reply.value, reply.evidence)
                return None
            if isinstance(reply, ModelError):
                self._usage += reply.usage
                failure = str(reply)
            elif time.monotonic() >= until_s:  # it blocked the loop, so it could not be cut off
                failure = f"{self._part.model.name} gave no reply within {limit_s:g} s"
            elif isinstance(reply, str):
                failure = f"the reply does not fit: {reply}"
            else:
                return reply
        failure = f"{prompt.template}: {clean(failure)}"[:_LONGEST_FAILURE]
        self._failures.append(failure)
        _LOG.warning("a stage of the guard failed: %r", failure)
        return None

    async def _tried(self, prompt: StagePrompt, limit_s: float) -> Reply | str:
        """A reply that fits, asked for once more where it does not; or what is wrong with the second."""
        messages = [ModelMessage("user", prompt.text)]
        why = ""
        for _ in range(2):
            message = await self._send(prompt, messages, limit_s)
            start, end = message.content.find("{"), message.content.rfind("}")
            try:
                value: object = orjson.loads(message.content[start : end + 1]) if start >= 0 else None
            except orjson.JSONDecodeError:
                value = None
            why = "it is not a JSON object"
            if isinstance(value, dict):
                checked = validate(cast("dict[str, object]", value), prompt.schema)
                if not checked.errors:
                    return checked.value
                why = "; ".join(str(error) for error in checked.errors)[:_LONGEST_FAILURE]
            messages += [ModelMessage("assistant", message.content), ModelMessage("user", _AGAIN.format(why=why))]
        return why

    async def _send(self, prompt: StagePrompt, messages: Sequence[ModelMessage], limit_s: float) -> ModelMessage:
        speaker = self._state.speakers[self._role]
        held = self._has_schema and speaker.traits.get("json_schema") != "no"
        request = ModelRequest(
            self._state.prompts[prompt.template],
            tuple(messages),
            "schema" if held else "text",
            schema=(prompt.held or prompt.schema) if held else None,
            settings=self._part.settings,
            traits=speaker.traits,
            deadline_s=limit_s,
        )
        self._requests += 1
        try:
            message = await self._part.model.send(request)
        except TraitRefused as refused:
            if not held or refused.trait != "json_schema":
                raise
            self._usage += refused.usage
            self._has_schema = False  # the prompt says what the reply has to be
            return await self._send(prompt, messages, limit_s)
        self._usage += message.usage
        return message


_NOTHING: Mapping[str, object] = {}


async def _hypothesised(asker: Asker, state: State, gate: GateRecord, tree_id: str) -> HypothesesMade:
    """What memory knows, and what a model names; without its reply what memory knows alone."""
    found: list[HypothesisBranch] = []
    unfit = 0
    if gate.known.config.memory and asker.world.paths is not None:
        known = await asker.world.paths.of(state.tools)
        found += [one for one in recalled(state, known.values()) if _fits(one, state.tools) is not None]
        found = found[: MOST_BRANCHES - 1]
    reply = await asker.ask(hypotheses_prompt(state, gate))
    recommended = ""
    if reply is not None:
        told = cast("list[Reply]", reply["branches"])  # as the schema has it
        named = [_branch(one) for one in told if not nested_deeper_than(one, MOST_NESTED)]  # as in a model's own calls
        fitting = [fit for one in named if (fit := _fits(one, state.tools)) is not None]
        unfit = len(told) - len(fitting)
        wanted = reply.get("recommended_branch_id")
        recommended = next((_key(one) for one in fitting if one.branch_id == wanted and wanted), "")
        found += fitting
    branches, dropped = accepted(state, found)
    chosen = next((one.branch_id for one in branches if _key(one) == recommended), None)
    tree = HypothesisTree(tree_id, step_now(state), state.steps + 1, branches, chosen)
    return HypothesesMade(tree, dropped + unfit, asker.asking())


def _key(branch: HypothesisBranch) -> object:
    return branch.tool_name, branch.argument_sets


def _branch(told: Reply) -> HypothesisBranch:
    """A branch as a model wrote it. Of its words none decides anything."""
    name = clean(str(told["tool_name"]))
    sets = cast("list[Mapping[str, object]]", told.get("argument_sets") or [])  # as the schema has it
    return HypothesisBranch(
        clean(str(told.get("branch_id") or "")),
        "",
        name,
        (_NOTHING,) if name in RESERVED else tuple(sets),
        clean(str(told.get("rationale") or ""))[:LONGEST_REASON],
        cast("Literal['low', 'medium', 'high']", told.get("risk_level", "low")),
        float(cast("float", told.get("necessity_score", 0.5))),
        cast("Literal['minimal', 'moderate', 'high']", told.get("redundancy_level", "minimal")),
    )


def _fits(branch: HypothesisBranch, tools: Catalogue) -> HypothesisBranch | None:
    """The branch with its arguments as its tool takes them, each set once; None where one does not fit."""
    spec = tools.get(branch.tool_name)
    if spec is None:
        return branch  # whoever accepts it knows whether it is words
    sets: list[Mapping[str, object]] = []
    for arguments in branch.argument_sets:
        checked = validate(arguments, spec.parameters)
        if checked.errors:
            return None
        if checked.value not in sets:
            sets.append(checked.value)
    return replace(branch, argument_sets=tuple(sets))


async def _committed(asker: Asker, state: State, gate: GateRecord, _: str) -> BranchCommitted:
    """The branch that a model chooses among those that the gate lets pass; without its word the first in order."""
    now = choosing_now(state)
    assert now.tree is not None  # noqa: S101  # the move was made from this state
    left = [branch for branch, decision, _ in survivors(state, now.tree) if not isinstance(decision, Deny)]
    reply = await asker.ask(commit_prompt(state, gate, left))
    named = next((one for one in left if reply is not None and one.branch_id == reply["branch_id"]), None)
    branch = named or left[0]
    reason = clean(str(reply["reason"]))[:LONGEST_REASON] if reply is not None else "the first in order"
    by = "model" if named is not None else "order"
    decision = CommitmentDecision(now.tree.tree_id, branch.branch_id, by, reason, now.rejected)
    return BranchCommitted(decision, asker.asking(), is_direct(state, branch))


_PURPOSES: Mapping[str, Callable[[Asker, State, GateRecord, str], Awaitable[Event]]] = {
    "anchor": _anchored,
    "sanitise": _sanitised,
    "judge": _judged,
    "branches": _hypothesised,
    "choice": _committed,
}
