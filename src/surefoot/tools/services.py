"""Which service a parameter asks for, by its annotation. Source: spec/reasoners.md, section 4."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Annotated, Union, cast

from surefoot.types.errors import UsageError
from surefoot.types.ports import ServiceKey

NO_SERVICE = frozenset({"builtins", "typing", "collections.abc"})
"""Modules whose types are ordinary values: `object` and `dict` never mean "any service that is one of these"."""


@dataclass(frozen=True, slots=True)
class Inject:
    """In `Annotated[T, Inject("name")]`: the service that is registered under `(T, "name")`, for two of one type."""

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]  # misuse is told
            raise UsageError('Inject needs the name of a service, as in Annotated[Db, Inject("archive")]')


class Unclear(Exception):
    """An annotation may mean more than one service; the message says which, and how to ask for one."""


def is_value(annotation: object) -> bool:
    """Whether it is a built-in class such as `int`, so that nothing else needs to be asked of it."""
    return type(annotation) is type and annotation.__module__ == "builtins"


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
        raise Unclear(f"it may mean {_told(found)}; annotate it with one of them")
    return next(iter(found), None)


def mentioned_in(annotation: object, known: Set[ServiceKey]) -> ServiceKey | None:
    """One of the `known` services that stands inside another type, as in `list[Db]`; None where there is none.

    Nobody could fill such a parameter: not the model, and the runtime gives a service as it is.
    """
    waiting, seen = [annotation], list[object]()
    while waiting:
        for part, _ in _parts(waiting.pop()):
            inner = [each for each in _arguments(part) if each not in seen]  # a named type may hold itself
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


def takes_none(annotation: object) -> bool:
    """Whether None is among what an annotation allows."""
    return any(part in (None, types.NoneType) for part, _ in _parts(annotation))


def has_classes_only(annotation: object) -> bool:
    """Whether it is a class, or a union of classes: what may stand for a service."""
    return all(is_class(part) or part is None for part, _ in _parts(annotation))


def is_class(annotation: object) -> typing.TypeGuard[type[object]]:
    """Whether it is a class as it stands, not one with parameters such as `list[int]`."""
    return isinstance(annotation, type) and typing.get_origin(annotation) is None


def key_text(key: ServiceKey) -> str:
    """A key as a developer writes it: `Db`, or `(Db, 'archive')`."""
    return f"({key[0].__name__}, {key[1]!r})" if isinstance(key, tuple) else key.__name__


def _arguments(part: object) -> list[object]:
    """What stands in the brackets of a type, also in inner ones, as those of `Callable[[Db], int]`."""
    origin: object = typing.get_origin(part)
    found: list[object] = [origin] if _is_named(origin) else []
    for each in () if origin is typing.Literal else typing.get_args(part):
        found += cast("list[object]", each) if isinstance(each, list) else [each]
    return found


def _is_named(annotation: object) -> bool:
    """Whether it is what `type Store = Db` makes: of `typing` from Python 3.12 on, before that of an extension."""
    return type(annotation).__name__ == "TypeAliasType"


def _meant(annotation: object) -> object:
    """What a `NewType` or a named type stands for; other annotations as they are."""
    while True:
        if isinstance(annotation, typing.NewType):
            annotation = cast("object", annotation.__supertype__)
        elif _is_named(annotation):
            annotation = cast("object", getattr(annotation, "__value__", None))
        else:
            return annotation


def _parts(annotation: object, name: str = "") -> Iterator[tuple[object, str]]:
    """The alternatives of an annotation, each with the name of the `Inject` around it."""
    annotation = _meant(annotation)
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
    below = [key for key in known if part in _type_of(key).__mro__]
    same_name = [key for key in below if _name_of(key) == name]
    if len(same_name) > 1:
        raise Unclear(f"{key_text(exact)} may mean {_told(same_name)}; annotate it with one of them")
    if not same_name and below and not name:
        raise Unclear(f'{_told(below)} is registered by name only; say which with Annotated[T, Inject("name")]')
    return same_name[0] if same_name else None


def _exact(part: object, name: str) -> ServiceKey | None:
    if not is_class(part):
        return None
    return (part, name) if name else part


def _type_of(key: ServiceKey) -> type:
    return key[0] if isinstance(key, tuple) else key


def _name_of(key: ServiceKey) -> str:
    return key[1] if isinstance(key, tuple) else ""


def _told(keys: typing.Iterable[ServiceKey]) -> str:
    return " or ".join(sorted(map(key_text, keys)))
