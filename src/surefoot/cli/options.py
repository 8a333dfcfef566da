"""What can be set about a run: by options, which several commands share, and by a settings file that they beat.

A settings file is TOML, never executed, without keys, and for new runs only: one that goes on has its configuration in
its journal, so that a file which its tools might have written cannot loosen it. A file that nobody named, because it
was found in the folder, may come from elsewhere. So it chooses no model, sends no key anywhere, loosens nothing that
keeps untrusted text away, and reads and writes nothing outside of its folder; what tightens is taken, and so are
limits, which cost time and money and open nothing (`Row.found`). The rest needs a person who names it with `--config`.
"""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_type_hints

import typer

from surefoot.runtime.cast import Thinking
from surefoot.runtime.rules import cedar_of, declared_of, rules_of
from surefoot.types.config import TABLES, LoopConfig
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.guard import GuardConfig
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.settings import Row, defaults, rows

JournalOption = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="PLACE",
        help="Journal: a file, or postgresql://… Default: $SUREFOOT_JOURNAL, else .surefoot/journal.db in this folder.",
        show_default=False,
    ),
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or its first characters.")]
CallArgument = Annotated[str, typer.Argument(metavar="CALL", help="Id of the call, such as 2.0, or p.1 of a step.")]
ByOption = Annotated[str, typer.Option("--by", help="Your name, for the record.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Everything that happens, with times and record numbers.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="For machines: one JSON object per line on stdout.")]


Mode = Literal["auto", "native", "schema", "text"]
ReasonerName = Literal["react", "mono", "dual", "plan"]
Settled = Literal["done", "not-done", "abandon"]

_MARKUP = re.compile(r"`| \(\[[^]]*\]\([^)]*\)\)|\[([^]]*)\]\([^)]*\)")
"""What Markdown adds to a sentence; of a link its words stay, unless it stands alone in parentheses."""

_MODEL, _TOOLS, _GUARD, _PLAN, _LIMITS = "Model", "Tools", "Guard", "With --reasoner plan", "Limits"
"""The panels of help."""


def _option(panel: str, meaning: str, default: Any = None, metavar: str | None = None) -> Any:  # Any: of any type
    """A field that is an option: its panel of the help, and what stands there; its type says the rest."""
    return field(default=default, metadata={"rich_help_panel": panel, "help": meaning, "metavar": metavar})


@dataclass(frozen=True, slots=True)
class Options:
    """What a command that drives a run can be told. None means that it was not said."""

    model: str | None = _option(
        _MODEL, "provider:model, URL#model, or local. Default: $SUREFOOT_MODEL, else local, the embedded one."
    )
    reasoner: ReasonerName | None = _option(
        _MODEL,
        "react answers when it can; mono works in rounds; dual has a Thinker, which plans, and an Actor, which calls "
        "tools; plan makes a plan of steps, runs it and repairs it. Default: react.",
    )
    thinker: str | None = _option(_MODEL, "With dual: the Thinker's model. Default: --model.")
    actor: str | None = _option(_MODEL, "With dual: the Actor's model. Default: --model.")
    thinking: Thinking | None = _option(_MODEL, "With mono and dual: how the model is asked to think.")
    base_url: str | None = _option(
        _MODEL,
        "Base URL of an OpenAI-compatible server. With dual it applies to the models named with it, or to both if none "
        "is; not to local or URL#model.",
    )
    call_mode: Mode | None = _option(_MODEL, "How tool calls are written; auto asks the model's adapter.")
    temperature: float | None = _option(_MODEL, "Sampling temperature.")
    seed: int | None = _option(_MODEL, "Sampling seed.")
    effort: str | None = _option(
        _MODEL, "How hard a reasoning model should think: low, medium, high, or another value of its provider."
    )
    price_in: float | None = _option(
        _MODEL, "US dollars per million input tokens of --model. Default: from its server, or the extra `prices`."
    )
    price_out: float | None = _option(_MODEL, "US dollars per million output tokens.")
    fallback: list[str] | None = _option(
        _MODEL, "Model that takes over when the one before it fails. Repeatable.", metavar="MODEL"
    )
    root: Path | None = _option(_TOOLS, "Folder that the file tools work in. Default: this folder.")
    use: str | None = _option(_TOOLS, "Built-in tools, separated by commas; default: those that only read.")
    write: bool = _option(_TOOLS, "Also offer file_write.", default=False)
    web: bool = _option(_TOOLS, "Also offer web_fetch.", default=False)
    allow_host: list[str] | None = _option(
        _TOOLS, "Private address that web_fetch may open; repeatable.", metavar="HOST:PORT"
    )
    tools: list[Path] | None = _option(_TOOLS, "Python file with @tool functions. Repeatable.", metavar="FILE.py")
    mcp: list[Path] | None = _option(_TOOLS, "MCP servers, as {mcpServers: …}. Repeatable.", metavar="FILE.json")
    no_builtin: bool = _option(_TOOLS, "No built-in tools.", default=False)
    no_tools: bool = _option(_TOOLS, "No tools at all.", default=False)
    prefetch: bool | None = _option(
        _TOOLS, "Before asking the model, fetch the pages and files (as ./notes.txt) that the task names."
    )
    rules: Path | None = _option(_GUARD, "Rules about calls; turns the gate on.", metavar="FILE.toml")
    cedar: Path | None = _option(_GUARD, "Cedar policies; turns the gate on.", metavar="FILE.cedar")
    review_plan: bool | None = _option(
        _PLAN, "Like --approve-plan first, but asks here: yes, no, or a note. Without a terminal the run pauses."
    )
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    """What was said of fields that have an option of their own: by the table that they are in, and by name."""

    def get(self, name: str) -> object:
        """What was said for an option, by its name; None when nothing was."""
        table, setting = SETTINGS.get(name, ("", ""))
        return self.settings.get(table, {}).get(setting) if table else getattr(self, name)


_COMMON = ("model", "reasoner", "tools", "mcp", "write", "max_cost")
"""What most runs are told; help shows them first, in no panel of their own."""
_PANELS = {"tool_profile": _TOOLS, "guard": _GUARD, "plan": _PLAN}

SETTINGS: Mapping[str, tuple[str, str]] = {
    row.option.removeprefix("--").replace("-", "_"): (table, name)
    for table, kind in TABLES.items()
    for name, row in rows(kind).items()
    if row.option
}
"""The options that are fields of a configuration: the table and the field, by the option's name."""

_KEPT = ("reasoner", "thinking", "guard", "rules", "cedar")
"""What a run keeps from its beginning on. To give another is refused, with the reason, and help does not offer it."""

KEPT_BY_RESUME = _KEPT
KEPT_BY_FORK = frozenset((*_KEPT, "prefetch", "review_plan", *SETTINGS))


def takes_options(command: Callable[..., None], hidden: Collection[str] = ()) -> Callable[..., None]:
    """The command, which takes an `Options` as `options`, as typer wants it: with each of them as a parameter.

    Those of the names `hidden` are taken, and not shown in its help.
    """
    hints = get_type_hints(Options)
    signature = inspect.signature(command, eval_str=True)
    own = [one for name, one in signature.parameters.items() if name != "options"]
    made: list[inspect.Parameter] = []

    def take(name: str, kind: Any, default: object, *names: str, **told: Any) -> None:  # Any: an annotation; typer's
        told["rich_help_panel"] = None if name in _COMMON else told["rich_help_panel"]
        taken = Annotated[kind, typer.Option(*names, hidden=name in hidden, **told)]
        made.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=taken))

    for one in fields(Options)[:-1]:
        is_flag = hints[one.name] is bool or one.name == "review_plan"  # others have a --no-, too
        names = [f"--{one.name.replace('_', '-')}"] * is_flag
        take(one.name, hints[one.name], one.default, *names, **one.metadata)
    for option, (table, name) in SETTINGS.items():  # type, meaning and default come from the row of its field
        row = rows(TABLES[table])[name]
        hint, default = get_type_hints(TABLES[table])[name], defaults(TABLES[table])[name]
        is_list = hint == Sequence[str]
        is_off = default in (None, False) or table == "guard"  # without the option there is no gate at all
        told = _MARKUP.sub(r"\1", row.meaning)
        told = told[:1].upper() + told[1:]
        told += "; repeatable." if is_list else "." if is_off else f". Default: {default}."
        panel, metavar = _PANELS.get(table, _LIMITS), "GLOB" if is_list else None
        kind = (list[str] if is_list else hint) | None
        take(option, kind, None, row.option, help=told, metavar=metavar, rich_help_panel=panel)

    first = sorted((one for one in made if one.name in _COMMON), key=lambda one: _COMMON.index(one.name))
    parameters = [*first, *own, *(one for one in made if one.name not in _COMMON)]

    def with_options(**given: Any) -> None:  # Any: typer has converted them by these types
        plain = {one.name: given.pop(one.name) for one in fields(Options)[:-1]}
        settings: dict[str, dict[str, object]] = {}
        for option, (table, name) in SETTINGS.items():
            if (value := given.pop(option)) is not None:
                settings.setdefault(table, {})[name] = value
        command(options=Options(**plain, settings=settings), **given)

    with_options.__name__ = command.__name__
    with_options.__doc__ = command.__doc__
    with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # as PEP 362 has it
    with_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_options


