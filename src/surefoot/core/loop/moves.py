"""What to do now: the table of moves; and how far a planned run is by it, in one word.

Each row is one sentence about the state, and the first that applies decides; the order is meaning. A new behaviour is a
row here, an event, or a policy — never a branch in `runtime/drive.py`. Nothing here knows about crashes, pauses or a
second engine: an interrupted call is simply a call that was started, has not ended, and that nobody is running.

    ended                         → nothing more
    to be started, not as it was  → refuse it: another profile counts since it was allowed, or its arguments changed
    interrupted, may be repeated  → run it again, up to three times in all; of an agent, its run goes on
    interrupted, has a probe      → ask the probe
    interrupted otherwise         → stand still: in doubt, a person decides
    enough questions open         → wait: no call is judged, and none begins, until a person has answered one
    a call not judged yet         → answer it from the journal if its result is known, else judge it; ask a model first,
                                    where one has a say
    calls allowed, time spent     → refuse the next of them
    calls allowed                 → run them, side by side if all of the reply are reads
    a question open, or something under way → wait
    something hidden in a result  → put on record that it is not shown
    words or results not read yet → a model reads them for the guard, where that is wanted
    references to be fetched      → find them; once their calls have ended, lay out what came of them
    a directory not known yet     → read its conventions
    handed off, and answered      → end with that answer
    a limit of progress reached   → put it on record; then end, or wait for a person, if that is the action
    a plan that repairs itself    → what it asks for next (`core/plan/next.py`)
    a plan was given              → its next step, or what the running one asks for (`core/loop/steps.py`)
    otherwise                     → the reasoner says who speaks next, or that it is over
    it ends with an answer that is not what was asked for → it has failed
    a step with tools is next     → where that is speculated about, first what `core/guard/branches.py` asks for
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, assert_never

from surefoot.core.gate.record import GateRecord
from surefoot.core.guard import judge
from surefoot.core.guard.branches import before_thinking
from surefoot.core.guard.ledger import unread
from surefoot.core.loop.speakers import SPEAKERS, end_or_reply, in_shape, proposed
from surefoot.core.loop.steps import step_move
from surefoot.core.plan.child import in_step, with_whole
from surefoot.core.plan.next import Rows, held_up, plan_moves
from surefoot.core.state.plans import Phase
from surefoot.core.state.repeats import RULE, answered_by, config_of, is_unsure, reached
from surefoot.core.state.roles import PREFETCH, unread_directory
from surefoot.core.state.state import Call, Planning, State
from surefoot.core.view.step import choosing_now, tools_now
from surefoot.types import moves
from surefoot.types.events import CallJudged, CallReused, CallStarted, Event, RunEnded
from surefoot.types.guard import NO_GROUNDS, Grounds
from surefoot.types.guard_events import PerceptionSanitised
from surefoot.types.outcomes import ALLOWED, Allow, Ask, Completed, CompletedPartial, Decision, Deny, Stopped
from surefoot.types.plan import ANSWER, StepStatus
from surefoot.types.ports import Durability
from surefoot.types.prehydration import NEEDS_APPROVAL
from surefoot.types.progress import LimitAction

NONE_UNDER_WAY: frozenset[moves.Move] = frozenset()
_OF_CALLS = (moves.Act, moves.Probe)


def next_moves(state: State, under_way: frozenset[moves.Move] = NONE_UNDER_WAY) -> tuple[moves.Move, ...]:
    """What to start now, besides what is under way. The first row that applies decides.

    Several moves come back only if they may be made side by side. None, and nothing under way, means that the run
    stands still: it has ended, or a person must decide first (`standing`).
    """
    if state.ending is not None or state.task is None:
        return ()
    if still_open := state.open_calls:
        return _call_moves(state, still_open, under_way)
    if state.planning is not None and state.planning.has_begun:
        if state.gate is not None and state.planning.noted and not under_way and _is_unread(state.gate):
            return (moves.Ask("anchor"),)  # the note on a plan is the user's word, too
        if state.gate is not None and judge.has_asked_enough(state):
            return ()
        return _planned(state, state.planning, under_way)
    if under_way:
        return ()
    if state.gate is not None and (staged := _staged(state, state.gate)):
        return staged
    if (
        state.hydrated is None
        and (state.found or state.config.pre_hydration)
        and not (len(state.done) > state.begun or (state.turn is not None and state.turn.role != PREFETCH))
    ):
        return (moves.Find(),) if state.found is None else (moves.Hydrate(),)
    if state.config.conventions is not None and (directory := unread_directory(state)) is not None:
        return (moves.ReadConventions(directory),)
    if (answered := _handed_off(state)) is not None:
        return (answered if state.config.output_schema is None else in_shape(state, answered),)
    if state.limit_due:
        return (moves.Record((reached(state.limit_due[0], config_of(state).on_limit_reached),)),)
    if state.asked:
        return ()
    if state.stuck:
        return (_when_stuck(state),)
    if state.planning is not None:
        return _planned(state, state.planning, under_way)
    move = end_or_reply(state, SPEAKERS[state.reasoner](state)) if state.plan is None else step_move(state, state.plan)
    if state.config.output_schema is not None:
        move = in_shape(state, move)
    return (move if state.gate is None else before_thinking(state, move),)


def _planned(state: State, planning: Planning, under_way: frozenset[moves.Move]) -> tuple[moves.Move, ...]:
    made = plan_moves(state, planning, under_way, _ROWS)
    return made if state.config.output_schema is None else tuple(in_shape(state, one) for one in made)


def _call_moves(state: State, still_open: list[Call], under_way: frozenset[moves.Move]) -> tuple[moves.Move, ...]:
    """What to start now while calls are open: the rows from the second to that of questions."""
    waiting: list[Call] = []
    interrupted: list[Call] = []  # started, and nobody runs them: the process died in between
    ours = {move.call_id for move in under_way if isinstance(move, _OF_CALLS)} if under_way else ()
    for call in still_open:
        if not call.attempts or call.doubt == "not_done":
            waiting.append(call)
        elif call.id not in ours:
            interrupted.append(call)
    if not waiting and not interrupted:
        return ()  # all of them run
    again = [c for c in interrupted if c.may_run_again] if interrupted else []
    offered = tools_now(state)
    for call in again + [c for c in waiting if c.decision is not None]:
        if state.gate is None and offered.get(call.name) is not None:
            continue  # no gate asks for more
        for check in (judge.profile, judge.digest_mismatch, judge.refused_since):
            if (refusal := check(state, call)) is not ALLOWED:
                return (_judged(state, call.id, refusal, check.__name__),)
    if again:
        return tuple(moves.Act(c.id) for c in again)
    if interrupted:
        return tuple(moves.Probe(c.id) for c in interrupted if c.spec and c.spec.has_probe and not c.doubt)
    for call in still_open:  # one by one: each sees the verdicts before it
        if call.decision is None:
            if call is not still_open[0] and is_unsure(state, still_open, call):
                break
            move = _verdict(state, call)
            if state.gate is None or not judge.has_to_wait(state, call, move):
                return () if under_way and move in under_way else (move,)  # a verdict is long to hash
    if state.gate is not None and judge.has_asked_enough(state):
        return ()
    begins = [c for c in waiting if isinstance(c.decision, Allow)]  # a question is not lost to the time
    if begins and (late := judge.no_call_after_the_time(state, begins[0])) is not ALLOWED:
        return (_judged(state, begins[0].id, late, judge.no_call_after_the_time.__name__),)
    if not waiting or (state.gate is not None and judge.is_paused(state)):
        return ()
    running = len(still_open) - len(waiting)
    if len(still_open) > 1 and not any(c.spec is None or c.has_effect for c in state.calls if c.fault is None):
        most, fetching = state.config.max_concurrent_tools, state.config.pre_hydration
        if fetching is not None and state.turn is not None and state.turn.role == PREFETCH:
            most = fetching.max_concurrency
        return tuple([moves.Act(c.id) for c in begins[: max(0, most - running)]])
    if running or not isinstance(waiting[0].decision, Allow):  # as soon as one has an effect, all go one after another
        return ()
    return (moves.Act(waiting[0].id),)


def _when_stuck(state: State) -> moves.Move:
    """The end of a stuck run, with what there is of an answer; it may be asked for first. Never `completed`."""
    if config_of(state).on_limit_reached != LimitAction.AnswerNow:
        return moves.Record((RunEnded(Stopped(state.stuck, proposed(state))),))
    match SPEAKERS[state.reasoner](state):
        case moves.Record((RunEnded(Completed(answer) | CompletedPartial(answer) | Stopped(_, answer)),)):
            return moves.Record((RunEnded(Stopped(state.stuck, answer)),))
        case move:
            return move


def _handed_off(state: State) -> moves.Record | None:
    """The end of a run that has handed its task off to another agent, which has answered. No step of a plan does."""
    turn = state.turn
    if turn is None or state.plan is not None or state.planning is not None:
        return None
    for call in turn.calls:
        if call.spec is not None and call.spec.delegates == "hand_off" and call.result and not call.result.is_error:
            answer, why = call.result.content, call.result.error
            return moves.Record((RunEnded(CompletedPartial(answer, why) if why else Completed(answer)),))
    return None


def _staged(state: State, gate: GateRecord) -> tuple[moves.Move, ...]:
    """What a stage of the guard has to see before anybody goes on: the user's words first, then each new result.

    What is not shown of a result is told once nothing is under way, since what ends at once is put on record at once.
    """
    if gate.hidden:
        return (moves.Record((PerceptionSanitised(*gate.hidden[0]),)),)
    if _is_unread(gate) and state.steps == state.begun and state.found is None:
        return (moves.Ask("anchor"),)
    return tuple(moves.Ask("sanitise", call_id) for call_id in unread(state))


def _is_unread(gate: GateRecord) -> bool:
    """Whether a model is still to be asked about the user's words."""
    return gate.known.config.anchor == "model" and not gate.is_read


