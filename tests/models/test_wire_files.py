"""Pictures, PDF and sound on every wire, from a task and from a tool's result, and what a refusal of them teaches."""

from base64 import b64encode
from pathlib import Path

import pytest
from fake_endpoint import Json, answer, endpoint, refusal
from wires import WIRES, words

from surefoot import Agent, Attachment, LoopConfig, MemoryJournal, UsageError, tool
from surefoot.models.http_model import HttpModel
from surefoot.models.json_edge import items, mapping
from surefoot.runtime.cast import FILE_VARIABLE
from surefoot.types.config import Budget

pytestmark = pytest.mark.anyio
PNG = Attachment.from_bytes(b"\x89PNG\r\n\x1a\n-", "cat.png")
PAPER = Attachment.from_bytes(b"%PDF-1.4", "paper.pdf")
SOUND = Attachment.from_bytes(b"RIFF\0\0\0\0WAVE", "bell.wav")
CHAT, ANTHROPIC, RESPONSES = "openai_chat", "anthropic", "openai_responses"


def url(one: Attachment) -> str:
    return f"data:{one.media_type};base64,{b64encode(one.data).decode()}"


def held(one: Attachment) -> Json:
    return {"type": "base64", "media_type": one.media_type, "data": b64encode(one.data).decode()}


PARTS: dict[str, tuple[Json, Json]] = {
    CHAT: (
        {"type": "image_url", "image_url": {"url": url(PNG)}},
        {"type": "file", "file": {"filename": "paper.pdf", "file_data": url(PAPER)}},
    ),
    ANTHROPIC: ({"type": "image", "source": held(PNG)}, {"type": "document", "source": held(PAPER)}),
    RESPONSES: (
        {"type": "input_image", "image_url": url(PNG)},
        {"type": "input_file", "filename": "paper.pdf", "file_data": url(PAPER)},
    ),
}


@tool(effect="read")
def f(a: int) -> Attachment:
    """Look."""
    return PNG if a else PAPER


def agent_on(wire: str, base_url: str) -> Agent:
    model = HttpModel(WIRES[wire].wire, "p:m", "m", base_url, key="sk-0123456789")
    return Agent(model, tools=[f], journal=MemoryJournal(), config=LoopConfig(budget=Budget(max_steps=4)))


def said(body: Json) -> list[Json]:
    return [mapping(one) for one in items(body.get("messages") or body.get("input"))]


@pytest.mark.parametrize("wire", WIRES)
async def test_the_files_of_a_task_and_of_a_result_are_in_the_body(wire: str) -> None:
    async with endpoint(answer(WIRES[wire].whole), answer(words(wire, "done"))) as fake:
        agent = agent_on(wire, fake.base_url)
        run = await agent.run("Compare them.", attachments=[PNG, PAPER])
        await agent.aclose()
    assert run.status == "completed"
    first, second = map(said, fake.bodies)
    user = items(next(one for one in first if one.get("role") == "user")["content"])
    assert all(part in user for part in PARTS[wire])
    result = second[-1] if wire != ANTHROPIC else mapping(items(second[-1]["content"])[0])
    assert PARTS[wire][0] in items(result.get("content") or result.get("output"))
    if wire == CHAT:  # results are texts there, and the picture follows them
        assert second[-2] == {"role": "tool", "tool_call_id": second[-2]["tool_call_id"], "content": PNG.line}
    assert second[: len(first)] == first or wire == ANTHROPIC  # whose mark for the cache moves on


async def test_sound_goes_to_those_whose_wire_has_it() -> None:
    async with endpoint(answer(words(CHAT, "done"))) as fake:
        agent = agent_on(CHAT, fake.base_url)
        await agent.run("What is it?", attachments=[SOUND])
        await agent.aclose()
        part = {"type": "input_audio", "input_audio": {"data": b64encode(SOUND.data).decode(), "format": "wav"}}
        assert part in items(said(fake.bodies[0])[-1]["content"])
        for wire in (ANTHROPIC, RESPONSES):
            with pytest.raises(UsageError, match=r"p:m does not take bell\.wav \(audio/wav\)"):
                await agent_on(wire, fake.base_url).run("What is it?", attachments=[SOUND])


REFUSALS = [
    "Invalid content type. image_url is only supported by certain models.",
    "messages[0].content must be a string",
    "unknown variant `image_url`, expected `text`",
    "image input is not supported - hint: you may need to provide the mmproj",
    "This model does not support image inputs",
]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("told", REFUSALS)
async def test_what_a_server_refuses_ends_the_run_and_stops_the_next_before_it_starts(
    wire: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "traits.json"))
    async with endpoint(refusal(400, told)) as fake:
        agent = agent_on(wire, fake.base_url)
        run = await agent.run("What is it?", attachments=[PNG])
        assert (run.status, run.requests) == ("failed", 0)
        assert run.detail == "p:m does not take cat.png (image/png): use a model that does, or leave the file out"
        with pytest.raises(UsageError, match=r"does not take cat\.png"):
            await agent.run("What is it?", attachments=[PNG])
        await agent.aclose()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_tools_picture_becomes_one_line_where_it_is_refused(wire: str) -> None:
    refused = refusal(400, "This model does not support image input")
    async with endpoint(answer(WIRES[wire].whole), refused, answer(words(wire, "done"))) as fake:
        agent = agent_on(wire, fake.base_url)
        run = await agent.run("Look.")
        await agent.aclose()
    assert run.status == "completed"
    assert b64encode(PNG.data).decode() in str(fake.bodies[1])
    assert b64encode(PNG.data).decode() not in str(fake.bodies[2])
    assert PNG.line in str(fake.bodies[2])


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "told",
    ["You uploaded an unsupported image. Please make sure your image is valid.", "image exceeds 5 MB maximum"],
)
async def test_one_broken_picture_says_nothing_of_the_model(wire: str, told: str) -> None:
    async with endpoint(refusal(400, told)) as fake:
        agent = agent_on(wire, fake.base_url)
        run = await agent.run("What is it?", attachments=[PNG])
        await agent.aclose()
    assert run.status == "failed"
    assert "does not take" not in run.detail
