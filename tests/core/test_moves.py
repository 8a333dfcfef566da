"""The table of moves, row by row: events in, moves out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar, cast

import pytest

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import announce, durability, next_moves, standing
from surefoot.core.state.state import EMPTY, State
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.events import (
    CallEnded,
    CallJudged,
    CallReused,
    CallStarted,
    DoubtSettled,
    Event,
    ModelFailed,
    ModelReplied,
    ModelTraitLearnt,
    RunEnded,
    RunResumed,
    RunStarted,
    Speaker,
)
from surefoot.types.messages import FinishReason, ModelMessage, NativeCall, Usage
from surefoot.types.moves import Act, Move, Probe, Record, Think
from surefoot.types.outcomes import Allow, Ask, Cancelled, Completed, CompletedPartial, Deny, Failed, Stopped
from surefoot.types.reply import Fault, FaultyCall, Parsed, ParsedCall
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue, ResultKind, ToolResult, ToolSpec

T = TypeVar("T")
ANY = {"type": "object"}
READ = ToolSpec("look", "Look something up.", ANY, effect="read")
OTHER_READ = ToolSpec("search", "Search.", ANY, effect="read")
WRITE = ToolSpec("send", "Send a letter.", ANY)
SAFE_WRITE = ToolSpec("save", "Save a file.", ANY, idempotent=True)
PROBED = ToolSpec("pay", "Pay.", ANY, has_probe=True)
POLL = ToolSpec("status", "Status of a job.", ANY, effect="read", polling=True)
FINISH = ToolSpec("finish", "Give the answer.", ANY, effect="read", finish=True)
TOOLS = Catalogue((READ, OTHER_READ, WRITE, SAFE_WRITE, PROBED, POLL, FINISH))
PROMPTS: dict[str, str] = dict.fromkeys(("native", "schema", "text"), "{tools}\n{input}")


def started(config: LoopConfig | None = None, traits: Mapping[str, str] | None = None) -> RunStarted:
    speakers = {"solo": Speaker("test:m", traits=traits or {})}
    return RunStarted("run", Task("do it"), speakers, TOOLS, PROMPTS, config=config or LoopConfig())


def replied(
    *calls: tuple[str, Mapping[str, object]], step: int = 1, faulty: tuple[int, ...] = (), tokens: int = 10
) -> ModelReplied:
    message = ModelMessage(
        "assistant",
        calls=tuple(NativeCall(f"id{step}_{at}", name, arguments) for at, (name, arguments) in enumerate(calls)),
        usage=Usage(tokens, 0),
    )
    good = tuple(ParsedCall(at, name, args) for at, (name, args) in enumerate(calls) if at not in faulty)
    errors = tuple(FaultyCall(at, Fault("invalid_arguments", "bad"), calls[at][0]) for at in faulty)
    return ModelReplied(step, message, Parsed(good, error=errors[0].error if errors else None, errors=errors))


def said(text: str, *, step: int = 1, finish: FinishReason = "stop", tokens: int = 10) -> ModelReplied:
    message = ModelMessage("assistant", text, finish_reason=finish, usage=Usage(tokens, 0))
    return ModelReplied(step, message, Parsed(content=text or None))


def ran(call_id: str, text: str = "42") -> tuple[Event, ...]:
    return CallJudged(call_id, Allow()), CallStarted(call_id), CallEnded(call_id, ToolResult(text))


def after(*events: Event, config: LoopConfig | None = None, traits: Mapping[str, str] | None = None) -> State:
    return fold((started(config, traits), *events))


def allow(call_id: str) -> Record:
    return Record((CallJudged(call_id, Allow(), ""),))


def recorded(move: Move, kind: type[T]) -> T:
    assert isinstance(move, Record)
    (event,) = move.events
    assert isinstance(event, kind)
    return event


def test_an_empty_journal_has_no_moves() -> None:
    assert next_moves(EMPTY) == ()


def test_a_run_begins_with_a_thought() -> None:
    assert next_moves(after()) == (Think(1),)
    assert next_moves(after(), frozenset({Think(1)})) == ()


def test_calls_are_judged_one_by_one_in_the_order_of_the_reply() -> None:
    reply = replied(("look", {"q": 1}), ("search", {"q": 2}))
    assert next_moves(after(reply)) == (allow("1.0"),)
    assert next_moves(after(reply, CallJudged("1.0", Allow()))) == (allow("1.1"),)


def test_reads_run_side_by_side_up_to_the_limit() -> None:
    reply = replied(*(("look", {"q": at}) for at in range(3)))
    judged = [CallJudged(f"1.{at}", Allow()) for at in range(3)]
    assert next_moves(after(reply, *judged)) == (Act("1.0"), Act("1.1"), Act("1.2"))
    two = LoopConfig(max_concurrent_tools=2)
    assert next_moves(after(reply, *judged, config=two)) == (Act("1.0"), Act("1.1"))
    started_two = (*judged, CallStarted("1.0"), CallStarted("1.1"))
    under_way = frozenset({Act("1.0"), Act("1.1")})
    assert next_moves(after(reply, *started_two, config=two), under_way) == ()
    one_ended = (*started_two, CallEnded("1.1", ToolResult("x")))
    assert next_moves(after(reply, *one_ended, config=two), frozenset({Act("1.0")})) == (Act("1.2"),)


def test_as_soon_as_one_call_has_an_effect_all_go_one_after_another() -> None:
    reply = replied(("look", {}), ("send", {"to": "a"}), ("search", {}))
    judged = [CallJudged(f"1.{at}", Allow()) for at in range(3)]
    assert next_moves(after(reply, *judged)) == (Act("1.0"),)
    running = after(reply, *judged, CallStarted("1.0"))
    assert next_moves(running, frozenset({Act("1.0")})) == ()
    first_done = after(reply, *judged, CallStarted("1.0"), CallEnded("1.0", ToolResult("x")))
    assert next_moves(first_done) == (Act("1.1"),)


def test_an_interrupted_read_or_idempotent_call_is_run_again() -> None:
    for name in ("look", "save"):
        state = after(replied((name, {})), CallJudged("1.0", Allow()), CallStarted("1.0"))
        assert next_moves(state, frozenset({Act("1.0")})) == ()  # it is ours
        assert next_moves(state) == (Act("1.0"),)  # the process died in between
        assert announce(Act("1.0"), state) == (CallStarted("1.0", attempt=2),)


def test_an_interrupted_call_that_cannot_be_undone_is_in_doubt() -> None:
    state = after(replied(("send", {})), CallJudged("1.0", Allow()), CallStarted("1.0"))
    assert next_moves(state) == ()
    assert standing(state) == "in_doubt"
    done = fold((DoubtSettled("1.0", "done", "Ada"),), state)
    assert next_moves(done) == (Think(2),)
    assert standing(done) == ""
    assert next_moves(fold((DoubtSettled("1.0", "not_done", "Ada"),), state)) == (Act("1.0"),)


def test_what_may_be_repeated_is_in_doubt_once_it_was_broken_off_three_times() -> None:
    state = after(replied(("look", {})), CallJudged("1.0", Allow()))
    for attempt in (1, 2):
        state = fold((CallStarted("1.0", attempt), RunResumed("Ada")), state)
        assert next_moves(state) == (Act("1.0"),)
        assert standing(state) == ""
    third = fold((CallStarted("1.0", 3),), state)
    assert next_moves(third, frozenset({Act("1.0")})) == ()  # it runs
    assert next_moves(fold((CallEnded("1.0", ToolResult("42")),), third)) == (Think(2),)
    dead = fold((RunResumed("Ada"),), third)
    assert next_moves(dead) == ()
    assert standing(dead) == "in_doubt"
    assert next_moves(fold((DoubtSettled("1.0", "abandoned", "Ada"),), dead)) == (Think(2),)
    again = fold((DoubtSettled("1.0", "not_done", "Ada"),), dead)
    assert next_moves(again) == (Act("1.0"),)
    assert standing(fold((CallStarted("1.0", 4), RunResumed("Ada")), again)) == "in_doubt"


def test_a_probe_is_asked_before_a_person() -> None:
    state = after(replied(("pay", {})), CallJudged("1.0", Allow()), CallStarted("1.0"))
    assert next_moves(state) == (Probe("1.0"),)
    assert next_moves(fold((DoubtSettled("1.0", "unknown", "probe"),), state)) == ()
    assert next_moves(fold((DoubtSettled("1.0", "not_done", "probe"),), state)) == (Act("1.0"),)


def test_a_question_stands_still_until_a_person_answers() -> None:
    state = after(replied(("send", {})), CallJudged("1.0", Ask("really?"), "policy"))
    assert next_moves(state) == ()
    assert standing(state) == "approval"
    assert next_moves(fold((RunResumed("cron"),), state)) == ()  # going on approves nothing
    assert next_moves(fold((CallJudged("1.0", Allow(), "person", "Ada"),), state)) == (Act("1.0"),)
    refused = fold((CallJudged("1.0", Deny("no"), "person", "Ada"),), state)
    assert next_moves(refused) == (Think(2),)
    assert refused.calls[0].result == ToolResult("no", "denied", source="gate", trust="trusted")


def test_an_identical_call_is_answered_from_the_journal() -> None:
    state = after(replied(("look", {"a": 1, "b": 2})), *ran("1.0"), replied(("look", {"b": 2, "a": 1}), step=2))
    assert next_moves(state) == (Record((CallReused("2.0", "1.0"),)),)
    reused = fold((CallReused("2.0", "1.0"),), state)
    assert reused.calls[0].result == ToolResult("42")
    assert next_moves(reused) == (Think(3),)


def test_a_read_is_run_again_once_something_may_have_changed() -> None:
    state = after(
        replied(("look", {"a": 1})),
        *ran("1.0"),
        replied(("save", {}), step=2),
        *ran("2.0"),
        replied(("look", {"a": 1}), step=3),
    )
    assert next_moves(state) == (allow("3.0"),)


@pytest.mark.parametrize("name", ["send", "save"])
def test_a_write_is_answered_once_with_what_it_did_and_then_runs_again(name: str) -> None:
    again = after(replied((name, {"to": "a"})), *ran("1.0"), replied((name, {"to": "a"}), step=2))
    assert next_moves(again) == (Record((CallReused("2.0", "1.0"),)),)
    asked_anew = fold((CallReused("2.0", "1.0"), replied((name, {"to": "a"}), step=3)), again)
    assert next_moves(asked_anew) == (allow("3.0"),)
    once_more = fold((*ran("3.0", "43"), replied((name, {"to": "a"}), step=4)), asked_anew)
    assert next_moves(once_more) == (Record((CallReused("4.0", "3.0"),)),)


@pytest.mark.parametrize("outcome", ["ok", "error", "timeout", "in_doubt", "settled"])
def test_a_write_runs_again_once_another_call_with_an_effect_has_ended(outcome: ResultKind | str) -> None:
    ended: Event = CallEnded("2.0", ToolResult("x", cast("ResultKind", outcome)))
    if outcome == "settled":
        ended = DoubtSettled("2.0", "abandoned", "Ada")
    state = after(
        replied(("send", {"to": "a"})), *ran("1.0"), replied(("save", {}), step=2),
        CallJudged("2.0", Allow()), CallStarted("2.0"), ended, replied(("send", {"to": "a"}), step=3),
    )  # fmt: skip
    assert next_moves(state) == (allow("3.0"),)


def test_what_was_refused_or_only_read_in_between_changes_nothing() -> None:
    state = after(
        replied(("send", {"to": "a"})), *ran("1.0"), replied(("save", {}), ("look", {}), step=2),
        CallJudged("2.0", Deny("no")), *ran("2.1"), replied(("send", {"to": "a"}), step=3),
    )  # fmt: skip
    assert next_moves(state) == (Record((CallReused("3.0", "1.0"),)),)


def test_what_nobody_knows_to_have_happened_is_told_once_too() -> None:
    doubt = CallEnded("1.0", ToolResult("nobody knows", "in_doubt"))
    started_once = (CallJudged("1.0", Allow()), CallStarted("1.0"), doubt)
    state = after(replied(("send", {"to": "a"})), *started_once, replied(("send", {"to": "a"}), step=2))
    assert next_moves(state) == (Record((CallReused("2.0", "1.0"),)),)
    asked_anew = fold((CallReused("2.0", "1.0"), replied(("send", {"to": "a"}), step=3)), state)
    assert next_moves(asked_anew) == (allow("3.0"),)


def test_a_call_in_a_reply_waits_for_the_effects_before_it() -> None:
    reply = replied(("send", {"to": "a"}), ("save", {}), ("send", {"to": "a"}), ("send", {"to": "a"}))
    first = after(reply, CallJudged("1.0", Allow()), CallJudged("1.1", Allow()))
    assert next_moves(first) == (Act("1.0"),)
    second = fold((CallStarted("1.0"), CallEnded("1.0", ToolResult("x"))), first)
    assert next_moves(second) == (Act("1.1"),)  # what it does decides on the third
    third = fold((CallStarted("1.1"), CallEnded("1.1", ToolResult("y"))), second)
    assert next_moves(third) == (allow("1.2"),)
    last = fold(ran("1.2"), third)
    assert next_moves(last) == (Record((CallReused("1.3", "1.2"),)),)
    read = after(replied(("look", {})), *ran("1.0"), replied(("save", {}), ("look", {}), step=2))
    assert next_moves(fold((CallJudged("2.0", Allow()),), read)) == (Act("2.0"),)
    assert next_moves(fold(ran("2.0"), read)) == (allow("2.1"),)


def test_a_twin_in_the_reply_that_was_told_is_told_as_well() -> None:
    twins = replied(("send", {"to": "a"}), ("send", {"to": "a"}), step=2)
    state = after(replied(("send", {"to": "a"})), *ran("1.0"), twins, CallReused("2.0", "1.0"))
    assert next_moves(state) == (Record((CallReused("2.1", "1.0"),)),)


def test_a_failed_call_and_a_polling_tool_may_be_asked_again() -> None:
    failed = (CallJudged("1.0", Allow()), CallStarted("1.0"), CallEnded("1.0", ToolResult("boom", "error")))
    assert next_moves(after(replied(("look", {})), *failed, replied(("look", {}), step=2))) == (allow("2.0"),)
    assert next_moves(after(replied(("status", {})), *ran("1.0"), replied(("status", {}), step=2))) == (allow("2.0"),)


def test_twins_in_one_reply_run_once() -> None:
    reply = replied(("look", {"a": 1}), ("look", {"a": 1}))
    judged = after(reply, CallJudged("1.0", Allow()))
    assert next_moves(judged) == (Act("1.0"),)
    ended = fold((CallStarted("1.0"), CallEnded("1.0", ToolResult("x"))), judged)
    assert next_moves(ended) == (Record((CallReused("1.1", "1.0"),)),)


def test_a_faulty_call_is_no_call_and_its_siblings_run() -> None:
    state = after(replied(("look", {}), ("search", {}), faulty=(0,)))
    assert next_moves(state) == (allow("1.1"),)


def test_a_finish_tool_ends_the_run_but_not_beside_other_calls() -> None:
    alone = after(replied(("finish", {"answer": "171"})), CallJudged("1.0", Allow()))
    assert next_moves(alone) == (Record((RunEnded(Completed("171")),)),)
    beside = after(replied(("look", {}), ("finish", {"answer": "171"})), CallJudged("1.0", Allow()))
    assert next_moves(beside) == (
        Record((CallJudged("1.1", Deny("not accepted: results first"), "no_finish_before_results"),)),
    )


def test_an_answer_ends_the_run() -> None:
    assert next_moves(after(said("42"))) == (Record((RunEnded(Completed("42")),)),)
    assert next_moves(after(said("42"), RunEnded(Completed("42")))) == ()


def test_an_answer_cut_by_length_goes_on_once_and_is_joined() -> None:
    assert next_moves(after(said("one ", finish="length"))) == (Think(2),)
    assert next_moves(after(said("one ", finish="length"), said("two", step=2))) == (
        Record((RunEnded(Completed("one two")),)),
    )
    twice = after(said("one ", finish="length"), said("two", step=2, finish="length"))
    assert next_moves(twice) == (Record((RunEnded(CompletedPartial("one two", "truncated")),)),)


def test_an_announced_call_is_asked_about_once_and_prose_teaches_nothing() -> None:
    once = after(said("I will use look now."))
    assert next_moves(once) == (Think(2),)
    twice = after(said("I will use look now."), said("Using look.", step=2))
    assert next_moves(twice) == (Record((RunEnded(Completed("Using look.")),)),)
    assert twice.speakers["solo"].traits == {}


def test_only_calls_that_cannot_be_read_show_that_a_model_calls_badly() -> None:
    broken = [replied(("look", {}), step=step, faulty=(0,)) for step in (1, 2, 3)]
    for replies, value in ((broken, "weak"), ([said(""), said("", step=2)], "mute")):
        state = after(*replies, traits={"json_schema": "yes"})
        (move,) = next_moves(state)
        learnt = recorded(move, ModelTraitLearnt)
        assert (learnt.trait, learnt.value) == ("native_tools", value)
        assert fold(announce(move, state), state).speakers["solo"].mode == "schema"


def test_calls_that_leak_as_text_twice_are_learnt() -> None:
    def leaked(step: int) -> ModelReplied:
        return ModelReplied(step, ModelMessage("assistant", "…"), Parsed((ParsedCall(0, "look", {"s": step}),)))

    state = after(leaked(1), *ran("1.0"), leaked(2), *ran("2.0"))
    (move,) = next_moves(state)
    learnt = recorded(move, ModelTraitLearnt)
    assert (learnt.trait, learnt.value) == ("native_tools", "leaks")
    assert fold(announce(move, state), state).speakers["solo"].mode == "native"


def test_faults_in_a_row_fail_the_run_unless_the_wire_can_hold_the_form() -> None:
    bad = [replied(("look", {}), step=step, faulty=(0,)) for step in (1, 2, 3)]
    (move,) = next_moves(after(*bad))
    ending = recorded(move, RunEnded).ending
    assert isinstance(ending, Failed)
    assert ending.reason == "parse_failure"
    state = after(*bad, traits={"json_schema": "yes"})
    (move,) = next_moves(state)
    recorded(move, ModelTraitLearnt)
    learnt = fold(announce(move, state), state)
    assert (learnt.speakers["solo"].mode, learnt.speakers["solo"].faults_running) == ("schema", 0)
    assert next_moves(learnt) == (Think(4),)


def test_empty_replies_fail_the_run() -> None:
    assert next_moves(after(said(""))) == (Think(2),)
    (move,) = next_moves(after(said(""), said("", step=2)))
    assert isinstance(recorded(move, RunEnded).ending, Failed)


@pytest.mark.parametrize(
    ("budget", "limit"),
    [(Budget(max_steps=2), "steps"), (Budget(max_tokens=100), "tokens"), (Budget(max_seconds=10), "time")],
)
def test_a_limit_asks_for_a_last_word_without_tools(budget: Budget, limit: str) -> None:
    config = LoopConfig(budget=budget)
    spent = ModelReplied(
        1, ModelMessage("assistant", usage=Usage(95, 0)), Parsed((ParsedCall(0, "look", {}),)), elapsed_s=9.5
    )
    state = after(spent, *ran("1.0"), config=config)
    assert next_moves(state) == (Think(2, want="answer"),)
    word = ModelReplied(2, ModelMessage("assistant", "so far 42"), Parsed(content="so far 42"), want="answer")
    assert next_moves(fold((word,), state)) == (Record((RunEnded(CompletedPartial("so far 42", limit)),)),)
    silent = ModelReplied(2, ModelMessage("assistant"), Parsed(), want="answer")
    assert next_moves(fold((silent,), state)) == (Record((RunEnded(Stopped(limit)),)),)
    called = ModelReplied(2, ModelMessage("assistant", "x"), Parsed((ParsedCall(0, "look", {}),)), want="answer")
    assert next_moves(fold((called,), state)) == (Record((RunEnded(Stopped(limit)),)),)


def test_a_run_over_its_whole_budget_makes_no_request_more() -> None:
    state = after(replied(("look", {}), tokens=500), *ran("1.0"), config=LoopConfig(budget=Budget(max_tokens=100)))
    assert next_moves(state) == (Record((RunEnded(Stopped("tokens")),)),)


def test_a_resumed_run_with_more_room_goes_on() -> None:
    config = LoopConfig(budget=Budget(max_steps=2))
    word = ModelReplied(2, ModelMessage("assistant", "so far"), Parsed(content="so far"), want="answer")
    ended = after(
        replied(("look", {})), *ran("1.0"), word, RunEnded(CompletedPartial("so far", "steps")), config=config
    )
    assert next_moves(ended) == ()
    again = fold((RunResumed("Ada"),), ended)
    assert next_moves(again) == (Record((RunEnded(CompletedPartial("so far", "steps")),)),)
    more = fold((RunResumed("Ada", config=LoopConfig(budget=Budget(max_steps=9))),), ended)
    assert next_moves(more) == (Think(3),)


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("auth", Failed("auth", "m")),
        ("unavailable", Failed("model_unavailable", "m")),
        ("timeout", Failed("model_unavailable", "m")),
        ("bad_request", Failed("bad_request", "m")),
        ("refused", Stopped("refused")),
    ],
)
def test_a_model_that_fails_for_good_ends_the_run(kind: str, ending: Failed | Stopped) -> None:
    assert next_moves(after(ModelFailed(kind, "m"))) == (Record((RunEnded(ending),)),)  # type: ignore[arg-type]  # parametrised


def test_a_context_overflow_drops_old_steps_and_tries_again_twice() -> None:
    turns = [e for step in range(1, 9) for e in (replied(("look", {"s": step}), step=step), *ran(f"{step}.0"))]
    overflow = ModelFailed("context_overflow", "too long")
    state = after(*turns, overflow)
    assert (state.speakers["solo"].fit.dropped, next_moves(state)) == (2, (Think(9),))
    state = fold((overflow,), state)
    assert next_moves(state) == (Think(9),)
    assert next_moves(fold((overflow,), state)) == (Record((RunEnded(Failed("context_overflow", "too long")),)),)


def test_nothing_follows_a_cancelled_run_until_it_is_taken_up_again() -> None:
    state = after(replied(("look", {})), RunEnded(Cancelled("Ada")))
    assert next_moves(state) == ()
    assert next_moves(fold((RunResumed("Ada"),), state)) == (allow("1.0"),)


def test_only_calls_wait_for_the_disk_and_only_dangerous_ones_for_the_platter() -> None:
    state = after(replied(("look", {}), ("send", {}), ("save", {})))
    moves = (Think(1), Act("1.0"), Act("1.1"), Act("1.2"), Record((RunEnded(Completed("x")),)))
    assert [durability(move, state) for move in moves] == ["soon", "written", "synced", "written", "written"]


def test_a_trait_that_the_endpoint_told_changes_the_mode() -> None:
    state = after(ModelTraitLearnt("test:m", "native_tools", "no", "400: tools are not supported"))
    assert (state.speakers["solo"].mode, next_moves(state)) == ("text", (Think(1),))


def test_no_call_is_begun_when_the_time_is_over() -> None:
    config = LoopConfig(budget=Budget(max_seconds=10))
    reply = ModelReplied(1, ModelMessage("assistant"), Parsed((ParsedCall(0, "send", {}),)), elapsed_s=9.5)
    late = Deny("not run: the time limit of this run is reached")
    assert next_moves(after(reply, config=config)) == (Record((CallJudged("1.0", late, "no_call_after_the_time"),)),)
    in_time = ModelReplied(1, ModelMessage("assistant"), replied(("look", {}), ("send", {})).parsed, elapsed_s=8.0)
    judged = (in_time, CallJudged("1.0", Allow()), CallJudged("1.1", Allow()), CallStarted("1.0"))
    state = after(*judged, CallEnded("1.0", ToolResult("x"), elapsed_s=9.5), config=config)
    assert next_moves(state) == (Record((CallJudged("1.1", late, "no_call_after_the_time"),)),)


def test_a_request_that_ran_out_of_time_leaves_the_reserve_for_a_last_word() -> None:
    config = LoopConfig(budget=Budget(max_seconds=10))
    state = after(replied(("look", {})), *ran("1.0"), ModelFailed("timeout", "m", elapsed_s=9.0), config=config)
    assert next_moves(state) == (Think(2, want="answer"),)
    failed = fold((ModelFailed("timeout", "m", want="answer", elapsed_s=9.5),), state)
    assert next_moves(failed) == (Record((RunEnded(Stopped("time")),)),)


def test_a_question_outlives_the_time_of_the_run() -> None:
    limits = LoopConfig(budget=Budget(max_seconds=10))
    asked = (CallJudged("1.0", Ask("really?"), "policy"), CallJudged("1.1", Allow()))
    late = replace(replied(("send", {}), ("save", {})), elapsed_s=11.0)
    state = after(late, *asked, config=limits)
    assert next_moves(state) == (
        Record((CallJudged("1.1", Deny("not run: the time limit of this run is reached"), "no_call_after_the_time"),)),
    )
    state = fold((CallJudged("1.1", Deny("not run")),), state)
    assert (next_moves(state), standing(state)) == ((), "approval")
    more = RunResumed("Ada", config=LoopConfig(budget=Budget(max_seconds=100)))
    assert next_moves(fold((CallJudged("1.0", Allow(), "person", "Ada"), more), state)) == (Act("1.0"),)
