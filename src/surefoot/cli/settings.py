"""What is set about a run: by a settings file, and by the options that beat it.

A settings file is TOML: data that is never executed, without keys. It speaks for new runs only. A run that goes on has
its own configuration in its journal, so that a file which its tools might have written cannot loosen it. A file that
nobody named, because it was found in the folder, may say less (`folder_settings`).
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from surefoot.cli.folder_settings import check_files, check_found, check_place
from surefoot.cli.guarding import FIELDS, FILES, guard_from, guard_said
from surefoot.cli.options import Options, PlanSigning
from surefoot.types.config import Budget, LoopConfig
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.guard import GuardConfig
from surefoot.types.knowledge import ConventionsConfig
from surefoot.types.planning import PlanConfig
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.profile import ToolProfile
from surefoot.types.progress import StepIterationConfig

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

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A table: the defaults of its fields, and what makes something of those that are given."""

    default: Any  # one of the eight configurations; its fields are read by name
    make: Callable[[Table], Any]  # gives the same class
    fields: tuple[str, ...] = ()  # where they are other than those of the class


_KINDS: Mapping[str, _Kind] = {
    "budget": _Kind(Budget(), lambda given: Budget(**given)),  # pyright: ignore[reportArgumentType]  # it checks
    "loop": _Kind(LoopConfig(), lambda given: LoopConfig(**given)),  # pyright: ignore[reportArgumentType]  # it checks
    "tool_profile": _Kind(ToolProfile(), ToolProfile.from_json),
    "step_iteration": _Kind(StepIterationConfig(), StepIterationConfig.from_json),
    "pre_hydration": _Kind(PreHydrationConfig(), PreHydrationConfig.from_json),
    "guard": _Kind(GuardConfig(), guard_from, FIELDS),
    "plan": _Kind(PlanConfig(), lambda given: PlanConfig(**given)),  # pyright: ignore[reportArgumentType]  # it checks
    "conventions": _Kind(ConventionsConfig("."), lambda given: ConventionsConfig(**{"root": ".", **given})),  # pyright: ignore[reportArgumentType]  # it checks
}

_SHAPES: Mapping[type, str] = {bool: "true or false", dict: "a table"}


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
    if is_found:
        check_place(path)
    made: dict[str, Any] = {}  # one of the eight configurations by the name of its table
    for name, table in _read(path).items():
        if name not in _KINDS:
            raise UsageError(
                f"{path}: there is no table or field {name!r} at the top; there are {_listed(_KINDS)}; "
                "models are chosen with --model, and keys come from the environment"
            )
        if not isinstance(table, Mapping):
            raise UsageError(f"{path}: {name!r} has to be a table; write [{name}] and its fields below")
        given = cast("Table", table)  # the keys of a TOML table are text
        if is_found:
            check_files(path, name, given)
        made[name] = _made(path, name, given)
        if is_found:
            check_found(path, name, given, _KINDS[name].default, made[name])
    return replace(made.pop("loop", LoopConfig()), **made)


def changed(options: Options, config: LoopConfig, reasoner: str = "") -> LoopConfig | None:
    """The configuration with what the options say, field by field; None when they say nothing about it.

    `--max-steps` is said of the whole run: a `reasoner` that plans has its own ceiling for that, which it sets, too.
    Raises `ConfigError` for a value that cannot be meant.
    """
    said = _said(max_rounds=options.max_rounds)
    if budget := _said(
        max_steps=options.max_steps,
        max_tokens=options.max_tokens,
        max_seconds=options.max_seconds,
        max_cost_usd=options.max_cost,
    ):
        said["budget"] = replace(config.budget, **budget)
    if profile := _said(
        include=options.include,
        exclude=options.exclude,
        max_tools=options.max_tools,
        require_verified=options.verified_only or None,
    ):
        said["tool_profile"] = replace(config.tool_profile or ToolProfile(), **profile)
    if options.on_stuck is not None:  # who says what is to happen wants it to happen
        stuck = config.step_iteration or StepIterationConfig()
        said["step_iteration"] = replace(stuck, on_limit_reached=options.on_stuck.value, enabled=True)
    ceiling = options.max_steps if reasoner == "plan" else None
    if plan := {**_plan_said(options), **_said(max_llm_calls=ceiling)}:
        said["plan"] = replace(config.plan or PlanConfig(), **plan)
    if guard := guard_said(options, config.guard):
        said["guard"] = guard
    if options.prefetch is not None:
        said["pre_hydration"] = (config.pre_hydration or PreHydrationConfig()) if options.prefetch else None
    return replace(config, **said) if said else None


