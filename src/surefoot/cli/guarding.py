"""How the gate of a run judges, as the table [guard] and the options have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import cast, get_args

from surefoot.cli.options import Options
from surefoot.runtime.rules import cedar_of, rules_of
from surefoot.types.errors import ConfigError
from surefoot.types.guard import GuardConfig
from surefoot.types.tools import Effect

FILES = ("rules_file", "cedar_file")
"""Fields of the table that name a file, from the folder of the settings file."""

_ELSEWHERE = ("constraints", "rules", "standing", "cedar")  # what is written into these files, or in Python

FIELDS = tuple(one.name for one in fields(GuardConfig) if one.name not in _ELSEWHERE) + FILES


def guard_from(table: Mapping[str, object]) -> GuardConfig:
    """The configuration of a table. Raises `ConfigError` for a value that cannot be meant, also in its files."""
    given = {name: value for name, value in table.items() if name not in FILES}
    if "lexicon" in given:
        given["lexicon"] = _lexicon(given["lexicon"])
    rules_file, cedar_file = (_file(name, table.get(name)) for name in FILES)
    config = GuardConfig(**given)  # pyright: ignore[reportArgumentType]  # it checks
    return _with_files(config, rules_file, cedar_file)


def _file(name: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ConfigError(name, value, "give the path of a file")


def guard_said(options: Options, before: GuardConfig | None) -> GuardConfig | None:
    """The configuration with what the options say; None when they say nothing. Raises as `guard_from`."""
    if options.guard is None and options.rules is None and options.cedar is None:
        return None
    config = before or GuardConfig()
    if options.guard is not None:
        config = replace(config, mode=options.guard.value)
    return _with_files(config, options.rules and str(options.rules), options.cedar and str(options.cedar))


def _with_files(config: GuardConfig, rules_file: str | None, cedar_file: str | None) -> GuardConfig:
    """The configuration with the rules and policies of files in the place of those that it had."""
    if rules_file is not None:
        rules, standing = rules_of(rules_file)
        config = replace(config, rules=rules, standing=standing)
    return config if cedar_file is None else replace(config, cedar=cedar_of(cedar_file))


def _lexicon(value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise ConfigError("lexicon", value, "give a table")
    words: dict[str, tuple[str, ...]] = {}
    for effect, listed in cast("Mapping[str, object]", value).items():  # the keys of a TOML table are text
        if effect not in get_args(Effect):
            raise ConfigError("lexicon", effect, f"choose one of {', '.join(get_args(Effect))}")
        if not isinstance(listed, list):
            raise ConfigError(f"lexicon.{effect}", listed, "give a list of words")
        texts = cast("list[object]", listed)
        words[effect] = tuple(text for text in texts if isinstance(text, str) and text.strip())
        if not texts or len(words[effect]) != len(texts):
            raise ConfigError(f"lexicon.{effect}", texts, "give a list of words")
    return words
