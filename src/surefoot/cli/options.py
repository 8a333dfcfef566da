"""The options that several commands share, declared once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

from surefoot.runtime.cast import Thinking
from surefoot.types.config import TABLES
from surefoot.types.settings import defaults, rows

JournalOption = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        help="Journal file. Default: $SUREFOOT_JOURNAL, else .surefoot/journal.db in this folder.",
        show_default=False,
    ),
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or the beginning of it.")]
CallArgument = Annotated[str, typer.Argument(metavar="CALL", help="Id of the call, such as 2.0, or p.1 of a step.")]
ByOption = Annotated[str, typer.Option("--by", help="Your name; it goes on record.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="All that happens, with times and record numbers.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="For machines: one JSON object a line on stdout.")]


Mode = Literal["auto", "native", "schema", "text"]
ReasonerName = Literal["react", "mono", "dual", "plan"]
Settled = Literal["done", "not-done", "abandon"]

_MARKUP = re.compile(r"`|\[([^]]*)\]\([^)]*\)")
"""What Markdown adds to a sentence; of a link its words stay."""

_MODEL, _TOOLS, _GUARD, _PLAN, _LIMITS = "Model", "Tools", "Guard", "With --reasoner plan", "Limits"


@dataclass(frozen=True, slots=True)
class Options:
    """What a command that drives a run can be told. None means that it was not said."""

    model: Annotated[
        str | None,
        typer.Option(
            help="provider:model, URL#model, or local. Default: $SUREFOOT_MODEL, else local, the embedded one.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    reasoner: Annotated[
        ReasonerName | None,
        typer.Option(
            help="react answers when it can; mono delivers in rounds; dual has a Thinker, which plans, and an Actor, "
            "which calls tools; plan makes a plan of steps, runs and repairs it. Default: react.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    thinker: Annotated[
        str | None, typer.Option(help="With dual: the Thinker's model. Default: --model.", rich_help_panel=_MODEL)
    ] = None
    actor: Annotated[
        str | None, typer.Option(help="With dual: the Actor's model. Default: --model.", rich_help_panel=_MODEL)
    ] = None
    thinking: Annotated[
        Thinking | None,
        typer.Option(help="With mono and dual: how the model is asked to think.", rich_help_panel=_MODEL),
    ] = None
    base_url: Annotated[
        str | None,
        typer.Option(
            help="Base URL of an OpenAI-compatible server. With dual it is for the models that are named beside it, "
            "or for both when none is; not for local and URL#model.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    call_mode: Annotated[
        Mode | None,
        typer.Option(help="How tool calls are written; auto asks the model's adapter.", rich_help_panel=_MODEL),
    ] = None
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature.", rich_help_panel=_MODEL)] = None
    seed: Annotated[int | None, typer.Option(help="Seed of the sampling.", rich_help_panel=_MODEL)] = None
    root: Annotated[
        Path | None,
        typer.Option(help="Folder that the file tools work in. Default: this folder.", rich_help_panel=_TOOLS),
    ] = None
    use: Annotated[
        str | None,
        typer.Option(help="Built-in tools, commas between; default: those that only read.", rich_help_panel=_TOOLS),
    ] = None
    write: Annotated[bool, typer.Option("--write", help="Also file_write.", rich_help_panel=_TOOLS)] = False
    web: Annotated[bool, typer.Option("--web", help="Also web_fetch.", rich_help_panel=_TOOLS)] = False
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT", help="Private address that web_fetch may open; repeatable.", rich_help_panel=_TOOLS
        ),
    ] = None
    tools: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.py", help="Python file; each @tool in it. Repeatable.", rich_help_panel=_TOOLS),
    ] = None
    mcp: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.json", help="MCP servers, as {mcpServers: …}. Repeatable.", rich_help_panel=_TOOLS),
    ] = None
    no_builtin: Annotated[bool, typer.Option("--no-builtin", help="No built-in tools.", rich_help_panel=_TOOLS)] = False
    no_tools: Annotated[bool, typer.Option("--no-tools", help="No tools at all.", rich_help_panel=_TOOLS)] = False
    prefetch: Annotated[
        bool | None,
        typer.Option(
            "--prefetch/--no-prefetch",
            help="Fetch files and pages that the task names before the model is asked, with the tools at hand.",
            show_default=False,
            rich_help_panel=_TOOLS,
        ),
    ] = None
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="Rules about calls; turns the gate on.", rich_help_panel=_GUARD),
    ] = None
    cedar: Annotated[
        Path | None,
        typer.Option(metavar="FILE.cedar", help="Cedar policies; turns the gate on.", rich_help_panel=_GUARD),
    ] = None
    review_plan: Annotated[
        bool | None,
        typer.Option(
            "--review-plan",
            help="As --approve-plan first, and asked here: yes, no, or a note. Without a terminal the run pauses.",
            rich_help_panel=_PLAN,
        ),
    ] = None

    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    """What was said of fields that have an option of their own: by the table that they are in, and by name."""

    def said(self, name: str) -> object:
        """What was said for an option, by its name; None when nothing was."""
        table, setting = SETTINGS.get(name, ("", ""))
        return self.settings.get(table, {}).get(setting) if table else getattr(self, name)


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
    hints = get_type_hints(Options, include_extras=True)
    plain = {one.name: (hints[one.name], one.default) for one in fields(Options) if one.name != "settings"}
    taken = plain | {name: (_of_setting(*place), None) for name, place in SETTINGS.items()}
    signature = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        *(one for name, one in signature.parameters.items() if name != "options"),
        *(
            inspect.Parameter(name, kind, default=default, annotation=_without_help(hint) if name in hidden else hint)
            for name, (hint, default) in taken.items()
        ),
    ]

    def with_options(**given: object) -> None:
        said = {name: given.pop(name) for name in taken}
        options = {name: said[name] for name in plain}
        command(options=Options(**options, settings=_tables(said)), **given)  # type: ignore[arg-type]  # typer has converted them by these types

    with_options.__name__ = command.__name__
    with_options.__doc__ = command.__doc__
    with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # as PEP 362 has it
    with_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_options


def _of_setting(table: str, name: str) -> Any:  # Any: an annotation, as typing has it
    """How typer takes a field of a configuration: its type, its meaning and its default come from its row."""
    row = rows(TABLES[table])[name]
    hint, default = get_type_hints(TABLES[table])[name], defaults(TABLES[table])[name]
    is_list = hint == Sequence[str]
    told = _MARKUP.sub(r"\1", row.meaning)
    is_off = default in (None, False) or table == "guard"  # without the option there is no gate at all
    ending = "; repeatable." if is_list else "." if is_off else f". Default: {default}."
    option = typer.Option(
        row.option,
        help=told[:1].upper() + told[1:] + ending,
        metavar="GLOB" if is_list else None,
        rich_help_panel=_PANELS.get(table, _LIMITS),
    )
    return Annotated[(list[str] if is_list else hint) | None, option]


def _tables(said: Mapping[str, object]) -> dict[str, dict[str, object]]:
    tables: dict[str, dict[str, object]] = {}
    for option, (table, name) in SETTINGS.items():
        if (value := said[option]) is not None:
            tables.setdefault(table, {})[name] = value
    return tables


def _without_help(hint: Any) -> Any:  # Any: the same
    kind, option = get_args(hint)
    silent = copy(option)
    silent.hidden = True
    return Annotated[kind, silent]
