"""The embedded model: llama.cpp without a server, its replies held to a schema.

Control tokens go into the prompt as numbers, and text goes in as text, cut wherever a control token's spelling would
begin. So whatever a tool's result contains, it cannot end its message or open one. Source: spec/react.md, section 4.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from surefoot.models.files import FILE_VARIABLE, QWEN_CODER, is_present, verify, weights_file
from surefoot.models.grammar import grammar_schema
from surefoot.models.json_edge import first, mapping, text, write
from surefoot.models.llama import JsonObject, Llama, OnEvent
from surefoot.models.traits import SMALL
from surefoot.models.wire import usage_of
from surefoot.types import messages
from surefoot.types.errors import ConfigError, ModelError, ModelRefused, ModelTimeout, TraitRefused, extra_needed

CONTEXT_TOKENS = 8192
"""28 KB each, kept besides the weights."""

THREADS_VARIABLE = "SUREFOOT_THREADS"
TEMPERATURE = 0.2
MAX_OUTPUT_TOKENS = 512

_BATCH_TOKENS = 64
"""Tokens of a prompt taken at once. Stopping waits for a batch to end (0.8 s here); larger ones were not faster."""

_PREFIX_CACHE_MIB = 512
"""Room for the beginnings of other conversations, so that runs that take turns do not read theirs again."""

_IM_START, _IM_END = 151644, 151645  # <|im_start|> and <|im_end|> in the model's vocabulary
_CONTROL_BEGINS = re.compile(r"(?<=<)(?=\||/?tool_call>)")  # <|…|>, <tool_call>: all that the vocabulary spells so


class LocalModel:
    """The embedded model as a `Model`; all share one loaded copy, and are answered one at a time. Use `from_default`.

    `engine` generates; `to_grammar` writes a schema in its language; `context_tokens` is the engine's window.
    """

    modes: tuple[messages.CallMode, ...] = ("schema", "text")
    is_priced = True  # it costs nothing

    def __init__(
        self, name: str, engine: Engine, to_grammar: Callable[[JsonObject], str], context_tokens: int = CONTEXT_TOKENS
    ) -> None:
        self.name = name
        self.traits: messages.Traits = {**SMALL, "stop": "yes", "context_tokens": str(context_tokens)}
        self._engine = engine
        self._to_grammar = to_grammar
        self._grammars: dict[bytes, str] = {}

    @classmethod
    def from_default(cls, *, context_tokens: int = CONTEXT_TOKENS, threads: int | None = None) -> LocalModel:
        """Qwen2.5-Coder-1.5B-Instruct from its file, loaded and at first verified with the first request.

        Raises `ConfigError` with the remedy. `threads`: $SUREFOOT_THREADS, else one a physical core.
        """
        try:
            library: Any = importlib.import_module("xllamacpp")  # Any: it ships no types
        except ImportError as error:
            told = f"the embedded model needs a package ({error}); {extra_needed('local')}"
            raise ConfigError("model", "local", told) from error
        said = str(os.environ.get(THREADS_VARIABLE) or physical_cores()) if threads is None else str(threads)
        if not said.isdecimal() or not int(said):
            named = THREADS_VARIABLE if threads is None else "threads"
            raise ConfigError(named, said, "give a whole number of at least 1")
        path = weights_file()
        if not is_present(path):
            missing = f"its file is not at {path}: run `surefoot model pull`, or set {FILE_VARIABLE}"
            if path.is_file():
                missing = (
                    f"{path} is {path.stat().st_size} bytes, expected {QWEN_CODER.size}; only this one model can be "
                    f"embedded ({QWEN_CODER.name}): remove the file, or unset {FILE_VARIABLE}, and run "
                    "`surefoot model pull`"
                )
            raise ConfigError("model", "local", missing)
        engine = _shared_engine(path, context_tokens, int(said))
        return cls(f"local:{QWEN_CODER.name}", engine, library.json_schema_to_grammar, context_tokens)

    async def send(self, request: messages.ModelRequest, emit: messages.Emit | None = None) -> messages.ModelMessage:
        """One reply. Waiting for other runs counts only against the deadline; each batch read is a sign of life."""
        if request.mode == "native":
            raise TraitRefused("native_tools", "no", "the embedded model has no tools field")
        body = self._body(request)
        whole_s = request.settings.patience(near=True).whole_s
        limit_s = whole_s if request.deadline_s is None else min(whole_s, request.deadline_s)
        if limit_s <= 0:
            raise ModelTimeout(f"{self.name} was not asked: none of the run's time is left")
        pieces: list[str] = []
        finish: messages.FinishReason = "unknown"
        usage = messages.Usage()
        try:
            async with asyncio.timeout(limit_s), aclosing(self._events(body, request.settings)) as events:
                async for event in events:
                    if "error" in event:
                        error = mapping(event["error"])
                        said = f"{self.name}: {error.get('message')}"
                        if error.get("type") == "exceed_context_size_error":
                            remedy = "shorten the task or the results, or raise `context_tokens`"
                            raise ModelRefused(f"{said}; {remedy}", kind="context_overflow")
                        if error.get("type") == "invalid_request_error":
                            raise ModelRefused(f"{said}; change the request")
                        raise ModelError(f"{said}; try again")
                    usage = usage_of(mapping(event.get("usage")), request.settings) or usage
                    choice = first(event.get("choices"))
                    if (reason := choice.get("finish_reason")) in ("stop", "length"):
                        finish = "stop" if reason == "stop" else "length"
                    if piece := text(choice.get("text")):
                        pieces.append(piece)
                        if emit is not None:
                            emit(messages.TextDelta(piece))
        except TimeoutError as error:
            told = f"gave no whole reply in {limit_s:.0f} s; raise `request_timeout_s` or the run's time"
            raise ModelTimeout(f"{self.name} {told}") from error
        if finish == "unknown":
            raise ModelError(f"{self.name} broke off before the end of its reply; try again")
        return messages.ModelMessage("assistant", "".join(pieces), finish_reason=finish, usage=usage, model=self.name)

    async def aclose(self) -> None:
        """Free the memory, unless others in this process still use it. A later `send` loads the model again."""
        if (freed := self._engine.leave(id(self))) is not None:
            await asyncio.wrap_future(freed)

    def _body(self, request: messages.ModelRequest) -> JsonObject:
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
        asked = {"top_p": settings.top_p, "seed": settings.seed}
        body |= {name: value for name, value in asked.items() if value is not None}
        if request.mode == "schema" and request.schema is not None:
            simple = grammar_schema(request.schema)
            key = write(simple)
            if key not in self._grammars:
                self._grammars[key] = self._to_grammar(simple)
            body["grammar"] = self._grammars[key]
        return {**body, **settings.extra}

    async def _events(self, body: JsonObject, settings: messages.ModelSettings) -> AsyncGenerator[JsonObject]:
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
        limit = ""
        limit_s: float | None = None  # while others are served
        try:
            while True:
                try:
                    async with asyncio.timeout(limit_s):
                        event = await arrived.get()
                except TimeoutError as error:
                    raise ModelTimeout(f"{self.name} was silent for {limit_s:.0f} s; raise `{limit}`") from error
                if event is None:
                    generation.result()
                    return
                is_token = bool(text(first(event.get("choices")).get("text")))
                limit = "between_tokens_timeout_s" if is_token else "first_token_timeout_s"
                limit_s = settings.between_tokens_timeout_s if is_token else first_token_s
                yield event
        finally:
            stopped.set()
            generation.cancel()


def prompt_of(request: messages.ModelRequest) -> list[int | str]:
    """The conversation in the model's own form (ChatML): control tokens as numbers, between them nothing but text."""
    prompt: list[int | str] = []
    system = (messages.ModelMessage("system", request.system),) if request.system else ()
    for message in (*system, *request.messages):
        role = "user" if message.role == "tool" else message.role
        # Each string is tokenised by itself, so a spelling that is cut in two is not a token.
        # A lone surrogate cannot be written as UTF-8; a question mark stands for it.
        said = f"{role}\n{message.content}".encode(errors="replace").decode()
        prompt += (_IM_START, *_CONTROL_BEGINS.split(said), _IM_END, "\n")
    return [*prompt, _IM_START, "assistant\n"]


