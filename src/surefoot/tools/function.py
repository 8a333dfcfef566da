"""A Python function as a tool: `@tool` and what it makes.

The signature gives the schema, the docstring the description, `effect` and `idempotent` what the gate and recovery may
rely on. Source: DESIGN, "Who uses it, and how"; spec/reasoners.md, sections 3 and 4.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar, overload

from surefoot.tools.attempts import Attempts, NotBegun
from surefoot.tools.calling import called, failure, is_async
from surefoot.tools.docstring import read_docstring
from surefoot.tools.render import text_of
from surefoot.tools.schema import Convert, arguments_of
from surefoot.tools.signature import Parameter, Parameters, is_text, read_parameters, resolve
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.ports import ToolCallContext
from surefoot.types.tools import Effect, ToolResult, ToolSpec

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Declared:
    """What the developer says of a tool beyond its function; `name` and `description` "" mean: take the function's."""

    effect: Effect = "write"
    idempotent: bool = False
    polling: bool = False
    finish: bool = False
    timeout_s: float | None = None
    name: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class _Contract:
    """All that is derived from the signature, made at the first use."""

    spec: ToolSpec
    converters: tuple[tuple[str, Convert], ...]
    contexts: tuple[str, ...]


class FunctionTool(Generic[P, R]):
    """A function that a model can call; it stays callable as before.

    Made by `tool`. The schema is built at the first use of `spec`, which raises `UsageError` when a type cannot be
    resolved or has no JSON Schema.
    """

    def __init__(
        self,
        fn: Callable[P, R],
        declared: Declared,
        probe: Callable[..., object] | None = None,
        local_names: Mapping[str, object] = types.MappingProxyType({}),
    ) -> None:
        self.name = _checked_name(declared.name or _name_of(fn))
        self._fn = fn
        self._declared = declared
        self._on_loop = is_async(fn)
        self._attempts = Attempts()
        self._parameters = read_parameters(fn, self.name)
        self._contract: _Contract | None = None
        self._local_names = _names_used(self._parameters, local_names)
        self._probe = probe
        self._probe_parameters = _parameters_of_probe(probe, self.name) if probe else ()
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            raise UsageError(f"tool {self.name!r} gives a stream, but a call has one result; return a list")
        # Without the attributes of `fn`: those of a tool made a tool again would replace what is declared here.
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself."""
        return self._fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"FunctionTool({self.name!r}, effect={self._declared.effect!r})"

    @property
    def spec(self) -> ToolSpec:
        """The declaration, built once."""
        return (self._contract or self._built()).spec

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """Run once with arguments that fit `spec.parameters`; what the function gives is rendered as text.

        An exception is an error result, a `ToolResult` goes through as it is. Cancellation goes through. While an
        attempt under the same idempotency key still runs in its thread, no second one starts: its result is given.
        """
        if not self._on_loop and (running := await self._result_of_running(context)) is not None:
            return running
        contract = self._contract or self._built()
        try:
            keywords = _keywords(arguments, contract, context)
            if self._on_loop:
                value = await called(self._fn, keywords, on_loop=True)
            else:
                value = await self._attempts.made(context.idempotency_key, self._fn, keywords)
        except Exception as error:  # noqa: BLE001  # the edge: whatever a tool raises is for the model to read
            return failure(error)
        return _rendered(value)

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:
        """Ask the probe whether an interrupted call took effect. It gets those arguments that it names.

        None, or no probe, says no; anything else is the call's result. Raises what the probe raises: it could not
        tell. While the call still runs in its thread, its end is awaited and told, and the probe is not asked.
        """
        if (running := await self._result_of_running(context)) is not None:
            return running
        if self._probe is None:
            return None
        keywords = _keywords(arguments, self._contract or self._built(), context)
        asked = resolve(self._probe, f"probe of {self.name}", self._probe_parameters, self._local_names)
        given = {each.name: keywords[each.name] for each in asked.model if each.name in keywords}
        given.update(dict.fromkeys(asked.injected, context))
        value = await called(self._probe, given, on_loop=is_async(self._probe))
        return None if value is None else _rendered(value)

    async def _result_of_running(self, context: ToolCallContext) -> ToolResult | None:
        """The result of an attempt at the same call that still runs; None when there is none."""
        while (attempt := self._attempts.running(context.idempotency_key)) is not None:
            try:
                return _rendered(await self._attempts.awaited(attempt))
            except NotBegun:
                continue
            except Exception as error:  # noqa: BLE001  # the edge, as in `call`
                return failure(error)
        return None

    def _built(self) -> _Contract:
        parameters = resolve(self._fn, self.name, self._parameters, self._local_names)
        self._check_probe(parameters)
        said = self._declared
        description, of_parameters = read_docstring(_docstring_of(self._fn))
        arguments = arguments_of(self.name, parameters.model, of_parameters)
        spec = ToolSpec(
            name=self.name,
            description=said.description or description,
            parameters=arguments.schema,
            effect=said.effect,
            idempotent=said.idempotent or said.effect == "read",
            polling=said.polling,
            finish=said.finish,
            has_probe=self._probe is not None,
            timeout_s=said.timeout_s,
        )
        self._contract = _Contract(spec, arguments.converters, tuple(parameters.injected))
        return self._contract

    def _check_probe(self, parameters: Parameters) -> None:
        if self._probe is None:
            return
        asked = resolve(self._probe, f"probe of {self.name}", self._probe_parameters, self._local_names)
        if unknown := {each.name for each in asked.model} - {each.name for each in parameters.model}:
            raise UsageError(f"tool {self.name!r}: its probe asks for {sorted(unknown)}, which the tool does not take")


@overload
def tool(
    fn: Callable[P, R],
    /,
    *,
    effect: Effect = ...,
    idempotent: bool = ...,
    polling: bool = ...,
    finish: bool = ...,
    timeout_s: float | None = ...,
    name: str = ...,
    description: str = ...,
    probe: Callable[..., object] | None = ...,
) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    effect: Effect = ...,
    idempotent: bool = ...,
    polling: bool = ...,
    finish: bool = ...,
    timeout_s: float | None = ...,
    name: str = ...,
    description: str = ...,
    probe: Callable[..., object] | None = ...,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    fn: Callable[P, R] | None = None,
    /,
    *,
    effect: Effect = "write",
    idempotent: bool = False,
    polling: bool = False,
    finish: bool = False,
    timeout_s: float | None = None,
    name: str = "",
    description: str = "",
    probe: Callable[..., object] | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a function, method, partial or callable object a tool: `@tool`, `@tool(effect="read")`, `tool(fn)`.

    `effect` and `idempotent` are promises (see `ToolSpec`); unless said, a tool writes and is never run twice.
    `polling`: its answer changes by itself. `finish`: its argument is the run's answer. `timeout_s` bounds a call.
    `probe(…)` takes any of the tool's parameters, and says of an interrupted call whether it took effect: its result if
    so, None if not; it raises when it could not tell, and a person is asked then. Raises `UsageError` for a name or
    signature that no model can use, `ConfigError` for a value out of range.
    """
    if effect not in typing.get_args(Effect):
        raise ConfigError("effect", effect, f"must be one of {', '.join(typing.get_args(Effect))}")
    if timeout_s is not None and not (math.isfinite(timeout_s) and timeout_s > 0):
        raise ConfigError("timeout_s", timeout_s, "must be a finite number of seconds above zero")
    declared = Declared(effect, idempotent, polling, finish, timeout_s, name, description)
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    local_names = caller.f_locals if caller and caller.f_code.co_name != "<module>" else {}
    if fn is not None:
        return FunctionTool(fn, declared, probe, local_names)
    return lambda decorated: FunctionTool(decorated, declared, probe, local_names)


