"""What a developer declares of a tool that is not written in its code: of a server's, or in a page of configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from surefoot.types.dataclass import dataclass, replace
from surefoot.types.errors import ConfigError
from surefoot.types.rules import Role
from surefoot.types.settings import (
    Settings,
    choice,
    flag,
    from_table,
    mapping_of,
    of_type,
    or_none,
    seconds,
    setting,
    text,
    texts,
)
from surefoot.types.tools import Approval, Effect, ToolSpec


def texts_by_name(name: str, value: object) -> Mapping[str, str]:
    """A copy, so that nobody changes what is in use. No message shows a value."""
    given = cast("Mapping[object, object]", value) if isinstance(value, Mapping) else {0: 0}
    if not all(isinstance(each, str) for pair in given.items() for each in pair):
        raise ConfigError(name, "(not shown)", "give a table of texts")
    return cast("Mapping[str, str]", dict(given))  # as just seen


@dataclass(frozen=True, slots=True)
class Declared(Settings):
    """What the developer declares of one tool. `effect` None: nothing, so it counts as a write.

    The fields are those of `ToolSpec`; the roles of its parameters and what else the gate reads are kept as given.
    Raises `ConfigError`. Source: spec/guard.md, section 4.3.
    """

    effect: Effect | None = setting(None, or_none(choice(*get_args(Effect)), "undeclared"), "")
    egress: bool = setting(False, flag, "")
    idempotent: bool = setting(False, flag, "")
    private: bool = setting(False, flag, "")
    verified: bool = setting(False, flag, "")
    polling: bool = setting(False, flag, "")
    timeout_s: float | None = setting(None, or_none(seconds, "the server's"), "")
    roles: Mapping[str, str] = setting(dict[str, str], texts_by_name, "")
    sensitive: tuple[str, ...] = setting((), texts, "")
    trusted_fields: tuple[str, ...] = setting((), texts, "")
    directory: bool | None = setting(None, or_none(flag, "by its name"), "")
    identity: tuple[str, ...] = setting((), texts, "")
    approval: Approval | None = setting(None, or_none(choice(*get_args(Approval)), "without"), "")
    queue: str = setting("", text, "")

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if unknown := sorted(set(self.roles.values()) - set(get_args(Role))):
            raise ConfigError("roles", unknown, f"must be of {', '.join(get_args(Role))}")

    def of(self, spec: ToolSpec) -> ToolSpec:
        """The tool as it is declared. What is left out stays as the tool's own code has it."""
        said = {name: value for name, usual in _USUAL.items() if (value := getattr(self, name)) != usual}
        is_read = said.get("effect") == "read"
        more = {"idempotent": True} if is_read else {}
        return replace(spec, **{**more, **said}, declared=spec.declared or self.effect is not None)


def as_declared(spec: ToolSpec, declared: Mapping[str, Declared]) -> ToolSpec:
    """The tool with what is declared of its name, if anything is."""
    return declared[spec.name].of(spec) if spec.name in declared else spec


_USUAL = {name: getattr(Declared(), name) for name in Declared.__dataclass_fields__}


def declarations(table: object) -> dict[str, Declared]:
    """The declarations of a table by tool. Raises `ConfigError` that names the tool and the field."""
    of_type(Mapping)("tools", table)
    made: dict[str, Declared] = {}
    for name, said in cast("Mapping[str, object]", table).items():  # the keys of JSON and TOML are text
        try:
            made[name] = from_table(Declared, said)
        except ConfigError as error:
            at = "" if error.field == Declared.__name__ else f".{error.field}"
            raise ConfigError(f"tools.{name}{at}", error.value, error.message) from None
    return made


by_name = mapping_of(lambda name, value: of_type(Declared)(f"tools.{name}", value), "give a table of tools")
"""The check of a setting that declares tools by their names."""
