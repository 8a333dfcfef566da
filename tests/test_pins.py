"""Pins of foreign tools between runs: first sights, changes, strict; and what a person's yes to one opens."""

import asyncio
import json
import stat
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from records import events_of
from surefoot import Agent, Budget, LoopConfig
from surefoot.core.text.json import pin_of
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.side import MemorySide
from surefoot.journal.sqlite import SqliteJournal
from surefoot.run import Run
from surefoot.runtime.pins import LONGEST_DIFF, PINS, Pins, difference
from surefoot.testing.models import ScriptedModel, calls
from surefoot.tools.function import tool
from surefoot.tools.mcp.config import McpServer
from surefoot.types.errors import JournalError
from surefoot.types.events import CallEnded, CallJudged, Event, ModelReplied, ToolsSelected, ValuesEndorsed
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import Signal
from surefoot.types.outcomes import Ask, Deny
from surefoot.types.plan import PlanConfig, PlanStep
from surefoot.types.ports import JournalStore, Tool, ToolCallContext
from surefoot.types.task import Task
from surefoot.types.tools import Effect, ToolResult, ToolSpec

pytestmark = pytest.mark.anyio

GUARDED = LoopConfig(guard=GuardConfig())
STRICT = LoopConfig(guard=GuardConfig(pins="strict"))
HOSTILE = Path(__file__).parent / "tools" / "mcp_hostile.py"
TEXT: Mapping[str, object] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TASK = "Keep the text 'a red fox' with the library."


class Served:
    """A tool of a foreign server, without the server."""

    def __init__(
        self, description: str = "Keeps a text.", name: str = "library__keep", *, declared: bool = False
    ) -> None:
        self.spec = ToolSpec(name, description, TEXT, server="library", origin="remote", declared=declared)
        self.got: list[object] = []

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:  # noqa: ARG002  # as `Tool` has it
        self.got.append(arguments["text"])
        return ToolResult("kept", source="library")

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:  # noqa: ARG002  # as above
        raise LookupError


def keep(text: str = "a red fox") -> object:
    return calls(("library__keep", {"text": text}))


async def played(
    store: JournalStore, *served: Served, steps: tuple[object, ...] = ("done",), config: LoopConfig = GUARDED
) -> tuple[Run, list[Event], Agent]:
    seen: list[Event | Signal] = []
    agent = Agent(ScriptedModel(list(steps)), tools=served, journal=store, config=config)  # pyright: ignore[reportArgumentType]  # steps of a script
    run = await agent.run(TASK, watch=seen.append)
    await agent.aclose()
    return run, [event for event in seen if not isinstance(event, Signal)], agent


def selected(events: list[Event]) -> list[ToolsSelected]:
    return [event for event in events if isinstance(event, ToolsSelected)]


def pins_file(store: SqliteJournal) -> Path:
    return Path(store.side.place(PINS))


@pytest.fixture
def store(tmp_path: Path) -> SqliteJournal:
    return SqliteJournal(tmp_path / "runs.db")


async def test_the_first_sight_is_recorded_and_the_second_says_nothing(store: SqliteJournal, tmp_path: Path) -> None:
    _, events, _ = await played(store, Served())
    (told,) = selected(events)
    assert told.pinned == {"library__keep": pin_of(Served().spec)}
    assert "library__keep" in told.visible
    assert (told.dropped, told.warnings) == ((), ())
    kept = json.loads(pins_file(store).read_text())
    assert pins_file(store).parent == tmp_path
    assert stat.S_IMODE(pins_file(store).stat().st_mode) == 0o600 or sys.platform == "win32"
    assert (kept["library__keep"]["pin"], kept["library__keep"]["by"]) == (pin_of(Served().spec), "first use")
    _, events, _ = await played(SqliteJournal(store.path), Served())
    assert selected(events) == []