def standing(state: State) -> Literal["approval", "in_doubt", ""]:
    """Why a run with nothing under way stands still although it has not ended: what a person has to say."""
    if state.ending is not None:
        return ""
    if state.planning is not None and (why := held_up(state, state.planning, standing)):
        return why
    asking = (*state.calls, *(inner for call in state.calls for inner in call.asks))
    if any(c.is_in_doubt for c in asking):
        return "in_doubt"
    if state.asked or any(isinstance(c.decision, Ask) and c.is_open for c in asking):
        return "approval"
    return ""


def _verdict(state: State, call: Call) -> moves.Record | moves.Ask:
    """A call whose result is known gets it (`core/state/repeats.py`), unless it is refused anyway."""
    decision, rule, grounds = judge.judge(state, call)
    if state.turn is not None and state.turn.role == PREFETCH:  # nobody is asked before a run has begun
        return _judged(state, call.id, Deny(NEEDS_APPROVAL) if isinstance(decision, Ask) else decision, rule, grounds)
    if rule == judge.REASONING_STEP:
        return _judged(state, call.id, decision, rule, grounds)
    if (sign := judge.stuck(state, call)) is not ALLOWED:
        is_refused = isinstance(decision, Deny)
        return _judged(state, call.id, decision, rule, grounds) if is_refused else _judged(state, call.id, sign, RULE)
    known = answered_by(state, call)
    if known and judge.failed_before(state, call) is ALLOWED and tools_now(state).get(call.name) is not None:
        return moves.Record((CallReused(call.id, known),))
    if state.gate is not None and judge.is_unheard(state, call):
        return moves.Ask("judge", call.id)
    return _judged(state, call.id, decision, rule, grounds)


