"""From options to a journal, a run in it, tools and an agent."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import re
import shlex
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Literal, TypeVar, cast, get_args

from surefoot.agent import Agent
from surefoot.cli.exits import Terminated
from surefoot.cli.options import SETTINGS_FILE, Mode, Options, changed
from surefoot.cli.recipes import Recipe, chosen_models, chosen_reasoner, recipes_folder
from surefoot.core.loop.fold import fold
from surefoot.core.state.state import EMPTY, Call, State
from surefoot.core.state.window import READ_RESULT
from surefoot.journal.heads import heads_of
from surefoot.journal.memory import DATABASES, store_of
from surefoot.journal.sqlite import SqliteJournal
from surefoot.models.names import resolve
from surefoot.run import Run
from surefoot.runtime.background import Closable
from surefoot.telling.state import lines_of
from surefoot.telling.tale import asked_run, tale_of
from surefoot.telling.text import Line, without_password
from surefoot.tools.builtin import builtin_tools
from surefoot.tools.call import ToolFailed
from surefoot.tools.function import FunctionTool
from surefoot.tools.mcp.servers import McpServers
from surefoot.tools.workspace import Place, Workspace
from surefoot.types.config import LoopConfig
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import CallMode, ModelSettings
from surefoot.types.ports import JournalStore, Recorded, Tool

T = TypeVar("T")
ClosableT = TypeVar("ClosableT", bound=Closable)

JOURNAL_VARIABLE = "SUREFOOT_JOURNAL"
_DEFAULT = Path(".surefoot", "journal.db")
_PASSWORD = re.compile(r"(?<!^postgresql)(?<!^postgres):[^/?@]*(?=@)|(?<=[?&])password=[^&]*&?")
_NAMED, _LOOKED_AT = 5, 1_000
"""How many runs a message names."""

READING = ("file_list", "file_read", "file_search", "arithmetic", "date_time")
"""The built-in tools that a run has when nothing is said."""


def journal_path(given: str | None) -> str:
    """Where the journal is: the option, else the environment, else this folder's own. A file's path is absolute."""
    place = given or os.environ.get(JOURNAL_VARIABLE) or str(_DEFAULT)
    return place if place.startswith(DATABASES) else str(Path(place).absolute())


def journal_hint(given: str | None) -> str:
    """What a command needs besides to find the same journal again; never a password."""
    return f" --journal {shlex.quote(_PASSWORD.sub('', given))}" if given else ""


def or_beside(place: str | Path) -> str:
    """The end of a message about the journal there: which other ones are in this folder, and how one is opened."""
    heads = (*sorted(Path().glob("*.heads")), *_DEFAULT.parent.glob("*.heads"))
    files = (one.with_suffix("") for one in heads)
    others = [str(one) for one in files if one.is_file() and os.path.realpath(one) != os.path.realpath(place)][:_NAMED]
    if not others:
        return "; --journal names another"
    return f"; other journals here: {', '.join(others)} (surefoot runs --journal {shlex.quote(others[0])})"


def user_name() -> str:
    """The name of the system's user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # one without an entry in the list of users
        return "local"


def open_journal(place: str | Path, *, make: bool = False, read_only: bool = False) -> JournalStore:
    """The journal. The folder of a file is made with `make`, and must hold it otherwise. Raises `SurefootError`."""
    if str(place).startswith(DATABASES):
        return store_of(place)
    path = Path(place)
    if make:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            told = f"cannot make {path.parent}: {error.strerror}; name another place with --journal"
            raise JournalError(told) from error
    elif not path.exists():
        raise UsageError(f"no journal at {path}; `surefoot run` makes one{or_beside(path)}")
    heads = heads_of(path)
    if read_only and heads.exists() and not os.access(heads, os.R_OK):
        print(f"surefoot: {heads} cannot be read, so lost records go unnoticed", file=sys.stderr)
    return SqliteJournal(path, read_only=read_only)


