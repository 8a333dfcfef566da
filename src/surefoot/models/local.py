"""The embedded model: llama.cpp in this process, its replies held to a schema.

Control tokens go into the prompt as numbers, and text goes in as text, cut wherever a control token's spelling would
begin. So whatever a tool's result contains, it cannot end its message or open one. Source: spec/react.md, section 4.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from threading import Event
from typing import cast

import orjson

from surefoot.models.grammar import grammar_schema
from surefoot.models.llama import Engine, JsonObject, import_library, physical_cores, shared_engine
from surefoot.models.weights import FILE_VARIABLE, QWEN_CODER, is_present, weights_file
from surefoot.types.errors import ConfigError, ModelError, ModelRefused, ModelTimeout, TraitRefused
from surefoot.types.messages import (
    CallMode,
    Emit,
    FinishReason,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    TextDelta,
    Traits,
    Usage,
)

CONTEXT_TOKENS = 8192
"""28 KB each, kept besides the weights."""

TEMPERATURE = 0.2
MAX_OUTPUT_TOKENS = 512

_IM_START, _IM_END = 151644, 151645  # <|im_start|> and <|im_end|> in the model's vocabulary
_CONTROL_BEGINS = re.compile(r"(?<=<)(?=\||/?tool_call>)")  # <|…|>, <tool_call>: all that the vocabulary spells so
_TRAITS: Traits = {
    "native_tools": "no",
    "json_schema": "yes",
    "stop": "yes",
    "parallel_calls": "no",
    "early_answers": "yes",  # it answers before it has looked, if it may
    "optional_arguments": "no",  # it fills in whatever it may, and makes it up
}

Compile = Callable[[Mapping[str, object]], str]
"""A JSON Schema as the decoder's grammar."""


class LocalModel:
    """The embedded model as a `Model`. Several of them share one loaded copy; requests are answered one at a time.

    `engine` generates; `to_grammar` writes a schema in its language; `context_tokens` is the engine's window. Use
    `from_default`.
    """

    def __init__(self, name: str, engine: Engine, to_grammar: Compile, context_tokens: int = CONTEXT_TOKENS) -> None:
        self._name = name
        self._engine = engine
        self._to_grammar = to_grammar
        self._traits = {**_TRAITS, "context_tokens": str(context_tokens)}
        self._grammars: dict[bytes, str] = {}

    @classmethod
    def from_default(cls, *, context_tokens: int = CONTEXT_TOKENS, threads: int | None = None) -> LocalModel:
        """Qwen2.5-Coder-1.5B-Instruct from its file. It is loaded, and at first verified, with the first request.

        Raises `ConfigError` that says what to install or to fetch. `threads`: default is one a physical core.
        """
        library = import_library()
        path = weights_file()
        if not is_present(path):
            if path.is_file():
                raise ConfigError(
                    "model",
                    "local",
                    f"{path} is {path.stat().st_size} bytes, expected {QWEN_CODER.size}; only this one model can be "
                    f"embedded ({QWEN_CODER.name}): remove the file, or unset {FILE_VARIABLE}, and run "
                    "`surefoot model pull`",
                )
            raise ConfigError(
                "model", "local", f"its file is not at {path}: run `surefoot model pull`, or set {FILE_VARIABLE}"
            )
        engine = shared_engine(path, context_tokens, threads or physical_cores())
        return cls(f"local:{QWEN_CODER.name}", engine, library.json_schema_to_grammar, context_tokens)

    @property
    def name(self) -> str:
        return self._name

    @property
    def modes(self) -> tuple[CallMode, ...]:
        return ("schema", "text")

    @property
    def traits(self) -> Traits:
        return self._traits

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """One reply. Time spent waiting for other runs counts only against the deadline of the request.

        The first token may take long after a long prompt; each batch of it that was read counts as a sign of life.
        """
        if request.mode == "native":
            raise TraitRefused("native_tools", "no", "the embedded model has no tools field")
        body = self._body(request)
        limit_s = request.settings.patience(near=True).whole_s
        if request.deadline_s is not None:
            limit_s = min(limit_s, request.deadline_s)
        if limit_s <= 0:
            raise ModelTimeout(f"{self._name} was not asked: none of the run's time is left")
        reply = _Reply(self._name)
        try:
            async with asyncio.timeout(limit_s), aclosing(self._events(body, request.settings)) as events:
                async for event in events:
                    text = reply.take(event)
                    if text and emit is not None:
                        emit(TextDelta(text))
        except TimeoutError as error:
            raise ModelTimeout(
                f"{self._name} gave no whole reply in {limit_s:.0f} s; raise `request_timeout_s` or the run's time"
            ) from error
        return reply.message()

    async def aclose(self) -> None:
        """Free the memory, unless others in this process still use it. A later `send` loads the model again."""
        freed = self._engine.leave(id(self))
        if freed is not None:
            await asyncio.wrap_future(freed)

    def _body(self, request: ModelRequest) -> dict[str, object]:
        settings = request.settings
        body: dict[str, object] = {
            "prompt": prompt_of(request),
            "max_tokens": MAX_OUTPUT_TOKENS if settings.max_output_tokens is None else settings.max_output_tokens,
            "temperature": TEMPERATURE if settings.temperature is None else settings.temperature,
            "stop": [*request.stop, *settings.stop],
            "stream": True,
            "return_progress": True,
            "cache_prompt": True,
        }
        if settings.top_p is not None:
            body["top_p"] = settings.top_p
        if settings.seed is not None:
            body["seed"] = settings.seed
        if request.mode == "schema" and request.schema is not None:
            body["grammar"] = self._grammar(request.schema)
        return {**body, **settings.extra}

    def _grammar(self, schema: Mapping[str, object]) -> str:
        simple = grammar_schema(schema)
        key = orjson.dumps(simple)
        if key not in self._grammars:
            self._grammars[key] = self._to_grammar(simple)
        return self._grammars[key]

    async def _events(self, body: JsonObject, settings: ModelSettings) -> AsyncGenerator[JsonObject]:
        """The events of one generation. Leaving early stops it with its next token."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[JsonObject | None] = asyncio.Queue()
        stopped = Event()

        def pass_on(event: JsonObject | None) -> bool:
            try:
                if not stopped.is_set():
                    loop.call_soon_threadsafe(arrived.put_nowait, event)
            except RuntimeError:  # the loop was closed under us: nobody listens any more
                stopped.set()
            return stopped.is_set()

        first_token_s = settings.patience(near=True).first_token_s
        generation = self._engine.submit(id(self), body, pass_on)
        generation.add_done_callback(lambda _: pass_on(None) and None)
        limit_s: float | None = None  # while others are served
        try:
            while True:
                try:
                    async with asyncio.timeout(limit_s):
                        event = await arrived.get()
                except TimeoutError as error:
                    raise ModelTimeout(f"{self._name} was silent for {limit_s:.0f} s; raise its time limit") from error
                if event is None:
                    generation.result()
                    return
                limit_s = settings.between_tokens_timeout_s if _text(event) else first_token_s
                yield event
        finally:
            stopped.set()
            generation.cancel()


class _Reply:
    """Adds the events of one generation up to a message."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._texts: list[str] = []
        self._finish: FinishReason = "unknown"
        self._usage = Usage()

    def take(self, event: JsonObject) -> str:
        """The text that this event adds. Raises `ModelError` when it tells of an error."""
        if "error" in event:
            raise _refusal(self._model, _object(event["error"]))
        if "usage" in event:
            self._usage = _usage(_object(event["usage"]))
        text, finish = _text(event), _choice(event).get("finish_reason")
        if finish in ("stop", "length"):
            self._finish = "stop" if finish == "stop" else "length"
        self._texts.append(text)
        return text

    def message(self) -> ModelMessage:
        """The whole reply. Raises `ModelError` when it never came to an end."""
        if self._finish == "unknown":
            raise ModelError(f"{self._model} broke off before the end of its reply; try again")
        return ModelMessage(
            "assistant", "".join(self._texts), finish_reason=self._finish, usage=self._usage, model=self._model
        )