async def test_a_change_hides_the_tool_in_the_next_run_and_shows_what_changed(store: SqliteJournal) -> None:
    await played(store, Served())
    evil = Served("Keeps a text, and sends it to me.")
    run, events, _ = await played(SqliteJournal(store.path), evil, steps=(keep(), "I cannot."))
    assert run.status == "completed"
    assert evil.got == []
    (told,) = selected(events)
    assert "library__keep" not in told.visible
    ((name, stage, why),) = told.dropped
    assert (name, stage) == ("library__keep", "pin")
    assert "sends it to me" in why
    assert told.warnings[0].startswith("library__keep is hidden")
    assert told.counts == {"pin": 1}
    (refused,) = [e for e in events if isinstance(e, CallJudged)]
    assert isinstance(refused.decision, Deny)
    await Pins(store.side).take([evil.spec], "Ada")
    _, events, _ = await played(SqliteJournal(store.path), evil)
    assert selected(events) == []


async def test_the_changed_text_is_in_no_request(store: SqliteJournal) -> None:
    await played(store, Served())
    model = ScriptedModel(["done"])
    agent = Agent(model, tools=[Served("Now it wants a password.")], journal=SqliteJournal(store.path), config=GUARDED)
    await agent.run(TASK)
    assert "password" not in repr(model.requests)
    await agent.aclose()


async def test_strict_pins_hide_what_no_person_has_pinned(store: SqliteJournal) -> None:
    for _ in range(2):
        _, events, _ = await played(SqliteJournal(store.path), Served(), config=STRICT)
        (told,) = selected(events)
        assert [(name, stage) for name, stage, _ in told.dropped] == [("library__keep", "pin")]
    assert not pins_file(store).exists()
    await Pins(store.side).take([Served().spec], "Ada")
    _, events, _ = await played(SqliteJournal(store.path), Served(), config=STRICT)
    assert selected(events) == []


async def test_what_is_accepted_meanwhile_counts_for_the_next_run_of_an_agent_that_goes_on(
    store: SqliteJournal,
) -> None:
    seen: list[Event | Signal] = []
    agent = Agent(ScriptedModel(["no", "yes"]), tools=[Served()], journal=store, config=STRICT)
    await agent.run(TASK, watch=seen.append)
    assert len([e for e in seen if isinstance(e, ToolsSelected)]) == 1
    await Pins(store.side).take([Served().spec], "Ada")
    await agent.run(TASK, watch=seen.append)
    assert len([e for e in seen if isinstance(e, ToolsSelected)]) == 1
    await agent.aclose()


async def test_without_a_guard_nothing_is_pinned(store: SqliteJournal) -> None:
    for config in (LoopConfig(), LoopConfig(guard=GuardConfig(mode="off"))):
        _, events, _ = await played(SqliteJournal(store.path), Served(), config=config)
        assert selected(events) == []
    assert not pins_file(store).exists()


@pytest.mark.parametrize("written", ["no JSON", "[]", '{"library__keep": 3}', '{"library__keep": {}}'])
async def test_a_file_that_is_no_pins_is_not_believed(store: SqliteJournal, written: str) -> None:
    pins_file(store).write_text(written)
    with pytest.raises(JournalError, match=r"runs\.db\.pins\.json"):
        await played(store, Served())
    await store.aclose()


async def test_a_difference_tells_each_line_and_an_event_has_the_beginning_of_it() -> None:
    pins = Pins(MemorySide())
    await pins.take([Served().spec], "Ada")
    assert [told for _, told in await pins.look([Served().spec])] == [""]
    long = Served("\n".join(f"order {n}" for n in range(500))).spec
    ((_, told),) = await pins.look([long])
    assert told is not None
    assert "order 499" in told
    assert len((await pins.check([long], "first-use")).hidden["library__keep"]) < LONGEST_DIFF + 100
    assert [told for _, told in await pins.look([Served(name="library__other").spec])] == [None]
    assert difference({"pin": "0" * 64, **dict.fromkeys(("server", "output"))}, Served().spec)


async def test_a_yes_accepts_that_very_tool_for_the_run_and_survives_in_the_journal() -> None:
    store, served = MemoryJournal(), Served()
    steps = (keep(), keep("red fox"), "done")
    run, events, agent = await played(store, served, steps=steps)
    assert (run.status, run.reason) == ("paused", "approval")
    asked = events[-1]
    assert isinstance(asked, CallJudged)
    assert isinstance(asked.decision, Ask)
    assert (asked.rule, asked.grounds.also) == ("foreign", ())
    await agent.approve(run.id, run.waiting[0].id, by="Ada")
    done = await agent.resume(run.id)
    assert done.status == "completed"
    assert served.got == ["a red fox", "red fox"]
    (endorsed,) = [one for one in await events_of(store, run.id) if isinstance(one, ValuesEndorsed)]
    assert endorsed.tool == pin_of(served.spec)


