"""What is installed and configured here: `doctor`, and the embedded model: `model pull`, `model list`.

Nothing that `doctor` looks at leaves this machine, and no key's value is read out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import re
import shutil
import socket
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from surefoot.cli.live import stderr, stdout
from surefoot.cli.options import JournalOption, config_in, settings_path
from surefoot.cli.recipes import chosen_model
from surefoot.cli.setup import closed_after, journal_path, open_journal
from surefoot.journal.memory import DATABASES
from surefoot.models.files import ENCODER, QWEN_CODER, VOCABULARY, cache_directory, known_models
from surefoot.models.names import ENTRY_POINTS, PROVIDERS, resolve
from surefoot.telling.text import without_password
from surefoot.types.errors import SurefootError, extra_needed

Mark = Literal["good", "note", "bad"]
"""Fine · worth knowing · `surefoot run` cannot work so."""

_LEAST_PYTHON = (3, 11, 5)
_REQUIRED = re.compile(r"(?m)^([\w.-]+)[^;\n]*(?:;.*extra == ['\"](.+)['\"])?")
_OF_DEVELOPERS = ("docs", "test", "test-scale")
_LITTLE_BYTES = 200 << 20
_CONNECT_S = 1.0
_PORTS = {"http": 80, "https": 443}
_MARKS = {"good": ("✓", "green"), "note": ("·", "dim"), "bad": ("✗", "red")}
_UNUSABLE = 1
_EVERY_PERCENT = 10
"""How often a line is printed where no bar can be drawn."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was found about one thing, and what to do about it."""

    mark: Mark
    name: str
    text: str
    remedy: str = ""


def all_checks(model: str, base_url: str | None, journal: str, root: Path) -> list[Check]:
    """Everything that decides whether `surefoot run` can work here, and what else is worth knowing."""
    is_local = model == "local" or model.startswith("local:")
    return [
        *installation(is_local=is_local),
        *weights(is_needed=is_local),
        *keys(os.environ),
        chosen(model, base_url),
        *settings(),
        *server(model, base_url),
        journal_check(journal),
        disk("disk of the journal", root if journal.startswith(DATABASES) else Path(journal)),
        disk("disk of the model's cache", cache_directory()),
        Check("good", "workspace", str(root)),
    ]


def settings() -> Iterator[Check]:
    """Whether the settings of this folder can be read, where it has any."""
    if (path := settings_path(None)) is None:
        return
    try:
        config_in(path, is_found=True)
    except SurefootError as error:
        yield Check("bad", "settings", str(error), "fix the file, or name another with --config")
    else:
        yield Check("good", "settings", str(path))


def installation(*, is_local: bool) -> Iterator[Check]:
    """The interpreter, surefoot with what it cannot do without, and what is installed beyond that."""
    told = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    is_new = sys.version_info >= _LEAST_PYTHON
    yield Check("good" if is_new else "bad", "python", told, "" if is_new else "install Python 3.11.5 or newer")
    yield Check("good", "surefoot", installed("surefoot") or "not installed, run from its sources")
    needed, absent = dict[str, list[str]](), list[str]()
    with contextlib.suppress(PackageNotFoundError):  # run from its sources
        for name, extra in _REQUIRED.findall("\n".join(requires("surefoot") or ())):
            needed.setdefault(extra, []).append(name)
    for name in needed.pop("", ()):
        found = installed(name)
        yield Check("good", name, found) if found else Check("bad", name, "not installed", f"pip install {name}")
    for extra, names in needed.items():
        if not (lacking := [name for name in names if not installed(name)]):
            yield Check("good", f"extra {extra}", ", ".join(f"{name} {installed(name)}" for name in names))
        elif extra == "local" and is_local:
            yield Check("bad", f"extra {extra}", f"not installed: {', '.join(lacking)}", extra_needed(extra))
        elif extra not in _OF_DEVELOPERS:
            absent.append(extra)
    if absent:
        yield Check("note", "extras not installed", ", ".join(absent), extra_needed("NAME"))


def weights(*, is_needed: bool) -> Iterator[Check]:
    """The embedded model's file."""
    for one in known_models():
        name = f"embedded model {one.name}"
        if one.verified:
            yield Check("good", name, f"verified, at {one.path}")
        elif one.present:
            yield Check("note", name, f"at {one.path}, not verified yet", "surefoot model pull verifies it")
        else:
            mark: Mark = "bad" if is_needed else "note"
            yield Check(mark, name, f"not at {one.path}", f"surefoot model pull ({one.size / 1e6:,.0f} MB)")


def keys(environment: Mapping[str, str]) -> Iterator[Check]:
    """Which providers have a key: names only."""
    found = [key for one in PROVIDERS.values() for key in one.keys if environment.get(key)]
    lacking = [one.keys[0] for one in PROVIDERS.values() if one.needs_key and not any(map(environment.get, one.keys))]
    if found:
        yield Check("good", "API keys set", ", ".join(dict.fromkeys(found)))
    if lacking:
        remedy = "set one to use that provider; the embedded model and local servers need none"
        yield Check("note", "API keys not set", ", ".join(dict.fromkeys(lacking)), remedy)


def chosen(model: str, base_url: str | None) -> Check:
    """Whether the model that a run would use can be set up."""
    name = without_password(f"model {model}")
    try:
        resolve(model, base_url=base_url)
    except SurefootError as error:
        return Check("bad", name, without_password(str(error)), "name another with --model or $SUREFOOT_MODEL")
    return Check("good", name, "can be set up")