SETTINGS_FILE = "surefoot.toml"

SettingsOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help=f'Settings file; "" for none. Default: {SETTINGS_FILE} in this folder, if there is one; that one cannot '
        "choose models or loosen the gate.",
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


def settings_for(given: str | None, options: Options) -> tuple[Path | None, LoopConfig, tuple[str, ...]]:
    """The settings file that counts, what it gives, and the files of the gate that it and the options name."""
    path = settings_path(given)
    config = config_in(path, is_found=given is None) if path else LoopConfig()
    return path, config, guard_files(path, options)


def config_in(path: Path, *, is_found: bool = False) -> LoopConfig:
    """The configuration that a settings file gives; what it leaves out is as by default.

    Raises `UsageError` (for one value `ConfigError`) that names the file, the table, the field and what to do; also for
    what a file may not say that `is_found` in the folder, and that nobody named.
    """
    if is_found and not _is_inside(path.parent, path.name):
        raise UsageError(
            f"{path}: this is a link that leads out of the folder, so it is not read; give --config {path.name} to use "
            "it, or --config '' to skip it"
        )
    return config_of(path, _read(path), is_found=is_found)


def config_of(path: Path, tables: Table, *, is_found: bool = False, within: str = "") -> LoopConfig:
    """The configuration that tables of the file at `path` give, which stand `within` another. Raises as `config_in`."""
    made: dict[str, Any] = {}  # the configurations by the name of their table
    for name, table in tables.items():
        if name not in TABLES:
            homes = " or ".join(f"[{table}]" for table, made in TABLES.items() if name in rows(made))
            where = f"write it below {homes}" if homes else f"choose from {', '.join(TABLES)}"
            raise UsageError(
                f"{path}: unknown table or field {name!r} at the top; {where}; "
                "models are chosen with --model, and keys come from the environment"
            )
        if not isinstance(table, Mapping):
            raise UsageError(f"{path}: {within + name!r} must be a table; write [{within}{name}] and its fields below")
        made[name] = _build(path, name, cast("Table", table), within + name, is_found=is_found)  # TOML's keys are text
    return replace(made.pop("loop", LoopConfig()), **made)