def announce(move: moves.Move, state: State) -> tuple[Event, ...]:
    """What has to be on record before a move is made; of `Record` that is all there is to it."""
    match move:
        case moves.Act(call_id):
            call = state.call(call_id)
            return (CallStarted(call_id, attempt=(call.attempts if call else 0) + 1),)
        case moves.Record(events):
            return events
        case moves.Think() | moves.Probe() | moves.Find() | moves.Hydrate() | moves.ReadConventions() | moves.Ask():
            return ()
        case moves.Within(step_id, _, inner):
            child = state.planning.children.get(step_id) if state.planning is not None else None
            return () if child is None else tuple(in_step(child, event) for event in announce(inner, child))
        case moves.Shortlist() | moves.Wait() | moves.Evaluate():
            return ()
        case _:
            assert_never(move)


def _judged(state: State, call_id: str, decision: Decision, rule: str, grounds: Grounds = NO_GROUNDS) -> moves.Record:
    """A verdict, with who has asked for the calls of the newest turn."""
    step, turn = state.running_step, state.turn
    origin: Literal["model", "prefetch", "plan", "branch"] = "model"
    if turn is not None and turn.role == PREFETCH:
        origin = "prefetch"
    elif turn is not None and state.gate is not None and choosing_now(state).made == turn.step:
        origin = "branch"
    elif step is not None and step.kind == "tool":
        origin = "plan"
    return moves.Record((CallJudged(call_id, decision, rule, origin=origin, grounds=grounds),))


