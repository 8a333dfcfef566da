"""What is set about a run: by a settings file, and by the options that beat it.

A settings file is TOML: data that is never executed, without keys. It speaks for new runs only. A run that goes on has
its own configuration in its journal, so that a file which its tools might have written cannot loosen it.

A file that nobody named, because it was found in the folder, may say less: the folder may come from elsewhere, or a
change to it may. So it chooses no model and sends no key anywhere, it loosens neither the gate nor what else keeps
untrusted text away, and it reads and writes nothing outside of its folder. What tightens is taken, and so are limits,
up or down: they cost time and money, and open nothing. Each setting says what is taken (`Row.found`); the rest needs
a person who names the file with `--config`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from surefoot.cli.options import Options
from surefoot.runtime.rules import cedar_of, rules_of
from surefoot.types.config import TABLES, LoopConfig
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.guard import GuardConfig
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.settings import Row, Settings, defaults, rows

SETTINGS_FILE = "surefoot.toml"

SettingsOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help=f'Settings file; "" is none. Default: {SETTINGS_FILE} in this folder, if it is there; '
        "of that one no models are taken, and nothing that loosens the gate.",
        show_default=False,
    ),
]

FILES = ("rules_file", "cedar_file")
"""Fields of the table [guard] that name a file, from the folder of the settings file."""

Table = Mapping[str, object]


def settings_path(given: str | None) -> Path | None:
    """The settings file that counts: the one that is named, none for "", else this folder's own if it is there."""
    if given is not None:
        return Path(given).absolute() if given else None
    own = Path.cwd() / SETTINGS_FILE
    return own if os.path.lexists(own) else None  # a link that leads nowhere is told, not passed over


def config_in(path: Path, *, is_found: bool = False) -> LoopConfig:
    """The configuration that a settings file gives; what it leaves out is as by default.

    Raises `UsageError` (for one value `ConfigError`) that names the file, the table, the field and what to do; also for
    what a file may not say that `is_found` in the folder, and that nobody named.
    """
    if is_found and not path.resolve().is_relative_to(path.parent.resolve()):
        raise UsageError(
            f"{path}: this is a link that leads out of the folder, so it is not read; say --config {path.name} to use "
            "it, or --config '' to go without it"
        )
    made: dict[str, Any] = {}  # the configurations by the name of their table
    for name, table in _read(path).items():
        if name not in TABLES:
            raise UsageError(
                f"{path}: unknown table or field {name!r} at the top; choose from {', '.join(TABLES)}; "
                "models are chosen with --model, and keys come from the environment"
            )
        if not isinstance(table, Mapping):
            raise UsageError(f"{path}: {name!r} has to be a table; write [{name}] and its fields below")
        made[name] = _made(path, name, cast("Table", table), is_found=is_found)  # the keys of a TOML table are text
    return replace(made.pop("loop", LoopConfig()), **made)


def _made(path: Path, name: str, table: Table, *, is_found: bool) -> object:
    """What a table gives. A field that is unknown is named without its value, which could be a key."""
    known = {field: row for field, row in rows(TABLES[name]).items() if row.in_files}
    names = (*known, *(FILES if name == "guard" else ()))
    for field, value in table.items():
        if field in TABLES and name == "loop":
            raise UsageError(f"{path}: [loop] has no field {field!r}; it is a table of its own: [{field}]")
        if field not in names:
            raise UsageError(f"{path}: [{name}] has no field {field!r}; choose from {', '.join(names)}")
        if is_found and field in FILES and not _is_inside(path.parent, value):
            raise _refusal(path, name, field, "reads no file outside of it")
    try:
        config = _built(name, table, path)
    except OverflowError as error:
        raise UsageError(f"{path}: [{name}] holds a number that is too large; give a smaller one") from error
    except ConfigError as error:
        hint = " (TOML has no None: leave the field out for its default)" if "None" in error.message else ""
        raise ConfigError(f"{path}: [{name}] {error.field}", error.value, error.message + hint) from error
    if is_found:
        _check_found(path, name, table, known, config)
    return config


def _built(name: str, table: Table, path: Path) -> Settings:
    if name == "conventions":
        table = {"root": ".", **table}
    config = TABLES[name].from_json({field: value for field, value in table.items() if field not in FILES})
    if isinstance(config, GuardConfig):
        config = _with_files(config, *(_file(path.parent, field, table.get(field)) for field in FILES))
    return config


