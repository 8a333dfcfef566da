"""What `surefoot doctor` looks at. Nothing here leaves this machine, and no key's value is read out."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import typer
from rich.text import Text

from surefoot.cli.lines import without_password
from surefoot.cli.live import stdout
from surefoot.cli.options import JournalOption
from surefoot.cli.recipes import chosen_model
from surefoot.cli.setup import journal_path
from surefoot.journal.sqlite import SqliteJournal
from surefoot.models.files import cache_directory, known_models
from surefoot.models.names import PROVIDERS, resolve
from surefoot.types.errors import SurefootError, extra_needed
from surefoot.types.ports import RunSummary

Mark = Literal["good", "note", "bad"]
"""Fine · worth knowing · `surefoot run` cannot work so."""

_LEAST_PYTHON = (3, 11)
_NEEDED = ("pydantic", "aiohttp", "orjson", "jsonschema-rs", "docstring-parser")
_EXTRAS = {"cli": ("typer", "rich"), "local": ("xllamacpp",)}
_LITTLE_BYTES = 200 << 20
_CONNECT_S = 1.0
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Check:
    """What was found about one thing, and what to do about it."""

    mark: Mark
    name: str
    text: str
    remedy: str = ""


def all_checks(model: str, base_url: str | None, journal: Path, root: Path) -> list[Check]:
    """Everything that decides whether `surefoot run` can work here, and what else is worth knowing."""
    return [
        python(),
        *packages(),
        *extras(is_local=_is_local(model)),
        *weights(is_needed=_is_local(model)),
        *keys(os.environ),
        chosen(model, base_url),
        *server(model, base_url),
        journal_check(journal),
        disk("disk of the journal", journal),
        disk("disk of the model's cache", cache_directory()),
        Check("good", "workspace", str(root)),
    ]


def python() -> Check:
    """The interpreter."""
    told = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info >= _LEAST_PYTHON:
        return Check("good", "python", told)
    return Check("bad", "python", told, "install Python 3.11 or newer")


def packages() -> list[Check]:
    """Surefoot and what it cannot do without."""
    checks: list[Check] = []
    for name in ("surefoot", *_NEEDED):
        found = installed(name)
        if found or name == "surefoot":  # from a source tree it runs without being installed
            checks.append(Check("good", name, found or "not installed, run from its sources"))
        else:
            checks.append(Check("bad", name, "not installed", f"pip install {name}"))
    return checks


def extras(*, is_local: bool) -> list[Check]:
    """What is installed beyond that."""
    checks: list[Check] = []
    for extra, names in _EXTRAS.items():
        lacking = [name for name in names if not installed(name)]
        if not lacking:
            told = ", ".join(f"{name} {installed(name)}" for name in names)
            checks.append(Check("good", f"extra {extra}", told))
            continue
        mark: Mark = "bad" if extra == "local" and is_local else "note"
        checks.append(Check(mark, f"extra {extra}", f"not installed: {', '.join(lacking)}", extra_needed(extra)))
    return checks


def weights(*, is_needed: bool) -> list[Check]:
    """The embedded model's file."""
    checks: list[Check] = []
    for one in known_models():
        name = f"embedded model {one.name}"
        if one.verified:
            checks.append(Check("good", name, f"verified, at {one.path}"))
        elif one.present:
            checks.append(Check("note", name, f"at {one.path}, not verified yet", "surefoot model pull verifies it"))
        else:
            mark: Mark = "bad" if is_needed else "note"
            checks.append(Check(mark, name, f"not at {one.path}", f"surefoot model pull ({one.size / 1e6:,.0f} MB)"))
    return checks


def keys(environment: Mapping[str, str]) -> list[Check]:
    """Which providers have a key: names only."""
    found = [key for one in PROVIDERS.values() for key in one.keys if environment.get(key)]
    lacking = [one.keys[0] for one in PROVIDERS.values() if one.needs_key and not any(map(environment.get, one.keys))]
    checks: list[Check] = []
    if found:
        checks.append(Check("good", "API keys set", ", ".join(dict.fromkeys(found))))
    if lacking:
        remedy = "set one to use that provider; the embedded model and local servers need none"
        checks.append(Check("note", "API keys not set", ", ".join(dict.fromkeys(lacking)), remedy))
    return checks


