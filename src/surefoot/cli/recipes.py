"""What it takes to build a run's agent again, kept in a small file of the user's own.

The journal holds what happened; it has no place for where the tools of a run came from. So `run` leaves a recipe, and
`resume` and `fork` follow it where their options say nothing else. It holds no keys and no passwords. A run without
one can still be resumed: its options then have to be given again.

A recipe names files that are run and addresses that keys are sent to. So it is not beside the journal, where it could
come with a folder from elsewhere, but in a folder that only this user writes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import orjson

from surefoot.cli.passwords import without_password
from surefoot.runtime.templates import Thinking
from surefoot.types.errors import ConfigError, JournalError, UsageError

STATE_VARIABLE = "SUREFOOT_STATE"
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model as it was named, and the base URL that was given for it.

    `withheld`: which of the two had a user and password in its URL, which were not kept.
    """

    model: str
    base_url: str | None = None
    withheld: tuple[str, ...] = ()

    def without_passwords(self) -> Chosen:
        """What of it may be written down."""
        model, base_url = without_password(self.model), without_password(self.base_url or "") or None
        stripped = {"model": model != self.model, "base_url": base_url != self.base_url}
        return Chosen(model, base_url, tuple(name for name, had_user in stripped.items() if had_user))


@dataclass(frozen=True, slots=True)
class Recipe:
    """Where a run's models and tools come from, and how it reasons.

    `models` are by role; `use` are built-in tools, `tools`, `mcp` and `root` absolute paths. `settings` is the settings
    file that the run was started with, "" for none: it is not read again, and closed to the run's tools. So are
    `guard_files`, the rules and policies of the gate.
    """

    models: Mapping[str, Chosen]
    root: str
    use: tuple[str, ...]
    allow_hosts: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    reasoner: str = "react"
    thinking: Thinking = "auto"
    call_mode: str = "auto"
    temperature: float | None = None
    seed: int | None = None
    settings: str = ""
    guard_files: tuple[str, ...] = ()


def recipes_folder() -> Path:
    """Where all recipes are: in `$SUREFOOT_STATE`, else in the place that the system has for what is the user's own."""
    if named := os.environ.get(STATE_VARIABLE):
        return Path(named).absolute() / "recipes"
    if (named := os.environ.get("XDG_STATE_HOME", "")) and Path(named).is_absolute():
        return Path(named, "surefoot", "recipes")
    try:
        home = Path.home()
    except RuntimeError as error:
        raise UsageError(f"this user has no home folder; name one for recipes with ${STATE_VARIABLE}") from error
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local", "surefoot", "recipes")
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "surefoot" / "recipes"
    return home / ".local" / "state" / "surefoot" / "recipes"


def recipe_path(journal: Path, run_id: str) -> Path:
    """Where the recipe of a run is or would be."""
    whose = sha256(os.fsencode(os.path.normcase(journal.resolve()))).hexdigest()[:16]
    return recipes_folder() / whose / f"{quote(run_id, safe='')[:_LONGEST_NAME]}.json"


def keep_recipe(journal: Path, run_id: str, recipe: Recipe) -> None:
    """Write it down, without passwords, for this user alone. Raises `JournalError` when that is not possible."""
    path = recipe_path(journal, run_id)
    kept = replace(recipe, models={role: chosen.without_passwords() for role, chosen in recipe.models.items()})
    fresh = path.with_suffix(".new")
    try:
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)  # also when it was there before
        fresh.unlink(missing_ok=True)  # what is opened next is new, so it has this mode
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(asdict(kept), option=orjson.OPT_INDENT_2))
        fresh.replace(path)  # whole or not at all
    except OSError as error:
        raise JournalError(
            f"cannot write {path}: {error.strerror}; name another folder with ${STATE_VARIABLE}"
        ) from error


def recipe_of(journal: Path, run_id: str) -> Recipe | None:
    """The recipe of a run; None when there is none. Raises `ConfigError` when it cannot be read as one."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - only what takes a run up again pays for it

    path = recipe_path(journal, run_id)
    try:
        recipe = TypeAdapter(Recipe).validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ConfigError(
            "recipe", str(path), f"cannot be read ({type(error).__name__}); remove it and give the run's options again"
        ) from error
    if relative := [name for name in (recipe.root, *recipe.tools, *recipe.mcp) if not Path(name).is_absolute()]:
        raise ConfigError("recipe", str(path), f"names {relative[0]!r}, which is no absolute path; remove it")
    return recipe
