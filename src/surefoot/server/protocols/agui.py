"""AG-UI: a `RunAgentInput` comes in, and the events of that protocol go out. Source: spec/serving.md, section 7.2.

`threadId` and `runId` name one run of an agent within a tenant, so that whoever sends the same two joins it. What the
client gives beside the last words of the user is material. The id of an interrupt is `RUN:PLACE:CALL`: the stream ended
at that place, and the one that answers goes on from there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Literal

from ag_ui.core import DocumentPart, ImagePart, Message, ResumeEntry, RunAgentInput, TextPart, UserMessage
from ag_ui.encoder import EventEncoder
from pydantic import Field, ValidationError

from surefoot.agent import Agent
from surefoot.server.answers import Problem, dumped
from surefoot.server.api import Asked, Exact, checked, invalid
from surefoot.server.follow import LOOK_S, SIGNAL_S, until
from surefoot.server.protocols.agui_events import Frames, Told
from surefoot.server.reads import check_reads, run_of
from surefoot.server.say import wait_until_heard
from surefoot.server.shapes import Given, Long, RunAgent, Short
from surefoot.server.signals import Heard as Place
from surefoot.server.site import Site
from surefoot.server.sse import PING, PING_S, EventStream, Write
from surefoot.server.starts import agent_of, once
from surefoot.server.tales import PIECE
from surefoot.telling.state import questions_of
from surefoot.types.attachments import Attachment
from surefoot.types.plan import TaskContext
from surefoot.types.ports import RunSummary
from surefoot.types.task import Task
from surefoot.types.words import Approve, Refuse, Settle, Sign, Word

THREAD = "agui.thread"
"""The label that has the thread of a run."""
_TOLD_ROLES = ("developer", "system", "user", "assistant", "tool")


class Answer(Exact):
    """The payload of a `ResumeEntry`: what is decided about exactly what was shown, a call or the version of a plan."""

    decision: Literal["approve", "deny", "done", "not_done", "abandoned", "approved", "rejected", "revise"]
    digest: Short = ""
    version: Annotated[int, Field(ge=0)] = 0
    reason: Long = ""
    result: Long = ""


async def serve(asked: Asked[None, RunAgent]) -> EventStream:
    """Start a run, join it, or answer what it asks: its events, until it ends or asks."""
    agent = agent_of(asked, asked.part("agent"))
    try:
        given = RunAgentInput.model_validate(asked.body.model_dump(by_alias=True))
    except ValidationError as error:
        raise invalid(error) from error
    if given.tools:
        raise _wrong("tools", "a run uses only the tools of its agent; send none")
    with asked.site.pace.stream(asked.token.name):  # 429 before anything is begun
        run, since = await _answered(asked, given) if given.resume else (await _run(asked, given, agent), 0)
    speak = partial(_tell, asked.site, run, since, given)
    return EventStream(speak, asked.site.pace.stream(asked.token.name), {"Location": f"/v1/runs/{run.run_id}"})


async def _run(asked: Asked[None, RunAgent], given: RunAgentInput, agent: Agent) -> RunSummary:
    token, name = asked.token, asked.part("agent")
    job = ["agui", token.tenant, name, given.thread_id]

    async def begin(run_id: str, labels: Mapping[str, str], request: str) -> object:
        if "start" not in token.rights:
            raise Problem("forbidden", "starting a run needs the right `start`")
        task = replace(_task(given, agent), job=sha256(dumped(job)).hexdigest()[:24], author=token.speaks_as)
        if (size := len(task.text.encode())) > (most := asked.site.limits.task):
            raise Problem("too_large", f"the task has {size:,} bytes; it may have {most:,}")
        return await agent.start(task, run_id=run_id, labels=labels, request=request)

    same = RunAgent.model_validate({"threadId": given.thread_id, "runId": given.run_id, "messages": ()})
    keyed = replace(asked, body=same, key=dumped([*job, given.run_id]).decode())
    run, is_joined = await once(keyed, (f"agui {name}", 0), {THREAD: given.thread_id}, begin)
    if is_joined:
        check_reads(asked, run)
    return run


async def _answered(asked: Asked[None, RunAgent], given: RunAgentInput) -> tuple[RunSummary, int]:
    """The run that was asked about these interrupts, once it has heard the answers, and where the stream goes on."""
    if "approve" not in asked.token.rights:
        raise Problem("forbidden", "answering needs the right `approve`")
    by, entries = f"{asked.token.name} via agui", given.resume or []
    named = [one.interrupt_id.split(":", 2) for one in entries]
    is_named = all(run_id and len(rest) == 2 and rest[0].isdecimal() for run_id, *rest in named)  # noqa: PLR2004  # and call
    if len({run_id for run_id, *_ in named}) != 1 or not is_named:
        raise _wrong("resume", "answer the interrupts of one run by their ids")
    run = await run_of(asked, named[0][0])
    if run.agent != asked.part("agent"):
        raise Problem("no_such_run", "this agent has no such run")
    words = [_word(call_id, entry, by) for (*_, call_id), entry in zip(named, entries, strict=True)]
    for entry, word in zip(entries, words, strict=True):
        key = dumped(["agui", given.thread_id, given.run_id, entry.interrupt_id]).decode()
        await wait_until_heard(replace(asked, key=key), run, word)
    return run, min(run.events, *(int(place) for _, place, _ in named))


def _word(call_id: str, entry: ResumeEntry, by: str) -> Word:
    if entry.status == "cancelled":
        return Refuse(((call_id, ""),), by, "the question was closed without an answer")
    answer = checked(Answer, entry.payload)
    match answer.decision:
        case "approve" | "deny" if not answer.digest:
            raise _wrong("resume", "send back the digest of what was shown")
        case "approve":
            return Approve(((call_id, answer.digest),), by, answer.reason)
        case "deny":
            return Refuse(((call_id, answer.digest),), by, answer.reason)
        case "done" | "not_done" | "abandoned" as outcome:
            return Settle(call_id, outcome, by, answer.result, answer.digest)
        case verdict:
            return Sign(answer.version, verdict, by, answer.reason)


def _task(given: RunAgentInput, agent: Agent) -> Task:
    """The last words of the user; whatever else the client sends is material, and nobody's word."""
    at = max((n for n, one in enumerate(given.messages) if isinstance(one, UserMessage)), default=-1)
    words = _text(given.messages[at]) if at >= 0 else ""
    if not words.strip():
        raise _wrong("messages", "the last user message is the task, and it has no words")
    history = [
        f"{one.role}: {text}"
        for n, one in enumerate(given.messages)
        if n != at and one.role in _TOLD_ROLES and (text := _text(one))
    ]
    material = [*_files(given.messages[at]), *(Attachment(one.description, one.value) for one in given.context or ())]
    if history and agent.reasoner != "plan":  # which alone shows its model the context of a task
        material.insert(0, Attachment("earlier messages", "\n\n".join(history)))
    return Task(words, tuple(material), context=TaskContext(tuple(history)))


