"""Cassettes: a recorded run is played event by event, without model, tool or key; whatever differs fails the test."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chat_server import chat_server, says
from plan_kit import step, thinking
from processes import ran
from records import late_first
from surefoot import Agent, Budget, LoopConfig, Run, SqliteJournal, ToolCallContext, ToolResult, UsageError, tool
from surefoot.testing.cassette import Cassette
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.testing.tape import Miss, first_difference
from surefoot.testing.world import plan
from surefoot.types.errors import ModelUnreachable, TraitRefused
from surefoot.types.events import CallEnded, CallStarted, Event, IntentAnchored, RunForked, RunStarted
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import ModelMessage, ModelRequest, TextDelta, Usage
from surefoot.types.ports import Tool
from surefoot.types.tools import Catalogue

pytestmark = pytest.mark.anyio

MODEL = "openai:gpt-5.1-mini"
TASK = "What is the sum of Alice's and Bob's scores?"
KEY = "sk-secret-0123456789"
SUM: list[Scripted] = [
    calls(("exam_score", {"name": "Alice"}), ("exam_score", {"name": "Bob"})),
    ModelMessage("assistant", "Together they have 171 points.", usage=Usage(7, 3, cost_usd=0.01)),
]


@tool(effect="read")
async def exam_score(name: str) -> int:
    """Exam score of one student."""
    return {"Alice": 90, "Bob": 81}[name]


@tool(effect="read")
async def look() -> str:
    """Look, for ever."""
    await asyncio.Event().wait()
    return ""


@tool(timeout_s=0.01)
async def pay(amount: int) -> str:
    """Pay, for longer than there is time."""
    await asyncio.Event().wait()
    return str(amount)


def never(spec_of: Tool) -> Tool:
    """The same tool as the model knows it; running it breaks the test."""

    class Never:
        spec = spec_of.spec

        async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:  # noqa: ARG002
            raise KeyboardInterrupt

        async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> None:  # noqa: ARG002
            raise KeyboardInterrupt

    return Never()


def scripted(script: Sequence[Scripted]) -> ScriptedModel:
    return ScriptedModel(script, name=MODEL)


Drive = Callable[[Agent], Any]


async def once(agent: Agent) -> Run:
    return await agent.run(TASK)


async def recorded(
    path: Path, script: Sequence[Scripted] = SUM, tools: Sequence[Tool] = (exam_score,), drive: Drive = once, **how: Any
) -> Any:
    with Cassette(path, record=True) as cassette:
        return await drive(cassette.agent(scripted(script), tools, **how))


async def played(
    path: Path, tools: Sequence[Tool] = (exam_score,), drive: Drive = once, patience_s: float = 20.0, **how: Any
) -> Any:
    with Cassette(path, remedy="do it again", patience_s=patience_s) as cassette:
        return await drive(cassette.agent(MODEL, [never(one) for one in tools], **how))


async def both(path: Path, script: Sequence[Scripted], tools: Sequence[Tool], drive: Drive, **how: Any) -> Run:
    """Record, play, and hold the events against each other; the recorded run."""
    seen: list[list[Event]] = []

    async def driven(agent: Agent) -> Run:
        run = await drive(agent)
        store: Any = agent.journal
        seen.append([without_id(record.event) for record in (await store.read_recorded(run.id))[0]])
        return run

    first, second = await recorded(path, script, tools, driven, **how), await played(path, tools, driven, **how)
    assert seen[0] == seen[1]
    assert replace(first, id="") == replace(second, id="")
    return first


def without_id(event: Event) -> Event:
    if isinstance(event, RunForked):
        return replace(event, run_id="", parent="")
    return replace(event, run_id="", follows="", follows_hash="") if isinstance(event, RunStarted) else event


async def test_a_recorded_run_plays_without_model_and_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    run = await both(tmp_path / "sum.journal", SUM, [exam_score], once)
    assert (run.status, run.usage) == ("completed", Usage(17, 8, cost_usd=0.01))


async def test_reads_side_by_side_end_in_the_recorded_order(tmp_path: Path) -> None:
    look, order = late_first()
    script: list[Scripted] = [calls(*(("look", {"n": n}) for n in range(3))), "done"]
    await both(tmp_path / "c", script, [look], once)
    assert order == [1, 2, 0]


async def test_steps_are_played_that_have_ended_before_in_or_after_the_same_turn_of_the_loop(tmp_path: Path) -> None:
    @tool(effect="read")
    async def wait(turns: int) -> int:
        """Wait for so many turns, and fail once where it is to."""
        for _ in range(turns):
            await asyncio.sleep(0)
        if turns in failing:
            failing.remove(turns)
            raise ConnectionError("down")
        return turns

    async def resumed(agent: Agent) -> Run:
        failing.add(12)
        return await agent.resume((await agent.run(TASK)).id)

    failing = set[int]()
    for turns in (9, 10, 11):
        steps = [step(name, "wait", turns=most) for name, most in (("a", 10), ("b", turns), ("c", 10))]
        script: list[Scripted] = [plan(*steps, step("d", "wait", ["a"], turns=0)), "the answer"]
        await both(tmp_path / f"a{turns}", script, [wait], once, reasoner="plan")
    for turns in (8, 9, 10):  # behind one of them a model fails in the turn in which the other step does
        steps = [step("a", "wait", turns=12), step("b", "wait", turns=turns), thinking("c", ["b"])]
        script = [plan(*steps), ModelUnreachable("down"), "weighed", "the answer"]
        await both(tmp_path / f"b{turns}", script, [wait], resumed, reasoner="plan")


async def test_a_doubt_and_what_a_person_said_are_played(tmp_path: Path) -> None:
    async def settled(agent: Agent) -> Run:
        run = await agent.run(TASK)
        assert (run.status, run.reason) == ("paused", "in_doubt")
        await agent.settle(run.id, run.waiting[0].id, "done", by="Ada", result="paid, receipt 7")
        return await agent.resume(run.id, by="Ada")

    assert (await both(tmp_path / "c", [calls(("pay", {"amount": 5})), "Paid."], [pay], settled)).answer == "Paid."


async def test_a_probe_is_played(tmp_path: Path) -> None:
    async def was_paid(amount: int) -> str:
        return f"paid {amount} before"

    asked = tool(pay, probe=was_paid, timeout_s=0.01)
    assert (await both(tmp_path / "c", [calls(("pay", {"amount": 5})), "Paid."], [asked], once)).status == "completed"


async def test_forks_long_results_failures_and_what_was_learnt_are_played(tmp_path: Path) -> None:
    @tool(effect="read")
    def book() -> str:
        """A long text."""
        return "".join(f"<{n:06d}>" for n in range(500))

    script: list[Scripted] = [
        TraitRefused("stop", "no", "stop is not supported"), calls(("book", {})),
        calls(("read_result", {"call_id": "1.0", "start": 300})), ModelUnreachable("down"), "read", "read again",
    ]  # fmt: skip

    async def forked(agent: Agent) -> Run:
        run = await agent.run(TASK)
        assert run.reason == "model_unavailable"
        run = await agent.resume(run.id)
        assert run.answer == "read"
        store: Any = agent.journal
        result = next(r.event.result for r in (await store.read_recorded(run.id))[0] if isinstance(r.event, CallEnded))
        assert len(await store.get_blob(result.blob)) == 4_000
        return await agent.fork(run.id, 8)

    run = await both(tmp_path / "c", script, [book], forked, config=LoopConfig(tool_result_chars=300))
    assert run.answer == "read again"


async def test_a_reply_whose_text_had_to_be_mended_is_played(tmp_path: Path) -> None:
    reply = ModelMessage("assistant", "It is 171.", mended=True)
    assert (await both(tmp_path / "c", [reply], [exam_score], once)).answer == "It is 171."


async def test_the_turns_of_a_conversation_are_played(tmp_path: Path) -> None:
    async def talk(agent: Agent) -> Run:
        chat = agent.chat()
        await chat.send("first")
        return await chat.send("second")

    run = await both(tmp_path / "c.db", [calls(("exam_score", {"name": "Alice"})), "one", "two"], [exam_score], talk)
    assert run.answer == "two"


async def test_the_end_by_time_comes_at_the_recorded_time(tmp_path: Path) -> None:
    config = LoopConfig(budget=Budget(max_seconds=0.2, reserve=0.5))
    run = await both(tmp_path / "c", [calls(("look", {})), "It takes too long."], [look], once, config=config)
    assert (run.status, run.reason) == ("completed_partial", "time")


async def test_a_dual_run_with_two_models_is_played(tmp_path: Path) -> None:
    thinker = ["<instruction>get Bob's score</instruction><input>None</input>", "TASK_DONE"]
    actor: list[Scripted] = [
        calls(("exam_score", {"name": "Bob"})), "Bob has 81.",
        "<deliverable><final_output>81</final_output></deliverable>\nTASK_DONE",
    ]  # fmt: skip
    names = {"thinker": "test:thinker", "actor": "test:actor"}
    models = {"thinker": ScriptedModel(thinker, name="test:thinker"), "actor": ScriptedModel(actor, name="test:actor")}
    with Cassette(tmp_path / "c", record=True) as cassette:
        first = await cassette.agent(models, [exam_score], reasoner="dual").run(TASK)
    with Cassette(tmp_path / "c") as cassette:
        second = await cassette.agent(names, [never(exam_score)], reasoner="dual").run(TASK)
    assert first.status == "completed"
    assert replace(first, id="") == replace(second, id="")


async def test_a_streamed_run_shows_its_words(tmp_path: Path) -> None:
    async def streamed(agent: Agent) -> Run:
        seen = [item async for item in agent.stream(TASK)]
        assert "".join(s.text for s in seen if isinstance(s, TextDelta)).strip() == "Together they have 171 points."
        run = seen[-1]
        assert isinstance(run, Run)
        return run

    await both(tmp_path / "c", SUM, [exam_score], streamed)


def test_scripts_record_and_play_too(tmp_path: Path) -> None:
    with Cassette(tmp_path / "deep" / "c", record=True) as cassette:
        cassette.agent(scripted(SUM), [exam_score]).run_sync(TASK)
    with Cassette(tmp_path / "deep" / "c") as cassette:
        agent = cassette.agent(MODEL, [never(exam_score)])
        run = agent.run_sync(TASK)
        assert agent.resume_sync(run.id).answer == "Together they have 171 points."


async def test_the_cassette_is_a_journal_and_playing_leaves_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.journal"
    run = await recorded(path)
    before = path.read_bytes()
    path.chmod(0o444)
    assert (await played(path)).answer == run.answer
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["c.journal"]  # noqa: PTH208  # names are all that is asked for
    path.chmod(0o644)
    store = SqliteJournal(path)
    assert [info.run_id for info in await store.runs()] == [run.id]
    await store.aclose()


def changed_score(description: str = "Score of one student, in points.") -> Tool:
    @tool(effect="read", name="exam_score")
    async def score(name: str) -> int:
        return len(name)

    class Changed:
        spec = replace(exam_score.spec, description=description)
        call = score.call
        probe = score.probe

    return Changed()


@pytest.mark.parametrize(("how", "told"), [
    ({"instructions": "Be brief."}, "what the model is shown in step 1 of the run of “What is the sum .*system prom"),
    ({"tools": [changed_score()]}, "the tool exam_score was .*Exam score of one.*, is .*Score of one student, in"),
    ({"config": LoopConfig(tool_result_chars=200)}, None),  # nothing that shows
    ({"config": LoopConfig(budget=Budget(max_steps=1))},
     "record 8 of the run of .* was 'ModelReplied {.*, is 'RunEnded {.*steps"),
    ({"call_mode": "text"}, "no run was recorded with .* in call mode text, only with .*call mode native"),
    ({"reasoner": "mono"}, "was recorded with reasoner 'react' and solo .*, not with reasoner 'mono' and"),
], ids=["instructions", "tool", "nothing that shows", "budget", "mode", "reasoner"])  # fmt: skip
async def test_an_agent_that_does_something_else_is_told(tmp_path: Path, how: dict[str, Any], told: str | None) -> None:
    await recorded(tmp_path / "c")
    if told is None:
        assert (await played(tmp_path / "c", **how)).status == "completed"
        return
    with pytest.raises(Miss, match=told) as caught:
        await played(tmp_path / "c", **how)
    assert str(caught.value).startswith(f"cassette {tmp_path / 'c'}: ")
    assert str(caught.value).endswith("; do it again")


def test_of_two_requests_the_first_difference_is_told_shortly() -> None:
    task, reply = ModelMessage("user", "x" * 300), calls(("look", {"q": "a"}), text="I look.")
    was = ModelRequest("Be brief.", (task, reply))
    other = calls(("look", {"q": "b"}), text="I look.")
    told = [
        (was, ""),
        (replace(was, system="Be long."), "the system prompt was 'Be brief.', is 'Be long.'"),
        (replace(was, messages=(task, other)), """message 2 was …' I look. look({"q":"a"})', is …'"""),
        (replace(was, messages=(task,)), "message 2 was 'assistant: I look. look"),
        (replace(was, messages=(replace(task, content="x" * 299 + "y"), reply)), f"message 1 was …'{'x' * 21}', is …'"),
        (replace(was, tools=Catalogue((exam_score.spec,))), "the tool exam_score was 'not offered', is '["),
        (replace(was, stop=("Observation",)), "its stop was '[]', is '[\"Observation\"]'"),
        (replace(was, mode="text"), "its mode was"),
    ]
    for now, words in told:
        assert first_difference(was, now).startswith(words)
        assert len(first_difference(was, now)) < 250
        assert (first_difference(was, now) == "") == (words == "")


