"""The parameters of a Python callable: which the model fills, and which the runtime does."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Annotated, cast

from surefoot.tools.services import Unclear, is_value, key_text, mentioned_in, named_in, service_for, takes_none
from surefoot.types.errors import UsageError
from surefoot.types.ports import ServiceKey

REQUIRED = inspect.Parameter.empty
"""Stands for the default of a parameter that has none."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter as written. `annotation` may still be a string; `default` is `REQUIRED` when there is none."""

    name: str
    annotation: object
    default: object

    @property
    def is_optional(self) -> bool:
        """Whether a call can do without it; asked of a resolved annotation."""
        return self.default is not REQUIRED or takes_none(self.annotation)


@dataclass(frozen=True, slots=True)
class Written:
    """The signature of a callable as written; `returns` is `REQUIRED` when it does not say what it gives."""

    parameters: tuple[Parameter, ...]
    returns: object


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a callable after their annotations were resolved.

    `injected` maps a name to its service. `absent` are those that ask for a service which is not registered, and can
    do without.
    """

    model: tuple[Parameter, ...]
    injected: Mapping[str, ServiceKey]
    absent: tuple[Parameter, ...] = ()


def read_signature(fn: Callable[..., object], tool_name: str, *, needs_types: bool = True) -> Written:
    """The parameters in order, without those that a `partial` fills. Raises `UsageError` for what no model can fill.

    `needs_types=False` takes parameters without annotation too, as those of a lambda: for what makes no schema.
    """
    try:
        signature = inspect.signature(fn)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"tool {tool_name!r}: its signature cannot be read; wrap it in a function with types"
        ) from error
    filled = fn.keywords if isinstance(fn, functools.partial) else {}
    found: list[Parameter] = []
    for name, parameter in signature.parameters.items():
        if name in filled:
            continue
        if fault := _fault(parameter, needs_types=needs_types):
            raise UsageError(f"tool {tool_name!r}, parameter {name!r}: {fault}")
        found.append(Parameter(name, parameter.annotation, parameter.default))
    return Written(tuple(found), signature.return_annotation)


def _fault(parameter: inspect.Parameter, *, needs_types: bool) -> str:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return "a model cannot fill *args or **kwargs; name each parameter"
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return "it is positional-only, but arguments come by name; remove the `/`"
    if needs_types and parameter.annotation is parameter.empty:
        bound = " (for a method, decorate the bound one: tool(instance.method))" if parameter.name == "self" else ""
        return f"it has no type; annotate it{bound}"
    if type(parameter.default).__module__ == "pydantic.fields":
        return "write Field(...) inside Annotated[...], and the default after `=`"
    return ""


def resolve(
    fn: Callable[..., object],
    tool_name: str,
    parameters: tuple[Parameter, ...],
    local_names: Mapping[str, object],
    known: Set[ServiceKey],
) -> Parameters:
    """Annotations as types, and those set apart that ask for one of the `known` services.

    `local_names` are the names where the tool was decorated. Raises `UsageError` for what cannot be resolved, may mean
    two services, holds one inside another type, or asks by name for one that is not registered and cannot do without.
    """
    model: list[Parameter] = []
    absent: list[Parameter] = []
    injected: dict[str, ServiceKey] = {}
    names = namespace_of(fn)
    for parameter in parameters:
        where = f"tool {tool_name!r}, parameter {parameter.name!r}"
        annotation = parameter.annotation
        if is_text(annotation):
            try:
                annotation = _evaluated(annotation, names, local_names)
            except Exception as error:  # an annotation is an expression and may raise anything
                raise UsageError(
                    f"{where}: its type {annotation!r} cannot be resolved ({error}); import or define it where the"
                    " function is"
                ) from error
            parameter = Parameter(parameter.name, annotation, parameter.default)  # noqa: PLW2901  # the same, resolved
        if is_value(annotation):
            model.append(parameter)
            continue
        try:
            service = service_for(annotation, known)
            inside = mentioned_in(annotation, known) if service is None else None
        except Unclear as error:
            raise UsageError(f"{where}: {error}") from error
        if inside is not None:
            told = f"its type {annotation!r} holds the service {key_text(inside)}"
            raise UsageError(f"{where}: {told}, which is given as it is; ask for {key_text(inside)} alone")
        if service is not None:
            injected[parameter.name] = service
        elif (wanted := named_in(annotation)) is None:
            model.append(parameter)
        elif parameter.is_optional:
            absent.append(parameter)
        else:
            raise UsageError(f"{where}: no such service is registered; give Agent(services={{{key_text(wanted)}: …}})")
    return Parameters(tuple(model), injected, tuple(absent))


def returned(fn: Callable[..., object], written: Written, local_names: Mapping[str, object]) -> object:
    """The declared type of what a callable gives; `object` when it says none, or one that cannot be resolved."""
    if written.returns is REQUIRED:
        return object
    if not is_text(written.returns):
        return written.returns
    try:
        return _evaluated(written.returns, namespace_of(fn), local_names)
    except Exception:  # noqa: BLE001  # an expression that may raise anything; nobody needs the type of a result
        return object


def namespace_of(fn: Callable[..., object]) -> dict[str, object]:
    """The module names that the annotations of a callable were written with."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    inner = inspect.unwrap(fn)
    named = inspect.unwrap(inner if hasattr(inner, "__name__") else type(inner).__call__)
    found: object = getattr(named, "__globals__", None)
    if found is None:
        module = sys.modules.get(named.__module__ or "")
        found = vars(module) if module else {}
    return cast("dict[str, object]", found)  # the globals of a function are a dict with text keys


def is_text(annotation: object) -> bool:
    """Whether an annotation is a string, or holds one, as in `list["Book"]`."""
    if isinstance(annotation, (str, typing.ForwardRef)):
        return True
    if (origin := typing.get_origin(annotation)) is None or origin is typing.Literal:
        return False
    parts = typing.get_args(annotation)
    return any(is_text(part) for part in (parts[:1] if origin is Annotated else parts))


@functools.lru_cache(maxsize=1024)
def _compiled(text: str) -> types.CodeType:
    return compile(text.strip(), "<annotation>", "eval")


def _evaluated(annotation: object, names: dict[str, object], local_names: Mapping[str, object]) -> object:
    """The same few texts (`int`, `str`, …) come again in hundreds of tools, so whole ones are compiled once."""
    if isinstance(annotation, str):
        # The developer's own annotations, evaluated as typing.get_type_hints does.
        annotation = cast("object", eval(_compiled(annotation), names, local_names))  # noqa: S307
    if not is_text(annotation):
        return annotation

    def bearer() -> None: ...

    bearer.__annotations__ = {"it": annotation}
    return typing.get_type_hints(bearer, names, {**local_names}, include_extras=True)["it"]