def _names_used(parameters: tuple[Parameter, ...], local_names: Mapping[str, object]) -> Mapping[str, object]:
    """Of the names where a tool was decorated only those that its annotations mention: no frame is kept alive."""
    mentioned = " ".join(str(each.annotation) for each in parameters if is_text(each.annotation))
    return {name: value for name, value in local_names.items() if name in mentioned}


def _parameters_of_probe(probe: Callable[..., object], name: str) -> tuple[Parameter, ...]:
    """They are the tool's, which has their types, so that a probe may be a lambda."""
    return read_parameters(probe, f"probe of {name}", needs_types=False)


def _keywords(arguments: Mapping[str, object], contract: _Contract, context: ToolCallContext) -> dict[str, object]:
    keywords = dict(arguments)
    for name, convert in contract.converters:
        if name in keywords:
            keywords[name] = convert(keywords[name])
    for name in contract.contexts:
        keywords[name] = context
    return keywords


def _rendered(value: object) -> ToolResult:
    return value if isinstance(value, ToolResult) else ToolResult(text_of(value))


def _name_of(fn: Callable[..., object]) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__name__", type(fn).__name__))


def _docstring_of(fn: Callable[..., object]) -> str | None:
    """A callable object speaks through `__call__` first; the docstring of `partial` tells nothing of the function."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    if not isinstance(fn, type) and not hasattr(fn, "__name__"):
        return type(fn).__call__.__doc__ or fn.__doc__
    return fn.__doc__


def _checked_name(name: str) -> str:
    """Letters of any script, digits, `_`, `-` and `.`."""
    if len(name) <= LONGEST_NAME and name and f"_{name.replace('-', '_').replace('.', '_')}".isidentifier():
        return name
    raise UsageError(
        f"tool name {name!r}: use 1 to {LONGEST_NAME} letters, digits, `_`, `-` or `.`; give another with tool(name=…)"
    )
