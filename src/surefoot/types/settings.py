"""A setting is one row: its default, what it may be, what it means, and who may set it.

The configurations are dataclasses of such rows. The check of each value, the settings file, the options of the command
line and the tables of the documentation all come from here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from itertools import compress, repeat
from operator import ne
from typing import TYPE_CHECKING, Any, Literal, Self, TypeGuard, TypeVar, cast

from surefoot.types.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
Check = Callable[[str, object], object]
"""Takes the name of a field and a value, and gives the value as it is kept. Raises `ConfigError`."""

Found = Literal["any", "default", "inside", "pages", "at most"] | tuple[object, ...]
"""What a settings file may say that was only found in the folder: any value, the default alone, a path inside of the
folder, names that end in `.md`, no more than the default, or these values."""

_ROW = "setting"


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a field besides its name, type and default. `option`: the command line's name for it."""

    check: Check
    meaning: str
    found: Found = "any"
    option: str = ""
    in_files: bool = True


def setting(
    default: T | Callable[[], T],
    check: Check,
    meaning: str,
    *,
    found: Found = "any",
    option: str = "",
    in_files: bool = True,
) -> T:
    """A field of a configuration; a `default` that can be called is made anew for each. `meaning` is for the docs."""
    metadata = row(check, meaning, found, option=option, in_files=in_files)
    if callable(default):
        return field(default_factory=cast("Callable[[], T]", default), metadata=metadata, hash=False)
    return field(default=default, metadata=metadata)


def row(
    check: Check, meaning: str = "", found: Found = "any", *, option: str = "", in_files: bool = True
) -> dict[str, Row]:
    """The metadata of a field without a default, which has to be given."""
    return {_ROW: Row(check, meaning, found, option, in_files)}


def rows(kind: type[Settings]) -> dict[str, Row]:
    """The rows of a configuration by field."""
    return {one.name: one.metadata[_ROW] for one in fields(cast("type[DataclassInstance]", kind))}


@cache
def defaults(kind: type) -> Mapping[str, object]:
    """The defaults of a configuration by field; `MISSING`, which equals nothing, for one that has to be given."""
    return {one.name: one.default if one.default_factory is MISSING else one.default_factory() for one in fields(kind)}