class Generator(Protocol):
    """What is used of `Llama`."""

    def handle_completions(self, prompt: JsonObject, callback: OnEvent, /) -> object:
        """Run one completion; each event goes to the callback, which stops it by giving True."""
        ...


class Engine:
    """One model, loaded at its first use and freed when the last of its users has closed it.

    Generations queue, first come first served; one whose caller is gone is not begun. Two side by side gain little (7.0
    s against 8.4 s one after the other, on two cores) and halve the context.
    """

    def __init__(self, load: Callable[[], Generator]) -> None:
        self._load = load
        self._generator: Generator | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._users: set[int] = set()

    def submit(self, user: int, body: JsonObject, on_event: OnEvent) -> Future[None]:
        """Queue one generation. The future ends with it, or with the error of loading the model."""

        def generate() -> None:
            if on_event({"started": True}):
                return
            if self._generator is None:
                self._generator = self._load()
            if on_event({"loaded": True}):
                return
            try:
                self._generator.handle_completions(body, on_event)
            except RuntimeError as error:
                self._generator = None
                raise ModelError(f"llama.cpp stopped: {error}; try again") from error

        self._users.add(user)
        if self._worker is None:
            self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="surefoot-llama")
            atexit.register(self.close)
        return self._worker.submit(generate)

    def leave(self, user: int) -> Future[None] | None:
        """This user is done. The last one out frees the model, after what is queued; the future says when."""

        def free_if_unused() -> None:
            if not self._users:
                self._generator = None

        self._users.discard(user)
        return None if self._users or self._worker is None else self._worker.submit(free_if_unused)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.shutdown(wait=True, cancel_futures=True)
        self._generator = None


@cache
def _shared_engine(path: Path, context_tokens: int, threads: int) -> Engine:
    """The one engine of this process for these settings: a model of two gigabytes is not loaded twice."""

    def load() -> Generator:
        """Takes about two seconds and keeps 2 GB. Nothing is printed. Blocks."""
        verify(path)
        params = {
            "model.path": str(path),
            "n_ctx": context_tokens,
            "n_parallel": 1,
            "n_batch": _BATCH_TOKENS,
            "n_ubatch": _BATCH_TOKENS,
            "cpuparams.n_threads": threads,
            "cpuparams_batch.n_threads": threads,
            "cache_ram_mib": _PREFIX_CACHE_MIB,
        }
        try:
            return Llama(params)
        except RuntimeError as error:
            raise ModelError(f"llama.cpp could not load {path}: {error}; run `surefoot model pull`") from error

    return Engine(load)


def physical_cores() -> int:
    """Cores that this process may use; two threads of one core count once, since they share its arithmetic."""
    if sys.platform != "linux":
        return os.cpu_count() or 1
    allowed = os.sched_getaffinity(0)
    siblings: set[str] = set()
    for cpu in allowed:
        try:
            siblings.add(Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text())
        except OSError:  # a container that hides it
            return len(allowed)
    return len(siblings)