def server(model: str, base_url: str | None) -> Iterator[Check]:
    """Whether the model's server listens, if it is on this machine."""
    url = base_url or (model.partition("#")[0] if model.startswith(("http://", "https://")) else "")
    if not url and (provider := PROVIDERS.get(model.partition(":")[0])) is not None:
        url = os.environ.get(provider.base_url_variable, "") or provider.base_url
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:  # `chosen` says what is wrong
        return
    if not host:
        return
    name = f"server {host}:{port}"
    if host not in ("localhost", "127.0.0.1", "::1"):
        yield Check("note", name, "not asked: it is on another machine")
        return
    try:
        socket.create_connection((host, port), _CONNECT_S).close()
    except OSError as error:
        told = f"is not listening ({error.strerror or error})"
        yield Check("bad", name, told, "start it, or name another --base-url")
    else:
        yield Check("good", name, "listening")


def journal_check(place: str) -> Check:
    """Whether runs can be written and read."""
    elsewhere, path = "name another with --journal", Path(place)
    is_file = not place.startswith(DATABASES)
    if is_file and not path.exists():
        folder = _nearest(path)
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return Check("good", "journal", f"{path}, will be created by the first run")
        return Check("bad", "journal", f"{path} cannot be made: {folder} is not writable", elsewhere)

    try:
        newest = asyncio.run(closed_after(open_journal(place, read_only=True), lambda store: store.runs(1)))
        told = f"{without_password(place)}, {'readable and writable' if newest else 'no runs yet'}"
    except SurefootError as error:
        return Check("bad", "journal", str(error), f"{elsewhere}, or restore it")
    if not is_file or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return Check("good", "journal", told)
    return Check("bad", "journal", f"{path} can be read but not written", "make it and its folder writable")


def disk(name: str, path: Path) -> Check:
    """How much room there is."""
    free = shutil.disk_usage(_nearest(path)).free
    told = f"{free / 1e9:,.1f} GB free"
    return Check("good", name, told) if free > _LITTLE_BYTES else Check("bad", name, told, "free some space")


def installed(name: str) -> str:
    """The version of a package that is installed, or ""."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _nearest(path: Path) -> Path:
    return path if path.exists() else _nearest(path.parent)


def doctor(
    model: Annotated[str | None, typer.Option(help="Model to check. Default: the one that `run` would use.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Base URL of an OpenAI-compatible server.")] = None,
    journal: JournalOption = None,
) -> None:
    """Show what is configured, what is missing and how to fix it.

    Exit code 0: `surefoot run` will work. 1: it will not, because a check failed.
    """
    found = all_checks(chosen_model(model), base_url, journal_path(journal), Path.cwd())
    console = stdout()
    soft = not console.is_terminal
    for check in found:
        mark, style = _MARKS[check.mark]
        console.print(Text.assemble((mark, style), f" {check.name}: {check.text}"), soft_wrap=soft)
        if check.remedy:
            console.print(Text(f"    → {check.remedy}"), soft_wrap=soft)
    broken = sum(check.mark == "bad" for check in found)
    told = f"{broken} of {len(found)} checks failed" if broken else "ready: surefoot run can work"
    console.print(Text(told, "red" if broken else "green"))
    raise typer.Exit(_UNUSABLE if broken else 0)


app = typer.Typer(help="The embedded model: fetch it, check that it is there.", no_args_is_help=True)


@app.command()
def pull(
    *,
    encoder: Annotated[bool, typer.Option("--encoder", help="The small encoder for choosing tools, instead.")] = False,
) -> None:
    """Fetch the embedded model once, and verify it. An interrupted pull continues where it stopped."""
    # Only here, because it imports an HTTP client that nothing else on the command line needs.
    from surefoot.models.pull import pull as fetch  # noqa: PLC0415

    with _progress() as on_progress:
        for one in (ENCODER, VOCABULARY) if encoder else (QWEN_CODER,):
            print(asyncio.run(fetch(on_progress, weights=one)))


@app.command(name="list")
def list_models() -> None:
    """List the models that surefoot can fetch, and the providers that it knows."""
    console = stdout()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("model", "size", "here", "file"):
        table.add_column(name, no_wrap=name != "file", overflow="fold", justify="right" if name == "size" else "left")
    for model in known_models():
        here = "verified" if model.verified else "not verified yet" if model.present else "no: surefoot model pull"
        table.add_row(*map(Text, (f"local ({model.name})", f"{model.size / 1e6:,.0f} MB", here, str(model.path))))
    console.print(table)
    console.print(f"\nservers: {', '.join(f'{name}:MODEL' for name in PROVIDERS)}, http://HOST:PORT/v1#MODEL")
    plugins = sorted({entry.name for entry in entry_points(group=ENTRY_POINTS)})
    console.print(f"plug-ins: {', '.join(f'{name}:MODEL' for name in plugins) or 'none'}")


@contextlib.contextmanager
def _progress() -> Generator[Callable[[int, int, str], None]]:
    """A bar on a terminal; elsewhere a line for each new thing that is done, and for each tenth of it."""
    console, last = stderr(), ("", -1)

    def tell(done: int, total: int, doing: str) -> None:
        nonlocal last
        now = (doing, done * 100 // max(total, 1) // _EVERY_PERCENT)
        if now != last:
            last = now
            console.print(f"{doing}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB", soft_wrap=True)

    if not console.is_terminal:
        yield tell
        return
    text, times = TextColumn("{task.description}"), (TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(text, BarColumn(), DownloadColumn(), *times, console=console) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda done, total, doing: bar.update(task, completed=done, total=total, description=doing)