def _build(path: Path, name: str, table: Table, at: str, *, is_found: bool) -> object:
    """What a table gives, which the file calls `at`. No message tells an unknown field's value: it could be a key."""
    known = {key: row for key, row in rows(TABLES[name]).items() if row.in_files}
    names = (*known, *(FILES if name == "guard" else ()))
    for key, value in table.items():
        if key in TABLES and name == "loop":
            own = f"[{at.removesuffix('loop')}{key}]"
            raise UsageError(f"{path}: [{at}] has no field {key!r}; it is a separate table: {own}")
        if key not in names:
            raise UsageError(f"{path}: [{at}] has no field {key!r}; choose from {', '.join(names)}")
        if is_found and key in FILES and not _is_inside(path.parent, value):
            raise _refusal(path, name, key, "cannot read files outside its folder")
    given = {key: value for key, value in table.items() if key not in FILES}
    try:
        config = TABLES[name].from_json(({"root": "."} if name == "conventions" else {}) | given)
        if isinstance(config, GuardConfig):
            config = _with_files(config, *(_file(path.parent, key, table.get(key)) for key in FILES))
    except OverflowError as error:
        raise UsageError(f"{path}: [{at}] holds a number that is too large; give a smaller one") from error
    except ConfigError as error:
        hint = " (TOML has no None: leave the field out for its default)" if "None" in error.message else ""
        raise ConfigError(f"{path}: [{at}] {error.field}", error.value, error.message + hint) from error
    usual = defaults(TABLES[name])
    for key, value in given.items() if is_found else ():
        if value != usual[key] and not _is_taken(path.parent, known[key], value, usual[key]):
            raise _refusal(path, name, key, f"cannot set {key} to this value")
    if is_found and isinstance(config, GuardConfig) and (config.standing or config.declared):
        raise _refusal(path, name, "rules_file", "cannot allow calls, as [[standing]] and [tools.NAME] do")
    return config