def _plan_said(options: Options) -> dict[str, Any]:  # Any: typed by the options
    """What the options say about plans. Raises `UsageError` for a plan that is to be reviewed and never signed."""
    signing = options.approve_plan
    if options.review_plan and signing is PlanSigning.never:
        raise UsageError("--review-plan and --approve-plan never contradict each other; leave one of them out")
    if options.review_plan and signing is None:
        signing = PlanSigning.first
    return _said(
        approve_plan=signing.value if signing else None,
        max_replans=options.max_replans,
        max_parallel=options.max_parallel,
    )


def _said(**options: object) -> dict[str, Any]:  # Any: typed by the options
    return {name: value for name, value in options.items() if value is not None}


def _read(path: Path) -> Table:
    try:
        if not path.is_file():
            raise UsageError(f"{path}: there is no such settings file; name another with --config, or none with ''")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: the settings cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also text that is no UTF-8, and numbers without end
        raise UsageError(f"{path}: this is no TOML: {error}; mend it, or go without it with --config ''") from error


def _made(path: Path, name: str, table: Table) -> object:
    """What a table gives. A field that is unknown is named without its value, which could be a key."""
    kind = _KINDS[name]
    known = list(kind.fields) or [o.name for o in fields(kind.default) if name != "loop" or o.name not in _KINDS]
    for field in table:
        if field in _KINDS and name == "loop":
            raise UsageError(f"{path}: [loop] has no field {field!r}; it is a table of its own: [{field}]")
        if field not in known:
            raise UsageError(f"{path}: [{name}] has no field {field!r}; there are {_listed(known)}")
    try:
        for field, value in table.items():
            _check_shape(field, value, getattr(kind.default, field, None))
        return kind.make(_with_places(path, table) if name == "guard" else table)
    except OverflowError as error:
        raise UsageError(f"{path}: [{name}] holds a number that is too large; give a smaller one") from error
    except ConfigError as error:
        hint = " (TOML has no None: leave the field out for its default)" if "None" in error.message else ""
        raise ConfigError(f"{path}: [{name}] {error.field}", error.value, error.message + hint) from error


def _with_places(path: Path, table: Table) -> Table:
    """The table with the files that it names where they are: seen from the folder of the settings file."""
    named = {name: str(path.parent / file) for name in FILES if isinstance(file := table.get(name), str)}
    return {**table, **named}


def guard_files(path: Path | None, options: Options) -> tuple[str, ...]:
    """The files of rules and policies that a settings file and the options name, as absolute paths."""
    named: Table = {}
    if path and isinstance(table := _read(path).get("guard"), Mapping):
        named = _with_places(path, cast("Table", table))  # the keys of a TOML table are text
    said = [*(named.get(name) for name in FILES), options.rules, options.cedar]
    return tuple(os.path.abspath(str(file)) for file in said if file)  # noqa: PTH100  # also of a link as it is named


def _check_shape(field: str, value: object, default: object) -> None:
    """Raise `ConfigError` for what the constructors take on trust, because Python's types say it."""
    if (wanted := _SHAPES.get(type(default))) and type(value) is not type(default):
        raise ConfigError(field, value, f"give {wanted}")
    if field == "output_schema":
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigError(field, value, "JSON has no dates, no inf and no nan; leave them out") from error


def _listed(names: Mapping[str, object] | list[str]) -> str:
    return ", ".join(names)
