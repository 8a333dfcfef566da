"""A Python function as a tool: `@tool` and what it makes.

The signature gives the schema, the docstring the description, `effect` and `idempotent` what the gate and recovery may
rely on. Source: DESIGN, "Who uses it, and how"; spec/reasoners.md, sections 3 and 4.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

from surefoot.tools import call as calls
from surefoot.tools.call import Attempts, ToolFailed, called_within, failure, is_async
from surefoot.tools.results import returns_schema, text_of, with_files
from surefoot.tools.schema import INVALID, Convert, arguments_of
from surefoot.tools.signature import REQUIRED, Parameters, is_text, read_docstring, read_signature, resolve, returned
from surefoot.types.attachments import Attachment
from surefoot.types.errors import UsageError
from surefoot.types.guard import Role
from surefoot.types.ports import ServiceKey, Tool, ToolCallContext, service_of
from surefoot.types.rules import Declared
from surefoot.types.settings import text
from surefoot.types.tools import Approval, Effect, ToolResult, ToolSpec

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_NAME = 64
ALWAYS_KNOWN: frozenset[ServiceKey] = frozenset({ToolCallContext})  # what a tool may ask for without registration


@dataclass(frozen=True, slots=True)
class _Contract:
    """All that is derived from the signature, made at the first use.

    `services` maps a parameter to the service that fills it; `nulls` are the services without default that nobody
    registered. `spec.injected` names all that the model does not fill.
    """

    spec: ToolSpec
    converters: tuple[tuple[str, Convert], ...]
    services: Mapping[str, ServiceKey]
    nulls: Mapping[str, None]


class FunctionTool(Generic[P, R]):
    """A function that a model can call; it stays callable as before.

    Made by `tool`. `declared` is what is said of it beyond its function; a name or description "" there means the
    function's own. The schema is built at the first use of `spec`, which raises `UsageError` when a type cannot be
    resolved, has no JSON Schema, or asks for a service; `bound` says which services there are.
    """

    def __init__(
        self,
        fn: Callable[P, R],
        declared: ToolSpec,
        probe: Callable[..., object] | None = None,
        local_names: Mapping[str, object] = types.MappingProxyType({}),
    ) -> None:
        inner = _unwrapped(fn)
        self.name = declared.name or str(getattr(inner, "__name__", type(inner).__name__))
        check_name(self.name, declared.description)
        self._fn = fn
        self._declared = declared
        self._on_loop = is_async(fn)
        named = f"{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', self.name)}"
        self._attempts = Attempts(named)
        self._probes = Attempts(calls.PROBE_OF + named)
        self._written = read_signature(fn, self.name)
        self._known = ALWAYS_KNOWN
        self._contract: _Contract | None = None
        annotations = (self._written.returns, *(each.annotation for each in self._written.parameters))
        mentioned = " ".join(str(each) for each in annotations if is_text(each))
        # Of the names where it was decorated only those that it mentions: no frame is kept alive.
        self._local_names = {name: value for name, value in local_names.items() if name in mentioned}
        self._probe = probe
        # The types of a probe's parameters are the tool's, so that it may be a lambda.
        asked = read_signature(probe, f"probe of {self.name}", needs_types=False).parameters if probe else ()
        self._probe_parameters = asked
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            raise UsageError(f"tool {self.name!r} gives a stream, but a call has one result; return a list")
        # Without the attributes of `fn`: those of a tool made a tool again would replace what is declared here.
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"FunctionTool({self.name!r}, effect={self._declared.effect!r})"

    @property
    def spec(self) -> ToolSpec:
        return self._made_contract().spec

    def bound(self, services: Set[ServiceKey]) -> FunctionTool[P, R]:
        """The same tool where these services are registered: parameters that ask for one are no longer the model's.

        Itself when it asks for none of them. An optional service that is not registered is its default, or None; it is
        hidden too. Raises `UsageError`, which names tool and parameter, for one that is required and not registered,
        may mean several, or cannot be resolved. Source: spec/reasoners.md, section 4.
        """
        known = self._known | services
        parameters = resolve(self._fn, self.name, self._written.parameters, self._local_names, known)
        tool = self
        if self._probe or any(key not in self._known for key in parameters.injected.values()):
            tool = copy.copy(self)
            tool._known = known  # noqa: SLF001  # a copy of itself
        elif self._contract:
            return self
        tool._contract = tool._built(parameters)  # noqa: SLF001  # the same
        return tool

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        """Run once with arguments that fit `spec.parameters`; what the function gives is rendered as text.

        An exception is an error result, a `ToolResult` goes through as it is. Cancellation goes through. While an
        attempt under the same idempotency key still runs in its thread, no second one starts: its result is given.
        """
        if not self._on_loop and (running := await self._result_of_running(context)) is not None:
            return running
        contract = self._made_contract()
        try:
            keywords = _keywords(arguments, contract)
            if contract.services:
                keywords |= await _provided(contract.services.items(), context)
            if self._on_loop:
                value = await called_within(self._fn, keywords, self.name, context.deadline_s or math.inf)
            else:
                value = await self._attempts.run(context.idempotency_key, self._fn, keywords)
        except Exception as error:  # noqa: BLE001  # the edge: whatever a tool raises is for the model to read
            return failure(error)
        return _rendered(value)

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:
        """Ask the probe whether an interrupted call took effect. It gets those arguments of the call that it names.

        Where the model sent none, it gets what the tool took instead. None, or no probe, says no; anything else is the
        call's result. Raises what the probe raises: it could not tell. While the call still runs in its thread, its end
        is awaited and told, and the probe is not asked.
        """
        if (running := await self._result_of_running(context)) is not None:
            return running
        if self._probe is None:
            return None
        contract = self._made_contract()
        asked = self._asked_by_probe(self._probe)
        untyped = {each.name: contract.services[each.name] for each in asked.model if each.name in contract.services}
        defaults = {each.name: each.default for each in self._written.parameters if each.default is not REQUIRED}
        sent = defaults | _keywords(arguments, contract)
        given: dict[str, object] = {each.name: None for each in asked.absent if each.default is REQUIRED}
        given |= {each.name: sent[each.name] for each in (*asked.model, *asked.absent) if each.name in sent}
        given |= await _provided({**untyped, **asked.injected}.items(), context)
        if is_async(self._probe):
            value = await calls.call_function(self._probe, given, on_loop=True)
        else:
            value = await self._probes.run(context.idempotency_key, self._probe, given)
        return None if value is None else _rendered(value)

    def threads(self, context: ToolCallContext) -> tuple[Future[object], ...]:
        """What still runs in threads for that call and uses services of its run: its function, or its probe."""
        found = [self._probes.running(context.idempotency_key)] if self._probe else []
        if self._contract and not ALWAYS_KNOWN.issuperset(self._contract.services.values()):
            found.append(self._attempts.running(context.idempotency_key))
        return tuple(filter(None, found))

    async def _result_of_running(self, context: ToolCallContext) -> ToolResult | None:
        """The result of an attempt at the same call that still runs; None when there is none."""
        while (attempt := self._attempts.running(context.idempotency_key)) is not None:
            try:
                return _rendered(await calls.awaited(attempt))
            except calls.NotBegun:
                continue
            except Exception as error:  # noqa: BLE001  # the edge, as in `call`
                return failure(error)
        return None

    def _asked_by_probe(self, probe: Callable[..., object]) -> Parameters:
        return resolve(probe, f"probe of {self.name}", self._probe_parameters, self._local_names, self._known)

    def _made_contract(self) -> _Contract:
        if self._contract is None:
            written = self._written.parameters
            self._contract = self._built(resolve(self._fn, self.name, written, self._local_names, self._known))
        return self._contract

    def _built(self, parameters: Parameters) -> _Contract:
        if self._probe is not None:
            taken = {each.name for each in (*parameters.model, *parameters.absent)} | {*parameters.injected}
            if unknown := {each.name for each in self._asked_by_probe(self._probe).model} - taken:
                asks = f"its probe asks for {sorted(unknown)}, which the tool does not take"
                raise UsageError(f"tool {self.name!r}: {asks}")
        inner = _unwrapped(self._fn)
        docstring = inner.__doc__
        if not isinstance(inner, type) and not hasattr(inner, "__name__"):  # an object speaks through `__call__` first
            docstring = type(inner).__call__.__doc__ or docstring
        description, of_parameters = read_docstring(docstring)
        arguments = arguments_of(self.name, parameters.model, of_parameters)
        absent = (*parameters.absent, *arguments.absent)
        hidden = {*parameters.injected, *(each.name for each in absent)}
        spec = replace(
            self._declared,
            name=self.name,
            description=self._declared.description or description,
            parameters=arguments.schema,
            has_probe=self._probe is not None,
            injected=tuple(each.name for each in self._written.parameters if each.name in hidden),
            returns=returns_schema(returned(self._fn, self._written, self._local_names)),
        )
        nulls = dict.fromkeys(each.name for each in absent if each.default is REQUIRED)
        return _Contract(spec, arguments.converters, parameters.injected, nulls)


class _Options(TypedDict, total=False):
    """What `tool` can be told; the function itself says what each means."""

    effect: Effect | None
    idempotent: bool
    polling: bool
    finish: bool
    verified: bool
    egress: bool
    private: bool
    category: str
    exclusive: bool
    empty_ok: bool
    roles: Mapping[str, Role]
    sensitive: Sequence[str]
    trusted_fields: Sequence[str]
    directory: bool | None
    identity: Sequence[str]
    approval: Approval | None
    timeout_s: float | None
    queue: str
    name: str
    description: str
    probe: Callable[..., object] | None


@overload
def tool(fn: Callable[P, R], /, **options: Unpack[_Options]) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[_Options]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    fn: Callable[P, R] | None = None, /, **options: Unpack[_Options]
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a function, method, partial or callable object a tool: `@tool`, `@tool(effect="read")`, `tool(fn)`.

    `effect` and `idempotent` are promises (see `ToolSpec`); unless said, a tool writes and is never run twice.
    `polling`: its answer changes by itself. `finish`: its argument is the run's answer. `verified`: whoever runs it has
    looked at it, which is what `ToolProfile(require_verified=True)` asks for. `timeout_s` bounds a call.
    For the gate: `egress`, a read that carries its arguments out of the house; `private`, its results are confidential;
    `roles`, what parameters are to the effect (`{"to": "destination"}`); `sensitive`, further parameters whose values
    need a good origin; `trusted_fields`, `directory` and `identity`, what of its results may be believed (`ToolSpec`).
    `approval="always"` asks a person before each call, "once" before the first of a run, with the gate or without.
    `queue` is the task queue of Temporal on which its calls are made, where runs are workflows there.
    For plans: `category`, what it is for; `exclusive`, one call of it at a time; `empty_ok`, nothing is a result, too.
    `probe(…)` takes any of the tool's parameters, and says of an interrupted call whether it took effect: its result if
    so, None if not; it raises when it could not tell, and a person is asked then. Raises `UsageError` for a name or
    signature that no model can use, `ConfigError` for a value out of range.
    """
    probe, said = options.pop("probe", None), dict[str, Any](options)  # Any: each option has a type of its own
    own = {name: said.pop(name) for name in ("finish", "category", "exclusive", "empty_ok") if name in said}
    spec = ToolSpec(said.pop("name", ""), said.pop("description", ""), dict[str, object](), **own)
    if unknown := sorted({*said} - {*Declared.__dataclass_fields__}):
        raise UsageError(f"tool() has no option {unknown[0]!r}; it has {', '.join(sorted(_Options.__annotations__))}")
    if fn is not None and not callable(fn):  # pyright: ignore[reportUnnecessaryComparison]  # misuse is told
        raise UsageError(f'tool({fn!r}): give a function, or options by their names, as in @tool(effect="read")')
    declared = Declared(**said).of(spec)
    caller = frame.f_back if (frame := inspect.currentframe()) else None
    local_names = caller.f_locals if caller and caller.f_code.co_name != "<module>" else {}
    if fn is not None:
        return FunctionTool(fn, declared, probe, local_names)
    return lambda decorated: FunctionTool(decorated, declared, probe, local_names)


