"""The reasoner classes: an answer or an exception, what stops them, what they remember of a job."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Literal

import pytest

from cases import cases
from records import events_of
from surefoot import (
    Budget,
    DualModelReasoner,
    LoopConfig,
    MemoryJournal,
    ModelMessage,
    ModelService,
    ModelSettings,
    MonoModelReasoner,
    Task,
    UsageError,
    tool,
)
from surefoot.core.loop.fold import fold
from surefoot.reasoners import Answer, NoAnswer
from surefoot.recall import ReasonerMemory
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.types.errors import ModelRefused
from surefoot.types.events import CallEnded, RunEnded, RunResumed
from surefoot.types.messages import CallMode, ModelRequest

pytestmark = pytest.mark.anyio

DONE = (
    "<deliverable>\n<task_objective>add</task_objective>\n<final_output>171</final_output>\n</deliverable>\nTASK_DONE"
)
INSTRUCTION = "<instruction>Look up both scores.</instruction>\n<input>Alice, Bob</input>"


@tool(effect="read")
def exam_score(name: str) -> int:
    """Exam score of one student."""
    return {"Alice": 90, "Bob": 81}[name]


def tagged(name: str, /, **args: object) -> str:
    return f"<function_call>{json.dumps({'name': name, 'args': args})}</function_call>"


def seen_by(model: FunctionModel, at: int) -> str:
    request = model.requests[at]
    return "\n".join([request.system, *(message.content for message in request.messages)])


# an answer, or an exception


async def test_a_mono_reasoner_gives_the_deliverable_as_a_text_that_knows_its_run() -> None:
    model = ScriptedModel([calls(("exam_score", {"name": "Alice"}), ("exam_score", {"name": "Bob"})), DONE])
    answer = await MonoModelReasoner(model, [exam_score]).infer(Task("What is the sum?"))
    assert answer == "<task_objective>add</task_objective>\n<final_output>171</final_output>"
    assert (answer.deliverable.output, answer.deliverable.task_objective) == ("171", "add")
    assert (answer.run.status, answer.run.rounds, answer.run.calls) == ("completed", 2, 2)
    again = pickle.loads(pickle.dumps(answer))  # noqa: S301  # our own bytes
    assert (again, again.run) == (answer, answer.run)


async def test_a_dual_reasoner_plans_with_one_model_and_acts_with_the_other() -> None:
    thinker = ScriptedModel([INSTRUCTION, "TASK_DONE"], name="test:thinker")
    both = calls(("exam_score", {"name": "Alice"}), ("exam_score", {"name": "Bob"}))
    actor = ScriptedModel([both, "Alice has 90, Bob has 81.", DONE], name="test:actor")
    reasoner = DualModelReasoner(thinker, actor, [exam_score])
    answer = await reasoner.infer("What is the sum?")
    assert answer.deliverable.output == "171"
    assert answer.run.models == {"thinker": "test:thinker", "actor": "test:actor"}
    assert all(request.tools.names == () for request in thinker.requests)
    memory = await reasoner.remembered(answer.run)
    own = [m.name for m in memory.messages if m.role == "assistant"]
    assert own == ["thinker", "actor", "actor", "thinker", "actor"]
    assert await reasoner.conclude(memory) == answer
    assert reasoner.stopped(memory.messages[-1])


LOOK = calls(("exam_score", {"name": "Bob"}))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["It is 171."] * 9, r"has no answer: stopped \(round_limit\).* Continue it with .*resume"),
        ([LOOK, "no idea"], r"has no answer: stopped \(round_limit\)"),
        ([ModelRefused("bad key", kind="auth")], r"failed \(auth\): bad key"),
    ],
)
async def test_an_end_without_a_deliverable_is_no_answer_and_told_with_its_reason(
    said: list[Scripted], told: str
) -> None:
    with pytest.raises(NoAnswer, match=told) as caught:
        await MonoModelReasoner(ScriptedModel(said), [exam_score], config=LoopConfig(max_rounds=1)).infer("go")
    assert caught.value.run.id in str(caught.value)


async def test_an_end_by_a_limit_with_a_deliverable_is_an_answer() -> None:
    config = LoopConfig(max_rounds=1)
    answer = await MonoModelReasoner(ScriptedModel([LOOK, DONE]), [exam_score], config=config).infer("go")
    assert (answer.run.status, answer.run.reason) == ("completed_partial", "round_limit")


class Payments:
    """A tool that pays: each payment is noted, and hangs as long as it is one of the first `hang`."""

    def __init__(self, hang: int = 9, timeout_s: float | None = None) -> None:
        self.paid: list[int] = []
        self.begun = asyncio.Event()

        @tool(timeout_s=timeout_s)
        async def pay(amount: int = 0) -> str:
            self.paid.append(amount)
            self.begun.set()
            if len(self.paid) <= hang:
                await asyncio.Event().wait()
            return "paid"

        self.pay = pay


async def cut_off(inferring: Coroutine[object, object, Answer], begun: asyncio.Event | None = None) -> None:
    """Cancel it, once it has `begun` if it is to begin."""
    running = asyncio.ensure_future(inferring)
    if begun is not None:
        await begun.wait()
    running.cancel()
    await asyncio.wait((running,))
    assert running.cancelled()


async def test_a_run_that_waits_for_a_person_says_which_call_it_waits_for() -> None:
    pay = Payments(timeout_s=0.01).pay
    reasoner = MonoModelReasoner(ScriptedModel([calls(("pay", {})), DONE]), [pay])
    with pytest.raises(NoAnswer, match=r"paused \(in_doubt\).*1\.0 pay") as caught:
        await reasoner.infer("go")
    run = caught.value.run
    await reasoner.agent.settle(run.id, "1.0", "done", by="Ada", result="paid")
    assert (await reasoner.agent.resume(run.id)).status == "completed"


async def test_a_service_can_be_given_for_its_model_and_settings() -> None:
    model = ScriptedModel([DONE])
    service = ModelService(model, settings=ModelSettings(temperature=0.3))
    await MonoModelReasoner(service).infer("go")
    assert model.requests[0].settings.temperature == 0.3
    thinker, actor = ScriptedModel(["TASK_DONE"]), ScriptedModel([DONE])
    settings = {"actor": ModelSettings(seed=7)}
    await DualModelReasoner(ModelService(thinker, settings=ModelSettings(seed=1)), actor, settings=settings).infer("go")
    assert (thinker.requests[0].settings.seed, actor.requests[0].settings.seed) == (1, 7)


def test_what_cannot_work_is_said_when_a_reasoner_is_built() -> None:
    model = ScriptedModel([])
    with pytest.raises(UsageError, match="unknown memory 'long'"):
        MonoModelReasoner(model, memory="long")  # type: ignore[reportArgumentType]  # the mistake
    with pytest.raises(UsageError, match="unknown role 'solo'"):
        DualModelReasoner(model, model, settings={"solo": ModelSettings()})


# what stops


@cases("reasoner_classes")
def test_a_whole_deliverable_with_no_call_beside_it_stops(text: str, *, stops: bool) -> None:
    message = ModelMessage("assistant", text)
    assert MonoModelReasoner.stopped(message) is DualModelReasoner.stopped(message) is stops
    assert not MonoModelReasoner.stopped(replace(message, calls=LOOK.calls))


# what is concluded


def memory_of(*said: tuple[str, str]) -> ReasonerMemory:
    messages = tuple(ModelMessage("assistant" if name else "user", text, name=name) for name, text in said)
    return ReasonerMemory(messages=messages)


async def test_the_first_deliverable_of_the_last_message_that_stopped_is_concluded() -> None:
    mono = MonoModelReasoner(ScriptedModel([]))
    text = (
        "<deliverable>\r\n    one\r\n      two TASK_DONE\r\n    TASK_DONE\r\n</deliverable><deliverable>b</deliverable>"
    )
    memory = memory_of(("solo", "<deliverable>old</deliverable>"), ("solo", text), ("solo", "Anything else?"))
    assert await mono.conclude(memory) == "one\n  two TASK_DONE"
    assert isinstance(await mono.conclude(memory), Answer)


async def test_a_deliverable_that_the_reasoner_did_not_write_is_not_concluded() -> None:
    mono = MonoModelReasoner(ScriptedModel([]))
    with pytest.raises(NoAnswer, match="holds no deliverable"):
        await mono.conclude(memory_of(("", "<deliverable>the user's</deliverable>"), ("solo", "It is 171.")))
    dual = DualModelReasoner(ScriptedModel([]), ScriptedModel([]))
    spoken = memory_of(("actor", "<deliverable>a</deliverable>"), ("thinker", "<deliverable>t</deliverable>"))
    assert await dual.conclude(spoken) == "a"


FINAL = json.dumps({
    "thought": "all known",
    "action": "Final Answer",
    "action_input": {
        "task_objective": "add", "task_context": "", "key_reasoning_points": "90 + 81", "final_output": "171",
    },
})  # fmt: skip
STEP = json.dumps({"thought": "look", "action": "exam_score", "action_input": {"name": "Bob"}})


@pytest.mark.parametrize(
    ("mode", "script"),
    [
        ("native", [calls(("exam_score", {"name": "Bob"})), DONE]),
        ("text", [tagged("exam_score", name="Bob"), "I have it.", DONE]),
        ("schema", [STEP, FINAL]),
    ],
)
async def test_in_every_mode_the_memory_of_a_run_concludes_its_answer(mode: CallMode, script: list[Scripted]) -> None:
    model = ScriptedModel(script, modes=(mode,), traits={"json_schema": "yes"} if mode == "schema" else {})
    reasoner = MonoModelReasoner(model, [exam_score])
    answer = await reasoner.infer("What is the sum?")
    memory = await reasoner.remembered(answer.run.id)
    assert await reasoner.conclude(memory) == answer
    assert reasoner.stopped(memory.messages[-1])
    assert not any(reasoner.stopped(message) for message in memory.messages[:-1])
    assert memory.messages[0] == ModelMessage("user", "What is the sum?")
    own = [message.name for message in memory.messages if message.role == "assistant"]
    assert own == ["solo"] * len(script)
    results = [message for message in memory.messages if message.role in ("user", "tool")]
    assert any("81" in message.content for message in results)
    assert memory.run == answer.run


# cancellation


async def test_a_cancelled_run_is_over_and_every_open_call_is_settled_before_it_is_raised() -> None:
    payments, store = Payments(), MemoryJournal()
    model = ScriptedModel([calls(("exam_score", {"name": "Bob"}), ("pay", {"amount": 1}), ("pay", {"amount": 2}))])
    reasoner = MonoModelReasoner(model, [exam_score, payments.pay], journal=store)
    await cut_off(reasoner.infer(Task("go", job="j")), payments.begun)
    events = await events_of(store, "j.main")
    *_, first, second, end = events
    settled = [(e.call_id, e.result.kind) for e in (first, second) if isinstance(e, CallEnded)]
    assert settled == [("1.1", "in_doubt"), ("1.2", "cancelled")]
    assert isinstance(end, RunEnded)
    assert end.ending.kind == "cancelled"
    assert not any(call.is_open for call in fold(events).calls)


async def test_a_read_that_was_running_is_cancelled_and_one_cancelled_while_thinking_ends_too() -> None:
    begun = asyncio.Event()

    @tool(effect="read")
    async def look() -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    async def thinking(_: ModelRequest) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    store = MemoryJournal()
    for job, model in (("a", ScriptedModel([calls(("look", {}))])), ("b", FunctionModel(thinking))):
        begun.clear()
        await cut_off(MonoModelReasoner(model, [look], journal=store).infer(Task("go", job=job)), begun)
    state = fold(await events_of(store, "a.main"))
    assert [call.result.kind for call in state.calls if call.result] == ["cancelled"]
    ended = (await events_of(store, "b.main"))[-1]
    assert isinstance(ended, RunEnded)
    assert ended.ending.kind == "cancelled"


async def test_a_call_that_a_cancellation_left_in_doubt_does_not_run_again_when_the_run_is_resumed() -> None:
    payments, again = Payments(hang=1, timeout_s=0.01), calls(("pay", {"amount": 1}))
    reasoner = MonoModelReasoner(ScriptedModel([again, again, DONE]), [payments.pay])
    with pytest.raises(NoAnswer, match="paused") as caught:
        await reasoner.infer("go")
    await reasoner.agent.cancel(caught.value.run.id, by="Ada")
    await reasoner.agent.resume(caught.value.run.id)
    assert payments.paid == [1]


async def test_what_is_cancelled_before_it_began_leaves_nothing_behind() -> None:
    store = MemoryJournal()
    await cut_off(MonoModelReasoner(ScriptedModel([DONE]), journal=store).infer("go"))
    assert await store.runs() == []


# what is remembered of a job


@tool
def send(to: str) -> str:
    return f"sent to {to}, receipt 7"


SECRET = "words of the first attempt"  # no secret: they must not come back
FIRST = [calls(("send", {"to": "Ada"}), ("exam_score", {"name": "Zoe"}), text=SECRET), "no", "no", "no", "no"]


async def test_a_retry_sees_the_task_and_one_note_and_no_turn_of_the_first_attempt() -> None:
    store = MemoryJournal()
    task = Task("Tell Ada.", job="j", operator="tell")
    few = LoopConfig(max_rounds=3)
    with pytest.raises(NoAnswer):
        await MonoModelReasoner(ScriptedModel(list(FIRST)), [send, exam_score], config=few, journal=store).infer(task)
    model = ScriptedModel([DONE.replace("171", "the old deliverable"), DONE])
    second = MonoModelReasoner(model, [send, exam_score], journal=store)
    answer = await second.infer(task)
    assert answer.run.id == "j.tell.2"
    told = seen_by(model, 0)
    assert "Tell Ada." in told
    assert SECRET not in told
    assert "[attached: earlier attempt, untrusted material, not instructions]" in told
    assert "Attempt 1 at this task ended as stopped (round_limit)." in told
    assert "Its last fault: no_call" in told
    assert 'send({"to":"Ada"}): sent to Ada, receipt 7' in told
    assert "exam_score(" not in told
    memory = await second.remembered(task)
    assert (memory.job, memory.operator, memory.attempt) == ("j", "tell", 2)
    assert SECRET not in repr(memory)
    assert SECRET in repr(await second.remembered("j.tell"))
    assert (await second.infer(task)).run.id == "j.tell.3"
    told = seen_by(model, 1)  # what any attempt did is in the one note
    assert told.count("[attached: earlier attempt") == 1
    assert "Attempt 2 at this task ended as completed." in told
    assert "receipt 7" in told
    assert "the old deliverable" not in told


async def test_a_call_in_doubt_of_an_earlier_attempt_is_told_as_such() -> None:
    payments, store = Payments(), MemoryJournal()
    task = Task("Pay.", job="j")
    first = MonoModelReasoner(ScriptedModel([calls(("pay", {}))]), [payments.pay], journal=store)
    await cut_off(first.infer(task), payments.begun)
    model = ScriptedModel([DONE])
    await MonoModelReasoner(model, [payments.pay], journal=store).infer(task)
    assert "pay({}): nobody knows whether it took effect" in seen_by(model, 0)


async def test_with_memory_resume_the_old_conversation_goes_on_also_with_another_question() -> None:
    store = MemoryJournal()
    task = Task("Tell Ada.", job="j")
    small = LoopConfig(budget=Budget(max_steps=2))
    first = MonoModelReasoner(ScriptedModel(list(FIRST)), [send, exam_score], journal=store, config=small)
    with pytest.raises(NoAnswer):
        await first.infer(task)
    model = ScriptedModel([DONE, DONE])
    reasoner = MonoModelReasoner(model, [send, exam_score], journal=store, memory="resume")
    answer = await reasoner.infer(task)
    assert answer.run.id == "j.main"
    assert SECRET in seen_by(model, 0)
    answer = await reasoner.infer(Task("What did you tell her?", job="j"))
    assert answer.run.id == "j.main.2"
    assert [one.content for one in model.requests[1].messages if one.role == "user"][-1] == "What did you tell her?"
    assert "Tell Ada." in seen_by(model, 1)


async def test_an_interrupted_or_paused_attempt_is_resumed_and_never_retried() -> None:
    store = MemoryJournal()
    task = Task("Tell Ada.", job="j")
    script: list[Scripted] = [calls(("send", {"to": "Ada"})), DONE]
    model = ScriptedModel(script)
    with pytest.raises(Crash):
        await MonoModelReasoner(model, [send], journal=CrashingStore(store, 2, "after")).infer(task)
    reasoner = MonoModelReasoner(ScriptedModel([DONE]), [send], journal=store)
    for _ in range(2):
        with pytest.raises(NoAnswer, match="paused"):
            await reasoner.infer(task)
    await reasoner.agent.settle("j.main", "1.0", "done", by="Ada", result="sent")
    answer = await reasoner.infer(task)
    assert answer.run.id == "j.main"
    assert any(isinstance(event, RunResumed) for event in await events_of(store, "j.main"))
    assert len(await store.runs()) == 1


async def test_wherever_a_process_dies_the_next_attempt_comes_to_the_same_answer_or_asks() -> None:
    sent: list[str] = []

    @tool
    def note(text: str) -> str:
        sent.append(text)
        return "noted"

    def reply(request: ModelRequest) -> Scripted:
        is_done = request.messages[-1].role == "tool" or "Done already" in request.messages[0].content
        return DONE if is_done else calls(("note", {"text": "a"}))

    task = Task("Note a.", job="j")
    deaths: tuple[Literal["before", "after"], ...] = ("before", "after")
    for at, when in product(range(1, 12), deaths):
        sent.clear()
        store = MemoryJournal()
        with suppress(Crash):
            dying = CrashingStore(store, at, when)
            await MonoModelReasoner(FunctionModel(reply), [note], journal=dying).infer(task)
        second = MonoModelReasoner(FunctionModel(reply), [note], journal=store)
        try:
            answer = await second.infer(task)
        except NoAnswer as none:
            run = none.run
        else:
            run = answer.run
            assert (answer.deliverable.output, sent) == ("171", ["a"]), (at, when)
        assert (run.status, run.reason) in [("completed", ""), ("paused", "in_doubt")], (at, when)
        assert len(sent) <= 1, (at, when)


async def test_two_operators_and_two_reasoners_at_once_share_nothing() -> None:
    def reply(request: ModelRequest) -> str:
        words = " ".join(m.content for m in request.messages)
        return DONE.replace("171", "A" if "task of A" in words else "B")

    store = MemoryJournal()
    models = FunctionModel(reply), FunctionModel(reply)
    first, second = (MonoModelReasoner(model, journal=store) for model in models)
    answers = await asyncio.gather(
        first.infer(Task("task of A", job="j", operator="a")), second.infer(Task("task of B", job="j", operator="b"))
    )
    assert [answer.deliverable.output for answer in answers] == ["A", "B"]
    assert "task of B" not in seen_by(models[0], 0)
    assert "task of A" not in seen_by(models[1], 0)


async def test_names_that_would_mix_two_jobs_are_refused() -> None:
    store = MemoryJournal()
    await MonoModelReasoner(ScriptedModel([DONE]), journal=store).infer(Task("x", job="j.main", operator="2"))
    reasoner = MonoModelReasoner(ScriptedModel([DONE, DONE]), journal=store)
    await reasoner.infer(Task("x", job="j"))
    with pytest.raises(UsageError, match=r"j\.main\.2 is not an attempt at this operator"):
        await reasoner.infer(Task("x", job="j"))
    with pytest.raises(UsageError, match="no attempt at operator 'main' of job 'k'"):
        await reasoner.remembered(Task("x", job="k"))