async def test_a_file_that_is_no_cassette_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk" * 500)
    (tmp_path / "empty").touch()
    for name, told in (
        ("junk", "file is not a database"),
        ("empty", "there is nothing in this file"),
        (".", "no such"),
    ):
        with pytest.raises(Miss, match=rf"^cassette {re.escape(str(tmp_path / name))}: {told}.*; do it again$"):
            await played(tmp_path / name)


async def test_a_run_after_the_end_of_its_recording_is_refused(tmp_path: Path) -> None:
    with Cassette(tmp_path / "c", record=True) as cassette:
        agent = cassette.agent(ScriptedModel(["a", "b"]))
        await agent.run("go")
    with pytest.raises(UsageError, match="its cassette is closed: drive the run inside"):
        await agent.run("on")


async def test_a_typed_answer_that_is_played_has_its_type(tmp_path: Path) -> None:
    first = await recorded(tmp_path / "c", ['{"result": 3}'], output=int)
    second = await played(tmp_path / "c", output=int)
    assert [first.output, second.output] == [3, 3]


async def test_a_reply_that_is_read_otherwise_is_told(tmp_path: Path) -> None:
    script = ["Thought: x\nAction: exam_score\nAction Input: {'name': 'Bob'}", "Final Answer: 81"]
    how: dict[str, Any] = {"call_mode": "text"}
    await recorded(tmp_path / "c", script, **how)
    await played(tmp_path / "c", **how)
    with pytest.raises(Miss, match=r"the reply in step 1 .* is read otherwise now"):
        await played(tmp_path / "c", config=LoopConfig(repair="strict"), **how)


