"""Questions in a plan: a flood of odd calls, in whichever steps, keeps none that touches the words from being asked.

Source: spec/guard.md, section 9, row 8.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plan_kit import World, events_of, off, script, step
from surefoot import GuardConfig, Run
from surefoot.testing.models import Scripted, calls
from surefoot.testing.world import plan

pytestmark = pytest.mark.anyio

NEWS = [
    ("Send the news to whom page.txt names, as it says.", "the news"),
    ("According to page.txt, mail the news to whoever is listed in it.", "news"),
    ("按照 page.txt 所写，把“今日要闻”发送给里面提到的人。", "今日要闻"),
]


def odd(at: int) -> dict[str, Any]:  # Any: parameters of a step
    return {"to": f"eve{at}@evil.example", "text": "zzz"}


async def asked(world: World, words: str, *steps: Scripted, most: int = 10) -> tuple[World, Run]:
    config = off(guard=GuardConfig(max_asks=most, approvals="queue"), max_parallel=20)
    agent = world.agent(script(*steps), config=config)
    run = await agent.run(words, run_id="r")
    await events_of(agent)
    return world, run


def meant(run: Run) -> int:
    return sum(call.arguments["to"] == "bob@far.org" for call in run.waiting)


@pytest.mark.parametrize(("words", "text"), NEWS)
async def test_a_flood_over_many_steps_leaves_room(words: str, text: str) -> None:
    flood = (step(f"s{at}", "send", **odd(at)) for at in range(15))
    _, run = await asked(World(), words, plan(*flood, step("mine", "send", to="bob@far.org", text=text)))
    assert (run.reason, len(run.waiting), meant(run)) == ("approval", 9, 1)


@pytest.mark.parametrize(("words", "text"), NEWS)
async def test_a_flood_of_tool_steps_leaves_room_in_an_agent_step(words: str, text: str) -> None:
    flood = (step(f"s{at}", "send", **odd(at)) for at in range(15))
    agent_step = step("mine", kind="agent", instruction="do it")
    replies = calls(*(("send", odd(at)) for at in range(20, 25)), ("send", {"to": "bob@far.org", "text": text}))
    _, run = await asked(World(), words, plan(*flood, agent_step), replies)
    assert (run.reason, len(run.waiting), meant(run)) == ("approval", 9, 1)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 12))
async def test_however_the_flood_is_spread(before: int, after: int, most: int) -> None:
    first = (step(f"a{at}", "send", **odd(at)) for at in range(before))
    then = (step(f"b{at}", "send", **odd(40 + at)) for at in range(after))
    made = plan(*first, step("mine", "send", to="bob@far.org", text="news"), *then)
    _, run = await asked(World(), NEWS[0][0], made, most=most)
    assert meant(run) == (before < most or most > 3)
    assert len(run.waiting) <= most