def check_name(name: str, description: str) -> None:
    """Raise `UsageError` for a name or a description that no tool can have."""
    text("name", name)
    text("description", description)
    is_name = f"_{name.replace('-', '_').replace('.', '_')}".isidentifier()  # letters of any script
    if not name or len(name) > LONGEST_NAME or not is_name:
        use = f"use 1 to {LONGEST_NAME} letters, digits, `_`, `-` or `.`; give another with name=…"
        raise UsageError(f"tool name {name!r}: {use}")


def _keywords(arguments: Mapping[str, object], contract: _Contract) -> dict[str, object]:
    """The arguments of the model as Python values; what it sent for a parameter that is not its own is left out."""
    keywords = dict(arguments)
    for name in contract.spec.injected:
        keywords.pop(name, None)
    faults: list[str] = []
    for name, convert in contract.converters:
        if name in keywords:
            try:
                keywords[name] = convert(keywords[name])
            except ToolFailed as error:  # the model is told all of them at once
                faults.append(str(error).removeprefix(INVALID))
    if faults:
        raise ToolFailed(INVALID + "; ".join(faults))
    keywords.update(contract.nulls)
    return keywords


async def _provided(wanted: Iterable[tuple[str, ServiceKey]], context: ToolCallContext) -> dict[str, object]:
    return {name: await service_of(context, key) for name, key in wanted}