async def test_other_tasks_more_runs_other_models_and_no_file_are_told(tmp_path: Path) -> None:
    path = tmp_path / "c"
    await recorded(path)
    with pytest.raises(Miss, match="And Carol"), Cassette(path) as cassette:  # noqa: PT012  # what is raised at its end
        agent = cassette.agent(MODEL, [exam_score])
        with pytest.raises(Miss, match=r"no \(further\) run of the task “And Carol\?”; it holds the run of “What is"):
            await agent.run("And Carol?")
        run = await agent.run(TASK)
        with pytest.raises(Miss, match=r"no \(further\) run of the task “What is the sum"):
            await agent.run(TASK)
        with pytest.raises(Miss, match=r"no \(further\) fork of the run of “What is the sum .* at 3"):
            await agent.fork(run.id, 3)
        with pytest.raises(Miss, match=r"no run was recorded with openai:gpt-6, only with openai:gpt-5\.1-mini"):
            cassette.agent("openai:gpt-6")
    with pytest.raises(Miss, match="no such file; record it"), Cassette(tmp_path / "none") as cassette, suppress(Miss):
        cassette.agent(MODEL)


async def test_where_the_recorded_run_was_broken_off_a_played_one_does_not_go_on(tmp_path: Path) -> None:
    async def broken_off(agent: Agent) -> None:
        running = agent.stream(TASK)
        async for item in running:
            if isinstance(item, CallStarted):
                break
        await running.aclose()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue] - a generator

    await recorded(tmp_path / "c", [calls(("look", {}))], [look], broken_off)
    await played(tmp_path / "c", [look], broken_off)
    with pytest.raises(Miss, match=r"the run of “What is .* was broken off at record 4, and now it goes on"):
        await played(tmp_path / "c", [look], patience_s=0.01)