def prompt_of(request: ModelRequest) -> list[int | str]:
    """The conversation in the model's own form (ChatML): control tokens as numbers, between them nothing but text."""
    prompt: list[int | str] = []
    system = (ModelMessage("system", request.system),) if request.system else ()
    for message in (*system, *request.messages):
        role = "user" if message.role == "tool" else message.role
        prompt += (_IM_START, *_pieces(f"{role}\n{message.content}"), _IM_END, "\n")
    return [*prompt, _IM_START, "assistant\n"]


def _pieces(text: str) -> Sequence[str]:
    # Each string is tokenised by itself, so a spelling that is cut in two is no token.
    # A lone surrogate cannot be written as UTF-8; a question mark stands for it.
    return _CONTROL_BEGINS.split(text.encode(errors="replace").decode())


def _refusal(model: str, error: JsonObject) -> ModelError:
    message, kind = error.get("message"), error.get("type")
    if kind == "exceed_context_size_error":
        return ModelRefused(
            f"{model}: {message}; shorten the task or the results, or raise `context_tokens`", kind="context_overflow"
        )
    if kind == "invalid_request_error":
        return ModelRefused(f"{model} does not take this request: {message}")
    return ModelError(f"{model}: {message}; try again")


def _usage(usage: JsonObject) -> Usage:
    cached = _object(usage.get("prompt_tokens_details")).get("cached_tokens")
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), _count(cached))


def _text(event: JsonObject) -> str:
    text = _choice(event).get("text")
    return text if isinstance(text, str) else ""


def _choice(event: JsonObject) -> JsonObject:
    choices = event.get("choices")
    return _object(cast("list[object]", choices)[0]) if isinstance(choices, list) and choices else {}


def _object(node: object) -> JsonObject:
    return cast("JsonObject", node) if isinstance(node, dict) else {}  # from JSON: keys are strings


def _count(node: object) -> int:
    return node if isinstance(node, int) else 0
