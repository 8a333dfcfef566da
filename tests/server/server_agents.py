"""Agents whose models do what the task says, so that a run over HTTP comes to where a test wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from surefoot import Agent, LoopConfig, tool
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.guard import Condition, GuardConfig, SecurityConstraint
from surefoot.types.messages import ModelRequest
from surefoot.types.plan import PlanConfig

CONFIRM = SecurityConstraint("sign", "require_confirmation", "every mail is signed", Condition(effect="communicate"))
MAIL = {"to": "bob@example.org", "body": "hello"}
PLAN = [{"step_id": "one", "tool_id": "score", "parameters": {"name": "Alice"}}]


@tool(effect="read")
async def score(name: str) -> str:
    """The score of a student."""
    return f"{name}: {len(name) * 10}"


@tool(effect="read")
async def report() -> str:
    """A long text."""
    return "0123456789" * 3_000


@tool(effect="communicate")
async def send_mail(to: str, body: str) -> str:
    """Send a mail."""
    return f"sent to {to}: {len(body)} characters"


@tool(timeout_s=0.05)
async def pay(amount: int) -> str:
    """Pay."""
    await asyncio.Event().wait()
    return str(amount)


@tool(effect="read")
async def wait_for_ever() -> str:
    """Wait."""
    await asyncio.Event().wait()
    return ""


def reply(request: ModelRequest) -> Scripted:
    """What the words of the task ask for, once; then an answer."""
    task = next(one.content for one in request.messages if one.role == "user")
    if any(one.role == "tool" for one in request.messages):
        return "It is done."
    asks: tuple[tuple[str, tuple[str, Mapping[str, object]]], ...] = (
        ("score", ("score", {"name": "Alice"})), ("report", ("report", {})), ("mail", ("send_mail", MAIL)),
        ("pay", ("pay", {"amount": 5})), ("wait", ("wait_for_ever", {})),
    )  # fmt: skip
    for word, call in asks:
        if word in task:
            return calls(call)
    return "Hello."


def two_mails() -> dict[str, Agent]:
    """The mailer, which sends two mails at once."""

    def both(request: ModelRequest) -> Scripted:
        if any(one.role == "tool" for one in request.messages):
            return "It is done."
        return calls(("send_mail", MAIL), ("send_mail", {**MAIL, "to": "carol@example.org"}))

    mailer = agents()["mailer"]
    return {"mailer": Agent(FunctionModel(both), tools=mailer.tools, config=mailer.config, name="mailer")}


def agents() -> dict[str, Agent]:
    """Those that most tests serve."""
    guarded = LoopConfig(guard=GuardConfig(constraints=(CONFIRM,)))
    planned = LoopConfig(plan=PlanConfig(approve_plan="first", answer="off"))
    return {
        "helper": Agent(FunctionModel(reply), tools=[score, report, pay, wait_for_ever], name="helper"),
        "mailer": Agent(FunctionModel(reply), tools=[send_mail], config=guarded, name="mailer"),
        "planner": Agent(FunctionModel(reply), tools=[score], reasoner="plan", config=planned, name="planner"),
    }