async def test_what_must_come_first_and_does_not_is_told(tmp_path: Path) -> None:
    await recorded(tmp_path / "c")
    with pytest.raises(Miss, match=r"the run of .* went on with a CallStarted at record 5, which does not come"):
        await played(tmp_path / "c", config=LoopConfig(max_concurrent_tools=1), patience_s=0.01)


async def test_a_miss_that_somebody_caught_is_raised_at_the_end_and_hides_no_other_error(tmp_path: Path) -> None:
    await recorded(tmp_path / "c")
    agent = (cassette := Cassette(tmp_path / "c")).agent(MODEL, [exam_score])
    with pytest.raises(Miss, match="“else”") as raised, cassette:
        await asyncio.gather(agent.run("else"), agent.run("more"), return_exceptions=True)
    assert raised.value is cassette.missed
    with pytest.raises(KeyError, match="the test"), Cassette(tmp_path / "c") as cassette:  # noqa: PT012  # the case
        await asyncio.gather(cassette.agent(MODEL).run("else"), return_exceptions=True)
        raise KeyError("the test")


async def test_what_was_recorded_and_is_not_played_is_told(tmp_path: Path) -> None:
    async def twice(agent: Agent) -> None:
        await agent.run(TASK)
        await agent.run("And now?")

    await recorded(tmp_path / "c", [*SUM, "Nothing."], drive=twice)
    with pytest.raises(Miss, match=r"the run of “And now.” was recorded and is not played; do it again"):
        await played(tmp_path / "c")
    with pytest.raises(Miss, match=r"the run of “What is .* was recorded and is not played"), Cassette(tmp_path / "c"):
        pass


