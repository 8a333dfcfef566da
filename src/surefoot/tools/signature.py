"""What the signature and the docstring of a Python callable say: which parameters the model fills, which the runtime.

Source of what asks for a service: spec/reasoners.md, section 4.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Annotated, Union, cast

from surefoot.types.errors import UsageError
from surefoot.types.ports import ServiceKey

REQUIRED = inspect.Parameter.empty  # stands for the default of a parameter that has none
NO_SERVICE = frozenset({"builtins", "typing", "collections.abc"})
"""Modules whose types are ordinary values: `object` and `dict` never mean "any service that is one of these"."""

_FIELD = re.compile(r"^\s*[:@](param|parameter|arg|argument|keyword|type|return|returns|rtype|raises?)\b", re.MULTILINE)
_UNDERLINED = re.compile(r"^\s*[A-Z][A-Za-z ]+\n\s*-{3,}\s*$", re.MULTILINE)
_HEADED = re.compile(
    r"^\s*(Args|Arguments|Parameters|Params|Attributes|Returns?|Yields?|Raises|Examples?):\s*$", re.MULTILINE
)
_SECTION = re.compile(_HEADED.pattern + r"(?:\n(?:[ \t].*)?$)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Inject:
    """In `Annotated[T, Inject("name")]`: the service that is registered under `(T, "name")`, for two of one type."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            raise UsageError('Inject needs the name of a service, as in Annotated[Db, Inject("archive")]')


class Unclear(Exception):
    """An annotation may mean more than one service; the message says which, and how to ask for one."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter as written. `annotation` may still be a string; `default` is `REQUIRED` when there is none."""

    name: str
    annotation: object
    default: object

    @property
    def is_optional(self) -> bool:
        """Whether a call can do without it; asked of a resolved annotation."""
        return self.default is not REQUIRED or any(
            part in (None, types.NoneType) for part, _ in _parts(self.annotation)
        )


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
        told = "its signature cannot be read; wrap it in a function with types"
        raise UsageError(f"tool {tool_name!r}: {told}") from error
    filled = fn.keywords if isinstance(fn, functools.partial) else {}
    found: list[Parameter] = []
    for name, parameter in signature.parameters.items():
        if name in filled:
            continue
        fault = ""
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            fault = "a model cannot fill *args or **kwargs; name each parameter"
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            fault = "it is positional-only, but arguments come by name; remove the `/`, or wrap it"
        elif needs_types and parameter.annotation is parameter.empty:
            bound = " (for a method, decorate the bound one: tool(instance.method))" if name == "self" else ""
            fault = f"it has no type; annotate it{bound}"
        elif type(parameter.default).__module__ == "pydantic.fields":
            fault = "write Field(...) inside Annotated[...], and the default after `=`"
        if fault:
            raise UsageError(f"tool {tool_name!r}, parameter {name!r}: {fault}")
        found.append(Parameter(name, parameter.annotation, parameter.default))
    return Written(tuple(found), signature.return_annotation)


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
    names = _namespace_of(fn)
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
        if type(annotation) is type and annotation.__module__ == "builtins":  # nothing else needs to be asked of it
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
        return _evaluated(written.returns, _namespace_of(fn), local_names)
    except Exception:  # noqa: BLE001  # an expression that may raise anything; nobody needs the type of a result
        return object


def read_docstring(text: str | None) -> tuple[str, Mapping[str, str]]:
    """The description, and the text for each parameter (Google, NumPy, reST and Epydoc styles); ("", {}) for none.

    The parser is loaded only for docstrings that have sections.
    """
    if not text or not (text := inspect.cleandoc(text)):
        return "", {}
    if field := _FIELD.search(text):
        style = "EPYDOC" if "@" in field.group() else "REST"
    elif _UNDERLINED.search(text) or _HEADED.search(text):
        style = "NUMPYDOC" if _UNDERLINED.search(text) else "GOOGLE"
    else:
        return text, {}
    from docstring_parser import DocstringStyle, ParseError, parse  # noqa: PLC0415  # half of all tools need it not

    try:
        parsed = parse(text, style=DocstringStyle[style])
    except ParseError:
        return text, {}
    if style == "GOOGLE":  # the parser drops what stands behind the first section
        rest = [_SECTION.sub("", text[headed.start() :]).strip() if (headed := _HEADED.search(text)) else ""]
    else:
        rest = [one.description for one in parsed.meta if one.args and one.args[0] in ("notes", "warnings")]
    parts = [part for part in (parsed.short_description, parsed.long_description, *rest) if part]
    of_parameters = {each.arg_name: " ".join(each.description.split()) for each in parsed.params if each.description}
    return "\n\n".join(parts), of_parameters