def _text(message: Message) -> str:
    content: Any = message.content  # Any: as each kind of message has it
    if isinstance(content, str) or not content:
        return content or ""
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


def _files(message: Message) -> list[Attachment]:
    """The files of a message. Raises `Problem` for those that are only referred to."""
    content: Sequence[Any] = message.content if isinstance(message.content, list) else ()  # Any: parts of a message
    files: list[Attachment] = []
    for part in content:
        if isinstance(part, TextPart):
            continue
        if not isinstance(part, ImagePart | DocumentPart) or part.source.type != "data":
            raise _wrong("messages", "send images and documents as data, within the message")
        name = f"{part.type} {len(files) + 1}"
        files.append(Given(name=name, data=part.source.value, media_type=part.source.mime_type).attachment())
    return files


def _wrong(path: str, told: str) -> Problem:
    return Problem("invalid", f"{path}: {told}", faults=[{"path": path, "message": told}])


async def _tell(site: Site, run: RunSummary, since: int, given: RunAgentInput, write: Write) -> None:
    """Write the stream of a run. Whoever closes it leaves the run as it is."""
    encode, wrote_at = EventEncoder().encode, time.monotonic()
    frames = Frames(given.thread_id, given.run_id, run.run_id, given.messages)
    async with aclosing(_events(site, run, since, frames)) as all_:
        async for told in all_:
            if told or time.monotonic() >= wrote_at + PING_S:
                await write("".join(map(encode, told)).encode() or PING)
                wrote_at = time.monotonic()


async def _events(site: Site, run: RunSummary, since: int, frames: Frames) -> AsyncGenerator[Told]:
    """What there is to tell of a run from record `since` on, until it ends, asks, or this server leaves."""
    wake, spoken, place, end, pause_s = asyncio.Event(), Place(), 0, run.events, LOOK_S
    with site.reader(wake), site.live.listen(run.run_id, wake) as live:
        async with site.tails.of(run.run_id, run.events, wake) as tail:
            while place < since:
                records, _ = await site.store.read_recorded(run.run_id, place, min(PIECE, since - place))
                frames.add(records)
                place = place + len(records) if records else since
                await asyncio.sleep(0)
            yield frames.begin()
            while not site.leaving.is_set():
                wake.clear()
                if place < max(tail.next, end):
                    records, wrong = await site.store.read_recorded(run.run_id, place, PIECE)
                    if not records:
                        yield frames.fail("journal_damaged", wrong or "the run is gone")
                        return
                    yield frames.add(records)
                    place, pause_s = place + len(records), LOOK_S
                    await asyncio.sleep(0)
                    continue
                if tail.is_over:
                    yield frames.fail("journal_damaged", tail.wrong) if tail.wrong else frames.end()
                    return
                now = await site.store.summary(run.run_id)
                if (end := now.events) > place:
                    continue
                if told := frames.hear(live.signals(spoken)):
                    yield told
                    await asyncio.sleep(SIGNAL_S)
                    continue
                if now.status == "set_aside":
                    yield frames.fail("set_aside", "the run has made its drivers fail; resume it to try again")
                    return
                tale = frames.tale
                asks = questions_of(tale, await site.library.inner(tale)) if now.status == "paused" else ()
                if asks:
                    yield frames.ask(asks)
                    return
                yield []
                await until(wake, pause_s)
                pause_s = min(2 * pause_s, PING_S)
            yield frames.fail("draining", "shutting down; the run continues, and the same runId joins it again")