async def test_a_run_that_is_not_played_to_its_end_is_told(tmp_path: Path) -> None:
    async def left(agent: Agent) -> None:
        def leave(it: object) -> None:
            if isinstance(it, CallStarted):
                running.cancel()

        running = asyncio.create_task(agent.run(TASK, watch=leave))
        await asyncio.wait((running,))
        assert running.cancelled()

    await recorded(tmp_path / "c")
    with pytest.raises(Miss, match=r"the run of .* was recorded up to record \d+, and is played to \d"):
        await played(tmp_path / "c", drive=left)


def two_models(*scripts: Sequence[Scripted]) -> list[ScriptedModel]:
    return [ScriptedModel(script, name=f"test:{name}") for name, script in zip("ab", scripts, strict=True)]


async def test_runs_are_found_by_their_task_and_models_and_played_by_no_other_model(tmp_path: Path) -> None:
    with Cassette(tmp_path / "c", record=True) as cassette:
        a, b = two_models(["I am a."], ["I am b.", "I am b, too."])
        for model, task in ((a, "Who?"), (b, "Who?"), (b, "Who else?")):
            await cassette.agent(model).run(task)
    with Cassette(tmp_path / "c") as cassette:
        for name, task in (("b", "Who?"), ("a", "Who?"), ("b", "Who else?")):
            assert (await cassette.agent(f"test:{name}").run(task)).answer.startswith(f"I am {name}")
    told = "“Who else.” was recorded with reasoner 'react' and solo test:b, not with reasoner 'react' and solo test:a"
    with pytest.raises(Miss, match=told), Cassette(tmp_path / "c") as cassette:
        await cassette.agent("test:a").run("Who else?")


