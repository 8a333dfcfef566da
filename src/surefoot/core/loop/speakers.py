"""Who speaks next, or that it is over: for each reasoner a question to the state, the first line that applies decides.

A round of `mono` is one reply, also one of analysis alone. A round of `dual` is a reply of the Thinker and the Actor's
turn, which is up to `actor_steps` requests; nothing that the Actor has read can end the run: a deliverable counts once
the Thinker has said that the task is done. What `ModelService.call_function` drives is one reply, its calls, and no
more. Source: seeds 002 and 003; spec/react.md, sections 2, 7, 9 and 10; spec/reasoners.md, sections 1, 5 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import TypeVar

from surefoot.core.gate.record import RUN
from surefoot.core.guard.judge import answer_of_finish
from surefoot.core.parse.text_calls import AMONG_WORDS
from surefoot.core.state.roles import ACTOR, ROLES, SOLO, THINKER, limit_for, reached_limit, spent_limit
from surefoot.core.state.state import State, Turn
from surefoot.core.view.shape import OTHER_SHAPE, shape_faults
from surefoot.core.view.step import branch_of_words, choosing_now, in_view
from surefoot.types.events import ModelTraitLearnt, RunEnded, Want
from surefoot.types.guard import GuardConfig
from surefoot.types.guard_events import BranchRejected
from surefoot.types.moves import Move, Record, Think
from surefoot.types.outcomes import Completed, CompletedPartial, Failed, Stopped
from surefoot.types.plan_events import ReasoningStepCompleted, ReasoningStepViolated

OUTPUT_SCHEMA = "output_schema"  # why a run fails whose answer never came to be what was asked for
LEAKS_UNTIL_LEARNT = 2
MOST_OVERFLOWS = 2

VIOLATIONS = "reasoning_violations"
"""Why a step without tools fails, and the run with it; a branch of words that was taken fails alone."""

WITHOUT_TOOLS: frozenset[Want] = frozenset(("reasoning", "isolated"))  # what is asked for in a step without tools
_DEFAULT = GuardConfig()

M = TypeVar("M", bound=Move)


def think(state: State, role: str, want: Want = "any") -> Think | Record:
    """Another request, as far as the budget goes; the last one asks for what is known, of the role that answers."""
    if state.turn is None or limit_for(state, role) is not None:  # which is reached before that of the whole budget
        if (limit := spent_limit(state)) is not None:
            return Record((RunEnded(Stopped(limit)),))
        if state.turn is not None:
            return Think(state.steps + 1, ROLES[state.reasoner][-1], "answer")
    if want == "any" and state.plan is not None and state.current_step_is_reasoning:
        want = "reasoning"
    return Think(state.steps + 1, role, want)


def after_failure(state: State) -> Think | Record:
    """What follows when a model gave no reply: the same request once more where that may help, else the end."""
    failure = state.failure
    assert failure is not None  # noqa: S101  # asked only then
    overflows = state.speakers[failure.role].overflows
    if failure.kind == "context_overflow" and overflows <= MOST_OVERFLOWS and state.steps:
        return think(state, failure.role, failure.want)
    if failure.kind == "refused":
        return Record((RunEnded(Stopped("refused")),))
    if (limit := spent_limit(state, reserve=True)) is not None:
        has_reserve = failure.want != "answer" and state.turn is not None  # the last word was not tried yet
        return think(state, failure.role) if has_reserve else Record((RunEnded(Stopped(limit)),))
    named = failure.kind in ("auth", "bad_request", "context_overflow")
    return Record((RunEnded(Failed(failure.kind if named else "model_unavailable", failure.message)),))


def after_words(state: State, turn: Turn, name: str, bad: Sequence[int]) -> Think | Record | None:
    """What follows a reply of a step without tools; None once it has words, or all tries are used up.

    `bad` are the numbers of those of its replies that are on record as none that it can use.
    """
    is_isolated = turn.want == "isolated"
    if turn.outcome == "refused":
        return Record((RunEnded(Stopped("refused")),))
    if turn.outcome == "cut" and state.speakers[SOLO].cuts_running <= state.config.continuations and not is_isolated:
        return think(state, SOLO, "reasoning")
    if has_other_shape(turn):
        return misshapen(state, turn) or think(state, SOLO, "reasoning")
    if turn.outcome in ("answer", "cut") or is_isolated:
        return None
    if state.steps in bad:
        retries = (state.config.guard or _DEFAULT).reasoning_retries
        return think(state, SOLO, "reasoning" if len(bad) <= retries else "isolated")
    error = turn.parsed.error
    reason = "calls" if turn.calls else "empty" if turn.outcome == "empty" or error is None else error.kind
    ids, tools = tuple(call.id for call in turn.calls), tuple(call.name for call in turn.calls)
    is_after = in_view(state)[1] == "untrusted"
    return Record((ReasoningStepViolated(name, len(bad) + 1, reason, ids, tools, after_untrusted=is_after),))


def after_branch(state: State, turn: Turn) -> Think | Record | None:
    """What follows a reply in words alone: that to a branch of words is a step without tools, None where it was none.

    The words of a response are the answer, those of a thought are none yet.
    """
    now = choosing_now(state)
    if now.tree is None or now.current is None or state.steps <= now.point:
        return None
    name = state.running_step.step_id if state.running_step is not None else RUN
    if (move := after_words(state, turn, name, now.bad)) is not None:
        return move
    if turn.outcome in ("answer", "cut"):
        is_answer = branch_of_words(state) == "response"
        return Record((RunEnded(Completed(joined(state, turn))),)) if is_answer else think(state, SOLO)
    return Record((BranchRejected(now.tree.tree_id, now.current.branch_id, VIOLATIONS, in_vain(now.bad)),))


def in_vain(bad: Sequence[int]) -> str:
    """What is said of a step without tools that got no words."""
    return f"{len(bad)} replies called a tool or held no words, and the isolated call gave none either"


def finished(turn: Turn) -> Completed | None:
    """The end that a finish tool gave."""
    for call in turn.calls:
        if call.spec is not None and call.spec.finish and call.result and not call.result.is_error:
            return Completed(answer_of_finish(call.arguments))
    return None


def give_up(state: State, role: str) -> Record | None:
    """What follows when a role's replies cannot be read any more: another way to speak to it, else the end.

    What the replies so far have shown about the model is put on record once (spec/react.md, section 2).
    """
    speaker, turn = state.speakers[role], state.turn
    alone = role if len(state.speakers) > 1 else ""
    if speaker.mode == "native" and speaker.leaks >= LEAKS_UNTIL_LEARNT and "native_tools" not in speaker.traits:
        evidence = f"{speaker.leaks} replies held calls as text although tools were sent"
        return Record((ModelTraitLearnt(speaker.model, "native_tools", "leaks", evidence, alone),))
    is_unread = speaker.faults_running >= state.config.parse_faults
    if is_unread and turn is not None:  # what has another shape can be read, and has its own limit
        is_unread = not has_other_shape(turn)
    if not is_unread and speaker.empty_running < state.config.empty_replies:
        return None
    if speaker.mode == "schema" or speaker.traits.get("json_schema") != "yes":
        return failed_to_read(state, role)
    trait, value = "text_steps", "weak"
    if speaker.mode == "native":
        # nothing says how well a model calls but calls that could not be used
        error = turn.parsed.error if turn is not None else None
        is_block = error is not None and error.kind == "text_call" and error.detail != AMONG_WORDS
        is_call = turn is not None and (bool(turn.parsed.errors) or is_block)
        trait, value = "native_tools", "weak" if is_unread and is_call else "mute"
    return Record((ModelTraitLearnt(speaker.model, trait, value, _unreadable(state, role), alone),))


def failed_to_read(state: State, role: str) -> Record:
    """The end of a run whose replies cannot be read; says whose."""
    named = "" if role == SOLO else f"{role}: "
    return Record((RunEnded(Failed("parse_failure", named + _unreadable(state, role))),))


def last_word(state: State, text: str) -> Record:
    """The end when the answer was asked for because of a limit."""
    limit = reached_limit(state) or "steps"
    return Record((RunEnded(CompletedPartial(text, limit) if text else Stopped(limit)),))


def has_other_shape(turn: Turn) -> bool:
    """Whether the reply answers, but not in the shape that was asked for."""
    return turn.parsed.error is not None and turn.parsed.error.kind in OTHER_SHAPE


def misshapen(state: State, turn: Turn) -> Record | None:
    """The end of a run whose outputs do not fit what was asked for, once all corrections are used up."""
    if turn.parsed.error is None or not has_other_shape(turn):
        return None
    own = (one for one in reversed(state.own_turns) if one.role == turn.role)
    running = sum(1 for _ in takewhile(has_other_shape, own))
    running = min(running, state.speakers[turn.role].faults_running)  # since it was taken up
    is_over = running > state.config.output_repairs or turn.want == "isolated"
    return Record((RunEnded(Failed(OUTPUT_SCHEMA, turn.parsed.error.detail)),)) if is_over else None


def in_shape(state: State, move: M) -> M | Record:
    """The move, unless it ends the run with an answer that is not what was asked for: then the run has failed."""
    match move:
        case Record((*before, RunEnded(Completed(answer) | CompletedPartial(answer) as ending))):
            turn, schema = state.turn, state.output_schema
        case _:
            return move
    if schema is None:
        return move
    told = shape_faults(answer, schema)
    if told and state.planning is not None:
        told = state.planning.answer_fault or told
    error = turn.parsed.error if turn is not None and has_other_shape(turn) else None
    if not told and turn is not None and error is not None and visible_words(turn).strip() == answer:
        told = error.detail
    reason = f" ({ending.reason})" if isinstance(ending, CompletedPartial) else ""
    return Record((*before, RunEnded(Failed(OUTPUT_SCHEMA, told + reason)))) if told else move


def end_or_reply(state: State, move: M) -> M | Think | Record:
    """The end of a run or step, or another reply where the user has said more since the one that would be its last."""
    if not state.notes or state.notes[-1][0] <= state.steps:
        return move
    role = ROLES[state.reasoner][0]
    match move:
        case Record((RunEnded(Completed()) | ReasoningStepCompleted(),)) if isinstance(
            more := think(state, role), Think
        ):
            return more
        case _:
            return move


def visible_words(turn: Turn) -> str:
    """The visible words of a reply, as they stand."""
    parsed = turn.parsed
    return parsed.final if parsed.final is not None else parsed.content or turn.message.content


def joined(state: State, turn: Turn) -> str:
    """The answer of a reply, with the pieces before it that were cut by length. Trimmed once it is whole."""
    pieces = [visible_words(turn)]
    is_whole = turn.parsed.format == "tags" and turn.parsed.final is not None  # a deliverable is whole or none
    for at in range(len(state.done) - 1, state.begun - 1, -1) if not is_whole else ():
        earlier = state.done[at]
        is_other = (earlier.role, earlier.want, earlier.step_id) != (turn.role, turn.want, turn.step_id)
        if earlier.outcome != "cut" or is_other:
            break
        pieces.append(visible_words(earlier))
    return "".join(reversed(pieces)).strip()


def _unreadable(state: State, role: str) -> str:
    """What was wrong with the last replies, for a person."""
    speaker = state.speakers[role]
    if speaker.empty_running:
        return f"{speaker.empty_running} empty replies in a row"
    error = state.turn.parsed.error if state.turn else None
    kind = f", the last one {error.kind}: {error.detail}" if error else ""
    if speaker.nudges_running:
        return f"{speaker.nudges_running} replies in a row held no step{kind}"
    return f"{speaker.faults_running} replies in a row could not be read{kind}"


def solo_speaker(state: State, *, is_mono: bool = False) -> Think | Record:
    """Who speaks next, or that it is over, where one speaks alone. The first line that applies decides.

    Of `mono` only a whole answer counts: words without a step are a round of analysis.
    """
    if state.failure is not None:
        return after_failure(state)
    turn = state.turn
    if turn is None:
        return think(state, SOLO)
    if turn.want == "answer":  # asked for at a limit, the last word; unless the run was resumed with more room
        has_words = turn.outcome in (("answer",) if is_mono else ("answer", "cut", "no_step", "narrated"))
        text = joined(state, turn) if has_words or has_other_shape(turn) else ""
        return last_word(state, text) if reached_limit(state) is not None else think(state, SOLO)
    if (ending := finished(turn)) is not None:
        return Record((RunEnded(ending),))
    if turn.want in WITHOUT_TOOLS and (move := after_branch(state, turn)) is not None:
        return move
    solo = state.speakers[SOLO]
    match turn.outcome:
        case "answer" if turn.want not in WITHOUT_TOOLS:  # what was for thinking is not an answer yet
            return Record((RunEnded(Completed(joined(state, turn))),))
        case "cut" if solo.cuts_running > state.config.continuations:
            return Record((RunEnded(CompletedPartial(joined(state, turn), "truncated")),))
        case "no_step" if not is_mono and solo.nudges_running > state.config.nudges:
            return Record((RunEnded(CompletedPartial(visible_words(turn).strip(), "unlabelled_answer")),))
        case "refused":
            return Record((RunEnded(Stopped("refused")),))
        case _:
            over = misshapen(state, turn) if turn.parsed.error is not None else None
            return over or give_up(state, SOLO) or think(state, SOLO)


def once_speaker(state: State) -> Record:
    """It is over as soon as every call of the reply has its result."""
    if state.turn is None:
        return Record((RunEnded(Failed("no_reply", "the run was to carry out the calls of a reply, and holds none")),))
    return Record((RunEnded(Completed("")),))


def dual_speaker(state: State) -> Think | Record:
    """Who speaks next, or that it is over; a proposal on hand is not lost to a limit."""
    turn = state.turn
    if state.failure is not None:
        move = after_failure(state)
    elif turn is None:
        move = think(state, THINKER)
    elif turn.outcome == "refused":
        move = Record((RunEnded(Stopped("refused")),))
    else:
        move = _after_thinker(state, turn) if turn.role == THINKER else _after_actor(state, turn)
    is_last = state.failure is not None and state.failure.want == "answer"
    match move:
        case Record((RunEnded(Stopped() | Failed() as ending),)) if isinstance(ending, Stopped) or is_last:
            proposal = proposed(state)
            return Record((RunEnded(CompletedPartial(proposal, ending.reason)),)) if proposal else move
        case _:
            return move


def _after_thinker(state: State, turn: Turn) -> Think | Record:
    instruction = turn.parsed.instruction
    if instruction is None:
        if state.speakers[THINKER].nudges_running > state.config.nudges:
            return failed_to_read(state, THINKER)
        return give_up(state, THINKER) or think(state, THINKER)
    if not instruction.done:
        return think(state, ACTOR)
    proposal = "" if instruction.text else proposed(state)  # one who still instructs has not confirmed it
    return Record((RunEnded(Completed(proposal)),)) if proposal else think(state, ACTOR, "answer")


def _after_actor(state: State, turn: Turn) -> Think | Record:
    if turn.want == "answer":
        # The deliverable was asked for: because the Thinker said so, or because a limit is reached.
        is_over = reached_limit(state) is not None
        text = joined(state, turn) if turn.outcome == "answer" or (is_over and has_other_shape(turn)) else ""
        spoken = next((one for one in reversed(state.done) if one.role == THINKER), None)
        if spoken is not None and spoken.parsed.instruction is not None and spoken.parsed.instruction.done:
            if turn.outcome == "answer":
                return Record((RunEnded(Completed(text)),))
            if (end := misshapen(state, turn)) is not None:
                return end
            if turn.outcome == "cut" and state.speakers[ACTOR].cuts_running > state.config.continuations:
                return Record((RunEnded(CompletedPartial(joined(state, turn), "truncated")),))
            if state.speakers[ACTOR].nudges_running > state.config.nudges:
                return failed_to_read(state, ACTOR)
            return last_word(state, text) if is_over else give_up(state, ACTOR) or think(state, ACTOR, "answer")
        return last_word(state, text or proposed(state)) if is_over else think(state, THINKER)
    proposal = proposal_of(turn)
    if proposal and state.config.early_deliverable == "accept":
        return Record((RunEnded(Completed(proposal)),))
    if (end := give_up(state, ACTOR)) is not None:
        return end
    if turn.outcome == "answer" or proposal:
        return think(state, THINKER)
    steps = sum(1 for _ in takewhile(lambda one: one.role == ACTOR, reversed(state.turns)))
    # in schema mode the Thinker names each call, and its result is the report
    most = 1 if state.speakers[ACTOR].mode == "schema" else state.config.actor_steps
    if steps >= most:
        return think(state, THINKER)
    return think(state, ACTOR, "no_calls" if steps + 1 == most else "any")


def proposal_of(turn: Turn) -> str:
    """What the Actor gives for the end product before it was asked for: a deliverable, or by a finish tool."""
    if turn.want == "answer":
        return ""
    if (ending := finished(turn)) is not None:
        return ending.answer
    return (turn.parsed.final or "").strip() if turn.outcome == "answer" else ""


def proposed(state: State) -> str:
    """The deliverable that the Actor gave before the Thinker's word, if its last turn ended with one; else ""."""
    turns = (turn for turn in reversed(state.own_turns) if turn.role == ACTOR)
    newest = next((turn for turn in turns if turn.want != "answer"), None)
    return proposal_of(newest) if newest is not None else ""


SPEAKERS: Mapping[str, Callable[[State], Think | Record]] = {
    "react": solo_speaker,
    "mono": partial(solo_speaker, is_mono=True),
    "dual": dual_speaker,
    "once": once_speaker,
}
"""By the name of the reasoner. Asked only while nothing is open."""
