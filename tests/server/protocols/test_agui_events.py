"""Runs of every kind as events of AG-UI: each is valid, and they come in the order that its client asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("ag_ui", reason="needs the extra agui")

from ag_ui.core import AssistantMessage, FunctionCall, ToolCall, ToolMessage
from sequence import Client, written
from server_agents import agents

from span_runs import GOLDEN, MAKES, golden
from surefoot import MemoryJournal
from surefoot.core.state.state import State
from surefoot.server.protocols.agui_events import Frames
from surefoot.telling.state import questions_of
from surefoot.telling.tale import tale_of
from surefoot.types.outcomes import Completed
from surefoot.types.ports import Recorded

Json = Any
RECORDS: Mapping[str, Sequence[Recorded]] = {path.stem: golden(path) for path in GOLDEN}
NAMES = [*RECORDS, *MAKES]


@pytest.fixture(scope="module")
def runs() -> Mapping[str, Sequence[Recorded]]:
    async def record() -> dict[str, Sequence[Recorded]]:
        found = dict(RECORDS)
        for name, make in MAKES.items():
            store = MemoryJournal()
            await make("r", store)
            found[name], _ = await store.read_recorded("r")
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUREFOOT_TRAITS_FILE", "")
        return asyncio.run(record())


def frames_of(has: Sequence[Any] = ()) -> Frames:
    return Frames("thread", "run", "r", has)


def over(frames: Frames) -> list[Json]:
    """How the stream of a run ends that is left as it is."""
    asks = questions_of(frames.tale)
    return written(frames.end() if frames.tale.state.ending is not None or not asks else frames.ask(asks))


def told(frames: Frames, records: Sequence[Recorded], piece: int) -> list[Json]:
    stream = written(frames.begin())
    for at in range(0, len(records), piece):
        stream += written(frames.add(records[at : at + piece]))
    return [*stream, *over(frames)]


def content(stream: Sequence[Json]) -> list[Json]:
    return [one for one in stream if not one["type"].startswith("STATE")]


def calls_of(state: State) -> set[str]:
    return {f"r:{call.id}" for turn in (*state.done, *([state.turn] if state.turn else [])) for call in turn.calls}


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_told_by_the_rules(runs: Mapping[str, Sequence[Recorded]], name: str) -> None:
    records = runs[name]
    tale = tale_of(records)
    streams = [told(frames_of(), records, piece) for piece in (1, 7, len(records))]
    clients = [Client().see(stream).done() for stream in streams]
    assert content(streams[0]) == content(streams[1]) == content(streams[2])
    assert clients[0].state == clients[1].state == clients[2].state
    one, ending = clients[0], tale.state.ending
    assert one.results.keys() <= one.calls.keys()
    if isinstance(ending, Completed):
        assert one.last["result"]["answer"].strip() == ending.answer.strip()
        assert not ending.answer.strip() or any(ending.answer.strip() in text for text in one.texts.values())
    if tale.state.planning is None:
        judged = {f"r:{event.call_id}" for event in (r.event for r in records) if event.type == "CallJudged"}
        assert judged & calls_of(tale.state) <= one.calls.keys()
        assert not [c for c in one.custom if c["name"] != "surefoot.verdict"]


def test_there_are_enough_of_every_kind(runs: Mapping[str, Sequence[Recorded]]) -> None:
    assert len(runs) >= 30
    kinds = {one["type"] for records in runs.values() for one in told(frames_of(), records, 7)}
    assert kinds >= {
        "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "STEP_STARTED", "STEP_FINISHED", "TEXT_MESSAGE_CONTENT",
        "TOOL_CALL_ARGS", "TOOL_CALL_RESULT", "STATE_SNAPSHOT", "STATE_DELTA", "CUSTOM", "REASONING_MESSAGE_CONTENT",
    }  # fmt: skip
    outcomes = {told(frames_of(), records, 7)[-1].get("outcome", {}).get("type") for records in runs.values()}
    assert outcomes == {"success", "interrupt", "cancelled", None}


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_that_goes_on_tells_the_rest_alone(runs: Mapping[str, Sequence[Recorded]], name: str) -> None:
    records = runs[name]
    whole = Client().see(told(frames_of(), records, 1)).done()
    for at in range(0, len(records), max(1, len(records) // 5)):
        first, frames = frames_of(), frames_of()
        pieces = (first.begin(), first.add(records[:at]), first.fail("", ""))
        before = Client().see(one for piece in pieces for one in written(piece))
        frames.add(records[:at])
        after = Client().see(told(frames, records[at:], 7)).done()
        assert {**before.calls, **after.calls} == whole.calls
        assert not before.calls.keys() & after.calls.keys()
        assert {**before.results, **after.results} == whole.results
        assert {**before.texts, **after.texts} == whole.texts
        assert not before.texts.keys() & after.texts.keys()


@pytest.mark.parametrize("name", NAMES)
def test_what_a_client_has_is_not_told_again(runs: Mapping[str, Sequence[Recorded]], name: str) -> None:
    records = runs[name]
    whole = Client().see(told(frames_of(), records, 1)).done()
    functions = {key: FunctionCall(name="x", arguments=given) for key, given in whole.calls.items()}
    called = [ToolCall(id=key, function=one) for key, one in functions.items()]
    has: list[Any] = [
        AssistantMessage(id="m", tool_calls=called),
        *(AssistantMessage(id=key, content=text) for key, text in whole.texts.items()),
        *(ToolMessage(id=f"{key}:result", tool_call_id=key, content=text) for key, text in whole.results.items()),
    ]
    again = Client().see(told(frames_of(has), records, 7)).done()
    assert (again.texts, again.calls, again.results) == ({}, {}, {})
    half = [AssistantMessage(id=key, content=text[: len(text) // 2]) for key, text in whole.texts.items()]
    rest = Client().see(told(frames_of(half), records, 7)).done()
    assert {key: text[len(text) // 2 :] for key, text in whole.texts.items()} == rest.texts


def test_what_is_said_becomes_the_message_of_the_reply(runs: Mapping[str, Sequence[Recorded]]) -> None:
    records = runs["native calls"]
    at = max(n for n, one in enumerate(records) if one.event.type == "ModelReplied")
    words = Client().see(told(frames_of(), records, 1)).texts
    (name,) = [key for key, text in words.items() if text == "171"]
    frames = frames_of()
    stream = written([*frames.begin(), *frames.add(records[:at])])
    stream += written(frames.hear([{"type": "reasoning", "text": "I add"}, {"type": "text", "text": "1"}]))
    stream += written(frames.hear([{"type": "text", "text": "7"}, {"type": "progress", "call_id": "1.0", "text": "x"}]))
    client = Client().see([*stream, *written(frames.add(records[at:])), *over(frames)]).done()
    assert client.texts == {**words, name: "171", f"{name}:reasoning": "I add"}
    assert client.custom[-1]["name"] == "surefoot.progress"


def test_a_reply_that_was_begun_anew_is_a_message_of_its_own(runs: Mapping[str, Sequence[Recorded]]) -> None:
    records = runs["native calls"]
    at = max(n for n, one in enumerate(records) if one.event.type == "ModelReplied")
    frames = frames_of()
    stream = written([*frames.begin(), *frames.add(records[:at]), *frames.hear([{"type": "text", "text": "Perha"}])])
    stream += written(frames.hear([{"type": "reset", "reason": "cut off"}, {"type": "text", "text": "17"}]))
    client = Client().see([*stream, *written(frames.add(records[at:])), *over(frames)]).done()
    assert sorted(client.texts.values())[-2:] == ["171", "Perha"]
    assert [one["value"]["reason"] for one in client.custom if one["name"] == "surefoot.reset"] == ["cut off"]


def test_words_that_were_shown_and_are_no_answer_are_taken_back(runs: Mapping[str, Sequence[Recorded]]) -> None:
    """The reader has slept through the reset, and finds the record."""
    records = runs["native calls"]
    at = max(n for n, one in enumerate(records) if one.event.type == "ModelReplied")
    frames = frames_of()
    stream = written([*frames.begin(), *frames.add(records[:at])])
    stream += written(frames.hear([{"type": "text", "text": "I added them.\nFinal Answer: 17"}]))
    client = Client().see([*stream, *written(frames.add(records[at:])), *over(frames)]).done()
    assert sorted(client.texts.values())[-2:] == ["171", "I added them.\nFinal Answer: 17"]
    assert [one["name"] for one in client.custom].count("surefoot.reset") == 1


def test_a_question_says_what_an_answer_has_to_be() -> None:
    async def record() -> Sequence[Recorded]:
        store = MemoryJournal()
        mailer: Any = agents()["mailer"]
        await replace(mailer, journal=store).run("send a mail to bob@example.org", run_id="r")
        return (await store.read_recorded("r"))[0]

    records = asyncio.run(record())
    (ask,) = Client().see(told(frames_of(), records, 7)).done().last["outcome"]["interrupts"]
    assert ask["id"] == f"r:{len(records)}:1.0"
    assert (ask["toolCallId"], ask["reason"]) == ("r:1.0", "approval")
    assert "bob@example.org" in ask["message"]
    assert ask["responseSchema"]["properties"]["digest"] == {"const": ask["metadata"]["digest"]}
    assert ask["responseSchema"]["required"] == ["decision", "digest"]
    assert ask["expiresAt"].endswith("+00:00")
