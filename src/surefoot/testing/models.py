"""Models for tests: scripted, computed, echoing, and chaotic. They make a test, never a demo."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, assert_never, cast, get_args

from surefoot.core.text import json_text
from surefoot.tools.call import call_function, is_async
from surefoot.types.errors import ConfigError, ModelError, ModelTimeout, ModelUnreachable, UsageError
from surefoot.types.messages import CallMode, Emit, ModelMessage, ModelRequest, NativeCall, TextDelta, Usage
from surefoot.types.ports import Model

Scripted = str | Mapping[str, Any] | ModelMessage | ModelError  # Any: JSON
"""One entry of a script: a text, a JSON object as text, a whole reply, or the error that the request ends in."""

_ENTRY = "a text, a JSON object, a ModelMessage or a ModelError"

NATIVE_FIRST: tuple[CallMode, ...] = ("native", "schema", "text")


def calls(*wanted: tuple[str, Mapping[str, object]], text: str = "") -> ModelMessage:
    """A reply with native calls: (tool, arguments) each, with ids that repeat from reply to reply."""
    for one in cast("tuple[object, ...]", wanted):
        match one:
            case (str(), Mapping() | str()):
                pass
            case _:
                told = 'give each call in parentheses of its own, as in calls(("look_up", {"name": "Ann"}))'
                raise UsageError(f"calls: {told}")
    made = tuple(NativeCall(f"call_{at}", name, arguments) for at, (name, arguments) in enumerate(wanted))
    return ModelMessage("assistant", text, made, finish_reason="tool_calls")


class FunctionModel:
    """A model that is a function of the request. `requests` keeps what it was asked, for the test to look at.

    A plain function that is asked for a reply within a time runs in a thread, so that it cannot hold up the loop.
    """

    is_priced = True  # a reply costs what its usage says, else what the settings do

    def __init__(
        self,
        reply: Callable[[ModelRequest], Scripted | Awaitable[Scripted]],
        *,
        name: str = "test:function",
        modes: tuple[CallMode, ...] = NATIVE_FIRST,
        traits: Mapping[str, str] | None = None,
    ) -> None:
        if not callable(reply):  # pyright: ignore[reportUnnecessaryComparison]  # misuse is told
            raise ConfigError("reply", reply, "give a function of the request")
        if isinstance(modes, str) or not set(modes) <= {*NATIVE_FIRST}:  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
            raise ConfigError("modes", modes, f"give some of {NATIVE_FIRST}")
        self._reply = reply
        self.name = name
        self.modes = modes
        self.traits: Mapping[str, str] = dict(traits or {})
        self.requests: list[ModelRequest] = []

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        self.requests.append(request)
        is_on_loop = request.deadline_s is None or is_async(self._reply)
        asked = partial(self._reply, request)
        reply = cast("Scripted", await call_function(asked, {}, on_loop=is_on_loop))  # what the function promises
        if isinstance(reply, ModelError):
            raise reply
        if isinstance(reply, Mapping):
            reply = json_text(reply)
        if not isinstance(reply, str | ModelMessage):  # pyright: ignore[reportUnnecessaryIsInstance]  # the same
            told = f"the function of the test model gave a {type(reply).__name__}; return {_ENTRY}"
            raise ModelError(told, kind="bad_request")
        message = ModelMessage("assistant", reply) if isinstance(reply, str) else reply
        if emit is not None:
            for word in message.content.split(" "):
                emit(TextDelta(word + " "))
        return replace(message, usage=Usage(10, 5)) if message.usage == Usage() else message

    async def aclose(self) -> None:
        """Nothing to give back."""


class ScriptedModel(FunctionModel):
    """A model that reads its replies from a list, one a request. A request too many fails the run, loudly."""

    def __init__(
        self,
        script: Sequence[Scripted],
        *,
        name: str = "test:scripted",
        modes: tuple[CallMode, ...] = NATIVE_FIRST,
        traits: Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(script, str):
            raise ConfigError("script", script, "give a list of replies")
        left = list(script)
        for one in left:
            if not isinstance(one, str | Mapping | ModelMessage | ModelError):  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
                raise ConfigError("script", one, f"make each reply {_ENTRY}")

        async def reply(_request: ModelRequest) -> Scripted:
            if not left:
                return ModelError("the script of the test model is at its end", kind="bad_request")
            return left.pop(0)

        super().__init__(reply, name=name, modes=modes, traits=traits)


Accident = Literal["drop", "delay", "cut", "garble"]
"""What can happen to a reply: the connection breaks off · it comes too late · its end is missing · it is nonsense."""

ACCIDENTS: tuple[Accident, ...] = get_args(Accident)


class ChaosModel:
    """Another model, whose replies now and then are dropped, come too late, are cut short, or are garbled.

    `share` of the replies (0 to 1) go wrong, each kind alike; the same `seed` gives the same accidents. `accidents`
    tells what has happened so far. Nothing waits: a reply that comes too late is a `ModelTimeout` at once.
    """

    def __init__(self, model: Model, *, share: float = 0.3, seed: int = 0) -> None:
        if not 0 <= share <= 1:
            raise ConfigError("share", share, "give a number from 0 to 1")
        self._model = model
        self.name = model.name
        self.modes = model.modes
        self.traits = model.traits
        self.aclose = model.aclose
        self.is_priced = bool(getattr(model, "is_priced", False))
        self._share = share
        self._random = random.Random(seed)  # noqa: S311  # accidents of a test, not secrets
        self.accidents: list[Accident] = []

    async def send(self, request: ModelRequest, emit: Emit | None = None) -> ModelMessage:
        """The other model's reply, or what an accident made of it."""
        message = await self._model.send(request, emit)
        if self._random.random() >= self._share:
            return message
        accident = self._random.choice(ACCIDENTS)
        self.accidents.append(accident)
        match accident:
            case "drop":
                raise ModelUnreachable("the connection broke off")
            case "delay":
                raise ModelTimeout("no reply in time")
            case "cut":
                given = [(one, one.arguments) for one in message.calls]
                texts = ((one, text if isinstance(text, str) else json_text(text)) for one, text in given)
                short = tuple(replace(one, arguments=text[: len(text) // 2]) for one, text in texts)
                half = message.content[: len(message.content) // 2]
                return replace(message, content=half, calls=short, finish_reason="length")
            case "garble":
                letters = list(message.content or '{"action": ')
                self._random.shuffle(letters)
                return replace(message, content="".join(letters), calls=())
            case _:
                assert_never(accident)