def chosen(model: str, base_url: str | None) -> Check:
    """Whether the model that a run would use can be set up."""
    name = without_password(f"model {model}")
    try:
        resolve(model, base_url=base_url)
    except SurefootError as error:
        return Check("bad", name, without_password(str(error)), "name another with --model or $SUREFOOT_MODEL")
    return Check("good", name, "can be set up")


def server(model: str, base_url: str | None) -> list[Check]:
    """Whether the model's server listens, if it is on this machine."""
    url = base_url or (model.partition("#")[0] if model.startswith(("http://", "https://")) else _provider_url(model))
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    if not host:
        return []
    name = f"server {host}:{port}"
    if host not in ("localhost", "127.0.0.1", "::1"):
        return [Check("note", name, "not asked: it is on another machine")]
    try:
        socket.create_connection((host, port), _CONNECT_S).close()
    except OSError as error:
        return [
            Check("bad", name, f"does not listen ({error.strerror or error})", "start it, or name another --base-url")
        ]
    return [Check("good", name, "listens")]


def journal_check(path: Path) -> Check:
    """Whether runs can be written and read."""
    if path.exists():
        try:
            count = len(asyncio.run(_runs(path)))
        except SurefootError as error:
            return Check("bad", "journal", str(error), "name another with --journal, or restore it")
        if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
            return Check("good", "journal", f"{path}, {'no runs yet' if not count else 'readable and writable'}")
        return Check("bad", "journal", f"{path} can be read but not written", "make it and its folder writable")
    folder = _nearest(path)
    if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
        return Check("good", "journal", f"{path}, made at the first run")
    return Check("bad", "journal", f"{path} cannot be made: {folder} is not writable", "name another with --journal")


def disk(name: str, path: Path) -> Check:
    """How much room there is."""
    free = shutil.disk_usage(_nearest(path)).free
    told = f"{free / 1e9:,.1f} GB free"
    return Check("good", name, told) if free > _LITTLE_BYTES else Check("bad", name, told, "make room")


def installed(name: str) -> str:
    """The version of a package that is installed, or ""."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


async def _runs(path: Path) -> Sequence[RunSummary]:
    store = SqliteJournal(path, read_only=True)
    try:
        return await store.runs(1)
    finally:
        await store.aclose()


def _is_local(model: str) -> bool:
    return model == "local" or model.startswith("local:")


def _provider_url(model: str) -> str:
    provider = PROVIDERS.get(model.partition(":")[0])
    if provider is None:
        return ""
    return os.environ.get(provider.base_url_variable, "") or provider.base_url


def _nearest(path: Path) -> Path:
    """The path itself or the nearest of its parents that exists."""
    return path if path.exists() else _nearest(path.parent)


_MARKS = {"good": ("✓", "green"), "note": ("·", "dim"), "bad": ("✗", "red")}
_UNUSABLE = 1


def doctor(
    model: Annotated[str | None, typer.Option(help="The model to look at. Default: as `run` chooses it.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Base URL of an OpenAI-compatible server.")] = None,
    journal: JournalOption = None,
) -> None:
    """Say what is configured, what is missing and how to mend it.

    Exit code 0: `surefoot run` can work. 1: it cannot, because a check failed.
    """
    found = all_checks(chosen_model(model), base_url, journal_path(journal), Path.cwd())
    console = stdout()
    for check in found:
        _put(check)
    broken = sum(check.mark == "bad" for check in found)
    told = f"{broken} of {len(found)} checks failed" if broken else "ready: surefoot run can work"
    console.print(Text(told, "red" if broken else "green"))
    raise typer.Exit(_UNUSABLE if broken else 0)


def _put(check: Check) -> None:
    console = stdout()
    mark, style = _MARKS[check.mark]
    soft = not console.is_terminal
    console.print(Text.assemble((mark, style), f" {check.name}: {check.text}"), soft_wrap=soft)
    if check.remedy:
        console.print(Text(f"    → {check.remedy}"), soft_wrap=soft)