def _is_taken(folder: Path, row: Row, value: object, default: object) -> bool:
    match row.found:
        case "any" | "default":
            return row.found == "any"
        case "inside":
            return _is_inside(folder, value)
        case "pages":
            return isinstance(value, list) and all(str(one).endswith(".md") for one in cast("list[object]", value))
        case "at most":
            return cast("float", value) <= cast("float", default)  # numbers, as its check has just said
        case _:
            return value in row.found


def _is_inside(folder: Path, value: object) -> bool:
    return not isinstance(value, str) or Path(os.path.realpath(folder / value)).is_relative_to(os.path.realpath(folder))


def _refusal(path: Path, name: str, field: str, why: str) -> UsageError:
    option = {"mode": "--guard", "rules_file": "--rules"}.get(field) if name == "guard" else None
    instead = f"give {option} instead" if option else "remove the line"
    return UsageError(
        f"{path}: [{name}] {field}: a file that you did not name {why}; give --config {path.name} to use "
        f"all of it, or {instead}"
    )


def changed(options: Options, config: LoopConfig, reasoner: str = "") -> LoopConfig | None:
    """The configuration with what the options say, field by field; None when they say nothing about it.

    `--max-steps` is said of the whole run: a `reasoner` that plans has its own ceiling for that, which it sets, too.
    `--on-stuck`, `--guard`, `--rules` and `--cedar` switch on what they are about.
    Raises `ConfigError` for a value that cannot be meant.
    """
    said = {name: dict(table) for name, table in options.settings.items()}
    plan = said.setdefault("plan", {})
    usual = config.plan.approve_plan if config.plan is not None and config.plan.approve_plan == "every" else "first"
    if options.review_plan and plan.setdefault("approve_plan", usual) == "never":
        raise UsageError("--review-plan contradicts `--approve-plan never`; leave one of them out")
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
        if guard.mode == "off" and "mode" in said.get("guard", {}):
            raise UsageError("--guard off would ignore --rules and --cedar; leave out one or the other")
        guard = replace(guard, mode="enforce") if guard.mode == "off" else guard
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
        config = replace(config, rules=rules, standing=standing, declared=declared_of(rules_file))
    return config if cedar_file is None else replace(config, cedar=cedar_of(cedar_file))


def _read(path: Path) -> Table:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: the settings cannot be read: {error.strerror}; --config '' reads none") from error
    except (ValueError, RecursionError) as error:  # also text that is not UTF-8, and numbers without end
        raise UsageError(f"{path}: not valid TOML: {error}; fix it, or skip it with --config ''") from error
