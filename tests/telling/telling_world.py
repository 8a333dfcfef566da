"""Runs of every kind for the tests of telling: made once, as records; and those that stand still with a question."""

import asyncio
from collections.abc import Sequence
from functools import cache

from desk import BILL, MINE, READ_BILL, Desk, pay
from random_plans import Driver, Setting, World
from records import turns
from surefoot import Agent, LoopConfig, MemoryJournal, Task, tool
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.events import DoubtSettled, Event
from surefoot.types.messages import ModelMessage
from surefoot.types.plan import PlanConfig, PlanStep
from surefoot.types.ports import Recorded
from surefoot.types.progress import LimitAction, StepIterationConfig
from test_golden import GOLDEN
from test_golden import events_of as golden_events
from test_replay_twenty import RUNS

HOSTILE = "<script>alert(1)</script>\u202egpj.exe\x1b[2J\u200b ``` [x](javascript:y) \ud800 成绩单"
"""What no reader must be steered by: markup, a change of direction, a code of terminals, half a character."""


def recorded(events: Sequence[Event]) -> tuple[Recorded, ...]:
    """Events as records, each a quarter of a second after the one before."""
    return tuple(Recorded(at, 1_790_000_000 + at / 4, f"{at:064x}", event) for at, event in enumerate(events))


async def _kept(store: MemoryJournal, run_id: str) -> tuple[Recorded, ...]:
    return tuple((await store.read_recorded(run_id))[0])


@tool(effect="communicate", approval="always")
async def send_mail(to: str, body: str = "") -> str:
    """Send a mail."""
    return f"sent to {to} {body}"


@tool(effect="read")
async def look(at: str) -> str:
    """Look at something."""
    return f"{HOSTILE} {at}\nsecond line"


@tool(effect="read")
async def fail(at: str) -> str:
    """Fail."""
    raise ValueError(f"no {at}")


MAIL = calls(("send_mail", {"to": "小明@example.org", "body": HOSTILE.replace("\ud800", "")}))


async def _asking() -> dict[str, tuple[Recorded, ...]]:
    """Runs that wait for a person, by what they wait for."""
    store = MemoryJournal()
    made: dict[str, tuple[Recorded, ...]] = {}
    desk = Desk(READ_BILL, calls(pay(MINE)), "paid", store=store)
    made["a value"] = await _kept(store, (await desk.agent.run(BILL)).id)
    for name, agent in {
        "approval": Agent(turns(MAIL, "done"), tools=[send_mail], journal=store),
        "two calls": Agent(
            turns(calls(("send_mail", {"to": "a"}), ("send_mail", {"to": "b"})), "done"),
            tools=[send_mail],
            journal=store,
        ),
        "inside": Agent(
            turns(calls(("clerk", {"task": "Send it"})), "done"),
            tools=[Agent(turns(MAIL, "sent"), tools=[send_mail]).as_tool("clerk", "Does the mail.")],
            journal=store,
        ),
        "a limit": Agent(
            turns(calls(("fail", {"at": "x"}))),
            tools=[fail],
            journal=store,
            config=LoopConfig(step_iteration=StepIterationConfig(on_limit_reached=LimitAction.Escalate)),
        ),
    }.items():
        made[name] = await _kept(store, (await agent.run("Send it, please.", run_id=name.replace(" ", "-"))).id)
    made["of inside"] = await _kept(store, "inside.1.0")
    steps = (PlanStep("a", tool_id="look", parameters={"at": "x"}), PlanStep("b", kind="response", instruction="Tell"))
    config = LoopConfig(plan=PlanConfig(approve_plan="first"))
    agent = Agent(turns("told"), tools=[look], reasoner="plan", config=config, journal=store)
    made["a plan"] = await _kept(store, (await agent.run(Task("Look.", steps=steps), run_id="plan")).id)
    steps = (PlanStep("a", tool_id="send_mail", parameters={"to": "Ann"}),)
    agent = Agent(turns("told"), tools=[send_mail], reasoner="plan", journal=store)
    made["a step"] = await _kept(store, (await agent.run(Task("Look.", steps=steps), run_id="step")).id)
    return made


async def _hostile() -> tuple[Recorded, ...]:
    """A run in which the user, the model and the tool have all written what steers readers."""
    store = MemoryJournal()
    said = ModelMessage("assistant", HOSTILE, calls=calls(("look", {"at": HOSTILE})).calls, reasoning=HOSTILE)
    agent = Agent(ScriptedModel([said, f"{HOSTILE}\nend"]), tools=[look], journal=store)
    return await _kept(store, (await agent.run(f"{HOSTILE}\nsee https://ada:pw@x.org/?token=abc")).id)


@cache
def _ended() -> dict[str, tuple[Recorded, ...]]:
    async def made() -> dict[str, tuple[Recorded, ...]]:
        store = MemoryJournal()
        for name, make in RUNS.items():
            await make(name, store)
        return {name: await _kept(store, name) for name in RUNS}

    return asyncio.run(made())


@cache
def asking() -> dict[str, tuple[Recorded, ...]]:
    """Runs that stand still with a question; `of inside` is that of the agent that `inside` has asked."""
    doubt = _ended()["a doubt, settled"]
    settled = next(record.seq for record in doubt if isinstance(record.event, DoubtSettled))
    return {**asyncio.run(_asking()), "in doubt": doubt[:settled]}


@cache
def planned() -> dict[str, tuple[Recorded, ...]]:
    """Planned runs in which tools fail, models propose what is unfit, and persons speak."""
    drivers = {
        f"plan {seed}": Driver(
            World(Setting(seed, steps=5, parallel=1 + seed % 3, failing=50, hostile=10)), PlanConfig()
        )
        for seed in (0, 2, 4, 8, 9, 10, 15, 17)
    }
    for driver in drivers.values():
        driver.run()
    return {name: recorded(driver.events) for name, driver in drivers.items()}


@cache
def corpus() -> dict[str, tuple[Recorded, ...]]:
    """All of them: the golden journals, twenty runs and more, plans, questions, and a hostile one."""
    golden = {path.name: recorded(golden_events(path)) for path in GOLDEN}
    return {**golden, **_ended(), **planned(), **asking(), "hostile": asyncio.run(_hostile())}