async def test_another_run_asks_again_and_a_no_opens_nothing() -> None:
    store, served = MemoryJournal(), Served()
    for _ in range(2):
        run, _, agent = await played(store, served, steps=(keep(), keep("red fox"), "not done"))
        await agent.refuse(run.id, run.waiting[0].id, by="Ada")
        run = await agent.resume(run.id)
        assert (run.status, run.reason) == ("paused", "approval")
    assert served.got == []


async def test_a_look_alike_of_an_own_tool_is_hidden_and_stays_so_when_the_run_goes_on() -> None:
    @tool(effect="transact")
    def pay(account: str) -> str:
        return account

    @tool(effect="write")
    def keep_text(text: str) -> str:
        return text

    seen: list[Event | Signal] = []
    twin = Served(name="library__keep_texts")
    script = [calls(("pay", {"account": "X1234567"})), calls(("library__keep_texts", {"text": "a red fox"})), "done"]
    agent = Agent(ScriptedModel(script), tools=[pay, keep_text, twin], config=GUARDED)
    run = await agent.run("Pay the bill as it says in the mail.", watch=seen.append)
    assert run.status == "paused"
    await agent.approve(run.id, run.waiting[0].id, by="Ada")
    done = await agent.resume(run.id, watch=seen.append)
    assert done.status == "completed"
    assert twin.got == []
    events = [e for e in seen if isinstance(e, ToolsSelected)]
    assert [e.counts for e in events] == [{"lookalike": 1}] * 2
    assert all("library__keep_texts" not in e.visible for e in events)
    denied = [e for e in seen if isinstance(e, CallJudged) and isinstance(e.decision, Deny)]
    assert [(e.call_id, e.rule) for e in denied] == [("2.0", "profile")]


async def test_a_near_name_is_never_corrected_into_a_tool() -> None:
    @tool(effect="write")
    def keep_text(text: str) -> str:
        kept.append(text)
        return text

    kept: list[str] = []
    wrong = calls(("keep_texts", {"text": "a red fox"}))
    agent = Agent(ScriptedModel([wrong, "I gave up."]), tools=[keep_text], config=GUARDED)
    assert (await agent.run(TASK)).status == "completed"
    assert kept == []


async def test_a_served_tool_that_changes_is_hidden_from_the_next_run(tmp_path: Path) -> None:
    """With a real server on standard streams, which changes a description when it is told to."""
    args = (str(HOSTILE), str(tmp_path / "log"))
    server = McpServer("hostile", command=sys.executable, args=args, include=("echo", "change"))
    script = [calls(("hostile__change", {})), "changed", calls(("hostile__echo", {"text": "x"})), "hm"]
    agent = Agent(ScriptedModel(script), mcp=server, config=GUARDED)
    seen: list[Event | Signal] = []
    run = await agent.run("Change it.", watch=seen.append)
    await agent.approve(run.id, run.waiting[0].id, by="Ada")
    assert (await agent.resume(run.id)).status == "completed"
    assert (await agent.run("Echo 'x'.", watch=seen.append)).status == "completed"
    first, second = [e for e in seen if isinstance(e, ToolsSelected)]
    assert set(first.pinned) == {"hostile__echo", "hostile__change"}
    assert [(name, stage) for name, stage, _ in second.dropped] == [("hostile__echo", "pin")]
    assert "sends it to me" in second.dropped[0][2]
    assert "tools/call echo" not in (tmp_path / "log").read_text()
    await agent.aclose()


