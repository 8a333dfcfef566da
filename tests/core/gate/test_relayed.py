"""A task that a model or a program has written says what is to be done, and vouches for no value.

Source: spec/serving.md, section 7.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from records import events_of, turns
from surefoot import Agent, AgentTool, MemoryJournal, tool
from surefoot.telling.state import questions_of
from surefoot.telling.tale import tale_of
from surefoot.testing.models import Scripted, calls
from surefoot.types.events import CallJudged
from surefoot.types.ports import JournalStore
from surefoot.types.task import Author, Task

pytestmark = pytest.mark.anyio

WORDS = "Send a mail to bob@example.org that says hello."
MAIL = calls(("send_mail", {"to": "bob@example.org", "body": "hello"}))
OTHERS: tuple[Author, ...] = ("model", "program")


@tool(effect="communicate")
async def send_mail(to: str, body: str) -> str:
    return f"sent to {to}: {len(body)} characters"


@tool(effect="read")
async def list_contacts() -> list[dict[str, str]]:
    return [{"name": "Bob Lee", "email": "bob@example.org"}, {"name": "Eve Roe", "email": "eve@example.org"}]


@tool(effect="read")
async def show_note(name: str) -> str:
    return f"{name}: buy milk"


LOOK = calls(("list_contacts", {}))


def agent(*replies: Scripted, store: JournalStore | None = None, more: tuple[AgentTool, ...] = ()) -> Agent:
    """Its model says one thing after the other."""
    tools = [*more] if more else [send_mail, list_contacts, show_note]
    return Agent(turns(*replies), tools=tools, guard=True, journal=store or MemoryJournal())


async def asked(store: JournalStore, run_id: str) -> Mapping[str, str]:
    """The origins of the values that the last question is about, by role; {} where nothing was asked."""
    judged = [
        one for one in await events_of(store, run_id) if isinstance(one, CallJudged) and one.decision.kind == "ask"
    ]
    return {one.role: one.origin for one in judged[-1].grounds.evidence} if judged else {}


async def test_a_persons_words_vouch_for_the_values_in_them() -> None:
    store = MemoryJournal()
    run = await agent(MAIL, "done", store=store).run(Task(WORDS), run_id="r")
    assert (run.status, run.calls, await asked(store, "r")) == ("completed", 1, {})


@pytest.mark.parametrize("author", OTHERS)
async def test_nobody_elses_do_and_a_person_is_asked_and_may_say_yes(author: Author) -> None:
    store = MemoryJournal()
    mailer = agent(MAIL, "done", store=store)
    run = await mailer.run(Task(WORDS, author=author), run_id="r")
    assert run.status == "paused"
    assert await asked(store, "r") == {"destination": "relayed"}
    await mailer.approve("r", run.waiting[0].id, by="Ada")
    assert (await mailer.resume("r")).status == "completed"


async def test_the_question_says_that_no_person_wrote_it() -> None:
    store = MemoryJournal()
    await agent(MAIL, "done", store=store).run(Task(WORDS, author="model"), run_id="r")
    records, _ = await store.read_recorded("r", 0, 100)
    (question,) = questions_of(tale_of(records), {})
    told = "\n".join(line.text for line in question.lines)
    assert "passed on by a model" in told or "no person wrote" in told, told


@pytest.mark.parametrize(("author", "status"), [("person", "completed"), ("model", "paused")])
async def test_names_in_it_anchor_no_records(author: Author, status: str) -> None:
    store = MemoryJournal()
    words = Task("Send a mail to Bob Lee that says hello.", author=author)
    run = await agent(LOOK, MAIL, "done", store=store).run(words, run_id="r")
    assert run.status == status
    assert await asked(store, "r") == ({} if status == "completed" else {"destination": "untrusted"})


@pytest.mark.parametrize("author", OTHERS)
async def test_reads_go_on_without_a_question(author: Author) -> None:
    run = await agent(calls(("show_note", {"name": "shop"})), "milk").run(Task("Read the note shop.", author=author))
    assert (run.status, run.answer) == ("completed", "milk")


async def test_an_effect_that_it_does_not_ask_for_is_refused() -> None:
    store = MemoryJournal()
    await agent(MAIL, "done", store=store).run(Task("Read the note shop.", author="model"), run_id="r")
    assert [one.decision.kind for one in await events_of(store, "r") if isinstance(one, CallJudged)] == ["deny"]


async def test_what_a_person_adds_vouches_and_the_task_still_does_not() -> None:
    store = MemoryJournal()
    for said, kept in (("Bob is meant: bob@example.org.", {}), ("Be friendly.", {"destination": "relayed"})):
        run_id = "named" if not kept else "other"
        wait = calls(("show_note", {"name": "shop"}))
        noted = agent(wait, MAIL, "done", store=store)
        await noted.start(Task(WORDS, author="model"), run_id=run_id)
        await noted.note(run_id, said, by="Ada")
        await noted.resume(run_id)
        assert await asked(store, run_id) == kept


async def test_an_agent_that_it_has_asked_knows_no_more() -> None:
    store = MemoryJournal()
    inner = agent(MAIL, "sent", store=store).as_tool("clerk", "Sends mails.")
    outer = agent(calls(("clerk", {"task": WORDS})), "done", store=store, more=(inner,))
    run = await outer.run(Task(WORDS, author="model"), run_id="r")
    assert run.status == "paused"
    (waiting,) = run.waiting
    assert "/" in waiting.id
    run = await outer.run(Task(WORDS), run_id="s")
    assert run.status == "completed"


async def test_in_a_conversation_only_a_persons_turns_vouch() -> None:
    store = MemoryJournal()
    first = agent("hello", store=store)
    run = await first.run(Task("Hello.", author="person"), run_id="a")
    later = await agent("hello", MAIL, "done", store=store).run(Task(WORDS, author="model"), history=run, run_id="b")
    assert later.status == "paused"
    assert await asked(store, "b") == {"destination": "relayed"}