def _check_found(path: Path, name: str, table: Table, known: Mapping[str, Row], config: object) -> None:
    """Raise `UsageError` for the first field that needs `--config`. The value is not told: it may hold a key."""
    usual = defaults(TABLES[name])
    for field, value in table.items():
        if field in FILES or value == usual[field]:
            continue
        if not _is_taken(path.parent, known[field], value, usual[field]):
            raise _refusal(path, name, field, f"cannot set {field} so")
    if isinstance(config, GuardConfig) and config.standing:
        raise _refusal(path, name, "rules_file", "cannot allow calls, as [[standing]] does")


def _is_taken(folder: Path, row: Row, value: object, default: object) -> bool:
    match row.found:
        case "any":
            return True
        case "default":
            return False
        case "inside":
            return _is_inside(folder, value)
        case "pages":
            return isinstance(value, list) and all(str(one).endswith(".md") for one in cast("list[object]", value))
        case "at most":
            return cast("float", value) <= cast("float", default)  # numbers, as its check has just said
        case _:
            return value in row.found


def _is_inside(folder: Path, value: object) -> bool:
    return not isinstance(value, str) or (folder / value).resolve().is_relative_to(folder.resolve())


def _refusal(path: Path, name: str, field: str, why: str) -> UsageError:
    option = {"mode": "--guard", "rules_file": "--rules"}.get(field) if name == "guard" else None
    instead = f"give {option} instead" if option else "take the line out"
    return UsageError(
        f"{path}: [{name}] {field}: a file that was only found in this folder {why}; say --config {path.name} to use "
        f"all that this one says, or {instead}"
    )


def changed(options: Options, config: LoopConfig, reasoner: str = "") -> LoopConfig | None:
    """The configuration with what the options say, field by field; None when they say nothing about it.

    `--max-steps` is said of the whole run: a `reasoner` that plans has its own ceiling for that, which it sets, too.
    `--on-stuck`, `--guard`, `--rules` and `--cedar` switch on what they are about.
    Raises `ConfigError` for a value that cannot be meant.
    """
    said = {name: dict(table) for name, table in options.settings.items()}
    plan = said.setdefault("plan", {})
    if options.review_plan and plan.setdefault("approve_plan", "first") == "never":
        raise UsageError("--review-plan and --approve-plan never contradict each other; leave one of them out")
    if reasoner == "plan" and "max_steps" in said.get("budget", {}):
        plan["max_llm_calls"] = said["budget"]["max_steps"]
    if "step_iteration" in said:  # who says what is to happen wants it to happen
        said["step_iteration"]["enabled"] = True
    parts: dict[str, Any] = said.pop("loop", {})
    for name, values in said.items():
        if values:
            before: Any = getattr(config, name) or TABLES[name]()  # a dataclass, as all of them are
            parts[name] = replace(before, **values)
    if options.rules or options.cedar:
        guard = parts.get("guard") or config.guard or GuardConfig()
        parts["guard"] = _with_files(guard, options.rules and str(options.rules), options.cedar and str(options.cedar))
    if options.prefetch is not None:
        parts["pre_hydration"] = (config.pre_hydration or PreHydrationConfig()) if options.prefetch else None
    return replace(config, **parts) if parts else None


def guard_files(path: Path | None, options: Options) -> tuple[str, ...]:
    """The files of rules and policies that a settings file and the options name, as absolute paths."""
    table = _read(path).get("guard") if path else None
    named: Iterable[object] = (
        (_file(path.parent, name, cast("Table", table).get(name)) for name in FILES)  # the keys of TOML are text
        if path and isinstance(table, Mapping)
        else ()
    )
    return tuple(os.path.abspath(str(file)) for file in (*named, options.rules, options.cedar) if file)  # noqa: PTH100  # also of a link as it is named


def _file(folder: Path, name: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ConfigError(name, value, "give the path of a file")
    return value if value is None else str(folder / value)


def _with_files(config: GuardConfig, rules_file: str | None, cedar_file: str | None) -> GuardConfig:
    """The configuration with the rules and policies of files in the place of those that it had."""
    if rules_file is not None:
        rules, standing = rules_of(rules_file)
        config = replace(config, rules=rules, standing=standing)
    return config if cedar_file is None else replace(config, cedar=cedar_of(cedar_file))


def _read(path: Path) -> Table:
    try:
        if not path.is_file():
            raise UsageError(f"{path}: there is no such settings file; name another with --config, or none with ''")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: the settings cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also text that is not UTF-8, and numbers without end
        raise UsageError(f"{path}: not valid TOML: {error}; mend it, or go without it with --config ''") from error