@dataclass(frozen=True, slots=True)
class Found:
    """A run's records as far as they can be read, what is wrong with the rest ("" for nothing), and if it is driven."""

    run_id: str
    records: Sequence[Recorded]
    wrong: str
    is_driven: bool

    @property
    def state(self) -> State:
        return fold(record.event for record in self.records)

    @property
    def run(self) -> Run:
        run = Run.of(self.state, self.records[-1].event if self.records else None)
        return replace(run, status="running", reason="") if self.is_driven else run

    def whole(self) -> Found:
        """This, or `JournalError` when a part of it cannot be read."""
        if self.wrong:
            raise JournalError(self.wrong)
        return self


async def find(store: JournalStore, given: str, journal: str | None = None) -> Found:
    """The run of that id, or the only one whose id begins so. Raises `UsageError` when there is none, or several.

    `journal` is what was said of where the store is, for the message.
    """
    try:
        return Found(given, *await store.read_recorded(given), (await store.summary(given)).status == "running")
    except UsageError:
        ids = list[str]()  # without the runs of agents that one of them has asked
        for one in await store.beginning(given, _LOOKED_AT) if given else ():
            ids += [] if ids and one.startswith(f"{ids[-1]}.") else [one]
    if not ids:
        place, listing = journal_path(journal), f"surefoot runs{journal_hint(journal)}"
        raise UsageError(f"unknown run {given!r} in {place}; `{listing}` lists its runs{or_beside(place)}")
    if len(ids) > 1:
        several, more = (str(len(ids)), "") if len(ids) <= _NAMED else ("many", ", …")
        raise UsageError(f"{several} runs begin with {given!r}: {', '.join(ids[:_NAMED])}{more}; give more of the id")
    return await find(store, ids[0], journal)


async def within(store: JournalStore, found: Found, call_id: str) -> tuple[Sequence[Recorded], str]:
    """The records of the run in which a call waits, and its id there: "CALL/ITS-CALL" is one of an agent."""
    outer_id, _, inner_id = call_id.partition("/")
    if not inner_id:
        return found.records, call_id
    if not (asked := asked_run(found.records, outer_id)):
        raise UsageError(f"run {found.run_id}: call {outer_id!r} did not call an agent")
    return await within(store, await find(store, asked), inner_id)


async def question_within(store: JournalStore, found: Found, call: Call) -> list[Line]:
    """The question about a call that waits, also in the run of an agent that was asked."""
    records, call_id = await within(store, found, call.id)
    return lines_of(tale_of(records), replace(call, id=call_id))


def with_journal(
    journal: str | None,
    work: Callable[[JournalStore], Coroutine[object, object, T]],
    *,
    read_only: bool = False,
    make: bool = False,
) -> T:
    """What `work` gives with the journal open."""
    return asyncio.run(closed_after(open_journal(journal_path(journal), read_only=read_only, make=make), work))


async def closed_after(used: ClosableT, work: Callable[[ClosableT], Awaitable[T]]) -> T:
    """What `work` gives with something that is closed afterwards."""
    async with aclosing(used):
        return await work(used)


_PLAIN = ("thinking", "call_mode", "temperature", "seed", "effort", "price_in", "price_out")


def recipe_from(options: Options, earlier: Recipe | None = None, state: State = EMPTY) -> Recipe:
    """What was said, else what the run was started with, else the defaults. `state`: the run as its journal tells it.

    Raises `UsageError` for options that contradict each other or the run.
    """
    said = [name for name in ("write", "web", "use", "tools", "mcp") if getattr(options, name)]
    if options.no_tools and said:
        raise UsageError(f"--no-tools and --{said[0]} contradict each other; leave one of them out")
    if options.use is not None and options.no_builtin and not options.no_tools:
        raise UsageError("--use and --no-builtin contradict each other; leave one of them out")
    reasoner = chosen_reasoner(options, earlier, state)
    models = chosen_models(options, reasoner, earlier, state)
    base = earlier or Recipe(models, str(Path.cwd()), READING)
    use = base.use if options.use is None else [name for one in options.use.split(",") if (name := one.strip())]
    use = (*(() if options.no_builtin else use), *["file_write"] * options.write, *["web_fetch"] * options.web)
    tools = base.tools if options.tools is None else tuple(str(path.absolute()) for path in options.tools)
    mcp = base.mcp if options.mcp is None else tuple(str(path.absolute()) for path in options.mcp)
    plain = {name: getattr(options, name) for name in _PLAIN}
    if secret := next((one for one in options.fallback or () if without_password(one) != one), None):
        told = without_password(secret)
        raise UsageError(f"--fallback {told}: give its key in the environment, not in the URL, which is kept")
    fallback = base.fallback if options.fallback is None else tuple(filter(None, options.fallback))
    names = [[without_password(one.model) for one in each.values()] for each in (models, base.models)]
    if names[0] != names[1]:  # prices were those of the model before
        base = replace(base, price_in=None, price_out=None)
        fallback = tuple(one for one in fallback if one not in {each.model for each in models.values()})
    return replace(
        base,
        models=models,
        root=base.root if options.root is None else str(options.root.absolute()),
        use=() if options.no_tools else tuple(dict.fromkeys(use)),
        allow_hosts=base.allow_hosts if options.allow_host is None else tuple(options.allow_host),
        tools=() if options.no_tools else tools,
        mcp=() if options.no_tools else mcp,
        reasoner=reasoner,
        fallback=fallback,
        **{name: value for name, value in plain.items() if value is not None},
    )