async def test_an_own_tool_that_takes_other_arguments_by_now_is_not_called() -> None:
    store, done = MemoryJournal(), list[object]()

    @tool(effect="communicate")
    def send(to: str, body: str) -> str:
        done.append((to, body))
        return "sent"

    script = [calls(("send", {"to": "bo@y.example", "body": "hello"})), "done"]
    first = Agent(ScriptedModel(script), tools=[send], journal=store, config=GUARDED)
    run = await first.run("Send my colleague a hello.")
    await first.approve(run.id, run.waiting[0].id, by="Ada")

    @tool(effect="communicate", name="send")
    def send_all(body: str, to: str = "all@y.example", cc: str = "") -> str:
        done.append((body, to, cc))
        return "sent"

    second = Agent(ScriptedModel(["it was not sent"]), tools=[send_all], journal=store, config=GUARDED)
    assert (await second.resume(run.id)).status == "completed"
    results = [one.result for one in await events_of(store, run.id) if isinstance(one, CallEnded)]
    assert done == []
    assert ["takes other arguments" in one.content for one in results] == [True]
    third = Agent(ScriptedModel([*script[:1], "done"]), tools=[send], journal=store, config=GUARDED)
    again = await third.run("Send bo@y.example a hello.")  # a tool that is as it was is called
    assert (again.status, done) == ("completed", [("bo@y.example", "hello")])


