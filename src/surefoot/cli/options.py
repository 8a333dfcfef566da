"""The options that several commands share, declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

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


class Mode(StrEnum):
    """How a model is told to call tools."""

    auto = "auto"
    native = "native"
    schema = "schema"
    text = "text"


class ReasonerName(StrEnum):
    """Who speaks in a run, and when it is over."""

    react = "react"
    mono = "mono"
    dual = "dual"
    plan = "plan"


class PlanSigning(StrEnum):
    """Which plans a person signs before they run."""

    never = "never"
    first = "first"
    every = "every"


class Settled(StrEnum):
    """What became of a call in doubt."""

    done = "done"
    not_done = "not-done"
    abandon = "abandon"


class ThinkingStyle(StrEnum):
    """How a model is asked to think before it acts."""

    auto = "auto"
    states = "states"
    plain = "plain"
    none = "none"


class OnStuck(StrEnum):
    """What happens to a step, or a run, that goes in circles."""

    SkipStep = "SkipStep"
    AbortTask = "AbortTask"
    Escalate = "Escalate"
    Replan = "Replan"
    AnswerNow = "AnswerNow"


class GuardMode(StrEnum):
    """What the gate does about a call that it objects to."""

    off = "off"
    observe = "observe"
    enforce = "enforce"


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
        ThinkingStyle | None,
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
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Only tools of such a name; repeatable.", rich_help_panel=_TOOLS),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="No tools of such a name; repeatable.", rich_help_panel=_TOOLS),
    ] = None
    max_tools: Annotated[
        int | None, typer.Option(help="Tools that the model is offered, the first ones.", rich_help_panel=_TOOLS)
    ] = None
    verified_only: Annotated[
        bool, typer.Option("--verified-only", help="Only tools that are verified.", rich_help_panel=_TOOLS)
    ] = False
    prefetch: Annotated[
        bool | None,
        typer.Option(
            "--prefetch/--no-prefetch",
            help="Fetch files and pages that the task names before the model is asked, with the tools at hand.",
            show_default=False,
            rich_help_panel=_TOOLS,
        ),
    ] = None
    guard: Annotated[
        GuardMode | None,
        typer.Option(
            help="What the gate does about odd calls: nothing, note them, ask or refuse.", rich_help_panel=_GUARD
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
    approve_plan: Annotated[
        PlanSigning | None,
        typer.Option(help="Plans that pause the run until a person has signed them.", rich_help_panel=_PLAN),
    ] = None
    review_plan: Annotated[
        bool | None,
        typer.Option(
            "--review-plan",
            help="As --approve-plan first, and asked here: yes, no, or a note. Without a terminal the run pauses.",
            rich_help_panel=_PLAN,
        ),
    ] = None
    max_replans: Annotated[
        int | None, typer.Option(help="Repairs of the plan. Default: no limit.", rich_help_panel=_PLAN)
    ] = None
    max_parallel: Annotated[
        int | None, typer.Option(help="Steps that run side by side. Default: 4.", rich_help_panel=_PLAN)
    ] = None
    max_steps: Annotated[int | None, typer.Option(help="Model requests.", rich_help_panel=_LIMITS)] = None
    max_rounds: Annotated[
        int | None, typer.Option(help="With mono and dual: rounds. Default: 20.", rich_help_panel=_LIMITS)
    ] = None
    max_tokens: Annotated[int | None, typer.Option(help="Tokens, in and out.", rich_help_panel=_LIMITS)] = None
    max_seconds: Annotated[float | None, typer.Option(help="Seconds driven.", rich_help_panel=_LIMITS)] = None
    max_cost: Annotated[float | None, typer.Option(help="US dollars.", rich_help_panel=_LIMITS)] = None
    on_stuck: Annotated[
        OnStuck | None,
        typer.Option(help="What happens to a step that goes in circles. Default: SkipStep.", rich_help_panel=_LIMITS),
    ] = None


_KEPT = ("reasoner", "thinking", "guard", "rules", "cedar")
"""What a run keeps from its beginning on. To give another is refused, with the reason, and help does not offer it."""

KEPT_BY_RESUME = _KEPT
KEPT_BY_FORK = (
    *_KEPT,
    *("max_steps", "max_rounds", "max_tokens", "max_seconds", "max_cost", "on_stuck"),
    *("include", "exclude", "max_tools", "verified_only", "prefetch"),
    *("approve_plan", "review_plan", "max_replans", "max_parallel"),
)


def takes_options(command: Callable[..., None], hidden: Collection[str] = ()) -> Callable[..., None]:
    """The command, which takes an `Options` as `options`, as typer wants it: with each of them as a parameter.

    Those of the names `hidden` are taken, and not shown in its help.
    """
    hints = get_type_hints(Options, include_extras=True)
    hints.update({name: _without_help(hints[name]) for name in hidden})
    names = tuple(field.name for field in fields(Options))
    signature = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        *(one for name, one in signature.parameters.items() if name != "options"),
        *(
            inspect.Parameter(one.name, kind, default=one.default, annotation=hints[one.name])
            for one in fields(Options)
        ),
    ]

    def with_options(**given: object) -> None:
        said = {name: given.pop(name) for name in names}
        command(options=Options(**said), **given)  # type: ignore[arg-type]  # typer has converted them by these types

    with_options.__name__ = command.__name__
    with_options.__doc__ = command.__doc__
    with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # as PEP 362 has it
    with_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_options


def _without_help(hint: Any) -> Any:  # Any: an annotation, as typing has it
    kind, option = get_args(hint)
    silent = copy(option)
    silent.hidden = True
    return Annotated[kind, silent]
