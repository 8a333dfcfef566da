"""`dataclass(frozen=True)` that is made, and makes its values, in a third of the time.

The standard decorator compiles seven functions for a class, and surefoot has hundreds of such classes: half of what
its import costs. Here only `__init__` is compiled; the others are shared. All else (`fields`, `replace`, slots, pattern
matching, what pydantic and orjson read of a class) is the standard decorator's own work.
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import FrozenInstanceError, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

__all__ = ["dataclass", "field", "fields", "kept", "replace"]

T = TypeVar("T")
_MANY = 6  # slots from which on it is faster to change the class twice than to ask a descriptor for each

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, slots: bool = False) -> Callable[[type], type]:
        """The class as a frozen dataclass. One that is made from another is left to the standard decorator."""

        def decorate(cls: type) -> type:
            if any(map(dataclasses.is_dataclass, cls.__mro__)):
                return dataclasses.dataclass(frozen=frozen, slots=slots)(cls)
            return _frozen(dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls), slots)

        return decorate


class kept(Generic[T]):  # noqa: N801  # a decorator, named as one
    """A property of a record without slots that is made once: `cached_property` without its lock (Python 3.11)."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make

    def __get__(self, record: Any, of: object = None) -> T:
        made = record.__dict__[self._make.__name__] = self._make(record)
        return made


def _frozen(cls: Any, slots: bool) -> type:
    own, each = cls.__dict__, fields(cls)
    compared = _values(tuple(one.name for one in each if one.compare))
    of_hash = _values(tuple(one.name for one in each if (one.compare if one.hash is None else one.hash)))

    def equal(self: object, other: object) -> object:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: object) -> int:
        return hash(of_hash(self))

    shared = ("__repr__", "__setattr__", "__delattr__", *(("__getstate__", "__setstate__") if slots else ()))
    given = {"__init__": _init(cls, slots), "__eq__": equal, "__hash__": hashed}
    for name, made in (given | {name: vars(_Shared)[name] for name in shared}).items():
        if own.get(name) is None:  # what the class says itself holds
            setattr(cls, name, made)
    cls.__dataclass_params__.frozen = True
    return cls


def _init(cls: Any, slots: bool) -> object:
    """The one function that is compiled. It sets a dict at once, and a few slots by descriptors, which ask nobody.

    Many slots are set while the value is of a class that has them but is not frozen. A value of a subclass cannot
    become one of that.
    """
    known: dict[str, object] = {"_set": object.__setattr__, "_missing": _MADE}
    given: list[str] = ["self"]
    values: dict[str, str] = {}
    for one in fields(cls):
        name = values[one.name] = one.name
        if one.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = getattr(one.default_factory, "__origin__", one.default_factory)  # an alias is slow
            values[name] = f"_make_{name}() if {name} is _missing else {name}" if one.init else f"_make_{name}()"
            given += [f"{name}=_missing"] if one.init else []
        elif one.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = one.default
            values[name] = name if one.init else f"_default_{name}"
            given += [f"{name}=_default_{name}"] if one.init else []
        elif one.init:
            given.append(name)
    if not slots:
        body = [f"_set(self, '__dict__', {{{', '.join(f'{name!r}: {value}' for name, value in values.items())}}})"]
    elif len(values) < _MANY or cls.__base__ is not object:
        known |= {f"_set_{name}": getattr(cls, name).__set__ for name in values}
        body = [f"_set_{name}(self, {value})" for name, value in values.items()]
    else:
        become = vars(object)["__class__"].__set__
        known |= {"_own": cls, "_open": type("_Open", (), {"__slots__": (*values,)}), "_become": become, "_type": type}
        body = ["if _type(self) is _own:", " _become(self, _open)"]
        body += [*(f" self.{name} = {value}" for name, value in values.items()), " self.__class__ = _own"]
        each = "".join(f"({name!r}, {value})," for name, value in values.items())
        body += ["else:", f" for _name, _value in ({each}): _set(self, _name, _value)"]
    body += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    code = f" def __init__({', '.join(given)}):\n  " + ("\n  ".join(body) or "pass")
    names: dict[str, Any] = {}
    exec(f"def make({', '.join(known)}):\n{code}\n return __init__", sys.modules[cls.__module__].__dict__, names)  # noqa: S102 - names of fields
    made = names["make"](**known)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {one.name: one.type for one in fields(cls) if one.init} | {"return": None}
    return made


class _Made:
    """Stands in a signature for a value that is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Made()


def _values(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    return attrgetter(*names, names[-1]) if names else lambda _: ()  # of two names at least it makes a tuple


class _Shared:
    """The functions that all of these classes have in common."""

    def __repr__(self: Any) -> str:
        told = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
        return f"{type(self).__qualname__}({', '.join(told)})"

    def __setattr__(self, name: str, value: object) -> None:
        _refuse(self, name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _refuse(self, name)
        object.__delattr__(self, name)

    def __getstate__(self: Any) -> list[object]:
        return [getattr(self, one.name) for one in fields(self)]

    def __setstate__(self: Any, state: list[object]) -> None:
        for one, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, one.name, value)


def _refuse(self: Any, name: str) -> None:
    """A subclass that is not a dataclass itself may have attributes of its own."""
    if "__dataclass_fields__" in type(self).__dict__ or name in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot change field {name!r}")
