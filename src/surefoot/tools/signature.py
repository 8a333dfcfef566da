"""The parameters of a Python callable: which the model fills, and which the runtime does.

Services are found by annotation (spec/reasoners.md, section 4). Today `ToolCallContext` is the only one.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Union, cast

from surefoot.types.errors import UsageError
from surefoot.types.ports import ToolCallContext

SERVICES: frozenset[type] = frozenset({ToolCallContext})
"""The types that the runtime always has."""

REQUIRED = inspect.Parameter.empty
"""Stands for the default of a parameter that has none."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter as written. `annotation` may still be a string; `default` is `REQUIRED` when there is none."""

    name: str
    annotation: object
    default: object


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a callable after their annotations were resolved: `injected` maps a name to its service."""

    model: tuple[Parameter, ...]
    injected: Mapping[str, type]


def read_parameters(fn: Callable[..., object], tool_name: str, *, needs_types: bool = True) -> tuple[Parameter, ...]:
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
    return tuple(found)


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
    fn: Callable[..., object], tool_name: str, parameters: tuple[Parameter, ...], local_names: Mapping[str, object]
) -> Parameters:
    """Annotations as types, the injected ones set apart.

    `local_names` are the names where the tool was decorated. Raises `UsageError` for what cannot be resolved.
    """
    model: list[Parameter] = []
    injected: dict[str, type] = {}
    names = namespace_of(fn)
    for parameter in parameters:
        annotation = parameter.annotation
        if is_text(annotation):
            try:
                annotation = _evaluated(annotation, names, local_names)
            except Exception as error:  # an annotation is an expression and may raise anything
                raise UsageError(
                    f"tool {tool_name!r}, parameter {parameter.name!r}: its type {annotation!r} cannot be resolved"
                    f" ({error}); import or define it where the function is"
                ) from error
        if service := service_of(annotation, SERVICES):
            injected[parameter.name] = service
        else:
            model.append(Parameter(parameter.name, annotation, parameter.default))
    return Parameters(tuple(model), injected)


def service_of(annotation: object, services: frozenset[type]) -> type | None:
    """The service that an annotation asks for: itself, in `Annotated`, or the only one in a union."""
    if isinstance(annotation, type) and annotation in services:
        return annotation
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return service_of(typing.get_args(annotation)[0], services)
    if origin is Union or origin is types.UnionType:
        found = {service for part in typing.get_args(annotation) if (service := service_of(part, services))}
        return found.pop() if len(found) == 1 else None
    return None


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
