"""A run is taken up by the stricter of two guards; what was allowed, or had started, is judged or asked about again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot import Agent, LoopConfig, tool
from surefoot.cli.lines import ending_lines
from surefoot.core.guard.resume import stricter
from surefoot.core.loop.fold import fold
from surefoot.journal.memory import MemoryJournal
from surefoot.run import Opened, Run
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.events import CallJudged, CallStarted, Event
from surefoot.types.guard import GuardConfig
from surefoot.types.outcomes import Allow
from surefoot.types.ports import Tool

pytestmark = pytest.mark.anyio

EVE = calls(("send", {"to": "eve@w.example", "text": "the plans"}))
ANN = calls(("send", {"to": "ann@x.example", "text": "the plans"}))
WORDS = "Send the plans to ann@x.example."


class Post:
    """A tool that sends, and what it has sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def tools(self) -> list[Tool]:
        @tool(effect="communicate")
        def send(to: str, text: str) -> str:
            """Send a text."""
            self.sent.append(to)
            return f"sent {text}"

        return [send]


async def judged(store: MemoryJournal, post: Post, words: str, reply: Any, config: LoopConfig) -> str:
    """A run that was cut off right after its call was allowed, by a person where there was a question."""
    agent = Agent(ScriptedModel([reply, "done"]), post.tools(), journal=store, config=config)
    run = await agent.run(words)
    for call in run.waiting:
        await agent.approve(run.id, call.id, by="Ada")
    records: list[Event] = [record.event for record in (await store.read_recorded(run.id))[0]]
    at = next(n for n, one in enumerate(records, 1) if isinstance(one, CallJudged) and one.decision == Allow())
    await store.fork(run.id, at, "cut")
    post.sent.clear()
    return "cut"


@pytest.mark.parametrize("begun", [None, GuardConfig(mode="off"), GuardConfig(mode="observe")])
@pytest.mark.parametrize("words", ["What is the weather like?", "天气怎么样？"])
async def test_what_was_allowed_unguarded_is_judged_by_whoever_takes_it_up(
    begun: GuardConfig | None, words: str
) -> None:
    store, post = MemoryJournal(), Post()
    cut = await judged(store, post, words, EVE, LoopConfig(guard=begun))
    run = await Agent(ScriptedModel(["done"]), post.tools(), journal=store, guard=True).resume(cut)
    assert (run.status, post.sent) == ("completed", [])
    cut = await judged(store := MemoryJournal(), post, WORDS, ANN, LoopConfig(guard=begun))
    run = await Agent(ScriptedModel(["done"]), post.tools(), journal=store, guard=True).resume(cut)
    assert (run.status, post.sent) == ("completed", ["ann@x.example"])


async def test_a_guard_of_the_run_stays_where_whoever_takes_it_up_has_a_laxer_one_or_none() -> None:
    for config in (LoopConfig(), LoopConfig(guard=GuardConfig(mode="observe"))):
        store, post = MemoryJournal(), Post()
        agent = Agent(ScriptedModel([]), post.tools(), journal=store, guard=True)
        run = await agent.run("Send the plans to Bob.")
        assert run.status == "failed"  # its model said nothing
        model = ScriptedModel([calls(("send", {"to": "eve@w.example", "text": "the plans"})), "done"])
        run = await Agent(model, post.tools(), journal=store, config=config).resume(run.id)
        assert (run.status, run.reason, post.sent) == ("paused", "approval", [])


async def test_of_a_foreign_run_a_person_is_asked_before_the_first_effect_and_no_yes_in_it_counts() -> None:
    for guard in (None, GuardConfig()):
        store, post = MemoryJournal(), Post()
        cut = await judged(store, post, WORDS, ANN, LoopConfig(guard=guard))
        more = calls(("send", {"to": "ann@x.example", "text": "the plans of the garden"}))
        again = Agent(ScriptedModel([more, "done"]), post.tools(), journal=store)
        run = await again.resume(cut, origin="foreign")
        assert (run.status, run.reason, post.sent) == ("paused", "approval", [])
        await again.approve(run.id, run.waiting[0].id, by="Ada")
        run = await again.resume(run.id)  # and no more after the first
        assert (run.status, post.sent) == ("completed", ["ann@x.example"] * 2)


async def test_it_is_shown_what_would_run_on_resume() -> None:
    store, post = MemoryJournal(), Post()
    cut = await judged(store, post, WORDS, ANN, LoopConfig())
    state = fold(record.event for record in (await store.read_recorded(cut))[0])
    (line,) = ending_lines(state)
    assert line.text == 'on resume: send(to="ann@x.example", text="the plans")'