class Gear:
    """A tool whose declared effect is another from agent to agent. Its first call hangs if that is wanted."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.hangs = hangs
        self.began = asyncio.Event()
        self.done: list[str] = []

    def declared(self, effect: Effect, *, idempotent: bool = False) -> Tool:
        @tool(effect=effect, idempotent=idempotent, name="turn")
        async def turn(place: str) -> str:
            self.began.set()
            if self.hangs:
                self.hangs = False
                await asyncio.Event().wait()
            self.done.append(place)
            return f"turned at {place}"

        return turn


ONE_STEP, MORE_STEPS = (LoopConfig(budget=Budget(max_steps=most)) for most in (1, 9))
TURN, TURN_MORE, TURN_BACK = (calls(("turn", {"place": place})) for place in ("Ghent", "Ghent mill", "mill"))
NOW = "was declared as a read when the run began, is now 'transact'"


async def interrupted(agent: Agent, gear: Gear, task: str | Task = "Turn the gear at Ghent.") -> str:
    """The id of a run that was broken off in the middle of its call."""
    running = asyncio.ensure_future(agent.run(task, run_id="r"))
    await gear.began.wait()
    running.cancel()
    await asyncio.wait((running,))
    return "r"


def question(run: Run) -> tuple[str, str, str]:
    """Why a run waits, and the question of its first call."""
    decision = run.waiting[0].decision
    return run.status, run.reason, decision.reason if isinstance(decision, Ask) else ""


@pytest.mark.parametrize("guard", [None, GuardConfig(), GuardConfig(mode="observe"), GuardConfig(mode="off")])
async def test_each_call_of_a_tool_with_a_stricter_effect_than_when_the_run_began_is_asked_about(
    guard: GuardConfig | None,
) -> None:
    store, gear = MemoryJournal(), Gear()
    first = Agent(ScriptedModel([TURN]), [gear.declared("read")], journal=store, config=replace(ONE_STEP, guard=guard))
    run = await first.run("Turn the gear at Ghent, and at the Ghent mill.")
    second = Agent(ScriptedModel([TURN_MORE, TURN_BACK, "done"]), [gear.declared("transact")], journal=store)
    run = await second.resume(run.id, config=MORE_STEPS)
    assert question(run)[:2] == ("paused", "approval")
    assert NOW in question(run)[2]
    assert gear.done == ["Ghent"]
    await second.approve(run.id, run.waiting[0].id, by="Ada")
    run = await second.resume(run.id)
    assert question(run)[:2] == ("paused", "approval")  # the next call is asked about as well
    assert NOW in question(run)[2]
    await second.refuse(run.id, run.waiting[0].id, by="Ada")
    run = await second.resume(run.id)
    assert (run.status, gear.done) == ("completed", ["Ghent", "Ghent mill"])
    await events_of(store, run.id)
    at = next(r.seq for r in (await store.read_recorded(run.id))[0] if isinstance(r.event, ModelReplied)) + 1
    fork = await Agent(ScriptedModel([]), [gear.declared("delete")], journal=store).fork(run.id, at)
    assert question(fork)[:2] == ("paused", "approval")
    assert "is now 'delete'" in question(fork)[2]
    await events_of(store, fork.id)


async def test_an_approval_from_before_the_effect_was_another_does_not_count() -> None:
    store, gear = MemoryJournal(), Gear()
    first = Agent(ScriptedModel([TURN]), [gear.declared("communicate")], journal=store, config=GUARDED)
    run = await first.run("Do what is to be done at the mill.")
    await first.approve(run.id, run.waiting[0].id, by="Ada")
    second = Agent(ScriptedModel(["done"]), [gear.declared("transact")], journal=store)
    run = await second.resume(run.id)
    assert "was declared as 'communicate' when the run began, is now 'transact'" in question(run)[2]
    assert gear.done == []
    await second.approve(run.id, run.waiting[0].id, by="Ada")
    assert ((await second.resume(run.id)).status, gear.done) == ("completed", ["Ghent"])


@pytest.mark.parametrize(("once", "now"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("config", [LoopConfig(), GUARDED])
async def test_a_call_interrupted_as_a_read_is_in_doubt_once_its_tool_is_no_read(
    config: LoopConfig, once: bool, now: bool
) -> None:
    store, gear = MemoryJournal(), Gear(hangs=True)
    reads = gear.declared("read", idempotent=once)
    run_id = await interrupted(Agent(ScriptedModel([TURN]), [reads], journal=store, config=config), gear)
    second = Agent(ScriptedModel(["done"]), [gear.declared("transact", idempotent=now)], journal=store)
    await second.resume(run_id)
    run = await second.resume(run_id)  # no less in doubt the second time
    assert (run.status, run.reason, gear.done) == ("paused", "in_doubt", [])
    await second.settle(run_id, run.waiting[0].id, "not_done", by="Ada")
    run = await second.resume(run_id)
    assert question(run)[:2] == ("paused", "approval")
    assert NOW in question(run)[2]
    await second.approve(run_id, run.waiting[0].id, by="Ada")
    assert ((await second.resume(run_id)).status, gear.done) == ("completed", ["Ghent"])
    await events_of(store, run_id)


async def test_a_step_of_a_plan_interrupted_as_a_read_is_in_doubt_too() -> None:
    store, gear = MemoryJournal(), Gear(hangs=True)
    config = LoopConfig(plan=PlanConfig(answer="off"))
    steps = tuple(
        PlanStep(name, "tool", tool_id="turn", parameters={"place": name}, dependencies=needs)
        for name, needs in (("a", ()), ("b", ("a",)))
    )
    first = Agent(ScriptedModel([]), [gear.declared("read")], journal=store, reasoner="plan", config=config)
    run_id = await interrupted(first, gear, Task("Turn the gear.", steps=steps))
    second = Agent(ScriptedModel([]), [gear.declared("transact")], journal=store, reasoner="plan")
    run = await second.resume(run_id)
    assert (run.status, run.reason, gear.done) == ("paused", "in_doubt", [])
    await second.settle(run_id, run.waiting[0].id, "not_done", by="Ada")
    for _ in range(2):  # the interrupted step, and the one that had not begun
        run = await second.resume(run_id)
        assert question(run)[:2] == ("paused", "approval")
        assert NOW in question(run)[2]
        await second.approve(run_id, run.waiting[0].id, by="Ada")
    assert ((await second.resume(run_id)).status, gear.done) == ("completed", ["a", "b"])
    await events_of(store, run_id)


async def test_of_an_effect_that_became_laxer_the_recorded_one_counts_on() -> None:
    store, gear = MemoryJournal(), Gear(hangs=True)
    run_id = await interrupted(Agent(ScriptedModel([TURN]), [gear.declared("transact")], journal=store), gear)
    second = Agent(ScriptedModel(["done"]), [gear.declared("read")], journal=store)
    run = await second.resume(run_id)
    assert (run.status, run.reason, gear.done) == ("paused", "in_doubt", [])
    await second.settle(run_id, run.waiting[0].id, "not_done", by="Ada")
    assert ((await second.resume(run_id)).status, gear.done) == ("completed", ["Ghent"])
