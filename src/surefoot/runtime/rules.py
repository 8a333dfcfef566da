"""Rules and policies of a person, and what tools are, read from files. Source: spec/guard.md, sections 4.10 and 9.

A file of rules is TOML with `[[rule]]`, `[[standing]]` and `[tools.NAME]` tables; one of Cedar is text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from surefoot.core.gate.rules import check_cedar
from surefoot.types.errors import ConfigError
from surefoot.types.rules import Declared, Rule, StandingRule, declarations, rule_from, standing_from

T = TypeVar("T", Rule, StandingRule)


def rules_of(path: Path | str) -> tuple[tuple[Rule, ...], tuple[StandingRule, ...]]:
    """The rules of a file, and its standing rules, in their order: for `GuardConfig(rules=…, standing=…)`.

    Raises `ConfigError` that names the file and the rule for whatever cannot be read whole and as it is meant.
    """
    told = _table(path)
    return _build_rules(path, told, "rule", rule_from), _build_rules(path, told, "standing", standing_from)


def declared_of(path: Path | str) -> dict[str, Declared]:
    """What the `[tools.NAME]` tables of a rules file say about tools: for `GuardConfig(declared=…)`.

    Raises `ConfigError` that names the file, the tool and the field.
    """
    try:
        return declarations(_table(path).get("tools", {}))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.field}", error.value, error.message) from error


def _table(path: Path | str) -> dict[str, Any]:
    """A file of rules. Any: of whatever type TOML gives; each is checked."""
    import tomllib  # noqa: PLC0415  # a run without rules does not pay for the parser

    try:
        told = tomllib.loads(_text(path, "rules"))
    except (ValueError, RecursionError) as error:
        raise ConfigError("rules", str(path), f"not valid TOML: {error}") from error
    for name in told:
        if name not in ("rule", "standing", "tools"):
            why = "a file of rules has no such table; write [[rule]], [[standing]] or [tools.NAME]"
            raise ConfigError(name, str(path), why)
    return told


def cedar_of(path: Path | str) -> str:
    """The text of a file of Cedar policies, for `GuardConfig(cedar=…)`. Raises `ConfigError` if it is none."""
    text = _text(path, "cedar")
    try:
        check_cedar(text)
    except ConfigError as error:
        raise ConfigError(error.field, str(path), error.message) from error
    return text


def _text(path: Path | str, field: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        told = f"the file cannot be read: {error.strerror}; name another one"
        raise ConfigError(field, str(path), told) from error
    except ValueError as error:
        raise ConfigError(field, str(path), f"the file cannot be read: {error}; save it as UTF-8") from error


def _build_rules(
    path: Path | str, told: Mapping[str, Any], kind: str, make: Callable[[Mapping[str, object]], T]
) -> tuple[T, ...]:
    """The rules of one kind. Any: of whatever type TOML gives; each is checked."""
    tables: object = told.get(kind, [])
    if not isinstance(tables, list):
        raise ConfigError(kind, str(path), f"write [[{kind}]], with two brackets")
    made: dict[str, T] = {}
    for number, table in enumerate(cast("list[object]", tables), 1):
        if not isinstance(table, Mapping):
            raise ConfigError(kind, str(path), f"{kind} {number} is not a table; write [[{kind}]]")
        entries = cast("Mapping[str, object]", table)  # the keys of a TOML table are text
        name = f"{path}: {kind} {entries.get('id', number)!r}"
        try:
            rule = make(entries)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.field}", error.value, error.message) from error
        if rule.id in made:
            raise ConfigError(f"{name}: id", rule.id, "there is another one of this id")
        made[rule.id] = rule
    return tuple(made.values())