def config_for(recipe: Recipe, tools: Sequence[Tool], options: Options, config: LoopConfig) -> LoopConfig:
    """The configuration of a new run, with what options say; the gate is on where a tool may change something."""
    config = changed(options, config, recipe.reasoner) or config
    if config.guard is None and (recipe.mcp or any(tool.spec.effect != "read" for tool in tools)):
        return replace(config, guard=GuardConfig())
    return config


def agent_from(
    recipe: Recipe, tools: Sequence[Tool], store: JournalStore, config: LoopConfig | None = None, instructions: str = ""
) -> Agent:
    """The agent of a recipe. Raises `UsageError` for what cannot work."""
    if recipe.call_mode not in (modes := get_args(Mode)):
        raise UsageError(f"unknown call mode {recipe.call_mode!r}; choose one of {', '.join(modes)}")
    settings = ModelSettings(
        recipe.temperature,
        seed=recipe.seed,
        reasoning_effort=recipe.effort,
        price_in=recipe.price_in,
        price_out=recipe.price_out,
    )
    chosen = dict.fromkeys(recipe.models.values())  # a model that plays both roles is there once
    is_alone = not recipe.fallback
    made = {one: resolve(one.model, base_url=one.base_url, settings=settings, waits=is_alone) for one in chosen}
    return Agent(
        {role: made[one] if is_alone else [made[one], *recipe.fallback] for role, one in recipe.models.items()},
        tools=tools,
        instructions=instructions,
        config=config or LoopConfig(),
        settings=settings,
        journal=store,
        reasoner=recipe.reasoner,
        call_mode=cast("CallMode | Literal['auto']", recipe.call_mode),  # one of the four, as was just asked
        thinking=recipe.thinking,
        mcp=recipe.mcp or None,
        output=recipe.schema,
    )


async def served(files: Sequence[str | Path], ask: Callable[[McpServers], Awaitable[T]]) -> T:
    """What is asked of the servers of these files."""
    from surefoot.tools.mcp.config import servers_of  # noqa: PLC0415  # pydantic loads when it is used

    async with McpServers(servers_of(files)) as servers:
        return await ask(servers)


def schema_in(path: Path | None) -> Mapping[str, object] | None:
    """The JSON Schema of a file. Raises `UsageError` for one that cannot be read as an object."""
    if path is None:
        return None
    try:
        schema: object = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or f"not valid JSON: {error}"
        raise UsageError(f"--schema {path}: {why}") from error
    if not isinstance(schema, dict):
        raise UsageError(f"--schema {path}: a JSON Schema is an object")
    from surefoot.runtime.output import schema_fault  # noqa: PLC0415  # loads when it is used

    found = cast("dict[str, object]", schema)  # the keys of JSON are text
    if fault := schema_fault(found):
        raise UsageError(f"--schema {path}: {fault}")
    return found