def _rendered(value: object) -> ToolResult:
    if value is None or isinstance(value, (str, bytes)):
        return ToolResult(text_of(value))
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, (list, tuple, Attachment)):
        items = [value] if isinstance(value, Attachment) else cast("Sequence[object]", value)  # whatever it holds
        if found := [one for one in items if isinstance(one, Attachment)]:
            texts = (text_of(one) for one in items if not isinstance(one, Attachment))
            return with_files("\n".join(texts), found)
    if isinstance(value, (types.GeneratorType, types.AsyncGeneratorType)):
        body = cast("types.GeneratorType[object, object, object]", value)  # both have a name
        if body.__name__ == "<genexpr>":  # made by a function that has run
            return ToolResult("(the call was made, but it returned a generator, whose items were not read)")
        told = f"nothing of {body.__name__} was run: it gives a stream, but a call has one result; return a list"
        return ToolResult(told, "error", error="tool:stream")
    return ToolResult(text_of(cast("object", value)), structured=True)


def _unwrapped(fn: Callable[..., object]) -> Callable[..., object]:
    """The function in a `partial`, whose own docstring tells nothing of it."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn


class WrappedTool:
    """A tool around another one; it behaves like that one unless a subclass overrides it."""

    def __init__(self, inner: Tool) -> None:
        self.inner = inner

    @property
    def spec(self) -> ToolSpec:
        """What the inner tool declares. The gate and the pins go by it, so a wrapper must not change it."""
        return self.inner.spec

    async def call(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult:
        return await self.inner.call(arguments, context)

    async def probe(self, arguments: Mapping[str, object], context: ToolCallContext) -> ToolResult | None:
        return await self.inner.probe(arguments, context)


ToolWrapper = Callable[[Tool], Tool]


def wrapped_in(tool: Tool, wrappers: Sequence[ToolWrapper]) -> Tool:
    """The tool with wrappers around it, the first outermost. Raises `UsageError` for one that changes its spec."""
    made = tool
    for wrap in reversed(wrappers):
        made = wrap(made)
    if made is not tool and getattr(made, "spec", None) != tool.spec:
        told = f"wrap_tools: what comes back for {tool.spec.name!r} does not have the spec of that tool"
        raise UsageError(f"{told}; return a tool with the same `spec`, as WrappedTool has it")
    return made


def innermost(tool: Tool) -> Tool:
    """The tool inside all `WrappedTool`s."""
    while isinstance(tool, WrappedTool):
        tool = tool.inner
    return tool