def durability(move: moves.Move, state: State) -> Durability:
    """How safe the announcement must be before the move is made (DESIGN, "Rules that the journal keeps")."""
    match move:
        case moves.Act(call_id):
            call = state.call(call_id)
            return "written" if call and call.spec and call.spec.may_repeat else "synced"
        case moves.Within(step_id, _, inner) if state.planning is not None and step_id in state.planning.children:
            return durability(inner, state.planning.children[step_id])
        case moves.Record((RunEnded(),)):
            return "written"
        case _:
            return "soon"


_ROWS = Rows(next_moves, standing)


RunPhase = Literal[
    "",
    "selecting",
    "decomposing",
    "signing",
    "running",
    "step reflecting",
    "draining",
    "overall reflecting",
    "selecting (corrective)",
    "redecomposing",
    "evaluating",
    "answering",
    "ended",
]
"""The phases of section 3; "" for a run without a plan that repairs itself."""

_ASKED_FOR: Mapping[Phase, RunPhase] = {
    "selecting": "selecting",
    "decomposing": "decomposing",
    "reselecting": "selecting (corrective)",
    "redecomposing": "redecomposing",
}
_ENDS_FIRST: frozenset[StepStatus] = frozenset({"running", "in_doubt"})


def phase_of(state: State) -> RunPhase:
    """What a planned run is about."""
    planning = state.planning
    if planning is None:
        return ""
    if state.ending is not None:
        return "ended"
    if planning.phase != "running":
        return _ASKED_FOR[planning.phase]
    if planning.is_unsigned:
        return "signing"
    in_flight = {status_of(state, name, is_driven=True) for name in planning.children if name != ANSWER}
    if planning.stop is not None or planning.rejected_by:
        return "draining" if "running" in in_flight else "answering"
    if planning.escalation is not None:  # R7: what runs ends, and a doubt is settled, before the run is thought about
        return "draining" if in_flight & _ENDS_FIRST else "overall reflecting"
    if planning.queue:
        return "step reflecting"
    if ANSWER in planning.children or planning.answer is not None:
        return "answering"
    if planning.children or planning.open_steps or any(one.status == "in_doubt" for one in planning.steps.values()):
        return "running"
    is_evaluated = {one.name for one in planning.evaluations}.issuperset(planning.config.evaluators)
    return "answering" if is_evaluated else "evaluating"


def status_of(state: State, step_id: str, *, is_driven: bool = False) -> StepStatus:
    """How far a step is, also where its own state stands and waits for a person.

    With `is_driven` somebody drives the run just now, so that a call which was started is being made; from a journal
    alone nobody can tell that from one that was interrupted. Raises `KeyError` for a step that the run does not have.
    """
    assert state.planning is not None  # noqa: S101  # only such a run has steps to ask about
    record, child = state.planning.steps[step_id], state.planning.children.get(step_id)
    if record.status != "running" or child is None:
        return record.status
    own = with_whole(child, state)
    acting: frozenset[moves.Move] = frozenset()
    if is_driven:
        started = (one for one in own.calls if one.is_open and not one.is_waiting and one.doubt != "unknown")
        acting = frozenset(moves.Act(one.id) for one in started)
    if acting or next_moves(own, acting):
        return "running"
    match standing(own):
        case "approval":
            return "waiting"
        case "in_doubt":
            return "in_doubt"
        case "":
            return "running"