async def test_a_run_is_taken_up_by_the_model_that_took_it_up(tmp_path: Path) -> None:
    async def resumed(cassette: Cassette, first: str | ScriptedModel, then: str | ScriptedModel) -> str:
        run = await (agent := cassette.agent(first)).run("Who?")
        return (await replace(cassette.agent(then), journal=agent.journal).resume(run.id)).answer

    with Cassette(tmp_path / "c", record=True) as cassette:
        a, b = two_models([ModelUnreachable("down")], ["I am b."])
        assert await resumed(cassette, a, b) == "I am b."
    with Cassette(tmp_path / "c") as cassette:
        assert await resumed(cassette, "test:a", "test:b") == "I am b."
    told = r"record \d+ of .* was with solo test:b, is with solo test:a"
    with pytest.raises(Miss, match=told), Cassette(tmp_path / "c") as cassette:
        await resumed(cassette, "test:a", "test:a")


async def test_forks_at_one_record_are_found_by_their_models(tmp_path: Path) -> None:
    async def forked(cassette: Cassette, first: str | ScriptedModel, *then: str | ScriptedModel) -> list[str]:
        run = await (agent := cassette.agent(first)).run("Who?")
        others = [replace(cassette.agent(one), journal=agent.journal) for one in then]
        return [(await other.fork(run.id, 1)).answer for other in others]

    with Cassette(tmp_path / "c", record=True) as cassette:
        a, b = two_models(["a", "a again"], ["b"])
        assert await forked(cassette, a, a, b) == ["a again", "b"]
    with Cassette(tmp_path / "c") as cassette:
        assert await forked(cassette, "test:a", "test:b", "test:a") == ["b", "a again"]
    told = r"no fork of the run of “Who.” at 1 was recorded with solo test:b"
    with pytest.raises(Miss, match=told), Cassette(tmp_path / "c") as cassette:
        await forked(cassette, "test:a", "test:b", "test:b")


async def test_a_model_on_a_cassette_is_asked_by_runs_alone(tmp_path: Path) -> None:
    await recorded(tmp_path / "c")
    with Cassette(tmp_path / "c") as cassette:
        agent = cassette.agent(MODEL, [never(exam_score)])
        await agent.run(TASK)
        await agent.aclose()
        with pytest.raises(UsageError, match="leave `journal` out"):
            cassette.agent(MODEL, journal="runs.db")
        with pytest.raises(UsageError, match="unknown run"):
            await agent.resume("r1")


async def test_what_a_failed_test_records_or_nothing_does_not_replace_a_good_cassette(tmp_path: Path) -> None:
    path = tmp_path / "c"
    await recorded(path)
    before = path.read_bytes()
    with Cassette(path, record=True) as cassette:
        cassette.agent(scripted([]))
    assert path.read_bytes() == before
    for place in (path, tmp_path / "new"):
        with pytest.raises(AssertionError), Cassette(place, record=True) as cassette:
            raise AssertionError((await cassette.agent(scripted(["I do not know."])).run(TASK)).answer)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["c"]  # noqa: PTH208  # names are all that is asked for


async def test_a_cassette_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "c"
    await recorded(path)
    before = path.read_bytes()
    with path.open("rb") as reader:  # somebody who reads it meanwhile
        await recorded(path, ["It is 171."])
        assert reader.read() == before
    assert path.read_bytes() != before
    assert os.listdir(tmp_path) == ["c"]  # noqa: PTH208  # names are all that is asked for