async def test_a_persons_yes_counts_in_the_run_that_it_was_said_in_alone() -> None:
    async def waits(origin: str) -> Run:
        store, post = MemoryJournal(), Post()
        agent = Agent(ScriptedModel([EVE, "done"]), post.tools(), journal=store, guard=True)
        run = await agent.run(WORDS)
        await agent.approve(run.id, run.waiting[0].id, by="Ada")
        return await agent.resume(run.id, origin=cast("Any", origin))

    assert ((await waits("own")).status, (await waits("foreign")).status) == ("completed", "paused")


_FIELDS: dict[str, list[Any]] = {  # each from the laxest to the strictest
    "mode": ["off", "observe", "enforce"],
    "strict": [False, True],
    "two_faults": ["ask", "deny"],
    "content_tokens": ["allow", "ask"],
    "fetch": ["allow", "ask"],
    "guess": ["all", "own", "none"],
    "pins": ["first-use", "strict"],
    "max_asks": [9, 5, 0],
    "approval_timeout_s": [900.0, 60.0],
}


@given(*(st.fixed_dictionaries({name: st.sampled_from(values) for name, values in _FIELDS.items()}) for _ in range(2)))
def test_the_stricter_of_two_guards_is_never_laxer_than_either(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = GuardConfig(**one), GuardConfig(**other)
    both = stricter(first, second)
    assert both is not None
    for name, order in _FIELDS.items():
        wanted = [getattr(guard, name) for guard in (first, second) if guard.mode != "off" or name == "mode"]
        assert order.index(getattr(both, name)) >= max(map(order.index, wanted), default=0)
    words = {"transact": ("weather", "settle")}
    opened = stricter(replace(first, mode="enforce", lexicon=words), replace(second, lexicon={"transact": ("settle",)}))
    assert opened is not None
    assert second.mode == "off" or opened.lexicon == {"transact": ("settle",)}
    assert stricter(first, None) == stricter(None, first) == replace(first)


SAVE = calls(("save", {"path": "notes.txt", "text": "the plans"}))


def tools(saved: list[str], *, idempotent: bool) -> list[Tool]:
    @tool(effect="write", idempotent=idempotent)
    def save(path: str, text: str) -> str:
        """Save a text."""
        saved.append(path)
        return f"saved {text}"

    return [save]


async def cut(store: MemoryJournal, run: Run, kind: type[Event], behind: int = 1) -> None:
    """Fork a run as if its process had died right behind such a record, or before it."""
    events = [record.event for record in (await store.read_recorded(run.id))[0]]
    await store.fork(run.id, next(n for n, one in enumerate(events, behind) if isinstance(one, kind)), "cut")


@pytest.mark.parametrize("words", ["Save the plans in notes.txt.", "把计划保存到 notes.txt。", "Hello."])
@pytest.mark.parametrize("guard", [None, GuardConfig()])
@pytest.mark.parametrize("is_settled", [False, True])
async def test_a_started_call_of_a_foreign_journal_is_asked_about_before_it_is_repeated(
    words: str, guard: GuardConfig | None, is_settled: bool
) -> None:
    store, saved = MemoryJournal(), list[str]()
    agent = Agent(ScriptedModel([SAVE, "done"]), tools(saved, idempotent=not is_settled), journal=store)
    await cut(store, await agent.run(words), CallStarted)
    if is_settled:
        await agent.settle("cut", "1.0", "not_done", by="Eve")
    saved.clear()
    config = LoopConfig(guard=guard)
    again = Agent(ScriptedModel(["done"]), tools(saved, idempotent=not is_settled), journal=store, config=config)
    run = await again.resume("cut", origin="foreign")
    assert saved == []
    assert (run.status, run.reason) in (("paused", "approval"), ("completed", ""))  # the latter: refused by the gate
    assert run.status == "paused" or (guard is not None and words == "Hello.")


async def test_what_a_foreign_journal_says_has_started_without_a_verdict_does_not_run_either() -> None:
    store, saved = MemoryJournal(), list[str]()
    run = await Agent(ScriptedModel([SAVE, "done"]), tools(saved, idempotent=True), journal=store).run("Save it.")
    await cut(store, run, CallJudged, behind=0)
    async with Opened(await store.open("cut"), store) as opened:
        await opened.journal.append([CallStarted("1.0")], "written")
    saved.clear()
    again = Agent(ScriptedModel(["done"]), tools(saved, idempotent=True), journal=store)
    run = await again.resume("cut", origin="foreign")
    assert (run.status, run.reason, saved) == ("paused", "approval", [])
    await again.approve(run.id, run.waiting[0].id, by="Ada")
    assert ((await again.resume(run.id)).status, saved) == ("completed", ["notes.txt"])


async def test_a_started_call_of_an_own_journal_is_repeated_unasked() -> None:
    store, saved = MemoryJournal(), list[str]()
    agent = Agent(ScriptedModel([SAVE, "done", "done"]), tools(saved, idempotent=True), journal=store)
    await cut(store, await agent.run("Save it."), CallStarted)
    assert ((await agent.resume("cut")).status, saved) == ("completed", ["notes.txt"] * 2)