class Settings:
    """What each configuration can do: check itself when it is built, and be read and written as a JSON object."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker has the fields

        def __new__(cls, *_: object, **given: object) -> Self:
            check_known(cls, given, f"{cls.__name__}.")
            return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, row in rows(type(self)).items():
            given = getattr(self, name)
            if (kept := row.check(name, given)) is not given:
                object.__setattr__(self, name, kept)  # frozen for everybody else

    @classmethod
    def from_json(cls, table: object) -> Self:
        """The configuration of a JSON object, in which fields may be left out.

        Raises `ConfigError` for another shape and for an unknown field: a misspelt one must not mean its default.
        """
        return from_table(cls, table)

    def to_json(self) -> dict[str, object]:
        """The fields that differ from their default, as JSON values; `from_json` reads them back."""
        return non_defaults(cast("DataclassInstance", self))


def from_table(kind: type[T], table: object, name: str = "") -> T:
    """The dataclass of a table, whose values its constructor checks. Raises `ConfigError`."""
    if not isinstance(table, Mapping):
        raise ConfigError(name or kind.__name__, table, "give an object")
    given = cast("Mapping[str, object]", table)  # the keys of JSON and TOML are text; others are unknown fields
    check_known(kind, given, f"{name}." if name else "")
    try:
        return kind(**given)
    except TypeError as error:  # a field without a default was left out
        raise ConfigError(name or kind.__name__, dict(given), str(error).rpartition(") ")[2]) from error


def check_known(kind: type, given: Mapping[str, object], before: str = "") -> None:
    """Raise `ConfigError` for the name of a field that a dataclass does not have."""
    known = [one.name for one in fields(kind)]
    for key, value in given.items():
        if key not in known:
            raise ConfigError(f"{before}{key}", value, f"unknown field; choose from {', '.join(known)}")


def non_defaults(config: DataclassInstance) -> dict[str, object]:
    """The fields that do not have their default, by name; configurations inside are written the same way.

    So a default that changes would change what is read from an old journal: give it a row in `UPGRADES` of
    `journal/codec.py`.
    Source: spec/primitives.md, 1 and 5.
    """
    usual = defaults(type(config))
    given = map(getattr, repeat(config), usual)
    return {name: _plain(getattr(config, name)) for name in compress(usual, map(ne, given, usual.values()))}


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return non_defaults(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("Sequence[object]", value)]
    return value


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number that a float can hold; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_whole(value: object, least: int) -> TypeGuard[int]:
    """Whether it is a whole number of at least `least` that a float can hold; true and false are not."""
    return isinstance(value, int) and is_number(value) and value >= least


def fits(test: Callable[[Any], bool], remedy: str) -> Check:  # Any: each test asks for itself
    """Any value that passes a test."""

    def check(name: str, value: object) -> object:
        if not test(value):
            raise ConfigError(name, value, remedy)
        return value

    return check


def or_none(check: Check, meaning: str) -> Check:
    """None, which has a meaning of its own, or what another check takes."""

    def with_none(name: str, value: object) -> object:
        try:
            return None if value is None else check(name, value)
        except ConfigError as error:
            raise ConfigError(error.field, error.value, f"{error.message}, or None for {meaning}") from None

    return with_none


def whole(least: int, most: float = float("inf")) -> Check:
    """A whole number from `least` to `most`."""
    which = f"of at least {least}" if most == float("inf") else f"from {least} to {most}"
    return fits(lambda value: is_whole(value, least) and value <= most, f"give a whole number {which}")


def choice(*names: str) -> Check:
    """One of a few words."""
    return fits(lambda value: isinstance(value, str) and value in names, f"choose one of {', '.join(names)}")


def of_type(kind: type) -> Check:
    """An instance of a class."""
    return fits(lambda value: isinstance(value, kind), f"give a {kind.__name__}")


def tuple_of(test: Callable[[Any], bool], remedy: str, least: int = 0) -> Check:  # Any: each test asks for itself
    """A list or tuple of at least so many members, which all pass a test; it is kept as a tuple."""

    def check(name: str, value: object) -> object:
        members = cast("Sequence[object]", value)  # once it is known to be one
        if not isinstance(value, list | tuple) or len(members) < least:
            raise ConfigError(name, cast("object", value), remedy)  # whatever it is
        for member in members:
            if not test(member):
                raise ConfigError(name, member, remedy)
        return tuple(members)

    return check


def all_of(kind: type) -> Check:
    """A list or tuple of instances of a class."""
    return tuple_of(lambda one: isinstance(one, kind), f"give a tuple of {kind.__name__}")


def mapping_of(check: Callable[[object, object], object], remedy: str) -> Check:
    """A mapping; each key and value is checked, and what that gives is kept in a copy that nobody else can change."""

    def whole_mapping(name: str, value: object) -> object:
        if not isinstance(value, Mapping):
            raise ConfigError(name, value, remedy)
        return {key: check(key, each) for key, each in cast("Mapping[object, object]", value).items()}

    return whole_mapping


def pairs_of(test: Callable[[Any, Any], bool], of_each: str, remedy: str) -> Check:  # Any: each test asks for itself
    """A mapping whose keys and values pass a test two by two; `of_each` is the remedy for one pair."""

    def check(name: str, value: object) -> object:
        if not isinstance(value, Mapping):
            raise ConfigError(name, value, remedy)
        for key, each in (members := dict(cast("Mapping[object, object]", value))).items():
            if not test(key, each):
                raise ConfigError(name, {key: each}, of_each)
        return members

    return check


above_zero = fits(lambda value: is_number(value) and value > 0, "give a number above 0")
amount = fits(lambda value: is_number(value) and value >= 0, "give a number of at least 0")
seconds = fits(lambda value: is_number(value) and value > 0, "give seconds above 0")
share = fits(lambda value: is_number(value) and 0 <= value <= 1, "give a number from 0 to 1")
flag = fits(lambda value: type(value) is bool, "give true or false")
text = fits(lambda value: isinstance(value, str), "give a string")
mapping = fits(lambda value: isinstance(value, Mapping), "give a mapping, such as {}")
texts = tuple_of(lambda value: isinstance(value, str), "give a list of texts; leave it out, or give [], for none")
