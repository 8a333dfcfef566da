"""A streamed reply: what its watcher has been shown in the end is its visible answer, whatever came on the way."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot import Agent, Run, tool
from surefoot.core.parse.marks import MARKERS
from surefoot.core.parse.stream import END_TOKENS, TURN_TOKENS
from surefoot.core.text import at
from surefoot.core.view.shape import MAX_BRANCHES
from surefoot.testing.models import FunctionModel, ScriptedModel
from surefoot.types.events import Event, ModelReplied
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, Reset, Signal, TextDelta

CALL = '{"name": "get_score", "arguments": {"name": "Alice"}}'


@tool(effect="read")
async def get_score(name: str) -> int:
    """Give the score of a student."""
    return len(name)


class Chunks(FunctionModel):
    """Replies in chunks, the last one again and again."""

    def __init__(self, replies: Sequence[Sequence[str]], modes: tuple[CallMode, ...] = ("native",)) -> None:
        self._left = list(replies)
        super().__init__(lambda _: "", modes=modes)

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:  # noqa: ARG002  # as declared
        """The next reply."""
        chunks = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        for chunk in chunks:
            if emit is not None:
                emit(TextDelta(chunk))
        return ModelMessage("assistant", "".join(chunks))


@dataclass
class Screen:
    """What stands on it of each reply, and how often it was wiped."""

    replies: list[str] = field(default_factory=list[str])
    now: str = ""
    resets: int = 0

    def watch(self, item: Event | Signal) -> None:
        match item:
            case TextDelta(text):
                self.now += text
            case Reset():
                self.now, self.resets = "", self.resets + 1
            case ModelReplied():
                self.replies.append(self.now)
                self.now = ""
            case _:
                pass


def play(*replies: Sequence[str], modes: tuple[CallMode, ...] = ("native",)) -> tuple[Run, Screen]:
    screen = Screen()
    agent = Agent(Chunks(replies, modes), tools=[get_score])
    return asyncio.run(agent.run("What did Alice score?", watch=screen.watch, stream=True)), screen


@cases("runtime/think")
def test_a_call_in_words_is_not_shown(reply: str, words: str) -> None:
    for chunks in ([reply], list(reply)):
        run, screen = play(chunks, ["It is 5."])
        assert (run.answer, screen.replies, screen.resets) == ("It is 5.", [words, "It is 5."], 0)


@cases("runtime/think")
def test_an_answer_is_shown_whole(reply: str, answer: str, resets: int) -> None:
    run, screen = play(list(reply))
    assert (run.status, run.answer) == ("completed", answer or reply)
    assert (screen.replies, screen.resets) == ([run.answer], resets)


def test_a_reply_that_is_asked_about_does_not_stay() -> None:
    asked = f"I was thinking about it for a while {'and on ' * 20}: I will call get_score(name='Alice') now."
    _, screen = play([asked], ["It is 5."])
    assert (screen.replies, screen.resets) == (["", "It is 5."], 1)


SNIPPETS = st.sampled_from([
    *MARKERS, *END_TOKENS, *TURN_TOKENS, "<think>", "</think>", "<reasoning x>", "<|message|>", "<|end|>", "<|call|>",
    "assistant", "analysis", "final", " to=functions.f", "<function_call_result>", "</tool_call>", "{", "[", "`", "<",
    "```\n", "~~~\n", "\n", "\n\n", " ", "**", "- ", "> ", ":", "1", "中", "word", "Action: ", "Action: get_score",
    "Action Input: ", "Thought: ", "Final Answer: ", "Answer: ", "Question: ", "Observation: ", "Tool: get_score\n",
    "Arguments: ", CALL, 'get_score(name="Alice")', "A sentence that is shown while it comes, as it is long. ",
])  # fmt: skip


@given(st.lists(SNIPPETS, max_size=10).map("".join), st.data(), st.sampled_from([("native",), ("text",)]))
def test_in_the_end_the_answer_is_shown(text: str, data: st.DataObject, modes: tuple[CallMode, ...]) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    run, screen = play(chunks, ["Final Answer: It is 5."], modes=modes)
    assert run.status == "completed"
    assert screen.replies[-1] == run.answer


def test_out_of_many_tools_only_those_names_are_offered_that_the_step_may_take() -> None:
    tools = [tool(effect="read", name=f"look_{number}")(lambda: "It rains.") for number in range(MAX_BRANCHES + 1)]
    halves = ['{"thought": "Look.", "action": "look_0"', '{"thought": "Now known: rain.", "action": "Final Answer"']
    steps = ("}", ', "action_input": {}}'), ("}", ', "action_input": "It rains."}')
    replies = [f"{half}{rest}" for half, rests in zip(halves, steps, strict=True) for rest in rests]
    model = ScriptedModel(replies, modes=("schema",), traits={"early_answers": "yes", "repeats": "yes"})
    assert Agent(model, tools).run_sync("What is the weather?").answer == "It rains."
    first, _, second, _ = [at(one.schema, "properties") for one in model.requests]
    names = [f"look_{number}" for number in range(MAX_BRANCHES + 1)]
    assert at(first, "action", "enum") == names
    assert at(second, "action", "enum") == [*names, "Final Answer"]
    assert "Now known" in str(at(second, "thought"))
    assert "Now known" not in str(at(first, "thought"))
