"""Models and chat completions as clients of OpenAI ask for them: a model is an agent, a completion is a run.

The last message is the task. Those before it are material and go into an attachment: whoever wrote the client may have
put anything into them. Calls stay inside the run, and nothing is said before it stands, since this protocol can take
nothing back. Source: spec/serving.md, section 7.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from re import compile as pattern
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field
from starlette.responses import Response
from typing_extensions import TypedDict

from surefoot.server.answers import Problem, answer, dumped
from surefoot.server.api import Asked, Exact
from surefoot.server.protocols.status import GOING, stood, words_of
from surefoot.server.shapes import Given
from surefoot.server.sse import PING, PING_S, EventStream, Write
from surefoot.server.starts import begin_run
from surefoot.telling.text import visible
from surefoot.types.attachments import Attachment
from surefoot.types.ports import RunSummary
from surefoot.types.task import Author, Task

_IMAGE = pattern(r"data:(image/[a-z]+);base64,(.+)")
EARLIER = "earlier messages"
"""The attachment that has what was said before the task."""
_DONE = b"data: [DONE]\n\n"

# ruff: noqa: UP013
Json = Mapping[str, Any]  # Any: what JSON holds
Model = TypedDict("Model", {"id": str, "object": str, "created": int, "owned_by": str})
Models = TypedDict("Models", {"object": str, "data": list[Model]})
Completion = TypedDict(
    "Completion", {"id": str, "object": str, "created": int, "model": str, "choices": list[Json], "usage": Json}
)


class Lax(Exact):
    """What a client of OpenAI says. What means nothing here is passed over, as there."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Piece(Lax):
    """A piece of a message: text, or an image in a `data:` URL."""

    type: Literal["text", "input_text", "output_text", "refusal", "image_url", "input_image"]
    text: str = ""
    refusal: str = ""
    image_url: Mapping[str, str] | str = ""

    @property
    def is_text(self) -> bool:
        return self.type == "refusal" or self.type.endswith("text")


class Message(Lax):
    """What was said in a conversation, and in which role."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | tuple[Piece, ...] | None = None

    @property
    def pieces(self) -> Sequence[Piece]:
        return (Piece(type="text", text=self.content),) if isinstance(self.content, str) else self.content or ()

    @property
    def text(self) -> str:
        return "\n".join(one.text or one.refusal for one in self.pieces if one.is_text)


class Chat(Lax):
    """Messages for an agent, which is the `model`."""

    has_task: ClassVar[bool] = True
    model: Annotated[str, Field(min_length=1, max_length=200)]
    messages: Annotated[tuple[Message, ...], Field(min_length=1)]
    stream: bool | None = False
    stream_options: Json | None = None
    n: Literal[1] | None = None
    tools: tuple[Json, ...] | None = None
    functions: tuple[Json, ...] | None = None


async def models(asked: Asked[None, None]) -> Response:
    """List the agents that are served, as models."""
    told = [_model(asked, name) for name in asked.site.agents if asked.token.sees_agent(name)]
    return answer({"object": "list", "data": told})


async def model(asked: Asked[None, None]) -> Response:
    """Give one agent that is served, as a model."""
    name = asked.part("agent")
    if name not in asked.site.agents or not asked.token.sees_agent(name):
        told = f"unknown model {visible(name)!r}; `GET /openai/v1/models` lists those that are served"
        raise Problem("not_found", told)
    return answer(_model(asked, name))


def _model(asked: Asked[None, None], name: str) -> Model:
    return Model(id=name, object="model", created=int(asked.site.began), owned_by="surefoot")


async def chat(asked: Asked[None, Chat]) -> Response:
    """Start a run for the last message, and answer once it stands. The run goes on if the client leaves."""
    body = asked.body
    with asked.site.pace.stream(asked.token.name):
        run, _ = await begin_run(asked, body.model, task_of(body, asked.token.speaks_as))
        headers = {"X-Surefoot-Run": run.run_id}
        if not body.stream:
            run = await stood(asked, run)
            message = {"role": "assistant", "content": await words_of(asked, run), "refusal": None}
            choice = {"index": 0, "message": message, "finish_reason": _finish(run), "logprobs": None}
            told = {**_head(run, "chat.completion"), "choices": [choice], "usage": _usage(run)}
            return answer(told, headers=headers)

    async def tell(write: Write) -> None:
        await write(_chunk(run, _delta(role="assistant", content="")))
        now = await stood(asked, run, PING_S)
        while now.status in GOING and not asked.site.leaving.is_set():
            await write(PING)
            now = await stood(asked, now, PING_S)
        await write(_chunk(now, _delta(content=await words_of(asked, now))) + _chunk(now, _delta(_finish(now))))
        if body.stream_options and body.stream_options.get("include_usage"):
            await write(_chunk(now, usage=_usage(now)))
        await write(_DONE)

    return EventStream(tell, asked.site.pace.stream(asked.token.name), headers)


def task_of(body: Chat, author: Author, before: str = "") -> Task:
    """The last message as a task; what was said `before` is material, too. Raises `Problem` for one without words."""
    if body.tools or body.functions:
        raise Problem("no_tools", "the tools of a run are those of its agent")
    *earlier, last = body.messages
    if last.role != "user" or not last.text.strip():
        raise Problem("invalid", "messages: the last one must be from the user, and not empty")
    said = "\n\n".join([*([before] if before else []), *(f"{one.role}: {one.text}" for one in earlier if one.text)])
    pieces = (one for message in body.messages for one in message.pieces if not one.is_text)
    attachments = (
        *([Attachment(EARLIER, said)] if said else []),
        *(_image(one.image_url, f"image {number}") for number, one in enumerate(pieces, 1)),
    )
    return Task(last.text, attachments, author=author)


def _image(given: Mapping[str, str] | str, name: str) -> Attachment:
    url = given if isinstance(given, str) else given.get("url", "")
    if (found := _IMAGE.fullmatch(url)) is None:
        raise Problem("invalid", "messages: an image has to be a data: URL in base64; none is fetched")
    return Given(name=name, data=found[2], media_type=found[1]).attachment()


def _head(run: RunSummary, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{run.run_id}", "object": kind, "created": int(run.started_at), "model": run.agent}


def _chunk(run: RunSummary, *choices: Json, **more: object) -> bytes:
    return b"data: %b\n\n" % dumped({**_head(run, "chat.completion.chunk"), "choices": choices, **more})


def _delta(finish: str | None = None, **delta: str) -> Json:
    return {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}


def _finish(run: RunSummary) -> str:
    return "length" if run.status == "stopped" else "stop"


def _usage(run: RunSummary) -> dict[str, object]:
    spent = run.usage
    return {
        "prompt_tokens": spent.input_tokens,
        "completion_tokens": spent.output_tokens,
        "total_tokens": spent.total_tokens,
        "prompt_tokens_details": {"cached_tokens": spent.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": spent.reasoning_tokens},
    }