def loaded(path: Path, option: str, name: str) -> ModuleType:
    """The Python file that an option names, run as a script; while it is loaded it can import what lies beside it.

    Raises `UsageError` that says what is wrong.
    """
    if not path.is_file():
        raise UsageError(f"{option} {path}: {'it is a folder; name a file' if path.is_dir() else 'no such file'}")
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{option} {path}: give a Python file, which ends in .py")
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses and type hints look their module up
    folder = os.path.realpath(path.parent)
    is_added = folder not in sys.path
    if is_added:  # last and not for long: an agent may write there, and must not come before an installed package
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except Terminated:
        raise
    except (Exception, SystemExit) as error:  # the file is the user's own code and may raise anything
        passed = [line for frame, line in walk_tb(error.__traceback__) if Path(frame.f_code.co_filename) == path]
        line = error.lineno if isinstance(error, SyntaxError) else passed[-1] if passed else None
        where = f", line {line}" if line else ""
        raise UsageError(f"{option} {path}{where}: cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        if is_added and folder in sys.path:  # unless the file took it away itself
            sys.path.remove(folder)
    return module


def tools_in(path: Path) -> list[Tool]:
    """Every `@tool` object of the file, in the order in which they are defined. Raises as `loaded` does."""
    module = loaded(path, "--tools", f"surefoot_tools_{path.stem}")
    # every `FunctionTool` is a `Tool`, whatever its function takes and gives; each is there once, also under two names
    found = [cast("Tool", one) for one in vars(module).values() if isinstance(one, FunctionTool)]
    if not found:
        raise UsageError(f"--tools {path}: no tool is defined there; put @surefoot.tool on a function")
    return list({id(one): one for one in found}.values())


def tools_of(recipe: Recipe, journal: str) -> tuple[Tool, ...]:
    """The tools of a recipe, built-in ones first. Raises `UsageError` for what is not there or cannot be loaded."""
    chosen: list[Tool] = []
    if recipe.use:
        believed = (*recipe.tools, *recipe.mcp, *filter(None, (recipe.settings,)), *recipe.guard_files)
        workspace = _Unbelieved(recipe.root, journal, believed)
        offered = {tool.spec.name: tool for tool in builtin_tools(workspace, allow_hosts=recipe.allow_hosts)}
        if unknown := [name for name in recipe.use if name not in offered]:
            raise UsageError(f"--use {', '.join(unknown)}: no such built-in tool; there are {', '.join(offered)}")
        chosen += [offered[name] for name in recipe.use]
    for path in recipe.tools:
        chosen += tools_in(Path(path))
    return tuple(chosen)


def check_tools(state: State, tools: Sequence[Tool], recipe: Recipe) -> None:
    """Raise `UsageError` when a run cannot go on with these because it had others, too.

    What MCP servers offer now is not known yet; a tool that is gone from there says so when it is called.
    """
    have = {tool.spec.name for tool in tools}
    have.update(spec.name for spec in state.tools.tools if spec.server and recipe.mcp)
    lacking = [name for name in state.tools.names if name not in have and name != READ_RESULT]
    if lacking:
        raise UsageError(
            f"run {state.run_id} had tools that are missing now: {', '.join(lacking)}; "
            "name them again with --use, --tools and --mcp"
        )


class _Unbelieved(Workspace):
    """The files below a root, but none that surefoot itself believes: the journal, recipes, settings, tools' files."""

    def __init__(self, root: str, journal: str, believed: Sequence[str]) -> None:
        super().__init__(root)
        file = Path("" if journal.startswith(DATABASES) else journal)
        self._journals = {Path(one).name.casefold() for one in (file, os.path.realpath(file)) if file.name}
        self._closed = [_folded(path) for path in (recipes_folder(), *map(Path, believed))]

    def place(self, path: str) -> Place:
        """Also refuses the files of the tools, all recipes, and settings: these and any that a later run would read."""
        place = super().place(path)
        real = _folded(Path(place.base, *place.parts))
        if real.name == SETTINGS_FILE or any(real == one or one in real.parents for one in self._closed):
            raise ToolFailed(f"{place.shown} says how this run is made and is closed to tools. Go on without it.")
        return place

    def is_secret(self, name: str) -> bool:
        """Also the journal with all that lies beside it under its name, and the folder that holds it by default."""
        folded = name.casefold()
        beside = any(folded.startswith((f"{journal}-", f"{journal}.")) for journal in self._journals)
        return folded in (*self._journals, _DEFAULT.parent.name) or beside or super().is_secret(name)


def _folded(path: Path) -> Path:
    """Where a path really leads, in the case that all file systems agree on."""
    return Path(os.path.realpath(path).casefold())
