"""Nonsense from models never breaks a run: each ends by itself, and every call id is answered once."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import events_of, shown_anew
from surefoot import Agent, Budget, LoopConfig, MemoryJournal, tool
from surefoot.testing.models import ScriptedModel
from surefoot.types.messages import CallMode, ModelMessage, NativeCall

pytestmark = pytest.mark.anyio


@tool(effect="read")
async def look(q: str, deep: bool = False) -> str:  # the model's argument
    """Look something up."""
    return f"about {q}{deep}"


@tool
async def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


PIECES = st.sampled_from(
    [
        "Thought: I look.\n", "Action: look\n", 'Action Input: {"q": "x"}\n', "Final Answer: 42", "Observation: no\n",
        '<tool_call>{"name": "look", "arguments": {"q": "a"}}</tool_call>', "<tool_call>", "</tool_call>",
        '<function_call>{"name": "send", "call_objective": "x", "args": {"to": "b"}}</function_call>',
        '[TOOL_CALLS][{"name": "look", "arguments": {}}]', "<think>", "</think>", "```json\n", "```\n", "{", "}", '"',
        '{"thought": "t", "action": "look", "action_input": {"q": "x"}}', "look(q='x')", "\x00", "\ud800",
        "思考：", "|",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=6).map("".join), st.text(max_size=80))
ARGUMENTS = st.one_of(
    st.sampled_from(['{"q": "x"}', '{"q": ', "", "null", "[1]", '{"q": 3, "deep": "true"}', '{"to": "me"}', "{" * 500]),
    st.text(max_size=20),
    st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), max_size=3),
)
NATIVE = st.builds(
    NativeCall,
    st.sampled_from(["", "a", "a", "b", "functions.look:0"]),
    st.sampled_from(["look", "send", "Look", "functions.look", "nothing", ""]),
    ARGUMENTS,
)
REPLIES = st.builds(
    ModelMessage,
    st.just("assistant"),
    TEXTS,
    st.lists(NATIVE, max_size=3).map(tuple),
    finish_reason=st.sampled_from(["stop", "length", "tool_calls", "content_filter", "unknown"]),
)


@pytest.mark.slow
@given(st.lists(REPLIES, min_size=3, max_size=9), st.sampled_from(["native", "schema", "text"]))
async def test_nonsense_from_a_model_ends_in_a_named_outcome(replies: list[ModelMessage], mode: CallMode) -> None:
    model = ScriptedModel(replies, traits={"json_schema": "yes"})
    store = MemoryJournal()
    agent = Agent(
        model, tools=[look, send], journal=store, call_mode=mode, config=LoopConfig(budget=Budget(max_steps=12))
    )
    run = await agent.run("go")
    assert run.status in ("completed", "completed_partial", "stopped", "failed")
    assert len(model.requests) <= 12
    for sent in model.requests:
        answered = [message.call_id for message in sent.messages if message.role == "tool"]
        asked = [call.id for message in sent.messages for call in message.calls]
        assert answered == asked
        assert len(set(asked)) == len(asked)
        orjson.dumps([message.content.encode("utf-8", "replace") != b"" for message in sent.messages])
    await events_of(store, run.id)


TAGS = st.sampled_from(
    [
        "<instruction>", "</instruction>", "<input>", "</input>", "look it up", "TASK_DONE", "\nTASK_DONE\n",
        "<deliverable>", "</deliverable>", "<final_output>42</final_output>", "<deep_thinking>", "</deep_thinking>",
        '<function_call>{"name": "look", "call_objective": "x", "args": {"q": "b"}}</function_call>',
        "<function_call_result>no</function_call_result>", '<actor_report trust="trusted">', "\n",
        '{"thought": "t", "next": "look", "input": {"q": "x"}}', '{"thought": "t", "next": "TASK_DONE"}',
        '{"thought": "t", "action": "Final Answer", "action_input": "42"}',
    ]
)  # fmt: skip
TAGGED = st.one_of(
    st.lists(TAGS, max_size=6).map("".join).map(lambda text: ModelMessage("assistant", text)),
    st.just(ModelMessage("assistant", "<instruction>look</instruction>")),
    REPLIES,
)
MODES: st.SearchStrategy[CallMode] = st.sampled_from(["native", "schema", "text"])


@pytest.mark.slow
@given(st.sampled_from(["mono", "dual"]), st.lists(TAGGED, min_size=4, max_size=40), MODES, st.booleans())
async def test_nonsense_from_a_thinker_and_an_actor_ends_in_a_named_outcome(
    reasoner: str, replies: list[ModelMessage], mode: CallMode, required: bool
) -> None:
    model = ScriptedModel(replies, modes=(mode, "text"), traits={"json_schema": "yes"})
    store = MemoryJournal()
    config = LoopConfig(budget=Budget(max_steps=None), max_rounds=4, deliverable="required" if required else "optional")
    agent = Agent(model, tools=[look, send], journal=store, reasoner=reasoner, config=config)
    run = await agent.run("go")
    assert run.status in ("completed", "completed_partial", "stopped", "failed")
    assert len(model.requests) <= 4 * (1 + 3 * 4) + 12, "rounds, their repeats, and the deliverable"
    shown = [told for _, told in shown_anew(await events_of(store, run.id))]
    assert shown == [request.messages for request in model.requests], "another process sees what this one saw"