async def test_a_cassette_holds_no_key_and_no_open_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with chat_server(lambda _: says("hello")) as chat:
        monkeypatch.setenv("SUREFOOT_API_KEY", KEY)
        name = f"{chat.url.replace('//', '//bob:hunter2@')}#m"
        with Cassette(tmp_path / "c", record=True) as cassette:
            run = await cassette.agent(name).run("Hi")
        assert chat.keys == ["Bearer hunter2"]
    monkeypatch.delenv("SUREFOOT_API_KEY")
    with Cassette(tmp_path / "c") as cassette:
        assert (await cassette.agent(name).run("Hi")).answer == run.answer == "hello"
    data = (tmp_path / "c").read_bytes()
    assert KEY.encode() not in data
    assert b"hunter2" not in data


TESTS = """
import asyncio
import pytest
from surefoot import tool

@tool(effect="read")
async def look(q: str) -> str:
    "Look."
    return q

@pytest.mark.parametrize("word", ["a/b", "c"])
def test_words(cassette, word):
    run = cassette.agent("openai:gpt-5.1-mini", tools=[look]).run_sync(f"Say {word}")
    assert run.answer == "hello"

class TestMore:
    def test_caught(self, cassette):
        agent = cassette.agent("openai:gpt-5.1-mini")
        async def two():
            return await asyncio.gather(agent.run(TASK), agent.run("Good bye"), return_exceptions=True)
        asyncio.run(two())

TASK = "Hi"
"""

GIVEN = ("-q", "-p", "surefoot.testing.pytest_plugin", "-W", "error")


def run_pytest(folder: Path, *options: str, **environment: str) -> str:
    """What it said at its end."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME", "TMPDIR")}
    alone = {**kept, **environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    program = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    return ran(program, *GIVEN, *options, folder=folder, environment=alone).stdout


def recording(folder: Path, word: str = "hello") -> str:
    """What it said of the tests in a folder, recorded on a model that says one word."""
    with chat_server(lambda _: says(word)) as chat:
        return run_pytest(folder, "--surefoot-record", OPENAI_BASE_URL=chat.url, OPENAI_API_KEY=KEY)


@pytest.mark.slow
def test_the_fixture_records_when_it_is_asked_to_and_plays_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(TESTS)
    command = [sys.executable, "-m", "pytest", *GIVEN]  # with all plugins, so that this one is named twice
    without = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "3 failed" in without.stdout, without.stdout
    assert "record it with: pytest --surefoot-record 'test_it.py::test_words[c]'" in without.stdout
    assert "3 passed" in recording(tmp_path)
    kept = sorted(path.name for path in (tmp_path / "cassettes").iterdir())
    assert len(kept) == 3
    assert kept[0].startswith("test_it.TestMore.test_caught-")
    assert kept[1].startswith("test_it.test_words[a_b]-")
    assert kept[2] == "test_it.test_words[c].journal"
    assert "3 passed" in run_pytest(tmp_path)
    file.write_text(TESTS.replace('TASK = "Hi"', 'TASK = "Hello"'))
    caught = run_pytest(tmp_path)
    assert "1 failed, 2 passed" in caught, caught
    assert "no (further) run of the task “Hello”" in caught


HIDDEN = """
import asyncio
import pytest

def caught(cassette, task):
    asyncio.run(gathered(cassette.agent("openai:gpt-5.1-mini"), task))

async def gathered(agent, task):
    await asyncio.gather(agent.run("Hi"), agent.run(task), return_exceptions=True)

def test_skipped(cassette):
    caught(cassette, TASK)
    pytest.skip("later")

@pytest.mark.xfail(reason="known")
def test_expected(cassette):
    caught(cassette, TASK)
    assert False

@pytest.mark.xfail(reason="known")
def test_unexpected(cassette):
    caught(cassette, TASK)

@pytest.mark.xfail(reason="known")
def test_unplayed(cassette):
    if TASK == "Hi":
        caught(cassette, TASK)

@pytest.fixture
def broken(cassette):
    caught(cassette, TASK)
    pytest.skip("later")