def _namespace_of(fn: Callable[..., object]) -> dict[str, object]:
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


def service_for(annotation: object, known: Set[ServiceKey]) -> ServiceKey | None:
    """The one of the `known` services that an annotation asks for; None when it asks for none of them.

    Looks into `Annotated`, `Optional`, unions, named types (`type Store = Db`) and `NewType`. An exact type wins, also
    over another member of a union, then the only registered subclass (by inheritance, not by an ABC's hook). Raises
    `Unclear`.
    """
    parts = list(_parts(annotation))
    found = {key: None for part, name in parts if (key := _exact(part, name)) is not None and key in known}
    if not found:
        found = {key: None for part, name in parts if (key := _known_for(part, name, known)) is not None}
    if len(found) > 1:
        raise Unclear(f"it may mean {_keys_text(found)}; annotate it with one of them")
    return next(iter(found), None)


def mentioned_in(annotation: object, known: Set[ServiceKey]) -> ServiceKey | None:
    """One of the `known` services that stands inside another type, as in `list[Db]`; None where there is none.

    Nobody could fill such a parameter: not the model, and the runtime gives a service as it is.
    """
    waiting, seen = [annotation], list[object]()
    while waiting:
        for part, _ in _parts(waiting.pop()):
            origin: object = typing.get_origin(part)  # what stands in its brackets, also in inner ones
            found: list[object] = [origin] if _is_named(origin) else []
            for each in () if origin is typing.Literal else typing.get_args(part):
                found += cast("list[object]", each) if isinstance(each, list) else [each]  # as in Callable[[Db], int]
            inner = [each for each in found if each not in seen]  # a named type may hold itself
            seen += inner
            for each in inner:
                if (key := service_for(each, known)) is not None:
                    return key
            waiting += inner
    return None


def named_in(annotation: object) -> ServiceKey | None:
    """What an annotation with `Inject` asks for, registered or not; None for one without."""
    for part, name in _parts(annotation):
        if name and part is not types.NoneType:
            return (part, name) if is_class(part) else (object, name)
    return None


def has_classes_only(annotation: object) -> bool:
    """Whether it is a class, or a union of classes: what may stand for a service."""
    return all(is_class(part) or part is None for part, _ in _parts(annotation))


def is_class(annotation: object) -> typing.TypeGuard[type[object]]:
    """Whether it is a class as it stands, not one with parameters such as `list[int]`."""
    return isinstance(annotation, type) and typing.get_origin(annotation) is None


def key_text(key: ServiceKey) -> str:
    """A key as a developer writes it: `Db`, or `(Db, 'archive')`."""
    return f"({key[0].__name__}, {key[1]!r})" if isinstance(key, tuple) else key.__name__


def _is_named(annotation: object) -> bool:
    """Whether it is what `type Store = Db` makes: of `typing` from Python 3.12 on, before that of an extension."""
    return type(annotation).__name__ == "TypeAliasType"


def _parts(annotation: object, name: str = "") -> Iterator[tuple[object, str]]:
    """The alternatives of an annotation, each with the name of the `Inject` around it."""
    while isinstance(annotation, typing.NewType) or _is_named(annotation):
        inner = "__supertype__" if isinstance(annotation, typing.NewType) else "__value__"
        annotation = cast("object", getattr(annotation, inner, None))
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        inner, *marks = typing.get_args(annotation)
        yield from _parts(inner, next((mark.name for mark in marks if isinstance(mark, Inject)), name))
    elif origin is Union or origin is types.UnionType:
        for part in typing.get_args(annotation):
            yield from _parts(part, name)
    else:
        yield annotation, name


def _known_for(part: object, name: str, known: Set[ServiceKey]) -> ServiceKey | None:
    exact = _exact(part, name)
    if exact is None or not is_class(part):
        return None
    if exact in known:
        return exact
    if part.__module__ in NO_SERVICE:
        return None
    below = [key for key in known if part in (key[0] if isinstance(key, tuple) else key).__mro__]
    same_name = [key for key in below if (key[1] if isinstance(key, tuple) else "") == name]
    if len(same_name) > 1:
        raise Unclear(f"{key_text(exact)} may mean {_keys_text(same_name)}; annotate it with one of them")
    if not same_name and below and not name:
        raise Unclear(f'{_keys_text(below)} is registered by name only; say which with Annotated[T, Inject("name")]')
    return same_name[0] if same_name else None


def _exact(part: object, name: str) -> ServiceKey | None:
    if not is_class(part):
        return None
    return (part, name) if name else part


def _keys_text(keys: Iterable[ServiceKey]) -> str:
    return " or ".join(sorted(map(key_text, keys)))
