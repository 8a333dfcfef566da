"""What it takes to build a run's agent again, kept in a small file beside the journal.

The journal holds what happened; it has no place for where the tools of a run came from. So `run` leaves a recipe, and
`resume` and `fork` follow it where their options say nothing else. It holds no keys. A run without one can still be
resumed: its options then have to be given again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

import orjson

from surefoot.types.errors import ConfigError, JournalError

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Recipe:
    """Where a run's model and tools come from. `use` are built-in tools, `tools` and `root` absolute paths."""

    model: str
    base_url: str | None
    root: str
    use: tuple[str, ...]
    allow_hosts: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    call_mode: str = "auto"
    temperature: float | None = None
    seed: int | None = None


def recipe_path(journal: Path, run_id: str) -> Path:
    """Where the recipe of a run is or would be."""
    return journal.with_name(journal.name + ".recipes") / f"{quote(run_id, safe='')[:_LONGEST_NAME]}.json"


def keep_recipe(journal: Path, run_id: str, recipe: Recipe) -> None:
    """Write it down. Raises `JournalError` when that is not possible."""
    path = recipe_path(journal, run_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(orjson.dumps(asdict(recipe), option=orjson.OPT_INDENT_2))
        fresh.replace(path)  # whole or not at all
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}; make the journal's folder writable") from error


def recipe_of(journal: Path, run_id: str) -> Recipe | None:
    """The recipe of a run; None when there is none. Raises `ConfigError` when it cannot be read as one."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - only what takes a run up again pays for it

    path = recipe_path(journal, run_id)
    try:
        return TypeAdapter(Recipe).validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ConfigError(
            "recipe", str(path), f"cannot be read ({type(error).__name__}); remove it and give the run's options again"
        ) from error