def test_in_a_fixture(broken):
    pass

TASK = "Hi"
"""


@pytest.mark.slow
def test_neither_skip_nor_xfail_hides_a_miss(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(HIDDEN)
    assert "2 skipped, 1 xfailed, 2 xpassed" in recording(tmp_path)
    cassettes = {path.name.split(".")[1] for path in (tmp_path / "cassettes").iterdir()}
    assert len(cassettes) == 5
    assert "2 skipped, 1 xfailed, 2 xpassed" in run_pytest(tmp_path)
    file.write_text(HIDDEN.replace('TASK = "Hi"', 'TASK = "Hello"'))
    hidden = run_pytest(tmp_path)
    assert "3 failed, 1 xpassed, 2 errors" in hidden, hidden
    assert hidden.count("no (further) run of the task “Hello”") >= 3
    assert "the run of “Hi” was recorded and is not played" in hidden


ALIKE = """
import pytest

@pytest.mark.parametrize("word", ["a::b", "a.b", "A.b", "a/b"])
def test_words(cassette, word):
    run = cassette.agent("openai:gpt-5.1-mini").run_sync(f"Say {word}")
    assert run.answer == "hello"

class TestMore:
    def test_words(self, cassette):
        assert cassette.agent("openai:gpt-5.1-mini").run_sync("Hi").answer == "hello"

class Testmore(TestMore):
    pass
"""


@pytest.mark.slow
def test_two_tests_share_no_cassette_and_one_that_fails_while_it_is_recorded_keeps_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(ALIKE)
    assert "6 passed" in recording(tmp_path)
    names = {path.name.lower() for path in (tmp_path / "cassettes").iterdir()}
    assert len(names) == 6
    assert "test_it.test_words[a.b].journal" in names
    assert "6 failed" in recording(tmp_path, "good bye")
    assert "6 passed" in run_pytest(tmp_path)


async def test_a_guarded_run_is_played_on_another_day(tmp_path: Path) -> None:
    config = LoopConfig(guard=GuardConfig())
    await recorded(tmp_path / "today.journal", config=config)
    store, other = SqliteJournal(tmp_path / "today.journal"), SqliteJournal(tmp_path / "then.journal")
    (info,) = await store.runs(1)
    events = [record.event for record in (await store.read_recorded(info.run_id))[0]]
    then = [replace(e, today="2020-02-02") if isinstance(e, IntentAnchored) else e for e in events]
    assert then != events
    journal = await other.open(info.run_id, create=True)
    await journal.append(then, "written")
    await journal.release()
    await store.aclose()
    await other.aclose()
    run = await played(tmp_path / "then.journal", config=config)
    assert run.status == "completed"


@pytest.mark.parametrize("kind", ["plan", "agent"])
def test_plans_and_agents_that_are_asked_play_from_a_cassette(tmp_path: Path, kind: str) -> None:
    @tool(effect="read")
    def add(a: int) -> int:
        """Add one."""
        return a + 1

    def model(cassette: Cassette, name: str, *said: Scripted) -> ScriptedModel | str:
        return ScriptedModel(said, name=name) if cassette.is_recording else name

    def asked(cassette: Cassette) -> str:
        if kind == "plan":
            steps = plan(step("a", "add", a=1), thinking("b"), thinking("c", ["b"], kind="agent"))
            given = model(cassette, "test:a", steps, "weighed", calls(("add", {"a": 2})), "weighed", "the answer")
            return cassette.agent(given, [add], reasoner="plan", guard=True).run_sync("Add").answer
        inner = cassette.agent(model(cassette, "test:b", calls(("add", {"a": 1})), "2"), [add])
        given = model(cassette, "test:a", calls(("helper", {"task": "add"})), "the answer")
        return cassette.agent(given, [inner.as_tool("helper", "Adds.")]).run_sync("Add").answer

    for record in (True, False):
        with Cassette(tmp_path / "one.journal", record=record, patience_s=1) as cassette:
            assert asked(cassette) == "the answer"
